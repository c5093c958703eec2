//! The keys of a terminal as they are pressed, told apart from what is pasted.
//!
//! While a [`Keyboard`] stands, the terminal marks pastes and acts on no key by itself: a control
//! character within a paste interrupts nothing, suspends nothing and ends no input. Signals take effect
//! when the input is quiet, so that the rest of a paste reaches no other program.
#![allow(unsafe_code)]

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcsetattr,
};

use crate::terminal::Stream;

/// When nothing came for so long, whatever was pasted is over: it comes at once.
pub(super) const QUIET: Duration = Duration::from_millis(100);
/// So long a signal waits for the end of a paste.
const LATE: Duration = Duration::from_secs(1);
pub(super) const CTRL_C: u8 = 3;
pub(super) const CTRL_D: u8 = 4;

/// What a terminal sends around a paste that it was asked to mark; `0~` follows, or `1~`.
const MARK: &[u8] = b"\x1b[20";
const MARK_LENGTH: usize = 6;
/// Those that would end or stop the program, and leave the terminal as it is now.
const SIGNALS: [i32; 11] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
];

/// The signal that came and has not taken effect, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// How the terminal was, for [`restore`].
static BEFORE: AtomicPtr<Termios> = AtomicPtr::new(std::ptr::null_mut());

/// A byte that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Typed(u8),
    Pasted(u8),
    /// The mark of a paste's end.
    PasteEnds,
}

/// What came of a while of reading.
pub(super) enum KeyboardEvent {
    Keys(Vec<Key>),
    /// Nothing.
    Quiet,
    /// A signal, which takes effect when the keyboard is dropped.
    Signal,
    /// The terminal is gone.
    Gone,
}

pub(super) struct Keyboard {
    /// None while others have the terminal.
    raw: Option<Raw>,
    marks: Marks,
    /// What becomes of what was typed before: [`OptionalActions::Flush`] forgets it.
    before: OptionalActions,
    /// When something came last.
    last: Instant,
}

impl Keyboard {
    pub(super) fn open(before: OptionalActions) -> io::Result<Self> {
        let raw = Some(Raw::set(before)?);
        Ok(Self { raw, marks: Marks::default(), before, last: Instant::now() })
    }

    /// Reads what comes within this time.
    pub(super) fn read(&mut self, wait: Duration) -> io::Result<KeyboardEvent> {
        let (stdin, patience) = (io::stdin(), Timespec::try_from(wait).ok());
        loop {
            if !is_in_front(&stdin) {
                // Who reads in the background is stopped.
                thread::sleep(wait);
                return Ok(self.quiet());
            }
            if self.raw.is_none() {
                self.raw = Some(Raw::set(self.before)?);
            }
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], patience.as_ref()) {
                Ok(0) => return Ok(self.quiet()),
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let mut bytes = [0; 4096];
            // Not through std's buffer, which might keep what follows.
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(0) => return Ok(KeyboardEvent::Gone),
                Ok(n) => {
                    self.last = Instant::now();
                    return Ok(KeyboardEvent::Keys(self.marks.keys(&bytes[..n])));
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Reads on until nothing comes any more, and forgets it.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        while let KeyboardEvent::Keys(_) = self.read(QUIET)? {}
        Ok(())
    }

    fn quiet(&mut self) -> KeyboardEvent {
        // No mark pauses behind its first character: that is a key.
        if !self.marks.within && self.marks.held.len() == 1 {
            self.marks.held.clear();
        }
        match SIGNAL.load(Ordering::SeqCst) {
            0 => KeyboardEvent::Quiet,
            // The rest of a paste would come to the shell.
            _ if self.marks.within && self.last.elapsed() < LATE => KeyboardEvent::Quiet,
            libc::SIGTSTP => {
                self.raw = None;
                KeyboardEvent::Quiet
            }
            _ => KeyboardEvent::Signal,
        }
    }
}

/// Whether the terminal is ours: a program in the background that reads from it is stopped, and does not draw over what
/// others write.
pub(super) fn is_in_front(terminal: impl AsFd) -> bool {
    // Of a terminal that does not control this process nobody is stopped.
    tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
}

/// What was typed at the terminal since the last look, up to the end of a line. Nobody waits for it.
pub(super) fn typed_line() -> Option<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !is_in_front(&stdin) {
        return None;
    }
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut ready, Some(&Timespec::default())).ok().filter(|n| *n > 0)?;
    let mut bytes = [0; 4096];
    // Not through std's buffer: a question may be put next.
    let length = rustix::io::read(&stdin, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Tells marks from what is between them. They can come in several pieces.
#[derive(Debug, Default)]
struct Marks {
    /// Whether a paste has begun.
    within: bool,
    /// What may be the begin of a mark.
    held: Vec<u8>,
}

impl Marks {
    fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::with_capacity(bytes.len());
        for byte in bytes {
            self.held.push(*byte);
            while !self.may_be_mark() {
                let first = self.held.remove(0);
                keys.push(self.key(first));
            }
            if self.held.len() < MARK_LENGTH {
                continue;
            }
            let mark = std::mem::take(&mut self.held);
            match (mark[MARK.len()], self.within) {
                (b'0', false) => self.within = true,
                (b'1', true) => {
                    self.within = false;
                    keys.push(Key::PasteEnds);
                }
                // A begin within a paste is a part of it, and so is an end where none was marked.
                _ => keys.extend(mark.into_iter().map(|byte| self.key(byte))),
            }
        }
        keys
    }

    fn key(&self, byte: u8) -> Key {
        if self.within { Key::Pasted(byte) } else { Key::Typed(byte) }
    }

    fn may_be_mark(&self) -> bool {
        let (begin, end) = self.held.split_at(self.held.len().min(MARK.len()));
        MARK.starts_with(begin) && matches!(end, [] | [b'0' | b'1'] | [b'0' | b'1', b'~'])
    }
}

/// The terminal gives each byte at once, shows none and acts on none, until this is dropped.
struct Raw {
    before: Termios,
    actions: Vec<(i32, libc::sigaction)>,
}

impl Raw {
    fn set(typed_before: OptionalActions) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.input_modes -= InputModes::IXON | InputModes::IXOFF;
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.local_modes -= LocalModes::IEXTEN;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A signal may look at it at any time, so it is never freed.
        BEFORE.store(Box::leak(Box::new(before.clone())), Ordering::SeqCst);
        // Its drop takes back what is done from here on.
        let set = Self { before, actions: catch_signals() };
        tcsetattr(io::stdin(), typed_before, &raw)?;
        Stream::Err.mark_pastes(true);
        Ok(set)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if is_in_front(io::stdin()) {
            Stream::Err.mark_pastes(false);
            // What was typed behind the end is for nobody.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
        }
        BEFORE.store(std::ptr::null_mut(), Ordering::SeqCst);
        for (signal, action) in &self.actions {
            // SAFETY: a system call on a value that another such call has written.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        let signal = SIGNAL.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: a system call on an integer.
            unsafe { libc::raise(signal) };
        }
    }
}

/// Has the signals wait until [`Raw`] is dropped, but for those that are ignored; gives what they did.
fn catch_signals() -> Vec<(i32, libc::sigaction)> {
    SIGNALS
        .into_iter()
        .filter_map(|signal| {
            // SAFETY: all of it may be zero; the calls read and write these two values only, and
            // `note` does what a handler may.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut before);
                if before.sa_sigaction == libc::SIG_IGN {
                    return None;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                let note: extern "C" fn(libc::c_int) = note;
                action.sa_sigaction = note as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                Some((signal, before))
            }
        })
        .collect()
}

/// Notes a signal. With the second the program ends where it stands, and leaves the terminal as it was.
extern "C" fn note(signal: libc::c_int) {
    if SIGNAL.swap(signal, Ordering::SeqCst) == 0 {
        return;
    }
    restore();
    // SAFETY: system calls on integers, which a handler may make.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Leaves the terminal as it was before a [`Keyboard`] was opened. It makes system calls only, so that a
/// signal's handler may call it, and a panic, which runs no destructors.
pub(super) fn restore() {
    // SAFETY: what it leads to is never freed.
    if let Some(before) = unsafe { BEFORE.load(Ordering::SeqCst).as_ref() } {
        let _ = rustix::io::write(rustix::stdio::stderr(), Stream::PASTES_UNMARKED);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Typed text as it is, pasted text in `<>`.
    fn told(pieces: &[&str]) -> String {
        let (mut marks, mut told, mut within) = (Marks::default(), String::new(), false);
        for key in pieces.iter().flat_map(|piece| marks.keys(piece.as_bytes())) {
            let (byte, is_pasted) = match key {
                Key::Typed(byte) => (Some(byte), false),
                Key::Pasted(byte) => (Some(byte), true),
                Key::PasteEnds => (None, false),
            };
            if is_pasted != within {
                told.push(if is_pasted { '<' } else { '>' });
            }
            within = is_pasted;
            told.extend(byte.map(char::from));
        }
        told
    }

    #[test]
    fn only_the_end_mark_ends_a_paste_in_however_many_pieces() {
        let all = "\x1b[201~a\x1b[200~\x04\x03y\n\x1b[200~\x1b\x1b[20\x1b[201\x1b[201~z\x1b[A";
        let wanted = "\x1b[201~a<\x04\x03y\n\x1b[200~\x1b\x1b[20\x1b[201>z\x1b[A";
        for at in 0..all.len() {
            assert_eq!(told(&[&all[..at], &all[at..]]), wanted, "{at}");
        }
    }
}
