//! `demo`: a whole session in a folder that is removed afterwards, with the real program on real files;
//! only the replies are written beforehand. Each step is explained.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

mod scenes;

use clap::Args;
use serde_json::json;

use super::output::{self, Terminal};
use super::{Context, rows};
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::program;
use crate::session::Session;
use crate::session::store::Store;
use crate::settings::{Config, FOLDER};
use crate::terminal::{Stream, Styled};
use crate::watch::Stop;
use scenes::SCENES;

#[derive(Debug, Args)]
#[command(after_help = "\
Uses prepared replies instead of a chat, and touches none of your settings and projects. Takes less
than ten seconds; at a terminal it pauses before each step.

Examples:
  deaddrop demo
  deaddrop demo --keep")]
pub(super) struct Demo {
    /// Keep the folder, and print its path
    #[arg(long)]
    keep: bool,
}

/// What a text begins with, in each row, that is not the demonstration's own.
const BAR: &str = "  │ ";
const TASK: &str = "Write a script that greets people";
/// How long a step may take on a slow machine before something is wrong.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a person at a terminal may look at a step before the next begins.
const PAUSE: Duration = Duration::from_millis(800);
/// The steps before the first reply: the project and the task.
const BEFORE: usize = 2;
/// The scene after which the person takes back what it did, and thinks better of that.
const TAKEN_BACK: usize = 1;

pub(super) fn demo(arguments: &Demo, ui: &Terminal, json: bool) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut folder = tempfile::Builder::new()
        .prefix("deaddrop-demo-")
        .tempdir()
        .map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
    folder.disable_cleanup(arguments.keep);
    let path = folder.path().canonicalize();
    let path = path.map_err(|e| Error::io("open the folder", folder.path(), e))?;
    let stage = Stage { path: &path, ui, json, stop };
    stage.play()?;
    drop(folder);
    if arguments.keep {
        if json {
            Context::print_json(&json!({ "kept": path.display().to_string() }));
        } else {
            output::result(format!("\nAll of it lies in {}", path.display()));
        }
    } else {
        stage.tell("\nNothing of it is left. In a project of yours: `deaddrop init`, then `deaddrop new \"what is to be done\"`.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the session is played, and how it is told.
struct Stage<'a> {
    path: &'a Path,
    ui: &'a Terminal,
    json: bool,
    stop: Stop,
}

/// The deaddrop that serves, ended with this value.
struct Serving {
    child: Child,
    /// What it says, a line each.
    said: Receiver<String>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stage<'_> {
    fn play(&self) -> Result<()> {
        let project = self.path.join("project");
        self.step(1, "A project", "deaddrop works on a folder of yours. `init` makes it ready: inbox, outbox and sessions go to .deaddrop/, which git ignores and no command sees.", "deaddrop init project")?;
        self.run(self.path, &["--quiet", "init", "project"])?;
        let config = Config::of_file(&project)?;

        self.step(2, "A task", "It writes an outbox, a text with all that the model needs, for you to paste into any chat. Then it waits for replies. With -v it shows what their commands print, too.", &format!("deaddrop new -v \"{TASK}\""))?;
        self.tell("");
        let mut serving = self.serve(&project)?;
        let store = Store::new(&config.sessions);
        let mut session = self.wait(&mut serving, "the session", || {
            let (mut sessions, _) = store.list()?;
            Ok(sessions.pop().filter(|_| Lock::holder_serves(&config)))
        })?;
        self.relay(&serving, |line| line.contains("Waiting"));

        for (n, scene) in SCENES.iter().enumerate() {
            let outbox = config.outbox.join(session.outbox_name());
            let reply = format!("{}\n{}", first_line(&outbox)?, scene.reply);
            let name = format!("reply{}.txt", n + 1);
            let number = BEFORE + n + 1 + usize::from(n > TAKEN_BACK);
            self.step(number, scene.title, scene.why, &format!("save as {FOLDER}/inbox/{name}"))?;
            self.tell("");
            self.show(&reply);
            self.tell("");
            put(&config.inbox, &name, &reply)?;
            let before = session.sequence;
            let mut next = self.turned(&mut serving, &store, &session, before)?;
            if next.question().is_some() {
                self.relay(&serving, |line| line.contains("deaddrop approve"));
                self.tell(
                    "\nYou have looked at it, and allow it, this once:\n\n$ deaddrop approve\n",
                );
                self.run(&project, &["--quiet", "approve"])?;
                next = self.turned(&mut serving, &store, &next, before)?;
            }
            if self.json {
                Context::print_json(&json!({
                    "step": number,
                    "reply": reply,
                    "sequence": next.sequence,
                    "isComplete": next.is_complete,
                    "results": next.last_results.iter().map(output::outcome_json).collect::<Vec<_>>(),
                }));
            }
            let name = next.outbox_name();
            self.relay(&serving, |line| line.contains(&name));
            session = next;
            if n == TAKEN_BACK {
                self.step(number + 1, "Second thoughts: look at a turn, and take it back", "You can see what each turn changed, take it back, and have it again; the next outbox tells the model so.", "deaddrop diff")?;
                self.run_shown(&project, &["diff"])?;
                for command in ["undo", "redo"] {
                    self.tell(format!("\n$ deaddrop {command}"));
                    self.tell("");
                    self.run(&project, &["--quiet", command])?;
                    session = store.load(&session.id)?;
                    let name = session.outbox_name();
                    self.relay(&serving, |line| line.contains(&name));
                }
            }
        }
        let ended = serving.child.wait();
        let ended = ended.map_err(|e| Error::io("wait for", "deaddrop".as_ref(), e))?;
        if !ended.success() {
            return Err(Error::usage(format!(
                "the deaddrop that served has failed ({ended}); what it said stands above"
            )));
        }
        let script = fs::read_to_string(project.join("greet.sh"))
            .map_err(|e| Error::io("read", &project.join("greet.sh"), e))?;
        self.tell("\nWhat is in greet.sh now:\n");
        self.show(&script);
        Ok(())
    }

    /// Tells of a step, why it is done and how a person would do it.
    fn step(&self, number: usize, title: &str, why: &str, how: &str) -> Result<()> {
        if number > 1 {
            self.pause()?;
        }
        let title = self.ui.for_results().bold(&format!("{number}. {title}"));
        self.tell(Styled::from("\n") + title + format!("\n{why}\n\n$ {how}"));
        Ok(())
    }

    /// Gives a person who watches the time to look.
    fn pause(&self) -> Result<()> {
        if self.json || self.ui.quiet || !Stream::Out.is_terminal() {
            return Ok(());
        }
        let begun = Instant::now();
        while begun.elapsed() < PAUSE {
            if self.stop.is_asked() {
                return Err(Error::interrupted());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn tell(&self, text: impl Into<Styled>) {
        if !self.json && !self.ui.quiet {
            output::prose(text);
        }
    }

    /// Shows a text that is not this command's own.
    fn show(&self, text: &str) {
        for row in output::rows_of(text.trim_end(), BAR).as_str().lines() {
            self.tell(format!("{BAR}{row}"));
        }
    }

    /// Shows what the deaddrop that serves says, up to a line or to its end.
    fn relay(&self, serving: &Serving, is_last: impl Fn(&str) -> bool) {
        // What it did is known already; only its words may be late.
        let late = Instant::now() + Duration::from_secs(5);
        loop {
            match serving.said.recv_timeout(late.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.show(&line);
                    if is_last(&line) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// A command line of this program, without the person's own settings.
    fn command(&self, folder: &Path, arguments: &[&str]) -> Result<Command> {
        let program =
            program::own().map_err(|e| Error::io("find", "deaddrop's own program".as_ref(), e))?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DEADDROP_") {
                command.env_remove(name);
            }
        }
        command.env_remove("NOTIFY_SOCKET").env("XDG_CONFIG_HOME", self.path.join("settings"));
        command.env("XDG_STATE_HOME", self.path.join("state"));
        // It stands behind the bar.
        let width = rows::own_width().saturating_sub(BAR.chars().count());
        command.env("COLUMNS", width.to_string());
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the program to its end, and shows what it says.
    fn run_shown(&self, folder: &Path, arguments: &[&str]) -> Result<()> {
        let fail = |e| Error::io("run", "deaddrop".as_ref(), e);
        let (mut reader, writer) = io::pipe().map_err(fail)?;
        let mut command = self.command(folder, arguments)?;
        command.stdout(writer.try_clone().map_err(fail)?).stderr(writer);
        let mut child = command.spawn().map_err(fail)?;
        // Its ends of the pipe are the child's alone then.
        drop(command);
        let mut said = Vec::new();
        reader.read_to_end(&mut said).map_err(fail)?;
        self.tell("");
        self.show(&String::from_utf8_lossy(&said));
        if child.wait().map_err(fail)?.success() {
            return Ok(());
        }
        Err(Error::failed(format!("`deaddrop {}` has failed", arguments.join(" "))))
    }

    /// Runs the program to its end.
    fn run(&self, folder: &Path, arguments: &[&str]) -> Result<()> {
        let output = self.command(folder, arguments)?.output();
        let output = output.map_err(|e| Error::io("run", "deaddrop".as_ref(), e))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Error::failed(format!(
            "`deaddrop {}` has failed: {}",
            arguments.join(" "),
            said.trim()
        )))
    }

    fn serve(&self, project: &Path) -> Result<Serving> {
        let fail = |e| Error::io("run", "deaddrop".as_ref(), e);
        let (reader, writer) = io::pipe().map_err(fail)?;
        let mut command = self.command(project, &["new", "-v", TASK])?;
        let child = command.stdout(writer.try_clone().map_err(fail)?).stderr(writer).spawn();
        let child = child.map_err(fail)?;
        let (send, said) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(io::Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Serving { child, said })
    }

    /// Waits until a session has gone on from where it is.
    fn turned(
        &self,
        serving: &mut Serving,
        store: &Store,
        session: &Session,
        before: u32,
    ) -> Result<Session> {
        self.wait(serving, "the next outbox", || {
            let now = store.load(&session.id)?;
            let has_moved =
                now.sequence > before || now.is_complete || now.question() != session.question();
            let is_decided = now.question().is_none() && now.sequence == before && !now.is_complete;
            Ok(Some(now).filter(|_| has_moved && !is_decided))
        })
    }

    /// Waits for something that the deaddrop that serves does.
    fn wait<T>(
        &self,
        serving: &mut Serving,
        what: &str,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if self.stop.is_asked() {
                return Err(Error::interrupted());
            }
            let has_ended = serving.child.try_wait().is_ok_and(|ended| ended.is_some());
            if has_ended && let Some(found) = look()? {
                return Ok(found);
            }
            if has_ended || begun.elapsed() > PATIENCE {
                self.relay(serving, |_| false);
                return Err(Error::usage(format!(
                    "{what} did not come; what deaddrop said stands above, and `deaddrop doctor` may tell why"
                )));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The line that an outbox gives for the reply to begin with.
fn first_line(outbox: &Path) -> Result<String> {
    let text = fs::read_to_string(outbox).map_err(|e| Error::io("read the outbox", outbox, e))?;
    let line = text.lines().rev().find_map(|line| Some(&line[line.find("[REPLY ")?..]));
    Ok(line.unwrap_or_default().to_owned())
}

/// Saves a reply as an editor does: whole, or not at all.
fn put(inbox: &Path, name: &str, reply: &str) -> Result<()> {
    let (partial, path) = (inbox.join(format!("{name}.part")), inbox.join(name));
    let saved = fs::write(&partial, reply).and_then(|()| fs::rename(&partial, &path));
    saved.map_err(|e| Error::io("save the reply as", &path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_pauses_leave_half_of_ten_seconds_for_what_it_does() {
        // One before each step but the first; one step takes back what a reply did.
        let pauses = u32::try_from(BEFORE + SCENES.len()).unwrap();
        assert!(PAUSE * pauses <= Duration::from_secs(5), "{PAUSE:?} {pauses} times");
    }
}
