//! `deaddrop rpc` as a client meets it, one request at a time and 64 in flight, over pipes and a Unix
//! socket; and, as the least it could cost, a bare `serde_json` loop on the same sorts of connection.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use divan::counter::ItemsCount;
use serde_json::{Value, json};

const IN_FLIGHT: usize = 64;
const TEXT: &str = "fn main() { println!(\"x\"); }\n";
const SAMPLES: u32 = 50;

/// Who serves, and over what; of commands, under which setting of the sandbox.
const FILES: [&str; 4] = ["bare pipe", "deaddrop pipe", "bare socket", "deaddrop socket"];
const COMMANDS: [&str; 6] =
    ["bare pipe", "off pipe", "auto pipe", "bare socket", "off socket", "auto socket"];

fn main() {
    divan::main();
}

/// A client's end of a connection, and what serves it.
struct Scene {
    input: Box<dyn Write + Send>,
    output: BufReader<Box<dyn Read + Send>>,
    line: String,
    server: Option<Child>,
    _folder: tempfile::TempDir,
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Scene {
    fn new(who: &str, sandbox: &str) -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let file = workspace.join("a.txt");
        fs::write(&file, content()).unwrap();
        let by_pipe = who.ends_with("pipe");
        let (server, input, output) = match (who.starts_with("bare"), by_pipe) {
            (true, true) => {
                let ((theirs, input), (output, ours)) = (pipe().unwrap(), pipe().unwrap());
                thread::spawn(move || bare(theirs, ours));
                (None, boxed(input), from(output))
            }
            (true, false) => {
                let listener = UnixListener::bind(folder.path().join("s")).unwrap();
                let client = UnixStream::connect(folder.path().join("s")).unwrap();
                let (ours, _) = listener.accept().unwrap();
                thread::spawn(move || bare(ours.try_clone().unwrap(), ours));
                (None, boxed(client.try_clone().unwrap()), from(client))
            }
            (false, true) => {
                let mut server = rpc(folder.path(), sandbox).stdin(Stdio::piped()).spawn().unwrap();
                let (input, output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
                (Some(server), boxed(input), from(output))
            }
            (false, false) => {
                let at = folder.path().join("s");
                let server = rpc(folder.path(), sandbox).arg("--unix").arg(&at).spawn().unwrap();
                let client = loop {
                    match UnixStream::connect(&at) {
                        Ok(client) => break client,
                        Err(_) => thread::yield_now(),
                    }
                };
                (Some(server), boxed(client.try_clone().unwrap()), from(client))
            }
        };
        let output = BufReader::with_capacity(1 << 20, output);
        let mut scene = Self { input, output, line: String::new(), server, _folder: folder };
        scene.ask(&request("ping", &json!({})), 1);
        (scene, file)
    }

    /// Sends so many requests at once, and waits for all answers.
    fn ask(&mut self, requests: &str, count: usize) {
        self.input.write_all(requests.as_bytes()).unwrap();
        for _ in 0..count {
            self.line.clear();
            self.output.read_line(&mut self.line).unwrap();
            assert!(self.line.contains("\"result\""), "{}", self.line);
        }
    }
}

fn boxed(input: impl Write + Send + 'static) -> Box<dyn Write + Send> {
    Box::new(input)
}

fn from(output: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(output)
}

fn rpc(base: &Path, sandbox: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deaddrop"));
    command.current_dir(base).args(["rpc", "--sandbox", sandbox]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// About 2 KB.
fn content() -> String {
    TEXT.repeat(2048 / TEXT.len())
}

fn request(method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

/// Reads lines, does what they ask without a thought, and answers.
fn bare(input: impl Read, mut output: impl Write) {
    for line in BufReader::with_capacity(1 << 16, input).lines().map_while(Result::ok) {
        let asked: Value = serde_json::from_str(&line).unwrap();
        let path = || asked["params"]["path"].as_str().unwrap();
        let result = match asked["method"].as_str().unwrap() {
            "read_file" => json!({"content": fs::read_to_string(path()).unwrap()}),
            "write_file" => {
                let content = asked["params"]["content"].as_str().unwrap();
                File::create(path()).unwrap().write_all(content.as_bytes()).unwrap();
                json!({"success": true})
            }
            "exec" => {
                let cmd = asked["params"]["cmd"].as_str().unwrap();
                let ran = Command::new("sh").args(["-c", cmd]).stdin(Stdio::null()).output();
                let ran = ran.unwrap();
                let [stdout, stderr] =
                    [ran.stdout, ran.stderr].map(|s| String::from_utf8(s).unwrap());
                json!({"exit_code": ran.status.code(), "stdout": stdout, "stderr": stderr})
            }
            _ => json!({"pong": true}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        if output.write_all(format!("{answer}\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn bench(bencher: divan::Bencher, who: &str, sandbox: &str, count: usize, method: &str) {
    let (mut scene, file) = Scene::new(who, sandbox);
    let asked = match method {
        "read_file" => json!({"path": file}),
        "write_file" => json!({"path": file, "content": content()}),
        _ => json!({"cmd": "true"}),
    };
    let requests = request(method, &asked).repeat(count);
    bencher.counter(ItemsCount::new(count)).bench_local(|| scene.ask(&requests, count));
}

#[divan::bench(sample_count = SAMPLES * 20, sample_size = 1, args = FILES)]
fn read_one(bencher: divan::Bencher, who: &str) {
    bench(bencher, who, "off", 1, "read_file");
}

#[divan::bench(sample_count = SAMPLES, sample_size = 1, args = FILES)]
fn read_64_in_flight(bencher: divan::Bencher, who: &str) {
    bench(bencher, who, "off", IN_FLIGHT, "read_file");
}

#[divan::bench(sample_count = SAMPLES, sample_size = 1, args = FILES)]
fn write_one(bencher: divan::Bencher, who: &str) {
    bench(bencher, who, "off", 1, "write_file");
}

#[divan::bench(sample_count = SAMPLES / 5, sample_size = 1, args = FILES)]
fn write_64_in_flight(bencher: divan::Bencher, who: &str) {
    bench(bencher, who, "off", IN_FLIGHT, "write_file");
}

#[divan::bench(sample_count = SAMPLES * 4, sample_size = 1, args = COMMANDS)]
fn exec_one(bencher: divan::Bencher, who: &str) {
    bench(bencher, who, who.split(' ').next().unwrap(), 1, "exec");
}

#[divan::bench(sample_count = SAMPLES / 5, sample_size = 1, args = COMMANDS)]
fn exec_64_in_flight(bencher: divan::Bencher, who: &str) {
    bench(bencher, who, who.split(' ').next().unwrap(), IN_FLIGHT, "exec");
}
