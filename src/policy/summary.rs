//! Summarizes a policy in one line of the outbox, so that the model does not learn it only from denials.

use super::shell::EVERY;
use crate::settings::Policy;
use crate::text::byte_count;

/// What a policy restricts; None if it restricts nothing.
pub fn summary(policy: &Policy) -> Option<String> {
    let Policy { name, files, shell, .. } = policy;
    let mut of_files = Vec::new();
    if files.enabled {
        of_files.extend(files.read_only.then(|| "files can only be read".to_owned()));
        of_files.extend(files.max_bytes.map(|most| {
            let subject = if files.read_only { "" } else { "files " };
            format!("{subject}up to {}", byte_count(most))
        }));
        of_files.extend(listed("only", &files.allowed));
        of_files.extend(listed("not", &files.blocked));
    } else {
        of_files.push("no file operations".to_owned());
    }
    let mut of_shell = Vec::new();
    if shell.enabled {
        of_shell.extend(listed("only", &shell.allowed));
        of_shell.extend(listed("never", &shell.blocked));
        of_shell.extend(if shell.approval.iter().any(|pattern| pattern == EVERY) {
            Some("the user is asked before each".to_owned())
        } else {
            listed("the user is asked before", &shell.approval)
        });
    }
    let mut parts = Vec::new();
    if !of_files.is_empty() {
        parts.push(of_files.join(", "));
    }
    if !shell.enabled {
        parts.push("no commands".to_owned());
    } else if !of_shell.is_empty() {
        parts.push(format!("commands: {}", of_shell.join(", ")));
    }
    (!parts.is_empty()).then(|| format!("{name}: {}", parts.join("; ")))
}

fn listed(before: &str, items: &[String]) -> Option<String> {
    let items: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
    (!items.is_empty()).then(|| format!("{before} {}", items.join(" ")))
}
