//! What a command may use up.
#![allow(unsafe_code)]

use std::io;

use super::super::request::Limits;
use super::{Step, while_};

/// Bounds this process and what it starts.
pub(super) fn set(limits: Limits) -> Step<()> {
    // Does not bind root, for whom the pid namespace does where it can.
    limit(libc::RLIMIT_NPROC, limits.processes).map_err(while_("limit processes"))?;
    limit(libc::RLIMIT_FSIZE, limits.file).map_err(while_("limit the size of files"))?;
    limit(libc::RLIMIT_AS, limits.memory).map_err(while_("limit memory"))?;
    // A core would be a copy of memory that nobody asked for.
    set_to(libc::RLIMIT_CORE, 0).map_err(while_("forbid core dumps"))
}

fn limit(which: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    if most == 0 { Ok(()) } else { set_to(which, most) }
}

fn set_to(which: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    // SAFETY: system calls on a structure of ours.
    unsafe {
        let mut now: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(which, &raw mut now) != 0 {
            return Err(io::Error::last_os_error());
        }
        let most = most.min(now.rlim_max);
        let wanted = libc::rlimit { rlim_cur: most.min(now.rlim_cur), rlim_max: most };
        if libc::setrlimit(which, &raw const wanted) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Whether `/proc/sys/kernel/pid_max` is that of the pid namespace; before Linux 6.14 it is that of
/// the whole machine.
pub(super) fn pid_max_is_ours() -> bool {
    let system = rustix::system::uname();
    system.release().to_str().is_ok_and(|release| at_least(release, (6, 14)))
}

fn at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        for (release, newer) in [
            ("6.14.0-29-generic", true),
            ("6.18.44-fc", true),
            ("7.0-rc1", true),
            ("6.9.12", false),
            ("5.15.167.4-microsoft-standard-WSL2", false),
            ("nonsense", false),
        ] {
            assert_eq!(at_least(release, (6, 14)), newer, "{release}");
        }
    }
}
