//! Resource limits of a command.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::request::CommandLimits;
use super::{StepResult, cannot};

/// Limits this process and everything that it starts.
pub(super) fn set(limits: CommandLimits) -> StepResult<()> {
    let CommandLimits { processes, file, memory } = limits;
    // This limit does not restrict root; the pid namespace or a control group does.
    limit(Resource::Nproc, processes).map_err(cannot("limit processes"))?;
    limit(Resource::Fsize, file).map_err(cannot("limit the size of files"))?;
    limit(Resource::As, memory).map_err(cannot("limit memory"))?;
    // A core dump would be an unwanted copy of the process's memory.
    set_to(Resource::Core, 0).map_err(cannot("forbid core dumps"))
}

fn limit(which: Resource, most: u64) -> io::Result<()> {
    if most == 0 { Ok(()) } else { set_to(which, most) }
}

fn set_to(which: Resource, most: u64) -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(which);
    let most = maximum.map_or(most, |maximum| maximum.min(most));
    let current = current.map_or(most, |current| current.min(most));
    Ok(setrlimit(which, Rlimit { current: Some(current), maximum: Some(most) })?)
}

/// Whether the pid namespace has its own `/proc/sys/kernel/pid_max`. Before Linux 6.14 the value is global.
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
