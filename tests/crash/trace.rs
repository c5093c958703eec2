//! What strace says of a run: the calls of the daemon's main thread, which does all the work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::ID;
use crate::support::wrapper::wrap;

/// The calls that are looked at; `?` where not every system has them.
pub(crate) const CALLS: &str = "openat,?openat2,?open,?creat,write,?pwrite64,?rename,renameat,?renameat2,?unlink,unlinkat,fsync,fdatasync,?syncfs,?mkdir,mkdirat,?link,linkat,ftruncate,?symlink,symlinkat,fchmod,fchown,clone,?clone3,?vfork,wait4,?poll,?ppoll,futex";

/// What runs a program so that these calls are written to a file.
pub(crate) fn under_strace(plain: &Command, option: Option<&str>, file: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-y", "-qq", "-s", "300", "-e", &format!("trace={CALLS}")]);
    command.args(option).arg("-o").arg(file).stdin(Stdio::null());
    wrap(&mut command, plain);
    command
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The how-manieth of this name it is in its process, from 1.
    pub(crate) n: usize,
    pub(crate) act: Act,
    pub(crate) failed: bool,
}

/// What a call does, with whole paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// A file is opened, and made or emptied where that is asked for.
    Open {
        path: String,
        makes: bool,
    },
    Write {
        path: String,
        text: String,
    },
    Sync(String),
    /// All of a file system.
    SyncAll,
    Rename {
        from: String,
        to: String,
    },
    Remove(String),
    Folder(String),
    /// Length, mode or owner.
    Change(String),
    /// A process begins, or a thread of this one.
    Begin {
        thread: bool,
    },
    Wait,
    Other,
}

/// A place to stop the program at: the n-th call of this name.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) n: usize,
    /// For the reader of a report.
    pub(crate) what: String,
    /// Whether it changes files or syncs them, so that it can meet an error.
    pub(crate) touches: bool,
}

/// Whether these are told with the paths of the files that are open; says so if not: deaddrop keeps
/// others of the same user from looking at it, and so from its files' names.
pub(crate) fn sees_paths<'a>(points: impl IntoIterator<Item = &'a Point>) -> bool {
    let sees = points.into_iter().any(|point| point.what.ends_with("/sessions/journal"));
    if !sees {
        eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
    }
    sees
}

/// Reads a trace made with `-y`, without `-f`.
pub(crate) fn read(text: &str) -> Vec<Call> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    text.lines().filter_map(|line| call(line, &mut counts)).collect()
}

fn call(line: &str, counts: &mut BTreeMap<String, usize>) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let n = counts.entry(name.to_owned()).or_default();
    *n += 1;
    let (arguments, end) = arguments(rest);
    let get = |n: usize| arguments.get(n).map_or("", String::as_str);
    let act = match name {
        "openat" | "openat2" => open(&path_at(get(0), get(1)), get(2)),
        "open" => open(&quoted(get(0)), get(1)),
        "creat" => open(&quoted(get(0)), "O_CREAT"),
        "write" | "pwrite64" => Act::Write { path: descriptor(get(0)), text: quoted(get(1)) },
        "rename" | "link" => Act::Rename { from: quoted(get(0)), to: quoted(get(1)) },
        "renameat" | "renameat2" | "linkat" => {
            Act::Rename { from: path_at(get(0), get(1)), to: path_at(get(2), get(3)) }
        }
        "unlink" => Act::Remove(quoted(get(0))),
        "unlinkat" => Act::Remove(path_at(get(0), get(1))),
        "fsync" | "fdatasync" => Act::Sync(descriptor(get(0))),
        "syncfs" => Act::SyncAll,
        "mkdir" => Act::Folder(quoted(get(0))),
        "mkdirat" => Act::Folder(path_at(get(0), get(1))),
        "ftruncate" | "fchmod" | "fchown" => Act::Change(descriptor(get(0))),
        "clone" | "clone3" | "vfork" => Act::Begin { thread: rest.contains("CLONE_THREAD") },
        "wait4" | "poll" | "ppoll" => Act::Wait,
        _ => Act::Other,
    };
    let failed = !end.contains("= ") || end.contains("= -1 ") || end.contains("= ?");
    Some(Call { name: name.to_owned(), n: *n, act, failed })
}

fn open(path: &str, flags: &str) -> Act {
    let makes = flags.contains("O_CREAT") || flags.contains("O_TRUNC");
    Act::Open { path: path.to_owned(), makes }
}

/// Splits at commas that stand in nothing; gives what follows the closing bracket, too.
fn arguments(text: &str) -> (Vec<String>, &str) {
    let (mut found, mut current, mut depth) = (Vec::new(), String::new(), 0_usize);
    let (mut quote, mut angle, mut escaped) = (false, false, false);
    for (at, c) in text.char_indices() {
        if quote {
            quote = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if angle {
            angle = c != '>';
        } else {
            match c {
                '"' => quote = true,
                '<' => angle = true,
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => {
                    found.push(current.trim().to_owned());
                    return (found, &text[at + 1..]);
                }
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    found.push(std::mem::take(&mut current).trim().to_owned());
                    continue;
                }
                _ => {}
            }
        }
        current.push(c);
    }
    found.push(current.trim().to_owned());
    (found, "")
}

/// The path in `3</tmp/x>`.
fn descriptor(argument: &str) -> String {
    let path = argument.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>'));
    path.map_or_else(String::new, |(path, _)| path.to_owned())
}

fn quoted(argument: &str) -> String {
    let text = argument.strip_prefix('"').unwrap_or_default();
    text.rsplit_once('"').map_or(text, |(text, _)| text).replace("\\\"", "\"")
}

fn path_at(folder: &str, path: &str) -> String {
    let path = quoted(path);
    if path.starts_with('/') { path } else { format!("{}/{path}", descriptor(folder)) }
}

/// The calls of threads other than the first, in a trace made with `-f`; and how many there are.
pub(crate) fn of_threads(text: &str) -> (Vec<Call>, usize) {
    let threads: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_once("parent_tid=[")?.1.split_once(']'))
        .map(|(thread, _)| thread)
        .collect();
    let mut counts = BTreeMap::new();
    let calls = text.lines().filter_map(|line| {
        let (thread, line) = line.split_once(' ')?;
        if threads.contains(thread) { call(line.trim_start(), &mut counts) } else { None }
    });
    (calls.collect(), threads.len())
}

/// The places of a run to stop it at: whatever changes the project or syncs something of
/// it, and whatever has to do with a command's process.
pub(crate) fn points(calls: &[Call], base: &Path) -> Vec<Point> {
    let base = base.to_string_lossy();
    let mut points: Vec<Point> = Vec::new();
    // Of the zeros that make room, the first and the last write are enough.
    let mut zeros = 0;
    for call in calls {
        let (path, touches) = match &call.act {
            Act::Open { path, makes: true }
            | Act::Write { path, .. }
            | Act::Sync(path)
            | Act::Rename { to: path, .. }
            | Act::Remove(path)
            | Act::Folder(path)
            | Act::Change(path) => (path.as_str(), true),
            Act::Begin { thread: false } | Act::Wait => ("", false),
            _ => continue,
        };
        if touches && !path.starts_with(&*base) {
            continue;
        }
        let is_zeros = matches!(&call.act, Act::Write { text, .. } if text.starts_with("\\0"));
        zeros = if is_zeros { zeros + 1 } else { 0 };
        if zeros > 2 {
            points.pop();
        }
        let what = format!("{} {}", call.name, path.trim_start_matches(&*base));
        points.push(Point { name: call.name.clone(), n: call.n, what, touches });
    }
    points
}

/// Those of a process that is one of several in a test: without the calls that each begins with,
/// where it is not the first, without removals that are done as time allows, and with the first of
/// several looks at a command that runs.
pub(crate) fn own(mut points: Vec<Point>, is_first: bool) -> Vec<Point> {
    let begins = |point: &Point| {
        point.what.contains("/.claimed/") || point.what.starts_with("write /sessions/journal")
    };
    let same = points.iter().position(begins).unwrap_or_default();
    points.drain(..if is_first { 0 } else { same });
    points.retain(|point| !point.what.contains("/.gone-"));
    points.dedup_by(|next, point| !point.touches && !next.touches && point.name == next.name);
    points
}

impl Point {
    /// Whether nothing has to follow from its failure: folders that are there already.
    pub(crate) fn is_harmless(&self) -> bool {
        self.name.starts_with("mkdir")
    }

    /// Whether it is about what is kept of the workspace: without it a turn cannot be taken back.
    pub(crate) fn is_of_checkpoints(&self) -> bool {
        self.what.contains("/sessions/checkpoints")
    }

    /// Whether it is about a folder that commands have for themselves: without it they are not run,
    /// and told so, and nothing else depends on it; nor on its removal.
    pub(crate) fn is_for_commands(&self) -> bool {
        let own = format!("/sessions/{ID}");
        self.what.contains("/sessions/.probe")
            || self.what.contains("/sessions/.gone-")
            || self.what.contains(&format!("{own}/"))
            || self.what.ends_with(&own)
    }
}
