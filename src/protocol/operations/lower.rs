//! Lowers operations as they were sent to the [`Step`]s of all dialects.
//!
//! What cannot be carried out is a step, too, so that it is reported in its place: a malformed
//! operation, one whose path names nothing in a workspace, and those beyond the limit.

use std::time::Duration;

use super::{
    CreateFileOperation, EditFileOperation, Encoding, Entry, FileEdit, OPERATIONS_LIMIT, Operation,
    OperationType, Received, Refused, ShellOperation, SkipReason, Skipped,
};
use crate::protocol::{
    Asked, Asks, Change, Content, Existing, Invalid, Kind, Mistake, Operation as Lowered,
    PathFault, Reading, RelPath, Replacement, ShellCommand, Step, Streams, Warning, WarningSort,
    content_checks::{diff, fence, is_code, may_be_patch},
    returns,
    tags::Wrong,
};
use crate::text::visible_line;

/// The ID of a `message` that ends a session if it is the last operation of a reply. This is a
/// convention within the protocol, which knows no sessions; elsewhere it is a message like others.
pub const DONE: &str = "done";
/// The timeout of a `shell` that names none (agent-spaces-protocol, "shell").
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Lowers a message to steps. `ends` says whether its last operation can end a session: a `message`
/// with the ID [`DONE`], if all before it succeed. If not, there may be no steps at all.
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
    let Received { line, entries } = match found {
        Ok(received) => received,
        Err(Refused { line, faults, unclosed }) => {
            let sort = if unclosed { Mistake::CutOff } else { Mistake::MessageRefused };
            return vec![Step::refused(line, sort, format!("Nothing was carried out. {faults}"))];
        }
    };
    if entries.is_empty() && ends {
        let reason = format!(
            "The operations message has no operations, so nothing was done. To end the session, send a message operation with the id \"{DONE}\""
        );
        let step = Step::refused(line, Mistake::NoCommand, reason);
        return vec![Step { asked: Some(Asked::default()), ..step }];
    }
    let last = entries.len().saturating_sub(1);
    let mut steps: Vec<Step> = Vec::with_capacity(entries.len());
    for (n, entry) in entries.into_iter().enumerate() {
        let closes = ends
            && matches!(&entry.operation, Ok(Operation::Message(message)) if message.id.as_deref() == Some(DONE));
        let mut step = lower_entry(entry);
        match &mut step.asks {
            Asks::Operation(Lowered::Message { text }) if closes && n == last => {
                let summary = std::mem::take(text);
                step.asks = Asks::Operation(Lowered::Done { summary, if_ok: true });
            }
            _ if closes => step.warnings.push(Warning::new(
                WarningSort::EndNotLast,
                format!("the id \"{DONE}\" did not end the session: only the last operation of a reply can"),
            )),
            _ => {}
        }
        steps.push(step);
    }
    steps
}

fn lower_entry(Entry { line, operation }: Entry) -> Step {
    let (asks, asked, warnings) = match operation {
        Ok(operation) => {
            let kind = Kind::of(operation.kind());
            let id = operation.id().map(str::to_owned);
            let asked = Asked { id, about: operation.subject().to_owned() };
            let mut warnings = Vec::new();
            let asks = lower(operation, &mut warnings).map_or_else(
                |Refusal { sort, rejected, reason }| {
                    Asks::Invalid(Invalid { kind, sort, rejected, reason })
                },
                Asks::Operation,
            );
            (asks, asked, warnings)
        }
        Err(Skipped { id, kind, reason }) => {
            let kind = kind.map_or(Kind::Reply, Kind::of);
            let (sort, reason) = match reason {
                SkipReason::Malformed(faults) => (Mistake::OperationMalformed, faults.to_string()),
                SkipReason::BeyondLimit => (
                    Mistake::TooMany,
                    format!(
                        "Not carried out: only the first {OPERATIONS_LIMIT} operations of a message are. Send it again in another message"
                    ),
                ),
            };
            let invalid = Invalid { kind, sort, rejected: false, reason };
            (Asks::Invalid(invalid), Asked { id, about: String::new() }, Vec::new())
        }
    };
    Step { asked: Some(asked), warnings, ..Step::new(line, asks) }
}

/// Why a valid operation asks for nothing that can be done.
struct Refusal {
    sort: Mistake,
    /// Whether it is refused for safety.
    rejected: bool,
    reason: String,
}

impl From<PathFault> for Refusal {
    fn from(fault: PathFault) -> Self {
        Self { sort: Mistake::PathRefused, rejected: true, reason: fault.to_string() }
    }
}

impl From<Wrong> for Refusal {
    fn from(Wrong { sort, phrase }: Wrong) -> Self {
        Self { sort, rejected: false, reason: phrase }
    }
}

fn lower(operation: Operation, warnings: &mut Vec<Warning>) -> Result<Lowered, Refusal> {
    Ok(match operation {
        Operation::Message(message) => {
            let mut text = message.content;
            text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
            Lowered::Message { text }
        }
        Operation::CreateFile(create) => lower_create(create, warnings)?,
        Operation::ReadFile(read) => Lowered::Read {
            path: lower_path(&read.path, warnings)?,
            reading: Reading::Now(read.encoding.unwrap_or_default()),
        },
        Operation::EditFile(edit) => lower_edit(edit, warnings)?,
        Operation::DeleteFile(delete) => {
            Lowered::Delete { path: lower_path(&delete.path, warnings)? }
        }
        Operation::Shell(ShellOperation { command, cwd, timeout, env, .. }) => {
            Lowered::Run(ShellCommand {
                command: without_returns(command, warnings)?,
                cwd: cwd.as_deref().map(lower_cwd).transpose()?.flatten(),
                timeout: timeout.map(|ms| Duration::from_millis(ms.into())),
                default_timeout: Some(DEFAULT_TIMEOUT),
                env: env.unwrap_or_default(),
                streams: Streams::Apart,
            })
        }
    })
}

fn lower_create(
    create: CreateFileOperation,
    warnings: &mut Vec<Warning>,
) -> Result<Lowered, Refusal> {
    let path = lower_path(&create.path, warnings)?;
    let (encoding, mut text) = (create.encoding.unwrap_or_default(), create.content);
    if encoding == Encoding::Utf8 && is_code(&path) {
        match fence::strip(&text, "the content", warnings)?.map(str::to_owned) {
            Some(inner) => text = inner,
            None => warnings.extend(fence::warn_kept(&text, 1, " of the content")),
        }
        if !may_be_patch(&path) {
            warnings.extend(diff::check_content(&text, "the content", false)?);
        }
    }
    let existing = match create.overwrite {
        Some(true) => Existing::replaced_by(&text),
        _ => Existing::Fail,
    };
    let content = match (encoding, encoding.decode(&text)) {
        (Encoding::Base64, Ok(bytes)) => Content::Bytes(bytes.into_owned()),
        // Base64 was decoded once before, when it was validated.
        _ => Content::Text(text),
    };
    Ok(Lowered::Create { path, existing, content })
}

fn lower_edit(edit: EditFileOperation, warnings: &mut Vec<Warning>) -> Result<Lowered, Refusal> {
    let path = lower_path(&edit.path, warnings)?;
    let (is_code, is_patch) = (is_code(&path), may_be_patch(&path));
    let several = edit.edits.len() > 1;
    let mut replacements = Vec::with_capacity(edit.edits.len());
    for (n, FileEdit { old_content: old, new_content: new }) in edit.edits.into_iter().enumerate() {
        if is_code {
            let which = if several { format!(" of edits[{n}]") } else { String::new() };
            fence::refuse_around_part(&old, &new, &format!("newContent{which}"))?;
        }
        // Inside a line a sign is a part of it.
        if is_code && !is_patch && (old.contains('\n') || new.contains('\n')) {
            warnings.extend(diff::check_replacement(&old, &new, "newContent")?);
        }
        replacements.push(Replacement { old, new });
    }
    Ok(Lowered::Edit { path, change: Change::First(replacements) })
}

fn lower_path(text: &str, warnings: &mut Vec<Warning>) -> Result<RelPath, Refusal> {
    // The chat put it in, so this is not the path that was sent.
    if text.contains('【') && text.contains('†') {
        let reason = format!("the path '{}' has a citation mark of the chat", visible_line(text));
        return Err(Refusal { sort: Mistake::PathCitation, rejected: false, reason });
    }
    let path = RelPath::parse(text)?;
    if text.contains('\\') {
        let shown = visible_line(text);
        let warning = format!("the path '{shown}' was read as '{path}': write / between folders");
        warnings.push(Warning::new(WarningSort::PathBackslashes, warning));
    }
    Ok(path)
}

/// Lowers a working directory; None is the workspace, which has no name among paths.
fn lower_cwd(text: &str) -> Result<Option<RelPath>, PathFault> {
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

/// Removes the carriage returns at the ends of a command's lines.
fn without_returns(command: String, warnings: &mut Vec<Warning>) -> Result<String, Refusal> {
    match returns::without(&command) {
        Ok(None) => Ok(command),
        Ok(Some(plain)) => {
            let warning = "the lines of the command ended in carriage returns (\\r), which were removed: write \\n alone between lines";
            warnings.push(Warning::new(WarningSort::StrangeCharacters, warning));
            Ok(plain)
        }
        Err(n) => {
            let reason = returns::told(&format!("line {n} of the command"));
            Err(Refusal { sort: Mistake::CommandUnclear, rejected: false, reason })
        }
    }
}

impl Kind {
    /// The kind of an operation of that type.
    fn of(operation: OperationType) -> Self {
        match operation {
            OperationType::Message => Self::Message,
            OperationType::CreateFile => Self::Create,
            OperationType::ReadFile => Self::Read,
            OperationType::EditFile => Self::Edit,
            OperationType::DeleteFile => Self::Delete,
            OperationType::Shell => Self::Run,
        }
    }

    /// The type by which an operation of that kind is reported; None for a reply as a whole.
    pub(in crate::protocol) fn operation_type(self) -> Option<OperationType> {
        Some(match self {
            Self::Message | Self::Done => OperationType::Message,
            Self::Create => OperationType::CreateFile,
            Self::Read => OperationType::ReadFile,
            Self::Edit => OperationType::EditFile,
            Self::Delete => OperationType::DeleteFile,
            // The protocol has no events for the last three.
            Self::Run | Self::List | Self::Search | Self::Move => OperationType::Shell,
            Self::Reply => return None,
        })
    }
}

#[cfg(test)]
mod tests;
