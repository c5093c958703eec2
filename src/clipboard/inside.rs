//! What a helper does: sets itself apart from whoever started it, then holds, reads or watches.
#![allow(unsafe_code)]

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::display::Display;
use super::helper::{DONE, FAILED, MARK, TEXT, is_of_the_text};
use super::{Found, LIMIT, Way, tools};
use crate::protocol::ParsedReply;

/// How often a watching helper looks: a person takes longer to change windows.
const EVERY: Duration = Duration::from_millis(400);
/// The same where each look starts a program.
const EVERY_PROGRAM: Duration = Duration::from_secs(1);
/// How many looks in a row may fail before a watching helper says so.
const FAILURES: u32 = 3;
/// How much memory a helper that reads may have: nobody knows how long a clipboard is before it is
/// read.
const MEMORY: u64 = 1 << 30;

/// If this process was started as a helper, be one and never return. Call it first in `main`, before
/// any thread is made.
pub fn dispatch() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MARK) {
        return;
    }
    let (verb, way) = (arguments.next(), arguments.next());
    let way = way.and_then(|name| Way::named(name.to_str()?));
    let (Some(verb), Some(way)) = (verb, way) else { std::process::exit(2) };
    let program = arguments.next().map(PathBuf::from);
    let done = apart().and_then(|()| match verb.to_str() {
        Some("hold") => hold(way, program),
        Some("read") => read(way, program),
        Some("watch") => watch(way, program),
        _ => std::process::exit(2),
    });
    if let Err(why) = done {
        let _ = report(FAILED, why.as_bytes());
        std::process::exit(1);
    }
    std::process::exit(0)
}

/// Keeps nothing of whoever started this process: no descriptor but the standard ones, no terminal,
/// no folder. What it reads stays within it: no other process of the user looks into it, and no dump
/// of its memory is written.
fn apart() -> Result<(), String> {
    close_others();
    crate::runner::sandbox::close_to_commands();
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, chdir, setrlimit, setsid};
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none).map_err(|e| e.to_string())?;
        // It fails where it leads a session already.
        let _ = setsid();
        chdir("/").map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Closes all descriptors but the three standard ones.
fn close_others() {
    #[cfg(target_os = "linux")]
    // SAFETY: a system call on integers. Nothing in this process has opened anything yet.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_int::MAX, 0);
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    for descriptor in 3..1024 {
        // SAFETY: a system call on an integer. Nothing in this process has opened anything yet.
        unsafe {
            libc::close(descriptor);
        }
    }
}

/// Lets go of the pipes to whoever started this process.
fn let_go() {
    #[cfg(unix)]
    // SAFETY: system calls on integers and a constant string; the standard descriptors stay open.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null >= 0 {
            libc::dup2(null, 0);
            libc::dup2(null, 1);
            libc::close(null);
        }
    }
}

/// Ends with its parent; and reads no more than there is room for.
fn for_a_while() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit,
        };
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| e.to_string())?;
        let bound = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
        setrlimit(Resource::As, bound).map_err(|e| e.to_string())?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a pipe to whoever started this helper")]
fn report(kind: u8, rest: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&[kind])?;
    out.write_all(rest)?;
    out.flush()
}

/// Says that the text is there. Whoever does not hear it any more does not count on it.
fn reported() {
    if report(DONE, b"").is_err() {
        std::process::exit(1);
    }
    let_go();
}

fn hold(way: Way, program: Option<PathBuf>) -> Result<(), String> {
    let mut text = String::new();
    let stdin = io::stdin().take(LIMIT as u64 + 1);
    io::BufReader::new(stdin).read_to_string(&mut text).map_err(|e| e.to_string())?;
    let Some(program) = program else {
        return Display::open()?.hold(text, reported);
    };
    // What the program leaves in the background comes to this process, and to no other.
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|e| e.to_string())?;
    tools::copy(way, &program, &text)?;
    drop(text);
    reported();
    #[cfg(unix)]
    while rustix::process::wait(rustix::process::WaitOptions::empty()).is_ok() {}
    Ok(())
}

/// What reads the clipboard.
enum Reader {
    Display(Display),
    Program(Way, PathBuf),
}

impl Reader {
    fn open(way: Way, program: Option<PathBuf>) -> Result<Self, String> {
        Ok(match program {
            None => Self::Display(Display::open()?),
            Some(program) => Self::Program(way, program),
        })
    }

    fn read(&mut self) -> Result<Found, String> {
        match self {
            Self::Display(display) => display.read(),
            Self::Program(way, program) => tools::read(*way, program),
        }
    }
}

fn read(way: Way, program: Option<PathBuf>) -> Result<(), String> {
    for_a_while()?;
    let told = match Reader::open(way, program)?.read()? {
        Found::Text(text) => report(TEXT, text.as_bytes()),
        Found::Empty => report(DONE, b""),
    };
    told.map_err(|e| e.to_string())
}

/// Reports each text that says which outbox it answers, and that it is at work. All other texts are
/// looked at here only, and forgotten.
fn watch(way: Way, program: Option<PathBuf>) -> Result<(), String> {
    for_a_while()?;
    let every = if program.is_some() { EVERY_PROGRAM } else { EVERY };
    let mut reader = Reader::open(way, program)?;
    let (mut last, mut failures) = (None, 0);
    loop {
        match reader.read() {
            Ok(Found::Empty) => (last, failures) = (None, 0),
            Ok(Found::Text(text)) => {
                failures = 0;
                let digest = blake3::hash(text.as_bytes());
                let letter = ParsedReply::new(text);
                if last.replace(digest) != Some(digest) && letter.answers().is_some() {
                    let text = letter.text().as_bytes();
                    let length = u32::try_from(text.len()).map_err(|e| e.to_string())?;
                    let mut frame = length.to_be_bytes().to_vec();
                    frame.extend(text);
                    report(TEXT, &frame).map_err(|e| e.to_string())?;
                }
            }
            // It can be looked at, and what is there is no reply.
            Err(why) if is_of_the_text(&why) => (last, failures) = (None, 0),
            Err(why) => {
                failures += 1;
                if failures >= FAILURES {
                    return Err(why);
                }
            }
        }
        report(DONE, b"").map_err(|e| e.to_string())?;
        if is_over(every) {
            return Ok(());
        }
    }
}

/// Waits, and says whether standard input was closed meanwhile.
#[cfg(unix)]
fn is_over(wait: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).ok();
    !matches!(poll(&mut polled, wait.as_ref()), Ok(0) | Err(rustix::io::Errno::INTR))
}

#[cfg(not(unix))]
fn is_over(wait: Duration) -> bool {
    std::thread::sleep(wait);
    false
}
