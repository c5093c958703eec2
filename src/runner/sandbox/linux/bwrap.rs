//! The sandbox made by `bwrap`, for machines on which only `bwrap` may make namespaces. `bwrap` builds the same root.
//! This program, started again inside, adds the other restrictions.

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

/// The system's bwrap. A bwrap found through PATH could be anybody's program.
const PROGRAM: &str = "/usr/bin/bwrap";
/// What the inner helper sends just before the command replaces it.
const STARTED: &str = "+";
/// After this many words, mounts of protected files are left out. bwrap accepts 9,000 words, and others still follow.
const MAX_WORDS: usize = 8_700;

/// Runs bwrap, which makes the namespaces and the root. Inside it, this program adds the other restrictions.
pub(super) fn run(helper: &SandboxHelper) -> StepResult<()> {
    let request = &helper.request;
    Path::new(PROGRAM).metadata().map_err(|e| format!("{PROGRAM}: {e}"))?;
    close_to_others();
    // bwrap would create missing mount points itself, but it follows links while it still sees the whole machine.
    places::prepare(request).map_err(cannot("prepare HOME and /tmp"))?;
    let (mut heard, channel) = UnixStream::pair().map_err(cannot("make a socket"))?;
    let channel = OwnedFd::from(channel);
    inherit(&channel).map_err(cannot("use a socket"))?;
    // Use a handle, because another program may be at the path by now.
    let own = open("/proc/self/exe", OFlags::PATH, Mode::empty())
        .map_err(cannot("find deaddrop's program"))?;
    // bwrap ends before the init of its namespace. This process must adopt that init and end it.
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
    // If bwrap has already ended, the request cannot be sent, and no answer arrives.
    let _ = inner.send(&heard);
    close_output();
    let status = wait_for(first);
    end_children();
    // All processes that could send anything are dead.
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

/// Inside bwrap: adds the other restrictions, then becomes the command.
pub(in super::super) fn inside(channel: c_int) -> ! {
    // SAFETY: the process that started this one left the descriptor open for this purpose. Nothing else here uses it.
    let channel = unsafe { UnixStream::from_raw_fd(channel) };
    let _ = rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::CLOEXEC);
    // No other descriptor from bwrap reaches the command.
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
        let facts = walls::drop_rights(request)?;
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

/// Keeps a descriptor open across exec.
fn inherit(file: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?)
}

/// The command that starts bwrap with the root of this request and, inside it, this program (`own`), which reports on
/// `channel`. bwrap reads the returned files, so they must stay open until it has started.
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
    // bwrap binds places as they are outside, so a bind over a cover would show what the cover hides.
    let (covers, others): (Vec<_>, Vec<_>) =
        request.mounts.iter().partition(|mount| mount.kind == MountKind::Cover);
    for mount in others.into_iter().chain(covers) {
        // Protected files that are left out here are still compared after each command.
        if options.words > MAX_WORDS && matches!(mount.kind, MountKind::Keep | MountKind::Pin) {
            continue;
        }
        options.mount(mount, &mut files).map_err(|e| cannot_show(&mount.at, e))?;
    }
    options.add(["--proc", "/proc", "--dev", "/dev"]);
    let in_proc = |name: &str| Path::new("/proc").join(name);
    // These parts are writable in the /proc that bwrap mounts.
    for path in KERNEL_SETTINGS.map(in_proc) {
        options.add([Path::new("--ro-bind-try"), &path, &path]);
    }
    for path in KERNEL_SECRETS.map(in_proc) {
        if path.is_dir() {
            options.cover_folder(&path);
        } else if path.exists() {
            // The mount does not allow devices, so this file cannot even be opened.
            options.add([Path::new("--ro-bind"), Path::new("/dev/null"), &path]);
        }
    }
    options.add([Path::new("--chdir"), &request.folder]);
    options.add(["--remount-ro", "/"]);
    let list = options.file().map_err(cannot("write bwrap's options"))?;
    let mut bwrap = Command::new(PROGRAM);
    bwrap.env_clear();
    // Pass the options in a file, because everybody can read a process's arguments.
    bwrap.arg("--args").arg(list.as_raw_fd().to_string());
    bwrap
        .arg("--")
        .arg(format!("/proc/self/fd/{}", own.as_raw_fd()))
        .arg(MARK)
        .arg(channel.as_raw_fd().to_string());
    files.push(list);
    Ok((bwrap, files))
}

/// The arguments of bwrap, each terminated by a NUL byte.
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

    /// Writes the arguments to a file for bwrap.
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
            // Older versions of bwrap have no overlays, so caches are read-only. Most tools accept that.
            MountKind::Read(from) | MountKind::Overlay(from) | MountKind::Write(from) => {
                let writable = matches!(kind, MountKind::Write(_));
                let Some(found) = from.open(writable)?.map(OwnedFd::from) else { return Ok(()) };
                inherit(&found)?;
                let how = if writable { "--bind-fd" } else { "--ro-bind-fd" };
                // bwrap compares the mounted file with this descriptor, and then closes the descriptor.
                add(how, Path::new(&found.as_raw_fd().to_string()));
                files.push(found);
            }
            MountKind::Link(to) => add("--symlink", to),
            MountKind::Show if is_file(at) => add("--ro-bind", at),
            MountKind::Cover | MountKind::Show if at.is_dir() => self.cover_folder(at),
            MountKind::Cover | MountKind::Show if at.exists() => {
                // bwrap reads each such descriptor to its end and closes it.
                let nothing = open("/dev/null", OFlags::RDONLY, Mode::empty())?;
                add("--ro-bind-data", Path::new(&nothing.as_raw_fd().to_string()));
                files.push(nothing);
            }
            // bwrap cannot mount over a link.
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
