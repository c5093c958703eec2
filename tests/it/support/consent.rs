//! The person's consent to the settings of a test's project. Tests write what they need into `deaddrop.toml`, and the
//! program needs consent to it. Each project has its own state folder, in which the program records the consent.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::iter;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use super::{Project, program, temp_folders};

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

/// The registry of a project, and the parts of its text that belong to this project: its path and its folders.
pub struct Noted {
    text: String,
    own: Vec<String>,
}

/// The folders of a project that hold the program's files.
const OWN: [&str; 4] = ["sessions", "inbox", "outbox", "approvals"];

impl Agreed {
    pub fn new() -> Self {
        Self { state: temp_folders::folder(), to: Some(Mutex::default()) }
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
        let settings = self.settings();
        // What a test put there itself is the person's.
        let is_new = !agreed.is_known && OWN.iter().any(|folder| !self.names(folder).is_empty());
        if is_new || agreed.settings != settings {
            self.agree_to(self.path(), self.state(), environment);
        }
        *agreed = Last { settings, is_known: true };
    }

    fn settings(&self) -> Settings {
        // A folder that is a link can lead out of it, too.
        let link = |name: &str| fs::read_link(self.at(name)).ok();
        let links = ["workspace", "inbox", "outbox", "sessions", "approvals"].map(link);
        (fs::read(self.at("deaddrop.toml")).ok(), links)
    }

    fn registry(&self) -> PathBuf {
        self.state().join("deaddrop/bases")
    }

    /// What the program notes to tell this project and its folders from others; None where one is missing.
    fn own(&self) -> Option<Vec<String>> {
        let identity = |name: &str| {
            let found = fs::metadata(self.at(name)).ok()?;
            let born = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            Some(format!("{}.{} ", found.ino(), born.unwrap_or_default().as_nanos()))
        };
        let path = self.path().canonicalize().unwrap().display().to_string();
        iter::once(Some(path)).chain(OWN.map(identity)).collect()
    }

    /// What the program has noted of this project.
    pub fn noted(&self) -> Option<Noted> {
        Some(Noted { text: fs::read_to_string(self.registry()).ok()?, own: self.own()? })
    }

    /// Has the same noted of this one as the program does, without starting it: most tests begin so.
    /// Whether that is enough; it is not where a test has already made settings or had something noted.
    pub fn is_noted_as(&self, noted: &Noted) -> bool {
        let Some(agreed) = &self.agreed.to else { return false };
        let mut agreed = agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_plain = self.settings() == Settings::default() && !self.registry().exists();
        let Some(own) = self.own().filter(|_| is_plain) else { return false };
        if noted.own.iter().any(|own| !noted.text.contains(own)) {
            return false;
        }
        let pairs = noted.own.iter().zip(own);
        let text = pairs.fold(noted.text.clone(), |text, (from, to)| text.replace(from, &to));
        let registry = self.registry();
        DirBuilder::new().mode(0o700).create(registry.parent().unwrap()).unwrap();
        let mut file = File::options().create_new(true).write(true).mode(0o600).open(registry);
        file.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        *agreed = Last { settings: Settings::default(), is_known: true };
        true
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
        if other.noted().is_some_and(|noted| self.is_noted_as(&noted)) {
            return;
        }
        let Ok(noted) = fs::read_to_string(other.registry()) else { return };
        let path = |base: &Self| base.path().canonicalize().unwrap().display().to_string();
        let to = self.registry();
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
