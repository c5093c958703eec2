//! The settings in force one by one, each with where it was made.

use std::path::Path;

use serde_json::Value;

use super::layers::{Given, Layers, Source};
use super::table::{Kind, names};
use super::{Config, Opening, Raw, SESSION_POLICY};
use crate::error::Result;

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Its name, as in `sandbox.network`.
    pub name: String,
    /// Its value: a text, a number, a truth value or a list of texts.
    pub value: Value,
    /// In what kind of place it was made.
    pub source: Source,
    /// Where: a file with its line, a variable, deaddrop's own folders, or "default settings".
    pub origin: String,
    /// What it is for.
    pub about: &'static str,
    /// False if it needs the person's consent and does not have it: then nothing starts with it.
    pub allowed: bool,
}

impl InForce {
    /// The value as a settings file would have it.
    pub fn toml(&self) -> String {
        toml_of(&self.value)
    }

    fn of(given: Given) -> Self {
        let Given { setting, name, mut value, source, origin } = given;
        if matches!(setting.kind, Kind::Policy) && value == "" {
            value = SESSION_POLICY.into();
        }
        Self { name, value, source, origin, about: &setting.about, allowed: true }
    }

    /// Data in deaddrop's own folders that is no setting.
    fn of_folders(opening: &Opening) -> Self {
        Self {
            name: opening.name.clone(),
            value: opening.value.as_str().into(),
            source: Source::Folder,
            origin: "deaddrop's own folders here".to_owned(),
            about: opening.does,
            allowed: true,
        }
    }
}

/// A value as a settings file would have it.
pub(super) fn toml_of(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_of).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    }
}

/// All settings as they are in force in a project, in the order of the table; of `[guest]` and
/// `[policies]` only what is written. Last comes whatever else needs consent in deaddrop's own folders there.
///
/// # Errors
/// One of them is wrong, as for [`Config::load_trusted`].
pub fn in_force(project: &Path) -> Result<Vec<InForce>> {
    let project = super::open(project)?;
    let layers = Layers::read(&project, Raw::default())?;
    let (_, consent) = Config::with_consent(project, &layers)?;
    let merged = layers.merged();
    let mut found: Vec<InForce> = names().map(|name| InForce::of(merged.setting(name))).collect();
    let of_tables = ["guest", "policies"].into_iter().flat_map(|table| merged.within(table));
    found.extend(of_tables.cloned().map(InForce::of));
    // What a link weakens of a setting is shown with that setting.
    let is_setting = |opening: &Opening| found.iter().any(|setting| setting.name == opening.name);
    let others = consent.openings().iter().chain(consent.found()).filter(|it| !is_setting(it));
    let others: Vec<InForce> = others.map(InForce::of_folders).collect();
    found.extend(others);
    for setting in &mut found {
        setting.allowed = consent.lacks().iter().all(|opening| opening.name != setting.name);
    }
    Ok(found)
}
