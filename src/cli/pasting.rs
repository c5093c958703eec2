//! A text that is pasted into the terminal, as over SSH, where there is no other way to it. A terminal
//! that waits for whole lines cuts those of more than 4096 bytes, so it is read as it comes.

use std::io::{self, IsTerminal};
use std::time::Duration;

use super::keyboard::{CTRL_C, CTRL_D, Key, Keyboard, KeyboardEvent, TypedBefore};
use super::output::Terminal;
use crate::error::{Error, Result};
use crate::inbox;
use crate::terminal::Stream;

/// A key that ends what was pasted without marks counts when nothing follows it for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether standard input is a terminal that one can paste into.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && Stream::Err.is_terminal()
}

/// Asks for a paste, and reads it.
///
/// # Errors
/// The terminal fails, the person pressed Ctrl-C, or it is longer than a reply may be.
pub(super) fn read(ui: &Terminal) -> Result<Result<String, String>> {
    let fail = |e: io::Error| Error::io("read the reply from", "the terminal".as_ref(), e);
    let mut keyboard = Keyboard::open(TypedBefore::Kept).map_err(fail)?;
    ui.say("Paste the reply here (then press Ctrl-D, if nothing happens):");
    let bytes = until_its_end(&mut keyboard);
    drop(keyboard);
    match bytes.map_err(fail)? {
        None => Err(Error::interrupted()),
        Some(bytes) if bytes.len() as u64 > inbox::SIZE_LIMIT => {
            Ok(Err(format!("it is longer than {} bytes; no more is read", inbox::SIZE_LIMIT)))
        }
        Some(bytes) => Ok(inbox::decode(bytes)),
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
