//! Spaces on the project's own workspace.

use serde_json::json;

use super::super::client::Served;
use super::{message, types};
use crate::support::{Project, has_full_sandbox, wait_until};

#[test]
fn it_works_in_the_workspace_and_destroying_it_removes_its_record_only() {
    let project = Project::new();
    project.write("workspace/a", "mine");
    let served = Served::of(project);
    let space = served.space(&json!({ "workspace": "project" }));
    assert_eq!(served.get(&format!("{space}/files/a?encoding=utf-8")).data(200)["content"], "mine");
    served.ask("PUT", &format!("{space}/files/b"), r#"{"content":"x"}"#).data(200);
    assert_eq!(served.project.read("workspace/b"), "x");
    let run = served.run(&space, &json!([{ "type": "readFile", "path": "b" }])).data(201);
    assert_eq!(types(&run), ["readFile"]);
    let run = run["id"].as_str().unwrap();
    assert_eq!(served.get(&format!("{space}/runs/{run}")).data(200)["status"], "completed");
    // It is no run of another space on the same workspace.
    let other = served.space(&json!({ "workspace": "project" }));
    served.get(&format!("{other}/runs/{run}")).fails(404, "RUN_NOT_FOUND");
    assert_eq!(served.get(&format!("{other}/runs")).data(200), json!([]));
    // deaddrop's own files are out of reach.
    let key = served.get(&format!("{space}/files/..%2Fsessions%2Fapi-keys.json?encoding=utf-8"));
    key.fails(400, "VALIDATION_ERROR");
    served.ask("DELETE", &space, "").data(200);
    served.get(&format!("{space}/files/a?encoding=utf-8")).fails(404, "SPACE_NOT_FOUND");
    assert_eq!(served.project.names("workspace"), ["a", "b"]);
    assert!(served.project.exists(&format!("sessions/{run}.json")));
}

#[test]
fn its_policy_is_only_narrower_than_the_projects() {
    let project = Project::new();
    project.write(
        "deaddrop.toml",
        "policy = \"mine\"\n[policies.mine]\npreset = \"standard\"\nfiles.blocked = [\"secret\"]\n",
    );
    let served = Served::of(project);
    let create = |options: serde_json::Value| {
        let mut options = options;
        options["workspace"] = "project".into();
        served.ask("POST", "/v1/spaces", &options.to_string())
    };
    for wider in [
        json!({ "policy": "permissive" }),
        json!({ "policyOverrides": { "network": { "enabled": true } } }),
        json!({ "policyOverrides": { "shell": { "allowedCommands": ["make"] } } }),
        json!({ "policyOverrides": { "shell": { "allowedCommands": [] } } }),
        json!({ "policyOverrides": { "filesystem": { "maxFileSize": 99_999_999 } } }),
    ] {
        create(wider).fails(400, "VALIDATION_ERROR");
    }
    assert_eq!(served.get("/v1/spaces").data(200), json!([]));
    // A list that forbids is added to the project's.
    let narrower = json!({ "policyOverrides": { "filesystem": { "blockedPaths": ["x"], "readOnly": false } } });
    let made = create(narrower).data(201);
    let space = format!("/v1/spaces/{}", made["id"].as_str().unwrap());
    for path in ["secret", "x"] {
        let put = served.ask("PUT", &format!("{space}/files/{path}"), r#"{"content":""}"#);
        let error = put.fails(403, "POLICY_DENIED");
        assert!(error["details"]["reason"].is_string(), "{error}");
    }
    let read_only = json!({ "policyOverrides": { "filesystem": { "readOnly": true } } });
    let space = format!("/v1/spaces/{}", create(read_only).data(201)["id"].as_str().unwrap());
    served.ask("PUT", &format!("{space}/files/y"), r#"{"content":""}"#).fails(403, "POLICY_DENIED");
}

#[test]
fn only_the_person_approves() {
    if !has_full_sandbox() {
        return;
    }
    let project = Project::new();
    project.write("workspace/old/a", "");
    let served = Served::of(project);
    let space = served.space(&json!({ "workspace": "project" }));
    let ask = |id: &str| {
        served.run(&space, &json!([
            { "type": "shell", "id": id, "command": "rm -r old" }, { "type": "message", "content": "x" }
        ]))
    };
    let run = ask("rm-1").data(200);
    served.decide(&space, &run, "rm-1", "approved").fails(403, "FORBIDDEN");
    assert!(served.project.exists("workspace/old/a"));
    let stem = run["id"].as_str().unwrap();
    let approved = served.project.run(&["approve", "rm-1", "--session", stem]);
    assert!(matches!(approved.code, Some(0)), "{approved:?}");
    let next = served.decide(&space, &run, "rm-1", "approved").data(200);
    assert_eq!((types(&next), &next["status"]), (vec!["shell", "message"], &json!("completed")));
    assert!(!served.project.exists("workspace/old"));
    // What a client denies is denied.
    let run = ask("rm-2").data(200);
    let next = served.decide(&space, &run, "rm-2", "denied").data(200);
    assert_eq!(types(&next), ["policyDenied", "message"]);
}

#[test]
fn a_run_is_cancelled_alone_and_found_after_a_kill() {
    if !has_full_sandbox() {
        return;
    }
    let project = Project::new();
    project.write("deaddrop.toml", "policy = \"workspace\"\n");
    let mut served = Served::of(project);
    let space = served.space(&json!({ "workspace": "project" }));
    let runs = format!("{space}/runs");
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let body = |name: &str| {
        message(&json!([
            { "type": "shell", "timeout": 3_600_000, "command": format!("touch {name}; sleep 600") },
            { "type": "createFile", "path": format!("{name}-after"), "content": "" }
        ]))
    };
    let begun = served.send("POST", &runs, &headers, &body("one"));
    wait_until("the beginning", || served.project.exists("workspace/one"));
    let id = served.get(&runs).data(200)[0]["id"].as_str().unwrap().to_owned();
    served.ask("POST", &format!("{runs}/{id}/cancel"), "").data(200);
    let ended = super::super::client::read(begun).data(201);
    assert_eq!((types(&ended), &ended["status"]), (vec!["shell", "error"], &json!("cancelled")));
    assert!(!served.project.exists("workspace/one-after"));
    // Only that run was stopped.
    let _lost = served.send("POST", &runs, &headers, &body("two"));
    wait_until("the next", || served.project.exists("workspace/two"));
    let id = served.get(&runs).data(200)[0]["id"].as_str().unwrap().to_owned();
    served.daemon.as_ref().unwrap().signal("KILL");
    served.restart();
    let found = served.get(&format!("{runs}/{id}")).data(200);
    assert_eq!(
        (types(&found), &found["status"]),
        (vec!["shell", "createFile"], &json!("completed"))
    );
    assert!(served.project.exists("workspace/two-after"));
    // Whoever sends it again, since there was no answer, gets this run.
    let again = super::super::client::read(served.send("POST", &runs, &headers, &body("two")));
    assert_eq!(again.data(201)["id"], *id);
}

#[test]
fn what_a_destroyed_space_began_ends_with_it() {
    if !has_full_sandbox() {
        return;
    }
    let project = Project::new();
    project.write("deaddrop.toml", "policy = \"permissive\"\n");
    project.write("workspace/old/a", "");
    let served = Served::of(project);
    let space = served.space(&json!({ "workspace": "project" }));
    let runs = format!("{space}/runs");
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let asks = json!([{ "type": "shell", "id": "rm-1", "command": "rm -rf old" }]);
    assert_eq!(served.run(&space, &asks).data(200)["status"], "awaiting_approval");
    let body = |name: &str| {
        message(&json!([
            { "type": "createFile", "path": name, "content": "" },
            { "type": "shell", "timeout": 3_600_000, "command": "sleep 600" },
            { "type": "createFile", "path": format!("{name}-after"), "content": "" }
        ]))
    };
    let begun = served.send("POST", &runs, &headers, &body("one"));
    wait_until("the beginning", || served.project.exists("workspace/one"));
    let queued = served.send("POST", &runs, &headers, &body("two"));
    wait_until("the next", || {
        served.get(&runs).data(200).as_array().is_some_and(|all| all.len() == 3)
    });
    served.ask("DELETE", &space, "").data(200);
    for stream in [begun, queued] {
        assert_eq!(super::super::client::read(stream).data(201)["status"], "cancelled");
    }
    for name in ["one-after", "two", "two-after"] {
        assert!(!served.project.exists(&format!("workspace/{name}")), "{name}");
    }
    wait_until("the end of what waited", || served.project.run(&["approve"]).code == Some(5));
    assert!(served.project.exists("workspace/old/a"));
}
