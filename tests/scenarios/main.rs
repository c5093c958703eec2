//! Scenarios: each folder `NNN_name/` beside this file is a test of its own. A session is begun
//! with the real program, replies are applied one after another, and what then stands on disk is
//! compared byte for byte. To add a case, add a folder.
//!
//! ```text
//! task.txt            the task ("A task" without it)
//! new.txt             more arguments of `deaddrop new`, one a line
//! deaddrop.toml       settings of the project; where it wants a sandbox that this machine
//!                     does not have, the scenario is SKIPPED
//! args.txt            more arguments for every call of the program, one a line
//! workspace/          what stands in the workspace at the beginning
//! outside/            what stands in the project beside it, and must stay as it is
//! before-N.txt        a call of the program before reply N: its arguments, one a line
//! reply-N.txt         applied in order: deaddrop apply --session a1b2c3d4 reply-N.txt; or
//!                     reply-N.json
//! decisions-N.txt     what is decided where reply N stops to ask, a line each: `approve`, or
//!                     `deny` and a reason
//! expected/
//!   outbox-N.txt      every outbox from the second on; the first where it matters
//!   events-N.json     the events beside them, in a session of operations
//!   asked-N.txt       what was said on the terminal each time reply N stopped to ask, where it
//!                     matters
//!   workspace/        all that stands in the workspace at the end (nothing without it)
//!   empty-folders.txt the folders in it that hold nothing, one a line
//!   stderr-N.txt      what `apply` of reply N said on the terminal, where it matters
//!   exit-N            its exit code where that is not 0
//!   session.json      the session's file at the end, where it matters
//! ```
//!
//! In names below `workspace/` and `outside/`, `%XX` stands for the byte XX (`%0A`, and `%2E` for
//! the dot of a `.gitignore` that git should not heed). Symbolic links and executable bits count.
//!
//! In an expected outbox `{{PROTOCOL}}` stands for protocol-prompt/tags.md, to the letter, and
//! `{{OPERATIONS}}` for protocol-prompt/operations.md; `{{SYSTEM}}` and the like for what depends on
//! the machine; `{{KEY}}` for the key of the reply, `{{WORD}}` for the word of a boundary, which must be the same in both markers and
//! absent between them. In events `{{MS}}` stands for a duration, and `{{OP}}` for an id that was
//! made up for an operation without one. On the terminal `{{N}}` stands for a number of tokens.
//!
//! `SCENARIOS=overwrite cargo test --test scenarios` writes anew what is expected. Read every line
//! of what changed: a golden file says what is right, not what the program does.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

mod portable;
#[path = "../it/support/mod.rs"]
mod support;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use similar::TextDiff;
use support::{ID, Project, Run};
use tree::Tree;

const NOW: &str = "2025-01-15T10:30:00Z";
/// What deaddrop keeps in a project.
const STATE: [&str; 5] = ["inbox", "outbox", "sessions", "approvals", "deaddrop.toml"];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // As other tests do.
    let threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|n| n.parse().ok());
    arguments.test_threads = arguments.test_threads.or(threads);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut folders: Vec<PathBuf> = fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let overwrite = std::env::var("SCENARIOS").is_ok_and(|value| value == "overwrite");
    let trials = folders.into_iter().map(|folder| {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let wanted = fs::read_to_string(folder.join("deaddrop.toml")).unwrap_or_default();
        let wanted = wanted.lines().find_map(|line| line.strip_prefix("sandbox = "));
        let wanted = wanted.map(|mode| mode.trim_matches('"').to_owned());
        let skipped = wanted.is_some_and(|mode| !support::has_sandbox(&mode));
        let trial = Trial::test(name, move || {
            let mut problems = Problems { overwrite, found: Vec::new() };
            Scenario::begin(folder, &mut problems)?.play(&mut problems)?;
            if problems.found.is_empty() { Ok(()) } else { Err(problems.found.join("\n").into()) }
        });
        trial.with_ignored_flag(skipped)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// What is not as it should be.
struct Problems {
    overwrite: bool,
    found: Vec<String>,
}

struct Scenario {
    folder: PathBuf,
    base: Project,
    /// More arguments for every call of the program.
    arguments: Vec<String>,
    /// The workspace, from the project.
    workspace: String,
    outside: Tree,
}

impl Scenario {
    /// Lays out the project and begins the session.
    fn begin(folder: PathBuf, problems: &mut Problems) -> Result<Self, Failed> {
        let base = Project::new();
        let mut workspace = "workspace".to_owned();
        if let Some(settings) = text(&folder.join("deaddrop.toml"))? {
            for line in settings.lines() {
                if let Some((_, value)) = line.split_once("workspace_dir = ") {
                    value.trim_matches('"').clone_into(&mut workspace);
                }
            }
            base.write("deaddrop.toml", settings);
        }
        tree::read(&folder.join("workspace"), tree::Names::Escaped)?
            .write(&base.at(&workspace), tree::Names::Plain)?;
        let outside = tree::read(&folder.join("outside"), tree::Names::Escaped)?;
        outside.write(base.path(), tree::Names::Plain)?;
        // A folder with files is a project only with one of these, or once it is set up.
        fs::create_dir_all(base.at(&workspace)).map_err(|e| e.to_string())?;
        let arguments = lines(&folder.join("args.txt"))?;
        let scenario = Self { folder, base, arguments, workspace, outside };

        let task = scenario.folder.join("task.txt");
        let task = if task.exists() {
            vec!["--task-file".to_owned(), task.to_str().ok_or("a path not in UTF-8")?.to_owned()]
        } else {
            vec!["A task".to_owned()]
        };
        let more = lines(&scenario.folder.join("new.txt"))?;
        let begin: Vec<&str> = ["new", "--no-watch", "--id", ID]
            .into_iter()
            .chain(more.iter().map(String::as_str))
            .collect();
        let arguments = scenario.arguments(&begin, &task);
        let mut new = scenario.base.command(&arguments);
        if !scenario.folder.join("expected/outbox-1.txt").exists() {
            // Most of the time would go into asking every tool for its version.
            new.env("PATH", "");
        }
        let output = new.output()?;
        if !output.status.success() {
            problems.found.push(format!("new: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(scenario)
    }

    /// Runs the program in the project.
    fn deaddrop(&self, arguments: &[&str], more: &[String]) -> Run {
        self.base.run(&self.arguments(arguments, more))
    }

    fn arguments<'a>(&'a self, first: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
        let mut all = first.to_vec();
        all.extend(["--now", NOW]);
        all.extend(more.iter().chain(&self.arguments).map(String::as_str));
        all
    }

    fn play(&self, problems: &mut Problems) -> Result<(), Failed> {
        let expected = self.folder.join("expected");
        let mut complete = false;
        for n in 1.. {
            let before = self.folder.join(format!("before-{n}.txt"));
            if before.exists() {
                let run = self.deaddrop(&[], &lines(&before)?);
                if run.code != Some(0) {
                    problems.found.push(format!("before-{n}.txt: {run:#?}"));
                }
            }
            let named = ["txt", "json"].map(|end| format!("reply-{n}.{end}"));
            let Some(name) = named.into_iter().find(|name| self.folder.join(name).exists()) else {
                break;
            };
            let reply = self.folder.join(&name);
            let reply = reply.to_str().ok_or("a path not in UTF-8")?.to_owned();
            let mut run = self.deaddrop(&["apply", "--session", ID], std::slice::from_ref(&reply));
            let mut asked = String::new();
            for decision in lines(&self.folder.join(format!("decisions-{n}.txt")))? {
                if run.code != Some(3) {
                    problems.found.push(format!("reply {n} does not ask: {decision}"));
                }
                asked.push_str(&self.said(&run, &reply, &name));
                let (verb, reason) = decision.split_once(' ').unwrap_or((&decision, ""));
                let reason = (!reason.is_empty()).then(|| format!("--reason={reason}"));
                run = self.deaddrop(&[verb], reason.as_slice());
            }
            let golden = expected.join(format!("asked-{n}.txt"));
            if golden.exists() {
                problems.compare(&golden, Some(&asked))?;
            }
            let code = run.code.map_or("killed\n".to_owned(), |code| format!("{code}\n"));
            let failed = (run.code != Some(0)).then_some(code.as_str());
            problems.compare(&expected.join(format!("exit-{n}")), failed)?;
            // The next outbox is named on standard output, and nothing else is.
            complete = run.code == Some(0) && run.stdout.is_empty();
            let next = run.stdout.trim_end_matches('\n');
            if !complete && run.code == Some(0) && !next.is_empty() && !self.base.exists(next) {
                problems.found.push(format!("reply {n}: no outbox at {:?}", run.stdout));
            }
            let golden = expected.join(format!("stderr-{n}.txt"));
            if golden.exists() || complete || run.code != Some(0) {
                problems.compare(&golden, Some(&self.said(&run, &reply, &name)))?;
            }
        }
        self.outboxes(&expected, problems)?;
        let golden = expected.join("session.json");
        if golden.exists() {
            let session = self.base.read(&format!("sessions/{ID}.json"));
            problems.compare(&golden, Some(&portable::session(&session)))?;
        }
        let session = self.base.read(&format!("sessions/{ID}.json"));
        if session.contains("\"isComplete\": true") != complete {
            problems.found.push("the session's isComplete is not what apply said".to_owned());
        }
        self.files(&expected, problems)
    }

    /// Compares every outbox and its events; the first only where there is one to compare it with.
    fn outboxes(&self, expected: &Path, problems: &mut Problems) -> Result<(), Failed> {
        let names = self.base.names("outbox");
        let (mut outboxes, mut events) = (0, 0);
        for name in &names {
            let text = fs::read_to_string(self.base.at("outbox").join(name))?;
            let (n, golden, portable) = if *name == format!("{ID}_seq{:04}.txt", outboxes + 1) {
                outboxes += 1;
                (outboxes, format!("outbox-{outboxes}.txt"), portable::outbox(&text))
            } else if *name == format!("{ID}_seq{:04}.events.json", events + 1) {
                events += 1;
                (events, format!("events-{events}.json"), portable::events(&text))
            } else {
                problems.found.push(format!("outbox/ holds {name}"));
                continue;
            };
            let portable = portable.unwrap_or_else(|problem| {
                problems.found.push(format!("{name}: {problem}"));
                text
            });
            let golden = expected.join(golden);
            if n > 1 || golden.exists() {
                problems.compare(&golden, Some(&portable))?;
            }
        }
        problems.compare(&expected.join(format!("outbox-{}.txt", outboxes + 1)), None)?;
        problems.compare(&expected.join(format!("events-{}.json", events + 1)), None)
    }

    /// Compares all files of the workspace, and those beside it with what they were.
    fn files(&self, expected: &Path, problems: &mut Problems) -> Result<(), Failed> {
        let mut outside = tree::read(self.base.path(), tree::Names::Plain)?;
        STATE.iter().for_each(|name| drop(outside.split_off(name)));
        let workspace = match self.workspace.as_str() {
            "." => std::mem::take(&mut outside),
            folder => outside.split_off(folder),
        };
        problems.found.extend(self.outside.differences(&outside, "outside/"));
        let settings = text(&self.folder.join("deaddrop.toml"))?;
        if settings != text(&self.base.at("deaddrop.toml"))? {
            problems.found.push("deaddrop.toml was changed".to_owned());
        }

        let (golden, empty) = (expected.join("workspace"), expected.join("empty-folders.txt"));
        if problems.overwrite {
            if golden.exists() {
                fs::remove_dir_all(&golden)?;
            }
            workspace.files().write(&golden, tree::Names::Escaped)?;
        }
        let wanted = tree::read(&golden, tree::Names::Escaped)?.files();
        problems.found.extend(wanted.differences(&workspace.files(), "workspace/"));
        let folders = workspace.empty_folders();
        problems.compare(&empty, (!folders.is_empty()).then_some(folders.as_str()))
    }

    /// What was said on the terminal, without the places of this run.
    fn said(&self, run: &Run, reply: &str, name: &str) -> String {
        let path = self.base.path();
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let said = run.stderr.replace(reply, name);
        let said = portable::weighed(&said);
        portable::made_up(&said.replace(&real.display().to_string(), "{{BASE}}"))
    }
}

impl Problems {
    /// Compares a text with a golden file, or writes that file; None where there should be none.
    fn compare(&mut self, golden: &Path, actual: Option<&str>) -> Result<(), Failed> {
        let expected = text(golden)?;
        if expected.as_deref() == actual {
            return Ok(());
        }
        if self.overwrite {
            match actual {
                Some(actual) => {
                    fs::create_dir_all(golden.parent().unwrap_or(golden))?;
                    fs::write(golden, actual)?;
                }
                None => fs::remove_file(golden)?,
            }
            return Ok(());
        }
        let name = golden.file_name().unwrap_or_default().to_string_lossy();
        let diff = TextDiff::from_lines(
            expected.as_deref().unwrap_or_default(),
            actual.unwrap_or_default(),
        );
        self.found
            .push(diff.unified_diff().header(&format!("expected/{name}"), "actual").to_string());
        Ok(())
    }
}

/// The text of a file; None where there is none.
fn text(path: &Path) -> Result<Option<String>, Failed> {
    if path.exists() { Ok(Some(fs::read_to_string(path)?)) } else { Ok(None) }
}

fn lines(path: &Path) -> Result<Vec<String>, Failed> {
    Ok(text(path)?.unwrap_or_default().lines().map(str::to_owned).collect())
}
