//! `ops`: messages of the operations dialect. `run` needs a project (see `run`); `validate` and `schema`
//! look at the message alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::input::Input;
use super::output::{self, Terminal};
use super::run::RunOnce;
use crate::error::Result;
use crate::inbox;
use crate::protocol::operations::{
    EVENTS_SCHEMA, OPERATIONS_SCHEMA, SchemaFault, parse_events_message, parse_operations_message,
};
use crate::text::count;

#[derive(Debug, Args)]
pub(super) struct Ops {
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Execute one message of operations, and print its events
    Run(RunOnce),
    /// Check an operations message against the specification
    Validate(Validate),
    /// Print the JSON Schema of a message
    Schema(Print),
}

#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The message; `-` or nothing reads it from standard input
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Print {
    /// Which schema
    #[arg(value_name = "MESSAGE", default_value = "operations", value_parser = ["operations", "events"])]
    message: String,
}

/// What a text is meant as: events only where that is plain, so that what is neither is told how operations are
/// sent.
fn meant_by(text: &str) -> &'static str {
    // Reads no value, so that neither their depth nor their number matters.
    let keys = serde_json::from_str::<BTreeMap<String, &RawValue>>(text).unwrap_or_default();
    let is_of_events = keys.contains_key("events") && !keys.contains_key("operations");
    if is_of_events { "events" } else { "operations" }
}

pub(super) fn validate(arguments: &Validate, ui: &Terminal, json: bool) -> Result<ExitCode> {
    let input = Input::read(arguments.file.as_deref(), "read the message from")?;
    let kind = input.text.as_ref().map_or("operations", |text| meant_by(text));
    let (entries, faults, more) = match &input.text {
        Err(why) => {
            let form = format!("a message as UTF-8 text, of at most {} bytes", inbox::SIZE_LIMIT);
            let fault = SchemaFault { path: "$".to_owned(), problem: why.to_owned(), form };
            (0, vec![fault], 0)
        }
        Ok(text) => {
            let read = if kind == "events" {
                parse_events_message(text).map(|read| read.events.len())
            } else {
                parse_operations_message(text).map(|read| read.operations.len())
            };
            match read {
                Ok(entries) => (entries, Vec::new(), 0),
                Err(found) => {
                    let told: Vec<SchemaFault> = found.iter().cloned().collect();
                    let more = found.count() - told.len();
                    (0, told, more)
                }
            }
        }
    };
    let is_valid = faults.is_empty();
    if json {
        let fault = |fault: &SchemaFault| json!({ "path": fault.path, "problem": fault.problem, "form": fault.form });
        let told: Vec<_> = faults.iter().map(fault).collect();
        let mut value = json!({ "valid": is_valid, "kind": kind, "faults": told });
        if more > 0 {
            value["more"] = more.into();
        }
        output::json(&value.to_string());
    } else {
        faults.iter().for_each(|fault| output::prose(fault.to_string()));
    }
    ui.say(if is_valid {
        let entries = count(entries, kind.trim_end_matches('s'));
        format!("valid: an {kind} message with {entries}")
    } else {
        format!("invalid: {} as an {kind} message", count(faults.len() + more, "fault"))
    });
    if more > 0 {
        let more = count(more, "more fault");
        ui.warning(&format!("{more} not told; put these right first, then validate it again"));
    }
    Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn schema(arguments: &Print, json: bool) -> ExitCode {
    let is_of_events = arguments.message == "events";
    let text = if is_of_events { EVENTS_SCHEMA } else { OPERATIONS_SCHEMA };
    // It is JSON either way; on one line where results are to be an object a line.
    match serde_json::from_str::<Value>(text) {
        Ok(schema) if json => output::json(&schema.to_string()),
        _ => output::result(text.trim_end()),
    }
    ExitCode::SUCCESS
}
