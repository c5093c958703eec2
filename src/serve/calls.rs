//! Requests of the page. Each runs a command of the command line with `--json`.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Deserializer, Map, Value};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::guard::{answer, error};
use super::{ServedProject, Site};

/// The argument that makes a process read its other arguments from standard input: a JSON list on one line.
pub(crate) const ON_STDIN: &str = "--arguments-on-stdin";
/// The longest request, in bytes, and how long it may take to arrive.
const LONGEST: usize = 16 << 20;
const ARRIVES: Duration = Duration::from_secs(15);
/// How many bodies are received at once.
static BODIES: Semaphore = Semaphore::const_new(16);

/// How a field of a request becomes an argument.
#[derive(Clone, Copy)]
enum Field {
    /// A positional argument.
    Operand,
    /// `--flag=value`, for each value of a list.
    Flag(&'static str),
    /// The flag, if it is true.
    Switch(&'static str),
    /// Standard input.
    Input,
}
use Field::{Flag, Input, Operand, Switch};

/// A request of the page: its name, the words of its command, whether that only reads, and its fields.
type PageCall = (&'static str, &'static [&'static str], bool, &'static [(&'static str, Field)]);

const SESSION: (&str, Field) = ("session", Flag("--session"));
const OPERATION: (&str, Field) = ("operation", Operand);
const QUESTION: (&str, Field) = ("question", Flag("--question"));
const LEAVE_OUT: (&str, Field) = ("leaveOut", Flag("--leave-out"));

/// docs/scripting.md describes the answers.
const CALLS: &[PageCall] = &[
    ("status", &["status"], true, &[SESSION]),
    ("log", &["log"], true, &[SESSION]),
    ("diff", &["diff"], true, &[SESSION, ("turns", Operand)]),
    ("config", &["config", "show"], true, &[]),
    ("doctor", &["doctor"], true, &[]),
    (
        "show",
        &["show"],
        true,
        &[SESSION, ("sequence", Operand), ("part", Flag("--part")), ("brief", Switch("--brief"))],
    ),
    ("check", &["check", "-"], true, &[SESSION, ("text", Input), LEAVE_OUT]),
    (
        "apply",
        &["apply"],
        false,
        &[
            SESSION,
            ("text", Input),
            ("state", Flag("--as-checked")),
            LEAVE_OUT,
            ("again", Switch("--again")),
            ("force", Switch("--force")),
        ],
    ),
    (
        "approve",
        &["approve"],
        false,
        &[SESSION, OPERATION, QUESTION, ("always", Switch("--always"))],
    ),
    (
        "deny",
        &["deny"],
        false,
        &[SESSION, OPERATION, QUESTION, ("reason", Flag("--reason")), ("rest", Switch("--rest"))],
    ),
    ("say", &["say"], false, &[SESSION, ("text", Operand)]),
    (
        "undo",
        &["undo"],
        false,
        &[
            SESSION,
            ("last", Flag("--last")),
            ("force", Switch("--force")),
            ("reason", Flag("--reason")),
        ],
    ),
    ("redo", &["redo"], false, &[SESSION, ("force", Switch("--force"))]),
    ("reopen", &["resume", "--no-watch"], false, &[SESSION, ("text", Flag("--reopen"))]),
    ("close", &["close"], false, &[SESSION, ("delete", Switch("--delete"))]),
    ("preview", &["new", "--preview", "-"], true, NEW),
    ("new", &["new", "--no-watch", "-"], false, NEW),
];

/// Fields of a new session.
const NEW: &[(&str, Field)] = &[
    ("task", Input),
    ("dialect", Flag("--dialect")),
    ("policy", Flag("--policy")),
    ("include", Flag("--include")),
    ("exclude", Flag("--exclude")),
    ("noContents", Switch("--no-contents")),
];

/// Stops the running turn. Steps that were not begun are not executed, and the model is informed.
pub(super) async fn stop(State(site): State<Arc<Site>>) -> Response {
    (site.project.stop_turn)();
    answer(StatusCode::OK, &Value::Null)
}

/// Answers a request of the page.
pub(super) async fn call(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    let Some((_, words, reads, fields)) = CALLS.iter().find(|(known, ..)| *known == name) else {
        return error(StatusCode::NOT_FOUND, "not-found", "there is no such request");
    };
    let body = match received(body, &BODIES).await {
        Ok(body) => body,
        Err((status, code, message)) => return error(status, code, message),
    };
    let (arguments, input) = match read(&body, fields) {
        Ok(read) => read,
        Err(why) => return error(StatusCode::BAD_REQUEST, "usage", &why),
    };
    let room = if *reads { &site.reading } else { &site.writing };
    let Ok(permit) = Arc::clone(room).acquire_owned().await else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "stopping", "deaddrop is stopping");
    };
    let shared = Arc::clone(&site);
    let run = move || {
        // Limits running commands, even if their client is gone.
        let _permit = permit;
        run(&shared.project, words, arguments, &input)
    };
    match spawn_blocking(run).await {
        Ok(Ok(output)) => answered(&output),
        Ok(Err(e)) => error(StatusCode::INTERNAL_SERVER_ERROR, "io", &e.to_string()),
        Err(e) => error(StatusCode::INTERNAL_SERVER_ERROR, "failed", &e.to_string()),
    }
}

/// Receives the whole body of a request, or returns why it is refused.
pub(super) async fn received(
    body: Body,
    room: &Semaphore,
) -> Result<Bytes, (StatusCode, &'static str, &'static str)> {
    let message = "the request is longer than 16 MiB, or its connection was lost";
    let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "too-large", message);
    if body.size_hint().lower() > LONGEST as u64 {
        return Err(too_large);
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let arrives = async {
        let _room = room.acquire().await;
        to_bytes(body, LONGEST).await
    };
    match timeout(ARRIVES, arrives).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(too_large),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "too-slow", "the request took too long")),
    }
}

/// The arguments and the standard input of a request's command.
fn read(body: &[u8], fields: &[(&str, Field)]) -> Result<(Vec<String>, String), String> {
    let body = if body.is_empty() { b"{}" } else { body };
    let body: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|e| format!("the request is not a JSON object: {e}"))?;
    let (mut flags, mut operands, mut input) = (Vec::new(), Vec::new(), String::new());
    for (name, value) in body {
        let Some((_, field)) = fields.iter().find(|(known, _)| *known == name) else {
            return Err(format!("there is no field '{name}'"));
        };
        for value in match value {
            Value::Null => Vec::new(),
            Value::Array(values) if matches!(field, Flag(_)) => values,
            value => vec![value],
        } {
            match (field, value) {
                (Switch(flag), Value::Bool(on)) => flags.extend(on.then(|| (*flag).to_owned())),
                (Input, Value::String(text)) => input = text,
                (Flag(flag), Value::String(text)) => flags.push(format!("{flag}={text}")),
                (Flag(flag), Value::Number(n)) => flags.push(format!("{flag}={n}")),
                (Operand, Value::String(text)) => operands.push(text),
                (Operand, Value::Number(n)) => operands.push(n.to_string()),
                _ => return Err(format!("the field '{name}' has a value of the wrong type")),
            }
        }
    }
    if !operands.is_empty() {
        flags.push("--".to_owned());
    }
    flags.append(&mut operands);
    if flags.iter().any(|argument| argument.contains('\0')) {
        return Err("only a text may contain a NUL".to_owned());
    }
    Ok((flags, input))
}

/// Runs a command to its end. Its arguments are passed on standard input, because all users can see the arguments of
/// programs, and their length is limited.
fn run(
    project: &ServedProject,
    words: &[&str],
    arguments: Vec<String>,
    input: &str,
) -> io::Result<Output> {
    let (program, before) = &project.command;
    let mut command = Command::new(program);
    let words = words.iter().map(|word| (*word).to_owned());
    let all: Vec<String> = words.chain(["--json".to_owned()]).chain(arguments).collect();
    let input = format!("{}\n{input}", Value::from(all));
    command.arg(ON_STDIN).args(before);
    command.envs(project.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C at the terminal must reach only this process, which still answers waiting commands.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })
}

/// The response to a command's output: a list of the printed objects, or its error.
fn answered(output: &Output) -> Response {
    let results = Deserializer::from_slice(&output.stdout).into_iter();
    let results: Vec<Value> = results.map_while(Result::ok).collect();
    if output.status.success() || !results.is_empty() {
        return answer(StatusCode::OK, &Value::Array(results));
    }
    let told = String::from_utf8_lossy(&output.stderr);
    // Warnings may precede the error.
    let failed = told.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    match failed.filter(|value| value["error"].is_object()) {
        Some(failed) => answer(StatusCode::CONFLICT, &failed),
        None => {
            let code = if output.status.code() == Some(2) { "usage" } else { "failed" };
            error(StatusCode::CONFLICT, code, told.trim())
        }
    }
}
