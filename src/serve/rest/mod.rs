//! `/v1`: spaces, runs and files for programs, as the SDK of Agent Spaces requests them (docs/rest.md).
//!
//! Requests are answered on threads that may wait for the disk. Runs are executed by the thread of their space, whether or
//! not a client waits. Every answer, including errors, is JSON in the envelope of Agent Spaces.

mod files;
mod keys;
mod overrides;
mod runs;
mod spaces;
mod worker;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{Site, calls};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::protocol::Digest;
use crate::protocol::operations::SchemaFault;
pub use keys::{ApiKey, ApiKeys};
pub(super) use spaces::Spaces;
use worker::{RunResult, Ticket};

/// How many bodies are received at once.
static BODIES: Semaphore = Semaphore::const_new(16);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest request id or idempotency key, in bytes.
const MAX_ID: usize = 255;
/// When to send the head of an answer whose body is not ready: clients wait 30 seconds for the head, and without limit for
/// the body.
const HEAD_DELAY: Duration = Duration::from_secs(20);
/// How often a blank is sent until the body is ready.
const BLANK_INTERVAL: Duration = Duration::from_secs(5);
/// How many entries a list has by default, and at most.
const LIMIT: usize = 20;
const MOST: usize = 1_000;
/// The description of the API.
const OPENAPI: &str = include_str!("openapi.json");

/// A request.
struct ApiCall<'a> {
    method: Method,
    query: Vec<(String, String)>,
    /// The body.
    text: String,
    /// Digest of the body, the path and the caller.
    digest: Digest,
    /// Digest of the idempotency key, the path and the caller.
    key: Option<Digest>,
    spaces: &'a Spaces,
}

/// The answer to a request.
enum ApiReply {
    /// One object.
    Data(StatusCode, Value),
    /// A page of entries, and whether there are more.
    List(Vec<Value>, bool),
    /// A text without an envelope.
    Bare(&'static str),
    /// The result of a run, when it is ready.
    Wait(Box<PendingReply>),
}

/// The status and the data of an answer.
type ShapedReply = Result<(StatusCode, Value), ApiError>;

/// A result to wait for.
struct PendingReply {
    delivery: Delivery,
    /// The status if the answer must begin before the result is ready.
    late: StatusCode,
    shape: Box<dyn FnOnce(RunResult) -> ShapedReply + Send>,
}

impl ApiReply {
    fn ok(data: Value) -> Self {
        Self::Data(StatusCode::OK, data)
    }

    /// Waits for a ticket.
    fn of(
        ticket: Arc<Ticket>,
        late: StatusCode,
        shape: impl FnOnce(RunResult) -> ShapedReply + Send + 'static,
    ) -> Self {
        let delivery = Delivery { ticket, is_delivered: false };
        Self::Wait(Box::new(PendingReply { delivery, late, shape: Box::new(shape) }))
    }
}

/// Why a request failed.
#[derive(Debug, Clone)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Option<Value>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self { status, code, message, details: None }
    }

    /// A field of a request is invalid.
    fn invalid(path: &str, message: &str) -> Self {
        Self::issues(&[json!({ "path": path, "message": message })])
    }

    fn issues(issues: &[Value]) -> Self {
        let text =
            |issue: &Value, field: &str| issue[field].as_str().unwrap_or_default().to_owned();
        let told: Vec<String> = issues
            .iter()
            .map(|issue| match (text(issue, "path"), text(issue, "message")) {
                (path, message) if path.is_empty() => message,
                (path, message) => format!("{path}: {message}"),
            })
            .collect();
        let details = Some(json!({ "issues": issues }));
        let (code, message) = ("VALIDATION_ERROR", told.join("; "));
        Self { status: StatusCode::BAD_REQUEST, code, message, details }
    }

    /// A message violates its schema.
    fn schema<'a>(faults: impl Iterator<Item = &'a SchemaFault>) -> Self {
        let issue = |fault: &SchemaFault| {
            // `$.operations[0].path` is `operations.0.path` there.
            let path = fault.path.trim_start_matches('$').replace('[', ".").replace(']', "");
            let message = format!("{}. Correct form: {}", fault.problem, fault.form);
            json!({ "path": path.trim_start_matches('.'), "message": message })
        };
        Self::issues(&faults.map(issue).collect::<Vec<_>>())
    }

    /// Executing the request failed. The status does not make clients retry, because it must not be executed twice.
    fn failed(error: &Error) -> Self {
        Self::new(StatusCode::CONFLICT, "EXECUTION_ERROR", error.to_string())
    }

    fn denied(reason: &str, suggestion: Option<&str>) -> Self {
        let details = Some(json!({ "reason": reason, "suggestion": suggestion }));
        Self { details, ..Self::new(StatusCode::FORBIDDEN, "POLICY_DENIED", reason.to_owned()) }
    }

    fn stopping() -> Self {
        let message = "deaddrop is stopping".to_owned();
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "STOPPING", message)
    }

    fn no_space(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "SPACE_NOT_FOUND", format!("there is no space '{id}'"))
    }

    fn no_run(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "RUN_NOT_FOUND", format!("there is no run '{id}'"))
    }

    fn no_file(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "FILE_NOT_FOUND", format!("there is no file '{path}'"))
    }

    fn not_resumed(why: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "RESUME_ERROR", why)
    }

    fn other_body() -> Self {
        let message = "the idempotency key was used with another request".to_owned();
        Self::new(StatusCode::CONFLICT, "IDEMPOTENCY_CONFLICT", message)
    }

    fn busy() -> Self {
        let message = "too much waits in this space; try again later".to_owned();
        let busy = Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message);
        Self { details: Some(json!({ "retryAfter": 5 })), ..busy }
    }

    fn body(&self, id: &str) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        json!({ "error": error, "meta": { "requestId": id } })
    }
}

/// Parses an object at `path` of a body.
fn fields<T: DeserializeOwned>(path: &str, object: Map<String, Value>) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|e| {
        let within = Some(e.path().to_string()).filter(|within| within != ".");
        let path = [Some(path.to_owned()).filter(|path| !path.is_empty()), within];
        let path: Vec<String> = path.into_iter().flatten().collect();
        ApiError::invalid(&path.join("."), &e.inner().to_string())
    })
}

impl ApiCall<'_> {
    /// Parses the body, a JSON object. A missing body counts as an empty object.
    fn body<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let text = if self.text.trim().is_empty() { "{}" } else { &self.text };
        let invalid = |why: &str| ApiError::invalid("", why);
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => fields("", object),
            Ok(_) => Err(invalid("the body is not a JSON object")),
            Err(e) => Err(invalid(&format!("the body is not JSON: {e}"))),
        }
    }

    fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The requested page of a list.
struct ListPage {
    limit: usize,
    offset: usize,
}

impl ListPage {
    fn of(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        let number = |name: &str, least: usize, default: usize| match call.query(name) {
            None => Ok(default),
            Some(text) => text.parse().ok().filter(|number| *number >= least).ok_or_else(|| {
                ApiError::invalid(name, &format!("it must be a whole number of at least {least}"))
            }),
        };
        Ok(Self { limit: number("limit", 1, LIMIT)?.min(MOST), offset: number("offset", 0, 0)? })
    }

    fn reply(&self, all: Vec<Value>) -> ApiReply {
        let has_more = all.len() > self.offset.saturating_add(self.limit);
        ApiReply::List(all.into_iter().skip(self.offset).take(self.limit).collect(), has_more)
    }
}

/// Answers every request below `/v1`.
pub(super) async fn handle(State(site): State<Arc<Site>>, request: Request) -> Response {
    let id = request_id(request.headers());
    match answer(&site, request).await {
        Ok(ApiReply::Data(status, data)) => respond(status, &id, &enveloped(&data, &id)),
        Ok(ApiReply::List(data, more)) => {
            let meta = json!({ "requestId": id, "hasMore": more });
            respond(StatusCode::OK, &id, &json!({ "data": data, "meta": meta }))
        }
        Ok(ApiReply::Bare(text)) => respond_with(StatusCode::OK, &id, text.into()),
        Ok(ApiReply::Wait(waiting)) => wait(*waiting, id).await,
        Err(fault) => respond(fault.status, &id, &fault.body(&id)),
    }
}

/// `GET /health` and `/health/ready`, which need no key.
pub(super) async fn health(request: Request) -> Response {
    let id = request_id(request.headers());
    let is_ready = request.uri().path().ends_with("/ready");
    let mut body = if is_ready {
        json!({ "status": "ready" })
    } else {
        json!({ "status": "ok", "timestamp": Timestamp::now(), "checks": {} })
    };
    // The fields are at the top level, as in Agent Spaces, and also in the envelope.
    let envelope = enveloped(&body, &id);
    body["data"] = envelope["data"].clone();
    body["meta"] = envelope["meta"].clone();
    respond(StatusCode::OK, &id, &body)
}

/// An error that does not depend on the kind of request.
pub(super) fn refused(
    headers: &HeaderMap,
    status: StatusCode,
    code: &str,
    message: &str,
) -> Response {
    let id = request_id(headers);
    let code = code.to_uppercase().replace('-', "_");
    let body =
        json!({ "error": { "code": code, "message": message }, "meta": { "requestId": id } });
    respond(status, &id, &body)
}

fn enveloped(data: &Value, id: &str) -> Value {
    json!({ "data": data, "meta": { "requestId": id } })
}

fn respond(status: StatusCode, id: &str, body: &Value) -> Response {
    respond_with(status, id, body.to_string().into())
}

fn respond_with(status: StatusCode, id: &str, body: Body) -> Response {
    let mut response = (status, [(CONTENT_TYPE, "application/json")], body).into_response();
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(&REQUEST_ID).and_then(|value| value.to_str().ok());
    given.filter(|id| !id.is_empty() && id.len() <= MAX_ID).map_or_else(
        || format!("req_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]),
        str::to_owned,
    )
}

async fn answer(site: &Arc<Site>, request: Request) -> Result<ApiReply, ApiError> {
    let (head, body) = request.into_parts();
    let stopping = |_| ApiError::stopping();
    let given =
        head.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap_or_default().to_owned());
    let spaces = Arc::clone(&site.spaces);
    let caller = spawn_blocking(move || authorized(&spaces, given)).await.map_err(stopping)??;
    let body = calls::received(body, &BODIES).await.map_err(|(status, code, message)| {
        let code = if code == "too-large" { "PAYLOAD_TOO_LARGE" } else { "REQUEST_TIMEOUT" };
        ApiError::new(status, code, message.to_owned())
    })?;
    let spaces = Arc::clone(&site.spaces);
    let answered = move || {
        let text = String::from_utf8(body.to_vec())
            .map_err(|_| ApiError::invalid("", "the body is not UTF-8"))?;
        let path = head.uri.path().to_owned();
        let digest = |what: &[u8]| Digest::of(&[caller.as_bytes(), path.as_bytes(), what].join(&0));
        let key = match head.headers.get(IDEMPOTENCY_KEY).map(HeaderValue::as_bytes) {
            Some(key) if key.is_empty() || key.len() > MAX_ID => {
                let why = format!("it must have 1 to {MAX_ID} characters");
                return Err(ApiError::invalid("Idempotency-Key", &why));
            }
            key => key.map(digest),
        };
        let call = ApiCall {
            method: if head.method == Method::HEAD { Method::GET } else { head.method },
            query: query(head.uri.query().unwrap_or_default()),
            digest: digest(&body),
            key,
            text,
            spaces: &spaces,
        };
        route(&path, &call)
    };
    spawn_blocking(answered).await.map_err(stopping)?
}

/// Checks the API key of a request, and returns its digest.
fn authorized(spaces: &Spaces, given: Option<String>) -> Result<String, ApiError> {
    let refused =
        |why: &str| Err(ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", why.to_owned()));
    let Some(given) = given else {
        return refused("the header is missing: Authorization: Bearer KEY");
    };
    let Some(key) = given.strip_prefix("Bearer ") else {
        return refused("the header has another form: Authorization: Bearer KEY");
    };
    match spaces.keys.find(key).map_err(|e| ApiError::failed(&e))? {
        Some(key) => Ok(key.digest),
        None => refused("there is no such key; `deaddrop serve keys add NAME` makes one"),
    }
}

fn query(text: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| files::decoded(&text.replace('+', " ")).unwrap_or_default();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Dispatches a request by its path and method.
fn route(path: &str, call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let rest = path.strip_prefix("/v1").unwrap_or_default();
    let names: Vec<&str> = rest.split('/').skip(1).collect();
    let (method, spaces) = (call.method.as_str(), call.spaces);
    let methods = match (names.as_slice(), method) {
        ([], "GET") => {
            let documentation = "/v1/openapi.json";
            return Ok(ApiReply::ok(
                json!({ "name": "deaddrop", "version": "v1", "documentation": documentation }),
            ));
        }
        (["openapi.json"], "GET") => return Ok(ApiReply::Bare(OPENAPI)),
        (["spaces"], "POST") => return spaces.create(call),
        (["spaces"], "GET") => return spaces.list(call),
        (["spaces", id], "GET") => return spaces.show(id),
        (["spaces", id], "PATCH") => return spaces.update(id, call),
        (["spaces", id], "DELETE") => return spaces.destroy(id),
        (["spaces", id, "extend"], "POST") => return spaces.extend(id, call),
        (["spaces", id, "runs"], "POST") => return runs::begin(&spaces.get(id)?, call),
        (["spaces", id, "runs"], "GET") => return runs::list(&spaces.get(id)?, call),
        (["spaces", id, "runs", run], "GET") => return runs::show(&spaces.get(id)?, run),
        (["spaces", id, "runs", run, "resume"], "POST") => {
            return runs::resume(&spaces.get(id)?, run, call);
        }
        (["spaces", id, "runs", run, "cancel"], "POST") => {
            return runs::cancel(&spaces.get(id)?, run, call);
        }
        (["spaces", id, "files"], "GET") => return files::answer(&spaces.get(id)?, "", call),
        (["spaces", id, "files", path @ ..], "GET" | "PUT" | "DELETE") if !path.is_empty() => {
            return files::answer(&spaces.get(id)?, &path.join("/"), call);
        }
        ([] | ["openapi.json"] | ["spaces", _, "runs", _] | ["spaces", _, "files"], _) => "GET",
        (["spaces"] | ["spaces", _, "runs"], _) => "GET, POST",
        (["spaces", _], _) => "GET, PATCH, DELETE",
        (["spaces", _, "extend"] | ["spaces", _, "runs", _, "resume" | "cancel"], _) => "POST",
        (["spaces", _, "files", ..], _) => "GET, PUT, DELETE",
        _ => {
            let message = "there is nothing at this address; /v1/openapi.json lists the addresses";
            return Err(ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message.to_owned()));
        }
    };
    let message = format!("this address accepts only {methods}");
    Err(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message))
}

/// Records on drop whether an answer was delivered.
struct Delivery {
    ticket: Arc<Ticket>,
    is_delivered: bool,
}

impl Delivery {
    fn arrived(mut self) {
        self.is_delivered = true;
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.ticket.delivered(self.is_delivered);
    }
}

/// Answers with the result of a run. If it takes long, sends the head first, and blanks until the body is ready.
async fn wait(waiting: PendingReply, id: String) -> Response {
    let PendingReply { delivery, late, shape } = waiting;
    let mut done = delivery.ticket.done.subscribe();
    let shaped = {
        let id = id.clone();
        move |done: Option<RunResult>| match done.map_or_else(|| Err(ApiError::stopping()), shape) {
            Ok((status, data)) => (status, enveloped(&data, &id).to_string()),
            Err(fault) => (fault.status, fault.body(&id).to_string()),
        }
    };
    let first = timeout(HEAD_DELAY, done.wait_for(Option::is_some)).await;
    let first = first.ok().map(|done| done.ok().and_then(|done| done.clone()));
    let (status, shaped, ready) = match first {
        Some(done) => {
            let (status, text) = shaped(done);
            (status, None, Some(text))
        }
        None => (late, Some(shaped), None),
    };
    let body = stream::unfold(
        (done, delivery, shaped, ready),
        |(mut done, delivery, mut shaped, mut ready)| async move {
            if ready.is_none() && shaped.is_some() {
                let Ok(last) = timeout(BLANK_INTERVAL, done.wait_for(Option::is_some)).await else {
                    let blank = Ok::<_, Infallible>(Bytes::from_static(b" "));
                    return Some((blank, (done, delivery, shaped, ready)));
                };
                let last = last.ok().and_then(|done| done.clone());
                ready = shaped.take().map(|shaped| shaped(last).1);
            }
            let Some(text) = ready.take() else {
                delivery.arrived();
                return None;
            };
            Some((Ok(Bytes::from(text)), (done, delivery, shaped, ready)))
        },
    );
    respond_with(status, &id, Body::from_stream(body))
}
