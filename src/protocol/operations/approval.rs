//! What a user decides about an operation that waits ("User Provides Approval Decision").
//!
//! Such a text counts only if it comes from the user. One in a reply is the agent's and decides
//! nothing.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::Faults;
use super::receive::parse;
use super::validate::validate_approval;

/// A user's decision about an operation (agent-spaces-protocol, "User Provides Approval Decision").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The operation; None in the form of a `userMessage`, which means the only one that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// What was decided.
    pub decision: Decision,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a user can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// The operation is carried out.
    Approved,
    /// It is not, and a `policyDenied` event says so.
    Denied,
}

impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.trim() {
            "approved" => Ok(Self::Approved),
            "denied" => Ok(Self::Denied),
            _ => Err(de::Error::custom("a decision is \"approved\" or \"denied\"")),
        }
    }
}

/// Reads a decision in either of its forms: `{"approval": …}`, or a `userMessage` whose content is
/// `approved` or `denied` and nothing else.
///
/// # Errors
/// Everything that is wrong with it.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{Decision, parse_approval};
/// let text = r#"{"approval": {"operationId": "shell-1", "decision": "denied", "reason": "no"}}"#;
/// let approval = parse_approval(text).unwrap();
/// assert_eq!(approval.operation_id.as_deref(), Some("shell-1"));
/// assert_eq!(approval.decision, Decision::Denied);
/// let said = parse_approval(r#"{"type": "userMessage", "content": "approved"}"#).unwrap();
/// assert_eq!((said.operation_id, said.decision), (None, Decision::Approved));
/// assert!(parse_approval(r#"{"type": "userMessage", "content": "approved?"}"#).is_err());
/// ```
pub fn parse_approval(text: &str) -> Result<Approval, Faults> {
    parse(text, "ApprovalMessage", validate_approval)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let id = Some("cleanup-1".to_owned());
        for (text, wanted) in [
            (
                r#"{"approval": {"operationId": "cleanup-1", "decision": "approved"}}"#,
                Approval { operation_id: id, decision: Decision::Approved, reason: None },
            ),
            (
                r#"{"type": "userMessage", "content": " denied\n"}"#,
                Approval { operation_id: None, decision: Decision::Denied, reason: None },
            ),
        ] {
            assert_eq!(parse_approval(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_decision_is_refused() {
        for (text, told) in [
            ("approved", "$: it cannot be read as JSON"),
            ("[]", "$: [] is not of type object"),
            ("{}", "$.approval: it is missing"),
            (r#"{"type": "userMessage"}"#, "$.content: it is missing"),
            (
                r#"{"type": "userMessage", "content": "not approved"}"#,
                "$.content: \"not approved\" is not allowed",
            ),
            (
                r#"{"type": "userMessage", "content": "Approved"}"#,
                "$.content: \"Approved\" is not allowed",
            ),
            (r#"{"type": "message", "content": "approved"}"#, "$.approval: it is missing"),
            (r#"{"approval": {"decision": "approved"}}"#, "$.approval.operationId: it is missing"),
            (r#"{"approval": {"operationId": "a"}}"#, "$.approval.decision: it is missing"),
            (
                r#"{"approval": {"operationId": "a", "decision": true}}"#,
                "$.approval.decision: true is not of type string",
            ),
            (
                r#"{"approval": {"operationId": "a", "decision": "approved", "reason": null}}"#,
                "$.approval.reason: null is not of type string",
            ),
            (
                r#"{"type": "userMessage", "content": "approved", "approval": {"operationId": "a", "decision": "no"}}"#,
                "$.approval.decision: \"no\" is not allowed",
            ),
        ] {
            let faults = parse_approval(text).unwrap_err().to_string();
            assert!(faults.starts_with(told), "{text}: {faults}");
        }
    }
}
