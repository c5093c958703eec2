//! A server that is started for a test, and clients of it that wait for each line with a bound.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Project, wait_until};

/// A request, as a line with its end.
pub fn request(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// `ping`, as a line.
pub fn ping(id: u64) -> String {
    request(id, "ping", &json!({}))
}

/// What a ping is answered with.
pub fn pong(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"pong": true}})
}

/// A server; it is killed at the end of the test where it has not ended.
pub struct Server {
    child: Child,
    /// What it says on standard error.
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    /// Starts `deaddrop rpc` in the project, with its standard streams as a client's.
    pub fn stdio(base: &Project, arguments: &[&str]) -> (Self, Client) {
        Self::piped(&mut rpc(base, arguments))
    }

    /// Starts a command line of a server, with its standard streams as a client's.
    pub fn piped(command: &mut Command) -> (Self, Client) {
        let mut server = Self::start(command.stdin(Stdio::piped()));
        let input: ChildStdin = server.child.stdin.take().unwrap();
        let output = server.child.stdout.take().unwrap();
        (server, Client::of(output, input))
    }

    /// Starts it at a Unix socket, and waits until it says so.
    #[track_caller]
    pub fn unix(base: &Project, socket: &Path, arguments: &[&str]) -> Self {
        let at = ["--unix", socket.to_str().unwrap()];
        let server = Self::start(&mut rpc(base, &[&at, arguments].concat()));
        wait_until("the server", || server.said().contains("Serving "));
        server
    }

    /// Starts a command line of a server.
    pub fn start(command: &mut Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let err = fs::File::create(&log).unwrap();
        let child = command.stdout(Stdio::piped()).stderr(err).spawn().unwrap();
        Self { child, log, _folder: folder }
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by name, as in "TERM".
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until it has ended.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the end of the server", || {
            status = self.ended();
            status.is_some()
        });
        status.unwrap()
    }

    /// The most memory that it has had, in KiB; None where the system does not tell.
    pub fn peak(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("What the server said:\n{}", self.said());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command line of a server, without a standard input.
pub fn rpc(base: &Project, arguments: &[&str]) -> Command {
    let mut command = base.command(&[&["rpc"], arguments].concat());
    base.agree_in(&base.at(".state"));
    command.env("XDG_STATE_HOME", base.at(".state")).stdin(Stdio::null());
    command
}

/// One connection. Nothing is read before the first line is asked for.
pub struct Client {
    output: Option<Box<dyn Write + Send>>,
    input: Option<Box<dyn Read + Send>>,
    lines: Option<Receiver<String>>,
}

impl Client {
    pub fn of(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        Self { output: Some(Box::new(output)), input: Some(Box::new(input)), lines: None }
    }

    /// Connects with a Unix socket.
    #[track_caller]
    pub fn unix(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        Self::of(stream.try_clone().unwrap(), stream)
    }

    /// Sends these bytes as they are.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let output = self.output.as_mut().expect("it is not closed");
        output.write_all(bytes.as_ref()).and_then(|()| output.flush()).unwrap();
    }

    /// Sends no more. Of a socket the other half is left open only if somebody shuts this one down.
    pub fn close(&mut self) {
        self.output = None;
    }

    /// The next line, without its end; None where there is none any more.
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        let lines = self.lines.get_or_insert_with(|| {
            let input = BufReader::new(self.input.take().unwrap());
            let (sender, lines) = mpsc::channel();
            thread::spawn(move || {
                input.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
            lines
        });
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("waited in vain for an answer"),
        }
    }

    /// The next answer.
    #[track_caller]
    pub fn answer(&mut self) -> Value {
        let line = self.line().expect("there is an answer");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// What a request is answered with.
    #[track_caller]
    pub fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        self.send(request(id, method, params));
        self.answer()
    }

    /// Asserts that somebody is there.
    #[track_caller]
    pub fn pings(&mut self, id: u64) {
        self.send(ping(id));
        assert_eq!(self.answer(), pong(id));
    }
}
