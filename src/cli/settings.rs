//! `config`: the settings in force and where each was made, and changes that keep comments. Works
//! also where they are not in order, so that they can be put right.

mod folder;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::consent;
use super::locate::{By, Location};
use super::output::{self, Terminal};
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::settings::{self, Config, Consent, InForce, Source, in_force};
use crate::text::visible_line;

#[derive(Debug, Args)]
#[command(after_help = "\
Flags override DEADDROP_* variables, these override deaddrop.toml, and that overrides your own file.

Examples:
  deaddrop config show
  deaddrop config set max_tokens 60000
  deaddrop config set sandbox.readable ~/data /srv/models")]
pub(super) struct Settings {
    #[command(subcommand)]
    asked: Asked,
}

#[derive(Debug, Subcommand)]
enum Asked {
    /// List all settings, their values and where they come from
    #[command(after_help = "\
-v adds what each setting is for. Data in deaddrop's folders that needs your consent comes last, as \
`found here` and `tracked by git`.

Examples:
  deaddrop config show
  deaddrop config show --changed
  deaddrop config show --json | jq -r 'select(.source == \"environment\").name'")]
    Show {
        /// List only settings that differ from their defaults
        #[arg(long)]
        changed: bool,
    },
    /// Consent to the project's settings and to data found in its folders
    Allow(consent::Allow),
    /// Withdraw your consent to the project's settings and folders
    Deny(consent::Deny),
    /// Print the path of the settings file
    #[command(after_help = "Examples:\n  deaddrop config path\n  deaddrop config path --own")]
    Path {
        #[command(flatten)]
        whose: Whose,
    },
    /// Print the value of a setting, one item per line
    #[command(after_help = "\
Examples:
  deaddrop config get workspace_dir
  deaddrop config get sandbox.readable --json")]
    Get {
        /// Its name, as in `sandbox.network`
        key: String,
    },
    /// Change a setting; comments and layout stay
    #[command(after_help = "\
An invalid value is not written. Give all items of a list at once; [] is an empty list.

Examples:
  deaddrop config set max_tokens 60000
  deaddrop config set sandbox.network true
  deaddrop config set secrets_allow 'tests/fixtures/*.pem' .env.example
  deaddrop config set guest.command ssh build-box deaddrop rpc
  deaddrop config set policy standard --own")]
    Set {
        /// Its name, as in `sandbox.network`
        key: String,
        /// The new value
        #[arg(required = true)]
        value: Vec<String>,
        /// Allow your home folder or `/` as the workspace
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        whose: Whose,
    },
    /// Reset a setting to its default
    #[command(after_help = "\
Examples:
  deaddrop config unset max_tokens
  deaddrop config unset guest
  deaddrop config unset policy --own")]
    Unset {
        /// The setting's name, such as `sandbox.network`, `guest` or `policies.NAME`
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
}

/// Which file is meant.
#[derive(Debug, Args)]
struct Whose {
    /// In your own file, which is for all projects, not in deaddrop.toml
    #[arg(long)]
    own: bool,
}

/// `named` is what `-C` says.
pub(super) fn settings(
    arguments: Settings,
    named: Option<PathBuf>,
    ui: &Terminal,
    json: bool,
) -> Result<ExitCode> {
    match arguments.asked {
        Asked::Show { changed } => {
            let place = found(named)?;
            if place.by == By::Nothing {
                ui.say("There is no project here or above; in a new one here it would be:");
            }
            let mut settings = in_force(&place.project)?;
            settings.retain(|setting| !changed || setting.source != Source::Default);
            show(&settings, ui, json);
            if settings.iter().any(|setting| !setting.allowed) {
                ui.warning("settings marked `needs consent` are not in force; `deaddrop config allow` records your consent");
            }
        }
        Asked::Get { key } => {
            settings::check_name(&key, &format!("config get {key}"))?;
            let place = found(named)?;
            let name = settings::canonical(&key);
            let settings = in_force(&place.project)?;
            let Some(found) = settings.iter().find(|setting| setting.name == name) else {
                ui.say(format!("{key} is not set"));
                return Ok(ExitCode::FAILURE);
            };
            output::told(json, to_json(found), || bare(&found.value).join("\n"));
        }
        Asked::Path { whose } => {
            let file = match project(&whose, named)? {
                Some(project) => Some(project.join(settings::FILE)),
                None => settings::own_file(),
            };
            let file = file.ok_or_else(|| {
                Error::usage("without HOME there is no file of your own settings")
            })?;
            let path = file.display().to_string();
            output::told(json, json!({ "path": path, "exists": file.exists() }), || &*path);
            if !file.exists() {
                ui.say("It does not exist yet; `deaddrop config set` creates it.");
            }
        }
        Asked::Allow(_) => return consent::allow(&whole_project(named)?, ui, json),
        Asked::Deny(_) => return consent::deny(&whole_project(named)?, ui),
        Asked::Set { key, value, force, whose } => {
            let project = project(&whose, named)?;
            let missing = folder::check(project.as_deref(), &key, &value, force)?;
            let set = |project: Option<&Path>| settings::set(project, &key, &value).map(Some);
            change(project.as_deref(), &key, ui, json, set)?;
            missing.iter().for_each(|told| ui.warning(told));
        }
        Asked::Unset { key, whose } => {
            let project = project(&whose, named)?;
            let unset = |project: Option<&Path>| settings::unset(project, &key);
            change(project.as_deref(), &key, ui, json, unset)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The project that is meant, unless its settings are gone: others would be made in their place.
fn found(named: Option<PathBuf>) -> Result<Location> {
    let place = Location::find(named)?;
    // Wrong settings are there, and are told by whoever reads them.
    if let Ok(config) = Config::load_untrusted(&place.project) {
        config.has_its_settings()?;
    }
    Ok(place)
}

/// Whose file is meant: that of the project, or none for the person's own.
fn project(whose: &Whose, named: Option<PathBuf>) -> Result<Option<PathBuf>> {
    if whose.own { Ok(None) } else { whole_project(named).map(Some) }
}

/// The whole path of the project.
fn whole_project(named: Option<PathBuf>) -> Result<PathBuf> {
    let Location { project, by, .. } = found(named)?;
    if by == By::Nothing {
        return Err(Error::no_base(&project));
    }
    project.canonicalize().map_err(|e| Error::io("open the project", &project, e))
}

/// What was agreed to before a change; None where the settings could not be read.
fn agreed(project: Option<&Path>) -> Option<Consent> {
    Config::load(project?, settings::Raw::default()).ok().map(|(_, consent)| consent)
}

/// Changes a setting, has that count as agreed to, and says who does not know of it yet.
fn change(
    project: Option<&Path>,
    key: &str,
    ui: &Terminal,
    json: bool,
    write: impl FnOnce(Option<&Path>) -> Result<Option<PathBuf>>,
) -> Result<()> {
    let before = agreed(project);
    let Some(file) = write(project)? else {
        ui.say(format!("{key} is not set there; nothing changed."));
        return Ok(());
    };
    if json {
        output::json(&json!({ "name": key, "path": file.display().to_string() }).to_string());
    }
    ui.say(format!("{} is changed.", file.display()));
    let Some(project) = project else { return Ok(()) };
    if Config::load_untrusted(project).is_ok_and(|config| Lock::is_held(&config)) {
        ui.warning("a running deaddrop uses this after its next start");
    }
    let Some(now) = agreed(Some(project)) else { return Ok(()) };
    // Of settings that could not be read nobody knows what was agreed to.
    consent::follow(before.as_ref().unwrap_or(&now), &now, &[key], ui)
}

fn show(settings: &[InForce], ui: &Terminal, json: bool) {
    let width = settings.iter().map(|setting| setting.name.len()).max().unwrap_or_default();
    for setting in settings {
        if json {
            output::json(&to_json(setting).to_string());
            continue;
        }
        let InForce { name, origin, about, source, allowed, .. } = setting;
        let origin = if *source == Source::Default { "default" } else { origin };
        let waits = if *allowed { "" } else { ", needs consent" };
        let line = format!("{name:<width$} = {}  ({origin}{waits})", setting.toml());
        // Somebody else may have written it.
        output::prose(&*visible_line(&line));
        if ui.verbose && !about.is_empty() {
            output::prose(format!("{:width$}   {about}", ""));
        }
    }
}

fn to_json(setting: &InForce) -> Value {
    json!({
        "name": setting.name,
        "value": setting.value,
        "source": setting.source,
        "origin": setting.origin,
        "about": setting.about,
        "allowed": setting.allowed,
    })
}

/// A value as a script takes it: a line, or one for each item.
fn bare(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(bare).collect(),
        other => vec![other.to_string()],
    }
}
