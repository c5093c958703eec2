//! One setting of a settings file changed in its place: comments, order and layout of all else stay.
//! What would not be taken at the next start is not written.

mod lines;
#[cfg(test)]
mod tests;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::table::{self, Kind, WORD};
use super::{Config, Consent, FILE, Layers, Raw, file, own_file, real};
use crate::atomic;
use crate::error::{Error, Result};

/// Sets `name` to what these words say, in the file of the project, or, where there is none,
/// in the person's own. A list is given as its items, or as one word in brackets.
///
/// # Errors
/// There is no such setting, or the settings would not be in order with it.
pub fn set(project: Option<&Path>, name: &str, words: &[String]) -> Result<PathBuf> {
    let doing = format!("config set {name}");
    let place = place(name, &doing)?;
    let value = value(name, words, &doing)?;
    let file = file(project)?;
    let text = read(&file)?;
    let mut document = parse(&text, &file)?;
    let text = match find(&document, &place) {
        Some(old) if has_comments(old) => {
            let problem =
                format!("its list in {} has comments in it; change it there", file.display());
            return Err(Error::config(doing, problem));
        }
        // In its place, so that nothing else changes.
        Some(_) => match span(&text, &place) {
            Some(span) => format!("{}{value}{}", &text[..span.start], &text[span.end..]),
            None => return Err(unclear(&doing, &file)),
        },
        None => {
            insert(&mut document, &place, value).ok_or_else(|| unclear(&doing, &file))?;
            lines::ended_as(&text, &document.to_string())
        }
    };
    write(project, &file, &text, &doing)?;
    Ok(file)
}

/// Removes `name` from the file of the project, or from the person's own. Returns the file if
/// it stood there.
///
/// # Errors
/// There is no such setting, or the settings would not be in order without it.
pub fn unset(project: Option<&Path>, name: &str) -> Result<Option<PathBuf>> {
    let doing = format!("config unset {name}");
    let place = if is_table(name) { parts(name) } else { place(name, &doing)? };
    let file = file(project)?;
    let text = read(&file)?;
    let mut document = parse(&text, &file)?;
    if find(&document, &place).is_none() {
        return Ok(None);
    }
    let text = match line(&text, &place) {
        Some(line) => format!("{}{}", &text[..line.start], &text[line.end..]),
        None => {
            remove(&mut document, &place).ok_or_else(|| unclear(&doing, &file))?;
            lines::ended_as(&text, &document.to_string())
        }
    };
    let text = without_empty(text, &place);
    write(project, &file, &text, &doing)?;
    Ok(Some(file))
}

/// Whether there can be a setting of this name.
///
/// # Errors
/// There cannot; it says which one was meant.
pub fn check_name(name: &str, doing: &str) -> Result<()> {
    place(name, doing).map(drop)
}

/// The settings file of a project, or the person's own.
fn file(project: Option<&Path>) -> Result<PathBuf> {
    let file = match project {
        Some(project) => project.join(FILE),
        None => own_file().ok_or_else(|| {
            Error::usage(
                "without HOME there is no file of your own settings; set HOME or XDG_CONFIG_HOME",
            )
        })?,
    };
    // What is written takes the place of the file, not of a link to it.
    match file.canonicalize() {
        Ok(to) if project.is_some_and(|project| !to.starts_with(real(project))) => {
            let problem = format!(
                "it is a link that leads out of the project, to {}; change that file itself, or put a file in the place of the link",
                to.display()
            );
            Err(Error::config(file.display().to_string(), problem))
        }
        Ok(file) => Ok(file),
        Err(e) if fs::symlink_metadata(&file).is_ok() => {
            let problem = format!(
                "it is a link that cannot be followed ({e}); put right what it leads to, or remove it"
            );
            Err(Error::config(file.display().to_string(), problem))
        }
        Err(_) => Ok(file),
    }
}

fn read(file: &Path) -> Result<String> {
    file::read(file).map(Option::unwrap_or_default)
}

fn parse(text: &str, file: &Path) -> Result<DocumentMut> {
    text.parse().map_err(|e: toml_edit::TomlError| {
        file::unreadable(file, text, e.span().map_or(0, |span| span.start), e.message())
    })
}

/// Checks the settings as they would be, and writes the file.
fn write(project: Option<&Path>, file: &Path, text: &str, doing: &str) -> Result<()> {
    check(project, file, text, doing)?;
    put(file, text)
}

/// Whether settings would be in order.
fn check(project: Option<&Path>, file: &Path, text: &str, doing: &str) -> Result<()> {
    let checked = || {
        file::fits(file, text.len())?;
        let raw = Raw::from_text(text, file)?;
        match project {
            Some(project) => {
                let layers = Layers { file: raw, ..Layers::around_the_file(Raw::default())? };
                Config::of_layers(project.to_owned(), &layers)
            }
            // For any project: what others set over it is not known.
            None => Config::of_layers("/".into(), &Layers { own: raw, ..Layers::default() }),
        }
    };
    match checked() {
        Ok(_) => Ok(()),
        Err(e) => Err(Error::config(doing, format!("{e}; nothing was written"))),
    }
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
#[cfg(unix)]
fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|found| found.permissions().mode().trailing_zeros() >= 6)
}

#[cfg(not(unix))]
fn is_private(_file: &Path) -> bool {
    false
}

fn unclear(doing: &str, file: &Path) -> Error {
    let problem =
        format!("{} is written in a way that this cannot change; edit it", file.display());
    Error::config(doing, problem)
}

fn parts(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

/// Whether a whole table can have this name.
fn is_table(name: &str) -> bool {
    let parts = parts(name);
    name == "guest" || (parts.len() == 2 && parts[0] == "policies")
}

/// Where a setting stands in a file: the names of its tables and its own.
fn place(name: &str, doing: &str) -> Result<Vec<String>> {
    let known = table::find(name).map(|_| parts(name));
    known.ok_or_else(|| table::unknown(doing, name))
}

/// What the words say, as the setting's kind has it.
fn value(name: &str, words: &[String], doing: &str) -> Result<Value> {
    let setting = table::find(name).ok_or_else(|| table::unknown(doing, name))?;
    let (kind, is_list) = (&setting.kind, setting.kind.is_list());
    let list = || Value::Array(words.iter().map(String::as_str).collect::<Array>());
    let word = match words {
        [word] => word,
        _ if is_list && !words.is_empty() => return Ok(list()),
        _ => return Err(Error::config(doing, "takes one value; put quotes around it")),
    };
    let is_bracketed = word.trim_start().starts_with('[');
    match (kind, word.trim().parse::<Value>()) {
        (_, Ok(value @ Value::Array(_))) if is_list => Ok(value),
        (_, Err(e)) if is_list && is_bracketed => Err(Error::config(doing, e.message())),
        _ if is_list => Ok(list()),
        (Kind::Number { .. }, Ok(value @ Value::Integer(_)))
        | (Kind::Switch, Ok(value @ Value::Boolean(_))) => Ok(value),
        // Of the wrong type, if it is; that is told with what it must be.
        _ => Ok(word.as_str().into()),
    }
}

/// The place as this file has it: a word's own place where its table is written, and the other way.
fn resolved<'a>(top: &dyn TableLike, place: &'a [String]) -> Vec<&'a str> {
    let mut names: Vec<&str> = place.iter().map(String::as_str).collect();
    let is_word = top.get(WORD[0]).is_some_and(Item::is_str);
    if names == WORD && (is_word || top.get(WORD[0]).is_none()) {
        names.pop();
    } else if names == WORD[..1] && !is_word && top.get(WORD[0]).is_some() {
        names.push(WORD[1]);
    }
    names
}

/// What stands at a place.
fn at<'a>(top: &'a Item, place: &[String]) -> Option<&'a Item> {
    let names = resolved(top.as_table_like()?, place);
    names.into_iter().try_fold(top, |item, name| item.as_table_like()?.get(name))
}

fn find<'a>(document: &'a DocumentMut, place: &[String]) -> Option<&'a Item> {
    at(document.as_item(), place)
}

/// Which bytes of the text the value at a place is.
fn span(text: &str, place: &[String]) -> Option<Range<usize>> {
    at(Document::parse(text).ok()?.as_item(), place)?.span()
}

/// The lines that a setting takes alone, if it does. Comments above it are not its own.
fn line(text: &str, place: &[String]) -> Option<Range<usize>> {
    let document = Document::parse(text).ok()?;
    line_of(text, at(document.as_item(), place)?)
}

/// The same of a value in that text.
fn line_of(text: &str, item: &Item) -> Option<Range<usize>> {
    if !item.is_value() {
        return None;
    }
    let value = item.span()?;
    let start = text[..value.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[value.end..].find('\n').map_or(text.len(), |at| value.end + at + 1);
    // Within an inline table there is more in the line.
    let before = text[start..value.start].trim_end().strip_suffix('=')?;
    let after = text[value.end..end].trim_start();
    let is_alone = !before.contains(['{', ',']) && (after.is_empty() || after.starts_with('#'));
    is_alone.then_some(start..end)
}

/// The text without the tables around a place that are empty now and hold no comment. A guest without
/// a word is told instead: whoever takes one away has to know.
fn without_empty(mut text: String, place: &[String]) -> String {
    for end in (1..place.len()).rev().filter(|_| place[0] != "guest") {
        let tables = &place[..end];
        let Ok(document) = Document::parse(text.as_str()) else { break };
        let top = document.as_item();
        let item = tables.iter().try_fold(top, |item, name| item.as_table_like()?.get(name));
        let empty = item.filter(|item| item.as_table_like().is_some_and(TableLike::is_empty));
        let Some(empty) = empty else { break };
        let gone = if empty.is_value() {
            line_of(&text, empty).filter(|line| !text[line.clone()].contains('#'))
        } else {
            lines::of_empty_table(&text, tables)
        };
        let Some(gone) = gone else { break };
        text = format!("{}{}", &text[..gone.start], &text[gone.end..]);
    }
    text
}

/// Puts a value where it belongs.
fn insert(document: &mut DocumentMut, place: &[String], value: Value) -> Option<()> {
    let names = resolved(document.as_table(), place);
    let (last, tables) = names.split_last()?;
    if document.is_empty() && tables.is_empty() {
        // What stands in a file without settings is a note at its head.
        let note = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
        document.insert(last, Item::Value(value));
        document.key_mut(last)?.leaf_decor_mut().set_prefix(note);
        return Some(());
    }
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (n, name) in tables.iter().enumerate() {
        let item = table.entry(name).or_insert_with(|| {
            let mut made = Table::new();
            // Above the one that holds the setting nothing needs a header.
            made.set_implicit(n + 1 < tables.len());
            Item::Table(made)
        });
        if *name == WORD[0]
            && let Some(word) = item.as_value().filter(|word| word.is_str())
        {
            let mut made = InlineTable::new();
            made.insert(WORD[1], word.as_str().unwrap_or_default().into());
            *made.decor_mut() = word.decor().clone();
            *item = Item::Value(Value::InlineTable(made));
        }
        table = item.as_table_like_mut()?;
    }
    table.insert(last, Item::Value(value));
    Some(())
}

fn remove(document: &mut DocumentMut, place: &[String]) -> Option<()> {
    let names = resolved(document.as_table(), place);
    let (last, tables) = names.split_last()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        table = table.get_mut(name)?.as_table_like_mut()?;
    }
    table.remove(last).map(drop)
}

/// Whether a list has comments between its items.
fn has_comments(item: &Item) -> bool {
    let Some(list) = item.as_array() else { return false };
    let holds = |text: Option<&str>| text.is_some_and(|text| text.contains('#'));
    let commented = |value: &Value| {
        let decor = value.decor();
        [decor.prefix(), decor.suffix()].into_iter().flatten().any(|raw| holds(raw.as_str()))
    };
    list.iter().any(commented) || holds(list.trailing().as_str())
}

/// The settings file of a project as it is to be.
#[derive(Debug)]
pub struct Draft {
    project: PathBuf,
    text: String,
}

impl Draft {
    /// Of the project with this path, links followed, which need not be there: these lines of
    /// comment, and these settings in their order.
    ///
    /// # Errors
    /// The settings would not be in order.
    pub fn new(project: &Path, note: &str, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(project, note, "", settings)
    }

    /// Of one that has a settings file: with those of these settings that it does not say.
    ///
    /// # Errors
    /// The settings would not be in order, or the file is written in a way that this cannot change.
    pub fn completed(project: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        Self::of(project, "", &read(&project.join(FILE))?, settings)
    }

    fn of(project: &Path, note: &str, before: &str, settings: &[(&str, &str)]) -> Result<Self> {
        let (file, doing) = (project.join(FILE), format!("{FILE} for {}", project.display()));
        let mut document = parse(before, &file)?;
        for (name, word) in settings {
            let place = place(name, &doing)?;
            if find(&document, &place).is_some() {
                continue;
            }
            let value = value(name, &[(*word).to_owned()], &doing)?;
            insert(&mut document, &place, value).ok_or_else(|| unclear(&doing, &file))?;
        }
        let text = format!("{note}{}", lines::ended_as(before, &document.to_string()));
        check(Some(project), &file, &text, &doing)?;
        Ok(Self { project: project.to_owned(), text })
    }

    /// What would be in force with it, as [`Config::load`] tells it.
    ///
    /// # Errors
    /// The settings are wrong.
    pub fn load(&self) -> Result<(Config, Consent)> {
        let file = Raw::from_text(&self.text, &self.project.join(FILE))?;
        let layers = Layers { file, ..Layers::around_the_file(Raw::default())? };
        Config::with_consent(self.project.clone(), &layers)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The disk.
    pub fn write(&self) -> Result<()> {
        put(&self.project.join(FILE), &self.text)
    }
}
