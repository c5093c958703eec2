//! A person who agrees to whatever settings stand in a project, in a folder for what is noted of
//! that: tests write what they need into `deaddrop.toml` as somebody does who means it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::{Project, program, room};

/// The text of a settings file, and where folders lead that are links.
type Settings = (Option<Vec<u8>>, [Option<PathBuf>; 5]);

pub struct Agreed {
    state: tempfile::TempDir,
    /// The settings as they were agreed to last; of a person who agrees to nothing there is no such thing.
    to: Option<Mutex<Last>>,
}

/// What was agreed to last, and whether what stands there is known as the person's.
#[derive(Default)]
struct Last {
    settings: Settings,
    is_known: bool,
}

impl Agreed {
    pub fn new() -> Self {
        Self { state: room::folder(), to: Some(Mutex::default()) }
    }
}

impl Project {
    /// One whose settings nobody agrees to, whoever wrote them.
    pub fn that_nobody_agrees_to() -> Self {
        let mut base = Self::new();
        base.agreed.to = None;
        base
    }

    /// What the program has for `$XDG_STATE_HOME`.
    pub fn state(&self) -> &Path {
        self.agreed.state.path()
    }

    /// Agrees to the settings that stand there, where that was not done.
    pub fn agree(&self) {
        self.agree_with(&[]);
    }

    /// The same for a program that has these variables: `~` is another folder by another HOME.
    pub fn agree_with(&self, environment: &[(&str, PathBuf)]) {
        let Some(agreed) = &self.agreed.to else { return };
        let mut agreed = agreed.lock().unwrap_or_else(PoisonError::into_inner);
        // A folder that is a link can lead out of it, too.
        let link = |name: &str| fs::read_link(self.at(name)).ok();
        let links = ["workspace", "inbox", "outbox", "sessions", "approvals"].map(link);
        let text = fs::read(self.at("deaddrop.toml")).ok();
        let settings = (text, links);
        // What a test put there itself is the person's.
        let own = ["sessions", "inbox", "outbox", "approvals"];
        let is_new = !agreed.is_known && own.iter().any(|folder| !self.names(folder).is_empty());
        if is_new || agreed.settings != settings {
            self.agree_to(self.path(), self.state(), environment);
        }
        *agreed = Last { settings, is_known: true };
    }

    /// Has what a test put there count as the person's.
    pub fn is_theirs(&self) {
        let Some(agreed) = &self.agreed.to else { return };
        agreed.lock().unwrap_or_else(PoisonError::into_inner).is_known = false;
        self.agree();
    }

    /// The same for a program that has another folder for what it notes.
    pub fn agree_in(&self, state: &Path) {
        self.agree_to(self.path(), state, &[]);
    }

    /// Has it noted of this one what is of another, of which it is a copy.
    pub fn is_known_as(&self, other: &Self) {
        let name = "deaddrop/bases";
        let Ok(noted) = fs::read_to_string(other.state().join(name)) else { return };
        let path = |base: &Self| base.path().canonicalize().unwrap().display().to_string();
        let to = self.state().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, noted.replace(&path(other), &path(self))).unwrap();
        // Which folder it is, is noted, too.
        self.agree_in(self.state());
    }

    /// Agrees to what stands in a folder of the project that is one itself.
    pub fn agree_below(&self, folder: &str) {
        self.agree_to(&self.at(folder), self.state(), &[]);
    }

    fn agree_to(&self, folder: &Path, state: &Path, environment: &[(&str, PathBuf)]) {
        // Wrong settings are told by whatever is tested.
        let _ = Command::new(program())
            .args(["-C".as_ref(), folder.as_os_str(), "config".as_ref(), "allow".as_ref()])
            .env("XDG_CONFIG_HOME", self.at(".no-config"))
            .env("XDG_STATE_HOME", state)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}
