//! A plain agent, as simple as its specification allows: no folders are made, nothing is sorted, a
//! signal is -1. It listens on a Unix socket within this process, and can be made to misbehave.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::{tools, wait_until};

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// As it should.
    Well,
    /// Nobody answers.
    Down,
    /// It is down once a command of a reply has made the file `half`.
    DiesInCommand,
    /// It is down once it has written a file, and does not answer.
    DiesAfterWrite,
    /// It is down when it is to write a file, and has not.
    DiesBeforeWrite,
    /// It is down in the middle of writing one.
    DiesWithinWrite,
    /// It answers what it should not to whatever is about files.
    Babbles,
    /// It lists names that are none.
    Lies,
}

/// An agent; what is asked of it is kept.
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    mood: Mutex<Mood>,
    asked: Mutex<Vec<String>>,
}

impl Agent {
    /// One that begins in `folder` and listens at `socket` as long as this process lives.
    pub fn new(folder: &Path, socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let (mood, asked) = (Mutex::new(Mood::Well), Mutex::default());
        let shared = Arc::new(Shared { folder: folder.to_owned(), mood, asked });
        let agent = Self { shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(&stream));
            }
        });
        agent
    }

    pub fn is(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap() = mood;
    }

    /// How often it was asked for this.
    pub fn was_asked(&self, method: &str, about: &str) -> usize {
        let asked = self.shared.asked.lock().unwrap();
        asked.iter().filter(|line| line.starts_with(method) && line.contains(about)).count()
    }
}

impl Shared {
    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    fn serve(&self, mut stream: &UnixStream) {
        let mut lines = BufReader::new(stream).lines();
        while let Some(Ok(line)) = lines.next() {
            if self.mood() == Mood::Down {
                return;
            }
            let answer = if let Some(port) = line.strip_prefix("CONNECT ") {
                format!("OK {port}")
            } else {
                let asked: Value = serde_json::from_str(&line).unwrap();
                let Some(said) = self.answer(&asked) else { return };
                let (is, what) = match said {
                    Ok(result) => ("result", result),
                    Err((code, message)) => ("error", json!({"code": code, "message": message})),
                };
                json!({"jsonrpc": "2.0", "id": asked["id"], is: what}).to_string()
            };
            if writeln!(stream, "{answer}").is_err() {
                return;
            }
        }
    }

    /// None where it is gone.
    fn answer(&self, asked: &Value) -> Option<Result<Value, (i64, String)>> {
        let text = |name: &str| asked["params"][name].as_str().unwrap_or_default().to_owned();
        let (method, path) = (asked["method"].as_str().unwrap(), self.folder.join(text("path")));
        let told = format!("{method} {}{}", text("path"), text("cmd"));
        self.asked.lock().unwrap().push(told);
        let said = match (method, self.mood()) {
            ("read_file" | "list_dir", Mood::Babbles) => Ok(json!({"entries": "none", "content": 1})),
            ("write_file", mood @ (Mood::DiesBeforeWrite | Mood::DiesAfterWrite | Mood::DiesWithinWrite)) => {
                let content = text("content");
                match mood {
                    Mood::DiesAfterWrite => fs::write(path, content).unwrap(),
                    Mood::DiesWithinWrite => fs::write(path, &content[..1]).unwrap(),
                    _ => {}
                }
                self.die();
                return None;
            }
            ("exec", mood) => {
                let cmd = text("cmd");
                let mut command = Command::new("/bin/sh");
                command.args(["-c", &cmd]).current_dir(&self.folder).stdin(Stdio::null());
                tools::activate(&mut command);
                if mood == Mood::DiesInCommand && cmd.contains("deaddrop: begun") {
                    command.stdout(Stdio::null()).stderr(Stdio::null());
                    let mut child = command.spawn().unwrap();
                    wait_until("half", || self.folder.join("half").exists());
                    // The command goes on: it is the agent that is gone.
                    thread::spawn(move || child.wait());
                    self.die();
                    return None;
                }
                let ran = command.output().unwrap();
                Ok(json!({
                    "exit_code": ran.status.code().unwrap_or(-1),
                    "stdout": String::from_utf8_lossy(&ran.stdout),
                    "stderr": String::from_utf8_lossy(&ran.stderr),
                }))
            }
            ("ping", _) => Ok(json!({"pong": true})),
            ("read_file", _) => {
                fs::read_to_string(path).map(|content| json!({ "content": content }))
            }
            ("write_file", _) => {
                fs::write(path, text("content")).map(|()| json!({"success": true}))
            }
            ("list_dir", mood) => fs::read_dir(path).map(|entries| {
                let entry = |entry: fs::DirEntry| {
                    let found = entry.metadata().unwrap();
                    let size = if found.is_dir() { 0 } else { found.len() };
                    json!({"name": entry.file_name().to_string_lossy(), "is_dir": found.is_dir(), "size": size})
                };
                let mut entries: Vec<Value> = entries.map(|found| entry(found.unwrap())).collect();
                if mood == Mood::Lies {
                    for name in ["..", ".", "", "../up", "a/b", "nul\0", "big"] {
                        entries.push(json!({"name": name, "is_dir": false, "size": u64::MAX}));
                        let is_dir = name != "big";
                        entries.push(json!({"name": name, "is_dir": is_dir, "size": u64::MAX}));
                    }
                }
                json!({ "entries": entries })
            }),
            _ => return Some(Err((-32601, format!("method not found: {method}")))),
        };
        Some(said.map_err(|e| (-32603, e.to_string())))
    }

    fn die(&self) {
        *self.mood.lock().unwrap() = Mood::Down;
    }
}
