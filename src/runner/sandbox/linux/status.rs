//! Memory through which the helper's children report to it. An exec unmaps it.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

use libc::c_int;

use super::super::report::MechanismSet;

/// The longest reason for a failure, in bytes.
const LONGEST: usize = 1000;

/// Written by init and by the process that becomes the shell. Read after both are dead.
pub(super) struct SharedStatus {
    facts: AtomicU32,
    /// The shell's exit status plus 1; 0 as long as it runs.
    status: AtomicI64,
    /// The length of the reason in bytes; 0 if there is none.
    length: AtomicUsize,
    reason: UnsafeCell<[u8; LONGEST]>,
}

impl SharedStatus {
    /// Allocates memory that is shared across forks.
    pub(super) fn new() -> io::Result<&'static Self> {
        const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
        const FLAGS: c_int = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping of zeroes, aligned to a page and never unmapped. All zeroes is a valid value for each
        // field.
        unsafe {
            let memory = libc::mmap(ptr::null_mut(), size_of::<Self>(), PROTECTION, FLAGS, -1, 0);
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(&*memory.cast())
        }
    }

    /// Records how the shell ended.
    pub(super) fn ended(&self, status: c_int) {
        self.status.store(i64::from(status) + 1, Ordering::Release);
    }

    /// How the shell ended, if it has.
    pub(super) fn status(&self) -> Option<c_int> {
        c_int::try_from(self.status.load(Ordering::Acquire) - 1).ok().filter(|status| *status >= 0)
    }

    /// Records why the command was not started. Only the first reason is kept.
    pub(super) fn failed(&self, reason: &str) {
        if self.length.load(Ordering::Acquire) > 0 {
            return;
        }
        let mut length = reason.len().min(LONGEST);
        while !reason.is_char_boundary(length) {
            length -= 1;
        }
        // SAFETY: init and the shell's process do not write at the same time, and the helper reads after both are dead.
        // `length` bytes are within both buffers.
        unsafe {
            ptr::copy_nonoverlapping(reason.as_ptr(), self.reason.get().cast(), length);
        }
        self.length.store(length, Ordering::Release);
    }

    /// Why the command was not started.
    pub(super) fn reason(&self) -> Option<String> {
        let length = self.length.load(Ordering::Acquire);
        // SAFETY: this many bytes were written before `length` was stored.
        let bytes = unsafe { std::slice::from_raw_parts(self.reason.get().cast(), length) };
        (length > 0).then(|| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Records mechanisms that work.
    pub(super) fn found(&self, facts: MechanismSet) {
        self.facts.fetch_or(facts.0, Ordering::AcqRel);
    }

    /// The mechanisms that work.
    pub(super) fn facts(&self) -> MechanismSet {
        MechanismSet(self.facts.load(Ordering::Acquire))
    }
}
