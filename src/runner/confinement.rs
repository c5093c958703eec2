//! Finds out once, by a probe that tries to get around them, which restrictions are available for commands. Then makes
//! the sandbox request for each command.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk_space::DiskMonitor;
use super::output_reader::OutputReader;
use super::sandbox::{
    Backend, CommandLimits, Confinement, HelperReport, MechanismSet, Mount, MountKind,
    SandboxRequest, Tier, View, make_own,
};
use super::waiting::GRACE;
use super::{CommandSpec, Runner, environment};
use crate::machine;
use crate::protocol::{CommandOutput, Ending, Execution, Streams};

/// The error for a command that cannot be confined.
const NO_SANDBOX: &str = "there is no sandbox on this machine, and the user has not allowed commands without one; the files of the workspace can be changed all the same";
/// The error for a command that must run without the network if there is no sandbox to enforce this.
const NO_WALL: &str = "it is to run without the network, and nothing here can keep it off: commands run with the user's own rights";

/// The time limit for all tools together to print their versions.
const TOOLS_TIME_LIMIT: Duration = Duration::from_secs(3);
/// The command that lists the newest commits, without fetching missing ones. Its time limit is the next constant.
const COMMITS: &str = "GIT_NO_LAZY_FETCH=1 git --no-pager -c core.quotePath=false log -n 500 --no-show-signature --no-merges --no-renames --relative --name-only --format='>%s' 2>/dev/null";
const COMMITS_TIME_LIMIT: Duration = Duration::from_secs(2);
/// The most characters that are kept of the output of an inspection script.
const MAX_SCRIPT_OUTPUT: usize = 400_000;

/// The most characters of a probe's output that are reported.
const MAX_PROBE_OUTPUT: usize = 300;

/// What the probe found out about this machine.
#[derive(Debug, Clone)]
pub(super) struct ProbeResult {
    pub(super) confinement: Confinement,
    pub(super) view: Option<View>,
}

/// The restrictions of one command.
pub(super) struct Restrictions<'a> {
    pub(super) backend: Backend,
    pub(super) view: Option<&'a View>,
}

impl Runner {
    /// What confines commands on this machine. It is probed only once. `own` is as in [`CommandSpec`].
    pub fn confinement(&self, own: &Path) -> &Confinement {
        &self.probe_result(own).confinement
    }

    /// Whether commands see this file. True if no sandbox has been probed yet.
    pub fn shows(&self, path: &Path) -> bool {
        match self.probe_result.get() {
            Some(ProbeResult { confinement, view: Some(view) }) if confinement.tier.confines() => {
                view.shows(path)
            }
            _ => true,
        }
    }

    /// The program with this name that commands find in their `PATH`. Relative entries of `PATH` are ignored.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let environment = environment::for_command(false, &self.settings.env);
        let path = environment.iter().find(|variable| variable.name == "PATH")?;
        machine::find(name, &path.value, &|path| self.shows(path))
    }

    /// The tools that commands find, with their versions. If commands cannot be confined, no tool is started, and only
    /// the names are returned.
    pub fn tools(&self, own: &Path) -> Vec<String> {
        let said = self.inspect(machine::SCRIPT, TOOLS_TIME_LIMIT, own).unwrap_or_default();
        let found = machine::TOOLS.into_iter().filter(|tool| self.program(tool).is_some());
        machine::described(found, &said)
    }

    /// The subjects of the newest commits, each after a `>`, and the workspace files that each commit changed. None if
    /// git fails, or if commands cannot be confined.
    pub fn commits(&self, own: &Path) -> Option<String> {
        self.inspect(COMMITS, COMMITS_TIME_LIMIT, own)
    }

    /// Runs a script that can neither change anything nor reach the network. Returns the beginning of its output, or
    /// what it printed until the time limit. None if the script fails, or if commands cannot be confined.
    pub fn inspect(&self, script: &str, timeout: Duration, own: &Path) -> Option<String> {
        if !self.confinement(own).tier.confines() {
            return None;
        }
        let spec = CommandSpec {
            read_only: true,
            network: Some(false),
            timeout: Some(timeout),
            output_limit: Some(MAX_SCRIPT_OUTPUT),
            // After a crash, nobody waits for this script to end.
            lock: Some(Path::new("")),
            ..CommandSpec::new(script, &self.workspace, own)
        };
        let Execution { ending, output, .. } = self.run(&spec, &|| false);
        let CommandOutput::Together(said) = output else { return None };
        matches!(ending, Ending::Exited(0) | Ending::TimedOut(_)).then_some(said.head)
    }

    /// The restrictions for a command.
    ///
    /// # Errors
    /// The restrictions are not available on this machine.
    pub(super) fn restrictions(&self, spec: &CommandSpec) -> io::Result<Restrictions<'_>> {
        let ProbeResult { confinement, view } = self.probe_result(spec.own);
        let walls = match confinement.tier.backend() {
            Some(Backend::Open) => Restrictions { backend: Backend::Open, view: None },
            Some(backend) => Restrictions { backend, view: view.as_ref() },
            None if spec.open => Restrictions { backend: Backend::Open, view: None },
            None => return Err(io::Error::other(NO_SANDBOX)),
        };
        if let Some(reason) = walls.view.and_then(View::refused) {
            return Err(io::Error::other(reason));
        }
        let refused = match spec.network {
            Some(false) if walls.backend == Backend::Open => Some(NO_WALL.to_owned()),
            // If `settings.network` is off, the probe of the tier has already tested this.
            Some(false) if self.settings.network => {
                let tried = || self.try_offline(confinement.tier, walls.view, spec.own);
                self.offline.get_or_init(tried).clone().err()
            }
            _ => None,
        };
        refused.map_or(Ok(walls), |reason| Err(io::Error::other(reason)))
    }

    /// Tests whether a tier that was probed with the network also works without it.
    fn try_offline(&self, tier: Tier, view: Option<&View>, own: &Path) -> Result<(), String> {
        self.try_tier(tier, view, own, false).map(drop).map_err(|shortfall| {
            format!(
                "it is to run without the network, and that cannot be kept from it here: {shortfall}"
            )
        })
    }

    pub(super) fn probe_result(&self, own: &Path) -> &ProbeResult {
        self.probe_result.get_or_init(|| self.probe(own))
    }

    fn probe(&self, own: &Path) -> ProbeResult {
        let network = self.settings.network;
        let mut missing = Vec::new();
        let view = View::of(self);
        // An error of the disk must not lead to a weaker tier.
        let made = view.as_ref().map_or(Ok(()), |view| make_own(own, view.user));
        for tier in Tier::candidates(self.settings.mode) {
            let tried = match (&view, &made) {
                _ if *tier == Tier::Off => self.try_tier(*tier, None, own, network),
                (Err(reason), _) => Err(reason.clone()),
                (Ok(_), Err(e)) => Err(format!("cannot make {}: {e}", own.display())),
                (Ok(view), Ok(())) => self.try_tier(*tier, Some(view), own, network),
            };
            match tried {
                Ok(facts) => {
                    let confinement = Confinement { tier: *tier, facts, missing, network };
                    return ProbeResult { confinement, view: view.ok() };
                }
                Err(reason) => missing.push((*tier, reason)),
            }
        }
        let facts = MechanismSet::default();
        ProbeResult {
            confinement: Confinement { tier: Tier::None, facts, missing, network },
            view: None,
        }
    }

    /// Runs a probe in a tier. Returns the mechanisms that work; fails if one that the tier promises does not.
    fn try_tier(
        &self,
        tier: Tier,
        view: Option<&View>,
        own: &Path,
        network: bool,
    ) -> Result<MechanismSet, String> {
        let backend = tier.backend().ok_or_else(String::new)?;
        if let Some(obstacle) = view.and_then(|view| view.obstacle(backend)) {
            return Err(obstacle);
        }
        let spec =
            CommandSpec { network: Some(network), ..CommandSpec::new("", &self.workspace, own) };
        let run = || -> io::Result<(HelperReport, CommandOutput)> {
            let request = SandboxRequest { probe: true, ..self.request(&spec, backend, view)? };
            let output = OutputReader::begin(Streams::Together, MAX_PROBE_OUTPUT, None)?;
            let (mut space, timeout) = (DiskMonitor::default(), self.timeout.max(GRACE));
            self.carry_out(&request, output, timeout, &mut space, &|| false)
        };
        let (HelperReport { ending, facts }, said) = run().map_err(|e| e.to_string())?;
        match (ending, said.captures()[0].head.trim()) {
            (Ending::Exited(_), _) => tier.shortfall(facts, network).map_or(Ok(facts), Err),
            (Ending::NotStarted(reason), "") => Err(reason),
            (Ending::NotStarted(reason), said) => Err(format!("{reason}: {said}")),
            _ => Err("the probe ended without a report".to_owned()),
        }
    }

    /// Makes the request for the helper.
    pub(super) fn request(
        &self,
        spec: &CommandSpec,
        backend: Backend,
        view: Option<&View>,
    ) -> io::Result<SandboxRequest> {
        let settings = &self.settings;
        let network = spec.network.unwrap_or(settings.network);
        let offline = backend != Backend::Open && !network;
        let mut environment = environment::for_command(offline, &settings.env);
        let mut mounts = Vec::new();
        if let Some(view) = view {
            make_own(spec.own, view.user)?;
            mounts = view.mounts(spec, network)?;
            if spec.read_only {
                mounts = mounts.into_iter().filter_map(read_only).collect();
            }
            for (name, folder) in view.variables(backend) {
                environment::set(&mut environment, name, folder);
            }
            let (home, temporary) = if backend == Backend::Partial {
                (spec.own.join("home"), spec.own.join("tmp"))
            } else {
                (view.home.clone(), PathBuf::from("/tmp"))
            };
            environment::set(&mut environment, "HOME", home);
            environment::set(&mut environment, "TMPDIR", temporary);
        } else {
            mounts.extend(self.hidden.iter().map(|at| {
                let is_shown = self.shown.as_ref() == Some(at);
                Mount::new(if is_shown { MountKind::Show } else { MountKind::Cover }, at)
            }));
        }
        let nul = || spec.command.contains('\0').then(|| "it holds a NUL byte".to_owned());
        if let Some(fault) = environment::fault(spec.environment).or_else(nul) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
        }
        for (name, value) in spec.environment {
            environment::set(&mut environment, name, value);
        }
        Ok(SandboxRequest {
            parent: std::process::id(),
            backend,
            command: spec.command.into(),
            folder: spec.folder.to_owned(),
            environment,
            lock: spec.lock.unwrap_or(&self.lock).to_owned(),
            user: view.and_then(|view| view.user),
            network,
            limits: CommandLimits {
                // Without a namespace, the limit would count all processes of the user.
                processes: if backend == Backend::Open { 0 } else { settings.max_processes },
                file: if backend == Backend::Open { 0 } else { settings.max_file_bytes },
                memory: settings.max_memory_bytes.unwrap_or_default(),
            },
            mounts,
            probe: false,
            surroundings: String::new(),
        })
    }
}

/// Makes a mount read-only, except for the session's own folders, which commands see at other paths.
fn read_only(mount: Mount) -> Option<Mount> {
    let Mount { at, kind } = mount;
    match kind {
        MountKind::Write(from) if from.path == at => {
            Some(Mount { at, kind: MountKind::Read(from) })
        }
        MountKind::Pin => None,
        kind => Some(Mount { at, kind }),
    }
}
