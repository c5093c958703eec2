//! What is around deaddrop on this machine: the folders' owners, the clipboard, git.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Finding, finding, spare};
use crate::atomic::read_regular;
use crate::clipboard::{Environment, NO_DISPLAY};
use crate::engine::kept_turns;
use crate::program::Programs;
use crate::settings::{Config, Consent, FOLDER, ask_git, state_home};
use crate::text::shell_word;
use crate::text::{count, size};

/// Whose a folder is, where that is not the person; of deaddrop's own also whether its rights let
/// others in, and, where the project is refused, whether another's folder is why.
pub(super) fn owner(folder: &Path, is_own: bool, is_refused: bool) -> Result<String, String> {
    use std::os::unix::fs::MetadataExt;
    if let Some(told) = is_own.then(|| open_to_all(folder)).flatten() {
        return Err(told);
    }
    let Ok(found) = fs::metadata(folder) else { return Ok(String::new()) };
    let me = rustix::process::geteuid().as_raw();
    Ok(match found.uid() {
        uid if uid == me => String::new(),
        uid if is_own && is_refused && uid != 0 => {
            return Err(format!(
                "{} belongs to user {uid}, who can write replies and settings; `chown` it if it is yours",
                folder.display()
            ));
        }
        uid => format!(", belongs to user {uid}"),
    })
}

/// How much is kept so that turns can be taken back, and whether the newest can.
pub(super) fn checkpoints(config: &Config) -> Result<String, String> {
    if !config.checkpoints {
        return Ok("off (`checkpoints = false`): no turn can be undone".to_owned());
    }
    let (all, bytes) = kept_turns(config).map_err(|e| e.to_string())?;
    let told = format!("{} of {} are kept", size(bytes), size(config.checkpoint_max_bytes));
    let Some(newest) = all.last() else { return Ok(told) };
    let which = format!("turn {} of session {}, the newest,", newest.sequence, newest.session);
    if !newest.is_whole {
        return Err(format!("{told}; the checkpoint of {which} is gone: it cannot be undone"));
    }
    match newest.without_room {
        0 => Ok(told),
        n => Err(format!(
            "{told}; of {which} {} cannot be undone, for lack of room: raise checkpoint_max_bytes, or ignore files that need not be kept (.gitignore)",
            count(n, "file")
        )),
    }
}

/// Said of a file or folder of deaddrop's own that everybody may write; None of others.
pub(super) fn open_to_all(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(path).ok()?;
    let mode = found.mode();
    // The sticky bit keeps others from what is not theirs in a folder, as in /tmp.
    let is_open = mode & 0o002 != 0 && !(found.is_dir() && mode & 0o1000 != 0);
    is_open.then(|| {
        format!(
            "{} is writable for everybody on this machine, and counts as yours; run `chmod o-w {}`",
            path.display(),
            shell_word(&path.display().to_string())
        )
    })
}

/// What the settings open, and whether the person has agreed to it.
pub(super) fn settings(consent: &Consent) -> Result<String, String> {
    let names: Vec<&str> = consent.openings().iter().map(|opening| &*opening.name).collect();
    let lacks: Vec<&str> = consent.lacks().iter().map(|opening| &*opening.name).collect();
    if !lacks.is_empty() {
        return Err(format!(
            "needs your consent: {}; read {}, then run `deaddrop config allow`",
            lacks.join(", "),
            consent.whose()
        ));
    }
    Ok(if names.is_empty() {
        "do not weaken the defaults".to_owned()
    } else if consent.is_whole() {
        format!("weaken the defaults with your consent ({})", names.join(", "))
    } else {
        format!("would weaken the defaults ({}), but are not in force", names.join(", "))
    })
}

/// Whether it can be noted what the person has agreed to, and which projects they use.
pub(super) fn notes() -> Result<String, String> {
    let home = state_home().ok_or(
        "without HOME, deaddrop cannot keep your consents and its list of projects; set HOME or XDG_STATE_HOME",
    )?;
    Ok(format!("{} {}", home.display(), super::rights(&home)?))
}

/// The ways to the clipboard, as `copy` would try them here.
pub(super) fn clipboard(config: &Config) -> Vec<Finding> {
    let environment = Environment::here(Programs::of(config));
    let ways: Vec<String> = environment.ways().iter().map(ToString::to_string).collect();
    let told = match ways.as_slice() {
        [] => Err(format!(
            "{NO_DISPLAY}: `deaddrop show --copy` asks the terminal (below), or prints the file's path; over SSH, `ssh -X` forwards a display"
        )),
        ways => Ok(format!("{}; tried in this order", ways.join(", then "))),
    };
    let terminal = match environment.terminal() {
        Ok(way) => Ok(format!(
            "{way}: the last resort; terminals do not confirm it, so try `deaddrop show --copy` and paste"
        )),
        Err(why) => Err(format!("{why}; without another way, paste from the outbox's file")),
    };
    let all = [("clipboard", told), ("  terminal", terminal)].into_iter();
    all.map(|(what, told)| spare(what, told)).collect()
}

/// Which git there is, whether the workspace is a repository, and whether deaddrop's own files are
/// kept out of it.
pub(super) fn git(config: &Config) -> Finding {
    // Not in the workspace, whose settings may name programs.
    let version = match ask_git(&Programs::of(config), Path::new("/"), ["--version"]) {
        Ok(Some(told)) => String::from_utf8_lossy(&told).trim().replace("git version ", "git "),
        Err(why) => return spare("git", Err(format!("git does not answer: {why}"))),
        Ok(None) => {
            return spare(
                "git",
                Err("git is not installed; deaddrop does not need it, but commands in replies may"
                    .to_owned()),
            );
        }
    };
    let workspace = config.workspace.canonicalize().unwrap_or_else(|_| config.workspace.clone());
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists());
    let Some(top) = top else {
        return spare("git", Ok(format!("{version}; the workspace is not in a repository")));
    };
    let place = if top == workspace {
        "the workspace is a repository".to_owned()
    } else {
        format!("the workspace is in the repository {}", top.display())
    };
    match unignored(config, top) {
        None => finding("git", Ok(format!("{version}; {place}"))),
        Some(ignore) => spare(
            "git",
            Err(format!(
                "{version}; {place}, and git does not ignore {FOLDER}/: outboxes and sessions could be committed; `echo '*' > {}`",
                ignore.display()
            )),
        ),
    }
}

/// The file that is to keep deaddrop's folder out of a repository, where it does not.
fn unignored(config: &Config, repository: &Path) -> Option<PathBuf> {
    let own = config.project.join(FOLDER);
    if !own.is_dir() || !own.starts_with(repository) {
        return None;
    }
    let ignore = own.join(".gitignore");
    let rules = read_regular(&ignore, 1 << 20).unwrap_or_default();
    let rules = String::from_utf8_lossy(&rules);
    (!rules.lines().any(|rule| rule.trim() == "*")).then_some(ignore)
}
