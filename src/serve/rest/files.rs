//! Files of a space. What changes one is a run of one operation; what reads one is judged by the same rules.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde_json::{Value, json};

use super::spaces::Space;
use super::{Call, Fault, Reply, runs};
use crate::clock::Timestamp;
use crate::executor::PreviewExecutor;
use crate::policy::{self, Access, Decision};
use crate::protocol::operations::{
    self, Encoding, ErrorCategory, Event, EventType, Operation as Sent, OperationsMessage,
    SchemaFault,
};
use crate::protocol::{Asks, Operation, RelPath, Step};
use crate::session::RunRequest;
use crate::settings::Policy;
use crate::space::run_events;
use crate::turn;
use crate::workspace::Workspace;

/// A larger file is not given, in bytes.
const LARGEST: u64 = 16 << 20;
/// A listing has at most so many entries, and goes so deep.
const ENTRIES: usize = 100_000;
const DEPTH: usize = 64;

/// What a file is written with.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    content: Option<String>,
    encoding: Option<Encoding>,
}

/// Answers a request about the file, or the folder, with this path as it stands in the address.
pub(super) fn answer(space: &Arc<Space>, path: &str, call: &Call<'_>) -> Result<Reply, Fault> {
    let invalid = |why: &str| Fault::invalid("path", why);
    let path = decoded(path).ok_or_else(|| invalid("it is no percent-encoded UTF-8"))?;
    let recursive = call.query("recursive");
    if call.method == Method::GET && (path.is_empty() || path.ends_with('/') || recursive.is_some())
    {
        let named = call.query("path").filter(|_| path.is_empty()).unwrap_or(&path);
        return list(space, named.trim_end_matches('/'), recursive == Some("true"));
    }
    let sent: Content = if call.method == Method::PUT { call.body()? } else { Content::default() };
    let asked = call.query("encoding").map(|name| Encoding::deserialize(name.into_deserializer()));
    let asked =
        asked.transpose().map_err(|e: ValueError| Fault::invalid("encoding", &e.to_string()))?;
    let encoding = sent.encoding.or(asked).unwrap_or_default();
    let id = None;
    if call.method == Method::GET {
        let step = step(Sent::ReadFile { id, path: path.clone(), encoding: Some(encoding) })?;
        return read(space, &path, encoding, &step);
    }
    if call.method == Method::DELETE {
        return change(space, call, &path, Sent::DeleteFile { id, path: path.clone() });
    }
    let content = sent.content.ok_or_else(|| Fault::invalid("content", "it is missing"))?;
    let (encoding, overwrite) = (Some(encoding), Some(true));
    let create = Sent::CreateFile { id, path: path.clone(), content, encoding, overwrite };
    change(space, call, &path, create)
}

/// A text without its percent-encoding.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16));
            u8::try_from(digits[0]? * 16 + digits[1]?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

/// The step of an operation that is sent alone.
///
/// # Errors
/// It is not in order.
fn step(operation: Sent) -> Result<Step, Fault> {
    let message = OperationsMessage { operations: vec![operation] };
    let text = serde_json::to_string(&message).expect("texts become JSON");
    let received = operations::receive(&text).map_err(|faults| Fault::schema(faults.iter()))?;
    let faults = received.entries.first().and_then(|entry| entry.operation.as_ref().err());
    if let Some(faults) = faults {
        let own = |fault: &SchemaFault| {
            let path = fault.path.replacen("$.operations[0]", "$", 1);
            SchemaFault { path, ..fault.clone() }
        };
        return Err(Fault::schema(faults.iter().map(own).collect::<Vec<_>>().iter()));
    }
    let step = operations::steps(Ok(received), false).into_iter().next();
    let step = step.ok_or_else(|| Fault::invalid("path", "it names no file"))?;
    match &step.asks {
        Asks::Invalid(invalid) => Err(Fault::invalid("path", &invalid.reason)),
        Asks::Operation(_) => Ok(step),
    }
}

fn workspace(space: &Space) -> Result<Workspace, Fault> {
    let config = &space.config;
    Workspace::open(&config.workspace, &config.state(), &config.protected_names)
        .map_err(|e| Fault::failed(&e))
}

/// Refuses what the policy does not simply allow: nobody can be asked about a single file.
fn judge(policy: &Policy, step: &Step, workspace: &Workspace) -> Result<(), Fault> {
    let Asks::Operation(operation) = &step.asks else { return Ok(()) };
    let executor = PreviewExecutor::new(workspace);
    let decision =
        turn::judge(policy, true, operation, &executor).map_err(|e| Fault::failed(&e))?;
    permitted(decision)
}

fn permitted(decision: Decision) -> Result<(), Fault> {
    match decision {
        Decision::Allow => Ok(()),
        Decision::Deny(denial) => Err(Fault::denied(&denial.reason, denial.suggestion.as_deref())),
        Decision::Ask(ask) => {
            let suggestion = "Send it as an operation of a run, which can be approved";
            Err(Fault::denied(&ask.reason, Some(suggestion)))
        }
    }
}

fn read(space: &Space, path: &str, encoding: Encoding, step: &Step) -> Result<Reply, Fault> {
    let workspace = workspace(space)?;
    judge(&space.policy()?, step, &workspace)?;
    let Asks::Operation(Operation::Read { path: place, .. }) = &step.asks else {
        return Err(Fault::no_file(path));
    };
    let contents = workspace.read(place, LARGEST).map_err(|_| Fault::no_file(path))?;
    if contents.size > LARGEST {
        return Err(Fault::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "FILE_TOO_LARGE",
            format!("'{path}' has {} bytes; a command can give parts of it", contents.size),
        ));
    }
    let Some(content) = encoding.encode(&contents.bytes) else {
        let why = format!("'{path}' is not UTF-8; ask for it with encoding=base64");
        return Err(Fault::invalid("encoding", &why));
    };
    Ok(Reply::ok(json!({
        "path": path,
        "content": content,
        "size": contents.bytes.len(),
        "encoding": encoding,
    })))
}

/// Lists a folder; an empty name is the workspace. What the policy blocks is left out.
fn list(space: &Space, path: &str, recursive: bool) -> Result<Reply, Fault> {
    let (workspace, policy) = (workspace(space)?, space.policy()?);
    let folder = if path.is_empty() {
        None
    } else {
        // The same rules as for files.
        step(Sent::ReadFile { id: None, path: path.to_owned(), encoding: None })?;
        Some(RelPath::parse(path).map_err(|e| Fault::invalid("path", &e.to_string()))?)
    };
    permitted(policy::folder(&policy, folder.as_ref()))?;
    let mut files = Vec::new();
    let mut left = vec![(folder, 0)];
    while let Some((folder, depth)) = left.pop() {
        // One that is not there is empty.
        let entries = workspace.list(folder.as_ref()).unwrap_or_default();
        for entry in entries {
            let Some(name) = entry.name.to_str() else { continue };
            let below = folder.as_ref().map_or_else(String::new, |folder| format!("{folder}/"));
            let Ok(place) = RelPath::parse(&format!("{below}{name}")) else { continue };
            let decision = if entry.is_dir {
                policy::folder(&policy, Some(&place))
            } else {
                policy::path(&policy, Access::Read, &place, None)
            };
            if decision != Decision::Allow {
                continue;
            }
            if files.len() == ENTRIES {
                let why = format!("there are more than {ENTRIES} entries; list a folder of it");
                return Err(Fault::invalid("path", &why));
            }
            files.push(json!({
                "name": name,
                "path": place.as_str(),
                "type": if entry.is_dir { "directory" } else { "file" },
                "size": entry.size,
                "modifiedAt": time(entry.written),
            }));
            if recursive && entry.is_dir && depth < DEPTH {
                left.push((Some(place), depth + 1));
            }
        }
    }
    files.sort_by(|a, b| a["path"].as_str().cmp(&b["path"].as_str()));
    let path = if path.is_empty() { "/" } else { path };
    Ok(Reply::ok(json!({ "path": path, "files": files })))
}

/// The time of a file in nanoseconds since 1970, if it has one that can be told.
fn time(written: Option<i128>) -> Timestamp {
    let since = written.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or_default();
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_nanos(since))
}

/// Writes or deletes a file, in the line of what is done in the space.
fn change(
    space: &Arc<Space>,
    call: &Call<'_>,
    path: &str,
    operation: Sent,
) -> Result<Reply, Fault> {
    let step = step(operation)?;
    judge(&space.policy()?, &step, &workspace(space)?)?;
    let request = RunRequest {
        space: space.id.clone(),
        key: None,
        body: call.digest.clone(),
        is_passing: true,
    };
    let (ticket, request) = runs::run_of(space, vec![step], request)?;
    space.order(&mut space.settled(), &ticket, vec![request])?;
    let (path, is_deletion) = (path.to_owned(), call.method == Method::DELETE);
    Ok(Reply::of(ticket, StatusCode::OK, move |run| {
        let told = run_events(&*run?);
        let Some(event) = told.events.first() else { return Err(Fault::no_file(&path)) };
        Ok((StatusCode::OK, changed(&path, is_deletion, event)?))
    }))
}

fn changed(path: &str, is_deletion: bool, event: &Event) -> Result<Value, Fault> {
    if event.success == Some(true) {
        return Ok(if is_deletion {
            json!({ "path": path, "deleted": true })
        } else {
            json!({ "path": path, "size": event.bytes_written })
        });
    }
    let why = [&event.error, &event.message, &event.reason].into_iter().flatten().next();
    let why = why.cloned().unwrap_or_else(|| "it failed".to_owned());
    match (event.event_type, event.category) {
        (EventType::PolicyDenied | EventType::ApprovalRequired, _) => {
            Err(Fault::denied(&why, event.suggestion.as_deref()))
        }
        (_, Some(ErrorCategory::Validation)) => Err(Fault::invalid("path", &why)),
        _ => {
            let code = if is_deletion { "DELETE_ERROR" } else { "WRITE_ERROR" };
            Err(Fault::new(StatusCode::BAD_REQUEST, code, why))
        }
    }
}
