//! The namespaces of a command.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use libc::c_int;

use super::{StepResult, cannot};

/// The namespaces that are needed to end a process tree and to hide files.
pub(super) const TREE: c_int = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
/// The namespaces of a sandbox.
pub(super) const SANDBOX: c_int = TREE | libc::CLONE_NEWIPC;

/// Enters new namespaces, and a user namespace if one is needed. Only the next child enters the pid namespace. Returns
/// whether a user namespace was needed. This process must be single-threaded.
pub(super) fn enter(wanted: c_int) -> StepResult<bool> {
    // SAFETY: the process is single-threaded, so entering namespaces affects nothing else.
    unsafe {
        if libc::unshare(wanted) == 0 {
            return Ok(false);
        }
        let (user, group) = (libc::geteuid(), libc::getegid());
        if libc::unshare(libc::CLONE_NEWUSER | wanted) != 0 {
            return Err(match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(libc::ENOSPC) => {
                    "no more namespaces may be made (user.max_*_namespaces)".to_owned()
                }
                e => format!("cannot make namespaces: {e}"),
            });
        }
        // Without these maps, the command would run as nobody and own none of its files.
        fs::write("/proc/self/setgroups", "deny")
            .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
            .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
            .map_err(cannot("map the user into a namespace"))?;
        Ok(true)
    }
}

/// Brings up the loopback device of a new network namespace. Tests of servers need it.
pub(super) fn loopback_up() -> StepResult<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(cannot("make a socket"))?;
    // SAFETY: all zeroes is a valid `ifreq`; the name is shorter than its field; the socket is open.
    let failed = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        request.ifr_ifru.ifru_flags =
            i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    if failed == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error()).map_err(cannot("bring up the loopback device"))
}
