//! The settings in force one by one, each with where it was made.

use std::path::Path;

use serde_json::Value;

use super::layers::{Layers, SettingValue, Source};
use super::table::{SettingKind, names};
use super::{Config, RawSettings, SESSION_POLICY, Weakening};
use crate::error::Result;

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
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

impl EffectiveSetting {
    /// The value as a settings file would have it.
    pub fn toml(&self) -> String {
        toml_of(&self.value)
    }

    fn of(given: SettingValue) -> Self {
        let SettingValue { setting, name, mut value, source, origin } = given;
        if matches!(setting.kind, SettingKind::Policy) && value == "" {
            value = SESSION_POLICY.into();
        }
        Self { name, value, source, origin, about: &setting.about, allowed: true }
    }

    /// Data in deaddrop's own folders that is no setting.
    fn of_folders(weakening: &Weakening) -> Self {
        Self {
            name: weakening.name.clone(),
            value: weakening.value.as_str().into(),
            source: Source::Folder,
            origin: "deaddrop's own folders here".to_owned(),
            about: weakening.does,
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
pub fn effective_settings(project: &Path) -> Result<Vec<EffectiveSetting>> {
    let project = super::open(project)?;
    let layers = Layers::read(&project, RawSettings::default())?;
    let (_, consent) = Config::with_consent(project, &layers)?;
    let merged = layers.merged();
    let mut found: Vec<EffectiveSetting> =
        names().map(|name| EffectiveSetting::of(merged.setting(name))).collect();
    let of_tables = ["guest", "policies"].into_iter().flat_map(|table| merged.within(table));
    found.extend(of_tables.cloned().map(EffectiveSetting::of));
    // What a link weakens of a setting is shown with that setting.
    let is_setting =
        |weakening: &Weakening| found.iter().any(|setting| setting.name == weakening.name);
    let others =
        consent.weakenings().iter().chain(consent.untrusted_data()).filter(|it| !is_setting(it));
    let others: Vec<EffectiveSetting> = others.map(EffectiveSetting::of_folders).collect();
    found.extend(others);
    for setting in &mut found {
        setting.allowed = consent.missing().iter().all(|weakening| weakening.name != setting.name);
    }
    Ok(found)
}
