//! Which walls the commands of a runner get: found out once, by a probe that tries to get around them;
//! and with them what a helper is told for each command.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use wait_timeout::ChildExt;

use super::sandbox::{
    self, Confinement, Limits, Means, Order, Report, Tier, View, Wanted, make_own,
};
use super::{Errand, GRACE, Runner, end, environment};
use crate::protocol::Ending;

/// How many bytes of what a probe writes are told.
const SAID: u64 = 300;

/// What was found out about this machine.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) confinement: Confinement,
    pub(super) view: Option<View>,
}

impl Runner {
    /// What confines commands on this machine: found out once, by trying to get around it. `own` is
    /// as in [`Errand`].
    pub fn confinement(&self, own: &Path) -> &Confinement {
        &self.found(own).confinement
    }

    /// Whether commands see this file; all of them do as long as nothing is known of a sandbox.
    pub fn shows(&self, path: &Path) -> bool {
        match self.found.get() {
            Some(Found { confinement, view: Some(view) }) if confinement.tier.confines() => {
                view.shows(path)
            }
            _ => true,
        }
    }

    pub(super) fn found(&self, own: &Path) -> &Found {
        self.found.get_or_init(|| self.find(own))
    }

    fn find(&self, own: &Path) -> Found {
        let wanted =
            Wanted { workspace: &self.workspace, state: &self.hidden, settings: &self.settings };
        let mut missing = Vec::new();
        let view = View::of(&wanted);
        // A disk that fails is no reason for a weaker tier.
        let made = view.as_ref().map_or(Ok(()), |view| make_own(own, view.user));
        for tier in Tier::candidates(self.settings.mode) {
            let tried = match (&view, tier) {
                (_, Tier::Off) => self.probe(Means::Open, None, own),
                (Ok(_), _) if let Err(e) = &made => {
                    Err(format!("cannot make {}: {e}", own.display()))
                }
                (Err(reason), _) => Err(reason.clone()),
                (Ok(view), tier) => tier.means().ok_or_else(String::new).and_then(|means| {
                    view.obstacle(means).map_or_else(|| self.probe(means, Some(view), own), Err)
                }),
            };
            let network = self.settings.network;
            match tried.and_then(|facts| match tier.shortfall(facts, network) {
                Some(shortfall) => Err(shortfall),
                None => Ok(facts),
            }) {
                Ok(facts) => {
                    let confinement = Confinement { tier: *tier, facts, missing, network };
                    return Found { confinement, view: view.ok() };
                }
                Err(reason) => missing.push((*tier, reason)),
            }
        }
        let facts = sandbox::Facts::default();
        let network = self.settings.network;
        Found { confinement: Confinement { tier: Tier::None, facts, missing, network }, view: None }
    }

    /// Raises the walls around a probe; gives what of them stands.
    fn probe(
        &self,
        means: Means,
        view: Option<&View>,
        own: &Path,
    ) -> Result<sandbox::Facts, String> {
        let errand =
            Errand { command: "", folder: &self.workspace, own, protected: &[], open: false };
        let run = || -> io::Result<(Option<Report>, Vec<u8>)> {
            let order = Order { probe: true, ..self.order(&errand, means, view)? };
            let (output, writer) = io::pipe()?;
            let (mut child, report) = self.start(&order, writer)?;
            if child.wait_timeout(self.timeout.max(GRACE))?.is_none() {
                end(&mut child);
            }
            Ok((Report::read(report), said(output)))
        };
        match run() {
            Ok((Some(Report { ending: Ending::NotStarted(reason), .. }), said)) => {
                let said = String::from_utf8_lossy(&said);
                Err(match said.trim() {
                    "" => reason,
                    said => format!("{reason}: {said}"),
                })
            }
            Ok((Some(report), _)) => Ok(report.facts),
            Ok((None, _)) => Err("the probe ended without a word".to_owned()),
            Err(e) => Err(e.to_string()),
        }
    }

    /// What the helper is told.
    pub(super) fn order(
        &self,
        errand: &Errand,
        means: Means,
        view: Option<&View>,
    ) -> io::Result<Order> {
        let settings = &self.settings;
        let offline = means != Means::Open && !settings.network;
        let mut environment = environment::of_a_command(offline, &settings.env);
        let mut mounts = Vec::new();
        if let Some(view) = view {
            make_own(errand.own, view.user)?;
            mounts = view.mounts(errand.own, errand.protected);
            for (name, folder) in view.variables(means) {
                environment::set(&mut environment, name, folder);
            }
            let (home, temporary) = if means == Means::Partial {
                (errand.own.join("home"), errand.own.join("tmp"))
            } else {
                (view.home.clone(), PathBuf::from("/tmp"))
            };
            environment::set(&mut environment, "HOME", home);
            environment::set(&mut environment, "TMPDIR", temporary);
        } else {
            mounts.extend(self.hidden.iter().map(|at| sandbox::Mount::Cover { at: at.clone() }));
        }
        Ok(Order {
            parent: std::process::id(),
            means,
            command: errand.command.into(),
            folder: errand.folder.to_owned(),
            environment,
            lock: self.lock.clone(),
            user: view.and_then(|view| view.user),
            network: settings.network,
            limits: Limits {
                // Counted for all of the user where there is no namespace to count in.
                processes: if means == Means::Open { 0 } else { settings.max_processes },
                file: if means == Means::Open { 0 } else { settings.max_file_bytes },
                memory: settings.max_memory_bytes.unwrap_or_default(),
            },
            mounts,
            probe: false,
        })
    }
}

/// What a probe wrote, as far as it is there by now: somebody may hold the other end open.
#[cfg(unix)]
fn said(output: io::PipeReader) -> Vec<u8> {
    let mut said = Vec::new();
    if rustix::io::ioctl_fionbio(&output, true).is_ok() {
        let _ = output.take(SAID).read_to_end(&mut said);
    }
    said
}

#[cfg(not(unix))]
fn said(_: io::PipeReader) -> Vec<u8> {
    Vec::new()
}
