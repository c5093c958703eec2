//! `ops`: messages of the operations dialect. `run` executes one without a session; `validate` and `schema` only look at
//! messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::input::TextInput;
use super::output;
use super::{CliContext, EXIT_WAITS, ProgressReporter};
use crate::error::{Error, Result};
use crate::ipc::Request;
use crate::protocol::operations::{
    EVENTS_SCHEMA, OPERATIONS_SCHEMA, SchemaFault, SchemaFaults, Status, parse_events_message,
    parse_operations_message,
};
use crate::protocol::{Mistake, Step, read_run};
use crate::session::{Session, run_id};
use crate::settings::RUN_POLICY;
use crate::text::count;
use crate::watch::Stop;
use crate::{inbox, space};

#[derive(Debug, Subcommand)]
pub(super) enum Ops {
    /// Execute one message of operations, and print its events
    Run(RunOnce),
    /// Check an operations message against the specification
    Validate {
        /// The message; `-` or nothing reads it from standard input
        #[arg(default_value = "-", hide_default_value = true)]
        file: PathBuf,
    },
    /// Print the JSON Schema of a message
    Schema {
        /// Which schema
        #[arg(value_name = "MESSAGE", default_value = "operations", value_parser = ["operations", "events"])]
        message: String,
    },
}

/// The kind of message that a text is meant to be. Only an obvious events message counts as events, so that the errors
/// for any other text describe operations.
fn message_kind(text: &str) -> &'static str {
    // Values are not parsed, so their depth and number do not matter.
    let keys = serde_json::from_str::<BTreeMap<String, &RawValue>>(text).unwrap_or_default();
    let is_of_events = keys.contains_key("events") && !keys.contains_key("operations");
    if is_of_events { "events" } else { "operations" }
}

pub(super) fn validate(file: &Path) -> Result<ExitCode> {
    let input = TextInput::read(file, "read the message from")?;
    let kind = input.text.as_ref().map_or("operations", |text| message_kind(text));
    let read = match &input.text {
        Ok(text) if kind == "events" => parse_events_message(text).map(|read| read.events.len()),
        Ok(text) => parse_operations_message(text).map(|read| read.len()),
        Err(why) => {
            let form = format!("a message as UTF-8 text, of at most {} bytes", inbox::SIZE_LIMIT);
            Err(SchemaFaults::one("$", why.as_str(), form))
        }
    };
    let (entries, found) = read.map_or_else(|found| (0, found), |n| (n, SchemaFaults::default()));
    let faults: Vec<&SchemaFault> = found.iter().collect();
    let more = found.count() - faults.len();
    let is_valid = faults.is_empty();
    if output::wants_json() {
        let mut value = json!({ "valid": is_valid, "kind": kind, "faults": faults });
        if more > 0 {
            value["more"] = more.into();
        }
        output::json(&value);
    } else {
        faults.iter().for_each(|fault| output::prose(fault.to_string()));
    }
    output::say(if is_valid {
        let entries = count(entries, kind.trim_end_matches('s'));
        format!("valid: an {kind} message with {entries}")
    } else {
        format!("invalid: {} as an {kind} message", count(faults.len() + more, "fault"))
    });
    if more > 0 {
        let more = count(more, "more fault");
        output::warning(&format!("{more} not shown; correct these first, then validate again"));
    }
    Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn schema(message: &str) -> ExitCode {
    let is_of_events = message == "events";
    let text = if is_of_events { EVENTS_SCHEMA } else { OPERATIONS_SCHEMA };
    // The schema is JSON in any case. With --json it is printed on one line, like all results.
    match serde_json::from_str::<Value>(text) {
        Ok(schema) if output::wants_json() => output::json(&schema),
        _ => output::result(text.trim_end()),
    }
    ExitCode::SUCCESS
}

#[derive(Debug, Args)]
pub(super) struct RunOnce {
    /// The message; `-` or nothing reads it from standard input
    #[arg(default_value = "-", hide_default_value = true)]
    file: PathBuf,
    /// Continue a run that waited for a decision
    #[arg(long, value_name = "RUN_ID", conflicts_with_all = ["file", "policy"])]
    resume: Option<String>,
}

impl RunOnce {
    /// Whether it continues an existing run.
    pub(super) fn resumes(&self) -> bool {
        self.resume.is_some()
    }
}

pub(super) fn run(context: &CliContext, arguments: &RunOnce) -> Result<ExitCode> {
    let mut request = match &arguments.resume {
        Some(stem) if run_id(stem).is_none() => {
            return Err(Error::usage(format!(
                "'{stem}' is not the id of a run (run_…); `deaddrop resume ID` continues a session"
            )));
        }
        // If there are no runs, do not create folders.
        Some(stem) if !context.has_begun() => {
            return Err(Error::no_run(stem, &context.config.sessions));
        }
        Some(stem) => Request::ResumeRun { stem: stem.clone() },
        None => {
            // Check the policy before anything is read or created.
            let policy = context.config.policy.as_deref().unwrap_or(RUN_POLICY);
            let policy = Box::new(context.config.policy(policy)?);
            // Read the input before taking the lock and handling signals, because a person may need time.
            let input = TextInput::read(&arguments.file, "read the message from")?;
            let steps = match input.text {
                Ok(text) => read_run(&text).steps,
                Err(why) => vec![unreadable(&input.name, &why)],
            };
            Request::Run { steps, policy, asked: None }
        }
    };
    let stop = Stop::on_signals()?;
    loop {
        let run = context.request(request, &stop, 0)?.session;
        let code = print_events(&run);
        if stop.is_asked() {
            return Err(Error::interrupted());
        }
        if run.question().is_none() {
            return Ok(code);
        }
        ProgressReporter::new(context).show(&run, &context.preview_question(&run));
        // A decision at the terminal continues the run at once.
        if context.ask(&run, &stop)?.is_none() {
            let stem = run.stem();
            output::say(format!("Afterwards, `deaddrop ops run --resume {stem}` continues."));
            return Ok(code);
        }
        request = Request::ResumeRun { stem: run.stem() };
    }
}

fn print_events(run: &Session) -> ExitCode {
    let events = space::run_events(run);
    // Do not convert to `Value`, which would reorder the fields.
    let text = if output::wants_json() {
        serde_json::to_string(&events)
    } else {
        serde_json::to_string_pretty(&events)
    };
    output::json_text(&text.expect("texts and numbers become JSON"));
    match events.status {
        Status::Completed => ExitCode::SUCCESS,
        Status::AwaitingApproval => ExitCode::from(EXIT_WAITS),
        Status::Error => ExitCode::FAILURE,
    }
}

/// The step for a message that is not text. It is refused like an invalid message.
fn unreadable(name: &str, why: &str) -> Step {
    let reason = format!("Nothing was carried out: {name}: {why}");
    Step::refused(1, Mistake::NoText, reason)
}
