//! What a policy says of an operation.

use serde::{Deserialize, Serialize};

/// What a policy says of an operation, the strictest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// It may be carried out.
    Allow,
    /// The person is asked first.
    Ask(Ask),
    /// It may not.
    Deny(Denial),
}

/// Why the person is asked, and what their approval opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Why, as a sentence without its full stop.
    pub reason: String,
    /// The rule that asks, such as `shell.approvalRequired`.
    pub policy: String,
    /// What is opened for the operation, once approved.
    pub opens: Opens,
}

/// What an approval opens for its one operation, beside what every operation may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opens {
    /// The file may be written although its name is protected.
    pub protected: bool,
    /// git may write to repositories in the workspace, but for what runs code there.
    pub repository: bool,
}

/// Why an operation may not be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// Why, as a sentence without its full stop.
    pub reason: String,
    /// The rule that denies, such as `shell.blockedCommands`.
    pub policy: String,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}
