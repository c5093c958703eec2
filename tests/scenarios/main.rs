//! Scenarios: each folder `NNN_name/` beside this file is a test of its own. A session is begun
//! with the real program, replies are applied one after another, and what then stands on disk is
//! compared byte for byte. To add a case, add a folder.
//!
//! ```text
//! task.txt            the task ("A task" without it)
//! deaddrop.toml       settings of the base directory; where it wants a sandbox that this machine
//!                     does not have, the scenario is SKIPPED
//! args.txt            more arguments for every call of the program, one a line
//! workspace/          what stands in the workspace at the beginning
//! outside/            what stands in the base directory beside it, and must stay as it is
//! before-N.txt        a call of the program before reply N: its arguments, one a line
//! reply-N.txt         applied in order: deaddrop apply --session a1b2c3d4 reply-N.txt
//! decisions-N.txt     what is decided where reply N stops to ask, a line each: `approve`, or
//!                     `deny` and a reason
//! expected/
//!   outbox-N.txt      every outbox from the second on; the first where it matters
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
//! In an expected outbox `{{PROTOCOL}}` stands for protocol-prompt/tags.md, to the letter;
//! `{{SYSTEM}}` and the like for what depends on the machine; `{{WORD}}` for the word of a boundary,
//! which must be the same in both markers and absent between them.
//!
//! `SCENARIOS=overwrite cargo test --test scenarios` writes anew what is expected. Read every line
//! of what changed: a golden file says what is right, not what the program does.

#[path = "../it/support.rs"]
mod support;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use similar::TextDiff;
use support::{Base, ID, Run};
use tree::Tree;

const NOW: &str = "2025-01-15T10:30:00Z";
const PROTOCOL: &str = include_str!("../../protocol-prompt/tags.md");
/// What deaddrop keeps in a base directory.
const STATE: [&str; 5] = ["inbox", "outbox", "sessions", "approvals", "deaddrop.toml"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
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
    base: Base,
    /// More arguments for every call of the program.
    arguments: Vec<String>,
    /// The workspace, from the base directory.
    workspace: String,
    outside: Tree,
}

impl Scenario {
    /// Lays out the base directory and begins the session.
    fn begin(folder: PathBuf, problems: &mut Problems) -> Result<Self, Failed> {
        let base = Base::new();
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
        let arguments = lines(&folder.join("args.txt"))?;
        let scenario = Self { folder, base, arguments, workspace, outside };

        let task = scenario.folder.join("task.txt");
        let task = if task.exists() {
            vec!["--task-file".to_owned(), task.to_str().ok_or("a path not in UTF-8")?.to_owned()]
        } else {
            vec!["A task".to_owned()]
        };
        let arguments = scenario.arguments(&["new", "--no-watch", "--id", ID], &task);
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

    /// Runs the program in the base directory.
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
            let reply = self.folder.join(format!("reply-{n}.txt"));
            if !reply.exists() {
                break;
            }
            let reply = reply.to_str().ok_or("a path not in UTF-8")?.to_owned();
            let mut run = self.deaddrop(&["apply", "--session", ID], std::slice::from_ref(&reply));
            for decision in lines(&self.folder.join(format!("decisions-{n}.txt")))? {
                if run.code != Some(3) {
                    problems.found.push(format!("reply {n} does not ask: {decision}"));
                }
                let (verb, reason) = decision.split_once(' ').unwrap_or((&decision, ""));
                let reason = (!reason.is_empty()).then(|| format!("--reason={reason}"));
                run = self.deaddrop(&[verb], reason.as_slice());
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
                let said = run.stderr.replace(&reply, &format!("reply-{n}.txt"));
                problems.compare(&golden, Some(&self.portable(&said)))?;
            }
        }
        self.outboxes(&expected, problems)?;
        let golden = expected.join("session.json");
        if golden.exists() {
            let session = self.base.read(&format!("sessions/{ID}.json"));
            problems.compare(&golden, Some(&portable_session(&session)))?;
        }
        let session = self.base.read(&format!("sessions/{ID}.json"));
        if session.contains("\"isComplete\": true") != complete {
            problems.found.push("the session's isComplete is not what apply said".to_owned());
        }
        self.files(&expected, problems)
    }

    /// Compares every outbox; the first only where there is one to compare it with.
    fn outboxes(&self, expected: &Path, problems: &mut Problems) -> Result<(), Failed> {
        let names = self.base.names("outbox");
        for (n, name) in (1..).zip(&names) {
            if *name != format!("{ID}_seq{n:04}.txt") {
                problems.found.push(format!("outbox/ holds {name}"));
                continue;
            }
            let outbox = fs::read_to_string(self.base.at("outbox").join(name))?;
            let portable = portable_outbox(&outbox).unwrap_or_else(|problem| {
                problems.found.push(format!("{name}: {problem}"));
                outbox
            });
            let golden = expected.join(format!("outbox-{n}.txt"));
            if n > 1 || golden.exists() {
                problems.compare(&golden, Some(&portable))?;
            }
        }
        let beyond = expected.join(format!("outbox-{}.txt", names.len() + 1));
        problems.compare(&beyond, None)
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

    /// What was said, without the place of this run.
    fn portable(&self, said: &str) -> String {
        let path = self.base.path();
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        said.replace(&real.display().to_string(), "{{BASE}}")
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

/// An outbox with placeholders, its protocol section and its blocks checked.
fn portable_outbox(outbox: &str) -> Result<String, String> {
    let section = format!("\n\n=== PROTOCOL ===\n{PROTOCOL}\n=== CONTEXT ===\n## Environment\n");
    let (head, context) =
        outbox.split_once(&section).ok_or("PROTOCOL is not protocol-prompt/tags.md")?;
    let mut out = format!(
        "{head}\n\n=== PROTOCOL ===\n{{{{PROTOCOL}}}}\n\n=== CONTEXT ===\n## Environment\n"
    );
    // The word of the block that is open, and the line that closes it.
    let mut block: Option<(Option<&str>, String)> = None;
    let mut contents = false;
    let machine = ["System", "Shell", "Tools", "Sandbox", "Network", "Protected"];
    for (n, line) in context.split_inclusive('\n').enumerate() {
        let bare = line.strip_suffix('\n').ok_or("the last line has no newline")?;
        if let Some(name) = machine.get(n) {
            let told = line.strip_prefix(&format!("  {name}: "));
            if told.is_none_or(|value| value.trim().is_empty()) {
                return Err(format!("{line:?} does not tell the {name}"));
            }
            out.push_str(&format!("  {name}: {{{{{}}}}}\n", name.to_uppercase()));
            continue;
        }
        contents |= block.is_none() && bare == "## Requested File Contents";
        match &block {
            Some((word, end)) if bare == end => {
                out.push_str(&without_word(line, *word));
                block = None;
            }
            Some((Some(word), _)) if line.contains(word) => {
                return Err(format!("the boundary {word} stands in the content"));
            }
            Some((None, _))
                if bare.trim().starts_with("--- ") || bare.trim().starts_with("=== ") =>
            {
                return Err(format!("{bare:?} stands in a block without a boundary"));
            }
            None if contents && bare.starts_with("--- ") => {
                let mark = bare
                    .strip_prefix("--- ")
                    .and_then(|rest| rest.strip_suffix(" ---"))
                    .ok_or_else(|| format!("{bare:?} opens no block"))?;
                let word = mark
                    .rsplit_once(" (boundary ")
                    .and_then(|(_, rest)| rest.strip_suffix(')'))
                    .filter(|word| word.len() >= 6 && word.bytes().all(|b| b.is_ascii_hexdigit()));
                out.push_str(&without_word(line, word));
                block = Some((word, format!("--- end {mark} ---")));
            }
            _ => out.push_str(line),
        }
    }
    match block {
        Some((_, end)) => Err(format!("a block is not closed by {end:?}")),
        None => Ok(out),
    }
}

fn without_word(line: &str, word: Option<&str>) -> String {
    match word {
        Some(word) => line.replace(&format!("(boundary {word})"), "(boundary {{WORD}})"),
        None => line.to_owned(),
    }
}

/// A session's file without its secret and without what the machine has.
fn portable_session(session: &str) -> String {
    let mut out = String::new();
    let mut in_tools = false;
    for line in session.split_inclusive('\n') {
        if line.starts_with("  \"secret\": \"") {
            out.push_str("  \"secret\": \"{{SECRET}}\"\n");
        } else if line.starts_with("  \"tools\": [") {
            out.push_str("  \"tools\": {{TOOLS}}\n");
            in_tools = !line.trim_end().trim_end_matches(',').ends_with(']');
        } else if in_tools {
            in_tools = !line.starts_with("  ]");
        } else {
            out.push_str(line);
        }
    }
    out
}

/// The text of a file; None where there is none.
fn text(path: &Path) -> Result<Option<String>, Failed> {
    if path.exists() { Ok(Some(fs::read_to_string(path)?)) } else { Ok(None) }
}

fn lines(path: &Path) -> Result<Vec<String>, Failed> {
    Ok(text(path)?.unwrap_or_default().lines().map(str::to_owned).collect())
}
