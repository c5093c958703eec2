//! Reads the person's input: a file, standard input, or a text pasted into the terminal.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

use rustix::termios::OptionalActions;

use super::keyboard::{CTRL_C, CTRL_D, KeyInput, Keyboard, KeyboardEvent};
use super::output;
use crate::error::{Error, Result};
use crate::inbox;
use crate::terminal::{Stream, Styled};
use crate::text::visible_line;

/// A text that was read.
pub(super) struct TextInput {
    /// The name of the input in messages.
    pub(super) name: String,
    /// The text, or the reason why the input is not text.
    pub(super) text: Result<String, String>,
}

impl TextInput {
    /// Reads a file, or standard input if `file` is `-`. `doing` begins the error message, as in "read the reply from".
    pub(super) fn read(file: &Path, doing: &'static str) -> Result<Self> {
        let is_file = file != Path::new("-");
        let path = if is_file { file } else { Path::new("standard input") };
        let mut bytes = Vec::new();
        let limit = inbox::SIZE_LIMIT + 1;
        if is_file {
            File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        } else {
            if can_paste() {
                let announced = format!(
                    "Waiting to {doing} the keyboard.\nCtrl-D on a line of its own ends it."
                );
                let _ = Stream::Err.line(&Styled::from(announced));
            }
            io::stdin().take(limit).read_to_end(&mut bytes)
        }
        .map_err(|e| Error::io(doing, path, e))?;
        let name = visible_line(&path.to_string_lossy()).into_owned();
        Ok(Self { name, text: text(bytes) })
    }
}

/// Decodes the bytes. The error is the reason why they are not text. Their full length is unknown at the limit.
fn text(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.len() as u64 > inbox::SIZE_LIMIT {
        return Err(format!("it is longer than {} bytes; no more is read", inbox::SIZE_LIMIT));
    }
    inbox::decode(bytes)
}

/// The arguments that another deaddrop passes in the first line of standard input. The rest of standard input is for
/// the command.
#[cfg(feature = "serve")]
pub(super) fn passed_arguments() -> Vec<std::ffi::OsString> {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
    let arguments: Vec<String> = serde_json::from_str(&line).unwrap_or_default();
    arguments.into_iter().map(Into::into).collect()
}

/// A key that ends an unmarked paste counts only if no input follows for this long.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether standard input is a terminal that a person can paste into.
pub(super) fn can_paste() -> bool {
    io::stdin().is_terminal() && Stream::Err.is_terminal()
}

/// Asks for a paste and reads it. The inner error is the reason why it is not text.
///
/// # Errors
/// The terminal fails, or the person pressed Ctrl-C.
pub(super) fn read_paste() -> Result<Result<String, String>> {
    let fail = |e: io::Error| Error::io("read the reply from", "the terminal".as_ref(), e);
    let mut keyboard = Keyboard::open(OptionalActions::Now).map_err(fail)?;
    output::say("Paste the reply here (then press Ctrl-D, if nothing happens):");
    let bytes = read_until_end(&mut keyboard);
    drop(keyboard);
    match bytes.map_err(fail)? {
        None => Err(Error::interrupted()),
        Some(bytes) => Ok(text(bytes)),
    }
}

/// Reads up to the end of a marked paste, or up to a Ctrl-D with no input after it, and discards the rest. None if
/// Ctrl-C, a signal or the end of the terminal comes first.
fn read_until_end(keyboard: &mut Keyboard) -> io::Result<Option<Vec<u8>>> {
    let (mut typed, mut pasted) = (Vec::new(), Vec::new());
    let add = |bytes: &mut Vec<u8>, byte| {
        // Input beyond the limit is also read. Otherwise the shell would get it.
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
                        KeyInput::Typed(byte) => add(&mut typed, byte),
                        KeyInput::Pasted(byte) => add(&mut pasted, byte),
                        KeyInput::PasteEnds => {
                            keyboard.drain()?;
                            return Ok(Some(pasted));
                        }
                    }
                }
            }
        }
    }
}
