//! A question at the terminal that does not keep anything waiting: a thread listens for the answer,
//! and stops to when somebody else has decided.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::live;
use super::talk::Talk;

/// How soon the thread sees that nobody waits for it any more.
const SOON: Duration = Duration::from_millis(50);

/// What a person said to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Yes.
    Yes,
    /// No, or nothing that is a yes.
    No,
    /// The terminal's input ended: that is no answer.
    Nothing,
}

/// A question that was put and is not answered yet.
pub(super) struct Prompt {
    answers: Receiver<Said>,
    over: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Prompt {
    /// Puts a question; None where there is nobody at a terminal.
    pub(super) fn put(talk: &Talk, question: &str) -> Option<Self> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() || !is_in_front() {
            return None;
        }
        // What was typed before it was meant for something else.
        forget_typed();
        if !talk.prompt(question) {
            return None;
        }
        let (sender, answers) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let listen = move || listen(&told, &sender);
        let Ok(listener) = thread::Builder::new().name("answer".into()).spawn(listen) else {
            live::release();
            return None;
        };
        Some(Self { answers, over, listener: Some(listener) })
    }

    /// What was said so far, if anything.
    pub(super) fn said(&self) -> Option<Said> {
        match self.answers.try_recv() {
            Ok(said) => Some(said),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Said::Nothing),
        }
    }

    /// What is said within this time, if anything.
    pub(super) fn wait(&self, time: Duration) -> Option<Said> {
        match self.answers.recv_timeout(time) {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Said::Nothing),
        }
    }
}

impl Drop for Prompt {
    /// Waits for the listener, or it would take the answer to the next question.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        live::release();
    }
}

/// What a line says.
fn meaning(line: &str) -> Said {
    let yes = ["y", "yes"].iter().any(|yes| line.trim().eq_ignore_ascii_case(yes));
    if yes { Said::Yes } else { Said::No }
}

/// Whether the terminal is ours: a program in the background that reads from it is stopped.
#[cfg(unix)]
fn is_in_front() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(unix)]
pub(super) fn forget_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Reads one line, looking up between.
#[cfg(unix)]
fn listen(over: &AtomicBool, answer: &Sender<Said>) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    let patience = Timespec::try_from(SOON).ok();
    let stdin = io::stdin();
    let mut line = Vec::new();
    while !over.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], patience.as_ref()) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) if !is_in_front() => {
                thread::sleep(SOON);
                continue;
            }
            Ok(_) => {}
            Err(_) => break,
        }
        let mut bytes = [0; 256];
        // Not through std's buffer, which might keep what follows.
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) => break,
            Ok(n) => line.extend_from_slice(&bytes[..n]),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) => break,
        }
        if let Some(end) = line.iter().position(|b| *b == b'\n') {
            // Nobody listens where the question is over.
            let _ = answer.send(meaning(&String::from_utf8_lossy(&line[..end])));
            return;
        }
    }
    let _ = answer.send(Said::Nothing);
}

#[cfg(not(unix))]
fn is_in_front() -> bool {
    false
}

#[cfg(not(unix))]
pub(super) fn forget_typed() {}

#[cfg(not(unix))]
fn listen(_: &AtomicBool, answer: &Sender<Said>) {
    let _ = answer.send(Said::Nothing);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for line in ["y", "Y", " yes\r", "YES"] {
            assert_eq!(meaning(line), Said::Yes, "{line}");
        }
        for line in ["", "n", "no", "yy", "ye", "y n", "yes!", "approved", "да"] {
            assert_eq!(meaning(line), Said::No, "{line}");
        }
    }
}
