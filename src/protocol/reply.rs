//! Reads a reply: determines its dialect, and parses it into steps.
//!
//! A reply is in one dialect: in tags if any of its blocks is well-formed, otherwise in operations if it contains a
//! message. All text inside a block belongs to the block. A block or message without a known end includes all text
//! after it. So content is never executed: neither a message in a file's body nor a tag after a broken message.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::path::Path;

use memchr::{memchr_iter, memmem};

use super::operations::{self, Encoding};
use super::tags::{self, Blocks};
use super::{
    Dialect, Kind, Mistake, Operation, Reading, SentValues, Step, StepContent, Streams, Warning,
    WarningKind, returns,
};

/// The steps of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The steps, in order. A part that cannot be understood is a step, too, so there is always at least one.
    pub steps: Vec<Step>,
    /// Whether the reply ends inside a block or a message. It may have been cut off, or be incomplete.
    pub unclosed: bool,
    /// The dialect of the reply; None if it contains neither blocks nor a message.
    pub dialect: Option<Dialect>,
    /// The outbox that the reply claims to answer (protocol 1.1, `[REPLY …]`).
    pub answers: Option<ReplyAddress>,
}

/// The outbox that a reply claims to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyAddress {
    /// The session's ID, as it was sent.
    pub session: String,
    /// The number of the outbox.
    pub sequence: u32,
    /// The key of the outbox.
    pub key: Option<String>,
}

/// The error for a reply without blocks or a message, in a session with the operations dialect.
const NO_MESSAGE: &str = "The reply contains no operations message, so nothing was done";
/// The correct form, and the form that ends a session.
const FORM: &str = r#"Correct form, as one JSON object: {"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls"}]}"#;
const END_FORM: &str = r#"to end the session: {"protocolVersion": "1.0", "operations": [{"type": "message", "id": "done", "content": "a summary"}]}"#;

/// Reads a reply in either dialect (tag protocol, "Inbox Format"; agent-spaces-protocol, "Operations Message").
/// `dialect` is the session's dialect. It determines the form of results: when files are read, whether streams are
/// separate, and which values events repeat.
///
/// # Examples
/// ```
/// use deaddrop::protocol::{StepContent, Dialect, Kind, read};
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
    read_blocks(text, tags::blocks(text, None), dialect, true)
}

/// Reads commands that are run once, outside any session. The `message` with the ID [`DONE`](operations::DONE) has no
/// special meaning there. A message without operations has no steps.
pub fn read_run(text: &str) -> Reply {
    read_blocks(text, tags::blocks(text, None), Dialect::Operations, false)
}

/// Whether a text with these blocks ends inside a block, or inside a text that may be a message.
fn ends_within(text: &str, blocks: &Blocks) -> bool {
    match outside(&returns::with_line_feeds(text), blocks) {
        _ if blocks.unclosed => true,
        _ if blocks.steps.is_empty() => operations::ends_early(text),
        outside => outside.is_some_and(|outside| operations::ends_early(&outside)),
    }
}

/// Reads a text with these blocks. `ends` says whether the reply can end its session.
fn read_blocks(text: &str, blocks: Blocks, dialect: Dialect, ends: bool) -> Reply {
    let text = returns::with_line_feeds(text);
    let found = outside(&text, &blocks).and_then(|outside| operations::find(&outside));
    let Blocks { steps: mut in_tags, mut notes, answers, unclosed, .. } = blocks;
    let line = found.as_ref().map_or(0, |found| match found {
        Ok(received) => received.line,
        Err(refused) => refused.line,
    });
    let other = |text| Warning::new(WarningKind::OtherDialect, text);
    let (is_message, is_cut) = match &found {
        Some(Ok(_)) => (true, false),
        found => (false, matches!(found, Some(Err(refused)) if refused.unclosed)),
    };
    let mut reply = match found {
        Some(found) if is_in_operations(found.is_ok(), line, &in_tags) => {
            let mut steps = operations::steps(found, ends);
            use WarningKind::{TagsInElement, TagsInThoughts};
            notes.retain(|note| matches!(note.kind, TagsInThoughts | TagsInElement));
            steps.iter_mut().take(1).for_each(|first| first.warnings.append(&mut notes));
            if let (Some(block), Some(last)) = (in_tags.first(), steps.last_mut()) {
                last.warnings.push(other(format!(
                    "the tags from line {} on were ignored: a reply contains either an operations message or tags",
                    block.line
                )));
            }
            Reply { steps, unclosed: is_cut, dialect: Some(Dialect::Operations), answers }
        }
        found => {
            if let (Some(_), Some(last)) = (found, in_tags.last_mut()) {
                last.warnings.push(other(format!(
                    "the operations message on line {line} was not carried out: a reply contains either tags or an operations message"
                )));
            }
            let dialect = (!in_tags.is_empty()).then_some(Dialect::Tags);
            Reply { steps: in_tags, unclosed, dialect, answers }
        }
    };
    // A single run has no session that could be ended.
    let form = if ends { format!("{FORM}; {END_FORM}") } else { FORM.to_owned() };
    if reply.steps.is_empty() && (ends || !is_message) {
        let reason = match dialect {
            Dialect::Tags => tags::NO_COMMAND.to_owned(),
            Dialect::Operations => format!("{NO_MESSAGE}. {form}"),
        };
        reply.steps.push(Step { warnings: notes, ..Step::refused(1, Mistake::NoCommand, reason) });
    }
    let is_other = ends && (dialect, reply.dialect) == (Dialect::Operations, Some(Dialect::Tags));
    if let (true, Some(last)) = (is_other, reply.steps.last_mut()) {
        last.warnings.push(other(format!("this session uses another form (see PROTOCOL). {form}")));
    }
    reply.steps.iter_mut().for_each(|step| adapt_to(dialect, step));
    reply
}

/// Whether a message that begins on `line` takes precedence over these blocks.
fn is_in_operations(is_valid: bool, line: usize, blocks: &[Step]) -> bool {
    let Some(first) = blocks.first() else { return true };
    let in_order = |step: &Step| step.ends || matches!(step.asks, StepContent::Operation(_));
    // The end of a broken message is unknown, so blocks after it may be part of its content.
    !blocks.iter().any(in_order) || !is_valid && line < first.line
}

/// The text outside blocks, with the same line numbers. None if it cannot contain a message. Opening tags are kept, so
/// that a message with a tag inside it is not valid.
fn outside<'a>(text: &'a str, blocks: &Blocks) -> Option<Cow<'a, str>> {
    const BYTE_ORDER_MARK: char = '\u{feff}';
    const KEY: &[u8] = b"operations"; // Every message has it.
    let has_key = |piece: &str| memmem::find(piece.as_bytes(), KEY).is_some();
    if blocks.bodies.is_empty() {
        return has_key(text).then_some(Cow::Borrowed(text));
    }
    let ends = std::iter::once(0).chain(blocks.bodies.iter().map(|body| body.end));
    let begins = blocks.bodies.iter().map(|body| body.start).chain([text.len()]);
    let mut pieces = ends.zip(begins).map(|(from, to)| &text[from..to]);
    if !pieces.clone().any(has_key) {
        return None;
    }
    let mut outside = String::with_capacity(text.len());
    outside.push_str(pieces.next().unwrap_or_default());
    for (piece, body) in pieces.zip(&blocks.bodies) {
        let lines = memchr_iter(b'\n', &text.as_bytes()[body.clone()]).count();
        // This ends a message before the block. Another message may begin after it.
        outside.push(BYTE_ORDER_MARK);
        outside.extend(std::iter::repeat_n('\n', lines));
        outside.push_str(piece);
    }
    Some(outside.into())
}

/// Adapts a step to the form in which the session's dialect reports results.
fn adapt_to(dialect: Dialect, step: &mut Step) {
    match (dialect, &mut step.asks) {
        (Dialect::Operations, StepContent::Operation(operation)) => {
            match operation {
                Operation::Read { reading: Reading::Now(_), .. } => {}
                Operation::Read { reading, .. } => *reading = Reading::Now(Encoding::Utf8),
                Operation::Run(run) => run.streams = Streams::Apart,
                _ => {}
            }
            step.asked.get_or_insert_with(|| {
                let about = match &*operation {
                    Operation::Run(run) => run.command.clone(),
                    other => other.path().map(ToString::to_string).unwrap_or_default(),
                };
                SentValues { id: None, about }
            });
        }
        // A reply that was refused as a whole repeats no values.
        (Dialect::Operations, StepContent::Invalid(invalid)) if invalid.kind == Kind::Reply => {}
        (Dialect::Operations, StepContent::Invalid(_)) => {
            step.asked.get_or_insert_default();
        }
        (Dialect::Tags, asks) => {
            step.asked = None;
            match asks {
                StepContent::Operation(Operation::Read { reading, .. }) => {
                    if *reading == Reading::Now(Encoding::Base64) {
                        let text = "the encoding base64 was ignored: files are shown as text here; for other files use a command, as in base64 FILE";
                        step.warnings.push(Warning::new(WarningKind::EncodingIgnored, text));
                    }
                    if matches!(reading, Reading::Now(_)) {
                        *reading = Reading::default();
                    }
                }
                StepContent::Operation(Operation::Run(run)) => run.streams = Streams::Together,
                StepContent::Operation(_) => {}
                // In the tag dialect, each result is one line.
                StepContent::Invalid(invalid) => {
                    invalid.reason = invalid.reason.replace('\n', "; ");
                }
            }
        }
    }
}

thread_local! {
    static PARSED: Cell<usize> = const { Cell::new(0) };
}

/// How often this thread has parsed a [`ParsedReply`], for tests. Parsing reads every byte.
pub fn parsed() -> usize {
    PARSED.get()
}

/// The text of a reply. It is parsed only once, when its blocks are first needed.
#[derive(Debug, Clone)]
pub struct ParsedReply {
    text: String,
    blocks: OnceCell<Box<Blocks>>,
}

impl ParsedReply {
    /// A reply with this text.
    pub fn new(text: String) -> Self {
        Self { text, blocks: OnceCell::new() }
    }

    /// The text of the reply.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Converts the reply into its text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// The outbox that the reply claims to answer.
    pub fn answers(&self) -> Option<&ReplyAddress> {
        // A `[REPLY …]` line always contains the name of this attribute.
        let holds = |word: &[u8]| memmem::find(self.text.as_bytes(), word).is_some();
        if holds(b"session") || holds(b"SESSION") { self.blocks().answers.as_ref() } else { None }
    }

    /// Whether the reply may be incomplete: it ends inside a block, or inside a text that may be a message.
    pub fn ends_early(&self) -> bool {
        ends_within(&self.text, self.blocks())
    }

    /// Reads the reply like [`read`]. Absolute paths in `workspace` (a real path) become relative in tags.
    pub fn read_in(&mut self, dialect: Dialect, workspace: Option<&Path>) -> Reply {
        let names = |path: &&str| memmem::find(self.text.as_bytes(), path.as_bytes()).is_some();
        let workspace = workspace.and_then(Path::to_str).filter(names);
        // Cached blocks were parsed without a workspace.
        let parsed = self.blocks.take().filter(|_| workspace.is_none());
        let blocks = parsed.unwrap_or_else(|| self.parse(workspace));
        read_blocks(&self.text, *blocks, dialect, true)
    }

    fn blocks(&self) -> &Blocks {
        self.blocks.get_or_init(|| self.parse(None))
    }

    fn parse(&self, workspace: Option<&str>) -> Box<Blocks> {
        PARSED.set(PARSED.get() + 1);
        Box::new(tags::blocks(&self.text, workspace))
    }
}

#[cfg(test)]
mod tests;
