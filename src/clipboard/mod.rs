//! The clipboard: puts a text there so that it outlives this process, and reads what is there.
//!
//! Whatever talks to a display is a helper: this same program, started anew, with none of its
//! parent's descriptors and little of its environment, and ended at a deadline. So a clipboard that
//! hangs or fails costs its user a wait and nothing more.
//!
//! ```text
//! surroundings  which ways this process has      terminal  OSC 52: a terminal's own clipboard
//! helper        starts helpers, and waits        tools     wl-copy, xclip and xsel
//! inside        what a helper does               display   arboard: X11 and Wayland
//! copier        copies beside other work         watcher   tells of replies that come there
//! ```
//!
//! Nothing that was read here is ever written anywhere else than to whoever asked for it.

mod copier;
mod display;
mod helper;
mod inside;
mod surroundings;
mod terminal;
mod tools;
mod watcher;

use std::fmt;

pub use copier::{Copier, Told};
pub use inside::dispatch;
pub use surroundings::Surroundings;
pub use watcher::{Heard, Watcher};

/// The longest text that is put on a clipboard or taken from one, in bytes.
pub const LIMIT: usize = 8 << 20;

/// A way to a clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The desktop's, over Wayland.
    Wayland,
    /// The desktop's, over X11.
    X11,
    /// That of a system that has one without a display.
    System,
    /// The program `wl-copy`, and `wl-paste` to read.
    WlCopy,
    /// The program `xclip`.
    Xclip,
    /// The program `xsel`.
    Xsel,
    /// tmux takes it, and gives it to the terminal that it is shown in.
    Tmux,
    /// The terminal takes it, by an escape sequence; it can be on another machine.
    Terminal,
}

/// A way that was tried in vain, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Which; None where it is about all of them.
    pub way: Option<Way>,
    /// Why it is none.
    pub why: String,
}

/// What a clipboard holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This text.
    Text(String),
    /// Nothing, or nothing that is a text.
    Empty,
}

impl Way {
    /// What it is called in results that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wayland => "wayland",
            Self::X11 => "x11",
            Self::System => "system",
            Self::WlCopy => "wl-copy",
            Self::Xclip => "xclip",
            Self::Xsel => "xsel",
            Self::Tmux => "tmux",
            Self::Terminal => "osc52",
        }
    }

    /// The way of that name.
    fn named(name: &str) -> Option<Self> {
        const HELPERS: [Way; 6] =
            [Way::Wayland, Way::X11, Way::System, Way::WlCopy, Way::Xclip, Way::Xsel];
        HELPERS.into_iter().find(|way| way.name() == name)
    }

    /// Whether another way asks the same display, and so the same holder of its clipboard.
    fn shares_display(self, other: Self) -> bool {
        let is_x11 = |way| matches!(way, Self::X11 | Self::Xclip | Self::Xsel);
        let is_wayland = |way| matches!(way, Self::Wayland | Self::WlCopy);
        is_x11(self) && is_x11(other) || is_wayland(self) && is_wayland(other)
    }

    /// Whether nobody tells what became of the text: a terminal takes it or does not.
    pub fn is_unanswered(self) -> bool {
        matches!(self, Self::Tmux | Self::Terminal)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wayland => "the desktop's clipboard, over Wayland",
            Self::X11 => "the desktop's clipboard, over X11",
            Self::System => "the system's clipboard",
            Self::WlCopy => "the desktop's clipboard, with wl-copy",
            Self::Xclip => "the desktop's clipboard, with xclip",
            Self::Xsel => "the desktop's clipboard, with xsel",
            Self::Tmux => "the terminal's clipboard, through tmux (load-buffer -w)",
            Self::Terminal => "the terminal's clipboard (OSC 52)",
        })
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Some(way) => write!(f, "{}: {}", way.name(), self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// Why no way was one, as one phrase.
pub fn told(passed: &[Passed]) -> String {
    passed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Puts a text on the clipboard, the first way that takes it. It stays there when this process ends.
///
/// # Errors
/// No way takes it; each says why.
pub fn copy(text: &str, at: &Surroundings) -> Result<Way, Vec<Passed>> {
    let mut passed = Vec::new();
    if text.len() > LIMIT {
        let why = format!("it is {} bytes long, and no more than {LIMIT} are copied", text.len());
        return Err(vec![Passed { way: None, why }]);
    }
    for way in at.ways() {
        match helper::hold(way, text, at) {
            Ok(()) => return Ok(way),
            Err(why) => passed.push(Passed { way: Some(way), why }),
        }
    }
    if passed.is_empty() {
        passed.push(Surroundings::without_display());
    }
    match terminal::copy(text, at) {
        Ok(way) => Ok(way),
        Err(why) => {
            passed.push(Passed { way: Some(Way::Terminal), why });
            Err(passed)
        }
    }
}

/// Reads the clipboard, the first way that has a text. Terminals are not asked: few answer, and those
/// that do would answer any program. `waits` is told of a way that takes long.
///
/// Where whoever holds the clipboard does not answer, other ways to the same display are not tried: all
/// would ask the same program.
///
/// # Errors
/// No way can be read; each says why.
pub fn read(at: &Surroundings, waits: &dyn Fn(Way)) -> Result<(Way, Found), Vec<Passed>> {
    let (mut passed, mut empty) = (Vec::new(), None);
    let mut silent: Option<Way> = None;
    for way in at.ways() {
        if silent.is_some_and(|silent| silent.shares_display(way)) {
            continue;
        }
        match helper::read(way, at, &|| waits(way)) {
            Err(why) if helper::is_silence(&why) => {
                silent = Some(way);
                passed.push(Passed { way: Some(way), why });
            }
            Ok(Found::Empty) => empty = empty.or(Some(way)),
            Ok(found) => return Ok((way, found)),
            Err(why) if helper::is_of_the_text(&why) => {
                return Err(vec![Passed { way: Some(way), why }]);
            }
            Err(why) => passed.push(Passed { way: Some(way), why }),
        }
    }
    if let Some(way) = empty {
        return Ok((way, Found::Empty));
    }
    if passed.is_empty() {
        passed.push(Surroundings::without_display());
    }
    Err(passed)
}
