//! The settings in force one by one, each with where it was made.

use std::path::Path;

use super::raw::Layers;
use super::table::names;
use super::{Config, Opening, Raw};
use crate::error::Result;

/// Where a setting in force was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: it is what it is by itself.
    Default,
    /// In the person's own file.
    OwnFile,
    /// In the settings file of the project.
    File,
    /// In an environment variable.
    Environment,
    /// It is no setting: what stands, or what git tracks, in deaddrop's own folders there.
    Folder,
}

impl Source {
    /// Its name in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::OwnFile => "own file",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Folder => "folder",
        }
    }
}

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Its name, as in `sandbox.network`.
    pub name: String,
    /// What it is: a text, a number, a truth value or a list of texts.
    pub value: serde_json::Value,
    /// In what kind of place it was made.
    pub source: Source,
    /// In which: a file with its line, a variable, a flag, deaddrop's own folders; "default settings" else.
    pub origin: String,
    /// What it is for.
    pub about: &'static str,
    /// False where it opens something, and the person has not allowed that yet: then nothing is begun
    /// with it.
    pub allowed: bool,
}

impl InForce {
    /// The value as a settings file would have it.
    pub fn toml(&self) -> String {
        toml_of(&self.value)
    }
}

/// A value as a settings file would have it.
pub(super) fn toml_of(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        value => literal(value),
    }
}

fn literal(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    }
}

/// All settings as they are in force in the project `base`, in their usual order; of the
/// tables `[guest]` and `[policies]` only what is written. Last comes what else has to be agreed to: what
/// came with deaddrop's own folders there.
///
/// # Errors
/// One of them is wrong, as for [`Config::load_trusted`].
pub fn in_force(project: &Path) -> Result<Vec<InForce>> {
    let project = super::open(project)?;
    let layers = Layers::read(&project, Raw::default())?;
    // What is wrong is told instead.
    let (config, consent) = Config::with_consent(project, &layers)?;
    let mut found: Vec<InForce> = names().map(|name| setting(name, &layers)).collect();
    let guest = layers.lowest_first().into_iter().rev();
    let mut guest = guest.filter_map(|(source, raw)| Some((source, raw.tables.get("guest")?)));
    if let (Some(guest), Some((source, origin))) = (&config.guest, guest.next()) {
        found.extend(guest.settings().into_iter().map(|(name, value)| {
            let name = format!("guest.{name}");
            InForce { value, source, origin: origin.clone(), ..setting(&name, &layers) }
        }));
    }
    let policies = layers.merged();
    found.extend(policies.within("policies").map(|policy| setting(policy.name(), &layers)));
    // What a link opens of a setting stands with that.
    let is_setting = |opening: &Opening| found.iter().any(|setting| setting.name == opening.name);
    let brought = consent.openings().iter().chain(consent.found()).filter(|it| !is_setting(it));
    let brought: Vec<InForce> = brought.map(of_folders).collect();
    found.extend(brought);
    for setting in &mut found {
        setting.allowed = consent.lacks().iter().all(|opening| opening.name != setting.name);
    }
    Ok(found)
}

/// What came with deaddrop's own folders, beside the settings.
fn of_folders(opening: &Opening) -> InForce {
    InForce {
        name: opening.name.clone(),
        value: opening.value.as_str().into(),
        source: Source::Folder,
        origin: "deaddrop's own folders here".to_owned(),
        about: opening.does,
        allowed: true,
    }
}

fn setting(name: &str, layers: &Layers) -> InForce {
    let made = layers.lowest_first().into_iter().rev().find(|(_, raw)| raw.sets(name));
    let unset = Raw::default();
    let (source, raw) = made.unwrap_or((Source::Default, &unset));
    let given = raw.setting(name);
    let (name, value, about) = (name.to_owned(), given.to_json(), given.setting.about.as_str());
    InForce { name, value, source, origin: given.origin, about, allowed: true }
}
