//! The six methods of bouvet-agent, carried out by the server's own hands: no transport between.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deaddrop::protocol::jsonrpc::{ExecResult, Method, RpcError};
use deaddrop::rpc::{Served, Service, Serving};
use deaddrop::runner::Runner;
use deaddrop::settings::{Policy, Sandbox, SandboxMode};
use deaddrop::watch::Stop;
use deaddrop::workspace::Workspace;
use serde_json::{Value, json};

use crate::support::{Project, has_sandbox, program};

mod commands;
mod files;
mod side_by_side;

/// A folder that is served.
pub struct Scene {
    pub base: Project,
    pub served: Served,
    pub stop: Stop,
}

/// How it is to be served.
pub struct Setup {
    pub mode: SandboxMode,
    pub root: Option<PathBuf>,
    pub policy: Option<Policy>,
    pub timeout: Duration,
    pub env: Vec<(String, Option<String>)>,
    pub helper: PathBuf,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: SandboxMode::Off,
            root: None,
            policy: None,
            timeout: Duration::from_secs(25),
            env: Vec::new(),
            helper: program().to_owned(),
        }
    }
}

impl Setup {
    /// In the sandbox; None where there is none, which is said.
    pub fn confined() -> Option<Self> {
        has_sandbox("auto").then(|| Self { mode: SandboxMode::Auto, ..Self::default() })
    }

    /// By this preset.
    pub fn with_policy(name: &str) -> Self {
        Self { policy: Policy::preset(name), ..Self::default() }
    }

    pub fn serve(self) -> Scene {
        let base = Project::new();
        for folder in ["root", "state"] {
            fs::create_dir(base.at(folder)).unwrap();
        }
        let root = self.root.unwrap_or_else(|| base.at("root"));
        let state = base.at("state").canonicalize().unwrap();
        let names = [".git", ".bashrc"].map(str::to_owned);
        let workspace = Workspace::open(&root, std::slice::from_ref(&state), &names).unwrap();
        let settings = Sandbox { mode: self.mode, env: self.env, ..Sandbox::default() };
        let mut runner = Runner::new(self.helper, workspace.path().to_owned(), settings);
        runner.hidden = vec![state.clone()];
        let stop = Stop::default();
        let serving = Serving {
            workspace,
            runner,
            timeout: self.timeout,
            policy: self.policy,
            scratch_dir: state.join("own"),
            state,
            stop: stop.clone(),
        };
        Scene { base, served: Served::new(serving).unwrap(), stop }
    }
}

impl Scene {
    pub fn new() -> Self {
        Setup::default().serve()
    }

    /// The root's canonical path.
    pub fn root(&self) -> String {
        self.base.at("root").canonicalize().unwrap().into_os_string().into_string().unwrap()
    }

    /// What a request comes to, as it is sent.
    pub fn call(&self, method: Method) -> Result<Value, RpcError> {
        self.served.call(method).map(|given| serde_json::to_value(given).unwrap())
    }

    pub fn exec(&self, cmd: &str) -> ExecResult {
        let given = self.call(Method::Exec { cmd: cmd.to_owned() }).unwrap();
        serde_json::from_value(given).unwrap()
    }

    pub fn exec_code(&self, lang: &str, code: &str) -> ExecResult {
        let code = Method::ExecCode { lang: lang.to_owned(), code: code.to_owned() };
        serde_json::from_value(self.call(code).unwrap()).unwrap()
    }

    pub fn read(&self, path: &str) -> Result<String, RpcError> {
        let given = self.call(Method::ReadFile { path: path.to_owned() })?;
        Ok(given["content"].as_str().unwrap().to_owned())
    }

    pub fn write(&self, path: &str, content: &str) -> Result<Value, RpcError> {
        let (path, content) = (path.to_owned(), content.to_owned());
        self.call(Method::WriteFile { path, content })
    }

    pub fn list(&self, path: &str) -> Result<Value, RpcError> {
        self.call(Method::ListDir { path: path.to_owned() })
    }
}

/// That it failed, with this in the message.
#[track_caller]
pub fn assert_fault<T: std::fmt::Debug>(result: Result<T, RpcError>, holds: &[&str]) {
    let fault = result.unwrap_err();
    assert_eq!(fault.code, RpcError::INTERNAL, "{fault}");
    for part in holds {
        assert!(fault.message.contains(part), "no {part:?} in {fault}");
    }
}

#[test]
fn a_ping_is_answered() {
    assert_eq!(Scene::new().call(Method::Ping {}).unwrap(), json!({ "pong": true }));
}

#[test]
fn without_a_folder_for_its_state_nothing_is_served_that_would_need_it() {
    let Some(setup) = Setup::confined() else { return };
    let Scene { base, .. } = setup.serve();
    let root = base.at("root");
    let serving = |mode: SandboxMode| Serving {
        workspace: Workspace::open(&root, &[], &[]).unwrap(),
        runner: {
            let settings = Sandbox { mode, ..Sandbox::default() };
            Runner::new(program().to_owned(), root.canonicalize().unwrap(), settings)
        },
        timeout: Duration::from_secs(1),
        policy: None,
        scratch_dir: base.at("state/other"),
        state: Path::new("/nowhere").to_owned(),
        stop: Stop::default(),
    };
    let error = Served::new(serving(SandboxMode::Auto)).err().unwrap().to_string();
    assert!(error.contains("/nowhere"), "{error}");
    assert!(Served::new(serving(SandboxMode::Off)).is_ok());
}
