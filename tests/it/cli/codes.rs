//! The stable codes of errors and outcomes, as `--json` prints them.

use serde_json::{Value, json};

use crate::support::{ID, Project};

/// The code of the error that a call with `--json` ends with, and its exit status.
#[track_caller]
fn failed(base: &Project, arguments: &[&str]) -> (String, i32) {
    let run = base.run(&[arguments, &["--json"]].concat());
    let last = run.stderr.lines().last().unwrap_or_default();
    let told: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {run:?}"));
    assert!(!told["error"]["message"].as_str().unwrap().is_empty(), "{run:?}");
    (told["error"]["code"].as_str().unwrap().to_owned(), run.code.unwrap())
}

#[test]
fn errors_have_codes() {
    let base = Project::with_session();
    base.write("latin.txt", b"\xff\xfe\xfd");
    for (arguments, code, status) in [
        (&["status", "00000000"][..], "no-session", 5),
        (&["approve"], "nothing-pending", 5),
        (&["resume", "00000000"], "no-session", 5),
        (&["check", "-", "-"], "usage", 2),
        (&["say", "--max-tokens", "x", "y"], "invalid-setting", 2),
        (&["apply", "latin.txt"], "unreadable-reply", 1),
        (&["apply", "absent.txt"], "io", 1),
        (&["undo"], "nothing-to-undo", 1),
    ] {
        assert_eq!(failed(&base, arguments), (code.to_owned(), status), "{arguments:?}");
    }
    base.begin("b1b2c3d4");
    assert_eq!(failed(&base, &["say", "x"]), ("several-sessions".to_owned(), 2));
    base.write(&format!("sessions/{ID}.json"), "{");
    assert_eq!(failed(&base, &["status", ID]).0, "damaged-session");
    assert_eq!(failed(&Project::new(), &["resume"]).0, "no-project");
}

#[test]
fn outcomes_have_codes() {
    let base = Project::with_session();
    base.write("workspace/a", "a\n");
    let reply = "[READ_FILE path=\"b\"]\n[EDIT_FILE path=\"a\" start_line=\"9\" end_line=\"9\"]\nx\n[/EDIT_FILE]\n[DELETE_FILE path=\"../a\"]\n[RUN_COMMAND]\nexit 3\n[/RUN_COMMAND]\n[RUN_COMMAND]\nkill -9 $$\n[/RUN_COMMAND]\n[MESSAGE]\nhi\n[/MESSAGE]\n[CREATE_FILE path=\"c\"]\nx\n";
    let run = base.run_with(&["apply", "--json"], reply).ok();
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    let results = told["results"].as_array().unwrap();
    let codes: Vec<&Value> = results.iter().map(|result| &result["code"]).collect();
    let expected = [
        json!("file-not-found"),
        json!("no-such-lines"),
        json!("path-refused"),
        json!("exit-status"),
        json!("killed"),
        Value::Null,
        json!("cut-off"),
    ];
    assert_eq!(codes, expected.iter().collect::<Vec<_>>(), "{told:#}");
}
