//! Reads the files that a first outbox may show. [`crate::context`] ranks them.

use super::Engine;
use super::environment::PROBE;
use crate::context;
use crate::context::Offered;
use crate::error::{Error, Result};
use crate::policy::{self, Access, Verdict};
use crate::protocol::RelPath;
use crate::secrets::Redactor;
use crate::session::{FilePatterns, Session};
use crate::workspace::READ_LIMIT;
use crate::workspace::overview::Overview;
use crate::workspace::walk::{EntryKind, Walk};

/// The maximum number of files that are read on this machine, and in a guest, where each read is a round trip.
const FILE_LIMIT: usize = 20_000;
const GUEST_FILE_LIMIT: usize = 300;
/// The longest file that is shown, in bytes.
const SIZE_LIMIT: u64 = 8 << 20;

impl Engine {
    /// The files that the newest outbox of a session may show without a request; none unless it is the first.
    pub(super) fn offered(&self, session: &Session, walk: &Walk) -> Result<Offered> {
        let Some(offer) = session.offer.as_ref().filter(|_| session.sequence == 1) else {
            return Ok(Offered::default());
        };
        let policy = self.policy_of(session)?;
        let may_read = |path: &RelPath, size: u64| {
            policy::path(&policy, Access::Read, path, Some(size)) == Verdict::Allow
        };
        let mut redactor = Redactor::new(&self.config.secrets);
        let overview = Overview::of(walk, &[]);
        let unlisted = self.unlisted(offer, &overview)?;
        let unlisted = || unlisted.iter().map(|(path, size)| (path.as_str(), *size));
        let mut listed_files = listed(&overview).count() + unlisted().count();
        let most = if self.guest.is_some() { GUEST_FILE_LIMIT } else { FILE_LIMIT };
        let (mut included, mut others) = (Vec::new(), Vec::new());
        let all = listed(&overview).chain(unlisted());
        for file in context::candidates(all, &session.task, offer, most) {
            let Ok(path) = RelPath::parse(file.path) else { continue };
            // A file that replies may not read is not shown, nor one whose path contains a secret, since the path
            // would be shown with it.
            if !may_read(&path, file.size) || redactor.name(file.path) != file.path {
                continue;
            }
            // It may have been removed since the walk, or be unreadable.
            let Ok(contents) = self.read(&path, SIZE_LIMIT)? else { continue };
            let is_whole = contents.size == contents.bytes.len() as u64;
            if !is_whole || !may_read(&contents.path, contents.size) {
                continue;
            }
            if !contents.is_text() {
                listed_files -= 1;
            } else if file.included {
                included.push(contents);
            } else {
                others.push(contents);
            }
        }
        let commits = if self.guest.is_none() && self.is_repository()? {
            self.confinement();
            self.runner.commits(&self.config.sessions.join(PROBE))
        } else {
            None
        };
        let commits = commits.unwrap_or_default();
        Ok(Offered::new(&session.task, included, others, &commits, listed_files))
    }

    /// The unlisted files, such as ignored ones, that the person included by their exact paths. They may be read although
    /// they are not listed.
    fn unlisted(
        &self,
        offer: &FilePatterns,
        overview: &Overview<'_>,
    ) -> Result<Vec<(RelPath, u64)>> {
        let mut found: Vec<(RelPath, u64)> = Vec::new();
        for pattern in &offer.include {
            let Ok(path) = RelPath::parse(pattern.trim_start_matches('/')) else { continue };
            if overview.files().any(|file| file.path == path.as_str())
                || found.iter().any(|(other, _)| *other == path)
            {
                continue;
            }
            // As a pattern, this text may match other files but not the file of that name.
            let only = FilePatterns { include: vec![pattern.clone()], ..FilePatterns::default() };
            let mut itself = context::candidates(std::iter::once((path.as_str(), 1)), "", &only, 1);
            itself.retain(|file| file.included);
            if itself.is_empty() {
                continue;
            }
            if let Some(contents) = self.read(&path, READ_LIMIT)?.ok().filter(|file| file.size > 0)
            {
                found.push((path, contents.size));
            }
        }
        Ok(found)
    }

    /// Checks that each file pattern that the person included matches a file.
    pub(super) fn check_patterns(&self, session: &Session, walk: &Walk) -> Result<()> {
        let Some(offer) = session.offer.as_ref().filter(|offer| !offer.include.is_empty()) else {
            return Ok(());
        };
        let overview = Overview::of(walk, &[]);
        for pattern in &offer.include {
            let only = FilePatterns { include: vec![pattern.clone()], ..FilePatterns::default() };
            let found = context::candidates(listed(&overview), "", &only, 1);
            let is_listed = found.iter().any(|file| file.included);
            if !is_listed && self.unlisted(&only, &overview)?.is_empty() {
                return Err(Error::usage(format!(
                    "--include '{pattern}' matches no listed file. Patterns are written as in .gitignore, and ignored files are not listed: name an ignored file by its exact path from the workspace's root"
                )));
            }
        }
        Ok(())
    }
}

/// The regular files of a listing that are not empty.
fn listed<'w>(overview: &Overview<'w>) -> impl Iterator<Item = (&'w str, u64)> {
    let files = overview.files().filter(|file| file.kind == EntryKind::File && file.size > 0);
    files.map(|file| (file.path, file.size))
}
