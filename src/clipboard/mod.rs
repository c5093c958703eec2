//! The clipboard: copies texts that stay available after this process ends, reads texts, and watches for replies.
//!
//! Only a helper process accesses a display. It is this program, started without its parent's descriptors, with few
//! environment variables and a deadline. If a clipboard hangs or fails, the only cost is the wait.
//!
//! ```text
//! environment  which backends exist         terminal  OSC 52, through tmux if it runs
//! spawn        starts helpers and waits     report    what a helper reports to its parent
//! helper       the helper process           display   arboard: X11, Wayland and macOS
//! copier       copies in a thread           watcher   receives from a watching helper in a thread
//! ```
//!
//! Texts from the clipboard are passed only to the caller.

mod copier;
mod display;
mod environment;
mod helper;
mod report;
mod spawn;
mod terminal;
mod watcher;

use std::fmt;

pub use copier::{Copier, CopyResult};
pub use environment::ClipboardSetup;
pub use helper::dispatch;
pub use watcher::{ClipboardEvent, ClipboardWatcher};

use report::HelperError;
use spawn::{HelperProcess, READING};

/// The longest text that is copied or read, in bytes.
pub const LIMIT: usize = 8 << 20;

/// The error message if there is no display.
pub const NO_DISPLAY: &str =
    "there is no display here (neither WAYLAND_DISPLAY nor DISPLAY is set)";

/// A clipboard, and how it is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClipboardBackend {
    /// The desktop's clipboard over Wayland.
    Wayland,
    /// The desktop's clipboard over X11.
    X11,
    /// The clipboard of macOS.
    System,
    /// The terminal's clipboard through tmux.
    Tmux,
    /// The terminal's clipboard through an escape sequence. The terminal may be on another machine.
    Terminal,
}

impl ClipboardBackend {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wayland => "wayland",
            Self::X11 => "x11",
            Self::System => "system",
            Self::Tmux => "tmux",
            Self::Terminal => "osc52",
        }
    }

    /// Whether nothing confirms that a text was copied.
    pub fn is_unconfirmed(self) -> bool {
        match self {
            Self::Tmux | Self::Terminal => true,
            Self::Wayland | Self::X11 | Self::System => false,
        }
    }
}

impl fmt::Display for ClipboardBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wayland => "the desktop's clipboard, over Wayland",
            Self::X11 => "the desktop's clipboard, over X11",
            Self::System => "the system's clipboard",
            Self::Tmux => "the terminal's clipboard, through tmux (load-buffer -w)",
            Self::Terminal => "the terminal's clipboard (OSC 52)",
        })
    }
}

/// Copies a text with the first backend that accepts it. The text stays on the clipboard after this process ends.
///
/// # Errors
/// No backend accepts the text. The error contains the reason of each backend.
pub fn copy(text: &str, setup: &ClipboardSetup) -> Result<ClipboardBackend, String> {
    if text.len() > LIMIT {
        return Err(format!("it is {} bytes long, and at most {LIMIT} can be copied", text.len()));
    }
    match try_backends(&setup.backends(), |backend| spawn::hold(backend, text, setup)) {
        Ok((backend, ())) => Ok(backend),
        Err(failed) => terminal::copy(text, setup)
            .map_err(|why| format!("{failed}; {}: {why}", ClipboardBackend::Terminal.name())),
    }
}

/// Reads the clipboard with the first backend that answers; None if the clipboard has no text. Terminals are not asked,
/// because few of them answer, and those answer any program. `waits` is called if a backend is slow.
///
/// # Errors
/// No backend can be read. The error contains the reason of each backend.
pub fn read(
    setup: &ClipboardSetup,
    waits: &dyn Fn(ClipboardBackend),
) -> Result<(ClipboardBackend, Option<String>), String> {
    try_backends(&setup.backends(), |backend| {
        HelperProcess::start("read", backend, setup)?.report(READING, || waits(backend))
    })
}

/// Tries backends until one succeeds.
fn try_backends<T>(
    backends: &[ClipboardBackend],
    mut attempt: impl FnMut(ClipboardBackend) -> Result<T, HelperError>,
) -> Result<(ClipboardBackend, T), String> {
    let mut failed = Vec::new();
    for backend in backends {
        match attempt(*backend) {
            Ok(done) => return Ok((*backend, done)),
            Err(failure) => {
                failed.push(format!("{}: {failure}", backend.name()));
                if failure.is_final() {
                    break;
                }
            }
        }
    }
    Err(if failed.is_empty() { NO_DISPLAY.to_owned() } else { failed.join("; ") })
}
