//! The final report of a helper, in one line: `facts=1f;exit=0`, with `signal=9`, `lost` or `error=…` instead of `exit=0`.

use std::io::Read;

use crate::protocol::Ending;

/// The most bytes of a report that are read. A command with root's rights could send without end.
const REPORT_LIMIT: u64 = 1 << 20;

/// A mechanism that confines a command. A probe tests each mechanism by trying to get around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mechanism {
    /// When the command ends, the kernel also ends everything that it started.
    PidNamespace,
    /// The helper adopts and ends the processes that the command leaves behind.
    Subreaper,
    /// The command has its own root.
    Root,
    /// The command's only network is its own loopback device.
    Network,
    /// The command has its own System V and POSIX queues.
    Ipc,
    /// The command has no capabilities, and cannot get any.
    Capabilities,
    /// No program that the command starts gets more privileges.
    NoNewPrivileges,
    /// Landlock restricts the command's access to files, too.
    Landlock,
    /// Landlock blocks signals and abstract sockets.
    LandlockScope,
    /// Unneeded system calls are blocked.
    Seccomp,
    /// The number of processes is limited.
    Processes,
    /// deaddrop's own files are hidden.
    Hidden,
}

impl Mechanism {
    /// All mechanisms, in display order.
    pub const ALL: [Self; 12] = [
        Self::PidNamespace,
        Self::Subreaper,
        Self::Root,
        Self::Network,
        Self::Ipc,
        Self::Capabilities,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::LandlockScope,
        Self::Seccomp,
        Self::Processes,
        Self::Hidden,
    ];
}

/// A set of [`Mechanism`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MechanismSet(pub u32);

impl MechanismSet {
    /// Adds a mechanism.
    pub fn add(&mut self, mechanism: Mechanism) {
        self.0 |= 1 << mechanism as u8;
    }

    /// Adds a mechanism if it works.
    pub fn add_if(&mut self, mechanism: Mechanism, holds: bool) {
        if holds {
            self.add(mechanism);
        }
    }

    /// Whether the set contains a mechanism.
    pub fn has(self, mechanism: Mechanism) -> bool {
        self.0 & (1 << mechanism as u8) != 0
    }

    /// Whether the set contains all of these.
    pub fn have(self, mechanisms: &[Mechanism]) -> bool {
        mechanisms.iter().all(|mechanism| self.has(*mechanism))
    }
}

/// The report of a helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) struct HelperReport {
    /// The mechanisms that work.
    pub(in crate::runner) facts: MechanismSet,
    /// How the command ended.
    pub(in crate::runner) ending: Ending,
}

impl HelperReport {
    /// Reads a report. None if the helper ended without a report.
    pub(in crate::runner) fn read(from: impl Read) -> Option<Self> {
        let mut text = Vec::new();
        // A read error counts as the end of the report.
        let _ = from.take(REPORT_LIMIT).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let (whole, _) = text.rsplit_once('\n')?;
        Self::parse(whole.lines().next_back()?)
    }

    /// Formats a report as one line, without a line terminator.
    pub(in crate::runner) fn line(facts: MechanismSet, ending: &str) -> String {
        format!("facts={:x};{}", facts.0, ending.replace('\n', " "))
    }

    fn parse(line: &str) -> Option<Self> {
        let (facts, ending) = line.strip_prefix("facts=")?.split_once(';')?;
        let facts = MechanismSet(u32::from_str_radix(facts, 16).ok()?);
        let (key, value) = ending.split_once('=').unwrap_or((ending, ""));
        let ending = match key {
            "exit" => Ending::Exited(value.parse().ok()?),
            "signal" => Ending::Signalled(value.parse().ok()?),
            "lost" => Ending::Lost,
            "error" => Ending::NotStarted(value.to_owned()),
            _ => return None,
        };
        Some(Self { facts, ending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<HelperReport> {
        HelperReport::read(text.as_bytes())
    }

    #[test]
    fn the_last_whole_line_is_the_report() {
        let mut facts = MechanismSet::default();
        facts.add(Mechanism::PidNamespace);
        facts.add(Mechanism::Hidden);
        let report = HelperReport { facts, ending: Ending::Exited(5) };
        let said = format!("{}\n", HelperReport::line(facts, "exit=5"));
        assert_eq!(read(&said).as_ref(), Some(&report));
        assert!(facts.has(Mechanism::Hidden) && !facts.has(Mechanism::Seccomp));
        let forged = "error=forged\nfacts=ffff;error=forged\n";
        assert_eq!(read(&format!("{forged}{said}facts=1;ex")), Some(report));
        assert_eq!(read(&format!("{said}y\n")), None);
        assert_eq!(read("facts=1;exit=5"), None);
        assert_eq!(read("facts=1;error=a\nb\n"), None);
        assert_eq!(read(""), None);
    }
}
