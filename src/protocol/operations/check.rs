//! Whether operations are as they should be ("Validation Rules"). Every fault is told, not the
//! first alone.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fault::{At, Faults, brief, described};
use super::fields::{Fields, Read, at_most, boolean, owned, text, whole, wrong};
use super::path::path_problem;
use super::{
    CreateFileOperation, DeleteFileOperation, EditFileOperation, Encoding, FileEdit,
    MessageOperation, Operation, OperationType, OperationsMessage, ReadFileOperation,
    ShellOperation, Version,
};
use crate::text::nearest;

/// The longest text of a `message`, in UTF-16 units.
pub const MESSAGE_LIMIT: usize = 100_000;
/// The longest command, in UTF-16 units.
pub const COMMAND_LIMIT: usize = 4096;
/// The longest content of a file that is created, in bytes once it is decoded.
pub const CONTENT_LIMIT: usize = 10 << 20;
/// The shortest time that a command can be given, in milliseconds.
pub const TIMEOUT_LEAST: u32 = 1_000;
/// The longest time that a command can be given, in milliseconds.
pub const TIMEOUT_MOST: u32 = 3_600_000;

pub(super) const MESSAGE: &str =
    r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "ls"}]}"#;
pub(super) const OPERATIONS: &str = r#""operations": [{"type": "shell", "command": "ls"}]"#;
pub(super) const OPERATION: &str = r#"an object such as {"type": "shell", "command": "ls"}"#;
const TYPE: &str =
    r#""type": one of "message", "createFile", "readFile", "editFile", "deleteFile" and "shell""#;
const ID: &str = r#""id": "file-1" (a text), or no id at all"#;
const PATH: &str = r#""path": "src/app.ts" (relative to the workspace, no leading `/`, no `..` anywhere, no null character, at most 255 characters)"#;
const CWD: &str = r#""cwd": "src" (relative to the workspace, no leading `/`, no `..` anywhere, no null character, at most 255 characters), or no cwd for its root"#;
const TEXT: &str = r#""content": "…" (a text of at most 100000 characters)"#;
const CONTENT: &str = r#""content": "…" (a text, at most 10 MiB of file)"#;
const IN_BASE64: &str = r#""content": "aGVsbG8=" (standard base64, padded with `=`, without spaces or line breaks), or no "encoding" for plain text"#;
const ENCODING: &str = r#""encoding": "utf-8" or "base64", or no encoding for "utf-8""#;
const OVERWRITE: &str = r#""overwrite": true or false (without quotes), or no overwrite for false"#;
const EDITS: &str = r#""edits": [{"oldContent": "…", "newContent": "…"}]"#;
const EDIT: &str = r#"{"oldContent": "…", "newContent": "…"}"#;
const OLD: &str = r#""oldContent": "the text to find""#;
const NEW: &str = r#""newContent": "what to put in its place" ("" to remove it)"#;
const COMMAND: &str = r#""command": "npm test" (a text of at most 4096 characters; put a longer one into a file and run that)"#;
const TIMEOUT: &str = r#""timeout": 30000 (milliseconds, a whole number from 1000 to 3600000)"#;
const ENV: &str = r#""env": {"DEBUG": "true"} (an object, every value a text)"#;

/// Validates an operation (agent-spaces-protocol, "Operation Validation" and "JSON Schema"):
/// the operation, or everything that is wrong with it. Fields that the specification does not name
/// are ignored, as its schema does.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{OperationType, validate_operation};
/// use serde_json::json;
/// let operation = validate_operation(&json!({"type": "readFile", "path": "a.txt"})).unwrap();
/// assert_eq!(operation.kind(), OperationType::ReadFile);
/// let faults = validate_operation(&json!({"type": "readFile", "path": "../a.txt"})).unwrap_err();
/// assert!(faults.to_string().starts_with("$.path: the path holds `..` (\"../a.txt\"). "));
/// ```
pub fn validate_operation(input: &Value) -> Result<Operation, Faults> {
    let mut faults = Faults::default();
    let operation = operation(input, &At::Root, &mut faults);
    faults.or(operation)
}

/// Validates a whole message (agent-spaces-protocol, "Operations Message"): the message, or
/// everything that is wrong with it and its operations. To carry out what is well-formed in a
/// message that is not, see [`receive`](super::receive).
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::validate_operations_message;
/// use serde_json::json;
/// let message = json!({"protocolVersion": "1.0", "operations": [{"type": "shell"}]});
/// let faults = validate_operations_message(&message).unwrap_err();
/// assert!(faults.to_string().starts_with("$.operations[0].command: it is missing"));
/// assert!(validate_operations_message(&json!({"protocolVersion": "1.0", "operations": []})).is_ok());
/// ```
pub fn validate_operations_message(input: &Value) -> Result<OperationsMessage, Faults> {
    let mut faults = Faults::default();
    let message = Fields::of(input, &At::Root, &mut faults, MESSAGE).and_then(|mut fields| {
        let version = fields.required("protocolVersion", Version::FORM, version);
        let operations = fields.list("operations", OPERATIONS, operation);
        Some(OperationsMessage { protocol_version: version?, operations: operations? })
    });
    faults.or(message)
}

pub(super) fn version(value: &Value) -> Read<Version> {
    match value {
        Value::String(text) if text == Version::TEXT => Ok(Version),
        Value::String(text) => {
            Err(format!("this is version \"{}\", which is not spoken here", brief(text)))
        }
        other => Err(wrong(other, "the text \"1.0\"")),
    }
}

/// Reads an operation, which is one only where no fault was noted.
pub(super) fn operation(value: &Value, at: &At, faults: &mut Faults) -> Option<Operation> {
    let fields = &mut Fields::of(value, at, faults, OPERATION)?;
    let kind = fields.required("type", TYPE, operation_type);
    let id = fields.optional("id", ID, owned);
    match kind? {
        OperationType::Message => {
            let content = fields.required("content", TEXT, at_most(MESSAGE_LIMIT));
            content.map(|content| Operation::Message(MessageOperation { id, content }))
        }
        OperationType::CreateFile => create_file(fields, id).map(Operation::CreateFile),
        OperationType::ReadFile => {
            let path = fields.required("path", PATH, path);
            let encoding = fields.optional("encoding", ENCODING, encoding);
            path.map(|path| Operation::ReadFile(ReadFileOperation { id, path, encoding }))
        }
        OperationType::EditFile => {
            let path = fields.required("path", PATH, path);
            let edits = fields.list("edits", EDITS, edit);
            path.zip(edits)
                .map(|(path, edits)| Operation::EditFile(EditFileOperation { id, path, edits }))
        }
        OperationType::DeleteFile => {
            let path = fields.required("path", PATH, path);
            path.map(|path| Operation::DeleteFile(DeleteFileOperation { id, path }))
        }
        OperationType::Shell => shell(fields, id).map(Operation::Shell),
    }
}

fn create_file(fields: &mut Fields, id: Option<String>) -> Option<CreateFileOperation> {
    let path = fields.required("path", PATH, path);
    let content = fields.required("content", CONTENT, owned);
    let encoding = fields.optional("encoding", ENCODING, encoding);
    let overwrite = fields.optional("overwrite", OVERWRITE, boolean);
    let content = content?;
    match encoding.unwrap_or_default().decode(&content) {
        Ok(bytes) if bytes.len() > CONTENT_LIMIT => {
            let problem = format!("the file would have {} bytes", bytes.len());
            fields.fault("content", problem, CONTENT);
        }
        Ok(_) => {}
        Err(bad) => fields.fault("content", bad.to_string(), IN_BASE64),
    }
    Some(CreateFileOperation { id, path: path?, content, encoding, overwrite })
}

fn shell(fields: &mut Fields, id: Option<String>) -> Option<ShellOperation> {
    let command = fields.required("command", COMMAND, at_most(COMMAND_LIMIT));
    let cwd = fields.optional("cwd", CWD, path);
    let limits = whole(TIMEOUT_LEAST.into(), TIMEOUT_MOST.into());
    let timeout = fields.optional("timeout", TIMEOUT, limits);
    let env = fields.optional("env", ENV, environment);
    let timeout = timeout.and_then(|timeout| u32::try_from(timeout).ok());
    Some(ShellOperation { id, command: command?, cwd, timeout, env })
}

fn edit(value: &Value, at: &At, faults: &mut Faults) -> Option<FileEdit> {
    let mut fields = Fields::of(value, at, faults, EDIT)?;
    let old = fields.required("oldContent", OLD, owned);
    let new = fields.required("newContent", NEW, owned);
    Some(FileEdit { old_content: old?, new_content: new? })
}

fn operation_type(value: &Value) -> Read<OperationType> {
    let name = text(value)?;
    OperationType::named(name).ok_or_else(|| {
        let known = OperationType::ALL.map(OperationType::name);
        // What is far longer than any of them is meant as none.
        let meant = nearest(name, known.into_iter().filter(|_| name.len() < 40));
        let meant = meant.map(|meant| format!(" (\"{meant}\"?)"));
        format!("there is no operation \"{}\"{}", brief(name), meant.unwrap_or_default())
    })
}

fn path(value: &Value) -> Read<String> {
    let path = text(value)?;
    match path_problem(path) {
        Some(problem) => Err(format!("{problem} (\"{}\")", brief(path))),
        None => Ok(path.to_owned()),
    }
}

pub(super) fn encoding(value: &Value) -> Read<Encoding> {
    let name = text(value)?;
    Encoding::named(name).ok_or_else(|| format!("there is no encoding \"{}\" here", brief(name)))
}

fn environment(value: &Value) -> Read<BTreeMap<String, String>> {
    let Value::Object(variables) = value else { return Err(wrong(value, "an object")) };
    let one = |(name, value): (&String, &Value)| match value {
        Value::String(text) => Ok((name.clone(), text.clone())),
        other => Err(format!("{} is {}, not a text", brief(name), described(other))),
    };
    variables.iter().map(one).collect()
}
