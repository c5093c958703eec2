//! The sandbox made by `bwrap`, where it may make namespaces and we may not. It builds the same
//! root; the other walls are raised by this program again, started inside.

#![allow(unsafe_code)]

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::c_int;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

use super::super::MARK;
use super::super::identified_path::cannot_show;
use super::super::report::MechanismSet;
use super::super::request::{Backend, Mount, MountKind, SandboxRequest};
use super::processes::{adopt, end_children, fork_first, wait_for};
use super::root::{KERNEL_SECRETS, KERNEL_SETTINGS};
use super::{
    SandboxHelper, StepResult, become_shell, cannot, close_output, close_to_others, exit, places,
    probe, walls,
};

/// No other bwrap than the system's: one on the PATH could be anybody's.
const PROGRAM: &str = "/usr/bin/bwrap";
/// What the inner helper says before the command takes its place.
const STARTED: &str = "+";
/// bwrap takes 9,000 words; some come after those of protected files.
const MOST_WORDS: usize = 8_700;

/// bwrap makes the namespaces and the root; inside it this program raises the other walls.
pub(super) fn run(helper: &SandboxHelper) -> StepResult<()> {
    let request = &helper.request;
    Path::new(PROGRAM).metadata().map_err(|e| format!("{PROGRAM}: {e}"))?;
    close_to_others();
    // bwrap makes what is missing to mount on, and follows links while it still sees everything.
    places::prepare(request).map_err(cannot("prepare HOME and /tmp"))?;
    let (mut heard, channel) = UnixStream::pair().map_err(cannot("make a socket"))?;
    let channel = OwnedFd::from(channel);
    inherit(&channel).map_err(cannot("use a socket"))?;
    // By handle: bwrap would look up a path, and another program may stand there by now.
    let own = open("/proc/self/exe", OFlags::PATH, Mode::empty())
        .map_err(cannot("find deaddrop's program"))?;
    // bwrap ends before the init of its namespace does: that one is to come to us, and be ended.
    adopt();
    let first = helper.fork(fork_first, || {
        helper.enter_group()?;
        if let Some((user, group)) = request.user {
            walls::become_user(user, group).map_err(cannot("become the workspace's owner"))?;
        }
        let (mut bwrap, _files) = command(request, &channel, &own)?;
        Err(cannot("start bwrap")(bwrap.exec()))
    })?;
    drop(channel);
    let inner =
        SandboxRequest { parent: 0, backend: Backend::Inside, user: None, ..request.clone() };
    // If bwrap is gone already, it tells by its silence.
    let _ = inner.send(&heard);
    close_output();
    let status = wait_for(first);
    end_children();
    // All that could say something is dead.
    let mut said = Vec::new();
    let _ = heard.set_nonblocking(true);
    let _ = heard.read_to_end(&mut said);
    let Some(status) = status else { return Ok(()) };
    let said = String::from_utf8_lossy(&said);
    let Some(more) = said.strip_prefix(STARTED) else {
        return Err(if said.is_empty() {
            "bwrap could not make the sandbox".to_owned()
        } else {
            said.into_owned()
        });
    };
    if request.probe {
        helper.shared.found(MechanismSet(u32::from_str_radix(more, 16).unwrap_or_default()));
    } else if !more.is_empty() {
        return Err(more.to_owned());
    }
    helper.shared.ended(status);
    Ok(())
}

/// Inside of bwrap: raises the other walls and becomes the command.
pub(in super::super) fn inside(channel: c_int) -> ! {
    // SAFETY: the one that started us left it open for this, and nothing else here uses it.
    let channel = unsafe { UnixStream::from_raw_fd(channel) };
    let _ = rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::CLOEXEC);
    // Nothing else that bwrap handed on reaches the command.
    // SAFETY: a system call on integers.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, 3, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    let request = SandboxRequest::receive(&channel);
    let say = |what: &[u8]| {
        let _ = rustix::io::write(&channel, what);
    };
    close_to_others();
    let run = || -> StepResult<Infallible> {
        let request = request.as_ref().ok_or("cannot understand what to run")?;
        if closed != 0 {
            return Err("cannot close what bwrap handed on; that needs Linux 5.11".into());
        }
        let facts = walls::raise(request)?;
        say(STARTED.as_bytes());
        if request.probe {
            say(format!("{:x}", facts.0 | probe::check_mechanisms(request).0).as_bytes());
            exit(0)
        }
        become_shell(request)
    };
    let Err(reason) = run();
    say(reason.as_bytes());
    exit(127)
}

/// Lets a program that this process becomes have a descriptor.
fn inherit(file: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// bwrap with the root of this request, and inside it this program with the rest of the request. The
/// inner one is `own`, and tells on `channel`. The files are for bwrap to read, and stay open until it is started.
fn command(
    request: &SandboxRequest,
    channel: &OwnedFd,
    own: &OwnedFd,
) -> StepResult<(Command, Vec<OwnedFd>)> {
    let mut files = Vec::new();
    let mut options = Options::default();
    options.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    options.add(["--new-session", "--cap-drop", "ALL"]);
    if !request.network {
        options.add(["--unshare-net"]);
    }
    // What bwrap binds is the place outside: bound over a cover, it would uncover what that hides.
    let (covers, others): (Vec<_>, Vec<_>) =
        request.mounts.iter().partition(|mount| mount.kind == MountKind::Cover);
    for mount in others.into_iter().chain(covers) {
        // What there is no room for is compared after each command.
        if options.words > MOST_WORDS && matches!(mount.kind, MountKind::Keep | MountKind::Pin) {
            continue;
        }
        options.mount(mount, &mut files).map_err(|e| cannot_show(&mount.at, e))?;
    }
    options.add(["--proc", "/proc", "--dev", "/dev"]);
    let in_proc = |name: &str| Path::new("/proc").join(name);
    // bwrap's own /proc leaves them to be written.
    for path in KERNEL_SETTINGS.map(in_proc) {
        options.add([Path::new("--ro-bind-try"), &path, &path]);
    }
    for path in KERNEL_SECRETS.map(in_proc) {
        if path.is_dir() {
            options.cover_folder(&path);
        } else if path.exists() {
            // Mounted without devices, it cannot even be opened.
            options.add([Path::new("--ro-bind"), Path::new("/dev/null"), &path]);
        }
    }
    options.add([Path::new("--chdir"), &request.folder]);
    options.add(["--remount-ro", "/"]);
    let list = options.file().map_err(cannot("write bwrap's options"))?;
    let mut bwrap = Command::new(PROGRAM);
    bwrap.env_clear();
    // Everybody can read a process's arguments.
    bwrap.arg("--args").arg(list.as_raw_fd().to_string());
    bwrap
        .arg("--")
        .arg(format!("/proc/self/fd/{}", own.as_raw_fd()))
        .arg(MARK)
        .arg(channel.as_raw_fd().to_string());
    files.push(list);
    Ok((bwrap, files))
}

/// What bwrap is told, each ended by a NUL byte.
#[derive(Default)]
struct Options {
    bytes: Vec<u8>,
    words: usize,
}

impl Options {
    fn add(&mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        for word in words {
            self.bytes.extend_from_slice(word.as_ref().as_bytes());
            self.bytes.push(0);
            self.words += 1;
        }
    }

    /// These in a file, for bwrap to read.
    fn file(&self) -> io::Result<OwnedFd> {
        let list = memfd_create("options", MemfdFlags::empty())?;
        let mut list = File::from(list);
        list.write_all(&self.bytes)?;
        list.rewind()?;
        Ok(list.into())
    }

    fn cover_folder(&mut self, at: &Path) {
        self.add([Path::new("--tmpfs"), at, Path::new("--remount-ro"), at]);
    }

    fn mount(&mut self, mount: &Mount, files: &mut Vec<OwnedFd>) -> io::Result<()> {
        let Mount { at, kind } = mount;
        let mut add = |how: &str, from: &Path| self.add([Path::new(how), from, at]);
        match kind {
            // Older versions have no overlays: the cache can be read, which most tools do without
            // more.
            MountKind::Read(from) | MountKind::Overlay(from) | MountKind::Write(from) => {
                let writable = matches!(kind, MountKind::Write(_));
                let Some(found) = from.open(writable)?.map(OwnedFd::from) else { return Ok(()) };
                inherit(&found)?;
                let how = if writable { "--bind-fd" } else { "--ro-bind-fd" };
                // It compares what it mounted with this, and closes it.
                add(how, Path::new(&found.as_raw_fd().to_string()));
                files.push(found);
            }
            MountKind::Link(to) => add("--symlink", to),
            MountKind::Show if is_file(at) => add("--ro-bind", at),
            MountKind::Cover | MountKind::Show if at.is_dir() => self.cover_folder(at),
            MountKind::Cover | MountKind::Show if at.exists() => {
                // Each is read to its end and closed.
                let nothing = open("/dev/null", OFlags::RDONLY, Mode::empty())?;
                add("--ro-bind-data", Path::new(&nothing.as_raw_fd().to_string()));
                files.push(nothing);
            }
            // bwrap mounts over nothing that is a link.
            MountKind::Pin if is_there(at) => add("--bind", at),
            MountKind::Keep if is_there(at) => add("--ro-bind", at),
            _ => {}
        }
        Ok(())
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_symlink())
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}
