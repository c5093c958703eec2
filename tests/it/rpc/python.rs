//! A client that shares nothing with this program: Python's own socket and json.

use std::process::Command;

use super::client::Server;
use crate::support::{Project, Run};

/// Ten lines that speak the protocol; then the six methods.
const CLIENT: &str = r#"
import json, socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])
f = s.makefile("rw", encoding="utf-8", newline="\n")
def line(text): f.write(text + "\n"); f.flush(); return f.readline()
if sys.argv[2] == "CONNECT": assert line("CONNECT 5005") == "OK 5005\n"
def ask(id, method, **params):
    answer = json.loads(line(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))
    assert answer["jsonrpc"] == "2.0" and answer["id"] == id and len(answer) == 3, answer
    return answer.get("result") or answer["error"]
assert ask(1, "ping") == {"pong": True}
assert ask(2, "write_file", path="sub/ü.txt", content="é 😀\n") == {"success": True}
assert ask(3, "read_file", path="sub/ü.txt") == {"content": "é 😀\n"}
assert ask(4, "list_dir", path="sub") == {"entries": [{"name": "ü.txt", "is_dir": False, "size": 8}]}
assert ask(5, "exec", cmd="cat sub/*; exit 3") == {"exit_code": 3, "stdout": "é 😀\n", "stderr": ""}
assert ask(6, "exec_code", lang="sh", code="echo $((6 * 7))") == {"exit_code": 0, "stdout": "42\n", "stderr": ""}
assert ask(7, "unknown") == {"code": -32601, "message": "method not found: unknown"}
assert ask(8, "read_file", path="../x")["code"] == -32603
assert ask(2**64 - 1, "ping") == {"pong": True}
s.shutdown(socket.SHUT_WR); assert f.readline() == ""; print("all well")
"#;

#[test]
fn a_client_in_python_uses_the_six_methods() {
    let has = Command::new("python3").args(["-c", "import json, socket"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no python3 with json and socket");
        return;
    }
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &[]);
    for way in ["CONNECT", "plain"] {
        let mut client = Command::new("python3");
        client.arg("-c").arg(CLIENT).arg(&socket).arg(way);
        let run = Run::of(client.env("PYTHONUTF8", "1"), "").ok();
        assert_eq!(run.stdout, "all well\n", "{way}");
    }
}
