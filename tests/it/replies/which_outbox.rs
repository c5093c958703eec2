//! Replies that say which outbox they answer, and an end that counts only where all is well.

use crate::support::{ID, Project};

const OTHER: &str = "00ff00ff";

/// The PROMPT of an outbox, without the line that a reply is to begin with.
pub(crate) fn prompt(outbox: &str) -> &str {
    let (_, prompt) = outbox.split_once("\n=== PROMPT ===\n").unwrap();
    let (prompt, line) = prompt.rsplit_once("\n\n").unwrap();
    assert!(line.contains(": [REPLY session=") && line.ends_with("\"]\n"), "{line}");
    prompt
}

/// The line that the newest outbox of a session asks for.
pub(crate) fn line(base: &Project, id: &str) -> String {
    let names = base.names("outbox");
    let newest = names.iter().rfind(|name| name.starts_with(id) && !name.contains(".events"));
    let outbox = base.read(&format!("outbox/{}", newest.unwrap()));
    let (_, line) = outbox.trim_end().rsplit_once(": [REPLY").unwrap();
    format!("[REPLY{line}\n")
}

fn append(word: &str) -> String {
    format!("[RUN_COMMAND]\necho {word} >> log\n[/RUN_COMMAND]\n")
}

#[test]
fn a_reply_finds_its_session_among_several() {
    let base = Project::new();
    for id in [ID, OTHER] {
        base.run(&["new", "--no-watch", "--id", id, "A task"]).ok();
    }
    let reply = |id: &str, word: &str| format!("````\n{}{}````\n", line(&base, id), append(word));
    let (first, second) = (reply(ID, "first"), reply(OTHER, "second"));
    let run = base.run_with(&["apply"], &first).ok();
    assert_eq!(run.stdout.trim(), format!("outbox/{ID}_seq0002.txt"));

    let daemon = base.serve(&["resume"]);
    base.write("inbox/r.txt", &second);
    daemon.wait_for(&format!("{OTHER}_seq0002.txt"));
    // Whose line names nobody that is here, or another than its own name does.
    base.write("inbox/s.txt", second.replace(OTHER, "11111111"));
    daemon.wait_for("s.txt was moved to inbox/rejected: ");
    base.write(&format!("inbox/{ID}.txt"), reply(OTHER, "third"));
    daemon.wait_for(&format!("{ID}.txt was moved to inbox/rejected: "));
    daemon.stop();
    assert!(base.read("inbox/rejected/s.txt.why.txt").contains("which does not exist"));
    base.fails(&["apply", "inbox/rejected/s.txt"], "no-session");
    assert!(base.read("inbox/rejected/s.txt.why.txt").contains("which does not exist"));
    let why = base.read(&format!("inbox/rejected/{ID}.txt.why.txt"));
    assert!(why.contains(&format!("its file name says session {ID}")), "{why}");
    assert!(why.contains(OTHER), "{why}");
    assert_eq!(base.read("workspace/log"), "first\nsecond\n");
    // Without the line nobody knows.
    base.run_with(&["apply"], append("x")).with_code(2);
}

#[test]
fn a_reply_to_an_older_outbox_is_held_until_it_is_forced() {
    let base = Project::with_session();
    let old = format!("{}{}", line(&base, ID), append("old"));
    base.run_with(&["apply"], &old).ok();
    // The same again names an outbox that is not the newest any more.
    base.fails_with(&["apply"], &old, "duplicate-reply").with_code(1);
    let old = format!("{}{}", old.lines().next().unwrap().to_owned() + "\n", append("other"));
    let run = base.fails_with(&["apply"], &old, "outdated-reply").with_code(1);
    assert!(run.message().contains("it answers outbox 1 of session"), "{run:?}");
    assert!(run.message().contains("again with --force"), "{run:?}");
    base.run_with(&["apply", "--again"], &old).with_code(1);

    let daemon = base.serve(&["resume"]);
    base.write("inbox/r.txt", &old);
    daemon.wait_for("r.txt was moved to inbox/held: it answers outbox 1");
    base.write("inbox/s.txt", old.replace("sequence=\"1\"", "sequence=\"9\""));
    daemon.wait_for("s.txt was moved to inbox/held: it says that it answers outbox 9");
    daemon.stop();
    base.fails(&["apply", "inbox/held/r.txt"], "outdated-reply");
    base.fails(&["apply", "inbox/held/s.txt"], "unknown-outbox");
    assert_eq!(base.read("workspace/log"), "old\n");
    base.run(&["apply", "--force", "inbox/held/r.txt"]).ok();
    assert_eq!(base.read("workspace/log"), "old\nother\n");
}

/// The head of a reply, as a part of a copy leaves it.
fn cut(reply: &str, behind: &str) -> String {
    reply[..reply.find(behind).unwrap() + behind.len()].to_owned()
}

#[test]
fn a_reply_that_was_copied_in_part_does_not_outdate_the_whole_one() {
    let base = Project::with_session();
    let whole = format!("{}I run it.\n{}", line(&base, ID), append("whole"));
    // In the text before the first command, and within it.
    let parts = [cut(&whole, "I run"), cut(&whole, "echo who")];
    for (part, code) in parts.iter().zip(["no-command", "cut-off"]) {
        assert_eq!(base.turn(part).codes(), [code]);
        base.fails_with(&["apply"], part, "duplicate-reply").with_code(1);
    }
    assert!(base.outbox(3).contains("cut off"), "{}", base.outbox(3));
    let wrong = whole.replace("key=\"", "key=\"0");
    base.fails_with(&["apply"], wrong, "wrong-key").with_code(1);

    let answer = format!("{}{}", line(&base, ID), append("answer"));
    let daemon = base.serve(&["resume"]);
    base.write("inbox/whole.txt", &whole);
    daemon.wait_for(&format!("{ID}_seq0004.txt"));
    // It counts once, and what the model said to the error is outdated then.
    base.write("inbox/again.txt", &whole);
    daemon.wait_for("again.txt was moved to inbox/held: it is the same text");
    base.write("inbox/answer.txt", &answer);
    daemon.wait_for("answer.txt was moved to inbox/held: it answers outbox 3");
    daemon.stop();
    assert_eq!(base.read("workspace/log"), "whole\n");
}

#[test]
fn an_answer_to_the_error_outdates_the_whole_reply_that_comes_after_it() {
    let base = Project::with_session();
    let whole = format!("{}{}", line(&base, ID), append("whole"));
    base.turn(&cut(&whole, "echo"));
    base.turn(&format!("{}{}", line(&base, ID), append("answer")));
    base.fails_with(&["apply"], &whole, "outdated-reply").with_code(1);
    assert_eq!(base.read("workspace/log"), "answer\n");
    // What was begun was not cut off before anything was executed.
    let base = Project::with_session();
    let whole = format!("{}{}{}", line(&base, ID), append("first"), append("second"));
    assert_eq!(base.turn(&cut(&whole, "echo second")).codes(), ["ok", "cut-off"]);
    base.fails_with(&["apply"], &whole, "outdated-reply").with_code(1);
    assert_eq!(base.read("workspace/log"), "first\n");
}

#[test]
fn the_whole_reply_cannot_end_a_session_with_words_that_it_did_not_know() {
    let base = Project::with_session();
    let whole = format!("{}[DONE]\nAll is well.\n[/DONE]\n", line(&base, ID));
    base.run(&["say", "Use tabs"]).ok();
    base.turn(&cut(&whole, "All"));
    let turn = base.turn(&whole);
    assert_eq!(turn.json["isComplete"], false);
    assert!(turn.outbox.contains("Use tabs"), "{turn:?}");
}

#[test]
fn a_key_is_of_one_outbox_and_need_not_be_given() {
    let base = Project::with_session();
    let first = line(&base, ID);
    let key = |line: &str| line.split("key=\"").nth(1).unwrap()[..8].to_owned();
    base.run_with(&["apply"], format!("{first}{}", append("a"))).ok();
    let second = line(&base, ID);
    assert_ne!(key(&first), key(&second));
    let wrong = second.replace(&key(&second), &key(&first));
    let wrong = format!("{wrong}{}", append("b"));
    let run = base.fails_with(&["apply"], wrong, "wrong-key").with_code(1);
    assert!(run.message().contains("its key is not that of outbox 2"), "{run:?}");
    let without = format!("[REPLY session=\"{ID}\" sequence=\"2\"]\n");
    base.run_with(&["apply"], format!("{without}{}", append("c"))).ok();
    assert_eq!(base.read("workspace/log"), "a\nc\n");
    // Whoever names the newest outbox means it, be it the same text as before but for that.
    base.run_with(&["apply"], format!("{}{}", line(&base, ID), append("c"))).ok();
    assert_eq!(base.read("workspace/log"), "a\nc\nc\n");
}

#[test]
fn a_message_of_operations_says_it_too() {
    let base = Project::new();
    let new = ["new", "--no-watch", "--id", ID, "--dialect", "operations", "A task"];
    base.run(&new).ok();
    let ls = r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "echo a >> log"}]}"#;
    let reply = format!("````\n{}{ls}\n````\n", line(&base, ID));
    base.run_with(&["apply"], &reply).ok();
    base.fails_with(&["apply"], &reply, "duplicate-reply").with_code(1);
    let run = base.fails_with(&["apply"], reply.replace("a >>", "b >>"), "outdated-reply");
    assert!(run.message().contains("it answers outbox 1"), "{run:?}");
    assert_eq!(base.read("workspace/log"), "a\n");
}

#[test]
fn an_end_on_condition_counts_only_where_all_succeeded() {
    const END: &str = "[DONE if=\"ok\"]\nAll is well.\n[/DONE]\n";
    let run = |command: &str| format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n");
    for before in [
        run("false"),
        "[READ_FILE path=\"missing\"]\n".to_owned(),
        "[CREATE_FILE]\nx\n[/CREATE_FILE]\n".to_owned(),
        "[CREATE_FILE path=\"../x\"]\nx\n[/CREATE_FILE]\n".to_owned(),
    ] {
        let base = Project::with_session();
        let turn = base.turn(&format!("{before}{END}"));
        assert_eq!(turn.codes().last().unwrap(), "ineffective-done", "{turn:?}");
        assert_eq!(turn.json["isComplete"], false);
        let told = "[FAILED] DONE: not counted: 1 operation before it failed (";
        assert!(turn.outbox.contains(told), "{turn:?}");
        let told = " on line 1 of the reply), so the session goes on\n";
        assert!(turn.outbox.contains(told), "{turn:?}");
    }
    let base = Project::with_session();
    let reply = format!("{}[READ_FILE path=\"a\"]\n{END}", run("echo x > a"));
    let done = base.turn(&reply);
    assert_eq!((&done.json["isComplete"], &*done.outbox), (&true.into(), ""));
    assert_eq!(done.codes(), ["ok", "ok", "ok"]);
}

#[test]
fn an_end_on_condition_counts_as_the_last_of_its_reply_only() {
    const END: &str = "[DONE if=\"ok\"]\nAll is well.\n[/DONE]\n";
    let run = "[RUN_COMMAND]\necho x > a\n[/RUN_COMMAND]\n";
    for (behind, named, made) in [
        (run, "RUN_COMMAND on line 4", true),
        ("[CREATE_FILE path=\"a\"]\nx\n", "CREATE_FILE on line 4", false),
        ("[RUN_COMM", "RUN_COMMAND on line 4", false),
    ] {
        let base = Project::with_session();
        let turn = base.turn(&format!("{END}{behind}"));
        assert_eq!(turn.codes(), ["ineffective-done", if made { "ok" } else { "cut-off" }]);
        let told = format!(
            "[FAILED] DONE: not counted: 1 operation comes after it ({named} of the reply), so the session goes on"
        );
        assert!(turn.outbox.contains(&told), "{turn:?}");
        assert_eq!(turn.outbox.contains("everything from block 2 "), !made, "{turn:?}");
        assert_eq!(base.at("workspace/a").exists(), made);
        assert_eq!(base.turn(END).json["isComplete"], true);
    }
    // The last of them counts, and without a condition it ends the session at once.
    let base = Project::with_session();
    assert_eq!(base.turn(&format!("{END}{run}{END}")).json["isComplete"], true);
    assert!(base.at("workspace/a").exists());
    let base = Project::with_session();
    let end = END.replace(" if=\"ok\"", "");
    assert_eq!(base.turn(&format!("{end}{run}")).json["isComplete"], true);
    assert!(!base.at("workspace/a").exists());
}

#[test]
fn an_end_that_does_not_count_is_the_same_in_outbox_session_file_and_log() {
    let base = Project::with_session();
    let reply = "[RUN_COMMAND]\nexit 3\n[/RUN_COMMAND]\n[DONE if=\"ok\"]\nAll is well.\n[/DONE]\n";
    let turn = base.run_with(&["apply", "--json"], reply).ok();
    let why = "not counted: 1 operation before it failed (RUN_COMMAND on line 1 of the reply), so the session goes on";
    let results = |value: &serde_json::Value, name: &str| -> Vec<(String, bool, String)> {
        let of = |result: &serde_json::Value| {
            let text = |field: &str| result[field].as_str().unwrap().to_owned();
            (text("command"), result["success"].as_bool().unwrap(), text("summary"))
        };
        value[name].as_array().unwrap().iter().map(of).collect()
    };
    let expected = [
        ("RUN_COMMAND".to_owned(), false, "Ran 'exit 3' (exit code 3)".to_owned()),
        ("DONE".to_owned(), false, why.to_owned()),
    ];
    let last = turn.stdout.lines().last().unwrap();
    assert_eq!(results(&serde_json::from_str(last).unwrap(), "results"), expected);
    assert!(base.outbox(2).contains(&format!("\n[FAILED] DONE: {why}\n")), "{}", base.outbox(2));
    let session = base.read(&format!("sessions/{ID}.json"));
    let session: serde_json::Value = serde_json::from_str(&session).unwrap();
    assert_eq!(results(&session, "lastResults"), expected);
    let ineffective = &session["lastResults"][1]["outcome"];
    let detail = serde_json::json!({"ineffective": {"summary": "All is well.", "reason": why}});
    assert_eq!(
        (&ineffective["detail"], &ineffective["warnings"]),
        (&detail, &serde_json::Value::Null)
    );
    assert_eq!((&session["isComplete"], &session["sequenceNumber"]), (&false.into(), &2.into()));
    let log = base.run(&["log", "--json"]).ok().stdout;
    let entry: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let numbers = ["commands", "operations", "failed"].map(|name| entry[name].as_u64().unwrap());
    assert_eq!((numbers, &entry["isComplete"]), ([2, 1, 2], &false.into()));
    // The same text once more is a duplicate.
    base.fails_with(&["apply"], reply, "duplicate-reply").with_code(1);
}

#[test]
fn the_end_of_a_session_shows_the_person_the_end_of_the_last_output() {
    if !crate::support::has_sandbox("auto") {
        return;
    }
    let base = Project::with_session();
    let command = "seq 30; printf GITHUB_TOKEN=gh; echo p_R7kQ2mXv9TzLw4NcBh8YdJf3GsPa6EuK1oVi; printf 'a\\033b\\n'";
    let reply = format!(
        "[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n[DONE if=\"ok\"]\nAll is well.\n[/DONE]\n"
    );
    let told = base.run_with(&["apply"], reply).ok().stderr;
    let (_, end) = told.split_once("This is the end of the output of ").expect(&told);
    assert!(end.contains("\n  30\n") && !end.contains("\n  22\n"), "{told}");
    assert!(end.contains("[withheld: ") && !told.contains("ghp_"), "{told}");
    assert!(end.contains("a␛b") && end.contains("All is well."), "{told}");
}
