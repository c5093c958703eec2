//! Wakes the daemon: after changes in the inbox, on signals, and after some time. A wake-up is only a hint: the folder
//! is always scanned.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use signal_hook::consts::{SIGINT, SIGIO, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};
use crate::runner::interrupt;

/// The time between scans of the inbox without events.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The time until the next scan if a file may be finished without an event.
const RECHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A wake-up: the name of a file that was closed after writing or moved in, or None for another event.
struct Wake(Option<OsString>);

/// Watches a folder for changes.
pub struct FolderWatch {
    wakes: Receiver<Wake>,
    sender: Sender<Wake>,
    watcher: Option<RecommendedWatcher>,
    folder: PathBuf,
    also: Vec<PathBuf>,
    /// The identity of the watched folder. It changes when the folder is created again.
    folder_identity: Option<(u64, u64)>,
    stop: Stop,
}

/// Whether the person has asked deaddrop to stop.
#[derive(Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    /// Whether SIGINT was the request.
    interrupted: Arc<AtomicBool>,
    /// Whether only the running turn must stop.
    paused: Arc<AtomicBool>,
}

impl Stop {
    /// Whether to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether the person requested the stop with Ctrl-C, and not, for example, a service manager.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Calls `wake` from a thread after each SIGINT or SIGTERM. [`Stop::is_asked`] is then already true. If the thread
    /// cannot be started, `wake` is never called.
    pub fn on_signal(wake: impl Fn() + Send + 'static) {
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
        let listen = move || signals.forever().for_each(|_| wake());
        drop(std::thread::Builder::new().name("signals".into()).spawn(listen));
    }

    /// Requests a stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
        interrupt::check();
    }

    /// Requests that the running turn stops. The server continues after it (see [`Stop::take_pause`]).
    pub fn pause(&self) {
        if !self.is_asked() {
            self.paused.store(true, Ordering::Relaxed);
            self.ask();
        }
    }

    /// Whether only a turn had to stop. If so, clears the request.
    pub fn take_pause(&self) -> bool {
        let resumes = self.paused.swap(false, Ordering::Relaxed) && !self.is_interrupted();
        if resumes {
            self.asked.store(false, Ordering::Relaxed);
        }
        resumes
    }

    /// Stops on SIGINT and SIGTERM. A second signal ends the program at once. Ignores SIGIO, which a lease may cause.
    pub fn on_signals() -> Result<Self> {
        let stop = Self::default();
        let fail = |e| Error::io("listen for signals in", Path::new("this process"), e);
        let by_hand = Arc::clone(&stop.interrupted);
        flag::register(SIGINT, by_hand).map_err(fail)?;
        for signal in [SIGINT, SIGTERM] {
            let asked = || Arc::clone(&stop.asked);
            flag::register_conditional_shutdown(signal, 130, asked()).map_err(fail)?;
            flag::register(signal, asked()).map_err(fail)?;
            interrupt::check_on(signal).map_err(fail)?;
        }
        flag::register(SIGIO, Arc::default()).map_err(fail)?;
        Ok(stop)
    }
}

impl FolderWatch {
    /// Watches `folder`, and the folders `also` for wake-ups without names. If the system does not report changes (on
    /// network file systems, or without free watches), the daemon still scans every two seconds.
    pub fn new(folder: &Path, also: Vec<PathBuf>, stop: Stop) -> Self {
        let (sender, wakes) = mpsc::channel();
        let mut watch = Self {
            wakes,
            sender,
            watcher: None,
            folder: folder.to_owned(),
            also,
            folder_identity: None,
            stop,
        };
        watch.follow();
        // A signal ends the wait. Without the thread, the next poll does.
        Stop::on_signal(watch.waker());
        watch
    }

    /// A function that ends a wait, from any thread.
    pub fn waker(&self) -> impl Fn() + Send + Clone + 'static {
        let sender = self.sender.clone();
        move || drop(sender.send(Wake(None)))
    }

    /// Waits until there may be work, and returns the names of finished files. Returns at once if a stop was requested
    /// or if `busy`, and soon if `look_again`.
    pub fn wait(&mut self, look_again: bool, busy: bool) -> Vec<OsString> {
        let mut finished = Vec::new();
        // There were no events for the files in a folder that was created again.
        if self.follow() {
            return finished;
        }
        let wait = match (busy, look_again) {
            (true, _) => Duration::ZERO,
            (false, true) => RECHECK_INTERVAL,
            (false, false) => POLL_INTERVAL,
        };
        if let (false, Ok(wake)) = (self.stop.is_asked(), self.wakes.recv_timeout(wait)) {
            let wakes = std::iter::once(wake).chain(self.wakes.try_iter());
            finished.extend(wakes.filter_map(|Wake(name)| name));
        }
        self.follow();
        finished
    }

    /// Watches the folder that is now at the path. Returns whether it is a new folder.
    fn follow(&mut self) -> bool {
        let folder_identity = folder_identity(&self.folder);
        if self.folder_identity == folder_identity && self.watcher.is_some() {
            return false;
        }
        let sender = self.sender.clone();
        let folder = self.folder.clone();
        let handler = move |event: notify::Result<Event>| {
            // The receiver is gone only when the program ends.
            if let Some(wake) = event.map_or(Some(Wake(None)), |it| wake_for(&it, &folder)) {
                let _ = sender.send(wake);
            }
        };
        self.watcher = notify::recommended_watcher(handler)
            .and_then(|mut watcher| {
                watcher.watch(&self.folder, RecursiveMode::NonRecursive)?;
                // If this fails, changes there wait for the next poll.
                for also in &self.also {
                    let _ = watcher.watch(also, RecursiveMode::NonRecursive);
                }
                Ok(watcher)
            })
            .ok();
        self.folder_identity = folder_identity;
        self.watcher.is_some()
    }
}

/// Converts an event to a wake-up. Names are only reported for `folder`.
fn wake_for(event: &Event, folder: &Path) -> Option<Wake> {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
            let path = event.paths.first()?;
            let name = path.file_name().filter(|_| path.parent() == Some(folder));
            Some(Wake(name.map(ToOwned::to_owned)))
        }
        // Our own reads and moves. Data changes are ignored if the system also reports when a file is closed.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => None,
        EventKind::Modify(ModifyKind::Data(_)) if cfg!(target_os = "linux") => None,
        _ => Some(Wake(None)),
    }
}

fn folder_identity(folder: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    folder.metadata().ok().map(|found| (found.dev(), found.ino()))
}
