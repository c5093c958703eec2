//! Settings: raw ones as the person wrote them, each with its origin, and the resolved [`Config`].
//! Flags go over `DEADDROP_*` variables over `deaddrop.toml` in the base directory over the
//! person's own file over the defaults.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result};
use crate::text::nearest;

/// The settings file of a base directory.
pub const FILE: &str = "deaddrop.toml";
/// What the names of all environment variables of deaddrop begin with.
const PREFIX: &str = "DEADDROP_";

/// One setting that a person can make.
struct Key {
    name: &'static str,
    kind: KeyKind,
    default: &'static str,
}

enum KeyKind {
    Folder,
    Number { least: u64, most: u64 },
}

const KEYS: [Key; 6] = [
    Key { name: "workspace_dir", kind: KeyKind::Folder, default: "workspace" },
    Key { name: "inbox_dir", kind: KeyKind::Folder, default: "inbox" },
    Key { name: "outbox_dir", kind: KeyKind::Folder, default: "outbox" },
    Key { name: "sessions_dir", kind: KeyKind::Folder, default: "sessions" },
    Key {
        name: "command_timeout_seconds",
        kind: KeyKind::Number { least: 1, most: 3_600 },
        default: "30",
    },
    Key {
        name: "max_output_length",
        kind: KeyKind::Number { least: 100, most: 1_000_000 },
        default: "4000",
    },
];

/// Settings before they are resolved: a value and where it was set, or nothing.
#[derive(Debug, Default, Clone)]
pub struct Raw([Option<(String, String)>; KEYS.len()]);

impl Raw {
    /// Sets the setting `name` from a flag of the command line, over what it was.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn set(&mut self, name: &str, value: String, origin: String) -> Result<()> {
        let Some(n) = KEYS.iter().position(|key| key.name == name) else {
            return Err(unknown_key(&origin, name, KEYS.map(|key| key.name)));
        };
        self.0[n] = Some((value, origin));
        Ok(())
    }

    /// Takes what `over` sets, keeping the rest.
    fn overlay(&mut self, over: Self) {
        for (mine, other) in self.0.iter_mut().zip(over.0) {
            if other.is_some() {
                *mine = other;
            }
        }
    }

    /// The settings of a file; none where there is no file.
    fn from_file(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::from_text(&text, path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(Error::io("read", path, e)),
        }
    }

    fn from_text(text: &str, path: &Path) -> Result<Self> {
        let at = |offset: usize| {
            let line = text[..offset.min(text.len())].matches('\n').count() + 1;
            format!("{}:{line}", path.display())
        };
        let table = DeTable::parse(text)
            .map_err(|e| Error::config(at(e.span().map_or(0, |span| span.start)), e.message()))?;
        let mut raw = Self::default();
        for (key, value) in table.get_ref() {
            let name: &str = key.get_ref();
            let origin = at(key.span().start);
            if KEYS.iter().all(|key| key.name != name) {
                return Err(unknown_key(&origin, name, KEYS.map(|key| key.name)));
            }
            let value = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Integer(number) => number.as_str().replace('_', ""),
                other => {
                    let problem = format!("{name} cannot be {}", other.type_str());
                    return Err(Error::config(origin, problem));
                }
            };
            raw.set(name, value, origin)?;
        }
        Ok(raw)
    }

    fn from_environment(variables: impl Iterator<Item = (String, String)>) -> Result<Self> {
        let mut raw = Self::default();
        for (name, value) in variables {
            let Some(key) = name.strip_prefix(PREFIX) else { continue };
            let origin = format!("environment variable {name}");
            let known = KEYS.map(|key| key.name.to_uppercase());
            let Some(n) = known.iter().position(|known| known == key) else {
                let known: Vec<String> = known.iter().map(|key| format!("{PREFIX}{key}")).collect();
                return Err(unknown_key(&origin, &name, known.iter().map(String::as_str)));
            };
            raw.0[n] = Some((value, origin));
        }
        Ok(raw)
    }
}

/// Settings as they are in force; all folders absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The folder that the others are relative to.
    pub base: PathBuf,
    /// What replies may touch.
    pub workspace: PathBuf,
    /// Where replies are dropped.
    pub inbox: PathBuf,
    /// Where outboxes are written.
    pub outbox: PathBuf,
    /// Where sessions are kept.
    pub sessions: PathBuf,
    /// How long a command may take.
    pub command_timeout: Duration,
    /// How many characters of a command's output are kept.
    pub max_output_length: usize,
}

impl Config {
    /// Reads all settings that are in force in the base directory `base`.
    pub fn load(base: &Path, flags: Raw) -> Result<Self> {
        let base =
            base.canonicalize().map_err(|e| Error::io("open the base directory", base, e))?;
        let mut raw = Raw::default();
        if let Some(folder) = own_folder() {
            raw.overlay(Raw::from_file(&folder.join("config.toml"))?);
        }
        raw.overlay(Raw::from_file(&base.join(FILE))?);
        let variables = env::vars_os();
        raw.overlay(Raw::from_environment(variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        }))?);
        raw.overlay(flags);
        Self::resolve(base, &raw)
    }

    fn resolve(base: PathBuf, raw: &Raw) -> Result<Self> {
        let folder = |n: usize| -> Result<PathBuf> {
            let (value, origin) = setting(raw, n);
            if value.trim().is_empty() {
                return Err(Error::config(origin, format!("{} is empty", KEYS[n].name)));
            }
            Ok(base.join(value))
        };
        let number = |n: usize| -> Result<u64> {
            let (value, origin) = setting(raw, n);
            let KeyKind::Number { least, most } = KEYS[n].kind else { return Ok(0) };
            match value.trim().parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(Error::config(
                    origin,
                    format!(
                        "{} is '{value}' but must be a whole number from {least} to {most}",
                        KEYS[n].name
                    ),
                )),
            }
        };
        let config = Self {
            workspace: folder(0)?,
            inbox: folder(1)?,
            outbox: folder(2)?,
            sessions: folder(3)?,
            command_timeout: Duration::from_secs(number(4)?),
            max_output_length: usize::try_from(number(5)?).unwrap_or(usize::MAX),
            base,
        };
        config.keep_apart(raw)?;
        Ok(config)
    }

    /// An outbox in the inbox would be carried out as a reply.
    fn keep_apart(&self, raw: &Raw) -> Result<()> {
        let own = [&self.inbox, &self.outbox, &self.sessions];
        for (n, folder) in own.into_iter().enumerate() {
            for (m, other) in own.into_iter().enumerate() {
                if n != m && real(folder).starts_with(real(other)) {
                    let origin = origin_of_either(raw, n + 1, m + 1);
                    return Err(Error::config(
                        origin,
                        format!("{} must not lie in {}", KEYS[n + 1].name, KEYS[m + 1].name),
                    ));
                }
            }
            if real(&self.workspace).starts_with(real(folder)) {
                let origin = origin_of_either(raw, 0, n + 1);
                return Err(Error::config(
                    origin,
                    format!(
                        "workspace_dir must not lie in {}, which is deaddrop's own",
                        KEYS[n + 1].name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// deaddrop's own files and folders: out of reach of replies.
    pub fn state(&self) -> Vec<PathBuf> {
        [self.inbox.clone(), self.outbox.clone(), self.sessions.clone(), self.base.join(FILE)]
            .into_iter()
            .chain(own_folder())
            .collect()
    }
}

/// Where the person's own settings are, whatever the base directory.
fn own_folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.config_dir().join("deaddrop"))
}

fn setting(raw: &Raw, n: usize) -> (String, String) {
    raw.0[n].clone().unwrap_or_else(|| (KEYS[n].default.to_owned(), "default settings".to_owned()))
}

/// Where the first of two settings was made that is not a default.
fn origin_of_either(raw: &Raw, n: usize, m: usize) -> String {
    setting(raw, if raw.0[n].is_some() { n } else { m }).1
}

/// Where a folder lies, or will: links on the way are followed as far as there is something.
fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        _ => normal(path),
    }
}

/// A path without `.` and `..`, as far as that can be told without looking.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn unknown_key<'a>(origin: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.into_iter().collect();
    let problem = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("unknown setting '{name}'; did you mean '{meant}'?"),
        None => format!("unknown setting '{name}'; there are {}", known.join(", ")),
    };
    Error::config(origin, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let base = Path::new("/base");
        Raw::from_text(text, &base.join(FILE))
            .and_then(|raw| Config::resolve(base.to_owned(), &raw))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn wrong_settings_name_file_line_and_the_nearest_key() {
        assert_eq!(
            error("# mine\nworkspce_dir = \"x\"\n"),
            "/base/deaddrop.toml:2: unknown setting 'workspce_dir'; did you mean 'workspace_dir'?"
        );
        assert_eq!(
            error("command_timeout_seconds = 0"),
            "/base/deaddrop.toml:1: command_timeout_seconds is '0' but must be a whole number from 1 to 3600"
        );
        assert!(error("a = = 1").starts_with("/base/deaddrop.toml:1: "));
        assert!(error("inbox_dir = true").contains("inbox_dir cannot be"));
        assert!(error("inbox_dir = \"\"").contains("is empty"));
    }

    #[test]
    fn folders_of_its_own_are_kept_apart() {
        assert!(error("outbox_dir = \"inbox\"").contains("must not lie in"));
        assert!(error("outbox_dir = \"./inbox/../inbox/out\"").contains("must not lie in"));
        assert!(
            error("workspace_dir = \"inbox/w\"")
                .contains("workspace_dir must not lie in inbox_dir")
        );
    }

    #[test]
    fn later_layers_win_and_variables_are_checked() {
        let variable = |name: &str, value: &str| {
            Raw::from_environment([(name.to_owned(), value.to_owned())].into_iter())
        };
        let mut raw =
            Raw::from_text("max_output_length = 5_000\ninbox_dir = \"in\"", Path::new("f"))
                .unwrap();
        raw.overlay(variable("DEADDROP_MAX_OUTPUT_LENGTH", "600").unwrap());
        let config = Config::resolve("/base".into(), &raw).unwrap();
        assert_eq!(config.max_output_length, 600);
        assert_eq!(config.inbox, Path::new("/base/in"));
        assert_eq!(config.workspace, Path::new("/base/workspace"));
        let error = variable("DEADDROP_INBOX", "x").unwrap_err().to_string();
        assert!(error.contains("did you mean 'DEADDROP_INBOX_DIR'"), "{error}");
    }
}
