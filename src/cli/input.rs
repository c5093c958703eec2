//! What a person gives to be read: a file, standard input, or a text that is pasted into the terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use rustix::termios::OptionalActions;

use super::keyboard::{CTRL_C, CTRL_D, Key, Keyboard, KeyboardEvent};
use super::output::Terminal;
use crate::error::{Error, Result};
use crate::inbox;
use crate::terminal::{Stream, Styled};
use crate::text::visible_line;

/// How a person ends what they type.
const END: &str = "Ctrl-D on a line of its own ends it.";

/// What was read.
pub(super) struct Input {
    /// What to call it.
    pub(super) name: String,
    /// Its text, or why it is none.
    pub(super) text: Result<String, String>,
}

impl Input {
    /// Reads a file, or standard input, which is `-`; `doing` is for the error: "read the reply from".
    pub(super) fn read(file: &Path, doing: &'static str) -> Result<Self> {
        let is_file = file != Path::new("-");
        let path = if is_file { file } else { Path::new("standard input") };
        let mut bytes = Vec::new();
        let limit = inbox::SIZE_LIMIT + 1;
        if is_file {
            File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        } else {
            if can_paste() {
                let announced = format!("Waiting to {doing} the keyboard.\n{END}");
                let _ = Stream::Err.line(&Styled::from(announced));
            }
            io::stdin().take(limit).read_to_end(&mut bytes)
        }
        .map_err(|e| Error::io(doing, path, e))?;
        let name = visible_line(&path.to_string_lossy()).into_owned();
        Ok(Self { name, text: text(bytes) })
    }
}

/// What was read as text, or why it is none. How long it is in all is not known: no more is read than one may have.
fn text(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() as u64 > inbox::SIZE_LIMIT {
        return Err(format!("it is longer than {} bytes; no more is read", inbox::SIZE_LIMIT));
    }
    inbox::decode(bytes)
}

/// Arguments that another deaddrop hands over in the first line of standard input; the rest of it is the command's.
#[cfg(feature = "serve")]
pub(super) fn arguments() -> Vec<std::ffi::OsString> {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
    let arguments: Vec<String> = serde_json::from_str(&line).unwrap_or_default();
    arguments.into_iter().map(Into::into).collect()
}

/// A key that ends what was pasted without marks counts when nothing follows it for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether standard input is a terminal that one can paste into.
pub(super) fn can_paste() -> bool {
    io::stdin().is_terminal() && Stream::Err.is_terminal()
}

/// Asks for a paste, and reads it.
///
/// # Errors
/// The terminal fails, the person pressed Ctrl-C, or it is longer than a reply may be.
pub(super) fn read_paste(ui: &Terminal) -> Result<Result<String, String>> {
    let fail = |e: io::Error| Error::io("read the reply from", "the terminal".as_ref(), e);
    let mut keyboard = Keyboard::open(OptionalActions::Now).map_err(fail)?;
    ui.say("Paste the reply here (then press Ctrl-D, if nothing happens):");
    let bytes = until_its_end(&mut keyboard);
    drop(keyboard);
    match bytes.map_err(fail)? {
        None => Err(Error::interrupted()),
        Some(bytes) => Ok(text(bytes)),
    }
}

/// Reads up to the end of a marked paste, or a Ctrl-D that nothing follows, and forgets what comes
/// behind; None where Ctrl-C came first, a signal, or the end of the terminal.
fn until_its_end(keyboard: &mut Keyboard) -> io::Result<Option<Vec<u8>>> {
    let (mut typed, mut pasted) = (Vec::new(), Vec::new());
    let add = |bytes: &mut Vec<u8>, byte| {
        // The rest of what is too long is read all the same, or it would come to the shell.
        if bytes.len() as u64 > inbox::SIZE_LIMIT {
            bytes.pop();
        }
        bytes.push(byte);
    };
    loop {
        match keyboard.read(PAUSE)? {
            KeyboardEvent::Signal | KeyboardEvent::Gone => return Ok(None),
            KeyboardEvent::Quiet => match typed.last() {
                Some(&CTRL_C) => return Ok(None),
                Some(&CTRL_D) => {
                    if typed.len() as u64 <= inbox::SIZE_LIMIT {
                        typed.pop();
                    }
                    return Ok(Some(typed));
                }
                _ => {}
            },
            KeyboardEvent::Keys(keys) => {
                for key in keys {
                    match key {
                        Key::Typed(byte) => add(&mut typed, byte),
                        Key::Pasted(byte) => add(&mut pasted, byte),
                        Key::PasteEnds => {
                            keyboard.drain()?;
                            return Ok(Some(pasted));
                        }
                    }
                }
            }
        }
    }
}
