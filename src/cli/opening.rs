//! Opens a file in the person's editor.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::json;
use wait_timeout::ChildExt;

use super::{Context, output};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::terminal::Stream;

/// How long the desktop is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What opens a file.
enum Opener {
    /// A command line of the person's, as they set it.
    Editor(OsString),
    /// The desktop's own program for that.
    Desktop,
}

/// Opens an outbox, and prints its path.
pub(super) fn open(context: &Context, path: &Path) -> Result<ExitCode> {
    let opener = Opener::choose();
    let shown = context.display(path);
    context.ui.say(format!("Opening {shown} with {}", opener.name()));
    opener.open(path, &Programs::of(&context.config))?;
    if context.json {
        Context::print_json(&json!({ "opened": shown, "with": opener.name() }));
    } else {
        output::result(&shown);
    }
    Ok(ExitCode::SUCCESS)
}

/// What stands below the text that a person writes in their editor.
const BELOW: &str = "----- Write above this line; everything from here on is ignored. -----";

/// A text that the person writes in their editor. `what` says which: "the task".
///
/// # Errors
/// There is no editor or no terminal, or the editor fails.
pub(super) fn written(context: &Context, what: &str) -> Result<String> {
    let opener = Opener::choose();
    if matches!(opener, Opener::Desktop) {
        return Err(Error::usage(format!(
            "{what} is missing; give it in quotes or with --task-file FILE, or set EDITOR to write it in your editor"
        )));
    }
    let file = tempfile::Builder::new().prefix("deaddrop-").suffix(".md").tempfile();
    let file = file.map_err(|e| Error::io("make a file in", &std::env::temp_dir(), e))?;
    let path = file.path();
    fs::write(path, format!("\n\n{BELOW}\n")).map_err(|e| Error::io("write", path, e))?;
    opener.open(path, &Programs::of(&context.config))?;
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    Ok(text.split(BELOW).next().unwrap_or_default().trim().to_owned())
}

impl Opener {
    fn choose() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // An editor in a terminal is of no use where there is none.
        let is_terminal = io::stdin().is_terminal() && Stream::Out.is_terminal();
        let editor = set("VISUAL").or_else(|| set("EDITOR")).filter(|_| is_terminal);
        editor.map_or(Self::Desktop, Self::Editor)
    }

    fn name(&self) -> String {
        match self {
            Self::Editor(editor) => editor.to_string_lossy().into_owned(),
            Self::Desktop => desktop().to_owned(),
        }
    }

    /// The command line that opens something.
    fn command(&self, programs: &Programs) -> io::Result<Command> {
        let Self::Editor(line) = self else {
            let mut command = programs.command(desktop())?;
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            return Ok(command);
        };
        let (name, arguments) = line
            .to_str()
            .and_then(first_word)
            .ok_or_else(|| io::Error::other("its first word does not name a program"))?;
        // Its arguments are read by a shell, as git has it; which program it is, is not.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("exec \"$0\" {arguments} \"$@\"")]).arg(programs.find(name)?);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", programs.folders(&path));
        Ok(command)
    }

    /// Opens a file, and waits until the editor has ended or the desktop has taken it.
    fn open(&self, path: &Path, programs: &Programs) -> Result<()> {
        let failed = |why: String| {
            let name = self.name();
            let otherwise = match self {
                Self::Editor(_) => "check $VISUAL and $EDITOR, or open it yourself",
                Self::Desktop => {
                    "set EDITOR to open it in a terminal, or open it yourself (over SSH there is no desktop)"
                }
            };
            Error::failed(format!("{name} could not open {}: {why}; {otherwise}", path.display()))
        };
        match self.started(programs, path) {
            Ok(Some(status)) if !status.success() => Err(failed(status.to_string())),
            Ok(_) => Ok(()),
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// How the program ended; None where it still runs, and nobody has to wait for it.
    fn started(&self, programs: &Programs, path: &Path) -> io::Result<Option<ExitStatus>> {
        let mut child = self.command(programs)?.arg(path).spawn()?;
        match self {
            Self::Editor(_) => child.wait().map(Some),
            Self::Desktop => child.wait_timeout(PATIENCE),
        }
    }
}

/// The first word of a shell's line, and the rest; None where only a shell could tell it.
fn first_word(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let quote = line.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (word, rest) = match quote {
        Some(quote) => line[1..].split_once(quote)?,
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    };
    let is_plain = |c: char| !"\"'\\$`=;&|<>(){}[]*?~#!".contains(c);
    let ends = rest.is_empty() || quote.is_none() || rest.starts_with(char::is_whitespace);
    (ends && word.chars().all(is_plain)).then_some((word, rest))
}

fn desktop() -> &'static str {
    if cfg!(target_os = "macos") { "open" } else { "xdg-open" }
}
