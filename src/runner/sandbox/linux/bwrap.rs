//! The sandbox made by `bwrap`, where it may make namespaces and we may not. It builds the same
//! root; the other walls are raised by this program again, started inside.

#![allow(unsafe_code)]

use std::convert::Infallible;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::c_int;

use rustix::fs::{Mode, OFlags, open};

use super::super::MARK;
use super::super::order::{Means, Mount, Order};
use super::super::report::Facts;
use super::processes::{fork_first, wait_for};
use super::told::Told;
use super::{Step, close_to_others, forget_output, probe, try_command, walls, while_};

/// No other bwrap than the system's: one on the PATH could be anybody's.
const PROGRAM: &str = "/usr/bin/bwrap";
/// Where this program stands in the command's view.
const HELPER: &str = "/run/deaddrop";
/// What the inner helper says before the command takes its place.
const STARTED: &str = "+";
/// What bwrap's own /proc leaves to be written.
const KERNEL_SETTINGS: [&str; 5] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

/// bwrap makes the namespaces and the root; inside it this program raises the other walls.
pub(super) fn run(order: &Order, told: &'static Told) -> Step<()> {
    is_installed().map_err(|e| format!("{PROGRAM}: {e}"))?;
    close_to_others();
    let (mut heard, channel) = UnixStream::pair().map_err(while_("make a socket"))?;
    let channel = OwnedFd::from(channel);
    rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::empty())
        .map_err(while_("use a socket"))?;
    let mut order = order.clone();
    if order.probe {
        order.environment.extend(probe::ipc().ok().map(|outside| (probe::OUTSIDE.into(), outside)));
    }
    let first = fork_first().map_err(while_("start a process"))?;
    if first == 0 {
        let run = || -> Step<Infallible> {
            if let Some((user, group)) = order.user {
                walls::become_user(user, group).map_err(while_("become the workspace's owner"))?;
            }
            let (mut bwrap, _empty) = command(&order, &channel)?;
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
    let order = Order::receive(&mut channel);
    let say = |what: &[u8]| {
        let _ = rustix::io::write(&channel, what);
    };
    close_to_others();
    let run = || -> Step<Infallible> {
        let order = order.as_ref().ok_or("cannot understand what to run")?;
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
/// inner one tells on `channel`. The files are for bwrap to read, and stay open until it is started.
fn command(order: &Order, channel: &OwnedFd) -> Step<(Command, Vec<OwnedFd>)> {
    let mut empty = Vec::new();
    let helper = std::env::current_exe().map_err(while_("find deaddrop's program"))?;
    let mut bwrap = Command::new(PROGRAM);
    bwrap.env_clear();
    bwrap.args(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]);
    bwrap.args(["--new-session", "--cap-drop", "ALL"]);
    if !order.network {
        bwrap.arg("--unshare-net");
    }
    for mount in &order.mounts {
        add(&mut bwrap, mount, &mut empty).map_err(while_("open /dev/null"))?;
    }
    bwrap.args(["--proc", "/proc", "--dev", "/dev"]);
    for path in KERNEL_SETTINGS {
        bwrap.args(["--ro-bind-try", path, path]);
    }
    bwrap.arg("--ro-bind").arg(&helper).arg(HELPER);
    bwrap.arg("--chdir").arg(&order.folder);
    bwrap.args(["--remount-ro", "/", "--", HELPER, MARK]);
    bwrap.arg(channel.as_raw_fd().to_string());
    Ok((bwrap, empty))
}

fn add(bwrap: &mut Command, mount: &Mount, empty: &mut Vec<OwnedFd>) -> io::Result<()> {
    match mount {
        Mount::Read { from, to } => bwrap.arg("--ro-bind").args([from, to]),
        Mount::Write { from, to } => bwrap.arg("--bind").args([from, to]),
        // Older versions have no overlays: the cache can be read, which most tools do without more.
        Mount::Overlay { at } => bwrap.arg("--ro-bind").args([at, at]),
        Mount::Link { to, at } => bwrap.arg("--symlink").args([to, at]),
        Mount::Cover { at } if at.is_dir() => {
            bwrap.arg("--tmpfs").arg(at).arg("--remount-ro").arg(at)
        }
        Mount::Cover { at } if at.exists() => {
            // Each is read to its end and closed.
            let nothing = open("/dev/null", OFlags::RDONLY, Mode::empty())?;
            bwrap.arg("--ro-bind-data").arg(nothing.as_raw_fd().to_string()).arg(at);
            empty.push(nothing);
            bwrap
        }
        Mount::Pin { at } if is_there(at) => bwrap.arg("--bind").args([at, at]),
        Mount::Keep { at } if is_there(at) => bwrap.arg("--ro-bind").args([at, at]),
        _ => bwrap,
    };
    Ok(())
}

/// bwrap mounts over nothing that is a link.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_symlink())
}

/// Whether there is a bwrap.
fn is_installed() -> io::Result<()> {
    Path::new(PROGRAM).metadata().map(drop)
}
