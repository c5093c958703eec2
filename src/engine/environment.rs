//! The Environment section of an outbox: this machine, the sandbox and the policy.

use std::time::Duration;

use super::Engine;
use crate::error::Result;
use crate::machine;
use crate::outbox::Environment;
use crate::policy::{self, Access, Verdict};
use crate::protocol::operations::DEFAULT_TIMEOUT;
use crate::protocol::{Dialect, RelPath};
use crate::runner::sandbox::{Confinement, Tier};
use crate::session::Session;
use crate::settings::Policy;

/// The scratch directory, beside the sessions, of the commands that probe the sandbox.
pub(super) const PROBE: &str = ".probe";

/// A phrase for the outbox: the commands in which git writes.
const GIT: &str = "a command in which git writes (add, commit, checkout, ...; never its config or hooks, and never from within a script)";

impl Engine {
    /// The sandbox of commands on this machine. Probes it once.
    pub fn confinement(&self) -> &Confinement {
        if !self.probed.replace(true) {
            self.discard_probe();
        }
        self.runner.confinement(&self.config.sessions.join(PROBE))
    }

    /// Whether protected names are guarded from a session's commands. They are not if commands have the person's rights.
    ///
    /// # Errors
    /// The guest cannot be reached.
    pub(super) fn is_guarded(&self, session: &Session) -> Result<bool> {
        if let Some(about) = self.guest_about()? {
            return Ok(about.guarded);
        }
        Ok(self.is_guarded_here(session))
    }

    /// Whether protected names are guarded from commands on this machine.
    pub(super) fn is_guarded_here(&self, session: &Session) -> bool {
        match self.confinement().tier {
            Tier::Off => false,
            Tier::None => !session.unconfined,
            _ => true,
        }
    }

    /// Describes the protected names in the outbox; the first few show what kind they are.
    fn protected(names: &[String], guarded: bool, policy: &Policy) -> String {
        const SHOWN: usize = 5;
        if names.is_empty() {
            return "nothing".to_owned();
        }
        let more = if names.len() > SHOWN { " and the like" } else { "" };
        let shown = names[..names.len().min(SHOWN)].join(", ");
        let denied = |decision| matches!(decision, Verdict::Deny(_));
        let path = RelPath::parse(&names[0]);
        let of_files =
            path.is_ok_and(|path| !denied(policy::path(policy, Access::Write, &path, None)));
        let of_git = guarded && !denied(policy::command(policy, "git commit", true));
        let asked = match (of_files, of_git) {
            (false, false) => return format!("{shown}{more} can be read at most, never written"),
            (true, false) => "before a file operation writes one of them".to_owned(),
            (false, true) => format!("before {GIT}"),
            (true, true) => format!("before a file operation writes one of them, and before {GIT}"),
        };
        let mut description = format!(
            "{shown}{more} can be read; {asked}, everything stops until the user answers; avoid this unless the task needs it"
        );
        if of_git {
            description.push_str(". Git has none of the user's own settings here: where the repository names nobody, commit with -c user.name=... -c user.email=...");
        }
        description
    }

    pub(super) fn environment(&self, session: &Session) -> Result<Environment> {
        let policy = self.policy_of(session)?;
        let shell = &policy.shell;
        let default = self.config.command_timeout;
        let usual = (session.dialect == Dialect::Operations).then_some(DEFAULT_TIMEOUT);
        let (timeout, longest) = (
            shell.timeout(usual, default).as_secs(),
            shell.timeout(Some(Duration::MAX), default).as_secs(),
        );
        let guarded = self.is_guarded(session)?;
        let by_policy = match policy.network {
            None => None,
            Some(true) => Some("open to commands"),
            Some(false) => Some("off: nothing can be fetched or installed"),
        };
        let mut environment = Environment {
            system: machine::system(),
            shell: machine::shell(),
            sandbox: String::new(),
            network: String::new(),
            protected: Self::protected(&self.config.protected_names, guarded, &policy),
            policy: policy::summary(&policy),
            timeout,
            longest,
            output_limit: self.config.max_output_length,
            max_tokens: self.config.max_tokens,
            context_tokens: self.config.context_tokens,
            secrets: self.config.secrets.clone(),
        };
        if let Some(guest) = &self.guest {
            let about = guest.about()?;
            let is_walled = about.confined && !about.offline;
            let system = &about.system;
            environment.system = format!("{system} (a guest: another machine than the user's)");
            environment.shell.clone_from(&about.shell);
            environment.sandbox.clone_from(&about.sandbox);
            by_policy
                .filter(|_| is_walled)
                .unwrap_or(&about.network)
                .clone_into(&mut environment.network);
            environment.protected = Self::protected(&about.protected, guarded, &policy);
            return Ok(environment);
        }
        let confinement = self.confinement();
        let mut tier = confinement.tier;
        environment.sandbox = confinement.line();
        if tier == Tier::None && session.unconfined {
            tier = Tier::Off;
            "none to be had here; the user allowed commands with their own rights"
                .clone_into(&mut environment.sandbox);
        }
        let by_policy = by_policy.filter(|_| !matches!(tier, Tier::None | Tier::Off));
        by_policy
            .unwrap_or_else(|| confinement.network_line(tier))
            .clone_into(&mut environment.network);
        Ok(environment)
    }
}
