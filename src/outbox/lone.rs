//! Lines that stand in results without those around them, as they may be shown. What a line is may
//! only be told by the rest of its file: no line of a private key looks like one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Lone;
use super::screening::Wholes;
use crate::protocol::{Detail, Excerpt, Hit, Outcome, RelPath, Seen, tags};
use crate::secrets::{Changed, Cut, Screen, Screened};
use crate::session::Session;
use crate::text::visible_line;
use crate::workspace::Contents;

/// As many files are read for this at most.
const FILES: usize = 64;
/// As many lines of a file are looked through for one that stands elsewhere by now.
const LINES: usize = 5_000;

/// The files that the newest results of a session hold lines of: `Files` is to have them whole.
pub fn looked_into(session: &Session) -> Vec<RelPath> {
    let mut found = BTreeSet::new();
    for outcome in &session.last_results {
        match &outcome.detail {
            Detail::Found { hits, .. } => {
                found.extend(hits.iter().filter_map(|hit| RelPath::parse(&hit.path).ok()));
            }
            _ => found.extend(excerpted(outcome).cloned()),
        }
    }
    found.into_iter().take(FILES).collect()
}

/// Which file the lines beside a result are of, if there are any.
fn excerpted(outcome: &Outcome) -> Option<&RelPath> {
    outcome.detail.excerpt()?;
    let of = match &outcome.detail {
        Detail::Failed(failure) => failure.of.as_ref(),
        _ => None,
    };
    of.or_else(|| Some(outcome.detail.shown_of()?.0))
}

/// Lines of files that the results of a session show as they are, given the session as it is shown and
/// the files. Only what stands there to the letter counts: so none that is cut, or holds a secret, or is
/// another by now.
pub(super) fn shown(session: &Session, wholes: &[Contents]) -> Vec<Lone> {
    let texts = wholes.iter().filter_map(|whole| {
        let lines = std::str::from_utf8(&whole.bytes).ok()?.split('\n').collect();
        Some((whole.path.as_str(), Text { whole, lines, seen: Vec::new() }))
    });
    let mut texts: BTreeMap<&str, Text> = texts.collect();
    let mut look = |path: &str, number: usize, text: &str| {
        let Some(of) = texts.get_mut(path) else { return };
        let line = number.checked_sub(1).and_then(|at| of.lines.get(at));
        let line = line.map(|line| line.strip_suffix('\r').unwrap_or(line));
        if line == Some(text) {
            of.seen.push((number, number));
        }
    };
    let mut room = tags::EXCERPT_LINES;
    for outcome in &session.last_results {
        if let Detail::Found { hits, .. } = &outcome.detail {
            let whole = hits.iter().filter(|hit| !hit.cut_before && !hit.cut_after);
            whole.for_each(|hit| look(&hit.path, hit.line, &hit.text));
        }
        let excerpt = outcome.detail.excerpt();
        let excerpt = excerpt.filter(|excerpt| tags::has_room(excerpt, &mut room));
        if let (Some(excerpt), Some((path, _))) = (excerpt, outcome.detail.shown_of()) {
            excerpt.lines.iter().for_each(|(number, text)| look(path.as_str(), *number, text));
        }
    }
    let seen = texts.into_values().filter(|of| !of.seen.is_empty());
    let lone = |Text { whole, seen, .. }: Text| Lone {
        path: whole.path.clone(),
        seen: Seen::whole(&whole.bytes),
        lines: seen,
    };
    seen.map(lone).collect()
}

/// A file with its lines, and those of them that are shown.
struct Text<'w> {
    whole: &'w Contents,
    lines: Vec<&'w str>,
    seen: Vec<(usize, usize)>,
}

/// The files of which lines beside results are not `shown` as they were `given`.
pub(super) fn withheld_from(given: &Session, shown: &Session) -> Vec<RelPath> {
    let pairs = given.last_results.iter().zip(&shown.last_results);
    let other = pairs.filter(|(given, shown)| given.detail.excerpt() != shown.detail.excerpt());
    other.filter_map(|(given, _)| Some(given.detail.shown_of()?.0.clone())).collect()
}

/// What is known of files that results hold lines of.
#[derive(Default)]
pub(super) struct Known<'w>(BTreeMap<&'w str, File<'w>>);

struct File<'w> {
    lines: Vec<&'w str>,
    /// Those that are not shown as they are, by number.
    changed: BTreeMap<usize, Changed>,
}

impl<'w> Known<'w> {
    pub(super) fn of(wholes: &'w Wholes) -> Self {
        let known = |(path, (text, whole)): (&&'w str, &'w (Cow<str>, Option<Screened>))| {
            let changed = whole.as_ref().map(|whole| Screen::changed(text, whole));
            (*path, File { lines: text.lines().collect(), changed: changed.unwrap_or_default() })
        };
        Self(wholes.0.iter().map(known).collect())
    }

    /// The lines of an excerpt.
    pub(super) fn excerpt(&self, outcome: &mut Outcome, screen: &mut Screen) {
        let path = excerpted(outcome).map(|path| path.as_str().to_owned());
        let excerpt = match &mut outcome.detail {
            Detail::Failed(failure) => &mut failure.excerpt,
            Detail::Edited { revision: Some(revision), .. }
            | Detail::Replaced { revision: Some(revision), .. } => &mut revision.excerpt,
            _ => return,
        };
        for (number, text) in &mut excerpt.lines {
            // What is told of the rest stands behind the cut.
            let cut = text.char_indices().nth(Excerpt::LENGTH).map(|(at, _)| at);
            let (line, rest) = text.split_at(cut.unwrap_or(text.len()));
            let cut = Cut { beginning: false, end: cut.is_some() };
            if let Cow::Owned(shown) = self.line(path.as_deref(), *number, line, cut, screen) {
                *text = shown + rest;
            }
        }
    }

    /// A line that a search found.
    pub(super) fn hit(&self, hit: &mut Hit, screen: &mut Screen) {
        let cut = Cut { beginning: hit.cut_before, end: hit.cut_after };
        if let Cow::Owned(shown) = self.line(Some(&hit.path), hit.line, &hit.text, cut, screen) {
            hit.text = shown;
        }
        if let Cow::Owned(shown) = screen.name(&hit.path) {
            hit.path = shown;
        }
    }

    /// A line of a file, or, where it is `cut`, a piece of one.
    fn line<'a>(
        &self,
        path: Option<&str>,
        number: usize,
        text: &'a str,
        cut: Cut,
        screen: &mut Screen,
    ) -> Cow<'a, str> {
        let Some((path, file)) = path.and_then(|path| Some((path, self.0.get(path)?))) else {
            return screen.stray(path, number, text, cut);
        };
        let seen = visible_line(text);
        let is_cut = cut != Cut::default();
        let is_of = |line: &str| match visible_line(line) {
            line if is_cut => line.contains(&*seen),
            line => line == seen,
        };
        let shown = |line: &Changed| {
            if is_cut {
                without(&visible_line(&line.text), &visible_line(&line.shown), &seen)
            } else {
                is_of(&line.text).then(|| line.shown.clone())
            }
        };
        let at = number.checked_sub(1).and_then(|at| file.lines.get(at));
        let same = if at.is_some_and(|line| is_of(line)) {
            let Some(line) = file.changed.get(&number) else { return Cow::Borrowed(text) };
            shown(line).map(|shown| (shown, line))
        } else {
            // By its words, since lines may stand elsewhere by now.
            let mut lines = file.changed.values().take(LINES);
            let moved = lines.find_map(|line| Some((shown(line)?, line)));
            if moved.is_none() {
                return screen.stray(Some(path), number, text, cut);
            }
            moved
        };
        match same {
            Some((shown, line)) if screen.takes(path, number, line) => Cow::Owned(shown),
            _ => Cow::Borrowed(text),
        }
    }
}

/// A piece of a line without what is shown otherwise in the whole; None where it holds nothing of that.
fn without(whole: &str, shown: &str, piece: &str) -> Option<String> {
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let bytes = |(c, _): (char, char)| c.len_utf8();
    let begin: usize = whole.chars().zip(shown.chars()).take_while(same).map(bytes).sum();
    let rest = whole[begin..].chars().rev().zip(shown[begin..].chars().rev());
    let after: usize = rest.take_while(same).map(bytes).sum();
    let (end, stands) = (whole.len() - after, &shown[begin..shown.len() - after]);
    whole.match_indices(piece).find_map(|(at, piece)| {
        let to = at + piece.len();
        let (first, last) = (begin.clamp(at, to) - at, end.clamp(at, to) - at);
        (begin < to && at < end).then(|| [&piece[..first], stands, &piece[last..]].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_shown_without_what_it_holds_of_the_secret() {
        let (whole, shown) = ("é key=secret89 and more", "é key=[withheld: x] and more");
        for (piece, wanted) in [
            ("é key=sec", Some("é key=[withheld: x]")),
            ("cret89 and", Some("[withheld: x] and")),
            ("secret", Some("[withheld: x]")),
            ("=secret89 ", Some("=[withheld: x] ")),
            (" and more", None),
            ("é key=", None),
            ("other", None),
        ] {
            assert_eq!(without(whole, shown, piece).as_deref(), wanted, "{piece}");
        }
    }
}
