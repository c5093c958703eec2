//! What lasts: runs that were asked for twice, whose client went away, or in which the server was killed; and what ends.

use serde_json::json;

use super::super::client::{CLOSE_WAIT, Served, state_of_connection};
use super::{message, types};
use crate::support::{has_full_sandbox, wait_until};

#[test]
fn an_idempotency_key_stands_for_one_run() {
    let mut served = Served::start();
    let space = served.space(&json!({}));
    let (path, body) =
        (format!("{space}/runs"), message(&json!([{ "type": "message", "content": "a" }])));
    let with = |served: &Served, key: &str, body: &str| {
        served.ask_with("POST", &path, &[&format!("Idempotency-Key: {key}")], body)
    };
    let run = with(&served, "one", &body).data(201);
    assert_eq!(with(&served, "one", &body).data(201), run);
    let other = message(&json!([]));
    with(&served, "one", &other).fails(409, "IDEMPOTENCY_CONFLICT");
    assert_ne!(with(&served, "two", &body).data(201)["id"], run["id"]);
    // Without a key each is a run of its own.
    assert_ne!(
        served.ask("POST", &path, &body).data(201)["id"],
        served.ask("POST", &path, &body).data(201)["id"]
    );
    // It is of one space, and of one key of the API.
    let another = served.space(&json!({}));
    let elsewhere =
        served.ask_with("POST", &format!("{another}/runs"), &["Idempotency-Key: one"], &body);
    assert_ne!(elsewhere.data(201)["id"], run["id"]);
    let key = served.project.run(&["serve", "keys", "add", "other"]).ok().stdout;
    let mine = std::mem::replace(&mut served.key, key.trim().to_owned());
    assert_ne!(with(&served, "one", &body).data(201)["id"], run["id"]);
    served.key = mine;
    // It lasts over a restart.
    served.restart();
    assert_eq!(with(&served, "one", &body).data(201)["id"], run["id"]);
    with(&served, "one", &other).fails(409, "IDEMPOTENCY_CONFLICT");
    // Spaces too.
    let create = |body: &str| served.ask_with("POST", "/v1/spaces", &["Idempotency-Key: s"], body);
    assert_eq!(create("{}").data(201), create("{}").data(201));
    create(r#"{"name":"x"}"#).fails(409, "IDEMPOTENCY_CONFLICT");
    // And what makes one live longer.
    let extend = |served: &Served, key: &str, body: &str| {
        let path = format!("{space}/extend");
        served.ask_with("POST", &path, &[&format!("Idempotency-Key: {key}")], body)
    };
    let (minute, hour) = (r#"{"duration":60}"#, r#"{"duration":3600}"#);
    let longer = extend(&served, "e", minute).data(200)["expiresAt"].clone();
    let later = extend(&served, "f", minute).data(200)["expiresAt"].clone();
    assert_ne!(later, longer);
    served.restart();
    assert_eq!(extend(&served, "e", minute).data(200)["expiresAt"], longer);
    extend(&served, "e", hour).fails(409, "IDEMPOTENCY_CONFLICT");
    assert_eq!(served.get(&space).data(200)["expiresAt"], later);
}

#[test]
fn a_run_whose_client_has_gone_continues_and_the_same_request_gets_it() {
    if !has_full_sandbox() {
        return;
    }
    let served = Served::start();
    let space = served.space(&json!({ "policy": "permissive" }));
    let body = message(&json!([{ "type": "shell", "timeout": 300_000,
        "command": "echo begun >> log; until [ -e go ]; do sleep 0.1; done" }]));
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let runs = format!("{space}/runs");
    let lost = served.send("POST", &runs, &headers, &body);
    let log = format!("{space}/files/log?encoding=utf-8");
    wait_until("the beginning", || served.get(&log).status == 200);
    let id = served.get(&runs).data(200)[0]["id"].clone();
    let port = lost.local_addr().unwrap().port();
    drop(lost);
    wait_until("that the server knows that nobody is there", || {
        state_of_connection(port).as_deref() != Some(CLOSE_WAIT)
    });
    // Now the same request waits for the same run.
    let again = served.send("POST", &runs, &headers, &body);
    let space_id = space.rsplit('/').next().unwrap();
    served.project.write(&format!("sessions/spaces/{space_id}/workspace/go"), "");
    let again = super::super::client::read(again).data(201);
    assert_eq!((&again["id"], &again["status"]), (&id, &json!("completed")));
    assert_eq!(served.get(&log).data(200)["content"], "begun\n");
    // Now it was delivered, so the same request is another run.
    assert_ne!(served.ask("POST", &runs, &body).data(201)["id"], id);
}

#[test]
fn a_run_in_which_the_server_was_killed_is_finished_and_found() {
    if !has_full_sandbox() {
        return;
    }
    let mut served = Served::start();
    let space = served.space(&json!({ "policy": "permissive" }));
    let body = message(&json!([
        { "type": "createFile", "id": "c", "path": "a", "content": "x" },
        { "type": "shell", "id": "s", "command": "echo begun >> log; sleep 600", "timeout": 3_600_000 },
        { "type": "shell", "id": "t", "command": "until [ -e go ]; do sleep 0.1; done", "timeout": 300_000 },
        { "type": "readFile", "id": "r", "path": "log" }
    ]));
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let runs = format!("{space}/runs");
    let _lost = served.send("POST", &runs, &headers, &body);
    let log = format!("{space}/files/log?encoding=utf-8");
    wait_until("the beginning", || served.get(&log).status == 200);
    let id = served.get(&runs).data(200)[0]["id"].as_str().unwrap().to_owned();
    served.daemon.as_ref().unwrap().signal("KILL");
    served.restart();
    // It goes on, and is there.
    let shown = served.get(&format!("{runs}/{id}")).data(200);
    assert_eq!(shown["status"], "running", "{shown}");
    // A client that never got its answer gets this run.
    let again = served.send("POST", &runs, &headers, &body);
    let space_id = space.rsplit('/').next().unwrap();
    served.project.write(&format!("sessions/spaces/{space_id}/workspace/go"), "");
    let again = super::super::client::read(again).data(201);
    assert_eq!(again["id"], *id);
    assert_eq!(types(&again), ["createFile", "shell", "shell", "readFile"]);
    // What was interrupted is not run again.
    assert_eq!(
        (&again["events"][1]["success"], &again["events"][3]["content"]),
        (&json!(false), &json!("begun\n"))
    );
    assert_eq!(served.get(&format!("{runs}/{id}")).data(200)["status"], "completed");
}

#[test]
fn a_cancelled_run_goes_no_further_after_a_kill() {
    if !has_full_sandbox() {
        return;
    }
    let mut served = Served::start();
    let space = served.space(&json!({ "policy": "permissive" }));
    let body = message(&json!([
        { "type": "shell", "command": "echo begun >> log; sleep 600", "timeout": 3_600_000 },
        { "type": "createFile", "path": "never", "content": "" }
    ]));
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let runs = format!("{space}/runs");
    let _lost = served.send("POST", &runs, &headers, &body);
    wait_until("the beginning", || {
        served.get(&format!("{space}/files/log?encoding=utf-8")).status == 200
    });
    let id = served.get(&runs).data(200)[0]["id"].as_str().unwrap().to_owned();
    served.daemon.as_ref().unwrap().signal("KILL");
    // As if it had been killed between the record and the stop.
    let space_id = space.rsplit('/').next().unwrap();
    let note = format!("sessions/spaces/{space_id}/sessions/{id}.cancelled");
    served.project.write(&note, "2025-01-15T10:30:00Z");
    served.restart();
    wait_until("its end", || {
        served.get(&format!("{runs}/{id}")).data(200)["status"] == "cancelled"
    });
    let ended = served.get(&format!("{runs}/{id}")).data(200);
    assert_eq!(types(&ended), ["shell", "error"]);
    served.get(&format!("{space}/files/never?encoding=utf-8")).fails(404, "FILE_NOT_FOUND");
}

#[test]
fn a_space_lasts_over_a_restart_and_no_longer_than_it_may() {
    let mut served = Served::start();
    let (lasting, passing) = (served.space(&json!({})), served.space(&json!({ "ttlSeconds": 2 })));
    served.ask("PUT", &format!("{lasting}/files/a"), r#"{"content":"x"}"#).data(200);
    served.daemon.take().unwrap().stop();
    served.restart();
    assert_eq!(served.get(&format!("{lasting}/files/a?encoding=utf-8")).data(200)["content"], "x");
    wait_until("the end", || served.get(&passing).data(200)["status"] == "destroyed");
    served.run(&passing, &json!([])).fails(404, "SPACE_NOT_FOUND");
    served
        .ask("POST", &format!("{passing}/extend"), r#"{"duration":60}"#)
        .fails(404, "SPACE_NOT_FOUND");
    let id = passing.rsplit('/').next().unwrap();
    wait_until("all of it to go", || {
        served.project.names(&format!("sessions/spaces/{id}")) == ["space.json"]
    });
    assert_eq!(served.get(&lasting).data(200)["status"], "ready");
}
