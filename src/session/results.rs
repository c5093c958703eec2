//! Results in a session's file: the outcome of each step, with what the tag protocol's "Session Management"
//! says of it: command, success and summary.

use serde::ser::Serializer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::protocol::{Outcome, tags};

#[derive(Serialize)]
struct Shown<'a> {
    command: &'a str,
    success: bool,
    summary: String,
    outcome: &'a Outcome,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Shown {
        outcome: Outcome,
    },
    /// As journals of former versions have it.
    Bare(Outcome),
}

pub(super) fn serialize<S: Serializer>(outcomes: &[Outcome], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(outcomes.iter().map(|outcome| Shown {
        command: tags::name(outcome.kind),
        success: outcome.success(),
        summary: tags::summary(outcome),
        outcome,
    }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Outcome>, D::Error> {
    let stored = Vec::<Stored>::deserialize(from)?;
    let outcome = |stored| match stored {
        Stored::Shown { outcome } | Stored::Bare(outcome) => outcome,
    };
    Ok(stored.into_iter().map(outcome).collect())
}
