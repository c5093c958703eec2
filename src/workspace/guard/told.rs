//! What the guard found and did, in words for the person and the LLM.

use std::io;

use super::snapshot::Change;
use crate::text::count;
use crate::workspace::names::shown;

/// As many findings are told one by one.
const LIMIT: usize = 10;

/// One finding. Places are escaped.
pub(super) enum Told {
    /// Something was made or changed, and was moved, or could not be; of what stood there before
    /// so many files of so many were put back.
    Quarantined {
        place: String,
        change: Change,
        went: io::Result<String>,
        back: Option<(usize, usize)>,
    },
    /// Something is gone; so many files of so many were put back.
    Removed { place: String, back: (usize, usize) },
    /// What git knows a repository by is gone, or something else was in its place.
    Unmade { place: String, went: Option<io::Result<String>>, is_back: bool, is_folder: bool },
    /// A folder that is watched looks like a repository by this `HEAD`.
    Bare { place: String, went: io::Result<String> },
    /// A repository is somewhere else.
    Moved { from: String, to: String },
    /// A repository is nowhere.
    Gone { place: String },
    /// A folder is closed, so that nobody knows what is in it.
    Closed { place: String, went: io::Result<String> },
    /// A repository is new, or was only not seen before.
    Appeared { place: String },
    /// A file had a set-user-ID or set-group-ID bit that it did not have before.
    SetId { place: String, went: io::Result<()> },
    /// Something was moved before deaddrop was stopped.
    Earlier { at: String },
}

/// A sentence for each, the first ten in full.
pub(super) fn sentences(told: impl IntoIterator<Item = Told>) -> Vec<String> {
    let mut told = told.into_iter();
    let mut sentences: Vec<String> = told.by_ref().take(LIMIT).map(Told::sentence).collect();
    match told.count() {
        0 => {}
        more => sentences.push(format!(
            "{} like these; what was moved is in the same quarantine folder",
            count(more, "more finding")
        )),
    }
    sentences
}

/// Where something went; or why it did not, and what to do.
fn moved(went: io::Result<String>, instead: &str) -> String {
    match went {
        Ok(at) => format!("it was moved to {at}"),
        Err(e) => format!("it could NOT be moved away ({e}), so {instead}"),
    }
}

impl Told {
    fn sentence(self) -> String {
        match self {
            Self::Quarantined { place, change, went, back } => {
                let did = if change == Change::Made { "made" } else { "changed" };
                let went = moved(went, "look at it before you use git, an editor or a shell there");
                let back = match (change, back) {
                    (Change::Changed, Some((0, _))) => {
                        "; the former content is not known, so nothing was put back"
                    }
                    (Change::Changed, Some((put, of))) if put < of => {
                        "; of the former content a part was put back"
                    }
                    (Change::Changed, Some(_)) => "; the former content was put back",
                    _ => "",
                };
                format!("a command {did} '{}', which is protected: {went}{back}", shown(&place))
            }
            Self::Removed { place, back: (put, of) } => {
                let back = match put {
                    0 => "what it held is not known, so it could not be put back".to_owned(),
                    put if put == of => "it was put back".to_owned(),
                    put => {
                        format!("{put} of its {of} files were put back, the others are not known")
                    }
                };
                format!("a command removed '{}', which is protected: {back}", shown(&place))
            }
            Self::Unmade { place, went, is_back, is_folder } => {
                let did = match went {
                    None => "removed it".to_owned(),
                    Some(Ok(at)) => {
                        format!("put something else in its place, which was moved to {at}")
                    }
                    Some(Err(e)) => format!(
                        "put something else in its place, which could NOT be moved away ({e})"
                    ),
                };
                let back = match (is_back, is_folder) {
                    (true, true) => "an empty folder was made there, what was in it is not known",
                    (true, false) => "it was put back as it was",
                    (false, _) => {
                        "it could NOT be put back, so look at the folder around it before you use git there"
                    }
                };
                format!(
                    "git needs '{}' to know the repository, and a command {did}: {back}",
                    shown(&place)
                )
            }
            Self::Bare { place, went } => {
                let went = moved(went, "look at it before you use git there");
                format!(
                    "'{}' makes its folder look like a repository of its own, whose config git would obey, and was not there before the commands: {went}",
                    shown(&place)
                )
            }
            Self::Moved { from, to } => format!(
                "a command moved '{}', which is protected, to '{}': it was left there",
                shown(&from),
                shown(&to)
            ),
            Self::Gone { place } => format!(
                "a command removed '{}', which is protected, or moved it out of sight: it cannot be put back",
                shown(&place)
            ),
            Self::Appeared { place } => format!(
                "'{}' was not seen before, and is protected: it cannot be told whether a command made it, so it was left there; look at it before you use git there",
                shown(&place)
            ),
            Self::Closed { place, went } => {
                let went = moved(went, "look into it before you use git there");
                format!(
                    "'{}' was closed while commands ran, so that nobody can look into it: {went}",
                    shown(&place)
                )
            }
            Self::SetId { place, went } => {
                let went = match went {
                    Ok(()) => "it was cleared".to_owned(),
                    Err(e) => format!("it could NOT be cleared ({e}), so do it yourself"),
                };
                format!(
                    "'{}' got a set-user-ID or set-group-ID bit while commands ran: {went}",
                    shown(&place)
                )
            }
            Self::Earlier { at } => format!(
                "a command made or changed something protected, and deaddrop was stopped after it had moved that to {at}"
            ),
        }
    }
}
