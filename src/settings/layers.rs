//! The settings of each layer (the person's own file, the project's file, variables and flags), each value with its
//! origin.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toml_edit::{Document, Item, TableLike};

use super::table::{self, Setting};
use super::{FILE, normal, user_settings_file};
use crate::atomic::read_regular;
use crate::error::{Error, Result};
use crate::text::{size, visible_line};

/// The size of the largest settings file that is read, in bytes.
const LIMIT: u64 = 1 << 20;

/// The layer that set an effective setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// No layer: it is the default.
    Default,
    /// The person's own settings file.
    #[serde(rename = "own file")]
    OwnFile,
    /// The project's settings file.
    File,
    /// An environment variable.
    Environment,
    /// A command-line flag.
    Flag,
    /// Data, or files tracked by git, in deaddrop's own folders. This is not a setting.
    Folder,
}

/// The settings of one layer, or of several merged layers.
#[derive(Debug, Default, Clone)]
pub struct Layer {
    /// Settings, by full name.
    settings: BTreeMap<String, SettingValue>,
    /// The origin of each table.
    pub(super) tables: BTreeMap<String, String>,
}

/// The value of a setting, or its default.
#[derive(Debug, Clone)]
pub(super) struct SettingValue {
    pub(super) setting: &'static Setting,
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) source: Source,
    /// The file and line, the variable, or the flag that set it.
    pub(super) origin: String,
}

/// The settings of each layer.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) own: Layer,
    pub(super) file: Layer,
    pub(super) environment: Layer,
    pub(super) flags: Layer,
}

impl Layers {
    pub(super) fn read(project: &Path, flags: Layer) -> Result<Self> {
        let file = Layer::from_file(&project.join(FILE), Source::File)?;
        Ok(Self { file, ..Self::around_the_file(flags)? })
    }

    /// All layers except the project's file.
    pub(super) fn around_the_file(flags: Layer) -> Result<Self> {
        let own = user_settings_file()
            .map(|file| Layer::from_file(&file, Source::OwnFile))
            .transpose()?;
        let environment = Layer::from_environment(env::vars_os())?;
        Ok(Self { own: own.unwrap_or_default(), file: Layer::default(), environment, flags })
    }

    pub(super) fn merged(&self) -> Layer {
        Layer::merged([&self.own, &self.file, &self.environment, &self.flags])
    }
}

impl Layer {
    /// Sets `name` from a command-line flag.
    ///
    /// # Errors
    /// There is no such setting, or the value is invalid.
    pub fn set(&mut self, name: &str, value: &str, origin: String) -> Result<()> {
        let setting = table::named(&origin, name)?;
        self.insert(setting, name, setting.kind.value_of(value), Source::Flag, origin)
    }

    fn insert(
        &mut self,
        setting: &'static Setting,
        name: &str,
        value: Value,
        source: Source,
        origin: String,
    ) -> Result<()> {
        let name = table::canonical(name).to_owned();
        let given = SettingValue { setting, name, value, source, origin };
        match setting.kind.fault(&given.value) {
            Some(fault) => Err(given.error(&fault)),
            None => {
                self.settings.insert(given.name.clone(), given);
                Ok(())
            }
        }
    }

    /// Merges layers. Later ones override earlier ones.
    pub(super) fn merged<'a>(layers: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        for layer in layers {
            // A layer that sets the guest replaces the whole table.
            if layer.tables.contains_key("guest") {
                all.settings.retain(|name, _| !name.starts_with("guest."));
            }
            all.settings.extend(layer.settings.clone());
            all.tables.extend(layer.tables.clone());
        }
        all
    }

    /// Reads the settings of a file. A missing file has no settings.
    pub(super) fn from_file(path: &Path, source: Source) -> Result<Self> {
        read(path)?.map_or(Ok(Self::default()), |text| Self::from_text(&text, path, source))
    }

    pub(super) fn from_text(text: &str, path: &Path, source: Source) -> Result<Self> {
        let document = parse(text, path)?;
        let mut raw = Self::default();
        raw.insert_table(document.as_table(), "", source, &|offset| {
            format!("{}:{}", path.display(), line_of(text, offset))
        })?;
        // The consent for a socket covers its port, so the port is shown with it.
        if raw.sets("guest.socket") && !raw.sets("guest.port") {
            raw.settings.insert("guest.port".to_owned(), raw.setting("guest.port"));
        }
        Ok(raw)
    }

    /// Inserts the settings of a file's top table, or of the table `within`. `at` returns the origin for an offset in
    /// the file.
    fn insert_table(
        &mut self,
        table: &dyn TableLike,
        within: &str,
        source: Source,
        at: &dyn Fn(usize) -> String,
    ) -> Result<()> {
        for (key, item) in table.iter() {
            let span = table.key(key).and_then(toml_edit::Key::span);
            let origin = at(span.unwrap_or_default().start);
            let key = if is_name(key) { key.to_owned() } else { format!("\"{key}\"") };
            let name = if within.is_empty() { key } else { format!("{within}.{key}") };
            match (item.as_table_like(), table::header(&name), table::find(&name)) {
                (Some(_), Some(_), _) if name.ends_with('"') => {
                    let problem =
                        format!("{name}: a policy's name is made of letters, digits, - and _");
                    return Err(Error::config(origin, problem));
                }
                (Some(inner), Some(_), _) => {
                    self.tables.insert(name.clone(), origin);
                    self.insert_table(inner, &name, source, at)?;
                }
                (_, _, Some(setting)) => {
                    self.insert(setting, &name, json_of(item), source, origin)?;
                }
                _ => return Err(table::unknown(&origin, &name)),
            }
        }
        Ok(())
    }

    pub(super) fn from_environment(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self> {
        let mut raw = Self::default();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            let origin = format!("environment variable {name}");
            let Some(setting) = table::of_variable(&name, &origin)? else { continue };
            let Ok(value) = value.into_string() else {
                return Err(Error::config(origin, "its value is not valid UTF-8"));
            };
            let value = setting.kind.value_of(&value);
            raw.insert(setting, &setting.name, value, Source::Environment, origin)?;
        }
        Ok(raw)
    }

    /// Whether this layer sets `name`.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    /// The settings of a table that this layer sets.
    pub(super) fn within(&self, table: &str) -> impl Iterator<Item = &SettingValue> {
        let table = format!("{table}.");
        self.settings.values().filter(move |given| given.name.starts_with(&table))
    }

    /// The value of a setting, or its default.
    pub(super) fn setting(&self, name: &str) -> SettingValue {
        self.settings.get(name).cloned().unwrap_or_else(|| {
            let setting = table::find(name).expect("a name in the table");
            let value = setting.kind.value_of(&setting.default);
            let origin = "default settings".to_owned();
            SettingValue { setting, name: name.to_owned(), value, source: Source::Default, origin }
        })
    }

    /// All settings by name, except settings of `[guest]` and `[policies]`.
    pub(super) fn to_json(&self) -> Value {
        let all = table::names().map(|name| (name.to_owned(), self.setting(name).value));
        Value::Object(all.collect())
    }
}

impl SettingValue {
    pub(super) fn is_default(&self) -> bool {
        self.source == Source::Default
    }

    pub(super) fn text(&self) -> &str {
        self.value.as_str().unwrap_or_default()
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = &str> {
        self.value.as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Converts the value. The type must be able to represent every valid value of the setting.
    pub(super) fn parse<T: DeserializeOwned>(&self) -> T {
        serde_json::from_value(self.value.clone()).expect("a value that was checked")
    }

    /// The value as a path. A relative path is in the project.
    pub(super) fn folder(&self, project: &Path) -> PathBuf {
        project.join(self.text())
    }

    /// The items as absolute paths. `~` stands for `home`, and relative paths are in the project.
    pub(super) fn paths(&self, project: &Path, home: Option<&Path>) -> Result<Vec<PathBuf>> {
        self.items().map(|item| self.path(item, project, home)).collect()
    }

    fn path(&self, item: &str, project: &Path, home: Option<&Path>) -> Result<PathBuf> {
        let wrong = |why: &str| Err(self.error(&format!("contains {item:?}, {why}")));
        let path = match (Path::new(item).strip_prefix("~"), home.filter(|home| home.is_absolute()))
        {
            (Ok(rest), Some(home)) => home.join(rest),
            (Ok(_), None) => {
                return wrong("but HOME does not name your home folder; write the absolute path");
            }
            (Err(_), _) if item.starts_with('~') => {
                return wrong(
                    "but only '~/', your home folder, can be used; write the absolute path, or './~' for such a name in the project",
                );
            }
            (Err(_), _) => project.join(item),
        };
        let path = normal(&path);
        if !path.components().any(|part| matches!(part, Component::Normal(_))) {
            return wrong(
                "which is the whole machine; list only the files and folders that commands need",
            );
        }
        Ok(path)
    }

    fn error(&self, problem: &str) -> Error {
        Error::config(self.origin.as_str(), format!("{} {problem}", self.name))
    }
}

/// Whether a table or setting can have this name.
fn is_name(key: &str) -> bool {
    let may_hold = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !key.is_empty() && key.chars().all(may_hold)
}

fn json_of(item: &Item) -> Value {
    fn of(value: &toml_edit::Value) -> Value {
        match value {
            toml_edit::Value::String(text) => text.value().as_str().into(),
            toml_edit::Value::Integer(number) => (*number.value()).into(),
            toml_edit::Value::Float(number) => (*number.value()).into(),
            toml_edit::Value::Boolean(on) => (*on.value()).into(),
            toml_edit::Value::Datetime(time) => time.value().to_string().into(),
            toml_edit::Value::Array(items) => items.iter().map(of).collect(),
            toml_edit::Value::InlineTable(_) => json!({}),
        }
    }
    match item {
        Item::Value(value) => of(value),
        Item::ArrayOfTables(_) => json!([]),
        Item::Table(_) | Item::None => json!({}),
    }
}

/// Reads a settings file; None if it does not exist. If a device or a FIFO has replaced the file, it is not opened.
///
/// # Errors
/// The file is not regular, too large, a dangling link, not UTF-8, or unreadable.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    let wrong = |problem: &str| Err(Error::config(path.display(), problem));
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return wrong("it is not a regular file, so no settings are read from it; move it away");
    }
    let bytes = match read_regular(path, LIMIT) {
        Err(e) if e.kind() == ErrorKind::NotFound && path.is_symlink() => {
            return wrong(
                "it is a link to a file that does not exist; create that file, or remove the link",
            );
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) if e.kind() == ErrorKind::FileTooLarge => return Err(too_large(path)),
        bytes => bytes.map_err(|e| Error::io("read", path, e))?,
    };
    String::from_utf8(bytes).map(Some).map_err(|e| {
        let before = String::from_utf8_lossy(&e.as_bytes()[..e.utf8_error().valid_up_to()]);
        let origin = format!("{}:{}", path.display(), line_of(&before, before.len()));
        Error::config(origin, "it is not UTF-8; save it as UTF-8")
    })
}

fn too_large(path: &Path) -> Error {
    let problem = format!("it is larger than {}; shorten it, or move it away", size(LIMIT));
    Error::config(path.display(), problem)
}

/// Parses a settings file, and keeps the span of each part.
///
/// # Errors
/// The text is too large, or not TOML.
pub(super) fn parse<'a>(text: &'a str, path: &Path) -> Result<Document<&'a str>> {
    if text.len() as u64 > LIMIT {
        return Err(too_large(path));
    }
    Document::parse(text).map_err(|e| {
        let n = line_of(text, e.span().map_or(0, |span| span.start));
        let line = text.lines().nth(n - 1).unwrap_or_default().trim();
        let problem = match line.strip_suffix('=') {
            Some(name) => format!(
                "{} has no value; write one after the =, or remove the line",
                visible_line(name.trim())
            ),
            None => format!("{}; correct that line, or remove it", e.message()),
        };
        Error::config(format!("{}:{n}", path.display()), problem)
    })
}

/// The line number at an offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..offset.min(text.len())]).count() + 1
}
