//! The operations dialect through `run`: the examples of its three texts, its limits, and what a
//! failure of the machine does to it.

use serde_json::{Value, json};

use crate::support::{Project, Run, check_events};

mod bounds;
mod comparing;
mod conforming;
mod examples;
mod failing;
#[cfg(unix)]
mod runs;
mod validate;

/// A message of these operations, as text.
pub fn message(operations: &Value) -> String {
    json!({"protocolVersion": "1.0", "operations": operations}).to_string()
}

/// The events message that a call printed, which is one.
#[track_caller]
pub fn told(run: &Run) -> Value {
    check_events(&run.stdout).unwrap_or_else(|problem| panic!("{problem}: {run:?}"))
}

/// What comes of one operation under the policy that allows all.
#[track_caller]
pub fn only(base: &Project, operation: &Value) -> Value {
    let run = base.run_with(&["ops", "run", "--policy=workspace"], message(&json!([operation])));
    let told = told(&run);
    assert_eq!(told["events"].as_array().unwrap().len(), 1, "{told}");
    told["events"][0].clone()
}
