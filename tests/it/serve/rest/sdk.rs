//! Each request that the SDK sends, and what it reads of the answer.

use serde_json::json;

use super::super::client::Served;
use super::{message, types};
use crate::support::has_full_sandbox;

#[test]
fn spaces_are_made_shown_listed_changed_extended_and_destroyed() {
    let served = Served::start();
    // `spaces.create()`, and with all that it takes.
    let made = served.ask("POST", "/v1/spaces", "{}").data(201);
    assert_eq!((&made["status"], &made["policy"]), (&json!("ready"), &json!("standard")));
    assert!(made["name"].as_str().unwrap().starts_with("Space spc_"), "{made}");
    assert!(made["createdAt"].as_str() < made["expiresAt"].as_str(), "{made}");
    let all = json!({ "name": "n", "description": "d", "policy": "permissive", "capabilities": ["a"],
        "policyOverrides": { "shell": { "timeout": 1000 } }, "env": { "A": "b" },
        "metadata": { "k": [1] }, "ttlSeconds": 60, "unknown": 1 });
    let space = served.space(&all);
    // `spaces.get(id)`, `space.refresh()`.
    let shown = served.get(&space).data(200);
    for field in ["name", "description", "policy", "capabilities", "metadata"] {
        assert_eq!(shown[field], all[field], "{shown}");
    }
    assert!(shown.get("env").is_none() && shown.get("policyOverrides").is_none(), "{shown}");
    // `spaces.list({status, limit})`: an array.
    let listed = served.get("/v1/spaces?status=ready&limit=1");
    assert_eq!(
        (listed.body["data"].as_array().unwrap().len(), &listed.body["meta"]["hasMore"]),
        (1, &json!(true))
    );
    assert_eq!(served.get("/v1/spaces?offset=1").data(200).as_array().unwrap().len(), 1);
    // `space.update(u)`: what is given replaces the space's data, so it is all of it.
    let updated = served.ask("PATCH", &space, r#"{"name":"m"}"#).data(200);
    assert_eq!((&updated["name"], &updated["description"]), (&json!("m"), &json!("d")));
    assert_eq!(updated["expiresAt"], shown["expiresAt"]);
    assert_eq!(served.ask("PATCH", &space, "{}").data(200), updated);
    // `space.extend({duration})`.
    let extended = served.ask("POST", &format!("{space}/extend"), r#"{"duration":60}"#).data(200);
    assert!(extended["expiresAt"].as_str() > shown["expiresAt"].as_str(), "{extended}");
    // `spaces.delete(id)`, `space.destroy()`: a body that is JSON, and the same again.
    let destroyed = served.ask("DELETE", &space, "").data(200);
    assert_eq!(destroyed["status"], "destroyed");
    assert_eq!(served.ask("DELETE", &space, "").data(200), destroyed);
    assert_eq!(served.get(&space).data(200)["status"], "destroyed");
    assert_eq!(served.get("/v1/spaces?status=destroyed").data(200).as_array().unwrap().len(), 1);
    served.run(&space, &json!([])).fails(404, "SPACE_NOT_FOUND");
    let id = space.rsplit('/').next().unwrap();
    assert_eq!(served.project.names(&format!("sessions/spaces/{id}")), ["space.json"]);
}

#[test]
fn files_are_written_read_listed_and_deleted_by_encoded_paths() {
    let served = Served::start();
    let space = served.space(&json!({}));
    let file = |rest: &str| format!("{space}/files/{rest}");
    // `space.files.write(p, c)`: the path is one component.
    let body = r#"{"content":"one\n","encoding":"utf-8"}"#;
    let written = served.ask("PUT", &file("src%2Fa%20%C3%BC%25.ts"), body).data(200);
    assert_eq!((&written["path"], &written["size"]), (&json!("src/a ü%.ts"), &json!(4)));
    // Raw slashes are the same.
    let read = served.get(&file("src/a%20%C3%BC%25.ts?encoding=utf-8")).data(200);
    assert_eq!((&read["content"], &read["size"]), (&json!("one\n"), &json!(4)));
    let binary = r#"{"content":"/wA=","encoding":"base64"}"#;
    served.ask("PUT", &file("b.bin"), binary).data(200);
    let read = served.get(&file("b.bin?encoding=base64")).data(200);
    assert_eq!((&read["content"], &read["size"]), (&json!("/wA="), &json!(2)));
    served.get(&file("b.bin?encoding=utf-8")).fails(400, "VALIDATION_ERROR");
    // `space.files.list({path, recursive})`: without a slash, and always with `recursive`.
    for (target, names) in [
        ("?recursive=true", vec!["b.bin", "src", "src/a ü%.ts"]),
        ("?recursive=false", vec!["b.bin", "src"]),
        ("/", vec!["b.bin", "src"]),
        ("/src?recursive=false", vec!["src/a ü%.ts"]),
        ("/src/", vec!["src/a ü%.ts"]),
        ("?path=src&recursive=true", vec!["src/a ü%.ts"]),
        ("/nothing?recursive=false", vec![]),
    ] {
        let listed = served.get(&format!("{space}/files{target}")).data(200);
        let files = listed["files"].as_array().unwrap();
        let paths: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
        assert_eq!(paths, names, "{target}");
        for file in files {
            assert!(["file", "directory"].contains(&file["type"].as_str().unwrap()), "{file}");
            assert!(file["size"].is_u64() && file["modifiedAt"].is_string(), "{file}");
        }
    }
    // `space.files.delete(p)`.
    let deleted = served.ask("DELETE", &file("b.bin"), "").data(200);
    assert_eq!(deleted, json!({ "path": "b.bin", "deleted": true }));
    served.get(&file("b.bin?encoding=utf-8")).fails(404, "FILE_NOT_FOUND");
    served.ask("DELETE", &file("b.bin"), "").fails(400, "DELETE_ERROR");
    served.get(&file("src?encoding=utf-8")).fails(404, "FILE_NOT_FOUND");
    // None of this is among the runs.
    assert_eq!(served.get(&format!("{space}/runs")).data(200), json!([]));
}

#[test]
fn a_run_tells_its_events_and_malformed_operations_stop_no_others() {
    let served = Served::start();
    let space = served.space(&json!({}));
    // `space.run({operations, context})`.
    let operations = json!([
        { "type": "createFile", "id": "c", "path": "a", "content": "x" },
        { "type": "nonsense", "id": "n" },
        { "type": "readFile", "id": "r", "path": "a" },
        { "type": "readFile", "id": "e", "path": ".env" }
    ]);
    let body = json!({ "protocolVersion": "1.0", "operations": operations, "context": { "files": ["a"] } });
    let run = served.ask("POST", &format!("{space}/runs"), &body.to_string()).data(201);
    assert_eq!(types(&run), ["createFile", "error", "readFile", "policyDenied"]);
    let ids: Vec<_> = run["events"].as_array().unwrap().iter().map(|e| &e["operationId"]).collect();
    assert_eq!(ids, ["c", "n", "r", "e"]);
    assert_eq!((&run["status"], run.get("pendingApproval")), (&json!("completed"), None));
    assert!(run["startedAt"].is_string() && run["completedAt"].is_string(), "{run}");
    // `space.runs.get(id)` and `.list({status, limit})`.
    let id = run["id"].as_str().unwrap();
    let shown = served.get(&format!("{space}/runs/{id}")).data(200);
    assert_eq!((&shown["events"], &shown["pendingApproval"]), (&run["events"], &json!(null)));
    let listed = served.get(&format!("{space}/runs?status=completed&limit=5")).data(200);
    assert_eq!((&listed[0]["id"], listed[0].get("events")), (&json!(id), None));
    assert_eq!(served.get(&format!("{space}/runs?status=running")).data(200), json!([]));
}

#[test]
fn an_approval_executes_once_and_continues_and_a_denial_continues() {
    if !has_full_sandbox() {
        return;
    }
    let served = Served::start();
    let space = served.space(&json!({ "policy": "permissive", "env": { "WHO": "space" } }));
    let operations = json!([
        { "type": "shell", "id": "first", "command": "echo $WHO $OWN >> log", "env": { "OWN": "1" } },
        { "type": "shell", "id": "rm-1", "command": "rm -r nothing; echo once >> log" },
        { "type": "shell", "id": "rm-2", "command": "rm -rf log" },
        { "type": "readFile", "id": "last", "path": "log" }
    ]);
    let run = served.run(&space, &operations).data(200);
    assert_eq!(types(&run), ["shell", "approvalRequired"]);
    assert_eq!(run["status"], "awaiting_approval");
    let pending = &run["pendingApproval"];
    assert_eq!(
        (&pending["operationId"], &pending["operationType"]),
        (&json!("rm-1"), &json!("shell"))
    );
    assert!(
        pending["reason"].is_string() && pending["details"]["command"].is_string(),
        "{pending}"
    );
    // What does not wait cannot be decided.
    served.decide(&space, &run, "rm-2", "approved").fails(400, "RESUME_ERROR");
    served.decide(&space, &run, "rm-1", "perhaps").fails(400, "VALIDATION_ERROR");
    // `run.approve({operationId})`: new events only.
    let next = served.decide(&space, &run, "rm-1", "approved").data(200);
    assert_eq!(types(&next), ["shell", "approvalRequired"]);
    assert_eq!(next["pendingApproval"]["operationId"], "rm-2");
    // The answer may have been lost: the same again, and nothing is done again.
    assert_eq!(served.decide(&space, &run, "rm-1", "approved").data(200), next);
    served.decide(&space, &run, "rm-1", "denied").fails(400, "RESUME_ERROR");
    // `run.deny({operationId})`.
    let end = served.decide(&space, &run, "rm-2", "denied").data(200);
    assert_eq!(
        (types(&end), &end["status"]),
        (vec!["policyDenied", "readFile"], &json!("completed"))
    );
    assert_eq!(end["events"][1]["content"], "space 1\nonce\n");
    let id = run["id"].as_str().unwrap();
    let shown = served.get(&format!("{space}/runs/{id}")).data(200);
    let all =
        ["shell", "approvalRequired", "shell", "approvalRequired", "policyDenied", "readFile"];
    assert_eq!(types(&shown), all);
}

#[test]
fn a_run_that_takes_long_is_found_and_cancelled_with_what_is_left_of_it() {
    if !has_full_sandbox() {
        return;
    }
    let served = Served::start();
    let space = served.space(&json!({ "policy": "permissive" }));
    let operations = json!([
        { "type": "createFile", "path": "begun", "content": "" },
        { "type": "shell", "id": "s", "command": "sleep 600", "timeout": 3_600_000 },
        { "type": "createFile", "id": "after", "path": "never", "content": "" }
    ]);
    let body = message(&operations);
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let first = served.send("POST", &format!("{space}/runs"), &headers, &body);
    // Another one waits for it.
    let is_running = || {
        let running = served.get(&format!("{space}/runs?status=running")).data(200);
        running.as_array().unwrap().first().cloned()
    };
    let mut found = None;
    crate::support::wait_until("the run", || {
        found = is_running();
        found.is_some()
    });
    let id = found.unwrap()["id"].as_str().unwrap().to_owned();
    let second = served.send(
        "POST",
        &format!("{space}/runs"),
        &headers,
        &message(&json!([
            { "type": "createFile", "id": "q", "path": "never", "content": "" }
        ])),
    );
    crate::support::wait_until("its first event", || {
        types(&served.get(&format!("{space}/runs/{id}")).data(200)) == ["createFile"]
    });
    crate::support::wait_until("the other one", || {
        served.get(&format!("{space}/runs?status=running")).data(200).as_array().unwrap().len() == 2
    });
    let queued = served.get(&format!("{space}/runs")).data(200);
    let queued = queued.as_array().unwrap().iter().find(|run| run["id"] != *id).unwrap().clone();
    // Files can be read meanwhile. `run.cancel()` sends no body.
    served.get(&format!("{space}/files/begun?encoding=utf-8")).data(200);
    for run in [queued["id"].as_str().unwrap(), &id] {
        let cancelled = served.ask("POST", &format!("{space}/runs/{run}/cancel"), "").data(200);
        assert_eq!(cancelled["status"], "cancelled");
        assert!(cancelled["cancelledAt"].is_string());
    }
    let first = super::super::client::read(first).data(201);
    assert_eq!((&first["id"], &first["status"]), (&json!(id), &json!("cancelled")));
    assert_eq!(types(&first), ["createFile", "shell", "error"]);
    assert_eq!(
        (&first["events"][1]["success"], &first["events"][2]["operationId"]),
        (&json!(false), &json!("after"))
    );
    let second = super::super::client::read(second).data(201);
    assert_eq!((types(&second), &second["status"]), (vec!["error"], &json!("cancelled")));
    served.get(&format!("{space}/files/never?encoding=utf-8")).fails(404, "FILE_NOT_FOUND");
    // Again is the same; what is over cannot be cancelled; what waits ends.
    assert_eq!(
        served.ask("POST", &format!("{space}/runs/{id}/cancel"), "").data(200)["status"],
        "cancelled"
    );
    let over = served.run(&space, &json!([])).data(201);
    let over = format!("{space}/runs/{}/cancel", over["id"].as_str().unwrap());
    served.ask("POST", &over, "").fails(409, "RUN_ALREADY_COMPLETED");
    let waits = served.run(&space, &json!([
        { "type": "shell", "id": "rm", "command": "rm -r begun" }, { "type": "message", "content": "x" }
    ]));
    let waits = waits.data(200)["id"].as_str().unwrap().to_owned();
    served.ask("POST", &format!("{space}/runs/{waits}/cancel"), "").data(200);
    let ended = served.get(&format!("{space}/runs/{waits}")).data(200);
    assert_eq!(
        (types(&ended), &ended["status"]),
        (vec!["approvalRequired", "error", "error"], &json!("cancelled"))
    );
}

#[test]
fn the_head_of_a_late_answer_comes_early() {
    use std::io::Read;
    if !has_full_sandbox() {
        return;
    }
    let served = Served::start();
    let space = served.space(&json!({ "policy": "permissive" }));
    let operations = json!([{ "type": "shell", "command": "until [ -e go ]; do sleep 0.1; done" , "timeout": 300_000 }]);
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let mut stream = served.send("POST", &format!("{space}/runs"), &headers, &message(&operations));
    // The head, and the first blank.
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n1\r\n \r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        seen.push(byte[0]);
    }
    assert!(seen.starts_with(b"HTTP/1.1 201 "), "{}", String::from_utf8_lossy(&seen));
    let id = space.rsplit('/').next().unwrap();
    served.project.write(&format!("sessions/spaces/{id}/workspace/go"), "");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    let json = &rest[rest.find('{').unwrap()..=rest.rfind('}').unwrap()];
    let body: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(body["data"]["status"], "completed");
}
