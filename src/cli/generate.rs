//! `generate`: shell completions, manual pages, and a systemd unit that runs `watch`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;

use super::arguments::Cli;
use super::show::ClipboardFlags;
use super::{CliContext, completion, output};
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::text::visible_line;

#[derive(Debug, Subcommand)]
pub(super) enum Generate {
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print a manual page
    Man(Manual),
    /// Print a systemd unit that runs `deaddrop watch` while you are logged in
    SystemdUnit {
        #[command(flatten)]
        clipboard_flags: ClipboardFlags,
    },
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

pub(super) fn completions(shell: Shell) -> ExitCode {
    let script = completion::script(shell);
    print(&script, ["shell", &shell.to_string(), "script"]);
    ExitCode::SUCCESS
}

pub(super) fn manual(Manual { command, dir }: &Manual) -> Result<ExitCode> {
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
    print(&page, ["page", &name, "roff"]);
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// The program is in a folder that replies can write to, or a path cannot be written in a unit.
pub(super) fn systemd_unit(
    context: &CliContext,
    clipboard_flags: ClipboardFlags,
) -> Result<ExitCode> {
    let program = std::env::current_exe()
        .map_err(|e| Error::io("find", "deaddrop's own program".as_ref(), e))?;
    Programs::of(&context.config)
        .find(&program)
        .map_err(|e| Error::usage(format!("no unit is written for {}: {e}", program.display())))?;
    let variables = ["PATH", "XDG_STATE_HOME"].map(|name| (name, std::env::var_os(name)));
    let project = &context.config.project;
    let text = unit(&program, project, &variables, &clipboard_flags.flags())
        .map_err(|why| Error::usage(format!("no unit can be written: {why}")))?;
    print(text.as_bytes(), ["unit", &unit_name(project), "text"]);
    Ok(ExitCode::SUCCESS)
}

/// Prints a text, or with `--json` an object that contains its name and the text.
fn print(text: &[u8], [name_field, name, text_field]: [&str; 3]) {
    if output::wants_json() {
        let text = String::from_utf8_lossy(text);
        output::json(&json!({ name_field: name, text_field: text }));
    } else {
        output::data(text);
    }
}

/// The systemd target that is reached when the person logs in.
const LOGIN: &str = "default.target";
/// The systemd target that is reached with the person's desktop, which has a clipboard.
const DESKTOP: &str = "graphical-session.target";

/// The unit name of a project: readable and unique.
fn unit_name(project: &Path) -> String {
    let folder = project.file_name().unwrap_or_default().to_string_lossy();
    let words = folder.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(40).collect();
    let hash = blake3::hash(project.as_os_str().as_encoded_bytes()).to_hex();
    let name = if name.is_empty() { String::new() } else { format!("{name}-") };
    format!("deaddrop-{name}{}.service", &hash[..8])
}

/// The text of a unit, or the reason why it cannot be written. `variables` are those that systemd would set
/// differently: PATH for commands, and the folder of recorded consents. `flags` are plain clipboard flags of `watch`.
fn unit(
    program: &Path,
    project: &Path,
    variables: &[(&str, Option<OsString>)],
    flags: &[&str],
) -> Result<String, String> {
    let mut set = String::new();
    for (name, value) in variables {
        if let Some(value) = value {
            set.push_str(&format!("Environment=\"{name}={}\"\n", plain(value)?));
        }
    }
    // systemd knows DISPLAY and similar variables only while the desktop runs.
    let (target, desktop) = match flags {
        [] => (LOGIN, String::new()),
        _ => (DESKTOP, format!("PartOf={DESKTOP}\nAfter={DESKTOP}\n")),
    };
    let flags: String = flags.iter().map(|flag| format!(" {flag}")).collect();
    Ok(format!(
        include_str!("data/unit.service"),
        name = unit_name(project),
        desktop = desktop,
        program = plain(program.as_os_str())?,
        project = plain(project.as_os_str())?,
        flags = flags,
        variables = set,
        target = target,
    ))
}

/// Returns a text if systemd reads it unchanged between quotes.
fn plain(text: &OsStr) -> Result<&str, String> {
    let is_plain =
        |text: &&str| visible_line(text) == *text && !text.contains(['"', '\'', '\\', '%', '$']);
    text.to_str().filter(is_plain).ok_or_else(|| {
        format!(
            "systemd needs UTF-8 without quotes, backslashes, `%`, `$` and control characters, and not {}",
            visible_line(&text.to_string_lossy())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_a_name_of_its_own() {
        let one = unit_name(Path::new("/home/me/My Project (1)"));
        assert!(one.starts_with("deaddrop-My-Project-1-") && one.ends_with(".service"), "{one}");
        assert_ne!(one, unit_name(Path::new("/home/you/My Project (1)")));
        assert_eq!(one, unit_name(Path::new("/home/me/My Project (1)")));
        let all = [Path::new("/"), Path::new("/ä%"), Path::new("/a/-")].map(unit_name);
        let plain =
            |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        assert!(all.iter().all(plain), "{all:?}");
    }

    #[test]
    fn what_systemd_would_read_otherwise_is_refused() {
        let variables = [("PATH", Some("/bin:/é".into())), ("XDG_STATE_HOME", None)];
        let unit = |program: &str, project: &str| {
            unit(Path::new(program), Path::new(project), &variables, &[])
        };
        let text = unit("/opt/a b/deaddrop", "/home/me/a b;é").unwrap();
        let line = r#"ExecStart="/opt/a b/deaddrop" -C "/home/me/a b;é" --color never watch"#;
        assert!(text.contains(&format!("\n{line}\nEnvironment=\"PATH=/bin:/é\"\n#")), "{text}");
        assert!(text.contains("\nDescription=deaddrop in /home/me/a b;é\n"), "{text}");
        for odd in ["/a\nb", "/a\"b", "/a'b", "/a\\b", "/50%", "/$HOME"] {
            for why in [unit(odd, "/a").unwrap_err(), unit("/d", odd).unwrap_err()] {
                assert!(why.contains("quotes, backslashes, `%`, `$` and control"), "{why}");
            }
        }
    }

    #[test]
    fn nothing_keeps_the_sandbox_from_what_it_needs() {
        let none = [("PATH", None)];
        let text = unit(Path::new("/d"), Path::new("/b"), &none, &["--clipboard"]).unwrap();
        let set: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        for kept in [
            "NoNewPrivileges",
            "RestrictNamespaces",
            "ProtectSystem",
            "PrivateTmp",
            "SystemCallFilter",
            "PrivateUsers",
            "CapabilityBoundingSet",
        ] {
            assert!(!set.contains(&kept), "{kept}");
        }
        assert!(
            text.contains(" watch --clipboard\n")
                && text.contains("\nWantedBy=graphical-session.target\n"),
            "{text}"
        );
        assert!(set.contains(&"Type") && !set.contains(&"Environment"), "{set:?}");
    }
}
