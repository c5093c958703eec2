//! Copies texts in a thread of its own, so that nobody waits for a clipboard.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::Environment;
use super::Way;
use crate::program::Programs;

/// What a text is that was to be copied, and which way it was, or why not.
pub type Copied<T> = (T, Result<Way, String>);

/// Copies texts one after the other.
pub struct Copier<T> {
    texts: Sender<(T, Result<String, String>)>,
    copied: Receiver<Copied<T>>,
}

impl<T: Send + 'static> Copier<T> {
    /// Starts the thread, which calls `wake` after each copy. None if there can be no thread.
    pub fn start(programs: Programs, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (texts, asked) = mpsc::channel::<(T, Result<String, String>)>();
        let (sender, copied) = mpsc::channel();
        let work = move || {
            let environment = Environment::here(programs);
            for (what, text) in asked {
                let done = text.and_then(|text| super::copy(&text, &environment));
                if sender.send((what, done)).is_err() {
                    return;
                }
                wake();
            }
        };
        thread::Builder::new().name("copier".into()).spawn(work).ok()?;
        Some(Self { texts, copied })
    }

    /// Copies a text, soon. An error is the reason that there is none.
    pub fn copy(&self, what: T, text: Result<String, String>) {
        // The thread ends only with this.
        let _ = self.texts.send((what, text));
    }

    /// The next text that is done, if there is one.
    pub fn copied(&self) -> Option<Copied<T>> {
        self.copied.try_recv().ok()
    }

    /// Waits for the texts that are left, but no longer than this.
    pub fn finish(self, patience: Duration) -> Vec<Copied<T>> {
        drop(self.texts);
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        std::iter::from_fn(|| self.copied.recv_timeout(left()).ok()).collect()
    }
}
