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
use super::{Asked, Asks, Dialect, Kind, Operation, Reading, Step, Streams};

/// A reply, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it asks for, in order; what cannot be understood is a step too, so there is always one.
    pub steps: Vec<Step>,
    /// Whether it ends within a block or a message: it may have been cut off, or not be complete
    /// yet.
    pub unclosed: bool,
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
    let blocks = tags::blocks(text);
    if blocks.unclosed {
        return true;
    }
    match outside(text, &blocks) {
        _ if blocks.steps.is_empty() => operations::ends_early(text),
        Some(outside) => operations::ends_early(&outside),
        None => false,
    }
}

fn read_as(text: &str, dialect: Dialect, ends: bool) -> Reply {
    let mut blocks = tags::blocks(text);
    let found = outside(text, &blocks).and_then(|outside| operations::find(&outside));
    let (mut steps, unclosed) = match found {
        Some(found) if is_in_operations(&found, &blocks) => {
            let unclosed = found.as_ref().is_err_and(|refused| refused.unclosed);
            let mut steps = operations::steps(found, ends);
            if let (Some(block), Some(last)) = (blocks.steps.first(), steps.last_mut()) {
                last.warnings.push(format!(
                    "the tags from line {} on were ignored: a reply holds either an operations message or tags",
                    block.line
                ));
            }
            (steps, unclosed)
        }
        found => {
            if let (Some(found), Some(last)) = (&found, blocks.steps.last_mut()) {
                last.warnings.push(format!(
                    "the operations message on line {} was not carried out: a reply holds either tags or an operations message",
                    line_of(found)
                ));
            }
            (blocks.steps, blocks.unclosed)
        }
    };
    if steps.is_empty() && ends {
        let told = match dialect {
            Dialect::Tags => tags::NO_COMMAND,
            Dialect::Operations => NO_MESSAGE,
        };
        steps.push(Step::refused(1, told));
    }
    steps.iter_mut().for_each(|step| keep(step, dialect));
    Reply { steps, unclosed }
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
    // Without the key's bytes nothing is a message or meant as one.
    const KEY: &[u8] = b"operations";
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
                Operation::Read { reading, .. } if *reading == Reading::Later => {
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
                        step.warnings.push(
                            "the encoding base64 was ignored: files are shown as text here; for others use a command, as in base64 FILE".to_owned(),
                        );
                    }
                    *reading = Reading::Later;
                }
                Asks::Operation(Operation::Run(run)) => run.streams = Streams::Together,
                Asks::Operation(_) => {}
                // Results stand on one line there.
                Asks::Invalid(invalid) => invalid.reason = invalid.reason.replace('\n', "; "),
            }
        }
    }
}
