//! `ops`: messages of the operations dialect. `run` needs a project (see `run`); `validate` and `schema`
//! look at the message alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
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
#[command(after_help = "\
Examples:
  deaddrop ops run message.json
  deaddrop ops validate message.json
  deaddrop ops schema > operations.schema.json")]
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
#[command(after_help = "\
FILE contains only the message. A message with `events` and no `operations` is validated as an \
events message.

Exit code 0: valid; 1: not valid. Each fault is printed on a line: where, what is wrong, and the \
correct form.

Examples:
  deaddrop ops validate message.json
  xclip -selection clipboard -o | deaddrop ops validate --json")]
pub(super) struct Validate {
    /// The message; `-` or nothing reads it from standard input
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A schema of draft-07. `validate` also checks paths, sizes of files and base64.

Examples:
  deaddrop ops schema > operations.schema.json
  deaddrop ops schema events")]
pub(super) struct Print {
    /// Which schema
    #[arg(value_enum, default_value = "operations")]
    message: Message,
}

/// The two messages by the names that they have on the command line and in `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Message {
    /// Messages from the agent
    Operations,
    /// Messages to the agent
    Events,
}

impl Message {
    fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Events => "events",
        }
    }

    /// What a text is meant as: of events only where that is plain, so that what is neither is told
    /// how operations are sent.
    fn meant_by(text: &str) -> Self {
        // Reads no value, so that neither their depth nor their number matters.
        let keys = serde_json::from_str::<BTreeMap<String, &RawValue>>(text).unwrap_or_default();
        let is_of_events = keys.contains_key("events") && !keys.contains_key("operations");
        if is_of_events { Self::Events } else { Self::Operations }
    }
}

/// What validating a message came to.
struct Verdict {
    message: Message,
    /// How many operations or events there are in a valid one.
    entries: usize,
    faults: Vec<SchemaFault>,
    /// How many faults there are beside these.
    more: usize,
}

pub(super) fn validate(arguments: &Validate, ui: &Terminal, json: bool) -> Result<ExitCode> {
    let input = Input::read(arguments.file.as_deref(), "read the message from")?;
    let verdict = match &input.text {
        Ok(text) => Verdict::on(text),
        Err(why) => Verdict::unreadable(why),
    };
    if json {
        output::json(&verdict.json().to_string());
    } else {
        verdict.faults.iter().for_each(|fault| output::prose(fault.to_string()));
    }
    ui.say(verdict.summary());
    if verdict.more > 0 {
        let more = count(verdict.more, "more fault");
        ui.warning(&format!("{more} not told; put these right first, then validate it again"));
    }
    Ok(if verdict.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Verdict {
    fn on(text: &str) -> Self {
        let message = Message::meant_by(text);
        let read = match message {
            Message::Operations => parse_operations_message(text).map(|read| read.operations.len()),
            Message::Events => parse_events_message(text).map(|read| read.events.len()),
        };
        match read {
            Ok(entries) => Self { message, entries, faults: Vec::new(), more: 0 },
            Err(found) => {
                let told: Vec<SchemaFault> = found.iter().cloned().collect();
                let more = found.count() - told.len();
                Self { message, entries: 0, faults: told, more }
            }
        }
    }

    /// On what cannot be read as text at all.
    fn unreadable(why: &str) -> Self {
        let form = format!("a message as UTF-8 text, of at most {} bytes", inbox::SIZE_LIMIT);
        let fault = SchemaFault { path: "$".to_owned(), problem: why.to_owned(), form };
        Self { message: Message::Operations, entries: 0, faults: vec![fault], more: 0 }
    }

    fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    fn summary(&self) -> String {
        let kind = self.message.name();
        if self.is_valid() {
            let entries = count(self.entries, kind.trim_end_matches('s'));
            format!("valid: an {kind} message with {entries}")
        } else {
            let faults = count(self.faults.len() + self.more, "fault");
            format!("invalid: {faults} as an {kind} message")
        }
    }

    fn json(&self) -> Value {
        let fault = |fault: &SchemaFault| json!({ "path": fault.path, "problem": fault.problem, "form": fault.form });
        let mut value = json!({
            "valid": self.is_valid(),
            "kind": self.message.name(),
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
        });
        if self.more > 0 {
            value["more"] = self.more.into();
        }
        value
    }
}

pub(super) fn schema(arguments: &Print, json: bool) -> ExitCode {
    let text = match arguments.message {
        Message::Operations => OPERATIONS_SCHEMA,
        Message::Events => EVENTS_SCHEMA,
    };
    // It is JSON either way; on one line where results are to be an object a line.
    match serde_json::from_str::<Value>(text) {
        Ok(schema) if json => output::json(&schema.to_string()),
        _ => output::result(text.trim_end()),
    }
    ExitCode::SUCCESS
}
