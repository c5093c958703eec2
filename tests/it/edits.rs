//! Edits by line numbers of files that somebody else changed meanwhile.

use crate::guests::Pair;
use crate::scene::results;
use crate::support::{Base, ID};

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
fn is_refused_once(host: &Base, files: &Base) {
    files.write("workspace/a", OLD);
    host.apply(READ);
    files.write("workspace/a", NEW);
    let told = results(&host.apply(&edit(5, "five")));
    assert_eq!(
        told,
        "[FAILED] EDIT_FILE: 'a' has changed since you last saw it (a command or the user changed it), so line 5 may be another than you mean; nothing was changed: its lines 2-8, of 10, as they are now are shown with this. Send the edit again with the line numbers as they are now, or with SEARCH and REPLACE (line 1 of the reply, `[EDIT_FILE path=\"a\" start_line=\"5\" end_line=\"5\"]`)\n  2| 1\n  3| 2\n  4| 3\n  5| 4\n  6| 5\n  7| 6\n  8| 7\n"
    );
    assert_eq!(files.read("workspace/a"), NEW);
    // These lines were shown, and what the edit itself wrote is known.
    let told = results(&host.apply(&(edit(6, "five") + &edit(7, "six"))));
    assert_eq!(told.matches("[OK] EDIT_FILE").count(), 2, "{told}");
    assert_eq!(files.read("workspace/a"), NEW.replace("5\n6\n", "five\nsix\n"));
    // An edit by search needs no numbers; it does not make the rest of the file seen.
    files.write("workspace/a", OLD.replace('5', "V"));
    let search =
        "[EDIT_FILE path=\"a\"]\n<<<<<<< SEARCH\n9\n=======\nnine\n>>>>>>> REPLACE\n[/EDIT_FILE]\n";
    let told = results(&host.apply(&(search.to_owned() + &edit(1, "one"))));
    assert!(told.starts_with("[OK] EDIT_FILE: Edited 'a' (1 replacement)\n  6| 6\n"), "{told}");
    assert!(told.contains("\n[FAILED] EDIT_FILE: 'a' has changed"), "{told}");
    // What nobody was shown is edited as it stands.
    files.write("workspace/b", "x\n");
    let told = results(&host.apply(&edit(1, "y").replace("\"a\"", "\"b\"")));
    assert_eq!(
        told,
        "[OK] EDIT_FILE: Edited 'b' (line 1 replaced by 1 line; the file has 1 line now)\n  1| y\n"
    );
}

#[test]
fn what_a_person_changed_meanwhile_is_not_edited_by_old_numbers() {
    let base = Base::with_session();
    is_refused_once(&base, &base);
}

#[test]
fn nor_is_it_in_a_guest() {
    let pair = Pair::with_session();
    is_refused_once(&pair.host, &pair.guest);
}

#[test]
fn the_same_edit_sent_again_is_carried_out_and_a_check_foretells_both() {
    let base = Base::with_session();
    base.write("workspace/a", OLD);
    base.apply(READ);
    let reply = base.write("reply.txt", edit(5, "five"));
    let reply = reply.to_str().unwrap();
    base.run(&["check", reply]).ok();
    base.write("workspace/a", NEW);
    let told = base.run(&["check", reply]).with_code(1).stdout;
    assert!(told.contains("'a' has changed since you last saw it"), "{told}");
    assert!(base.apply(&edit(5, "five")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    base.run(&["check", reply]).ok();
    base.run(&["apply", "--again", "--session", ID, reply]).ok();
    assert_eq!(base.read("workspace/a"), NEW.replace("4\n", "five\n"));
}

#[test]
fn what_is_seen_does_not_count_before_it_is_shown() {
    let base = Base::with_session();
    base.write("workspace/a", OLD);
    base.apply(READ);
    base.write("workspace/a", NEW);
    // The file is read for the outbox after this edit was written.
    let outbox = base.apply(&(READ.to_owned() + &edit(5, "five")));
    assert!(outbox.contains("[FAILED] EDIT_FILE: 'a' has changed"), "{outbox}");
    assert!(outbox.contains(&format!("--- a ---\n{NEW}--- end a ---")), "{outbox}");
    assert!(base.apply(&edit(6, "five")).contains("[OK] EDIT_FILE"));
    // Nobody knows a file that was removed and made anew.
    base.apply("[DELETE_FILE path=\"a\"]\n");
    base.write("workspace/a", OLD);
    assert!(base.apply(&edit(1, "one")).contains("[OK] EDIT_FILE"));
}

#[test]
fn of_a_file_that_changed_only_the_lines_shown_since_are_edited_by_numbers() {
    let base = Base::with_session();
    let lines = |from: usize| (from..=60).map(|n| format!("{n}\n")).collect::<String>();
    base.write("workspace/a", lines(1));
    base.apply(READ);
    base.write("workspace/a", lines(0));
    base.apply("[READ_FILE path=\"a\" start_line=\"20\" end_line=\"25\"]\n");
    assert!(base.apply(&edit(50, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    let told = results(&base.apply(&(edit(22, "twenty-one") + &edit(26, "x"))));
    assert!(told.starts_with("[OK] EDIT_FILE") && told.contains("\n[FAILED] EDIT_FILE"), "{told}");
    // What a refusal showed is known; what it showed before that still is, too.
    let told = results(&base.apply(&(edit(50, "forty-nine") + &edit(20, "nineteen"))));
    assert_eq!(told.matches("[OK] EDIT_FILE").count(), 2, "{told}");
    let now = lines(0).replace("\n21\n", "\ntwenty-one\n").replace("\n49\n", "\nforty-nine\n");
    assert_eq!(base.read("workspace/a"), now.replace("\n19\n", "\nnineteen\n"));
    // A part of what nobody changed leaves all of it known.
    base.apply(READ);
    base.apply("[READ_FILE path=\"a\" start_line=\"30\" end_line=\"35\"]\n");
    assert!(base.apply(&edit(1, "zero")).contains("[OK] EDIT_FILE"));
}

#[test]
fn lines_that_there_was_no_room_for_are_not_seen() {
    let base = Base::with_session();
    let lines =
        |first: &str| format!("{first}\n{}", "a line of words, again and again\n".repeat(5_000));
    base.write("workspace/a", lines("1"));
    base.apply(READ);
    base.write("workspace/a", lines("one"));
    // Its beginning is shown: the rest is left out for room.
    let outbox = base.apply(&(READ.to_owned() + "[MESSAGE]once more[/MESSAGE]\n"));
    assert!(outbox.contains("left out for room: [READ_FILE path=\"a\""), "{outbox}");
    assert!(base.apply(&edit(4_900, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    let told = results(&base.apply(&(edit(2, "x") + &edit(4_900, "x"))));
    assert_eq!(told.matches("[OK] EDIT_FILE").count(), 2, "{told}");
}

#[test]
fn fresh_lines_that_there_was_no_room_for_are_not_seen_either() {
    let base = Base::with_session();
    base.write("deaddrop.toml", "max_tokens = 4000\n");
    base.write("workspace/a", OLD);
    base.apply(READ);
    base.write("workspace/a", NEW);
    // Failures that are told first take all the room that there is for results.
    let missing = |n: usize| format!("[DELETE_FILE path=\"missing/number{n}\"]\n");
    let much: String = (0..300).map(missing).collect();
    let told = results(&base.apply(&(much + &edit(5, "five"))));
    assert!(told.contains("more results are left out for room") && !told.contains("EDIT_FILE"));
    let told = results(&base.apply(&edit(5, "five")));
    assert!(told.starts_with("[FAILED] EDIT_FILE: 'a' has changed"), "{told}");
    assert!(base.apply(&edit(6, "five")).contains("[OK] EDIT_FILE"));
}

#[test]
fn a_large_file_is_known_by_what_was_read_of_it_and_its_size() {
    let base = Base::with_session();
    let lines = |n: usize| (0..n).map(|n| format!("{n}\n")).collect::<String>();
    let large = lines(50_000);
    assert!(large.len() > 200_000);
    base.write("workspace/a", &large);
    base.apply(READ);
    assert!(base.apply(&edit(1, "zero")).contains("[OK] EDIT_FILE"));
    assert!(base.apply(&edit(2, "one")).contains("[OK] EDIT_FILE"));
    base.apply(READ);
    base.write("workspace/a", large + "more\n");
    assert!(base.apply(&edit(3, "two")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
}

fn search(text: &str) -> String {
    format!("[SEARCH pattern=\"{text}\" path=\"a\"]\n")
}

#[test]
fn lines_that_a_search_showed_are_edited_by_their_numbers() {
    let base = Base::with_session();
    base.write("workspace/a", OLD);
    base.apply(READ);
    base.write("workspace/a", NEW);
    let told = results(&base.apply(&search("[56]")));
    assert!(told.contains("  a:6:5\n  a:7:6\n"), "{told}");
    // The line before them is not known as it is now.
    assert!(base.apply(&edit(5, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    base.write("workspace/a", OLD.replace('1', "0\n1"));
    base.apply(&search("[56]"));
    let told = results(&base.apply(&(edit(6, "five") + &edit(7, "six"))));
    assert_eq!(told.matches("[OK] EDIT_FILE").count(), 2, "{told}");
    // What changed after the search is not what it showed.
    base.apply(&search("[89]"));
    base.write("workspace/a", OLD);
    assert!(base.apply(&edit(9, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    // Nor is what the rest of the same reply made of it.
    let swap = "[RUN_COMMAND]\nprintf '9\\n8\\n' > a\n[/RUN_COMMAND]\n";
    let told = results(&base.apply(&(search("8") + swap)));
    assert!(told.contains("  a:8:8\n"), "{told}");
    assert!(base.apply(&edit(1, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
}

#[test]
fn a_file_that_only_a_search_showed_lines_of_is_one_that_was_seen() {
    let base = Base::with_session();
    base.write("workspace/a", OLD);
    base.apply(&search("7"));
    base.write("workspace/a", NEW);
    assert!(base.apply(&edit(7, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    assert_eq!(base.read("workspace/a"), NEW);
}

#[test]
fn lines_that_are_shown_cut_or_without_a_secret_are_not_seen() {
    let base = Base::with_session();
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
        let told = results(&base.apply(&edit(line, "x")));
        assert!(told.starts_with("[FAILED] EDIT_FILE: 'a' has changed"), "{told}");
        let long = "Line 2 is too long to be shown whole here: READ_FILE it (start_line=\"2\" end_line=\"2\")";
        assert_eq!(told.contains(long), line == 2, "{told}");
    }
    // Those refusals showed neither of the two as it is, and the last line.
    assert!(base.apply(&edit(2, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    assert!(base.apply(&edit(3, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    assert!(base.apply(&edit(4, "x")).contains("[OK] EDIT_FILE"));
}

#[test]
fn lines_that_a_pair_found_nearest_are_edited_by_their_numbers() {
    let pair = "[EDIT_FILE path=\"a\"]\n<<<<<<< SEARCH\n  fn six() {}\n=======\nx\n>>>>>>> REPLACE\n[/EDIT_FILE]\n";
    let base = Base::with_session();
    let file = |first: &str| OLD.replace('1', first).replace('6', "fn six() {}");
    base.write("workspace/a", file("1"));
    base.apply(READ);
    base.write("workspace/a", file("0\n1"));
    let told = results(&base.apply(pair));
    assert!(
        told.contains("The nearest is line 7") && told.contains("\n   7| fn six() {}\n"),
        "{told}"
    );
    assert!(base.apply(&edit(1, "x")).contains("[FAILED] EDIT_FILE: 'a' has changed"));
    let told = results(&base.apply(pair));
    assert!(told.contains("The nearest is line 7"), "{told}");
    assert!(base.apply(&edit(7, "six")).contains("[OK] EDIT_FILE"));
    assert_eq!(base.read("workspace/a"), file("0\n1").replace("fn six() {}", "six"));
}

#[test]
fn an_error_quotes_the_tag_as_it_was_sent() {
    let base = Base::with_session();
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
