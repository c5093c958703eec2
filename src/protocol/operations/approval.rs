//! What a user decides about an operation that waits ("User Provides Approval Decision").
//!
//! Such a text counts only where it comes from the user: one in a reply is an agent's, and decides
//! nothing.

use serde::Serialize;
use serde_json::Value;

use super::fault::{At, Faults, brief};
use super::fields::{Fields, Read, owned, text};
use super::receive::parsed;

const APPROVAL: &str = r#"{"approval": {"operationId": "shell-1", "decision": "approved"}}"#;
const INNER: &str = r#""approval": {"operationId": "shell-1", "decision": "approved"}"#;
const ID: &str = r#""operationId": "shell-1""#;
const DECISION: &str = r#""decision": "approved" or "denied""#;
const REASON: &str = r#""reason": "why" (a text), or no reason at all"#;
const CONTENT: &str = r#""content": "approved" or "denied""#;

/// A user's decision about an operation (agent-spaces-protocol, "User Provides Approval Decision").
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Which operation; None in the form of a `userMessage`, which means the only one that waits.
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
    /// It is not; `policyDenied` is told.
    Denied,
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
    parsed(text, APPROVAL, validate_approval)
}

fn validate_approval(value: &Value) -> Result<Approval, Faults> {
    let mut faults = Faults::default();
    let approval = approval(value, &mut faults);
    faults.or(approval)
}

fn approval(value: &Value, faults: &mut Faults) -> Option<Approval> {
    let said = value.get("type").is_some_and(|kind| kind == "userMessage");
    let fields = &mut Fields::of(value, &At::Root, faults, APPROVAL)?;
    // A text that says two things says nothing.
    if said && value.get("approval").is_none() {
        let decision = fields.required("content", CONTENT, decision)?;
        return Some(Approval { operation_id: None, decision, reason: None });
    }
    fields.inner("approval", INNER, |fields| {
        let operation_id = fields.required("operationId", ID, owned);
        let decision = fields.required("decision", DECISION, decision);
        let reason = fields.optional("reason", REASON, owned);
        Some(Approval { operation_id: Some(operation_id?), decision: decision?, reason })
    })
}

fn decision(value: &Value) -> Read<Decision> {
    match text(value)?.trim() {
        "approved" => Ok(Decision::Approved),
        "denied" => Ok(Decision::Denied),
        other => Err(format!("\"{}\" is no decision", brief(other))),
    }
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
            ("[]", "$: it is a list, not an object"),
            ("{}", "$.approval: it is missing"),
            (r#"{"type": "userMessage"}"#, "$.content: it is missing"),
            (
                r#"{"type": "userMessage", "content": "not approved"}"#,
                "$.content: \"not approved\"",
            ),
            (r#"{"type": "userMessage", "content": "Approved"}"#, "$.content: \"Approved\""),
            (r#"{"type": "message", "content": "approved"}"#, "$.approval: it is missing"),
            (r#"{"approval": {"decision": "approved"}}"#, "$.approval.operationId: it is missing"),
            (r#"{"approval": {"operationId": "a"}}"#, "$.approval.decision: it is missing"),
            (
                r#"{"approval": {"operationId": "a", "decision": true}}"#,
                "$.approval.decision: it is true, not a text",
            ),
            (
                r#"{"approval": {"operationId": "a", "decision": "approved", "reason": null}}"#,
                "$.approval.reason: it is null",
            ),
            (
                r#"{"type": "userMessage", "content": "approved", "approval": {"operationId": "a", "decision": "no"}}"#,
                "$.approval.decision: \"no\" is no decision",
            ),
        ] {
            let faults = parse_approval(text).unwrap_err().to_string();
            assert!(faults.starts_with(told), "{text}: {faults}");
        }
    }
}
