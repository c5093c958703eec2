//! Sends events to open pages: those of `watch --json`, and the output of a running command.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Sender};
use tokio::time::timeout;

use super::Site;

/// How many events are kept for a slow page. A page that misses some is told to reload everything.
const MAX_EVENTS: usize = 1_000;
/// How often the output of a command is checked.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(200);
/// After this many checks without an event, a comment line is sent, so that a lost connection is noticed.
const KEEPALIVE_CHECKS: u32 = 50;

/// Sends events to all open pages.
#[derive(Debug, Clone)]
pub struct Events(Sender<Arc<str>>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::channel(MAX_EVENTS).0)
    }
}

impl Events {
    /// Sends an event to all pages that are open.
    pub fn send(&self, event: &Value) {
        // There may be no open page.
        let _ = self.0.send(event.to_string().into());
    }
}

/// Streams the events from now on as server-sent events.
pub(super) async fn stream(State(site): State<Arc<Site>>) -> Response {
    let events = site.project.events.0.subscribe();
    let begin = (site, events, String::new(), 0);
    let hello = stream::once(async { message(&json!({ "event": "hello" }).to_string()) });
    let rest = stream::unfold(begin, |(site, mut events, mut seen, mut quiet)| async move {
        loop {
            let text = match timeout(OUTPUT_INTERVAL, events.recv()).await {
                Ok(Ok(event)) => event.to_string(),
                Ok(Err(RecvError::Lagged(_))) => json!({ "event": "missed" }).to_string(),
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => {
                    let written = site.project.live_output.end();
                    quiet += 1;
                    if written != seen {
                        seen = written;
                        json!({ "event": "output", "text": seen }).to_string()
                    } else if quiet >= KEEPALIVE_CHECKS {
                        return Some((Bytes::from_static(b":\n\n"), (site, events, seen, 0)));
                    } else {
                        continue;
                    }
                }
            };
            return Some((message(&text), (site, events, seen, 0)));
        }
    });
    let body = Body::from_stream(hello.chain(rest).map(Ok::<_, Infallible>));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// A server-sent event. JSON contains no line feeds.
fn message(text: &str) -> Bytes {
    format!("data: {text}\n\n").into()
}
