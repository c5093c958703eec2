//! Settings as the person wrote them, each with its origin.

use std::ffi::OsString;
use std::path::Path;

use toml::de::{DeInteger, DeTable, DeValue};

use super::guest;
use super::keys::{self, KEYS, Key, Kind, Value};
use super::policy::Tables;
use super::reading;
use super::setting::Setting;
use crate::error::{Error, Result};

/// The table of a settings file that holds policies.
const POLICIES: &str = "policies";
/// The table that names the guest.
const GUEST: &str = "guest";

/// Settings before they are resolved: a value and where it was set, or nothing.
#[derive(Debug, Default, Clone)]
pub struct Raw {
    settings: [Option<(Value, String)>; KEYS.len()],
    pub(super) policies: Tables,
    pub(super) guest: Option<guest::Table>,
}

impl Raw {
    /// Sets the setting `name` from a flag of the command line, over what it was.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn set(&mut self, name: &str, value: String, origin: String) -> Result<()> {
        let n = keys::place(name).ok_or_else(|| keys::unknown_flag(&origin, name))?;
        self.settings[n] = Some((Value::from_text(&KEYS[n], value.into(), &origin)?, origin));
        Ok(())
    }

    /// Takes what `over` sets, keeping the rest.
    pub(super) fn overlay(&mut self, over: Self) {
        for (mine, other) in self.settings.iter_mut().zip(over.settings) {
            if other.is_some() {
                *mine = other;
            }
        }
        self.policies.overlay(over.policies);
        if over.guest.is_some() {
            self.guest = over.guest;
        }
    }

    /// The settings of a file; none where there is no file.
    pub(super) fn from_file(path: &Path) -> Result<Self> {
        match reading::read(path)? {
            Some(text) => Self::from_text(&text, path),
            None => Ok(Self::default()),
        }
    }

    pub(super) fn from_text(text: &str, path: &Path) -> Result<Self> {
        let at = |offset: usize| {
            let line = text[..offset.min(text.len())].matches('\n').count() + 1;
            format!("{}:{line}", path.display())
        };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            reading::unreadable(path, text, at, e.message())
        })?;
        let mut raw = Self::default();
        raw.take_table(table.get_ref(), false, &at)?;
        Ok(raw)
    }

    /// Takes the settings of a file, or of the one table within it.
    fn take_table(
        &mut self,
        table: &DeTable<'_>,
        within: bool,
        at: &impl Fn(usize) -> String,
    ) -> Result<()> {
        for (key, value) in table {
            let origin = at(key.span().start);
            if !within && key.get_ref() == POLICIES {
                self.policies.take(value.get_ref(), &origin, at)?;
                continue;
            }
            if !within && key.get_ref() == GUEST {
                self.guest = Some(guest::Table::read(value.get_ref(), &origin, at)?);
                continue;
            }
            let n = keys::place_in_file(key.get_ref(), within, &origin)?;
            match value.get_ref() {
                DeValue::Table(table) if !within && matches!(KEYS[n].kind, Kind::Mode) => {
                    self.take_table(table, true, at)?;
                }
                value => self.settings[n] = Some((from_toml(&KEYS[n], value, &origin)?, origin)),
            }
        }
        Ok(())
    }

    pub(super) fn from_environment(
        variables: impl Iterator<Item = (String, OsString)>,
    ) -> Result<Self> {
        let mut raw = Self::default();
        for (name, value) in variables {
            let origin = format!("environment variable {name}");
            if let Some(n) = keys::place_of_variable(&name, &origin)? {
                raw.settings[n] = Some((Value::from_text(&KEYS[n], value, &origin)?, origin));
            }
        }
        Ok(raw)
    }

    /// Whether it says what the setting `name` of the table is.
    pub(super) fn sets(&self, name: &str) -> bool {
        keys::place(name).is_some_and(|n| self.settings[n].is_some())
    }

    /// The setting `name` of the table as it is in force.
    pub(super) fn setting(&self, name: &str) -> Setting {
        let n = keys::place(name).expect("a name in the table");
        let key = &KEYS[n];
        let (value, origin) = self.settings[n].clone().unwrap_or_else(|| {
            let origin = "default settings".to_owned();
            let value = Value::from_text(key, key.default.into(), &origin);
            (value.expect("a default in the table is text"), origin)
        });
        Setting { key, value, origin, is_default: self.settings[n].is_none() }
    }
}

/// What a settings file says, if it is of the type that the setting is of.
fn from_toml(key: &Key, value: &DeValue<'_>, origin: &str) -> Result<Value> {
    match (key.kind, value) {
        (
            Kind::Folder | Kind::Mode | Kind::Secrets | Kind::Notify | Kind::Policy,
            DeValue::String(text),
        ) => Ok(Value::Text(text.to_string())),
        (Kind::Switch, DeValue::Boolean(on)) => Ok(Value::Text(on.to_string())),
        (Kind::Number { .. }, DeValue::Integer(number)) => Ok(Value::Text(whole(number))),
        (Kind::Paths | Kind::Variables | Kind::Names | Kind::Patterns, DeValue::Array(items)) => {
            let items = items.iter().map(|item| match item.get_ref() {
                DeValue::String(text) => Ok(OsString::from(text.as_ref())),
                other => Err(Error::config(
                    origin,
                    format!("{} holds {}; it must be {}", key.name, described(other), key.form()),
                )),
            });
            Ok(Value::List(items.collect::<Result<_>>()?))
        }
        (_, other) => {
            let problem = format!("{} cannot be {}; it must be", key.name, described(other));
            Err(Error::config(origin, format!("{problem} {}", key.form())))
        }
    }
}

/// A whole number in digits. Too large a one is told as it was written.
pub(super) fn whole(number: &DeInteger<'_>) -> String {
    let decimal = i128::from_str_radix(number.as_str(), number.radix());
    decimal.map_or_else(|_| number.to_string(), |n| n.to_string())
}

/// A value of a settings file, by its type and, where it is short, itself.
pub(super) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("a string ('{text}')"),
        DeValue::Integer(number) => format!("an integer ({number})"),
        DeValue::Float(number) => format!("a float ({number})"),
        DeValue::Boolean(on) => format!("a boolean ({on})"),
        DeValue::Datetime(time) => format!("a time ({time})"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
