//! Receives reports from a watching helper in a thread, and starts another helper if one fails or does not answer.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::report::HelperError;
use super::spawn::{HelperProcess, READING};
use super::{ClipboardBackend, ClipboardSetup};

/// The wait before another helper is started. It doubles after each failure.
const RETRY: Duration = Duration::from_secs(5);
/// The longest wait before another helper is started.
const LONGEST: Duration = Duration::from_mins(1);
/// How often the thread checks whether it must end.
const TICK: Duration = Duration::from_millis(500);

/// An event of the watched clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipboardEvent {
    /// Watching with this backend begins. The clipboard may already contain a reply.
    Started(ClipboardBackend, Option<String>),
    /// A new text that names the outbox that it answers.
    Text(String),
    /// The clipboard cannot be read, for this reason. Sent once. Reading is retried unless there is no backend.
    Unreadable(String),
    /// The clipboard can be read again.
    Fixed,
}

/// Watches the clipboard until this is dropped.
pub struct ClipboardWatcher {
    event: Receiver<ClipboardEvent>,
    /// Dropping this ends the thread.
    _running: Sender<()>,
}

impl ClipboardWatcher {
    /// Starts the thread. It calls `wake` after each event. None if the thread cannot be started.
    pub fn start(setup: ClipboardSetup, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (sender, event) = mpsc::channel();
        let (running, stopped) = mpsc::channel();
        let on_event = move |event| {
            let _ = sender.send(event);
            wake();
        };
        let listener =
            Listener { on_event, stopped, backend: None, is_failing: false, wait: RETRY };
        // The system kills a helper when the thread that started it ends.
        let run = move || listener.run(&setup);
        thread::Builder::new().name("clipboard".into()).spawn(run).ok()?;
        Some(Self { event, _running: running })
    }

    /// The next event, if any.
    pub fn try_next(&self) -> Option<ClipboardEvent> {
        self.event.try_recv().ok()
    }
}

/// The state of a watcher's thread.
struct Listener<OnEvent> {
    on_event: OnEvent,
    stopped: Receiver<()>,
    /// The backend of the last `Started` event.
    backend: Option<ClipboardBackend>,
    is_failing: bool,
    wait: Duration,
}

impl<OnEvent: Fn(ClipboardEvent)> Listener<OnEvent> {
    fn run(mut self, setup: &ClipboardSetup) {
        let backends = setup.backends();
        while let Err(why) = super::try_backends(&backends, |backend| self.listen(backend, setup)) {
            if !std::mem::replace(&mut self.is_failing, true) {
                (self.on_event)(ClipboardEvent::Unreadable(why));
            }
            if backends.is_empty() || self.is_over(self.wait) {
                return;
            }
            self.wait = LONGEST.min(self.wait * 2);
        }
    }

    /// Receives reports from a helper until it fails or the watcher is dropped.
    fn listen(
        &mut self,
        backend: ClipboardBackend,
        setup: &ClipboardSetup,
    ) -> Result<(), HelperError> {
        let helper = HelperProcess::start("watch", backend, setup)?;
        let mut last = Instant::now();
        while !self.is_over(Duration::ZERO) {
            match helper.reports.next(TICK) {
                Some(report) => {
                    self.handle_report(backend, report?);
                    last = Instant::now();
                }
                None if last.elapsed() > READING => return Err(HelperError::NoAnswer(READING)),
                None => {}
            }
        }
        Ok(())
    }

    fn handle_report(&mut self, backend: ClipboardBackend, text: Option<String>) {
        self.wait = RETRY;
        let was_failing = std::mem::take(&mut self.is_failing);
        if self.backend.replace(backend) != Some(backend) {
            return (self.on_event)(ClipboardEvent::Started(backend, text));
        }
        if was_failing {
            (self.on_event)(ClipboardEvent::Fixed);
        }
        if let Some(text) = text {
            (self.on_event)(ClipboardEvent::Text(text));
        }
    }

    /// Waits, and returns whether the watcher was dropped in the meantime.
    fn is_over(&self, wait: Duration) -> bool {
        self.stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
    }
}
