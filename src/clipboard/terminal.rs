//! OSC 52: an escape sequence by which a terminal takes a text for the clipboard of the machine that
//! it is shown on, wherever this program runs. Nobody says whether it did.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use wait_timeout::ChildExt;

use super::{Surroundings, Way};
use crate::program::{self, Programs};
use crate::terminal::{self, TERMINAL};

/// The longest text that is sent, in bytes: 100,000 characters of base64, which is as much as several
/// terminals take of one sequence.
const LIMIT: usize = 74_994;
/// How long tmux may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a text to the terminal's clipboard.
///
/// # Errors
/// There is no terminal, it is one that has no clipboard, or the text is too long for it.
pub(super) fn copy(text: &str, at: &Surroundings) -> Result<Way, String> {
    let way = way(at)?;
    if text.len() > LIMIT {
        return Err(format!(
            "the text is {} bytes long, and terminals take no more than {LIMIT} at once: copy it in parts, as `deaddrop show --copy --part 1` does",
            text.len()
        ));
    }
    if way == Way::Tmux {
        return to_tmux(text, &at.programs).map(|()| way);
    }
    terminal::copy(&STANDARD.encode(text), at.tmux)
        .map_err(|e| format!("{TERMINAL} cannot be written: {e}"))?;
    Ok(way)
}

/// How a text would be sent to the terminal's clipboard.
///
/// # Errors
/// There is no terminal, or it is one that has no clipboard.
pub(super) fn way(at: &Surroundings) -> Result<Way, String> {
    if !at.terminal {
        return Err("this does not run at a terminal".to_owned());
    }
    if matches!(&*at.term, "" | "dumb" | "linux") {
        return Err(format!("a terminal of type '{}' has no clipboard", at.term));
    }
    if at.screen {
        return Err("GNU screen passes no long text on to its terminal".to_owned());
    }
    Ok(if at.tmux && !tmux_passes_on(&at.programs) { Way::Tmux } else { Way::Terminal })
}

/// Whether the tmux around this process passes sequences on to its terminal.
fn tmux_passes_on(programs: &Programs) -> bool {
    let Ok(mut asking) = programs.command("tmux") else { return true };
    asking.args(["show-options", "-pAqv", "allow-passthrough"]);
    program::output(asking, PATIENCE)
        .map_or(true, |output| matches!(output.stdout.trim_ascii(), b"on" | b"all"))
}

/// Gives tmux a text, to keep and to give to its terminal.
fn to_tmux(text: &str, programs: &Programs) -> Result<(), String> {
    const ADVICE: &str = "`tmux set -g allow-passthrough on` has it pass texts on";
    let mut loading = programs.command("tmux").map_err(|e| format!("tmux: {e}; {ADVICE}"))?;
    loading.args(["load-buffer", "-w", "-"]);
    loading.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = loading.spawn().map_err(|e| format!("tmux: {e}; {ADVICE}"))?;
    // More than a pipe holds waits for tmux, which reads it at once.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    match child.wait_timeout(PATIENCE) {
        Ok(Some(status)) if status.success() && written.is_ok() => Ok(()),
        Ok(Some(status)) => Err(format!("tmux load-buffer -w failed ({status}); {ADVICE}")),
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("tmux does not answer; {ADVICE}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(term: &str) -> Surroundings {
        let mut at = Surroundings::of(&[]);
        (at.terminal, at.term) = (true, term.to_owned());
        at
    }

    #[test]
    fn the_longest_text_fits_into_what_terminals_take() {
        assert!(STANDARD.encode("x".repeat(LIMIT)).len() <= 100_000);
    }

    #[test]
    fn what_a_terminal_does_not_take_is_not_sent_and_told() {
        let why = |text: &str, at: &Surroundings| copy(text, at).unwrap_err();
        assert!(why("x", &Surroundings::of(&[])).contains("at a terminal"));
        assert!(why("x", &at("dumb")).contains("'dumb'"));
        let told = why(&"x".repeat(LIMIT + 1), &at("xterm"));
        assert!(told.contains("74995") && told.contains("--part 1"), "{told}");
        let mut screen = at("screen");
        screen.screen = true;
        assert!(why("x", &screen).contains("GNU screen"));
    }
}
