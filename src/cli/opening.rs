//! `open`: an outbox in the person's editor, or its folder in their file manager.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use serde_json::json;

use super::{Context, sessions, talk};
use crate::error::{Error, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
At a terminal it is the editor that $VISUAL or $EDITOR names; else, and without either, what the
desktop has for such files (xdg-open). What is opened is said, and its path printed.

Examples:
  deaddrop open
  deaddrop open a1b2c3d4
  deaddrop open --folder")]
pub(super) struct Open {
    /// Of which session; the newest open one if none is named
    id: Option<String>,
    /// Open the folder of the outboxes in the file manager instead
    #[arg(long, conflicts_with = "id")]
    folder: bool,
}

/// What opens a file.
enum Opener {
    /// A command line of the person's, as they set it.
    Editor(OsString),
    /// The desktop's own program for that.
    Desktop,
}

pub(super) fn open(context: &Context, arguments: &Open) -> Result<ExitCode> {
    let path = if arguments.folder {
        context.config.outbox.clone()
    } else {
        let session = sessions::named_or_newest(context, arguments.id.as_deref())?;
        context.config.outbox.join(session.outbox_name())
    };
    if let Err(e) = path.metadata() {
        let doing = if arguments.folder { "open the folder" } else { "open the outbox" };
        return Err(Error::io(doing, &path, e));
    }
    let opener = if arguments.folder { Opener::Desktop } else { Opener::choose() };
    let shown = context.display(&path);
    context.talk.say(&format!("Opening {shown} with {}", opener.name()));
    opener.open(&path)?;
    if context.json {
        Context::print_json(&json!({ "opened": shown, "with": opener.name() }));
    } else {
        talk::result(&shown);
    }
    Ok(ExitCode::SUCCESS)
}

impl Opener {
    fn choose() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // An editor in a terminal is of no use where there is none.
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let editor = set("VISUAL").or_else(|| set("EDITOR")).filter(|_| is_terminal);
        editor.map_or(Self::Desktop, Self::Editor)
    }

    fn name(&self) -> String {
        match self {
            Self::Editor(editor) => editor.to_string_lossy().into_owned(),
            Self::Desktop => desktop().to_owned(),
        }
    }

    /// Opens a file or folder, and waits until the editor has ended or the desktop has taken it.
    fn open(&self, path: &Path) -> Result<()> {
        let mut command = match self {
            // It may hold arguments, as `code --wait` does; a shell reads it, as git has it.
            Self::Editor(editor) => {
                let mut line = editor.clone();
                line.push(" \"$@\"");
                let mut command = Command::new("/bin/sh");
                command.args([OsStr::new("-c"), &line, OsStr::new("editor")]);
                command
            }
            Self::Desktop => {
                let mut command = Command::new(desktop());
                command.stdin(Stdio::null()).stdout(Stdio::null());
                command
            }
        };
        let failed = |why: String| {
            let name = self.name();
            let otherwise = match self {
                Self::Editor(_) => "look at $VISUAL and $EDITOR, or open it yourself",
                Self::Desktop => {
                    "set EDITOR to open it in a terminal, or open it yourself (over SSH there is no desktop)"
                }
            };
            Error::usage(format!("{name} could not open {}: {why}; {otherwise}", path.display()))
        };
        match command.arg(path).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(status.to_string())),
            Err(e) => Err(failed(e.to_string())),
        }
    }
}

fn desktop() -> &'static str {
    if cfg!(target_os = "macos") { "open" } else { "xdg-open" }
}
