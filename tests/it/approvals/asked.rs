//! Turns that stop to ask: `approve`, `deny`, and what waits meanwhile.

use crate::support::{ID, Project, wait_until};

pub const OTHER: &str = "00ff00ff";
/// A reply that asks in its middle.
pub const ASKS: &str = "\
[CREATE_FILE path=\"before\"]\nx\n[/CREATE_FILE]
[RUN_COMMAND]\nrm -r temp\n[/RUN_COMMAND]
[CREATE_FILE path=\"after\"]\nx\n[/CREATE_FILE]\n";

/// A project with a session that asks before it removes `workspace/temp`.
pub fn scene() -> Project {
    let base = Project::new();
    base.begin_asking(ID);
    base.write("workspace/temp/a", "x\n");
    base
}

#[test]
fn a_turn_that_asks_stops_there_until_it_is_approved() {
    let base = scene();
    let run = base.run_with(&["apply", "-"], ASKS).with_code(3);
    assert_eq!(run.stdout, "", "there is no next outbox: {run:?}");
    let id = base.waiting(ID)["operation"].as_str().unwrap().to_owned();
    for told in [
        "Session a1b2c3d4 waits for your decision about op-",
        ": RUN_COMMAND\n  | rm -r temp\n",
        "Why:    Destructive command requires approval (shell.approvalRequired)\n",
        "`deaddrop approve`, or `deaddrop deny --reason TEXT`\n",
    ] {
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    assert!(base.exists("workspace/before") && !base.exists("workspace/after"));
    assert!(base.exists("workspace/temp/a") && !base.exists("outbox/a1b2c3d4_seq0002.txt"));

    let status = base.run(&["status", ID]).ok().stdout;
    assert!(status.contains("a1b2c3d4: waits for you\n") && status.contains("rm -r temp"));
    assert!(status.contains("Created 'before'"), "{status}");
    assert!(base.run(&["status"]).ok().stdout.contains("a1b2c3d4  waits for you  "));
    assert_eq!(base.json(&["status"])["waiting"]["operation"], id.as_str());
    let doctor = base.finding("decisions");
    let told = doctor["told"].as_str().unwrap();
    assert!(told.starts_with("1 waits for your decision (a1b2c3d4): "), "{doctor}");
    assert_eq!((&doctor["well"], &doctor["fault"]), (&false.into(), &false.into()), "{doctor}");
    let waiting = base.waiting(ID);
    assert_eq!(waiting["command"], "rm -r temp");
    assert_eq!(waiting["kind"], "RUN_COMMAND");
    assert_eq!(waiting["policy"], "shell.approvalRequired");

    // What comes meanwhile.
    let done = "[DONE]\nx\n[/DONE]\n";
    let run = base.fails_with(&["apply", "-"], done, "decision-needed").with_code(3);
    assert!(run.message().contains("the reply was not carried out"), "{run:?}");
    base.run(&["say", "Go on"]).ok();
    base.run(&["deny", "other"]).with_code(5);
    base.run(&["approve", "--session", OTHER]).with_code(5);

    let run = base.run(&["approve", &id]).ok();
    assert_eq!(run.stdout, "outbox/a1b2c3d4_seq0002.txt\n");
    assert!(!base.exists("workspace/temp") && base.exists("workspace/after"));
    assert_eq!(base.last_codes(), ["ok", "ok", "ok"]);
    assert!(base.outbox(2).contains("Go on"));
    assert!(base.waiting(ID).is_null());
    let run = base.fails(&["approve", &id], "nothing-pending").with_code(5);
    assert!(run.message().contains("nothing waits for a decision about"), "{run:?}");
}

#[test]
fn what_is_denied_is_told_and_the_rest_follows() {
    let base = scene();
    base.run_with(&["apply", "-"], ASKS).with_code(3);
    let run = base.run(&["deny", "--reason", "It is\nneeded"]).ok();
    assert_eq!(run.stdout, "outbox/a1b2c3d4_seq0002.txt\n");
    assert_eq!(base.last_codes(), ["ok", "denied", "ok"]);
    let outbox = base.outbox(2);
    assert!(outbox.contains("The user denied 'rm -r temp': It is"), "{outbox}");
    assert!(base.exists("workspace/temp/a") && base.exists("workspace/after"));
}

#[test]
fn json_tells_what_waits_and_what_followed() {
    let base = scene();
    let run = base.run_with(&["apply", "-", "--json"], ASKS).with_code(3);
    let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(told["waiting"]["command"], "rm -r temp");
    assert_eq!(told["results"].as_array().unwrap().len(), 1);
    assert!(told["outbox"].is_null() && told["isComplete"] == false);
    let run = base.run(&["approve", "--json"]).ok();
    let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(told["waiting"].is_null() && told["outbox"] == "outbox/a1b2c3d4_seq0002.txt");
    assert_eq!(told["results"].as_array().unwrap().len(), 3);
}

#[test]
fn a_further_question_is_another() {
    let base = scene();
    base.write("workspace/more/a", "x\n");
    let reply = format!("{ASKS}[RUN_COMMAND]\nrm -r more\n[/RUN_COMMAND]\n");
    base.run_with(&["apply", "-"], reply).with_code(3);
    let run = base.run(&["approve", "--all"]).with_code(3);
    assert!(run.stderr.contains("  | rm -r more\n"), "{run:?}");
    assert!(base.exists("workspace/after") && base.exists("workspace/more"));
    base.run(&["approve"]).ok();
    assert!(!base.exists("workspace/more"));
}

#[test]
fn of_several_one_is_named_or_all_are_meant() {
    let base = scene();
    base.begin_asking(OTHER);
    for id in [ID, OTHER] {
        base.run_with(&["apply", "--session", id, "-"], ASKS).with_code(3);
    }
    let run = base.run(&["approve"]).with_code(2);
    for told in ["a1b2c3d4: RUN_COMMAND 'rm -r temp'", "00ff00ff: RUN_COMMAND", "--all"] {
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    base.run(&["deny", "--session", OTHER]).ok();
    assert!(base.waiting(OTHER).is_null() && !base.waiting(ID).is_null());
    base.run_with(&["apply", "--again", "--session", OTHER, "-"], ASKS).with_code(3);
    let run = base.run(&["deny", "--all"]).ok();
    assert_eq!(run.stdout.lines().count(), 2, "{run:?}");
    assert!(base.exists("workspace/temp/a"));
}

#[test]
fn a_file_is_shown_as_it_would_become_and_an_approval_is_for_that() {
    let base = Project::with_session();
    base.write("workspace/.envrc", "one\ntwo\n");
    let edit =
        "[EDIT_FILE path=\".envrc\" start_line=\"2\" end_line=\"2\"]\n2\u{1b}[2J\n[/EDIT_FILE]\n";
    let run = base.run_with(&["apply", "-"], edit).with_code(3);
    for told in
        [": EDIT_FILE\n  | .envrc\n", "  |  one\n", "  | -two\n", "  | +2␛[2J\n", "Opens:  names"]
    {
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
    // Somebody changes it before the decision.
    base.write("workspace/.envrc", "one\nthree\n");
    let run = base.run(&["approve"]).with_code(3);
    assert!(run.stderr.contains("It has changed since it was approved"), "{run:?}");
    assert!(base.asked_why().starts_with("It has changed since it was approved: "));
    assert!(run.stderr.contains("-three\n"), "{run:?}");
    assert_eq!(base.read("workspace/.envrc"), "one\nthree\n");
    base.run(&["approve"]).ok();
    assert_eq!(base.read("workspace/.envrc"), "one\n2\u{1b}[2J\n");
}

#[test]
fn an_approved_operation_is_asked_about_once_only_as_it_stood() {
    let base = scene();
    let twice = "[RUN_COMMAND]\nrm -rf temp\n[/RUN_COMMAND]\n".repeat(2);
    base.run_with(&["apply", "-"], twice).with_code(3);
    assert!(base.exists("workspace/temp"));
    // The second is another operation, though its text is the same.
    base.run(&["approve"]).with_code(3);
    assert!(!base.exists("workspace/temp"));
    base.sh("mkdir workspace/temp");
    base.run(&["approve"]).ok();
    assert!(!base.exists("workspace/temp"));
}

#[test]
fn later_replies_wait_and_come_in_their_order() {
    let base = scene();
    let daemon = base.serve(&["watch"]);
    base.write("inbox/1.txt", ASKS);
    daemon.wait_for("waits for your decision");
    for n in 2..=3 {
        let reply = format!("[RUN_COMMAND]\necho {n} >> log\n[/RUN_COMMAND]\n");
        base.write(&format!("inbox/{n}.txt"), reply);
        daemon.wait_for(&format!("{n}.txt waits"));
    }
    assert_eq!(base.names("inbox/processed"), ["1.txt"]);
    assert!(!base.exists("workspace/log"));
    base.run(&["approve"]).ok();
    base.wait_for_outbox(4);
    assert_eq!(base.read("workspace/log"), "2\n3\n");
    assert_eq!(daemon.said().matches("2.txt waits").count(), 1, "told once");
}

#[test]
fn one_session_waits_and_another_goes_on() {
    let base = scene();
    base.begin(OTHER);
    let daemon = base.serve(&["watch"]);
    base.write(&format!("inbox/{ID}.txt"), ASKS);
    daemon.wait_for("waits for your decision");
    base.write(&format!("inbox/{OTHER}.txt"), "[MESSAGE]\nhi\n[/MESSAGE]\n");
    wait_until("its outbox", || base.exists("outbox/00ff00ff_seq0002.txt"));
    assert!(!base.exists("outbox/a1b2c3d4_seq0002.txt"));
    base.run(&["approve"]).ok();
    base.wait_for_outbox(2);
}

/// A reply whose command is 2600 characters, with a question that nobody asks at its end.
fn forged() -> String {
    let begin = "cat ./evil_x; rm -r temp; #";
    let question = "Session a1b2c3d4 waits for your decision about op-1: RUN_COMMAND";
    let padded = format!("{begin}{}{question}", " ".repeat(2500 - begin.len()));
    let harmless = format!("{:<80}", "    ls");
    format!("[RUN_COMMAND]\n{padded}{harmless}{}\n[/RUN_COMMAND]\n", "x".repeat(200))
}

#[test]
fn no_command_can_forge_a_question() {
    let base = scene();
    let run = base.run_with(&["apply", "-"], forged()).with_code(3);
    let shown: Vec<_> =
        run.stderr.lines().skip_while(|line| !line.starts_with("Session")).collect();
    assert!(shown[1].starts_with("  | cat ./evil_x; rm -r temp; #‹2473 blanks›Session"), "{run:?}");
    for row in &shown[1..] {
        assert!(row.starts_with("  ") && row.chars().count() <= 80, "{row}: {run:?}");
    }
    let [.., command, decide] = &*shown else { panic!("{run:?}") };
    let told = "  Command: 2844 characters, begins 'cat ./evil_x; rm -r temp; #‹2473 blan";
    assert!(command.starts_with(told) && command.ends_with("…'"), "{command}");
    assert!(decide.starts_with("  Decide: "), "{decide}");
}

#[test]
fn bytes_and_ends_of_lines_are_told() {
    let base = Project::with_session();
    let create = "[CREATE_FILE path=\".envrc\"]\none\n[/CREATE_FILE]\n";
    base.write("workspace/.envrc", "one\r\n");
    let run = base.run_with(&["apply", "-"], create).with_code(3);
    assert!(run.stderr.contains("  | -one␍\n  | +one\n"), "{run:?}");
    base.run(&["deny"]).ok();
    std::fs::write(base.at("workspace/.envrc"), b"one\xff\n").unwrap();
    let run = base.run_with(&["apply", "--again", "-"], create).with_code(3);
    assert!(run.stderr.contains("  | -one<FF>\n  | +one\n"), "{run:?}");
    let waiting = base.waiting(ID);
    assert!(waiting["realPath"].as_str().unwrap().ends_with("workspace/.envrc"), "{waiting}");
    assert_eq!(waiting["opens"]["protected"], true);
}

#[test]
fn all_that_belongs_to_a_command_is_told() {
    let base = Project::new();
    base.write("workspace/sub/temp/a", "x\n");
    let message = r#"{"protocolVersion": "1.0", "type": "operations", "operations": [{"type": "shell", "id": "s",
        "command": "rm -r temp", "cwd": "sub", "timeout": 30000, "env": {"A": "b"}}]}"#;
    base.run_with(&["ops", "run"], message).with_code(3);
    let told = base.json(&["status"]);
    let waiting = &told["waiting"];
    assert_eq!((&waiting["cwd"], &waiting["env"]["A"]), (&"sub".into(), &"b".into()), "{told}");
    assert_eq!(
        (&waiting["timeout"], &waiting["opens"]["repository"]),
        (&30000.into(), &false.into())
    );
    let status = base.run(&["status", told["session"].as_str().unwrap()]).ok().stdout;
    for told in ["  In:     sub\n", "  With:   A=b\n", "  Time:   asks for a timeout of 30 s\n"] {
        assert!(status.contains(told), "{told}: {status}");
    }
}
