//! A guest in a folder of its own, driven through the library, and steps that are carried out in it:
//! here, or by a process that can be killed.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use deaddrop::protocol::jsonrpc::{Done, Method, ResultParams, RpcError, State, StepParams};
use deaddrop::protocol::{
    Detail, Ending, Existing, Operation, RelPath, ShellCommand, TextOrBytes, Warning,
};
use deaddrop::rpc::{Given, Served, Service, Serving};
use deaddrop::runner::Runner;
use deaddrop::settings::{Policy, Sandbox, SandboxMode};
use deaddrop::watch::Stop;
use deaddrop::workspace::Workspace;

use crate::support::{Project, has_sandbox, program};

/// Tell a process of its own which guest it is, and what to do.
const BASE: &str = "DEADDROP_TEST_GUEST";
const STEP: &str = "DEADDROP_TEST_STEP";
/// What it says before the state that a step came to.
const SAID: &str = "came to: ";

/// The folders of a guest.
pub struct Guest {
    pub base: Project,
}

impl Guest {
    pub fn new() -> Self {
        let base = Project::new();
        fs::create_dir(base.at("workspace")).unwrap();
        fs::create_dir(base.at("state")).unwrap();
        Self { base }
    }

    pub fn served(&self) -> Served {
        served(self.base.path(), None)
    }

    pub fn ruled(&self, policy: &str) -> Served {
        served(self.base.path(), Policy::preset(policy))
    }

    /// The file of a step.
    pub fn record(&self, key: &str) -> PathBuf {
        self.base.at(&format!("state/steps/step_{key}"))
    }

    /// A process that carries out a step: this program again, with arguments that bring it there.
    pub fn process(&self, arguments: &[&str], asked: &StepParams) -> Command {
        self.process_of(arguments, std::slice::from_ref(asked))
    }

    /// The same of several, each begun when the one before is noted.
    pub fn process_of(&self, arguments: &[&str], asked: &[StepParams]) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(arguments);
        command.env(BASE, self.base.path()).env(STEP, serde_json::to_string(asked).unwrap());
        // Found out here once, and told to all.
        command.env("DEADDROP_TEST_MODE", if has_sandbox("auto") { "auto" } else { "off" });
        command
    }

    /// How many lines a file of the workspace has; 0 where there is none.
    pub fn lines(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.base.at(&format!("workspace/{name}")));
        text.map_or(0, |text| text.lines().count())
    }
}

/// Whether this is such a process.
pub fn is_wanted() -> bool {
    env::var_os(STEP).is_some()
}

/// What the process does that [`Guest::process`] starts.
pub fn carry_out() {
    let (Ok(base), Ok(asked)) = (env::var(BASE), env::var(STEP)) else {
        eprintln!("SKIPPED: this is what other tests start");
        return;
    };
    let asked: Vec<StepParams> = serde_json::from_str(&asked).unwrap();
    let served = served(Path::new(&base), None);
    let record = |key: &str| Path::new(&base).join(format!("state/steps/step_{key}"));
    thread::scope(|scope| {
        let (asked, served, record) = (&asked, &served, &record);
        for (before, next) in asked.iter().zip(&asked[1..]) {
            scope.spawn(move || {
                // Nothing but a kill ends this if it never is.
                while !fs::read(record(&before.key)).is_ok_and(|bytes| bytes.contains(&b'\n')) {
                    thread::sleep(Duration::from_millis(2));
                }
                step(served, next.clone()).unwrap();
            });
        }
        // In this thread, which is the one that may be watched.
        let state = step(served, asked[0].clone());
        println!("{SAID}{}", serde_json::to_string(&state.unwrap()).unwrap());
    });
}

/// What such a process said.
pub fn said(stdout: &[u8]) -> Option<State> {
    let text = String::from_utf8_lossy(stdout);
    let (_, state) = text.split_once(SAID)?;
    serde_json::from_str(state.lines().next()?).ok()
}

fn served(base: &Path, policy: Option<Policy>) -> Served {
    let (root, state) = (base.join("workspace"), base.join("state"));
    let mode = env::var("DEADDROP_TEST_MODE").map_or_else(|_| has_sandbox("auto"), |m| m == "auto");
    let mode = if mode { SandboxMode::Auto } else { SandboxMode::Off };
    let names = [".git", ".vscode"].map(str::to_owned);
    let workspace = Workspace::open(&root, std::slice::from_ref(&state), &names).unwrap();
    let settings = Sandbox { mode, ..Sandbox::default() };
    let mut runner = Runner::new(program().to_owned(), workspace.path().to_owned(), settings);
    runner.hidden.push(state.clone());
    let scratch_dir = state.join("own");
    let timeout = Duration::from_secs(25);
    let serving =
        Serving { workspace, runner, timeout, policy, scratch_dir, state, stop: Stop::default() };
    Served::new(serving).unwrap()
}

pub fn asked(key: &str, operation: Operation) -> StepParams {
    StepParams {
        key: key.to_owned(),
        operation,
        protected: false,
        repository: false,
        network: None,
        output_limit: 4_000,
        state: None,
        own: None,
        settled: Vec::new(),
    }
}

pub fn run(key: &str, command: &str) -> StepParams {
    asked(key, Operation::Run(ShellCommand::new(command)))
}

pub fn create(key: &str, path: &str, text: &str) -> StepParams {
    let (path, content) = (RelPath::parse(path).unwrap(), TextOrBytes::from(text));
    asked(key, Operation::Create { path, content, existing: Existing::Replace })
}

pub fn step(served: &Served, asked: StepParams) -> Result<State, RpcError> {
    match served.call(Method::Step(Box::new(asked)))? {
        Given::Step(state) => Ok(state),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub fn result(served: &Served, key: &str) -> State {
    match served.call(Method::Result(ResultParams { key: key.to_owned(), state: None })) {
        Ok(Given::Step(state)) => state,
        other => panic!("{other:?}"),
    }
}

/// How a command ended that a step has run, and what is told beside it.
#[track_caller]
pub fn ended(state: State) -> (Ending, Vec<Warning>) {
    match state {
        State::Done(Done { detail: Detail::Ran(execution), warnings }) => {
            (execution.ending, warnings)
        }
        other => panic!("{other:?}"),
    }
}
