//! Sessions whose operations are carried out by a plain bouvet-agent, which has six methods and no
//! keys: the lesser mode.

mod agent;

use std::fs;

use serde_json::{Value, json};

use crate::support::{Base, ID, wait_until};
use agent::{Agent, Mood};

/// A host, and the folder in which its guest's agent begins.
struct Pair {
    host: Base,
    guest: Base,
    agent: Agent,
}

impl Pair {
    /// The workspace is this folder of the guest's; None for the one where its agent begins.
    fn new(root: Option<&str>) -> Self {
        let (host, guest) = (Base::new(), Base::new());
        let agent = Agent::new(guest.path(), &host.at("agent.sock"));
        let root = root.map(|root| guest.at(root));
        let root = root.map(|root| {
            fs::create_dir(&root).unwrap();
            format!("root = {}\n", json!(root))
        });
        let settings = format!("[guest]\nsocket = \"agent.sock\"\n{}", root.unwrap_or_default());
        host.write("deaddrop.toml", settings);
        Self { host, guest, agent }
    }

    /// With an open session [`ID`] at its first outbox, which tells of the guest.
    fn with_session() -> Self {
        let pair = Self::new(None);
        pair.begin();
        pair
    }

    fn begin(&self) {
        self.host.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    }

    /// The events of a message.
    fn events(&self, operations: &Value) -> Vec<Value> {
        let message = json!({"protocolVersion": "1.0", "operations": operations});
        let run = self.host.run_with(&["run", "--policy", "permissive"], message.to_string());
        let told: Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {run:?}"));
        told["events"].as_array().unwrap().clone()
    }

    #[track_caller]
    fn is_untouched_here(&self) {
        assert_eq!(self.host.names("workspace"), [""; 0]);
    }
}

#[track_caller]
fn tells(text: &str, all: &[&str]) {
    for told in all {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn all_of_a_reply_happens_in_the_guest() {
    // Its name is hard on shells.
    let pair = Pair::new(Some("it's; $HOME"));
    let at = |path: &str| format!("it's; $HOME/{path}");
    pair.guest.write(&at("old/kept"), "1\n");
    pair.guest.write(&at("old/x.log"), "");
    pair.guest.write(&at(".gitignore"), "*.log\n");
    pair.guest.write(&at(".git/config"), "");
    pair.begin();
    let outbox = pair.host.outbox(1);
    tells(
        &outbox,
        &[
            "(a guest: another machine than the user's)",
            "Text files only, writes are not atomic, nothing can be undone",
            "old/kept (2 bytes)",
            "network",
        ],
    );
    assert!(!outbox.contains("x.log") && !outbox.contains(".git/config"), "{outbox}");
    let outbox = pair.host.apply(
        "[CREATE_FILE path=\"src/deep/a.txt\"]\none\ntwo\n[/CREATE_FILE]\n\
         [EDIT_FILE path=\"src/deep/a.txt\" start_line=\"2\" end_line=\"2\"]\nTWO\n[/EDIT_FILE]\n\
         [CREATE_FILE path=\"-b\"]\nx\n[/CREATE_FILE]\n[DELETE_FILE path=\"-b\"]\n\
         [DELETE_FILE path=\"src\"]\n[DELETE_FILE path=\"none\"]\n\
         [RUN_COMMAND]\ncat src/deep/a.txt; echo \"it's err\" >&2; cat; touch made; exit 3\n[/RUN_COMMAND]\n\
         [RUN_COMMAND]\nkill -9 $$\n[/RUN_COMMAND]\n\
         [READ_FILE path=\"src/deep/a.txt\"]\n[READ_FILE path=\"missing\"]\n[READ_FILE path=\"src\"]\n[MESSAGE]\nHello\n[/MESSAGE]\n",
    );
    assert_eq!(pair.guest.read(&at("src/deep/a.txt")), "one\nTWO\n");
    assert_eq!(pair.guest.names("it's; $HOME"), [".git", ".gitignore", "made", "old", "src"]);
    pair.is_untouched_here();
    tells(
        &outbox,
        &[
            "[OK] CREATE_FILE",
            "[OK] EDIT_FILE",
            "[OK] DELETE_FILE",
            "'src' is a folder, not a file",
            "File 'none' not found",
            "(exit code 3)",
            "one\n  TWO\n  it's err\n",
            "(exit code 137)",
            "File 'missing' not found; the guest's agent says: No such file",
            "--- src/deep/a.txt ---\none\nTWO\n--- end src/deep/a.txt ---",
        ],
    );
    let told = pair.host.run(&["doctor"]).stdout;
    tells(&told, &["ok  guest", "an agent that is no deaddrop on ", "it's; $HOME"]);
}

#[test]
fn protected_names_in_the_guest_are_asked_about_here() {
    let pair = Pair::with_session();
    assert!(pair.host.outbox(1).contains(".git, "), "{}", pair.host.outbox(1));
    let reply = "[CREATE_FILE path=\".vscode/tasks.json\"]\n{\"evil\": 1}\n[/CREATE_FILE]\n[CREATE_FILE path=\"after\"]\nx\n[/CREATE_FILE]\n";
    pair.host.run_with(&["apply", "-"], reply).with_code(3);
    assert_eq!(pair.guest.names("."), [""; 0]);
    pair.host.run(&["approve"]).ok();
    assert_eq!(pair.guest.read(".vscode/tasks.json"), "{\"evil\": 1}\n");
    assert!(pair.guest.exists("after"));
    // It is another file by now: it is asked about again.
    let reply = "[CREATE_FILE path=\".vscode/tasks.json\"]\n{}\n[/CREATE_FILE]\n";
    pair.host.run_with(&["apply", "-"], reply).with_code(3);
    pair.guest.write(".vscode/tasks.json", "mine\n");
    let run = pair.host.run(&["approve"]).with_code(3);
    assert!(run.stderr.contains("It has changed since it was approved"), "{run:?}");
    assert!(pair.host.asked_why().starts_with("It has changed since it was approved: "));
    pair.host.run(&["deny"]).ok();
    assert_eq!(pair.guest.read(".vscode/tasks.json"), "mine\n");
}

#[test]
fn operations_work_as_far_as_text_goes() {
    let pair = Pair::new(None);
    pair.guest.write("bytes", [b'a', 255]);
    pair.guest.write("odd", "a\u{fffd}b\n");
    let events = pair.events(&json!([
        {"type": "createFile", "path": "a", "content": "1\n"},
        {"type": "createFile", "path": "a", "content": "2\n"},
        {"type": "editFile", "path": "a", "edits": [{"oldContent": "1", "newContent": "one"}]},
        {"type": "readFile", "path": "a", "encoding": "base64"},
        {"type": "readFile", "path": "bytes", "encoding": "base64"},
        {"type": "createFile", "path": "b", "content": "AP8=", "encoding": "base64"},
        {"type": "editFile", "path": "odd", "edits": [{"oldContent": "b", "newContent": "c"}]},
        {"type": "createFile", "path": "bytes", "content": "text\n", "overwrite": true},
        {"type": "shell", "command": "cat a; echo \"$X\" >&2; pwd", "env": {"X": "it's\n$HOME"}},
        {"type": "shell", "command": "true", "env": {"a b": "1"}},
        {"type": "shell", "command": "true", "cwd": "none"},
        {"type": "shell", "command": "sudo true"},
        {"type": "deleteFile", "path": "bytes"}
    ]));
    let success: Vec<bool> = events.iter().map(|event| event["success"] == true).collect();
    let told =
        [true, false, true, true, false, false, false, true, true, false, false, false, true];
    assert_eq!(success, told, "{events:#?}");
    assert_eq!(events[3]["content"], "b25lCg==");
    for (n, why) in [
        (4, "this guest gives text files only"),
        (5, "this guest takes text files only"),
        (6, "holds U+FFFD"),
        (9, "is no name of a variable that a shell takes"),
        (10, "No folder 'none' in the workspace"),
    ] {
        assert!(events[n].to_string().contains(why), "{why}: {}", events[n]);
    }
    assert_eq!(events[8]["stderr"], "it's\n$HOME\n", "{}", events[8]);
    assert_eq!(events[11]["type"], "policyDenied");
    assert_eq!(pair.guest.names("."), ["a", "odd"]);
    assert_eq!(pair.guest.read("odd"), "a\u{fffd}b\n");
    pair.is_untouched_here();
}

#[test]
fn a_command_has_its_time_where_the_guest_can_tell_it() {
    let pair = Pair::new(None);
    let limit = std::process::Command::new("timeout").args(["-k", "1", "1", "true"]).status();
    if !limit.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: what needs `timeout -k`, which this machine does not have");
        return;
    }
    let command = "echo begun; while :; do sleep 0.05; done";
    let events = pair.events(&json!([{"type": "shell", "command": command, "timeout": 3000}]));
    assert_eq!(events[0]["stdout"], "begun\n", "{events:?}");
    assert_eq!(events[0]["timedOut"], true, "{events:?}");
    let error = events[0]["error"].as_str().unwrap();
    assert!(error.contains("ended by the guest's `timeout`"), "{events:?}");
}

/// A reply whose commands leave a trace each.
const TRACES: &str = "[RUN_COMMAND]\necho 1 >> trace\n[/RUN_COMMAND]\n[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\necho 2 >> trace; touch half; while test ! -e go; do sleep 0.02; done; echo 3 >> trace; touch gone\n[/RUN_COMMAND]\n[RUN_COMMAND]\necho 4 >> trace\n[/RUN_COMMAND]\n";

#[test]
fn a_guest_that_dies_in_a_command_runs_nothing_twice() {
    let pair = Pair::with_session();
    let mut daemon = pair.host.serve(&["resume"]);
    // The first command is not the one.
    pair.host.write("inbox/q.txt", "[RUN_COMMAND]\necho 0 >> trace\n[/RUN_COMMAND]\n");
    pair.host.wait_for_outbox(2);
    pair.host.write("inbox/r.txt", TRACES.replacen("echo 1 >> trace", "true", 1));
    wait_until("half", || pair.guest.exists("half"));
    pair.guest.write("go", "");
    pair.host.wait_for_outbox(3);
    fs::remove_file(pair.guest.at("half")).unwrap();
    fs::remove_file(pair.guest.at("go")).unwrap();
    fs::remove_file(pair.guest.at("gone")).unwrap();
    assert_eq!(pair.guest.read("trace"), "0\n2\n3\n4\n");
    pair.agent.is(Mood::DiesInCommand);
    let command = TRACES.replacen("[RUN_COMMAND]\necho 1 >> trace\n[/RUN_COMMAND]\n", "", 1);
    pair.host.write("inbox/s.txt", command);
    assert_eq!(daemon.wait().code(), Some(1));
    let said = daemon.said();
    tells(&said, &["is gone", "`deaddrop resume` goes on"]);
    // It is tried again, and still is not there.
    pair.host.run(&["resume", "--no-watch"]).with_code(1);
    assert!(!pair.host.exists(&format!("outbox/{ID}_seq0004.txt")));
    pair.guest.write("go", "");
    wait_until("the end of the command", || pair.guest.exists("gone"));
    pair.agent.is(Mood::Well);
    let run = pair.host.run(&["resume", "--no-watch"]).ok();
    assert!(run.stderr.contains("interrupted (it may have run in part"), "{run:?}");
    tells(&pair.host.outbox(4), &["is not run again; look at what it did"]);
    let codes = pair.host.last_codes();
    let how_often = |code: &str| codes.iter().filter(|found| *found == code).count();
    assert_eq!([how_often("ok"), how_often("lost")], [2, 1], "{codes:?}");
    assert_eq!(pair.guest.read("trace"), "0\n2\n3\n4\n2\n3\n4\n");
    pair.is_untouched_here();
}

#[test]
fn a_guest_that_dies_in_a_write_tells_by_the_file_what_became_of_it() {
    for (mood, written, marks) in [
        (Mood::DiesAfterWrite, 1, ["[OK] CREATE_FILE", "[OK] CREATE_FILE"]),
        (Mood::DiesBeforeWrite, 2, ["[OK] CREATE_FILE", "[OK] CREATE_FILE"]),
        (
            Mood::DiesWithinWrite,
            1,
            ["[FAILED] CREATE_FILE", "neither what it was before nor what it was to become"],
        ),
    ] {
        let pair = Pair::with_session();
        pair.guest.write("a", "old\n");
        let reply = "[CREATE_FILE path=\"a\"]\nnew\n[/CREATE_FILE]\n[RUN_COMMAND]\necho 1 >> trace\n[/RUN_COMMAND]\n";
        pair.agent.is(mood);
        let run = pair.host.fails_with(&["apply", "-"], reply, "guest-unavailable").with_code(1);
        assert!(run.message().contains("`deaddrop resume` goes on"), "{run:?}");
        pair.agent.is(Mood::Well);
        pair.host.run(&["resume", "--no-watch"]).ok();
        let outbox = pair.host.outbox(2);
        tells(&outbox, &marks);
        assert_eq!(pair.agent.was_asked("write_file", "a"), written, "{mood:?}");
        assert_eq!(pair.guest.read("trace"), "1\n");
        let left = if mood == Mood::DiesWithinWrite { "n" } else { "new\n" };
        assert_eq!(pair.guest.read("a"), left);
        pair.is_untouched_here();
    }
}

#[test]
fn what_an_agent_babbles_is_not_believed() {
    let pair = Pair::with_session();
    pair.agent.is(Mood::Babbles);
    let reply = "[EDIT_FILE path=\"a\" start_line=\"1\" end_line=\"1\"]\nx\n[/EDIT_FILE]\n";
    let run = pair.host.fails_with(&["apply", "-"], reply, "guest-unavailable").with_code(1);
    assert!(run.message().contains("its result is not as it should be"), "{run:?}");
    pair.guest.write("a", "1\n");
    pair.agent.is(Mood::Lies);
    pair.host.run(&["resume", "--no-watch"]).ok();
    let outbox = pair.host.outbox(2);
    tells(&outbox, &["[OK] EDIT_FILE", "  a (2 bytes)", "  big (1099511627776 bytes)"]);
    for name in ["../up", "a/b", "nul"] {
        assert!(!outbox.contains(name), "{name}: {outbox}");
    }
    assert_eq!(pair.agent.was_asked("list_dir", ".."), 0);
}

#[test]
fn a_root_that_is_not_there_is_told() {
    let pair = Pair::new(Some("w"));
    fs::remove_dir(pair.guest.at("w")).unwrap();
    let run = pair.host.run(&["new", "--no-watch", "A task"]).with_code(1);
    tells(&run.stderr, &["no command can be begun in '", "/w' (root of [guest])"]);
    assert_eq!(pair.host.run(&["sessions"]).ok().stdout, "");
}

#[test]
fn what_a_lost_guest_did_is_not_told_from_the_files_here() {
    let pair = Pair::with_session();
    // As if it had been done: here, where nothing was to be done.
    pair.host.write("workspace/a", "new\n");
    pair.agent.is(Mood::DiesBeforeWrite);
    let reply =
        "[CREATE_FILE path=\"a\"]\nnew\n[/CREATE_FILE]\n[RUN_COMMAND]\ntouch b\n[/RUN_COMMAND]\n";
    pair.host.run_with(&["apply", "-"], reply).with_code(1);
    fs::remove_file(pair.host.at("deaddrop.toml")).unwrap();
    pair.host.run(&["resume", "--no-watch"]).ok();
    let outbox = pair.host.outbox(2);
    tells(&outbox, &["what became of 'a' is not known", "the turn was begun in the guest"]);
    assert!(!outbox.contains("[OK]"), "{outbox}");
    assert_eq!(pair.host.names("workspace"), ["a"]);
}

#[test]
fn what_a_plain_agent_cannot_do_names_the_command_that_does() {
    let pair = Pair::with_session();
    pair.guest.sh("mkdir -p src/deep src/node_modules/x .git && touch src/node_modules/x/y && printf 'one\\ntwo\\n' > src/a && touch src/deep/b .git/x && echo deep/ > src/.gitignore");
    let outbox = pair.host.apply(
        "[LIST_FILES path=\"src\"]\n[LIST_FILES path=\"src/a\"]\n[LIST_FILES path=\"none\"]\n[LIST_FILES]\n[LIST_FILES path=\"src/node_modules\"]\n\
         [READ_FILE path=\"src/a\" start_line=\"2\"]\n[READ_FILE path=\"src/a\" start_line=\"3\"]\n\
         [SEARCH pattern=\"it's\" path=\"src\"]\n[MOVE_FILE path=\"src/a\" to=\"b\"]\n",
    );
    tells(
        &outbox,
        &[
            "[OK] LIST_FILES: 3 files in 'src'\n  Warning: not looked into, since each folder costs a question to this guest: src/node_modules/; LIST_FILES such a folder by itself\n  src/.gitignore (6 bytes)\n  src/a (8 bytes)\n  src/deep/b (0 bytes)\n",
            "[OK] LIST_FILES: 1 file in 'src/a'\n  src/a (8 bytes)\n",
            "[FAILED] LIST_FILES: Folder (or file) 'none' not found",
            "[OK] LIST_FILES: 3 files in the workspace\n",
            "a question to this guest: .git/, src/node_modules/; LIST_FILES",
            "[OK] LIST_FILES: 1 file in 'src/node_modules'\n  src/node_modules/x/y (0 bytes)\n",
            "--- src/a (line 2 of 2) ---\ntwo\n--- end src/a (line 2 of 2) ---\n",
            "Invalid line range: 'src/a' has 2 lines, so no line 3",
            "[FAILED] SEARCH: this guest is a plain agent, which cannot search files by itself: use RUN_COMMAND with `grep -rnE -e 'it'\\''s' -- 'src'`",
            "[FAILED] MOVE_FILE: this guest is a plain agent, which cannot move files by itself: use RUN_COMMAND with `mv -nT -- 'src/a' 'b'`",
        ],
    );
    assert!(pair.guest.exists("src/a"));
    // Itself once, and what is in it.
    assert_eq!(pair.agent.was_asked("list_dir", "src/node_modules"), 2);
}

#[test]
fn an_edit_by_lines_means_the_file_that_was_seen() {
    let pair = Pair::with_session();
    pair.guest.write("a", "1\n2\n");
    pair.host.apply("[READ_FILE path=\"a\"]\n");
    pair.guest.write("a", "0\n1\n2\n");
    let edit = |line: u8| {
        format!(
            "[EDIT_FILE path=\"a\" start_line=\"{line}\" end_line=\"{line}\"]\ntwo\n[/EDIT_FILE]\n"
        )
    };
    let outbox = pair.host.apply(&edit(2));
    tells(&outbox, &["[FAILED] EDIT_FILE: 'a' has changed since", "\n  1| 0\n  2| 1\n  3| 2\n"]);
    assert_eq!(pair.guest.read("a"), "0\n1\n2\n");
    tells(&pair.host.apply(&edit(3)), &["[OK] EDIT_FILE", "\n  1| 0\n  2| 1\n  3| two\n"]);
    let search = "<<<<<<< SEARCH\ntwo \n=======\nthree\n>>>>>>> REPLACE\n";
    let outbox = pair.host.apply(&format!("[EDIT_FILE path=\"a\"]\n{search}[/EDIT_FILE]\n"));
    tells(&outbox, &["(1 replacement)\n  Warning: the SEARCH text was found at line 3 only"]);
    assert_eq!(pair.guest.read("a"), "0\n1\nthree\n");
}
