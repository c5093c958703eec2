//! What a project is and lacks, as far as that is evident: a line of the Environment section.

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
struct Signs {
    sign: Vec<Sign>,
}

/// A sign of how the tests of a project are run, or of what it needs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sign {
    /// A pattern of paths. One such file is enough.
    files: String,
    /// A pattern of what that file contains; any text if it is empty.
    contains: String,
    /// The command that runs the tests, if it is a sign of that.
    tests: String,
    /// The tools that this takes.
    tools: Vec<String>,
    /// A script that writes the names of libraries that are missing, if it is a sign of some.
    missing: String,
}

/// How long it may take to find out which libraries are missing.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many libraries are named.
const NAMED: usize = 12;

impl Engine {
    /// Whether the project is a git repository, how its tests are run, and which tools for that are not `installed` where
    /// commands run, nor which libraries. Tools that no machine is asked for are not judged.
    pub(super) fn project(&self, installed: &[String], walk: &Walk) -> Result<String> {
        let signs = toml::from_str(include_str!("data/projects.toml"));
        let Signs { sign: signs } = signs.expect("a constant table");
        let (mut told, mut tools) = (vec!["not a git repository".to_owned()], BTreeSet::new());
        if self.is_repository()? {
            told = vec!["a git repository".to_owned()];
            tools.insert("git");
        }
        let (mut tests, mut scripts): (Vec<&str>, Vec<&str>) = <_>::default();
        for sign in &signs {
            if self.is_found(sign, walk)? {
                tests.push(&sign.tests);
                scripts.push(&sign.missing);
                tools.extend(sign.tools.iter().map(String::as_str));
            }
        }
        tests.retain(|tests| !tests.is_empty());
        tests.dedup();
        scripts.retain(|script| !script.is_empty());
        if !tests.is_empty() {
            told.push(format!("tests: {}", tests.join(", ")));
        }
        let is_missing = |tool: &&str| {
            let is_known = machine::known_tools().any(|(known, _)| known == *tool);
            is_known && !installed.iter().any(|found| found.split(' ').next() == Some(*tool))
        };
        let missing = tools.into_iter().filter(is_missing);
        told.extend(missing.map(|tool| format!("{tool}: not installed")));
        let lacking = self.lacking(&scripts);
        if !lacking.is_empty() {
            let named = first_of(&lacking, NAMED, lacking.len());
            told.push(format!("libraries that are not installed: {named}"));
        }
        Ok(told.join("; "))
    }

    /// The names of libraries that the project lacks where commands run, by these scripts.
    fn lacking(&self, scripts: &[&str]) -> Vec<String> {
        if scripts.is_empty() || self.guest.is_some() {
            return Vec::new();
        }
        let own = self.config.sessions.join(PROBE);
        let said = self.runner.inspect(&(scripts.join("\n") + "\n:"), PATIENCE, &own);
        // They come from files of the project.
        let is_name = |line: &&str| {
            line.len() < 80 && line.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        said.unwrap_or_default().lines().filter(is_name).map(str::to_owned).collect()
    }

    /// Whether the workspace is that of a git repository.
    pub(super) fn is_repository(&self) -> Result<bool> {
        Ok(self.text(".git/HEAD")?.or(self.text(".git")?).is_some())
    }

    fn is_found(&self, sign: &Sign, walk: &Walk) -> Result<bool> {
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
