//! The daemon and those who write into its inbox: each reply is taken once, whole and in order.

use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, SystemTime};

use crate::support::{Daemon, Project, set_time, wait_until};

/// A command that tells that it runs, and ends when `workspace/go` appears.
const WAITS: &str =
    "[RUN_COMMAND]\ntouch begun\nuntil [ -e go ]; do sleep 0.01; done\n[/RUN_COMMAND]\n";

fn serving() -> (Project, Daemon) {
    let base = Project::with_session();
    let daemon = base.serve(&["resume"]);
    (base, daemon)
}

fn body() -> String {
    let line = |n| format!("line {n} of a file that is longer than one write\n");
    (1..=3000).map(line).collect::<Vec<_>>().concat()
}

fn creates(path: &str, body: &str) -> String {
    format!("[CREATE_FILE path=\"{path}\"]\n{body}[/CREATE_FILE]\n")
}

fn appends(word: &str) -> String {
    format!("[RUN_COMMAND]\necho {word} >> order\n[/RUN_COMMAND]\n")
}

/// Drops a reply of one message and waits for the outbox that answers it: whatever could be taken
/// before has been looked at by then.
#[track_caller]
fn probe(base: &Project, sequence: u32) {
    base.write("inbox/probe.txt", format!("[MESSAGE]\nProbe {sequence}\n[/MESSAGE]\n"));
    let outbox = base.wait_for_outbox(sequence);
    assert!(outbox.contains("[OK] MESSAGE"), "{outbox}");
}

/// A daemon serves while `script` puts `reply` into `inbox/x.txt`.
#[track_caller]
fn is_taken_once_and_whole(script: &str) {
    let (base, _daemon) = serving();
    base.write("reply", creates("made", &body()));
    base.sh(script);
    base.wait_for_outbox(2);
    assert_eq!(base.read("workspace/made"), body());
    probe(&base, 3);
    base.wait_for_archive(&["probe.txt", "x.txt"]);
    assert_eq!(base.names("inbox"), [".claimed", "processed"]);
}

#[test]
fn a_reply_that_is_copied_in_is_taken() {
    is_taken_once_and_whole("cp reply inbox/x.txt");
}

#[test]
fn a_reply_that_is_moved_in_is_taken() {
    is_taken_once_and_whole("mv reply inbox/x.txt");
}

#[test]
fn a_reply_that_is_linked_in_is_taken() {
    is_taken_once_and_whole("ln reply inbox/x.txt");
}

#[test]
fn a_reply_that_is_echoed_in_is_taken() {
    is_taken_once_and_whole("printf '%s\n' \"$(cat reply)\" > inbox/x.txt");
}

#[test]
fn a_reply_that_an_editor_saves_by_renaming_is_taken() {
    is_taken_once_and_whole("cp reply inbox/.x.txt.swp; mv inbox/.x.txt.swp inbox/x.txt");
    is_taken_once_and_whole("cp reply inbox/x.txt~; mv -f inbox/x.txt~ inbox/x.txt");
}

#[test]
fn a_reply_that_keeps_its_old_time_is_taken() {
    is_taken_once_and_whole("touch -d 2001-02-03 reply; cp -p reply inbox/x.txt");
}

#[test]
fn a_writer_that_pauses_between_writes_is_waited_for() {
    let (base, _daemon) = serving();
    let mut writer = File::create(base.at("inbox/x.txt")).unwrap();
    writer.write_all(creates("first", "1\n").as_bytes()).unwrap();
    probe(&base, 2);
    writer.write_all(b"[CREATE_FILE path=\"second\"]\n2\n").unwrap();
    probe(&base, 3);
    writer.write_all(b"2\n[/CREATE_FILE]\n").unwrap();
    probe(&base, 4);
    assert!(base.exists("inbox/x.txt") && !base.exists("workspace/first"));

    drop(writer);
    base.wait_for_outbox(5);
    assert_eq!(base.read("workspace/first"), "1\n");
    assert_eq!(base.read("workspace/second"), "2\n2\n");
    probe(&base, 6);
}

#[test]
fn a_download_is_taken_when_the_browser_moves_it_over_its_placeholder() {
    let (base, _daemon) = serving();
    base.write("inbox/x.txt", "");
    probe(&base, 2);
    let mut part = File::create(base.at("inbox/x.txt.part")).unwrap();
    part.write_all(b"[CREATE_FILE path=\"made\"]\n").unwrap();
    probe(&base, 3);
    part.write_all(format!("{}[/CREATE_FILE]\n", body()).as_bytes()).unwrap();
    drop(part);
    probe(&base, 4);
    assert_eq!(base.names("inbox"), [".claimed", "processed", "x.txt", "x.txt.part"]);

    fs::rename(base.at("inbox/x.txt.part"), base.at("inbox/x.txt")).unwrap();
    base.wait_for_outbox(5);
    assert_eq!(base.read("workspace/made"), body());
    assert_eq!(base.names("inbox"), [".claimed", "processed"]);
}

#[test]
fn a_loop_that_closes_the_file_after_each_line_is_waited_for() {
    is_taken_once_and_whole(
        "head -n 12 reply > head
         while read -r line; do printf '%s\n' \"$line\" >> inbox/x.txt; sleep 0.02; done < head
         sed -n '13,$p' reply >> inbox/x.txt",
    );
}

#[test]
fn a_block_that_is_never_closed_is_an_error_in_the_end() {
    let (base, _daemon) = serving();
    base.write("inbox/x.txt", "[CREATE_FILE path=\"a\"]\nx\n");
    let outbox = base.wait_for_outbox(2);
    assert!(outbox.contains("[FAILED] CREATE_FILE"), "{outbox}");
    assert!(!base.exists("workspace/a"));
}

#[test]
fn two_hundred_replies_at_once_are_taken_in_the_order_they_were_written() {
    let (base, _daemon) = serving();
    base.write("inbox/first.txt", WAITS);
    wait_until("the first command", || base.exists("workspace/begun"));
    let begin = SystemTime::now();
    let number = |n: u32| n * 7919 % 1000;
    for n in 0..200 {
        let path = base.write(&format!("staged/{}.txt", number(n)), appends(&n.to_string()));
        set_time(&path, begin + Duration::from_micros(n.into()));
    }
    base.sh("mv staged/* inbox/");
    base.write("workspace/go", "");
    for sequence in [52, 102, 152, 202] {
        base.wait_for_outbox(sequence);
    }
    let expected: String = (0..200).flat_map(|n| [n.to_string(), "\n".to_owned()]).collect();
    assert_eq!(base.read("workspace/order"), expected);
    wait_until("the archive", || base.names("inbox/processed").len() == 201);
}

/// Replies that appear in the inbox at once, each with the time it was written.
fn order_of(replies: &[(&str, SystemTime)]) -> String {
    let base = Project::with_session();
    for (name, time) in replies {
        let path = base.write(&format!("inbox/{name}.txt"), appends(name));
        set_time(&path, *time);
    }
    base.run(&["resume", "--no-watch"]).ok();
    base.read("workspace/order").replace('\n', " ")
}

#[test]
fn two_replies_of_one_second_are_taken_in_their_order() {
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let at = |millis| second + Duration::from_millis(millis);
    assert_eq!(order_of(&[("a", at(900)), ("b", at(100)), ("c", at(500))]), "b c a ");
}

#[test]
fn replies_of_one_moment_are_taken_by_name() {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    assert_eq!(order_of(&[("c", moment), ("a", moment), ("b", moment)]), "a b c ");
}

#[test]
fn a_reply_from_the_future_is_taken_too() {
    let future = SystemTime::now() + Duration::from_hours(24);
    assert_eq!(order_of(&[("later", future), ("now", SystemTime::now())]), "now later ");
}

#[test]
fn an_inbox_that_is_deleted_is_made_anew() {
    let (base, _daemon) = serving();
    probe(&base, 2);
    // Until then the daemon makes folders in it, also while they are removed.
    base.wait_for_archive(&["probe.txt"]);
    base.sh("rm -r inbox || rm -rf inbox");
    wait_until("an inbox", || base.exists("inbox"));
    probe(&base, 3);
}

#[test]
fn an_inbox_that_the_user_makes_anew_is_listened_to() {
    let (base, daemon) = serving();
    for n in 2..5 {
        if n > 2 {
            base.wait_for_archive(&["probe.txt"]);
        }
        daemon.signal("STOP");
        base.sh("rm -r inbox; mkdir inbox");
        daemon.signal("CONT");
        probe(&base, n);
    }
}

#[test]
fn an_inbox_that_is_renamed_away_is_left_behind() {
    let (base, _daemon) = serving();
    base.sh("mv inbox old");
    wait_until("a new inbox", || base.exists("inbox"));
    base.write("old/a.txt", creates("a", "x\n"));
    probe(&base, 2);
    probe(&base, 3);
    assert!(base.exists("old/a.txt") && !base.exists("workspace/a"));
}

#[test]
fn an_inbox_may_vanish_while_a_command_runs() {
    let (base, _daemon) = serving();
    base.write("inbox/a.txt", WAITS);
    wait_until("the command", || base.exists("workspace/begun"));
    base.sh("rm -r inbox || rm -rf inbox; touch workspace/go");
    base.wait_for_outbox(2);
    wait_until("an inbox", || base.exists("inbox"));
    probe(&base, 3);
}

#[test]
fn what_was_claimed_counts_whatever_becomes_of_the_file() {
    let (base, _daemon) = serving();
    base.write("inbox/a.txt", format!("{WAITS}{}", creates("made", "claimed\n")));
    wait_until("the command", || base.exists("workspace/begun"));
    base.write("inbox/a.txt", creates("made", "edited\n"));
    base.write("workspace/go", "");
    let first = base.wait_for_outbox(2);
    assert!(first.contains("[OK] CREATE_FILE: Created 'made'"), "{first}");
    let second = base.wait_for_outbox(3);
    assert!(second.contains("[OK] CREATE_FILE: Replaced 'made'"), "{second}");
    assert_eq!(base.read("workspace/made"), "edited\n");
    base.wait_for_archive(&["a-2.txt", "a.txt"]);
    assert!(base.read("inbox/processed/a.txt").ends_with("claimed\n[/CREATE_FILE]\n"));
    assert!(base.read("inbox/processed/a-2.txt").ends_with("edited\n[/CREATE_FILE]\n"));
}

#[test]
fn files_in_progress_are_left_alone() {
    let (base, _daemon) = serving();
    let names = ["a.txt.part", "a.txt.tmp", "a.txt~", "a.txt.crdownload", ".a.txt", "a~", "a.doc"];
    for name in names {
        base.write(&format!("inbox/{name}"), creates("made", "x\n"));
    }
    base.write("inbox/empty.txt", "");
    probe(&base, 2);
    probe(&base, 3);
    for name in names.into_iter().chain(["empty.txt"]) {
        assert!(base.exists(&format!("inbox/{name}")), "{name}");
    }
    assert!(!base.exists("workspace/made"));
}

#[test]
fn nothing_is_overwritten_in_the_archive() {
    let base = Project::with_session();
    base.write("inbox/processed/a.txt", "kept");
    for n in 2..5 {
        base.write("inbox/a.txt", creates("made", &format!("{n}\n")));
        base.run(&["resume", "--no-watch"]).ok();
    }
    assert_eq!(base.names("inbox/processed"), ["a-2.txt", "a-3.txt", "a-4.txt", "a.txt"]);
    assert_eq!(base.read("inbox/processed/a.txt"), "kept");
    assert_eq!(base.read("inbox/processed/a-3.txt"), creates("made", "3\n"));
}

#[test]
fn a_message_is_taken_from_the_inbox_as_json_or_as_text() {
    const MESSAGE: &str = r#"{"protocolVersion": "1.0", "operations": [{"type": "createFile", "path": "by-operations", "content": "x\n"}]}"#;
    for name in ["x.json", "x.txt"] {
        let base = Project::with_session();
        base.write(&format!("inbox/{name}"), MESSAGE);
        base.run(&["resume", "--no-watch"]).ok();
        assert_eq!(base.read("workspace/by-operations"), "x\n");
        assert_eq!(base.last_codes(), ["ok"]);
        base.wait_for_archive(&[name]);
    }
}

#[test]
fn markdown_and_names_without_an_ending_are_replies_and_other_endings_are_named_once() {
    let (base, daemon) = serving();
    for (n, name) in ["a.md", "b.Markdown", "reply"].iter().enumerate() {
        base.write(&format!("inbox/{name}"), appends(name));
        base.wait_for_outbox(u32::try_from(n).unwrap() + 2);
    }
    assert_eq!(base.read("workspace/order"), "a.md\nb.Markdown\nreply\n");

    let ignored = ["c.txt.crdownload", "c.md.part", "c.swp", "reply~", ".reply"];
    for name in ignored {
        base.write(&format!("inbox/{name}"), appends("temporary"));
    }
    fs::create_dir(base.at("inbox/old")).unwrap();
    base.write("inbox/d.docx", appends("other"));
    daemon.wait_for("d.docx is left where it is: ");
    probe(&base, 5);
    assert_eq!(daemon.said().matches("is left where it is").count(), 1, "{}", daemon.said());
    assert!(ignored.iter().all(|name| !daemon.said().contains(name)), "{}", daemon.said());
    // Another file of that name is named again.
    fs::remove_file(base.at("inbox/d.docx")).unwrap();
    probe(&base, 6);
    base.write("inbox/d.docx", appends("other"));
    wait_until("it is named again", || daemon.said().matches("d.docx is left").count() == 2);
    assert!(base.exists("inbox/old") && base.exists("inbox/c.swp"));
}
