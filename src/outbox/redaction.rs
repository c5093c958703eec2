//! What an outbox shows of files and results, without the secrets in it. Pure: what is shown is a copy.
//!
//! Everything is redacted before it is shortened. What a line is may only be told by the rest of its file,
//! since no line of a private key looks like one: so a part of a file, and a line that a search or an edit
//! shows, is taken from the whole file, redacted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::contents::whole_lines;
use super::{Files, SearchLines};
use crate::config::Secrets;
use crate::protocol::operations::Encoding;
use crate::protocol::{
    Capture, Detail, Excerpt, Failure, HIT_WIDTH, Hit, Outcome, Output, RelPath, Seen, tags,
};
use crate::secrets::{Changed, Cut, Redacted, Redactor};
use crate::session::Session;
use crate::text::visible_line;
use crate::workspace::Contents;

/// As many files are read whole at most for lines that results show.
const FILES: usize = 64;
/// As many lines of a file are looked through for one that is elsewhere by now.
const LINES: usize = 5_000;

const SAID: &str = "what you said";

/// The files that the newest results of a session show lines of: [`Files`] is to have them whole.
pub fn files_with_lines(session: &Session) -> Vec<RelPath> {
    let mut found = BTreeSet::new();
    for outcome in &session.last_results {
        match &outcome.detail {
            Detail::Found { hits, .. } => {
                found.extend(hits.iter().filter_map(|hit| RelPath::parse(&hit.path).ok()));
            }
            _ => found.extend(excerpt_path(outcome).cloned()),
        }
    }
    found.into_iter().take(FILES).collect()
}

/// Which file the lines beside a result are of, if there are any.
fn excerpt_path(outcome: &Outcome) -> Option<&RelPath> {
    outcome.detail.excerpt()?;
    let of = match &outcome.detail {
        Detail::Failed(failure) => failure.of.as_ref(),
        _ => None,
    };
    of.or_else(|| Some(outcome.detail.shown_of()?.0))
}

/// What the person is to be told of their own words in an outbox, which are shown as they are: sentences
/// on what looks like a secret.
pub fn words_messages(text: &str, secrets: &Secrets) -> Vec<String> {
    let mut screen = Redactor::new(secrets);
    screen.words(SAID, text);
    screen.told()
}

/// A whole file of which parts or lines are shown.
struct Whole<'a> {
    contents: &'a Contents,
    text: Cow<'a, str>,
    /// Where its lines begin.
    starts: Vec<usize>,
    /// Without its secrets; None if the person released it.
    redacted: Option<Redacted<'a>>,
    /// The lines that are not shown as they are, by number.
    changed: BTreeMap<usize, Changed>,
}

impl<'a> Whole<'a> {
    fn new(contents: &'a Contents, screen: &Redactor) -> Self {
        let text = String::from_utf8_lossy(&contents.bytes);
        let path = contents.path.as_str();
        let redacted = match &text {
            Cow::Borrowed(text) => screen.look(path, text),
            Cow::Owned(text) => screen.look(path, text).map(Redacted::into_owned),
        };
        let changed = redacted.as_ref().map(|redacted| Redactor::changed(&text, redacted));
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        let starts = std::iter::once(0).chain(ends.map(|end| end + 1)).collect();
        Self { contents, starts, redacted, changed: changed.unwrap_or_default(), text }
    }

    /// The line with that number, from 1.
    fn line(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        Some(self.text[start..].lines().next().unwrap_or_default())
    }
}

/// What is known for redacting one outbox.
pub(super) struct Redaction<'a> {
    screen: Redactor,
    wholes: BTreeMap<&'a str, Whole<'a>>,
}

impl<'a> Redaction<'a> {
    pub(super) fn new(files: &'a Files, secrets: &Secrets) -> Self {
        let text = |file: &'a Contents| String::from_utf8_lossy(&file.bytes);
        let known = files.secrets.iter().map(|file| (file.path.as_str(), text(file)));
        let screen = Redactor::knowing(secrets, known);
        let whole = |file: &'a Contents| (file.path.as_str(), Whole::new(file, &screen));
        Self { wholes: files.wholes.iter().map(whole).collect(), screen }
    }

    /// What the person is to be told of what was found: a sentence each.
    pub(super) fn messages(&self) -> Vec<String> {
        self.screen.told()
    }

    /// The texts of all requested and offered files, in their order; empty for what could not be read.
    pub(super) fn texts(&mut self, files: &'a Files) -> [Vec<Cow<'a, str>>; 2] {
        let requested = files.requested.iter().map(|file| match &file.contents {
            Ok(contents) => self.text(contents),
            Err(_) => Cow::default(),
        });
        let requested = requested.collect();
        let offered = files.offered.iter().flat_map(|offered| &offered.files);
        [requested, offered.map(|contents| self.text(contents)).collect()]
    }

    fn text(&mut self, contents: &'a Contents) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(whole_lines(contents));
        let (path, screen) = (contents.path.as_str(), &mut self.screen);
        let Some(lines) = contents.lines else {
            return redacted(text, |text| screen.contents(path, text));
        };
        let whole = self.wholes.get(path).filter(|_| !lines.within_line);
        redacted(text, |text| match whole.map(|whole| &whole.redacted) {
            Some(Some(whole)) => {
                let shown = screen.part(path, whole, lines.first, lines.last);
                if screen.withholds() { Cow::Owned(shown) } else { Cow::Borrowed(text) }
            }
            Some(None) => Cow::Borrowed(text),
            None => {
                let cut = Cut { beginning: false, end: lines.within_line };
                screen.stray(Some(path), lines.first, text, cut)
            }
        })
    }

    /// A listing, with a name on each line.
    pub(super) fn listing(&mut self, text: String) -> String {
        redacted(Cow::Owned(text), |text| self.screen.listing(text)).into_owned()
    }

    /// Notes what the person wrote that no outbox before has shown: it is shown as it is.
    pub(super) fn note_words(&mut self, session: &Session) {
        if session.sequence == 1 {
            self.screen.words("your task", &session.task);
        }
        let said = session.said.iter().skip(session.said_before);
        said.for_each(|text| self.screen.words(SAID, text));
    }

    /// The session with results that can be shown.
    pub(super) fn session(&mut self, session: &Session) -> Session {
        let mut shown = session.clone();
        shown.last_results.iter_mut().for_each(|outcome| self.outcome(outcome));
        let mut names: Vec<&mut String> = Vec::new();
        if let Some(changed) = shown.changed.as_deref_mut() {
            names.extend(changed.named.iter_mut().map(|file| &mut file.path));
            let mut ignored = vec![&mut changed.ignored];
            if let Some(back) = changed.back.as_deref_mut() {
                names.extend(back.left.iter_mut().map(|(path, _)| path));
                names.extend(&mut back.others.named);
                ignored.push(&mut back.ignored);
            }
            for ignored in ignored.into_iter().flatten() {
                names.extend(ignored.named.iter_mut().chain(&mut ignored.lost.named));
            }
        }
        names.into_iter().for_each(|name| replace(name, |name| self.screen.name(name)));
        shown
    }

    fn outcome(&mut self, outcome: &mut Outcome) {
        let name = tags::name(outcome.kind);
        self.excerpt(outcome);
        let Self { screen, .. } = self;
        for warning in &mut outcome.warnings {
            replace(&mut warning.text, |text| screen.output(name, text));
        }
        match &mut outcome.detail {
            Detail::Ran(execution) => {
                let command = &execution.command;
                // Both sides of a cut are redacted with what lies beyond it, which nobody sees afterwards.
                let mut capture = |capture: &mut Capture| {
                    let (after_head, before_tail) = capture.take_margins();
                    let Capture { head, tail, .. } = capture;
                    *head = screen.output_part(command, "", head, &after_head);
                    *tail = screen.output_part(command, &before_tail, tail, "");
                };
                match &mut execution.output {
                    Output::Together(both) => capture(both),
                    Output::Apart { stdout, stderr } => {
                        capture(stdout);
                        capture(stderr);
                    }
                }
            }
            Detail::Read { path, content, encoding: Encoding::Utf8, .. } => {
                replace(content, |text| screen.contents(path.as_str(), text));
            }
            Detail::Read { path, content, encoding, .. } => {
                let Ok(bytes) = encoding.decode(content) else { return };
                let text = String::from_utf8_lossy(&bytes);
                let Cow::Owned(shown) = screen.contents(path.as_str(), &text) else { return };
                let is_text = matches!(text, Cow::Borrowed(_)) && !bytes.contains(&0);
                match encoding.encode(shown.as_bytes()).filter(|_| is_text) {
                    Some(encoded) => *content = encoded,
                    // Nobody could read what it would be without them.
                    None => {
                        outcome.detail = Failure::execution(format!(
                            "'{path}' is not shown: it holds secrets and is no UTF-8 text, so they cannot be left out of it"
                        )).into();
                    }
                }
            }
            Detail::Found { hits, .. } => hits.iter_mut().for_each(|hit| self.hit(hit)),
            Detail::Listed { shown, .. } => replace(shown, |text| screen.listing(text)),
            Detail::Failed(failure) => {
                // It may quote lines of the file.
                let of = failure.of.as_ref().map(RelPath::as_str);
                replace(&mut failure.reason, |text| screen.output_of(name, of, text));
            }
            _ => {}
        }
    }

    fn hit(&mut self, hit: &mut Hit) {
        let whole = |line: &str| visible_line(line).into_owned();
        let (path, text) = (Some(hit.path.as_str()), hit.text.as_str());
        // Of a line that goes on far beyond what is shown not all may be here.
        let end = text.chars().nth(hit.start + 2 * HIT_WIDTH).is_some();
        let cut = Cut { beginning: hit.start > HIT_WIDTH, end };
        if let Cow::Owned(shown) = self.line(path, hit.line, text, cut, whole) {
            // The same part is shown, unless that was redacted or what follows it: then from there on.
            let rest: String = text.chars().skip(hit.start).collect();
            let same = text.chars().zip(shown.chars()).take_while(|(a, b)| a == b).count();
            hit.start = match shown.strip_suffix(&rest) {
                Some(before) => before.chars().count(),
                None => hit.start.min(same),
            };
            hit.text = shown;
        }
        replace(&mut hit.path, |path| self.screen.name(path));
    }

    fn excerpt(&mut self, outcome: &mut Outcome) {
        let path = excerpt_path(outcome).map(|path| path.as_str().to_owned());
        let excerpt = match &mut outcome.detail {
            Detail::Failed(failure) => &mut failure.excerpt,
            Detail::Edited { revision: Some(revision), .. }
            | Detail::Replaced { revision: Some(revision), .. } => &mut revision.excerpt,
            _ => return,
        };
        let first = |line: &str| line.chars().take(Excerpt::LENGTH).collect::<String>();
        for (number, text) in &mut excerpt.lines {
            // Behind the cut is what is said of the rest.
            let line = first(text);
            let rest = &text[line.len()..];
            let cut = Cut { beginning: false, end: !rest.is_empty() };
            if let Cow::Owned(shown) = self.line(path.as_deref(), *number, &line, cut, first) {
                *text = shown + rest;
            }
        }
    }

    /// A line of a file, which its result shows `shortened`. It is taken from the whole file if the line is
    /// still there, or elsewhere in it by now.
    fn line<'t>(
        &mut self,
        path: Option<&str>,
        number: usize,
        text: &'t str,
        cut: Cut,
        shortened: impl Fn(&str) -> String,
    ) -> Cow<'t, str> {
        let Self { screen, wholes } = self;
        let Some((path, whole)) = path.and_then(|path| Some((path, wholes.get(path)?))) else {
            return screen.stray(path, number, text, cut);
        };
        let here = whole.changed.get(&number);
        let is_there = || whole.line(number).is_some_and(|line| shortened(line).contains(text));
        if here.is_none() && is_there() {
            return Cow::Borrowed(text);
        }
        let mut lines = here.into_iter().chain(whole.changed.values().take(LINES));
        match lines.find(|line| shortened(&line.text) == text) {
            None => screen.stray(Some(path), number, text, cut),
            Some(line) => match shortened(&line.shown) {
                shown if shown != text && screen.takes(path, number, line) => Cow::Owned(shown),
                _ => Cow::Borrowed(text),
            },
        }
    }

    /// Lines of files that the results of a session show as they are, given the session as it is shown.
    /// Only a whole line counts that the file still has there: so none that is cut or holds a secret.
    pub(super) fn lines_shown(&self, session: &Session) -> Vec<SearchLines> {
        let mut seen: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        let mut look = |path: &str, number: usize, text: &str| {
            let Some((path, whole)) = self.wholes.get_key_value(path) else { return };
            if matches!(whole.text, Cow::Borrowed(_)) && whole.line(number) == Some(text) {
                seen.entry(path).or_default().push((number, number));
            }
        };
        let mut room = tags::EXCERPT_LINES;
        for outcome in &session.last_results {
            if let Detail::Found { hits, .. } = &outcome.detail {
                let is_whole = |hit: &Hit| hit.start == 0 && hit.text.chars().count() <= HIT_WIDTH;
                let whole = hits.iter().filter(|hit| is_whole(hit));
                whole.for_each(|hit| look(&hit.path, hit.line, &hit.text));
            }
            let excerpt = outcome.detail.excerpt();
            let excerpt = excerpt.filter(|excerpt| tags::has_room(excerpt, &mut room));
            if let (Some(excerpt), Some((path, _))) = (excerpt, outcome.detail.shown_of()) {
                excerpt.lines.iter().for_each(|(number, text)| look(path.as_str(), *number, text));
            }
        }
        let lines = |(path, lines)| {
            let whole = self.wholes[path].contents;
            SearchLines { path: whole.path.clone(), seen: Seen::whole(&whole.bytes), lines }
        };
        seen.into_iter().map(lines).collect()
    }
}

/// The files of which lines beside results are not `shown` as they were `given`.
pub(super) fn withheld_from(given: &Session, shown: &Session) -> Vec<RelPath> {
    let pairs = given.last_results.iter().zip(&shown.last_results);
    let other = pairs.filter(|(given, shown)| given.detail.excerpt() != shown.detail.excerpt());
    other.filter_map(|(given, _)| Some(given.detail.shown_of()?.0.clone())).collect()
}

/// A text as `redact` shows it.
fn redacted(text: Cow<'_, str>, redact: impl FnOnce(&str) -> Cow<'_, str>) -> Cow<'_, str> {
    match redact(&text) {
        Cow::Owned(shown) => Cow::Owned(shown),
        Cow::Borrowed(_) => text,
    }
}

fn replace(text: &mut String, redact: impl FnOnce(&str) -> Cow<'_, str>) {
    if let Cow::Owned(shown) = redact(text) {
        *text = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Kind;

    const MARGIN: usize = 1_000;

    /// A line that was found, of which a part is shown that begins with that character.
    fn hit(line: &str, start: usize) -> Hit {
        let skipped = start.saturating_sub(MARGIN);
        let kept = start - skipped + HIT_WIDTH + MARGIN;
        let text = line.chars().skip(skipped).take(kept).collect();
        Hit { path: "a.txt".to_owned(), line: 2, text, start: start - skipped }
    }

    #[test]
    fn a_long_line_is_redacted_before_it_is_shortened() {
        let key = format!("{}{}", "AKIA", "Q3EGRAZBXS4JKTPN");
        let words = |n| "some words ".repeat(n);
        for line in [
            format!("{}key={key} {}", words(1), words(300)),
            format!("{}key={key} {} key={key}", words(150), words(150)),
            format!("{}é key={key} {}", words(29), words(200)),
        ] {
            let text = format!("head\n{line}\ntail\n");
            let (bytes, size) = (text.clone().into_bytes(), text.len() as u64);
            let path = RelPath::parse("a.txt").unwrap();
            let whole = Contents { path, bytes, size, lines: None };
            for wholes in [vec![whole], vec![]] {
                let files = Files { wholes, ..Files::default() };
                let now = "2025-01-15T10:30:00Z".parse().unwrap();
                let mut session = Session::new("a1b2c3d4".into(), "x", vec![], now);
                let starts = (0..line.chars().count()).step_by(11);
                let hits: Vec<Hit> = starts.clone().map(|at| hit(&line, at)).collect();
                let pattern = "x".to_owned();
                let detail =
                    Detail::Found { pattern, lines: 1, files: 1, cut: false, hits: hits.clone() };
                session.last_results = vec![Outcome {
                    kind: Kind::Search,
                    line: 1,
                    detail,
                    warnings: vec![],
                    asked: None,
                    at: None,
                }];
                let mut redaction = Redaction::new(&files, &Secrets::default());
                let shown = redaction.session(&session);
                let Detail::Found { hits: shown, .. } = &shown.last_results[0].detail else {
                    panic!()
                };
                let first = line.chars().position(|c| c == 'K').unwrap() - 1;
                let has_one = line.matches(&key).count() == 1;
                for (at, (hit, shown)) in starts.zip(hits.iter().zip(shown)) {
                    let shown = shown.to_string();
                    let pieces = key.as_bytes().windows(6);
                    let mut pieces = pieces.map(|piece| std::str::from_utf8(piece).unwrap());
                    assert!(!pieces.any(|piece| shown.contains(piece)), "{shown}");
                    // The same part of the line is shown, if the key is not in it.
                    if has_one && (at >= first + key.len() || at + HIT_WIDTH <= first) {
                        assert_eq!(shown, hit.to_string());
                    }
                }
            }
        }
    }
}
