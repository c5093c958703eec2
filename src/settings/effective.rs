//! Lists the effective settings, each with its origin.

use std::path::Path;

use serde_json::Value;

use super::layers::{Layers, SettingValue, Source};
use super::table::{SettingKind, find, names};
use super::{Config, Layer, SESSION_POLICY, Weakening};
use crate::error::Result;

/// An effective setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// The full name, such as `sandbox.network`.
    pub name: String,
    /// The value: a string, a number, a boolean or a list of strings.
    pub value: Value,
    /// The layer that set it.
    pub source: Source,
    /// The origin: a file with its line, a variable, deaddrop's own folders, or "default settings".
    pub origin: String,
    /// The purpose of the setting.
    pub about: &'static str,
    /// False if the setting needs the person's consent and lacks it. Then nothing starts.
    pub allowed: bool,
}

impl EffectiveSetting {
    /// The value in TOML.
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

    /// An entry for data in deaddrop's own folders, which is not a setting.
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

/// A value in TOML.
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

/// All effective settings of a project, in the order of the table. Settings of `[guest]` and `[policies]` are included
/// only if they are set. Data in deaddrop's own folders that needs consent comes last.
///
/// # Errors
/// A setting is invalid.
pub fn effective_settings(project: &Path) -> Result<Vec<EffectiveSetting>> {
    let project = super::open(project)?;
    let layers = Layers::read(&project, Layer::default())?;
    let (_, consent) = Config::with_consent(project, &layers)?;
    let merged = layers.merged();
    let of_tables = ["guest", "policies"].into_iter().flat_map(|table| merged.within(table));
    let settings = names().map(|name| merged.setting(name)).chain(of_tables.cloned());
    let others = consent.weakenings().iter().chain(consent.untrusted_data());
    let others = others.filter(|it| find(&it.name).is_none()).map(EffectiveSetting::of_folders);
    let all = settings.map(EffectiveSetting::of).chain(others).map(|setting| {
        let allowed = consent.missing().iter().all(|weakening| weakening.name != setting.name);
        EffectiveSetting { allowed, ..setting }
    });
    Ok(all.collect())
}
