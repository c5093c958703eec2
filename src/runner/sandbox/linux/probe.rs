//! Runs in place of a command: tries to get around each mechanism, and reports which ones work.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::report::{Mechanism, MechanismSet};
use super::super::request::{Backend, MountKind, SandboxRequest};
use super::filter;

/// A file that only root can create, and only in the machine's own root.
const ADDED: &str = "/deaddrop-probe";

/// Returns the mechanisms that restrict this process.
pub(super) fn check_mechanisms(request: &SandboxRequest) -> MechanismSet {
    let mut facts = MechanismSet::default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    facts.add_if(Mechanism::PidNamespace, std::process::id() < 4);
    // Without restrictions the attempt would leave a file behind.
    let inside = surroundings().unwrap_or_default();
    let [root, network, ipc] = differences(&request.surroundings, &inside);
    facts.add_if(Mechanism::Root, request.backend != Backend::Open && root && is_own_root());
    facts.add_if(Mechanism::Network, network);
    facts.add_if(Mechanism::Ipc, ipc);
    let none = |field: &str| value(&status, field).is_some_and(|v| v.bytes().all(|b| b == b'0'));
    facts.add_if(Mechanism::Capabilities, none("CapPrm") && none("CapEff") && none("CapInh"));
    facts.add_if(Mechanism::NoNewPrivileges, value(&status, "NoNewPrivs") == Some("1"));
    let filtered = value(&status, "Seccomp") == Some("2") && are_refused();
    facts.add_if(Mechanism::Seccomp, filter::AVAILABLE && filtered);
    facts.add_if(Mechanism::Processes, are_processes_bounded(request.limits.processes));
    facts.add_if(Mechanism::Hidden, is_state_hidden(request));
    facts
}

/// Identifies this process's root, network and queues in three words.
pub(super) fn surroundings() -> io::Result<String> {
    let root = fs::metadata("/")?;
    let [network, ipc] = ["net", "ipc"].map(|of| fs::read_link(format!("/proc/self/ns/{of}")));
    let (network, ipc) = (network?, ipc?);
    Ok(format!("{}:{} {} {}", root.dev(), root.ino(), network.display(), ipc.display()))
}

/// Which of the three differ inside and outside; none if that is not known.
fn differences(outside: &str, inside: &str) -> [bool; 3] {
    let words = |text: &str| -> Option<[String; 3]> {
        text.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().ok()
    };
    match (words(outside), words(inside)) {
        (Some(outside), Some(inside)) => [0, 1, 2].map(|n| outside[n] != inside[n]),
        _ => [false; 3],
    }
}

fn value<'a>(status: &'a str, field: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}

/// Whether nothing lies over the root, the system cannot be written, and its passwords cannot be read.
fn is_own_root() -> bool {
    // From the root, `..` leads to the root, or to what is mounted over it.
    let [root, above] = ["/", "/.."].map(|path| fs::metadata(path).map(|it| (it.dev(), it.ino())));
    let kernel = OpenOptions::new().write(true).open("/proc/sys/kernel/core_pattern");
    let added = File::create_new(ADDED).and_then(|_| fs::remove_file(ADDED));
    let passwords = fs::read("/etc/shadow").unwrap_or_default();
    let is_top = root.is_ok() && root.ok() == above.ok();
    is_top && kernel.is_err() && added.is_err() && passwords.is_empty()
}

fn are_refused() -> bool {
    // SAFETY: these system calls must fail. If one does not, this process only has one more namespace or descriptor, and ends
    // soon.
    unsafe {
        libc::unshare(libc::CLONE_NEWUSER) != 0
            && libc::syscall(libc::SYS_io_uring_setup, 1, 0) == -1
            && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
            && libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EAFNOSUPPORT)
            && are_set_ids_refused()
    }
}

/// Whether no call can set a set-user-ID or set-group-ID bit. The path does not exist, so a call that is not blocked fails
/// with another error.
fn are_set_ids_refused() -> bool {
    const NOWHERE: *const libc::c_char = c"/proc/deaddrop-probe/x".as_ptr();
    let fails = |with, call, arguments: [libc::c_long; 4]| {
        let [a, b, c, d] = arguments;
        // SAFETY: system calls on integers and a constant string, which change nothing.
        let done = unsafe { libc::syscall(call, a, b, c, d) };
        done == -1 && io::Error::last_os_error().raw_os_error() == Some(with)
    };
    let name = NOWHERE as libc::c_long;
    let (here, create) = (libc::AT_FDCWD.into(), libc::O_CREAT.into());
    [0o4755, 0o2755].into_iter().all(|mode| {
        [
            (libc::SYS_fchmod, [-1, mode, 0, 0]),
            (libc::SYS_fchmodat, [here, name, mode, 0]),
            (libc::SYS_openat, [here, name, create, mode]),
            (libc::SYS_mkdirat, [here, name, mode, 0]),
            (libc::SYS_mknodat, [here, name, mode, 0]),
        ]
        .into_iter()
        .all(|(call, arguments)| fails(libc::EPERM, call, arguments))
    }) && fails(libc::ENOSYS, libc::SYS_openat2, [here, name, 0, 0])
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
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nproc);
    !rustix::process::geteuid().is_root() && limit.current.is_some_and(|limit| limit <= wanted)
}

/// Whether deaddrop's files are hidden: missing, or empty.
fn is_state_hidden(request: &SandboxRequest) -> bool {
    let is_empty = |path: &Path| match fs::metadata(path) {
        Err(_) => true,
        Ok(found) if found.is_dir() => {
            fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none())
        }
        Ok(_) => fs::read(path).map_or(true, |bytes| bytes.is_empty()),
    };
    let mut covers = request.mounts.iter().filter(|mount| mount.kind == MountKind::Cover);
    File::open(&request.lock).is_err() && covers.all(|mount| is_empty(&mount.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_no_difference() {
        assert_eq!(differences("1:2 net:[3] ipc:[4]", "1:9 net:[3] ipc:[5]"), [true, false, true]);
        assert_eq!(differences("", "1:9 net:[3] ipc:[5]"), [false; 3]);
        assert_eq!(differences("1:9 net:[3]", "1:8 net:[4] ipc:[5]"), [false; 3]);
        let here = surroundings().unwrap();
        assert_eq!(differences(&here, &here), [false; 3]);
    }
}
