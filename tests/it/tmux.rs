//! A shell in a real terminal, by tmux: what is typed there, and what its screen shows.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Project, has_sandbox, program};

/// What the shell says when it waits for a command.
pub const PROMPT: &str = "here>";

/// A terminal with a shell in a project; ended with the test.
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Starts it with so many columns and 40 rows; None, and said so, where there is no tmux.
    pub fn start(base: &Project, columns: usize) -> Option<Self> {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", program().parent().unwrap().display());
        let tmux = Self::of(base, [columns, 40], "/bin/sh", |command| {
            // Nothing of this machine's but its programs.
            command.env_clear().env("PATH", path).env("LANG", "C.UTF-8");
            command.env("HOME", base.path()).env("XDG_CONFIG_HOME", base.at(".no-config"));
            command.env("XDG_STATE_HOME", base.state());
            command.env("NO_COLOR", "1").env("TERM", "xterm");
            if !has_sandbox("auto") {
                command.env("DEADDROP_SANDBOX", "off");
            }
        })?;
        tmux.wait_for("a prompt", |screen| !screen.is_empty());
        // A shell of root's heeds no other way to say it.
        tmux.types(&format!("PS1='{PROMPT}'; clear"));
        tmux.wait_for("an empty screen", |screen| screen == PROMPT);
        Some(tmux)
    }

    /// Starts one of that size, of columns and rows, whose first window runs a program of the shell's, in
    /// surroundings that `prepare` makes; None, and said so, where there is no tmux.
    pub fn of(
        base: &Project,
        [columns, rows]: [usize; 2],
        script: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> Option<Self> {
        let tmux = Self { socket: base.at(".tmux") };
        let [columns, rows] = [columns, rows].map(|n| n.to_string());
        let mut command = tmux.command(&["new-session", "-d", "-x", &columns, "-y", &rows, script]);
        prepare(command.current_dir(base.path()));
        let why = match command.output() {
            Ok(output) if output.status.success() => return Some(tmux),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(e) => e.to_string(),
        };
        eprintln!("SKIPPED: no tmux: {why}");
        None
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments);
        command
    }

    /// Tells it something in its own words; gives what it answers.
    #[track_caller]
    pub fn tell(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Types a line.
    pub fn types(&self, line: &str) {
        self.tell(&["send-keys", "-l", line]);
        self.key("Enter");
    }

    /// Presses a key by its name, as in `C-c`.
    pub fn key(&self, name: &str) {
        self.tell(&["send-keys", name]);
    }

    /// Makes the terminal as wide as that.
    pub fn resize(&self, columns: usize) {
        self.tell(&["resize-window", "-x", &columns.to_string(), "-y", "40"]);
    }

    /// The rows that it shows, without the empty ones at the end.
    pub fn screen(&self) -> String {
        self.tell(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// All that was shown so far, rows that the terminal wrapped as one line.
    pub fn all(&self) -> String {
        self.tell(&["capture-pane", "-p", "-J", "-S", "-"]).trim_end().to_owned()
    }

    /// In which column the cursor is, from 0.
    pub fn column(&self) -> usize {
        self.tell(&["display-message", "-p", "#{cursor_x}"]).trim().parse().unwrap()
    }

    /// Waits until the screen is such; gives it.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what} in\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen shows that.
    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        self.wait_for(&format!("'{text}'"), |screen| screen.contains(text))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
