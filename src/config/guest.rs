//! The table `[guest]` of a settings file: another machine that operations are carried out on.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::raw::{described, whole};
use crate::error::{Error, Result};
use crate::text::{nearest, visible_line};

/// What each setting is called, and what it must be.
const KEYS: [(&str, &str); 3] = [
    ("command", "a list of strings, a program and its arguments"),
    ("socket", "the path of a socket, as a string"),
    ("port", "a whole number from 0 to 4294967295"),
];

/// The port that agents in microVMs listen on.
const PORT: u32 = 52;

/// Another machine, or a container, that sessions are carried out in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// How it is reached.
    pub way: Way,
}

/// How a guest is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Through a program that speaks for it on its standard input and output.
    Command(Vec<String>),
    /// Through a Unix socket, which is asked to be connected with the port first.
    Socket {
        /// Where it is: absolute.
        path: PathBuf,
        /// The port.
        port: u32,
    },
}

impl Guest {
    /// What its table says, by the names of its settings.
    pub(super) fn settings(&self) -> Vec<(&'static str, serde_json::Value)> {
        match &self.way {
            Way::Command(command) => vec![("command", command.as_slice().into())],
            Way::Socket { path, port } => {
                vec![("socket", path.to_string_lossy().into()), ("port", (*port).into())]
            }
        }
    }

    /// Which guest it is, for people: its command or its socket.
    pub fn label(&self) -> String {
        match &self.way {
            Way::Command(command) => visible_line(&command.join(" ")).into_owned(),
            Way::Socket { path, port } => {
                format!("{} (port {port})", visible_line(&path.to_string_lossy()))
            }
        }
    }
}

/// What a person wrote of the guest, each setting with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    origin: String,
    command: Option<Vec<String>>,
    socket: Option<String>,
    port: Option<u32>,
}

impl Table {
    /// Where it begins.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// Reads the table that begins at `origin`.
    pub(super) fn read(
        table: &DeValue<'_>,
        origin: &str,
        at: &impl Fn(usize) -> String,
    ) -> Result<Self> {
        let DeValue::Table(table) = table else {
            let problem =
                format!("guest cannot be {}; it must be a table, as [guest]", described(table));
            return Err(Error::config(origin, problem));
        };
        let origin = origin.to_owned();
        let mut read = Self { origin, command: None, socket: None, port: None };
        read.take(table, at)?;
        Ok(read)
    }

    fn take(&mut self, table: &DeTable<'_>, at: &impl Fn(usize) -> String) -> Result<()> {
        for (key, value) in table {
            let (name, origin) = (key.get_ref().as_ref(), at(key.span().start));
            let Some((_, form)) = KEYS.iter().find(|(known, _)| *known == name) else {
                let known = KEYS.map(|(known, _)| known);
                let meant = match nearest(name, known) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => format!("there are {}", known.join(", ")),
                };
                let problem = format!("unknown setting 'guest.{name}'; {meant}");
                return Err(Error::config(origin, problem));
            };
            let wrong = || {
                let what = described(value.get_ref());
                Error::config(&*origin, format!("guest.{name} cannot be {what}; it must be {form}"))
            };
            let fits = |text: &str| !text.trim().is_empty() && !text.contains('\0');
            match (name, value.get_ref()) {
                ("command", DeValue::Array(items)) => {
                    let item = |value: &DeValue<'_>| match value {
                        DeValue::String(text) if !text.contains('\0') => Ok(text.to_string()),
                        _ => Err(wrong()),
                    };
                    let items: Vec<String> =
                        items.iter().map(|value| item(value.get_ref())).collect::<Result<_>>()?;
                    if !items.first().is_some_and(|program| fits(program)) {
                        return Err(wrong());
                    }
                    self.command = Some(items);
                }
                ("socket", DeValue::String(text)) if fits(text) => {
                    self.socket = Some(text.to_string());
                }
                ("port", DeValue::Integer(number)) => {
                    self.port = Some(whole(number).parse().map_err(|_| wrong())?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }

    /// What it means; sockets are relative to `base`.
    pub(super) fn resolve(&self, base: &Path) -> Result<Guest> {
        let wrong = |problem: &str| Err(Error::config(&*self.origin, problem));
        let way = match (&self.command, &self.socket, self.port) {
            (Some(_), Some(_), _) => {
                return wrong("[guest] has a command and a socket; keep one of them");
            }
            (None, None, _) => {
                return wrong(
                    "[guest] says nowhere how it is reached; give it a command, such as [\"ssh\", \"build-box\", \"deaddrop\", \"rpc\"], or a socket",
                );
            }
            (Some(_), None, Some(_)) => {
                return wrong("[guest] has a port, and only a socket can be asked for one");
            }
            (Some(command), None, None) => Way::Command(command.clone()),
            (None, Some(socket), port) => {
                Way::Socket { path: base.join(socket), port: port.unwrap_or(PORT) }
            }
        };
        Ok(Guest { way })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Raw, tests};

    fn guest(text: &str) -> Result<Option<Guest>> {
        let raw = Raw::from_text(text, Path::new("/base/deaddrop.toml"))?;
        tests::resolved(&raw).map(|config| config.guest)
    }

    #[test]
    fn a_guest_is_reached_by_a_command_or_a_socket() {
        assert_eq!(guest("").unwrap(), None);
        let told = guest("[guest]\ncommand = [\"ssh\", \"build-box\", \"deaddrop\", \"rpc\"]\n");
        let told = told.unwrap().unwrap();
        assert_eq!(told.label(), "ssh build-box deaddrop rpc");
        let told = guest("[guest]\nsocket = \"vm.sock\"").unwrap().unwrap();
        let way = Way::Socket { path: PathBuf::from("/base/vm.sock"), port: 52 };
        assert_eq!(told.label(), "/base/vm.sock (port 52)");
        assert_eq!(told, Guest { way });
        let told = guest("[guest]\nsocket = \"/run/vm\"\nport = 0x10").unwrap().unwrap();
        assert_eq!(told.label(), "/run/vm (port 16)");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, told) in [
            ("guest = 1", ":1: guest cannot be an integer (1); it must be a table, as [guest]"),
            ("[guest]", ":1: [guest] says nowhere how it is reached"),
            (
                "\n[guest]\ncomand = []",
                ":3: unknown setting 'guest.comand'; did you mean 'command'?",
            ),
            ("[guest]\nx = 1", ":2: unknown setting 'guest.x'; there are command, socket"),
            (
                "[guest]\ncommand = \"ssh\"",
                ":2: guest.command cannot be a string ('ssh'); it must be",
            ),
            (
                "[guest]\ncommand = []",
                ":2: guest.command cannot be a list; it must be a list of strings, a program",
            ),
            ("[guest]\ncommand = [\" \"]", ":2: guest.command"),
            ("[guest]\ncommand = [1]", ":2: guest.command"),
            ("[guest]\nsocket = \"\"", ":2: guest.socket"),
            ("[guest]\nport = -1", ":2: guest.port"),
            (
                "[guest]\ncommand = [\"a\"]\nsocket = \"b\"",
                ":1: [guest] has a command and a socket",
            ),
            ("[guest]\ncommand = [\"a\"]\nport = 5", ":1: [guest] has a port, and only"),
        ] {
            let error = guest(text).expect_err(text).to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
