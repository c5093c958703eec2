//! Whether a session that was stopped on its way came to what an undisturbed one comes to, but for
//! the interruptions that it reports.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::scene::{COMMANDS, FILES, LEGS, Scene, TURN_OF, reply};
use crate::support::ID;

/// What a disk says that fails.
pub(crate) const ERRORS: [&str; 2] = ["No space left on device", "Input/output error"];
/// What is said of a command that was interrupted.
pub(crate) const LOST: &str = "it may have run in part or as a whole, and is not run again";

/// What an undisturbed session leaves.
pub(crate) struct Reference {
    pub(crate) outboxes: BTreeMap<String, String>,
    pub(crate) workspace: BTreeMap<String, Vec<u8>>,
    session: Value,
    log: Vec<Value>,
}

/// What the session says went otherwise.
#[derive(Default)]
pub(crate) struct Reported {
    /// Commands, from 1, that were interrupted.
    pub(crate) lost: BTreeSet<usize>,
    /// Files that could not be changed.
    pub(crate) files: BTreeSet<&'static str>,
    /// Whether some turn cannot be taken back.
    not_kept: bool,
}

impl Reference {
    pub(crate) fn of(scene: &Scene) -> Self {
        Self {
            outboxes: outboxes(scene),
            workspace: scene.files("workspace"),
            session: session(scene),
            log: log(scene),
        }
    }
}

pub(crate) fn outboxes(scene: &Scene) -> BTreeMap<String, String> {
    let files = scene.files("outbox").into_iter();
    files.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

pub(crate) fn session(scene: &Scene) -> Value {
    serde_json::from_str(&scene.base.read(&format!("sessions/{ID}.json"))).unwrap_or_default()
}

pub(crate) fn log(scene: &Scene) -> Vec<Value> {
    let path = format!("sessions/{ID}.log");
    let text = if scene.base.exists(&path) { scene.base.read(&path) } else { String::new() };
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect()
}

/// Each result of the session, by turn: as the next outbox tells it, or, after the last turn, as
/// the session's file does.
fn results(scene: &Scene) -> Vec<(usize, String)> {
    let mut results = Vec::new();
    for (name, text) in outboxes(scene) {
        let turn = name.trim_end_matches(".txt").rsplit("seq").next().unwrap_or_default();
        let turn: usize = turn.parse().unwrap_or_default();
        let lines = text.lines().filter(|l| l.starts_with("[OK] ") || l.starts_with("[FAILED] "));
        results.extend(lines.map(|line| (turn.saturating_sub(1), line.to_owned())));
    }
    for result in session(scene)["lastResults"].as_array().into_iter().flatten() {
        let word = if result["success"] == true { "OK" } else { "FAILED" };
        let told = format!("[{word}] {}: {}", result["command"], result["summary"]);
        results.push((4, told.replace('"', "")));
    }
    results
}

/// Compares a session at its end; what is wrong is added to what was found on the way.
pub(crate) fn judge(scene: &mut Scene, reference: &Reference) -> Reported {
    let mut wrong = std::mem::take(&mut scene.wrong);
    let reported = reported(scene, &mut wrong);
    archive(scene, &mut wrong);
    workspace(scene, reference, &reported, &mut wrong);
    compare_outboxes(scene, reference, &reported, &mut wrong);
    compare_session(scene, reference, &reported, &mut wrong);
    compare_log(scene, reference, &reported, &mut wrong);
    if reported.lost.len() > scene.stops {
        wrong.push(format!("{:?} interrupted by {} stops", reported.lost, scene.stops));
    }
    if !reported.lost.is_empty() && !scene.told.contains("interrupted (it may have run in part") {
        wrong.push(format!("an interruption was not told to the person: {}", scene.told));
    }
    wrong.append(&mut one_more_start(scene));
    scene.wrong = wrong;
    reported
}

/// What is wrong with one more start, which is to find nothing to do.
pub(crate) fn one_more_start(scene: &mut Scene) -> Vec<String> {
    let all = |scene: &Scene| {
        let mut files = scene.files(".");
        files.retain(|name, _| {
            // What commands left is removed as time allows.
            !["sessions/.lock", "sessions/journal"].contains(&name.as_str())
                && !name.starts_with("sessions/.gone-")
        });
        files
    };
    let before = all(scene);
    scene.told.clear();
    scene.go_on();
    let mut wrong = std::mem::take(&mut scene.wrong);
    if all(scene) != before || scene.told.contains("carried out") {
        wrong.push(format!("a start after the end did something: {}", scene.told));
    }
    wrong
}

/// What the results say of each command, against what the commands left.
fn reported(scene: &Scene, wrong: &mut Vec<String>) -> Reported {
    let mut reported = Reported::default();
    let results = results(scene);
    for n in 1..=COMMANDS {
        let mark = format!("ran-{n}");
        let ran =
            scene.files("workspace").get(&mark).map_or(0, |b| b.split(|b| *b == b'\n').count() - 1);
        let told: Vec<&String> = results
            .iter()
            .filter(|(turn, line)| *turn == TURN_OF[n - 1] && line.contains(&mark))
            .map(|(_, line)| line)
            .collect();
        if ran > 1 {
            wrong.push(format!("command {n} ran {ran} times"));
        }
        match told.as_slice() {
            [line] if line.contains(LOST) && line.starts_with("[FAILED] ") => {
                reported.lost.insert(n);
            }
            [line] if line.contains("(exit code 0)") && ran == 1 => {}
            _ => wrong.push(format!("command {n} ran {ran} times, and is told as {told:?}")),
        }
    }
    reported.not_kept = log(scene).iter().any(|turn| turn["changed"].is_null());
    for file in FILES {
        let failed = |line: &str| {
            line.starts_with("[FAILED] ")
                && line.contains(&format!("'{file}'"))
                && ERRORS.iter().any(|error| line.contains(error))
        };
        if results.iter().any(|(_, line)| failed(line)) {
            reported.files.insert(file);
        }
    }
    reported
}

fn archive(scene: &Scene, wrong: &mut Vec<String>) {
    let mut expected = BTreeMap::from([(".claimed/".to_owned(), String::new())]);
    expected.insert("processed/".to_owned(), String::new());
    for n in LEGS.into_iter().flatten() {
        expected.insert(format!("processed/r{n}.txt"), reply(n).to_owned());
    }
    let found = scene.files("inbox").into_iter();
    let found: BTreeMap<String, String> =
        found.map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned())).collect();
    if found != expected {
        wrong.push(format!("the inbox holds {:?}", found.keys().collect::<Vec<_>>()));
    }
    wrong.extend(strays(scene));
}

/// Temporary files that were left behind.
pub(crate) fn strays(scene: &Scene) -> Vec<String> {
    // What commands have for themselves is not ours: there lies what their workspace is mounted on.
    let own = format!("sessions/{ID}/");
    let others = [own.as_str(), "sessions/.probe/", "sessions/.gone-"];
    let names = scene.files(".").into_keys();
    let ours = names.filter(|name| !others.iter().any(|other| name.starts_with(other)));
    let strays = ours.filter(|name| name.contains(".tmp"));
    strays.map(|name| format!("{name} was left behind")).collect()
}

fn workspace(scene: &Scene, reference: &Reference, reported: &Reported, wrong: &mut Vec<String>) {
    let excused = |name: &str| {
        reported.lost.iter().any(|n| name == format!("ran-{n}"))
            || reported.files.iter().any(|file| *file == name)
            || (reported.files.contains("deep/b.txt") && name == "deep/")
    };
    let (mut found, mut expected) = (scene.files("workspace"), reference.workspace.clone());
    // A file that could not be changed holds what it held, or what it was to hold: never a part.
    for file in &reported.files {
        let whole =
            ["", "one\ntwo\nthree\n", "one\ntwo and\na half\nthree\n", "first\n", "second\n"];
        let whole = [&whole[..], &["zero\none\ntwo\nthree\n", "last\n"]].concat();
        let edited = "zero\none\ntwo and\na half\nthree\n";
        let text = found.get(*file).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        if text.is_some_and(|text| text != edited && !whole[1..].contains(&text.as_str())) {
            wrong.push(format!("{file} is torn"));
        }
    }
    found.retain(|name, _| !excused(name));
    expected.retain(|name, _| !excused(name));
    for name in found.keys().chain(expected.keys()).collect::<BTreeSet<_>>() {
        if found.get(name) != expected.get(name) {
            wrong.push(format!("{name} in the workspace is not what it should be"));
        }
    }
}

/// A text without what may differ.
fn masked(text: &str, reported: &Reported) -> String {
    let mut kept = String::new();
    let mut block: Option<String> = None;
    let mut is_about_file = false;
    for line in text.lines() {
        if let Some(end) = &block {
            if line.starts_with(end.as_str()) {
                block = None;
            }
            continue;
        }
        let lost =
            |n: &usize| line.contains(&format!("ran-{n}")) || line.contains(&format!("said-{n}"));
        if reported.lost.iter().any(lost) {
            continue;
        }
        // What a command did that was interrupted, or in a turn that could not be kept, is its own affair.
        let by_commands = line.starts_with("Commands changed ");
        let differs = reported.not_kept || !reported.lost.is_empty() || !reported.files.is_empty();
        if by_commands && differs {
            continue;
        }
        if let Some(file) = reported.files.iter().find(|file| line.contains(**file)) {
            if line.starts_with("--- ") {
                block = Some(format!("--- end {file}"));
            }
            is_about_file = true;
            continue;
        }
        // What an edit shows of it.
        let number = line.trim_start().split_once('|').map(|(number, _)| number);
        is_about_file &= number.is_some_and(|number| number.parse::<usize>().is_ok());
        if is_about_file {
            continue;
        }
        // A failure can take away the only block of its section.
        if reported.files.is_empty() || !(line.starts_with("## ") || line.is_empty()) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn compare_outboxes(
    scene: &Scene,
    reference: &Reference,
    reported: &Reported,
    wrong: &mut Vec<String>,
) {
    let found = outboxes(scene);
    if !found.keys().eq(reference.outboxes.keys()) {
        wrong.push(format!("the outbox holds {:?}", found.keys().collect::<Vec<_>>()));
    }
    for (name, expected) in &reference.outboxes {
        let Some(text) = found.get(name) else { continue };
        let (text, expected) = (masked(text, reported), masked(expected, reported));
        let other = text.lines().zip(expected.lines()).find(|(a, b)| a != b);
        if text != expected {
            wrong.push(format!("{name} is not what it should be: {other:?}"));
        }
    }
}

fn compare_session(
    scene: &Scene,
    reference: &Reference,
    reported: &Reported,
    wrong: &mut Vec<String>,
) {
    let found = session(scene);
    let same = ["sequenceNumber", "isComplete", "summary", "lastReply", "said", "secret", "task"];
    for key in same {
        if found[key] != reference.session[key] {
            wrong.push(format!("the session's {key} is {}", found[key]));
        }
    }
    let told = |session: &Value| {
        let results = session["lastResults"].as_array().cloned().unwrap_or_default();
        let lines =
            results.iter().map(|r| format!("{} {} {}\n", r["command"], r["success"], r["summary"]));
        masked(&lines.collect::<String>(), reported)
    };
    if told(&found) != told(&reference.session) {
        wrong.push(format!("the session's results are {}", told(&found)));
    }
}

fn compare_log(scene: &Scene, reference: &Reference, reported: &Reported, wrong: &mut Vec<String>) {
    let of = |entry: &Value| {
        (entry["sequence"].clone(), entry["reply"].clone(), entry["commands"].clone())
    };
    let found = log(scene);
    if !found.iter().map(of).eq(reference.log.iter().map(of)) {
        wrong.push(format!("the log is {found:?}"));
        return;
    }
    if !reported.files.is_empty() {
        return;
    }
    for (turn, (found, expected)) in found.iter().zip(&reference.log).enumerate() {
        let lost = reported.lost.iter().filter(|n| TURN_OF[**n - 1] == turn + 1).count() as u64;
        if found["failed"].as_u64() != expected["failed"].as_u64().map(|failed| failed + lost) {
            wrong.push(format!("the log counts wrong: {found}"));
        }
    }
}
