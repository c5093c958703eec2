//! The clipboard through arboard, within a helper: its parent has the deadline.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use arboard::{Clipboard, Error};

use super::LIMIT;
use super::report::{Failure, Report};

const UNREACHED: &str =
    "its display cannot be reached, or lets no program without a window at the clipboard";
/// How long a text that was put there may take to be there.
const SETTLES: Duration = Duration::from_secs(3);
/// arboard gives up a long text on X11 whose parts come further apart than this, as they do on a busy
/// machine, and says that there is none. What is really empty says so at once, and who does not answer
/// takes seconds.
const PARTS: Range<Duration> = Duration::from_millis(10)..Duration::from_secs(3);
/// How often a text is read that may have been given up.
const READS: usize = 10;
/// How often a display is looked for that may be gone.
const LOOKS: Duration = Duration::from_secs(2);

/// A connection to the clipboard.
pub(super) struct Display(Clipboard);

impl Display {
    /// Connects to it.
    pub(super) fn open() -> Result<Self, Failure> {
        // Whatever is wrong, arboard says that no X server answers: it tries that last.
        Clipboard::new().map(Self).map_err(|_| Failure::Other(UNREACHED.to_owned()))
    }

    /// Reads it.
    pub(super) fn read(&mut self) -> Report {
        let whole = (1..READS).find_map(|_| self.unless_given_up());
        match whole.unwrap_or_else(|| self.0.get_text()) {
            Ok(text) if text.len() > LIMIT => Err(Failure::TooLong),
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(Error::ContentNotAvailable) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// What the clipboard says; None where it may have been given up within the text.
    fn unless_given_up(&mut self) -> Option<Result<String, Error>> {
        let begun = Instant::now();
        let found = self.0.get_text();
        let is_none = matches!(found, Err(Error::ContentNotAvailable));
        (!is_none || !PARTS.contains(&begun.elapsed())).then_some(found)
    }

    /// Puts a text there, calls `ready` once it is there, and returns when another program has the
    /// clipboard, or its display is gone.
    pub(super) fn hold(
        mut self,
        text: &str,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), Failure> {
        let (sender, ended) = mpsc::channel();
        let held = text.to_owned();
        thread::Builder::new().spawn(move || drop(sender.send(stay(held))))?;
        let begun = Instant::now();
        while !self.0.get_text().is_ok_and(|there| there == text) {
            if let Ok(ended) = ended.try_recv() {
                ended?;
                return Ok(ready()?);
            }
            if begun.elapsed() > SETTLES {
                return Err(Failure::Other("what was put there is not there".to_owned()));
            }
            thread::sleep(Duration::from_millis(5));
        }
        ready()?;
        loop {
            match ended.recv_timeout(LOOKS) {
                Err(RecvTimeoutError::Timeout) if self.is_there() => {}
                _ => return Ok(()),
            }
        }
    }

    /// Whether the display still answers. While the clipboard is ours nothing else is asked for: what
    /// we hold has no HTML.
    fn is_there(&mut self) -> bool {
        matches!(self.0.get().html(), Ok(_) | Err(Error::ContentNotAvailable))
    }
}

/// Puts a text there, and holds it until another program has the clipboard.
#[cfg(not(target_os = "macos"))]
fn stay(text: String) -> Result<(), Error> {
    use arboard::SetExtLinux;
    Clipboard::new()?.set().wait().text(text)
}

/// There the system holds it.
#[cfg(target_os = "macos")]
fn stay(text: String) -> Result<(), Error> {
    Clipboard::new()?.set_text(text)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::ConversionFailure => Self::NotUtf8,
            Error::Unknown { description } => Self::Other(description),
            other => Self::Other(other.to_string()),
        }
    }
}
