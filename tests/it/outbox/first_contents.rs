//! What the first outbox shows of the workspace unasked, and how long outboxes are, with the real
//! program.

use std::fs;

use serde_json::Value;

use crate::guests::sessions::Pair;
use crate::support::{ID, Project, Run, has_full_sandbox, has_git};

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
    let begin = "3 of 4 non-empty files, in full; READ_FILE shows others.\n--- .ci/run.sh ---\nmake\n--- end .ci/run.sh ---\n--- notes.txt";
    assert!(section.starts_with(begin), "{section}");
    assert!(!outbox.contains("KEY=1"));

    for (pattern, why) in [("*.rs", "matches no listed file"), ("a{b", "is not a valid pattern: ")]
    {
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
            .starts_with("2 of 3 non-empty files, in full; READ_FILE shows others.\n")
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
    begin(&base, &["--max-tokens", "6000"], "Compute other values").ok();
    let count = |n: u32| deaddrop::tokens::count(&base.outbox(n));
    assert!((4_500..=6_000).contains(&count(1)), "{}", count(1));
    assert!(shown(&base.outbox(1)).unwrap().contains(" of 401 non-empty files, best first: "));

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
fn later_outboxes_have_short_listings_too() {
    let base = Project::new();
    for n in 0..390 {
        let path = format!("workspace/part{}/a_file_with_a_long_name_{n}_{n}_{n}.py", n % 9);
        base.write(&path, "x = 1\n");
    }
    let large: String = (0..1_800).map(|n| format!("value_{n} = compute({n})\n")).collect();
    base.write("workspace/large.py", &large);
    begin(&base, &["--no-contents"], "Compute other values").ok();
    let count = deaddrop::tokens::count;
    // What was requested is shown whole.
    let outbox = base.apply("[READ_FILE path=\"large.py\"]\n");
    assert!(outbox.contains(&large) && count(&outbox) > 8_000 + 2_000, "{}", count(&outbox));
    // More where results must be shortened.
    let hello = base.apply("[MESSAGE]\nHello\n[/MESSAGE]\n");
    for (outbox, most) in [(outbox, 2_000), (hello, 1_000)] {
        let (_, listing) = outbox.split_once("\n## Workspace Files\n").unwrap();
        let (listing, _) = listing.split_once("\n\n").unwrap();
        assert!((50..=most + most / 10).contains(&count(listing)), "{listing}");
    }
}

#[test]
fn a_task_that_is_too_long_by_itself_is_told_to_the_person() {
    let base = Project::new();
    let task = "Do what is right. ".repeat(2_000);
    let run = begin(&base, &["--max-tokens", "4000"], &task).ok();
    assert!(run.stderr.contains("tokens, more than max_tokens = 4000"), "{run:?}");
    assert_eq!(crate::replies::which_outbox::prompt(&base.outbox(1)), task.trim_end());
}

/// A project of many modules, of which few have to do with encoding.
fn large() -> Project {
    let base = Project::new();
    for n in 0..120 {
        let body: String =
            (0..30).map(|m| format!("def step_{n}_{m}(x):\n    return x + {m}\n\n\n")).collect();
        base.write(&format!("workspace/pkg/part{}/module_{n}.py", n % 10), body);
    }
    let helper = "def unrelated_{n}(x):\n    return x\n\n\n";
    let helpers = |from: usize| {
        (from..from + 40).map(|n| helper.replace("{n}", &n.to_string())).collect::<String>()
    };
    let encoder = format!(
        "from pkg.tables import ESCAPE_TABLE\n\n\n{}class JsonEncoder:\n    # Escapes a string.\n    def escape_string(self, text):\n        return ESCAPE_TABLE.escape(text)\n\n    def encode(self, value):\n        return self.escape_string(value)\n\n\n{}",
        helpers(0),
        helpers(40)
    );
    base.write("workspace/pkg/json/encoder.py", encoder);
    base.write("workspace/pkg/tables.py", format!("{}ESCAPE_TABLE = build_table()\n", helpers(80)));
    base.write(
        "workspace/tests/test_encoder.py",
        format!("{}def test_it():\n    pass\n", helpers(120)),
    );
    base
}

#[test]
fn of_a_large_project_the_first_outbox_shows_what_the_task_needs() {
    let base = large();
    let run = begin(&base, &[], "JsonEncoder does not escape a string with U+2028").ok();
    let outbox = base.outbox(1);
    let section = shown(&outbox).unwrap();
    let (marks, _) = section.split_once("\n--- end").unwrap();
    assert!(marks.contains("\n--- pkg/json/encoder.py (lines "), "{section}");
    // Definitions are numbered lines, and those that do not matter are left out.
    assert!(section.contains("\n166|     def escape_string(self, text):\n167| "), "{section}");
    assert!(!section.contains("unrelated_60") && section.contains("\n...\n"), "{section}");
    // What it refers to, and its tests, are at least outlined.
    for path in ["pkg/tables.py", "tests/test_encoder.py"] {
        let outlined = format!("\n  {path}:\n");
        assert!(
            outbox.contains(&format!("--- {path}")) || outbox.contains(&outlined),
            "{path}: {outbox}"
        );
    }
    assert!(deaddrop::tokens::count(&outbox) <= 8_000);
    assert!(
        run.stderr.contains("The outbox shows ") && run.stderr.contains("pkg/json/encoder.py"),
        "{run:?}"
    );
    // The listing opens the folder that matters, and not the others.
    assert!(outbox.contains("\n  pkg/json/encoder.py ("), "{outbox}");

    // It can be edited by the lines that were shown.
    let edit = "[EDIT_FILE path=\"pkg/json/encoder.py\" start_line=\"167\" end_line=\"167\"]\n        return text\n[/EDIT_FILE]\n";
    let next = base.apply(edit);
    assert!(next.contains("[OK] EDIT_FILE: "), "{next}");
    assert!(base.read("workspace/pkg/json/encoder.py").contains("text):\n        return text\n"));
}

#[test]
fn paths_and_lines_that_the_task_names_are_shown() {
    let task = "It fails:\n  File \"/home/x/pkg/tables.py\", line 81, in <module>\nSee also part3/module_33.py and tests/test_encoder.py:9.";
    let base = large();
    begin(&base, &[], task).ok();
    let outbox = base.outbox(1);
    for line in ["\n81| def unrelated_100(x):", "\n9| def unrelated_122(x):"] {
        assert!(outbox.contains(line), "{line}: {outbox}");
    }
    assert!(outbox.contains("\n--- pkg/part3/module_33.py"), "{outbox}");
}

#[test]
fn a_task_without_a_word_of_the_project_shows_its_beginnings_and_the_same_again() {
    let texts = [(); 2].map(|()| {
        let base = large();
        base.write("workspace/README.md", "# Pkg\nIt encodes.\n");
        begin(&base, &[], "Qwertz uiop").ok();
        base.outbox(1)
    });
    assert!(texts[0].contains("\n--- README.md ---\n# Pkg\n"), "{}", texts[0]);
    let body = |text: &str| {
        text.split_once("=== CONTEXT ===").unwrap().1.split_once("[REPLY").unwrap().0.to_owned()
    };
    assert_eq!(body(&texts[0]), body(&texts[1]));
}

#[test]
fn the_room_of_the_first_outbox_is_a_setting() {
    let count = |room: &str| {
        let base = large();
        begin(&base, &["--context-tokens", room], "Rename all functions step_1 and return x").ok();
        deaddrop::tokens::count(&base.outbox(1))
    };
    let (small, large) = (count("4000"), count("16000"));
    assert!(small <= 4_000 && (8_000..=16_000).contains(&large), "{small} {large}");
}

#[test]
fn of_data_that_the_task_names_the_beginning_and_the_number_of_lines_are_shown() {
    let base = large();
    let rows: String = (0..20_000).map(|n| format!("{n},item {n},{}\n", n * 3)).collect();
    base.write("workspace/data/prices.csv", format!("id,name,price\n{rows}"));
    begin(&base, &[], "Sum the prices in data/prices.csv by name").ok();
    let outbox = base.outbox(1);
    let begin = "\n--- data/prices.csv (lines 1-8 of 20001) ---\n1| id,name,price\n2| 0,item 0,0\n";
    assert!(outbox.contains(begin), "{outbox}");
}

#[test]
fn the_keys_of_json_that_the_task_names_are_told() {
    let base = large();
    let rows: Vec<_> = (0..3_000)
        .map(|n| serde_json::json!({"id": n, "cost": {"net": n}, "name": "item"}))
        .collect();
    base.write("workspace/data/prices.json", serde_json::to_string(&rows).unwrap());
    let root = serde_json::json!({"rows": rows, "\u{1b}unit": 1, "x".repeat(200): 1});
    base.write("workspace/data/root.json", serde_json::to_string_pretty(&root).unwrap());
    base.write("workspace/data/list.json", format!("[{}1]", "1,".repeat(9_000)));
    let task = "Sum data/prices.json, data/root.json and data/list.json";
    begin(&base, &[], task).ok();
    let outbox = base.outbox(1);
    for shown in [
        "\n  data/prices.json:\n    3000 objects with the keys cost, id, name\n",
        "\n--- data/root.json (lines 1-8",
        "\n  data/root.json:\n    1 object with the keys ␛unit, rows and 1 more\n",
        "\n  data/list.json:\n",
    ] {
        assert!(outbox.contains(shown), "{shown}: {outbox}");
    }
}

#[test]
fn files_of_commits_that_the_task_resembles_come_first() {
    if !(has_full_sandbox() && has_git()) {
        return;
    }
    let base = large();
    base.write("workspace/pkg/part7/module_77.py", "def step(x):\n    return x\n".repeat(200));
    let commit = "git -c user.name=x -c user.email=x commit -qam";
    base.sh(&format!("cd workspace && git init -q && git add . && {commit} x && echo >> pkg/part7/module_77.py && {commit} 'Round the discounts of wholesalers'"));
    begin(&base, &[], "Wholesalers get a discount of 5 %").ok();
    let section = base.outbox(1);
    let (_, first) = shown(&section).unwrap().split_once("\n--- ").unwrap();
    assert!(first.starts_with("pkg/part7/module_77.py (lines "), "{first}");
}

#[test]
fn the_changelog_and_what_stands_in_the_root_are_named() {
    let base = large();
    base.write("workspace/CHANGES.md", format!("# Changes\n\n## Next\n{}", "- x\n".repeat(200)));
    base.write("workspace/Makefile", "all:\n");
    begin(&base, &[], "JsonEncoder does not escape a string with U+2028").ok();
    let outbox = base.outbox(1);
    let changes = "\n--- CHANGES.md (lines 1-12 of 203) ---\n1| # Changes\n";
    assert!(outbox.contains(changes), "{outbox}");
    assert!(outbox.contains("\n  Makefile ("), "{outbox}");
}
