//! Pasted text cannot answer or end anything.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::approvals::asked::{ASKS, scene};
use crate::approvals::at_terminal::AtTerminal;
use crate::support::{Project, program, wait_until};

const QUESTION: &str = "do it? [y/N/always/rest] ";
/// The terminal is asked to mark pastes.
const READY: &str = "\u{1b}[?2004h";
const UNMARKED: &str = "\u{1b}[?2004l";
const BEGIN: &str = "\u{1b}[200~";
const END: &str = "\u{1b}[201~";
/// Longer than any pause within what is pasted, so that what follows is typed.
const PAUSE: Duration = Duration::from_millis(1500);

/// A shell at a terminal that runs the program, and then notes its exit code, the modes of the terminal
/// before and after, and what it left to be read.
struct Person {
    base: Project,
    terminal: AtTerminal,
}

impl Person {
    fn runs(base: Project, arguments: &str) -> Option<Self> {
        let script = format!(
            "tty >tty; stty -g >before
             sh -c 'echo $$ >pid; exec \"$PROGRAM\" {arguments}'; echo $? >code
             stty -g >after; stty -icanon -echo min 0 time 8; cat >rest; stty $(cat before); : >end"
        );
        Self::with(base, &script)
    }

    #[allow(unsafe_code)]
    fn with(base: Project, script: &str) -> Option<Self> {
        let mut command = Command::new("/bin/sh");
        for (name, value) in base.command(&[]).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(["-c", script]).env("PROGRAM", program()).current_dir(base.path());
        // Whoever runs the tests may have them ignored.
        let heed = || {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP]
            {
                // SAFETY: a system call on integers.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: it makes plain system calls only.
        unsafe { command.pre_exec(heed) };
        Some(Self { terminal: AtTerminal::begin(command)?, base })
    }

    /// Types this again and again until the program has ended.
    #[track_caller]
    fn types_until_it_ends(&mut self, text: &str) {
        wait_until("the end of the program", || {
            if !self.base.exists("after") {
                self.terminal.types(text);
                sleep(PAUSE);
            }
            self.base.exists("after")
        });
    }

    /// The exit code, once the shell has seen that the terminal is as it was, and that nothing is left.
    #[track_caller]
    fn code(&mut self, what: &str) -> i32 {
        wait_until("the end of the shell", || self.base.exists("end"));
        let shown = self.terminal.shown();
        assert_eq!(self.base.read("before"), self.base.read("after"), "{what}: {shown}");
        // What `types_until_it_ends` typed once too often does not count.
        assert_eq!(self.base.read("rest").replace("n\n", ""), "", "{what}: {shown}");
        self.base.read("code").trim().parse().unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.base.read("pid");
        let sent = Command::new("kill").args([&format!("-{name}"), pid.trim()]).status().unwrap();
        assert!(sent.success());
    }
}

fn creates(body: &str) -> String {
    format!("[CREATE_FILE path=\"pasted\"]\nbegin\n{body}\nlast\n[/CREATE_FILE]\n")
}

/// What ends, interrupts, suspends or answers something when it is typed.
const HOSTILE: [&str; 12] = [
    "\u{4}",
    "\u{3}",
    "\u{4}\u{4}\ntouch stolen\n",
    "\u{1a}",
    "\u{1c}",
    "\u{13}",
    "\u{1b}",
    "\u{1b}[200~",
    "\u{1b}[201",
    ".\nEND\nEOF\n",
    "\u{1b}[A\u{1b}OA\u{7f}\u{15}",
    "\r\n",
];

#[test]
fn nothing_in_a_marked_paste_ends_it_or_answers() {
    for body in HOSTILE {
        let Some(mut person) = Person::runs(scene(), "apply -") else { return };
        person.terminal.wait_for(READY, 1);
        let reply = format!("{}{ASKS}\u{4}\ny\nyes\ny\n", creates(body));
        person.terminal.types(&format!("{BEGIN}{reply}y\n{END}"));
        person.terminal.wait_for(QUESTION, 1);
        assert!(person.base.exists("workspace/before"), "{body:?}: all of it was read");
        let pasted = person.base.read("workspace/pasted");
        assert!(pasted.starts_with("begin") && pasted.ends_with("last\n"), "{body:?}: {pasted:?}");
        sleep(PAUSE);
        person.types_until_it_ends("n\n");
        assert_eq!(person.code(body), 0);
        assert!(person.base.exists("workspace/temp/a"), "{body:?}");
        assert!(!person.base.exists("stolen"), "{body:?}");
    }
}

#[test]
fn an_end_mark_in_two_pieces_is_one_and_what_follows_it_is_for_nobody() {
    for at in 1..END.len() {
        let Some(mut person) = Person::runs(scene(), "apply -") else { return };
        person.terminal.wait_for(READY, 1);
        person.terminal.types(&format!("{BEGIN}{}{}", creates("x"), &END[..at]));
        sleep(Duration::from_millis(20));
        person.terminal.types(&format!("{}\ntouch stolen\ny\n\u{4}", &END[at..]));
        assert_eq!(person.code(&format!("{at}")), 0);
        assert!(person.base.exists("workspace/pasted") && !person.base.exists("stolen"));
    }
}

#[test]
fn a_second_paste_and_a_smuggled_end_mark_are_for_nobody() {
    let second = format!("{END}{BEGIN}{ASKS}\ny\n{END}y\n");
    let smuggled = format!("{END}\ntouch stolen\ny\n\u{4}{END}");
    for behind in [second, smuggled] {
        let Some(mut person) = Person::runs(scene(), "apply -") else { return };
        person.terminal.wait_for(READY, 1);
        person.terminal.types(&format!("{BEGIN}{}{ASKS}{behind}", creates("x")));
        person.terminal.wait_for(QUESTION, 1);
        sleep(PAUSE);
        person.types_until_it_ends("n\n");
        assert_eq!(person.code(&behind), 0);
        assert!(person.base.exists("workspace/temp/a") && !person.base.exists("stolen"));
    }
}

#[test]
fn without_marks_a_paste_ends_when_it_is_quiet_and_not_within() {
    // A terminal gives it in pieces, some of which end with what would end it.
    let body = "one\u{4}\ntwo\u{3}\ny\n";
    let reply = format!("{}{ASKS}y\ny\n", creates(body));
    let Some(mut person) = Person::runs(scene(), "apply -") else { return };
    person.terminal.wait_for(READY, 1);
    for piece in reply.split_inclusive(['\u{4}', '\u{3}', '\n']) {
        person.terminal.types(piece);
        sleep(Duration::from_millis(15));
    }
    // No end was typed, so nothing is done.
    sleep(PAUSE);
    assert!(!person.base.exists("workspace/before") && !person.base.exists("code"));
    person.terminal.types("\u{4}");
    person.terminal.wait_for(QUESTION, 1);
    assert!(person.base.read("workspace/pasted").ends_with("last\n"));
    sleep(PAUSE);
    person.types_until_it_ends("n\n");
    assert_eq!(person.code("unmarked"), 0);
    assert!(person.base.exists("workspace/temp/a"));
}

#[test]
fn keys_end_a_paste_that_has_not_begun() {
    for (key, code) in [("\u{3}", 130), ("\u{4}", 1)] {
        let Some(mut person) = Person::runs(scene(), "apply -") else { return };
        person.terminal.wait_for(READY, 1);
        person.terminal.types(key);
        assert_eq!(person.code(key), code);
    }
}

#[test]
fn a_question_is_answered_by_hand_only() {
    let marked = |text: &str| format!("{BEGIN}{text}{END}");
    for pasted in [
        marked("y\n"),
        marked("y\r"),
        marked("yes\ny\n") + &marked("y\n"),
        marked("\u{3}\u{4}y\n"),
        marked("x") + "y\n" + END,
        "y\ny\n".to_owned(),
        "some text\ny\n".to_owned(),
        "some text\u{4}y\n".to_owned(),
        "\u{1b}[Ay\n".to_owned(),
    ] {
        let base = scene();
        base.write("r.txt", ASKS);
        let Some(mut person) = Person::runs(base, "apply r.txt") else { return };
        // Typed before it is shown.
        person.terminal.types("y\nyes\n");
        person.terminal.wait_for(QUESTION, 1);
        person.terminal.types(&pasted);
        sleep(PAUSE);
        assert!(!person.base.exists("code"), "{pasted:?} has answered");
        person.types_until_it_ends("n\n");
        assert_eq!(person.code(&pasted), 0);
        assert!(person.base.exists("workspace/temp/a"), "{pasted:?}");
        assert!(person.base.outbox(2).contains("The user denied"), "{pasted:?}");
    }
}

#[test]
fn every_question_knows_the_same_yes() {
    for (answer, is_yes) in
        [("y", true), ("Y", true), ("YES", true), ("yEs", true), (" yes ", true), ("yy", false)]
    {
        let base = scene();
        base.write("r.txt", ASKS);
        let Some(mut person) = Person::runs(base, "apply r.txt") else { return };
        person.terminal.wait_for(QUESTION, 1);
        person.terminal.types(&format!("{answer}\r"));
        assert_eq!(person.code(answer), 0);
        assert_eq!(!person.base.exists("workspace/temp"), is_yes, "{answer:?}");

        // Here the project is no session's yet, and has files of its own.
        let base = Project::new();
        base.write("a.c", "");
        base.write("b.c", "");
        let Some(mut person) = Person::runs(base, "new --no-watch Task") else { return };
        person.terminal.wait_for("[Y/n] ", 1);
        person.terminal.types(&format!("{answer}\r"));
        assert_eq!(person.code(answer), if is_yes { 0 } else { 2 }, "{answer:?}");
    }
}

#[test]
fn what_is_typed_can_be_corrected_and_is_shown() {
    let base = scene();
    base.write("r.txt", ASKS);
    let Some(mut person) = Person::runs(base, "apply r.txt") else { return };
    person.terminal.wait_for(QUESTION, 1);
    person.terminal.types("no");
    person.terminal.wait_for(&format!("{QUESTION}no"), 1);
    person.terminal.types("\u{7f}\u{7f}ye");
    person.terminal.wait_for("\u{8} \u{8}ye", 1);
    sleep(PAUSE);
    person.terminal.types("s\r");
    assert_eq!(person.code("corrected"), 0);
    assert!(!person.base.exists("workspace/temp"));
}

#[test]
fn signals_leave_the_terminal_as_it_was_and_nothing_for_the_shell() {
    for (name, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
        // In the middle of a paste.
        let Some(mut person) = Person::runs(scene(), "apply -") else { return };
        person.terminal.wait_for("Paste the reply here", 1);
        person.terminal.types(&format!("{BEGIN}{}", creates("x")));
        person.signal(name);
        for line in ["y\n", "touch stolen\n", "\u{4}\n", END, "y\n"] {
            person.terminal.types(line);
            sleep(Duration::from_millis(15));
        }
        assert_eq!(person.code(name), code, "{}", person.terminal.shown());
        assert!(!person.base.exists("workspace/pasted") && !person.base.exists("stolen"));

        // At a question. It stays open.
        let base = scene();
        base.write("r.txt", ASKS);
        let Some(mut person) = Person::runs(base, "apply r.txt") else { return };
        person.terminal.wait_for(QUESTION, 1);
        person.signal(name);
        person.terminal.types("y\ny\n");
        let code = if name == "TERM" { 130 } else { code };
        assert_eq!(person.code(name), code, "{}", person.terminal.shown());
        assert!(person.base.exists("workspace/temp/a"), "{name}");
    }
}

#[test]
fn any_signal_and_a_second_one_leave_the_terminal_as_it_was() {
    for (name, code) in [("USR1", 138), ("USR2", 140), ("ALRM", 142), ("TERM", 143), ("HUP", 129)] {
        let Some(mut person) = Person::runs(scene(), "apply -") else { return };
        person.terminal.wait_for(READY, 1);
        person.terminal.types(&format!("{BEGIN}x"));
        sleep(Duration::from_millis(50));
        person.signal(name);
        person.signal(name);
        assert_eq!(person.code(name), code, "{}", person.terminal.shown());
        let shown = person.terminal.shown();
        assert_eq!(
            shown.matches(UNMARKED).count(),
            shown.matches(READY).count(),
            "{name}: {shown}"
        );
    }
}

#[test]
fn keys_at_a_question_do_what_they_do_elsewhere() {
    for (key, code) in [("\u{3}", 130), ("\u{1c}", 131), ("\u{4}", 3)] {
        let base = scene();
        base.write("r.txt", ASKS);
        let Some(mut person) = Person::with(
            base,
            "stty -g >before; trap : INT QUIT; \"$PROGRAM\" apply r.txt; echo $? >code
             stty -g >after; : >rest; : >end",
        ) else {
            return;
        };
        person.terminal.wait_for(QUESTION, 1);
        person.terminal.types(key);
        assert_eq!(person.code(&format!("{key:?}")), code, "{}", person.terminal.shown());
        assert!(person.base.exists("workspace/temp/a"));
    }
}

#[test]
fn a_question_that_is_suspended_leaves_the_terminal_as_it_was_and_goes_on() {
    let suspended = |base: &Project| base.exists("suspended") && !base.read("suspended").is_empty();
    for by_key in [true, false] {
        let base = scene();
        base.write("r.txt", ASKS);
        let script = "stty -g >before; set -m
            sh -c 'echo $$ >pid; exec \"$PROGRAM\" apply r.txt'; stty -g >suspended; fg >fg
            echo $? >code; stty -g >after; : >rest; : >end";
        let Some(mut person) = Person::with(base, script) else { return };
        person.terminal.wait_for(QUESTION, 1);
        assert!(!suspended(&person.base));
        if by_key {
            person.terminal.types("\u{1a}");
        } else {
            person.signal("TSTP");
        }
        wait_until("the shell", || suspended(&person.base));
        assert_eq!(person.base.read("suspended"), person.base.read("before"));
        // What is typed is taken again once the terminal marks pastes again.
        person.terminal.wait_for(READY, 2);
        person.terminal.types("y\r");
        assert_eq!(person.code("suspended"), 0, "{}", person.terminal.shown());
        assert!(!person.base.exists("workspace/temp"));
    }
}

#[test]
fn a_question_without_a_session_keeps_nothing_that_was_pasted() {
    // The consent to settings that came with a folder.
    let base = Project::that_nobody_agrees_to();
    base.write("deaddrop.toml", "[sandbox]\nnetwork = true\n");
    let Some(mut person) = Person::runs(base, "new --no-watch Task") else { return };
    person.terminal.types("y\ny\n");
    person.terminal.wait_for("[y/N] ", 1);
    person.terminal.types(&format!("{BEGIN}y\ry\r{END}"));
    sleep(PAUSE);
    assert!(!person.base.exists("code"));
    person.types_until_it_ends("n\n");
    assert_eq!(person.code("consent"), 2);
    let sessions: PathBuf = person.base.at("sessions");
    assert!(!sessions.exists() || std::fs::read_dir(sessions).unwrap().next().is_none());
}
