//! Reads single keys from the terminal, and distinguishes typed from pasted keys.
//!
//! While a [`Keyboard`] exists, the terminal marks pastes (bracketed paste) and does not act on keys, so a control
//! character in a paste does not interrupt, suspend or end the input. Signals take effect when the input pauses, so the
//! rest of a paste does not reach another program.
#![allow(unsafe_code)]

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
    tcsetattr,
};

use crate::terminal::Stream;

/// A paste arrives at once, so it is over if no input arrives for this long.
pub(super) const QUIET: Duration = Duration::from_millis(100);
/// How long a signal waits for a paste to end.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(1);
pub(super) const CTRL_C: u8 = 3;
pub(super) const CTRL_D: u8 = 4;

/// The marks that a terminal sends around a paste.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// Signals that would end or stop the program without restoring the terminal.
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

/// The signal that arrived and has not taken effect yet, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The previous mode of the terminal, for [`restore`].
static ORIGINAL_MODE: AtomicPtr<Termios> = AtomicPtr::new(std::ptr::null_mut());

/// One byte of input, or the end of a paste.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyInput {
    Typed(u8),
    Pasted(u8),
    /// The mark at the end of a paste.
    PasteEnds,
}

/// The result of reading for some time.
pub(super) enum KeyboardEvent {
    Keys(Vec<KeyInput>),
    /// No input arrived.
    Quiet,
    /// A signal arrived. It takes effect when the keyboard is dropped.
    Signal,
    /// The terminal is gone.
    Gone,
}

pub(super) struct Keyboard {
    /// None while another process uses the terminal.
    raw: Option<RawMode>,
    pastes: PasteDecoder,
    /// [`OptionalActions::Flush`] discards what was typed before the keyboard was opened.
    before: OptionalActions,
    /// When input last arrived.
    last: Instant,
}

impl Keyboard {
    pub(super) fn open(before: OptionalActions) -> io::Result<Self> {
        let raw = Some(RawMode::set(before)?);
        Ok(Self { raw, pastes: PasteDecoder::default(), before, last: Instant::now() })
    }

    /// Reads the input that arrives within `wait`.
    pub(super) fn read(&mut self, wait: Duration) -> io::Result<KeyboardEvent> {
        let (stdin, patience) = (io::stdin(), Timespec::try_from(wait).ok());
        loop {
            if !is_in_front(&stdin) {
                // The system would stop a background process that reads.
                thread::sleep(wait);
                return Ok(self.quiet());
            }
            if self.raw.is_none() {
                self.raw = Some(RawMode::set(self.before)?);
            }
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], patience.as_ref()) {
                Ok(0) => return Ok(self.quiet()),
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let mut bytes = [0; 4096];
            // Do not read through std's buffer, which could keep later input.
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(0) => return Ok(KeyboardEvent::Gone),
                Ok(n) => {
                    self.last = Instant::now();
                    return Ok(KeyboardEvent::Keys(self.pastes.decode(&bytes[..n])));
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Discards input until it pauses.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        while let KeyboardEvent::Keys(_) = self.read(QUIET)? {}
        Ok(())
    }

    fn quiet(&mut self) -> KeyboardEvent {
        // A paste mark arrives at once, so a single ESC is a key.
        if !self.pastes.in_paste && self.pastes.pending.len() == 1 {
            self.pastes.pending.clear();
        }
        match SIGNAL.load(Ordering::SeqCst) {
            0 => KeyboardEvent::Quiet,
            // Otherwise the shell would get the rest of the paste.
            _ if self.pastes.in_paste && self.last.elapsed() < SIGNAL_PATIENCE => {
                KeyboardEvent::Quiet
            }
            libc::SIGTSTP => {
                self.raw = None;
                KeyboardEvent::Quiet
            }
            _ => KeyboardEvent::Signal,
        }
    }
}

/// Whether this process is in the terminal's foreground. A background process would be stopped if it read, and must not
/// draw over the output of others.
pub(super) fn is_in_front(terminal: impl AsFd) -> bool {
    // A terminal that does not control this process cannot stop it.
    tcgetpgrp(terminal).map_or(true, |group| group == rustix::process::getpgrp())
}

/// The line that was typed at the terminal since the last call, if any. Does not wait.
pub(super) fn typed_line() -> Option<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !is_in_front(&stdin) {
        return None;
    }
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut ready, Some(&Timespec::default())).ok().filter(|n| *n > 0)?;
    let mut bytes = [0; 4096];
    // Do not read through std's buffer: a question may be asked next.
    let length = rustix::io::read(&stdin, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Separates paste marks from other input. A mark can arrive in several pieces.
#[derive(Debug, Default)]
struct PasteDecoder {
    /// Whether the input is inside a paste.
    in_paste: bool,
    /// Bytes that may be the beginning of a mark.
    pending: Vec<u8>,
}

impl PasteDecoder {
    fn decode(&mut self, bytes: &[u8]) -> Vec<KeyInput> {
        self.pending.extend(bytes);
        let mut keys = Vec::with_capacity(bytes.len());
        loop {
            // A begin mark inside a paste is content, and so is an end mark outside a paste.
            let mark = if self.in_paste { PASTE_ENDS } else { PASTE_BEGINS };
            let key = if self.in_paste { KeyInput::Pasted } else { KeyInput::Typed };
            let Some(at) = memmem::find(&self.pending, mark) else {
                let is_kept = |n: &usize| self.pending.ends_with(&mark[..*n]);
                let kept = (0..mark.len()).rev().find(is_kept).unwrap_or_default();
                keys.extend(self.pending.drain(..self.pending.len() - kept).map(key));
                return keys;
            };
            keys.extend(self.pending.drain(..at).map(key));
            self.pending.drain(..mark.len());
            keys.extend(self.in_paste.then_some(KeyInput::PasteEnds));
            self.in_paste = !self.in_paste;
        }
    }
}

/// Keeps the terminal in raw mode until dropped: it delivers each byte at once, without echoing or interpreting it.
struct RawMode {
    before: Termios,
    actions: Vec<(i32, libc::sigaction)>,
}

impl RawMode {
    fn set(typed_before: OptionalActions) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.input_modes -= InputModes::IXON | InputModes::IXOFF;
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.local_modes -= LocalModes::IEXTEN;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A signal handler may read this value at any time, so it is never freed.
        ORIGINAL_MODE.store(Box::leak(Box::new(before.clone())), Ordering::SeqCst);
        // From here on, dropping `set` undoes the changes.
        let set = Self { before, actions: delay_signals() };
        tcsetattr(io::stdin(), typed_before, &raw)?;
        Stream::Err.mark_pastes(true);
        Ok(set)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if is_in_front(io::stdin()) {
            Stream::Err.mark_pastes(false);
            // Discards what was typed after the end of the input.
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
        }
        ORIGINAL_MODE.store(std::ptr::null_mut(), Ordering::SeqCst);
        for (signal, action) in &self.actions {
            // SAFETY: a system call on a value that was written by another such call.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        let signal = SIGNAL.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: a system call on an integer.
            unsafe { libc::raise(signal) };
        }
    }
}

/// Delays signals until [`RawMode`] is dropped, except ignored signals. Returns their previous actions.
fn delay_signals() -> Vec<(i32, libc::sigaction)> {
    SIGNALS
        .into_iter()
        .filter_map(|signal| {
            // SAFETY: all fields may be zero; the calls read and write only these two values, and
            // `record_signal` is async-signal-safe.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut before);
                if before.sa_sigaction == libc::SIG_IGN {
                    return None;
                }
                let mut action: libc::sigaction = std::mem::zeroed();
                let record_signal: extern "C" fn(libc::c_int) = record_signal;
                action.sa_sigaction = record_signal as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                Some((signal, before))
            }
        })
        .collect()
}

/// Records a signal. A second signal restores the terminal and ends the program at once.
extern "C" fn record_signal(signal: libc::c_int) {
    if SIGNAL.swap(signal, Ordering::SeqCst) == 0 {
        return;
    }
    restore();
    // SAFETY: async-signal-safe system calls on integers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Restores the terminal to its mode before a [`Keyboard`] was opened. It makes only system calls, so a signal handler
/// may call it. A panic also calls it, because destructors may not run.
pub(super) fn restore() {
    // SAFETY: the value is never freed.
    if let Some(before) = unsafe { ORIGINAL_MODE.load(Ordering::SeqCst).as_ref() } {
        let _ = rustix::io::write(rustix::stdio::stderr(), Stream::PASTES_UNMARKED);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Typed text unchanged, and pasted text in `<>`.
    fn told(pieces: &[&str]) -> String {
        let (mut pastes, mut told, mut within) = (PasteDecoder::default(), String::new(), false);
        for key in pieces.iter().flat_map(|piece| pastes.decode(piece.as_bytes())) {
            let (byte, is_pasted) = match key {
                KeyInput::Typed(byte) => (Some(byte), false),
                KeyInput::Pasted(byte) => (Some(byte), true),
                KeyInput::PasteEnds => (None, false),
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
