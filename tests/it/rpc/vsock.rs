//! The port for a virtual machine's host, reached by the kernel's own loop where it has one.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};

use super::client::{Client, Server, rpc};
use crate::support::{Project, Run, wait_until};

struct Address(libc::sockaddr_vm);

impl Address {
    fn new(cid: u32, port: u32) -> Self {
        Self(libc::sockaddr_vm {
            svm_family: AddressFamily::VSOCK.as_raw(),
            svm_reserved1: 0,
            svm_port: port,
            svm_cid: cid,
            svm_zero: [0; 4],
        })
    }
}

// SAFETY: what is pointed to is a whole `sockaddr_vm`, borrowed for longer than the call.
unsafe impl SocketAddrArg for Address {
    unsafe fn with_sockaddr<R>(
        &self,
        f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R,
    ) -> R {
        f((&raw const self.0).cast(), SocketAddrLen::try_from(size_of_val(&self.0)).unwrap())
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::VSOCK, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

fn connected(port: u32) -> rustix::io::Result<File> {
    let socket = socket()?;
    connect(&socket, &Address::new(libc::VMADDR_CID_LOCAL, port))?;
    Ok(File::from(socket))
}

/// Whether this kernel has such sockets, found without deaddrop.
fn has_vsock() -> bool {
    let tried = socket().and_then(|server| {
        // Any port.
        bind(&server, &Address::new(libc::VMADDR_CID_ANY, libc::VMADDR_PORT_ANY))?;
        listen(&server, 1)
    });
    if let Err(e) = tried {
        eprintln!("SKIPPED: this kernel has no vsock ({e})");
    }
    tried.is_ok()
}

/// Whether a program can reach a port of its own machine. With a loop, one that nobody listens at is
/// refused; without it, there is no way there.
fn has_loop() -> bool {
    match connected(u32::MAX - 1) {
        Err(rustix::io::Errno::CONNRESET | rustix::io::Errno::CONNREFUSED) | Ok(_) => true,
        Err(e) => {
            eprintln!("SKIPPED (in part): this kernel has no loop for vsock ({e})");
            false
        }
    }
}

#[test]
fn a_port_is_served_or_it_is_told_why_not() {
    let base = Project::new();
    let port = 50_000 + std::process::id() % 10_000;
    let arguments = ["--vsock", &port.to_string()];
    if !has_vsock() {
        let run = Run::of(&mut rpc(&base, &arguments), "").with_code(1);
        assert!(run.stderr.contains("cannot listen at vsock port"), "{run:?}");
        return;
    }
    let mut server = Server::start(&mut rpc(&base, &arguments));
    wait_until("the server", || server.said().contains("Serving "));
    let client = has_loop().then(|| {
        let stream = connected(port).unwrap();
        let mut client = Client::of(stream.try_clone().unwrap(), stream);
        client.send("CONNECT 52\n");
        assert_eq!(client.line().as_deref(), Some("OK 52"));
        client.pings(1);
        client
    });
    let other = Project::new();
    let run = Run::of(&mut rpc(&other, &arguments), "").with_code(1);
    assert!(run.stderr.contains("another program already listens on vsock port"), "{run:?}");
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    if let Some(mut client) = client {
        assert_eq!(client.line(), None);
    }
}
