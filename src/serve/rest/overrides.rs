//! `policyOverrides`: changes of a policy, in the form of Agent Spaces.

use serde::{Deserialize, Serialize};

use super::ApiError;
use crate::settings::Policy;

/// The most stars that a path pattern may have before its end.
const STARS: usize = 4;
/// In a blocked path, a star also matches folders.
const ANY_FOLDERS: &str = "*/**/*";

/// Replacements for parts of a policy. Lists replace whole lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Overrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<FilesystemOverrides>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<ShellOverrides>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkOverrides>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct FilesystemOverrides {
    enabled: Option<bool>,
    read_only: Option<bool>,
    max_file_size: Option<u64>,
    blocked_paths: Option<Vec<String>>,
    allowed_paths: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct ShellOverrides {
    enabled: Option<bool>,
    allowed_commands: Option<Vec<String>>,
    blocked_patterns: Option<Vec<String>>,
    approval_required: Option<Vec<String>>,
    /// In milliseconds.
    timeout: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct NetworkOverrides {
    enabled: Option<bool>,
    allowed_domains: Option<Vec<String>>,
    blocked_domains: Option<Vec<String>>,
}

impl Overrides {
    /// Whether they request the network.
    pub(super) fn opens_network(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.enabled == Some(true))
    }

    /// Applies the changes to a policy.
    ///
    /// # Errors
    /// A requested restriction cannot be enforced.
    pub(super) fn apply(&self, mut policy: Policy) -> Result<Policy, ApiError> {
        let Self { filesystem, shell, network } = self.clone();
        let refuse =
            |path: &str, why: &str| Err(ApiError::invalid(&format!("policyOverrides.{path}"), why));
        if let Some(given) = filesystem {
            let files = &mut policy.files;
            replace(&mut files.enabled, given.enabled);
            replace(&mut files.read_only, given.read_only);
            replace(&mut files.allowed, given.allowed_paths);
            files.max_bytes = given.max_file_size.or(files.max_bytes);
            if let Some(patterns) = given.blocked_paths {
                let Some(spread) = patterns.iter().map(|it| expand(it)).collect::<Option<Vec<_>>>()
                else {
                    let why = format!("a pattern has more than {STARS} stars");
                    return refuse("filesystem.blockedPaths", &why);
                };
                files.blocked = spread.concat();
            }
        }
        if let Some(given) = shell {
            let shell = &mut policy.shell;
            replace(&mut shell.enabled, given.enabled);
            replace(&mut shell.allowed, given.allowed_commands);
            // In Agent Spaces, patterns are plain texts. Here they also count as commands, so that other spellings of the
            // same command match. As a command, a star would match everything, so it is left out.
            let commands = |patterns: &[String]| -> Vec<String> {
                patterns.iter().filter(|pattern| *pattern != "*").cloned().collect()
            };
            if let Some(patterns) = given.blocked_patterns {
                (shell.blocked, shell.blocked_texts) = (commands(&patterns), patterns);
            }
            if let Some(patterns) = given.approval_required {
                (shell.approval, shell.approval_texts) = (commands(&patterns), patterns);
            }
            match given.timeout {
                Some(0) => return refuse("shell.timeout", "it must be greater than 0"),
                Some(milliseconds) => shell.timeout_seconds = Some(milliseconds.div_ceil(1_000)),
                None => {}
            }
        }
        let network = network.unwrap_or_default();
        policy.network = network.enabled.or(policy.network);
        let names = [network.allowed_domains, network.blocked_domains];
        if policy.network != Some(false) && names.into_iter().flatten().any(|it| !it.is_empty()) {
            let why = "the network can only be open or closed as a whole: omit the domains, or close it with enabled: false";
            return refuse("network", why);
        }
        Ok(policy)
    }
}

/// Adds everything that `ceiling` forbids to a policy.
///
/// # Errors
/// The policy would still allow something that `ceiling` does not.
pub(super) fn narrowed(policy: Policy, ceiling: &Policy) -> Result<Policy, ApiError> {
    policy.narrowed(ceiling).ok_or_else(|| {
        let why = format!(
            "a space on the project's own workspace can only narrow the project's policy '{}'",
            ceiling.name
        );
        ApiError::invalid("policy", &why)
    })
}

fn replace<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

/// Expands a pattern of blocked paths, so that each star also matches folders. None if it has too many stars.
fn expand(pattern: &str) -> Option<Vec<String>> {
    let (start, end) = match pattern.strip_suffix('*') {
        Some(start) => (start.trim_end_matches('*'), "*"),
        None => (pattern, ""),
    };
    let parts: Vec<&str> = start.split('*').collect();
    if parts.len() > STARS + 1 {
        return None;
    }
    let mut spread = vec![parts[0].to_owned()];
    for part in &parts[1..] {
        let with = |star: &str| spread.iter().map(|it| format!("{it}{star}{part}")).collect();
        let (name, folders): (Vec<String>, Vec<String>) = (with("*"), with(ANY_FOLDERS));
        spread = [name, folders].concat();
    }
    Some(spread.into_iter().map(|pattern| pattern + end).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::{self, Access, Verdict};
    use crate::protocol::RelPath;

    fn standard(overrides: serde_json::Value) -> Policy {
        let overrides: Overrides = serde_json::from_value(overrides).unwrap();
        overrides.apply(Policy::preset("standard").unwrap()).ok().unwrap()
    }

    #[test]
    fn patterns_are_texts_in_a_line_and_commands_are_checked_one_by_one() {
        let policy = standard(json!({ "shell": {
            "allowedCommands": ["git log", "cat", "sh"], "blockedPatterns": ["secret", "| sh", "rm -rf /"],
            "approvalRequired": ["--force"] } }));
        let decide = |line: &str| policy::command(&policy, line, true);
        for denied in
            ["cat my-secrets.txt", "cat x | sh", "git push", "cat x && ls", "rm -r -f /", "ls"]
        {
            assert!(matches!(decide(denied), Verdict::Deny(_)), "{denied}");
        }
        assert!(matches!(decide("git log --force"), Verdict::Ask(_)));
        for allowed in ["git log -3", "cat x | cat"] {
            assert_eq!(decide(allowed), Verdict::Allow, "{allowed}");
        }
    }

    #[test]
    fn a_star_in_a_blocked_path_stands_for_folders_too() {
        let policy =
            standard(json!({ "filesystem": { "blockedPaths": ["src*key", "*/k/x", "b/*"] } }));
        for (path, blocked) in [
            ("src-key", true),
            ("src/a/my.key", true),
            ("a/k/x", true),
            ("a/b/k/x", true),
            ("b/c/d", true),
            ("a/src", false),
            ("b", false),
        ] {
            let decision =
                policy::path(&policy, Access::Read, &RelPath::parse(path).unwrap(), None);
            assert_eq!(matches!(decision, Verdict::Deny(_)), blocked, "{path}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for refused in [
            json!({ "network": { "enabled": true, "allowedDomains": ["npmjs.org"] } }),
            json!({ "shell": { "timeout": 0 } }),
            json!({ "filesystem": { "blockedPaths": ["*a*b*c*d*e"] } }),
        ] {
            let overrides: Overrides = serde_json::from_value(refused.clone()).unwrap();
            assert!(overrides.apply(Policy::preset("standard").unwrap()).is_err(), "{refused}");
        }
        for unknown in [json!({ "shel": {} }), json!({ "shell": { "allowed": [] } }), json!([1])] {
            assert!(serde_json::from_value::<Overrides>(unknown.clone()).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_narrower_policy_forbids_all_that_the_wider_one_forbids() {
        let ceiling = Policy::preset("standard").unwrap();
        let narrow = |overrides| narrowed(standard(overrides), &ceiling);
        let policy = narrow(json!({ "shell": { "blockedPatterns": ["npm"], "timeout": 60000 } }));
        let policy = policy.ok().unwrap();
        assert!(policy.shell.blocked.contains(&"sudo".to_owned()));
        assert_eq!(policy.shell.timeout_seconds, Some(30));
        for wider in [
            json!({ "network": { "enabled": true } }),
            json!({ "shell": { "allowedCommands": ["make"] } }),
            json!({ "filesystem": { "maxFileSize": 99_999_999 } }),
        ] {
            assert!(narrow(wider.clone()).is_err(), "{wider}");
        }
        assert!(narrowed(Policy::preset("permissive").unwrap(), &ceiling).is_err());
        assert!(narrowed(Policy::preset("restrictive").unwrap(), &ceiling).is_ok());
    }
}
