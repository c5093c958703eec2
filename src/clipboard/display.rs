//! The clipboard through arboard. This code runs in a helper process; its parent enforces the deadlines.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use arboard::{Clipboard, Error};

use super::LIMIT;
use super::report::{HelperError, HelperReport};

const UNREACHED: &str =
    "its display cannot be reached, or does not let programs without a window use the clipboard";
/// The most time until a copied text appears on the clipboard.
const SETTLES: Duration = Duration::from_secs(3);
/// On a busy X11 machine, arboard may give up between two parts of a long text and report an empty clipboard, after a
/// time in this range. It reports a really empty clipboard at once, and a clipboard that does not answer after seconds.
const PARTS: Range<Duration> = Duration::from_millis(10)..Duration::from_secs(3);
/// How often a text is read if arboard may have given up.
const READS: usize = 10;
/// How often the helper checks whether the display still exists.
const LOOKS: Duration = Duration::from_secs(2);

/// A connection to the clipboard.
pub(super) struct Display(Clipboard);

impl Display {
    /// Connects to the clipboard.
    pub(super) fn open() -> Result<Self, HelperError> {
        // arboard reports every failure as an X server that does not answer, because it tries X11 last.
        Clipboard::new().map(Self).map_err(|_| HelperError::Other(UNREACHED.to_owned()))
    }

    /// Reads the clipboard.
    pub(super) fn read(&mut self) -> HelperReport {
        let whole = (1..READS).find_map(|_| self.unless_given_up());
        match whole.unwrap_or_else(|| self.0.get_text()) {
            Ok(text) if text.len() > LIMIT => Err(HelperError::TooLong),
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(Error::ContentNotAvailable) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads the clipboard once; None if arboard may have given up in the middle of a text.
    fn unless_given_up(&mut self) -> Option<Result<String, Error>> {
        let begun = Instant::now();
        let found = self.0.get_text();
        let is_none = matches!(found, Err(Error::ContentNotAvailable));
        (!is_none || !PARTS.contains(&begun.elapsed())).then_some(found)
    }

    /// Copies a text, and calls `ready` when the text can be read back. Returns when another program owns the
    /// clipboard, or when the display is gone.
    pub(super) fn hold(
        mut self,
        text: &str,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), HelperError> {
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
                return Err(HelperError::Other("the copied text did not arrive there".to_owned()));
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

    /// Whether the display still answers. Requests HTML, which the text of this process does not have.
    fn is_there(&mut self) -> bool {
        matches!(self.0.get().html(), Ok(_) | Err(Error::ContentNotAvailable))
    }
}

/// Copies a text, and provides it until another program owns the clipboard.
#[cfg(not(target_os = "macos"))]
fn stay(text: String) -> Result<(), Error> {
    use arboard::SetExtLinux;
    Clipboard::new()?.set().wait().text(text)
}

/// On macOS, the system keeps the text.
#[cfg(target_os = "macos")]
fn stay(text: String) -> Result<(), Error> {
    Clipboard::new()?.set_text(text)
}

impl From<Error> for HelperError {
    fn from(error: Error) -> Self {
        match error {
            Error::ConversionFailure => Self::NotUtf8,
            Error::Unknown { description } => Self::Other(description),
            other => Self::Other(other.to_string()),
        }
    }
}
