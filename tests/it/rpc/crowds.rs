//! How many are served at once, whatever number of files the server may open.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use super::client::{Client, Server, ping, pong, rpc};
use crate::support::wrapper::wrap;
use crate::support::{Project, wait_until};

/// A server at a socket that may open so many files, if this machine lets it.
fn limited(base: &Project, files: u64) -> Option<Server> {
    let limit = format!("ulimit -n {files}");
    let can = Command::new("sh").args(["-c", &limit]).stderr(Stdio::null()).status().unwrap();
    if !can.success() {
        eprintln!("SKIPPED (in part): a process here may not open {files} files");
        return None;
    }
    let socket = base.at("agent.sock");
    let asked = rpc(base, &["--unix", socket.to_str().unwrap()]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{limit} && exec \"$@\""), "sh"]).stdin(Stdio::null());
    wrap(&mut command, &asked);
    let server = Server::start(&mut command);
    wait_until("the server", || server.said().contains("Serving "));
    Some(server)
}

#[test]
fn more_than_are_served_at_once_wait_until_one_leaves() {
    // What docs/rpc.md says of 1024 files, fewer, and more than 256 connections need. This process
    // needs four for each.
    let own = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    for (files, served) in [(96, 2), (1024, 80), (3136, 256), (4096, 256)] {
        if own.is_some_and(|own| own < 4 * served + 200) {
            eprintln!("SKIPPED (in part): {served} connections are too many for `ulimit -n` here");
            continue;
        }
        let base = Project::new();
        let Some(_server) = limited(&base, files) else { continue };
        let socket = base.at("agent.sock");
        let mut clients: Vec<Client> = (1..served).map(|_| Client::unix(&socket)).collect();
        let leaves = UnixStream::connect(&socket).unwrap();
        clients.push(Client::of(leaves.try_clone().unwrap(), leaves.try_clone().unwrap()));
        clients.iter_mut().for_each(|client| client.pings(1));
        let late = UnixStream::connect(&socket).unwrap();
        let mut client = Client::of(late.try_clone().unwrap(), late.try_clone().unwrap());
        client.send(ping(2));
        // Others are answered meanwhile, and it is not.
        clients.iter_mut().for_each(|client| client.pings(2));
        late.set_nonblocking(true).unwrap();
        let waits = (&late).read(&mut [0]).unwrap_err().kind();
        assert_eq!(waits, ErrorKind::WouldBlock, "{files}: {served}");
        late.set_nonblocking(false).unwrap();
        leaves.shutdown(Shutdown::Both).unwrap();
        assert_eq!(client.answer(), pong(2));
    }
}
