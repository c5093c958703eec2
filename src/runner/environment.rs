//! The environment of a command. It contains the variables of deaddrop's own environment that are in an allow list (so
//! no token, key or setting of deaddrop), and settings that keep tools from using the network.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::LazyLock;

use serde::Deserialize;

use super::sandbox::Variable;
use crate::text::count;

/// The structure of `data/environment.toml`.
#[derive(Deserialize)]
struct EnvironmentTable {
    kept: Vec<String>,
    always: BTreeMap<String, String>,
    offline: BTreeMap<String, String>,
}

static TABLE: LazyLock<EnvironmentTable> = LazyLock::new(|| {
    toml::from_str(include_str!("data/environment.toml")).expect("a constant table")
});

/// The environment of a command. `more` contains the names to keep and the values to set from the person's settings.
pub(super) fn for_command(offline: bool, more: &[(String, Option<String>)]) -> Vec<Variable> {
    let is_kept = |name: &str| {
        TABLE.kept.iter().any(|kept| kept == name)
            || name.starts_with("LC_")
            || more.iter().any(|(one, value)| value.is_none() && one == name)
    };
    let mut environment: Vec<Variable> = std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(is_kept))
        .map(|(name, value)| Variable { name, value })
        .collect();
    for (key, value) in TABLE.always.iter().chain(TABLE.offline.iter().filter(|_| offline)) {
        set(&mut environment, key, value);
    }
    for (key, value) in more {
        if let Some(value) = value {
            set(&mut environment, key, value);
        }
    }
    environment
}

/// The most bytes of a variable on Linux, including its `=` and its final NUL.
const MAX_VARIABLE_BYTES: usize = 128 << 10;

/// The most variables of a command, and the most bytes of all together. Both are well below what a system accepts in
/// addition to arguments.
const MAX_VARIABLES: usize = 1_000;
const MAX_BYTES: usize = 512 << 10;

/// Why no program can be started with these variables; None if one can.
pub fn fault(environment: &BTreeMap<String, String>) -> Option<String> {
    let bytes: usize = environment.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if let Some(fault) = environment.iter().find_map(|(name, value)| fault_of(name, value)) {
        Some(fault)
    } else if environment.len() > MAX_VARIABLES || bytes > MAX_BYTES {
        Some(format!(
            "{} of {bytes} bytes are more than a command's environment may have ({MAX_VARIABLES}, {MAX_BYTES} bytes); put them into a file and have the command read that",
            count(environment.len(), "variable")
        ))
    } else {
        None
    }
}

fn fault_of(name: &str, value: &str) -> Option<String> {
    let shown = crate::text::named(name);
    if name.is_empty() {
        Some("a variable of the environment has no name".to_owned())
    } else if name.contains(['=', '\0']) {
        Some(format!("{shown} is no name of a variable: it holds '=' or a NUL character"))
    } else if value.contains('\0') {
        Some(format!("the variable {shown} holds a NUL character, which no environment can"))
    } else if cfg!(target_os = "linux") && name.len() + value.len() + 2 > MAX_VARIABLE_BYTES {
        Some(format!(
            "the variable {shown} of its environment is {} bytes long, more than this system takes; put it into a file and have the command read that",
            name.len() + value.len()
        ))
    } else {
        None
    }
}

/// Adds a variable, or replaces an existing one.
pub(super) fn set(
    environment: &mut Vec<Variable>,
    name: impl Into<OsString>,
    value: impl Into<OsString>,
) {
    let (name, value) = (name.into(), value.into());
    environment.retain(|other| other.name != name);
    environment.push(Variable { name, value });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn what_no_environment_can_hold_is_told() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("=", ""), ("A\0", "x"), ("A", "x\0")] {
            assert!(fault(&one(name, value)).is_some(), "{name:?} {value:?}");
        }
        for (name, value) in [("A", ""), ("A", "b=c\n"), ("with space", "x"), ("é", "é")] {
            assert_eq!(fault(&one(name, value)), None, "{name:?}");
        }
        let many = |n: usize, length: usize| {
            (0..n).map(|n| (format!("A{n}"), "x".repeat(length))).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(fault(&many(1_000, 100)), None);
        assert!(fault(&many(1_001, 1)).unwrap().starts_with("1001 variables of "));
        assert!(fault(&many(6, 100 << 10)).unwrap().contains("put them into a file"));
    }
}
