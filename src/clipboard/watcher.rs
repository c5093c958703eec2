//! Tells of texts that come to the clipboard and say which outbox they answer. A helper looks; this
//! listens to it in a thread of its own, and starts another one should it fail or fall silent.

use std::io::{self, Read};
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::helper::{DONE, FAILED, Helper, TEXT, is_of_the_text};
use super::{Found, LIMIT, Passed, Surroundings, Way};

/// A helper that says nothing for so long is stuck. With an owner that does not answer, over X11 it
/// gives up after 24 seconds by itself: arboard waits four (`LONG_TIMEOUT_DUR`) for each of the six forms
/// of a text that it asks for.
const SILENCE: Duration = Duration::from_secs(40);
/// How long to wait before another helper is started.
const AGAIN: Duration = Duration::from_secs(5);
/// The same while no way to it was found yet, at the most: twice as long after each try.
const LONGEST: Duration = Duration::from_mins(1);
/// How often the thread looks whether it is to end.
const BREATH: Duration = Duration::from_millis(500);
/// The longest reason that is read.
const REASON: u64 = 1_000;

/// What is heard of the clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It is looked at this way from now on, and this text was there already.
    Begun(Way, Option<String>),
    /// This text came, and says which outbox it answers.
    Text(String),
    /// It cannot be looked at, for this reason; that is tried again, unless there is no way at all. Told
    /// once.
    Trouble(String),
    /// It can be looked at again.
    Well,
}

/// Listens until it is dropped.
pub struct Watcher {
    heard: Receiver<Heard>,
    over: Arc<AtomicBool>,
}

impl Watcher {
    /// Begins to listen, the first way that can be read. `wake` is called, from a thread, whenever
    /// something was heard. None where there is no thread for it.
    pub fn start(at: Surroundings, wake: impl Fn() + Send + 'static) -> Option<Self> {
        let (sender, heard) = mpsc::channel();
        let over = Arc::<AtomicBool>::default();
        let told = Listening { sender, wake: Box::new(wake), over: over.clone(), troubled: false };
        // The system ends a helper with the thread that started it, which is this one.
        let listen = move || {
            let mut told = told;
            if let Some(way) = begin(&mut told, &at) {
                listen(told, way, &at);
            }
        };
        thread::Builder::new().name("clipboard".into()).spawn(listen).ok()?;
        Some(Self { heard, over })
    }

    /// What was heard since.
    pub fn heard(&self) -> Option<Heard> {
        self.heard.try_recv().ok()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The thread's end of a watcher.
struct Listening {
    sender: Sender<Heard>,
    wake: Box<dyn Fn() + Send>,
    over: Arc<AtomicBool>,
    troubled: bool,
}

impl Listening {
    fn tell(&self, heard: Heard) {
        let _ = self.sender.send(heard);
        (self.wake)();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Tells of trouble, once until it is over, and waits.
    fn trouble(&mut self, why: String, wait: Duration) {
        if !std::mem::replace(&mut self.troubled, true) {
            self.tell(Heard::Trouble(why));
        }
        let begun = Instant::now();
        while begun.elapsed() < wait && !self.is_over() {
            thread::sleep(BREATH);
        }
    }

    fn well(&mut self) {
        if std::mem::take(&mut self.troubled) {
            self.tell(Heard::Well);
        }
    }
}

fn listen(mut told: Listening, way: Way, at: &Surroundings) {
    while !told.is_over() {
        let ended = Helper::start("watch", way, at).and_then(|mut helper| {
            let output = helper.child.stdout.take().ok_or("its helper has no pipe")?;
            follow(&mut told, Reports { output })
        });
        let Err(why) = ended else { return };
        told.trouble(why, AGAIN);
    }
}

/// Looks for the way that is to be listened to, until one can be read; None where there is none to try,
/// or nobody listens any more.
fn begin(told: &mut Listening, at: &Surroundings) -> Option<Way> {
    let mut wait = AGAIN;
    while !told.is_over() {
        let (way, text) = match super::read(at, &|_| {}) {
            Ok((way, Found::Text(text))) => (way, Some(text)),
            Ok((way, Found::Empty)) => (way, None),
            Err(passed) => match passed.last() {
                // The way is one, and what is there is no reply.
                Some(Passed { way: Some(way), why }) if is_of_the_text(why) => (*way, None),
                _ => {
                    if at.ways().is_empty() {
                        told.tell(Heard::Trouble(super::told(&passed)));
                        return None;
                    }
                    told.trouble(super::told(&passed), wait);
                    wait = LONGEST.min(wait * 2);
                    continue;
                }
            },
        };
        told.troubled = false;
        told.tell(Heard::Begun(way, text));
        return Some(way);
    }
    None
}

/// Takes a helper's reports, until nobody listens any more.
fn follow(told: &mut Listening, mut reports: Reports) -> Result<(), String> {
    const LOST: &str = "its helper ended; its display may be gone";
    let mut last = Instant::now();
    loop {
        if told.is_over() {
            return Ok(());
        }
        if !reports.wait(BREATH) {
            if last.elapsed() > SILENCE {
                return Err(format!("no answer within {} seconds", SILENCE.as_secs()));
            }
            continue;
        }
        last = Instant::now();
        // What has begun comes whole, since the helper writes it at once.
        match reports.byte().map_err(|_| LOST)? {
            DONE => told.well(),
            TEXT => {
                told.well();
                told.tell(Heard::Text(reports.text().map_err(|_| LOST)?));
            }
            FAILED => {
                let mut why = String::new();
                let _ = reports.output.by_ref().take(REASON).read_to_string(&mut why);
                return Err(crate::text::visible_line(&why).into_owned());
            }
            _ => return Err("its helper cannot be understood".to_owned()),
        }
    }
}

/// What a watching helper writes.
struct Reports {
    output: ChildStdout,
}

impl Reports {
    /// Waits until there is something, or it is closed.
    #[cfg(unix)]
    fn wait(&self, wait: Duration) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polled = [PollFd::new(&self.output, PollFlags::IN)];
        let wait = Timespec::try_from(wait).ok();
        matches!(poll(&mut polled, wait.as_ref()), Ok(1..))
    }

    #[cfg(not(unix))]
    fn wait(&self, _wait: Duration) -> bool {
        true
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.output.read_exact(&mut byte).map(|()| byte[0])
    }

    fn text(&mut self) -> io::Result<String> {
        let mut length = [0; 4];
        self.output.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}
