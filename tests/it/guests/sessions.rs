//! Sessions whose operations are carried out in a guest: a second deaddrop, in a folder of its own,
//! that serves over its standard input and output.

use serde_json::{Value, json};

use crate::support::{ID, Project, program, wait_until};

/// A host, and the folder that its guest serves.
pub struct Pair {
    pub host: Project,
    pub guest: Project,
}

impl Pair {
    pub fn new() -> Self {
        let pair = Self { host: Project::new(), guest: Project::new() };
        pair.reach(&[]);
        pair
    }

    /// With an open session [`ID`] at its first outbox, which tells of the guest.
    pub fn with_session() -> Self {
        let pair = Self::new();
        pair.host.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
        pair
    }

    /// Has the settings name the guest, reached through a script that begins with these lines.
    pub fn reach(&self, before: &[&str]) {
        let script = format!(
            "{}\nexec {} -C {} rpc\n",
            before.join("\n"),
            program().display(),
            self.guest.path().display()
        );
        let script = self.host.write("reach.sh", script);
        let settings = format!("[guest]\ncommand = {}\n", json!(["/bin/sh", script]));
        self.host.write("deaddrop.toml", settings);
    }

    fn local(&self) -> Vec<String> {
        self.host.names("workspace")
    }
}

#[test]
fn all_of_a_reply_happens_in_the_guest() {
    let pair = Pair::with_session();
    let outbox = pair.host.outbox(1);
    assert!(outbox.contains("(a guest: another machine than the user's)"), "{outbox}");
    assert!(outbox.contains("(empty workspace)"), "{outbox}");
    let turn = pair.host.turn(
        "[CREATE_FILE path=\"src/a.txt\"]\none\ntwo\n[/CREATE_FILE]\n\
         [EDIT_FILE path=\"src/a.txt\" start_line=\"2\" end_line=\"2\"]\nTWO\n[/EDIT_FILE]\n\
         [CREATE_FILE path=\"b\"]\nx\n[/CREATE_FILE]\n[DELETE_FILE path=\"b\"]\n\
         [RUN_COMMAND]\ncat src/a.txt; echo err >&2; touch made; exit 3\n[/RUN_COMMAND]\n\
         [READ_FILE path=\"src/a.txt\"]\n[READ_FILE path=\"missing\"]\n[MESSAGE]\nHello\n[/MESSAGE]\n",
    );
    assert_eq!(pair.guest.read("workspace/src/a.txt"), "one\nTWO\n");
    assert_eq!(pair.guest.names("workspace"), ["made", "src"]);
    assert_eq!(pair.local(), [""; 0]);
    let codes = ["ok", "ok", "ok", "ok", "exit-status", "ok", "file-not-found", "ok"];
    assert_eq!(turn.codes(), codes);
    assert_eq!(turn.json["results"][4]["output"], "one\nTWO\nerr");
    for told in
        ["exit code 3", "src/a.txt (8 bytes)", "--- src/a.txt ---\none\nTWO\n--- end src/a.txt ---"]
    {
        assert!(turn.outbox.contains(told), "{told}: {turn:?}");
    }
    let sandbox = pair.host.status()["sandbox"].as_str().unwrap().to_owned();
    assert!(sandbox.starts_with("the sandbox of the guest '/bin/sh "), "{sandbox}");
    let guest = pair.host.finding("guest");
    assert_eq!(guest["well"], true);
    assert!(guest["told"].as_str().unwrap().contains("deaddrop 0."), "{guest}");
    assert_eq!(pair.host.finding("  commands there")["well"], true);
}

#[test]
fn what_is_refused_here_is_refused_there() {
    let pair = Pair::with_session();
    pair.guest.write("secret", "s\n");
    pair.guest.sh("mkdir -p workspace && ln -s ../secret workspace/link && ln -s .. workspace/up");
    let codes = pair.host.codes(
        "[READ_FILE path=\"link\"]\n[CREATE_FILE path=\"up/x\"]\nx\n[/CREATE_FILE]\n\
         [CREATE_FILE path=\"../x\"]\nx\n[/CREATE_FILE]\n[DELETE_FILE path=\"up/secret\"]\n",
    );
    assert_eq!(codes, ["path-refused"; 4]);
    assert!(pair.guest.exists("secret") && !pair.guest.exists("x"));
}

#[test]
fn protected_names_in_the_guest_are_asked_about_here() {
    let pair = Pair::with_session();
    let reply = "[CREATE_FILE path=\".vscode/tasks.json\"]\n{\"evil\": 1}\n[/CREATE_FILE]\n[CREATE_FILE path=\"after\"]\nx\n[/CREATE_FILE]\n";
    let run = pair.host.run_with(&["apply", "-"], reply).with_code(3);
    assert!(run.stderr.contains("  becomes\n  | {\"evil\": 1}\n"), "{run:?}");
    assert_eq!(pair.guest.names("workspace"), [""; 0]);
    pair.host.run(&["approve"]).ok();
    assert_eq!(pair.guest.read("workspace/.vscode/tasks.json"), "{\"evil\": 1}\n");
    assert!(pair.guest.exists("workspace/after"));
    // It is another file by now: it is asked about again.
    let reply = "[CREATE_FILE path=\".vscode/tasks.json\"]\n{}\n[/CREATE_FILE]\n";
    pair.host.run_with(&["apply", "-"], reply).with_code(3);
    pair.guest.write("workspace/.vscode/tasks.json", "mine\n");
    let run = pair.host.run(&["approve"]).with_code(3);
    assert!(run.stderr.contains("It has changed since it was approved"), "{run:?}");
    assert!(pair.host.asked_why().starts_with("It has changed since it was approved: "));
    pair.host.run(&["deny"]).ok();
    assert_eq!(pair.guest.read("workspace/.vscode/tasks.json"), "mine\n");
}

#[test]
fn operations_and_policies_work_in_a_guest() {
    let pair = Pair::new();
    pair.guest.write("workspace/bytes", [0, 255]);
    let message = json!({"protocolVersion": "1.0", "operations": [
        {"type": "createFile", "path": "a", "content": "1\n"},
        {"type": "createFile", "path": "a", "content": "2\n"},
        {"type": "editFile", "path": "a", "edits": [{"oldContent": "1", "newContent": "one"}]},
        {"type": "readFile", "path": "a"},
        {"type": "readFile", "path": "bytes", "encoding": "base64"},
        {"type": "shell", "command": "cat a; echo err >&2", "env": {"X": "1"}},
        {"type": "shell", "command": "sudo true"}
    ]});
    let run =
        pair.host.run_with(&["ops", "run", "--policy", "permissive"], message.to_string()).ok();
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    let told = told["events"].as_array().unwrap();
    assert_eq!(told[0]["success"], true, "{told:?}");
    assert_eq!(told[1]["success"], false, "{told:?}");
    assert_eq!(told[3]["content"], "one\n", "{told:?}");
    assert_eq!(told[4]["content"], "AP8=", "{told:?}");
    assert_eq!((&told[5]["stdout"], &told[5]["stderr"]), (&json!("one\n"), &json!("err\n")));
    assert_eq!(told[6]["type"], "policyDenied", "{told:?}");
    assert_eq!(pair.local(), [""; 0]);
}

#[test]
fn a_guest_that_is_not_there_is_told_and_nothing_is_made() {
    let pair = Pair::new();
    pair.reach(&["echo 'no route to host' >&2; exit 255"]);
    let run = pair.host.fails(&["new", "--no-watch", "A task"], "guest-unavailable").with_code(1);
    assert!(run.message().contains("cannot be used"), "{run:?}");
    assert!(run.message().contains("no route to host"), "{run:?}");
    assert_eq!(pair.host.run(&["status"]).ok().stdout, "");
    let guest = pair.host.finding("guest");
    assert_eq!((&guest["well"], &guest["fault"]), (&false.into(), &true.into()), "{guest}");
    assert!(guest["told"].as_str().unwrap().contains("no route to host"), "{guest}");
    pair.host.run(&["doctor"]).with_code(1);
}

/// A reply whose commands leave a trace each.
pub const TRACES: &str = "[RUN_COMMAND]\necho 1 >> trace\n[/RUN_COMMAND]\n[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\necho 2 >> trace; while test ! -e go; do sleep 0.02; done; echo 3 >> trace\n[/RUN_COMMAND]\n[RUN_COMMAND]\necho 4 >> trace\n[/RUN_COMMAND]\n";

#[test]
fn a_guest_that_goes_away_and_comes_back_does_nothing_twice() {
    let pair = Pair::with_session();
    // Once it is down, it stays down.
    pair.reach(&["test ! -e down || { echo 'it is down' >&2; exit 1; }", "echo $$ > pid"]);
    let mut daemon = pair.host.serve(&["resume"]);
    pair.host.write("inbox/r.txt", TRACES);
    let trace = pair.guest.at("workspace/trace");
    let traced = || std::fs::read_to_string(&trace).unwrap_or_default();
    wait_until("the second command", || traced() == "1\n2\n");
    pair.host.write("down", "");
    pair.host.sh("kill -9 $(cat pid)");
    assert_eq!(daemon.wait().code(), Some(1));
    let said = daemon.said();
    assert!(said.contains("it is down") && said.contains("`deaddrop resume` continues"), "{said}");
    // It is tried again, and still is not there.
    let run = pair.host.fails(&["resume", "--no-watch"], "guest-unavailable").with_code(1);
    assert!(run.message().contains("it is down"), "{run:?}");
    assert!(!pair.host.exists(&format!("outbox/{ID}_seq0002.txt")));
    assert_eq!(pair.host.status()["withinTurn"], true);
    let told = pair.host.run(&["status", ID]).ok().stdout;
    assert!(told.contains("stopped within a turn: `deaddrop resume` continues"), "{told}");
    std::fs::remove_file(pair.host.at("down")).unwrap();
    let run = pair.host.run(&["resume", "--no-watch"]).ok();
    assert!(run.stderr.contains("interrupted (it may have run in part"), "{run:?}");
    assert_eq!(pair.host.last_codes(), ["ok", "ok", "lost", "ok"]);
    let outbox = pair.host.outbox(2);
    assert!(outbox.contains("is not run again; look at what it did"), "{outbox}");
    assert_eq!(traced(), "1\n2\n4\n");
    assert_eq!(pair.local(), [""; 0]);
}

#[test]
fn who_goes_on_waits_for_the_command_that_was_begun() {
    let pair = Pair::with_session();
    pair.reach(&["echo x >> tries"]);
    let mut daemon = pair.host.serve(&["resume"]);
    pair.host.write("inbox/r.txt", TRACES);
    let trace = pair.guest.at("workspace/trace");
    let traced = || std::fs::read_to_string(&trace).unwrap_or_default();
    wait_until("the second command", || traced() == "1\n2\n");
    daemon.signal("KILL");
    daemon.wait();
    let tries = || pair.host.read("tries").lines().count();
    let before = tries();
    // The guest serves its own project, and holds the lock of that until the command ends.
    let mut daemon = pair.host.start(&["resume", "--no-watch"]);
    wait_until("it is refused", || tries() > before + 1);
    assert_eq!(traced(), "1\n2\n");
    pair.guest.write("workspace/go", "");
    assert!(daemon.wait().success(), "{}", daemon.said());
    assert_eq!(traced(), "1\n2\n3\n4\n");
    assert_eq!(pair.host.last_codes(), ["ok"; 4]);
}

#[test]
fn who_waits_for_it_can_stop() {
    let pair = Pair::with_session();
    pair.reach(&["echo x >> tries"]);
    let mut daemon = pair.host.serve(&["resume"]);
    pair.host.write("inbox/r.txt", TRACES);
    wait_until("the second command", || {
        std::fs::read_to_string(pair.guest.at("workspace/trace")).is_ok_and(|t| t == "1\n2\n")
    });
    daemon.signal("KILL");
    daemon.wait();
    let before = pair.host.read("tries").lines().count();
    let mut daemon = pair.host.start(&["resume", "--no-watch"]);
    wait_until("it is refused", || pair.host.read("tries").lines().count() > before + 1);
    daemon.signal("INT");
    assert!(!daemon.wait().success());
    assert!(daemon.said().contains("`deaddrop resume` continues"), "{}", daemon.said());
    pair.guest.write("workspace/go", "");
}

#[test]
fn stopping_ends_the_command_in_the_guest() {
    let pair = Pair::with_session();
    let mut daemon = pair.host.serve(&["resume"]);
    pair.host.write("inbox/r.txt", TRACES);
    let trace = pair.guest.at("workspace/trace");
    let traced = || std::fs::read_to_string(&trace).unwrap_or_default();
    wait_until("the second command", || traced() == "1\n2\n");
    daemon.signal("INT");
    assert_eq!(daemon.wait().code(), Some(130), "{}", daemon.said());
    assert_eq!(pair.host.last_codes()[..3], ["ok", "ok", "interrupted"]);
    let outbox = pair.host.outbox(2);
    assert!(outbox.contains("interrupted by the user"), "{outbox}");
    pair.guest.write("workspace/go", "");
    assert_eq!(traced(), "1\n2\n");
}

#[test]
fn a_turn_goes_on_where_it_was_begun_or_not_at_all() {
    let pair = Pair::with_session();
    let reply = "[RUN_COMMAND]\necho 1 >> trace\n[/RUN_COMMAND]\n[CREATE_FILE path=\".envrc\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\necho 2 >> trace\n[/RUN_COMMAND]\n";
    pair.host.run_with(&["apply", "-"], reply).with_code(3);
    std::fs::remove_file(pair.host.at("deaddrop.toml")).unwrap();
    pair.host.run(&["approve"]).ok();
    assert_eq!(pair.host.last_codes(), ["ok", "not-run", "not-run"]);
    let outbox = pair.host.outbox(2);
    assert!(outbox.contains("the turn was begun in the guest"), "{outbox}");
    assert_eq!(pair.local(), [""; 0]);
    assert_eq!(pair.guest.read("workspace/trace"), "1\n");
    assert!(!pair.guest.exists("workspace/.envrc"));
}

#[test]
fn a_reply_is_checked_without_the_guest() {
    let pair = Pair::with_session();
    pair.reach(&["exit 1"]);
    let reply = "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n[CREATE_FILE path=\"../a\"]\nx\n[/CREATE_FILE]\n[READ_FILE path=\"a\"]\n";
    let told = pair.host.check(reply, 1);
    assert_eq!(told["errorsByKind"], json!({ "path-refused": 1 }));
    assert_eq!(told["files"], Value::Null, "a guest is not looked at");
    let would = told["commands"][0]["summary"].as_str().unwrap();
    assert!(
        would.contains("would write 'a' in the guest, which a preview does not ask"),
        "{would}"
    );
}

#[test]
fn a_guest_is_asked_anew_what_it_is() {
    let pair = Pair::with_session();
    let daemon = pair.host.serve(&["resume"]);
    pair.host.write("inbox/1.txt", "[MESSAGE]\nOne\n[/MESSAGE]\n");
    assert!(pair.host.wait_for_outbox(2).contains("Protected: .git, .gitmodules"));
    pair.guest.write("deaddrop.toml", "protected_names = [\"only-this\"]\n");
    pair.guest.agree_in(pair.host.state());
    pair.host.write("inbox/2.txt", "[MESSAGE]\nTwo\n[/MESSAGE]\n");
    let outbox = pair.host.wait_for_outbox(3);
    assert!(outbox.contains("Protected: only-this can be read"), "{outbox}");
    assert!(daemon.said().contains("Everything is executed in the guest '/bin/sh "));
    drop(daemon);
}

#[test]
fn parts_lists_searches_and_moves_are_the_guests() {
    let pair = Pair::with_session();
    pair.guest.write("workspace/src/a.txt", "one\nneedle\nthree\n");
    pair.guest.write("workspace/.gitignore", "out/\n");
    pair.guest.write("workspace/out/x", "needle\n");
    pair.guest.sh("ln -s ../../sessions workspace/src/state");
    let turn = pair.host.turn(
        "[LIST_FILES path=\"out\"]\n[SEARCH pattern=\"need+le\"]\n[SEARCH pattern=\"(\"]\n\
         [MOVE_FILE path=\"src/a.txt\" to=\"new/b.txt\"]\n[MOVE_FILE path=\"out\" to=\"new/out\"]\n\
         [MOVE_FILE path=\"new/b.txt\" to=\"new/out\"]\n[LIST_FILES path=\"src/state\"]\n\
         [READ_FILE path=\"new/b.txt\" start_line=\"2\" numbered=\"true\"]\n\
         [READ_FILE path=\"new/b.txt\" start_line=\"9\"]\n",
    );
    let codes = ["ok", "ok", "failed", "ok", "ok", "failed", "path-refused", "ok", "no-such-lines"];
    assert_eq!(turn.codes(), codes, "{turn:?}");
    for told in [
        "[OK] LIST_FILES: 1 file in 'out'\n  out/x (7 bytes)\n",
        "[OK] SEARCH: 1 line in 1 file matches 'need+le'\n  src/a.txt:2:needle\n",
        "[FAILED] SEARCH: The pattern is not a valid regular expression: unclosed group",
        "[OK] MOVE_FILE: Moved 'src/a.txt' to 'new/b.txt'\n",
        "[OK] MOVE_FILE: Moved 'out' to 'new/out' (1 file)\n",
        "to=\"new/out/b.txt\"",
        "outside workspace",
        "--- new/b.txt (lines 2-3 of 3) ---\n2| needle\n3| three\n--- end new/b.txt (lines 2-3 of 3) ---\n",
        "Invalid line range: 'new/b.txt' has 3 lines, so no line 9",
    ] {
        assert!(turn.outbox.contains(told), "{told}: {turn:?}");
    }
    assert_eq!(pair.guest.read("workspace/new/out/x"), "needle\n");
    assert!(!pair.guest.exists("workspace/src/a.txt"));
    assert_eq!(pair.local(), [""; 0]);
}

#[test]
fn what_a_policy_here_keeps_back_is_not_searched_nor_moved_in_the_guest() {
    let pair = Pair::new();
    let settings = pair.host.read("deaddrop.toml");
    let policy = "policy = \"mine\"\n[policies.mine]\npreset = \"permissive\"\nfiles.blocked = [\"src/secret/**\"]\n";
    pair.host.write("deaddrop.toml", policy.to_owned() + &settings);
    pair.host.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    pair.guest.write("workspace/src/secret/key", "needle\n");
    pair.guest.write("workspace/src/a", "needle\n");
    let turn = pair.host.turn("[SEARCH pattern=\"needle\"]\n[MOVE_FILE path=\"src\" to=\"b\"]\n[MOVE_FILE path=\"src/a\" to=\"src/secret/a\"]\n");
    assert_eq!(turn.codes(), ["ok", "denied", "denied"]);
    assert_eq!(turn.warnings(), ["search"]);
    for told in [
        "  src/a:1:needle\n",
        "Warning: 1 file not searched: the policy does not allow reading",
        "[FAILED] MOVE_FILE: Path 'src/secret/key' is blocked",
        "[FAILED] MOVE_FILE: Path 'src/secret/a' is blocked",
    ] {
        assert!(turn.outbox.contains(told), "{told}: {turn:?}");
    }
    assert!(!turn.outbox.contains("secret/key:1"), "{turn:?}");
    assert_eq!(pair.guest.names("workspace"), ["src"]);
}

#[test]
fn a_guest_is_asked_once_about_where_a_step_is_to_happen() {
    let pair = Pair::new();
    let asked = pair.host.at("asked");
    let (tee, program, guest) = (asked.display(), program().display(), pair.guest.path().display());
    pair.reach(&[&format!("tee -a '{tee}' | '{program}' -C '{guest}' rpc\nexit")]);
    pair.guest.write("workspace/a", "1\n2\n");
    pair.host.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    let looks = || {
        let asked = pair.host.read("asked");
        let looks = asked.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let looks = looks.filter(|line| line["method"] == "look");
        looks.map(|line| line["params"]["standing"] == true).collect::<Vec<bool>>()
    };
    pair.host.apply("[EDIT_FILE path=\"a\" start_line=\"2\" end_line=\"2\"]\ntwo\n[/EDIT_FILE]\n[LIST_FILES path=\".\"]\n[MOVE_FILE path=\"a\" to=\"b\"]\n");
    assert_eq!(pair.guest.read("workspace/b"), "1\ntwo\n");
    assert_eq!(looks(), [false, false], "one of an edit, one of a move");
    // What stands there is asked for only where somebody is to approve of it.
    let reply = "[CREATE_FILE path=\".envrc\"]\nx\n[/CREATE_FILE]\n";
    pair.host.run_with(&["apply", "-"], reply).with_code(3);
    assert_eq!(looks(), [false, false, false, true]);
    pair.host.run(&["approve"]).ok();
    assert_eq!(pair.guest.read("workspace/.envrc"), "x\n");
    assert_eq!(looks()[4..], [false, true], "it is another turn");
}
