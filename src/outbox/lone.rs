//! Lines that stand in results without those around them, as they may be shown. What a line is may
//! only be told by the rest of its file: no line of a private key looks like one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Lone;
use super::screening::Wholes;
use crate::protocol::{Detail, Outcome, RelPath, Seen, tags};
use crate::secrets::{Changed, Screen, Screened};
use crate::session::Session;
use crate::text::visible_line;
use crate::workspace::Contents;

/// As many files are read for this at most.
const FILES: usize = 64;
/// A shorter piece of a line is found in too many others.
const PIECE: usize = 6;
/// As many lines of a file are looked through for a piece of one.
const PIECES: usize = 5_000;

/// The files that the newest results of a session hold lines of: `Files` is to have them whole.
pub fn looked_into(session: &Session) -> Vec<RelPath> {
    let mut found = BTreeSet::new();
    for outcome in &session.last_results {
        match &outcome.detail {
            Detail::Found { shown, .. } => {
                let paths = shown.lines().filter_map(parted).map(|(path, ..)| path);
                found.extend(paths.filter_map(|path| RelPath::parse(path).ok()));
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
        if let Detail::Found { shown, .. } = &outcome.detail {
            for (path, number, text) in shown.lines().filter_map(parted) {
                look(path, number, text);
            }
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

/// A line as a search gives them, `path:number:text`.
fn parted(line: &str) -> Option<(&str, usize, &str)> {
    let (path, rest) = line.split_once(':')?;
    let (number, rest) = rest.split_once(':')?;
    Some((path, number.parse().ok()?, rest))
}

/// What is known of files that results hold lines of.
#[derive(Default)]
pub(super) struct Known(BTreeMap<String, BTreeMap<String, Changed>>);

impl Known {
    pub(super) fn of(wholes: &Wholes) -> Self {
        let changed = |(path, (text, whole)): (&&str, &(&str, Option<Screened>))| {
            let lines = whole.as_ref().map(|whole| Screen::changed(text, whole));
            let lines = lines.into_iter().flatten();
            let seen = lines.map(|line| (visible_line(&line.text).into_owned(), line));
            ((*path).to_owned(), seen.collect())
        };
        Self(wholes.0.iter().map(changed).collect())
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
            if let Cow::Owned(shown) = self.line(path.as_deref(), *number, text, screen) {
                *text = shown;
            }
        }
    }

    /// What a search found.
    pub(super) fn found<'a>(&self, text: &'a str, screen: &mut Screen) -> Cow<'a, str> {
        let mut shown = String::new();
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            match parted(line) {
                Some((path, number, rest)) => {
                    let rest = self.line(Some(path), number, rest, screen);
                    shown.push_str(&format!("{}:{number}:{rest}", screen.name(path)));
                }
                None => shown.push_str(&screen.output("SEARCH", line)),
            }
            shown.push_str(end);
        }
        if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
    }

    fn line<'a>(
        &self,
        path: Option<&str>,
        number: usize,
        text: &'a str,
        screen: &mut Screen,
    ) -> Cow<'a, str> {
        let Some((path, lines)) = path.and_then(|path| Some((path, self.0.get(path)?))) else {
            return screen.stray(path, number, text);
        };
        let seen = visible_line(text);
        // By its words, since lines may stand elsewhere by now.
        let same = match lines.get(&*seen) {
            Some(line) => Some((line.shown.clone(), line)),
            None => piece(&seen).and_then(|piece| {
                lines.iter().take(PIECES).find_map(|(whole, line)| {
                    let shown = without(whole, &visible_line(&line.shown), &seen[piece.clone()])?;
                    Some(([&seen[..piece.start], &shown, &seen[piece.end..]].concat(), line))
                })
            }),
        };
        match same {
            Some((shown, line)) if screen.takes(path, number, line) => Cow::Owned(shown),
            Some(_) => Cow::Borrowed(text),
            None => screen.line(Some(path), number, text),
        }
    }
}

/// Where in a line stands what is left of one that was cut; None where it is whole, or nothing to go by
/// is left.
fn piece(line: &str) -> Option<Range<usize>> {
    let start = if line.starts_with('…') { '…'.len_utf8() } else { 0 };
    let rest = &line[start..];
    let end = match (rest.rfind(" … ("), rest.strip_suffix('…')) {
        (_, Some(rest)) => rest.len(),
        (Some(at), None) if rest.ends_with(')') => at,
        _ => rest.len(),
    };
    (end < line.len() && end >= PIECE).then_some(start..start + end)
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
    fn what_is_left_of_a_line_is_found() {
        for (line, left) in [
            ("…middle of it…", Some("middle of it")),
            ("…the end of it", Some("the end of it")),
            ("the beginning … (9 more characters)", Some("the beginning")),
            ("the beginning … (a line of 900 bytes)", Some("the beginning")),
            ("all of it", None),
            ("…abc…", None),
        ] {
            assert_eq!(piece(line).map(|range| &line[range]), left, "{line}");
        }
    }

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
