//! Settings as the person wrote them, each with its origin, and what each of them means.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::file;
use super::in_force::Source;
use super::policy::{Policy, SESSION_POLICY};
use super::table::{self, Kind, Setting};
use super::{FILE, normal, own_file};
use crate::error::{Error, Result};

/// Settings before they are resolved.
#[derive(Debug, Default, Clone)]
pub struct Raw {
    /// By their full names, each with where it was set.
    settings: BTreeMap<String, (Value, String)>,
    /// Where each table begins.
    pub(super) tables: BTreeMap<String, String>,
}

/// A setting before it is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<OsString>),
}

/// A setting in one or more layers, or its default.
pub(super) struct Given {
    pub(super) setting: &'static Setting,
    name: String,
    pub(super) value: Value,
    /// Where it was set.
    pub(super) origin: String,
    pub(super) is_default: bool,
}

/// The settings of each layer, as they were written there.
#[derive(Default)]
pub(super) struct Layers {
    pub(super) own: Raw,
    pub(super) file: Raw,
    pub(super) environment: Raw,
    pub(super) flags: Raw,
}

impl Layers {
    pub(super) fn read(project: &Path, flags: Raw) -> Result<Self> {
        Ok(Self { file: Raw::from_file(&project.join(FILE))?, ..Self::around_the_file(flags)? })
    }

    /// All but those of the project.
    pub(super) fn around_the_file(flags: Raw) -> Result<Self> {
        let variables = env::vars_os();
        let variables =
            variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let own = own_file().map(|file| Raw::from_file(&file)).transpose()?.unwrap_or_default();
        Ok(Self {
            own,
            file: Raw::default(),
            environment: Raw::from_environment(variables)?,
            flags,
        })
    }

    /// What counts for every command, and so without flags.
    pub(super) fn lowest_first(&self) -> [(Source, &Raw); 3] {
        [
            (Source::OwnFile, &self.own),
            (Source::File, &self.file),
            (Source::Environment, &self.environment),
        ]
    }

    /// What all of them come to.
    pub(super) fn merged(&self) -> Raw {
        Raw::merged(self.lowest_first().map(|(_, layer)| layer).into_iter().chain([&self.flags]))
    }
}

impl Raw {
    /// Sets the setting `name` from a flag of the command line, over what it was.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn set(&mut self, name: &str, value: String, origin: String) -> Result<()> {
        let setting = table::find(name).ok_or_else(|| table::unknown(&origin, name))?;
        self.put_text(setting, value.into(), origin)
    }

    fn put_text(&mut self, setting: &Setting, text: OsString, origin: String) -> Result<()> {
        let value = Value::from_text(setting, text, &origin)?;
        self.settings.insert(setting.name.clone(), (value, origin));
        Ok(())
    }

    /// What layers come to, the lowest first.
    pub(super) fn merged<'a>(layers: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for layer in layers {
            // Of a guest a layer says all or nothing.
            if layer.tables.contains_key("guest") {
                all.settings.retain(|name, _| !name.starts_with("guest."));
            }
            all.settings.extend(layer.settings.clone());
            all.tables.extend(layer.tables.clone());
        }
        all
    }

    /// The settings of a file; none where there is no file.
    pub(super) fn from_file(path: &Path) -> Result<Self> {
        file::read(path)?.map_or(Ok(Self::default()), |text| Self::from_text(&text, path))
    }

    pub(super) fn from_text(text: &str, path: &Path) -> Result<Self> {
        let at = |offset: usize| {
            let line = text[..offset.min(text.len())].matches('\n').count() + 1;
            format!("{}:{line}", path.display())
        };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            file::unreadable(path, text, at, e.message())
        })?;
        let mut raw = Self::default();
        raw.take(table.get_ref(), "", &at)?;
        Ok(raw)
    }

    /// Takes the settings of a file, or of the table `within` it.
    fn take(
        &mut self,
        table: &DeTable<'_>,
        within: &str,
        at: &impl Fn(usize) -> String,
    ) -> Result<()> {
        for (key, value) in table {
            let (key, origin) = (key.get_ref(), at(key.span().start));
            let name = if within.is_empty() { key.to_string() } else { format!("{within}.{key}") };
            let wrong = |problem: String| Err(Error::config(&*origin, problem));
            if within == "policies" && !Policy::can_be_called(key) {
                return wrong(format!(
                    "policies holds '{key}' but a policy's name is made of letters, digits, - and _"
                ));
            }
            if key.contains('.') {
                let quoted = name.replace(&**key, &format!("\"{key}\""));
                return Err(table::unknown(&origin, &quoted));
            }
            let header = table::header(&name);
            match (value.get_ref(), &header, table::find(&name)) {
                (DeValue::Table(inner), Some(_), _) => {
                    self.tables.insert(name.clone(), origin);
                    self.take(inner, &name, at)?;
                }
                (value, _, Some(setting)) => {
                    let name = table::canonical(&name).to_owned();
                    let value = Value::from_toml(setting, &name, value, &origin)?;
                    let given = Given { setting, name, value, origin, is_default: false };
                    // These are judged as a whole, whatever goes over one of them.
                    if setting.is_of_file() {
                        given.check()?;
                    }
                    self.settings.insert(given.name, (given.value, given.origin));
                }
                (value, Some(header), None) => {
                    let what = described(value);
                    return wrong(format!(
                        "{name} cannot be {what}; it must be a table, as {header}"
                    ));
                }
                (_, None, None) => return Err(table::unknown(&origin, &name)),
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
            if let Some(setting) = table::of_variable(&name, &origin)? {
                raw.put_text(setting, value, origin)?;
            }
        }
        Ok(raw)
    }

    /// Whether it says what a setting is.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// The settings that are set in the table `name`.
    pub(super) fn within(&self, table: &str) -> impl Iterator<Item = Given> {
        let table = format!("{table}.");
        let names = self.settings.keys().filter(move |name| name.starts_with(&table));
        names.map(|name| self.setting(name))
    }

    /// A setting as it is in force.
    pub(super) fn setting(&self, name: &str) -> Given {
        let setting = table::find(name).expect("a name in the table");
        let (value, origin) = self.settings.get(name).cloned().unwrap_or_else(|| {
            let origin = "default settings".to_owned();
            let value = Value::from_text(setting, setting.default.clone().into(), &origin);
            (value.expect("a default in the table is text"), origin)
        });
        Given { setting, name: name.to_owned(), value, origin, is_default: !self.sets(name) }
    }
}

impl Value {
    /// What a variable, a flag or a default says. Lists of paths are separated as `PATH` is, others
    /// by commas; nothing between two separators, or around them, is an item.
    fn from_text(setting: &Setting, text: OsString, origin: &str) -> Result<Self> {
        if matches!(setting.kind, Kind::Paths) {
            let paths = env::split_paths(&text).map(OsString::from);
            return Ok(Self::List(paths.filter(|path| !path.is_empty()).collect()));
        }
        let text = text.into_string().map_err(|text| {
            let shown = text.to_string_lossy();
            Error::config(origin, format!("{} is not valid UTF-8: '{shown}'", setting.name))
        })?;
        if !setting.kind.is_list() {
            return Ok(Self::Text(text));
        }
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        Ok(Self::List(items.map(OsString::from).collect()))
    }

    /// What a settings file says, if it is of the setting's type.
    fn from_toml(setting: &Setting, name: &str, value: &DeValue<'_>, origin: &str) -> Result<Self> {
        let kind = &setting.kind;
        let wrong = |problem: String| {
            Err(Error::config(origin, format!("{name} {problem}; it must be {}", kind.form())))
        };
        match (kind, value) {
            (Kind::Switch, DeValue::Boolean(on)) => Ok(Self::Text(on.to_string())),
            (Kind::Number { .. }, DeValue::Integer(number)) => Ok(Self::Text(whole(number))),
            (Kind::Switch | Kind::Number { .. }, other) => {
                wrong(format!("cannot be {}", described(other)))
            }
            (kind, DeValue::String(text)) if !kind.is_list() => Ok(Self::Text(text.to_string())),
            (kind, DeValue::Array(items)) if kind.is_list() => {
                let mut texts = Vec::new();
                for item in items {
                    match item.get_ref() {
                        DeValue::String(text) => texts.push(OsString::from(text.as_ref())),
                        other => return wrong(format!("holds {}", described(other))),
                    }
                }
                Ok(Self::List(texts))
            }
            (_, other) => wrong(format!("cannot be {}", described(other))),
        }
    }
}

/// A whole number in digits; one that is too large as it was written.
fn whole(number: &DeInteger<'_>) -> String {
    let decimal = i128::from_str_radix(number.as_str(), number.radix());
    decimal.map_or_else(|_| number.to_string(), |n| n.to_string())
}

/// A value of a settings file, by its type and, where it is short, itself.
fn described(value: &DeValue<'_>) -> String {
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

impl Given {
    /// Lets those pass that are of their kind. Where paths lead is not asked.
    pub(super) fn check(&self) -> Result<()> {
        match &self.setting.kind {
            Kind::Policy => Ok(()),
            Kind::Number { .. } => self.number().map(drop),
            Kind::Switch => self.switch().map(drop),
            Kind::Choice(names) if names.iter().any(|name| name == self.text()) => Ok(()),
            Kind::Folder | Kind::Socket
                if !self.text().trim().is_empty() && !self.text().contains('\0') =>
            {
                Ok(())
            }
            Kind::Folder if self.text().trim().is_empty() => {
                Err(self.error(format!("{} is empty", self.name)))
            }
            Kind::Choice(_) | Kind::Folder | Kind::Socket => Err(self.wrong()),
            Kind::Command
                if self.texts().next().is_none_or(|program| program.trim().is_empty()) =>
            {
                Err(self.error(format!(
                    "{} names no program; it must be {}",
                    self.name,
                    self.setting.kind.form()
                )))
            }
            kind => {
                let mut items = self.items().iter().map(|item| item.to_string_lossy());
                let wrong = items.find_map(|item| Some((kind.wrong_item(&item)?, item)));
                wrong.map_or(Ok(()), |(form, item)| {
                    let (name, item) = (&self.name, item.escape_debug());
                    Err(self.error(format!("{name} holds '{item}' but each item must be {form}")))
                })
            }
        }
    }

    pub(super) fn folder(&self, project: &Path) -> Result<PathBuf> {
        self.check()?;
        Ok(project.join(self.text()))
    }

    pub(super) fn number(&self) -> Result<u64> {
        let Kind::Number { least, most, or_none } = self.setting.kind else {
            return Err(self.wrong());
        };
        let number = self.text().parse().ok();
        let fits = |n: &u64| (least..=most).contains(n) || (or_none && *n == 0);
        number.filter(fits).ok_or_else(|| self.wrong())
    }

    /// A number of bytes in memory.
    pub(super) fn size(&self) -> Result<usize> {
        self.number().map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    }

    pub(super) fn switch(&self) -> Result<bool> {
        self.text().parse().map_err(|_| self.wrong())
    }

    /// What one of a few words stands for.
    pub(super) fn choice<T: DeserializeOwned>(&self) -> Result<T> {
        self.check()?;
        serde_json::from_value(self.text().into()).map_err(|_| self.wrong())
    }

    /// The name of a policy; nothing where it is empty.
    pub(super) fn policy(&self) -> Option<String> {
        Some(self.text().to_owned()).filter(|text| !text.is_empty())
    }

    /// Absolute paths; `~` stands for `home`, and others are relative to `base`.
    pub(super) fn paths(&self, project: &Path, home: Option<&Path>) -> Result<Vec<PathBuf>> {
        self.check()?;
        self.items().iter().map(|item| self.path(item.as_ref(), project, home)).collect()
    }

    fn path(&self, written: &Path, project: &Path, home: Option<&Path>) -> Result<PathBuf> {
        let wrong = |why: &str| {
            Err(self.error(format!("{} holds '{}', {why}", self.name, written.display())))
        };
        let path = match (written.strip_prefix("~"), home.filter(|home| home.is_absolute())) {
            (Ok(rest), Some(home)) => home.join(rest),
            (Ok(_), None) => {
                return wrong(
                    "but HOME does not say where your home folder is; write the whole path",
                );
            }
            (Err(_), _) if written.to_string_lossy().starts_with('~') => {
                return wrong(
                    "but only '~/' stands for a folder, your own home; write the whole path, or './~' for such a name in the project",
                );
            }
            (Err(_), _) => project.join(written),
        };
        let path = normal(&path);
        if !path.components().any(|part| matches!(part, Component::Normal(_))) {
            return wrong(
                "which is the whole machine; name the files and folders that commands need",
            );
        }
        Ok(path)
    }

    /// Environment variables, each with a value if one was given.
    pub(super) fn variables(&self) -> Result<Vec<(String, Option<String>)>> {
        let mut variables: Vec<(String, Option<String>)> = Vec::new();
        for item in self.list()? {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (item, None),
            };
            if variables.iter().any(|(other, _)| *other == name) {
                let problem = format!("{} names {name} twice; keep one of them", self.name);
                return Err(self.error(problem));
            }
            variables.push((name, value));
        }
        Ok(variables)
    }

    /// The items of a list of texts.
    pub(super) fn list(&self) -> Result<Vec<String>> {
        self.check()?;
        Ok(self.texts().collect())
    }

    /// The value as JSON: a text, a number, a truth value or a list of texts.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match (&self.value, &self.setting.kind) {
            (Value::List(_), _) => self.texts().collect(),
            (Value::Text(_), Kind::Number { .. }) => {
                self.text().parse::<u64>().map_or_else(|_| self.text().into(), Into::into)
            }
            (Value::Text(_), Kind::Switch) => (self.text() == "true").into(),
            // What sessions have by default.
            (Value::Text(text), Kind::Policy) if text.is_empty() => SESSION_POLICY.into(),
            (Value::Text(text), _) => text.as_str().into(),
        }
    }

    /// The text without blanks around it, but for paths.
    pub(super) fn text(&self) -> &str {
        match &self.value {
            Value::Text(text) if matches!(self.setting.kind, Kind::Folder | Kind::Socket) => text,
            Value::Text(text) => text.trim(),
            Value::List(_) => "",
        }
    }

    fn items(&self) -> &[OsString] {
        match &self.value {
            Value::Text(_) => &[],
            Value::List(items) => items,
        }
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        let is_trimmed = matches!(self.setting.kind, Kind::Rules);
        self.items().iter().map(move |item| {
            let item = item.to_string_lossy();
            if is_trimmed { item.trim().to_owned() } else { item.into_owned() }
        })
    }

    /// Its full name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn wrong(&self) -> Error {
        let (name, form) = (&self.name, self.setting.kind.form());
        let Value::Text(text) = &self.value else {
            return self.error(format!("{name} must be {form}"));
        };
        self.error(format!("{name} is '{text}' but must be {form}"))
    }

    fn error(&self, problem: String) -> Error {
        Error::config(self.origin.as_str(), problem)
    }
}
