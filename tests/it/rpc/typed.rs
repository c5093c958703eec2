//! The client of this program with the server of this program: each of its methods, over standard
//! streams and over a Unix socket.

use std::time::Duration;

use deaddrop::client::Client;
use deaddrop::protocol::jsonrpc::{ExecResult, FileEntry, Pong, RpcError};

use super::client::Server;
use crate::support::{Base, PATIENCE, program};
use deaddrop::program::Programs;

/// Has a client call each method, with what it gives and with what it cannot do.
fn call_all(client: &mut Client) {
    assert_eq!(client.ping(PATIENCE).unwrap(), Ok(Pong { pong: true }));
    assert_eq!(client.write_file("sub/ü.txt", "é\r\n", PATIENCE).unwrap(), Ok(true));
    assert_eq!(client.read_file("sub/ü.txt", PATIENCE).unwrap(), Ok("é\r\n".to_owned()));
    let entry = |name: &str, is_dir, size| FileEntry { name: name.to_owned(), is_dir, size };
    assert_eq!(client.list_dir("sub", PATIENCE).unwrap(), Ok(vec![entry("ü.txt", false, 4)]));
    assert_eq!(client.list_dir("", PATIENCE).unwrap(), Ok(vec![entry("sub", true, 0)]));
    let ran = |exit_code, stdout: &str, stderr: &str| {
        Ok(ExecResult { exit_code, stdout: stdout.to_owned(), stderr: stderr.to_owned() })
    };
    let asked = "cat sub/*; echo \"it's\" >&2; exit 3";
    assert_eq!(client.exec(asked, PATIENCE).unwrap(), ran(3, "é\r\n", "it's\n"));
    let code = "echo $((6 * 7)); exit 4";
    assert_eq!(client.exec_code("SH", code, PATIENCE).unwrap(), ran(4, "42\n", ""));
    let unknown = client.exec_code("cobol", "", PATIENCE).unwrap();
    assert_eq!(unknown, ran(-1, "", "unsupported language: cobol"));

    let fails = |said: Result<(), RpcError>| {
        let fault = said.unwrap_err();
        assert_eq!(fault.code, RpcError::INTERNAL, "{fault}");
        assert!(fault.message.contains("'../x'"), "{fault}");
    };
    fails(client.read_file("../x", PATIENCE).unwrap().map(drop));
    fails(client.write_file("../x", "", PATIENCE).unwrap().map(drop));
    fails(client.list_dir("../x", PATIENCE).unwrap().map(drop));
    let late = client.exec("sleep 60", Duration::from_millis(100)).unwrap_err();
    assert!(late.sent && late.reason.contains("did not answer 'exec'"), "{late}");
}

#[test]
fn every_method_of_the_client_is_answered_over_standard_streams() {
    let base = Base::new();
    // Where no sandbox is to be had, the tests' own command lines do without one.
    let has = crate::support::has_sandbox("auto");
    let program = program().to_str().unwrap();
    let at = base.path().to_str().unwrap();
    let sandbox = if has { "auto" } else { "off" };
    let line = [program, "rpc", "-C", at, "--sandbox", sandbox, "--command-timeout", "3"];
    let mut client = Client::spawn(&line.map(str::to_owned), &Programs::default()).unwrap();
    call_all(&mut client);
    assert_eq!(base.read("workspace/sub/ü.txt"), "é\r\n");
    // An answer that came too late is of nobody's next request.
    assert_eq!(client.exec("echo next", PATIENCE).unwrap().unwrap().stdout, "next\n");
}

#[test]
fn every_method_of_the_client_is_answered_over_a_socket() {
    let base = Base::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &["--command-timeout", "3"]);
    for port in [None, Some(52)] {
        let mut client = Client::connect(&socket, port, PATIENCE).unwrap();
        call_all(&mut client);
        assert_eq!(client.exec("echo next", PATIENCE).unwrap().unwrap().stdout, "next\n");
    }
}
