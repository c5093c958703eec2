//! Describes the findings under protected names, and how they were repaired, for the person and the model.

use std::io;

use super::is_git;
use super::scope::STOPPED;
use super::snapshot::EntryChange;
use crate::protocol::{Warning, WarningKind};
use crate::text::count;
use crate::workspace::names::{shown, split};

/// The most incidents that are reported individually.
const LIMIT: usize = 10;

/// Added to a warning if git was allowed to write, and created a repository.
const NO_NEW_REPOSITORY: &str = "git may write to existing repositories only. Creating one (git init, git clone) is for the user";

/// Added to a warning if the files of a stopped git operation were moved away.
const NO_STOPPED_OPERATION: &str = "stopped rebases, ams, cherry-picks and reverts are removed, because `--continue` would run their commands outside the sandbox. Finished steps and HEAD stay as they are. Finish in one command, use --abort, or leave it to the user";

/// A finding. Paths are escaped.
#[derive(Debug)]
pub(super) enum Incident {
    /// An entry was made, changed or removed, and repaired.
    Repaired { place: String, subject: Subject, change: EntryChange, repair: Repair },
    /// A repository was moved.
    Moved { from: String, to: String },
    /// A repository was removed.
    Gone { place: String },
    /// A folder cannot be read any more, so it is unknown what it contains.
    Closed { place: String, moved: io::Result<String> },
    /// A repository is new, or was not visible before.
    Appeared { place: String },
    /// A file has a new set-user-ID or set-group-ID bit.
    SetId { place: String, cleared: io::Result<()> },
    /// An entry was moved to the quarantine before deaddrop was stopped.
    Earlier { at: String },
}

/// The role of an entry for git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// An entry without a special role.
    Entry,
    /// An entry by which git recognises the repository.
    Part { is_folder: bool },
    /// A `HEAD` that makes its folder a repository.
    NewHead,
}

/// The repair of an entry.
#[derive(Debug)]
pub(super) struct Repair {
    /// Where the changed entry was moved, if it existed.
    pub(super) moved: Option<io::Result<String>>,
    /// How many of the former files were restored, and how many there were. None for a repository, because its files
    /// are not recorded.
    pub(super) restored: Option<(usize, usize)>,
}

/// One warning for each of the first incidents, and one for all others. `git_may_write` is whether a command of the
/// turn was allowed to write to repositories.
pub(super) fn warnings(incidents: Vec<Incident>, git_may_write: bool) -> Vec<Warning> {
    let any_made = |is: &dyn Fn(&str) -> bool| {
        incidents.iter().any(|incident| match incident {
            Incident::Repaired { place, change: EntryChange::Made, .. } => is(place),
            _ => false,
        })
    };
    let hints = [
        (git_may_write && any_made(&is_git)).then(|| NO_NEW_REPOSITORY.to_owned()),
        any_made(&is_stopped).then(|| NO_STOPPED_OPERATION.to_owned()),
    ];
    let more = match incidents.len().saturating_sub(LIMIT) {
        0 => None,
        more => Some(format!(
            "{} like these; moved entries are in the same quarantine folder",
            count(more, "more finding")
        )),
    };
    let sentences = incidents.into_iter().take(LIMIT).map(Incident::sentence);
    let sentences = sentences.chain(more).chain(hints.into_iter().flatten());
    sentences.map(|sentence| Warning::new(WarningKind::Guard, sentence)).collect()
}

/// Whether a path is the folder of a stopped git operation.
fn is_stopped(path: &str) -> bool {
    let (folder, name) = split(path);
    STOPPED.contains(&name) && folder.split('/').any(is_git)
}

/// Where an entry was moved; or why it could not be moved, and what to do instead.
fn moved_to(moved: io::Result<String>, instead: &str) -> String {
    match moved {
        Ok(at) => format!("it was moved to {at}"),
        Err(e) => format!("it could NOT be moved away ({e}), so {instead}"),
    }
}

impl Incident {
    fn sentence(self) -> String {
        match self {
            Self::Repaired { place, subject, change, repair } => {
                repair.sentence(&shown(&place), subject, change)
            }
            Self::Moved { from, to } => format!(
                "a command moved '{}', which is protected, to '{}': it was left there",
                shown(&from),
                shown(&to)
            ),
            Self::Gone { place } => format!(
                "a command removed '{}', which is protected, or moved it to a place that deaddrop cannot see: it cannot be put back",
                shown(&place)
            ),
            Self::Appeared { place } => format!(
                "'{}' is protected and was not seen before: a command may have made it, so check it before you use git there; it was left there",
                shown(&place)
            ),
            Self::Closed { place, moved } => format!(
                "'{}' was made unreadable while commands ran, so its contents cannot be checked: {}",
                shown(&place),
                moved_to(moved, "check it before you use git there")
            ),
            Self::SetId { place, cleared } => {
                let cleared = match cleared {
                    Ok(()) => "it was cleared".to_owned(),
                    Err(e) => format!("it could NOT be cleared ({e}), so do it yourself"),
                };
                format!(
                    "'{}' got a set-user-ID or set-group-ID bit while commands ran: {cleared}",
                    shown(&place)
                )
            }
            Self::Earlier { at } => format!(
                "a command made or changed something protected, and deaddrop was stopped before it could report this; it was moved to {at}"
            ),
        }
    }
}

impl Repair {
    fn sentence(self, place: &str, subject: Subject, change: EntryChange) -> String {
        let did = match change {
            EntryChange::Made => "made",
            EntryChange::Changed => "changed",
            EntryChange::Removed => "removed",
        };
        let (finding, users) = match subject {
            Subject::Entry => {
                (format!("a command {did} '{place}', which is protected"), ", an editor or a shell")
            }
            Subject::Part { .. } => {
                (format!("git recognises the repository by '{place}', and a command {did} it"), "")
            }
            Subject::NewHead => (
                format!(
                    "'{place}' makes its folder look like a repository, which it was not before the commands, and git would use its config"
                ),
                "",
            ),
        };
        let is_part = matches!(subject, Subject::Part { .. });
        let is_folder = subject == Subject::Part { is_folder: true };
        let was_removed = change == EntryChange::Removed;
        let moved = self
            .moved
            .map(|moved| moved_to(moved, &format!("check it before you use git{users} there")));
        let is_lost = change != EntryChange::Made && subject != Subject::NewHead;
        let back = self.restored.filter(|_| is_lost).map(|restored| match restored {
            (0, _) if is_part => {
                "it could NOT be put back, so check its folder before you use git there".to_owned()
            }
            (0, _) => "nothing could be put back".to_owned(),
            (put, of) if put < of => format!("{put} of the {of} former files were put back"),
            _ if is_folder => "the folder was created again, without its other contents".to_owned(),
            _ if was_removed => "it was put back".to_owned(),
            _ => "the former content was put back".to_owned(),
        });
        let done: Vec<String> = moved.into_iter().chain(back).collect();
        format!("{finding}: {}", done.join("; "))
    }
}
