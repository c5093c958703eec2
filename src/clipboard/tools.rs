//! Programs that reach a clipboard where this one does not: wl-copy and wl-paste, xclip, xsel.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Found, LIMIT, Way};

/// What these programs say of a clipboard that has nothing for them.
const NOTHING: [&str; 5] =
    ["Nothing is copied", "No selection", "No suitable type", "target ", "There is no owner for"];

/// The program that goes this way, if one does: to hold a text, or else to read what is there.
pub(super) fn program(way: Way, verb: &str) -> Option<&'static str> {
    match way {
        Way::WlCopy if verb == "hold" => Some("wl-copy"),
        Way::WlCopy => Some("wl-paste"),
        Way::Xclip => Some("xclip"),
        Way::Xsel => Some("xsel"),
        _ => None,
    }
}

/// How a text is given to it.
fn copying(way: Way, program: &Path) -> Option<Command> {
    let arguments: &[&str] = match way {
        Way::WlCopy => &["--type", "text/plain"],
        Way::Xclip => &["-selection", "clipboard", "-in"],
        Way::Xsel => &["--clipboard", "--input"],
        _ => return None,
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

/// How a text is taken from it.
fn reading(way: Way, program: &Path) -> Option<Command> {
    let arguments: &[&str] = match way {
        Way::WlCopy => &["--no-newline", "--type", "text"],
        Way::Xclip => &["-selection", "clipboard", "-out"],
        Way::Xsel => &["--clipboard", "--output"],
        _ => return None,
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Some(command)
}

/// Gives a text to the program, which goes on in the background to hold it.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub(super) fn copy(way: Way, program: &Path, text: &str) -> Result<(), String> {
    let mut command = copying(way, program).ok_or("no program goes this way")?;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("it cannot be started: {e}"))?;
    let written = child.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
    let status = child.wait().map_err(|e| e.to_string())?;
    match written {
        _ if !status.success() => Err(format!("it failed ({status})")),
        Some(Err(e)) => Err(format!("it did not take the text: {e}")),
        _ => Ok(()),
    }
}

/// Asks the program for the clipboard's text.
///
/// # Errors
/// It cannot be started, failed, or gave what is no text or more than [`LIMIT`].
pub(super) fn read(way: Way, program: &Path) -> Result<Found, String> {
    let mut command = reading(way, program).ok_or("no program goes this way")?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("it cannot be started: {e}"))?;
    let mut bytes = Vec::new();
    let limit = LIMIT as u64 + 1;
    if let Some(output) = child.stdout.take() {
        output.take(limit).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    }
    if bytes.len() > LIMIT {
        let _ = child.kill();
        let _ = child.wait();
        return Err(super::helper::too_long());
    }
    let mut said = String::new();
    if let Some(errors) = child.stderr.take() {
        let _ = errors.take(1_000).read_to_string(&mut said);
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    if !status.success() {
        return if NOTHING.iter().any(|words| said.contains(words)) {
            Ok(Found::Empty)
        } else {
            Err(format!("it failed ({status})"))
        };
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.is_empty() => Ok(Found::Empty),
        Ok(text) => Ok(Found::Text(text)),
        Err(_) => Err(super::helper::NO_TEXT.to_owned()),
    }
}
