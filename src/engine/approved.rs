//! The commands that the person has approved permanently. Each has a file in a folder beside the sessions, where neither
//! replies nor confined commands can write. A file counts only if its name is the digest of its content.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Error, Result};
use crate::policy::Verdict;
use crate::protocol::{Digest, Operation, ShellCommand};
use crate::settings::Config;

/// The folder's name.
const FOLDER: &str = "approved";
/// The longest file that is read, in bytes. Replies are shorter, so no command is longer.
const LIMIT: u64 = 32 << 20;

/// An approved command. A command must match in all fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedCommand {
    /// The command line.
    pub command: String,
    /// The folder that it starts in; None for the workspace.
    pub cwd: Option<String>,
    /// The variables that it sets.
    pub env: BTreeMap<String, String>,
    /// The workspace, or the guest, that it runs in.
    pub place: String,
    /// Whether protected names are guarded from it there.
    pub guarded: bool,
}

/// The approved commands of a project.
#[derive(Debug, Clone)]
pub struct ApprovedCommands {
    folder: PathBuf,
    place: String,
}

impl ApprovedCommands {
    /// The approved commands of a project. Only those approved for its present workspace or guest count.
    pub fn of(config: &Config) -> Self {
        let place = match &config.guest {
            Some(guest) => format!("guest {}", guest.label()),
            None => config.workspace_name(),
        };
        Self { folder: config.sessions.join(FOLDER), place }
    }

    /// The policy's `decision` about an operation, or Allow if the policy asks and the command is approved permanently.
    pub fn relax(&self, decision: Verdict, operation: &Operation, guarded: bool) -> Verdict {
        match (&decision, operation) {
            (Verdict::Ask(ask), Operation::Run(run))
                if ask.always && self.contains(&self.command(run, guarded)) =>
            {
                Verdict::Allow
            }
            _ => decision,
        }
    }

    fn command(&self, run: &ShellCommand, guarded: bool) -> ApprovedCommand {
        ApprovedCommand {
            command: run.command.clone(),
            cwd: run.cwd.as_ref().map(|cwd| cwd.as_str().to_owned()),
            env: run.env.clone(),
            place: self.place.clone(),
            guarded,
        }
    }

    fn contains(&self, command: &ApprovedCommand) -> bool {
        let text = text(command);
        self.is_own()
            && atomic::read_own_within(&self.path(&text), LIMIT).is_ok_and(|it| it == text)
    }

    /// Stores a command that the person approves permanently.
    pub(super) fn add(&self, run: &ShellCommand, guarded: bool) -> Result<()> {
        let fail = |e| Error::io("make the folder", &self.folder, e);
        fs::create_dir_all(&self.folder).map_err(fail)?;
        if !self.is_own() {
            return Err(fail(io::Error::other("it is a symbolic link")));
        }
        let text = text(&self.command(run, guarded));
        atomic::write_private(&self.path(&text), &text)
    }

    /// All approved commands, also those for other workspaces, sorted.
    pub fn list(&self) -> Vec<ApprovedCommand> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let read = |path: PathBuf| -> Option<ApprovedCommand> {
            let text = atomic::read_own_within(&path, LIMIT).ok()?;
            (path == self.path(&text)).then(|| serde_json::from_slice(&text).ok())?
        };
        let found = entries.filter_map(|entry| read(entry.path()));
        let mut found: Vec<ApprovedCommand> =
            if self.is_own() { found.collect() } else { Vec::new() };
        found.sort();
        found
    }

    /// Removes the approval of a command, so that it is asked about again.
    ///
    /// # Errors
    /// Its file cannot be removed.
    pub fn forget(&self, command: &ApprovedCommand) -> Result<()> {
        let path = self.path(&text(command));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
            _ => Ok(()),
        }
    }

    fn path(&self, text: &[u8]) -> PathBuf {
        self.folder.join(format!("{}.json", Digest::of(text).as_str()))
    }

    /// Whether the folder is a folder and not a link.
    fn is_own(&self) -> bool {
        fs::symlink_metadata(&self.folder).is_ok_and(|found| found.is_dir())
    }
}

/// The content of a command's file.
///
/// # Panics
/// Never: texts always become JSON.
fn text(command: &ApprovedCommand) -> Vec<u8> {
    serde_json::to_vec(command).expect("texts become JSON")
}
