//! `doctor`: checks the project and this machine, and suggests fixes. It changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::{fs, io};

use serde::Deserialize;
use serde_json::json;

use super::arguments::Global;
use super::locate::{Location, ProjectSource};
use super::output;
use super::{CliContext, init};
use crate::atomic::{self, read_regular};
use crate::clipboard::{ClipboardSetup, NO_DISPLAY};
use crate::engine::kept_turns;
use crate::error::{Error, advice};
use crate::executor::Guest;
use crate::lock::Lock;
use crate::program::Programs;
use crate::protocol::jsonrpc::About;
use crate::runner::disk_space::{self, more_files};
use crate::runner::sandbox::{Confinement, Mechanism, Tier};
use crate::session::record::History;
use crate::session::store::SessionStore;
use crate::session::{Session, journal};
use crate::settings::{self, Config, Consent, FILE, FOLDER, run_git, user_state_folder};
use crate::text::{count, shell_word, size, visible_line};

/// The least free space on a disk or in memory without a warning, in bytes.
const LOW_SPACE: u64 = 256 << 20;
/// The least limit of watches without a warning. Editors and browsers soon use up fewer.
const FEW_WATCHES: u64 = 8_192;

/// The result of one check.
struct Diagnosis {
    is_ok: bool,
    /// Whether deaddrop works without it. Then a problem is reported, but does not count as a fault.
    optional: bool,
    name: &'static str,
    /// The result and, for a problem, what to do.
    message: String,
}

fn diagnosis(name: &'static str, result: Result<String, String>) -> Diagnosis {
    let is_ok = result.is_ok();
    let message = result.unwrap_or_else(|problem| problem);
    Diagnosis { is_ok, optional: false, name, message }
}

/// A check whose problem is not a fault.
fn optional(name: &'static str, result: Result<String, String>) -> Diagnosis {
    Diagnosis { optional: true, ..diagnosis(name, result) }
}

/// Also checks projects that every other command refuses. The refusal is then one of the rows, and programs that the
/// settings name are not run.
pub(super) fn doctor(global: &Global) -> crate::error::Result<ExitCode> {
    let mut diagnoses = Vec::new();
    let location = match Location::find(global.project.clone()) {
        Ok(location) => location,
        Err(e) => {
            let current_dir = std::env::current_dir().ok();
            let Some(project) = current_dir.as_deref().and_then(settings::nearest_candidate) else {
                return Err(e);
            };
            diagnoses.push(diagnosis("project", Err(e.to_string())));
            Location { project, current_dir, source: ProjectSource::Ancestor }
        }
    };
    let Location { project, current_dir, source } = location;
    let (config, consent) = match Config::load(&project, global.settings.raw()?) {
        Ok((config, consent)) => (config, Some(consent)),
        Err(e) => {
            let without = Config::load_without_file(&project, global.settings.raw()?);
            let Ok((config, _)) = without else { return Err(e) };
            let message = format!(
                "{e}; the rest of this report assumes defaults, and may be wrong about folders"
            );
            diagnoses.push(diagnosis(FILE, Err(message)));
            (config, None)
        }
    };
    // Skip this for a refused project: somebody else may have created the folders.
    if let (true, Err(e)) = (diagnoses.is_empty(), config.check_settings_file()) {
        diagnoses.push(diagnosis("project", Err(e.to_string())));
    }
    let is_refused = !diagnoses.is_empty();
    if source == ProjectSource::Missing {
        let message = "none here or above; `deaddrop init` sets up this folder";
        diagnoses.push(optional("project", Err(message.to_owned())));
    }
    let context = CliContext::new(config, global, current_dir, source);
    diagnose(&context, consent.as_ref(), is_refused, &mut diagnoses);
    for Diagnosis { is_ok, optional, name, message } in &diagnoses {
        let row =
            json!({ "what": name, "well": is_ok, "fault": !is_ok && !optional, "told": message });
        output::print(row, || {
            let mark = match (is_ok, optional) {
                (true, _) => "ok",
                (false, true) => "--",
                (false, false) => "NO",
            };
            format!("{mark}  {name:<15}  {}", visible_line(message))
        });
    }
    let no_faults = diagnoses.iter().all(|row| row.is_ok || row.optional);
    Ok(if no_faults { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn diagnose(
    context: &CliContext,
    consent: Option<&Consent>,
    is_refused: bool,
    diagnoses: &mut Vec<Diagnosis>,
) {
    let config = &context.config;
    for (what, folder) in [
        ("project folder", &config.project),
        ("workspace", &config.workspace),
        ("inbox", &config.inbox),
        ("outbox", &config.outbox),
        ("sessions", &config.sessions),
        ("approvals", &config.approvals),
    ] {
        let message = check_writable(folder).and_then(|message| {
            if what == "workspace" {
                config.check_workspace().map_err(|e| e.to_string())?;
            }
            let owner = check_owner(folder, what != "workspace", is_refused)?;
            Ok(format!("{} {message}{owner}", context.display(folder)))
        });
        diagnoses.push(diagnosis(what, message));
    }
    // Anybody who can write to the parent folder can replace deaddrop's own folders.
    for what in [FILE, FOLDER] {
        let message = open_to_all(&config.project.join(what));
        diagnoses.extend(message.map(|message| diagnosis(what, Err(message))));
    }
    let unread = "unknown, because deaddrop.toml cannot be read (see above)";
    diagnoses.push(match consent {
        Some(consent) => diagnosis("settings", consent_state(consent)),
        None => optional("settings", Err(unread.to_owned())),
    });
    diagnoses.push(optional("notes", user_state()));
    diagnoses.push(diagnosis("session files", sessions(context)));
    diagnoses.push(diagnosis("journal", journal(&config.sessions.join("journal"))));
    diagnoses.push(diagnosis("lock", Ok(lock(context))));
    diagnoses.push(decisions(context));
    match &config.guest {
        // With a guest, no command runs on this machine.
        Some(guest) if is_refused || consent.is_some_and(|it| !it.missing().is_empty()) => {
            let why = if is_refused {
                ", because of the faults above"
            } else {
                ": it needs your consent"
            };
            diagnoses.push(optional("guest", Err(format!("{} was not asked{why}", guest.label()))));
        }
        Some(guest) => diagnoses.extend(ask_guest(guest, Programs::of(config))),
        None => diagnoses.extend(sandbox(context)),
    }
    diagnoses.extend(clipboard(config));
    diagnoses.push(git(config));
    diagnoses.push(diagnosis("watching", check_watching(&config.inbox)));
    diagnoses.push(optional("checkpoints", checkpoints(config)));
    diagnoses.push(diagnosis("disk", disk(config)));
    diagnoses.push(optional("memory", memory()));
}

/// Asks the guest about itself.
fn ask_guest(guest: &settings::GuestAddress, programs: Programs) -> Vec<Diagnosis> {
    let about = match Guest::new(guest.clone(), programs).about() {
        Ok(about) => about,
        Err(e) => return vec![diagnosis("guest", Err(e.to_string()))],
    };
    let About { program, system, sandbox, root, .. } = &*about;
    let message = format!("{}: {program} on {system}, in {root}", guest.label());
    vec![diagnosis("guest", Ok(message)), diagnosis("  commands there", Ok(sandbox.clone()))]
}

fn check_writable(folder: &Path) -> Result<String, String> {
    init::check_writable(folder).map_err(|e| e.to_string())?;
    // Only creating a file shows whether there is space.
    match tempfile::Builder::new().suffix(".tmp").tempfile_in(folder) {
        Ok(_) => Ok("can be written".to_owned()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Ok("does not exist yet; it is created when needed".to_owned())
        }
        Err(e) => Err(format!("{} cannot be written: {e}{}", folder.display(), advice(&e))),
    }
}

fn sessions(context: &CliContext) -> Result<String, String> {
    let (sessions, damaged) =
        SessionStore::new(&context.config.sessions).list().map_err(|e| e.to_string())?;
    let open = sessions.iter().filter(|session| !session.is_complete).count();
    match damaged.first() {
        None => Ok(format!("{}, {open} open", count(sessions.len(), "session"))),
        Some(damaged) => Err(damaged.to_string()),
    }
}

fn journal(path: &Path) -> Result<String, String> {
    let bytes = match atomic::read_own(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok("is not there yet".to_owned()),
        other => {
            other.map_err(|e| format!("{} cannot be read: {e}{}", path.display(), advice(&e)))?
        }
    };
    let damaged = |offset| Error::damaged_journal(path, offset).to_string();
    let journal::Records { payloads, end, .. } = journal::read(&bytes).map_err(damaged)?;
    let unknown = |record| Error::unknown_record(path, record).to_string();
    let history = History::read(&payloads).map_err(unknown)?;
    let left = match history.unfinished {
        Some(turn) => format!("; `deaddrop resume` finishes {}", turn.begin.name),
        None => String::new(),
    };
    Ok(format!("{} in {} bytes{left}", count(payloads.len(), "record"), end))
}

fn lock(context: &CliContext) -> String {
    match (Lock::is_held(&context.config), Lock::holder_serves(&context.config)) {
        (false, _) if Lock::is_borrowed(&context.config) => {
            "held by a `deaddrop rpc` of another project, which serves this workspace".to_owned()
        }
        (false, _) => "free".to_owned(),
        (true, true) => "held by a deaddrop that serves the inbox".to_owned(),
        (true, false) => "held by a deaddrop that is busy".to_owned(),
    }
}

/// Lists the sessions that wait for a decision. This is not a fault, but the person should know.
fn decisions(context: &CliContext) -> Diagnosis {
    let pending = SessionStore::new(&context.config.sessions).pending().unwrap_or_default();
    let asked: Vec<_> =
        pending.iter().filter(|session| session.question().is_some()).map(Session::stem).collect();
    if asked.is_empty() {
        return diagnosis("decisions", Ok("nothing waits for a decision".to_owned()));
    }
    let message = format!(
        "{} for your decision ({}): `deaddrop status ID` shows the question, `deaddrop approve` and `deaddrop deny` answer it",
        if asked.len() == 1 { "1 waits".to_owned() } else { format!("{} wait", asked.len()) },
        asked.join(", ")
    );
    optional("decisions", Err(message))
}

/// Whether the system reports changes of folders, and how many folders a user may watch.
fn check_watching(inbox: &Path) -> Result<String, String> {
    let limit = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?.trim().parse().ok()
    };
    let heard = notify::recommended_watcher(|_| {}).and_then(|mut watcher| {
        use notify::Watcher;
        let folder = if inbox.exists() { inbox } else { Path::new(".") };
        watcher.watch(folder, notify::RecursiveMode::NonRecursive)
    });
    const SLOW: &str = "the inbox is then checked every two seconds";
    match (heard, limit("max_user_watches")) {
        (Err(e), _) => Err(format!(
            "the system cannot watch folders ({e}): {SLOW}; raise fs.inotify.max_user_instances or max_user_watches"
        )),
        (Ok(()), Some(watches)) if watches < FEW_WATCHES => Err(format!(
            "a user can watch only {watches} folders; beyond that, {SLOW}; raise fs.inotify.max_user_watches"
        )),
        (Ok(()), Some(watches)) => Ok(format!("folders can be watched (up to {watches} watches)")),
        (Ok(()), None) => Ok("folders can be watched".to_owned()),
    }
}

/// The free space where deaddrop and commands write, as reported by the file system for any kind of mount.
fn disk(config: &Config) -> Result<String, String> {
    let mut message = None;
    for folder in [&config.sessions, &config.outbox, &config.inbox, &config.workspace] {
        let there = folder.ancestors().find(|folder| folder.exists());
        let Some(Ok(room)) = there.map(disk_space::room) else { continue };
        if room.bytes < LOW_SPACE {
            let left = room.bytes >> 20;
            return Err(format!("{} has only {left} MiB free; make room", folder.display()));
        }
        if let Some(files) = room.files.filter(|files| files.left < files.least()) {
            return Err(format!(
                "{} has room for only {} (inodes); remove some there",
                folder.display(),
                more_files(files.left)
            ));
        }
        let files = room.files.map(|files| format!(", and {}", more_files(files.left)));
        message.get_or_insert_with(|| {
            format!("{} MiB are free{}", room.bytes >> 20, files.unwrap_or_default())
        });
    }
    Ok(message.unwrap_or_else(|| "could not be asked".to_owned()))
}

/// The free memory. Commands may use all of it unless `sandbox.max_memory_bytes` is set.
fn memory() -> Result<String, String> {
    let mut system = sysinfo::System::new().map_err(|_| "could not be asked".to_owned())?;
    system.refresh_memory();
    let (free, all) = (system.available_memory(), system.total_memory());
    if free < LOW_SPACE && all > 0 {
        return Err(format!(
            "only {} MiB are free, so the system may kill commands or other programs; close some, or set sandbox.max_memory_bytes",
            free >> 20
        ));
    }
    Ok(format!("{} of {} MiB are free", free >> 20, all >> 20))
}

/// Describes the owner of a folder unless it is the person. For deaddrop's own folders (`is_own`), fails if others can
/// write to them, or if the project is refused and another user owns them.
fn check_owner(folder: &Path, is_own: bool, is_refused: bool) -> Result<String, String> {
    use std::os::unix::fs::MetadataExt;
    if let Some(message) = is_own.then(|| open_to_all(folder)).flatten() {
        return Err(message);
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

/// The space used for undo, and whether the newest turn can be undone.
fn checkpoints(config: &Config) -> Result<String, String> {
    if !config.checkpoints {
        return Ok("off (`checkpoints = false`): no turn can be undone".to_owned());
    }
    let (all, bytes) = kept_turns(config).map_err(|e| e.to_string())?;
    let message = format!("{} of {} are kept", size(bytes), size(config.checkpoint_max_bytes));
    let Some(newest) = all.last() else { return Ok(message) };
    let which = format!("turn {} of session {}, the newest,", newest.sequence, newest.session);
    if !newest.is_complete {
        return Err(format!("{message}; the checkpoint of {which} is gone: it cannot be undone"));
    }
    match newest.without_room {
        0 => Ok(message),
        n => Err(format!(
            "{message}; of {which} {} cannot be undone, for lack of room: raise checkpoint_max_bytes, or ignore files that need not be kept (.gitignore)",
            count(n, "file")
        )),
    }
}

/// Describes the problem of a file or folder that everybody can write to; None if not everybody can.
fn open_to_all(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(path).ok()?;
    let mode = found.mode();
    // The sticky bit protects entries from other users, as in /tmp.
    let is_open = mode & 0o002 != 0 && !(found.is_dir() && mode & 0o1000 != 0);
    is_open.then(|| {
        format!(
            "{} is writable for everybody on this machine, and counts as yours; run `chmod o-w {}`",
            path.display(),
            shell_word(&path.display().to_string())
        )
    })
}

/// Lists the settings that can weaken the defaults, and whether the person consented to them.
fn consent_state(consent: &Consent) -> Result<String, String> {
    let names: Vec<&str> = consent.weakenings().iter().map(|opening| &*opening.name).collect();
    let lacks: Vec<&str> = consent.missing().iter().map(|opening| &*opening.name).collect();
    if !lacks.is_empty() {
        return Err(format!(
            "needs your consent: {}; read {}, then run `deaddrop config allow`",
            lacks.join(", "),
            consent.subject()
        ));
    }
    Ok(if names.is_empty() {
        "cannot weaken the defaults".to_owned()
    } else if consent.is_complete() {
        format!("can weaken the defaults, with your consent ({})", names.join(", "))
    } else {
        format!("would weaken the defaults ({}), but are not in force", names.join(", "))
    })
}

/// Whether deaddrop can record consents and the list of projects.
fn user_state() -> Result<String, String> {
    let home = user_state_folder().ok_or(
        "without HOME, deaddrop cannot keep your consents and its list of projects; set HOME or XDG_STATE_HOME",
    )?;
    Ok(format!("{} {}", home.display(), check_writable(&home)?))
}

/// The clipboard backends, in the order in which copying tries them.
fn clipboard(config: &Config) -> Vec<Diagnosis> {
    let environment = ClipboardSetup::current(Programs::of(config));
    let backends: Vec<String> = environment.backends().iter().map(ToString::to_string).collect();
    let message = match backends.as_slice() {
        [] => Err(format!(
            "{NO_DISPLAY}: `deaddrop show --copy` asks the terminal (below), or prints the file's path; over SSH, `ssh -X` forwards a display"
        )),
        backends => Ok(format!("{}; tried in this order", backends.join(", then "))),
    };
    let terminal = match environment.terminal() {
        Ok(backend) => Ok(format!(
            "{backend}: the last resort; terminals do not confirm it, so try `deaddrop show --copy` and paste"
        )),
        Err(why) => Err(format!("{why}; without another way, paste from the outbox's file")),
    };
    vec![optional("clipboard", message), optional("  terminal", terminal)]
}

/// The version of git, whether the workspace is a repository, and whether it ignores deaddrop's own files.
fn git(config: &Config) -> Diagnosis {
    // Git does not run in the workspace, because the git settings there may name programs.
    let version = match run_git(&Programs::of(config), Path::new("/"), ["--version"]) {
        Ok(Some(output)) => String::from_utf8_lossy(&output).trim().replace("git version ", "git "),
        Err(why) => return optional("git", Err(format!("git does not answer: {why}"))),
        Ok(None) => {
            let why =
                "git is not installed; deaddrop does not need it, but commands in replies may";
            return optional("git", Err(why.to_owned()));
        }
    };
    let workspace = config.workspace.canonicalize().unwrap_or_else(|_| config.workspace.clone());
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists());
    let Some(top) = top else {
        return optional("git", Ok(format!("{version}; the workspace is not in a repository")));
    };
    let place = if top == workspace {
        "the workspace is a repository".to_owned()
    } else {
        format!("the workspace is in the repository {}", top.display())
    };
    optional(
        "git",
        match unignored(config, top) {
            None => Ok(format!("{version}; {place}")),
            Some(ignore) => Err(format!(
                "{version}; {place}, and git does not ignore {FOLDER}/: outboxes and sessions could be committed; `echo '*' > {}`",
                ignore.display()
            )),
        },
    )
}

/// The .gitignore that should exclude deaddrop's folder from the repository but does not; None if it does.
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

/// Checks the sandbox: one row for the tier, then one for each mechanism.
fn sandbox(context: &CliContext) -> Vec<Diagnosis> {
    let confinement = match context.confinement() {
        Ok(confinement) => confinement,
        Err(message) => return vec![diagnosis("commands", Err(message))],
    };
    let mut message = vec![confinement.line()];
    message.extend(confinement.why().iter().map(|why| format!("not {why}")));
    if confinement.tier != Tier::None {
        let used = Mechanism::ALL.into_iter().filter(|mechanism| uses(*mechanism, &confinement));
        let rows = used.map(|mechanism| mechanism_row(mechanism, &confinement));
        return [diagnosis("commands", Ok(message.join("; ")))].into_iter().chain(rows).collect();
    }
    // No other fix would help.
    let is_whole = context.config.workspace.canonicalize().is_ok_and(|at| at.parent().is_none());
    message.push(if is_whole {
        "the workspace is /, to which nothing can be confined: use `deaddrop config set workspace_dir FOLDER`; in a virtual machine or container of its own, `--sandbox off` runs commands unconfined"
    } else {
        "`--sandbox off` (or sandbox = \"off\" in deaddrop.toml) runs commands unconfined"
    }.to_owned());
    let mut diagnoses = vec![diagnosis("commands", Err(message.join("; ")))];
    if !is_whole {
        diagnoses.extend(remedies(&confinement));
    }
    diagnoses
}

/// Lists the requirements of each tier that was tried without success. The reasons for the tier name the missing
/// requirement; single requirements were not probed.
fn remedies(confinement: &Confinement) -> Vec<Diagnosis> {
    let tried = |tier: Tier| confinement.missing.iter().any(|(missing, _)| *missing == tier);
    let mut found = Vec::new();
    if tried(Tier::Full) || tried(Tier::FullBwrap) {
        found.push(optional("  for full", Err(MECHANISMS.namespaces.clone())));
    }
    if tried(Tier::Partial) {
        let remedies = [Mechanism::Landlock, Mechanism::Seccomp, Mechanism::Hidden];
        let remedies = remedies.map(|mechanism| remedy(mechanism, Tier::Partial));
        found.push(optional("  for partial", Err(remedies.join("; and: "))));
    }
    found
}

/// Whether this tier uses a mechanism.
fn uses(mechanism: Mechanism, confinement: &Confinement) -> bool {
    match (confinement.tier, mechanism) {
        (_, Mechanism::Subreaper) => !confinement.facts.has(Mechanism::PidNamespace),
        (Tier::Off, mechanism) => {
            matches!(mechanism, Mechanism::PidNamespace | Mechanism::Hidden)
        }
        (_, Mechanism::Network) => !confinement.network,
        _ => true,
    }
}

fn mechanism_row(mechanism: Mechanism, confinement: &Confinement) -> Diagnosis {
    let MechanismTexts { what, guarantee, .. } = mechanism_texts(mechanism);
    let is_ok = confinement.facts.has(mechanism);
    let no = || format!("no: {}", remedy(mechanism, confinement.tier));
    optional(what, if is_ok { Ok(format!("yes: {guarantee}")) } else { Err(no()) })
}

/// What to do if a mechanism of this tier is missing.
fn remedy(mechanism: Mechanism, tier: Tier) -> &'static str {
    // Without confinement, only a namespace can hide deaddrop's own files.
    let is_unconfined = tier == Tier::Off && mechanism == Mechanism::Hidden;
    let own = mechanism_texts(mechanism).remedy.as_deref().filter(|_| !is_unconfined);
    own.unwrap_or(&MECHANISMS.namespaces)
}

/// Texts about mechanisms, from data/mechanisms.toml.
#[derive(Deserialize)]
struct MechanismTable {
    namespaces: String,
    mechanisms: BTreeMap<String, MechanismTexts>,
}

#[derive(Deserialize)]
struct MechanismTexts {
    what: String,
    guarantee: String,
    remedy: Option<String>,
}

static MECHANISMS: LazyLock<MechanismTable> = LazyLock::new(|| {
    toml::from_str(include_str!("data/mechanisms.toml")).expect("the table is valid")
});

fn mechanism_texts(mechanism: Mechanism) -> &'static MechanismTexts {
    &MECHANISMS.mechanisms[&format!("{mechanism:?}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::sandbox::MechanismSet;

    #[test]
    fn each_mechanism_has_a_row() {
        assert_eq!(Mechanism::ALL.map(mechanism_texts).len(), MECHANISMS.mechanisms.len());
    }

    #[test]
    fn where_there_is_no_sandbox_each_way_to_one_is_told_once() {
        let none = |missing: &[Tier]| Confinement {
            tier: Tier::None,
            facts: MechanismSet::default(),
            missing: missing.iter().map(|tier| (*tier, String::new())).collect(),
            network: false,
        };
        let message = |missing: &[Tier]| -> Vec<String> {
            remedies(&none(missing)).into_iter().map(|row| row.message).collect()
        };
        let all = message(&[Tier::Full, Tier::FullBwrap, Tier::Partial]);
        assert_eq!(all.len(), 2);
        assert!(all[0].contains("kernel.apparmor_restrict_unprivileged_userns=0"), "{all:?}");
        assert!(all[1].contains("lsm=") && !all[1].contains("userns"), "{all:?}");
        assert_eq!(message(&[Tier::FullBwrap]), all[..1]);
        assert_eq!(message(&[Tier::Partial]), all[1..]);
    }
}
