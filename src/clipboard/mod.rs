//! The clipboard: copies a text so that it outlives this process, reads, and watches for replies.
//!
//! Only a helper talks to a display: this program, started anew with no descriptors of its parent and little of
//! its environment, and with a deadline. A clipboard that hangs or fails costs a wait and nothing more.
//!
//! ```text
//! environment  which ways there are         terminal  OSC 52, through tmux where it runs
//! spawn        starts helpers and waits     report    what a helper tells its parent
//! helper       the helper process           display   arboard: X11, Wayland and macOS
//! copier       copies in a thread           watcher   listens to a watching helper in a thread
//! ```
//!
//! What is read here goes to the caller only.

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
pub use environment::ClipboardEnvironment;
pub use helper::dispatch;
pub use watcher::{ClipboardEvent, ClipboardWatcher};

use report::Failure;

/// The longest text that is copied or read, in bytes.
pub const LIMIT: usize = 8 << 20;

/// Why there may be no way to a display.
pub const NO_DISPLAY: &str =
    "there is no display here (neither WAYLAND_DISPLAY nor DISPLAY is set)";

/// A way to a clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClipboardBackend {
    /// The desktop's, over Wayland.
    Wayland,
    /// The desktop's, over X11.
    X11,
    /// That of macOS.
    System,
    /// The terminal's, through tmux.
    Tmux,
    /// The terminal's, by an escape sequence. The terminal may be on another machine.
    Terminal,
}

impl ClipboardBackend {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wayland => "wayland",
            Self::X11 => "x11",
            Self::System => "system",
            Self::Tmux => "tmux",
            Self::Terminal => "osc52",
        }
    }

    /// Whether nobody reports if the text has arrived.
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

/// Copies a text, the first way that takes it. It stays on the clipboard when this process ends.
///
/// # Errors
/// No way takes it. The error gives the reason of each.
pub fn copy(text: &str, environment: &ClipboardEnvironment) -> Result<ClipboardBackend, String> {
    if text.len() > LIMIT {
        return Err(format!(
            "it is {} bytes long, and no more than {LIMIT} are copied",
            text.len()
        ));
    }
    match first(&environment.backends(), |way| spawn::hold(way, text, environment)) {
        Ok((way, ())) => Ok(way),
        Err(failed) => terminal::copy(text, environment)
            .map_err(|why| format!("{failed}; {}: {why}", ClipboardBackend::Terminal.name())),
    }
}

/// Reads the clipboard, the first way that answers: a text, or None where there is none. Terminals are not
/// asked, since few answer, and those would answer any program. `waits` is called where a way takes long.
///
/// # Errors
/// No way can be read. The error gives the reason of each.
pub fn read(
    environment: &ClipboardEnvironment,
    waits: &dyn Fn(ClipboardBackend),
) -> Result<(ClipboardBackend, Option<String>), String> {
    first(&environment.backends(), |way| spawn::read(way, environment, || waits(way)))
}

/// Tries ways until one succeeds.
fn first<T>(
    ways: &[ClipboardBackend],
    mut attempt: impl FnMut(ClipboardBackend) -> Result<T, Failure>,
) -> Result<(ClipboardBackend, T), String> {
    let mut failed = Vec::new();
    for way in ways {
        match attempt(*way) {
            Ok(done) => return Ok((*way, done)),
            Err(failure) => {
                failed.push(format!("{}: {failure}", way.name()));
                if failure.is_final() {
                    break;
                }
            }
        }
    }
    Err(if failed.is_empty() { NO_DISPLAY.to_owned() } else { failed.join("; ") })
}
