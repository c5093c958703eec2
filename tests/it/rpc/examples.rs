//! Every example and every table of the specification, over standard streams and over a Unix socket.
//! The document itself is the test: what is sent and what is compared is read from it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use deaddrop::protocol::jsonrpc::{RpcError, TRUNCATED};
use serde_json::{Value, json};

use super::client::{Client, Server};
use super::document::{blocks, commented, examples, names, quoted, rows, section};
use crate::support::Project;

/// What the examples call it. Here it is a folder below it that is removed afterwards.
const TMP: &str = "/tmp";

/// Serves a root both ways, and has each client do the same.
fn both(root: &Path, act: impl Fn(&mut Client)) {
    let root = ["--root", root.to_str().unwrap(), "--sandbox", "off"];
    let base = Project::new();
    let (_server, mut client) = Server::stdio(&base, &root);
    act(&mut client);
    let base = Project::new();
    let socket = base.at("agent.sock");
    let _server = Server::unix(&base, &socket, &root);
    let mut client = Client::unix(&socket);
    client.send("CONNECT 52\n");
    assert_eq!(client.line().as_deref(), Some("OK 52"));
    act(&mut client);
}

/// A folder for the examples in place of `/tmp`, with what they expect there.
fn scene() -> tempfile::TempDir {
    let tmp = tempfile::Builder::new().prefix("deaddrop-examples-").tempdir_in(TMP).unwrap();
    fs::create_dir(tmp.path().join("scripts")).unwrap();
    tmp
}

/// The request and the response of an example.
#[track_caller]
fn example(title: &str) -> (String, Value) {
    let [request, response] = blocks(section(title))[..] else { panic!("{title}") };
    (request.to_owned(), serde_json::from_str(response).unwrap())
}

#[track_caller]
fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn has_python() -> bool {
    let run = std::process::Command::new("python3").args(["-c", ""]).output();
    let has = run.is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("SKIPPED: the example in Python, since there is no python3 that runs");
    }
    has
}

#[test]
fn every_example_is_answered_as_it_says() {
    let titles = examples();
    assert_eq!(titles.len(), 7);
    let python = has_python();
    let tmp = scene();
    both(Path::new("/"), |client| {
        for title in &titles {
            // This one is of a folder: see below.
            if *title == "### Execute Shell Command" || (!python && title.contains("Python")) {
                continue;
            }
            let (request, mut expected) = example(title);
            let request = request.replace(TMP, tmp.path().to_str().unwrap());
            client.send(&request);
            let answer = client.answer();
            if title.ends_with("Read File") {
                // This machine has another name; that it is all of the file is compared.
                let Ok(name) = fs::read_to_string("/etc/hostname") else {
                    eprintln!("SKIPPED: this machine has no /etc/hostname");
                    assert_eq!(answer["error"]["code"], -32603);
                    continue;
                };
                expected["result"]["content"] = name.into();
            }
            let entries = expected.pointer_mut("/result/entries").and_then(Value::as_array_mut);
            if let Some(entries) = entries {
                // The example is in no order; answers are sorted by name.
                entries.sort_by_key(|entry| entry["name"].as_str().unwrap().to_owned());
            }
            assert_eq!(answer, expected, "{title}");
        }
        assert_eq!(fs::read_to_string(tmp.path().join("test.txt")).unwrap(), "Hello, World!");
        fs::remove_file(tmp.path().join("test.txt")).unwrap();
    });
}

#[test]
fn the_example_of_a_command_is_answered_as_far_as_it_is_written_out() {
    let (request, expected) = example("### Execute Shell Command");
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    both(root.path(), |client| {
        client.send(&request);
        let answer = client.answer();
        let stdout = answer["result"]["stdout"].as_str().unwrap();
        let written = expected["result"]["stdout"].as_str().unwrap().strip_suffix("...").unwrap();
        // "total 8" and "drwxr-xr-x 2 root root 4096": the numbers are the file system's, and the
        // names those of whoever runs the test. What comes after the dots is not compared.
        let mut found = stdout.split_whitespace();
        for word in written.split_whitespace() {
            let found = found.next().unwrap();
            match word {
                "root" => assert!(!found.is_empty()),
                _ if word.parse::<u64>().is_ok() => assert!(found.parse::<u64>().is_ok()),
                _ => assert_eq!(found, word, "{stdout}"),
            }
        }
        let of_lines = |text: &str| text.lines().take(2).map(str::len).collect::<Vec<_>>();
        assert_eq!(of_lines(stdout)[0], of_lines(written)[0]);
        let mut rest = answer;
        rest["result"]["stdout"] = expected["result"]["stdout"].clone();
        assert_eq!(rest, expected);
    });
}

#[test]
fn the_lines_of_the_schemas_are_lines_here() {
    let root = tempfile::tempdir().unwrap();
    let [wire] = blocks(section("## Wire Format"))[..] else { panic!("one line") };
    let [schema] = blocks(section("## Request Schema"))[..] else { panic!("one request") };
    // The dots stand for the parameters.
    let schema = commented(&schema.replace("{...}", "{\"cmd\": \"true\"}"));
    let [success] = blocks(section("### Success Response"))[..] else { panic!("one") };
    let success: Value = serde_json::from_str(&success.replace("{...}", "{}")).unwrap();
    let [error] = blocks(section("### Error Response"))[..] else { panic!("one") };
    let mut error: Value = serde_json::from_str(error).unwrap();
    // Left out where it would be null.
    assert_eq!(error["error"].as_object_mut().unwrap().remove("data"), Some(Value::Null));
    both(root.path(), |client| {
        client.send(wire.trim_end().replace("\\n", "\n"));
        assert_eq!(client.answer()["result"], json!({ "pong": true }));
        client.send(format!("{schema}\n"));
        let answer = client.answer();
        assert_eq!(keys(&answer), keys(&success));
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&success["jsonrpc"], &success["id"]));
        client.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"unknown\"}\n");
        assert_eq!(client.answer(), error);
    });
    for row in rows(section("## Request Schema")) {
        let (name, required) = (quoted(row[0])[0], row[2] == "Yes");
        let mut request = schema.clone();
        request["method"] = "ping".into();
        request.as_object_mut().unwrap().remove(name).unwrap();
        both(root.path(), |client| {
            // Without an id it is a notification, which is not answered: the next line is.
            client.send(format!("{request}\n{}", super::client::ping(9)));
            let answer = client.answer();
            match name {
                "id" => assert_eq!(answer["id"], 9),
                _ if required => assert_eq!(answer["error"]["code"], RpcError::REQUEST, "{name}"),
                _ => assert_eq!(answer["result"], json!({ "pong": true }), "{name}"),
            }
        });
    }
}

#[test]
fn every_method_has_the_parameters_and_results_of_the_table() {
    let root = tempfile::tempdir().unwrap();
    let table = rows(section("## Methods Reference"));
    assert_eq!(table.len(), 6);
    let [ran] = blocks(section("### ExecResult"))[..] else { panic!("one") };
    let [entry] = blocks(section("### FileEntry"))[..] else { panic!("one") };
    let (ran, entry) = (commented(ran), commented(entry));
    let value = |name: &str| match name {
        "cmd" | "code" => "echo out; echo err >&2",
        "lang" => "sh",
        "path" => "folder/file",
        "content" => "text",
        other => panic!("no parameter {other}"),
    };
    both(root.path(), |client| {
        client.ask(0, "write_file", &json!({ "path": "folder/file", "content": "text" }));
        for row in &table {
            let (method, wanted) = (quoted(row[0])[0], names(quoted(row[1])[0]));
            let mut params: Value =
                wanted.iter().map(|name| ((*name).to_owned(), Value::from(value(name)))).collect();
            if wanted.is_empty() {
                params = json!({});
            }
            if method == "list_dir" {
                params["path"] = "folder".into();
            }
            let answer = client.ask(1, method, &params);
            let result = &answer["result"];
            match quoted(row[2])[0] {
                "ExecResult" => assert_eq!(keys(result), keys(&ran), "{answer}"),
                fields => assert_eq!(keys(result), names(fields).into_iter().collect(), "{answer}"),
            }
            if method == "list_dir" {
                let listed = &result["entries"][0];
                assert_eq!(keys(listed), keys(&entry));
                assert_eq!(listed, &json!({ "name": "file", "is_dir": false, "size": 4 }));
            }
            for name in wanted {
                let mut without = params.clone();
                without.as_object_mut().unwrap().remove(name);
                let mut wrong = params.clone();
                wrong[name] = json!({ "of": ["another type"] });
                for params in [without, wrong] {
                    let fault = &client.ask(2, method, &params)["error"];
                    assert_eq!(fault["code"], RpcError::PARAMS, "{method} {params}");
                }
            }
        }
    });
}

#[test]
fn every_error_code_of_the_table_is_met() {
    let root = tempfile::tempdir().unwrap();
    both(root.path(), |client| {
        for row in rows(section("## Error Codes")) {
            let line = match row[1] {
                "Parse error" => "{\"jsonrpc\":\"2.0\",\"id\":1,",
                "Invalid request" => "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
                "Method not found" => "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"Ping\"}",
                "Invalid params" => "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\"}",
                "Internal error" => {
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"read_file\",\"params\":{\"path\":\"nothing\"}}"
                }
                other => panic!("no line for {other}"),
            };
            client.send(format!("{line}\n"));
            let answer = client.answer();
            assert_eq!(keys(&answer["error"]), ["code", "message"].into());
            assert_eq!(answer["error"]["code"].to_string(), quoted(row[0])[0], "{}", row[1]);
        }
    });
}

#[test]
fn every_language_of_the_table_has_its_interpreter_in_any_case() {
    // One that tells how it was called, in place of each.
    let base = Project::new();
    let table = rows(section("## Language Mapping"));
    assert_eq!(table.len(), 4);
    for row in &table {
        let program = quoted(row[1])[0].split(' ').next().unwrap();
        base.program(&format!("bin/{program}"), "#!/bin/sh\necho \"${0##*/}\" \"$@\"\n");
    }
    let path = format!("{}:{}", base.at("bin").display(), std::env::var("PATH").unwrap());
    let arguments = ["--sandbox", "off"];
    let mut command = super::client::rpc(&base, &arguments);
    command.env("PATH", path);
    let (_server, mut client) = Server::piped(&mut command);
    for row in &table {
        for language in quoted(row[0]) {
            for language in [language.to_owned(), language.to_uppercase()] {
                let params = json!({ "lang": language, "code": "the 'code'" });
                let answer = client.ask(1, "exec_code", &params);
                let said = format!("{} the 'code'\n", quoted(row[1])[0]);
                let told = json!({ "exit_code": 0, "stdout": said, "stderr": "" });
                assert_eq!(answer["result"], told, "{language}");
            }
        }
    }
    let [unsupported] = blocks(section("## Language Mapping"))[..] else { panic!("one") };
    let unsupported: Value = serde_json::from_str(unsupported).unwrap();
    let answer = client.ask(1, "exec_code", &json!({ "lang": "cobol", "code": "x" }));
    assert_eq!(answer["result"], unsupported);
}

#[test]
fn the_mark_of_a_cut_stream_is_the_documents() {
    let told = section("### ExecResult");
    let mark = TRUNCATED.replace('\n', "\\n");
    assert!(told.contains(&format!("the message `{mark}` is appended")), "{mark}");
}
