//! The guest's side of the methods by which a host carries out a session's operations here: what can
//! be told of this place, and steps, each of which is carried out once whoever dies meanwhile.
//!
//! A step is noted before it has an effect (see [`super::steps`]) and what it came to afterwards. One
//! that was begun and has no outcome is never begun again unless the disk shows that nothing came of
//! it; what a lost command did to protected names is put right when it is found. Reads have no effect,
//! so nothing is kept of them: whoever asks again reads again.

use std::time::Duration;

use super::steps::{Begun, Done, Going, Held, Taken, is_key};
use super::{Given, Served, homes};
use crate::config::Mode;
use crate::error::Error;
use crate::machine;
use crate::place::{Coming, Left, Place, left_of_file};
use crate::policy::{Decision, Opens};
use crate::protocol::rpc::{
    About, ContentsOf, Fault, Key, LookAt, LookedAt, Method, READ_LIMIT, ReadOf, STREAM_LIMIT,
    State, StepAsked, VERSION, Walked, WalkedFile,
};
use crate::protocol::{
    Detail, Digest, Effect, Failure, FailureKind, Operation, Reading, Warning, WarningSort,
};
use crate::runner::sandbox::Tier;
use crate::turn::{self, recover};
use crate::workspace::guard::Guard;
use crate::workspace::walk::EntryKind;

impl Served {
    /// Does what a host asks of its guest.
    pub(super) fn guest(&self, method: Method) -> Result<Given, Fault> {
        match method {
            Method::About => Ok(Given::About(self.about())),
            Method::Walk => self.walked().map(Given::Walked),
            Method::Look(asked) => Ok(Given::Looked(self.looked(&asked))),
            Method::Read(asked) => Ok(Given::Contents(self.contents(&asked))),
            Method::Step(asked) => self.step(&asked).map(Given::Step),
            Method::Result(Key { key }) => self.came_to(&key).map(Given::Step),
            Method::Leave(Key { key }) => self.leave(&key),
            Method::Interrupt(Key { key }) => {
                self.steps.interrupt(&key);
                Ok(Given::Step(State::Unknown))
            }
            _ => Err(Fault::internal("this is no method of a guest")),
        }
    }

    fn about(&self) -> About {
        let runner = &self.serving.runner;
        let confinement = runner.confinement(&self.serving.own);
        let policy = self.serving.policy.as_ref();
        let network = match (confinement.tier, policy.and_then(|policy| policy.network)) {
            (Tier::None | Tier::Off, _) | (_, None) => confinement.network_line(confinement.tier),
            (_, Some(true)) => "open to commands",
            (_, Some(false)) => "off: nothing can be fetched or installed",
        };
        let workspace = &self.serving.workspace;
        About {
            version: VERSION,
            program: format!("deaddrop {}", env!("CARGO_PKG_VERSION")),
            system: machine::system(),
            shell: machine::shell(),
            sandbox: confinement.line(),
            network: network.to_owned(),
            confined: confinement.tier.confines(),
            guarded: self.guarded,
            protected: workspace.protected_names().map(str::to_owned).collect(),
            tools: self.tools.get_or_init(|| machine::tools(&|path| runner.shows(path))).clone(),
            root: workspace.path().to_string_lossy().into_owned(),
        }
    }

    fn walked(&self) -> Result<Walked, Fault> {
        let walk = self.serving.workspace.walk().map_err(|e| failed(&e))?;
        let files = walk.files().map(|file| {
            let kind = match file.kind {
                EntryKind::File => 'f',
                EntryKind::Link => 'l',
                EntryKind::Other => 'o',
            };
            WalkedFile(file.path.to_owned(), file.size, kind)
        });
        Ok(Walked { files: files.collect(), unreadable: walk.unreadable().to_vec() })
    }

    fn looked(&self, asked: &LookAt) -> LookedAt {
        let workspace = &self.serving.workspace;
        let place = workspace.place_of(&asked.operation);
        let standing = if asked.standing { workspace.standing(&asked.operation) } else { None };
        match workspace.look(&asked.operation) {
            None => LookedAt { place, standing, ..LookedAt::default() },
            Some(look) => LookedAt {
                seen: true,
                real: look.real,
                size: look.size,
                protected: look.protected,
                place,
                standing,
            },
        }
    }

    fn contents(&self, asked: &ReadOf) -> ContentsOf {
        match self.serving.workspace.read(&asked.path, asked.limit.min(READ_LIMIT)) {
            Ok(file) => ContentsOf::file(file.path, file.bytes, file.size),
            Err(failure) => ContentsOf::Failed(failure),
        }
    }

    /// Carries out a step, or tells what it came to.
    fn step(&self, asked: &StepAsked) -> Result<State, Fault> {
        let StepAsked { key, operation, settled, .. } = asked;
        check_key(key)?;
        check_operation(operation)?;
        homes::check(asked.own.as_deref())?;
        let going = self.steps.enter(key);
        self.find_lost();
        for settled in settled.iter().filter(|settled| *settled != key && is_key(settled)) {
            self.steps.forget(settled).map_err(|e| undone(&e))?;
        }
        let stop = &self.serving.stop;
        let Some(mut held) = self.steps.hold(key, stop).map_err(|e| failed(&e))? else {
            return Err(stopped("it is being carried out elsewhere"));
        };
        let digest = digest_of(operation);
        if let Some(begun) = &held.begun
            && (begun.operation != digest || begun.key != *key)
        {
            return Err(wrong(&format!("the key '{key}' was used for another operation")));
        }
        if let Some(done) = self.known(key, &mut held)? {
            return Ok(done.into());
        }
        if stop.is_asked() {
            let _ = self.steps.remove(key, &held);
            return Err(stopped("the step was not begun"));
        }
        let carried = self.carry_out(asked, digest, &mut held, &going);
        let has_effect =
            matches!(&carried, Ok(done) if !matches!(done.detail, Detail::Read { .. }));
        if !has_effect {
            // An empty file says as much as none.
            let _ = self.steps.remove(key, &held);
        }
        carried.map(State::from).map_err(|e| undone(&e))
    }

    /// What a step came to.
    fn came_to(&self, key: &str) -> Result<State, Fault> {
        check_key(key)?;
        self.find_lost();
        match self.steps.try_hold(key, false).map_err(|e| failed(&e))? {
            Taken::Missing => Ok(State::Unknown),
            Taken::Elsewhere => Ok(State::Running),
            Taken::Held(held) if held.begun.as_ref().is_some_and(|begun| begun.key != key) => {
                Ok(State::Unknown)
            }
            Taken::Held(mut held) => {
                Ok(self.known(key, &mut held)?.map_or(State::Unknown, State::from))
            }
        }
    }

    /// What is known of a step that nobody carries out; None where nothing has come of it.
    fn known(&self, key: &str, held: &mut Held) -> Result<Option<Done>, Fault> {
        let Some(begun) = &held.begun else { return Ok(None) };
        if let Some(done) = &held.done {
            return Ok(Some(done.clone()));
        }
        let done = match &begun.effect {
            Some(Effect::File(effect)) => match left_of_file(effect, &self.serving.workspace) {
                Left::Done(detail, warnings) => Some(Done { detail: *detail, warnings }),
                Left::Undone | Left::Lost => None,
            },
            Some(Effect::Command) => Some(self.lost(key, begun)?),
            Some(Effect::Guest { .. }) | None => None,
        };
        if let Some(done) = &done {
            self.conclude(key, held, done);
        }
        Ok(done)
    }

    /// What there is to tell of a command that was begun by a process that died.
    fn lost(&self, key: &str, begun: &Begun) -> Result<Done, Fault> {
        if !self.steps.wait_for_command(key, &self.serving.stop).map_err(|e| failed(&e))? {
            return Err(stopped("the command of a deaddrop that died is still running"));
        }
        let mut warnings = Vec::new();
        if let Some(snapshot) = begun.guard.clone().filter(|_| self.guarded) {
            let workspace = &self.serving.workspace;
            let mut guard = Guard::resumed(self.quarantine(&name_of(key)), snapshot);
            warnings = guard.untold(std::iter::empty());
            warnings.extend(guard.check(workspace));
            match workspace.walk() {
                Ok(walk) => warnings.extend(guard.finish(workspace, &walk)),
                Err(e) => warnings.push(unseen(&e)),
            }
        }
        let command = begun.command.as_deref().unwrap_or_default();
        Ok(Done { detail: recover::lost_command(command), warnings })
    }

    /// Looks once after the commands of processes that died, before anything else is done here: what
    /// they did to protected names must not pass for somebody else's doing.
    fn find_lost(&self) {
        self.steps.sweep(&|key, held| {
            let is_command = |begun: &Begun| matches!(begun.effect, Some(Effect::Command));
            if held.done.is_none() && held.begun.as_ref().is_some_and(is_command) {
                // What fails here is told to whoever asks for the step.
                let _ = self.known(key, held);
            }
        });
    }

    /// Does what was asked for, which was never done. After an error nothing was.
    fn carry_out(
        &self,
        asked: &StepAsked,
        operation: Digest,
        held: &mut Held,
        going: &Going,
    ) -> Result<Done, Error> {
        let (serving, key) = (&self.serving, &asked.key);
        let interrupted = || serving.stop.is_asked() || going.is_to_end();
        let timeout = |asked: Option<Duration>| {
            let own = asked.unwrap_or(serving.timeout);
            let policy = serving.policy.as_ref();
            Some(policy.map_or(own, |policy| policy.shell.timeout(asked, serving.timeout)))
        };
        let (lock, home) = (self.steps.lock_of(key), self.home_of(asked)?);
        let mut place = self.place_named(&name_of(key), &home.folder, &interrupted);
        place.timeout = &timeout;
        place.lock = Some(&lock);
        place.network = self.network(asked.network);
        place.output_limit = Some(asked.output_limit.min(STREAM_LIMIT));
        place.read_limit = asked.read_limit.min(READ_LIMIT);
        place.read_room = place.read_limit;

        let command = match &asked.operation {
            Operation::Run(run) => Some(run.command.clone()),
            _ => None,
        };
        let mut begun = Begun { key: key.clone(), operation, command, guard: None, effect: None };
        let detail = match self.refused(asked, &place)? {
            Some(failure) => failure.into(),
            None => {
                let opens = Opens { protected: asked.protected, repository: asked.repository };
                place.perform(&asked.operation, opens, &mut |coming| match coming {
                    Coming::Guard(snapshot) => {
                        begun.guard = Some(snapshot.clone());
                        Ok(())
                    }
                    Coming::Effect(effect) => {
                        begun.effect = Some(effect.clone());
                        held.begin(&begun)
                    }
                })?
            }
        };
        let mut warnings = place.noticed();
        match place.finish() {
            Ok(noticed) => warnings.extend(noticed),
            // The command has run, and that is told first of all.
            Err(e) => warnings.push(unseen(&e)),
        }
        let done = Done { detail, warnings };
        if begun.effect.is_some() || held.note(&begun).is_ok() {
            self.conclude(key, held, &done);
        }
        Ok(done)
    }

    /// Adds to a step what it came to. Where that fails, it is told now and no more: later the disk
    /// tells, and a command counts as lost.
    fn conclude(&self, key: &str, held: &mut Held, done: &Done) {
        if held.finish(done).is_ok() {
            self.steps.end_of_command(key);
        }
    }

    /// Whether a command reaches the network for which that is asked; None for what the settings say.
    fn network(&self, asked: Option<bool>) -> Option<bool> {
        // Whoever takes the walls away wants none.
        if self.serving.runner.settings.mode == Mode::Off {
            return None;
        }
        match self.serving.policy.as_ref().and_then(|policy| policy.network) {
            Some(false) => Some(false),
            own => asked.or(own),
        }
    }

    /// Why the policy here keeps a step from being carried out, if it does.
    fn refused(&self, asked: &StepAsked, place: &dyn Place) -> Result<Option<Failure>, Error> {
        let Some(policy) = self.serving.policy.as_ref() else { return Ok(None) };
        let judge = |guarded| turn::judge(policy, guarded, &asked.operation, place);
        let (reason, suggestion) = match judge(self.guarded)? {
            Decision::Allow => return Ok(None),
            Decision::Deny(denial) => (denial.reason, denial.suggestion),
            Decision::Ask(ask) => {
                // What the person opened at the host is not asked about again; all else would be.
                let is_open = ask.opens.protected && asked.protected
                    || ask.opens.repository && asked.repository && judge(false)? == Decision::Allow;
                if is_open {
                    return Ok(None);
                }
                let told = "the guest's own policy asks before this, and nobody can be asked there";
                (format!("{}: {told}", ask.reason), None)
            }
        };
        Ok(Some(Failure { kind: FailureKind::Denied, reason, suggestion }))
    }
}

impl From<Done> for State {
    fn from(Done { detail, warnings }: Done) -> Self {
        Self::Done { detail, warnings }
    }
}

fn check_key(key: &str) -> Result<(), Fault> {
    if is_key(key) {
        return Ok(());
    }
    Err(wrong("key must be 1 to 64 letters (a-z, A-Z), digits and hyphens"))
}

/// Only what has to do with this machine is for a guest.
fn check_operation(operation: &Operation) -> Result<(), Fault> {
    let what = match operation {
        Operation::Message { .. } => "a message is",
        Operation::Done { .. } => "the end of a session is",
        Operation::Read { reading: Reading::Later, .. } => "a file that is shown later is",
        _ => return Ok(()),
    };
    Err(wrong(&format!("{what} for the host, and no step of a guest")))
}

/// What an operation is known by.
///
/// # Panics
/// Never: texts and numbers always become JSON.
fn digest_of(operation: &Operation) -> Digest {
    Digest::of(&serde_json::to_vec(operation).expect("texts and numbers become JSON"))
}

/// Where what is put away of protected names lies that belongs to a step.
fn name_of(key: &str) -> String {
    format!("step_{key}")
}

fn unseen(error: &Error) -> Warning {
    let told = format!("whether a command made repositories could not be looked at: {error}");
    Warning::new(WarningSort::Guard, told)
}

fn wrong(told: &str) -> Fault {
    Fault::new(Fault::PARAMS, format!("invalid params: {told}"))
}

fn stopped(told: &str) -> Fault {
    Fault::internal(format!("deaddrop is being stopped, and {told}"))
}

fn failed(error: &Error) -> Fault {
    Fault::internal(error.to_string())
}

fn undone(error: &Error) -> Fault {
    Fault::internal(format!("{error}; nothing was done"))
}
