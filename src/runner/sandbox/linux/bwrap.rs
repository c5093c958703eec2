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
use super::super::held::cannot_show;
use super::super::order::{Means, Mount, Order};
use super::super::report::Facts;
use super::group::Group;
use super::processes::{adopt, end_children, fork_first, wait_for};
use super::root::KERNEL_SECRETS;
use super::told::Told;
use super::{
    Step, close_to_others, enter_group, forget_output, places, probe, try_command, walls, while_,
};

/// No other bwrap than the system's: one on the PATH could be anybody's.
const PROGRAM: &str = "/usr/bin/bwrap";
/// What the inner helper says before the command takes its place.
const STARTED: &str = "+";
/// bwrap takes 9,000 words; some come after those of protected files.
const MOST_WORDS: usize = 8_700;
/// What bwrap's own /proc leaves to be written.
const KERNEL_SETTINGS: [&str; 5] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

/// bwrap makes the namespaces and the root; inside it this program raises the other walls.
pub(super) fn run(order: &Order, group: Option<&Group>, told: &'static Told) -> Step<()> {
    is_installed().map_err(|e| format!("{PROGRAM}: {e}"))?;
    close_to_others();
    // bwrap makes what is missing to mount on, and follows links while it still sees everything.
    places::prepare(order).map_err(while_("prepare HOME and /tmp"))?;
    let (mut heard, channel) = UnixStream::pair().map_err(while_("make a socket"))?;
    let channel = OwnedFd::from(channel);
    rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::empty())
        .map_err(while_("use a socket"))?;
    let mut order = order.clone();
    if order.probe {
        order
            .environment
            .extend(probe::surroundings().ok().map(|outside| (probe::OUTSIDE.into(), outside)));
    }
    // By handle: bwrap would look up a path, and another program may stand there by now.
    let own = open("/proc/self/exe", OFlags::PATH, Mode::empty())
        .map_err(while_("find deaddrop's program"))?;
    // bwrap ends before the init of its namespace does: that one is to come to us, and be ended.
    adopt();
    let first = fork_first().map_err(while_("start a process"))?;
    if first == 0 {
        let run = || -> Step<Infallible> {
            enter_group(group)?;
            if let Some((user, group)) = order.user {
                walls::become_user(user, group).map_err(while_("become the workspace's owner"))?;
            }
            let (mut bwrap, _files) = command(&order, &channel, &own)?;
            Err(bwrap.exec()).map_err(while_("start bwrap"))
        };
        let _ = run().inspect_err(|reason| told.failed(reason));
        // SAFETY: ends this process.
        unsafe { libc::_exit(127) }
    }
    drop(channel);
    let inner = Order { parent: 0, means: Means::Inside, user: None, ..order.clone() };
    // If bwrap is gone already, it tells by its silence.
    let _ = inner.send(&mut heard);
    forget_output();
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
    if order.probe {
        told.found(Facts(u32::from_str_radix(more, 16).unwrap_or_default()));
    } else if !more.is_empty() {
        return Err(more.to_owned());
    }
    told.ended(status);
    Ok(())
}

/// Inside of bwrap: raises the other walls and becomes the command.
pub(in super::super) fn inside(channel: c_int) -> ! {
    // SAFETY: the one that started us left it open for this, and nothing else here uses it.
    let mut channel = unsafe { UnixStream::from_raw_fd(channel) };
    let _ = rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::CLOEXEC);
    // Nothing else that bwrap handed on reaches the command.
    // SAFETY: a system call on integers.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, 3, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    let order = Order::receive(&mut channel);
    let say = |what: &[u8]| {
        let _ = rustix::io::write(&channel, what);
    };
    close_to_others();
    let run = || -> Step<Infallible> {
        let order = order.as_ref().ok_or("cannot understand what to run")?;
        if closed != 0 {
            return Err("cannot close what bwrap handed on; that needs Linux 5.11".into());
        }
        let facts = walls::raise(order)?;
        say(STARTED.as_bytes());
        if order.probe {
            let found = facts.0 | probe::look_around(order).0;
            say(format!("{found:x}").as_bytes());
            // SAFETY: ends this process.
            unsafe { libc::_exit(0) }
        }
        let told = Told::new().map_err(while_("get memory"))?;
        try_command(order, facts, None, told)
    };
    let Err(reason) = run();
    say(reason.as_bytes());
    // SAFETY: ends this process.
    unsafe { libc::_exit(127) }
}

/// bwrap with the root of this order, and inside it this program with the rest of the order. The
/// inner one is `own`, and tells on `channel`. The files are for bwrap to read, and stay open until it is started.
fn command(order: &Order, channel: &OwnedFd, own: &OwnedFd) -> Step<(Command, Vec<OwnedFd>)> {
    let mut files = Vec::new();
    let mut options = Options::default();
    options.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    options.add(["--new-session", "--cap-drop", "ALL"]);
    if !order.network {
        options.add(["--unshare-net"]);
    }
    // What bwrap binds is the place outside: bound over a cover, it would uncover what that hides.
    let (covers, others): (Vec<_>, Vec<_>) =
        order.mounts.iter().partition(|mount| matches!(mount, Mount::Cover { .. }));
    for mount in others.into_iter().chain(covers) {
        // The guard looks after what there is no room for.
        if options.words > MOST_WORDS && matches!(mount, Mount::Keep { .. } | Mount::Pin { .. }) {
            continue;
        }
        options.mount(mount, &mut files).map_err(|e| cannot_show(mount.at(), e))?;
    }
    options.add(["--proc", "/proc", "--dev", "/dev"]);
    for path in KERNEL_SETTINGS {
        options.add(["--ro-bind-try", path, path]);
    }
    for path in KERNEL_SECRETS.map(|name| Path::new("/proc").join(name)) {
        if path.is_dir() {
            options.cover_folder(&path);
        } else if path.exists() {
            // Mounted without devices, it cannot even be opened.
            options.add([Path::new("--ro-bind"), Path::new("/dev/null"), &path]);
        }
    }
    options.add([Path::new("--chdir"), &order.folder]);
    options.add(["--remount-ro", "/"]);
    let list = options.file().map_err(while_("write bwrap's options"))?;
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
        let mut add = |how: &str, from: &Path, to: &Path| self.add([Path::new(how), from, to]);
        match mount {
            // Older versions have no overlays: the cache can be read, which most tools do without
            // more.
            Mount::Read { from, to: at }
            | Mount::Overlay { from, at }
            | Mount::Write { from, to: at } => {
                let writable = matches!(mount, Mount::Write { .. });
                let Some(found) = from.open(writable)?.map(OwnedFd::from) else { return Ok(()) };
                rustix::io::fcntl_setfd(&found, rustix::io::FdFlags::empty())?;
                let how = if writable { "--bind-fd" } else { "--ro-bind-fd" };
                // It compares what it mounted with this, and closes it.
                add(how, Path::new(&found.as_raw_fd().to_string()), at);
                files.push(found);
            }
            Mount::Link { to, at } => add("--symlink", to, at),
            Mount::Show { at } if is_file(at) => add("--ro-bind", at, at),
            Mount::Cover { at } | Mount::Show { at } if at.is_dir() => self.cover_folder(at),
            Mount::Cover { at } | Mount::Show { at } if at.exists() => {
                // Each is read to its end and closed.
                let nothing = open("/dev/null", OFlags::RDONLY, Mode::empty())?;
                let number = nothing.as_raw_fd().to_string();
                add("--ro-bind-data", Path::new(&number), at);
                files.push(nothing);
            }
            Mount::Pin { at } if is_there(at) => add("--bind", at, at),
            Mount::Keep { at } if is_there(at) => add("--ro-bind", at, at),
            _ => {}
        }
        Ok(())
    }
}

/// bwrap mounts over nothing that is a link.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_symlink())
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// Whether there is a bwrap.
fn is_installed() -> io::Result<()> {
    Path::new(PROGRAM).metadata().map(drop)
}
