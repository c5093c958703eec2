//! A project that is served, and a small HTTP client for it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{Daemon, PATIENCE, Project, wait_until};

/// A project with `deaddrop serve` on a free port, and a key of its REST API.
pub struct Served {
    /// Dropped first.
    pub daemon: Option<Daemon>,
    pub project: Project,
    pub address: String,
    pub key: String,
}

/// What a request was answered with.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl Served {
    pub fn start() -> Self {
        Self::of(Project::new())
    }

    pub fn of(project: Project) -> Self {
        let added = project.run(&["serve", "keys", "add", "test"]).ok();
        let key = added.stdout.trim().to_owned();
        let mut served = Self { daemon: None, project, address: String::new(), key };
        served.restart();
        served
    }

    /// Starts it, anew if it ran before.
    pub fn restart(&mut self) {
        self.daemon = None;
        let (daemon, page) = serve(&self.project, "127.0.0.1:0");
        self.address = page.host;
        self.daemon = Some(daemon);
    }

    /// Sends a request as the SDK does.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(method, path, &[], body)
    }

    #[track_caller]
    pub fn ask_with(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let key = format!("Authorization: Bearer {}", self.key);
        let headers = [&[key.as_str(), "Content-Type: application/json"], headers].concat();
        read(self.send(method, path, &headers, body))
    }

    /// Sends a request, and leaves its answer unread.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let host = if headers.starts_with("Host:") { "" } else { &self.address };
        let host = if host.is_empty() { String::new() } else { format!("Host: {host}\r\n") };
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }
}

/// The page that a server prints the address of.
pub struct Page {
    pub url: String,
    /// The host of the address.
    pub host: String,
    pub token: String,
}

/// Starts `deaddrop serve` at an address, and waits until it says which page it has.
#[track_caller]
pub fn serve(project: &Project, listen: &str) -> (Daemon, Page) {
    let daemon = project.start(&["serve", "--listen", listen, "--json"]);
    let mut page = None;
    wait_until("the address", || {
        let said = daemon.said();
        let told = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        page = { told }.find_map(|told| {
            let (url, token) = (told["url"].as_str()?, told["token"].as_str()?);
            let host = url.strip_prefix("http://")?.split('/').next()?;
            assert_eq!(url, format!("http://{host}/#token={token}"));
            Some(Page { url: url.to_owned(), host: host.to_owned(), token: token.to_owned() })
        });
        page.is_some()
    });
    (daemon, page.unwrap())
}

/// Reads an answer to its end: its status, its head in small letters, and its body.
#[track_caller]
pub fn read_text(mut stream: TcpStream) -> (u16, String, String) {
    let mut bytes = Vec::new();
    // What was refused is not read to its end, so the connection may be broken off after the answer.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let head = head.to_lowercase();
    let is_chunked = head.contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(rest) } else { rest.to_owned() };
    (status, head, body)
}

/// The same of an answer in JSON.
#[track_caller]
pub fn read(stream: TcpStream) -> Answer {
    let (status, head, text) = read_text(stream);
    let body = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {head}\n{text}"));
    Answer { status, head, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut text = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return text;
        }
        text.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
}

/// The state of a connection in which the other end has yet to notice that the client has gone.
pub const CLOSE_WAIT: &str = "08";

/// The state of a server's end of the connection to the client at this port of this machine.
pub fn state_of_connection(port: u16) -> Option<String> {
    let remote = format!(":{port:04X}");
    let connections = fs::read_to_string("/proc/net/tcp").unwrap();
    let columns = connections.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    { columns }.find(|column| column[2].ends_with(&remote)).map(|column| column[3].to_owned())
}
