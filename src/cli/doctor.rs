//! `doctor`: what is well with a project and this machine, and what to do about the rest.
//! Looks, and changes nothing.

mod around;
mod walls;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::Context;
use super::arguments::Global;
use super::locate::{By, Location};
use super::output::{self, Terminal};
use crate::atomic;
use crate::engine::Clock;
use crate::error::advice;
use crate::executor::Guest;
use crate::lock::Lock;
use crate::program::Programs;
use crate::protocol::jsonrpc::About;
use crate::runner::space::{self, more_files};
use crate::session::Session;
use crate::session::journal;
use crate::session::record::History;
use crate::session::store::Store;
use crate::settings::{self, Config, Consent, FILE, FOLDER};
use crate::text::{count, visible_line};

/// Less room than this is worth a word, on a disk or in memory, in bytes.
const LITTLE_ROOM: u64 = 256 << 20;
/// Fewer watches than this are soon used up by editors and browsers.
const FEW_WATCHES: u64 = 8_192;

#[derive(Debug, Args)]
pub(super) struct Doctor {}

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
pub(super) fn doctor(global: Global, ui: Terminal) -> crate::error::Result<ExitCode> {
    let mut findings = Vec::new();
    let location = match Location::find(global.project) {
        Ok(location) => location,
        Err(e) => {
            let here = std::env::current_dir().ok();
            let Some(project) = here.as_deref().and_then(settings::marked) else { return Err(e) };
            findings.push(finding("project", Err(e.to_string())));
            Location { project, here, by: By::Search }
        }
    };
    let Location { project, here, by } = location;
    let mut is_read = true;
    let (config, consent) = match Config::load(&project, global.settings.raw()?) {
        Ok(loaded) => loaded,
        Err(e) => {
            let Ok(without) = Config::load_without_file(&project, global.settings.raw()?) else {
                return Err(e);
            };
            let told = format!(
                "{e}; the rest of this report assumes defaults, and may be wrong about folders"
            );
            findings.push(finding(FILE, Err(told)));
            is_read = false;
            without
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
    let (clock, glimpse, json) = (Clock(global.now), Arc::default(), global.json);
    let context = Context { config, clock, ui, json, glimpse, here, by };
    look(&context, &consent, is_refused, is_read, &mut findings);
    for Finding { well, spare, what, told } in &findings {
        let row = json!({ "what": what, "well": well, "fault": !well && !spare, "told": told });
        output::told(json, row, || {
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
    consent: &Consent,
    is_refused: bool,
    is_read: bool,
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
            let owner = around::owner(folder, what != "workspace", is_refused)?;
            Ok(format!("{} {told}{owner}", context.display(folder)))
        });
        findings.push(finding(what, told));
    }
    // Who can write to the folder around deaddrop's own can put another sessions folder into it.
    for what in [FILE, FOLDER] {
        let told = around::open_to_all(&config.project.join(what));
        findings.extend(told.map(|told| finding(what, Err(told))));
    }
    findings.push(if is_read {
        finding("settings", around::settings(consent))
    } else {
        let told = "unknown, because deaddrop.toml cannot be read (see above)";
        spare("settings", Err(told.to_owned()))
    });
    findings.push(spare("notes", around::notes()));
    findings.push(finding("session files", sessions(context)));
    findings.push(finding("journal", journal(&config.sessions.join("journal"))));
    findings.push(finding("lock", Ok(lock(context))));
    findings.push(decisions(context));
    match &config.guest {
        // Nothing runs here then.
        Some(guest) if is_refused || !consent.lacks().is_empty() => {
            let why = if is_refused {
                ", because of the faults above"
            } else {
                ": it needs your consent"
            };
            findings.push(spare("guest", Err(format!("{} was not asked{why}", guest.label()))));
        }
        Some(guest) => findings.extend(asked(guest, Programs::of(config))),
        None => findings.extend(walls::findings(context)),
    }
    findings.extend(around::clipboard(config));
    findings.push(around::git(config));
    findings.push(finding("watching", watching(&config.inbox)));
    findings.push(spare("checkpoints", around::checkpoints(config)));
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
        Store::new(&context.config.sessions).list().map_err(|e| e.to_string())?;
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
    let pending = Store::new(&context.config.sessions).pending().unwrap_or_default();
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
