//! Edits by line numbers of files that somebody else changed meanwhile.

use crate::guests::sessions::Pair;
use crate::scene::results;
use crate::support::json_output::codes;
use crate::support::{ID, Project};

const READ: &str = "[READ_FILE path=\"a\"]\n";
const OLD: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
/// The same with a line put in by a person.
const NEW: &str = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";

fn edit(line: usize, text: &str) -> String {
    format!(
        "[EDIT_FILE path=\"a\" start_line=\"{line}\" end_line=\"{line}\"]\n{text}\n[/EDIT_FILE]\n"
    )
}

/// A person changes a file between the turn that showed it and an edit by line numbers.
fn is_refused_once(host: &Project, files: &Project) {
    files.write("workspace/a", OLD);
    host.apply(READ);
    files.write("workspace/a", NEW);
    let turn = host.turn(&edit(5, "five"));
    assert_eq!(turn.codes(), ["stale-lines"]);
    let told = results(&turn.outbox);
    let (_, shown) = told.split_once('\n').unwrap();
    assert_eq!(shown, "  2| 1\n  3| 2\n  4| 3\n  5| 4\n  6| 5\n  7| 6\n  8| 7\n");
    assert_eq!(files.read("workspace/a"), NEW);
    // These lines were shown, and what the edit itself wrote is known.
    assert_eq!(host.codes(&(edit(6, "five") + &edit(7, "six"))), ["ok", "ok"]);
    assert_eq!(files.read("workspace/a"), NEW.replace("5\n6\n", "five\nsix\n"));
    // An edit by search needs no numbers; it does not make the rest of the file seen.
    files.write("workspace/a", OLD.replace('5', "V"));
    let search =
        "[EDIT_FILE path=\"a\"]\n<<<<<<< SEARCH\n9\n=======\nnine\n>>>>>>> REPLACE\n[/EDIT_FILE]\n";
    let turn = host.turn(&(search.to_owned() + &edit(1, "one")));
    assert_eq!(turn.codes(), ["ok", "stale-lines"]);
    assert_eq!(results(&turn.outbox).lines().nth(1), Some("  6| 6"), "{turn:?}");
    // What nobody was shown is edited as it stands.
    files.write("workspace/b", "x\n");
    assert_eq!(host.codes(&edit(1, "y").replace("\"a\"", "\"b\"")), ["ok"]);
    assert_eq!(files.read("workspace/b"), "y\n");
}

#[test]
fn what_a_person_changed_meanwhile_is_not_edited_by_old_numbers() {
    let base = Project::with_session();
    is_refused_once(&base, &base);
}

#[test]
fn nor_is_it_in_a_guest() {
    let pair = Pair::with_session();
    is_refused_once(&pair.host, &pair.guest);
}

#[test]
fn the_same_edit_sent_again_is_carried_out_and_a_check_foretells_both() {
    let base = Project::with_session();
    base.write("workspace/a", OLD);
    base.apply(READ);
    let reply = base.write("reply.txt", edit(5, "five"));
    let reply = reply.to_str().unwrap();
    base.run(&["check", reply]).ok();
    base.write("workspace/a", NEW);
    let told = base.run(&["check", reply, "--json"]).with_code(1).json();
    assert_eq!(codes(&told["commands"]), ["stale-lines"]);
    assert_eq!(base.codes(&edit(5, "five")), ["stale-lines"]);
    base.run(&["check", reply]).ok();
    base.run(&["apply", "--again", "--session", ID, reply]).ok();
    assert_eq!(base.read("workspace/a"), NEW.replace("4\n", "five\n"));
}

#[test]
fn what_is_seen_does_not_count_before_it_is_shown() {
    let base = Project::with_session();
    base.write("workspace/a", OLD);
    base.apply(READ);
    base.write("workspace/a", NEW);
    // The file is read for the outbox after this edit was written.
    let turn = base.turn(&(READ.to_owned() + &edit(5, "five")));
    assert_eq!(turn.codes(), ["ok", "stale-lines"]);
    let outbox = turn.outbox;
    assert!(outbox.contains(&format!("--- a ---\n{NEW}--- end a ---")), "{outbox}");
    assert_eq!(base.codes(&edit(6, "five")), ["ok"]);
    // Nobody knows a file that was removed and made anew.
    base.apply("[DELETE_FILE path=\"a\"]\n");
    base.write("workspace/a", OLD);
    assert_eq!(base.codes(&edit(1, "one")), ["ok"]);
}

#[test]
fn of_a_file_that_changed_only_the_lines_shown_since_are_edited_by_numbers() {
    let base = Project::with_session();
    let lines = |from: usize| (from..=60).map(|n| format!("{n}\n")).collect::<String>();
    base.write("workspace/a", lines(1));
    base.apply(READ);
    base.write("workspace/a", lines(0));
    base.apply("[READ_FILE path=\"a\" start_line=\"20\" end_line=\"25\"]\n");
    assert_eq!(base.codes(&edit(50, "x")), ["stale-lines"]);
    let codes = base.codes(&(edit(22, "twenty-one") + &edit(26, "x")));
    assert_eq!(codes, ["ok", "stale-lines"]);
    // What a refusal showed is known; what it showed before that still is, too.
    assert_eq!(base.codes(&(edit(50, "forty-nine") + &edit(20, "nineteen"))), ["ok", "ok"]);
    let now = lines(0).replace("\n21\n", "\ntwenty-one\n").replace("\n49\n", "\nforty-nine\n");
    assert_eq!(base.read("workspace/a"), now.replace("\n19\n", "\nnineteen\n"));
    // A part of what nobody changed leaves all of it known.
    base.apply(READ);
    base.apply("[READ_FILE path=\"a\" start_line=\"30\" end_line=\"35\"]\n");
    assert_eq!(base.codes(&edit(1, "zero")), ["ok"]);
}

#[test]
fn lines_that_there_was_no_room_for_are_not_seen() {
    let base = Project::with_session();
    let lines =
        |first: &str| format!("{first}\n{}", "a line of words, again and again\n".repeat(5_000));
    base.write("workspace/a", lines("1"));
    base.apply(READ);
    base.write("workspace/a", lines("one"));
    // Its beginning is shown: the rest is left out for room.
    let outbox = base.apply(&(READ.to_owned() + "[MESSAGE]once more[/MESSAGE]\n"));
    assert!(outbox.contains("left out for room: [READ_FILE path=\"a\""), "{outbox}");
    assert_eq!(base.codes(&edit(4_900, "x")), ["stale-lines"]);
    assert_eq!(base.codes(&(edit(2, "x") + &edit(4_900, "x"))), ["ok", "ok"]);
}

#[test]
fn fresh_lines_that_there_was_no_room_for_are_not_seen_either() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "max_tokens = 4000\n");
    base.write("workspace/a", OLD);
    base.apply(READ);
    base.write("workspace/a", NEW);
    // Failures that are told first take all the room that there is for results.
    let missing = |n: usize| format!("[DELETE_FILE path=\"missing/number{n}\"]\n");
    let much: String = (0..300).map(missing).collect();
    let told = results(&base.apply(&(much + &edit(5, "five"))));
    assert!(told.contains("more results are left out for room") && !told.contains("EDIT_FILE"));
    assert_eq!(base.codes(&edit(5, "five")), ["stale-lines"]);
    assert_eq!(base.codes(&edit(6, "five")), ["ok"]);
}

#[test]
fn a_large_file_is_known_by_what_was_read_of_it_and_its_size() {
    let base = Project::with_session();
    let lines = |n: usize| (0..n).map(|n| format!("{n}\n")).collect::<String>();
    let large = lines(50_000);
    assert!(large.len() > 200_000);
    base.write("workspace/a", &large);
    base.apply(READ);
    assert_eq!(base.codes(&edit(1, "zero")), ["ok"]);
    assert_eq!(base.codes(&edit(2, "one")), ["ok"]);
    base.apply(READ);
    base.write("workspace/a", large + "more\n");
    assert_eq!(base.codes(&edit(3, "two")), ["stale-lines"]);
}

fn search(text: &str) -> String {
    format!("[SEARCH pattern=\"{text}\" path=\"a\"]\n")
}

#[test]
fn lines_that_a_search_showed_are_edited_by_their_numbers() {
    let base = Project::with_session();
    base.write("workspace/a", OLD);
    base.apply(READ);
    base.write("workspace/a", NEW);
    let told = results(&base.apply(&search("[56]")));
    assert!(told.contains("  a:6:5\n  a:7:6\n"), "{told}");
    // The line before them is not known as it is now.
    assert_eq!(base.codes(&edit(5, "x")), ["stale-lines"]);
    base.write("workspace/a", OLD.replace('1', "0\n1"));
    base.apply(&search("[56]"));
    assert_eq!(base.codes(&(edit(6, "five") + &edit(7, "six"))), ["ok", "ok"]);
    // What changed after the search is not what it showed.
    base.apply(&search("[89]"));
    base.write("workspace/a", OLD);
    assert_eq!(base.codes(&edit(9, "x")), ["stale-lines"]);
    // Nor is what the rest of the same reply made of it.
    let swap = "[RUN_COMMAND]\nprintf '9\\n8\\n' > a\n[/RUN_COMMAND]\n";
    let told = results(&base.apply(&(search("8") + swap)));
    assert!(told.contains("  a:8:8\n"), "{told}");
    assert_eq!(base.codes(&edit(1, "x")), ["stale-lines"]);
}

#[test]
fn a_file_that_only_a_search_showed_lines_of_is_one_that_was_seen() {
    let base = Project::with_session();
    base.write("workspace/a", OLD);
    base.apply(&search("7"));
    base.write("workspace/a", NEW);
    assert_eq!(base.codes(&edit(7, "x")), ["stale-lines"]);
    assert_eq!(base.read("workspace/a"), NEW);
}

#[test]
fn lines_that_are_shown_cut_or_without_a_secret_are_not_seen() {
    let base = Project::with_session();
    let file = |first: &str| {
        let long = format!("needle {}", "long words ".repeat(40));
        let password = "needle password = \"kJ8vN2qLx9TzR4wB7mYc\"";
        format!("{first}{long}\n{password}\nneedle\n")
    };
    base.write("workspace/a", file(""));
    base.apply(READ);
    base.write("workspace/a", file("0\n"));
    let told = results(&base.apply(&search("needle")));
    assert!(told.contains("withheld") && told.contains("long wo…\n"), "{told}");
    for line in [2, 3] {
        let turn = base.turn(&edit(line, "x"));
        assert_eq!(turn.codes(), ["stale-lines"]);
        let how_to_read_it = "(start_line=\"2\" end_line=\"2\")";
        assert_eq!(turn.outbox.contains(how_to_read_it), line == 2, "{turn:?}");
    }
    // Those refusals showed neither of the two as it is, and the last line.
    assert_eq!(base.codes(&edit(2, "x")), ["stale-lines"]);
    assert_eq!(base.codes(&edit(3, "x")), ["stale-lines"]);
    assert_eq!(base.codes(&edit(4, "x")), ["ok"]);
}

#[test]
fn lines_that_a_pair_found_nearest_are_edited_by_their_numbers() {
    let pair = "[EDIT_FILE path=\"a\"]\n<<<<<<< SEARCH\n  fn six() {}\n=======\nx\n>>>>>>> REPLACE\n[/EDIT_FILE]\n";
    let base = Project::with_session();
    let file = |first: &str| OLD.replace('1', first).replace('6', "fn six() {}");
    base.write("workspace/a", file("1"));
    base.apply(READ);
    base.write("workspace/a", file("0\n1"));
    let turn = base.turn(pair);
    assert_eq!(turn.codes(), ["text-not-found"]);
    assert!(turn.outbox.contains("\n   7| fn six() {}\n"), "{turn:?}");
    assert_eq!(base.codes(&edit(1, "x")), ["stale-lines"]);
    assert_eq!(base.codes(pair), ["text-not-found"]);
    assert_eq!(base.codes(&edit(7, "six")), ["ok"]);
    assert_eq!(base.read("workspace/a"), file("0\n1").replace("fn six() {}", "six"));
}

#[test]
fn an_error_quotes_the_tag_as_it_was_sent() {
    let base = Project::with_session();
    base.write("workspace/a", "1\n");
    let reply = "Words.\n- [DELETE_FILE path='nothing']\n[DELETE_FILE path=\"none\"]\n[READ_FILE  path=\"./gone\" start_line=\"1\" end_line=\"2\" why=\"so\"]\n[EDIT_FILE end_line=\"9\" start_line=\"7\" path=\"a\"]\nx\n[/EDIT_FILE]\n";
    let told = results(&base.apply(reply));
    for quoted in [
        "(line 2 of the reply, `- [DELETE_FILE path='nothing']`)",
        "(line 3 of the reply, `[DELETE_FILE path=\"none\"]`)",
        "(line 4 of the reply, `[READ_FILE  path=\"./gone\" start_line=\"1\" end_line=\"2\" why=\"so\"]`)",
        "(line 5 of the reply, `[EDIT_FILE end_line=\"9\" start_line=\"7\" path=\"a\"]`). Correct form",
    ] {
        assert!(told.contains(quoted), "{quoted}: {told}");
    }
}
