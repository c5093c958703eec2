//! Copies texts in a thread, so that the caller need not wait for the clipboard.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::{ClipboardBackend, ClipboardSetup};
use crate::program::Programs;

/// A text to copy, or the reason why there is none.
type CopyRequest<T> = Result<(String, T), String>;

/// The file of a text, and either the backend that copied the text or the reason why it was not copied.
pub type CopyResult<T> = (PathBuf, Result<(T, ClipboardBackend), String>);

/// Copies texts one after another. The data of type `T` is returned with each result.
pub struct Copier<T> {
    requests: Sender<(PathBuf, CopyRequest<T>)>,
    results: Receiver<CopyResult<T>>,
}

impl<T: Send + 'static> Copier<T> {
    /// Starts the thread. It calls `wake` after each copy. None if the thread cannot be started.
    pub fn start(programs: Programs, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (requests, received) = mpsc::channel::<(PathBuf, CopyRequest<T>)>();
        let (sender, results) = mpsc::channel();
        let work = move || {
            let setup = ClipboardSetup::current(programs);
            for (path, text) in received {
                let done = text.and_then(|(text, it)| Ok((it, super::copy(&text, &setup)?)));
                if sender.send((path, done)).is_err() {
                    return;
                }
                wake();
            }
        };
        thread::Builder::new().name("copier".into()).spawn(work).ok()?;
        Some(Self { requests, results })
    }

    /// Queues a text to copy. An error is passed on as the result.
    pub fn copy(&self, path: PathBuf, text: CopyRequest<T>) {
        // The thread lives as long as this value.
        let _ = self.requests.send((path, text));
    }

    /// The next result, if any.
    pub fn try_next(&self) -> Option<CopyResult<T>> {
        self.results.try_recv().ok()
    }

    /// Waits for the remaining results, but at most for `patience`.
    pub fn finish(self, patience: Duration) -> Vec<CopyResult<T>> {
        drop(self.requests);
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        std::iter::from_fn(|| self.results.recv_timeout(left()).ok()).collect()
    }
}
