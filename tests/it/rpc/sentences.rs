//! Each sentence about the server, asked of the real program: what a line is and how it is answered.

use serde_json::{Value, json};

use super::client::{Client, Server, ping, pong};
use crate::support::{Project, has_sandbox};

#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod ends;
mod files;
mod held;
#[cfg(target_os = "linux")]
mod walls;

/// All methods of the specification, with parameters that can be carried out.
fn methods() -> [(&'static str, Value); 6] {
    [
        ("ping", json!({})),
        ("write_file", json!({ "path": "a/b.txt", "content": "text\n" })),
        ("read_file", json!({ "path": "a/b.txt" })),
        ("list_dir", json!({ "path": "a" })),
        ("exec", json!({ "cmd": "echo out; echo err >&2" })),
        ("exec_code", json!({ "lang": "sh", "code": "echo out; echo err >&2" })),
    ]
}

/// The settings of the sandbox that there are here.
fn sandboxes() -> impl Iterator<Item = &'static str> {
    ["off", "auto"].into_iter().filter(|mode| *mode == "off" || has_sandbox(mode))
}

/// A server of its own project, and a client at its standard streams.
struct Talk {
    base: Project,
    server: Server,
    client: Client,
    id: u64,
}

impl Talk {
    fn new(arguments: &[&str]) -> Self {
        Self::in_base(Project::new(), arguments)
    }

    fn in_base(base: Project, arguments: &[&str]) -> Self {
        let (server, client) = Server::stdio(&base, arguments);
        Self { base, server, client, id: 0 }
    }

    /// Sends a request; what it is answered with is as each answer must be.
    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let answer = self.client.ask(self.id, method, params);
        assert_eq!(answer["id"], self.id);
        checked(answer)
    }

    /// What a request gives.
    #[track_caller]
    fn gives(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "{method} {params}: {answer}");
        answer["result"].take()
    }

    /// The code and the message of a request that fails.
    #[track_caller]
    fn fails(&mut self, method: &str, params: &Value) -> (i64, String) {
        of_fault(&self.ask(method, params))
    }

    /// Exit code, standard output and standard error of a command.
    #[track_caller]
    fn exec(&mut self, cmd: &str) -> (i64, String, String) {
        of_command(&self.gives("exec", &json!({ "cmd": cmd })))
    }

    /// What a line is answered with.
    #[track_caller]
    fn line(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.client.send(line);
        self.client.send("\n");
        checked(self.client.answer())
    }

    fn root(&self) -> String {
        let root = self.base.at("workspace").canonicalize().unwrap();
        root.into_os_string().into_string().unwrap()
    }
}

/// An answer, which has three fields: exactly one of `result` and `error`, and nothing null but an id
/// that nobody knows.
#[track_caller]
fn checked(answer: Value) -> Value {
    let fields = answer.as_object().unwrap();
    assert_eq!(fields.len(), 3, "{answer}");
    assert_eq!(fields["jsonrpc"], "2.0");
    assert!(fields.contains_key("id"), "{answer}");
    assert!(fields.contains_key("result") != fields.contains_key("error"), "{answer}");
    if let Some(result) = fields.get("result") {
        assert!(result.is_object() && !result.to_string().contains("null"), "{answer}");
        assert!(fields["id"].is_u64(), "{answer}");
    } else {
        let error = fields["error"].as_object().unwrap();
        let names: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(names, ["code", "message"], "{answer}");
        assert!(error["code"].is_i64() && error["message"].is_string(), "{answer}");
    }
    answer
}

#[track_caller]
fn of_fault(answer: &Value) -> (i64, String) {
    let (code, message) = (answer["error"]["code"].as_i64(), answer["error"]["message"].as_str());
    let told = code.zip(message).map(|(code, message)| (code, message.to_owned()));
    told.unwrap_or_else(|| panic!("it did not fail: {answer}"))
}

#[track_caller]
fn of_command(result: &Value) -> (i64, String, String) {
    let text = |field: &str| result[field].as_str().unwrap().to_owned();
    assert_eq!(result.as_object().unwrap().len(), 3, "{result}");
    (result["exit_code"].as_i64().unwrap(), text("stdout"), text("stderr"))
}

/// Asserts the code of a fault, and what its message holds.
#[track_caller]
fn assert_told(fault: &(i64, String), code: i64, holds: &[&str]) {
    assert_eq!(fault.0, code, "{fault:?}");
    for part in holds {
        assert!(fault.1.contains(part), "no {part:?} in {fault:?}");
    }
}

#[test]
fn each_request_has_one_line_and_every_field_is_always_there() {
    let mut talk = Talk::new(&[]);
    for (method, params) in methods() {
        let result = talk.gives(method, &params);
        let wanted = match method {
            "ping" => json!({ "pong": true }),
            "write_file" => json!({ "success": true }),
            "read_file" => json!({ "content": "text\n" }),
            "list_dir" => json!({ "entries": [{ "name": "b.txt", "is_dir": false, "size": 5 }] }),
            _ => json!({ "exit_code": 0, "stdout": "out\n", "stderr": "err\n" }),
        };
        assert_eq!(result, wanted);
    }
    assert_eq!(talk.exec(""), (0, String::new(), String::new()));
    talk.gives("write_file", &json!({ "path": "empty/x", "content": "" }));
    assert_eq!(talk.gives("read_file", &json!({ "path": "empty/x" })), json!({ "content": "" }));
    talk.exec("mkdir none");
    assert_eq!(talk.gives("list_dir", &json!({ "path": "none" })), json!({ "entries": [] }));
    talk.client.close();
    assert_eq!(talk.client.line(), None, "there is no line that was not asked for");
    assert_eq!(talk.server.wait().code(), Some(0));
}

#[test]
fn an_id_is_any_u64_and_nothing_else() {
    let mut talk = Talk::new(&[]);
    for id in [0, 1, 1 << 53, u64::MAX - 1, u64::MAX] {
        talk.client.send(ping(id));
        assert_eq!(talk.client.answer(), pong(id));
    }
    let other =
        ["null", "\"1\"", "-1", "1.5", "1e3", "true", "[1]", "{}", "18446744073709551616", "-0"];
    for id in other {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"write_file\",");
        let line = format!("{line}\"params\":{{\"path\":\"made\",\"content\":\"\"}}}}");
        let answer = talk.line(line);
        assert_eq!(answer["id"], Value::Null, "{id}: {answer}");
        assert_told(&of_fault(&answer), -32600, &["invalid request", "id must be"]);
    }
    assert!(!talk.base.exists("workspace/made"), "it is no notification either");
    // The same id twice is the client's business.
    talk.client.send(ping(7).repeat(2));
    assert_eq!((talk.client.answer(), talk.client.answer()), (pong(7), pong(7)));
}

#[test]
fn a_notification_of_each_method_is_carried_out_and_not_answered() {
    let mut talk = Talk::new(&[]);
    let notify = |method: &str, params: &Value| {
        format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    };
    for (method, params) in methods() {
        talk.client.send(notify(method, &params));
    }
    talk.client.send(notify("exec", &json!({ "cmd": "echo one > by-exec" })));
    let code = json!({ "lang": "sh", "code": "echo two > by-code" });
    talk.client.send(notify("exec_code", &code));
    // What fails is not answered either.
    for (method, params) in [
        ("unknown", json!({})),
        ("exec", json!({})),
        ("read_file", json!({ "path": "/nowhere" })),
        ("exec_code", json!({ "lang": "cobol", "code": "" })),
    ] {
        talk.client.send(notify(method, &params));
    }
    // The first answer is this one's, and all before it is done.
    talk.client.pings(99);
    let read = |path: &str| talk.base.read(&format!("workspace/{path}"));
    assert_eq!([read("a/b.txt"), read("by-exec"), read("by-code")], ["text\n", "one\n", "two\n"]);
    // What is no request at all is answered, for nobody can tell that it wanted none.
    assert_told(&of_fault(&talk.line("{\"jsonrpc\":\"2.0\"}")), -32600, &["method"]);
}

#[test]
fn what_is_no_request_is_refused_and_the_next_is_answered() {
    let mut talk = Talk::new(&[]);
    for line in ["{", "}", "x", "nul", "'a'", "{\"id\":5,}", "{}{}", "\"\\x\"", "CONNECT 52x"] {
        let answer = talk.line(line);
        assert_eq!(answer["id"], Value::Null, "{answer}");
        assert_told(&of_fault(&answer), -32700, &["parse error"]);
        talk.client.pings(1);
    }
    let answer = talk.line(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}");
    assert_told(&of_fault(&answer), -32700, &["parse error", "UTF-8"]);
    let batch = format!("[{}]", ping(5).trim_end());
    let two = format!("[{},{}]", ping(5).trim_end(), ping(6).trim_end());
    for line in ["[]", "1", "null", "\"ping\"", "true", "{}", &batch, &two] {
        let answer = talk.line(line);
        assert_eq!(answer["id"], Value::Null, "{answer}");
        assert_told(&of_fault(&answer), -32600, &["invalid request"]);
        talk.client.pings(2);
    }
    for line in [
        "{\"id\":5}",
        "{\"id\":5,\"method\":\"ping\"}",
        "{\"id\":5,\"jsonrpc\":\"1.0\",\"method\":\"ping\"}",
        "{\"id\":5,\"jsonrpc\":2.0,\"method\":\"ping\"}",
        "{\"id\":5,\"jsonrpc\":\"2.0\"}",
        "{\"id\":5,\"jsonrpc\":\"2.0\",\"method\":null}",
        "{\"id\":5,\"jsonrpc\":\"2.0\",\"method\":[\"ping\"]}",
    ] {
        let answer = talk.line(line);
        assert_eq!(answer["id"], 5, "{answer}");
        assert_told(&of_fault(&answer), -32600, &["invalid request"]);
        talk.client.pings(3);
    }
}

#[test]
fn lines_end_as_they_like_and_blank_ones_are_skipped() {
    let mut talk = Talk::new(&[]);
    let crlf = |id: u64| format!("{}\r\n", ping(id).trim_end());
    talk.client.send(format!("\n\r\n \t \n{}\n\n{}\r\n{}", crlf(1), ping(2), crlf(3)));
    for id in 1..=3 {
        assert_eq!(talk.client.answer(), pong(id));
    }
    // What JSON takes as white space stands before and after it, and fields in any order.
    talk.client.send("\t {\"params\":{},\"method\":\"ping\", \"id\" : 4,\"jsonrpc\":\"2.0\"}  \n");
    assert_eq!(talk.client.answer(), pong(4));
    // The last line needs no end.
    let last = json!({ "path": "last", "content": "x" });
    let last = super::client::request(5, "write_file", &last);
    talk.client.send(last.trim_end());
    talk.client.close();
    assert_eq!(talk.client.answer()["result"], json!({ "success": true }));
    assert_eq!(talk.client.line(), None);
    assert_eq!(talk.base.read("workspace/last"), "x");
}

#[test]
fn parameters_are_an_object_or_a_list_in_their_order() {
    let mut talk = Talk::new(&[]);
    assert_eq!(
        talk.gives("write_file", &json!(["list.txt", "by list"])),
        json!({ "success": true })
    );
    assert_eq!(talk.gives("read_file", &json!(["list.txt"])), json!({ "content": "by list" }));
    assert_eq!(talk.gives("exec", &json!(["echo x"]))["stdout"], "x\n");
    assert_eq!(talk.gives("exec_code", &json!(["sh", "echo y"]))["stdout"], "y\n");
    assert_eq!(talk.gives("list_dir", &json!([""]))["entries"][0]["name"], "list.txt");
    assert_eq!(talk.gives("ping", &json!([])), json!({ "pong": true }));
    // What is not asked for is ignored.
    let more = json!({ "path": "list.txt", "encoding": "utf-8" });
    assert_eq!(talk.gives("read_file", &more), json!({ "content": "by list" }));
    for params in ["", ",\"params\":{}", ",\"params\":null", ",\"params\":{\"x\":1}"] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"{params}}}");
        assert_eq!(talk.line(line), pong(9), "{params}");
    }
}

#[test]
fn wrong_and_missing_parameters_are_told_for_every_method() {
    let mut talk = Talk::new(&[]);
    for (method, params) in methods() {
        let names: Vec<String> = params.as_object().unwrap().keys().cloned().collect();
        let wrong = [json!(null), json!(1), json!(true), json!(["x"]), json!({ "x": 1 })];
        for name in &names {
            let mut without = params.clone();
            without.as_object_mut().unwrap().remove(name);
            assert_told(&talk.fails(method, &without), -32602, &["invalid params", name]);
            for wrong in &wrong {
                let mut params = params.clone();
                params[name] = wrong.clone();
                assert_told(&talk.fails(method, &params), -32602, &["invalid params"]);
            }
        }
        for params in [json!("x"), json!(1), json!(false)] {
            assert_told(&talk.fails(method, &params), -32602, &["params must be an object"]);
        }
        if !names.is_empty() {
            let few = json!([]);
            let many = json!(["a", "b", "c"]);
            for params in [json!({}), json!(null), few, many, json!([1, 2])] {
                assert_told(&talk.fails(method, &params), -32602, &["invalid params"]);
            }
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"{method}\"}}");
            assert_told(&of_fault(&talk.line(line)), -32602, &["invalid params"]);
        }
    }
    assert_eq!(talk.base.names("workspace"), [""; 0], "nothing of it was carried out");
}

#[test]
fn an_unknown_method_is_told_by_its_name() {
    let mut talk = Talk::new(&[]);
    for method in ["unknown", "Ping", "PING", " ping", "rpc.discover", "", "exec2", "ü\u{1}"] {
        let told = (-32601, format!("method not found: {method}"));
        assert_eq!(talk.fails(method, &json!({})), told);
        // What is wrong with the parameters does not matter then.
        assert_eq!(talk.fails(method, &json!("x")), told);
    }
}

#[test]
fn requests_of_one_connection_are_answered_in_order() {
    let mut talk = Talk::new(&[]);
    let exec = |id: u64, cmd: &str| super::client::request(id, "exec", &json!({ "cmd": cmd }));
    let lines = [
        exec(1, "sleep 0.3; echo one >> order"),
        exec(2, "echo two >> order"),
        super::client::request(3, "read_file", &json!({ "path": "order" })),
        "{\n".to_owned(),
        ping(5),
    ];
    talk.client.send(lines.concat());
    let answers: Vec<Value> = lines.iter().map(|_| checked(talk.client.answer())).collect();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(json!(ids), json!([1, 2, 3, null, 5]));
    assert_eq!(answers[2]["result"]["content"], "one\ntwo\n");
}

#[test]
fn a_workspace_that_is_missing_is_made_and_one_of_another_name_served() {
    let base = Project::new();
    base.write("deaddrop.toml", "workspace_dir = \"deep/down\"\n");
    let mut talk = Talk::in_base(base, &[]);
    talk.gives("write_file", &json!({ "path": "x", "content": "1" }));
    assert_eq!(talk.base.read("deep/down/x"), "1");
    assert!(!talk.base.exists("workspace"));
    drop(talk);
    let base = Project::new();
    let mut talk = Talk::in_base(base, &["--workspace-dir", "elsewhere"]);
    talk.client.pings(1);
    assert_eq!(talk.base.names("."), [".state", "elsewhere", "inbox", "sessions"]);
    let missing = Project::new();
    let run = missing.run(&["rpc", "--root", "nowhere"]).with_code(1);
    assert!(run.stderr.contains("nowhere") && !missing.exists("nowhere"), "{run:?}");
}
