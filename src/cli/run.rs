//! `ops run`: one message of operations carried out without a session, told as events.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::input::Input;
use super::{Context, Opened, ProgressReporter, WAITS, output};
use crate::engine::Turn;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::ipc::{self, Request};
use crate::protocol::operations::Status;
use crate::protocol::{Asks, Invalid, Kind, Mistake, Step, read_run};
use crate::session::{Session, run_id};
use crate::settings::RUN_POLICY;
use crate::space;
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct RunOnce {
    /// The message; `-` or nothing reads it from standard input
    file: Option<PathBuf>,
    /// Continue a run that waited for a decision
    #[arg(long, value_name = "RUN_ID", conflicts_with_all = ["file", "policy"])]
    resume: Option<String>,
}

impl RunOnce {
    /// Whether it goes on with a run that is there.
    pub(super) fn resumes(&self) -> bool {
        self.resume.is_some()
    }
}

pub(super) fn run(context: &Context, arguments: &RunOnce) -> Result<ExitCode> {
    let request = match &arguments.resume {
        Some(stem) if run_id(stem).is_none() => {
            return Err(Error::usage(format!(
                "'{stem}' is not the id of a run (run_…); `deaddrop resume ID` continues a session"
            )));
        }
        // Where nothing is, nothing is to be made.
        Some(stem) if !context.has_begun() => {
            return Err(Error::no_run(stem, &context.config.sessions));
        }
        Some(stem) => Request::ResumeRun { stem: stem.clone() },
        None => {
            // Before anything is read or made.
            let policy = context.config.policy.as_deref().unwrap_or(RUN_POLICY);
            let policy = Box::new(context.config.policy(policy)?);
            // Before the lock and the handlers of signals: a person may take their time.
            let input = Input::read(arguments.file.as_deref(), "read the message from")?;
            let steps = match input.text {
                Ok(text) => read_run(&text).steps,
                Err(why) => vec![unreadable(&input.name, &why)],
            };
            Request::Run { steps, policy, asked: None }
        }
    };
    let stop = Stop::on_signals()?;
    let mut request = request;
    loop {
        let run = carried_out(context, request, &stop)?.session;
        let code = tell(context, &run);
        if stop.is_asked() {
            return Err(Error::interrupted());
        }
        if run.question().is_none() {
            return Ok(code);
        }
        ProgressReporter::new(context).show(&run, &context.preview_question(&run));
        // What is decided at the terminal need not be resumed by hand.
        if context.ask(&run, &stop)?.is_none() {
            let stem = run.stem();
            context.ui.say(format!("Afterwards, `deaddrop ops run --resume {stem}` continues."));
            return Ok(code);
        }
        request = Request::ResumeRun { stem: run.stem() };
    }
}

/// Has it done, here or by the process that serves the folder. What happens is told in the events,
/// and beside them only where more is wanted.
fn carried_out(context: &Context, request: Request, stop: &Stop) -> Result<Turn> {
    let mut reporter = ProgressReporter::new(context);
    let warn = |event: Event<'_>| {
        if let Event::Warning(warning) = event {
            context.ui.warning(warning);
        }
    };
    match context.open_or_hand_over(&request, stop)? {
        Opened::Here(mut engine) => {
            let observer: &mut dyn Observer =
                if context.ui.verbose { &mut reporter } else { &mut &warn };
            let turn = ipc::handle(&mut engine, request, observer)?;
            engine.shut_down()?;
            Ok(turn)
        }
        Opened::Elsewhere(done) => {
            done.warnings.iter().for_each(|warning| warn(Event::Warning(warning)));
            Ok(done.turn)
        }
    }
}

fn tell(context: &Context, run: &Session) -> ExitCode {
    let events = space::told(run);
    // Not by way of a `Value`, which would put the fields into another order.
    let text = if context.json {
        serde_json::to_string(&events)
    } else {
        serde_json::to_string_pretty(&events)
    };
    output::json(&text.expect("texts and numbers become JSON"));
    match events.status {
        Status::Completed => ExitCode::SUCCESS,
        Status::AwaitingApproval => ExitCode::from(WAITS),
        Status::Error => ExitCode::FAILURE,
    }
}

/// A message that is no text is refused as one that is no message.
fn unreadable(name: &str, why: &str) -> Step {
    let reason = format!("Nothing was carried out: {name}: {why}");
    let (kind, mistake) = (Kind::Reply, Mistake::NoText);
    let invalid = Invalid { kind, mistake, rejected: false, reason };
    Step {
        line: 1,
        asks: Asks::Invalid(invalid),
        ends: false,
        passes_over: false,
        left_out: None,
        warnings: Vec::new(),
        asked: None,
        as_sent: None,
    }
}
