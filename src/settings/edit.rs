//! Changes of one setting in a settings file: comments, order and layout of the rest stay. A change that
//! would not be accepted at the next start is not written.

#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::layers::{self, Source};
use super::table::{self, WORD};
use super::{Config, Consent, FILE, Layers, Raw, own_file, real};
use crate::atomic;
use crate::error::{Error, Result};

/// Sets `name` to what these words say, in the file of the project, or without one in the person's own. A
/// list is given as its items, or as one word in brackets.
///
/// # Errors
/// There is no such setting, or the settings would be wrong with it.
pub fn set(project: Option<&Path>, name: &str, words: &[String]) -> Result<PathBuf> {
    let doing = format!("config set {name}");
    let value = value(name, words, &doing)?;
    let file = file(project)?;
    let text = layers::read(&file)?.unwrap_or_default();
    let document = layers::parse(&text, &file)?;
    let text = match at(document.as_table(), name).map(Item::span) {
        Some(Some(span)) if text[span.clone()].contains('#') => {
            let problem = format!("{} has comments in the value; change it there", file.display());
            return Err(Error::config(doing, problem));
        }
        Some(Some(span)) => format!("{}{value}{}", &text[..span.start], &text[span.end..]),
        Some(None) => return Err(unclear(&doing, &file)),
        None => {
            with(&text, document.into_mut(), name, value).ok_or_else(|| unclear(&doing, &file))?
        }
    };
    write(project, &file, &text, &doing)?;
    Ok(file)
}

/// Removes `name` from the file of the project, or from the person's own. Returns the file if it was set
/// there.
///
/// # Errors
/// There is no such setting, or the settings would be wrong without it.
pub fn unset(project: Option<&Path>, name: &str) -> Result<Option<PathBuf>> {
    let doing = format!("config unset {name}");
    let parts: Vec<&str> = name.split('.').collect();
    if !matches!(parts[..], ["guest"] | ["policies", _]) {
        check_name(name, &doing)?;
    }
    let file = file(project)?;
    let text = layers::read(&file)?.unwrap_or_default();
    let document = layers::parse(&text, &file)?;
    let text = match at(document.as_table(), name) {
        None => return Ok(None),
        Some(item) if item.is_value() => without_line_of(&text, item),
        Some(_) => without_table(document.into_mut(), &parts),
    };
    let text = text.ok_or_else(|| unclear(&doing, &file))?;
    write(project, &file, &text, &doing)?;
    Ok(Some(file))
}

/// Refuses a name that no setting can have. The error says which was probably meant.
pub fn check_name(name: &str, doing: &str) -> Result<()> {
    table::named(doing, name).map(drop)
}

/// The settings file of a project, or the person's own. A link to it stays a link.
fn file(project: Option<&Path>) -> Result<PathBuf> {
    let Some(project) = project else {
        let own = own_file().ok_or_else(|| {
            Error::usage("there is no file for your own settings; set HOME or XDG_CONFIG_HOME")
        })?;
        return Ok(own.canonicalize().unwrap_or(own));
    };
    let file = project.join(FILE);
    match file.canonicalize() {
        Ok(to) if !to.starts_with(real(project)) => {
            let problem = format!(
                "it is a link that leads out of the project, to {}; change that file itself, or replace the link by a file",
                to.display()
            );
            Err(Error::config(file.display(), problem))
        }
        Ok(to) => Ok(to),
        Err(_) => Ok(file),
    }
}

/// Checks the settings as they would be, and writes the file.
fn write(project: Option<&Path>, file: &Path, text: &str, doing: &str) -> Result<()> {
    checked(project, file, text, doing)?;
    put(file, text)
}

/// Settings that are not written yet, checked.
fn checked(project: Option<&Path>, file: &Path, text: &str, doing: &str) -> Result<Layers> {
    let checked = || {
        let (layers, project) = if let Some(project) = project {
            let file = Raw::from_text(text, file, Source::File)?;
            (Layers { file, ..Layers::around_the_file(Raw::default())? }, project)
        } else {
            // It holds for any project, so what overrides it there is not known.
            let own = Raw::from_text(text, file, Source::OwnFile)?;
            (Layers { own, ..Layers::default() }, Path::new("/"))
        };
        Config::of_layers(project.to_owned(), &layers).map(|_| layers)
    };
    checked().map_err(|e| Error::config(doing, format!("{e}; nothing was written")))
}

fn put(file: &Path, text: &str) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    }
    if is_private(file) {
        atomic::write_private(file, text.as_bytes())
    } else {
        atomic::write(file, text.as_bytes())
    }
}

/// Whether nobody but the person may read a file.
fn is_private(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.permissions().mode().trailing_zeros() >= 6)
}

fn unclear(doing: &str, file: &Path) -> Error {
    let problem = format!("cannot change {} as it is written; edit that file", file.display());
    Error::config(doing, problem)
}

/// The value that the words mean for a setting.
fn value(name: &str, words: &[String], doing: &str) -> Result<Value> {
    let setting = table::named(doing, name)?;
    let list = || Value::Array(words.iter().map(String::as_str).collect::<Array>());
    match words {
        [word] if setting.kind.is_list() && word.trim_start().starts_with('[') => {
            word.trim().parse().map_err(|e: toml_edit::TomlError| Error::config(doing, e.message()))
        }
        [_, ..] if setting.kind.is_list() => Ok(list()),
        [word] => Ok(match setting.kind.value_of(word) {
            serde_json::Value::Bool(on) => on.into(),
            serde_json::Value::Number(number) => number.as_i64().unwrap_or_default().into(),
            // A wrong one is reported with the form that it must have.
            _ => word.as_str().into(),
        }),
        _ => Err(Error::config(doing, "takes one value; put quotes around it")),
    }
}

/// The place of a setting in this file: the names of its tables and its own. `sandbox` and `sandbox.mode` are
/// one.
fn place<'a>(top: &Table, name: &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> = name.split('.').collect();
    let has_table = top.get(WORD[0]).is_some_and(Item::is_table_like);
    if names == WORD && !has_table {
        names.pop();
    } else if names == WORD[..1] && has_table {
        names.push(WORD[1]);
    }
    names
}

fn at<'a>(top: &'a Table, name: &str) -> Option<&'a Item> {
    let names = place(top, name);
    let (first, rest) = names.split_first()?;
    rest.iter().try_fold(top.get(first)?, |item, name| item.as_table_like()?.get(name))
}

/// The text with a setting that was not there. Line ends become `\n`.
fn with(text: &str, mut document: DocumentMut, name: &str, value: Value) -> Option<String> {
    let names = place(document.as_table(), name);
    let (last, tables) = names.split_last()?;
    if document.is_empty() {
        // What a file without settings contains is a note at its head.
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let header =
            if tables.is_empty() { String::new() } else { format!("[{}]\n", tables.join(".")) };
        return Some(format!("{text}{end}{header}{last} = {value}\n"));
    }
    // The word of the sandbox moves into its table, with the comment after it.
    let has_word = document.get(WORD[0]).is_some_and(Item::is_str);
    let moves = has_word && tables == &WORD[..1];
    let word = if moves { document.remove(WORD[0]) } else { None };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (n, name) in tables.iter().enumerate() {
        let item = table.entry(name).or_insert_with(|| {
            let mut new = Table::new();
            // Tables that only contain this one need no header.
            new.set_implicit(n + 1 < tables.len());
            Item::Table(new)
        });
        table = item.as_table_like_mut()?;
    }
    if let Some(word) = word {
        table.insert(WORD[1], word);
    }
    table.insert(last, Item::Value(value));
    Some(document.to_string())
}

/// The text without the lines of a value; None if there is something else in them. Comments above it stay.
fn without_line_of(text: &str, item: &Item) -> Option<String> {
    let value = item.span()?;
    let start = text[..value.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[value.end..].find('\n').map_or(text.len(), |at| value.end + at + 1);
    let before = text[start..value.start].trim_end().strip_suffix('=')?;
    let after = text[value.end..end].trim_start();
    let is_alone = !before.contains(['{', ',']) && (after.is_empty() || after.starts_with('#'));
    is_alone.then(|| format!("{}{}", &text[..start], &text[end..]))
}

/// The text without a table. Line ends become `\n`.
fn without_table(mut document: DocumentMut, place: &[&str]) -> Option<String> {
    let (last, tables) = place.split_last()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        table = table.get_mut(name)?.as_table_like_mut()?;
    }
    table.remove(last)?;
    Some(document.to_string())
}

/// The settings file of a project as it is to be.
#[derive(Debug)]
pub struct Draft {
    project: PathBuf,
    text: String,
    layers: Layers,
}

impl Draft {
    /// A new file for the project with this path, links followed, which may not exist yet: these lines of
    /// comment, and these settings in their order.
    ///
    /// # Errors
    /// The settings would be wrong.
    pub fn new(project: &Path, note: &str, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(project, note.to_owned(), settings)
    }

    /// The file of a project with those of these settings that it does not set.
    ///
    /// # Errors
    /// The settings would be wrong, or the file is written in a way that this cannot change.
    pub fn completed(project: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(project, layers::read(&project.join(FILE))?.unwrap_or_default(), settings)
    }

    fn of(project: &Path, mut text: String, settings: &[(&str, &str)]) -> Result<Self> {
        let (file, doing) = (project.join(FILE), format!("{FILE} for {}", project.display()));
        for (name, word) in settings {
            let value = value(name, &[(*word).to_owned()], &doing)?;
            let document = layers::parse(&text, &file)?;
            if at(document.as_table(), name).is_none() {
                text = with(&text, document.into_mut(), name, value)
                    .ok_or_else(|| unclear(&doing, &file))?;
            }
        }
        let layers = checked(Some(project), &file, &text, &doing)?;
        Ok(Self { project: project.to_owned(), text, layers })
    }

    /// What would be in force with it, as for [`Config::load`].
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn load(&self) -> Result<(Config, Consent)> {
        Config::with_consent(self.project.clone(), &self.layers)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<()> {
        put(&self.project.join(FILE), &self.text)
    }
}
