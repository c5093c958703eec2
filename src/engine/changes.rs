//! What a turn changed: whether it is recorded, and the summary for the session, the terminal and the next outbox.

use std::collections::BTreeSet;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::Engine;
use super::transaction::StoppedTurn;
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::session::record::Begin;
use crate::session::{ChangeKind, CountedNames, FileChange, Ignored, NAMED, Session, TurnChanges};
use crate::workspace::checkpoint::{
    CheckpointStore, IgnoredChange, IgnoredLoss, KeptRules, NotStored, RecordedChanges, Recorder,
    TreeChange, TreeEntry, compose, moved, unrestorable,
};
use crate::workspace::products::is_ignored_product_path;

/// The largest file whose lines are counted, in bytes.
const COUNTED_LIMIT: u64 = 1 << 20;
/// How long one file is compared; the lines that remain then count as changed.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);

/// The recorder of a turn of a session. `stopped` is present if the turn continues after a hard stop.
pub(super) fn recorder<'a>(
    store: &'a mut CheckpointStore,
    before: &Session,
    stopped: Option<StoppedTurn>,
) -> Recorder<'a> {
    let rules = earlier(before).and_then(|changed| changed.rules.as_ref());
    let rules = rules.map(|rules| store.rules(rules));
    let recorder = match stopped {
        None => Recorder::new(store),
        Some(StoppedTurn { noted, changed_since }) => {
            Recorder::resumed(store, noted, &changed_since)
        }
    };
    recorder.with_rules(rules.unwrap_or_else(|| Ok(KeptRules::default())))
}

/// What the turn of a session changed before it stopped to ask.
fn earlier(before: &Session) -> Option<&TurnChanges> {
    before.changed.as_deref().filter(|_| before.pending.is_some())
}

impl Engine {
    /// Whether a turn's changes are recorded. A run has no session that could undo them, and changes in a guest cannot be
    /// undone from here.
    pub(super) fn records(&self, begin: &Begin) -> bool {
        self.config.checkpoints && begin.session.run.is_none() && begin.guest.is_none()
    }

    /// Stores a turn's recorded changes, and returns their summary. `before` is the session before the turn; `waits` says
    /// whether the turn stops here to ask.
    pub(super) fn finish_recording(
        &mut self,
        before: &Session,
        recorded: Option<RecordedChanges>,
        waits: bool,
        observer: &mut dyn Observer,
    ) -> Option<Box<TurnChanges>> {
        let RecordedChanges { changes, rules, ignored } = recorded?;
        let earlier = earlier(before).cloned().unwrap_or_default();
        let changed = match (changes, earlier.not_kept.clone()) {
            (Err(why), _) | (Ok(_), Some(why)) => Err(why),
            (Ok(changes), None) => self
                .store_changes(earlier.records, changes, rules.filter(|_| waits))
                .map_err(|e| e.to_string()),
        };
        let changed = changed.map(|changed| {
            let ignored = [earlier.ignored, describe_ignored(ignored)].into_iter().flatten();
            TurnChanges { ignored: ignored.reduce(Ignored::and), ..changed }
        });
        Some(Box::new(changed.unwrap_or_else(|why| {
            let warning = format!("this turn cannot be undone: {why}");
            observer.event(Event::Warning(&warning));
            TurnChanges { not_kept: Some(why), ..TurnChanges::default() }
        })))
    }

    fn store_changes(
        &mut self,
        mut records: Vec<BlobId>,
        changes: Vec<TreeChange>,
        rules: Option<KeptRules>,
    ) -> Result<TurnChanges> {
        let store = &mut self.checkpoints;
        let earlier = store.read_composed(&records)?.ok_or_else(|| {
            Error::undo("what it changed before your decision is not kept any more")
        })?;
        if !changes.is_empty() {
            records.push(store.add_json(&changes)?);
        }
        let rules = rules.map(|rules| store.add_json(&rules)).transpose()?;
        store.sync()?;
        Ok(TurnChanges { rules, ..describe(store, &compose([earlier, changes]), records) })
    }
}

/// Summarizes changes of ignored places; None if there are none.
fn describe_ignored(mut places: Vec<IgnoredChange>) -> Option<Ignored> {
    let is_product = |place: &IgnoredChange| is_ignored_product_path(&place.path);
    places.sort_by_key(|place| (is_product(place), place.lost.is_none()));
    let mut summary = Ignored {
        places: places.len(),
        only_products: is_product(places.first()?),
        ..Ignored::default()
    };
    for place in places {
        match place.lost {
            Some(IgnoredLoss::Deleted) if is_product(&place) => summary.products_lost += 1,
            Some(loss) if !is_product(&place) => {
                summary.lost.add(|| describe_loss(&place.path, loss));
            }
            _ => {}
        }
        if summary.named.len() < NAMED {
            summary.named.push(place.path);
        }
    }
    Some(summary)
}

/// Says what was lost at an ignored place.
fn describe_loss(path: &str, loss: IgnoredLoss) -> String {
    match loss {
        IgnoredLoss::Deleted => format!("deleted {path}"),
        IgnoredLoss::Overwritten => path.to_owned(),
        IgnoredLoss::Within => format!("what changed in {path}"),
    }
}

/// Summarizes changes.
pub(super) fn describe(
    store: &CheckpointStore,
    changes: &[TreeChange],
    records: Vec<BlobId>,
) -> TurnChanges {
    let mut sum = TurnChanges { records, folders: folders(changes), ..TurnChanges::default() };
    for (change, why) in unrestorable(changes) {
        sum.unrestorable.add(|| format!("{} ({})", change.shown(), why.describe()));
    }
    let moves = moved(changes.iter());
    let sources: BTreeSet<&str> = moves.values().map(|from| from.path.as_str()).collect();
    let mut changes: Vec<&TreeChange> =
        changes.iter().filter(|change| !sources.contains(change.path.as_str())).collect();
    // Deletions come last, so that the named files are those that exist now.
    changes.sort_by_key(|change| change.after.is_none());
    for change in changes {
        let Some(kind) = change_kind(change) else { continue };
        let from = moves.get(&*change.path).map(|from| from.shown());
        let how = if from.is_some() { ChangeKind::Moved } else { kind };
        let (path, by_command) = (change.shown(), change.by_command);
        sum.files += 1;
        sum.by_commands += usize::from(by_command);
        if sum.named.len() < NAMED {
            let lines = lines(store, change).filter(|_| from.is_none());
            sum.named.push(FileChange { path, from, how, lines, by_command });
        }
    }
    sum
}

/// Changes of folders: changed permissions, and created or removed folders if no file in them changed.
fn folders(changes: &[TreeChange]) -> CountedNames {
    let with_files: BTreeSet<&str> = changes
        .iter()
        .filter(|change| change_kind(change).is_some())
        .flat_map(|change| change.path.match_indices('/').map(|(end, _)| &change.path[..end]))
        .collect();
    let mut folders = CountedNames::default();
    for change in changes.iter().filter(|change| change_kind(change).is_none()) {
        let mode = |entry: &Option<TreeEntry>| entry.as_ref().and_then(TreeEntry::mode);
        let path = change.shown();
        match (mode(&change.before), mode(&change.after)) {
            (Some(was), Some(is)) if was != is => {
                folders.add(|| format!("{path}/ (permissions {was:04o} -> {is:04o})"));
            }
            _ if with_files.contains(change.path.as_str()) => {}
            (None, Some(_)) => folders.add(|| format!("new {path}/")),
            (Some(_), None) => folders.add(|| format!("deleted {path}/")),
            _ => {}
        }
    }
    folders
}

/// How a file or a link changed; None for a folder.
fn change_kind(change: &TreeChange) -> Option<ChangeKind> {
    // A nested repository counts as a folder.
    let is_folder = |entry: &TreeEntry| {
        matches!(entry, TreeEntry::Folder { .. })
            || entry.not_stored() == Some(NotStored::Repository)
    };
    let file = |entry: &Option<TreeEntry>| entry.as_ref().is_some_and(|entry| !is_folder(entry));
    Some(match (file(&change.before), file(&change.after)) {
        (false, false) => return None,
        (false, true) => ChangeKind::New,
        (true, false) => ChangeKind::Deleted,
        (true, true) => match (&change.before, &change.after) {
            (Some(TreeEntry::File { blob, .. }), Some(TreeEntry::File { blob: same, .. }))
                if blob == same =>
            {
                ChangeKind::Mode
            }
            (_, Some(after)) if after.is_unreadable() => ChangeKind::Unreadable,
            _ => ChangeKind::Changed,
        },
    })
}

/// How many lines were added and removed; None if the file is too large or not text.
fn lines(store: &CheckpointStore, change: &TreeChange) -> Option<(usize, usize)> {
    let text = |entry: &Option<TreeEntry>| match entry {
        None | Some(TreeEntry::Folder { .. }) => Some(String::new()),
        Some(TreeEntry::File { blob, size, .. }) if *size <= COUNTED_LIMIT => {
            let bytes = store.blobs.read(blob).ok()??;
            String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
        }
        _ => None,
    };
    let (before, after) = (text(&change.before)?, text(&change.after)?);
    let mut config = TextDiff::configure();
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let diff = config.timeout(DIFF_TIMEOUT).diff_slices(&before, &after);
    let mut counts = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => counts.0 += 1,
            ChangeTag::Delete => counts.1 += 1,
            ChangeTag::Equal => {}
        }
    }
    Some(counts)
}
