//! Whether a session whose guest was stopped, or whose host was, or what connects them, came to what an
//! undisturbed one comes to, but for the interruptions that it reports.

use std::collections::BTreeMap;

use super::pair::{COMMANDS, Pair, TURNS, reply};
use crate::support::ID;
use crate::verdict::{LOST, log, one_more_start, outboxes, session, strays};

/// What an undisturbed session tells: the results of each turn, in order.
pub(super) struct Reference(BTreeMap<usize, Vec<String>>);

impl Reference {
    pub(super) fn of(pair: &Pair) -> Self {
        Self(results(pair))
    }
}

/// Each result, by turn: as the next outbox tells it, or, after the last, as the session's file does.
fn results(pair: &Pair) -> BTreeMap<usize, Vec<String>> {
    let mut results = BTreeMap::new();
    for (name, text) in outboxes(&pair.scene) {
        let turn = name.trim_end_matches(".txt").rsplit("seq").next().unwrap_or_default();
        let turn: usize = turn.parse().unwrap_or_default();
        let lines = text.lines().filter(|l| l.starts_with("[OK] ") || l.starts_with("[FAILED] "));
        results.insert(turn.saturating_sub(1), lines.map(str::to_owned).collect());
    }
    let last = session(&pair.scene)["lastResults"].as_array().cloned().unwrap_or_default();
    let told = last.iter().map(|result| {
        let word = if result["success"] == true { "OK" } else { "FAILED" };
        format!("[{word}] {}: {}", result["command"], result["summary"]).replace('"', "")
    });
    results.insert(TURNS, told.collect());
    results
}

/// Which command a result is about.
fn command_of(line: &str) -> Option<usize> {
    (1..=COMMANDS).find(|n| line.contains(&format!("'echo {n} >> trace;")))
}

/// Judges a session at its end; gives how many commands were told as interrupted.
pub(super) fn judge(pair: &mut Pair, reference: &Reference) -> usize {
    let mut wrong = std::mem::take(&mut pair.scene.wrong);
    let lost = compare_results(pair, reference, &mut wrong);
    if lost > pair.guest_kills {
        let kills = pair.guest_kills;
        wrong.push(format!("{lost} commands were lost, and the guest was killed {kills} times"));
    }
    compare_files(pair, &mut wrong);
    compare_host(pair, &mut wrong);
    wrong.extend(strays(&pair.scene));
    wrong.append(&mut one_more_start(&mut pair.scene));
    pair.scene.wrong = wrong;
    lost
}

/// Each operation is told once, in its place: as it went in the reference, or as lost.
fn compare_results(pair: &Pair, Reference(expected): &Reference, wrong: &mut Vec<String>) -> usize {
    let trace = pair.trace();
    if !trace.is_sorted_by(|a, b| a < b) {
        wrong.push(format!("the commands ran as {trace:?}"));
    }
    let found = results(pair);
    if !found.keys().eq(expected.keys()) {
        wrong.push(format!("there are results of the turns {:?}", found.keys()));
    }
    let mut lost = 0;
    for (turn, expected) in expected {
        let told = found.get(turn).map_or(&[][..], Vec::as_slice);
        if told.len() != expected.len() {
            wrong.push(format!("turn {turn} came to {told:?}"));
        }
        for (told, expected) in told.iter().zip(expected) {
            let number = command_of(expected);
            let is_lost = told.starts_with("[FAILED] ") && told.contains(LOST);
            if let Some(n) = number
                && is_lost
                && command_of(told) == Some(n)
            {
                lost += 1;
            } else if let Some(n) = number
                && pair.struck_another
                && told.starts_with("[FAILED] ")
                && told.contains("Could not run")
                && command_of(told) == Some(n)
            {
                if trace.contains(&n) {
                    wrong.push(format!("command {n} is told as not run, and ran"));
                }
            } else if told != expected {
                wrong.push(format!("turn {turn}: {told:?} is told, and not {expected:?}"));
            } else if let Some(n) = number
                && !(trace.contains(&n) && pair.guest.exists(&format!("{}/once-{n}", pair.tree())))
            {
                wrong.push(format!("command {n} is told as done, and did not run to its end"));
            }
        }
    }
    lost
}

fn compare_files(pair: &Pair, wrong: &mut Vec<String>) {
    let tree = pair.tree();
    let mut names = pair.guest.names(tree);
    names.retain(|name| !name.starts_with("once-"));
    if names.iter().any(|name| name != "deep" && name != "trace") {
        wrong.push(format!("in the guest lie {names:?}"));
    }
    let deep = pair.guest.names(&format!("{tree}/deep"));
    let text = std::fs::read_to_string(pair.guest.at(tree).join("deep/b.txt"));
    if deep != ["b.txt"] || !text.as_ref().is_ok_and(|text| text == "zero\nfirst\n") {
        wrong.push(format!("deep holds {deep:?}, the file {text:?}"));
    }
    let shown = "--- a.txt ---\none\ntwo and\na half\nthree\n--- end a.txt ---";
    if !outboxes(&pair.scene).values().any(|text| text.contains(shown)) {
        wrong.push("a.txt is not shown as it was".to_owned());
    }
    let here = pair.scene.base.names("workspace");
    if !here.is_empty() {
        wrong.push(format!("in the host's own workspace lie {here:?}"));
    }
}

fn compare_host(pair: &Pair, wrong: &mut Vec<String>) {
    let base = &pair.scene.base;
    let names: Vec<String> = (1..=TURNS).map(|n| format!("r{n}.txt")).collect();
    let archived = base.names("inbox/processed");
    if archived != names || base.names("inbox") != [".claimed", "processed"] {
        wrong.push(format!("the inbox holds {:?}, archived are {archived:?}", base.names("inbox")));
    } else if !(1..=TURNS).all(|n| base.read(&format!("inbox/processed/r{n}.txt")) == reply(n)) {
        wrong.push("a reply was archived otherwise than it was".to_owned());
    }
    let expected: Vec<String> = (1..=TURNS).map(|n| format!("{ID}_seq{n:04}.txt")).collect();
    if base.names("outbox") != expected {
        wrong.push(format!("the outbox holds {:?}", base.names("outbox")));
    }
    let session = session(&pair.scene);
    if session["isComplete"] != true || session["sequenceNumber"] != TURNS {
        wrong.push(format!("the session is at {}", session["sequenceNumber"]));
    }
    let log: Vec<_> = log(&pair.scene).iter().map(|entry| entry["reply"].clone()).collect();
    if log != names {
        wrong.push(format!("the log tells of {log:?}"));
    }
}
