//! The order of what a host journals and what it asks of its guest, which kills cannot show: what was
//! written survives them, and only a power loss takes it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pair::{Pair, TURNS, Way};
use crate::scene::can_trace;
use crate::trace::{self, Act};

/// What is known of a run up to a call.
#[derive(Default)]
struct Order {
    /// The key of each step of this turn that was begun.
    keys: BTreeMap<u64, String>,
    /// Keys that are in the journal, and those of steps whose outcomes are.
    begun: BTreeSet<String>,
    done: BTreeSet<String>,
    /// The same, as far as it is on disk.
    begun_on_disk: BTreeSet<String>,
    done_on_disk: BTreeSet<String>,
    asked: BTreeSet<String>,
    settled: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Order {
    /// A record of the journal.
    fn note(&mut self, text: &str) {
        // checksum, what it knew to be synced, and JSON
        let json = text.splitn(3, ' ').nth(2).unwrap_or_default();
        let record: Value = serde_json::from_str(json.trim_end_matches("\\n")).unwrap_or_default();
        let step = |of: &Value| of["step"].as_u64();
        if let Some(step) = step(&record["intent"]) {
            let key = record["intent"]["effect"]["guest"]["key"].as_str().unwrap_or_default();
            self.keys.insert(step, key.to_owned());
            self.begun.insert(key.to_owned());
        } else if let Some(step) = step(&record["result"]) {
            self.done.extend(self.keys.get(&step).cloned());
        } else if record.get("commit").is_some() {
            self.keys.clear();
        }
    }

    fn sync(&mut self) {
        self.begun_on_disk.clone_from(&self.begun);
        self.done_on_disk.clone_from(&self.done);
    }

    /// What the guest is sent.
    fn ask(&mut self, line: &str) {
        let request: Value = serde_json::from_str(line.trim_end_matches("\\n")).unwrap_or_default();
        if request["method"] != "step" {
            return;
        }
        let params = &request["params"];
        let key = params["key"].as_str().unwrap_or_default().to_owned();
        if !self.begun_on_disk.contains(&key) {
            self.wrong.push(format!("{key} is asked for before it is on disk"));
        }
        for settled in params["settled"].as_array().into_iter().flatten() {
            let settled = settled.as_str().unwrap_or_default().to_owned();
            if !self.done_on_disk.contains(&settled) {
                self.wrong.push(format!("{settled} is forgotten before its outcome is on disk"));
            }
            self.settled.insert(settled);
        }
        self.asked.insert(key);
    }
}

/// A text of strace's, without what it puts before quotes and itself.
fn plain(text: &str) -> String {
    text.replace("\\\\", "\\")
}

/// The calls of a trace of several threads, each whole, where it ends: strace tells one in two pieces
/// that another thread's comes between.
fn whole(trace: &str) -> Vec<String> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut lines = Vec::new();
    for (thread, line) in trace.lines().filter_map(|line| line.split_once(' ')) {
        let line = line.trim_start();
        if let Some(first) = line.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, first);
        } else if let Some((_, rest)) = line.split_once(" resumed>") {
            lines.extend(begun.remove(thread).map(|first| format!("{first}{rest}")));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines
}

#[test]
fn what_a_guest_is_asked_is_on_disk_before() {
    if !can_trace() {
        return;
    }
    let pair = Pair::new(Way::Direct);
    pair.drop_replies();
    let file = tempfile::NamedTempFile::new().unwrap();
    let command = pair.scene.command();
    // The thread that writes to the guest is not the first.
    let mut command = trace::under_strace(&command, Some("-fs100000"), file.path());
    assert!(command.output().unwrap().status.success());
    let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
    let journal = pair.scene.base.at("sessions/journal").to_string_lossy().into_owned();
    let mut order = Order::default();
    let mut syncs = 0;
    for line in whole(&text) {
        for call in trace::read(&line) {
            match call.act {
                Act::Write { path, text } if path == journal => order.note(&plain(&text)),
                Act::Write { text, .. } if text.starts_with("{\"jsonrpc\"") => {
                    order.ask(&plain(&text));
                }
                Act::Sync(path) if path == journal => {
                    syncs += 1;
                    order.sync();
                }
                // What it stood for is on disk by then.
                Act::Rename { to, .. } if to == journal => order.sync(),
                _ => {}
            }
        }
    }
    if syncs == 0 {
        eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
        return;
    }
    assert!(order.wrong.is_empty(), "{:#?}", order.wrong);
    // All but the messages, the end, and the file that is shown.
    assert_eq!(order.asked.len(), 12, "{:?}", order.asked);
    // All but the last are told as settled, and the guest has forgotten them.
    assert_eq!(order.settled.len(), order.asked.len() - 1);
    let mut left = pair.guest.names("sessions/steps");
    left.retain(|name| name.starts_with("step_"));
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(pair.scene.base.names("inbox/processed").len(), TURNS);
}
