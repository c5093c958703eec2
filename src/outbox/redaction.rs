//! Removes secrets from the files and results that an outbox shows. Pure.
//!
//! Everything is redacted before it is shortened. Parts and single lines of a file are taken from the redacted whole
//! file, since a part alone may not be recognisable as a secret, such as a line of a private key.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::contents::whole_lines;
use super::{Files, ShownFile};
use crate::context::excerpt_path;
use crate::protocol::operations::Encoding;
use crate::protocol::{
    Capture, CommandOutput, Detail, Excerpt, Execution, Failure, FileVersion, HIT_WIDTH, Hit,
    Outcome, RelPath, tags,
};
use crate::secrets::{CutEnds, Redacted, RedactedLine, Redactor};
use crate::session::{FileChange, Session};
use crate::settings::Secrets;
use crate::text::visible_line;
use crate::workspace::Contents;

/// The most redacted lines of a file that are searched for a line that has moved.
const LINES: usize = 5_000;

/// Sentences about secrets in a message from the person, which an outbox shows unchanged.
pub fn words_messages(text: &str, secrets: &Secrets) -> Vec<String> {
    let mut redactor = Redactor::new(secrets);
    redactor.words("what you said", text);
    redactor.summaries()
}

/// A file of which parts or lines are shown.
struct WholeFile<'a> {
    contents: &'a Contents,
    text: Cow<'a, str>,
    /// The offset of each line.
    starts: Vec<usize>,
    /// The text without secrets; None if the person allowed the file.
    redacted: Option<Redacted>,
    /// The lines that contain secrets, by number.
    changed: BTreeMap<usize, RedactedLine>,
}

impl<'a> WholeFile<'a> {
    fn new(contents: &'a Contents, redactor: &Redactor) -> Self {
        let text = String::from_utf8_lossy(&contents.bytes);
        let redacted = redactor.redact_file(contents.path.as_str(), &text);
        let changed = redacted.as_ref().map(|redacted| Redactor::changed(&text, redacted));
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        let starts = std::iter::once(0).chain(ends.map(|end| end + 1)).collect();
        Self { contents, starts, redacted, changed: changed.unwrap_or_default(), text }
    }

    /// The line with this number, from 1.
    fn line(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        Some(self.text[start..].lines().next().unwrap_or_default())
    }
}

/// Redacts one outbox.
pub(super) struct Redaction<'a> {
    pub(super) redactor: Redactor,
    wholes: BTreeMap<&'a str, WholeFile<'a>>,
    /// The lines of these files that results show completely and unchanged.
    seen: BTreeMap<&'a str, Vec<(usize, usize)>>,
    /// Files whose excerpts in results were redacted.
    withheld_from: Vec<RelPath>,
    /// How many more lines excerpts may show.
    excerpt_room: usize,
}

impl<'a> Redaction<'a> {
    pub(super) fn new(files: &'a Files, secrets: &Secrets) -> Self {
        let text = |file: &'a Contents| String::from_utf8_lossy(&file.bytes);
        let known = files.secrets.iter().map(|file| (file.path.as_str(), text(file)));
        let redactor = Redactor::with_secrets_of(secrets, known);
        let whole = |file: &'a Contents| (file.path.as_str(), WholeFile::new(file, &redactor));
        let wholes = files.wholes.iter().map(whole).collect();
        let (seen, withheld_from) = (BTreeMap::new(), Vec::new());
        Self { redactor, wholes, seen, withheld_from, excerpt_room: tags::EXCERPT_LINES }
    }

    /// The text of a file, or the requested lines.
    pub(super) fn text(&mut self, contents: &Contents) -> String {
        let text = &*String::from_utf8_lossy(whole_lines(contents));
        let Self { redactor, wholes, .. } = self;
        let path = contents.path.as_str();
        let shown = match (contents.lines, wholes.get(path)) {
            (None, _) => redactor.contents(path, text),
            (Some(lines), Some(whole)) if !lines.within_line => {
                let part = |whole| redactor.part(path, whole, lines.first, lines.last);
                let part = whole.redacted.as_ref().map(part);
                part.filter(|_| redactor.withholds()).map_or(Cow::Borrowed(text), Cow::Owned)
            }
            (Some(lines), _) => {
                let cut = CutEnds { beginning: false, end: lines.within_line };
                redactor.isolated_lines(Some(path), lines.first, text, cut)
            }
        };
        shown.into_owned()
    }

    /// Records secrets in the messages from the person since the last outbox. These are shown unchanged.
    pub(super) fn note_words(&mut self, session: &Session) {
        if session.sequence == 1 {
            self.redactor.words("your task", &session.task);
        }
        let said = session.said.iter().skip(session.said_before);
        said.for_each(|text| self.redactor.words("what you said", text));
    }

    /// Redacts a name, which may be a path.
    pub(super) fn name(&mut self, name: &str) -> String {
        self.redactor.name(name).into_owned()
    }

    /// Describes a change of a file, without secrets.
    pub(super) fn change(&mut self, change: &FileChange) -> String {
        let from = change.from.as_ref().map(|from| self.name(from));
        FileChange { path: self.name(&change.path), from, ..change.clone() }.describe()
    }

    /// The newest results of a session, with the reasons why requested files cannot be shown.
    pub(super) fn results(&mut self, session: &Session, files: &Files) -> Vec<Outcome> {
        let mut results = session.last_results.clone();
        let is_read = |outcome: &&mut Outcome| matches!(outcome.detail, Detail::ReadLater { .. });
        for (outcome, file) in results.iter_mut().filter(is_read).zip(&files.requested) {
            if let Err(failure) = file {
                outcome.detail = failure.clone().into();
            }
        }
        for outcome in &mut results {
            self.outcome(outcome);
            self.paths(outcome);
        }
        results
    }

    fn outcome(&mut self, outcome: &mut Outcome) {
        let name = tags::name(outcome.kind);
        self.excerpt(outcome);
        let Self { redactor, .. } = self;
        for warning in &mut outcome.warnings {
            replace(&mut warning.text, |text| redactor.output(name, None, text));
        }
        match &mut outcome.detail {
            Detail::Ran(Execution { command, output, .. }) => {
                let captures = match output {
                    CommandOutput::Together(both) => vec![both],
                    CommandOutput::Apart { stdout, stderr } => vec![stdout, stderr],
                };
                for capture in captures {
                    // The text beyond a cut helps to recognise a secret. It is never shown.
                    let (after_head, before_tail) = capture.take_margins();
                    let Capture { head, tail, .. } = capture;
                    *head = redactor.output_part(command, "", head, &after_head);
                    *tail = redactor.output_part(command, &before_tail, tail, "");
                }
            }
            Detail::Read { path, content, encoding, .. } => {
                let Ok(bytes) = encoding.decode(content) else { return };
                let text = String::from_utf8_lossy(&bytes);
                let Cow::Owned(shown) = redactor.contents(path.as_str(), &text) else { return };
                let is_text = matches!(text, Cow::Borrowed(_)) && !bytes.contains(&0);
                let shown = encoding.encode(shown.as_bytes());
                match shown.filter(|_| is_text || *encoding == Encoding::Utf8) {
                    Some(shown) => *content = shown,
                    None => {
                        let path = redactor.name(path.as_str());
                        let reason = format!(
                            "'{path}' is not shown: it contains secrets, and they cannot be removed because it is not UTF-8 text"
                        );
                        outcome.detail = Failure::execution(reason).into();
                    }
                }
            }
            Detail::Found { hits, .. } => hits.iter_mut().for_each(|hit| self.hit(hit)),
            Detail::Listed { shown, .. } => replace(shown, |text| redactor.listing(text)),
            Detail::Shown { text } => replace(text, |text| redactor.output(name, None, text)),
            Detail::Failed(failure) => {
                // The reason may quote lines of the file.
                let of = failure.real_path.as_ref().map(RelPath::as_str);
                replace(&mut failure.reason, |text| redactor.output(name, of, text));
            }
            _ => {}
        }
    }

    /// Redacts the paths in a result. The reason of a failure was redacted as one text.
    fn paths(&mut self, outcome: &mut Outcome) {
        let paths = match &mut outcome.detail {
            Detail::Moved { path, to, .. } => vec![path, to],
            Detail::Created { path, .. }
            | Detail::Edited { path, .. }
            | Detail::Replaced { path, .. }
            | Detail::Deleted { path }
            | Detail::Listed { path: Some(path), .. }
            | Detail::Read { path, .. } => vec![path],
            _ => return,
        };
        for path in paths {
            // If redaction makes a path too long, the whole path is withheld.
            let shown = RelPath::parse(&self.name(path.as_str()));
            if let Ok(shown) = shown.or_else(|_| RelPath::parse("[withheld]")) {
                *path = shown;
            }
        }
    }

    fn hit(&mut self, hit: &mut Hit) {
        let whole = |line: &str| visible_line(line).into_owned();
        let (path, text) = (hit.path.as_str(), hit.text.as_str());
        // For a very long line, only the text around the shown part is available.
        let end = text.chars().nth(hit.start + 2 * HIT_WIDTH).is_some();
        let cut = CutEnds { beginning: hit.start > HIT_WIDTH, end };
        let is_whole = hit.start == 0 && text.chars().count() <= HIT_WIDTH;
        if let Cow::Owned(shown) = self.line(Some(path), hit.line, text, cut, is_whole, whole) {
            // Show the same part. If its text was changed, show the text from the first redacted place.
            let rest: String = text.chars().skip(hit.start).collect();
            let same = text.chars().zip(shown.chars()).take_while(|(a, b)| a == b).count();
            hit.start = match shown.strip_suffix(&rest) {
                Some(before) => before.chars().count(),
                None => hit.start.min(same),
            };
            hit.text = shown;
        }
        replace(&mut hit.path, |path| self.redactor.name(path));
    }

    fn excerpt(&mut self, outcome: &mut Outcome) {
        let path = excerpt_path(&outcome.detail).map(|path| path.as_str().to_owned());
        let has_room = |excerpt| tags::has_room(excerpt, &mut self.excerpt_room);
        let has_room = outcome.detail.excerpt().is_some_and(has_room);
        let known = outcome.detail.shown_of().map(|(path, _)| path.clone());
        let excerpt = match &mut outcome.detail {
            Detail::Failed(failure) => &mut failure.excerpt,
            Detail::Edited { revision: Some(revision), .. }
            | Detail::Replaced { revision: Some(revision), .. } => &mut revision.excerpt,
            _ => return,
        };
        let first = |line: &str| line.chars().take(Excerpt::LENGTH).collect::<String>();
        for (number, text) in &mut excerpt.lines {
            // A note about the rest may follow a shortened line.
            let line = first(text);
            let rest = &text[line.len()..];
            let cut = CutEnds { beginning: false, end: !rest.is_empty() };
            let is_whole = has_room && known.is_some() && !cut.end;
            let shown = self.line(path.as_deref(), *number, &line, cut, is_whole, first);
            if let Cow::Owned(shown) = shown {
                *text = shown + rest;
                self.withheld_from.extend(known.clone());
            }
        }
    }

    /// Redacts a line of a file that a result shows `shortened`. The redacted line is taken from the whole file if the
    /// line still exists there, perhaps at another place. If `is_whole`, `text` is the complete line, and a line that
    /// is unchanged in the file is recorded as shown.
    fn line<'t>(
        &mut self,
        path: Option<&str>,
        number: usize,
        text: &'t str,
        cut: CutEnds,
        is_whole: bool,
        shortened: impl Fn(&str) -> String,
    ) -> Cow<'t, str> {
        let Self { redactor, wholes, seen, .. } = self;
        let Some((path, whole)) = path.and_then(|path| wholes.get_key_value(path)) else {
            return redactor.isolated_lines(path, number, text, cut);
        };
        let (here, current) = (whole.changed.get(&number), whole.line(number));
        let is_current = current.is_some_and(|line| shortened(line).contains(text));
        let shown = if here.is_none() && is_current {
            Cow::Borrowed(text)
        } else {
            let mut lines = here.into_iter().chain(whole.changed.values().take(LINES));
            match lines.find(|line| shortened(&line.text) == text) {
                None => redactor.isolated_lines(Some(path), number, text, cut),
                Some(line) => {
                    let shown = shortened(&line.shown);
                    let is_new = shown != text && redactor.note_changed_line(path, number, line);
                    if is_new { Cow::Owned(shown) } else { Cow::Borrowed(text) }
                }
            }
        };
        let is_text = matches!((&shown, &whole.text), (Cow::Borrowed(_), Cow::Borrowed(_)));
        if is_whole && is_text && current == Some(text) {
            seen.entry(path).or_default().push((number, number));
        }
        shown
    }

    /// The lines of files that results show unchanged, and the files whose excerpts in results were redacted.
    pub(super) fn shown_of_results(&self) -> (Vec<ShownFile>, Vec<RelPath>) {
        let lines = |(path, lines): (&&str, &Vec<_>)| {
            let Contents { path, bytes, .. } = self.wholes[path].contents;
            let version = Some(FileVersion::whole(bytes));
            ShownFile { path: path.clone(), whole: false, lines: lines.clone(), cut: None, version }
        };
        (self.seen.iter().map(lines).collect(), self.withheld_from.clone())
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

    /// A search hit. The shown part of the line begins at the character `start`.
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
                let shown = redaction.results(&session, &files);
                let Detail::Found { hits: shown, .. } = &shown[0].detail else { panic!() };
                let first = line.chars().position(|c| c == 'K').unwrap() - 1;
                let has_one = line.matches(&key).count() == 1;
                for (at, (hit, shown)) in starts.zip(hits.iter().zip(shown)) {
                    let shown = shown.to_string();
                    let pieces = key.as_bytes().windows(6);
                    let mut pieces = pieces.map(|piece| std::str::from_utf8(piece).unwrap());
                    assert!(!pieces.any(|piece| shown.contains(piece)), "{shown}");
                    // If the shown part does not contain the key, it stays the same.
                    if has_one && (at >= first + key.len() || at + HIT_WIDTH <= first) {
                        assert_eq!(shown, hit.to_string());
                    }
                }
            }
        }
    }
}
