//! `deaddrop check` of one reply and of many, as a person reads it and as a table is made of it.

use serde_json::{Value, json};

use crate::support::{ID, Project};

const GOOD: &str =
    "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
const DAMAGED: &str = "**[CREATE_FILE path=\"`a`\" mode=\"644\"]**\nx\n[/CREATE_FILE]\n\
    [CREATE_FILE path=\"b\" mode=\"644\"]\nx\n[/CREATE_FILE]\n\
    [EDIT_FILE path=\"a\" start_line=\"7\" end_line=\"9\"]\ny\n[/EDIT_FILE]\n\
    [READ_FILE path=\"../x\"]\n[DELETE_FILE path=\"no\"]\n[RUN_COMMAND]\nls\n";
const MESSAGE: &str = r#"{"protocolVersion": "1.0", "operations": [
    {"type": "createFile", "path": "a", "content": "x"},
    {"type": "shell"},
    {"type": "readFile", "path": "missing"}]}"#;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_folder_of_replies_gives_a_table() {
    let base = Project::with_session();
    for (name, reply) in
        [("1", GOOD), ("2", DAMAGED), ("4", MESSAGE), ("5", "Hello.\n"), ("6", &MESSAGE[..90])]
    {
        base.write(name, reply);
    }
    base.write("3", b"\xff\xd8");
    let run = base.run(&["check", "--json", "1", "2", "3", "none", "4", "5", "6"]).with_code(1);
    let told = lines(&run.stdout);
    let column = |key: &str| told.iter().map(|reply| reply[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("file"), ["1", "2", "3", "none", "4", "5", "6"]);
    let nothing = Value::Null;
    assert_eq!(
        column("dialect"),
        [
            json!("tags"),
            json!("tags"),
            nothing.clone(),
            nothing.clone(),
            json!("operations"),
            nothing.clone(),
            json!("operations")
        ]
    );
    assert_eq!(
        (&told[0]["blocks"], &told[0]["errorsByKind"], &told[0]["endsEarly"]),
        (&json!({"CREATE_FILE": 1, "RUN_COMMAND": 1}), &json!({}), &json!(false))
    );
    assert_eq!(told[1]["blocks"]["CREATE_FILE"], 2);
    assert_eq!(
        told[1]["warningsByKind"],
        json!({"tag-repaired": 1, "path-decorated": 1, "unknown-attribute": 2})
    );
    assert_eq!(
        told[1]["errorsByKind"],
        json!({"no-such-lines": 1, "path-refused": 1, "file-not-found": 1, "cut-off": 1})
    );
    assert_eq!((&told[1]["errors"], &told[1]["warnings"]), (&json!(4), &json!(4)));
    assert_eq!(told[1]["endsEarly"], true);
    assert_eq!(told[1]["commands"][4]["code"], "file-not-found");
    assert_eq!(told[1]["commands"][0]["code"], nothing);
    for (n, why) in [(2, "UTF-8"), (3, "none")] {
        assert!(told[n]["unreadable"].as_str().unwrap().contains(why), "{:?}", told[n]);
        assert_eq!(told[n]["errors"], nothing);
    }
    assert_eq!(told[4]["blocks"], json!({"createFile": 1, "shell": 1, "readFile": 1}));
    assert_eq!(told[4]["errorsByKind"], json!({"operation-malformed": 1, "file-not-found": 1}));
    assert_eq!(told[5]["errorsByKind"], json!({"no-command": 1}));
    assert_eq!(
        (&told[6]["errorsByKind"], &told[6]["endsEarly"]),
        (&json!({"cut-off": 1}), &json!(true))
    );
    assert_eq!(told[6]["blocks"], json!({}));
    assert!(run.stderr.contains("7 files, 6 "), "{run:?}");
}

#[test]
fn every_reply_is_looked_at_as_if_it_were_the_only_one() {
    let base = Project::with_session();
    base.write("1", GOOD);
    base.write("2", "[READ_FILE path=\"a\"]\n");
    let run = base.run(&["check", "1", "2", "1"]).with_code(1);
    let (first, rest) = run.stdout.split_once("\n2:\n").unwrap();
    assert!(first.starts_with("1:\n") && first.contains("--- /dev/null\n+++ b/a\n"), "{run:?}");
    // What the first would make is not there for the second.
    assert!(rest.contains("FAILED  READ_FILE "), "{run:?}");
    assert!(rest.contains("\n\n1:\n") && run.stderr.contains("3 files, 1 "), "{run:?}");
    base.run(&["check", "1", "1"]).ok();
    assert_eq!(base.run(&["check", "1"]).ok().stdout, first[3..].trim_end().to_owned() + "\n");

    let run = base.run_with(&["check", "1", "-", "--json"], "[DONE]\nx\n[/DONE]\n").ok();
    let told = lines(&run.stdout);
    assert_eq!((&told[1]["file"], &told[1]["blocks"]["DONE"]), (&json!("-"), &json!(1)));
    assert!(base.run(&["check", "-", "-"]).with_code(2).stderr.contains("once"));
}

#[test]
fn what_cannot_be_read_does_not_stop_the_others() {
    let base = Project::with_session();
    base.write("good", GOOD);
    let run = base.run(&["check", "none", "workspace", "good"]).with_code(1);
    assert!(run.stderr.contains("none") && run.stderr.contains("workspace"), "{run:?}");
    assert!(run.stdout.starts_with("none:\n\nworkspace:\n\ngood:\n"), "{run:?}");
    assert!(run.stdout.contains("+++ b/a"), "{run:?}");
}

#[test]
fn what_would_be_held_is_told_and_is_no_error() {
    let base = Project::with_session();
    let to = |n: u32| format!("[REPLY session=\"{ID}\" sequence=\"{n}\"]\n{GOOD}");
    base.run_with(&["apply"], GOOD).ok();
    for (name, reply) in [("same", GOOD), ("old", &*to(1)), ("new", &*to(2)), ("ahead", &*to(3))] {
        base.write(name, reply);
    }
    let run = base.run(&["check", "--json", "same", "old", "new", "ahead"]).ok();
    let told = lines(&run.stdout);
    for (n, code, flag) in [
        (0, json!("duplicate-reply"), "`apply --again`"),
        (1, json!("outdated-reply"), "`apply --force`"),
        (2, Value::Null, ""),
        (3, json!("unknown-outbox"), "`apply --force`"),
    ] {
        assert_eq!(told[n]["heldCode"], code, "{:?}", told[n]);
        assert!(told[n]["held"].as_str().unwrap_or_default().contains(flag), "{:?}", told[n]);
        assert_eq!((&told[n]["errors"], &told[n]["session"]), (&json!(0), &json!(ID)));
    }
    let run = base.run(&["check", "old"]).ok();
    assert!(run.stdout.contains(told[1]["held"].as_str().unwrap()), "{run:?}");
    assert!(!base.run(&["check", "new"]).ok().stdout.contains("held"));
}

#[test]
fn a_reply_is_looked_at_for_the_session_that_it_answers() {
    const OTHER: &str = "00ff00ff";
    let base = Project::with_session();
    base.run(&["new", "--no-watch", "--policy", "restrictive", "--id", OTHER, "A task"]).ok();
    for (name, id) in [("1", ID), ("2", OTHER), ("3", "11111111")] {
        base.write(name, format!("[REPLY session=\"{id}\" sequence=\"1\"]\n{GOOD}"));
    }
    let told = lines(&base.run(&["check", "--json", "1", "2", "3"]).with_code(1).stdout);
    assert_eq!((&told[0]["session"], &told[0]["errorsByKind"]), (&json!(ID), &json!({})));
    assert_eq!((&told[0]["held"], &told[1]["held"]), (&Value::Null, &Value::Null));
    // Its policy is that session's.
    assert_eq!(told[1]["session"], OTHER);
    assert_eq!(told[1]["errorsByKind"], json!({ "denied": 2 }), "{:?}", told[1]);
    assert_eq!(told[2]["session"], Value::Null);
    assert_eq!(told[2]["heldCode"], "no-session");
    assert!(told[2]["held"].as_str().unwrap().contains("'11111111'"), "{:?}", told[2]);
    // The session that is named is meant, whatever the reply says.
    let told = lines(&base.run(&["check", "--json", "--session", ID, "2"]).ok().stdout);
    assert_eq!(told[0]["session"], ID);
    assert_eq!(told[0]["heldCode"], "other-session");
    assert!(told[0]["held"].as_str().unwrap().contains(OTHER), "{:?}", told[0]);
    // Without the line nobody knows which is meant.
    base.run_with(&["check"], GOOD).with_code(2);
}

#[test]
fn a_message_that_was_cut_off_is_told_as_that_also_in_a_fence_that_is_closed() {
    let base = Project::with_session();
    let within_text = MESSAGE.find("\"x\"").unwrap() + 2;
    for (name, end, cut) in [
        ("1", within_text, true),
        ("2", MESSAGE.find("{\"type\": \"shell\"").unwrap(), true),
        ("3", MESSAGE.len() - 2, true),
        ("4", MESSAGE.len(), false),
    ] {
        base.write(name, format!("So:\n````json\n{}\n````\nThat is all.\n", &MESSAGE[..end]));
        let told = lines(&base.run(&["check", "--json", name]).with_code(1).stdout).remove(0);
        assert_eq!(told["endsEarly"], cut, "{name}: {told}");
        assert_eq!(told["errorsByKind"]["cut-off"] == 1, cut, "{name}: {told}");
    }
}

#[test]
fn a_body_in_a_tag_that_nothing_closes_is_a_mistake_of_form_and_no_cut_off_reply() {
    let base = Project::with_session();
    for (tag, below) in [
        ("[RUN_COMMAND command=\"ls\"]", ""),
        ("[RUN_COMMAND command=\"ls\"]", "\n\n[DELETE_FILE path=\"a\"]\n"),
        ("[CREATE_FILE path=\"a\" content=\"x\"]", "\nThat is all.\n"),
    ] {
        let reply = format!("So:\n{tag}{below}");
        let run = base.run_with(&["check", "--json"], &reply).with_code(1);
        let told = lines(&run.stdout).remove(0);
        assert_eq!(told["endsEarly"], false, "{reply}: {told}");
        assert_eq!(told["errorsByKind"], json!({"body-as-attribute": 1}), "{reply}: {told}");
        assert_eq!(told["commands"].as_array().unwrap().len(), 1, "{reply}: {told}");
    }
}

#[test]
fn check_looks_at_large_files_only_as_far_as_it_must() {
    let base = Project::with_session();
    base.sh("truncate -s 8T workspace/big; truncate -s 100M workspace/large");
    let told = base.check("[READ_FILE path=\"big\"]\n", 1);
    let why = told["commands"][0]["summary"].as_str().unwrap();
    assert!(why.contains("'big'") && why.contains("(8796093022208 bytes)"), "{why}");
    let create = "[CREATE_FILE path=\"big\"]\n1\n[/CREATE_FILE]\n";
    let reply = format!("{create}[DELETE_FILE path=\"large\"]\n");
    let run = base.run_with(&["check"], reply).ok();
    assert!(run.stdout.contains("--- a/big\n+++ b/big\n(too large to show)\n"), "{run:?}");
    assert!(run.stderr.contains(" 2 files "), "{run:?}");

    let reply = "[EDIT_FILE path=\"large\" start_line=\"1\" end_line=\"1\"]\n[/EDIT_FILE]\n";
    let told = base.check(reply, 1);
    let why = told["commands"][0]["summary"].as_str().unwrap();
    assert!(["'large'", "104857600", "67108864"].iter().all(|told| why.contains(told)), "{why}");
    assert_eq!(base.turn(reply).json["results"][0]["code"], told["commands"][0]["code"]);
}

#[test]
fn what_a_command_could_use_is_shown_as_it_is_then() {
    let base = Project::with_session();
    let script = "[CREATE_FILE path=\"i.sh\"]\nold text\n[/CREATE_FILE]\n\
        [CREATE_FILE path=\"j\"]\nx\n[/CREATE_FILE]\n";
    let run = "[RUN_COMMAND]\nsh i.sh\n[/RUN_COMMAND]\n";
    for (rest, last) in [
        ("[CREATE_FILE path=\"i.sh\"]\nnew text\n[/CREATE_FILE]\n", "changed"),
        ("[DELETE_FILE path=\"i.sh\"]\n", "deleted"),
    ] {
        let told = base.run_with(&["check", "--json", "-"], [script, run, rest].concat()).stdout;
        let told = &lines(&told)[0];
        let files = told["files"].as_array().unwrap();
        let shown =
            |file: &Value| (file["path"].clone(), file["change"].clone(), file["before"].clone());
        assert_eq!(
            files.iter().map(shown).collect::<Vec<_>>(),
            [
                (json!("i.sh"), json!("created"), json!(3)),
                (json!("j"), json!("created"), json!(3)),
                (json!("i.sh"), json!(last), json!(null)),
            ]
        );
        assert!(files[0]["diff"].as_str().unwrap().contains("+old text"), "{told}");
    }
    let told =
        base.run_with(&["check", "-"], [script, run, "[DELETE_FILE path=\"i.sh\"]\n"].concat());
    assert!(told.stdout.contains("Before command 3:"), "{told:?}");
    assert!(told.stderr.contains("2 files would change"), "{told:?}");
}
