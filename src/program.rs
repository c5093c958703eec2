//! The programs that deaddrop starts with the person's rights. Each is resolved to an absolute path without
//! links. It is not started from where replies, commands or everybody can write.

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

/// What a program that deaddrop chooses gets of the environment.
static ENVIRONMENT: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("data/environment.toml")).expect("a table in order")
});

/// No more bytes of each of its outputs are read.
const MOST: u64 = 64 << 20;
/// How long the last of an output is waited for when its program has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Where programs may be taken from.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The folders that replies and commands can write.
    writable: BTreeSet<Id>,
    /// Those of other projects, by their canonical paths: there may be many, and none is looked at.
    /// None if they are not known, so that no folder is safe.
    others: Option<BTreeSet<PathBuf>>,
}

impl Default for Programs {
    /// Those that only other users could write are left out.
    fn default() -> Self {
        Self { writable: BTreeSet::new(), others: Some(BTreeSet::new()) }
    }
}

impl Programs {
    /// Those that replies and commands of a project cannot write, nor of any other that was used.
    pub fn of(config: &Config) -> Self {
        let folders = config.sandbox.writable.iter().chain([&config.workspace]);
        let known = |folder: &PathBuf| Some(id(&fs::metadata(folder).ok()?));
        Self { writable: folders.filter_map(known).collect(), others: reply_writable_places().ok() }
    }

    /// The program of this name, as a path that neither links nor `PATH` have a say in any more. Relative
    /// entries of `PATH` are passed over.
    ///
    /// # Errors
    /// There is none, or each of that name is one that somebody else could have put there.
    pub fn find(&self, name: impl AsRef<OsStr>) -> io::Result<PathBuf> {
        let name = Path::new(name.as_ref());
        let places = if name.components().count() == 1 && !name.is_absolute() {
            let path = path();
            let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
            folders.map(|folder| folder.join(name)).collect()
        } else {
            vec![std::path::absolute(name)?]
        };
        let mut refused = io::ErrorKind::NotFound.into();
        for place in places.iter().filter(|place| place.is_file()) {
            match self.trusted(place) {
                Ok(program) if access(&program, Access::EXEC_OK).is_ok() => return Ok(program),
                Ok(_) => {}
                Err(e) => refused = e,
            }
        }
        Err(refused)
    }

    /// A command line of a program that deaddrop chooses: it starts in `/`, with little of the environment.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn command(&self, name: &str) -> io::Result<Command> {
        let mut command = self.named(name)?;
        command.env_clear().envs(self.environment()).current_dir("/");
        Ok(command)
    }

    /// A command line of a program that the person names: it gets all of the environment, but of `PATH` only
    /// what programs may be taken from, since it may start others by name.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn named(&self, name: impl AsRef<OsStr>) -> io::Result<Command> {
        let mut command = Command::new(self.find(&name)?);
        command.env("PATH", self.folders(&path()));
        // Some programs are several, by the name that they are called.
        command.arg0(&name);
        Ok(command)
    }

    /// What such a program gets of this process's environment.
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

    /// Those of a list of folders that programs may be taken from.
    pub fn folders(&self, list: &OsStr) -> OsString {
        let folders = env::split_paths(list).filter(|folder| self.trusted(folder).is_ok());
        env::join_paths(folders).unwrap_or_default()
    }

    /// Where a path leads, if nobody else can change that, or what stands there.
    fn trusted(&self, path: &Path) -> io::Result<PathBuf> {
        if !path.is_absolute() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (places, real) = places_of(path);
        for place in places {
            self.check(&place, &fs::symlink_metadata(&place)?)?;
        }
        Ok(real)
    }

    /// Whether replies or commands decide what is found at a path: they can write a folder that it, or a link on
    /// its way, lies in.
    pub fn are_written_at(&self, path: &Path) -> bool {
        places_of(path).0.iter().any(|place| {
            fs::symlink_metadata(place).is_ok_and(|found| self.is_written(place, &found))
        })
    }

    fn is_written(&self, path: &Path, found: &fs::Metadata) -> bool {
        let is_of_others = || self.others.as_ref().is_none_or(|others| others.contains(path));
        self.writable.contains(&id(found)) || is_of_others()
    }

    /// Lets a file or folder pass that only the person, and those whom they trust, can write.
    fn check(&self, path: &Path, found: &fs::Metadata) -> io::Result<()> {
        let who = if self.is_written(path, found) {
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

/// The folders that are looked through for a name.
fn path() -> OsString {
    env::var_os("PATH").unwrap_or_default()
}

/// The folders and files whose writers decide what is found at a path, and where it leads.
fn places_of(path: &Path) -> (Vec<PathBuf>, PathBuf) {
    let (links, real) = follow(path);
    let ends = links.iter().filter_map(|link| link.at.parent()).chain([&*real]);
    (ends.flat_map(Path::ancestors).map(Path::to_owned).collect(), real)
}

/// The program that runs now, also when another one was put in its place since it was started.
///
/// # Errors
/// The system does not say which it is.
pub fn own() -> io::Result<PathBuf> {
    // Whoever starts it is still this program then, with the same file.
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { env::current_exe() }
}

/// Runs a program to its end with this input; one that takes longer is ended with all in its group.
///
/// # Errors
/// It cannot be started, or takes too long.
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
    // What it left behind may hold its outputs for ever.
    let said = |output: Receiver<Vec<u8>>| {
        let endless = |_| io::Error::new(io::ErrorKind::TimedOut, "its output does not end");
        output.recv_timeout(GRACE).map_err(endless)
    };
    Ok(Output { status, stdout: said(stdout)?, stderr: said(stderr)? })
}

/// Gives a program its whole input, in a thread because the program may never read it.
pub(crate) fn feed(child: &mut Child, text: &str) -> io::Result<()> {
    let (stdin, text) = (child.stdin.take(), text.to_owned());
    let write = move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes()));
    thread::Builder::new().name("input".to_owned()).spawn(write).map(drop)
}

/// Reads an output to its end in a thread of its own, so that nobody has to wait for it.
fn read(output: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let _ = output.take(MOST).read_to_end(&mut bytes);
        }
        let _ = tell.send(bytes);
    };
    drop(thread::Builder::new().name("output".to_owned()).spawn(read));
    told
}

/// Ends a program that leads a group of its own, and all in that.
fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}

/// What a folder is known by, whatever its path is.
type Id = (u64, u64);

fn id(found: &fs::Metadata) -> Id {
    (found.dev(), found.ino())
}
