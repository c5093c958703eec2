//! What must hold of a session whose replies stop to ask, at any moment and in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::story::*;
use crate::scene::Scene;
use crate::support::ID;
use crate::verdict::{LOST, log, one_more_start, outboxes, session, strays};

impl Asked {
    /// What must hold at any moment.
    pub(super) fn look(&mut self) {
        let base = &self.scene.base;
        let mut wrong = Vec::new();
        let reached = REACHED[self.begun - 1];
        let next = format!("outbox/{ID}_seq{:04}.txt", reached + 1);
        if base.exists(&next) {
            wrong.push(format!("{next} is there in stage {}", self.begun));
        }
        for (n, done) in ASKED.iter().enumerate() {
            let may = self.begun > n + 1 && self.story[n].0;
            if base.exists(&format!("workspace/{done}")) && !may {
                wrong.push(format!("{done} is there in stage {}", self.begun));
            }
        }
        // A reply that waits is not even taken.
        for n in reached + 1..=REPLIES.len() {
            if !base.exists(&format!("inbox/r{n}.json")) {
                wrong.push(format!("r{n}.json was taken in stage {}", self.begun));
            }
        }
        for n in self.dropped() {
            let places = ["", ".claimed/", "processed/"];
            let place = |p: &&str| base.exists(&format!("approvals/{p}d{n}.json"));
            if places.iter().filter(|p| place(p)).count() != 1 {
                wrong.push(format!("d{n}.json is not in one place"));
            }
        }
        self.scene.wrong.append(&mut wrong);
    }

    /// What came of all of it, but for what is told as interrupted, which is given back.
    pub(super) fn judge(&mut self, reference: &Reference) -> BTreeSet<usize> {
        let mut wrong = std::mem::take(&mut self.scene.wrong);
        let lost = self.commands(&mut wrong);
        self.put_away(&mut wrong);
        wrong.extend(strays(&self.scene));
        let found = Reference::of(&self.scene);
        found.compare(reference, &lost, &mut wrong);
        if lost.len() > self.scene.stops {
            wrong.push(format!("{lost:?} interrupted by {} stops", self.scene.stops));
        }
        if !lost.is_empty() && !self.scene.told.contains("interrupted (it may have run in part") {
            wrong.push(format!("an interruption was not told: {}", self.scene.told));
        }
        wrong.append(&mut one_more_start(&mut self.scene));
        self.scene.wrong = wrong;
        lost
    }

    /// What the events say of each command, against what the commands left.
    pub(super) fn commands(&self, wrong: &mut Vec<String>) -> BTreeSet<usize> {
        let mut lost = BTreeSet::new();
        let files = self.scene.files("workspace");
        for n in 1..=COMMANDS {
            let mark = format!("ran-{n}");
            let ran = files.get(&mark).map_or(0, |b| b.split(|b| *b == b'\n').count() - 1);
            let path = format!("outbox/{ID}_seq{:04}.events.json", TURN_OF[n - 1] + 1);
            let text = fs::read_to_string(self.scene.base.at(&path)).unwrap_or_default();
            let told: Value = serde_json::from_str(&text).unwrap_or_default();
            let told = told["events"].as_array().into_iter().flatten();
            let of = |e: &&Value| e["command"].as_str().is_some_and(|text| text.contains(&mark));
            let told: Vec<&Value> = told.filter(of).collect();
            let denied = n == COMMAND && !self.story[1].0;
            match told.as_slice() {
                [] if denied && ran == 0 => {}
                [e] if !denied && ran == 1 && e["exitCode"] == 0 => {}
                [e] if !denied && ran < 2 && e["error"].to_string().contains(LOST) => {
                    lost.insert(n);
                }
                _ => wrong.push(format!("command {n} ran {ran} times, and is told as {told:?}")),
            }
        }
        lost
    }

    pub(super) fn put_away(&self, wrong: &mut Vec<String>) {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let of = |folder| self.scene.files(folder).into_iter().map(|(name, b)| (name, text(b)));
        let mut inbox = BTreeMap::from([".claimed/", "processed/"].map(folder));
        for (n, reply) in REPLIES.iter().enumerate() {
            inbox.insert(format!("processed/r{}.json", n + 1), (*reply).to_owned());
        }
        let mut approvals = BTreeMap::from([".claimed/", "processed/", "rejected/"].map(folder));
        for n in self.dropped() {
            approvals.insert(format!("processed/d{n}.json"), self.given[&n].clone());
        }
        for n in 0..ASKED.len() {
            approvals.insert(format!("rejected/early{n}.json"), EARLY.to_owned());
        }
        if !of("inbox").eq(inbox) {
            wrong.push(format!("the inbox holds {:?}", of("inbox").collect::<Vec<_>>()));
        }
        let is_note = |name: &str| name.starts_with("rejected/") && name.ends_with(".why.txt");
        let found: BTreeMap<String, String> = of("approvals").filter(|f| !is_note(&f.0)).collect();
        let notes = of("approvals").filter(|f| is_note(&f.0) && f.1.contains("was there before"));
        let notes = notes.count();
        // A stop between a file and its note leaves it without one.
        if found != approvals || notes > 3 || notes + self.scene.stops < 3 {
            wrong.push(format!("among the approvals: {notes} notes and {found:?}"));
        }
    }
}

pub(super) fn folder(name: &str) -> (String, String) {
    (name.to_owned(), String::new())
}

impl Reference {
    pub(super) fn of(scene: &Scene) -> Self {
        let (workspace, outboxes) = (scene.files("workspace"), outboxes(scene));
        Self { workspace, outboxes, session: session(scene), log: log(scene) }
    }

    pub(super) fn compare(&self, expected: &Self, lost: &BTreeSet<usize>, wrong: &mut Vec<String>) {
        let kept = |name: &&String| !lost.iter().any(|n| **name == format!("ran-{n}"));
        let of = |files: &BTreeMap<String, Vec<u8>>| -> Vec<(String, Vec<u8>)> {
            let kept = files.iter().filter(|(name, _)| kept(name));
            kept.map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
        };
        if of(&self.workspace) != of(&expected.workspace) {
            let names: Vec<_> = self.workspace.keys().collect();
            wrong.push(format!("the workspace is not what it should be: {names:?}"));
        }
        if !self.outboxes.keys().eq(expected.outboxes.keys()) {
            wrong.push(format!("the outbox holds {:?}", self.outboxes.keys()));
        }
        for (name, expected) in &expected.outboxes {
            let Some(text) = self.outboxes.get(name) else { continue };
            let (text, expected) = (masked(text, lost), masked(expected, lost));
            if text != expected {
                let other = text.lines().zip(expected.lines()).find(|(a, b)| a != b);
                wrong.push(format!("{name} is not what it should be: {other:?}"));
            }
        }
        for key in ["sequenceNumber", "isComplete", "summary", "lastReply", "pending", "task"] {
            if self.session[key] != expected.session[key] {
                wrong.push(format!("the session's {key} is {}", self.session[key]));
            }
        }
        let told = |session: &Value| {
            let results = session["lastResults"].as_array().cloned().unwrap_or_default();
            let line = |r: &Value| format!("{} {} {}\n", r["command"], r["success"], r["summary"]);
            masked(&results.iter().map(line).collect::<String>(), lost)
        };
        if told(&self.session) != told(&expected.session) {
            wrong.push(format!("the session's results are {}", told(&self.session)));
        }
        if self.log.len() != expected.log.len() {
            wrong.push(format!("the log is {:?}", self.log));
        }
        for (turn, (entry, expected)) in self.log.iter().zip(&expected.log).enumerate() {
            let more = lost.iter().filter(|n| TURN_OF[**n - 1] == turn + 1).count() as u64;
            let same = ["sequence", "reply", "commands", "isComplete"];
            let counts = ["failed", "interrupted"];
            let same = same.iter().all(|key| entry[key] == expected[key]);
            let sum = |key: &str| expected[key].as_u64().map(|n| n + more);
            if !same || !counts.iter().all(|key| entry[key].as_u64() == sum(key)) {
                wrong.push(format!("the log says {entry} instead of {expected}"));
            }
        }
    }
}

/// A text without what may differ: times, and what is interrupted.
pub(super) fn masked(text: &str, lost: &BTreeSet<usize>) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        // A command that was interrupted may have changed anything, and an error keep it from being known.
        let by_commands = line.starts_with("Commands changed ");
        if by_commands || lost.iter().any(|n| line.contains(&format!("ran-{n}"))) {
            continue;
        }
        match line.split_once("\"durationMs\":") {
            Some((before, after)) => {
                kept.push_str(before);
                kept.push_str(after.trim_start_matches(|c: char| c.is_ascii_digit()));
            }
            None => kept.push_str(line),
        }
        kept.push('\n');
    }
    kept
}
