//! One setting that is in force: from what a person wrote to what it means, or why it means nothing.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::keys::{Key, Kind, Value};
use super::normal;
use super::notify::Notify;
use super::sandbox::Mode;
use super::secrets::SecretsMode;
use crate::error::{Error, Result};

pub(super) struct Setting {
    pub(super) key: &'static Key,
    pub(super) value: Value,
    /// Where it was set.
    pub(super) origin: String,
    pub(super) is_default: bool,
}

impl Setting {
    pub(super) fn folder(&self, base: &Path) -> Result<PathBuf> {
        let text = self.text();
        if text.trim().is_empty() {
            return Err(self.error(format!("{} is empty", self.key.name)));
        }
        Ok(base.join(text))
    }

    pub(super) fn number(&self) -> Result<u64> {
        let Kind::Number { least, most, or_none } = self.key.kind else { return Err(self.wrong()) };
        match self.text().trim().parse() {
            Ok(number) if (least..=most).contains(&number) || (or_none && number == 0) => {
                Ok(number)
            }
            _ => Err(self.wrong()),
        }
    }

    pub(super) fn switch(&self) -> Result<bool> {
        self.text().trim().parse().map_err(|_| self.wrong())
    }

    pub(super) fn mode(&self) -> Result<Mode> {
        self.one_of(Mode::ALL)
    }

    pub(super) fn secrets(&self) -> Result<SecretsMode> {
        self.one_of(SecretsMode::ALL)
    }

    /// What has the name that was set.
    fn one_of<T>(&self, all: impl IntoIterator<Item = (&'static str, T)>) -> Result<T> {
        let text = self.text().trim();
        let found = all.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, meant)| meant).ok_or_else(|| self.wrong())
    }

    pub(super) fn notify(&self) -> Result<Notify> {
        self.one_of(Notify::ALL)
    }

    /// The name of a policy; nothing where it is empty.
    pub(super) fn policy(&self) -> Option<String> {
        let text = self.text().trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Absolute paths; `~` stands for `home`, and others are relative to `base`.
    pub(super) fn paths(&self, base: &Path, home: Option<&Path>) -> Result<Vec<PathBuf>> {
        self.items().iter().map(|item| self.path(item.as_ref(), base, home)).collect()
    }

    fn path(&self, written: &Path, base: &Path, home: Option<&Path>) -> Result<PathBuf> {
        let error = |why: &str| {
            self.error(format!("{} holds '{}', {why}", self.key.name, written.display()))
        };
        let text = written.to_string_lossy();
        if text.trim().is_empty() || text.contains('\0') {
            return Err(error("but each item must be the path of a file or folder"));
        }
        let path = if let Ok(rest) = written.strip_prefix("~") {
            match home.filter(|home| home.is_absolute()) {
                Some(home) => home.join(rest),
                None => {
                    return Err(error(
                        "but HOME does not say where your home folder is; write the whole path",
                    ));
                }
            }
        } else if text.starts_with('~') {
            return Err(error(
                "but only '~/' stands for a folder, your own home; write the whole path, or './~' \
                 for such a name in the base directory",
            ));
        } else {
            base.join(written)
        };
        let path = normal(&path);
        if !path.components().any(|part| matches!(part, Component::Normal(_))) {
            return Err(error(
                "which is the whole machine; name the files and folders that commands need",
            ));
        }
        Ok(path)
    }

    /// Environment variables, each with a value if one was given.
    pub(super) fn variables(&self) -> Result<Vec<(String, Option<String>)>> {
        let mut variables: Vec<(String, Option<String>)> = Vec::new();
        for item in self.texts() {
            let (name, value) = match item.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (item.as_str(), None),
            };
            let mut rest = name.chars();
            let is_name = rest.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && rest.all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name || item.contains('\0') {
                return Err(self.error(format!(
                    "{} holds '{item}' but each item must be NAME or NAME=VALUE, and NAME made of \
                     letters, digits and _, without a digit first",
                    self.key.name
                )));
            }
            if variables.iter().any(|(other, _)| other == name) {
                return Err(
                    self.error(format!("{} names {name} twice; keep one of them", self.key.name))
                );
            }
            variables.push((name.to_owned(), value));
        }
        Ok(variables)
    }

    /// Names that a file or folder can have.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let names: Vec<String> = self.texts().collect();
        let wrong = names.iter().find(|name| {
            name.trim().is_empty()
                || [".", ".."].contains(&name.as_str())
                || name.contains(['/', '\0'])
        });
        match wrong {
            None => Ok(names),
            Some(name) => Err(self.error(format!(
                "{} holds '{name}' but each item must be the name of a file or folder, without '/'",
                self.key.name
            ))),
        }
    }

    /// Patterns of files in the workspace.
    pub(super) fn patterns(&self) -> Result<Vec<String>> {
        let patterns: Vec<String> = self.texts().collect();
        let wrong = patterns.iter().find(|pattern| {
            pattern.trim().is_empty()
                || pattern.starts_with('/')
                || pattern.contains('\0')
                || pattern.split('/').any(|part| part == "..")
        });
        match wrong {
            None => Ok(patterns),
            Some(wrong) => Err(self.error(format!(
                "{} holds '{wrong}', but each item must be a path in the workspace without '..', \
                 in which * and ? stand for other characters and ** for folders",
                self.key.name
            ))),
        }
    }

    fn text(&self) -> &str {
        match &self.value {
            Value::Text(text) => text,
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
        self.items().iter().map(|item| item.to_string_lossy().into_owned())
    }

    fn wrong(&self) -> Error {
        let (name, text, form) = (self.key.name, self.text(), self.key.form());
        self.error(format!("{name} is '{text}' but must be {form}"))
    }

    fn error(&self, problem: String) -> Error {
        Error::config(self.origin.as_str(), problem)
    }
}
