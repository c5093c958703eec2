//! Starts helpers and waits for their reports, each with a deadline.

use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::report::{HelperError, HelperReport, Reports};
use super::{ClipboardBackend, ClipboardSetup, helper};
use crate::program;
use crate::runner::sandbox::HelperGuard;

/// How long copying may take. Over a slow connection a display takes a while.
const HOLDING: Duration = Duration::from_secs(6);
/// How long reading may take. The program that holds the clipboard may be busy.
pub(super) const READING: Duration = Duration::from_secs(8);
/// The caller is notified if a report takes longer.
const SLOW: Duration = Duration::from_secs(1);

/// A helper. Dropping this kills it.
pub(super) struct HelperProcess {
    child: Child,
    pub(super) reports: Reports,
    /// Kept until the helper has been waited for.
    _started: HelperGuard,
}

impl HelperProcess {
    /// Starts a helper with this verb.
    pub(super) fn start(
        verb: &str,
        backend: ClipboardBackend,
        setup: &ClipboardSetup,
    ) -> io::Result<Self> {
        let (reports, output) = io::pipe()?;
        let reports = Reports::of(reports)?;
        let mut command = Command::new(program::own_executable()?);
        command.args([helper::MARK, verb]).env_clear().envs(setup.variables(backend));
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
        // Register it, so that it does not count as a process that a command of a reply left behind.
        let (child, started) = HelperGuard::start(|| command.spawn())?;
        Ok(Self { child, reports, _started: started })
    }

    /// Waits for a report, and calls `waits` if that takes long.
    pub(super) fn report(&self, patience: Duration, waits: impl FnOnce()) -> HelperReport {
        if let Some(report) = self.reports.next(SLOW) {
            return report;
        }
        waits();
        let left = patience.saturating_sub(SLOW);
        self.reports.next(left).unwrap_or(Err(HelperError::NoAnswer(patience)))
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies a text with this backend, and leaves a helper running that provides it.
pub(super) fn hold(
    backend: ClipboardBackend,
    text: &str,
    setup: &ClipboardSetup,
) -> Result<(), HelperError> {
    let mut helper = HelperProcess::start("hold", backend, setup)?;
    program::feed(&mut helper.child, text)?;
    helper.report(HOLDING, || {})?;
    thread::Builder::new().name("clipboard".into()).spawn(move || {
        let mut helper = helper;
        helper.child.wait()
    })?;
    Ok(())
}
