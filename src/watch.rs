//! What wakes the daemon: changes in the inbox, signals, and time. Wake-ups are hints; the folder
//! is looked at whatever was said.

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

/// How often the inbox is looked at when nothing is heard.
const TICK: Duration = Duration::from_secs(2);
/// How soon it is looked at again when a file may be finished without a sign.
const SOON: Duration = Duration::from_millis(50);

/// Why the daemon wakes: this file was closed after writing, or moved in; or something else happened.
struct Wake(Option<OsString>);

/// Listens for changes in one folder.
pub struct Watch {
    wakes: Receiver<Wake>,
    sender: Sender<Wake>,
    watcher: Option<RecommendedWatcher>,
    folder: PathBuf,
    also: Vec<PathBuf>,
    /// Which folder is being listened to: one that was made anew is another.
    identity: Option<(u64, u64)>,
    stop: Stop,
}

/// Says whether the person has asked deaddrop to stop.
#[derive(Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    /// Whether it was SIGINT.
    interrupted: Arc<AtomicBool>,
    /// Whether only the turn that runs is to be stopped.
    paused: Arc<AtomicBool>,
}

impl Stop {
    /// Whether to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether that was said with Ctrl-C, and not by whoever ends a service.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Calls `wake` from a thread of its own after each such signal, when [`Stop::is_asked`] says so
    /// already. Should there be no thread for it, it is never called.
    pub fn wakes(wake: impl Fn() + Send + 'static) {
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
        let heard = move || signals.forever().for_each(|_| wake());
        drop(std::thread::Builder::new().name("signals".into()).spawn(heard));
    }

    /// Asks to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
        interrupt::check();
    }

    /// Asks to stop the turn that runs; whoever serves goes on after it (see [`Stop::resumes`]).
    pub fn pause(&self) {
        if !self.is_asked() {
            self.paused.store(true, Ordering::Relaxed);
            self.ask();
        }
    }

    /// Whether only a turn was to be stopped; then there is nothing to stop for any more.
    pub fn resumes(&self) -> bool {
        let resumes = self.paused.swap(false, Ordering::Relaxed) && !self.is_interrupted();
        if resumes {
            self.asked.store(false, Ordering::Relaxed);
        }
        resumes
    }

    /// Stops on SIGINT and SIGTERM; a second one ends the program at once. SIGIO, which a lease
    /// may cause, does nothing.
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

impl Watch {
    /// Listens to `folder`, and for wake-ups only to `also`. Where the system cannot tell of changes
    /// (a network file system, no watches left), they are looked at every two seconds all the same.
    pub fn new(folder: &Path, also: Vec<PathBuf>, stop: Stop) -> Self {
        let (sender, wakes) = mpsc::channel();
        let mut watch = Self {
            wakes,
            sender,
            watcher: None,
            folder: folder.to_owned(),
            also,
            identity: None,
            stop,
        };
        watch.follow();
        // A signal ends the wait; else the next tick does.
        Stop::wakes(watch.waker());
        watch
    }

    /// What ends a wait, from any thread.
    pub fn waker(&self) -> impl Fn() + Send + Clone + 'static {
        let sender = self.sender.clone();
        move || drop(sender.send(Wake(None)))
    }

    /// Waits until there may be something to do, and gives the names of finished files. Returns at
    /// once when asked to stop or `busy` elsewhere, soon when `look_again`.
    pub fn wait(&mut self, look_again: bool, busy: bool) -> Vec<OsString> {
        let mut finished = Vec::new();
        // Nobody has heard what was dropped into a folder that was made anew.
        if self.follow() {
            return finished;
        }
        let wait = match (busy, look_again) {
            (true, _) => Duration::ZERO,
            (false, true) => SOON,
            (false, false) => TICK,
        };
        if let (false, Ok(wake)) = (self.stop.is_asked(), self.wakes.recv_timeout(wait)) {
            let wakes = std::iter::once(wake).chain(self.wakes.try_iter());
            finished.extend(wakes.filter_map(|Wake(name)| name));
        }
        self.follow();
        finished
    }

    /// Listens to the folder that has the name now. Returns whether it is another than before.
    fn follow(&mut self) -> bool {
        let identity = identity(&self.folder);
        if self.identity == identity && self.watcher.is_some() {
            return false;
        }
        let sender = self.sender.clone();
        let folder = self.folder.clone();
        let told = move |event: notify::Result<Event>| {
            // The receiver is gone only when the program ends.
            if let Some(wake) = event.map_or(Some(Wake(None)), |it| meaning(&it, &folder)) {
                let _ = sender.send(wake);
            }
        };
        self.watcher = notify::recommended_watcher(told)
            .and_then(|mut watcher| {
                watcher.watch(&self.folder, RecursiveMode::NonRecursive)?;
                // Without it, what comes there waits for the next tick.
                for also in &self.also {
                    let _ = watcher.watch(also, RecursiveMode::NonRecursive);
                }
                Ok(watcher)
            })
            .ok();
        self.identity = identity;
        self.watcher.is_some()
    }
}

/// What an event says; of other folders than `folder` no names are told.
fn meaning(event: &Event, folder: &Path) -> Option<Wake> {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
            let path = event.paths.first()?;
            let name = path.file_name().filter(|_| path.parent() == Some(folder));
            Some(Wake(name.map(ToOwned::to_owned)))
        }
        // Our own reading and taking away; and data, where its end is told.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => None,
        EventKind::Modify(ModifyKind::Data(_)) if cfg!(target_os = "linux") => None,
        _ => Some(Wake(None)),
    }
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    folder.metadata().ok().map(|found| (found.dev(), found.ino()))
}
