//! Copies texts in a thread of its own, so that nobody waits for a clipboard.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::ClipboardBackend;
use super::ClipboardEnvironment;
use crate::program::Programs;

/// A text, or why there is none.
type Asked<T> = Result<(String, T), String>;

/// The file of a text that was to be copied, and which way it was, or why not.
pub type CopyResult<T> = (PathBuf, Result<(T, ClipboardBackend), String>);

/// Copies texts one after the other. `T` is what is known of each.
pub struct Copier<T> {
    texts: Sender<(PathBuf, Asked<T>)>,
    copied: Receiver<CopyResult<T>>,
}

impl<T: Send + 'static> Copier<T> {
    /// Starts the thread, which calls `wake` after each copy. None if there can be no thread.
    pub fn start(programs: Programs, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (texts, asked) = mpsc::channel::<(PathBuf, Asked<T>)>();
        let (sender, copied) = mpsc::channel();
        let work = move || {
            let environment = ClipboardEnvironment::current(programs);
            for (path, text) in asked {
                let done = text.and_then(|(text, it)| Ok((it, super::copy(&text, &environment)?)));
                if sender.send((path, done)).is_err() {
                    return;
                }
                wake();
            }
        };
        thread::Builder::new().name("copier".into()).spawn(work).ok()?;
        Some(Self { texts, copied })
    }

    /// Copies a text, soon. An error is the reason that there is none.
    pub fn copy(&self, path: PathBuf, text: Asked<T>) {
        // The thread ends only with this.
        let _ = self.texts.send((path, text));
    }

    /// The next text that is done, if there is one.
    pub fn try_next(&self) -> Option<CopyResult<T>> {
        self.copied.try_recv().ok()
    }

    /// Waits for the texts that are left, but no longer than this.
    pub fn finish(self, patience: Duration) -> Vec<CopyResult<T>> {
        drop(self.texts);
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        std::iter::from_fn(|| self.copied.recv_timeout(left()).ok()).collect()
    }
}
