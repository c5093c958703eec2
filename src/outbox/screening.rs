//! What an outbox shows of files and commands, without the secrets in it. Pure: the session and the
//! files stay as they are, and what is rendered is a copy.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::Files;
use super::contents::whole_lines;
use super::lone::Known;
use crate::config::Secrets;
use crate::protocol::operations::Encoding;
use crate::protocol::{Capture, Detail, Failure, Lines, Outcome, Output, RelPath, tags};
use crate::secrets::{Cut, Screen, Screened};
use crate::session::Session;
use crate::workspace::Contents;

/// What an outbox with these files is screened with: as the person set it, and by what is known to be
/// secret.
pub(super) fn screen(files: &Files, secrets: &Secrets) -> Screen {
    let known =
        files.secrets.iter().map(|file| (file.path.as_str(), String::from_utf8_lossy(&file.bytes)));
    Screen::knowing(secrets, known)
}

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

    fn put(&mut self, contents: &Contents, wholes: &Wholes, screen: &mut Screen) {
        let text = String::from_utf8_lossy(whole_lines(contents));
        let path = contents.path.as_str();
        let part = contents.lines.filter(|lines| !lines.within_line);
        let whole = part.and_then(|lines| Some((lines, wholes.0.get(path)?)));
        let shown = match whole {
            // What a line is may only be told by those before it.
            Some((lines, (_, Some(whole)))) => {
                let shown = screen.part(path, whole, lines.first, lines.last);
                if screen.withholds() { Cow::Owned(shown) } else { Cow::Borrowed(&*text) }
            }
            Some((_, (_, None))) => Cow::Borrowed(&*text),
            None if contents.lines.is_some() => {
                let first = contents.lines.map_or(1, |lines| lines.first);
                let end = contents.lines.is_some_and(|lines| lines.within_line);
                screen.stray(Some(path), first, &text, Cut { beginning: false, end })
            }
            None => screen.contents(path, &text),
        };
        if shown != text {
            let shown = shown.into_owned();
            self.0.insert((contents.path.clone(), contents.lines), shown);
        }
    }
}

/// Whole files that parts or single lines are shown of: the text of each, and how it can be shown;
/// None where it is released.
pub(super) struct Wholes<'a>(pub(super) BTreeMap<&'a str, (Cow<'a, str>, Option<Screened<'a>>)>);

impl<'a> Wholes<'a> {
    /// Looks at each once.
    pub(super) fn of(files: &'a Files, screen: &Screen) -> Self {
        let look = |whole: &'a Contents| {
            let path = whole.path.as_str();
            let text = String::from_utf8_lossy(&whole.bytes);
            let looked = match &text {
                Cow::Borrowed(text) => screen.look(path, text),
                Cow::Owned(text) => screen.look(path, text).map(Screened::into_owned),
            };
            (path, (text, looked))
        };
        Self(files.wholes.iter().map(look).collect())
    }
}

/// The texts of all files of an outbox.
pub(super) fn texts(files: &Files, wholes: &Wholes, screen: &mut Screen) -> Texts {
    let mut texts = Texts::default();
    let requested = files.requested.iter().filter_map(|file| file.contents.as_ref().ok());
    let offered = files.offered.iter().flat_map(|offered| &offered.files);
    requested.chain(offered).for_each(|contents| texts.put(contents, wholes, screen));
    texts
}

const SAID: &str = "what you said";

/// Looks at what the person wrote that no outbox before has told: it stands there as it is.
pub(super) fn words(session: &Session, screen: &mut Screen) {
    if session.sequence == 1 {
        screen.words("your task", &session.task);
    }
    let said = session.said.iter().skip(session.said_before);
    said.for_each(|text| screen.words(SAID, text));
}

/// What is told of a single text that the person says.
pub(super) fn told_of_words(text: &str, secrets: &Secrets) -> Vec<String> {
    let mut screen = Screen::new(secrets);
    screen.words(SAID, text);
    screen.told()
}

/// The session with results that can be shown.
pub(super) fn session(session: &Session, wholes: &Wholes, screen: &mut Screen) -> Session {
    let mut shown = session.clone();
    let known = Known::of(wholes);
    shown.last_results.iter_mut().for_each(|outcome| result(outcome, &known, screen));
    if let Some(changed) = &mut shown.changed {
        let named = changed.named.iter_mut().map(|file| &mut file.path);
        let left = changed.back.iter_mut().flat_map(|back| &mut back.left).map(|(path, _)| path);
        named.chain(left).for_each(|path| replace(path, |path| screen.name(path)));
        let others = changed.back.iter_mut().flat_map(|back| &mut back.others.named);
        others.for_each(|path| replace(path, |path| screen.name(path)));
        let kept_out = changed.back.iter_mut().filter_map(|back| back.ignored.as_mut());
        for ignored in changed.ignored.iter_mut().chain(kept_out) {
            let places = ignored.named.iter_mut().chain(&mut ignored.lost.named);
            places.for_each(|name| replace(name, |name| screen.name(name)));
        }
    }
    shown
}

fn result(outcome: &mut Outcome, known: &Known, screen: &mut Screen) {
    let name = tags::name(outcome.kind);
    known.excerpt(outcome, screen);
    for warning in &mut outcome.warnings {
        replace(&mut warning.text, |text| screen.output(name, text));
    }
    match &mut outcome.detail {
        Detail::Ran(execution) => {
            let command = execution.command.clone();
            let mut capture = |capture: &mut Capture| {
                // What stands at the gap may be a part of a secret.
                let is_cut = capture.left_out > 0;
                let (head, tail) = (&mut capture.head, &mut capture.tail);
                let ends = Cut { beginning: false, end: is_cut };
                replace(head, |text| screen.cut_output(&command, text, ends));
                let begins = Cut { beginning: is_cut, end: false };
                replace(tail, |text| screen.cut_output(&command, text, begins));
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
                && let text = String::from_utf8_lossy(&bytes)
                && let Cow::Owned(shown) = screen.contents(path.as_str(), &text)
            {
                let is_text = matches!(text, Cow::Borrowed(_)) && !bytes.contains(&0);
                match encoding.encode(shown.as_bytes()).filter(|_| is_text) {
                    Some(encoded) => *content = encoded,
                    // What it would be without them, nobody could read.
                    None => {
                        let told = format!(
                            "'{path}' is not shown: it holds secrets and is no UTF-8 text, so they cannot be left out of it"
                        );
                        outcome.detail = Failure::execution(told).into();
                    }
                }
            }
        }
        Detail::Found { hits, .. } => hits.iter_mut().for_each(|hit| known.hit(hit, screen)),
        Detail::Listed { shown, .. } => replace(shown, |text| screen.listing(text)),
        Detail::Failed(failure) => {
            // It may quote lines of the file.
            let of = failure.of.as_ref().map(RelPath::as_str);
            replace(&mut failure.reason, |text| screen.output_of(name, of, text));
        }
        _ => {}
    }
}

fn replace(text: &mut String, shown: impl FnOnce(&str) -> Cow<'_, str>) {
    if let Cow::Owned(shown) = shown(text) {
        *text = shown;
    }
}
