//! `deaddrop serve`: the page in the browser, and the REST API for programs ([`rest`]).
//!
//! The page is a client of the command line. Each of its requests runs a command with `--json` (docs/scripting.md) as a
//! separate process, which hands changes over to the process that serves: this one. So the page can do exactly what a
//! person at a terminal can, and every request passes the journal, the policy and approvals.
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
pub use rest::{ApiKey, ApiKeys};

/// How long open requests may take when the server stops.
const LAST: Duration = Duration::from_secs(2);
/// How often to check for expired spaces.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);
/// How many reading commands and how many other commands of the page run at once.
const READING: usize = 4;
const WRITING: usize = 16;

/// The project that the page shows.
pub struct ServedProject {
    /// Its settings.
    pub config: Config,
    /// The run that was finished when the project was opened.
    pub recovered_run: Option<Session>,
    /// This program, with the arguments before a command.
    pub command: (PathBuf, Vec<OsString>),
    /// Environment variables that pass settings on.
    pub variables: Vec<(String, String)>,
    /// Events of the project.
    pub events: Events,
    /// Output of a running command.
    pub live_output: Arc<LiveOutput>,
    /// Stops the running turn.
    pub stop_turn: Box<dyn Fn() + Send + Sync>,
}

/// The running server of a page.
pub struct PageServer {
    /// The address it listens on.
    pub address: SocketAddr,
    /// Proves that the person opened the page.
    pub token: String,
    /// A host name that is new for this start, with the port. Browsers keep data of programs that listened on an address
    /// before, and would let it act on the page.
    host: Option<String>,
    spaces: Arc<Spaces>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// State that all requests share.
struct Site {
    project: ServedProject,
    spaces: Arc<Spaces>,
    address: SocketAddr,
    host: Option<String>,
    token: String,
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl PageServer {
    /// Serves the page of a project until [`PageServer::stop`].
    ///
    /// # Errors
    /// The address is not available, the spaces cannot be read, or no thread can be created.
    pub fn start(listen: SocketAddr, mut project: ServedProject) -> Result<Self> {
        let (listeners, address, host) = bind(listen)?;
        let token = random() + &random();
        let spaces = Spaces::open(&project.config, project.recovered_run.take())?;
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
            let room = Arc::new(Semaphore::new(connection::MAX_CONNECTIONS));
            for listener in listeners {
                let router = router(Arc::clone(&site));
                runtime.spawn(connection::accept(listener, router, Arc::clone(&room)));
            }
            runtime.spawn(expire(Arc::clone(&site.spaces)));
            let _ = runtime.block_on(stopped);
            // Do not wait longer: commands of the page may wait for an answer of this process.
            runtime.shutdown_timeout(LAST);
        };
        let thread = thread::Builder::new().name("page".into()).spawn(serve).map_err(fail)?;
        Ok(Self { address, token, host, spaces, stop, thread })
    }

    /// The address that the person opens, with the token.
    pub fn url(&self) -> String {
        let host = self.host.clone().unwrap_or_else(|| self.address.to_string());
        format!("http://{host}/#token={}", self.token)
    }

    /// Stops the server.
    pub fn stop(self) {
        // Clients that wait for a run get its results so far.
        self.spaces.stop();
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Listens on an address. Also returns the actual address, and the page's host name with the port, if it has one.
fn bind(listen: SocketAddr) -> Result<(Vec<TcpListener>, SocketAddr, Option<String>)> {
    let mut listeners = vec![bind_one(listen)?];
    let address = listeners[0].local_addr().unwrap_or(listen);
    // A random port is new enough.
    if listen.port() == 0 || !address.ip().is_loopback() {
        return Ok((listeners, address, None));
    }
    // A `.localhost` name can resolve to either loopback address.
    let other: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv4Addr::LOCALHOST.into(),
    };
    match bind_one(SocketAddr::new(other, address.port())) {
        Err(e) if e.code() == "address-in-use" => return Err(e),
        // The machine may not have this address.
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

/// Destroys expired spaces, in an endless loop.
async fn expire(spaces: Arc<Spaces>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
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
