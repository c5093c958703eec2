//! What happens in a session whose replies stop to ask, a stage a process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::scene::{Scene, Traced};
use crate::support::{ID, set_time};
use crate::verdict::session;

/// How many commands the replies hold; the n-th adds a line to `ran-n`.
pub(super) const COMMANDS: usize = 5;
/// The turn that the n-th command belongs to.
pub(super) const TURN_OF: [usize; COMMANDS] = [1, 1, 2, 2, 2];
/// The command that is asked about.
pub(super) const COMMAND: usize = 4;
/// What is asked about, by what it makes: once in the first reply, twice in the second.
pub(super) const ASKED: [&str; 3] = [".vscode/x.json", "ran-4", ".vscode/y.json"];
/// From each question to the next.
pub(super) const STAGES: usize = ASKED.len() + 1;
/// The outbox whose reply is carried out at the end of each stage.
pub(super) const REACHED: [usize; STAGES] = [1, 2, 2, 3];

pub(super) const REPLIES: [&str; 3] = [
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
pub(super) type Story = [(bool, Way); ASKED.len()];
pub(super) const STORIES: [Story; 2] = [
    [(true, Way::File), (false, Way::Typed), (true, Way::File)],
    [(false, Way::Typed), (true, Way::File), (false, Way::Typed)],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    File,
    Typed,
}

/// A session on its way.
pub(super) struct Asked {
    /// The decisions that were dropped, by the stage that they began.
    pub(super) given: BTreeMap<usize, String>,
    pub(super) scene: Scene,
    pub(super) story: Story,
    /// How many stages have begun.
    pub(super) begun: usize,
    /// What the person types in it.
    pub(super) typed: Vec<String>,
    /// What was asked before it.
    pub(super) question: Value,
    /// A decision that somebody still writes.
    pub(super) open: Option<File>,
}

/// What an undisturbed one leaves.
pub(super) struct Reference {
    pub(super) workspace: BTreeMap<String, Vec<u8>>,
    pub(super) outboxes: BTreeMap<String, String>,
    pub(super) session: Value,
    pub(super) log: Vec<Value>,
}

/// What says yes to whatever waits.
pub(super) const EARLY: &str = r#"{"type": "userMessage", "content": "approved"}"#;

pub(super) fn decision(id: &str, approved: bool) -> String {
    let word = if approved { "approved" } else { "denied" };
    format!("{{\"approval\": {{\"operationId\": \"{id}\", \"decision\": \"{word}\"}}}}\n")
}

impl Asked {
    pub(super) fn new(story: Story) -> Self {
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
    pub(super) fn decided(&self) -> Option<(bool, Way)> {
        self.begun.checked_sub(2).map(|n| self.story[n])
    }

    /// The decisions that were dropped so far.
    pub(super) fn dropped(&self) -> impl Iterator<Item = usize> {
        (1..self.begun).filter(|n| self.story[n - 1].1 == Way::File)
    }

    /// Another that is where this one is, before a stage.
    pub(super) fn again(&self) -> Self {
        let (scene, question) = (self.scene.again(), self.question.clone());
        Self { scene, question, given: self.given.clone(), typed: Vec::new(), open: None, ..*self }
    }

    pub(super) fn ask_for(&mut self, arguments: &[&str]) {
        self.scene.arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
    }

    /// Does what the person does before the next stage. Before each question a decision lies there
    /// that says yes to it, and is not finished when others are taken.
    pub(super) fn prepare(&mut self) {
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
    pub(super) fn go_on(&mut self) {
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

    pub(super) fn disturb(&mut self, injection: &str) -> Traced {
        let traced = self.scene.disturb(injection);
        self.look();
        traced
    }

    pub(super) fn go_to_the_end(&mut self) {
        self.go_on();
        while self.begun < STAGES {
            self.prepare();
            self.go_on();
        }
    }

    pub(super) fn wrong(&mut self, what: String) {
        self.scene.wrong.push(what);
    }
}
