//! `doctor`: what is well with a project and this machine, and what to do about the rest.
//! Looks, and changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::{fs, io};

use serde::Deserialize;
use serde_json::json;

use super::Context;
use super::arguments::Global;
use super::locate::{By, Location};
use super::output::{self, Terminal};
use crate::atomic;
use crate::atomic::read_regular;
use crate::clipboard::{Environment, NO_DISPLAY};
use crate::engine::kept_turns;
use crate::error::advice;
use crate::executor::Guest;
use crate::lock::Lock;
use crate::program::Programs;
use crate::protocol::jsonrpc::About;
use crate::runner::sandbox::{Confinement, Mechanism, Tier};
use crate::runner::space::{self, more_files};
use crate::session::record::History;
use crate::session::store::SessionStore;
use crate::session::{Session, journal};
use crate::settings::{self, Config, Consent, FILE, FOLDER, ask_git, state_home};
use crate::text::{count, shell_word, size, visible_line};

/// Less room than this is worth a word, on a disk or in memory, in bytes.
const LITTLE_ROOM: u64 = 256 << 20;
/// Fewer watches than this are soon used up by editors and browsers.
const FEW_WATCHES: u64 = 8_192;

/// One thing that was looked at.
struct Finding {
    well: bool,
    /// Whether it can be done without: then it is told, and no fault.
    spare: bool,
    what: &'static str,
    /// What was found, and what to do where it is not well.
    told: String,
}

fn finding(what: &'static str, told: Result<String, String>) -> Finding {
    let well = told.is_ok();
    Finding { well, spare: false, what, told: told.unwrap_or_else(|told| told) }
}

/// One that is no fault, even where it is not well.
fn spare(what: &'static str, told: Result<String, String>) -> Finding {
    Finding { spare: true, ..finding(what, told) }
}

/// Looks at the project also where every other command refuses it: that is a row like any other then, and nothing is
/// run that its settings name.
pub(super) fn doctor(global: &Global, ui: Terminal) -> crate::error::Result<ExitCode> {
    let mut findings = Vec::new();
    let location = match Location::find(global.project.clone()) {
        Ok(location) => location,
        Err(e) => {
            let here = std::env::current_dir().ok();
            let Some(project) = here.as_deref().and_then(settings::marked) else { return Err(e) };
            findings.push(finding("project", Err(e.to_string())));
            Location { project, here, by: By::Search }
        }
    };
    let Location { project, here, by } = location;
    let (config, consent) = match Config::load(&project, global.settings.raw()?) {
        Ok((config, consent)) => (config, Some(consent)),
        Err(e) => {
            let without = Config::load_without_file(&project, global.settings.raw()?);
            let Ok((config, _)) = without else { return Err(e) };
            let told = format!(
                "{e}; the rest of this report assumes defaults, and may be wrong about folders"
            );
            findings.push(finding(FILE, Err(told)));
            (config, None)
        }
    };
    // Who made what looks so is not known in a project that is refused.
    if let (true, Err(e)) = (findings.is_empty(), config.has_its_settings()) {
        findings.push(finding("project", Err(e.to_string())));
    }
    let is_refused = !findings.is_empty();
    if by == By::Nothing {
        let told = "none here or above; `deaddrop init` sets up this folder";
        findings.push(spare("project", Err(told.to_owned())));
    }
    let context = Context::new(config, global, ui, here, by);
    look(&context, consent.as_ref(), is_refused, &mut findings);
    for Finding { well, spare, what, told } in &findings {
        let row = json!({ "what": what, "well": well, "fault": !well && !spare, "told": told });
        output::told(global.json, row, || {
            let mark = match (well, spare) {
                (true, _) => "ok",
                (false, true) => "--",
                (false, false) => "NO",
            };
            format!("{mark}  {what:<15}  {}", visible_line(told))
        });
    }
    let well = findings.iter().all(|finding| finding.well || finding.spare);
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn look(
    context: &Context,
    consent: Option<&Consent>,
    is_refused: bool,
    findings: &mut Vec<Finding>,
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
        let told = rights(folder).and_then(|told| {
            if what == "workspace" {
                config.holds_no_others().map_err(|e| e.to_string())?;
            }
            let owner = owner(folder, what != "workspace", is_refused)?;
            Ok(format!("{} {told}{owner}", context.display(folder)))
        });
        findings.push(finding(what, told));
    }
    // Who can write to the folder around deaddrop's own can put another sessions folder into it.
    for what in [FILE, FOLDER] {
        let told = open_to_all(&config.project.join(what));
        findings.extend(told.map(|told| finding(what, Err(told))));
    }
    let unread = "unknown, because deaddrop.toml cannot be read (see above)";
    findings.push(match consent {
        Some(consent) => finding("settings", opened(consent)),
        None => spare("settings", Err(unread.to_owned())),
    });
    findings.push(spare("notes", notes()));
    findings.push(finding("session files", sessions(context)));
    findings.push(finding("journal", journal(&config.sessions.join("journal"))));
    findings.push(finding("lock", Ok(lock(context))));
    findings.push(decisions(context));
    match &config.guest {
        // Nothing runs here then.
        Some(guest) if is_refused || consent.is_some_and(|it| !it.lacks().is_empty()) => {
            let why = if is_refused {
                ", because of the faults above"
            } else {
                ": it needs your consent"
            };
            findings.push(spare("guest", Err(format!("{} was not asked{why}", guest.label()))));
        }
        Some(guest) => findings.extend(asked(guest, Programs::of(config))),
        None => findings.extend(walls(context)),
    }
    findings.extend(clipboard(config));
    findings.push(git(config));
    findings.push(finding("watching", watching(&config.inbox)));
    findings.push(spare("checkpoints", checkpoints(config)));
    findings.push(finding("disk", disk(config)));
    findings.push(spare("memory", memory()));
}

/// What a guest tells of itself.
fn asked(guest: &settings::Guest, programs: Programs) -> Vec<Finding> {
    let about = match Guest::new(guest.clone(), programs).about() {
        Ok(about) => about,
        Err(e) => return vec![finding("guest", Err(e.to_string()))],
    };
    let About { program, system, sandbox, root, .. } = &*about;
    let told = format!("{}: {program} on {system}, in {root}", guest.label());
    vec![finding("guest", Ok(told)), finding("  commands there", Ok(sandbox.clone()))]
}

fn rights(folder: &Path) -> Result<String, String> {
    match fs::metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok("does not exist yet; it is created when needed".to_owned());
        }
        Err(e) => return Err(format!("{} cannot be read: {e}", folder.display())),
        Ok(found) if !found.is_dir() => {
            return Err(format!("{} is not a folder; move it away", folder.display()));
        }
        Ok(_) => {}
    }
    // Rights are more than modes: only an attempt tells.
    match tempfile::Builder::new().suffix(".tmp").tempfile_in(folder) {
        Ok(_) => Ok("can be written".to_owned()),
        Err(e) => Err(format!("{} cannot be written: {e}{}", folder.display(), advice(&e))),
    }
}

fn sessions(context: &Context) -> Result<String, String> {
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
    let journal::Records { payloads, end, .. } = journal::read(&bytes).map_err(|offset| {
        format!(
            "{} is damaged at byte {offset}; restore it from a backup, or move it away to continue from the session files",
            path.display()
        )
    })?;
    let history = History::read(&payloads)
        .map_err(|n| format!("record {n} of {} is unknown to this version", path.display()))?;
    let left = match history.unfinished {
        Some(turn) => format!("; `deaddrop resume` finishes {}", turn.begin.name),
        None => String::new(),
    };
    Ok(format!("{} in {} bytes{left}", count(payloads.len(), "record"), end))
}

fn lock(context: &Context) -> String {
    match (Lock::is_held(&context.config), Lock::holder_serves(&context.config)) {
        (false, _) if Lock::is_borrowed(&context.config) => {
            "held by a `deaddrop rpc` of another project, which serves this workspace".to_owned()
        }
        (false, _) => "free".to_owned(),
        (true, true) => "held by a deaddrop that serves the inbox".to_owned(),
        (true, false) => "held by a deaddrop that is busy".to_owned(),
    }
}

/// What waits for the person: that is no fault, but somebody should know.
fn decisions(context: &Context) -> Finding {
    let pending = SessionStore::new(&context.config.sessions).pending().unwrap_or_default();
    let asked: Vec<_> =
        pending.iter().filter(|session| session.question().is_some()).map(Session::stem).collect();
    if asked.is_empty() {
        return finding("decisions", Ok("nothing waits for a decision".to_owned()));
    }
    let told = format!(
        "{} for your decision ({}): `deaddrop status ID` shows the question, `deaddrop approve` and `deaddrop deny` answer it",
        if asked.len() == 1 { "1 waits".to_owned() } else { format!("{} wait", asked.len()) },
        asked.join(", ")
    );
    spare("decisions", Err(told))
}

/// Whether the system tells of changes, and how many folders it lets a user watch.
fn watching(inbox: &Path) -> Result<String, String> {
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

/// How much can still be written where deaddrop and commands write. What a mount is for, and of which
/// kind, makes no difference: the file system itself is asked.
fn disk(config: &Config) -> Result<String, String> {
    let mut told = None;
    for folder in [&config.sessions, &config.outbox, &config.inbox, &config.workspace] {
        let there = folder.ancestors().find(|folder| folder.exists());
        let Some(Ok(room)) = there.map(space::room) else { continue };
        if room.bytes < LITTLE_ROOM {
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
        told.get_or_insert_with(|| {
            format!("{} MiB are free{}", room.bytes >> 20, files.unwrap_or_default())
        });
    }
    Ok(told.unwrap_or_else(|| "could not be asked".to_owned()))
}

/// What is left for commands, whose memory nothing bounds unless it is set.
fn memory() -> Result<String, String> {
    let Ok(mut system) = sysinfo::System::new() else { return Ok("could not be asked".to_owned()) };
    system.refresh_memory();
    match (system.available_memory(), system.total_memory()) {
        (_, 0) => Ok("could not be asked".to_owned()),
        (free, _) if free < LITTLE_ROOM => Err(format!(
            "only {} MiB are free, so the system may kill commands or other programs; close some, or set sandbox.max_memory_bytes",
            free >> 20
        )),
        (free, all) => Ok(format!("{} of {} MiB are free", free >> 20, all >> 20)),
    }
}

/// Whose a folder is, where that is not the person; of deaddrop's own also whether its rights let
/// others in, and, where the project is refused, whether another's folder is why.
fn owner(folder: &Path, is_own: bool, is_refused: bool) -> Result<String, String> {
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
fn checkpoints(config: &Config) -> Result<String, String> {
    if !config.checkpoints {
        return Ok("off (`checkpoints = false`): no turn can be undone".to_owned());
    }
    let (all, bytes) = kept_turns(config).map_err(|e| e.to_string())?;
    let told = format!("{} of {} are kept", size(bytes), size(config.checkpoint_max_bytes));
    let Some(newest) = all.last() else { return Ok(told) };
    let which = format!("turn {} of session {}, the newest,", newest.sequence, newest.session);
    if !newest.is_complete {
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
fn open_to_all(path: &Path) -> Option<String> {
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
fn opened(consent: &Consent) -> Result<String, String> {
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
fn notes() -> Result<String, String> {
    let home = state_home().ok_or(
        "without HOME, deaddrop cannot keep your consents and its list of projects; set HOME or XDG_STATE_HOME",
    )?;
    Ok(format!("{} {}", home.display(), rights(&home)?))
}

/// The ways to the clipboard, as `copy` would try them here.
fn clipboard(config: &Config) -> Vec<Finding> {
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
fn git(config: &Config) -> Finding {
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

/// One finding for the tier, then one for each mechanism.
fn walls(context: &Context) -> Vec<Finding> {
    let confinement = match context.confinement() {
        Ok(confinement) => confinement,
        Err(told) => return vec![finding("commands", Err(told))],
    };
    let mut told = confinement.line();
    for reason in confinement.why() {
        told.push_str(&format!("\n                     not {reason}"));
    }
    // No other remedy would help.
    let is_whole = context.config.workspace.canonicalize().is_ok_and(|at| at.parent().is_none());
    if confinement.tier == Tier::None && is_whole {
        told.push_str("\n                     the workspace is /, to which nothing can be confined: use `deaddrop config set workspace_dir FOLDER`; in a virtual machine or container of its own, `--sandbox off` runs commands unconfined");
        return vec![finding("commands", Err(told))];
    }
    if confinement.tier == Tier::None {
        told.push_str(
            "\n                     `--sandbox off` (or sandbox = \"off\" in deaddrop.toml) runs commands unconfined",
        );
    }
    let well = confinement.tier != Tier::None;
    let mut findings = vec![Finding { well, spare: false, what: "commands", told }];
    if confinement.tier == Tier::None {
        findings.extend(ways_out(&confinement));
    } else {
        let asked = Mechanism::ALL.into_iter().filter(|m| concerns(*m, &confinement));
        findings.extend(asked.map(|mechanism| of(mechanism, &confinement)));
    }
    findings
}

/// Where there is no sandbox: what each kind that was tried stands on. Which of it is missing the
/// reasons say; none of it was found out by itself.
fn ways_out(confinement: &Confinement) -> Vec<Finding> {
    let tried = |tier: Tier| confinement.missing.iter().any(|(missing, _)| *missing == tier);
    let mut found = Vec::new();
    if tried(Tier::Full) || tried(Tier::FullBwrap) {
        found.push(spare("  for full", Err(MECHANISMS.namespaces.clone())));
    }
    if tried(Tier::Partial) {
        let remedies = [Mechanism::Landlock, Mechanism::Seccomp, Mechanism::Hidden];
        let remedies = remedies.map(|mechanism| remedy(mechanism, Tier::Partial));
        found.push(spare("  for partial", Err(remedies.join("; and: "))));
    }
    found
}

/// Whether this tier has a use for a mechanism.
fn concerns(mechanism: Mechanism, confinement: &Confinement) -> bool {
    match (confinement.tier, mechanism) {
        (_, Mechanism::Subreaper) => !confinement.facts.has(Mechanism::PidNamespace),
        (Tier::Off, mechanism) => {
            matches!(mechanism, Mechanism::PidNamespace | Mechanism::Hidden)
        }
        (_, Mechanism::Network) => !confinement.network,
        _ => true,
    }
}

fn of(mechanism: Mechanism, confinement: &Confinement) -> Finding {
    let Row { what, holds, .. } = row(mechanism);
    let well = confinement.facts.has(mechanism);
    let no = || format!("no: {}", remedy(mechanism, confinement.tier));
    spare(what, if well { Ok(format!("yes: {holds}")) } else { Err(no()) })
}

/// What to do where a mechanism of this tier is not there.
fn remedy(mechanism: Mechanism, tier: Tier) -> &'static str {
    // Where commands are not confined, own files are hidden by a namespace or not at all.
    let is_unconfined = tier == Tier::Off && mechanism == Mechanism::Hidden;
    let own = row(mechanism).remedy.as_deref().filter(|_| !is_unconfined);
    own.unwrap_or(&MECHANISMS.namespaces)
}

/// What is said of mechanisms.
#[derive(Deserialize)]
struct Mechanisms {
    namespaces: String,
    mechanisms: BTreeMap<String, Row>,
}

#[derive(Deserialize)]
struct Row {
    what: String,
    holds: String,
    remedy: Option<String>,
}

static MECHANISMS: LazyLock<Mechanisms> = LazyLock::new(|| {
    toml::from_str(include_str!("data/mechanisms.toml")).expect("a table in order")
});

fn row(mechanism: Mechanism) -> &'static Row {
    &MECHANISMS.mechanisms[&format!("{mechanism:?}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::sandbox::Facts;

    #[test]
    fn each_mechanism_has_a_row() {
        assert_eq!(Mechanism::ALL.map(row).len(), MECHANISMS.mechanisms.len());
    }

    #[test]
    fn where_there_is_no_sandbox_each_way_to_one_is_told_once() {
        let none = |missing: &[Tier]| Confinement {
            tier: Tier::None,
            facts: Facts::default(),
            missing: missing.iter().map(|tier| (*tier, String::new())).collect(),
            network: false,
        };
        let told = |missing: &[Tier]| -> Vec<String> {
            ways_out(&none(missing)).into_iter().map(|found| found.told).collect()
        };
        let all = told(&[Tier::Full, Tier::FullBwrap, Tier::Partial]);
        assert_eq!(all.len(), 2);
        assert!(all[0].contains("kernel.apparmor_restrict_unprivileged_userns=0"), "{all:?}");
        assert!(all[1].contains("lsm=") && !all[1].contains("userns"), "{all:?}");
        assert_eq!(told(&[Tier::FullBwrap]), all[..1]);
        assert_eq!(told(&[Tier::Partial]), all[1..]);
    }
}
