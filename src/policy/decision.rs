//! What a policy says of an operation.

use serde::{Deserialize, Serialize};

/// What a policy says of an operation; the stricter is the greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "decision")]
pub enum Decision {
    /// It may be done.
    Allow,
    /// The person is asked first.
    Ask(Ask),
    /// It is not done.
    Deny(Denial),
}

/// Why the person is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// In words.
    pub reason: String,
    /// The rule, such as `shell.approvalRequired`.
    pub policy: String,
    /// What of the sandbox the person's yes opens.
    #[serde(default)]
    pub opens: Opens,
    /// Whether the person may say yes to this very command for good.
    #[serde(default)]
    pub always: bool,
}

/// What of the sandbox is to be opened for an operation.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase", default)]
pub struct Opens {
    /// Names that only the person may write.
    pub protected: bool,
    /// The repository, for git.
    pub repository: bool,
}

/// Why an operation is not done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// In words.
    pub reason: String,
    /// The rule, such as `shell.blockedCommands`.
    pub policy: String,
    /// What to do instead, where that can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Decision {
    pub(super) fn ask(rule: &str, reason: impl Into<String>) -> Self {
        let (policy, reason) = (rule.to_owned(), reason.into());
        Self::Ask(Ask { reason, policy, opens: Opens::default(), always: false })
    }

    pub(super) fn deny(rule: &str, reason: impl Into<String>, suggestion: Option<String>) -> Self {
        Self::Deny(Denial { reason: reason.into(), policy: rule.to_owned(), suggestion })
    }

    /// How strict it is, and the rule that made it and why, if one did.
    fn parts(&self) -> (u8, Option<(&str, &str)>) {
        match self {
            Self::Allow => (0, None),
            Self::Ask(ask) => (1, Some((&ask.policy, &ask.reason))),
            Self::Deny(denial) => (2, Some((&denial.policy, &denial.reason))),
        }
    }

    /// The name of the rule that made it, if one did.
    pub fn rule(&self) -> Option<&str> {
        self.parts().1.map(|(rule, _)| rule)
    }

    /// Why it is not simply allowed.
    pub fn reason(&self) -> Option<&str> {
        self.parts().1.map(|(_, reason)| reason)
    }

    /// The stricter of two, the first of two that are equally strict.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.parts().0 > self.parts().0 { other } else { self }
    }
}
