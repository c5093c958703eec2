//! Copies files in a thread of its own, so that nobody waits for a clipboard.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::{Passed, Surroundings, Way};
use crate::program::Programs;

/// What became of a file that was to be copied.
pub type Told = (PathBuf, Result<Way, Vec<Passed>>);

/// Copies files, the newest first; the others then need it no more.
pub struct Copier {
    files: Sender<PathBuf>,
    told: Receiver<Told>,
    /// How many are not told of.
    open: usize,
}

impl Copier {
    /// Starts it. `wake` is called, from its thread, whenever there is something to tell. None where
    /// there is no thread for it.
    pub fn start(programs: Programs, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (files, asked) = mpsc::channel::<PathBuf>();
        let (tell, told) = mpsc::channel();
        let work = move || {
            let at = Surroundings::here(programs);
            while let Ok(first) = asked.recv() {
                let files: Vec<PathBuf> = std::iter::once(first).chain(asked.try_iter()).collect();
                let Some((newest, older)) = files.split_last() else { continue };
                let done = copy(newest, &at);
                let all = older.iter().chain([newest]);
                for told in all.map(|path| (path.clone(), done.clone())) {
                    if tell.send(told).is_err() {
                        return;
                    }
                }
                wake();
            }
        };
        thread::Builder::new().name("copier".into()).spawn(work).ok()?;
        Some(Self { files, told, open: 0 })
    }

    /// Has the text of a file copied, soon.
    pub fn copy(&mut self, path: &Path) {
        self.open += usize::from(self.files.send(path.to_owned()).is_ok());
    }

    /// What became of one since, if there is news.
    pub fn told(&mut self) -> Option<Told> {
        let told = self.told.try_recv().ok()?;
        self.open = self.open.saturating_sub(1);
        Some(told)
    }

    /// Waits, but not for long, until none is open.
    pub fn finish(&mut self, patience: Duration) -> Vec<Told> {
        let (begun, mut all) = (Instant::now(), Vec::new());
        while self.open > 0 {
            let left = patience.saturating_sub(begun.elapsed());
            let Ok(told) = self.told.recv_timeout(left) else { break };
            self.open -= 1;
            all.push(told);
        }
        all
    }
}

fn copy(path: &Path, at: &Surroundings) -> Result<Way, Vec<Passed>> {
    match crate::atomic::read_own_text(path) {
        Ok(text) => super::copy(&text, at),
        Err(e) => Err(vec![Passed { way: None, why: format!("it cannot be read: {e}") }]),
    }
}
