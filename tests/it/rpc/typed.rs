//! The client of this program with the server of this program: each of its methods, over standard
//! streams and over a Unix socket.

use std::time::Duration;

use deaddrop::client::Client;
use deaddrop::program::Programs;
use deaddrop::protocol::jsonrpc::{Entries, ExecResult, FileEntry, Pong, RpcError};
use serde_json::{Value, json};

use super::client::Server;
use crate::support::{PATIENCE, Project, program};

/// Has a client ask for that, and gives one field of the result.
fn ask(client: &mut Client, method: &str, params: &Value, field: &str) -> Result<Value, RpcError> {
    let said = client.call::<Value>(method, params, PATIENCE).unwrap();
    said.map(|result| result[field].clone())
}

fn exec(client: &mut Client, cmd: &str) -> ExecResult {
    client.call("exec", &json!({ "cmd": cmd }), PATIENCE).unwrap().unwrap()
}

/// Has a client call each method, with what it gives and with what it cannot do.
fn call_all(client: &mut Client) {
    assert_eq!(client.ping(PATIENCE).unwrap(), Ok(Pong { pong: true }));
    let path = json!({ "path": "sub/ü.txt", "content": "é\r\n" });
    assert_eq!(ask(client, "write_file", &path, "success"), Ok(json!(true)));
    assert_eq!(ask(client, "read_file", &path, "content"), Ok(json!("é\r\n")));
    let entry = |name: &str, is_dir, size| FileEntry { name: name.to_owned(), is_dir, size };
    let mut list = |path: &str| {
        let listed: Result<Entries, RpcError> =
            client.call("list_dir", &json!({ "path": path }), PATIENCE).unwrap();
        listed.map(|Entries { entries }| entries)
    };
    assert_eq!(list("sub"), Ok(vec![entry("ü.txt", false, 4)]));
    assert_eq!(list(""), Ok(vec![entry("sub", true, 0)]));
    let ran = |exit_code, stdout: &str, stderr: &str| ExecResult {
        exit_code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    let asked = "cat sub/*; echo \"it's\" >&2; exit 3";
    assert_eq!(exec(client, asked), ran(3, "é\r\n", "it's\n"));
    let mut exec_code = |lang: &str, code: &str| -> ExecResult {
        let params = json!({ "lang": lang, "code": code });
        client.call("exec_code", &params, PATIENCE).unwrap().unwrap()
    };
    assert_eq!(exec_code("SH", "echo $((6 * 7)); exit 4"), ran(4, "42\n", ""));
    assert_eq!(exec_code("cobol", ""), ran(-1, "", "unsupported language: cobol"));

    let outside = json!({ "path": "../x", "content": "" });
    for method in ["read_file", "write_file", "list_dir"] {
        let fault = ask(client, method, &outside, "").unwrap_err();
        assert_eq!(fault.code, RpcError::INTERNAL, "{fault}");
        assert!(fault.message.contains("'../x'"), "{fault}");
    }
    let cmd = json!({ "cmd": "sleep 60" });
    let late = client.call::<Value>("exec", &cmd, Duration::from_millis(100)).unwrap_err();
    assert!(late.reason.contains("did not answer 'exec'"), "{late}");
}

#[test]
fn every_method_of_the_client_is_answered_over_standard_streams() {
    let base = Project::new();
    // Where no sandbox is to be had, the tests' own command lines do without one.
    let has = crate::support::has_sandbox("auto");
    let program = program().to_str().unwrap();
    let at = base.path().to_str().unwrap();
    let sandbox = if has { "auto" } else { "off" };
    let line = [program, "rpc", "-C", at, "--sandbox", sandbox, "--command-timeout", "3"];
    let mut client = Client::spawn(&line.map(str::to_owned), &Programs::default()).unwrap();
    call_all(&mut client);
    assert_eq!(base.read("workspace/sub/ü.txt"), "é\r\n");
}

#[test]
fn every_method_of_the_client_is_answered_over_a_socket() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &["--command-timeout", "3"]);
    for port in [None, Some(52)] {
        let mut client = Client::connect(&socket, port, PATIENCE).unwrap();
        call_all(&mut client);
    }
}
