//! Copies files in a thread of its own, so that nobody waits for a clipboard.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::Environment;
use super::Way;
use crate::program::Programs;

/// A file that was to be copied, and which way it was, or why not.
pub type Copied = (PathBuf, Result<Way, String>);

/// Copies files one after the other.
pub struct Copier {
    files: Sender<PathBuf>,
    copied: Receiver<Copied>,
}

impl Copier {
    /// Starts the thread, which calls `wake` after each copy. None if there can be no thread.
    pub fn start(programs: Programs, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (files, asked) = mpsc::channel::<PathBuf>();
        let (sender, copied) = mpsc::channel();
        let work = move || {
            let environment = Environment::here(programs);
            for path in asked {
                let text = crate::atomic::read_own_text(&path);
                let done = text
                    .map_err(|e| format!("it cannot be read: {e}"))
                    .and_then(|text| super::copy(&text, &environment));
                if sender.send((path, done)).is_err() {
                    return;
                }
                wake();
            }
        };
        thread::Builder::new().name("copier".into()).spawn(work).ok()?;
        Some(Self { files, copied })
    }

    /// Copies a file, soon.
    pub fn copy(&self, path: &Path) {
        // The thread ends only with this.
        let _ = self.files.send(path.to_owned());
    }

    /// The next file that is done, if there is one.
    pub fn copied(&self) -> Option<Copied> {
        self.copied.try_recv().ok()
    }

    /// Waits for the files that are left, but no longer than this.
    pub fn finish(self, patience: Duration) -> Vec<Copied> {
        drop(self.files);
        let deadline = Instant::now() + patience;
        let left = || deadline.saturating_duration_since(Instant::now());
        std::iter::from_fn(|| self.copied.recv_timeout(left()).ok()).collect()
    }
}
