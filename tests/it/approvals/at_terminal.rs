//! Questions at a terminal: who is asked there, and what counts as an answer.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::approvals::asked::{ASKS, scene};
use crate::support::{ID, Project, wait_until};

/// The program at a terminal of its own.
pub struct AtTerminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

#[allow(unsafe_code)]
pub fn terminal() -> Option<(OwnedFd, OwnedFd)> {
    use std::os::fd::FromRawFd;
    let (mut ours, mut theirs) = (0, 0);
    // SAFETY: two integers to write to; nothing else is asked for. Both are then ours alone.
    unsafe {
        let (name, form) = (std::ptr::null_mut(), std::ptr::null());
        if libc::openpty(&raw mut ours, &raw mut theirs, name, form, std::ptr::null()) != 0 {
            eprintln!("SKIPPED: no terminal can be made");
            return None;
        }
        Some((OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)))
    }
}

impl AtTerminal {
    pub fn start(base: &Project, arguments: &[&str]) -> Option<Self> {
        Self::begin(base.command(arguments))
    }

    #[allow(unsafe_code)]
    pub fn begin(mut command: Command) -> Option<Self> {
        let (ours, theirs) = terminal()?;
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm");
        }
        let end = || Stdio::from(theirs.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both are plain system calls, and all that is done there.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop((command, theirs));
        let keyboard = File::from(ours);
        let (mut from, screen) = (keyboard.try_clone().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let shown = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                shown.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Some(Self { child, keyboard, screen, reader })
    }

    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).replace("\r\n", "\n")
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str, times: usize) {
        let begun = std::time::Instant::now();
        while self.shown().matches(text).count() < times {
            let shown = self.shown();
            assert!(begun.elapsed() < crate::support::PATIENCE, "'{text}' in vain in {shown}");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Its exit status, once all that it wrote is on the screen. Nothing of it may keep the terminal.
    #[track_caller]
    pub fn ends(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the end of the program", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        wait_until("the end of what it wrote", || self.reader.is_finished());
        status.unwrap().code()
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const QUESTION: &str = "do it? [y/N/always/rest] ";

#[test]
fn the_daemon_asks_and_goes_on_with_the_answer() {
    let base = scene();
    let Some(mut daemon) = AtTerminal::start(&base, &["watch"]) else { return };
    daemon.wait_for("Waiting for ", 1);
    // Typed before the question, it answers nothing.
    daemon.types("y\ny\n");
    base.write("inbox/r.txt", ASKS);
    daemon.wait_for(QUESTION, 1);
    assert!(daemon.shown().contains("  | rm -r temp\n"), "{}", daemon.shown());
    // It serves while it waits for the answer.
    base.run(&["say", "Hello"]).ok();
    assert!(base.exists("workspace/temp/a"));
    daemon.types("y\n");
    assert!(base.wait_for_outbox(2).contains("[OK] RUN_COMMAND: Ran 'rm -r temp'"));

    base.write("workspace/temp/a", "x\n");
    for (n, answer) in ["n\n", "\n", "maybe\n"].into_iter().enumerate() {
        base.write("inbox/r.txt", format!("{}\n{ASKS}", "Again. ".repeat(n + 1)));
        daemon.wait_for(QUESTION, n + 2);
        daemon.types(answer);
        let sequence = u32::try_from(n).unwrap() + 3;
        assert!(base.wait_for_outbox(sequence).contains("The user denied 'rm -r temp'"));
    }
    assert!(base.exists("workspace/temp/a"));
    daemon.types("\u{3}");
    assert_eq!(daemon.ends(), Some(130));
}

#[test]
fn an_answer_counts_for_its_question_only() {
    let base = scene();
    let Some(mut daemon) = AtTerminal::start(&base, &["watch"]) else { return };
    daemon.wait_for("Waiting for ", 1);
    base.write("inbox/1.txt", ASKS);
    daemon.wait_for(QUESTION, 1);
    base.run(&["deny"]).ok();
    daemon.wait_for("It was decided elsewhere", 1);
    daemon.types("y\n");
    base.write("inbox/2.txt", format!("Again:\n{ASKS}"));
    daemon.wait_for(QUESTION, 2);
    // The end of input is no answer.
    daemon.types("\u{4}");
    daemon.wait_for("No answer; it still waits", 1);
    assert!(base.exists("workspace/temp/a") && !base.waiting(ID).is_null());
    base.run(&["approve"]).ok();
    base.wait_for_outbox(3);
}

#[test]
fn two_questions_are_put_one_after_the_other() {
    let base = scene();
    base.begin_asking(crate::approvals::asked::OTHER);
    let Some(mut daemon) = AtTerminal::start(&base, &["watch"]) else { return };
    daemon.wait_for("Waiting for ", 1);
    base.write(&format!("inbox/{ID}.txt"), ASKS);
    daemon.wait_for(QUESTION, 1);
    base.write("inbox/00ff00ff.txt", ASKS);
    daemon.wait_for("waits for your decision", 2);
    daemon.types("y\n");
    base.wait_for_outbox(2);
    daemon.wait_for("of 00ff00ff: RUN_COMMAND 'rm -r temp': do it? [y/N/always/rest] ", 1);
    assert!(!base.exists("outbox/00ff00ff_seq0002.txt"));
    daemon.types("n\n");
    wait_until("its outbox", || base.exists("outbox/00ff00ff_seq0002.txt"));
}

#[test]
fn apply_and_resume_ask_too() {
    let base = scene();
    base.write("r.txt", ASKS);
    let Some(mut apply) = AtTerminal::start(&base, &["apply", "r.txt"]) else { return };
    apply.wait_for("RUN_COMMAND 'rm -r temp': do it? [y/N/always/rest] ", 1);
    apply.types("\u{4}");
    assert_eq!(apply.ends(), Some(3));
    let mut resume = AtTerminal::start(&base, &["resume", "--no-watch"]).unwrap();
    resume.wait_for("RUN_COMMAND 'rm -r temp': do it? [y/N/always/rest] ", 1);
    resume.types("yes\n");
    assert_eq!(resume.ends(), Some(0));
    assert!(!base.exists("workspace/temp") && base.exists("outbox/a1b2c3d4_seq0002.txt"));

    base.write("workspace/temp/a", "x\n");
    let mut apply = AtTerminal::start(&base, &["apply", "--again", "r.txt"]).unwrap();
    apply.wait_for("RUN_COMMAND 'rm -r temp': do it? [y/N/always/rest] ", 1);
    base.run(&["deny"]).ok();
    apply.wait_for("It was decided elsewhere", 1);
    assert_eq!(apply.ends(), Some(0));
    assert!(apply.shown().contains("outbox/a1b2c3d4_seq0003.txt"), "{}", apply.shown());
    for quiet in ["--quiet", "--json"] {
        let mut apply = AtTerminal::start(&base, &["apply", "--again", quiet, "r.txt"]).unwrap();
        assert_eq!(apply.ends(), Some(3), "{}", apply.shown());
        base.run(&["deny"]).ok();
    }
}
