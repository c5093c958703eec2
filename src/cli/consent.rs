//! Consent to the settings of a project: the question, `config allow` and `config deny`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::output::{self, Terminal};
use crate::error::{Error, Result};
use crate::settings::{Config, Consent, Opening, Raw};
use crate::terminal::Styled;

#[derive(Debug, Args)]
pub(super) struct Allow {}

#[derive(Debug, Args)]
pub(super) struct Deny {}

/// Asks at a terminal whether the person consents, and refuses settings without consent.
///
/// # Errors
/// There is no consent, or it cannot be recorded.
pub(super) fn require(config: &Config, consent: &Consent, ui: &Terminal) -> Result<()> {
    consent.requires_names()?;
    if consent.lacks().is_empty() {
        return Ok(());
    }
    let lines: String = consent.lines().iter().map(|line| format!("  {line}\n")).collect();
    let is_only_data = consent.lacks().iter().all(|lacks| consent.found() == Some(lacks));
    let (what, asks) = if is_only_data {
        ("contains deaddrop data that you have not trusted yet", "Moved or copied? Trust it?")
    } else {
        ("needs your consent, because somebody else may have written it", "Do you agree?")
    };
    let question = Styled::from(format!("{} {what}:\n{lines}", consent.whose()));
    let question = question + ui.bold(asks) + " [y/N] ";
    match ui.agreement(question) {
        Some(true) => consent.allow(config)?,
        // They have just read what it is.
        Some(false) => {
            return Err(Error::usage(format!(
                "nothing was done without your consent. Change {}, or consent: answer `y`, or run `deaddrop config allow`",
                consent.whose()
            ))
            .with_code("consent-needed"));
        }
        None => return consent.require(),
    }
    ui.say("You will not be asked again; `deaddrop config deny` withdraws your consent.");
    Ok(())
}

/// `config allow`: shows what needs consent, and records it.
pub(super) fn allow(project: &std::path::Path, ui: &Terminal, json: bool) -> Result<ExitCode> {
    let (config, consent) = Config::load(project, Raw::default())?;
    for opening in consent.openings().iter().chain(consent.found()) {
        let Opening { name, value, origin, does, .. } = opening;
        let value = json!({ "name": name, "value": value, "origin": origin, "does": does });
        output::told(json, value, || opening.line());
    }
    if consent.openings().is_empty() && consent.found().is_none() {
        ui.say("Nothing here needs your consent.");
    } else {
        consent.allow(&config)?;
        ui.say(format!(
            "Your consent is recorded for {}; `deaddrop config deny` withdraws it.",
            consent.whose()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// `config deny`: withdraws the consent.
pub(super) fn deny(project: &std::path::Path, ui: &Terminal) -> Result<ExitCode> {
    let (config, _) = Config::load(project, Raw::default())?;
    ui.say(if config.forget()? {
        "Your consent is withdrawn; a running deaddrop continues as it began."
    } else {
        "There was no consent to withdraw here."
    });
    Ok(ExitCode::SUCCESS)
}

/// Counts what the person has just set (`keys`) as consent. Warns if something else in the file needs consent.
///
/// # Errors
/// It cannot be recorded.
pub(super) fn follow(before: &Consent, now: &Consent, keys: &[&str], ui: &Terminal) -> Result<()> {
    if !now.follow(before, keys)? {
        ui.warning(&format!(
            "{} needs your consent before it takes effect: `deaddrop config allow` shows what, and records it",
            now.whose()
        ));
    }
    Ok(())
}
