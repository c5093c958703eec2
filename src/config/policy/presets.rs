//! The policies that there are by themselves.

use super::{Files, LONGEST_SECONDS, Policy, Shell};

const MIB: u64 = 1 << 20;

impl Policy {
    /// The names of all presets, the strictest first and the default of `new` last.
    pub const PRESETS: [&'static str; 4] = ["restrictive", "standard", "permissive", "workspace"];

    /// The preset of that name.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::config::Policy;
    /// assert!(Policy::PRESETS.iter().all(|name| Policy::preset(name).unwrap().name == *name));
    /// assert!(Policy::preset("standrad").is_none());
    /// ```
    pub fn preset(name: &str) -> Option<Self> {
        let (files, shell, network) = match name {
            "restrictive" => (
                files(true, &[".*", "*.env", "*.key", "*.pem"], Some(MIB)),
                Shell { enabled: false, ..shell(&[], &[], &[], Some(10)) },
                Some(false),
            ),
            "standard" => (
                files(false, &[".*", "*.env", "*.key", "*.pem", "node_modules"], Some(10 * MIB)),
                shell(
                    &[
                        "bun", "node", "npm", "npx", "cat", "echo", "ls", "pwd", "head", "tail",
                        "grep", "find", "wc",
                    ],
                    &["rm -rf /", "rm -rf ~", "sudo", "chmod", "chown", "curl", "wget", "ssh"],
                    &["rm -rf", "rm -r"],
                    Some(30),
                ),
                Some(false),
            ),
            "permissive" => (
                files(false, &["*.key", "*.pem"], Some(100 * MIB)),
                shell(
                    &[],
                    &["rm -rf /", "rm -rf ~", "sudo"],
                    &["rm -rf", "rm -r", "chmod", "chown"],
                    Some(300),
                ),
                Some(true),
            ),
            // The sandbox is the wall, and what it keeps is all that is kept.
            "workspace" => (files(false, &[], None), shell(&[], &[], &[], None), None),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), files, shell, network })
    }
}

fn files(read_only: bool, blocked: &[&str], max_bytes: Option<u64>) -> Files {
    Files { enabled: true, read_only, blocked: owned(blocked), allowed: Vec::new(), max_bytes }
}

fn shell(allowed: &[&str], blocked: &[&str], approval: &[&str], seconds: Option<u64>) -> Shell {
    Shell {
        enabled: true,
        allowed: owned(allowed),
        blocked: owned(blocked),
        approval: owned(approval),
        timeout_seconds: seconds,
        max_timeout_seconds: seconds.is_none().then_some(LONGEST_SECONDS),
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
