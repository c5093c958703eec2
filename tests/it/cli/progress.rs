//! What is drawn in place on a terminal: the line of what is waited for, and what runs.

use std::io::Write;

use crate::support::{ID, Project};
use crate::tmux::{PROMPT, Tmux};

const STOPS: &str = " · Ctrl-C stops";

/// A reply with a command that goes on until its workspace has a file `go`.
fn until_go(before: &str) -> String {
    format!(
        "[RUN_COMMAND]\n{before}\nwhile ! [ -e go ]; do sleep 0.02; done; rm go\n[/RUN_COMMAND]\n"
    )
}

/// The row of the screen that shows what runs, if one does and a second has passed.
fn spinner(screen: &str) -> Option<&str> {
    let marks = ["|", "/", "-", "\\"];
    screen.lines().find(|row| {
        let row = row.trim_start();
        let rest = marks.iter().find_map(|mark| row.strip_prefix(mark));
        rest.is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[track_caller]
fn wait_for_spinner(tmux: &Tmux, end: &str) -> String {
    let shown = |screen: &str| spinner(screen).is_some_and(|row| row.contains(end));
    tmux.wait_for(&format!("a spinner with '{end}'"), shown)
}

#[test]
fn one_line_says_what_is_waited_for_and_is_drawn_anew() {
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop watch");
    let waits = |n| format!("outbox/{ID}_seq{n:04}.txt\nWaiting for a reply in inbox/{STOPS}");
    tmux.shows(&waits(1));
    assert_eq!(tmux.column(), 0, "what comes next begins a row");
    // Half a reply, by somebody who is not at its end.
    let half = base.at("inbox/half.txt");
    let mut half = std::fs::File::create(half).unwrap();
    half.write_all(b"[MESSAGE]\nHello").unwrap();
    let screen = tmux.shows("half.txt is not finished yet");
    assert!(!screen.contains("Waiting for"), "{screen}");
    half.write_all(b"\n[/MESSAGE]\n").unwrap();
    drop(half);
    let screen = tmux.shows(&waits(2));
    assert_eq!(screen.matches(STOPS).count(), 1, "{screen}");
    base.begin("00ff00ff");
    base.run(&["say", "--session", "00ff00ff", "x"]).ok();
    tmux.shows(&format!("Waiting for replies in inbox/{STOPS}"));
    tmux.key("C-c");
    tmux.shows(&format!("\nStopped. `deaddrop watch` continues.\n{PROMPT}"));
    assert!(!tmux.screen().contains(STOPS), "{}", tmux.screen());
}

#[test]
fn a_turn_shows_what_runs_and_what_came_of_it() {
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop watch");
    tmux.shows(STOPS);
    let reply = format!(
        "[CREATE_FILE path=\"a.py\"]\n1\n[/CREATE_FILE]\n{}[CREATE_FILE path=\"../x\"]\n1\n[/CREATE_FILE]\n[RUN_COMMAND]\necho first; echo it went wrong >&2; exit 3\n[/RUN_COMMAND]\n",
        until_go("printf 'one\\ntwo \\033[31m宽宽\\n'")
    );
    base.write("inbox/r.txt", reply);
    let screen = wait_for_spinner(&tmux, " · two ␛[31m宽宽");
    assert!(screen.contains("\n  ok    CREATE_FILE  Created 'a.py'\n"), "{screen}");
    assert!(spinner(&screen).unwrap().contains(" s RUN_COMMAND  'printf "), "{screen}");
    assert!(!screen.contains("   ..   "), "{screen}");
    assert_eq!(tmux.column(), 0);
    base.write("workspace/go", "");
    tmux.shows("0002.txt\nWaiting for a reply in inbox/ · Ctrl-C stops");
    let all = tmux.all();
    assert_eq!(spinner(&all), None, "{all}");
    for told in [
        "\nREFUSED CREATE_FILE  REJECTED: Path is outside workspace: '../x'",
        "\nFAILED  RUN_COMMAND  Ran 'echo first",
        "\n          it went wrong\n",
        "\n1 file changed: new a.py (+1)\nNext outbox, to paste into the chat (≈ ",
        " tokens):\noutbox/a1b2c3d4_seq0002.txt\nWaiting for a reply",
    ] {
        assert!(all.contains(told), "{told} in {all}");
    }
}

#[test]
fn long_and_odd_output_is_shown_on_one_row_of_any_width() {
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop watch");
    tmux.shows(STOPS);
    base.write("inbox/1.txt", until_go("printf '10%%\\r20%%\\r'"));
    wait_for_spinner(&tmux, " · 20%");
    base.write("workspace/go", "");
    tmux.shows("0002.txt\nWaiting for a reply in inbox/ · Ctrl-C stops");
    // Megabytes without an end of a line, in characters of two columns.
    let much = "i=0; while [ $i -lt 12 ]; do i=$((i+1)); printf '宽%.0s' $(seq 100000); done; printf 'END'";
    base.write("inbox/2.txt", until_go(much));
    let screen = wait_for_spinner(&tmux, "宽END");
    assert!(spinner(&screen).unwrap().contains(" · …宽"), "{screen}");
    // Whatever the width becomes meanwhile, it stays one row, and nothing is left of it.
    for columns in [20, 50, 33, 80] {
        tmux.resize(columns);
        let end = if columns > 40 { "END" } else { "" };
        // What the terminal wrapped stands there until the program has drawn it anew; the command's name
        // is above it no more than once.
        tmux.wait_for(&format!("one row of {columns} columns"), |screen| {
            let rows = screen.lines().filter(|row| row.contains('宽')).count();
            rows <= 1 && spinner(screen).is_some_and(|row| row.contains(end))
        });
    }
    base.write("workspace/go", "");
    tmux.shows("0003.txt\nWaiting for a reply in inbox/ · Ctrl-C stops");
    let all = tmux.all();
    assert_eq!(spinner(&all), None, "{all}");
    assert!(!all.contains("宽END"), "{all}");
}

#[test]
fn ctrl_c_while_the_spinner_turns_leaves_a_clean_terminal() {
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop watch");
    tmux.shows(STOPS);
    base.write("inbox/1.txt", "[RUN_COMMAND]\necho begun; sleep 300\n[/RUN_COMMAND]\n");
    wait_for_spinner(&tmux, "begun");
    tmux.key("C-c");
    let screen = tmux.shows(&format!("watch` continues.\n{PROMPT}"));
    assert!(screen.ends_with(PROMPT), "{screen}");
    assert!(screen.contains("(interrupted by the user"), "{screen}");
    assert_eq!(spinner(&screen), None, "{screen}");
    assert!(!screen.contains(STOPS) && !screen.contains("^C"), "{screen}");
    // The terminal is as it was: what is long is wrapped again.
    tmux.types(&format!("echo {}", "w".repeat(100)));
    tmux.shows(&format!("\n{}\n{}\n{PROMPT}", "w".repeat(80), "w".repeat(20)));
}

#[test]
fn in_the_background_nothing_is_drawn_over_what_others_write() {
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop watch");
    tmux.shows(STOPS);
    let stopped = |screen: &str| screen.contains("Stopped") && screen.ends_with(PROMPT);
    tmux.key("C-z");
    tmux.wait_for("a stop", stopped);
    tmux.types("fg");
    tmux.wait_for("the line again", |screen| screen.ends_with(STOPS));
    tmux.key("C-z");
    tmux.wait_for("a stop", stopped);
    tmux.types("clear; bg");
    base.write("inbox/1.txt", "[CREATE_FILE path=\"a\"]\n1\n[/CREATE_FILE]\n");
    let screen = tmux.shows("\noutbox/a1b2c3d4_seq0002.txt");
    assert!(screen.contains(&format!("\n{PROMPT}\n1.txt, the reply")), "{screen}");
    assert!(!screen.contains(STOPS), "{screen}");
    tmux.types("fg");
    tmux.wait_for("the line again", |screen| screen.ends_with(STOPS));
}

#[test]
fn a_question_stands_alone_until_it_is_answered() {
    let base = crate::approvals::asked::scene();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop watch");
    tmux.shows(STOPS);
    base.write("inbox/r.txt", crate::approvals::asked::ASKS);
    let screen = tmux.shows("do it? [y/N/always/rest]");
    assert!(
        screen.trim_end().ends_with("do it? [y/N/always/rest]") && !screen.contains(STOPS),
        "{screen}"
    );
    tmux.types("y");
    tmux.shows(&format!("0002.txt\nWaiting for a reply in inbox/{STOPS}"));
    assert!(!base.exists("workspace/temp"));
}

#[test]
fn a_key_copies_the_brief_form() {
    let base = Project::with_session();
    base.apply("[MESSAGE]\nx\n[/MESSAGE]\n");
    let Some(tmux) = Tmux::start(&base, 150) else { return };
    tmux.types("deaddrop watch");
    tmux.shows(STOPS);
    tmux.types("x");
    tmux.types("b");
    let screen = tmux.shows("outbox/a1b2c3d4_seq0002.txt (brief: ≈ ");
    assert!(!screen.contains("then run:"), "{screen}");
    let brief = base.run(&["show", "--brief"]).ok().stdout;
    assert!(brief.contains("As in message 1"), "{brief}");
    assert_eq!(tmux.tell(&["show-buffer"]), brief);
    tmux.shows(STOPS);
    tmux.key("C-c");
    tmux.shows(&format!("\nStopped. `deaddrop watch` continues.\n{PROMPT}"));
}
