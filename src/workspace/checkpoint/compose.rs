//! Changes one after another as one, and a change the other way round. Pure.

use std::collections::BTreeMap;

use super::Change;
use super::merge::is_same;

/// These changes, one list after the other, as one list: of each place what stood there first, and
/// what does in the end. Where it was something else in between than what the list before left, somebody
/// else changed it.
pub fn composed(lists: impl IntoIterator<Item = Vec<Change>>) -> Vec<Change> {
    let mut all: BTreeMap<String, Change> = BTreeMap::new();
    for change in lists.into_iter().flatten() {
        match all.get_mut(&change.path) {
            None => drop(all.insert(change.path.clone(), change)),
            Some(known) => {
                let goes_on = is_same(known.after.as_ref(), change.before.as_ref());
                known.mixed |= change.mixed || !goes_on;
                known.by_command |= change.by_command;
                known.ignored |= change.ignored;
                known.after = change.after;
            }
        }
    }
    let counts = |change: &Change| change.before != change.after || change.mixed;
    all.into_values().filter(counts).collect()
}

/// The same changes the other way round.
pub fn reversed(changes: Vec<Change>) -> Vec<Change> {
    let turned = |mut change: Change| {
        std::mem::swap(&mut change.before, &mut change.after);
        change
    };
    changes.into_iter().map(turned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::What;
    use super::*;

    fn change(path: &str, before: Option<u32>, after: Option<u32>) -> Change {
        let what = |mode: Option<u32>| mode.map(|mode| What::Folder { mode });
        Change::of(path.into(), what(before), what(after))
    }

    #[test]
    fn the_first_and_the_last_count_and_what_is_between_is_told() {
        let first = vec![change("a", None, Some(1)), change("b", Some(1), Some(2))];
        let then = vec![change("a", Some(1), None), change("b", Some(3), Some(4))];
        let both = composed([first, then]);
        assert_eq!(both, [Change { mixed: true, ..change("b", Some(1), Some(4)) }]);
        let back = reversed(both);
        assert_eq!(back, [Change { mixed: true, ..change("b", Some(4), Some(1)) }]);
    }
}
