//! `serve`: every open session, as `watch` has it, with a page in the browser.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use super::arguments::Settings;
use super::{Context, ProgressReporter, live, opening, output};
use crate::clock::Timestamp;
use crate::daemon::{self, Clip, Serve};
use crate::error::{Error, Result};
use crate::lock;
use crate::program;
use crate::serve::{Events, Key, Keys, Project, Server};
use crate::settings::Config;
use crate::watch::Stop;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Prints the address of the page. Whoever knows all of it can do there what you can do here, so keep it to \
yourself; the next start has another one. Replies in the inbox are executed as `watch` does.

Examples:
  deaddrop serve
  deaddrop serve --open
  deaddrop serve --listen 127.0.0.1:0 --json"
)]
pub(super) struct ServePage {
    /// Listen on this address; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7373")]
    listen: SocketAddr,
    /// Open the page in your browser
    #[arg(long)]
    open: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Manage the keys of the REST API
    Keys(KeysOf),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A program that has a key can make spaces and run commands in their sandboxes. Changes count at once, also while \
`deaddrop serve` runs.

Examples:
  deaddrop serve keys add laptop
  deaddrop serve keys list --json
  deaddrop serve keys revoke laptop")]
struct KeysOf {
    #[command(subcommand)]
    what: OfKeys,
}

#[derive(Debug, Subcommand)]
enum OfKeys {
    /// Add a key, and print it once
    #[command(after_help = "\
Examples:
  deaddrop serve keys add laptop")]
    Add {
        /// What you call it
        name: String,
    },
    /// List the keys
    #[command(after_help = "\
Examples:
  deaddrop serve keys list --json")]
    List,
    /// Remove a key
    #[command(after_help = "\
Examples:
  deaddrop serve keys revoke laptop")]
    Revoke {
        /// What you called it
        name: String,
    },
}

impl ServePage {
    /// Whether it needs a project that is set up.
    pub(super) fn begins(&self) -> bool {
        !matches!(
            &self.what,
            Some(What::Keys(KeysOf { what: OfKeys::List | OfKeys::Revoke { .. } }))
        )
    }
}

/// Changes or lists keys.
fn keys(context: &Context, what: &OfKeys) -> Result<ExitCode> {
    if let OfKeys::Add { name } = what {
        Keys::check_name(name)?;
        // As `serve` begins with it.
        let Config { sessions, inbox, outbox, approvals, .. } = &context.config;
        context.config.claim_dirs([sessions, inbox, outbox, approvals])?;
        lock::make_private(&context.config)?;
    }
    let keys = Keys::new(&context.config.sessions);
    match what {
        OfKeys::Add { name } => {
            let key = keys.add(name, Timestamp::now())?;
            if context.json {
                Context::print_json(&json!({ "name": name, "key": key }));
            } else {
                context.ui.say("This is the only time that the key is shown:");
                output::result(&key);
            }
        }
        OfKeys::List => {
            for key in keys.list()? {
                if context.json {
                    let Key { name, created_at, .. } = key;
                    Context::print_json(&json!({ "name": name, "createdAt": created_at }));
                } else {
                    output::result(format!("{}  {}", key.created_at, key.name));
                }
            }
        }
        OfKeys::Revoke { name } => {
            keys.revoke(name)?;
            context.ui.say(format!("The key '{name}' counts no more."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn serve(
    context: &Context,
    arguments: &ServePage,
    settings: &Settings,
) -> Result<ExitCode> {
    if let Some(What::Keys(KeysOf { what })) = &arguments.what {
        return keys(context, what);
    }
    let stop = Stop::on_signals()?;
    let mut engine = context.open_with(stop.clone(), Some(Arc::clone(&context.glimpse)))?;
    let events = Events::default();
    let helper = program::own().map_err(|e| Error::failed(format!("cannot find itself: {e}")))?;
    let turn = stop.clone();
    let project = Project {
        config: context.config.clone(),
        taken_up: engine.recovered_turn.as_ref().map(|turn| turn.session.clone()),
        command: (helper, vec![OsString::from("-C"), context.config.project.clone().into()]),
        variables: settings.variables(),
        events: events.clone(),
        glimpse: Arc::clone(&context.glimpse),
        stop_turn: Box::new(move || turn.pause()),
    };
    let server = Server::start(arguments.listen, project)?;
    if !server.address.ip().is_loopback() {
        context.ui.warning("other machines can reach this address, and the connection is not encrypted: whoever listens in can do what you can; `ssh -L` is a safe way");
    }
    if context.json {
        Context::print_json(&json!({ "url": server.url(), "token": server.token }));
    } else {
        context.ui.say("Serving the page; open it in your browser (Ctrl-C stops):");
        output::result(server.url());
    }
    let opened = arguments.open.then(|| opening::browse(context, &server.url()));
    if let Some(Err(e)) = &opened {
        context.ui.warning(&e.to_string());
    }
    for session in engine.store.open_sessions()? {
        match engine.check_workspace(&session) {
            Ok(()) if session.pending.is_none() => drop(engine.restore_outbox(&session)?),
            Ok(()) => {}
            Err(e) => context.ui.warning(&e.to_string()),
        }
    }
    let mut reporter =
        ProgressReporter::that_serves(context).for_page(Box::new(move |event| events.send(event)));
    live::heed(&stop);
    reporter.repeat(&engine);
    let ended = loop {
        let round = daemon::serve(&mut engine, &Serve::All, Clip::default(), &stop, &mut reporter);
        // The page stopped a turn, and not the server.
        if !matches!(round, Ok(false)) || !stop.resumes() {
            break round;
        }
    };
    drop(reporter);
    server.stop();
    ended?;
    context.ui.say("Stopped. `deaddrop serve` continues.");
    Err(Error::interrupted())
}
