//! Starts helpers and waits for their reports, with a deadline for each.

use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::report::{HelperError, HelperReport, Reports};
use super::{ClipboardBackend, ClipboardSetup, helper};
use crate::program;
use crate::runner::sandbox::HelperGuard;

/// The most time for copying. A display over a slow connection needs a while.
const HOLDING: Duration = Duration::from_secs(6);
/// The most time for reading. The program that owns the clipboard may be busy.
pub(super) const READING: Duration = Duration::from_secs(8);
/// If a report takes longer, the caller is notified.
const SLOW: Duration = Duration::from_secs(1);

/// A helper process. It is killed when this is dropped.
pub(super) struct HelperProcess {
    child: Child,
    pub(super) reports: Reports,
    /// Kept until the helper has been reaped.
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
        // Register the helper, so that it does not count as a process that a reply's command left behind.
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

/// Copies a text with this backend, and leaves a helper running that provides the text.
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
