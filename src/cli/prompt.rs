//! A question at the terminal that blocks nothing: a thread listens for the answer, and stops when somebody else has
//! decided. Only keys that were typed by hand after the question appeared count as an answer.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::OptionalActions;

use super::keyboard::{CTRL_C, CTRL_D, Key, Keyboard, KeyboardEvent, QUIET, is_in_front};
use super::output::Terminal;
use super::{live, rows};
use crate::session::{ApprovalDecision, Question};
use crate::terminal::{Stream, Styled};

const CTRL_U: u8 = 0x15;
const CTRL_Z: u8 = 0x1a;
const CTRL_BACKSLASH: u8 = 0x1c;
/// If input does not pause within this many reads, the question is not asked.
const MOST_BEFORE: usize = 100;

/// The person's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Yes.
    Yes,
    /// Yes, now and whenever the same is asked again.
    Always,
    /// An empty line: the default of the question.
    Blank,
    /// No, or any other text.
    No,
    /// No, also to all further questions of the same reply.
    Rest,
    /// The terminal's input ended without an answer.
    Nothing,
}

/// A question that is shown and not answered yet.
pub(super) struct Prompt {
    answers: Receiver<Said>,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Prompt {
    /// Shows a question; None without a person at a terminal.
    pub(super) fn put(ui: &Terminal, question: impl Into<Styled>) -> Option<Self> {
        let is_terminal = io::stdin().is_terminal() && Stream::Err.is_terminal();
        if ui.quiet || !is_terminal || !is_in_front(io::stdin()) {
            return None;
        }
        // Keys typed before the question, and the rest of a paste, are not meant for it.
        let mut keyboard = Keyboard::open(OptionalActions::Flush).ok()?;
        let is_quiet = (0..MOST_BEFORE).find_map(|_| match keyboard.read(QUIET / 2) {
            Ok(KeyboardEvent::Keys(_)) => None,
            event => Some(matches!(event, Ok(KeyboardEvent::Quiet))),
        });
        if is_quiet != Some(true) || !ui.prompt(question) {
            return None;
        }
        let (sender, answers) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let listen = move || {
            let said = listen(&mut keyboard, &told);
            // A signal that came takes effect now.
            drop(keyboard);
            // Nobody receives it if the question was withdrawn.
            let _ = said.map(|said| sender.send(said));
        };
        let Ok(listener) = thread::Builder::new().name("answer".into()).spawn(listen) else {
            live::release();
            return None;
        };
        Some(Self { answers, over, listener: Some(listener) })
    }

    /// Waits this long for an answer.
    pub(super) fn wait(&self, time: Duration) -> Option<Said> {
        self.answers.recv_timeout(time).ok()
    }

    /// Waits for the answer. A signal counts as the end of input.
    pub(super) fn answer(self) -> Said {
        self.answers.recv().unwrap_or(Said::Nothing)
    }
}

impl Drop for Prompt {
    /// Waits for the listener, which would otherwise take the answer to the next question.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        live::release();
    }
}

impl Said {
    /// The decision that this answer makes about `question`. An answer that the question does not offer is a no.
    pub(super) fn about(self, question: &Question) -> ApprovalDecision {
        let (approved, further) = match self {
            Self::Yes => (true, false),
            Self::Always if question.ask.always => (true, true),
            Self::Rest => (false, true),
            Self::Always | Self::Blank | Self::No | Self::Nothing => (false, false),
        };
        ApprovalDecision { question: question.clone(), approved, further, reason: None }
    }
}

/// Parses a line as an answer.
fn meaning(line: &str) -> Said {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Said::Yes,
        "a" | "always" => Said::Always,
        "r" | "rest" => Said::Rest,
        "" => Said::Blank,
        _ => Said::No,
    }
}

/// Listens for a typed line; None if the question is withdrawn or a signal comes.
fn listen(keyboard: &mut Keyboard, over: &AtomicBool) -> Option<Said> {
    let (mut line, mut keys) = (String::new(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        match keyboard.read(QUIET) {
            Ok(KeyboardEvent::Keys(event)) => {
                for key in event {
                    match key {
                        Key::Typed(byte) => keys.push(byte),
                        Key::Pasted(_) => {}
                        // Keys in the same burst as a paste were not typed by hand.
                        Key::PasteEnds => keys.clear(),
                    }
                }
            }
            Ok(KeyboardEvent::Quiet) => {
                if let Some(said) = typed(&std::mem::take(&mut keys), &mut line) {
                    return Some(said);
                }
            }
            Ok(KeyboardEvent::Signal) => return None,
            Ok(KeyboardEvent::Gone) | Err(_) => return Some(Said::Nothing),
        }
    }
    None
}

/// Adds a burst of keys (without pauses between them) to the line, and returns the answer when the line ends. A burst
/// with several lines, or with a control character among others, was not typed by hand and is ignored.
fn typed(keys: &[u8], line: &mut String) -> Option<Said> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if let [key, same @ ..] = keys
        && same.iter().all(|other| other == key)
    {
        let signal = match *key {
            CTRL_C => Some(Signal::INT),
            CTRL_BACKSLASH => Some(Signal::QUIT),
            CTRL_Z => Some(Signal::TSTP),
            CTRL_D if line.is_empty() => return Some(Said::Nothing),
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
        Stream::Err.erase(rows::wide(&erased));
    }
    if !ends {
        return None;
    }
    let _ = Stream::Err.line(&Styled::default());
    Some(meaning(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for line in ["y", "Y", " yes\r", "YES"] {
            assert_eq!(meaning(line), Said::Yes, "{line}");
        }
        assert_eq!(meaning("A\r"), Said::Always);
        assert_eq!(meaning(" rest"), Said::Rest);
        assert_eq!(meaning(" \r"), Said::Blank);
        for line in ["n", "no", "yy", "ye", "y n", "yes!", "approved", "да"] {
            assert_eq!(meaning(line), Said::No, "{line}");
        }
    }

    #[test]
    fn only_what_is_typed_by_hand_is_an_answer() {
        for (bursts, said) in [
            (&["y\n"][..], Some(Said::Yes)),
            (&["y", "e", "s", "\r"], Some(Said::Yes)),
            (&["n", "\u{7f}", "y", "\n"], Some(Said::Yes)),
            (&["no\u{15}yes\n"], Some(Said::Yes)),
            (&["\n"], Some(Said::Blank)),
            (&["\u{4}"], Some(Said::Nothing)),
            (&["y"], None),
            (&["y\ny\n"], None),
            (&["text\ny\n"], None),
            (&["text\u{4}y\n"], None),
            (&["\u{1b}[Ay\n"], None),
            (&["x", "\u{4}"], None),
        ] {
            let mut line = String::new();
            let event = bursts.iter().find_map(|burst| typed(burst.as_bytes(), &mut line));
            assert_eq!(event, said, "{bursts:?}");
        }
    }
}
