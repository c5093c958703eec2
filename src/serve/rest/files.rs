//! Files of a space. A change is a run with one operation. Reading is subject to the same policy.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde_json::{Value, json};

use super::spaces::RestSpace;
use super::{ApiCall, ApiError, ApiReply, runs};
use crate::clock::Timestamp;
use crate::executor::PreviewExecutor;
use crate::policy::{self, Access, Verdict};
use crate::protocol::operations::{self, Encoding, ErrorCategory, Event, EventType, SchemaFault};
use crate::protocol::{Operation, RelPath, Step, StepContent};
use crate::session::RunRequest;
use crate::settings::Policy;
use crate::space::run_events;
use crate::turn;
use crate::workspace::Workspace;

/// The largest file that can be read, in bytes.
const LARGEST: u64 = 16 << 20;
/// The most entries of a listing, and its greatest depth.
const ENTRIES: usize = 100_000;
const DEPTH: usize = 64;

/// The body of a request that writes a file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileBody {
    content: Option<String>,
    encoding: Option<Encoding>,
}

/// Answers a request about a file or a folder. `path` is still percent-encoded.
pub(super) fn answer(
    space: &Arc<RestSpace>,
    path: &str,
    call: &ApiCall<'_>,
) -> Result<ApiReply, ApiError> {
    let invalid = |why: &str| ApiError::invalid("path", why);
    let path = decoded(path).ok_or_else(|| invalid("it is not percent-encoded UTF-8"))?;
    let recursive = call.query("recursive");
    if call.method == Method::GET && (path.is_empty() || path.ends_with('/') || recursive.is_some())
    {
        let named = call.query("path").filter(|_| path.is_empty()).unwrap_or(&path);
        return list(space, named.trim_end_matches('/'), recursive == Some("true"));
    }
    let sent: FileBody =
        if call.method == Method::PUT { call.body()? } else { FileBody::default() };
    let asked = call.query("encoding").map(|name| Encoding::deserialize(name.into_deserializer()));
    let asked =
        asked.transpose().map_err(|e: ValueError| ApiError::invalid("encoding", &e.to_string()))?;
    let encoding = sent.encoding.or(asked).unwrap_or_default();
    if call.method == Method::GET {
        let step = step(&json!({ "type": "readFile", "path": path, "encoding": encoding }))?;
        return read(space, &path, encoding, &step);
    }
    if call.method == Method::DELETE {
        return change(space, call, &path, &json!({ "type": "deleteFile", "path": path }));
    }
    let content = sent.content.ok_or_else(|| ApiError::invalid("content", "it is missing"))?;
    let mut create = json!({ "type": "createFile", "path": path, "encoding": encoding });
    (create["content"], create["overwrite"]) = (content.into(), true.into());
    change(space, call, &path, &create)
}

/// Decodes percent-encoding; None if it is invalid.
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

/// The step of a single operation.
///
/// # Errors
/// The operation is invalid.
fn step(operation: &Value) -> Result<Step, ApiError> {
    let message = json!({ "protocolVersion": "1.0", "operations": [operation] });
    let received = operations::receive(&message.to_string())
        .map_err(|faults| ApiError::schema(faults.iter()))?;
    let faults = received.entries.first().and_then(|entry| entry.operation.as_ref().err());
    if let Some(faults) = faults {
        let own = |fault: &SchemaFault| {
            let path = fault.path.replacen("$.operations[0]", "$", 1);
            SchemaFault { path, ..fault.clone() }
        };
        return Err(ApiError::schema(faults.iter().map(own).collect::<Vec<_>>().iter()));
    }
    let step = operations::steps(Ok(received), false).into_iter().next();
    let step = step.ok_or_else(|| ApiError::invalid("path", "it names no file"))?;
    match &step.asks {
        StepContent::Invalid(invalid) => Err(ApiError::invalid("path", &invalid.reason)),
        StepContent::Operation(_) => Ok(step),
    }
}

fn workspace(space: &RestSpace) -> Result<Workspace, ApiError> {
    let config = &space.config;
    Workspace::open(&config.workspace, &config.state(), &config.protected_names)
        .map_err(|e| ApiError::failed(&e))
}

/// Refuses operations that the policy does not allow outright: nobody can be asked about a single file.
fn judge(policy: &Policy, step: &Step, workspace: &Workspace) -> Result<(), ApiError> {
    let StepContent::Operation(operation) = &step.asks else { return Ok(()) };
    let executor = PreviewExecutor::new(workspace);
    let decision =
        turn::judge(policy, true, operation, &executor).map_err(|e| ApiError::failed(&e))?;
    permitted(decision)
}

fn permitted(decision: Verdict) -> Result<(), ApiError> {
    match decision {
        Verdict::Allow => Ok(()),
        Verdict::Deny(denial) => {
            Err(ApiError::denied(&denial.reason, denial.suggestion.as_deref()))
        }
        Verdict::Ask(ask) => {
            let suggestion = "Send it as an operation of a run, which can be approved";
            Err(ApiError::denied(&ask.reason, Some(suggestion)))
        }
    }
}

fn read(
    space: &RestSpace,
    path: &str,
    encoding: Encoding,
    step: &Step,
) -> Result<ApiReply, ApiError> {
    let workspace = workspace(space)?;
    judge(&space.policy()?, step, &workspace)?;
    let StepContent::Operation(Operation::Read { path: place, .. }) = &step.asks else {
        return Err(ApiError::no_file(path));
    };
    let contents = workspace.read(place, LARGEST).map_err(|_| ApiError::no_file(path))?;
    if contents.size > LARGEST {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "FILE_TOO_LARGE",
            format!("'{path}' has {} bytes; a command can read parts of it", contents.size),
        ));
    }
    let Some(content) = encoding.encode(&contents.bytes) else {
        let why = format!("'{path}' is not UTF-8; ask for it with encoding=base64");
        return Err(ApiError::invalid("encoding", &why));
    };
    Ok(ApiReply::ok(json!({
        "path": path,
        "content": content,
        "size": contents.bytes.len(),
        "encoding": encoding,
    })))
}

/// Lists a folder. An empty path is the workspace. Entries that the policy blocks are left out.
fn list(space: &RestSpace, path: &str, recursive: bool) -> Result<ApiReply, ApiError> {
    let (workspace, policy) = (workspace(space)?, space.policy()?);
    let folder = if path.is_empty() {
        None
    } else {
        // The same rules as for files.
        step(&json!({ "type": "readFile", "path": path }))?;
        Some(RelPath::parse(path).map_err(|e| ApiError::invalid("path", &e.to_string()))?)
    };
    permitted(policy::folder(&policy, folder.as_ref()))?;
    let mut files = Vec::new();
    let mut left = vec![(folder, 0)];
    while let Some((folder, depth)) = left.pop() {
        // A missing folder counts as empty.
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
            if decision != Verdict::Allow {
                continue;
            }
            if files.len() == ENTRIES {
                let why = format!("there are more than {ENTRIES} entries; list a folder within it");
                return Err(ApiError::invalid("path", &why));
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
    Ok(ApiReply::ok(json!({ "path": path, "files": files })))
}

/// The timestamp of a file from nanoseconds since 1970. A missing or earlier time counts as 1970.
fn time(written: Option<i64>) -> Timestamp {
    let since = written.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or_default();
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_nanos(since))
}

/// Writes or deletes a file, through the space's work queue.
fn change(
    space: &Arc<RestSpace>,
    call: &ApiCall<'_>,
    path: &str,
    operation: &Value,
) -> Result<ApiReply, ApiError> {
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
    Ok(ApiReply::of(ticket, StatusCode::OK, move |run| {
        let told = run_events(&*run?);
        let Some(event) = told.events.first() else { return Err(ApiError::no_file(&path)) };
        Ok((StatusCode::OK, changed(&path, is_deletion, event)?))
    }))
}

fn changed(path: &str, is_deletion: bool, event: &Event) -> Result<Value, ApiError> {
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
            Err(ApiError::denied(&why, event.suggestion.as_deref()))
        }
        (_, Some(ErrorCategory::Validation)) => Err(ApiError::invalid("path", &why)),
        _ => {
            let code = if is_deletion { "DELETE_ERROR" } else { "WRITE_ERROR" };
            Err(ApiError::new(StatusCode::BAD_REQUEST, code, why))
        }
    }
}
