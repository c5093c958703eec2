//! Definitions by their names, and long files that are cut between definitions, with the real program.

use crate::guests::sessions::Pair;
use crate::scene::results;
use crate::support::json_output::codes;
use crate::support::{ID, Project};

const STORE: &str = "import json\n\n\nclass Store:\n    # Reads it.\n    def load(self):\n        return 1\n\n    def save(self):\n        return 2\n\n\ndef load():\n    return 3\n";

fn read(symbol: &str) -> String {
    format!("[READ_FILE path=\"src/store.py\" symbol=\"{symbol}\"]\n")
}

/// What is requested is shown, can be edited by these lines, and follows what the reply does to the file.
fn is_shown(host: &Project, files: &Project) {
    files.write("workspace/src/store.py", STORE);
    let shown = "--- src/store.py (lines 5-7 of 14) ---\n5|     # Reads it.\n6|     def load(self):\n7|         return 1\n--- end src/store.py (lines 5-7 of 14) ---\n";
    for symbol in ["Store.load", "Store::load"] {
        let turn = host.turn(&read(symbol));
        assert_eq!(turn.codes(), ["ok"]);
        assert!(turn.outbox.contains(shown), "{turn:?}");
        assert!(turn.outbox.contains("each line is behind its number"), "{turn:?}");
    }
    // As it is after all of the reply.
    let edit = "[EDIT_FILE path=\"src/store.py\" start_line=\"7\" end_line=\"7\"]\n        x = 1\n        return x\n[/EDIT_FILE]\n";
    let turn = host.turn(&(read("Store.load\" numbered=\"false") + edit));
    assert_eq!(turn.codes(), ["ok", "ok"]);
    assert!(turn.outbox.contains("(lines 5-8 of 15) ---\n5|     # Reads it.\n"), "{turn:?}");
    // Rendered again, it is the same.
    let outbox = format!("outbox/{ID}_seq0004.txt");
    let text = host.read(&outbox);
    std::fs::remove_file(host.at(&outbox)).unwrap();
    host.run(&["resume", "--no-watch"]).ok();
    assert_eq!(host.read(&outbox), text);
}

#[test]
fn a_definition_is_shown_by_its_name_with_the_comments_above_it() {
    let base = Project::with_session();
    is_shown(&base, &base);
}

#[test]
fn in_a_guest_too() {
    let pair = Pair::with_session();
    is_shown(&pair.host, &pair.guest);
}

#[test]
fn what_no_or_several_definitions_are_named_is_told_with_their_lines() {
    let base = Project::with_session();
    base.write("workspace/src/store.py", STORE);
    base.write("workspace/notes.txt", "load\n");
    let reply = [
        read("load"),
        read("Store.sav"),
        read("zzz"),
        "[READ_FILE path=\"notes.txt\" symbol=\"load\"]\n".to_owned(),
        "[READ_FILE path=\"none.py\" symbol=\"load\"]\n".to_owned(),
        read("load\" end_line=\"3"),
        read("load\" start_line=\"3"),
        read(""),
    ]
    .concat();
    let told = base.run_with(&["check", "--json"], &reply).with_code(1).json();
    let expected = [
        "symbol-not-once",
        "no-such-symbol",
        "no-such-symbol",
        "no-such-symbol",
        "file-not-found",
        "part-range",
        "part-range",
        "attribute-value",
    ];
    assert_eq!(codes(&told["commands"]), expected);
    let turn = base.turn(&reply);
    assert_eq!(turn.codes(), expected);
    let results = results(&turn.outbox);
    for told in [
        "has 2 definitions 'load': Store.load (lines 5-7), load (lines 13-14); ask for one with start_line and end_line (line 1 of",
        "has no definition 'Store.sav'; the nearest: Store.save (lines 9-10) (line 2 of",
        "has no definition 'zzz'; it defines Store (lines 4-10), Store.load (lines 5-7), Store.save (lines 9-10), load (lines 13-14) (line 3 of",
        "'notes.txt' has no definition 'load'; no definitions were found there (line 4 of",
        "symbol stands alone, without start_line and end_line",
    ] {
        assert!(results.contains(told), "{told}: {results}");
    }
    // Where the session would end otherwise, it goes on.
    let done = "[DONE if=\"ok\"]\nDone.\n[/DONE]\n";
    assert_eq!(base.codes(&(read("zzz") + done)), ["no-such-symbol", "ineffective-done"]);
}

#[test]
fn secrets_of_a_definition_and_in_names_stay_here() {
    let base = Project::with_session();
    let key = "AKIAQYLPMN5HHHFPZAM2";
    base.write(
        "workspace/src/store.py",
        format!("def load():\n    key = \"{key}\"\n\n\ndef {key}():\n    pass\n"),
    );
    let turn = base.turn(&(read("load") + &read("none")));
    assert_eq!(turn.codes(), ["ok", "no-such-symbol"]);
    assert!(turn.outbox.contains("1| def load():\n2|     key = \"[withheld: "), "{turn:?}");
    assert!(!turn.outbox.contains(key), "{turn:?}");
}

/// A file of this many functions with this many lines each.
fn functions(count: usize, lines: usize) -> String {
    let body = "    value = compute(value, another_value, third_value)\n".repeat(lines - 1);
    (0..count).map(|n| format!("def function_{n}():\n{body}\n\n")).collect()
}

/// The line before which a requested file is cut.
fn cut(text: &str) -> (usize, String) {
    let base = Project::with_session();
    base.write("workspace/long.py", text);
    let outbox = base.apply("[READ_FILE path=\"long.py\"]\n");
    let (_, told) = outbox.split_once("\n... lines ").unwrap();
    let next = told.split_once('-').unwrap().0.parse().unwrap();
    assert!(
        told.contains(&format!("[READ_FILE path=\"long.py\" start_line=\"{next}\"]")),
        "{told}"
    );
    (next, outbox)
}

#[test]
fn a_long_file_is_cut_between_definitions_if_that_keeps_half_of_what_fits() {
    let text = functions(30, 100);
    let (next, outbox) = cut(&text);
    assert!(text.lines().nth(next - 1).unwrap().starts_with("def function_"), "{next}");
    assert!(next > 500 && outbox.contains("\n  Limits: 30 s a command, 4000 characters of its output, 24000 tokens a message\n"));
    // One function alone fills all that fits.
    let (next, _) = cut(&functions(2, 1_500));
    assert!(next > 500, "{next}");
    // Of a class, methods are the outermost definitions that it can be cut at.
    let class =
        functions(30, 100).replace("def ", "    def ").replace("    value", "        value");
    let text = format!("class All:\n{class}");
    let (next, _) = cut(&text);
    assert!(text.lines().nth(next - 1).unwrap().starts_with("    def function_"), "{next}");
}
