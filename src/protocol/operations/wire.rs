//! What an agent sends: the six operations and the message that holds them ("Operation Types").

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Encoding, Version};

/// What an agent sends (agent-spaces-protocol, "Operations Message").
///
/// Reading one through serde validates it, as [`validate_operations_message`] does.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{MessageOperation, Operation, OperationsMessage};
/// let hello = MessageOperation { id: None, content: "Hello".into() };
/// let message = OperationsMessage::new(vec![Operation::Message(hello)]);
/// assert_eq!(
///     serde_json::to_string(&message).unwrap(),
///     r#"{"protocolVersion":"1.0","operations":[{"type":"message","content":"Hello"}]}"#
/// );
/// ```
///
/// [`validate_operations_message`]: super::validate_operations_message
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationsMessage {
    /// Always `"1.0"`.
    pub protocol_version: Version,
    /// What is to be done, in this order.
    pub operations: Vec<Operation>,
}

impl OperationsMessage {
    /// A message of these operations.
    pub fn new(operations: Vec<Operation>) -> Self {
        Self { protocol_version: Version, operations }
    }
}

/// One thing that an agent asks for: there are exactly these six, and no extensions
/// (agent-spaces-protocol, "Operation Types").
///
/// Reading one through serde validates it, as [`validate_operation`](super::validate_operation)
/// does. Fields that are left out are left out when it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Operation {
    /// Tells the user something; does nothing else.
    Message(MessageOperation),
    /// Makes a file.
    CreateFile(CreateFileOperation),
    /// Asks for the content of a file.
    ReadFile(ReadFileOperation),
    /// Replaces parts of a file.
    EditFile(EditFileOperation),
    /// Removes a file.
    DeleteFile(DeleteFileOperation),
    /// Runs a shell command.
    Shell(ShellOperation),
}

/// `message`: tells the user what is intended or done; has no side effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageOperation {
    /// What the event will be known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text, of at most 100,000 UTF-16 units.
    pub content: String,
}

/// `createFile`: makes a file, its parent folders too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateFileOperation {
    /// What the event will be known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where; see [`is_valid_path`](super::is_valid_path).
    pub path: String,
    /// All of its content, in `encoding`: at most 10 MiB once decoded.
    pub content: String,
    /// How `content` is written; UTF-8 where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Whether a file that stands there is replaced; where not, or where this is left out, the
    /// operation fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
}

/// `readFile`: asks for the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFileOperation {
    /// What the event will be known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Which; see [`is_valid_path`](super::is_valid_path).
    pub path: String,
    /// How the event is to write the content; UTF-8 where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
}

/// `editFile`: replaces parts of a file. The edits are applied in order, all of them or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditFileOperation {
    /// What the event will be known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Which; see [`is_valid_path`](super::is_valid_path).
    pub path: String,
    /// What to replace.
    pub edits: Vec<FileEdit>,
}

/// One replacement in a file, literally: the first occurrence only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEdit {
    /// What to find; where it is not found, the edit fails.
    pub old_content: String,
    /// What to put in its place.
    pub new_content: String,
}

/// `deleteFile`: removes a file, never a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteFileOperation {
    /// What the event will be known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Which; see [`is_valid_path`](super::is_valid_path).
    pub path: String,
}

/// `shell`: runs a shell command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellOperation {
    /// What the event will be known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What the shell is given: at most 4,096 UTF-16 units.
    pub command: String,
    /// The folder it begins in, a path as those of files; the workspace's root where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How long it may take, in milliseconds: 1,000 to 3,600,000; 30,000 where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// Variables of its environment, besides those it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
}

impl Operation {
    /// Which of the six it is.
    pub fn kind(&self) -> OperationType {
        match self {
            Self::Message(_) => OperationType::Message,
            Self::CreateFile(_) => OperationType::CreateFile,
            Self::ReadFile(_) => OperationType::ReadFile,
            Self::EditFile(_) => OperationType::EditFile,
            Self::DeleteFile(_) => OperationType::DeleteFile,
            Self::Shell(_) => OperationType::Shell,
        }
    }

    /// The id that the agent gave it.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Message(MessageOperation { id, .. })
            | Self::CreateFile(CreateFileOperation { id, .. })
            | Self::ReadFile(ReadFileOperation { id, .. })
            | Self::EditFile(EditFileOperation { id, .. })
            | Self::DeleteFile(DeleteFileOperation { id, .. })
            | Self::Shell(ShellOperation { id, .. }) => id.as_deref(),
        }
    }
}

/// Which of the six operations, by its name in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationType {
    /// `message`
    Message,
    /// `createFile`
    CreateFile,
    /// `readFile`
    ReadFile,
    /// `editFile`
    EditFile,
    /// `deleteFile`
    DeleteFile,
    /// `shell`
    Shell,
}

impl OperationType {
    /// All six, in the order of the specification.
    pub const ALL: [Self; 6] = [
        Self::Message,
        Self::CreateFile,
        Self::ReadFile,
        Self::EditFile,
        Self::DeleteFile,
        Self::Shell,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::CreateFile => "createFile",
            Self::ReadFile => "readFile",
            Self::EditFile => "editFile",
            Self::DeleteFile => "deleteFile",
            Self::Shell => "shell",
        }
    }

    /// The operation of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for OperationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_is_not_printed() {
        let shell =
            ShellOperation { id: None, command: "ls".into(), cwd: None, timeout: None, env: None };
        let printed = serde_json::to_value(Operation::Shell(shell)).unwrap();
        assert_eq!(printed, json!({"type": "shell", "command": "ls"}));
        let create = CreateFileOperation {
            id: Some("f".into()),
            path: "a".into(),
            content: String::new(),
            encoding: Some(Encoding::Utf8),
            overwrite: Some(false),
        };
        let operation = Operation::CreateFile(create);
        assert_eq!((operation.id(), operation.kind()), (Some("f"), OperationType::CreateFile));
        assert_eq!(
            serde_json::to_value(operation).unwrap(),
            json!({"type": "createFile", "id": "f", "path": "a", "content": "",
                   "encoding": "utf-8", "overwrite": false})
        );
    }

    #[test]
    fn there_are_six_operations_each_with_its_name() {
        let names = OperationType::ALL.map(OperationType::name);
        assert_eq!(names, ["message", "createFile", "readFile", "editFile", "deleteFile", "shell"]);
        for kind in OperationType::ALL {
            assert_eq!(OperationType::named(kind.name()), Some(kind));
            assert_eq!(kind.to_string(), kind.name());
        }
        assert_eq!(OperationType::named("Shell"), None);
    }
}
