//! `deaddrop serve`: the page in the browser, and the REST API for programs ([`rest`]).
//!
//! The page is a client of the command line. Each of its requests is a command with `--json` (docs/scripting.md), run
//! as a process of its own that hands what it changes to the process that serves, which is this one. So the page can do
//! what a person at a terminal can, and nothing else; the journal, the policy and approvals lie on its only way.
//!
//! Requests are received and answered on one thread, the only one with a runtime.

mod assets;
mod calls;
mod connection;
mod events;
mod guard;
mod rest;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::middleware;
use axum::routing::{any, get, post};
use tokio::sync::{Semaphore, oneshot};

use crate::error::{Error, Result};
use crate::runner::LiveOutput;
use crate::session::Session;
use crate::settings::Config;
pub(crate) use calls::ON_STDIN;
pub use events::Events;
use rest::Spaces;
pub use rest::{Key, Keys};

/// How long requests may take that are open when the server stops.
const LAST: Duration = Duration::from_secs(2);
/// How often it is looked which spaces have expired.
const SOON: Duration = Duration::from_secs(1);
/// So many commands of the page that only read run at once, and so many others.
const READING: usize = 4;
const WRITING: usize = 16;

/// What the page is a page of.
pub struct Project {
    /// Its settings.
    pub config: Config,
    /// What was finished when it was opened.
    pub taken_up: Option<Session>,
    /// This program, with the arguments that come before a command.
    pub command: (PathBuf, Vec<OsString>),
    /// Variables that settings are handed on in.
    pub variables: Vec<(String, String)>,
    /// What happens in the project.
    pub events: Events,
    /// What a running command writes.
    pub live_output: Arc<LiveOutput>,
    /// Stops the turn that runs.
    pub stop_turn: Box<dyn Fn() + Send + Sync>,
}

/// A page that is served.
pub struct Server {
    /// Where.
    pub address: SocketAddr,
    /// What the page proves with that it was opened by the person.
    pub token: String,
    /// The name of its own that the page has for this start, with the port. Browsers keep what somebody who listened
    /// on an address before has left there, and let it act on the page.
    host: Option<String>,
    spaces: Arc<Spaces>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// What all requests share.
struct Site {
    project: Project,
    spaces: Arc<Spaces>,
    address: SocketAddr,
    host: Option<String>,
    token: String,
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl Server {
    /// Serves the page of a project until [`Server::stop`].
    ///
    /// # Errors
    /// The address cannot be listened on, or there is no thread for it.
    pub fn start(listen: SocketAddr, mut project: Project) -> Result<Self> {
        let (listeners, address, host) = bind(listen)?;
        let token = random() + &random();
        let spaces = Spaces::open(&project.config, project.taken_up.take())?;
        let site = Arc::new(Site {
            spaces: Arc::clone(&spaces),
            project,
            address,
            host: host.clone(),
            token: token.clone(),
            reading: Arc::new(Semaphore::new(READING)),
            writing: Arc::new(Semaphore::new(WRITING)),
        });
        let (stop, stopped) = oneshot::channel();
        let fail = |e: std::io::Error| Error::failed(format!("the page cannot be served: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(fail)?;
        let serve = move || {
            let room = Arc::new(Semaphore::new(connection::MOST));
            for listener in listeners {
                let router = router(Arc::clone(&site));
                runtime.spawn(connection::accept(listener, router, Arc::clone(&room)));
            }
            runtime.spawn(expire(Arc::clone(&site.spaces)));
            let _ = runtime.block_on(stopped);
            // Commands of the page may still wait for an answer of this process, which is ending.
            runtime.shutdown_timeout(LAST);
        };
        let thread = thread::Builder::new().name("page".into()).spawn(serve).map_err(fail)?;
        Ok(Self { address, token, host, spaces, stop, thread })
    }

    /// The address that the person opens.
    pub fn url(&self) -> String {
        let host = self.host.clone().unwrap_or_else(|| self.address.to_string());
        format!("http://{host}/#token={}", self.token)
    }

    /// Ends it.
    pub fn stop(self) {
        // Whoever waits for a run gets what came of it until now.
        self.spaces.stop();
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Listens on an address. Returns also which it is, and the page's own name with the port, if it has one.
fn bind(listen: SocketAddr) -> Result<(Vec<TcpListener>, SocketAddr, Option<String>)> {
    let mut listeners = vec![bind_one(listen)?];
    let address = listeners[0].local_addr().unwrap_or(listen);
    // A free port is new enough.
    if listen.port() == 0 || !address.ip().is_loopback() {
        return Ok((listeners, address, None));
    }
    // Such a name leads to both.
    let other: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv4Addr::LOCALHOST.into(),
    };
    match bind_one(SocketAddr::new(other, address.port())) {
        Err(e) if e.code() == "address-in-use" => return Err(e),
        // There may be no such address.
        other => listeners.extend(other),
    }
    let host = format!("{}.localhost:{}", &random()[..12], address.port());
    Ok((listeners, address, Some(host)))
}

fn bind_one(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|e| match e.kind() {
            ErrorKind::AddrInUse => Error::listens(address.to_string()),
            _ => Error::failed(format!("cannot listen on {address}: {e}")),
        })
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Destroys spaces whose time is over, as long as it is awaited.
async fn expire(spaces: Arc<Spaces>) {
    loop {
        tokio::time::sleep(SOON).await;
        let spaces = Arc::clone(&spaces);
        let _ = tokio::task::spawn_blocking(move || spaces.expire()).await;
    }
}

fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/api/events", get(events::stream))
        .route("/api/stop", post(calls::stop))
        .route("/api/{call}", post(calls::call))
        .route("/health", get(rest::health))
        .route("/health/ready", get(rest::health))
        .route("/v1", any(rest::handle))
        .route("/v1/", any(rest::handle))
        .route("/v1/{*rest}", any(rest::handle))
        .fallback(assets::file)
        .layer(middleware::from_fn_with_state(Arc::clone(&site), guard::guard))
        .with_state(site)
}
