//! What is refused, and what cannot be reached.

use std::io::Read;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::client::{Served, read, state_of_connection};
use super::{message, types};
use crate::support::{has_full_sandbox, wait_until};

#[test]
fn bad_input_gets_its_error_and_changes_nothing() {
    let served = Served::start();
    let space = served.space(&json!({}));
    let runs = format!("{space}/runs");
    let version = r#"{"protocolVersion":"2.0","operations":[]}"#;
    let many = message(&json!(vec![json!({ "type": "message", "content": "" }); 10_001]));
    let deep = format!(
        "{{\"protocolVersion\":\"1.0\",\"operations\":{}1{}}}",
        "[".repeat(500),
        "]".repeat(500)
    );
    for (method, path, body, status, code) in [
        ("POST", "/v1/spaces", "{", 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", "[]", 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"name":1}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"policy":"workspace"}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"policyOverrides":{"shel":{}}}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"policyOverrides":[]}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"env":{"A=":"b"}}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"ttlSeconds":0}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"ttlSeconds":9e18}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"ttlSeconds":9000000000000000000}"#, 400, "VALIDATION_ERROR"),
        ("POST", "/v1/spaces", r#"{"workspace":"/etc"}"#, 400, "VALIDATION_ERROR"),
        ("GET", "/v1/spaces?limit=x", "", 400, "VALIDATION_ERROR"),
        ("GET", "/v1/spaces/spc_000000000000", "", 404, "SPACE_NOT_FOUND"),
        ("GET", "/v1/spaces/", "", 404, "SPACE_NOT_FOUND"),
        ("DELETE", "/v1/spaces/spc_000000000000", "", 404, "SPACE_NOT_FOUND"),
        ("PATCH", "/v1/spaces/..", "{}", 404, "SPACE_NOT_FOUND"),
        ("POST", "/v1/spaces/spc_000000000000/runs", version, 404, "SPACE_NOT_FOUND"),
        ("POST", &format!("{space}/extend"), "{}", 400, "VALIDATION_ERROR"),
        ("POST", &format!("{space}/extend"), r#"{"duration":-1}"#, 400, "VALIDATION_ERROR"),
        ("POST", &runs, version, 400, "VALIDATION_ERROR"),
        ("POST", &runs, "{}", 400, "VALIDATION_ERROR"),
        ("POST", &runs, "", 400, "VALIDATION_ERROR"),
        ("POST", &runs, "\u{1}", 400, "VALIDATION_ERROR"),
        ("POST", &runs, &many, 400, "VALIDATION_ERROR"),
        ("GET", &format!("{runs}/run_00000000"), "", 404, "RUN_NOT_FOUND"),
        ("GET", &format!("{runs}/..%2F..%2Fspace"), "", 404, "RUN_NOT_FOUND"),
        ("POST", &format!("{runs}/run_00000000/cancel"), "", 404, "RUN_NOT_FOUND"),
        (
            "POST",
            &format!("{runs}/run_00000000/resume"),
            r#"{"approval":{"operationId":"a","decision":"approved"}}"#,
            404,
            "RUN_NOT_FOUND",
        ),
        ("POST", &format!("{runs}/run_00000000/resume"), "{}", 400, "VALIDATION_ERROR"),
        ("PUT", &format!("{space}/files/a"), "{}", 400, "VALIDATION_ERROR"),
        (
            "PUT",
            &format!("{space}/files/a"),
            r#"{"content":"!","encoding":"base64"}"#,
            400,
            "VALIDATION_ERROR",
        ),
        (
            "PUT",
            &format!("{space}/files/a"),
            r#"{"content":"","encoding":"latin1"}"#,
            400,
            "VALIDATION_ERROR",
        ),
        ("PUT", &format!("{space}/files/"), r#"{"content":""}"#, 400, "VALIDATION_ERROR"),
        ("GET", "/v1/nothing", "", 404, "NOT_FOUND"),
        ("PUT", "/v1/spaces", "", 405, "METHOD_NOT_ALLOWED"),
        ("GET", &format!("{space}/extend"), "", 405, "METHOD_NOT_ALLOWED"),
        ("POST", &format!("{space}/files/a"), "", 405, "METHOD_NOT_ALLOWED"),
    ] {
        let answer = served.ask(method, path, body);
        let error = answer.fails(status, code);
        if code == "VALIDATION_ERROR" {
            let issue = &error["details"]["issues"][0];
            assert!(issue["path"].is_string() && issue["message"].is_string(), "{error}");
        }
    }
    // A level too deep is a malformed operation, or no message; in either case nothing is done.
    assert!(matches!(served.ask("POST", &runs, &deep).status, 201 | 400));
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(17 << 20));
    let key = format!("Authorization: Bearer {}", served.key);
    let mut stream = std::net::TcpStream::connect(&served.address).unwrap();
    std::io::Write::write_all(
        &mut stream,
        format!("POST /v1/spaces HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{key}\r\nContent-Length: {}\r\n\r\n", served.address, long.len())
            .as_bytes(),
    )
    .unwrap();
    read(stream).fails(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(served.get("/v1/spaces").data(200).as_array().unwrap().len(), 1);
    assert_eq!(served.get(&format!("{space}/files/")).data(200)["files"], json!([]));
}

#[test]
fn nobody_is_answered_without_a_key_or_from_elsewhere() {
    let served = Served::start();
    let said = served.daemon.as_ref().unwrap().said();
    let token = said.split_once("\"token\":\"").unwrap().1.split('"').next().unwrap().to_owned();
    for header in [
        "X-Nothing: 1",
        &format!("Authorization: Bearer {token}"),
        "Authorization: Bearer as_live_xxxxxxxxxxxxxxxxxxxxxxxx",
        &format!("Authorization: bearer {}", served.key),
        &format!("Authorization: {}", served.key),
    ] {
        for path in ["/v1", "/v1/spaces", "/v1/nothing", "/v1/openapi.json"] {
            read(served.send("GET", path, &[header], "")).fails(401, "UNAUTHORIZED");
        }
    }
    served
        .ask_with("GET", "/v1/spaces", &["Origin: http://example.org"], "")
        .fails(403, "OTHER_ORIGIN");
    let key = format!("Authorization: Bearer {}", served.key);
    let elsewhere = served.send("GET", "/v1/spaces", &["Host: example.org", &key], "");
    read(elsewhere).fails(421, "WRONG_HOST");
    // A key of the API opens nothing of the page.
    let page = served.send("POST", "/api/status", &[&key], "{}");
    assert_eq!(read(page).status, 401);
    assert_eq!(served.get("/health").body["status"], "ok");
    assert_eq!(served.get("/health/ready").body["status"], "ready");
    let named = served.ask_with("GET", "/v1", &["X-Request-ID: mine"], "");
    assert!(named.head.contains("x-request-id: mine"), "{named:?}");
    assert_eq!(named.data(200)["version"], "v1");
}

#[test]
fn a_revoked_key_counts_no_more_and_no_key_is_stored() {
    let served = Served::start();
    let keys = &served.project;
    let other = keys.run(&["serve", "keys", "add", "other"]).ok().stdout.trim().to_owned();
    assert_eq!((other.len(), other.starts_with("as_live_")), (48, true));
    keys.run(&["serve", "keys", "add", "other"]).with_code(2);
    let stored = keys.read("sessions/api-keys.json");
    assert!(!stored.contains(&other) && !stored.contains(&other[8..]), "{stored}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &keys.at("sessions/api-keys.json").metadata().unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let listed = keys.run(&["serve", "keys", "list", "--json"]).ok().stdout;
    assert_eq!(listed.lines().count(), 2);
    assert!(listed.contains("\"other\"") && !listed.contains("as_live_"), "{listed}");
    served.get("/v1/spaces").data(200);
    keys.run(&["serve", "keys", "revoke", "test"]).ok();
    served.get("/v1/spaces").fails(401, "UNAUTHORIZED");
    keys.run(&["serve", "keys", "revoke", "test"]).with_code(2);
}

#[test]
fn no_path_leads_out_and_the_policy_is_asked() {
    let served = Served::start();
    let space = served.space(&json!({}));
    served.project.write("outside", "secret");
    let id = space.rsplit('/').next().unwrap();
    let workspace = served.project.at(&format!("sessions/spaces/{id}/workspace"));
    std::os::unix::fs::symlink(served.project.at("outside"), workspace.join("link")).unwrap();
    std::os::unix::fs::symlink(served.project.path(), workspace.join("folder")).unwrap();
    served.project.write(&format!("sessions/spaces/{id}/workspace/.env"), "TOKEN=1");
    for path in [
        "..%2Fspace.json",
        "../space.json",
        "a%2F..%2F..%2Fspace.json",
        "%2Fetc%2Fpasswd",
        "/etc/passwd",
        "a%00b",
        "%FF",
        "%2",
        "a%2F%2E%2E%2Fb",
        "link",
        "folder%2Foutside",
        "folder%2Fnew",
    ] {
        for (method, body) in [("GET", ""), ("PUT", r#"{"content":"x"}"#), ("DELETE", "")] {
            let target = format!("{space}/files/{path}");
            let target = if method == "GET" { target + "?encoding=utf-8" } else { target };
            let answer = served.ask(method, &target, body);
            // Of a link itself: it may be replaced, or removed.
            let is_link = path == "link" && method == "DELETE";
            assert!((400..500).contains(&answer.status) || is_link, "{method} {path}: {answer:?}");
        }
        let listed = served.get(&format!("{space}/files/{path}?recursive=true"));
        let files = listed.body["data"]["files"].as_array();
        assert!(files.is_none_or(Vec::is_empty), "{path}: {listed:?}");
    }
    assert_eq!(served.project.read("outside"), "secret");
    // Under `standard`, names that begin with a dot are blocked.
    for (method, body) in [("GET", ""), ("PUT", r#"{"content":"x"}"#), ("DELETE", "")] {
        let answer = served.ask(method, &format!("{space}/files/.env"), body);
        answer.fails(403, "POLICY_DENIED");
    }
    let listed = served.get(&format!("{space}/files/?recursive=true")).data(200);
    assert!(!listed.to_string().contains(".env"), "{listed}");
    let permissive = served.space(&json!({ "policy": "permissive" }));
    served.ask("PUT", &format!("{permissive}/files/.env"), r#"{"content":"x"}"#).data(200);
    // What the person would be asked about is no single file's.
    let hook =
        served.ask("PUT", &format!("{permissive}/files/.git%2Fhooks%2Fx"), r#"{"content":"x"}"#);
    hook.fails(403, "POLICY_DENIED");
    assert_eq!(served.get(&format!("{permissive}/runs")).data(200), json!([]));
    let restrictive = served.space(&json!({ "policy": "restrictive" }));
    served
        .ask("PUT", &format!("{restrictive}/files/a"), r#"{"content":"x"}"#)
        .fails(403, "POLICY_DENIED");
}

#[test]
fn commands_of_a_space_see_no_other_space_and_nothing_of_the_project() {
    if !has_full_sandbox() {
        return;
    }
    let project = crate::support::Project::new();
    project.write("workspace/mine", "of the project");
    project.write("shared/mine", "of the person");
    project.write("deaddrop.toml", "[sandbox]\nreadable = [\"shared\"]\nenv = [\"PERSONS=1\"]\n");
    project.run(&["config", "allow"]);
    let served = Served::of(project);
    let other = served.space(&json!({ "policy": "permissive" }));
    served.ask("PUT", &format!("{other}/files/mine"), r#"{"content":"of the other"}"#).data(200);
    let space = served.space(&json!({ "policy": "permissive" }));
    let at = |path: &str| served.project.at(path).display().to_string();
    let id = other.rsplit('/').next().unwrap();
    let seen = [
        at("workspace/mine"),
        at("shared/mine"),
        at("sessions/api-keys.json"),
        at("deaddrop.toml"),
        at(&format!("sessions/spaces/{id}/workspace/mine")),
        at(&format!("sessions/spaces/{}/space.json", space.rsplit('/').next().unwrap())),
    ];
    let command =
        format!("for f in {}; do cat $f; touch $f; done; echo \"[$PERSONS]\"", seen.join(" "));
    let run = served.run(&space, &json!([{ "type": "shell", "command": command }])).data(201);
    assert_eq!(run["events"][0]["stdout"], "[]\n", "{run}");
    assert_eq!(served.project.read("workspace/mine"), "of the project");
    // Nor is its run one of the other's.
    let run = run["id"].as_str().unwrap();
    served.get(&format!("{other}/runs/{run}")).fails(404, "RUN_NOT_FOUND");
}

#[test]
fn overrides_count_in_the_words_of_agent_spaces() {
    if !has_full_sandbox() {
        return;
    }
    let served = Served::start();
    let overrides = json!({ "shell": { "allowedCommands": ["echo", "cat"], "blockedPatterns": ["secret"], "approvalRequired": ["--force"] },
        "filesystem": { "maxFileSize": 3 } });
    let space = served.space(&json!({ "policyOverrides": overrides }));
    let shell = |command: &str| json!({ "type": "shell", "command": command });
    let run = served.run(
        &space,
        &json!([
            shell("echo a"), shell("echo my-secrets"), shell("echo a; ls"),
            { "type": "createFile", "path": "a", "content": "four" },
            shell("echo --force")
        ]),
    );
    assert_eq!(
        types(&run.data(200)),
        ["shell", "policyDenied", "policyDenied", "policyDenied", "approvalRequired"]
    );
}

#[test]
fn what_is_described_is_there() {
    let served = Served::start();
    let space = served.space(&json!({}));
    let described = served.get("/v1/openapi.json").body;
    assert!(described["openapi"].as_str().unwrap().starts_with("3."));
    let paths = described["paths"].as_object().unwrap();
    let mut methods = 0;
    for (path, item) in paths {
        let target = path.replace("/spaces/{spaceId}", space.strip_prefix("/v1").unwrap());
        let target = target.replace("{runId}", "run_00000000").replace("{path}", "none");
        for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            methods += 1;
            if method == "delete" && !path.contains("files") {
                continue;
            }
            let answer = served.ask(&method.to_uppercase(), &target, "");
            let code = answer.body["error"]["code"].as_str().unwrap_or_default();
            assert!(
                !["NOT_FOUND", "METHOD_NOT_ALLOWED"].contains(&code),
                "{method} {path}: {answer:?}"
            );
        }
    }
    assert_eq!(methods, 19);
    let unresolved: Vec<String> = references(&described)
        .into_iter()
        .filter(|name| described.pointer(name.trim_start_matches('#')).is_none())
        .collect();
    assert_eq!(unresolved, [""; 0]);
}

/// All references in a description.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_space_gets_no_network_that_the_person_has_not_allowed() {
    if !has_full_sandbox() {
        return;
    }
    let served = Served::start();
    let opens = json!({ "policyOverrides": { "network": { "enabled": true } } });
    served.ask("POST", "/v1/spaces", &opens.to_string()).fails(400, "VALIDATION_ERROR");
    let space = served.space(&json!({ "policy": "permissive" }));
    let command = "cat /proc/net/dev | grep -c :";
    let run = served.run(&space, &json!([{ "type": "shell", "command": command }])).data(201);
    assert_eq!(run["events"][0]["stdout"], "1\n", "only the loopback: {run}");
}

#[test]
fn what_is_noted_of_a_space_is_bounded() {
    let served = Served::start();
    let large = json!({ "metadata": { "x": "x".repeat(70_000) } });
    served.ask("POST", "/v1/spaces", &large.to_string()).fails(400, "VALIDATION_ERROR");
    let space = served.space(&json!({}));
    served.ask("PATCH", &space, &large.to_string()).fails(400, "VALIDATION_ERROR");
    assert_eq!(served.get("/v1/spaces").data(200).as_array().unwrap().len(), 1);
}

#[test]
fn so_many_spaces_and_no_more() {
    let served = Served::start();
    let spaces: Vec<String> = (0..100).map(|_| served.space(&json!({}))).collect();
    served.ask("POST", "/v1/spaces", "{}").fails(409, "QUOTA_EXCEEDED");
    served.ask("DELETE", &spaces[0], "").data(200);
    served.space(&json!({}));
}

#[test]
fn whoever_does_not_read_an_answer_is_cut_off() {
    let served = Served::start();
    let space = served.space(&json!({}));
    let file = format!("{space}/files/large");
    let id = space.rsplit('/').next().unwrap();
    // More than the system takes in for whoever does not read.
    served.project.write(&format!("sessions/spaces/{id}/workspace/large"), "x".repeat(9 << 20));
    let headers = [&*format!("Authorization: Bearer {}", served.key)];
    let mut unread = served.send("GET", &file, &headers, "");
    let port = unread.local_addr().unwrap().port();
    wait_until("the end of the connection", || {
        // It lasts ten seconds, and the system lists all connections for it.
        sleep(Duration::from_millis(50));
        state_of_connection(port).is_none()
    });
    let mut begun = Vec::new();
    let _ = unread.read_to_end(&mut begun);
    assert!((1..9 << 20).contains(&begun.len()), "{} bytes", begun.len());
    assert!(begun.starts_with(b"HTTP/1.1 200 "));
    served.get(&space).data(200);
}
