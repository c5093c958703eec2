//! Opens a file in the person's editor.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::NamedTempFile;
use wait_timeout::ChildExt;

use super::{CliContext, output};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::terminal::Stream;

/// The program that opens files on the desktop.
const DESKTOP: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// The most time to wait for the desktop program.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens an outbox and prints its path.
pub(super) fn open(context: &CliContext, path: &Path) -> Result<ExitCode> {
    let editor = editor();
    let program = editor.as_deref().unwrap_or(DESKTOP);
    let shown = context.display(path);
    output::say(format!("Opening {shown} with {program}"));
    start(context, editor.as_deref(), path, "open it yourself")?;
    output::print(json!({ "opened": shown, "with": program }), || &*shown);
    Ok(ExitCode::SUCCESS)
}

/// Opens a page in the browser through a file that only the person can read, since every user of the machine can see
/// the arguments of programs. Dropping the result removes the file.
#[cfg(feature = "serve")]
pub(super) fn open_browser(context: &CliContext, url: &str) -> Result<NamedTempFile> {
    let redirect =
        format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">\n");
    let file = temporary(".html", &redirect)?;
    start(context, None, file.path(), "open it yourself")?;
    Ok(file)
}

/// Creates a file with this text that only the person can read.
fn temporary(ending: &str, text: &str) -> Result<NamedTempFile> {
    let file = tempfile::Builder::new().prefix("deaddrop-").suffix(ending).tempfile();
    let file = file.map_err(|e| Error::io("make a file in", &std::env::temp_dir(), e))?;
    fs::write(file.path(), text).map_err(|e| Error::io("write", file.path(), e))?;
    Ok(file)
}

/// The line below the text that the person writes in the editor.
const END_LINE: &str = "----- Write above this line; everything from here on is ignored. -----";

/// Lets the person write a task in an editor. Also returns the file with the task; dropping it removes the file.
///
/// # Errors
/// There is no editor or no terminal, or the editor fails.
pub(super) fn write_task(context: &CliContext) -> Result<(String, NamedTempFile)> {
    let Some(editor) = editor() else {
        return Err(Error::usage(
            "the task is missing; give it in quotes or with --task-file FILE (at a terminal, your $EDITOR opens if it is set)",
        ));
    };
    let file = temporary(".md", &format!("\n\n{END_LINE}\n"))?;
    let path = file.path();
    start(context, Some(&editor), path, "give the task in quotes")?;
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    let text = text.split(END_LINE).next().unwrap_or_default().trim().to_owned();
    fs::write(path, &text).map_err(|e| Error::io("write", path, e))?;
    Ok((text, file))
}

/// The command line of the person's editor; None if there is no terminal or no editor.
fn editor() -> Option<String> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    // Most editors need a terminal.
    let is_terminal = io::stdin().is_terminal() && Stream::Out.is_terminal();
    let editor = set("VISUAL").or_else(|| set("EDITOR")).filter(|_| is_terminal)?;
    Some(editor.to_string_lossy().into_owned())
}

/// Opens a file, and waits until the editor ends or the desktop accepts the file. `instead` ends the advice on failure.
fn start(context: &CliContext, editor: Option<&str>, path: &Path, instead: &str) -> Result<()> {
    let programs = Programs::of(&context.config);
    let ended = match editor {
        Some(line) => command(&programs, line)
            .and_then(|mut command| command.arg(path).spawn()?.wait().map(Some)),
        // If the desktop program still runs after that time, it need not be waited for.
        None => programs.command(DESKTOP).and_then(|mut command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.arg(path).spawn()?.wait_timeout(PATIENCE)
        }),
    };
    let why = match ended {
        Ok(Some(status)) if !status.success() => status.to_string(),
        Ok(_) => return Ok(()),
        Err(e) => e.to_string(),
    };
    let (name, advice) = match editor {
        Some(line) => (line, "check $VISUAL and $EDITOR"),
        None => (DESKTOP, "set EDITOR to use a terminal (over SSH there is no desktop)"),
    };
    let path = path.display();
    Err(Error::failed(format!("{name} could not open {path}: {why}; {advice}, or {instead}")))
}

/// Splits an editor's command line into words like a shell, but expands nothing.
fn command(programs: &Programs, line: &str) -> io::Result<Command> {
    let words = shlex::split(line).unwrap_or_default();
    let [name, arguments @ ..] = &*words else {
        return Err(io::Error::other("it is not a command line"));
    };
    let mut command = programs.user_command(name)?;
    command.args(arguments);
    Ok(command)
}
