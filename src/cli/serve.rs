//! `serve`: every open session, as `watch` has it, with a page in the browser.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::arguments::Settings;
use super::{Context, ProgressReporter, live, opening, output};
use crate::daemon::{self, Clip, Serve};
use crate::error::{Error, Result};
use crate::program;
use crate::serve::{Events, Project, Server};
use crate::watch::Stop;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the address of the page. Whoever knows all of it can do there what you can do here, so keep it to \
yourself; the next start has another one. Replies in the inbox are executed as `watch` does.

Examples:
  deaddrop serve
  deaddrop serve --open
  deaddrop serve --listen 127.0.0.1:0 --json")]
pub(super) struct ServePage {
    /// Listen on this address; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7373")]
    listen: SocketAddr,
    /// Open the page in your browser
    #[arg(long)]
    open: bool,
}

pub(super) fn serve(
    context: &Context,
    arguments: &ServePage,
    settings: &Settings,
) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut engine = context.open_with(stop.clone(), Some(Arc::clone(&context.glimpse)))?;
    let events = Events::default();
    let helper = program::own().map_err(|e| Error::failed(format!("cannot find itself: {e}")))?;
    let turn = stop.clone();
    let project = Project {
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
    let mut reporter = ProgressReporter::that_serves(context).for_page(events);
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
