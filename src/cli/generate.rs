//! `generate`: shell completions, pages of the manual, and a unit for systemd.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use super::arguments::Cli;
use super::clipping::Clips;
use super::{Context, completion, output, systemd};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::text::visible_line;

#[derive(Debug, Args)]
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
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct Manual {
    /// The command [default: deaddrop itself]
    #[arg(conflicts_with = "dir")]
    command: Vec<String>,
    /// Write all pages into this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
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
    let mut all = Cli::all();
    if let Some(folder) = dir {
        fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(all, folder))
            .map_err(|e| Error::io("write pages to", folder, e))?;
        return Ok(ExitCode::SUCCESS);
    }
    all.build();
    let mut named = &all;
    for word in command {
        named = named.find_subcommand(word).ok_or_else(|| {
            let word = visible_line(word);
            Error::usage(format!("there is no command '{word}'; `deaddrop --help` lists them"))
        })?;
    }
    let mut page = Vec::new();
    let name = named.get_display_name().unwrap_or(named.get_name()).to_owned();
    Man::new(named.clone())
        .render(&mut page)
        .map_err(|e| Error::io("write the page of", name.as_ref(), e))?;
    print(&page, json.then_some(("page", name, "roff")));
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
    let variables = ["PATH", "XDG_STATE_HOME"].map(|name| (name, std::env::var_os(name)));
    let project = &context.config.project;
    let text = systemd::unit(&program, project, &variables, &clips.flags())
        .map_err(|why| Error::usage(format!("no unit can be written: {why}")))?;
    let name = systemd::name(project);
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
