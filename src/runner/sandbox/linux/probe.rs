//! Run in the place of a command: tries to get around each wall, and tells which of them stand.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use super::super::order::{Means, Mount, Order};
use super::super::report::{Facts, Mechanism};
use super::filter;

/// In a command's environment, for probes alone: the queues' namespace outside.
pub(super) const OUTSIDE: &str = "DEADDROP_PROBE_IPC";

/// What only root can make, where he has not lost his root.
const ADDED: &str = "/deaddrop-probe";

/// What stands around this process.
pub(super) fn look_around(order: &Order) -> Facts {
    let mut facts = Facts::default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    facts.add_if(Mechanism::PidNamespace, std::process::id() < 4);
    // Where nothing holds it back, the attempt would leave something behind.
    facts.add_if(Mechanism::Root, order.means != Means::Open && is_own_root());
    facts.add_if(Mechanism::Network, is_own_network());
    let outside = order.environment.iter().find(|(key, _)| key == OUTSIDE);
    facts.add_if(
        Mechanism::Ipc,
        outside.is_some_and(|(_, outside)| ipc().is_ok_and(|inside| inside != *outside)),
    );
    let none = |field: &str| value(&status, field).is_some_and(|v| v.bytes().all(|b| b == b'0'));
    facts.add_if(Mechanism::Capabilities, none("CapPrm") && none("CapEff") && none("CapInh"));
    facts.add_if(Mechanism::NoNewPrivileges, value(&status, "NoNewPrivs") == Some("1"));
    let filtered = value(&status, "Seccomp") == Some("2") && are_refused();
    facts.add_if(Mechanism::Seccomp, filter::AVAILABLE && filtered);
    facts.add_if(Mechanism::Processes, are_processes_bounded(order.limits.processes));
    facts.add_if(Mechanism::Hidden, is_state_hidden(order));
    facts
}

/// This process's namespace of queues.
pub(super) fn ipc() -> io::Result<std::ffi::OsString> {
    Ok(fs::read_link("/proc/self/ns/ipc")?.into_os_string())
}

fn value<'a>(status: &'a str, field: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}

fn is_own_root() -> bool {
    // Each of these is there on every host, or can be made there by root.
    let kernel = OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern");
    let added = File::create_new(ADDED).and_then(|_| fs::remove_file(ADDED));
    let passwords = fs::read("/etc/shadow").unwrap_or_default();
    kernel.is_err() && added.is_err() && passwords.is_empty() && !Path::new("/boot").exists()
}

/// Only a network of one's own has nothing but a loopback device.
fn is_own_network() -> bool {
    let devices = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let mut names = devices.lines().skip(2).filter_map(|line| line.split_once(':'));
    devices.lines().count() >= 2 && names.all(|(name, _)| name.trim() == "lo")
}

fn are_refused() -> bool {
    // SAFETY: system calls that are to fail; if one does not, this process only has a namespace or
    // a descriptor more, and ends soon.
    unsafe {
        libc::unshare(libc::CLONE_NEWUSER) != 0
            && libc::syscall(libc::SYS_io_uring_setup, 1, 0) == -1
            && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
            && libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EAFNOSUPPORT)
    }
}

fn are_processes_bounded(wanted: u64) -> bool {
    let number = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    if super::limits::pid_max_is_ours() && number.trim().parse() == Ok(wanted) {
        return true;
    }
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if groups.contains(&format!("/{}", super::group::PREFIX)) {
        return true;
    }
    // SAFETY: system calls on a structure of ours.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::geteuid() != 0
            && libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit) == 0
            && limit.rlim_cur <= wanted
    }
}

/// Whether deaddrop's files are out of reach: not there, or nothing in them.
fn is_state_hidden(order: &Order) -> bool {
    let is_empty = |path: &Path| match fs::metadata(path) {
        Err(_) => true,
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none())
        }
        Ok(_) => fs::read(path).map_or(true, |bytes| bytes.is_empty()),
    };
    let covers = order.mounts.iter().filter_map(|mount| match mount {
        Mount::Cover { at } => Some(at),
        _ => None,
    });
    File::open(&order.lock).is_err() && covers.into_iter().all(|at| is_empty(at))
}
