//! Calls to servers that behave, and to servers that do not. Every wait has a time limit.

mod programs;
mod sockets;

use super::*;
use serde_json::json;

use crate::protocol::jsonrpc::{FileContent, Key, Written, request};

/// The patience for an answer that should arrive.
const LONG: Duration = Duration::from_mins(1);
/// The patience for an answer that should not arrive; sending takes much less.
const SHORT: Duration = Duration::from_secs(1);

type Said<T> = Result<Result<T, RpcError>, Gone>;

fn read_file(client: &mut Client, path: &str) -> Said<String> {
    let said = client.call("read_file", &json!({ "path": path }), LONG)?;
    Ok(said.map(|FileContent { content }| content))
}

fn write_file(client: &mut Client, content: &str, patience: Duration) -> Said<bool> {
    let asked = json!({ "path": "a", "content": content });
    let said = client.call("write_file", &asked, patience)?;
    Ok(said.map(|Written { success }| success))
}

/// The answer to the ping with this id.
fn pong(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"pong":true}}}}"#)
}

#[test]
fn what_makes_no_json_is_told_and_what_has_lines_stands_on_one() {
    let wrong = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(line(1, "x", &wrong).unwrap_err().contains("'x'"));
    let raw = serde_json::value::RawValue::from_string("{\n\"a\":\r\n\"\\n\"}".to_owned());
    let line = line(1, "x", &raw.unwrap()).unwrap();
    assert_eq!(line.matches('\n').count(), 1);
    assert!(line.contains("\"\\n\""), "{line}");
}

#[test]
fn what_is_quoted_is_short_and_seen() {
    assert_eq!(quoted(b"a\x1b[1m\r"), "'a␛[1m'");
    let long = "ü".repeat(1000);
    assert_eq!(quoted(long.as_bytes()), format!("'{}…' (2000 bytes)", "ü".repeat(120)));
    assert_eq!(quoted(&[0xff; 3]), format!("'{}'", "\u{fffd}".repeat(3)));
}

#[test]
fn what_is_wrong_is_told_in_brief() {
    assert_eq!(brief("a\n\x1b[31m"), "a␊␛[31m");
    assert_eq!(brief(&"x".repeat(501)), format!("{}…", "x".repeat(500)));
}

#[test]
fn values_are_counted() {
    let crowded = |line: &str| is_crowded(line.as_bytes(), 3);
    assert!(!crowded(r#"{"a":[1,"2"]}"#));
    assert!(crowded(r#"{"a":[1,2,3]}"#));
    assert!(crowded(r#"{"a":"\\","b":[[],1]}"#));
}
