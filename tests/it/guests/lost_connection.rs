//! A guest that listens on a socket and lives on, while what stands between it and the host breaks,
//! loses a line, or brings another answer.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::guests::sessions::TRACES;
use crate::support::{Daemon, ID, Project, wait_until};

/// What becomes of a line on its way to the guest.
enum Fate {
    Passes,
    IsLost,
    /// The guest never sees it, and this code is what it seems to answer.
    IsRefused(i64),
}

type Judge = Box<dyn FnMut(&str) -> Fate + Send>;

/// Passes lines between two sockets.
struct Relay {
    at: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    guest: PathBuf,
    is_over: AtomicBool,
    open: Mutex<Vec<UnixStream>>,
    /// What the host sent.
    heard: Mutex<Vec<String>>,
    fate: Mutex<Judge>,
}

impl Relay {
    fn new(at: PathBuf, guest: PathBuf) -> Self {
        let listener = UnixListener::bind(&at).unwrap();
        let shared = Arc::new(Shared {
            guest,
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
            heard: Mutex::default(),
            fate: Mutex::new(Box::new(|_| Fate::Passes)),
        });
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for host in listener.incoming() {
                if own.is_over.load(Ordering::Relaxed) {
                    break;
                }
                // Where nobody listens there, it is closed at once.
                if let Ok(guest) = UnixStream::connect(&own.guest) {
                    own.pass(&host.unwrap(), &guest);
                }
            }
        });
        Self { at, shared }
    }

    /// Breaks all that there is.
    fn cut(&self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn decide(&self, fate: impl FnMut(&str) -> Fate + Send + 'static) {
        *self.shared.fate.lock().unwrap() = Box::new(fate);
    }

    /// How many lines of this method the host sent.
    fn heard(&self, method: &str) -> usize {
        let heard = self.shared.heard.lock().unwrap();
        heard.iter().filter(|line| is(line, method)).count()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let _ = UnixStream::connect(&self.at);
        self.cut();
    }
}

impl Shared {
    fn pass(self: &Arc<Self>, host: &UnixStream, guest: &UnixStream) {
        let again = |stream: &UnixStream| stream.try_clone().unwrap();
        self.open.lock().unwrap().extend([again(host), again(guest)]);
        let (from, mut to) = (again(guest), again(host));
        thread::spawn(move || {
            let _ = std::io::copy(&mut &from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
        let (from, mut to, mut back) = (again(host), again(guest), again(host));
        let own = Arc::clone(self);
        thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                let Ok(line) = line else { break };
                own.heard.lock().unwrap().push(line.clone());
                let passed = match (own.fate.lock().unwrap())(&line) {
                    Fate::Passes => writeln!(to, "{line}"),
                    Fate::IsLost => Ok(()),
                    Fate::IsRefused(code) => {
                        let asked: serde_json::Value = serde_json::from_str(&line).unwrap();
                        let error = serde_json::json!({"code": code, "message": "not now"});
                        let answer = serde_json::json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
                        writeln!(back, "{answer}")
                    }
                };
                if passed.is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

fn is(line: &str, method: &str) -> bool {
    line.contains(&format!("\"method\":\"{method}\""))
}

/// A process that serves a folder, killed with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A host with an open session, its guest, and what stands between.
struct Scene {
    host: Project,
    guest: Project,
    server: Server,
    relay: Relay,
}

impl Scene {
    fn new() -> Self {
        let (host, guest) = (Project::new(), Project::new());
        let server = serve(&guest);
        let relay = Relay::new(host.at("relay.sock"), guest.at("agent.sock"));
        let settings = format!("[guest]\nsocket = \"{}\"\n", relay.at.display());
        host.write("deaddrop.toml", settings);
        host.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
        Self { host, guest, server, relay }
    }

    fn traced(&self) -> String {
        fs::read_to_string(self.guest.at("root/trace")).unwrap_or_default()
    }

    /// A daemon in the middle of the second command.
    fn begun(&self) -> Daemon {
        let daemon = self.host.serve(&["resume"]);
        self.host.write("inbox/r.txt", TRACES.replace("echo 3 ", "echo said; echo 3 "));
        wait_until("the second command", || self.traced() == "1\n2\n");
        daemon
    }

    /// The guest is killed, forgets its steps, and is there again.
    fn make_anew(&mut self) {
        drop(std::mem::replace(&mut self.server, Server(nothing())));
        fs::remove_dir_all(self.guest.at("state")).unwrap();
        self.server = serve(&self.guest);
    }
}

fn serve(guest: &Project) -> Server {
    fs::create_dir_all(guest.at("root")).unwrap();
    let mut command = guest.command(&["rpc", "--quiet", "--unix", "agent.sock", "--root", "root"]);
    command.env("XDG_STATE_HOME", guest.at("state")).stdin(Stdio::null());
    let server = Server(command.spawn().unwrap());
    wait_until("the guest", || UnixStream::connect(guest.at("agent.sock")).is_ok());
    server
}

/// A process that is over.
fn nothing() -> Child {
    std::process::Command::new("true").spawn().unwrap()
}

fn go(guest: &Path) {
    fs::write(guest.join("root/go"), "").unwrap();
}

#[test]
fn a_broken_connection_is_mended_and_a_step_is_not_done_again() {
    let scene = Scene::new();
    let daemon = scene.begun();
    let asked = scene.relay.heard("step");
    scene.relay.cut();
    wait_until("it is asked for again", || scene.relay.heard("step") == asked + 1);
    go(scene.guest.path());
    let outbox = scene.host.wait_for_outbox(2);
    assert_eq!(scene.host.last_codes(), ["ok"; 4]);
    assert!(outbox.contains("said"), "{outbox}");
    assert!(outbox.contains("  Warning: the connection to the guest was lost"), "{outbox}");
    assert_eq!(scene.traced(), "1\n2\n3\n4\n");
    daemon.stop();
}

#[test]
fn an_interrupt_that_is_lost_is_said_again() {
    let scene = Scene::new();
    let mut daemon = scene.begun();
    let mut lost = false;
    scene.relay.decide(move |line| {
        if is(line, "interrupt") && !std::mem::replace(&mut lost, true) {
            return Fate::IsLost;
        }
        Fate::Passes
    });
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(130), "{}", daemon.said());
    assert!(scene.host.last_codes().contains(&"interrupted".to_owned()));
    let outbox = scene.host.outbox(2);
    assert!(outbox.contains("interrupted by the user"), "{outbox}");
    assert!(scene.relay.heard("interrupt") > 1);
}

#[test]
fn a_guest_that_cannot_say_it_now_is_asked_later() {
    let scene = Scene::new();
    scene.relay.decide(|line| {
        let is_last = is(line, "step") && line.contains("echo 4");
        if is_last { Fate::IsRefused(-32_000) } else { Fate::Passes }
    });
    let mut daemon = scene.begun();
    go(scene.guest.path());
    assert_eq!(daemon.wait().code(), Some(1));
    let said = daemon.said();
    assert!(said.contains("not now") && said.contains("`deaddrop resume` continues"), "{said}");
    assert!(!scene.host.exists(&format!("outbox/{ID}_seq0002.txt")));
    scene.relay.decide(|_| Fate::Passes);
    scene.host.run(&["resume", "--no-watch"]).ok();
    let outbox = scene.host.outbox(2);
    assert_eq!(outbox.matches("[OK]").count(), 4, "{outbox}");
    assert_eq!(scene.traced(), "1\n2\n3\n4\n");
}

#[test]
fn what_a_refused_request_named_as_settled_is_named_again() {
    let scene = Scene::new();
    scene.relay.decide(|line| {
        let is_last = is(line, "step") && line.contains("echo 4");
        if is_last { Fate::IsRefused(-32_603) } else { Fate::Passes }
    });
    let daemon = scene.begun();
    go(scene.guest.path());
    let outbox = scene.host.wait_for_outbox(2);
    assert_eq!(outbox.matches("[OK]").count(), 3, "{outbox}");
    assert!(outbox.contains("not now"), "{outbox}");
    scene.host.write("inbox/r.txt", "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n");
    scene.host.wait_for_outbox(3);
    let records: Vec<PathBuf> = walkdir::WalkDir::new(scene.guest.at("state"))
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("step_"))
        .collect();
    assert_eq!(records.len(), 1, "{records:?}");
    daemon.stop();
}

#[test]
fn a_guest_that_was_made_anew_runs_nothing_twice() {
    let mut scene = Scene::new();
    let daemon = scene.begun();
    scene.make_anew();
    go(scene.guest.path());
    let outbox = scene.host.wait_for_outbox(2);
    assert_eq!(scene.host.last_codes(), ["ok", "ok", "lost", "ok"]);
    assert!(outbox.contains("is not run again; look at what it did"), "{outbox}");
    assert_eq!(scene.traced(), "1\n2\n4\n");
    // Between turns it may be made anew as it likes.
    scene.make_anew();
    scene.host.write("inbox/r.txt", "[RUN_COMMAND]\necho 5 >> trace\n[/RUN_COMMAND]\n");
    let outbox = scene.host.wait_for_outbox(3);
    assert_eq!(outbox.matches("[OK]").count(), 1, "{outbox}");
    assert_eq!(scene.traced(), "1\n2\n4\n5\n");
    daemon.stop();
}

#[test]
fn a_host_that_was_stopped_too_runs_nothing_twice() {
    let mut scene = Scene::new();
    let mut daemon = scene.begun();
    daemon.signal("KILL");
    daemon.wait();
    scene.make_anew();
    go(scene.guest.path());
    scene.host.run(&["resume", "--no-watch"]).ok();
    assert_eq!(scene.host.last_codes(), ["ok", "ok", "lost", "ok"]);
    let outbox = scene.host.outbox(2);
    assert!(outbox.contains("is not run again; look at what it did"), "{outbox}");
    assert_eq!(scene.traced(), "1\n2\n4\n");
}
