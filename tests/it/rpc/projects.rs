//! A root that is, holds or lies in the project of somebody else: what of that is out of reach,
//! and who may write in its workspace.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, Server, rpc};
use crate::guests::steps;
use crate::scene::{Scene, Way};
use crate::support::{ID, Project, Run};

/// What is to be hidden of a project, from there.
const OWN: [&str; 6] = [
    "deaddrop.toml",
    "sessions/journal",
    "sessions",
    "drop/reply.txt",
    "drop",
    "approvals/yes.json",
];

/// A project with a session, where replies are dropped elsewhere than is usual.
fn furnished() -> Project {
    let base = Project::with_session();
    base.write("deaddrop.toml", "inbox_dir = \"drop\"\n");
    base.write("sessions/journal", "secret");
    base.write("workspace/file", "shown");
    base
}

fn text(path: &Path) -> String {
    path.canonicalize().unwrap().into_os_string().into_string().unwrap()
}

/// A server of that root from a project of its own, and a client of it.
fn serve(own: &Project, root: &Path, arguments: &[&str]) -> (Server, Client) {
    Server::stdio(own, &[&["--root", &text(root)], arguments].concat())
}

/// Asserts that nothing of a project is in reach below `at`, by any method that has a path.
#[track_caller]
fn assert_hidden(client: &mut Client, base: &Project, at: &str) {
    for own in OWN {
        let path = format!("{at}{own}");
        // Each is a step of its own: what was once refused is known.
        let key = own.replace(['/', '.'], "-");
        let step = serde_json::to_value(steps::create(&key, &path, "forged")).unwrap();
        for (method, params) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "forged" })),
            ("list_dir", json!({ "path": path })),
            ("read", json!({ "path": path, "limit": 10 })),
            ("step", step),
        ] {
            let answer = client.ask(1, method, &params);
            let result = &answer["result"];
            let failed = [&result["failed"], &result["detail"]["failed"]];
            let is_refused = answer["error"].is_object() || failed.iter().any(|f| f.is_object());
            assert!(is_refused, "{method} {path}: {answer}");
            assert!(!answer.to_string().contains("secret"), "{answer}");
        }
    }
    let walked = client.ask(2, "walk", &json!({}));
    let files = walked["result"]["files"].as_array().unwrap();
    let names: Vec<&str> = files.iter().map(|file| file[0].as_str().unwrap()).collect();
    assert!(names.contains(&&*format!("{at}workspace/file")), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with(&format!("{at}sessions"))), "{names:?}");
    assert_eq!(base.read("sessions/journal"), "secret");
    assert_eq!(base.read("deaddrop.toml"), "inbox_dir = \"drop\"\n");
    assert!(base.names("drop").is_empty() && base.names("approvals").len() == 2);
}

fn listed(client: &mut Client, path: &str) -> Vec<String> {
    let answer = client.ask(3, "list_dir", &json!({ "path": path }));
    let entries = answer["result"]["entries"].as_array().unwrap_or_else(|| panic!("{answer}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn nothing_of_a_base_directory_is_in_reach_that_is_the_root_or_lies_below_it() {
    let (own, base) = (Project::new(), furnished());
    let (_server, mut client) = serve(&own, base.path(), &["--sandbox", "off"]);
    assert_hidden(&mut client, &base, "");
    // What is called like a folder of state and is none is shown.
    assert_eq!(listed(&mut client, ""), ["inbox", "workspace"]);
    client.ask(4, "write_file", &json!({ "path": "workspace/made", "content": "x" }));
    assert_eq!(base.read("workspace/made"), "x");

    let above = tempfile::tempdir().unwrap();
    let base = furnished();
    fs::create_dir(above.path().join("home")).unwrap();
    fs::rename(base.path(), above.path().join("home/me")).unwrap();
    std::os::unix::fs::symlink(above.path().join("home/me"), base.path()).unwrap();
    let (server, mut client) = serve(&own, above.path(), &["--sandbox", "off"]);
    assert_hidden(&mut client, &base, "home/me/");
    drop((server, client));
    // Settings that make no sense are told, and what is usually state is hidden.
    base.write("deaddrop.toml", "inbox_dir = 5\n");
    base.write("drop/reply.txt", "");
    let (server, mut client) = serve(&own, above.path(), &["--sandbox", "off"]);
    assert_eq!(listed(&mut client, "home/me"), ["drop", "workspace"]);
    assert!(server.said().contains("home/me cannot be read"), "{}", server.said());
    fs::remove_file(base.path()).unwrap();
}

#[test]
fn commands_see_nothing_of_a_base_directory_in_the_root() {
    // Landlock alone cannot keep part of a folder from them, so there they are refused.
    if Scene::new(Way::AsItIs).is_none() {
        return;
    }
    let (own, base) = (Project::new(), furnished());
    let (_server, mut client) = serve(&own, base.path(), &[]);
    let cmd = "cat deaddrop.toml sessions/* approvals/*; ls drop sessions; cat workspace/file; echo forged > drop/reply.txt; echo forged >> sessions/journal; rm -rf sessions deaddrop.toml";
    let ran = &client.ask(1, "exec", &json!({ "cmd": cmd }))["result"];
    let out = ran["stdout"].as_str().unwrap();
    assert!(out.contains("shown") && !out.contains("secret") && !out.contains(ID), "{ran}");
    assert!(base.names("drop").is_empty());
    assert_eq!(base.read("sessions/journal"), "secret");
    assert_eq!(base.read("deaddrop.toml"), "inbox_dir = \"drop\"\n");
}

#[test]
fn a_root_that_is_state_of_a_base_directory_is_refused() {
    let (own, base) = (Project::new(), furnished());
    fs::create_dir_all(base.at("drop/deep")).unwrap();
    for at in ["sessions", "drop", "drop/deep", "outbox", "approvals/processed"] {
        let root = text(&base.at(at));
        let run = Run::of(&mut rpc(&own, &["--root", &root, "--json"]), "").with_code(2);
        assert_eq!(run.error()["code"], "usage", "{at}: {run:?}");
        let told = run.message();
        assert!(told.contains("keeps its own files; choose another folder"), "{at}: {told}");
        assert!(told.contains(&text(base.path())), "{at}: {told}");
    }
    base.write("deaddrop.toml", "inbox_dir = 5\n");
    let root = text(&base.at("workspace"));
    let run = Run::of(&mut rpc(&own, &["--root", &root]), "").with_code(2);
    assert!(run.stderr.contains("deaddrop.toml:1") && run.stderr.contains("inbox_dir"), "{run:?}");
    assert_eq!(own.names("."), [".state"; 0]);
}

/// What keeps a server from that root.
fn refusal(own: &Project, root: &Path) -> String {
    Run::of(&mut rpc(own, &["--root", &text(root)]), "").with_code(4).stderr
}

#[test]
fn the_workspace_of_another_base_directory_is_written_by_one() {
    let (own, base) = (Project::new(), Project::with_session());
    fs::create_dir_all(base.at("workspace/sub")).unwrap();
    std::os::unix::fs::symlink(base.at("workspace"), own.at("link")).unwrap();
    let roots = [base.at("workspace"), base.at("workspace/sub")];
    let path = text(base.path());

    let daemon = base.serve(&["watch"]);
    for root in &roots {
        let told = refusal(&own, root);
        assert!(told.contains(&format!("(process {}) is serving {path}", daemon.pid())), "{told}");
    }
    // Looking from above hinders nobody.
    let (server, mut client) = serve(&own, base.path(), &[]);
    client.pings(1);
    drop((server, client));
    daemon.stop();

    let (server, mut client) = Server::stdio(&base, &[]);
    client.pings(1);
    for root in &roots {
        let told = refusal(&own, root);
        assert!(
            told.contains(&format!("(process {}) is at work in {path}", server.pid())),
            "{told}"
        );
    }
    drop((server, client));

    let before = (base.names("."), base.names("sessions"), base.names("inbox"));
    for root in &roots {
        let (server, mut client) = serve(&own, root, &[]);
        client.pings(1);
        // Who was there before has left its name, and nobody waits for it.
        for arguments in [&["rpc"][..], &["watch"], &["resume", ID]] {
            let told = base.fails(arguments, "locked").with_code(4).message();
            assert!(told.contains("another deaddrop is at work in"), "{told}");
        }
        refusal(&Project::new(), &roots[0]);
        let doctor = base.run(&["doctor", "--json"]).stdout;
        let found = doctor.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = found.filter(|finding| finding["what"] == "lock").collect::<Vec<_>>();
        assert!(found[0].to_string().contains("of another project"), "{found:?}");
        drop((server, client));
    }
    assert_eq!((base.names("."), base.names("sessions"), base.names("inbox")), before);
    // Its own project's, too, where the root lies in that.
    let (_server, mut client) = Server::stdio(&base, &["--root", "workspace/sub"]);
    client.pings(1);
    base.run(&["rpc"]).with_code(4);
    // A folder beside it is nobody's.
    let beside = base.at("beside");
    fs::create_dir(&beside).unwrap();
    let (_other, mut client) = serve(&own, &beside, &[]);
    client.pings(1);
}

#[test]
fn a_workspace_elsewhere_is_found_by_the_link_that_leads_to_it() {
    let (own, base) = (Project::new(), Project::with_session());
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir(base.at("workspace")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), base.at("workspace")).unwrap();
    let _daemon = base.serve(&["watch"]);
    let root = base.at("workspace");
    let root = ["--root", root.to_str().unwrap(), "--json"];
    let run = Run::of(&mut rpc(&own, &root), "").with_code(4);
    assert_eq!(run.error()["code"], "locked");
    assert!(run.message().contains("is serving"), "{run:?}");
}

#[test]
fn who_is_at_work_is_told_as_it_is() {
    let base = Project::with_session();
    let apply = || base.run_with(&["apply", "--session", ID, "-"], "[DONE]\n").with_code(4).stderr;
    let (server, mut client) = Server::stdio(&base, &[]);
    client.pings(1);
    let told = apply();
    assert!(told.contains(&format!("(process {}) is at work in", server.pid())), "{told}");
    assert!(told.contains("it takes no replies from the inbox"), "{told}");
    assert!(!told.contains("save replies"), "{told}");
    drop((server, client));
    let daemon = base.serve(&["watch"]);
    let told = base.run(&["watch"]).with_code(4).stderr;
    assert!(told.contains(&format!("(process {}) is serving", daemon.pid())), "{told}");
    assert!(told.contains("or save replies in its inbox"), "{told}");
}
