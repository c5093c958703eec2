//! What a helper says as its last word, in one line: `facts=1f;exit=0`, or `signal=9`, `lost` or
//! `error=…` in the place of `exit=0`.

use std::io::Read;

use crate::protocol::Ending;

/// More than a helper ever says; what a command with root's rights might send is not read on and on.
const REPORT_LIMIT: u64 = 1 << 20;

/// What confines a command, found to hold by a probe that tried to get around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mechanism {
    /// What the command starts ends with it, by the kernel.
    PidNamespace,
    /// What the command leaves behind is adopted and ended.
    Subreaper,
    /// The command has no root but one built for it.
    Root,
    /// No network but its own loopback.
    Network,
    /// System V and POSIX queues of its own.
    Ipc,
    /// No capability is left, nor can one be got.
    Capabilities,
    /// No program that it starts gets more rights.
    NoNewPrivileges,
    /// Landlock holds too.
    Landlock,
    /// Signals and abstract sockets do not pass Landlock.
    LandlockScope,
    /// System calls that nobody needs are refused.
    Seccomp,
    /// The number of processes is bounded.
    Processes,
    /// deaddrop's own files are out of sight.
    Hidden,
}

impl Mechanism {
    /// All, in the order in which they are told.
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
    /// Adds one.
    pub fn add(&mut self, mechanism: Mechanism) {
        self.0 |= 1 << mechanism as u8;
    }

    /// Adds one if it holds.
    pub fn add_if(&mut self, mechanism: Mechanism, holds: bool) {
        if holds {
            self.add(mechanism);
        }
    }

    /// Whether it is in.
    pub fn has(self, mechanism: Mechanism) -> bool {
        self.0 & (1 << mechanism as u8) != 0
    }

    /// Whether all of these are in.
    pub fn have(self, mechanisms: &[Mechanism]) -> bool {
        mechanisms.iter().all(|mechanism| self.has(*mechanism))
    }
}

/// What a helper reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::runner) struct HelperReport {
    /// What was found to hold.
    pub(in crate::runner) facts: MechanismSet,
    /// How the command ended.
    pub(in crate::runner) ending: Ending,
}

impl HelperReport {
    /// None where the helper ended without a word.
    pub(in crate::runner) fn read(from: impl Read) -> Option<Self> {
        let mut text = Vec::new();
        // What cannot be read was not said.
        let _ = from.take(REPORT_LIMIT).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let (whole, _) = text.rsplit_once('\n')?;
        Self::parse(whole.lines().next_back()?)
    }

    /// The report as one line, without its end.
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
