//! Requests to `serve` as they are on the wire: who may ask, what for, and how much.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::client::{Page, read_text, serve};
use crate::support::{Daemon, ID, PATIENCE, Project, wait_until};

/// A server that runs, with what it printed.
struct Served {
    daemon: Daemon,
    host: String,
    token: String,
}

/// An answer: its status, its head in small letters, and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    #[track_caller]
    fn new(base: &Project) -> Self {
        Self::at(base, "127.0.0.1:0")
    }

    /// One that listens there; its host is the one of the address that it prints.
    #[track_caller]
    fn at(base: &Project, listen: &str) -> Self {
        let (daemon, Page { host, token, .. }) = serve(base, listen);
        Self { daemon, host, token }
    }

    /// Sends a request as it is written here.
    fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let text = format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        // What is refused is not read to its end.
        let _ = stream.write_all(text.as_bytes());
        let (status, head, body) = read_text(stream);
        Answer { status, head, body }
    }

    /// A request of the page.
    fn call(&self, name: &str, body: &Value) -> (u16, Value) {
        let (host, token) = (&self.host, &self.token);
        let head =
            format!("POST /api/{name} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}");
        let Answer { status, body, .. } = self.send(&head, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    /// The same, of which an error with this code is expected.
    #[track_caller]
    fn refuses(&self, name: &str, body: &Value, status: u16, code: &str) {
        let (got, told) = self.call(name, body);
        assert_eq!((got, &told["error"]["code"]), (status, &code.into()), "{name}: {told}");
    }
}

#[test]
fn only_the_page_itself_may_ask() {
    let base = Project::with_session();
    let served = Served::new(&base);
    let (host, token) = (&served.host, &served.token);
    let port = host.rsplit_once(':').unwrap().1;
    let bearer = format!("Authorization: Bearer {token}");
    let local = format!("localhost:{port}");
    let table: [(&str, &str, &str, u16, &str); 11] = [
        (host, &bearer, "", 200, ""),
        (&local, &bearer, "", 200, ""),
        (host, "X: y", "", 401, "unauthorized"),
        (host, "Authorization: Bearer 00", "", 401, "unauthorized"),
        (host, &format!("Authorization: {token}"), "", 401, "unauthorized"),
        (host, &format!("Cookie: token={token}"), "", 401, "unauthorized"),
        // A name that somebody else makes lead here.
        (&format!("evil.example:{port}"), &bearer, "", 421, "wrong-host"),
        ("127.0.0.1:1", &bearer, "", 421, "wrong-host"),
        (host, &bearer, "http://evil.example", 403, "other-origin"),
        (host, &bearer, "null", 403, "other-origin"),
        (host, &bearer, &format!("http://{host}"), 200, ""),
    ];
    for (host, line, origin, status, code) in table {
        let origin =
            if origin.is_empty() { String::new() } else { format!("\r\nOrigin: {origin}") };
        let head = format!("POST /api/status HTTP/1.1\r\nHost: {host}\r\n{line}{origin}");
        let answer = served.send(&head, "{}");
        let told: Value = serde_json::from_str(&answer.body).unwrap();
        let got = told["error"]["code"].as_str().unwrap_or_default();
        assert_eq!((answer.status, got), (status, code), "{head}");
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
}

/// What was left in a browser by whoever listened on the port before must not come by the token.
#[test]
fn a_port_that_is_named_gets_a_new_name_at_each_start() {
    let base = Project::with_session();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut names = Vec::new();
    for _ in 0..2 {
        let address = format!("127.0.0.1:{port}");
        let mut served = Served::at(&base, &address);
        let name = std::mem::replace(&mut served.host, address);
        let bearer = format!("Authorization: Bearer {}", served.token);
        let local = format!("localhost:{port}");
        for (path, host, status) in [
            ("/api/status", &name, 200),
            ("/api/status", &served.host, 421),
            ("/api/status", &local, 421),
            ("/", &served.host, 421),
            ("/v1", &served.host, 401),
            ("/v1", &local, 401),
        ] {
            let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n{bearer}");
            assert_eq!(served.send(&head, "{}").status, status, "{path} at {host}");
        }
        let twice = format!("GET / HTTP/1.1\r\nHost: {name}\r\nHost: {name}");
        assert_eq!(served.send(&twice, "").status, 421);
        let absolute = format!("GET http://evil.example/ HTTP/1.1\r\nHost: {name}");
        assert_eq!(served.send(&absolute, "").status, 421);
        assert!(name.ends_with(&format!(".localhost:{port}")), "{name}");
        names.push(name);
        served.daemon.stop();
    }
    assert_ne!(names[0], names[1]);
}

#[test]
fn the_page_loads_nothing_from_elsewhere_and_is_framed_by_nobody() {
    let base = Project::with_session();
    let served = Served::new(&base);
    for path in ["/", "/app.js", "/style.css", "/icon.svg", "/nothing"] {
        let answer = served.send(&format!("GET {path} HTTP/1.1\r\nHost: {}", served.host), "");
        assert_eq!(answer.status, if path == "/nothing" { 404 } else { 200 }, "{path}");
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(answer.head.contains(line), "{path}: {}", answer.head);
        }
        assert!(!answer.body.contains(&served.token));
    }
    let answer = served.send(&format!("POST / HTTP/1.1\r\nHost: {}", served.host), "");
    assert_eq!(answer.status, 405);
}

#[test]
fn a_bad_request_gets_a_reason_and_changes_nothing() {
    let base = Project::with_session();
    let served = Served::new(&base);
    let before = base.read(&format!("sessions/{ID}.json"));
    served.refuses("nothing", &json!({}), 404, "not-found");
    served.refuses("status", &json!([]), 400, "usage");
    served.refuses("status", &json!({"text": "x"}), 400, "usage");
    served.refuses("status", &json!({"session": true}), 400, "usage");
    served.refuses("status", &json!({"session": "00000000"}), 409, "no-session");
    served.refuses("apply", &json!({"text": "x", "session": "a\u{0}"}), 400, "usage");
    // What looks like a flag is none.
    served.refuses("diff", &json!({"turns": "--help"}), 409, "usage");
    served.refuses("status", &json!({"session": "--workspace-dir=/"}), 409, "no-session");
    served.refuses("apply", &json!({"text": " "}), 409, "unreadable-reply");
    let long = "x".repeat(17 << 20);
    served.refuses("check", &json!({"text": long}), 413, "too-large");
    assert_eq!(base.read(&format!("sessions/{ID}.json")), before);
}

#[test]
fn a_session_from_its_preview_to_the_undo_of_its_turn() {
    let base = Project::new();
    base.write("workspace/f.txt", "old\n");
    base.write("workspace/g.txt", "other\n");
    let served = Served::new(&base);
    let task = json!({"task": "Change f.txt", "exclude": ["g.txt"]});
    let (status, told) = served.call("preview", &task);
    assert_eq!((status, &told[0]["shown"]), (200, &json!(["f.txt"])), "{told}");
    assert_eq!(served.call("status", &json!({})).1, json!([]));
    let (_, told) = served.call("new", &task);
    let id = told[0]["session"].clone();
    let (_, told) = served.call("show", &json!({"session": id}));
    let outbox = told[0]["text"].as_str().unwrap();
    assert!(outbox.contains("--- f.txt") && !outbox.contains("--- g.txt"), "{outbox}");
    let reply = "[EDIT_FILE path=\"f.txt\" start_line=\"1\" end_line=\"1\"]\nnew\n[/EDIT_FILE]\n\
        [CREATE_FILE path=\"h.txt\"]\nx\n[/CREATE_FILE]\n";
    let (_, told) = served.call("check", &json!({"session": id, "text": reply}));
    let told = &told[0];
    assert_eq!((&told["errors"], told["commands"].as_array().unwrap().len()), (&json!(0), 2));
    let apply = json!({"session": id, "text": reply, "state": told["state"], "leaveOut": ["2=no"]});
    base.write("workspace/f.txt", "changed meanwhile\n");
    served.refuses("apply", &apply, 409, "changed-since-check");
    base.write("workspace/f.txt", "old\n");
    let (status, told) = served.call("apply", &apply);
    assert_eq!((status, &told[0]["results"][1]["code"]), (200, &json!("denied")), "{told}");
    assert_eq!((&*base.read("workspace/f.txt"), base.exists("workspace/h.txt")), ("new\n", false));
    let (_, told) = served.call("diff", &json!({"session": id, "turns": "1"}));
    assert!(told[0]["diff"].as_str().unwrap().contains("\n-old\n+new\n"), "{told}");
    assert_eq!(served.call("undo", &json!({"session": id})).0, 200);
    assert_eq!(base.read("workspace/f.txt"), "old\n");
}

#[test]
fn a_decision_is_about_the_question_that_was_seen() {
    let base = Project::new();
    base.begin_asking(ID);
    let served = Served::new(&base);
    let reply = "[RUN_COMMAND]\nrm -rf x\n[/RUN_COMMAND]\n";
    let (_, told) = served.call("apply", &json!({"text": reply}));
    let waiting = &told[0]["waiting"];
    assert_eq!(waiting["command"], "rm -rf x");
    let decision = |question: &Value| json!({"session": ID, "operation": waiting["operation"], "question": question});
    served.refuses("approve", &decision(&"0".repeat(32).into()), 409, "nothing-pending");
    assert_eq!(served.call("approve", &decision(&waiting["question"])).0, 200);
    served.refuses("approve", &decision(&waiting["question"]), 409, "nothing-pending");
}

#[test]
fn a_turn_is_stopped_and_the_server_goes_on() {
    let base = Project::with_session();
    let served = Served::new(&base);
    base.write(
        "inbox/r.txt",
        "[RUN_COMMAND]\ntouch begun; sleep 300\n[/RUN_COMMAND]\n[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n",
    );
    wait_until("the command", || base.exists("workspace/begun"));
    assert_eq!(served.call("stop", &json!({})).0, 200);
    let outbox = base.wait_for_outbox(2);
    assert!(outbox.contains("was not touched: the user stopped deaddrop"), "{outbox}");
    let reply = json!({"text": "[CREATE_FILE path=\"b\"]\nx\n[/CREATE_FILE]\n"});
    let (status, told) = served.call("apply", &reply);
    assert_eq!(status, 200, "{told}");
    assert_eq!((base.exists("workspace/a"), base.exists("workspace/b")), (false, true));
    served.daemon.stop();
}

#[test]
fn events_come_as_they_happen() {
    let base = Project::with_session();
    let served = Served::new(&base);
    let (host, token) = (&served.host, &served.token);
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "GET /api/events HTTP/1.1\r\nHost: ";
    write!(stream, "{head}{host}\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
    let mut seen = String::new();
    let mut wait_for = |what: &str| {
        while !seen.contains(what) {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0, "no {what} in {seen}");
            seen += &String::from_utf8_lossy(&part[..length]);
        }
    };
    wait_for("\"hello\"");
    let reply =
        "[RUN_COMMAND]\necho first; while [ ! -e go ]; do sleep 0.01; done\n[/RUN_COMMAND]\n";
    base.write("inbox/r.txt", reply);
    wait_for("\"event\":\"start\"");
    wait_for("\"event\":\"output\",\"text\":\"first\\n\"");
    base.write("workspace/go", "");
    wait_for("\"event\":\"end\"");
}

#[test]
fn whoever_is_slow_keeps_nobody_waiting_for_long() {
    let base = Project::with_session();
    let served = Served::new(&base);
    let (host, token) = (&served.host, &served.token);
    let connect = || TcpStream::connect(host).unwrap();
    let mut slow = connect();
    let head = "POST /api/check HTTP/1.1\r\nContent-Length: 100\r\nHost: ";
    write!(slow, "{head}{host}\r\nAuthorization: Bearer {token}\r\n\r\n{{").unwrap();
    // More than are served at once, and none of them asks for anything.
    let idle: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
    assert_eq!(served.call("status", &json!({})).0, 200);
    let mut answer = String::new();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = slow.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    drop(idle);
}

#[test]
fn an_address_that_others_can_reach_is_warned_of() {
    let base = Project::with_session();
    let daemon = base.start(&["serve", "--listen", "0.0.0.0:0"]);
    daemon.wait_for("Serving the page");
    assert!(daemon.said().contains("warning: other machines can reach this address"));
}

#[test]
fn only_one_serves_a_project() {
    let base = Project::with_session();
    let served = Served::new(&base);
    base.run(&["serve", "--listen", "127.0.0.1:0"]).with_code(4);
    base.run(&["watch"]).with_code(4);
    let other = Project::with_session();
    other.fails(&["serve", "--listen", &served.host], "address-in-use").with_code(1);
}
