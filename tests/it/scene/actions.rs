//! Executes operations in the way of a scene, in a process of its own. No reply can request these operations.

use std::fs;
use std::process::Stdio;

use deaddrop::executor::{Executor, LocalExecutor};
use deaddrop::policy::Grant;
use deaddrop::protocol::{Detail, Ending, Execution, Operation, ShellCommand, Warning};
use deaddrop::runner::Runner;
use deaddrop::settings::{Sandbox, SandboxMode};
use deaddrop::workspace::Workspace;
use deaddrop::workspace::protected::{Protection, Quarantine};
use serde::{Deserialize, Serialize};

use super::{Asked, Scene, Walls, Way};

/// Says where the actions are.
const VARIABLE: &str = "DEADDROP_TEST_DEEDS";
/// What nobody but the person may write.
pub const PROTECTED: [&str; 4] = [".git", ".vscode", ".envrc", ".idea"];

/// What is to be done in one turn.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Actions {
    pub operations: Vec<(Operation, Grant)>,
    /// What the settings say of the network, and what is said of these commands.
    pub settings: bool,
    pub network: Option<bool>,
    /// Said by the scene.
    pub mode: String,
    pub helper: std::path::PathBuf,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    tier: String,
    pub details: Vec<Detail>,
    /// What was noticed of each, and at the end.
    pub noticed: Vec<Vec<Warning>>,
}

impl Actions {
    /// These commands, each with what is opened for it.
    pub fn of<'a>(commands: impl IntoIterator<Item = (&'a str, Grant)>) -> Self {
        let run = |(command, opens)| (Operation::Run(ShellCommand::new(command)), opens);
        Self { operations: commands.into_iter().map(run).collect(), ..Self::default() }
    }
}

impl Done {
    /// How the commands went.
    pub fn executions(&self) -> Vec<&Execution> {
        fn ran(detail: &Detail) -> Option<&Execution> {
            match detail {
                Detail::Ran(execution) => Some(execution),
                _ => None,
            }
        }
        self.details.iter().filter_map(ran).collect()
    }

    pub fn succeeded(&self) -> Vec<bool> {
        self.executions().iter().map(|ran| ran.ending == Ending::Exited(0)).collect()
    }

    /// All that was noticed.
    pub fn told(&self) -> Vec<&str> {
        self.noticed.iter().flatten().map(|warning| &*warning.text).collect()
    }
}

impl Scene {
    /// Does these in a process of its own, as whom the scene runs.
    #[track_caller]
    pub fn perform(&self, mut actions: Actions) -> Done {
        actions.mode = format!("{:?}", self.asked);
        actions.helper.clone_from(&self.program);
        let tests = self.base.at("tests");
        if !tests.exists() {
            super::put("tests", &std::env::current_exe().unwrap(), &tests);
        }
        let file = self.base.write("actions.json", serde_json::to_string(&actions).unwrap());
        self.hand_over();
        let arguments = ["--exact", "scene::actions::does_as_a_scene_asks", "--ignored"];
        let output = self
            .command(&tests, &arguments)
            .env(VARIABLE, file)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {output:?}", self.name());
        let done: Done = serde_json::from_str(&self.base.read("done.json")).unwrap();
        let tier = match self.walls() {
            Walls::Full => "full",
            Walls::Bwrap => "full (bwrap)",
            Walls::Partial => "partial",
            Walls::OpenNamespace | Walls::OpenSubreaper => "off",
        };
        assert_eq!(done.tier, tier, "{}", self.name());
        done
    }

    /// Every sandbox, and none.
    pub fn everywhere() -> impl Iterator<Item = Self> {
        let open = [Way::AsItIs, Way::OrdinaryUser].into_iter();
        Self::confined().chain(open.filter_map(|way| Self::with(way, Asked::Off)))
    }
}

#[test]
#[ignore = "a part of other tests, run by them in a process of its own"]
fn does_as_a_scene_asks() {
    let Some(file) = std::env::var_os(VARIABLE).map(std::path::PathBuf::from) else { return };
    let actions: Actions = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let base = file.parent().unwrap().canonicalize().unwrap();
    let mode = match &*actions.mode {
        "Auto" => SandboxMode::Auto,
        "Bwrap" => SandboxMode::Bwrap,
        "Partial" => SandboxMode::Partial,
        _ => SandboxMode::Off,
    };
    let settings = Sandbox { mode, network: actions.settings, ..Sandbox::default() };
    let names = PROTECTED.map(str::to_owned);
    let workspace = Workspace::open(&base.join("workspace"), &[], &names).unwrap();
    let runner = Runner::new(actions.helper, workspace.path().to_owned(), settings);
    let own = base.join("own");
    let protection = Protection::new(Quarantine::new(base.join("sessions"), "sessions", "turn"));
    let mut here = LocalExecutor::new(&workspace, &runner, &own, false, &|| false)
        .guarded(mode != SandboxMode::Off, protection);
    here.network = actions.network;
    let (mut details, mut noticed) = (Vec::new(), Vec::new());
    for (operation, opens) in actions.operations {
        details.push(here.perform(&operation, opens, &mut |_| Ok(())).unwrap());
        noticed.push(here.take_warnings());
    }
    noticed.push(here.finish().unwrap());
    let tier = runner.confinement(&own).tier.to_string();
    let done = serde_json::to_string(&Done { tier, details, noticed }).unwrap();
    fs::write(base.join("done.json"), done).unwrap();
}
