//! `generate`: shell completions, pages of the manual, and a unit for systemd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use super::clipping::Clips;
use super::systemd::Unit;
use super::{Context, completion, help, output};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::text::{nearest, visible_line};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deaddrop generate completions bash > ~/.local/share/bash-completion/completions/deaddrop
  deaddrop generate man | man -l -
  deaddrop generate systemd-unit --clipboard")]
pub(super) struct Generate {
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Print completions for a shell
    Completions(Completions),
    /// Print a manual page
    Man(Manual),
    /// Print a systemd unit that runs `deaddrop watch` while you are logged in
    SystemdUnit(SystemdUnit),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deaddrop generate completions bash > ~/.local/share/bash-completion/completions/deaddrop
  deaddrop generate completions zsh > ~/.zfunc/_deaddrop
  deaddrop generate completions fish > ~/.config/fish/completions/deaddrop.fish")]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deaddrop generate man | man -l -
  deaddrop generate man config set | man -l -
  deaddrop generate man --dir ~/.local/share/man/man1")]
pub(super) struct Manual {
    /// The command [default: deaddrop itself]
    #[arg(conflicts_with = "dir")]
    command: Vec<String>,
    /// Write all pages into this folder, and print their paths
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The unit is for your own systemd (systemctl --user) and this project. Its first lines say where to save
it and how to start it. It names this program, the project and your PATH as they are now; settings come
from deaddrop.toml and your own file. With --copy or --clipboard the service starts with your desktop
instead of at login.

Examples:
  deaddrop generate systemd-unit
  deaddrop generate systemd-unit --clipboard")]
pub(super) struct SystemdUnit {
    #[command(flatten)]
    clips: Clips,
}

pub(super) fn completions(Completions { shell }: &Completions, json: bool) -> ExitCode {
    let script = completion::script(*shell);
    print(&script, json.then(|| ("shell", shell.to_string(), "script")));
    ExitCode::SUCCESS
}

pub(super) fn manual(Manual { command, dir }: &Manual, json: bool) -> Result<ExitCode> {
    if let Some(folder) = dir {
        write_all(folder, json)?;
    } else {
        let command = named(command)?;
        let name = name(&command).to_owned();
        print(&page(&command)?, json.then_some(("page", name, "roff")));
    }
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// There is no project, the program lies where replies can write, or a path cannot stand in a unit.
pub(super) fn systemd_unit(
    context: &Context,
    SystemdUnit { clips }: &SystemdUnit,
) -> Result<ExitCode> {
    let program = std::env::current_exe()
        .map_err(|e| Error::io("find", "deaddrop's own program".as_ref(), e))?;
    Programs::of(&context.config)
        .find(&program)
        .map_err(|e| Error::usage(format!("no unit is written for {}: {e}", program.display())))?;
    let variable = |name: &str| std::env::var_os(name);
    let (path, state) = (variable("PATH"), variable("XDG_STATE_HOME"));
    let unit = Unit {
        program: &program,
        project: &context.config.project,
        path: path.as_deref(),
        state: state.as_deref(),
        flags: &clips.flags(),
    };
    let text = unit.text().map_err(|why| Error::usage(format!("no unit can be written: {why}")))?;
    let name = super::systemd::name(unit.project);
    print(text.as_bytes(), context.json.then_some(("unit", name, "text")));
    Ok(ExitCode::SUCCESS)
}

/// Prints a text; as JSON where it is given by what its name and it itself go there.
fn print(text: &[u8], as_json: Option<(&str, String, &str)>) {
    if let Some((what, name, itself)) = as_json {
        let text = String::from_utf8_lossy(text);
        return Context::print_json(&json!({ what: name, itself: text }));
    }
    output::data(text);
}

/// The whole command line, with what every command takes in each.
fn all() -> clap::Command {
    let mut all = help::in_paragraphs();
    all.build();
    all
}

/// The command of that name, as in `config set`; its own name is then `deaddrop-config-set`.
fn named(words: &[String]) -> Result<clap::Command> {
    let mut command = all();
    let mut name = command.get_name().to_owned();
    for word in words {
        let Some(found) = command.find_subcommand(word) else {
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let meant = match nearest(word, known.iter().copied()) {
                Some(meant) => format!("did you mean '{meant}'?"),
                None if known.is_empty() => "it has none".to_owned(),
                None => format!("there are {}", known.join(", ")),
            };
            let word = visible_line(word);
            return Err(Error::usage(format!("there is no command '{word}' in {name}; {meant}")));
        };
        name = format!("{name}-{}", found.get_name());
        command = found.clone();
    }
    Ok(command.display_name(name))
}

/// What the page of a command is called.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The page of a command.
fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let written = Man::new(command.clone()).manual("deaddrop").render(&mut text);
    written.map_err(|e| Error::io("write the page of", command.get_name().as_ref(), e))?;
    let page = String::from_utf8_lossy(&text);
    Ok(with_values(&page, command).into_bytes())
}

/// The page with what each option takes in its synopsis, where `clap_mangen` has only the options' names.
fn with_values(page: &str, command: &clap::Command) -> String {
    let Some((head, rest)) = page.split_once(".SH SYNOPSIS\n") else { return page.to_owned() };
    let (synopsis, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    let mut synopsis = synopsis.to_owned();
    let takes = |arg: &&clap::Arg| arg.get_action().takes_values() && !arg.is_positional();
    for option in command.get_arguments().filter(takes) {
        let name = option.get_id().as_str().to_uppercase();
        let values = option.get_value_names().map_or(name, |names| names.join(" "));
        let value = format!("\\fI{}\\fR", values.replace('-', "\\-"));
        let (written, named) = match (option.get_long(), option.get_short()) {
            (Some(long), _) => {
                let long = format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-"));
                (long.clone(), long)
            }
            // It stands there with a blank of its own.
            (None, Some(short)) => (format!("\\fB\\-{short} \\fR"), format!("\\fB\\-{short}\\fR")),
            (None, None) => continue,
        };
        synopsis = synopsis.replacen(&written, &format!("{named} {value}"), 1);
    }
    format!("{head}.SH SYNOPSIS\n{synopsis}\n{rest}")
}

/// Writes the page of each command into a folder.
fn write_all(folder: &Path, json: bool) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    let mut left: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(words) = left.pop() {
        let command = named(&words)?;
        let subcommands = command.get_subcommands().filter(|command| !command.is_hide_set());
        left.extend(subcommands.map(|inner| [&*words, &[inner.get_name().to_owned()]].concat()));
        let name = name(&command);
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(&command)?).map_err(|e| Error::io("write", &path, e))?;
        let path = path.display().to_string();
        if json {
            Context::print_json(&json!({ "page": name, "path": path }));
        } else {
            output::result(path);
        }
    }
    Ok(())
}
