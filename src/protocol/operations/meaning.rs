//! From operations as they were sent to what is asked for, in the words of all dialects.
//!
//! What cannot be carried out is a step too, so that it is told in its place: a malformed operation,
//! one whose path names nothing in a workspace, and those that are more than are read of a message.

use std::time::Duration;

use super::{
    CreateFileOperation, Encoding, Entry, FileEdit, Malformed, OPERATIONS_LIMIT, Operation,
    OperationType, Received, Refused, ShellOperation,
};
use crate::protocol::{
    Asked, Asks, Change, Content, Existing, Invalid, Kind, Mistake, Operation as Meant, PathFault,
    Reading, RelPath, Replacement, ShellCommand, Step, Streams, Warning, WarningSort, returns,
    tags::{self, Wrong, fences},
};

/// The id of a `message` that ends a session, where it is the last operation of a reply. It is a
/// convention within the protocol, which knows no sessions: elsewhere it is a message like others.
pub const DONE: &str = "done";

/// What a message asks for, step by step. `ends` says whether the last operation can end a session:
/// a `message` with the id [`DONE`], if all before it succeed. Where it does not, there may be no
/// steps at all.
///
/// # Examples
/// ```
/// use deaddrop::protocol::{Asks, Operation, operations};
/// let text = r#"{"protocolVersion": "1.0", "operations": [
///     {"type": "message", "id": "done", "content": "Wrote it."}
/// ]}"#;
/// let found = operations::find(text).unwrap();
/// let done = Operation::Done { summary: "Wrote it.".into(), if_ok: true };
/// assert_eq!(operations::steps(found.clone(), true)[0].asks, Asks::Operation(done));
/// let message = Operation::Message { text: "Wrote it.".into() };
/// assert_eq!(operations::steps(found, false)[0].asks, Asks::Operation(message));
/// ```
pub fn steps(found: Result<Received, Refused>, ends: bool) -> Vec<Step> {
    let received = match found {
        Ok(received) => received,
        Err(refused) => {
            let Refused { line, faults, .. } = &refused;
            let reason = format!("Nothing was carried out. {}{faults}", faults.line_before(*line));
            let sort = if refused.unclosed { Mistake::CutOff } else { Mistake::MessageRefused };
            return vec![Step::refused(refused.line, sort, reason)];
        }
    };
    let Some(last) = received.entries.len().checked_sub(1) else {
        return if ends { vec![nothing(received.line)] } else { Vec::new() };
    };
    let Received { entries, left_out, left_out_from, .. } = received;
    let whole = left_out == 0;
    let mut steps: Vec<Step> = entries
        .into_iter()
        .enumerate()
        .map(|(n, entry)| {
            let closes = ends && is_done(&entry);
            let mut step = step(entry);
            if closes && n == last && whole {
                end(&mut step);
            } else if closes {
                let told = format!(
                    "the id \"{DONE}\" did not end the session: only the last operation of a reply can"
                );
                step.warnings.push(Warning::new(WarningSort::EndNotLast, told));
            }
            step
        })
        .collect();
    if !whole {
        let (them, were) =
            if left_out == 1 { ("operation", "was") } else { ("operations", "were") };
        let reason = format!(
            "{left_out} {them} from line {left_out_from} on {were} not carried out: of one reply the first {OPERATIONS_LIMIT} are"
        );
        steps.push(Step::refused(left_out_from, Mistake::TooMany, reason));
    }
    steps
}

/// A session goes on with a word about it where nothing was asked for.
fn nothing(line: usize) -> Step {
    let reason = format!(
        "The operations message holds no operations, so nothing was done. To end the session, send a message operation with the id \"{DONE}\""
    );
    let step = Step::refused(line, Mistake::NoCommand, reason);
    Step { asked: Some(Asked::default()), ..step }
}

fn is_done(entry: &Entry) -> bool {
    matches!(&entry.asks, Ok(Operation::Message(message)) if message.id.as_deref() == Some(DONE))
}

/// Makes a message the end of the session.
fn end(step: &mut Step) {
    if let Asks::Operation(Meant::Message { text }) = &mut step.asks {
        let summary = std::mem::take(text);
        step.asks = Asks::Operation(Meant::Done { summary, if_ok: true });
    }
}

fn step(Entry { line, asks }: Entry) -> Step {
    let operation = match asks {
        Ok(operation) => operation,
        Err(malformed) => return skipped(line, malformed),
    };
    let kind = Kind::of(operation.kind());
    let id = operation.id().map(str::to_owned);
    let about = operation.about().to_owned();
    let mut warnings = Vec::new();
    let asks = match meant(operation, &mut warnings) {
        Ok(meant) => Asks::Operation(meant),
        Err(Unmeant { sort, rejected, told }) => {
            let reason = format!("{told} (line {line})");
            Asks::Invalid(Invalid { kind, sort, rejected, reason })
        }
    };
    Step {
        line,
        asks,
        ends: false,
        passes_over: false,
        warnings,
        asked: Some(Asked { id, about }),
        as_sent: None,
    }
}

/// A malformed operation: it is told, and the others go on ("Graceful Degradation").
fn skipped(line: usize, Malformed { id, kind, faults }: Malformed) -> Step {
    let kind = kind.map_or(Kind::Reply, Kind::of);
    let reason = format!("{}{faults}", faults.line_before(line));
    let sort = Mistake::OperationMalformed;
    let invalid = Invalid { kind, sort, rejected: false, reason };
    let asked = Some(Asked { id, about: String::new() });
    Step { asked, ..Step::new(line, Asks::Invalid(invalid)) }
}

/// Why an operation in order asks for nothing that can be done.
struct Unmeant {
    sort: Mistake,
    /// For safety.
    rejected: bool,
    told: String,
}

impl From<PathFault> for Unmeant {
    fn from(fault: PathFault) -> Self {
        Self { sort: Mistake::PathRefused, rejected: true, told: fault.to_string() }
    }
}

impl From<Wrong> for Unmeant {
    fn from(Wrong { sort, phrase }: Wrong) -> Self {
        Self { sort, rejected: false, told: phrase }
    }
}

fn meant(operation: Operation, warnings: &mut Vec<Warning>) -> Result<Meant, Unmeant> {
    Ok(match operation {
        Operation::Message(message) => {
            let mut text = message.content;
            text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
            Meant::Message { text }
        }
        Operation::CreateFile(mut create) => {
            let path = read_path(&create.path, warnings)?;
            if create.encoding.unwrap_or_default() == Encoding::Utf8 && tags::is_code(&path) {
                without_fence(&mut create.content, warnings)?;
                if !tags::is_patch(&path) {
                    warnings.extend(tags::of_content(&create.content, "the content")?);
                }
            }
            let existing = match create.overwrite {
                Some(true) => Existing::replaced_by(&create.content),
                _ => Existing::Fail,
            };
            Meant::Create { path, existing, content: content(create) }
        }
        Operation::ReadFile(read) => Meant::Read {
            path: read_path(&read.path, warnings)?,
            reading: Reading::Now(read.encoding.unwrap_or_default()),
        },
        Operation::EditFile(edit) => {
            let path = read_path(&edit.path, warnings)?;
            let (is_code, is_patch) = (tags::is_code(&path), tags::is_patch(&path));
            let several = edit.edits.len() > 1;
            let mut replacements = Vec::with_capacity(edit.edits.len());
            for (n, FileEdit { old_content: old, new_content: new }) in
                edit.edits.into_iter().enumerate()
            {
                if is_code {
                    let which = if several { format!(" of edits[{n}]") } else { String::new() };
                    fences::around_a_part(&old, &new, &format!("newContent{which}"))?;
                }
                // Within a line a sign is a part of it.
                if is_code && !is_patch && (old.contains('\n') || new.contains('\n')) {
                    warnings.extend(tags::in_place_of(&old, &new, "newContent", "newContent")?);
                }
                replacements.push(Replacement { old, new });
            }
            Meant::Edit { path, change: Change::First(replacements) }
        }
        Operation::DeleteFile(delete) => Meant::Delete { path: read_path(&delete.path, warnings)? },
        Operation::Shell(ShellOperation { command, cwd, timeout, env, .. }) => {
            let command = without_returns(command, warnings)?;
            Meant::Run(ShellCommand {
                cwd: cwd.as_deref().map(folder).transpose()?.flatten(),
                timeout: timeout.map(|ms| Duration::from_millis(ms.into())),
                env: env.unwrap_or_default(),
                streams: Streams::Apart,
                command,
            })
        }
    })
}

fn content(create: CreateFileOperation) -> Content {
    match create.encoding.unwrap_or_default() {
        Encoding::Utf8 => Content::Text(create.content),
        // It was decoded once, when it was validated.
        Encoding::Base64 => match Encoding::Base64.decode(&create.content) {
            Ok(bytes) => Content::Bytes(bytes.into_owned()),
            Err(_) => Content::Text(create.content),
        },
    }
}

/// Takes off the fence that a content of code is, as it is done with a body in tags.
fn without_fence(content: &mut String, warnings: &mut Vec<Warning>) -> Result<(), Wrong> {
    match fences::without(content, false, "the content", warnings)?.map(str::to_owned) {
        Some(inner) => *content = inner,
        None => warnings.extend(fences::kept(content, 1, " of the content")),
    }
    Ok(())
}

fn read_path(text: &str, warnings: &mut Vec<Warning>) -> Result<RelPath, Unmeant> {
    let none = |(sort, told): (Mistake, String)| {
        let told = format!("the path '{}' {told}", crate::text::visible_line(text));
        Unmeant { sort, rejected: false, told }
    };
    if let Some(found) = tags::no_path(text) {
        return Err(none(found));
    }
    let path = RelPath::parse(text)?;
    warnings.extend(tags::stood_for(text, &path).map_err(none)?);
    if text.contains('\\') {
        let shown = crate::text::visible_line(text);
        let told = format!("the path '{shown}' was read as '{path}': write / between folders");
        warnings.push(Warning::new(WarningSort::PathBackslashes, told));
    }
    Ok(path)
}

/// A command without the carriage returns that its lines end in.
fn without_returns(command: String, warnings: &mut Vec<Warning>) -> Result<String, Unmeant> {
    match returns::without(&command) {
        Ok(None) => Ok(command),
        Ok(Some(plain)) => {
            let told = "the lines of the command ended in carriage returns (\\r), which were taken off: write \\n alone between lines";
            warnings.push(Warning::new(WarningSort::StrangeCharacters, told));
            Ok(plain)
        }
        Err(n) => {
            let told = returns::told(&format!("line {n} of the command"));
            Err(Unmeant { sort: Mistake::CommandUnclear, rejected: false, told })
        }
    }
}

/// A folder to begin in; None for the workspace's root, which has no name among paths.
fn folder(text: &str) -> Result<Option<RelPath>, PathFault> {
    let mut rest = text;
    while let Some(shorter) = ["/", "\\", "/.", "\\."].iter().find_map(|end| rest.strip_suffix(end))
    {
        rest = shorter;
    }
    match rest {
        "." => Ok(None),
        "" if text.is_empty() => Ok(None),
        "" => RelPath::parse(text).map(Some),
        folder => RelPath::parse(folder).map(Some),
    }
}

impl Operation {
    /// The path or the command, as it was sent; nothing for a message.
    pub(in crate::protocol) fn about(&self) -> &str {
        match self {
            Self::Message(_) => "",
            Self::CreateFile(operation) => &operation.path,
            Self::ReadFile(operation) => &operation.path,
            Self::EditFile(operation) => &operation.path,
            Self::DeleteFile(operation) => &operation.path,
            Self::Shell(operation) => &operation.command,
        }
    }
}

impl Kind {
    /// What an operation of that name is.
    pub(super) fn of(operation: OperationType) -> Self {
        match operation {
            OperationType::Message => Self::Message,
            OperationType::CreateFile => Self::Create,
            OperationType::ReadFile => Self::Read,
            OperationType::EditFile => Self::Edit,
            OperationType::DeleteFile => Self::Delete,
            OperationType::Shell => Self::Run,
        }
    }

    /// Which of the six operations that is; None for a reply as a whole.
    pub(in crate::protocol) fn operation_type(self) -> Option<OperationType> {
        Some(match self {
            Self::Message | Self::Done => OperationType::Message,
            Self::Create => OperationType::CreateFile,
            Self::Read => OperationType::ReadFile,
            Self::Edit => OperationType::EditFile,
            Self::Delete => OperationType::DeleteFile,
            // As they are told: see `telling`.
            Self::Run | Self::List | Self::Search | Self::Move => OperationType::Shell,
            Self::Reply => return None,
        })
    }
}

#[cfg(test)]
mod tests;
