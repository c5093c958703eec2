//! `config`: shows the current settings and their origins, changes them without losing comments, and records consent.
//! It also works with invalid settings, so that they can be corrected.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::arguments::Global;
use super::init::check_writable;
use super::locate::{Location, ProjectSource, is_broad};
use super::output;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::settings::{
    self, Config, Consent, EffectiveSetting, Layer, Setting, Source, Weakening, effective_settings,
    find_setting, problem_in_git_directory,
};
use crate::terminal::Styled;
use crate::text::visible_line;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// List all settings, their values and where they come from
    Show {
        /// List only settings that differ from their defaults
        #[arg(long)]
        changed: bool,
    },
    /// Consent to the project's settings and to data found in its folders
    Allow,
    /// Withdraw your consent to the project's settings and folders
    Deny,
    /// Print the path of the settings file
    Path {
        /// In your own file, which is for all projects, not in deaddrop.toml
        #[arg(long)]
        own: bool,
    },
    /// Print the value of a setting, one item per line
    Get {
        /// Its name, as in `sandbox.network`
        key: String,
    },
    /// Change a setting; comments and layout stay
    Set {
        /// Its name, as in `sandbox.network`
        key: String,
        /// The new value
        #[arg(required = true)]
        value: Vec<String>,
        /// Allow your home folder or `/` as the workspace
        #[arg(long)]
        force: bool,
        /// In your own file, which is for all projects, not in deaddrop.toml
        #[arg(long)]
        own: bool,
    },
    /// Reset a setting to its default
    Unset {
        /// The setting's name, such as `sandbox.network`, `guest` or `policies.NAME`
        key: String,
        /// In your own file, which is for all projects, not in deaddrop.toml
        #[arg(long)]
        own: bool,
    },
}

pub(super) fn settings(command: ConfigCommand, global: &Global) -> Result<ExitCode> {
    let named = global.project.clone();
    match command {
        ConfigCommand::Show { changed } => {
            let place = find_project(named)?;
            if place.source == ProjectSource::Missing {
                output::say("There is no project here or above; in a new one here it would be:");
            }
            let mut settings = effective_settings(&place.project)?;
            settings.retain(|setting| !changed || setting.source != Source::Default);
            show(&settings);
            if settings.iter().any(|setting| !setting.allowed) {
                output::warning(
                    "settings marked `needs consent` are not in force; `deaddrop config allow` records your consent",
                );
            }
        }
        ConfigCommand::Get { key } => {
            settings::check_name(&key, &format!("config get {key}"))?;
            let place = find_project(named)?;
            let name = settings::canonical(&key);
            let settings = effective_settings(&place.project)?;
            let Some(found) = settings.iter().find(|setting| setting.name == name) else {
                output::say(format!("{key} is not set"));
                return Ok(ExitCode::FAILURE);
            };
            output::print(to_json(found), || plain_values(&found.value).join("\n"));
        }
        ConfigCommand::Path { own } => {
            let file = match settings_project(own, named)? {
                Some(project) => Some(project.join(settings::FILE)),
                None => settings::user_settings_file(),
            };
            let file = file.ok_or_else(|| {
                Error::usage("without HOME there is no file of your own settings")
            })?;
            let path = file.display().to_string();
            output::print(json!({ "path": path, "exists": file.exists() }), || &*path);
            if !file.exists() {
                output::say("It does not exist yet; `deaddrop config set` creates it.");
            }
        }
        ConfigCommand::Allow => return allow(&canonical_project(named)?),
        ConfigCommand::Deny => return deny(&canonical_project(named)?),
        ConfigCommand::Set { key, value, force, own } => {
            let project = settings_project(own, named)?;
            let missing = check_folder(project.as_deref(), &key, &value, force)?;
            let set = |project: Option<&Path>| settings::set(project, &key, &value).map(Some);
            change(project.as_deref(), &key, set)?;
            missing.iter().for_each(|warning| output::warning(warning));
        }
        ConfigCommand::Unset { key, own } => {
            let project = settings_project(own, named)?;
            let unset = |project: Option<&Path>| settings::unset(project, &key);
            change(project.as_deref(), &key, unset)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the project. Fails if its settings file is missing: otherwise a command would create a new one.
fn find_project(named: Option<PathBuf>) -> Result<Location> {
    let place = Location::find(named)?;
    // An invalid settings file is not missing. It is reported when it is used.
    if let Ok(config) = Config::load_untrusted(&place.project) {
        config.check_settings_file()?;
    }
    Ok(place)
}

/// The project whose settings file is used; None for the person's own file.
fn settings_project(own: bool, named: Option<PathBuf>) -> Result<Option<PathBuf>> {
    if own { Ok(None) } else { canonical_project(named).map(Some) }
}

/// The canonical path of the project.
fn canonical_project(named: Option<PathBuf>) -> Result<PathBuf> {
    let Location { project, source, .. } = find_project(named)?;
    if source == ProjectSource::Missing {
        return Err(Error::no_project(&project));
    }
    project.canonicalize().map_err(|e| Error::io("open the project", &project, e))
}

/// The consent to the project's settings; None if they cannot be read.
fn current_consent(project: Option<&Path>) -> Option<Consent> {
    Config::load(project?, settings::Layer::default()).ok().map(|(_, consent)| consent)
}

/// Changes a setting and records consent to it. Warns if a running deaddrop does not use the change yet.
fn change(
    project: Option<&Path>,
    key: &str,
    write: impl FnOnce(Option<&Path>) -> Result<Option<PathBuf>>,
) -> Result<()> {
    let before = current_consent(project);
    let Some(file) = write(project)? else {
        output::say(format!("{key} is not set there; nothing changed."));
        return Ok(());
    };
    if output::wants_json() {
        output::json(&json!({ "name": key, "path": file.display().to_string() }));
    }
    output::say(format!("{} is changed.", file.display()));
    let Some(project) = project else { return Ok(()) };
    if Config::load_untrusted(project).is_ok_and(|config| Lock::is_held(&config)) {
        output::warning("a running deaddrop uses this after its next start");
    }
    let Some(now) = current_consent(Some(project)) else { return Ok(()) };
    // If the settings could not be read before, the earlier consent is unknown.
    follow_consent(before.as_ref().unwrap_or(&now), &now, &[key])
}

fn show(settings: &[EffectiveSetting]) {
    let width = settings.iter().map(|setting| setting.name.len()).max().unwrap_or_default();
    for setting in settings {
        if output::wants_json() {
            output::json(&to_json(setting));
            continue;
        }
        let EffectiveSetting { name, origin, about, source, allowed, .. } = setting;
        let origin = if *source == Source::Default { "default" } else { origin };
        let waits = if *allowed { "" } else { ", needs consent" };
        let line = format!("{name:<width$} = {}  ({origin}{waits})", setting.toml());
        // The value may come from somebody else.
        output::prose(&*visible_line(&line));
        if output::is_verbose() && !about.is_empty() {
            output::prose(format!("{:width$}   {about}", ""));
        }
    }
}

fn to_json(setting: &EffectiveSetting) -> Value {
    json!({
        "name": setting.name,
        "value": setting.value,
        "source": setting.source,
        "origin": setting.origin,
        "about": setting.about,
        "allowed": setting.allowed,
    })
}

/// A value for a script, on one line; a list has one line per item.
fn plain_values(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(plain_values).collect(),
        other => vec![other.to_string()],
    }
}

/// The only folder setting whose folder should exist already.
const WORKSPACE: &str = "workspace_dir";

/// Checks the new value of a folder setting. Returns a warning if it is the workspace and does not exist.
///
/// # Errors
/// The path is not a folder or cannot be created. Or the workspace is far more than a project, and `force` is not set.
fn check_folder(
    project: Option<&Path>,
    key: &str,
    words: &[String],
    force: bool,
) -> Result<Option<String>> {
    let is_folder = find_setting(key).is_some_and(Setting::is_folder);
    let (true, [word]) = (is_folder, words) else { return Ok(None) };
    let folder = match project {
        Some(project) => project.join(word),
        // A relative path in the person's own file means a different folder in each project.
        None if Path::new(word).is_absolute() => PathBuf::from(word),
        None => return Ok(None),
    };
    let real_path = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let is_workspace = key == WORKSPACE;
    let broad = is_broad(&real_path).filter(|_| is_workspace && !force);
    let broad = broad.map(|why| format!("{why}; choose another folder, or use --force"));
    let in_git = is_workspace.then(|| problem_in_git_directory(&real_path)).flatten();
    if let Some(why) = broad.or(in_git) {
        return Err(Error::config(
            format!("config set {key} {word}"),
            format!("nothing changed: {why}"),
        ));
    }
    if word.trim().is_empty() || folder.is_dir() {
        return Ok(None);
    }
    check_writable(&folder)
        .map_err(|e| Error::config(format!("config set {key}"), format!("{e}; nothing changed")))?;
    let shown = visible_line(&folder.display().to_string()).into_owned();
    let warning = format!("{shown} does not exist; it is created, empty, at the next start");
    Ok(Some(warning).filter(|_| key == WORKSPACE))
}

/// If settings need consent, asks for it at the terminal. Refuses settings without consent.
///
/// # Errors
/// There is no consent, or it cannot be recorded.
pub(super) fn require_consent(config: &Config, consent: &Consent) -> Result<()> {
    consent.check_links()?;
    if consent.missing().is_empty() {
        return Ok(());
    }
    let lines: String = consent.lines().iter().map(|line| format!("  {line}\n")).collect();
    let is_only_data =
        consent.missing().iter().all(|missing| consent.untrusted_data() == Some(missing));
    let (what, asks) = if is_only_data {
        ("contains deaddrop data that you have not trusted yet", "Moved or copied? Trust it?")
    } else {
        ("needs your consent, because somebody else may have written it", "Do you agree?")
    };
    let question = Styled::from(format!("{} {what}:\n{lines}", consent.subject()));
    let question = question + output::bold(asks) + " [y/N] ";
    match output::confirm(question) {
        Some(true) => consent.allow(config)?,
        // The question has just listed them.
        Some(false) => {
            return Err(Error::usage(format!(
                "nothing was done without your consent. Change {}, or consent: answer `y`, or run `deaddrop config allow`",
                consent.subject()
            ))
            .with_code("consent-needed"));
        }
        None => return consent.require(),
    }
    output::say("You will not be asked again; `deaddrop config deny` withdraws your consent.");
    Ok(())
}

/// `config allow`: shows what needs consent, and records the consent.
fn allow(project: &Path) -> Result<ExitCode> {
    let (config, consent) = Config::load(project, Layer::default())?;
    for weakening in consent.weakenings().iter().chain(consent.untrusted_data()) {
        let Weakening { name, value, origin, does, .. } = weakening;
        let value = json!({ "name": name, "value": value, "origin": origin, "does": does });
        output::print(value, || weakening.line());
    }
    if consent.weakenings().is_empty() && consent.untrusted_data().is_none() {
        output::say("Nothing here needs your consent.");
    } else {
        consent.allow(&config)?;
        output::say(format!(
            "Your consent is recorded for {}; `deaddrop config deny` withdraws it.",
            consent.subject()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// `config deny`: withdraws the consent.
fn deny(project: &Path) -> Result<ExitCode> {
    let (config, _) = Config::load(project, Layer::default())?;
    output::say(if config.forget()? {
        "Your consent is withdrawn; a running deaddrop continues as it began."
    } else {
        "There was no consent to withdraw here."
    });
    Ok(ExitCode::SUCCESS)
}

/// Records consent to the settings that the person has just set (`keys`). Warns if other settings in the file need it.
///
/// # Errors
/// The consent cannot be recorded.
pub(super) fn follow_consent(before: &Consent, now: &Consent, keys: &[&str]) -> Result<()> {
    if !now.extend_to(before, keys)? {
        output::warning(&format!(
            "{} needs your consent before it takes effect: `deaddrop config allow` shows what, and records it",
            now.subject()
        ));
    }
    Ok(())
}
