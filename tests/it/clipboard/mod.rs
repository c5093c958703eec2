//! The clipboard for real: an X server without a screen, with xclip as the other side; a Wayland
//! compositor; terminals. What is not installed is skipped, and said to be.

mod desktop;
mod elsewhere;
mod holder;
mod serving;
mod slow;
mod starting;
mod terminals;
mod watching;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Daemon, ID, Project, Run, wait_until};

/// Whether a program is on the path; said where not.
pub(super) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// An X server of its own, ended with all that is shown there when this is dropped.
pub(super) struct Desktop {
    server: Child,
    display: String,
    /// Processes of an earlier one with this number that are about to end.
    old: Vec<PathBuf>,
}

impl Desktop {
    /// Starts one; None where that is not to be had here.
    pub(super) fn start() -> Option<Self> {
        if !has("Xvfb") || !has("xclip") {
            return None;
        }
        // One that another test has used may still be meant by what that left.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let first = 100 + std::process::id() % 500 * 100;
        let begun = (0..20).find_map(|_| {
            let number = first + NEXT.fetch_add(1, Ordering::Relaxed);
            Self::start_as(&format!(":{number}"))
        });
        if begun.is_none() {
            eprintln!("SKIPPED: Xvfb does not start here");
        }
        begun
    }

    /// Starts one of this name; None where that is taken.
    fn start_as(display: &str) -> Option<Self> {
        // Without -noreset it begins anew with the last that leaves, and drops who comes meanwhile.
        let mut server = Command::new("Xvfb")
            .args([display, "-displayfd", "1", "-noreset", "-nolisten", "tcp"])
            .args(["-screen", "0", "64x64x24"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        // It says its number as soon as it can be connected to, or ends.
        let _ = BufReader::new(server.stdout.take().unwrap()).read_line(&mut number);
        let old = holders(&format!("DISPLAY={display}"));
        let desktop = Self { server, display: display.to_owned(), old };
        if number.trim().is_empty() {
            return None;
        }
        Some(desktop)
    }

    /// A command line that sees this desktop and no other clipboard.
    pub(super) fn command(&self, base: &Project, arguments: &[&str]) -> Command {
        let mut command = base.command(arguments);
        without_clipboard(&mut command).env("DISPLAY", &self.display);
        command
    }

    pub(super) fn run(&self, base: &Project, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(base, arguments), "")
    }

    /// Starts the daemon here, and waits until it listens.
    #[track_caller]
    pub(super) fn serve(&self, base: &Project, arguments: &[&str]) -> Daemon {
        let daemon = base.start_as(&mut self.command(base, arguments));
        daemon.wait_for("Waiting for replies");
        daemon
    }

    fn xclip(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("xclip");
        command.args(["-selection", "clipboard"]).args(arguments);
        command.env("DISPLAY", &self.display).stderr(Stdio::null());
        command
    }

    /// What another program finds on the clipboard; None where there is no text.
    pub(super) fn shows(&self) -> Option<String> {
        // It would wait without end for an owner that does not answer.
        let mut xclip = Command::new("timeout");
        xclip.args(["2", "xclip", "-selection", "clipboard", "-out"]).env("DISPLAY", &self.display);
        let output = xclip.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Another program puts a text there, and holds it until what is returned is dropped.
    pub(super) fn holds(&self, text: &str) -> Owner {
        let said = tempfile::NamedTempFile::new().unwrap();
        // It stays in the foreground, and says when it is asked for the text.
        let mut xclip = self.xclip(&["-in", "-quiet"]);
        xclip.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said.reopen().unwrap());
        let mut child = xclip.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let owner = Owner { child, said };
        wait_until("xclip to have the clipboard", || self.shows().as_deref() == Some(text));
        owner
    }

    /// Waits until an outbox is on the clipboard.
    #[track_caller]
    pub(super) fn wait_for_outbox(&self, base: &Project, sequence: u32) {
        base.wait_for_outbox(sequence);
        wait_until(&format!("outbox {sequence} on the clipboard"), || {
            self.shows() == Some(base.outbox(sequence))
        });
    }

    /// Ends the server.
    pub(super) fn end(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// The processes that hold the clipboard here, as far as this user may know.
    pub(super) fn holders(&self) -> Vec<PathBuf> {
        let mut holders = holders(&format!("DISPLAY={}", self.display));
        holders.retain(|process| !self.old.contains(process));
        holders
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.end();
    }
}

/// Another program that has the clipboard.
pub(super) struct Owner {
    child: Child,
    said: tempfile::NamedTempFile,
}

impl Owner {
    fn asked(&self) -> usize {
        fs::read_to_string(self.said.path()).unwrap().matches("request number").count()
    }

    /// Waits until somebody else has read the text.
    #[track_caller]
    pub(super) fn wait_until_read(&self) {
        let before = self.asked();
        // The first of them may have begun before another owner had given the clipboard up.
        wait_until("the clipboard to be read", || self.asked() >= before + 2);
    }

    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes all clipboards of this machine from a command line.
pub(super) fn without_clipboard(command: &mut Command) -> &mut Command {
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "TMUX", "TMUX_PANE", "STY", "XAUTHORITY"] {
        command.env_remove(name);
    }
    command
}

/// The folders in `/proc` of processes that hold a clipboard and have this in their environment.
pub(super) fn holders(variable: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let holds = |path: &PathBuf| {
        let words = |name: &str| fs::read(path.join(name)).unwrap_or_default();
        let said = words("cmdline");
        let said = String::from_utf8_lossy(&said);
        let environment = words("environ");
        let mut variables = environment.split(|byte| *byte == 0);
        said.contains("__clipboard\0hold") && variables.any(|found| found == variable.as_bytes())
    };
    processes.filter(holds).collect()
}

/// Whether this user may look into processes that close themselves to others; said where not.
pub(super) fn sees_holders() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED: only root can look at what holds a clipboard");
    }
    is_root
}

/// The line that carries the key of an outbox of session [`ID`].
#[track_caller]
pub(super) fn key_line(base: &Project, sequence: u32) -> String {
    let outbox = base.outbox(sequence);
    let line = outbox.lines().find(|line| line.starts_with("First line of your reply")).unwrap();
    line[line.find("[REPLY").unwrap()..].to_owned()
}

/// A reply to an outbox of session [`ID`], with its key, that makes a file.
#[track_caller]
pub(super) fn reply(base: &Project, sequence: u32, file: &str) -> String {
    let line = key_line(base, sequence);
    format!("{line}\n[CREATE_FILE path=\"{file}\"]\n{file}\n[/CREATE_FILE]\n")
}

#[test]
fn the_key_of_a_session_stands_in_its_outbox() {
    let base = Project::with_session();
    let line = key_line(&base, 1);
    assert!(line.starts_with(&format!("[REPLY session=\"{ID}\" sequence=\"1\" key=\"")), "{line}");
}
