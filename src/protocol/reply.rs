//! A reply, whatever its dialect: which one it is in, and what it asks for.
//!
//! A reply is in one dialect. It is in tags where any block of it is in order, else in operations
//! where it holds a message. What stands within a block is that block's, and what begins and has no
//! known end takes all that follows with it, so that no content is ever carried out: a message in a
//! file's body is none, and no tag counts behind a message that is broken.

use std::borrow::Cow;

use memchr::{memchr_iter, memmem};

use super::operations::{self, Encoding, Received, Refused};
use super::tags::{self, Blocks};
use super::{
    Asked, Asks, Dialect, Kind, Mistake, Operation, Reading, Step, Streams, Warning, WarningSort,
    returns,
};

/// A reply, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it asks for, in order; what cannot be understood is a step too, so there is always one.
    pub steps: Vec<Step>,
    /// Whether it ends within a block or a message: it may have been cut off, or not be complete
    /// yet.
    pub unclosed: bool,
    /// Which dialect it is in; None where it holds nothing of either.
    pub dialect: Option<Dialect>,
    /// Which outbox it says it answers (protocol 1.1, `[REPLY …]`).
    pub answers: Option<Address>,
}

/// Which outbox a reply says it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The session's id, as it was sent.
    pub session: String,
    /// The number of the outbox.
    pub sequence: u32,
    /// What only somebody knows who has seen that outbox.
    pub key: Option<String>,
}

/// What is told in sessions of operations where a reply holds nothing of either dialect.
const NO_MESSAGE: &str = r#"The reply holds no operations message, so nothing was done. Correct form, as one JSON object: {"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls"}]}; to end the session: {"protocolVersion": "1.0", "operations": [{"type": "message", "id": "done", "content": "a summary"}]}"#;

/// Reads a reply of a session whose dialect is `dialect`. It is understood in either (tag protocol,
/// "Inbox Format"; agent-spaces-protocol, "Operations Message"); the session's decides how results
/// are kept: when files are read, whether streams are kept apart, and what events will repeat.
///
/// # Examples
/// ```
/// use deaddrop::protocol::{Asks, Dialect, Kind, read};
/// let message = r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls"}]}"#;
/// let tags = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
/// for text in [message, tags] {
///     let reply = read(text, Dialect::Operations);
///     assert_eq!(reply.steps[0].kind(), Kind::Run);
///     assert_eq!(reply.steps[0].asked.as_ref().unwrap().about, "ls");
///     assert!(read(text, Dialect::Tags).steps[0].asked.is_none());
/// }
/// ```
pub fn read(text: &str, dialect: Dialect) -> Reply {
    read_as(text, dialect, true)
}

/// Reads what is to be run once, outside any session, in either dialect: a `message` with the id
/// [`DONE`](operations::DONE) is one like others. A message without operations has no steps.
pub fn read_run(text: &str) -> Reply {
    read_as(text, Dialect::Operations, false)
}

/// Whether a reply may not be complete yet: it ends within a block, or within something that began
/// as a message may.
pub fn ends_early(text: &str) -> bool {
    ends_within(text, &tags::blocks(text))
}

/// The same of a text with these blocks.
pub(super) fn ends_within(text: &str, blocks: &Blocks) -> bool {
    if blocks.unclosed {
        return true;
    }
    match outside(text, blocks) {
        _ if blocks.steps.is_empty() => operations::ends_early(text),
        Some(outside) => operations::ends_early(&outside),
        None => false,
    }
}

fn read_as(text: &str, dialect: Dialect, ends: bool) -> Reply {
    read_blocks(text, tags::blocks(text), dialect, ends)
}

/// Reads a text with these blocks; `ends`: as a reply that can end its session.
pub(super) fn read_blocks(text: &str, mut blocks: Blocks, dialect: Dialect, ends: bool) -> Reply {
    let found = outside(text, &blocks).and_then(|outside| operations::find(&outside));
    let is_message = matches!(found, Some(Ok(_)));
    let (mut steps, unclosed, is_in) = match found {
        Some(found) if is_in_operations(&found, &blocks) => {
            let unclosed = found.as_ref().is_err_and(|refused| refused.unclosed);
            let mut steps = operations::steps(found, ends);
            use WarningSort::{TagsInElement, TagsInThoughts};
            blocks.notes.retain(|note| matches!(note.sort, TagsInThoughts | TagsInElement));
            steps.iter_mut().take(1).for_each(|first| first.warnings.append(&mut blocks.notes));
            if let (Some(block), Some(last)) = (blocks.steps.first(), steps.last_mut()) {
                let told = format!(
                    "the tags from line {} on were ignored: a reply holds either an operations message or tags",
                    block.line
                );
                last.warnings.push(Warning::new(WarningSort::OtherDialect, told));
            }
            (steps, unclosed, Some(Dialect::Operations))
        }
        found => {
            if let (Some(found), Some(last)) = (&found, blocks.steps.last_mut()) {
                let told = format!(
                    "the operations message on line {} was not carried out: a reply holds either tags or an operations message",
                    line_of(found)
                );
                last.warnings.push(Warning::new(WarningSort::OtherDialect, told));
            }
            let is_in = (!blocks.steps.is_empty()).then_some(Dialect::Tags);
            (blocks.steps, blocks.unclosed, is_in)
        }
    };
    if steps.is_empty() && (ends || !is_message) {
        let told = match dialect {
            Dialect::Tags => tags::NO_COMMAND,
            Dialect::Operations if ends => NO_MESSAGE,
            // A run has no session that could be ended.
            Dialect::Operations => NO_MESSAGE.split("; to end").next().unwrap_or(NO_MESSAGE),
        };
        let step = Step::refused(1, Mistake::NoCommand, told);
        steps.push(Step { warnings: std::mem::take(&mut blocks.notes), ..step });
    }
    steps.iter_mut().for_each(|step| keep(step, dialect));
    Reply { steps, unclosed, dialect: is_in, answers: blocks.answers }
}

/// Whether a message counts beside these blocks.
fn is_in_operations(found: &Result<Received, Refused>, blocks: &Blocks) -> bool {
    let Some(first) = blocks.steps.first() else { return true };
    let in_order = |step: &Step| matches!(step.asks, Asks::Operation(_));
    if blocks.steps.iter().any(in_order) {
        // Where the message ends is not known if it is broken: the blocks may be content of it.
        return found.is_err() && line_of(found) < first.line;
    }
    true
}

fn line_of(found: &Result<Received, Refused>) -> usize {
    match found {
        Ok(received) => received.line,
        Err(refused) => refused.line,
    }
}

/// What stands outside of blocks, on the lines that it stands on; None where that is no message at
/// a glance. Opening tags stay: a message that holds one is none.
fn outside<'a>(text: &'a str, blocks: &Blocks) -> Option<Cow<'a, str>> {
    match returns::with_line_feeds(text) {
        Cow::Borrowed(text) => outside_in(text, blocks),
        Cow::Owned(text) => outside_in(&text, blocks).map(|outside| outside.into_owned().into()),
    }
}

fn outside_in<'a>(text: &'a str, blocks: &Blocks) -> Option<Cow<'a, str>> {
    const BYTE_ORDER_MARK: char = '\u{feff}';
    const KEY: &[u8] = b"operations"; // Without it nothing is a message or meant as one.
    if blocks.bodies.is_empty() {
        return memmem::find(text.as_bytes(), KEY).map(|_| Cow::Borrowed(text));
    }
    let ends = std::iter::once(0).chain(blocks.bodies.iter().map(|body| body.end));
    let begins = blocks.bodies.iter().map(|body| body.start).chain([text.len()]);
    let mut pieces = ends.zip(begins).map(|(from, to)| &text[from..to]);
    if !pieces.clone().any(|piece| memmem::find(piece.as_bytes(), KEY).is_some()) {
        return None;
    }
    let mut outside = String::with_capacity(text.len());
    outside.push_str(pieces.next().unwrap_or_default());
    for (piece, body) in pieces.zip(&blocks.bodies) {
        let lines = memchr_iter(b'\n', &text.as_bytes()[body.clone()]).count();
        // No message goes on behind it, but one may begin.
        outside.push(BYTE_ORDER_MARK);
        outside.extend(std::iter::repeat_n('\n', lines));
        outside.push_str(piece);
    }
    Some(outside.into())
}

/// Has the results of a step kept as the dialect tells them.
fn keep(step: &mut Step, dialect: Dialect) {
    match (dialect, &mut step.asks) {
        (Dialect::Operations, Asks::Operation(operation)) => {
            match operation {
                Operation::Read { reading, .. } if matches!(reading, Reading::Later(_)) => {
                    *reading = Reading::Now(Encoding::Utf8);
                }
                Operation::Run(run) => run.streams = Streams::Apart,
                _ => {}
            }
            let about = || match &*operation {
                Operation::Run(run) => run.command.clone(),
                other => other.path().map(ToString::to_string).unwrap_or_default(),
            };
            step.asked.get_or_insert_with(|| Asked { id: None, about: about() });
        }
        // What was refused as a whole is told apart by having been asked as nothing.
        (Dialect::Operations, Asks::Invalid(invalid)) if invalid.kind == Kind::Reply => {}
        (Dialect::Operations, Asks::Invalid(_)) => {
            step.asked.get_or_insert_default();
        }
        (Dialect::Tags, asks) => {
            step.asked = None;
            match asks {
                Asks::Operation(Operation::Read { reading, .. }) => {
                    if *reading == Reading::Now(Encoding::Base64) {
                        let told = "the encoding base64 was ignored: files are shown as text here; for others use a command, as in base64 FILE";
                        step.warnings.push(Warning::new(WarningSort::EncodingIgnored, told));
                    }
                    if matches!(reading, Reading::Now(_)) {
                        *reading = Reading::default();
                    }
                }
                Asks::Operation(Operation::Run(run)) => run.streams = Streams::Together,
                Asks::Operation(_) => {}
                // Results stand on one line there.
                Asks::Invalid(invalid) => invalid.reason = invalid.reason.replace('\n', "; "),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FailureKind, Invalid, Outcome};

    const LS: &str =
        r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls"}]}"#;
    const RUN: &str = "[RUN_COMMAND]\nmake\n[/RUN_COMMAND]\n";
    const BOTH: [Dialect; 2] = [Dialect::Tags, Dialect::Operations];

    /// The kinds that are asked for; what cannot be is `!`.
    fn kinds(reply: &Reply) -> Vec<String> {
        let shown = |step: &Step| match &step.asks {
            Asks::Operation(operation) => format!("{:?}", operation.kind()),
            Asks::Invalid(invalid) => format!("!{:?}", invalid.kind),
        };
        reply.steps.iter().map(shown).collect()
    }

    fn reason(step: &Step) -> &str {
        match &step.asks {
            Asks::Invalid(Invalid { reason, .. }) => reason,
            Asks::Operation(operation) => panic!("{operation:?}"),
        }
    }

    #[test]
    fn the_session_decides_how_results_are_kept() {
        let text = r#"{"protocolVersion": "1.0", "operations": [
            {"type": "shell", "id": "s", "command": "ls"},
            {"type": "readFile", "path": "./a", "encoding": "base64"}
        ]}"#;
        let asked = |reply: &Reply, n: usize| reply.steps[n].asked.clone().unwrap();
        let reply = read(text, Dialect::Operations);
        assert_eq!(asked(&reply, 0), Asked { id: Some("s".into()), about: "ls".into() });
        assert_eq!(asked(&reply, 1), Asked { id: None, about: "./a".into() });
        let Asks::Operation(Operation::Read { reading, .. }) = &reply.steps[1].asks else {
            panic!()
        };
        assert_eq!(*reading, Reading::Now(Encoding::Base64));

        let reply = read(text, Dialect::Tags);
        assert!(reply.steps.iter().all(|step| step.asked.is_none()));
        let Asks::Operation(Operation::Run(run)) = &reply.steps[0].asks else { panic!() };
        assert_eq!(run.streams, Streams::Together);
        let Asks::Operation(Operation::Read { reading, .. }) = &reply.steps[1].asks else {
            panic!()
        };
        assert_eq!(*reading, Reading::default());
        assert!(reply.steps[1].warnings[0].contains("base64 was ignored"));

        let tags = "[READ_FILE path=\"a\"]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n[DONE]\n[/DONE]\n[READ_FILE path=\"../x\"]\n[READ_FILE]\n";
        let reply = read(tags, Dialect::Operations);
        let about: Vec<String> = (0..5).map(|n| asked(&reply, n).about).collect();
        assert_eq!(about, ["a", "ls", "", "../x", ""]);
        let Asks::Operation(Operation::Read { reading, .. }) = &reply.steps[0].asks else {
            panic!()
        };
        assert_eq!(*reading, Reading::Now(Encoding::Utf8));
        assert_eq!(read(tags, Dialect::Tags), tags::parse(tags));
    }

    #[test]
    fn tags_that_are_in_order_come_first_and_the_message_is_told_of() {
        for dialect in BOTH {
            let reply = read(&format!("{LS}\n{RUN}{RUN}"), dialect);
            assert_eq!(kinds(&reply), ["Run", "Run"]);
            assert!(reply.steps[0].warnings.is_empty());
            let told = "the operations message on line 1 was not carried out: a reply holds either tags or an operations message";
            assert_eq!(reply.steps[1].warnings, [Warning::new(WarningSort::OtherDialect, told)]);
            let reply =
                read(&format!("{RUN}{LS}\n{{\"protocolVersion\": 1, \"operations\": "), dialect);
            assert_eq!(kinds(&reply), ["Run"]);
            assert!(reply.steps[0].warnings[0].contains("on line 4"), "{reply:?}");
        }
    }

    #[test]
    fn a_message_counts_beside_tags_that_are_not_in_order() {
        for dialect in BOTH {
            let reply = read(&format!("[READ_FILE]\n{LS}"), dialect);
            assert_eq!(kinds(&reply), ["Run"]);
            assert!(reply.steps[0].warnings[0].starts_with("the tags from line 1 on were ignored"));
        }
    }

    #[test]
    fn content_is_never_carried_out() {
        for dialect in BOTH {
            // A message in a file's body, also where the body never ends.
            let block = format!("[CREATE_FILE path=\"a\"]\n{LS}\n[/CREATE_FILE]\n");
            let reply = read(&block, dialect);
            assert_eq!(kinds(&reply), ["Create"]);
            assert!(reply.steps[0].warnings.is_empty());
            let reply = read(block.trim_end_matches("[/CREATE_FILE]\n"), dialect);
            assert!(reply.unclosed);
            assert_eq!(kinds(&reply), ["!Create"]);
            // Tags in a file's content, where its line breaks were not escaped.
            let broken =
                r#"{"protocolVersion": "1.0", "operations": [{"type": "createFile", "content": ""#;
            let reply = read(&format!("{broken}x\n{RUN}\"}}]}}"), dialect);
            assert_eq!(kinds(&reply), ["!Reply"]);
            assert!(reason(&reply.steps[0]).contains("line break"), "{reply:?}");
            // Tags where JSON should be.
            let reply = read(&format!("{broken}\"}},\n{RUN}]}}"), dialect);
            assert_eq!(kinds(&reply), ["!Reply"]);
        }
    }

    #[test]
    fn what_is_refused_as_a_whole_is_one_step_and_may_be_unclosed() {
        for dialect in BOTH {
            let reply = read(&LS.replace("1.0", "2.0"), dialect);
            assert_eq!(kinds(&reply), ["!Reply"]);
            let told = reason(&reply.steps[0]);
            assert!(told.starts_with("Nothing was carried out. $.protocolVersion: "), "{told}");
            assert!(!reply.unclosed && reply.steps[0].asked.is_none());
            let reply = read(&format!("So:\n{}", LS.replace("[{", "[\n{,")), dialect);
            let told = reason(&reply.steps[0]);
            assert!(told.starts_with("Nothing was carried out. $: it cannot be read"), "{told}");
            assert_eq!((told.matches("ine ").count(), reply.steps[0].line), (1, 2), "{told}");
            assert!(read(&LS[..LS.len() - 1], dialect).unclosed);
            let twice = read(&format!("{LS}\n{LS}"), dialect);
            assert!(reason(&twice.steps[0]).contains("on lines 1 and 2"));
        }
    }

    #[test]
    fn a_reply_of_nothing_is_shown_the_form_of_its_session() {
        for text in ["", "Done!", "{}", "[{\"type\": \"shell\", \"command\": \"ls\"}]"] {
            let reply = read(text, Dialect::Operations);
            let told = reason(&reply.steps[0]);
            assert!(told.contains("{\"protocolVersion\": \"1.0\", ") && !told.contains("[DONE]"));
            assert_eq!(read(text, Dialect::Tags), tags::parse(text));
        }
        // The form that is shown is right.
        let (_, form) = NO_MESSAGE.split_once("object: ").unwrap();
        let (form, done) = form.split_once("; to end the session: ").unwrap();
        assert_eq!(kinds(&read(form, Dialect::Operations)), ["Run"]);
        assert_eq!(kinds(&read(done, Dialect::Operations)), ["Done"]);
    }

    #[test]
    fn a_run_knows_no_end_of_a_session() {
        let done = r#"{"protocolVersion": "1.0", "operations": [{"type": "message", "id": "done", "content": "x"}]}"#;
        assert_eq!(kinds(&read_run(done)), ["Message"]);
        assert_eq!(kinds(&read(done, Dialect::Tags)), ["Done"]);
        let empty = r#"{"protocolVersion": "1.0", "operations": []}"#;
        assert!(read_run(empty).steps.is_empty());
        assert!(!reason(&read_run("Hello").steps[0]).contains("session"));
        let step = &read(empty, Dialect::Operations).steps[0];
        assert!(reason(step).contains("has no operations") && step.asked.is_some());
    }

    #[test]
    fn faults_stand_on_one_line_among_tags() {
        let text = LS.replace("\"command\"", "\"timeout\": 1, \"cmd\"");
        let told = |dialect| reason(&read(&text, dialect).steps[0]).to_owned();
        assert_eq!(told(Dialect::Operations).lines().count(), 2);
        assert_eq!(told(Dialect::Tags), told(Dialect::Operations).replace('\n', "; "));
        let step = &read(&text, Dialect::Tags).steps[0];
        let Asks::Invalid(invalid) = &step.asks else { panic!() };
        let outcome = Outcome::invalid(step, invalid);
        let crate::protocol::Detail::Failed(failure) = outcome.detail else { panic!() };
        assert_eq!(failure.kind, FailureKind::Invalid);
    }
}
