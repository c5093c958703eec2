//! What the first outbox shows of the workspace unasked, and how long outboxes are, with the real
//! program.

use std::fs;

use serde_json::Value;

use crate::guests::sessions::Pair;
use crate::support::{ID, Project, Run};

fn begin(base: &Project, more: &[&str], task: &str) -> Run {
    let mut arguments = vec!["new", "--no-watch", "--id", ID];
    arguments.extend(more);
    arguments.push(task);
    base.run(&arguments)
}

/// The section, without what follows it.
fn shown(outbox: &str) -> Option<&str> {
    let (_, section) = outbox.split_once("\n## Workspace File Contents\n")?;
    Some(section.split_once("\n\n=== PROMPT").unwrap().0)
}

fn small() -> Project {
    let base = Project::new();
    base.write("workspace/src/calc.py", "def add(a, b):\n    return a + b\n");
    base.write("workspace/notes.txt", "one\n=== PROMPT ===");
    base.write("workspace/logo.png", b"\x89PNG\r\n\x1a\n\0\0");
    base.write("workspace/empty.txt", "");
    base
}

#[test]
fn a_small_workspace_is_shown_at_once_and_the_same_again() {
    let base = small();
    let run = begin(&base, &[], "Fix calc").ok();
    assert!(run.stderr.contains("Paste this file into a chat window (≈ 1,"), "{run:?}");
    let outbox = base.outbox(1);
    let section = shown(&outbox).unwrap();
    let begin = "Every non-empty text file, in full (2 files).\n--- src/calc.py ---\ndef add(a, b):\n    return a + b\n--- end src/calc.py ---\n--- notes.txt (boundary ";
    assert!(section.starts_with(begin), "{section}");
    assert!(section.contains("\none\n=== PROMPT ===\n--- end notes.txt (boundary "), "{section}");
    fs::remove_file(base.at(&format!("outbox/{ID}_seq0001.txt"))).unwrap();
    base.run(&["resume", "--no-watch"]).ok();
    assert_eq!(base.outbox(1), outbox);
    // Only the first one does so.
    assert_eq!(shown(&base.apply("[MESSAGE]\nHello\n[/MESSAGE]\n")), None);
}

#[test]
fn the_person_says_what_is_shown() {
    let base = small();
    begin(&base, &["--no-contents"], "Fix calc").ok();
    assert_eq!(shown(&base.outbox(1)), None);

    let base = small();
    base.write("deaddrop.toml", "first_contents = false\n");
    begin(&base, &[], "Fix calc").ok();
    assert_eq!(shown(&base.outbox(1)), None);

    let base = small();
    base.write("workspace/.env", "KEY=1\n");
    base.write("workspace/.ci/run.sh", "make\n");
    begin(&base, &["--include", ".ci/", "--include", "*.txt"], "Fix calc and .env").ok();
    let outbox = base.outbox(1);
    let section = shown(&outbox).unwrap();
    let begin = "3 of 4 non-empty files, in full; READ_FILE may show the others.\n--- .ci/run.sh ---\nmake\n--- end .ci/run.sh ---\n--- notes.txt";
    assert!(section.starts_with(begin), "{section}");
    assert!(!outbox.contains("KEY=1"));

    for (pattern, why) in [("*.rs", "names no file that is listed"), ("a{b", "is no pattern: ")] {
        let base = small();
        let run = self::begin(&base, &["--include", pattern], "x").with_code(2);
        assert!(run.stderr.contains(&format!("--include '{pattern}' {why}")), "{run:?}");
        assert!(base.names("outbox").is_empty() && !base.exists(&format!("sessions/{ID}.json")));
    }
    small().run(&["new", "--include", "x", "--no-contents", "x"]).with_code(2);
}

#[test]
fn an_ignored_file_is_shown_where_the_person_names_it_by_its_exact_path() {
    let ignored = || {
        let base = small();
        base.write("workspace/.gitignore", "ig/\n");
        base.write("workspace/ig/a.py", "a = 1\nkey = \"AKIAQYLPMN5HHHFPZAM2\"\n");
        base.write("workspace/ig/b.py", "b = 1\n");
        base.write("outside.txt", "not theirs\n");
        base
    };
    let base = ignored();
    let run = begin(&base, &["--include", "ig/a.py", "--include", "*.txt"], "Fix it").ok();
    let outbox = base.outbox(1);
    let section = shown(&outbox).unwrap_or_else(|| panic!("{run:?}"));
    assert!(section.contains("\n--- ig/a.py ---\na = 1\n"), "{section}");
    assert!(!section.contains("b.py") && section.contains("--- notes.txt"), "{section}");
    // What is secret is so wherever it lies.
    assert!(
        section.contains("[withheld: ") && !outbox.contains("AKIAQYLPMN5HHHFPZAM2"),
        "{section}"
    );
    for pattern in ["ig/*.py", "ig/", "ig/c.py", "../outside.txt"] {
        let base = ignored();
        let run = begin(&base, &["--include", pattern], "x").with_code(2);
        assert!(run.stderr.contains("by its exact path"), "{run:?}");
        assert!(base.names("outbox").is_empty() && !base.exists(&format!("sessions/{ID}.json")));
    }
}

#[test]
fn what_a_policy_lets_nobody_read_is_not_shown() {
    let base = small();
    base.write("workspace/secret/plan.txt", "do not tell\n");
    base.write(
        "deaddrop.toml",
        "[policies.mine]\npreset = \"workspace\"\nfiles.blocked = [\"secret\"]\n",
    );
    begin(&base, &["--policy", "mine"], "Fix plan.txt").ok();
    let outbox = base.outbox(1);
    assert!(
        shown(&outbox)
            .unwrap()
            .starts_with("2 of 3 non-empty files, in full; READ_FILE may show the others.\n")
    );
    assert!(!outbox.contains("do not tell"));
}

#[test]
fn a_session_of_operations_and_a_guest_have_it_too() {
    let base = small();
    begin(&base, &["--dialect", "operations"], "Fix calc").ok();
    let outbox = base.outbox(1);
    let (_, section) = outbox.split_once("\n## Workspace File Contents\n").unwrap();
    assert!(
        section.starts_with("Every non-empty text file, in full (2 files).\n--- src/calc.py ---\n"),
        "{section}"
    );
    assert!(section.contains("\n\n## Events\n{"), "{section}");

    let pair = Pair::new();
    pair.guest.write("workspace/there.txt", "in the guest\n");
    begin(&pair.host, &[], "x").ok();
    let outbox = pair.host.outbox(1);
    let section = shown(&outbox).unwrap();
    assert_eq!(
        section,
        "Every non-empty text file, in full (1 file).\n--- there.txt ---\nin the guest\n--- end there.txt ---"
    );
}

#[test]
fn a_large_workspace_and_its_files_fit_the_chat() {
    let base = Project::new();
    for n in 0..400 {
        let text = format!("value_{n} = compute({n})\n").repeat(40);
        base.write(&format!("workspace/part{}/file{n}.py", n % 9), text);
    }
    base.write("workspace/large.py", "value = compute(value, other)\n".repeat(6_000));
    begin(&base, &["--max-tokens", "6000"], "A task").ok();
    let count = |n: u32| deaddrop::tokens::count(&base.outbox(n));
    assert!((5_000..=6_000).contains(&count(1)), "{}", count(1));
    assert!(
        shown(&base.outbox(1))
            .unwrap()
            .contains(" of 401 non-empty files, in full; READ_FILE may show the others.")
    );

    let reply = "[READ_FILE path=\"large.py\"]\n[RUN_COMMAND]\nseq 100000\n[/RUN_COMMAND]\n";
    let reply = base.write("reply.txt", reply);
    let run = base.run(&["apply", reply.to_str().unwrap(), "--max-tokens", "6000", "--json"]).ok();
    let told: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(told["tokens"], count(2));
    assert!((5_000..=6_000).contains(&count(2)), "{}", count(2));
    assert!(
        base.outbox(2)
            .contains("are left out for room: [READ_FILE path=\"large.py\" start_line=\"")
    );
}

#[test]
fn a_task_that_is_too_long_by_itself_is_told_to_the_person() {
    let base = Project::new();
    let task = "Do what is right. ".repeat(2_000);
    let run = begin(&base, &["--max-tokens", "4000"], &task).ok();
    assert!(run.stderr.contains("tokens, more than max_tokens = 4000"), "{run:?}");
    assert_eq!(crate::replies::which_outbox::prompt(&base.outbox(1)), task.trim_end());
}
