//! `serve`: serves every open session, as `watch` does, with a page in the browser.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::SettingFlags;
use super::serving::restore_outboxes;
use super::{CliContext, ProgressReporter, editor, live, output};
use crate::clock::Timestamp;
use crate::daemon::{self, Clip, Serve};
use crate::error::{Error, Result};
use crate::lock;
use crate::program;
use crate::serve::{ApiKey, ApiKeys, Events, PageServer, ServedProject};
use crate::settings::Config;
use crate::watch::Stop;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ServePage {
    /// Listen on this address; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7373")]
    listen: SocketAddr,
    /// Open the page in your browser
    #[arg(long)]
    open: bool,
    #[command(subcommand)]
    command: Option<ServeCommand>,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    /// Manage the keys of the REST API
    #[command(subcommand)]
    Keys(KeysCommand),
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Add a key, and print it once
    Add {
        /// A name of your choice
        name: String,
    },
    /// List the keys
    List,
    /// Remove a key
    Revoke {
        /// The name of the key
        name: String,
    },
}

impl ServePage {
    /// Whether the command sets up the project if needed. Listing and revoking keys does not.
    pub(super) fn sets_up_project(&self) -> bool {
        !matches!(
            &self.command,
            Some(ServeCommand::Keys(KeysCommand::List | KeysCommand::Revoke { .. }))
        )
    }
}

/// Adds, lists or removes keys.
fn keys(context: &CliContext, command: &KeysCommand) -> Result<ExitCode> {
    if let KeysCommand::Add { name } = command {
        ApiKeys::check_name(name)?;
        // `serve` does the same when it starts.
        let Config { sessions, inbox, outbox, approvals, .. } = &context.config;
        context.config.claim_dirs([sessions, inbox, outbox, approvals])?;
        lock::make_private(&context.config)?;
    }
    let keys = ApiKeys::new(&context.config.sessions);
    match command {
        KeysCommand::Add { name } => {
            let key = keys.add(name, Timestamp::now())?;
            output::say("This is the only time that the key is shown:");
            output::print(json!({ "name": name, "key": key }), || &*key);
        }
        KeysCommand::List => {
            for ApiKey { name, created_at, .. } in keys.list()? {
                let value = json!({ "name": name, "createdAt": created_at });
                output::print(value, || format!("{created_at}  {name}"));
            }
        }
        KeysCommand::Revoke { name } => {
            keys.revoke(name)?;
            output::say(format!("The key '{name}' is no longer valid."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn serve(
    context: &CliContext,
    arguments: &ServePage,
    settings: &SettingFlags,
) -> Result<ExitCode> {
    if let Some(ServeCommand::Keys(command)) = &arguments.command {
        return keys(context, command);
    }
    let stop = Stop::on_signals()?;
    let mut engine = context.open(stop.clone())?;
    let events = Events::default();
    let helper =
        program::own_executable().map_err(|e| Error::failed(format!("cannot find itself: {e}")))?;
    let turn = stop.clone();
    let project = ServedProject {
        config: context.config.clone(),
        recovered_run: engine.recovered_turn.as_ref().map(|turn| turn.session.clone()),
        command: (helper, vec![OsString::from("-C"), context.config.project.clone().into()]),
        variables: settings.variables(),
        events: events.clone(),
        live_output: Arc::clone(&context.live_output),
        stop_turn: Box::new(move || turn.pause()),
    };
    let server = PageServer::start(arguments.listen, project)?;
    if !server.address.ip().is_loopback() {
        output::warning(
            "other machines can reach this address, and the connection is not encrypted: anyone who intercepts it can do what you can; use `ssh -L` instead",
        );
    }
    output::say("Serving the page; open it in your browser (Ctrl-C stops):");
    output::print(json!({ "url": server.url(), "token": server.token }), || server.url());
    let opened = arguments.open.then(|| editor::open_browser(context, &server.url()));
    if let Some(Err(e)) = &opened {
        output::warning(&e.to_string());
    }
    restore_outboxes(&engine)?;
    let mut reporter = ProgressReporter::serving(context, true)
        .for_page(Box::new(move |event| events.send(event)));
    live::stop_drawing_on(&stop);
    reporter.report_opening(&engine);
    let ended = loop {
        let round = daemon::serve(&mut engine, &Serve::All, Clip::default(), &stop, &mut reporter);
        // The page stopped a turn, not the server.
        if !matches!(round, Ok(false)) || !stop.take_pause() {
            break round;
        }
    };
    drop(reporter);
    server.stop();
    ended?;
    output::say("Stopped. `deaddrop serve` continues.");
    Err(Error::interrupted())
}
