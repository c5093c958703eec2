//! What a turn changed: whether it is recorded, and what a session, the terminal and the next outbox
//! tell of it.

use std::collections::BTreeSet;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::Engine;
use super::transaction::Stopped;
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::session::record::Begin;
use crate::session::{ChangeKind, Changed, FileChange, Ignored, NAMED, Session, Several};
use crate::workspace::checkpoint::{
    CheckpointStore, IgnoredChange, IgnoredLoss, KeptRules, NotStored, Recorder, TreeChange,
    TreeEntry, TurnChanges, compose, moved, unrestorable,
};
use crate::workspace::products::is_ignored_place;

/// Of larger files lines are not counted, in bytes.
const COUNTED: u64 = 1 << 20;
/// Lines are told apart for no longer than this a file; what is left then counts as changed.
const LONGEST: Duration = Duration::from_millis(100);

/// The recorder of a turn of a session; `stopped` is what is known of one that goes on after a hard stop.
pub(super) fn recorder<'a>(
    store: &'a mut CheckpointStore,
    before: &Session,
    stopped: Option<Stopped>,
) -> Recorder<'a> {
    let rules = earlier(before).and_then(|changed| changed.rules.as_ref());
    let rules = rules.map(|rules| store.rules(rules));
    let recorder = match stopped {
        None => Recorder::new(store),
        Some(Stopped { noted, changed_since }) => Recorder::resumed(store, noted, &changed_since),
    };
    recorder.with_rules(rules.unwrap_or_else(|| Ok(KeptRules::default())))
}

/// What the turn of a session changed before it stopped to ask.
fn earlier(before: &Session) -> Option<&Changed> {
    before.changed.as_deref().filter(|_| before.pending.is_some())
}

impl Engine {
    /// Whether what a turn changes is recorded. A run has no session that could take it back, and what a
    /// guest does stays there.
    pub(super) fn records(&self, begin: &Begin) -> bool {
        self.config.checkpoints && begin.session.run.is_none() && begin.guest.is_none()
    }

    /// What is told of a turn that this was recorded of, in a session that was like this before; `waits`:
    /// the turn stops here to ask.
    pub(super) fn changed(
        &mut self,
        before: &Session,
        recorded: Option<TurnChanges>,
        waits: bool,
        observer: &mut dyn Observer,
    ) -> Option<Box<Changed>> {
        let TurnChanges { changes, rules, ignored } = recorded?;
        let earlier = earlier(before).cloned().unwrap_or_default();
        let changed = match (changes, earlier.not_kept.clone()) {
            (Err(why), _) | (Ok(_), Some(why)) => Err(why),
            (Ok(changes), None) => self
                .tell_changes(earlier.records, changes, rules.filter(|_| waits))
                .map_err(|e| e.to_string()),
        };
        let changed = changed.map(|changed| {
            let ignored = [earlier.ignored, left_out(ignored)].into_iter().flatten();
            Changed { ignored: ignored.reduce(Ignored::and), ..changed }
        });
        Some(Box::new(changed.unwrap_or_else(|why| {
            let warning = format!("this turn cannot be undone: {why}");
            observer.event(Event::Warning(&warning));
            Changed { not_kept: Some(why), ..Changed::default() }
        })))
    }

    fn tell_changes(
        &mut self,
        mut records: Vec<BlobId>,
        changes: Vec<TreeChange>,
        rules: Option<KeptRules>,
    ) -> Result<Changed> {
        let store = &mut self.checkpoints;
        let earlier = store.read_composed(&records)?.ok_or_else(|| {
            Error::undo("what it changed before your decision is not kept any more")
        })?;
        if !changes.is_empty() {
            records.push(store.add_json(&changes)?);
        }
        let rules = rules.map(|rules| store.add_json(&rules)).transpose()?;
        store.sync()?;
        store.save_size();
        Ok(Changed { rules, ..describe(store, &compose([earlier, changes]), records) })
    }
}

/// What is told of places that rules leave out; None where there are none.
fn left_out(mut places: Vec<IgnoredChange>) -> Option<Ignored> {
    let is_product = |place: &IgnoredChange| is_ignored_place(&place.path);
    places.sort_by_key(|place| (is_product(place), place.lost.is_none()));
    let mut told = Ignored {
        places: places.len(),
        only_products: is_product(places.first()?),
        ..Ignored::default()
    };
    for place in places {
        match place.lost {
            Some(IgnoredLoss::Deleted) if is_product(&place) => told.products_lost += 1,
            Some(loss) if !is_product(&place) => told.lost.add(|| phrase(&place.path, loss)),
            _ => {}
        }
        if told.named.len() < NAMED {
            told.named.push(place.path);
        }
    }
    Some(told)
}

/// What is lost of a place.
fn phrase(path: &str, loss: IgnoredLoss) -> String {
    match loss {
        IgnoredLoss::Deleted => format!("deleted {path}"),
        IgnoredLoss::Overwritten => path.to_owned(),
        IgnoredLoss::Within => format!("what changed in {path}"),
    }
}

/// What is told of these changes.
pub(super) fn describe(
    store: &CheckpointStore,
    changes: &[TreeChange],
    records: Vec<BlobId>,
) -> Changed {
    let mut sum = Changed { records, folders: folders(changes), ..Changed::default() };
    for (change, why) in unrestorable(changes) {
        sum.unrestorable.add(|| format!("{} ({})", change.shown(), why.describe()));
    }
    let moves = moved(changes.iter());
    let sources: BTreeSet<&str> = moves.values().map(|from| from.path.as_str()).collect();
    let mut changes: Vec<&TreeChange> =
        changes.iter().filter(|change| !sources.contains(change.path.as_str())).collect();
    // Where files were moved and changed, their new places are what matters.
    changes.sort_by_key(|change| change.after.is_none());
    for change in changes {
        let Some(how) = how(change) else { continue };
        let from = moves.get(&*change.path).map(|from| from.shown());
        let how = if from.is_some() { ChangeKind::Moved } else { how };
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

/// What changed of folders: their permissions, and those that were made or removed, as far as no file in them
/// tells of that.
fn folders(changes: &[TreeChange]) -> Several {
    let holding: BTreeSet<&str> = changes
        .iter()
        .filter(|change| how(change).is_some())
        .flat_map(|change| change.path.match_indices('/').map(|(end, _)| &change.path[..end]))
        .collect();
    let mut folders = Several::default();
    for change in changes.iter().filter(|change| how(change).is_none()) {
        let mode = |what: &Option<TreeEntry>| what.as_ref().and_then(TreeEntry::mode);
        let path = change.shown();
        match (mode(&change.before), mode(&change.after)) {
            (Some(was), Some(is)) if was != is => {
                folders.add(|| format!("{path}/ (permissions {was:04o} -> {is:04o})"));
            }
            _ if holding.contains(change.path.as_str()) => {}
            (None, Some(_)) => folders.add(|| format!("new {path}/")),
            (Some(_), None) => folders.add(|| format!("deleted {path}/")),
            _ => {}
        }
    }
    folders
}

/// How a file or a link changed; None where it is a folder alone.
fn how(change: &TreeChange) -> Option<ChangeKind> {
    // A repository goes with its folder.
    let file = |what: &Option<TreeEntry>| {
        let is_none = |what: &TreeEntry| {
            matches!(what, TreeEntry::Folder { .. })
                || what.not_stored() == Some(NotStored::Repository)
        };
        what.as_ref().is_some_and(|what| !is_none(what))
    };
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

/// How many lines were added and removed; None where it is no text.
fn lines(store: &CheckpointStore, change: &TreeChange) -> Option<(usize, usize)> {
    let text = |what: &Option<TreeEntry>| match what {
        None | Some(TreeEntry::Folder { .. }) => Some(String::new()),
        Some(TreeEntry::File { blob, size, .. }) if *size <= COUNTED => {
            let bytes = store.blobs.read(blob).ok()??;
            String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
        }
        _ => None,
    };
    let (before, after) = (text(&change.before)?, text(&change.after)?);
    let mut config = TextDiff::configure();
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let diff = config.timeout(LONGEST).diff_slices(&before, &after);
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
