//! Whether one policy allows what another does not, told from what they say.

use super::{Files, Policy, Shell};

impl Policy {
    /// Whether something may be done by this policy that is denied or asked about by `other`. Where that
    /// cannot be told, it may. How long a command may take is no matter.
    pub(in crate::config) fn allows_more(&self, other: &Self) -> bool {
        // Of presets it is known, also where their lists differ.
        let rank = |policy: &Self| {
            let is_preset = Self::preset(&policy.name).is_some_and(|preset| preset == *policy);
            Self::PRESETS.iter().position(|name| is_preset && *name == policy.name)
        };
        if let (Some(mine), Some(theirs)) = (rank(self), rank(other)) {
            return mine > theirs;
        }
        network(self.network) > network(other.network)
            || self.files.allow_more(&other.files)
            || self.shell.allows_more(&other.shell)
    }
}

/// What is left to the sandbox's settings may be open there.
fn network(network: Option<bool>) -> u8 {
    match network {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    }
}

impl Files {
    fn allow_more(&self, other: &Self) -> bool {
        let most = |files: &Self| files.max_bytes.unwrap_or(u64::MAX);
        self.enabled
            && (!other.enabled
                || (other.read_only && !self.read_only)
                || lacks(&self.blocked, &other.blocked)
                || opens(&self.allowed, &other.allowed)
                || most(self) > most(other))
    }
}

impl Shell {
    fn allows_more(&self, other: &Self) -> bool {
        let stops: Vec<String> = self.approval.iter().chain(&self.blocked).cloned().collect();
        self.enabled
            && (!other.enabled
                || lacks(&self.blocked, &other.blocked)
                || lacks(&stops, &other.approval)
                || opens(&self.allowed, &other.allowed))
    }
}

/// Whether a list does not hold all of another.
fn lacks(list: &[String], other: &[String]) -> bool {
    other.iter().any(|item| !list.contains(item))
}

/// Whether a list of what alone is allowed lets in what another does not; an empty one lets in all.
fn opens(list: &[String], other: &[String]) -> bool {
    !other.is_empty() && (list.is_empty() || lacks(other, list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(name: &str) -> Policy {
        Policy::preset(name).unwrap()
    }

    #[test]
    fn presets_stand_in_their_order() {
        for (n, strict) in Policy::PRESETS.into_iter().enumerate() {
            for (m, other) in Policy::PRESETS.into_iter().enumerate() {
                assert_eq!(preset(strict).allows_more(&preset(other)), n > m, "{strict} {other}");
            }
        }
    }

    #[test]
    fn whatever_is_taken_away_or_added_counts() {
        let standard = preset("standard");
        let changed = |change: fn(&mut Policy)| {
            let mut policy = preset("standard");
            change(&mut policy);
            policy.allows_more(&standard)
        };
        for opens in [
            (|p| p.network = None) as fn(&mut Policy),
            |p| p.network = Some(true),
            |p| drop(p.files.blocked.pop()),
            |p| p.files.max_bytes = None,
            |p| drop(p.shell.blocked.pop()),
            |p| drop(p.shell.approval.pop()),
            |p| p.shell.allowed.clear(),
            |p| p.shell.allowed.push("sh".to_owned()),
        ] {
            assert!(changed(opens));
        }
        for closes in [
            (|p| p.files.blocked.push("x".to_owned())) as fn(&mut Policy),
            |p| p.files.allowed.push("src".to_owned()),
            |p| p.files.read_only = true,
            |p| p.files.max_bytes = Some(1),
            |p| p.shell.enabled = false,
            |p| drop(p.shell.allowed.pop()),
            |p| {
                let asked = p.shell.approval.pop().unwrap();
                p.shell.blocked.push(asked);
            },
            |p| p.shell.timeout_seconds = Some(3_000),
        ] {
            assert!(!changed(closes));
        }
        let mut reads = preset("workspace");
        reads.files.read_only = true;
        assert!(preset("permissive").allows_more(&reads));
    }
}
