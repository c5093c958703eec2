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
    Reading, RelPath, Replacement, ShellCommand, Step, Streams, Warning, WarningSort, tags,
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
        Err(fault) => {
            let reason = format!("{fault} (line {line})");
            let sort = Mistake::PathRefused;
            Asks::Invalid(Invalid { kind, sort, rejected: true, reason })
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

fn meant(operation: Operation, warnings: &mut Vec<Warning>) -> Result<Meant, PathFault> {
    Ok(match operation {
        Operation::Message(message) => {
            let mut text = message.content;
            text.truncate(text.strip_suffix('\n').map_or(text.len(), str::len));
            Meant::Message { text }
        }
        Operation::CreateFile(mut create) => {
            let path = read_path(&create.path, warnings)?;
            if create.encoding.unwrap_or_default() == Encoding::Utf8 && tags::is_code(&path) {
                without_fence(&mut create.content, warnings);
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
            let replacement = |FileEdit { old_content: old, new_content: new }: FileEdit| {
                Replacement { old, new }
            };
            let replacements = edit.edits.into_iter().map(replacement).collect();
            let path = read_path(&edit.path, warnings)?;
            Meant::Edit { path, change: Change::First(replacements) }
        }
        Operation::DeleteFile(delete) => Meant::Delete { path: read_path(&delete.path, warnings)? },
        Operation::Shell(ShellOperation { command, cwd, timeout, env, .. }) => {
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

/// Takes off the fence that a content of code is.
fn without_fence(content: &mut String, warnings: &mut Vec<Warning>) {
    let Some(inner) = tags::in_a_fence(content) else { return };
    *content = inner.to_owned();
    let told = "the content stood in a fence of its own, which was taken off: send it without one";
    warnings.push(Warning::new(WarningSort::FenceTakenOff, told));
}

fn read_path(text: &str, warnings: &mut Vec<Warning>) -> Result<RelPath, PathFault> {
    let path = RelPath::parse(text)?;
    if text.contains('\\') {
        let shown = crate::text::visible_line(text);
        let told = format!("the path '{shown}' was read as '{path}': write / between folders");
        warnings.push(Warning::new(WarningSort::PathBackslashes, told));
    }
    Ok(path)
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
mod tests {
    use super::*;
    use crate::protocol::operations::receive;

    fn asked_for(operations: &str, ends: bool) -> Vec<Step> {
        let text = format!("{{\"protocolVersion\": \"1.0\", \"operations\": [\n{operations}\n]}}");
        let received = receive(&text).unwrap();
        steps(Ok(received), ends)
    }

    fn meant_by(operation: &str) -> Meant {
        let [step] = <[Step; 1]>::try_from(asked_for(operation, false)).unwrap();
        match step.asks {
            Asks::Operation(meant) => meant,
            Asks::Invalid(invalid) => panic!("{operation}: {invalid:?}"),
        }
    }

    #[test]
    fn each_operation_means_what_it_says() {
        let path = |text| RelPath::parse(text).unwrap();
        assert_eq!(
            meant_by(r#"{"type": "message", "content": "a\n\n"}"#),
            Meant::Message { text: "a\n".into() }
        );
        let create = |content, existing| Meant::Create { path: path("a/b"), content, existing };
        assert_eq!(
            meant_by(r#"{"type": "createFile", "path": "./a/b", "content": "x\n"}"#),
            create(Content::from("x\n"), Existing::Fail)
        );
        assert_eq!(
            meant_by(
                r#"{"type": "createFile", "path": "a/b", "content": "AP8=", "encoding": "base64", "overwrite": true}"#
            ),
            create(Content::Bytes(vec![0, 255]), Existing::Replace)
        );
        assert_eq!(
            meant_by(r#"{"type": "readFile", "path": "a", "encoding": "base64"}"#),
            Meant::Read { path: path("a"), reading: Reading::Now(Encoding::Base64) }
        );
        assert_eq!(
            meant_by(
                r#"{"type": "editFile", "path": "a", "edits": [{"oldContent": "x", "newContent": ""}]}"#
            ),
            Meant::Edit {
                path: path("a"),
                change: Change::First(vec![Replacement { old: "x".into(), new: String::new() }])
            }
        );
        assert_eq!(
            meant_by(r#"{"type": "deleteFile", "path": "a"}"#),
            Meant::Delete { path: path("a") }
        );
        assert_eq!(
            meant_by(
                r#"{"type": "shell", "command": "ls", "cwd": "src/", "timeout": 2000, "env": {"A": "b"}}"#
            ),
            Meant::Run(ShellCommand {
                cwd: Some(path("src")),
                timeout: Some(Duration::from_secs(2)),
                env: [("A".into(), "b".into())].into(),
                streams: Streams::Apart,
                ..ShellCommand::new("ls")
            })
        );
    }

    #[test]
    fn the_root_has_many_names_as_a_folder() {
        for text in ["", ".", "./", "./.", ".\\"] {
            assert_eq!(folder(text), Ok(None), "{text}");
        }
        for text in ["src", "src/", "./src/.", "src\\", "src//"] {
            assert_eq!(folder(text), Ok(Some(RelPath::parse("src").unwrap())), "{text}");
        }
        for text in ["/", "\\", "C:\\", "a\nb", "//."] {
            assert!(folder(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_names_no_file_is_rejected_with_its_id_and_path() {
        for path in ["C:\\\\x", "a\\u0007", "a/", ""] {
            let steps = asked_for(
                &format!(r#"{{"type": "deleteFile", "id": "d", "path": "{path}"}}"#),
                true,
            );
            let Asks::Invalid(invalid) = &steps[0].asks else { panic!("{path}") };
            assert!(invalid.rejected && invalid.kind == Kind::Delete, "{invalid:?}");
            assert!(invalid.reason.ends_with("(line 2)"), "{invalid:?}");
            let asked = steps[0].asked.as_ref().unwrap();
            assert_eq!(asked.id.as_deref(), Some("d"));
            let sent: String = serde_json::from_str(&format!("\"{path}\"")).unwrap();
            assert_eq!(asked.about, sent);
        }
    }

    #[test]
    fn a_malformed_operation_is_a_step_with_its_faults() {
        let steps = asked_for(
            "{\"type\": \"shell\", \"id\": \"s\", \"timeout\": 1},\n{\"type\": \"x\"}, 7",
            true,
        );
        let told: Vec<(Kind, &str)> = steps
            .iter()
            .map(|step| match &step.asks {
                Asks::Invalid(Invalid { kind, rejected: false, reason, .. }) => (*kind, &**reason),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told[0].0, Kind::Run);
        assert!(told[0].1.starts_with("Line 2: $.operations[0].command: it is missing"));
        assert!(told[0].1.contains("\n$.operations[0].timeout: 1 is less"), "{told:?}");
        assert_eq!((told[1].0, told[2].0), (Kind::Reply, Kind::Reply));
        assert_eq!(steps[0].asked.as_ref().unwrap().id.as_deref(), Some("s"));
        assert!(steps.iter().all(|step| step.asked.is_some()));
    }

    #[test]
    fn only_the_last_operation_ends_the_session() {
        const DONE: &str = r#"{"type": "message", "id": "done", "content": "x"}"#;
        let steps = asked_for(&format!("{DONE}, {DONE}"), true);
        let kinds: Vec<Kind> = steps.iter().map(Step::kind).collect();
        assert_eq!(kinds, [Kind::Message, Kind::Done]);
        assert!(steps[0].warnings[0].contains("did not end the session"));
        assert!(steps[1].warnings.is_empty());
        let steps = asked_for(&format!("{DONE}, 7"), true);
        assert_eq!(steps[0].kind(), Kind::Message);
        assert!(asked_for(DONE, false)[0].warnings.is_empty());
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted_in_one_step() {
        const DONE: &str = "{\"type\": \"message\", \"id\": \"done\", \"content\": \"x\"}";
        let steps = asked_for(&vec![DONE; 1005].join(",\n"), true);
        assert_eq!(steps.len(), 1001);
        assert!(steps.iter().all(|step| step.kind() != Kind::Done));
        let outcome = crate::protocol::Outcome::not_run_from(&steps[1000], 1, OPERATIONS_LIMIT);
        let crate::protocol::Detail::Failed(failure) = outcome.detail else { panic!() };
        assert_eq!(
            failure.reason,
            "5 operations from line 1002 on were not carried out: of one reply the first 1000 are"
        );
    }
}
