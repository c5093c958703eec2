//! Asks the person whether the settings of a project may open what they open, and what they agreed
//! to: `config allow` and `config deny`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Context;
use super::talk::{self, Talk};
use crate::error::{Error, Result};
use crate::settings::{Config, Consent, Opening, Raw};
use crate::terminal::Styled;

#[derive(Debug, Args)]
#[command(after_help = "\
A deaddrop.toml that came with a repository can weaken the defaults: start programs, open the
sandbox, use other folders. Such settings need your consent: at a terminal you are asked, elsewhere
deaddrop refuses. Read the file first.

So do replies, sessions and approvals that were in deaddrop's folders before it used them (`found
here`), also after you moved or copied the project, and those that git tracks (`tracked by git`).

Prints everything that you consent to, one per line. Consent is kept in ~/.local/state/deaddrop
($XDG_STATE_HOME), for this folder only; changed values ask again.

Examples:
  deaddrop config allow
  deaddrop -C ~/projects/calculator config allow
  deaddrop config allow --json | jq -r .name")]
pub(super) struct Allow {}

#[derive(Debug, Args)]
#[command(after_help = "\
Also forgets that deaddrop has used these folders: the next start asks about data in them. Nothing
else changes, and a running deaddrop continues.

Examples:
  deaddrop config deny
  deaddrop -C ~/drop config deny")]
pub(super) struct Deny {}

/// Lets settings pass that open nothing, or what the person has agreed to; at a terminal they are asked.
///
/// # Errors
/// They have not agreed, or it cannot be noted that they do.
pub(super) fn require(consent: &Consent, talk: &Talk) -> Result<()> {
    consent.requires_names()?;
    if consent.lacks().is_empty() {
        return Ok(());
    }
    let lines: String = consent.lines().iter().map(|line| format!("  {line}\n")).collect();
    let question = format!(
        "{} opens what is closed else, and somebody else may have written that:\n{lines}",
        consent.whose(),
    );
    let question = Styled::from(question)
        + talk.bold("Do you agree to this, here and as it stands?")
        + " [y/N] ";
    match talk.agreement(question) {
        Some(true) => consent.allow()?,
        // They have just read what it is.
        Some(false) => {
            return Err(Error::usage(format!(
                "you have not agreed to that, and nothing was done. Change {}, or agree: answer `y`, or type `deaddrop config allow`",
                consent.whose()
            ))
            .with_code("consent-needed"));
        }
        None => return consent.require(),
    }
    talk.hint("It is noted, and you are not asked again; `deaddrop config deny` takes it back.");
    Ok(())
}

/// `config allow`: shows what the settings open, and notes that the person agrees.
pub(super) fn allow(project: &std::path::Path, talk: &Talk, json: bool) -> Result<ExitCode> {
    let (_, consent) = Config::load(project, Raw::default())?;
    for opening in consent.openings().iter().chain(consent.found()) {
        if json {
            Context::print_json(&to_json(opening));
        } else {
            talk::prose(opening.line());
        }
    }
    if consent.openings().is_empty() && consent.found().is_none() {
        talk.say("Nothing is opened by the settings here, and nothing has to be agreed to.");
    } else {
        consent.allow()?;
        talk.hint(&format!(
            "That you agree to this is noted for {}; `deaddrop config deny` takes it back.",
            consent.whose()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// `config deny`: forgets that the person agreed.
pub(super) fn deny(project: &std::path::Path, talk: &Talk) -> Result<ExitCode> {
    let (config, consent) = Config::load(project, Raw::default())?;
    let (settings, folders) = (consent.forget()?, config.release_dirs()?);
    talk.say(if settings || folders {
        "It is forgotten that you agreed; a deaddrop that runs goes on as it began."
    } else {
        "You have agreed to nothing here, and nothing is changed."
    });
    Ok(ExitCode::SUCCESS)
}

fn to_json(opening: &Opening) -> serde_json::Value {
    let Opening { name, value, origin, does, .. } = opening;
    json!({ "name": name, "value": value, "origin": origin, "does": does })
}

/// Has what the person has just set by `keys` count as agreed to, and says so where it does not, since
/// there was something else in the file.
///
/// # Errors
/// It cannot be noted.
pub(super) fn follow(before: &Consent, now: &Consent, keys: &[&str], talk: &Talk) -> Result<()> {
    if !now.follow(before, keys)? {
        talk.warning(&format!(
            "{} opens what you have not agreed to, and counts for nobody until you do: `deaddrop config allow` shows it, and notes that you agree",
            now.whose()
        ));
    }
    Ok(())
}
