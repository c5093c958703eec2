//! A line of the Environment section: how the project is tested, and what it needs that is not installed.

use std::collections::BTreeSet;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;

use super::Engine;
use super::environment::PROBE;
use crate::error::Result;
use crate::machine;
use crate::protocol::RelPath;
use crate::text::first_of;
use crate::workspace::READ_LIMIT;
use crate::workspace::walk::{EntryKind, Walk};

#[derive(Deserialize)]
struct ProjectSigns {
    sign: Vec<ProjectSign>,
}

/// A sign of how a project's tests are run, or of what it needs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProjectSign {
    /// A pattern of paths. One matching file is enough.
    files: String,
    /// A pattern that the file must contain; empty for none.
    contains: String,
    /// The command that runs the tests; empty if the sign names none.
    tests: String,
    /// The tools that the command needs.
    tools: Vec<String>,
    /// A script that prints the names of missing libraries; empty for none.
    missing: String,
}

/// How long the scripts may run.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(2);
/// How many missing libraries are named.
const NAMED: usize = 12;

impl Engine {
    /// Describes the project: whether it is a git repository, how its tests are run, and which tools and libraries for that
    /// are not installed where commands run. `installed` are the tools that were found there; tools that are never looked up
    /// are not reported as missing.
    pub(super) fn project(&self, installed: &[String], walk: &Walk) -> Result<String> {
        let signs = toml::from_str(include_str!("data/projects.toml"));
        let ProjectSigns { sign: signs } = signs.expect("a constant table");
        let (mut facts, mut tools) = (vec!["not a git repository".to_owned()], BTreeSet::new());
        if self.is_repository()? {
            facts = vec!["a git repository".to_owned()];
            tools.insert("git");
        }
        let (mut tests, mut scripts): (Vec<&str>, Vec<&str>) = <_>::default();
        for sign in &signs {
            if self.is_present(sign, walk)? {
                tests.push(&sign.tests);
                scripts.push(&sign.missing);
                tools.extend(sign.tools.iter().map(String::as_str));
            }
        }
        tests.retain(|tests| !tests.is_empty());
        tests.dedup();
        scripts.retain(|script| !script.is_empty());
        if !tests.is_empty() {
            facts.push(format!("tests: {}", tests.join(", ")));
        }
        let is_missing = |tool: &&str| {
            machine::TOOLS.contains(tool)
                && !installed.iter().any(|found| found.split(' ').next() == Some(*tool))
        };
        let missing = tools.into_iter().filter(is_missing);
        facts.extend(missing.map(|tool| format!("{tool}: not installed")));
        let libraries = self.missing_libraries(&scripts);
        if !libraries.is_empty() {
            let named = first_of(&libraries, NAMED, libraries.len());
            facts.push(format!("libraries that are not installed: {named}"));
        }
        Ok(facts.join("; "))
    }

    /// Runs these scripts where commands run, and returns the names of missing libraries that they print.
    fn missing_libraries(&self, scripts: &[&str]) -> Vec<String> {
        if scripts.is_empty() || self.guest.is_some() {
            return Vec::new();
        }
        let own = self.config.sessions.join(PROBE);
        let output = self.runner.inspect(&(scripts.join("\n") + "\n:"), SCRIPT_TIMEOUT, &own);
        // The names come from files of the project, so they are not trusted.
        let is_name = |line: &&str| {
            line.len() < 80 && line.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        output.unwrap_or_default().lines().filter(is_name).map(str::to_owned).collect()
    }

    /// Whether the workspace is a git repository or worktree.
    pub(super) fn is_repository(&self) -> Result<bool> {
        Ok(self.text(".git/HEAD")?.or(self.text(".git")?).is_some())
    }

    fn is_present(&self, sign: &ProjectSign, walk: &Walk) -> Result<bool> {
        let [files, contains] = [&sign.files, &sign.contains]
            .map(|pattern| Regex::new(pattern).expect("a constant pattern"));
        let listed = walk.files().filter(|file| file.kind == EntryKind::File);
        for file in listed.filter(|file| files.is_match(file.path)) {
            if self.text(file.path)?.is_some_and(|text| contains.is_match(&text)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The beginning of a file; None if it cannot be read.
    fn text(&self, path: &str) -> Result<Option<String>> {
        let Ok(path) = RelPath::parse(path) else { return Ok(None) };
        let file = self.read(&path, READ_LIMIT)?.ok();
        Ok(file.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()))
    }
}
