//! A text that is pasted into the terminal, as over SSH, where there is no other way to it. A terminal
//! that waits for whole lines cuts those of more than 4096 bytes, so it is read as it comes.

use std::io::{self, IsTerminal, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use super::talk::Talk;
use crate::error::{Error, Result};
use crate::inbox;

/// What a terminal sends around a paste that it was asked to mark.
const BEGIN: &[u8] = b"\x1b[200~";
const END: &[u8] = b"\x1b[201~";
const MARKED: &str = "\x1b[?2004h";
const UNMARKED: &str = "\x1b[?2004l";
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

/// Whether standard input is a terminal that one can paste into.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a paste, and reads it.
///
/// # Errors
/// The terminal fails, the person pressed Ctrl-C, or it is longer than a reply may be.
pub(super) fn read(talk: &Talk) -> Result<Result<String, String>> {
    let fail = |e: io::Error| Error::io("read the reply from", "the terminal".as_ref(), e);
    let raw = Raw::set().map_err(fail)?;
    talk.say("Paste the reply here (then press Ctrl-D, if nothing happens):");
    let bytes = until_its_end().map_err(fail);
    drop(raw);
    match bytes? {
        None => Err(Error::interrupted()),
        Some(bytes) if bytes.len() as u64 > inbox::SIZE_LIMIT => {
            Ok(Err(format!("it is longer than {} bytes; no more is read", inbox::SIZE_LIMIT)))
        }
        Some(bytes) => Ok(inbox::decode(bytes)),
    }
}

/// Reads up to the end of a marked paste, or Ctrl-D; None where Ctrl-C came first.
fn until_its_end() -> io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    let mut stdin = io::stdin().lock();
    loop {
        let read = stdin.read(&mut piece)?;
        let from = bytes.len().saturating_sub(END.len());
        bytes.extend_from_slice(&piece[..read]);
        if read == 0 {
            return Ok(Some(bytes));
        }
        match ending(&bytes, from) {
            Some(Ending::Stopped) => return Ok(None),
            Some(Ending::At(end)) => {
                bytes.truncate(end);
                let begin = memchr::memmem::find(&bytes, BEGIN).map_or(0, |at| at + BEGIN.len());
                bytes.drain(..begin);
                return Ok(Some(bytes));
            }
            None if bytes.len() as u64 > inbox::SIZE_LIMIT => return Ok(Some(bytes)),
            None => {}
        }
    }
}

/// How what was typed ends.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// What counts is before this place.
    At(usize),
    /// With Ctrl-C.
    Stopped,
}

/// Where the first end is that stands behind `from`.
fn ending(bytes: &[u8], from: usize) -> Option<Ending> {
    let rest = &bytes[from..];
    let marked = memchr::memmem::find(rest, END);
    let typed = memchr::memchr2(CTRL_C, CTRL_D, rest);
    match (marked, typed) {
        (Some(marked), typed) if typed.is_none_or(|typed| marked < typed) => {
            Some(Ending::At(from + marked))
        }
        (_, Some(typed)) if rest[typed] == CTRL_C => Some(Ending::Stopped),
        (_, Some(typed)) => Some(Ending::At(from + typed)),
        _ => None,
    }
}

/// The terminal gives each byte at once and shows none, until this is dropped.
struct Raw {
    before: Termios,
}

impl Raw {
    fn set() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.local_modes -= LocalModes::IEXTEN;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let _ = write!(io::stderr(), "{MARKED}");
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = write!(io::stderr(), "{UNMARKED}");
        // What was typed behind the end is for nobody.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paste_ends_at_its_mark_or_where_the_person_says_so() {
        assert_eq!(ending(b"abc\n", 0), None);
        assert_eq!(ending(b"\x1b[200~abc\x1b[201~\x04", 0), Some(Ending::At(9)));
        assert_eq!(ending(b"abc\x04", 0), Some(Ending::At(3)));
        assert_eq!(ending(b"abc\x03\x04", 0), Some(Ending::Stopped));
        // A mark can come in two pieces.
        assert_eq!(ending(b"abcdef\x1b[201~", 3), Some(Ending::At(6)));
    }
}
