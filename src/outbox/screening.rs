//! What an outbox shows of files and commands, without the secrets in it. Pure: the session and the
//! files stay as they are, and what is rendered is a copy.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Files;
use super::contents::whole_lines;
use crate::protocol::operations::Encoding;
use crate::protocol::{Capture, Detail, Excerpt, Lines, Outcome, Output, RelPath, tags};
use crate::secrets::Screen;
use crate::session::Session;
use crate::workspace::Contents;

/// The texts of files, by path and lines, where they are shown otherwise than they are.
#[derive(Debug, Default)]
pub(super) struct Texts(HashMap<(RelPath, Option<Lines>), String>);

impl Texts {
    /// What is shown of these contents.
    pub(super) fn of<'a>(&'a self, contents: &'a Contents) -> Cow<'a, str> {
        match self.0.get(&(contents.path.clone(), contents.lines)) {
            Some(text) => Cow::Borrowed(text),
            None => String::from_utf8_lossy(whole_lines(contents)),
        }
    }

    fn put(&mut self, contents: &Contents, files: &Files, screen: &mut Screen) {
        let text = String::from_utf8_lossy(whole_lines(contents));
        let path = contents.path.as_str();
        let whole = contents.lines.filter(|lines| !lines.within_line).and_then(|lines| {
            let whole = files.wholes.iter().find(|whole| whole.path == contents.path)?;
            Some((lines, std::str::from_utf8(&whole.bytes).ok()?))
        });
        let shown = match whole {
            // What a line is may only be told by those before it.
            Some((lines, whole)) => screen.part(path, whole, lines.first, lines.last),
            None => screen.contents(path, &text),
        };
        if shown != text {
            let shown = shown.into_owned();
            self.0.insert((contents.path.clone(), contents.lines), shown);
        }
    }
}

/// The texts of all files of an outbox.
pub(super) fn texts(files: &Files, screen: &mut Screen) -> Texts {
    let mut texts = Texts::default();
    let requested = files.requested.iter().filter_map(|file| file.contents.as_ref().ok());
    let offered = files.offered.iter().flat_map(|offered| &offered.files);
    requested.chain(offered).for_each(|contents| texts.put(contents, files, screen));
    texts
}

/// The session with results that can be shown.
pub(super) fn session(session: &Session, screen: &mut Screen) -> Session {
    let mut shown = session.clone();
    shown.last_results.iter_mut().for_each(|outcome| result(outcome, screen));
    shown
}

fn result(outcome: &mut Outcome, screen: &mut Screen) {
    let name = tags::name(outcome.kind);
    match &mut outcome.detail {
        Detail::Ran(execution) => {
            let command = execution.command.clone();
            let mut capture = |capture: &mut Capture| {
                for text in [&mut capture.head, &mut capture.tail] {
                    replace(text, |text| screen.output(&command, text));
                }
            };
            match &mut execution.output {
                Output::Together(both) => capture(both),
                Output::Apart { stdout, stderr } => {
                    capture(stdout);
                    capture(stderr);
                }
            }
        }
        Detail::Read { path, content, encoding, .. } => {
            if *encoding == Encoding::Utf8 {
                replace(content, |text| screen.contents(path.as_str(), text));
            } else if let Ok(bytes) = encoding.decode(content)
                && let Ok(text) = std::str::from_utf8(&bytes)
                && let Cow::Owned(shown) = screen.contents(path.as_str(), text)
                && let Some(encoded) = encoding.encode(shown.as_bytes())
            {
                *content = encoded;
            }
        }
        Detail::Found { shown, .. } => replace(shown, |text| found(text, screen)),
        Detail::Listed { shown, .. } => replace(shown, |text| screen.listing(text)),
        Detail::Edited { path, revision, .. } | Detail::Replaced { path, revision, .. } => {
            if let Some(revision) = revision {
                lines(&mut revision.excerpt, Some(path), screen);
            }
        }
        Detail::Failed(failure) => {
            replace(&mut failure.reason, |text| screen.output(name, text));
            lines(&mut failure.excerpt, None, screen);
        }
        _ => {}
    }
}

fn replace(text: &mut String, shown: impl FnOnce(&str) -> Cow<'_, str>) {
    if let Cow::Owned(shown) = shown(text) {
        *text = shown;
    }
}

/// Lines of a file with their numbers.
fn lines(excerpt: &mut Excerpt, path: Option<&RelPath>, screen: &mut Screen) {
    for (number, text) in &mut excerpt.lines {
        let path = path.map(RelPath::as_str);
        replace(text, |text| screen.line(path, *number, text));
    }
}

/// Lines as a search gives them, `path:number:text`.
fn found<'a>(text: &'a str, screen: &mut Screen) -> Cow<'a, str> {
    let mut shown = String::new();
    for line in text.split_inclusive('\n') {
        let parted = line.split_once(':').and_then(|(path, rest)| {
            let (number, rest) = rest.split_once(':')?;
            Some((path, number.parse().ok()?, rest))
        });
        match parted {
            Some((path, number, rest)) => {
                shown.push_str(&line[..line.len() - rest.len()]);
                shown.push_str(&screen.line(Some(path), number, rest));
            }
            None => shown.push_str(&screen.output("SEARCH", line)),
        }
    }
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}
