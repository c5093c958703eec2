//! The status line, drawn in place on a terminal: what deaddrop waits for, or what is running and for how long. All
//! other output goes through this module, so that it never mixes with the line.
//!
//! The cursor stays at the beginning of the line. So output from the terminal or a shell starts there. If a narrower
//! terminal wraps the line, all of it is below the cursor and can be erased.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anstyle::Style;
use signal_hook::consts::SIGCONT;

use super::{keyboard, rows};
use crate::runner::{LastLine, LiveOutput};
use crate::terminal::{Stream, Styled};
use crate::text::visible_line;
use crate::watch::Stop;

/// How often the line is redrawn while an operation runs.
const TICK: Duration = Duration::from_millis(100);
/// Operations that end within this time are not shown.
const SHOW_AFTER: Duration = Duration::from_millis(100);
/// How often the line is redrawn otherwise, for a new size of the terminal or a process that continues after Ctrl-Z.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// After this time, the line shows a spinner, the elapsed time and the last line of output.
const SPIN_AFTER: Duration = Duration::from_secs(1);

static SCREEN: Mutex<Screen> =
    Mutex::new(Screen { on: false, is_prompting: false, line: None, drawn: None, stop: None });
static CHANGED: Condvar = Condvar::new();

struct Screen {
    /// Whether lines may be drawn in place.
    on: bool,
    /// Whether a question is waiting for an answer.
    is_prompting: bool,
    line: Option<StatusLine>,
    /// The drawn text, and the terminal's width at that time.
    drawn: Option<(String, usize)>,
    stop: Option<Stop>,
}

enum StatusLine {
    Waiting(String),
    /// An operation that takes a while. `seen` contains its output.
    Running {
        what: String,
        since: Instant,
        seen: Arc<LiveOutput>,
    },
}

/// Draws lines in place from now on.
pub(super) fn begin() {
    lock().on = true;
    let is_continued = Arc::new(AtomicBool::new(false));
    // Without the signal or the thread, the line is not updated, which does no harm.
    drop(signal_hook::flag::register(SIGCONT, Arc::clone(&is_continued)));
    drop(thread::Builder::new().name("status line".into()).spawn(move || redraw(&is_continued)));
}

/// Whether lines are drawn in place. They are not while a question is shown.
pub(super) fn is_on() -> bool {
    let screen = lock();
    screen.on && !screen.is_prompting
}

/// Stops drawing once `stop` is requested: a second Ctrl-C ends the program at once.
pub(super) fn stop_drawing_on(stop: &Stop) {
    lock().stop = Some(stop.clone());
}

/// Writes other output above the line.
pub(super) fn print_above(write: impl FnOnce()) {
    let mut screen = lock();
    screen.wipe();
    write();
    screen.draw();
}

/// Writes a question in place of the line. Nothing is drawn until [`release`].
pub(super) fn hold(write: impl FnOnce() -> bool) -> bool {
    let mut screen = lock();
    screen.wipe();
    screen.is_prompting = write();
    screen.is_prompting
}

/// Ends the question.
pub(super) fn release() {
    lock().is_prompting = false;
}

/// Shows a text in the line, cut to the terminal's width.
pub(super) fn show_waiting(text: String) {
    let mut screen = lock();
    if !screen.on {
        return;
    }
    screen.line = Some(StatusLine::Waiting(text));
    screen.draw();
}

/// Shows from now on that an operation is running, if it takes long enough. `seen` contains its output.
pub(super) fn show_running(what: &str, seen: &Arc<LiveOutput>) {
    let mut screen = lock();
    if !screen.on {
        return;
    }
    screen.wipe();
    screen.line = Some(StatusLine::Running {
        what: what.to_owned(),
        since: Instant::now(),
        seen: Arc::clone(seen),
    });
    CHANGED.notify_one();
}

/// Removes the line.
pub(super) fn clear() {
    let mut screen = lock();
    screen.wipe();
    screen.line = None;
}

/// Erases a typed line. The terminal has shown it in the row of the status line, above the cursor.
pub(super) fn erase_typed() {
    let mut screen = lock();
    if screen.drawn.take().is_some() && is_in_front() {
        let erased = Stream::Err.erase_row_above();
        screen.stop_on_error(&erased);
    }
    screen.draw();
}

/// Rings the terminal's bell, if lines are drawn in place.
pub(super) fn ring() {
    let mut screen = lock();
    if screen.on {
        screen.stop_on_error(&Stream::Err.ring());
    }
}

fn lock() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Redraws the line regularly. `is_continued` is set when the process continues after Ctrl-Z.
fn redraw(is_continued: &AtomicBool) {
    let mut screen = lock();
    loop {
        screen.draw();
        let is_running = matches!(screen.line, Some(StatusLine::Running { .. }));
        let tick = if is_running { TICK } else { SLOW_TICK };
        let Ok((again, _)) = CHANGED.wait_timeout(screen, tick) else { return };
        screen = again;
        if is_continued.swap(false, Ordering::Relaxed) {
            // Other processes may have written to the terminal in the meantime.
            screen.drawn = None;
        }
    }
}

impl Screen {
    fn draw(&mut self) {
        let stopping = self.stop.as_ref().is_some_and(Stop::is_asked);
        if !self.on || self.is_prompting || stopping || !is_in_front() {
            return self.wipe();
        }
        let width = rows::terminal_width();
        // The last column stays free, because some terminals begin a new row after it.
        let room = width.saturating_sub(1);
        let text = match &self.line {
            None => return,
            Some(StatusLine::Waiting(text)) => rows::cut_end(text, room),
            Some(StatusLine::Running { what, since, seen }) => match since.elapsed() {
                elapsed if elapsed < SHOW_AFTER => return,
                elapsed => running_line(what, elapsed, seen.last_line().as_ref(), room),
            },
        };
        if self.drawn.as_ref().is_some_and(|(drawn, at)| *drawn == text && *at == width) {
            return;
        }
        self.stop_on_error(&Stream::Err.draw(&Styled::new(Style::new().dimmed(), &text)));
        self.drawn = Some((text, width));
    }

    /// Erases the drawn line, unless another process uses the terminal.
    fn wipe(&mut self) {
        if self.drawn.take().is_some() && is_in_front() {
            self.stop_on_error(&Stream::Err.wipe());
        }
    }

    /// Stops drawing if writing to the terminal fails.
    fn stop_on_error(&mut self, written: &io::Result<()>) {
        self.on &= written.is_ok();
    }
}

/// The line for a running operation, in at most `room` columns.
fn running_line(what: &str, elapsed: Duration, last: Option<&LastLine>, room: usize) -> String {
    if elapsed < SPIN_AFTER {
        return rows::cut_end(&format!("   ..   {what}"), room);
    }
    let sign = ['|', '/', '-', '\\'][(elapsed.as_millis() / TICK.as_millis() % 4) as usize];
    let lead = format!("  {sign} {:>4} ", format_elapsed(elapsed));
    let Some(last) = last else { return rows::cut_end(&format!("{lead}{what}"), room) };
    const GAP: &str = " · ";
    // The output gets at most half of the row.
    let left = room.saturating_sub(rows::display_width(&lead));
    let wanted = rows::display_width(&(visible_line(&last.text) + GAP));
    let begin = format!("{lead}{}{GAP}", rows::cut_end(what, left - wanted.min(left / 2)));
    let left = room.saturating_sub(rows::display_width(&begin));
    let cut = if last.is_cut { rows::cut_start } else { rows::cut_end };
    rows::cut_end(&(begin + &cut(&last.text, left)), room)
}

/// An elapsed time: `12 s`, `3 min 05 s`, `2 h 07 min`.
fn format_elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Whether this process is in the terminal's foreground.
fn is_in_front() -> bool {
    Stream::Err.with(|fd| keyboard::is_in_front(fd))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: f64, last: Option<&str>, room: usize) -> String {
        let last = last.map(|text| LastLine { text: text.to_owned(), is_cut: false });
        running_line("RUN_COMMAND  'make'", Duration::from_secs_f64(seconds), last.as_ref(), room)
    }

    #[test]
    fn what_runs_has_a_spinner_after_a_second_and_the_last_line_behind_it() {
        assert_eq!(after(0.3, Some("cc a.c"), 79), "   ..   RUN_COMMAND  'make'");
        assert_eq!(after(1.0, None, 79), "  -  1 s RUN_COMMAND  'make'");
        assert_eq!(after(12.1, Some("cc a.c"), 79), "  / 12 s RUN_COMMAND  'make' · cc a.c");
        assert_eq!(after(125.0, None, 79), "  - 2 min 05 s RUN_COMMAND  'make'");
    }

    #[test]
    fn it_fits_whatever_was_written() {
        let lines = ["", "宽".repeat(200).leak(), "\u{1b}[31mx\u{7}\t", "plain ".repeat(99).leak()];
        for room in 0..120 {
            for line in lines {
                for is_cut in [false, true] {
                    let last = LastLine { text: line.to_owned(), is_cut };
                    let time = Duration::from_secs(3700);
                    let text = running_line("SEARCH       宽宽宽", time, Some(&last), room);
                    assert!(rows::display_width(&text) <= room, "{text:?} in {room}");
                    assert!(!text.contains(['\u{1b}', '\u{7}', '\n', '\r']), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn of_a_line_without_end_the_newest_is_shown() {
        let last = LastLine { text: "x".repeat(500) + "99 %", is_cut: true };
        let text = running_line("work", Duration::from_secs(2), Some(&last), 60);
        assert!(text.ends_with("x99 %") && text.contains("work · …x"), "{text}");
    }
}
