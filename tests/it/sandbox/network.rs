//! The network: what listens on this machine hears nothing of a command, which has a localhost of
//! its own.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use super::{Attack, python};
use crate::scene::{Asked, Scene, Way, marker};

/// All that a command could talk to.
struct Listening {
    tcp: TcpListener,
    udp: UdpSocket,
    hidden: UnixListener,
    hidden_datagrams: UnixDatagram,
    file: UnixListener,
    name: String,
}

fn listen(scene: &Scene) -> Listening {
    let name = marker();
    let address = |name: &str| SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    let path = scene.base.at("outside.sock");
    let file = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let listening = Listening {
        tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
        udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
        hidden: UnixListener::bind_addr(&address(&name)).unwrap(),
        hidden_datagrams: UnixDatagram::bind_addr(&address(&format!("{name}d"))).unwrap(),
        file,
        name,
    };
    for fails in [
        listening.tcp.set_nonblocking(true),
        listening.udp.set_nonblocking(true),
        listening.hidden.set_nonblocking(true),
        listening.hidden_datagrams.set_nonblocking(true),
        listening.file.set_nonblocking(true),
    ] {
        fails.unwrap();
    }
    listening
}

impl Listening {
    /// What was heard.
    fn heard(&self) -> Vec<&'static str> {
        let mut bytes = [0; 9];
        [
            ("tcp", self.tcp.accept().is_ok()),
            ("udp", self.udp.recv(&mut bytes).is_ok()),
            ("abstract", self.hidden.accept().is_ok()),
            ("abstract datagrams", self.hidden_datagrams.recv(&mut bytes).is_ok()),
            ("file", self.file.accept().is_ok()),
        ]
        .into_iter()
        .filter_map(|(name, heard)| heard.then_some(name))
        .collect()
    }

    /// None where there is no Python.
    fn attack(&self, scene: &Scene) -> Option<Attack> {
        let talk = |script: &str| python(&format!("from socket import *; {script}"));
        let tcp = self.tcp.local_addr().unwrap().port();
        let udp = self.udp.local_addr().unwrap().port();
        let (name, file) = (&self.name, scene.base.at("outside.sock"));
        let file = file.display();
        Some(
            Attack::new()
                .by("tcp", talk(&format!("create_connection((\"127.0.0.1\",{tcp}),2)"))?)
                .by(
                    "udp",
                    talk(&format!(
                        "socket(AF_INET,SOCK_DGRAM).sendto(b\"x\",(\"127.0.0.1\",{udp}))"
                    ))?,
                )
                .by("abstract", talk(&format!("socket(AF_UNIX).connect(chr(0)+\"{name}\")"))?)
                .by(
                    "abstract datagrams",
                    talk(&format!("socket(AF_UNIX,SOCK_DGRAM).sendto(b\"x\",chr(0)+\"{name}d\")"))?,
                )
                .by("file", talk(&format!("socket(AF_UNIX).connect(\"{file}\")"))?),
        )
    }
}

#[test]
fn nothing_that_listens_hears_of_a_command() {
    for scene in Scene::confined() {
        let listening = listen(&scene);
        let Some(attack) = listening.attack(&scene) else { return };
        // A packet may be sent to nobody.
        attack.run_in(&scene);
        assert_eq!(listening.heard(), [""; 0], "{}", scene.name());
    }
    let Some(open) = Scene::with(Way::AsItIs, Asked::Off) else { return };
    let listening = listen(&open);
    let Some(attack) = listening.attack(&open) else { return };
    attack.gets_through(&open);
    assert_eq!(listening.heard(), ["tcp", "udp", "abstract", "abstract datagrams", "file"]);
}

#[test]
fn with_the_network_open_the_machines_own_sockets_stay_shut() {
    for scene in Scene::confined() {
        scene.base.write("deaddrop.toml", "sandbox.network = true\n");
        scene.hand_over();
        let listening = listen(&scene);
        let Some(attack) = listening.attack(&scene) else { return };
        let commands: Vec<String> =
            attack.tries.iter().map(|(_, command)| format!("{command} 2>&1 | tail -n 1")).collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let outbox = scene.outbox(&commands, &[]);
        assert!(outbox.contains("\n  Network: open to commands"), "{outbox}");
        let expected = ["tcp", "udp"];
        assert_eq!(listening.heard(), expected, "{}: {outbox}", scene.name());
        let results = scene.run(&["env | grep -c -i -E 'offline|NO_INDEX|GOPROXY'"], &[]);
        assert!(results.contains("Output: 0"), "{results}");
    }
}

#[test]
fn no_socket_of_a_virtual_machine_or_of_the_wire_is_to_be_had() {
    let make =
        |family: u32, kind: u32| python(&format!("import socket; socket.socket({family},{kind})"));
    let (Some(vsock), Some(packet), Some(bluetooth), Some(alg)) =
        (make(40, 1), make(17, 3), make(31, 3), make(38, 5))
    else {
        return;
    };
    for network in ["true", "false"] {
        for scene in Scene::confined() {
            scene.base.write("deaddrop.toml", format!("sandbox.network = {network}\n"));
            scene.hand_over();
            Attack::new()
                .by("VSOCK", &vsock)
                .by("packets", &packet)
                .by("Bluetooth", &bluetooth)
                .by("the kernel's cryptography", &alg)
                .fails_in(&scene);
        }
    }
    Attack::new().by("packets", &packet).gets_through_as_root(|_| {});
    let Some(open) = Scene::with(Way::AsItIs, Asked::Off) else { return };
    if open.run(&[&vsock], &[]).starts_with("[FAILED]") {
        eprintln!("SKIPPED (in part): this kernel has no VSOCK");
    }
}

#[test]
fn a_command_reaches_what_it_starts_itself_on_localhost() {
    let server = "from socket import *; s = create_server((\"127.0.0.1\",0)); c = create_connection(s.getsockname()); s.accept()[0].send(b\"hello\"); print(c.recv(9)); u = socket(AF_UNIX); u.bind(\"own.sock\"); a, b = socketpair(); a.send(b\"x\"); print(b.recv(9))";
    let Some(server) = python(server) else { return };
    for scene in Scene::full() {
        let results = scene.run(&[&server], &[]);
        assert!(results.contains("  Output: b'hello'\n  b'x'\n"), "{}: {results}", scene.name());
    }
}
