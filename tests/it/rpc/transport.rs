//! How lines come and go: pipes, Unix sockets, many clients and odd ones, and the end.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::client::{Client, Server, ping, pong, rpc};
use crate::support::{ID, Project, Run, wait_until};

const LIMIT: usize = 32 << 20;

fn code(answer: &Value) -> i64 {
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"]["code"].as_i64().unwrap()
}

#[test]
fn it_answers_on_standard_output_until_its_input_ends() {
    let base = Project::new();
    let (mut server, mut client) = Server::stdio(&base, &[]);
    client.pings(1);
    client.send(format!("\n\r\n{}{}", ping(2), ping(3).trim_end()));
    assert_eq!(client.answer(), pong(2));
    client.close();
    // The last line has no end.
    assert_eq!(client.answer(), pong(3));
    assert_eq!(client.line(), None);
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.said(), "");
    assert_eq!(base.names("."), [".state", "inbox", "sessions", "workspace"]);
    assert_eq!(base.names("sessions"), [".lock"]);
}

#[test]
fn a_socket_is_for_its_owner_alone_and_removed_at_the_end() {
    for (signal, ends) in [("TERM", 0), ("INT", 130)] {
        let base = Project::new();
        let socket = base.at("agent.sock");
        let mut server = Server::unix(&base, &socket, &[]);
        let found = fs::symlink_metadata(&socket).unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.permissions().mode() & 0o7777, 0o600);
        let names = base.names(".");
        assert_eq!(names[..3], [".agent.sock.deaddrop-lock", ".state", "agent.sock"]);
        assert_eq!(names[3..], ["inbox", "sessions", "workspace"]);
        let mut client = Client::unix(&socket);
        client.pings(1);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(ends));
        assert_eq!(client.line(), None);
        assert_eq!(base.names("."), [".state", "inbox", "sessions", "workspace"]);
        assert_eq!(base.names("sessions"), [".lock"], "what was for commands is gone");
        let said = server.said();
        assert!(said.starts_with("Serving workspace at ") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_left_alone() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let _server = Server::unix(&base, &socket, &[]);
    Client::unix(&socket).pings(1);
    let other = Project::new();
    let run = Run::of(&mut rpc(&other, &["--unix", socket.to_str().unwrap()]), "").with_code(1);
    assert!(run.stderr.contains("another program already listens on"), "{run:?}");
    assert!(run.stdout.is_empty());
    Client::unix(&socket).pings(2);
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let base = Project::new();
    let file = base.write("file", "mine");
    let listener = UnixListener::bind(base.at("socket")).unwrap();
    drop(listener);
    symlink("socket", base.at("link")).unwrap();
    fs::create_dir(base.at("folder")).unwrap();
    let long = "x".repeat(120);
    for (path, told) in [
        ("file", "no socket"),
        ("link", "no socket"),
        ("folder", "no socket"),
        ("missing/socket", "no such folder"),
        (&long, "cannot have this path"),
        ("..", "no path of a file"),
        ("", "a value is required"),
    ] {
        let run = Run::of(&mut rpc(&base, &["--unix", path]), "").with_code(2);
        assert!(run.stderr.contains(told), "{path}: {run:?}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    assert!(fs::symlink_metadata(base.at("link")).unwrap().is_symlink());
}

#[test]
fn a_socket_that_somebody_else_put_there_is_not_removed() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let mut server = Server::unix(&base, &socket, &[]);
    fs::remove_file(&socket).unwrap();
    let _other = UnixListener::bind(&socket).unwrap();
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(UnixStream::connect(&socket).is_ok());
}

#[test]
fn of_several_that_start_at_once_one_gets_the_socket() {
    let base = Project::new();
    let root = base.at("root");
    fs::create_dir(&root).unwrap();
    let socket = base.at("agent.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let arguments = ["--root", "root", "--unix", "agent.sock"];
    let mut servers: Vec<Server> =
        (0..6).map(|_| Server::start(&mut rpc(&base, &arguments))).collect();
    wait_until("all but one to give up", || {
        servers.iter_mut().filter_map(Server::ended).count() == 5
    });
    for server in &mut servers {
        match server.ended() {
            Some(status) => {
                assert_eq!(status.code(), Some(1));
                assert!(
                    server.said().contains("another program already listens on"),
                    "{}",
                    server.said()
                );
            }
            None => Client::unix(&socket).pings(1),
        }
    }
    let names = base.names(".");
    assert_eq!(names, [".agent.sock.deaddrop-lock", ".state", "agent.sock", "root"]);
}

#[test]
fn a_host_that_connects_with_a_port_is_told_so() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &[]);
    let mut client = Client::unix(&socket);
    client.send("CONNECT 52\n");
    assert_eq!(client.line().as_deref(), Some("OK 52"));
    client.pings(1);
    client.send("CONNECT 52\n");
    assert_eq!(code(&client.answer()), -32700);
    client.pings(2);
}

#[test]
fn ten_thousand_requests_are_written_before_an_answer_is_read() {
    let (base, other) = (Project::new(), Project::new());
    let socket = base.at("agent.sock");
    let all: String = (0..10_000).map(ping).collect();
    let _server = Server::unix(&base, &socket, &[]);
    let (_other, by_pipe) = Server::stdio(&other, &[]);
    for mut client in [Client::unix(&socket), by_pipe] {
        client.send(&all);
        for id in 0..10_000 {
            assert_eq!(client.answer(), pong(id));
        }
    }
}

#[test]
fn sixty_four_connections_are_served_at_once() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &[]);
    let mut clients: Vec<Client> = (0..64).map(|_| Client::unix(&socket)).collect();
    // All are open: each is answered while the others wait for nothing.
    for client in clients.iter_mut().rev() {
        client.pings(0);
    }
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| (1..50).for_each(|id| client.pings(id)));
        }
    });
}

#[test]
fn who_has_said_all_still_gets_all_answers() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &[]);
    let stream = UnixStream::connect(&socket).unwrap();
    let mut client = Client::of(stream.try_clone().unwrap(), stream.try_clone().unwrap());
    client.send((0..1000).map(ping).collect::<String>());
    stream.shutdown(Shutdown::Write).unwrap();
    for id in 0..1000 {
        assert_eq!(client.answer(), pong(id));
    }
    assert_eq!(client.line(), None);
}

#[test]
fn a_line_may_come_byte_by_byte() {
    let base = Project::new();
    let (_server, mut client) = Server::stdio(&base, &[]);
    for byte in ping(1).bytes() {
        client.send([byte]);
    }
    assert_eq!(client.answer(), pong(1));
}

#[test]
fn who_never_reads_hinders_nobody_and_not_the_end() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let mut server = Server::unix(&base, &socket, &[]);
    let mut deaf = UnixStream::connect(&socket).unwrap();
    // Only a client that is not served any more waits so long: that is what is looked for.
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let many: String = (0..10_000).map(ping).collect();
    let blocked = (0..1000).find_map(|_| deaf.write_all(many.as_bytes()).err());
    let blocked = blocked.expect("nobody takes half a gigabyte").kind();
    assert!(matches!(blocked, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{blocked}");
    Client::unix(&socket).pings(1);
    if let Some(peak) = server.peak() {
        assert!(peak < 100 << 10, "{peak} KiB");
    }
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!base.exists("agent.sock"));
}

#[test]
fn who_goes_away_ends_only_their_connection() {
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &[]);
    let mut other = Client::unix(&socket);
    for _ in 0..50 {
        let mut gone = UnixStream::connect(&socket).unwrap();
        gone.write_all((0..100).map(ping).collect::<String>().as_bytes()).unwrap();
    }
    other.pings(1);
}

#[test]
fn a_line_over_the_limit_is_refused_and_not_kept() {
    let base = Project::new();
    let (server, mut client) = Server::stdio(&base, &[]);
    let chunk = vec![b'x'; 1 << 20];
    (0..256).for_each(|_| client.send(&chunk));
    client.send(format!("\n{}", ping(1)));
    let refused = client.answer();
    assert_eq!((code(&refused), &refused["id"]), (-32600, &Value::Null));
    assert!(refused["error"]["message"].as_str().unwrap().contains("33554432"), "{refused}");
    assert_eq!(client.answer(), pong(1));
    if let Some(peak) = server.peak() {
        assert!(peak < 128 << 10, "{peak} KiB");
    }
    // One that is just as long as it may be.
    let ping = ping(2);
    client.send(format!("{}{ping}", " ".repeat(LIMIT + 1 - ping.len())));
    assert_eq!(client.answer(), pong(2));
    client.send(format!("{}{ping}", " ".repeat(LIMIT + 2 - ping.len())));
    assert_eq!(code(&client.answer()), -32600);
}

#[test]
fn a_base_directory_is_served_by_one() {
    let base = Project::with_session();
    let socket = base.at("agent.sock");
    let server = Server::unix(&base, &socket, &[]);
    for arguments in [&["rpc"][..], &["rpc", "--root", "workspace"], &["watch"]] {
        let run = base.run(arguments).with_code(4);
        assert!(run.stderr.contains("another deaddrop"), "{run:?}");
    }
    drop(server);
    let daemon = base.serve(&["watch"]);
    base.run(&["rpc"]).with_code(4);
    daemon.stop();
    // The first was killed, and has left its socket.
    let _again = Server::unix(&base, &socket, &[]);
    Client::unix(&socket).pings(1);
    assert!(base.exists(&format!("sessions/{ID}.json")));
}

#[test]
fn another_root_takes_no_lock_and_makes_nothing_in_the_base_directory() {
    let base = Project::new();
    let _server = Server::unix(&base, &base.at("agent.sock"), &[]);
    let empty = Project::new();
    let root = tempfile::tempdir().unwrap();
    let arguments = ["--root", root.path().to_str().unwrap()];
    for base in [&base, &empty] {
        let mut before = base.names(".");
        before.retain(|name| name != ".state");
        let (mut server, mut client) = Server::stdio(base, &arguments);
        client.pings(1);
        client.close();
        assert_eq!(server.wait().code(), Some(0));
        let mut after = base.names(".");
        after.retain(|name| name != ".state");
        assert_eq!(after, before);
        let own = base.names(".state/deaddrop/rpc");
        let [own] = own.as_slice() else { panic!("{own:?}") };
        assert!(own.len() == 16 && own.bytes().all(|b| b.is_ascii_hexdigit()), "{own}");
        let own = format!(".state/deaddrop/rpc/{own}");
        let mode = fs::metadata(base.at(&own)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        assert!(base.names(&own).is_empty(), "{:?}", base.names(&own));
    }
}

#[test]
fn wrong_usage_is_told() {
    let base = Project::new();
    base.write("file", "");
    for (arguments, told) in [
        (&["--stdio", "--unix", "a"][..], "cannot be used with"),
        (&["--command-timeout", "0"], "0 is not in 1..=3600"),
        (&["--root", "file"], "is not a folder"),
        (&["--root", "/", "--sandbox", "auto"], "use --sandbox off"),
        (&["--policy", "unknown"], "there is no policy 'unknown'"),
    ] {
        let run = Run::of(&mut rpc(&base, arguments), "").with_code(2);
        assert!(run.stderr.contains(told) && run.stdout.is_empty(), "{arguments:?}: {run:?}");
    }
    let run = Run::of(&mut rpc(&base, &["--root", "missing"]), "").with_code(1);
    assert!(run.stderr.contains("cannot open --root"), "{run:?}");
    assert_eq!(base.names("."), ["file"]);
    let root = ["--root", "/", "--sandbox", "off"];
    let run = Run::of(&mut rpc(&base, &root), ping(1)).with_code(0);
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), pong(1));
}
