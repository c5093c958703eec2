//! Programs and features that tests need and a machine may lack. Each test that is skipped says why.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::program;

/// What `deaddrop doctor` finds here under this setting of `sandbox`, by `what`.
pub(crate) fn findings(mut doctor: Command, mode: &str) -> BTreeMap<String, Value> {
    let told = doctor.args(["doctor", "--json", "--sandbox", mode]).output().unwrap().stdout;
    let told = String::from_utf8(told).unwrap();
    let findings = told.lines().map(|line| serde_json::from_str(line).unwrap());
    findings.map(|f: Value| (f["what"].as_str().unwrap().trim().to_owned(), f)).collect()
}

/// What the doctor tells of commands under this setting; None where none can be confined so.
fn confined(mode: &str) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.entry(mode.to_owned()).or_insert_with(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut doctor = Command::new(program());
        doctor.current_dir(folder.path());
        let commands = findings(doctor, mode).remove("commands").unwrap();
        (commands["well"] == true).then(|| commands["told"].as_str().unwrap().to_owned())
    });
    found.clone()
}

/// Whether commands can be confined here under this setting of `sandbox`.
pub fn has_sandbox(mode: &str) -> bool {
    let has = confined(mode).is_some();
    if !has {
        eprintln!("SKIPPED: what needs `--sandbox {mode}`, which this machine does not have");
    }
    has
}

/// Whether commands have a root of their own by `--sandbox auto`: what a project's commands need, since
/// deaddrop's own files lie in its workspace.
pub fn has_full_sandbox() -> bool {
    let found = confined("auto");
    let has = found.as_ref().is_some_and(|told| told.starts_with("full: "));
    if !has {
        let found = found.as_ref().and_then(|told| told.split_once(':')).map_or("none", |of| of.0);
        eprintln!("SKIPPED: what needs the full sandbox; this machine's is '{found}'");
    }
    has
}

/// Whether git is there.
pub fn has_git() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    let has = *HAS.get_or_init(|| {
        let asked = Command::new("git").arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    });
    if !has {
        eprintln!("SKIPPED: what needs git, which is not there");
    }
    has
}
