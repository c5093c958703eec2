//! Starts helpers and waits for what they report, each only so long.
//!
//! ```text
//! hold WAY   reads a text from standard input, puts it on the clipboard, reports, and stays
//!            until another program has the clipboard
//! read WAY   reports what the clipboard holds
//! watch WAY  reports texts that hold a reply, until its standard input is closed
//! ```
//!
//! A report begins with one letter: what it is.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::{Found, LIMIT, Surroundings, Way, tools};
use crate::program;
use crate::runner::sandbox::Started;

/// The first argument of a helper; no subcommand is named so.
pub(super) const MARK: &str = "__clipboard";

/// It is done, or nothing is new: no more follows.
pub(super) const DONE: u8 = b'.';
/// A text follows.
pub(super) const TEXT: u8 = b't';
/// The reason of a failure follows.
pub(super) const FAILED: u8 = b'!';

/// How long putting a text there may take: over a slow connection a display takes a while.
const HOLDING: Duration = Duration::from_secs(6);
/// From then on whoever waits is told so.
const SLOW: Duration = Duration::from_secs(1);
/// How long reading may take; whoever has the clipboard may be busy.
const READING: Duration = Duration::from_secs(8);

/// A helper, ended with what it started when this is dropped.
pub(super) struct Helper {
    pub(super) child: Child,
    /// Until the helper has been waited for.
    _started: Started,
    ends: bool,
}

impl Helper {
    /// Starts one, with pipes for its standard input and output.
    pub(super) fn start(verb: &str, way: Way, at: &Surroundings) -> Result<Self, String> {
        let helper = program::own().map_err(|e| e.to_string())?;
        let mut command = Command::new(helper);
        let program = tools::program(way, verb).map(|name| at.programs.find(name)).transpose();
        let program = program.map_err(|e| format!("it cannot be started: {e}"))?;
        command.args([MARK, verb, way.name()]).args(program).env_clear().envs(at.handed_on(way));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Commands of replies may run at the same time: it is none of theirs.
        let (child, started) = Started::by(|| command.spawn())
            .map_err(|e| format!("its helper cannot be started: {e}"))?;
        Ok(Self { child, _started: started, ends: true })
    }

    /// Gives it `input` and waits for its report; says so once where that takes long.
    fn report(
        &mut self,
        input: Vec<u8>,
        patience: Duration,
        waits: &dyn Fn(),
    ) -> Result<Report, String> {
        let (Some(mut stdin), Some(stdout)) = (self.child.stdin.take(), self.child.stdout.take())
        else {
            return Err("its helper has no pipes".to_owned());
        };
        let (sender, report) = mpsc::channel();
        let exchange = move || {
            // A helper that does not read says why.
            let _ = stdin.write_all(&input);
            drop(stdin);
            let mut bytes = Vec::new();
            let read = stdout.take(LIMIT as u64 + 2).read_to_end(&mut bytes);
            let _ = sender.send(read.map(|_| bytes));
        };
        thread::Builder::new().spawn(exchange).map_err(|e| format!("no thread for it: {e}"))?;
        let mut told = report.recv_timeout(SLOW);
        if matches!(told, Err(RecvTimeoutError::Timeout)) {
            waits();
            told = report.recv_timeout(patience.saturating_sub(SLOW));
        }
        match told {
            Ok(Ok(bytes)) => Report::of(bytes),
            Ok(Err(e)) => Err(format!("its helper cannot be heard: {e}")),
            Err(_) => Err(format!("{SILENCE} {} seconds", patience.as_secs())),
        }
    }

    /// Leaves it to itself, and waits for its end where that keeps nobody.
    fn leave(mut self) {
        self.ends = false;
        let wait = move || drop(self.child.wait());
        // Without a thread nobody waits for it, which is no harm but an entry in a table.
        drop(thread::Builder::new().name("clipboard".into()).spawn(wait));
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if self.ends {
            end(&mut self.child);
        }
    }
}

/// Ends a helper and what it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It leads a group of its own as soon as it runs, and has not been waited for.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// What a helper reports.
enum Report {
    Done,
    Text(String),
}

impl Report {
    fn of(mut bytes: Vec<u8>) -> Result<Self, String> {
        let Some(kind) = bytes.first().copied() else {
            return Err("its helper ended without a word".to_owned());
        };
        if bytes.len() > LIMIT + 1 {
            return Err(too_long());
        }
        bytes.remove(0);
        match (kind, String::from_utf8(bytes)) {
            (DONE, _) => Ok(Self::Done),
            (TEXT, Ok(text)) => Ok(Self::Text(text)),
            (FAILED, Ok(why)) => Err(crate::text::visible_line(&why).into_owned()),
            _ => Err("its helper cannot be understood".to_owned()),
        }
    }
}

/// What is said where nobody answers, before how long that was waited for.
const SILENCE: &str = "no answer within";

/// Whether this is that nobody answered.
pub(super) fn is_silence(why: &str) -> bool {
    why.starts_with(SILENCE)
}

/// Why what is none is not taken for a text.
pub(super) const NO_TEXT: &str = "what it holds is no text in UTF-8";

/// Why a text is not taken that is too long.
pub(super) fn too_long() -> String {
    format!("it holds more than {LIMIT} bytes")
}

/// Whether this is why a text is not taken, and not why the clipboard cannot be read: no other way to
/// it would have a better one.
pub(super) fn is_of_the_text(why: &str) -> bool {
    why == NO_TEXT || why == too_long()
}

/// Puts a text on the clipboard this way, and leaves it there.
pub(super) fn hold(way: Way, text: &str, at: &Surroundings) -> Result<(), String> {
    let mut helper = Helper::start("hold", way, at)?;
    helper.report(text.as_bytes().to_vec(), HOLDING, &|| {})?;
    helper.leave();
    Ok(())
}

/// Reads the clipboard this way.
pub(super) fn read(way: Way, at: &Surroundings, waits: &dyn Fn()) -> Result<Found, String> {
    let mut helper = Helper::start("read", way, at)?;
    Ok(match helper.report(Vec::new(), READING, waits)? {
        Report::Text(text) => Found::Text(text),
        Report::Done => Found::Empty,
    })
}
