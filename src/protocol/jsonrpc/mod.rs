//! JSON-RPC 2.0, one message per line, between a host and an agent in a guest (bouvet-jsonrpc). Reads and writes
//! requests and responses. Pure.
//!
//! docs/rpc.md contains the rules for cases that the specification does not cover.

mod guest;
mod method;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::bounded;
pub use guest::{
    About, AboutParams, Done, FindParams, Key, PathFactsParams, PathFactsResult, ReadParams,
    ReadResult, ResultParams, State, StepParams, VERSION, WalkResult, without_content,
};
pub use method::{
    Entries, ExecResult, FileContent, FileEntry, Method, Pong, TRUNCATED, Written, interpreter,
};

/// The longest line that is received, in bytes, without its line end.
pub const LINE_LIMIT: usize = 32 << 20;
/// The largest file that is read, in bytes.
pub const READ_LIMIT: u64 = 10 << 20;
/// The most bytes of each stream of a command that are returned.
pub const STREAM_LIMIT: usize = 1_000_000;
/// The longest error message, in bytes. A message can repeat a part of the request.
pub const MESSAGE_LIMIT: usize = 64 << 10;

/// An error response (bouvet-jsonrpc, "Error Codes").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the constants below.
    pub code: i64,
    /// Describes the error.
    pub message: String,
}

impl RpcError {
    /// The line is not JSON.
    pub const PARSE: i64 = -32_700;
    /// The line is JSON, but not a request.
    pub const REQUEST: i64 = -32_600;
    /// There is no such method.
    pub const METHOD: i64 = -32_601;
    /// The parameters are invalid.
    pub const PARAMS: i64 = -32_602;
    /// The request could not be carried out.
    pub const INTERNAL: i64 = -32_603;
    /// For a step: it is unknown at the moment whether the step was begun. Ask again later.
    pub const LATER: i64 = -32_000;
    /// For a step: the guest's record of steps is not the one that the host knows.
    pub const OTHER: i64 = -32_001;

    /// Creates an error. A message longer than [`MESSAGE_LIMIT`] is shortened and ends with `…`.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: shortened(message.into()) }
    }

    /// Creates the error for invalid parameters.
    pub fn params(told: impl std::fmt::Display) -> Self {
        Self::new(Self::PARAMS, format!("invalid params: {told}"))
    }

    /// Creates the error for a request that could not be carried out.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }
}

/// A request whose method and parameters are not interpreted yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The ID that the response repeats. None for a notification, which gets no response.
    pub id: Option<u64>,
    /// The name of the method.
    pub method: String,
    /// An object or a list. An empty object if none were sent, and an error if they cannot be represented.
    pub params: Result<Value, RpcError>,
}

/// The response to a line that is not a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidRequest {
    /// The ID in the line, if there is one.
    pub id: Option<u64>,
    /// Why the line is not a request.
    pub fault: RpcError,
}

/// Shortens a text to [`MESSAGE_LIMIT`] bytes, and appends `…` if it was longer.
#[must_use]
pub fn shortened(mut text: String) -> String {
    if text.len() > MESSAGE_LIMIT {
        text.truncate(text.floor_char_boundary(MESSAGE_LIMIT));
        text.push('…');
        // Otherwise the removed part would stay allocated until the response is read.
        text.shrink_to_fit();
    }
    text
}

/// Whether a line contains only white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Returns the port of a line such as `CONNECT 52`. A host sends this line first if it reaches a microVM's agent
/// through a socket. [`connected`] returns the answer.
pub fn connects_to(line: &[u8]) -> Option<u32> {
    let line = std::str::from_utf8(line).ok()?.trim_ascii_end();
    let port = line.strip_prefix("CONNECT ")?;
    // A port number has no sign.
    port.bytes().all(|b| b.is_ascii_digit()).then(|| port.parse().ok())?
}

/// Returns the answer to a line that [`connects_to`] a port, with its line end.
pub fn connected(port: u32) -> String {
    format!("OK {port}\n")
}

/// Reads a line that is not blank.
///
/// # Errors
/// The line is not JSON, or not a request. Contains the response to send.
pub fn read(line: &[u8]) -> Result<Request, InvalidRequest> {
    let unparsable = |problem: String| InvalidRequest {
        id: None,
        fault: RpcError::new(RpcError::PARSE, format!("parse error: {problem}")),
    };
    let invalid = |id: Option<u64>, problem: &str| InvalidRequest {
        id,
        fault: RpcError::new(RpcError::REQUEST, format!("invalid request: {problem}")),
    };
    let text = std::str::from_utf8(line).map_err(|e| unparsable(format!("not UTF-8 ({e})")))?;
    let (mut fields, problem) = match bounded::from_str(text) {
        Ok(Value::Object(fields)) => (fields, None),
        Ok(Value::Array(_)) => {
            let problem = "a list of requests is not taken; send each on its own line";
            return Err(invalid(None, problem));
        }
        Ok(_) => return Err(invalid(None, "it must be an object")),
        Err(error) => {
            // Skipping values takes no memory, however deep or long they are.
            serde_json::from_str::<IgnoredAny>(text).map_err(|e| unparsable(e.to_string()))?;
            let problem = not_representable(&error);
            let known = serde_json::Deserializer::from_str(text).deserialize_map(KnownFields);
            let (fields, of_params) = known.map_err(|_| invalid(None, &problem))?;
            (fields, Some(of_params.ok_or(problem)))
        }
    };
    let sent = fields.remove("id");
    let id = sent.as_ref().and_then(Value::as_u64);
    if sent.is_some() && id.is_none() {
        let problem = "id must be a whole number from 0 to 18446744073709551615";
        return Err(invalid(None, problem));
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "jsonrpc must be \"2.0\""));
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return Err(invalid(id, "method must be a string"));
    };
    let params = match (problem, fields.remove("params")) {
        (Some(Ok(of_params)), _) => Err(RpcError::params(of_params)),
        (Some(Err(of_others)), _) => return Err(invalid(id, &of_others)),
        (None, None | Some(Value::Null)) => Ok(json!({})),
        (None, Some(params)) => Ok(params),
    };
    Ok(Request { id, method, params })
}

/// Reads the fields of a request in which some values cannot be represented, so that the client learns which request
/// failed. Fields that cannot be represented become null. The second value is the problem with the parameters, if any.
struct KnownFields;

impl<'de> Visitor<'de> for KnownFields {
    type Value = (Map<String, Value>, Option<String>);

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let (mut fields, mut problem) = (Map::new(), None);
        // If a key occurs several times, the last one counts.
        while let Some((key, value)) = object.next_entry::<&RawValue, &RawValue>()? {
            // A key that is not text cannot be one of these.
            let key: String = serde_json::from_str(key.get()).unwrap_or_default();
            if !["id", "jsonrpc", "method", "params"].contains(&&*key) {
                continue;
            }
            // With the brackets, the value has the same depth as in the line.
            let read = bounded::from_str(&format!("[{}]", value.get()));
            if key == "params" {
                problem = read.as_ref().err().map(not_representable);
            }
            fields.insert(key, read.map_or(Value::Null, |mut list| list[0].take()));
        }
        Ok((fields, problem))
    }
}

/// Why a JSON value cannot be represented.
fn not_representable(error: &serde_json::Error) -> String {
    let problem = error.to_string();
    // The text is valid JSON, so this is the only possible problem with an escape.
    if problem.contains("hex escape") {
        return format!("half of a surrogate pair, which is not text ({problem})");
    }
    problem
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "jsonrpc", rename = "2.0")]
struct Response<T, E> {
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<E>,
}

/// A value as one line of JSON, with its line end.
fn line_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers become JSON") + "\n"
}

/// Returns the line of a response, with its line end.
pub fn answer<T: Serialize>(id: Option<u64>, result: Result<&T, &RpcError>) -> String {
    line_of(&Response { id, result: result.ok(), error: result.err() })
}

/// Returns the line of a request, with its line end. Without an ID, the request is a notification.
pub fn request<T: Serialize>(id: Option<u64>, method: &str, params: &T) -> String {
    #[derive(Serialize)]
    #[serde(tag = "jsonrpc", rename = "2.0")]
    struct Sent<'a, T> {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        method: &'a str,
        params: &'a T,
    }
    line_of(&Sent { id, method, params })
}

/// Reads the response to the request `id`.
///
/// # Errors
/// Why the line is not a response to that request. The inner error is the one that the server returned.
pub fn response<T: DeserializeOwned>(line: &[u8], id: u64) -> Result<Result<T, RpcError>, String> {
    let response: Response<&RawValue, RpcError> =
        serde_json::from_slice(line).map_err(|e| format!("it is no answer: {e}"))?;
    match (response.id, response.error, response.result) {
        // A response to a request that could not be read has no ID.
        (None, Some(error), _) => Ok(Err(error)),
        (None, ..) => Err("it has no ID".to_owned()),
        (Some(other), ..) if other != id => Err(format!("it answers {other} and not {id}")),
        (_, Some(error), _) => Ok(Err(error)),
        (_, None, Some(result)) => serde_json::from_str(result.get())
            .map(Ok)
            .map_err(|e| format!("its result is not as it should be: {e}")),
        (_, None, None) => Err("it has neither a result nor an error".to_owned()),
    }
}
