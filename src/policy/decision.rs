//! The decision of a policy on an operation.

use serde::{Deserialize, Serialize};

/// The decision of a policy on an operation. A stricter decision is greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "decision")]
pub enum Verdict {
    /// The operation may be executed.
    Allow,
    /// The person must approve it first.
    Ask(Ask),
    /// The operation is not executed.
    Deny(Denial),
}

/// Why the person must approve an operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The reason, in words.
    pub reason: String,
    /// The rule, such as `shell.approvalRequired`.
    pub policy: String,
    /// What the sandbox opens after approval.
    #[serde(default)]
    pub opens: Grant,
    /// Whether the person may approve this exact command permanently.
    #[serde(default)]
    pub always: bool,
}

/// What the sandbox opens for an approved operation.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase", default)]
pub struct Grant {
    /// Protected names, which otherwise only the person may write.
    pub protected: bool,
    /// The git repository.
    pub repository: bool,
}

/// Why an operation is denied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// The reason, in words.
    pub reason: String,
    /// The rule, such as `shell.blockedCommands`.
    pub policy: String,
    /// What to do instead, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Verdict {
    pub(super) fn ask(rule: &str, reason: impl Into<String>) -> Self {
        let (policy, reason) = (rule.to_owned(), reason.into());
        Self::Ask(Ask { reason, policy, opens: Grant::default(), always: false })
    }

    pub(super) fn deny(rule: &str, reason: impl Into<String>, suggestion: Option<String>) -> Self {
        Self::Deny(Denial { reason: reason.into(), policy: rule.to_owned(), suggestion })
    }

    /// The strictness, and the rule and reason unless it is `Allow`.
    fn parts(&self) -> (u8, Option<(&str, &str)>) {
        match self {
            Self::Allow => (0, None),
            Self::Ask(ask) => (1, Some((&ask.policy, &ask.reason))),
            Self::Deny(denial) => (2, Some((&denial.policy, &denial.reason))),
        }
    }

    /// The rule that asks or denies, if any.
    pub fn rule(&self) -> Option<&str> {
        self.parts().1.map(|(rule, _)| rule)
    }

    /// The reason to ask or deny, if any.
    pub fn reason(&self) -> Option<&str> {
        self.parts().1.map(|(_, reason)| reason)
    }

    /// The stricter decision; `self` if both are equally strict.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.parts().0 > self.parts().0 { other } else { self }
    }
}
