//! Who serves, and how a server and what runs in it end.

use std::fs;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::super::client::{Client, Server, request, rpc};
use super::{checked, of_command, sandboxes};
use crate::scene::{marked, marker};
use crate::support::{ID, Project, wait_until};

/// A command that begins and lasts: it leaves a process in a session of its own, and one that does not
/// listen. `ready` is there once all have begun.
fn lasting(n: &str) -> Value {
    json!({ "cmd": format!(
        "echo begun; setsid sleep {n} & (trap '' TERM INT HUP; sleep {n}) & touch ready; sleep {n}"
    ) })
}

/// Whether the server has a thread of that name.
fn has_thread(server: &Server, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let comm = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm"));
    threads.flatten().any(|thread| comm(thread).is_ok_and(|found| found.trim() == name))
}

/// A server at a socket in which that command runs, asked for by the client.
fn running(base: &Project, sandbox: &str, n: &str) -> (Server, Client) {
    let socket = base.at("agent.sock");
    let server = Server::unix(base, &socket, &["--sandbox", sandbox]);
    let mut client = Client::unix(&socket);
    client.send(request(1, "exec", &lasting(n)));
    client.send(request(2, "write_file", &json!({ "path": "too-late", "content": "" })));
    wait_until("the command", || base.exists("workspace/ready") && marked(n).len() >= 3);
    (server, client)
}

#[test]
fn a_signal_ends_what_runs_and_the_socket() {
    for sandbox in sandboxes() {
        for (signal, ends) in [("TERM", 0), ("INT", 130)] {
            let (base, n) = (Project::new(), marker());
            let (mut server, mut client) = running(&base, sandbox, &n);
            server.signal(signal);
            let answer = checked(client.answer());
            assert_eq!(answer["id"], 1);
            let (code, stdout, stderr) = of_command(&answer["result"]);
            assert_eq!((code, &*stdout), (-1, "begun\n"), "{answer}");
            assert!(stderr.starts_with("deaddrop: ended, since the server stops"), "{stderr}");
            assert_eq!(client.line(), None, "what waited is dropped");
            assert_eq!(server.wait().code(), Some(ends), "{sandbox} {signal}");
            assert_eq!(marked(&n), [""; 0], "{sandbox} {signal}");
            assert!(!base.exists("agent.sock") && !base.exists("workspace/too-late"));
        }
    }
}

#[test]
fn standard_output_holds_answers_and_standard_error_where_it_listens() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let server = Server::unix(&base, &socket, &[]);
    assert!(server.said().contains("agent.sock"), "{}", server.said());
    drop(server);
    let at = ["--quiet", "--unix", socket.to_str().unwrap()];
    let mut server = Server::start(&mut rpc(&base, &at));
    wait_until("the server", || UnixStream::connect(&socket).is_ok());
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.said(), "");
}

#[test]
fn on_standard_streams_a_signal_ends_it_as_well() {
    let (base, n) = (Project::new(), marker());
    let (mut server, mut client) = Server::stdio(&base, &[]);
    client.send(request(1, "exec", &lasting(&n)));
    wait_until("the command", || base.exists("workspace/ready"));
    server.signal("TERM");
    assert_eq!(client.answer()["result"]["exit_code"], -1);
    assert_eq!(client.line(), None);
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(marked(&n), [""; 0]);
}

#[test]
fn the_commands_of_a_killed_server_end_with_it() {
    for sandbox in sandboxes() {
        let (base, n) = (Project::new(), marker());
        let (mut server, mut client) = running(&base, sandbox, &n);
        server.signal("KILL");
        assert_eq!(server.wait().code(), None);
        wait_until("the end of its commands", || marked(&n).is_empty());
        assert_eq!(client.line(), None);
        // The next replaces the socket that it has left.
        assert!(base.exists("agent.sock"));
        let _next = Server::unix(&base, &base.at("agent.sock"), &[]);
        Client::unix(&base.at("agent.sock")).pings(1);
    }
}

#[test]
fn who_leaves_in_the_middle_of_a_command_does_not_end_it() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let server = Server::unix(&base, &socket, &[]);
    let mut client = Client::unix(&socket);
    let cmd = "touch ready; while [ ! -e go ]; do sleep 0.01; done; touch done";
    client.send(request(1, "exec", &json!({ "cmd": cmd })));
    client.send(request(2, "write_file", &json!({ "path": "too-late", "content": "" })));
    wait_until("the command", || base.exists("workspace/ready"));
    assert!(has_thread(&server, "rpc connection"));
    drop(client);
    base.write("workspace/go", "");
    wait_until("its end", || base.exists("workspace/done"));
    wait_until("the end of the connection", || !has_thread(&server, "rpc connection"));
    assert!(!base.exists("workspace/too-late"), "nobody was there to be answered");
}

#[test]
fn one_process_writes_in_a_base_directory() {
    let base = Project::with_session();
    let (mut server, mut client) = Server::stdio(&base, &[]);
    client.pings(1);
    let workspace = base.at("workspace");
    let workspace = workspace.to_str().unwrap();
    let reply = base.run_with(&["apply", "--session", ID, "-"], "[DONE]\n").with_code(4);
    assert!(reply.stderr.contains("another deaddrop"), "{reply:?}");
    for arguments in [&["rpc"][..], &["rpc", "--root", workspace], &["watch"]] {
        base.run(arguments).with_code(4);
    }
    // Looking is free.
    base.run(&["status", ID]).ok();
    client.pings(2);
    client.close();
    assert_eq!(server.wait().code(), Some(0));
    let daemon = base.serve(&["watch"]);
    for arguments in [&["rpc"][..], &["rpc", "--root", workspace], &["rpc", "--unix", "sock"]] {
        let run = base.run(arguments).with_code(4);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{run:?}");
    }
    assert!(!base.exists("sock"));
    // A folder of somebody else's is no business of the daemon.
    let elsewhere = tempfile::tempdir().unwrap();
    let root = ["--root", elsewhere.path().to_str().unwrap()];
    let (_server, mut client) = Server::stdio(&base, &root);
    client.pings(3);
    daemon.stop();
}
