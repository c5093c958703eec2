//! A question at the terminal that does not block: a thread listens for the answer, and stops when the question is
//! decided elsewhere. Only keys typed by hand after the question appeared count as an answer.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::OptionalActions;

use super::keyboard::{CTRL_C, CTRL_D, KeyInput, Keyboard, KeyboardEvent, QUIET, is_in_front};
use super::output;
use super::{live, rows};
use crate::session::{ApprovalDecision, Question};
use crate::terminal::{Stream, Styled};

const CTRL_U: u8 = 0x15;
const CTRL_Z: u8 = 0x1a;
const CTRL_BACKSLASH: u8 = 0x1c;
/// If the input does not pause within this many reads, the question is not asked.
const MAX_READS_BEFORE: usize = 100;

/// The person's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptAnswer {
    /// Yes.
    Yes,
    /// Yes, now and whenever the same question would be asked again.
    Always,
    /// An empty line, for the default of the question.
    Blank,
    /// No, or any other text.
    No,
    /// No, also for all further questions of the same reply.
    NoToRest,
    /// The terminal's input ended without an answer.
    EndOfInput,
}

/// A question that is shown and not yet answered.
pub(super) struct Prompt {
    answers: Receiver<PromptAnswer>,
    withdrawn: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Prompt {
    /// Shows a question; None if there is no person at a terminal.
    pub(super) fn show(question: impl Into<Styled>) -> Option<Self> {
        let is_terminal = io::stdin().is_terminal() && Stream::Err.is_terminal();
        if output::is_quiet() || !is_terminal || !is_in_front(io::stdin()) {
            return None;
        }
        // Keys typed before the question, and the rest of a paste, are not an answer to it.
        let mut keyboard = Keyboard::open(OptionalActions::Flush).ok()?;
        let is_quiet = (0..MAX_READS_BEFORE).find_map(|_| match keyboard.read(QUIET / 2) {
            Ok(KeyboardEvent::Keys(keys)) if keys.contains(&KeyInput::Typed(CTRL_C)) => {
                // The person stops deaddrop, so there is nothing to ask.
                let _ = kill_current_process_group(Signal::INT);
                Some(false)
            }
            Ok(KeyboardEvent::Keys(_)) => None,
            event => Some(matches!(event, Ok(KeyboardEvent::Quiet))),
        });
        if is_quiet != Some(true) || !output::prompt(question) {
            return None;
        }
        let (sender, answers) = mpsc::channel();
        let withdrawn = Arc::new(AtomicBool::new(false));
        let is_withdrawn = Arc::clone(&withdrawn);
        let listen = move || {
            let answer = listen(&mut keyboard, &is_withdrawn);
            // The next output begins a new row.
            if matches!(answer, None | Some(PromptAnswer::EndOfInput)) {
                let _ = Stream::Err.line(&Styled::default());
            }
            // A signal that arrived takes effect now.
            drop(keyboard);
            // If the question was withdrawn, nobody receives the answer.
            let _ = answer.map(|answer| sender.send(answer));
        };
        let Ok(listener) = thread::Builder::new().name("answer".into()).spawn(listen) else {
            live::release();
            return None;
        };
        Some(Self { answers, withdrawn, listener: Some(listener) })
    }

    /// Waits for an answer, at most for this time.
    pub(super) fn wait(&self, time: Duration) -> Option<PromptAnswer> {
        self.answers.recv_timeout(time).ok()
    }

    /// Waits for the answer. A signal counts as the end of input.
    pub(super) fn answer(self) -> PromptAnswer {
        self.answers.recv().unwrap_or(PromptAnswer::EndOfInput)
    }
}

impl Drop for Prompt {
    /// Waits for the listener. Otherwise it would take the answer to the next question.
    fn drop(&mut self) {
        self.withdrawn.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        live::release();
    }
}

impl PromptAnswer {
    /// The decision on `question` by this answer. An answer that the question does not offer means no.
    pub(super) fn decision_on(self, question: &Question) -> ApprovalDecision {
        let (approved, further) = match self {
            Self::Yes => (true, false),
            Self::Always if question.ask.always => (true, true),
            Self::NoToRest => (false, true),
            Self::Always | Self::Blank | Self::No | Self::EndOfInput => (false, false),
        };
        ApprovalDecision { question: question.clone(), approved, further, reason: None }
    }
}

/// Parses a line as an answer.
fn parse_answer(line: &str) -> PromptAnswer {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => PromptAnswer::Yes,
        "a" | "always" => PromptAnswer::Always,
        "r" | "rest" => PromptAnswer::NoToRest,
        "" => PromptAnswer::Blank,
        _ => PromptAnswer::No,
    }
}

/// Listens for a typed line; None if the question is withdrawn or a signal arrives.
fn listen(keyboard: &mut Keyboard, withdrawn: &AtomicBool) -> Option<PromptAnswer> {
    let (mut line, mut keys) = (String::new(), Vec::new());
    while !withdrawn.load(Ordering::Relaxed) {
        match keyboard.read(QUIET) {
            Ok(KeyboardEvent::Keys(event)) => {
                for key in event {
                    match key {
                        KeyInput::Typed(byte) => keys.push(byte),
                        KeyInput::Pasted(_) => {}
                        // Keys in the same burst as a paste were not typed by hand.
                        KeyInput::PasteEnds => keys.clear(),
                    }
                }
            }
            Ok(KeyboardEvent::Quiet) => {
                if let Some(answer) = take_burst(&std::mem::take(&mut keys), &mut line) {
                    return Some(answer);
                }
            }
            Ok(KeyboardEvent::Signal) => return None,
            Ok(KeyboardEvent::Gone) | Err(_) => return Some(PromptAnswer::EndOfInput),
        }
    }
    None
}

/// Adds a burst of keys (without pauses) to the line, and returns the answer when the line ends. A burst with several
/// lines, or with a control character among other keys, was not typed by hand and is ignored.
fn take_burst(keys: &[u8], line: &mut String) -> Option<PromptAnswer> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if let [key, same @ ..] = keys
        && same.iter().all(|other| other == key)
    {
        let signal = match *key {
            CTRL_C => Some(Signal::INT),
            CTRL_BACKSLASH => Some(Signal::QUIT),
            CTRL_Z => Some(Signal::TSTP),
            CTRL_D if line.is_empty() => return Some(PromptAnswer::EndOfInput),
            _ => None,
        };
        if let Some(signal) = signal {
            let _ = kill_current_process_group(signal);
            return None;
        }
    }
    let (text, ends) = match keys {
        [text @ .., last] if is_end(last) => (text, true),
        text => (text, false),
    };
    let is_typed = |byte: &u8| !byte.is_ascii_control() || matches!(byte, 8 | 0x7f | &CTRL_U);
    if !text.iter().all(is_typed) {
        return None;
    }
    for c in String::from_utf8_lossy(text).chars() {
        let erased = match c {
            '\u{8}' | '\u{7f}' => line.pop().map(String::from).unwrap_or_default(),
            '\u{15}' => std::mem::take(line),
            c => {
                line.push(c);
                let _ = Stream::Err.text(&Styled::from(c.to_string()));
                continue;
            }
        };
        Stream::Err.erase(rows::display_width(&erased));
    }
    if !ends {
        return None;
    }
    let _ = Stream::Err.line(&Styled::default());
    Some(parse_answer(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for line in ["y", "Y", " yes\r", "YES"] {
            assert_eq!(parse_answer(line), PromptAnswer::Yes, "{line}");
        }
        assert_eq!(parse_answer("A\r"), PromptAnswer::Always);
        assert_eq!(parse_answer(" rest"), PromptAnswer::NoToRest);
        assert_eq!(parse_answer(" \r"), PromptAnswer::Blank);
        for line in ["n", "no", "yy", "ye", "y n", "yes!", "approved", "да"] {
            assert_eq!(parse_answer(line), PromptAnswer::No, "{line}");
        }
    }

    #[test]
    fn only_what_is_typed_by_hand_is_an_answer() {
        for (bursts, answer) in [
            (&["y\n"][..], Some(PromptAnswer::Yes)),
            (&["y", "e", "s", "\r"], Some(PromptAnswer::Yes)),
            (&["n", "\u{7f}", "y", "\n"], Some(PromptAnswer::Yes)),
            (&["no\u{15}yes\n"], Some(PromptAnswer::Yes)),
            (&["\n"], Some(PromptAnswer::Blank)),
            (&["\u{4}"], Some(PromptAnswer::EndOfInput)),
            (&["y"], None),
            (&["y\ny\n"], None),
            (&["text\ny\n"], None),
            (&["text\u{4}y\n"], None),
            (&["\u{1b}[Ay\n"], None),
            (&["x", "\u{4}"], None),
        ] {
            let mut line = String::new();
            let event = bursts.iter().find_map(|burst| take_burst(burst.as_bytes(), &mut line));
            assert_eq!(event, answer, "{bursts:?}");
        }
    }
}
