//! Lowers operations as they were sent to [`Step`]s, which all dialects share.
//!
//! An operation that cannot be executed becomes a step, too, so that it is reported in its place: it is malformed, its
//! path is not in the workspace, or it exceeds the limit.

use std::time::Duration;

use serde::Deserialize;

use super::wire::{FileEdit, SentOperation};
use super::{Encoding, OPERATIONS_LIMIT, Received, ReceivedOperation, RefusedMessage};
use crate::protocol::mistake::Problem;
use crate::protocol::{
    Change, Existing, Invalid, Kind, Mistake, Operation, PathFault, Reading, RelPath, Replacement,
    SentValues, ShellCommand, Step, StepContent, Streams, TextOrBytes, Warning, WarningKind,
    content_checks::{diff, fence, is_code, may_be_patch},
    returns,
};
use crate::text::visible_line;

/// A `message` with this ID ends the session if it is the last operation of a reply. This is a convention: the protocol
/// has no sessions, and in any other place this is an ordinary message.
pub const DONE: &str = "done";
/// The timeout of a `shell` operation that does not specify one (agent-spaces-protocol, "shell").
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Lowers a message to steps. If `ends` is true, the last operation can end a session: a `message` with the ID
/// [`DONE`], if all operations before it succeed. If `ends` is false, there may be no steps at all.
pub fn steps(found: Result<Received, RefusedMessage>, ends: bool) -> Vec<Step> {
    let Received { line, entries } = match found {
        Ok(received) => received,
        Err(RefusedMessage { line, faults, unclosed }) => {
            let mistake = if unclosed { Mistake::CutOff } else { Mistake::MessageRefused };
            let faults = faults.to_string().replacen("$: it ", "Your reply ", 1);
            let again = if unclosed { "" } else { ". Send the whole reply again" };
            let reason = format!("Nothing was carried out. {faults}{again}");
            return vec![Step::refused(line, mistake, reason)];
        }
    };
    if entries.is_empty() && ends {
        let reason = format!(
            "The operations message has no operations, so nothing was done. To end the session, send a message operation with the id \"{DONE}\""
        );
        let step = Step::refused(line, Mistake::NoCommand, reason);
        return vec![Step { asked: Some(SentValues::default()), ..step }];
    }
    let last = entries.len().saturating_sub(1);
    let lower_entry = |(n, entry): (usize, ReceivedOperation)| {
        let ReceivedOperation { line, kind, asked, operation } = entry;
        let mut warnings = Vec::new();
        let is_beyond = n >= OPERATIONS_LIMIT;
        let mistake = if is_beyond { Mistake::TooMany } else { Mistake::OperationMalformed };
        let refused = |why: String| refusal(mistake, why);
        let sent = operation.map_err(|faults| refused(faults.to_string())).and_then(|value| {
            SentOperation::deserialize(value).map_err(|error| refused(error.to_string()))
        });
        let asks = match sent.and_then(|operation| lower(operation, &mut warnings)) {
            Ok(Operation::Message { text }) if ends && asked.id.as_deref() == Some(DONE) => {
                if n < last {
                    let told = format!(
                        "the id \"{DONE}\" did not end the session: only the last operation of a reply can"
                    );
                    warnings.push(Warning::new(WarningKind::EndNotLast, told));
                    StepContent::Operation(Operation::Message { text })
                } else {
                    StepContent::Operation(Operation::Done { summary: text, if_ok: true })
                }
            }
            Ok(operation) => StepContent::Operation(operation),
            Err(invalid) => {
                StepContent::Invalid(Invalid { kind: kind.unwrap_or(Kind::Reply), ..invalid })
            }
        };
        Step { asked: Some(asked), warnings, ..Step::new(line, asks) }
    };
    entries.into_iter().enumerate().map(lower_entry).collect()
}

/// Why a valid operation cannot be carried out. [`steps`] sets the kind later.
fn refusal(mistake: Mistake, reason: impl Into<String>) -> Invalid {
    Invalid { kind: Kind::Reply, mistake, rejected: false, reason: reason.into() }
}

impl From<PathFault> for Invalid {
    fn from(fault: PathFault) -> Self {
        // The path is refused for safety.
        Self { rejected: true, ..refusal(Mistake::PathRefused, fault.to_string()) }
    }
}

impl From<Problem> for Invalid {
    fn from(Problem { mistake, phrase }: Problem) -> Self {
        refusal(mistake, phrase)
    }
}

fn lower(operation: SentOperation, warnings: &mut Vec<Warning>) -> Result<Operation, Invalid> {
    Ok(match operation {
        SentOperation::Message { content: mut text } => {
            text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
            Operation::Message { text }
        }
        SentOperation::CreateFile { path, content, encoding, overwrite } => {
            let path = lower_path(&path, warnings)?;
            let (content, existing) = match encoding {
                Encoding::Utf8 => {
                    let text = lower_text(&path, content, warnings)?;
                    (TextOrBytes::Text(text), Existing::ReplaceWhole)
                }
                // Validation has already decoded this content without an error.
                Encoding::Base64 => {
                    let bytes = Encoding::Base64.decode(&content).unwrap_or_default();
                    (TextOrBytes::Bytes { base64: bytes.into_owned() }, Existing::Replace)
                }
            };
            let existing = if overwrite { existing } else { Existing::Fail };
            Operation::Create { path, content, existing }
        }
        SentOperation::ReadFile { path, encoding } => {
            Operation::Read { path: lower_path(&path, warnings)?, reading: Reading::Now(encoding) }
        }
        SentOperation::EditFile { path, edits } => {
            let path = lower_path(&path, warnings)?;
            Operation::Edit { change: Change::First(lower_edits(&path, edits, warnings)?), path }
        }
        SentOperation::DeleteFile { path } => {
            Operation::Delete { path: lower_path(&path, warnings)? }
        }
        SentOperation::Shell { command, cwd, timeout, env } => Operation::Run(ShellCommand {
            command: returns::strip(command, None, warnings)?,
            cwd: cwd.as_deref().map(lower_cwd).transpose()?.flatten(),
            timeout: timeout.map(|ms| Duration::from_millis(ms.into())),
            default_timeout: Some(DEFAULT_TIMEOUT),
            env,
            streams: Streams::Apart,
        }),
    })
}

/// Checks the text of a new file in the same way as a block in tags.
fn lower_text(
    path: &RelPath,
    mut text: String,
    warnings: &mut Vec<Warning>,
) -> Result<String, Invalid> {
    if is_code(path) {
        match fence::strip(&text, &"the content", warnings)?.map(str::to_owned) {
            Some(inner) => text = inner,
            None => warnings.extend(fence::warn_kept(&text, 1, " of the content")),
        }
        if !may_be_patch(path) {
            warnings.extend(diff::check_content(&text, &"the content")?);
        }
    }
    Ok(text)
}

fn lower_edits(
    path: &RelPath,
    edits: Vec<FileEdit>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Replacement>, Problem> {
    let (is_code, is_patch, several) = (is_code(path), may_be_patch(path), edits.len() > 1);
    let mut lower_edit = |(n, edit): (usize, FileEdit)| {
        let FileEdit { old_content: old, new_content: new } = edit;
        if is_code {
            let which = if several { format!(" of edits[{n}]") } else { String::new() };
            fence::refuse_around_part(&old, &new, &format_args!("newContent{which}"))?;
        }
        // Within a line, a sign is part of the text.
        if is_code && !is_patch && (old.contains('\n') || new.contains('\n')) {
            warnings.extend(diff::check_replacement(&old, &new, &"newContent")?);
        }
        Ok(Replacement { old, new })
    };
    edits.into_iter().enumerate().map(&mut lower_edit).collect()
}

fn lower_path(text: &str, warnings: &mut Vec<Warning>) -> Result<RelPath, Invalid> {
    // The chat inserted the mark, so this is not the path that the model wrote.
    if text.contains('【') && text.contains('†') {
        let reason = format!("the path '{}' has a citation mark of the chat", visible_line(text));
        return Err(refusal(Mistake::PathCitation, reason));
    }
    let path = RelPath::parse(text)?;
    if text.contains('\\') {
        let shown = visible_line(text);
        let warning = format!("the path '{shown}' was read as '{path}': write / between folders");
        warnings.push(Warning::new(WarningKind::PathBackslashes, warning));
    }
    Ok(path)
}

/// Lowers a working directory. None is the workspace, for which there is no relative path.
fn lower_cwd(text: &str) -> Result<Option<RelPath>, PathFault> {
    let mut folder = text;
    while let Some(shorter) =
        ["/", "\\", "/.", "\\."].iter().find_map(|end| folder.strip_suffix(end))
    {
        folder = shorter;
    }
    if text.is_empty() || folder == "." {
        return Ok(None);
    }
    RelPath::parse(if folder.is_empty() { text } else { folder }).map(Some)
}

#[cfg(test)]
mod tests;
