//! Lines that stand in results without those around them, as they may be shown. What a line is may
//! only be told by the rest of its file: no line of a private key looks like one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Files;
use crate::protocol::{Detail, Excerpt, Outcome, RelPath};
use crate::secrets::{Changed, Screen};
use crate::session::Session;
use crate::text::visible_line;

/// As many files are read for this at most.
const FILES: usize = 64;
/// A shorter piece of a line is found in too many others.
const PIECE: usize = 6;
/// As many lines of a file are looked through for a piece of one.
const PIECES: usize = 5_000;

/// The files that the newest results of a session hold lines of: [`Files::wholes`] is to have them.
pub fn looked_into(session: &Session) -> Vec<RelPath> {
    let mut found = BTreeSet::new();
    for outcome in &session.last_results {
        match &outcome.detail {
            Detail::Found { shown, .. } => {
                let paths = shown.lines().filter_map(parted).map(|(path, ..)| path);
                found.extend(paths.filter_map(|path| RelPath::parse(path).ok()));
            }
            _ => found.extend(excerpted(outcome).filter_map(|path| RelPath::parse(path).ok())),
        }
    }
    found.into_iter().take(FILES).collect()
}

/// Which file an excerpt is of; of a failure, which its sentence names.
fn excerpted(outcome: &Outcome) -> impl Iterator<Item = &str> {
    let excerpt = outcome.detail.excerpt().is_some();
    let (path, reason) = match &outcome.detail {
        Detail::Edited { path, .. } | Detail::Replaced { path, .. } => (Some(path.as_str()), ""),
        Detail::Failed(failure) => {
            (failure.fresh.as_ref().map(|fresh| fresh.path.as_str()), failure.reason.as_str())
        }
        _ => (None, ""),
    };
    let named = reason.split('\'').skip(1).step_by(2).take(2);
    path.into_iter().chain(named).filter(move |_| excerpt)
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
    pub(super) fn of(files: &Files, screen: &Screen) -> Self {
        let mut known = BTreeMap::new();
        for whole in &files.wholes {
            let Ok(text) = std::str::from_utf8(&whole.bytes) else { continue };
            known.entry(whole.path.to_string()).or_insert_with(|| {
                let changed = screen.changed(whole.path.as_str(), text).into_iter();
                changed.map(|line| (visible_line(&line.text).into_owned(), line)).collect()
            });
        }
        Self(known)
    }

    /// The lines of an excerpt.
    pub(super) fn excerpt(&self, outcome: &mut Outcome, screen: &mut Screen) {
        let path = excerpted(outcome).find(|path| self.0.contains_key(*path));
        let path = path.or(excerpted(outcome).next()).map(str::to_owned);
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
        let piece = piece(&seen);
        // By its words, since lines may stand elsewhere by now.
        let same = lines.get(&*seen).or_else(|| {
            let has =
                |(whole, _): &(&String, &Changed)| piece.is_some_and(|piece| whole.contains(piece));
            lines.iter().take(PIECES).find(has).map(|(_, line)| line)
        });
        match same {
            Some(changed) if screen.takes(path, number, changed) => Cow::Owned(cut(&changed.shown)),
            Some(_) => Cow::Borrowed(text),
            None => screen.line(Some(path), number, text),
        }
    }
}

/// What is left of a line that was cut; None where it is whole, or nothing to go by is left.
fn piece(line: &str) -> Option<&str> {
    let begin = line.strip_prefix('…').unwrap_or(line);
    let end = match (begin.rfind(" … ("), begin.strip_suffix('…')) {
        (_, Some(end)) => end,
        (Some(at), None) if begin.ends_with(')') => &begin[..at],
        _ => begin,
    };
    (end.len() < line.len() && end.len() >= PIECE).then_some(end)
}

/// A line as an excerpt holds it, in which nothing that stands for a secret is cut.
fn cut(line: &str) -> String {
    let Some((end, _)) = line.char_indices().nth(Excerpt::LENGTH) else { return line.to_owned() };
    let goes_on = line[..end].rfind("[withheld: ").and_then(|at| {
        let close = at + line[at..].find(']')? + 1;
        (close > end).then_some(close)
    });
    match goes_on {
        Some(close) if close == line.len() => line.to_owned(),
        Some(close) => format!("{} …", &line[..close]),
        None => Excerpt::line(line),
    }
}
