//! The order of writes and syncs in a run, which kills cannot show, since what was written
//! survives them: only a power loss takes it.

use std::collections::{BTreeMap, BTreeSet};

use crate::trace::{Act, Call};

/// What is known of a run up to a call.
#[derive(Default)]
struct Order {
    base: String,
    /// Files with writes that are not synced, and those that were synced after their last write.
    written: BTreeSet<String>,
    synced: BTreeSet<String>,
    /// Folders with changes that are not synced.
    folders: BTreeSet<String>,
    /// The newest record that this run wrote.
    last: Option<String>,
    /// The Intents that have no Result yet.
    intents: Vec<String>,
    /// Processes begun since the last of them, and those begun without any.
    begun: usize,
    others: usize,
    /// Whether a Commit is written and not synced.
    commits: bool,
    /// Whether a decision was put away that was there before what is to be asked.
    refused: bool,
    /// How many of each were looked at.
    seen: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

/// What is wrong in the order of a run's calls; counts what it looked at in `seen`.
pub(crate) fn check(
    calls: &[Call],
    base: &str,
    seen: &mut BTreeMap<&'static str, usize>,
) -> Vec<String> {
    let mut order = Order { base: base.to_owned(), ..Order::default() };
    for call in calls.iter().filter(|call| !call.failed) {
        order.step(&call.act);
    }
    // How commands are contained is found out once, by one that does nothing.
    if order.others > 1 {
        order.wrong.push(format!("{} processes without an Intent", order.others));
    }
    for (what, n) in order.seen {
        *seen.entry(what).or_default() += n;
    }
    order.wrong
}

impl Order {
    fn step(&mut self, act: &Act) {
        match act {
            Act::Begin { thread: false } => self.begin(),
            Act::Open { path, makes: true } | Act::Folder(path) => {
                self.effect(path);
                self.folders.insert(parent(path));
            }
            Act::Write { path, text } if !path.starts_with('/') => self.told(text),
            Act::Write { path, text } => {
                self.synced.remove(path);
                self.written.insert(path.clone());
                if *path == self.journal() {
                    self.record(text);
                }
            }
            Act::Change(path) if path.starts_with(&self.base) => {
                self.synced.remove(path);
                self.written.insert(path.clone());
            }
            Act::Sync(path) => {
                if *path == self.journal() && std::mem::take(&mut self.commits) {
                    self.committed();
                }
                self.written.remove(path);
                self.synced.insert(path.clone());
                self.folders.remove(path);
            }
            Act::SyncAll => {
                self.synced.append(&mut self.written);
                self.folders.clear();
            }
            Act::Rename { from, to } => self.rename(from, to),
            // What is removed can be removed again.
            Act::Remove(path) => self.effect(path),
            _ => {}
        }
    }

    fn journal(&self) -> String {
        format!("{}/sessions/journal", self.base)
    }

    fn record(&mut self, text: &str) {
        // checksum, what it knew to be synced, and JSON
        let json = text.splitn(3, ' ').nth(2).unwrap_or_default();
        let kind = json.trim_start_matches(['{', '"']);
        let kind: String = kind.chars().take_while(char::is_ascii_alphabetic).collect();
        match kind.as_str() {
            "intent" => {
                // A step that was not done with others is begun anew.
                self.intents.retain(|intent| step(intent) != step(json));
                self.intents.push(json.to_owned());
                self.begun = 0;
            }
            "result" => {
                let its = self.intents.iter().position(|intent| step(intent) == step(json));
                let command = its.is_some_and(|n| is_command(&self.intents.remove(n)));
                self.require(!command || self.begun == 1, || {
                    "a command without its process".into()
                });
            }
            "commit" => self.commits = true,
            "" => return,
            _ => {}
        }
        self.last = Some(kind);
    }

    /// Whether all that the journal holds is on disk.
    fn journal_is_synced(&self) -> bool {
        !self.written.contains(&self.journal()) && self.synced.contains(&self.journal())
    }

    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn begin(&mut self) {
        if self.intents.last().is_some_and(|intent| is_command(intent)) {
            self.begun += 1;
            self.count("commands");
            self.require(self.journal_is_synced(), || {
                "a command before its Intent is synced".into()
            });
        } else {
            self.others += 1;
        }
    }

    /// A file of the workspace is about to be made, named or removed.
    fn effect(&mut self, path: &str) {
        let Some(below) = path.strip_prefix(&format!("{}/workspace/", self.base)) else { return };
        self.count("effects");
        let name = below.rsplit('/').next().unwrap_or_default().to_owned();
        let below = below.to_owned();
        // Recovery removes what an Intent of a run before named.
        if self.intents.is_empty() && self.last.is_none() && name.starts_with(".deaddrop-") {
            return;
        }
        let named = self.intents.iter().any(|intent| {
            intent.contains(&format!("\"{below}\"")) || intent.contains(&format!("\"{name}\""))
                // A folder on the way.
                || intent.contains(&format!("\"{below}/"))
        });
        self.require(named, || format!("{below} is touched without an Intent"));
        self.require(self.journal_is_synced(), || format!("{below} before its Intent is synced"));
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.effect(to);
        let place = to.strip_prefix(&self.base).unwrap_or_default().to_owned();
        let whole = self.synced.contains(from) && !self.written.contains(from);
        if place.starts_with("/workspace/") {
            self.require(whole, || format!("{place} is put into place unsynced"));
        }
        if place.starts_with("/outbox/") {
            self.count("outboxes");
            // In a run after a stop, the run before wrote it, and its Commit.
            let before = self.last.is_none() && !self.written.contains(from);
            self.require(whole || before, || format!("{place} is put into place unsynced"));
            self.decided(&place);
        }
        if place.starts_with("/inbox/processed/") {
            self.count("archived");
            self.decided(&place);
            let outbox = format!("{}/outbox", self.base);
            let shown = !self.folders.contains(&outbox);
            self.require(shown, || format!("{place} before the outbox is synced"));
        }
        if place.starts_with("/approvals/processed/") {
            self.count("decisions archived");
            self.decided(&place);
        }
        if place.starts_with("/approvals/rejected/early") {
            self.refused = true;
        }
        if place == "/sessions/journal" {
            self.count("compactions");
            self.require(whole, || "the journal is put into place unsynced".into());
            self.compacted(from);
        }
        self.folders.extend([parent(from), parent(to)]);
        for set in [&mut self.written, &mut self.synced] {
            if set.remove(from) {
                set.insert(to.to_owned());
            } else {
                set.remove(to);
            }
        }
    }

    /// What was there before a question is put away for good before it is asked.
    fn committed(&mut self) {
        if std::mem::take(&mut self.refused) {
            self.count("refused early");
            let left = self.folders.contains(&format!("{}/approvals", self.base));
            self.require(!left, || "a question before earlier decisions are put away".into());
        }
    }

    /// The person is told something.
    fn told(&mut self, text: &str) {
        if text.contains("for your decision about") && !text.contains("then session") {
            self.count("questions");
            // In a run after a stop, the run before wrote it. An End behind it can wait.
            let commit = self.last.as_deref().is_none_or(|last| ["commit", "end"].contains(&last));
            self.require(commit && !self.commits, || {
                "a question before its Commit is synced".into()
            });
        }
    }

    fn decided(&mut self, place: &str) {
        let commit = self.last.as_deref().is_none_or(|last| last == "commit");
        self.require(commit, || format!("{place} before its Commit is written"));
        self.require(self.journal_is_synced(), || format!("{place} before its Commit is synced"));
    }

    /// What the old journal stood for must be on disk before it goes.
    fn compacted(&mut self, from: &str) {
        let old = self.journal();
        let base = self.base.clone();
        let mine = |path: &&String| {
            let kept = path.starts_with(&format!("{base}/sessions/")) && !path.ends_with("/.lock");
            // What was seen of the workspace is only remembered so as not to be read again.
            let memory = ["/checkpoints/scanned", "/checkpoints/size-after-gc"];
            let memory = memory.iter().any(|name| path.ends_with(name));
            kept && !memory && **path != old && *path != from
        };
        let left: Vec<String> = self.written.iter().filter(mine).cloned().collect();
        self.require(left.is_empty(), || {
            format!("the journal is emptied before {left:?} are synced")
        });
        let boxes = ["inbox", "approvals"].into_iter();
        let boxes =
            boxes.flat_map(|of| ["", "/processed", "/.claimed"].map(|sub| format!("{of}{sub}")));
        let ours = boxes.chain(["outbox".to_owned()]);
        let ours: Vec<String> = ours.map(|name| format!("{base}/{name}")).collect();
        let left: Vec<String> = ours.into_iter().filter(|f| self.folders.contains(f)).collect();
        self.require(left.is_empty(), || {
            format!("the journal is emptied before {left:?} are synced")
        });
        self.last = None;
        self.intents.clear();
    }
}

fn is_command(intent: &str) -> bool {
    intent.contains("\"effect\":\"command\"")
}

/// The number of the step that an Intent or a Result is about.
fn step(json: &str) -> Option<&str> {
    json.split_once("\"step\":")?.1.split([',', '}']).next()
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or_else(String::new, |(folder, _)| folder.to_owned())
}
