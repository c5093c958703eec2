//! Starts helpers and waits for their reports, each with a deadline.

use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::report::{Failure, Report, Reports};
use super::{ClipboardBackend, ClipboardEnvironment, helper};
use crate::program;
use crate::runner::sandbox::Started;

/// How long copying may take. Over a slow connection a display takes a while.
const HOLDING: Duration = Duration::from_secs(6);
/// How long reading may take. The program that holds the clipboard may be busy.
pub(super) const READING: Duration = Duration::from_secs(8);
/// After that the caller is told that it waits.
const SLOW: Duration = Duration::from_secs(1);

/// A helper, killed when this is dropped.
pub(super) struct Helper {
    child: Child,
    pub(super) reports: Reports,
    /// Until the helper has been waited for.
    _started: Started,
}

impl Helper {
    /// Starts a helper. `verb` is what it does.
    pub(super) fn start(
        verb: &str,
        way: ClipboardBackend,
        environment: &ClipboardEnvironment,
    ) -> io::Result<Self> {
        let (reports, output) = io::pipe()?;
        let reports = Reports::of(reports)?;
        let mut command = Command::new(program::own()?);
        command.args([helper::MARK, verb]).env_clear().envs(environment.variables(way));
        command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::null());
        // It must not be taken for a process that a command of a reply has left behind.
        let (child, started) = Started::by(|| command.spawn())?;
        Ok(Self { child, reports, _started: started })
    }

    /// Waits for a report, and calls `waits` if that takes long.
    fn report(&self, patience: Duration, waits: impl FnOnce()) -> Report {
        if let Some(report) = self.reports.next(SLOW) {
            return report;
        }
        waits();
        let left = patience.saturating_sub(SLOW);
        self.reports.next(left).unwrap_or(Err(Failure::NoAnswer(patience)))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts a text on the clipboard this way, and leaves a helper behind that holds it.
pub(super) fn hold(
    way: ClipboardBackend,
    text: &str,
    environment: &ClipboardEnvironment,
) -> Result<(), Failure> {
    let mut helper = Helper::start("hold", way, environment)?;
    program::feed(&mut helper.child, text)?;
    helper.report(HOLDING, || {})?;
    thread::Builder::new().name("clipboard".into()).spawn(move || {
        let mut helper = helper;
        helper.child.wait()
    })?;
    Ok(())
}

/// Reads the clipboard this way.
pub(super) fn read(
    way: ClipboardBackend,
    environment: &ClipboardEnvironment,
    waits: impl FnOnce(),
) -> Report {
    Helper::start("read", way, environment)?.report(READING, waits)
}
