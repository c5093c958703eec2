//! A run of one message that stops to ask, stopped anywhere: where it is carried out, where the
//! person decides, and where it goes on.

use serde_json::Value;

use crate::scene::{Scene, Traced, can_trace};
use crate::support::ID;
use crate::trace::{self, Point};
use crate::verdict::{ERRORS, LOST, one_more_start, strays};
use crate::{Tally, sample};

const MESSAGE: &str = r#"{"protocolVersion": "1.0", "operations": [
    {"type": "createFile", "path": "a.txt", "content": "one\n"},
    {"type": "shell", "command": "echo ran >> ran-1"},
    {"type": "createFile", "id": "asked", "path": ".vscode/x.json", "content": "{}\n"},
    {"type": "shell", "command": "echo ran >> ran-2"},
    {"type": "createFile", "path": "b.txt", "content": "two\n"}
]}"#;
const FILE: &str = "workspace/.vscode/x.json";
/// Processes, one after the other: up to the question, the decision, to the end.
const STAGES: usize = 3;
/// What the person says.
const DECISIONS: [bool; 2] = [true, false];

/// A run on its way.
struct Asked {
    scene: Scene,
    approved: bool,
    /// How many stages have begun.
    begun: usize,
    /// The events that were printed last.
    events: Value,
}

impl Asked {
    fn new(approved: bool) -> Self {
        let scene = Scene::new();
        scene.base.write("message.json", MESSAGE);
        Self { scene, approved, begun: 0, events: Value::Null }
    }

    /// The only run there is, if there is one.
    fn stem(&mut self) -> Option<String> {
        let names = self.scene.base.names("sessions").into_iter();
        let runs = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned));
        let mut runs: Vec<String> = runs.filter(|name| name.starts_with("run_")).collect();
        if runs.len() > 1 {
            self.wrong(format!("there are {runs:?}"));
        }
        runs.pop()
    }

    fn state(&mut self) -> Value {
        let Some(stem) = self.stem() else { return Value::Null };
        serde_json::from_str(&self.scene.base.read(&format!("sessions/{stem}.json"))).unwrap()
    }

    fn ask_for(&mut self, arguments: &[&str]) {
        self.scene.arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
    }

    /// What the person types in this stage.
    fn prepare(&mut self) {
        let stem = self.stem().unwrap_or_default();
        let verb = if self.approved { "approve" } else { "deny" };
        match self.begun {
            0 => self.ask_for(&["ops", "run", "--policy", "workspace", "message.json"]),
            1 => self.ask_for(&[verb, "asked", "--session", &stem]),
            _ => self.ask_for(&["ops", "run", "--resume", &stem]),
        }
        self.begun += 1;
    }

    /// Whether a stage has come to what it is to come to.
    fn has_done(&mut self) -> bool {
        let state = self.state();
        let decided = state["pending"]["decision"] != Value::Null;
        match self.begun {
            1 => state["pending"] != Value::Null,
            2 => decided,
            _ => state["isComplete"] == true && state["pending"] == Value::Null,
        }
    }

    /// After a stop the next start finishes what was begun; the person types again what was not.
    fn go_on(&mut self) {
        let typed = self.scene.arguments.clone();
        self.ask_for(&["resume", "--no-watch"]);
        self.scene.go_on();
        self.look();
        self.scene.arguments = typed;
        if self.has_done() && self.begun < STAGES {
            return;
        }
        self.do_it();
    }

    /// Does what is typed, undisturbed.
    fn do_it(&mut self) {
        let traced = self.scene.traced(None);
        self.scene.told.push_str(&traced.run.stderr);
        self.events = serde_json::from_str(&traced.run.stdout).unwrap_or_default();
        let expected = if self.begun == 1 { 3 } else { 0 };
        if traced.run.code != Some(expected) || !self.has_done() {
            self.wrong(format!("stage {} ended with {:?}", self.begun, traced.run));
        }
        self.look();
    }

    fn go_to_the_end(&mut self) {
        self.go_on();
        while self.begun < STAGES {
            self.prepare();
            self.do_it();
        }
    }

    fn wrong(&mut self, what: String) {
        self.scene.wrong.push(what);
    }

    /// What must hold at any moment.
    fn look(&mut self) {
        let (goes_on, approved) = (self.begun == STAGES, self.approved);
        for (done, may) in [(FILE, approved), ("workspace/ran-2", true), ("workspace/b.txt", true)]
        {
            if self.scene.base.exists(done) && !(goes_on && may) {
                self.wrong(format!("{done} is there in stage {}", self.begun));
            }
        }
        let outboxes = self.scene.base.names("outbox");
        if outboxes != [format!("{ID}_seq0001.txt")] {
            self.wrong(format!("the outbox holds {outboxes:?}"));
        }
    }

    /// What came of all of it; gives how many commands were interrupted.
    fn judge(&mut self) -> usize {
        let mut wrong = strays(&self.scene);
        let files = self.scene.files("workspace");
        let text = |name: &str| files.get(name).map(|bytes| String::from_utf8_lossy(bytes));
        for (name, expected) in [("a.txt", "one\n"), ("b.txt", "two\n")] {
            if text(name).as_deref() != Some(expected) {
                wrong.push(format!("{name} is {:?}", text(name)));
            }
        }
        let expected = self.approved.then_some("{}\n");
        if text(".vscode/x.json").as_deref() != expected {
            wrong.push(format!("what was asked about is {:?}", text(".vscode/x.json")));
        }
        let state = self.state();
        let results = state["lastResults"].as_array().cloned().unwrap_or_default();
        let mut lost = 0;
        for mark in ["ran-1", "ran-2"] {
            let ran = text(mark).map_or(0, |text| text.lines().count());
            let told = results.iter().map(|result| result["summary"].to_string());
            match told.filter(|told| told.contains(mark)).collect::<Vec<_>>().as_slice() {
                [told] if told.contains("(exit code 0)") && ran == 1 => {}
                [told] if told.contains(LOST) && ran < 2 => lost += 1,
                told => wrong.push(format!("{mark} ran {ran} times, and is told as {told:?}")),
            }
        }
        if results.len() != 5 || lost > self.scene.stops {
            wrong.push(format!("the results are {results:?}"));
        }
        // What came before the question was told with it.
        let events = self.events["events"].as_array().map_or(0, Vec::len);
        if self.events["status"] != "completed" || events != 3 {
            wrong.push(format!("the events are {}", self.events));
        }
        // Whoever asks once more is told the same.
        let before = self.events.clone();
        self.do_it();
        if self.events != before {
            wrong.push(format!("the events are {} later", self.events));
        }
        self.ask_for(&["resume", "--no-watch"]);
        wrong.append(&mut one_more_start(&mut self.scene));
        self.scene.wrong.append(&mut wrong);
        lost
    }
}

fn undisturbed(approved: bool) -> Option<Vec<(usize, Point)>> {
    if !can_trace() {
        return None;
    }
    let mut asked = Asked::new(approved);
    let mut points = Vec::new();
    for stage in 0..STAGES {
        asked.prepare();
        let traced = asked.scene.traced(None);
        asked.events = serde_json::from_str(&traced.run.stdout).unwrap_or_default();
        let found = trace::points(&trace::read(&traced.trace), asked.scene.base.path());
        // Up to the decision all runs are one.
        if stage > 0 || approved {
            let found = trace::own(found, stage == 0).into_iter();
            points.extend(found.map(|point| (stage, point)));
        }
        assert!(asked.has_done(), "{:?}", traced.run);
        asked.look();
    }
    assert_eq!((asked.judge(), &asked.scene.wrong), (0, &Vec::new()));
    if !trace::sees_paths(points.iter().map(|(_, point)| point)) {
        return None;
    }
    Some(points)
}

/// A run that is disturbed once, in this stage.
fn disturbed(approved: bool, stage: usize, injection: &str) -> (Asked, Traced) {
    let mut asked = Asked::new(approved);
    for _ in 0..stage {
        asked.prepare();
        asked.do_it();
    }
    asked.prepare();
    let traced = asked.scene.disturb(injection);
    asked.look();
    (asked, traced)
}

#[test]
fn a_run_is_decided_and_goes_on_once_wherever_it_is_killed() {
    let mut tally = Tally::default();
    for (which, approved) in DECISIONS.into_iter().enumerate() {
        let Some(points) = undisturbed(approved) else { return };
        for (stage, point) in sample(&points[which..], 23) {
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let (mut asked, traced) = disturbed(approved, stage, &kill);
            tally.count("killed", usize::from(traced.killed));
            asked.scene.must_be_killed(&traced, &point);
            asked.go_to_the_end();
            tally.count("commands interrupted", asked.judge());
            let place = format!("{approved}, stage {stage}, {} ({})", point.n, point.what);
            tally.add(&place, &asked.scene);
        }
    }
    tally.conclude("kill points of a run that asks");
}

#[test]
fn an_error_of_the_disk_stops_a_run_and_decides_nothing() {
    let errors = [("ENOSPC", ERRORS[0]), ("EIO", ERRORS[1])];
    let mut tally = Tally::default();
    let Some(points) = undisturbed(true) else { return };
    let touching = points.into_iter().filter(|(_, p)| p.touches && !p.is_for_commands());
    let cases: Vec<_> = touching.zip(errors.into_iter().cycle()).collect();
    for ((stage, point), (error, words)) in sample(&cases, 31) {
        let inject = format!("{}:error={error}:when={}", point.name, point.n);
        let (mut asked, traced) = disturbed(true, stage, &inject);
        let run = traced.run;
        // What could not be done to a file is a result. Where the disk was full, it ends the run;
        // else it is that file's alone, as where the disk did not confirm it.
        if run.stdout.contains(words) {
            tally.count("reported", 1);
            let is_over = run.code == Some(1) && asked.state()["isComplete"] == true;
            let confirmed = !run.stdout.contains("the disk did not confirm it");
            if error == "ENOSPC" && confirmed && !is_over {
                asked.wrong(format!("a full disk did not end the run: {run:?}"));
            }
        } else {
            let stopped = run.code == Some(1) && run.stderr.contains(words);
            tally.count(if stopped { "stopped" } else { "harmless" }, 1);
            if !stopped && !point.is_harmless() {
                asked.wrong(format!("the error was passed over: {run:?}"));
            }
            asked.go_to_the_end();
            asked.judge();
        }
        tally.add(&format!("stage {stage}, {error} at {} ({})", point.n, point.what), &asked.scene);
    }
    tally.conclude("error points of a run that asks");
}
