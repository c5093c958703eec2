//! A session in which replies stop to ask, three times under one id, stopped anywhere: until the
//! person decides nothing of what is asked is done, and then what they decided, once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::scene::{Scene, Traced, can_trace};
use crate::support::{ID, set_time};
use crate::trace::{self, Point};
use crate::verdict::{ERRORS, LOST, log, one_more_start, outboxes, session, strays};
use crate::{Random, Tally, all, order, sample};

/// How many commands the replies hold; the n-th adds a line to `ran-n`.
const COMMANDS: usize = 5;
/// The turn that the n-th command belongs to.
const TURN_OF: [usize; COMMANDS] = [1, 1, 2, 2, 2];
/// The command that is asked about.
const COMMAND: usize = 4;
/// What is asked about, by what it makes: once in the first reply, twice in the second.
const ASKED: [&str; 3] = [".vscode/x.json", "ran-4", ".vscode/y.json"];
/// From each question to the next.
const STAGES: usize = ASKED.len() + 1;
/// The outbox whose reply is carried out at the end of each stage.
const REACHED: [usize; STAGES] = [1, 2, 2, 3];

const REPLIES: [&str; 3] = [
    r#"{"protocolVersion": "1.0", "operations": [
        {"type": "createFile", "path": "a.txt", "content": "one\n"},
        {"type": "shell", "command": "echo ran >> ran-1"},
        {"type": "createFile", "id": "asked", "path": ".vscode/x.json", "content": "{}\n"},
        {"type": "shell", "command": "echo ran >> ran-2; echo said"},
        {"type": "createFile", "path": "b.txt", "content": "two\n"}
    ]}"#,
    r#"{"protocolVersion": "1.0", "operations": [
        {"type": "editFile", "path": "a.txt", "edits": [{"oldContent": "one", "newContent": "1"}]},
        {"type": "shell", "command": "echo ran >> ran-3"},
        {"type": "shell", "id": "asked", "command": "echo ran >> ran-4; rm -f none"},
        {"type": "createFile", "id": "asked", "path": ".vscode/y.json", "content": "[]\n"},
        {"type": "shell", "command": "echo ran >> ran-5"},
        {"type": "readFile", "path": "a.txt"}
    ]}"#,
    r#"{"protocolVersion": "1.0", "operations": [
        {"type": "message", "id": "done", "content": "All of it"}
    ]}"#,
];

/// What the person says to the questions, and whether they drop a file that says so, or type it.
type Story = [(bool, Way); ASKED.len()];
const STORIES: [Story; 2] = [
    [(true, Way::File), (false, Way::Typed), (true, Way::File)],
    [(false, Way::Typed), (true, Way::File), (false, Way::Typed)],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    File,
    Typed,
}

/// A session on its way.
struct Asked {
    /// The decisions that were dropped, by the stage that they began.
    given: BTreeMap<usize, String>,
    scene: Scene,
    story: Story,
    /// How many stages have begun.
    begun: usize,
    /// What the person types in it.
    typed: Vec<String>,
    /// What was asked before it.
    question: Value,
    /// A decision that somebody still writes.
    open: Option<File>,
}

/// What an undisturbed one leaves.
struct Reference {
    workspace: BTreeMap<String, Vec<u8>>,
    outboxes: BTreeMap<String, String>,
    session: Value,
    log: Vec<Value>,
}

/// What says yes to whatever waits.
const EARLY: &str = r#"{"type": "userMessage", "content": "approved"}"#;

fn decision(id: &str, approved: bool) -> String {
    let word = if approved { "approved" } else { "denied" };
    format!("{{\"approval\": {{\"operationId\": \"{id}\", \"decision\": \"{word}\"}}}}\n")
}

impl Asked {
    fn new(story: Story) -> Self {
        let scene = Scene::new();
        let path = format!("sessions/{ID}.json");
        let mut session: Value = serde_json::from_str(&scene.base.read(&path)).unwrap();
        session["dialect"] = "operations".into();
        session["policy"] = "mine".into();
        scene.base.write(&path, serde_json::to_vec(&session).unwrap());
        let settings = "[policies.mine]\npreset = \"workspace\"\nshell.approval = [\"rm\"]\n";
        scene.base.write("deaddrop.toml", settings);
        fs::create_dir_all(scene.base.at("approvals")).unwrap();
        Self {
            scene,
            story,
            begun: 0,
            typed: Vec::new(),
            question: Value::Null,
            given: BTreeMap::new(),
            open: None,
        }
    }

    /// What was decided before this stage, and how.
    fn decided(&self) -> Option<(bool, Way)> {
        self.begun.checked_sub(2).map(|n| self.story[n])
    }

    /// The decisions that were dropped so far.
    fn dropped(&self) -> impl Iterator<Item = usize> {
        (1..self.begun).filter(|n| self.story[n - 1].1 == Way::File)
    }

    /// Another that is where this one is, before a stage.
    fn again(&self) -> Self {
        let (scene, question) = (self.scene.again(), self.question.clone());
        Self { scene, question, given: self.given.clone(), typed: Vec::new(), open: None, ..*self }
    }

    fn ask_for(&mut self, arguments: &[&str]) {
        self.scene.arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
    }

    /// Does what the person does before the next stage. Before each question a decision lies there
    /// that says yes to it, and is not finished when others are taken.
    fn prepare(&mut self) {
        let stage = self.begun;
        self.begun += 1;
        self.open = None;
        self.question = session(&self.scene)["pending"]["question"].clone();
        self.ask_for(&["resume", "--no-watch"]);
        let base = &self.scene.base;
        if stage == 0 {
            for (n, reply) in REPLIES.iter().enumerate() {
                let path = base.write("part", reply);
                set_time(&path, SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64 + 1));
                fs::rename(path, base.at(&format!("inbox/r{}.json", n + 1))).unwrap();
            }
        }
        if stage < ASKED.len() {
            let mut early = File::create(base.at(&format!("approvals/early{stage}.json"))).unwrap();
            early.write_all(EARLY.as_bytes()).unwrap();
            self.open = Some(early);
        }
        // The first is called as the reply calls it, the others by names that are none of its own.
        let id = self.question["id"].as_str().unwrap_or_default().to_owned();
        match self.decided() {
            Some((approved, Way::File)) => {
                let text = decision(&id, approved);
                let path = base.write("part", &text);
                self.given.insert(stage, text);
                fs::rename(path, base.at(&format!("approvals/d{stage}.json"))).unwrap();
            }
            Some((true, Way::Typed)) => self.ask_for(&["approve", &id]),
            Some((false, Way::Typed)) => self.ask_for(&["deny", &id, "--session", ID]),
            None => {}
        }
        self.typed = self.scene.arguments.clone();
    }

    /// Goes on to the end of the stage, undisturbed. What was typed and not begun is typed again.
    fn go_on(&mut self) {
        self.ask_for(&["resume", "--no-watch"]);
        self.scene.go_on();
        self.look();
        if self.decided().is_some_and(|(_, way)| way == Way::Typed)
            && session(&self.scene)["pending"]["question"] == self.question
        {
            self.scene.arguments.clone_from(&self.typed);
            self.scene.go_on();
            self.look();
            self.ask_for(&["resume", "--no-watch"]);
            self.scene.go_on();
            self.look();
        }
        // Here it stands, whatever was before.
        let now = session(&self.scene);
        let question = &now["pending"]["question"];
        let asks = question["id"].is_string() && *question != self.question;
        if now["sequenceNumber"] != REACHED[self.begun - 1] || asks != (self.begun < STAGES) {
            let how = format!("at {}, asking {question}", now["sequenceNumber"]);
            self.wrong(format!("stage {} ended {how}", self.begun));
        }
    }

    fn disturb(&mut self, injection: &str) -> Traced {
        let traced = self.scene.disturb(injection);
        self.look();
        traced
    }

    fn go_to_the_end(&mut self) {
        self.go_on();
        while self.begun < STAGES {
            self.prepare();
            self.go_on();
        }
    }

    fn wrong(&mut self, what: String) {
        self.scene.wrong.push(what);
    }

    /// What must hold at any moment.
    fn look(&mut self) {
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
    fn judge(&mut self, reference: &Reference) -> BTreeSet<usize> {
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
    fn commands(&self, wrong: &mut Vec<String>) -> BTreeSet<usize> {
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

    fn put_away(&self, wrong: &mut Vec<String>) {
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

fn folder(name: &str) -> (String, String) {
    (name.to_owned(), String::new())
}

impl Reference {
    fn of(scene: &Scene) -> Self {
        let (workspace, outboxes) = (scene.files("workspace"), outboxes(scene));
        Self { workspace, outboxes, session: session(scene), log: log(scene) }
    }

    fn compare(&self, expected: &Self, lost: &BTreeSet<usize>, wrong: &mut Vec<String>) {
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
fn masked(text: &str, lost: &BTreeSet<usize>) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        if lost.iter().any(|n| line.contains(&format!("ran-{n}"))) {
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

/// A story as it is undisturbed.
struct Told {
    story: Story,
    reference: Reference,
    /// The points to stop it at, by stage.
    points: Vec<(usize, Point)>,
    /// It, before each stage.
    stages: Vec<Asked>,
}

/// The stories, shared by the tests that run at one time; nothing where a run cannot be watched.
fn stories() -> Option<Arc<Vec<Told>>> {
    static TOLD: Mutex<Weak<Vec<Told>>> = Mutex::new(Weak::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(told) = told.upgrade() {
        return Some(told);
    }
    let new = Arc::new(STORIES.into_iter().map(undisturbed).collect::<Option<Vec<Told>>>()?);
    *told = Arc::downgrade(&new);
    Some(new)
}

fn undisturbed(story: Story) -> Option<Told> {
    if !can_trace() {
        return None;
    }
    let mut asked = Asked::new(story);
    let (mut points, mut stages) = (Vec::new(), Vec::new());
    for stage in 0..STAGES {
        stages.push(asked.again());
        asked.prepare();
        let trace = asked.scene.go_on_traced();
        asked.look();
        let found = trace::points(&trace::read(&trace), asked.scene.base.path());
        assert!(found.iter().any(|point| point.touches));
        // Up to the first question all stories are one.
        if stage > 0 || story == STORIES[0] {
            let found = trace::own(found, stage == 0).into_iter();
            points.extend(found.map(|point| (stage, point)));
        }
        asked.go_on();
    }
    let reference = Reference::of(&asked.scene);
    let lost = asked.judge(&reference);
    assert!(asked.scene.wrong.is_empty() && lost.is_empty(), "{:#?}", asked.scene.wrong);
    if !points.iter().any(|(_, point)| point.what.ends_with("/sessions/journal")) {
        eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
        return None;
    }
    Some(Told { story, reference, points, stages })
}

/// A story that is disturbed once, in this stage.
fn disturbed(told: &Told, stage: usize, injection: &str) -> (Asked, Traced) {
    let mut asked = told.stages[stage].again();
    asked.prepare();
    let traced = asked.disturb(injection);
    (asked, traced)
}

#[test]
fn killed_at_any_call_what_is_asked_is_done_as_it_is_decided() {
    let mut tally = Tally::default();
    let Some(stories) = stories() else { return };
    for (which, told) in stories.iter().enumerate() {
        let Told { story, reference, points, .. } = told;
        for (stage, point) in sample(&points[which..], 37) {
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let (mut asked, traced) = disturbed(told, stage, &kill);
            tally.count("killed", usize::from(traced.killed));
            asked.go_to_the_end();
            tally.count("commands interrupted", asked.judge(reference).len());
            if !traced.killed && (point.touches || !traced.run.went_well()) {
                asked.wrong(format!("was not killed: {:?}", traced.run));
            }
            tally.add(
                &format!("{story:?}, stage {stage}, {} ({})", point.n, point.what),
                &asked.scene,
            );
        }
    }
    tally.conclude("kill points of replies that ask");
}

#[test]
fn killed_several_times_what_is_asked_is_done_as_it_is_decided() {
    let mut tally = Tally::default();
    let Some(stories) = stories() else { return };
    // A point can lie behind the end of a recovery: runs with a single kill are not counted.
    let (runs, mut seed) = (if all() { 60 } else { 3 }, 0);
    while tally.tried < runs {
        seed += 1;
        let mut random = Random::new(seed);
        let Told { story, reference, points, .. } = &stories[random.below(2)];
        let (mut asked, mut places) = (Asked::new(*story), Vec::new());
        let wanted = 2 + random.below(3);
        let first = random.below(STAGES);
        for stage in 0..STAGES {
            asked.prepare();
            let points: Vec<&Point> =
                points.iter().filter(|p| p.0 == stage).map(|p| &p.1).collect();
            while stage >= first && !points.is_empty() && asked.scene.stops < wanted {
                // A recovery has fewer calls than what it recovers from.
                let left = points.len() / if asked.scene.stops == 0 { 1 } else { 2 };
                let point = points[random.below(left)];
                let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
                let traced = asked.disturb(&kill);
                asked.scene.told.push_str(&traced.run.stderr);
                if !traced.killed {
                    break;
                }
                places.push(format!("stage {stage}, {} ({})", point.n, point.what));
                asked.ask_for(&["resume", "--no-watch"]);
            }
            asked.go_on();
        }
        if asked.scene.stops < 2 && asked.scene.wrong.is_empty() {
            continue;
        }
        tally.count(&format!("with {} kills", asked.scene.stops), 1);
        tally.count("commands interrupted", asked.judge(reference).len());
        tally.add(&format!("seed {seed}, {story:?}, {places:?}"), &asked.scene);
    }
    tally.conclude("runs with several kills of replies that ask");
}

#[test]
fn an_error_of_the_disk_decides_nothing() {
    let errors = [("ENOSPC", ERRORS[0]), ("EIO", ERRORS[1])];
    let mut tally = Tally::default();
    let Some(stories) = stories() else { return };
    for told in &stories[1..] {
        let Told { story, reference, points, .. } = told;
        let touching = points.iter().filter(|(_, p)| p.touches && !p.is_for_commands()).cloned();
        let cases: Vec<_> = touching.zip(errors.into_iter().cycle()).collect();
        for ((stage, point), (error, words)) in sample(&cases, 31) {
            let inject = format!("{}:error={error}:when={}", point.name, point.n);
            let (mut asked, traced) = disturbed(told, stage, &inject);
            let run = traced.run;
            let (stopped, well) =
                (run.code == Some(1) && run.stderr.contains(words), run.went_well());
            if well {
                asked.scene.stops = 0;
            }
            asked.go_to_the_end();
            // What could not be done to a file is a result.
            let mut told = outboxes(&asked.scene).into_values();
            let reported = well && told.any(|text| text.contains(words));
            if reported {
                tally.count("reported", 1);
                let mut wrong = strays(&asked.scene);
                asked.put_away(&mut wrong);
                asked.scene.wrong.append(&mut wrong);
            } else {
                asked.judge(reference);
                tally.count(if stopped { "stopped" } else { "harmless" }, 1);
            }
            if !(stopped || reported || well && point.is_harmless()) {
                asked.wrong(format!("the error was passed over: {run:?}"));
            }
            tally.add(
                &format!("{story:?}, stage {stage}, {error} at {} ({})", point.n, point.what),
                &asked.scene,
            );
        }
    }
    tally.conclude("error points of replies that ask");
}

#[test]
fn what_is_asked_and_decided_is_synced_before_what_follows() {
    let mut tally = Tally::default();
    let mut seen = BTreeMap::new();
    let Some(stories) = stories() else { return };
    for (which, told) in stories.iter().enumerate() {
        let Told { story, points, .. } = told;
        let mut asked = Asked::new(*story);
        for _ in 0..STAGES {
            asked.prepare();
            asked.check_order(&mut seen);
            asked.go_on();
        }
        tally.add(&format!("{story:?}, undisturbed"), &asked.scene);
        let dropped = asked.dropped().count();
        for (what, least) in
            [("questions", 3), ("refused early", 3), ("decisions archived", dropped)]
        {
            let found = seen.get(what).copied().unwrap_or_default();
            assert!(found >= least, "{found} {what}");
        }
        let points: Vec<_> = points.iter().skip(which).step_by(7).cloned().collect();
        for (stage, point) in sample(&points, 17) {
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let (mut asked, _) = disturbed(told, stage, &kill);
            asked.ask_for(&["resume", "--no-watch"]);
            asked.check_order(&mut seen);
            tally.add(
                &format!("{story:?}, after {stage}, {} ({})", point.n, point.what),
                &asked.scene,
            );
        }
    }
    tally.counts.extend(seen.into_iter().map(|(what, n)| (what.to_owned(), n)));
    tally.conclude("orders of syncs of replies that ask");
}

impl Asked {
    fn check_order(&mut self, seen: &mut BTreeMap<&'static str, usize>) {
        let trace = self.scene.go_on_traced();
        self.look();
        let base = self.scene.base.path().to_string_lossy().into_owned();
        self.scene.wrong.extend(order::check(&trace::read(&trace), &base, seen));
    }
}
