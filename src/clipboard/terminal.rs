//! The terminal's clipboard. The escape sequence OSC 52 makes a terminal copy a text on the machine where it is
//! displayed. Terminals do not confirm the copy.

use std::ffi::OsString;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{ClipboardBackend, ClipboardSetup};
use crate::program;
use crate::terminal::{self, TERMINAL};

/// The longest text that is sent, in bytes. In base64 it has about 100,000 characters, the most that several terminals
/// accept in one sequence.
const LIMIT: usize = 74_994;
/// The most time for tmux.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a text to the terminal's clipboard.
///
/// # Errors
/// There is no terminal, it has no clipboard, or the text is too long.
pub(super) fn copy(text: &str, setup: &ClipboardSetup) -> Result<ClipboardBackend, String> {
    let backend = setup.terminal()?;
    if text.len() > LIMIT {
        return Err(format!(
            "the text is {} bytes long, and terminals accept at most {LIMIT} at once; copy it in parts, beginning with `deaddrop show --copy --part 1`",
            text.len()
        ));
    }
    if backend == ClipboardBackend::Tmux {
        // tmux keeps the text as a buffer, and passes it to its terminal.
        let loaded = setup.programs.command("tmux").and_then(|mut tmux| {
            tmux.args(["load-buffer", "-w", "-"]);
            program::output(tmux, text, PATIENCE)
        });
        let why = match loaded {
            Ok(output) if output.status.success() => return Ok(backend),
            Ok(output) => format!("it failed ({})", output.status),
            Err(e) => e.to_string(),
        };
        return Err(format!("tmux load-buffer -w (since tmux 3.2): {why}"));
    }
    terminal::copy(&STANDARD.encode(text))
        .map_err(|e| format!("{TERMINAL} cannot be written: {e}"))?;
    Ok(backend)
}

/// The backend for the terminal's clipboard.
///
/// # Errors
/// There is no terminal, or it has no clipboard.
pub(super) fn backend(
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<ClipboardBackend, String> {
    if !is_terminal {
        return Err("this does not run at a terminal".to_owned());
    }
    let term = variable("TERM").unwrap_or_default().to_string_lossy().into_owned();
    if matches!(&*term, "" | "dumb" | "linux") {
        return Err(format!("a terminal of type '{term}' has no clipboard"));
    }
    match (variable("TMUX"), variable("STY")) {
        (Some(_), _) => Ok(ClipboardBackend::Tmux),
        (None, Some(_)) => Err("GNU screen does not pass long texts to its terminal".to_owned()),
        (None, None) => Ok(ClipboardBackend::Terminal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_text_fits_into_what_terminals_take() {
        assert!(STANDARD.encode("x".repeat(LIMIT)).len() <= 100_000);
    }

    #[test]
    fn a_terminal_without_a_clipboard_is_no_way_and_within_tmux_there_is_one() {
        let at = |variables: &[(&str, &str)]| {
            backend(true, |name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            })
        };
        assert!(backend(false, |_| Some("xterm".into())).unwrap_err().contains("at a terminal"));
        assert!(at(&[]).unwrap_err().contains("''"));
        assert!(at(&[("TERM", "dumb")]).unwrap_err().contains("'dumb'"));
        assert_eq!(at(&[("TERM", "xterm")]), Ok(ClipboardBackend::Terminal));
        let screen = [("TERM", "screen"), ("STY", "1"), ("TMUX", "2")];
        assert!(at(&screen[..2]).unwrap_err().contains("GNU screen"));
        assert_eq!(at(&screen), Ok(ClipboardBackend::Tmux));
    }
}
