//! Changes one setting in a settings file, and keeps comments, order and layout. A change that the next start would
//! reject is not written.

#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::effective::toml_of;
use super::layers::{self, Source};
use super::table::{self, SANDBOX_MODE};
use super::{Config, Consent, FILE, Layer, Layers, real_path, user_settings_file};
use crate::atomic;
use crate::error::{Error, Result};

/// Sets `name` to these words in the project's file or, without a project, in the person's own file. A list is given as
/// separate words, or as one word in brackets.
///
/// # Errors
/// There is no such setting, or the settings would be invalid with the change.
pub fn set(project: Option<&Path>, name: &str, words: &[String]) -> Result<PathBuf> {
    let doing = format!("config set {name}");
    let value = value(name, words, &doing)?;
    let file = file(project)?;
    let text = layers::read(&file)?.unwrap_or_default();
    let document = layers::parse(&text, &file)?;
    let text = match find_item(document.as_table(), name).map(Item::span) {
        Some(Some(span)) if text[span.clone()].contains('#') => {
            let problem = format!("{} has comments in the value; change it there", file.display());
            return Err(Error::config(doing, problem));
        }
        Some(Some(span)) => format!("{}{value}{}", &text[..span.start], &text[span.end..]),
        Some(None) => return Err(unclear(&doing, &file)),
        None => with_setting(&text, document.into_mut(), name, value)
            .ok_or_else(|| unclear(&doing, &file))?,
    };
    write(project, &file, &text, &doing)?;
    Ok(file)
}

/// Removes `name` from the project's file or, without a project, from the person's own file. Returns the file if it set
/// `name`.
///
/// # Errors
/// There is no such setting, or the settings would be invalid without it.
pub fn unset(project: Option<&Path>, name: &str) -> Result<Option<PathBuf>> {
    let doing = format!("config unset {name}");
    let parts: Vec<&str> = name.split('.').collect();
    if !matches!(parts[..], ["guest"] | ["policies", _]) {
        check_name(name, &doing)?;
    }
    let file = file(project)?;
    let text = layers::read(&file)?.unwrap_or_default();
    let document = layers::parse(&text, &file)?;
    let text = match find_item(document.as_table(), name) {
        None => return Ok(None),
        Some(item) if item.is_value() => without_line_of(&text, item),
        Some(_) => without_table(document.into_mut(), &parts),
    };
    let text = text.ok_or_else(|| unclear(&doing, &file))?;
    write(project, &file, &text, &doing)?;
    Ok(Some(file))
}

/// Rejects the name of an unknown setting. The error suggests the nearest name.
pub fn check_name(name: &str, doing: &str) -> Result<()> {
    table::named(doing, name).map(drop)
}

/// The settings file of a project, or the person's own. Links are followed, so that writing does not replace a link.
fn file(project: Option<&Path>) -> Result<PathBuf> {
    let Some(project) = project else {
        let own = user_settings_file().ok_or_else(|| {
            Error::usage("there is no file for your own settings; set HOME or XDG_CONFIG_HOME")
        })?;
        return Ok(own.canonicalize().unwrap_or(own));
    };
    let file = project.join(FILE);
    match file.canonicalize() {
        Ok(to) if !to.starts_with(real_path(project)) => {
            let problem = format!(
                "it is a link that leads out of the project, to {}; change that file itself, or replace the link with a file",
                to.display()
            );
            Err(Error::config(file.display(), problem))
        }
        Ok(to) => Ok(to),
        Err(_) => Ok(file),
    }
}

/// Checks the settings with this new text of the file, then writes the file.
fn write(project: Option<&Path>, file: &Path, text: &str, doing: &str) -> Result<()> {
    checked(project, file, text, doing)?;
    replace(file, text)
}

/// Checks the settings with this new text of the file.
fn checked(project: Option<&Path>, file: &Path, text: &str, doing: &str) -> Result<Layers> {
    let checked = || {
        let (layers, project) = if let Some(project) = project {
            let file = Layer::from_text(text, file, Source::File)?;
            (Layers { file, ..Layers::around_the_file(Layer::default())? }, project)
        } else {
            // This file applies to every project, so it is unknown what overrides it.
            let own = Layer::from_text(text, file, Source::OwnFile)?;
            (Layers { own, ..Layers::default() }, Path::new("/"))
        };
        Config::of_layers(project.to_owned(), &layers).map(|_| layers)
    };
    checked().map_err(|e| Error::config(doing, format!("{e}; nothing was written")))
}

fn replace(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    }
    if is_private(file) {
        atomic::write_private(file, text.as_bytes())
    } else {
        atomic::write(file, text.as_bytes())
    }
}

/// Whether only the owner may read a file.
fn is_private(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.permissions().mode().trailing_zeros() >= 6)
}

fn unclear(doing: &str, file: &Path) -> Error {
    let problem = format!("cannot change {} as it is written; edit that file", file.display());
    Error::config(doing, problem)
}

/// Converts the words to a value of the setting.
fn value(name: &str, words: &[String], doing: &str) -> Result<Value> {
    let kind = &table::named(doing, name)?.kind;
    let value = match words {
        [word] if kind.is_list() && word.trim_start().starts_with('[') => word.trim().to_owned(),
        [_, ..] if kind.is_list() => toml_of(&words.into()),
        // Checking the settings reports an invalid value with the expected form.
        [word] => toml_of(&kind.value_of(word)),
        _ => return Err(Error::config(doing, "takes one value; put quotes around it")),
    };
    value.parse().map_err(|e: toml_edit::TomlError| Error::config(doing, e.message()))
}

/// The keys of a setting in this file. `sandbox` and `sandbox.mode` are the same setting.
fn key_path<'a>(top: &Table, name: &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> = name.split('.').collect();
    let has_table = top.get(SANDBOX_MODE[0]).is_some_and(Item::is_table_like);
    if names == SANDBOX_MODE && !has_table {
        names.pop();
    } else if names == SANDBOX_MODE[..1] && has_table {
        names.push(SANDBOX_MODE[1]);
    }
    names
}

fn find_item<'a>(top: &'a Table, name: &str) -> Option<&'a Item> {
    let names = key_path(top, name);
    let (first, rest) = names.split_first()?;
    rest.iter().try_fold(top.get(first)?, |item, name| item.as_table_like()?.get(name))
}

/// Adds a setting to a text that does not contain it. Line ends become `\n`.
fn with_setting(text: &str, mut document: DocumentMut, name: &str, value: Value) -> Option<String> {
    let names = key_path(document.as_table(), name);
    let (last, tables) = names.split_last()?;
    if document.is_empty() {
        // A file without settings contains at most a note. The note stays at the top.
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let header =
            if tables.is_empty() { String::new() } else { format!("[{}]\n", tables.join(".")) };
        return Some(format!("{text}{end}{header}{last} = {value}\n"));
    }
    // `sandbox = "..."` moves into the table as `mode`, together with the comment after it.
    let has_word = document.get(SANDBOX_MODE[0]).is_some_and(Item::is_str);
    let moves = has_word && tables == &SANDBOX_MODE[..1];
    let word = if moves { document.remove(SANDBOX_MODE[0]) } else { None };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (n, name) in tables.iter().enumerate() {
        let item = table.entry(name).or_insert_with(|| {
            let mut new = Table::new();
            // A table that contains only another table needs no header.
            new.set_implicit(n + 1 < tables.len());
            Item::Table(new)
        });
        table = item.as_table_like_mut()?;
    }
    if let Some(word) = word {
        table.insert(SANDBOX_MODE[1], word);
    }
    table.insert(last, Item::Value(value));
    Some(document.to_string())
}

/// Removes the lines of a value; None if they contain anything else. Comments above them stay.
fn without_line_of(text: &str, item: &Item) -> Option<String> {
    let value = item.span()?;
    let start = text[..value.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[value.end..].find('\n').map_or(text.len(), |at| value.end + at + 1);
    let before = text[start..value.start].trim_end().strip_suffix('=')?;
    let after = text[value.end..end].trim_start();
    let is_alone = !before.contains(['{', ',']) && (after.is_empty() || after.starts_with('#'));
    is_alone.then(|| format!("{}{}", &text[..start], &text[end..]))
}

/// Removes a table. Line ends become `\n`.
fn without_table(mut document: DocumentMut, place: &[&str]) -> Option<String> {
    let (last, tables) = place.split_last()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        table = table.get_mut(name)?.as_table_like_mut()?;
    }
    table.remove(last)?;
    Some(document.to_string())
}

/// The new content of a project's settings file, checked but not yet written.
#[derive(Debug)]
pub struct SettingsDraft {
    project: PathBuf,
    text: String,
    layers: Layers,
}

impl SettingsDraft {
    /// The content of the project's file, or of a new file with a note in comment lines. Settings from the list that
    /// are missing are added, in this order. `project` is a real path, which need not exist yet.
    ///
    /// # Errors
    /// The settings would be invalid, or the layout of the file cannot be changed automatically.
    pub fn new(project: &Path, note: &str, settings: &[(&str, &str)]) -> Result<Self> {
        let mut text = layers::read(&project.join(FILE))?.unwrap_or_else(|| note.to_owned());
        let (file, doing) = (project.join(FILE), format!("{FILE} for {}", project.display()));
        for (name, word) in settings {
            let value = value(name, &[(*word).to_owned()], &doing)?;
            let document = layers::parse(&text, &file)?;
            if find_item(document.as_table(), name).is_none() {
                text = with_setting(&text, document.into_mut(), name, value)
                    .ok_or_else(|| unclear(&doing, &file))?;
            }
        }
        let layers = checked(Some(project), &file, &text, &doing)?;
        Ok(Self { project: project.to_owned(), text, layers })
    }

    /// Resolves the settings with the new content, as [`Config::load`] does.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn load(&self) -> Result<(Config, Consent)> {
        Config::with_consent(self.project.clone(), &self.layers)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<()> {
        replace(&self.project.join(FILE), &self.text)
    }
}
