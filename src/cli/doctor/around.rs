//! What is around deaddrop on this machine: the folders' owners, the clipboard, git.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Finding, finding};
use crate::config::{Config, Consent, FOLDER, state_home};
use crate::machine;

/// Whose a folder is, where that is not the person; of deaddrop's own also whether its rights let
/// others in.
#[cfg(unix)]
pub(super) fn owner(folder: &Path, is_own: bool) -> Result<String, String> {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = fs::metadata(folder) else { return Ok(String::new()) };
    // The sticky bit keeps others from what is not theirs, as in /tmp.
    if is_own && found.mode() & 0o1002 == 0o002 {
        return Err(format!(
            "{} can be written by everybody on this machine, and what they put there counts as yours; `chmod o-w {}`",
            folder.display(),
            folder.display()
        ));
    }
    let me = rustix::process::geteuid().as_raw();
    Ok(match found.uid() {
        uid if uid == me => String::new(),
        uid => format!(", belongs to user {uid}"),
    })
}

#[cfg(not(unix))]
pub(super) fn owner(_folder: &Path, _is_own: bool) -> Result<String, String> {
    Ok(String::new())
}

/// What the settings open, and whether the person has agreed to it.
pub(super) fn settings(consent: &Consent) -> Result<String, String> {
    let names: Vec<&str> = consent.openings().iter().map(|opening| &*opening.name).collect();
    let lacks: Vec<&str> = consent.lacks().iter().map(|opening| &*opening.name).collect();
    if !lacks.is_empty() {
        return Err(format!(
            "not allowed yet: {}; deaddrop begins nothing here until you have looked at {} and run `deaddrop config allow`",
            lacks.join(", "),
            consent.whose()
        ));
    }
    Ok(if names.is_empty() {
        "open nothing that is closed else".to_owned()
    } else if consent.is_whole() {
        format!("you have agreed to what they open ({})", names.join(", "))
    } else {
        format!("what they open ({}) is not in force", names.join(", "))
    })
}

/// Whether it can be noted what the person has agreed to, and which base directories they use.
pub(super) fn notes(rights: &impl Fn(&Path) -> Result<String, String>) -> Result<String, String> {
    let home = state_home().ok_or(
        "HOME does not say where it is noted what you agree to, and where base directories are; set HOME or XDG_STATE_HOME",
    )?;
    Ok(format!("{} {}", home.display(), rights(&home)?))
}

/// The ways to the clipboard that this environment has, in the order in which they are tried.
pub(super) fn clipboard() -> Finding {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let found = Clipboard {
        wayland: set("WAYLAND_DISPLAY"),
        x11: set("DISPLAY"),
        ssh: set("SSH_TTY") || set("SSH_CONNECTION"),
        macos: cfg!(target_os = "macos"),
        path: std::env::var_os("PATH").unwrap_or_default(),
    };
    Finding { spare: true, ..finding("clipboard", found.told()) }
}

/// What there is for a clipboard to be reached by.
struct Clipboard {
    wayland: bool,
    x11: bool,
    ssh: bool,
    macos: bool,
    path: OsString,
}

impl Clipboard {
    fn told(&self) -> Result<String, String> {
        let mut ways = Vec::new();
        let mut lacks = Vec::new();
        let mut desktop = |is_there: bool, name: &str, program: &str| {
            if !is_there {
                return;
            }
            ways.push(name.to_owned());
            if self.has(program) {
                ways.push(program.to_owned());
            } else {
                lacks.push(program.to_owned());
            }
        };
        desktop(self.wayland, "Wayland", "wl-copy");
        desktop(self.x11, "X11", "xclip");
        if self.macos && self.has("pbcopy") {
            ways.push("pbcopy".to_owned());
        }
        if self.ssh {
            ways.push("OSC 52 (the terminal at your end has to allow it)".to_owned());
        }
        if ways.is_empty() {
            return Err("no desktop here (WAYLAND_DISPLAY and DISPLAY are not set): paste from the file that the outbox is, or log in with `ssh -X` or a terminal that knows OSC 52".to_owned());
        }
        let lacks = match lacks.as_slice() {
            [] => String::new(),
            lacks => {
                format!("; {} is not installed, which would be another way", lacks.join(" or "))
            }
        };
        Ok(format!("{}{lacks}", ways.join(", ")))
    }

    fn has(&self, program: &str) -> bool {
        machine::find(program, &self.path, &|_| true).is_some()
    }
}

/// Which git there is, whether the workspace is a repository, and whether deaddrop's own files are
/// kept out of it.
pub(super) fn git(config: &Config) -> Finding {
    let spare = |told| Finding { spare: true, ..finding("git", told) };
    // Not in the workspace, whose settings may name programs.
    let asked = Command::new("git").arg("--version").current_dir("/").stdin(Stdio::null()).output();
    let version = match asked {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().replace("git version ", "git ")
        }
        _ => {
            return spare(Err(
                "git is not there; deaddrop does without, but commands in replies may want it"
                    .to_owned(),
            ));
        }
    };
    let workspace = config.workspace.canonicalize().unwrap_or_else(|_| config.workspace.clone());
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists());
    let Some(top) = top else {
        return spare(Ok(format!("{version}; the workspace is in no repository")));
    };
    let kind = if top.join(".git").is_file() { "worktree or submodule" } else { "repository" };
    let place = if top == workspace {
        format!("the workspace is a {kind}")
    } else {
        format!("the workspace lies in the {kind} {}", top.display())
    };
    match unignored(config, top) {
        None => finding("git", Ok(format!("{version}; {place}"))),
        Some(ignore) => spare(Err(format!(
            "{version}; {place}, and git does not ignore {FOLDER}/: outboxes and sessions could be committed; `echo '*' > {}`",
            ignore.display()
        ))),
    }
}

/// The file that is to keep deaddrop's folder out of a repository, where it does not.
fn unignored(config: &Config, repository: &Path) -> Option<PathBuf> {
    let own = config.base.join(FOLDER);
    if !own.is_dir() || !own.starts_with(repository) {
        return None;
    }
    let ignore = own.join(".gitignore");
    let rules = fs::read_to_string(&ignore).unwrap_or_default();
    (!rules.lines().any(|rule| rule.trim() == "*")).then_some(ignore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_the_clipboard_are_told_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let none = || Clipboard {
            wayland: false,
            x11: false,
            ssh: false,
            macos: false,
            path: folder.path().into(),
        };
        assert!(none().told().unwrap_err().contains("OSC 52"));
        let told = Clipboard { x11: true, ssh: true, ..none() }.told().unwrap();
        assert!(
            told.starts_with("X11, OSC 52") && told.contains("xclip is not installed"),
            "{told}"
        );
        let xclip = folder.path().join("xclip");
        fs::write(&xclip, "").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&xclip, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let told = Clipboard { wayland: true, x11: true, ..none() }.told().unwrap();
        assert_eq!(
            told,
            "Wayland, X11, xclip; wl-copy is not installed, which would be another way"
        );
    }
}
