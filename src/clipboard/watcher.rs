//! Listens to a watching helper in a thread of its own, and starts another one if it fails or does not answer.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::report::Failure;
use super::spawn::{Helper, READING};
use super::{ClipboardBackend, ClipboardEnvironment};

/// How long to wait before another helper is started. Each time that fails it is twice as long.
const RETRY: Duration = Duration::from_secs(5);
/// The longest such wait.
const LONGEST: Duration = Duration::from_mins(1);
/// How often the thread checks whether it is to end.
const TICK: Duration = Duration::from_millis(500);

/// What happens to the clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipboardEvent {
    /// From now on the clipboard is watched this way, and this reply was there already.
    Started(ClipboardBackend, Option<String>),
    /// This text came, and names the outbox that it answers.
    Text(String),
    /// The clipboard cannot be read, for this reason. Sent once; it is tried again unless there is no way.
    Unreadable(String),
    /// It can be read again.
    Readable,
}

/// Watches the clipboard until it is dropped.
pub struct ClipboardWatcher {
    event: Receiver<ClipboardEvent>,
    /// The thread ends when this is dropped.
    _running: Sender<()>,
}

impl ClipboardWatcher {
    /// Starts the thread, which calls `wake` whenever something happened. None if there can be no thread.
    pub fn start(
        environment: ClipboardEnvironment,
        wake: impl Fn() + Send + 'static,
    ) -> Option<Self> {
        let (sender, event) = mpsc::channel();
        let (running, stopped) = mpsc::channel();
        let tell = move |event| {
            let _ = sender.send(event);
            wake();
        };
        let listener = Listener { tell, stopped, way: None, in_trouble: false, wait: RETRY };
        // The system ends a helper with the thread that started it.
        let run = move || listener.run(&environment);
        thread::Builder::new().name("clipboard".into()).spawn(run).ok()?;
        Some(Self { event, _running: running })
    }

    /// The next thing that happened, if there is one.
    pub fn try_next(&self) -> Option<ClipboardEvent> {
        self.event.try_recv().ok()
    }
}

/// The thread of a watcher.
struct Listener<Tell> {
    tell: Tell,
    stopped: Receiver<()>,
    /// The way that was told last.
    way: Option<ClipboardBackend>,
    in_trouble: bool,
    wait: Duration,
}

impl<Tell: Fn(ClipboardEvent)> Listener<Tell> {
    fn run(mut self, environment: &ClipboardEnvironment) {
        let ways = environment.backends();
        while let Err(why) = super::first(&ways, |way| self.listen(way, environment)) {
            if !std::mem::replace(&mut self.in_trouble, true) {
                (self.tell)(ClipboardEvent::Unreadable(why));
            }
            if ways.is_empty() || self.is_over(self.wait) {
                return;
            }
            self.wait = LONGEST.min(self.wait * 2);
        }
    }

    /// Listens to a helper until it fails, or this is over.
    fn listen(
        &mut self,
        way: ClipboardBackend,
        environment: &ClipboardEnvironment,
    ) -> Result<(), Failure> {
        let helper = Helper::start("watch", way, environment)?;
        let mut last = Instant::now();
        while !self.is_over(Duration::ZERO) {
            match helper.reports.next(TICK) {
                Some(report) => {
                    self.hear(way, report?);
                    last = Instant::now();
                }
                None if last.elapsed() > READING => return Err(Failure::NoAnswer(READING)),
                None => {}
            }
        }
        Ok(())
    }

    fn hear(&mut self, way: ClipboardBackend, text: Option<String>) {
        self.wait = RETRY;
        let was_in_trouble = std::mem::take(&mut self.in_trouble);
        if self.way.replace(way) != Some(way) {
            return (self.tell)(ClipboardEvent::Started(way, text));
        }
        if was_in_trouble {
            (self.tell)(ClipboardEvent::Readable);
        }
        if let Some(text) = text {
            (self.tell)(ClipboardEvent::Text(text));
        }
    }

    /// Waits, and returns whether the watcher was dropped meanwhile.
    fn is_over(&self, wait: Duration) -> bool {
        self.stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
    }
}
