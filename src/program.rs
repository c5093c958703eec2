//! Starts programs with the person's rights. Each program is resolved to an absolute path without links. A program is
//! not started if replies, commands or everybody can write where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use wait_timeout::ChildExt;

use crate::links::follow;
use crate::settings::{Config, reply_writable_places};

/// The environment variables for programs that deaddrop chooses.
static ENVIRONMENT: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("data/environment.toml")).expect("a table in order")
});

/// The most bytes that are read from each output of a program.
const MAX_OUTPUT: u64 = 64 << 20;
/// The time limit for reading the rest of an output after the program has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Decides which programs may be started.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The folders that replies and commands can write.
    writable: BTreeSet<DeviceAndInode>,
    /// Such folders of other projects, by canonical path: there may be many, so they are not opened. None if they are
    /// unknown. Then no folder is safe.
    others: Option<BTreeSet<PathBuf>>,
}

impl Default for Programs {
    /// Excludes only programs that everybody on this machine can write.
    fn default() -> Self {
        Self { writable: BTreeSet::new(), others: Some(BTreeSet::new()) }
    }
}

impl Programs {
    /// Excludes programs that replies and commands of this project, or of another registered project, can write.
    pub fn of(config: &Config) -> Self {
        let folders = config.sandbox.writable.iter().chain([&config.workspace]);
        let known = |folder: &PathBuf| Some(id(&fs::metadata(folder).ok()?));
        Self { writable: folders.filter_map(known).collect(), others: reply_writable_places().ok() }
    }

    /// Finds a program and returns its resolved path, which no longer depends on links or `PATH`. Relative entries of
    /// `PATH` are ignored.
    ///
    /// # Errors
    /// There is no such program, or somebody else could have written every file with its name.
    pub fn find(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        let name = Path::new(name.as_ref());
        let places = if name.components().count() == 1 && !name.is_absolute() {
            let path = path();
            let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
            folders.map(|folder| folder.join(name)).collect()
        } else {
            vec![std::path::absolute(name)?]
        };
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "there is no such program");
        for place in places.iter().filter(|place| place.is_file()) {
            match self.trusted(place) {
                Ok(program) if access(&program, Access::EXEC_OK).is_ok() => return Ok(program),
                Ok(_) => {}
                Err(e) => refused = e,
            }
        }
        Err(refused)
    }

    /// A command for a program that deaddrop chooses. It starts in `/` with a minimal environment.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn command(&self, name: &str) -> io::Result<Command> {
        let mut command = self.user_command(name)?;
        command.env_clear().envs(self.environment()).current_dir("/");
        Ok(command)
    }

    /// A command for a program that the person chose. It gets the whole environment. Only the safe folders of `PATH`
    /// are kept, since it may start other programs by name.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn user_command(&self, name: impl AsRef<OsStr>) -> io::Result<Command> {
        let mut command = Command::new(self.find(&name)?);
        command.env("PATH", self.folders(&path()));
        // Some programs behave differently depending on the name by which they are called.
        command.arg0(&name);
        Ok(command)
    }

    /// The environment for programs that deaddrop chooses.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let kept = env::vars_os().filter_map(|(name, value)| {
            let is = name.to_str()?.to_owned();
            if ENVIRONMENT["folders"].contains(&is) {
                return Some((name, self.folders(&value)));
            }
            (ENVIRONMENT["kept"].contains(&is) || is.starts_with("LC_")).then_some((name, value))
        });
        kept.filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Removes unsafe folders from a list such as `PATH`.
    pub fn folders(&self, list: &OsStr) -> OsString {
        let folders = env::split_paths(list).filter(|folder| self.trusted(folder).is_ok());
        env::join_paths(folders).unwrap_or_default()
    }

    /// Resolves a path if nobody else can change its target or the file there.
    fn trusted(&self, path: &Path) -> io::Result<PathBuf> {
        if !path.is_absolute() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (places, real) = deciding_places(path);
        for place in places {
            self.check(&place, &fs::symlink_metadata(&place)?)?;
        }
        Ok(real)
    }

    /// Whether replies or commands can change the file at a path: they can write a folder or link on the way to it.
    pub fn is_writable_by_replies(&self, path: &Path) -> bool {
        deciding_places(path).0.iter().any(|place| {
            fs::symlink_metadata(place).is_ok_and(|found| self.is_writable(place, &found))
        })
    }

    fn is_writable(&self, path: &Path, found: &fs::Metadata) -> bool {
        let is_of_others = || self.others.as_ref().is_none_or(|others| others.contains(path));
        self.writable.contains(&id(found)) || is_of_others()
    }

    /// Accepts a file or folder that only the person, and users whom they trust, can write.
    fn check(&self, path: &Path, found: &fs::Metadata) -> io::Result<()> {
        let who = if self.is_writable(path, found) {
            "replies and commands"
        } else if found.mode() & 0o002 != 0 {
            "everybody on this machine"
        } else {
            return Ok(());
        };
        let why = format!("deaddrop does not start it: {who} can write to {}", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

/// The folders that are searched for a name.
fn path() -> OsString {
    env::var_os("PATH").unwrap_or_default()
}

/// The folders and files whose writers determine what is at a path, and the resolved path.
fn deciding_places(path: &Path) -> (Vec<PathBuf>, PathBuf) {
    let (links, real) = follow(path);
    let ends = links.iter().filter_map(|link| link.at.parent()).chain([&*real]);
    (ends.flat_map(Path::ancestors).map(Path::to_owned).collect(), real)
}

/// The path of the running program, even if its file was replaced since it started.
///
/// # Errors
/// The system does not know the path.
pub fn own_executable() -> io::Result<PathBuf> {
    // The link is resolved in this process or its fork, so it leads to the running file.
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { env::current_exe() }
}

/// Runs a program with this input until it ends. If it exceeds the time limit, its process group is killed.
///
/// # Errors
/// The program cannot be started, or takes too long.
pub fn output(mut command: Command, input: &str, patience: Duration) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    let mut child = command.spawn()?;
    feed(&mut child, input).inspect_err(|_| end(&mut child))?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = child.wait_timeout(patience);
    let Ok(Some(status)) = status else {
        end(&mut child);
        let why = format!("no answer within {} seconds", patience.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
    };
    // Processes that the program left behind may keep its outputs open forever.
    let said = |output: Receiver<Vec<u8>>| {
        let endless = |_| io::Error::new(io::ErrorKind::TimedOut, "its output does not end");
        output.recv_timeout(GRACE).map_err(endless)
    };
    Ok(Output { status, stdout: said(stdout)?, stderr: said(stderr)? })
}

/// Writes the whole input of a program in a thread, since the program may never read it.
pub(crate) fn feed(child: &mut Child, text: &str) -> io::Result<()> {
    let (stdin, text) = (child.stdin.take(), text.to_owned());
    let write = move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes()));
    thread::Builder::new().name("input".to_owned()).spawn(write).map(drop)
}

/// Reads an output to its end in a thread, so that the caller need not wait for it.
fn read(output: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let _ = output.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        let _ = tell.send(bytes);
    };
    drop(thread::Builder::new().name("output".to_owned()).spawn(read));
    told
}

/// Kills a program and the process group that it leads.
fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}

/// Identifies a folder independently of its path.
type DeviceAndInode = (u64, u64);

fn id(found: &fs::Metadata) -> DeviceAndInode {
    (found.dev(), found.ino())
}
