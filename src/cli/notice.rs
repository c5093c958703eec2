//! Notifies a person who is looking elsewhere, if the settings say so: with the terminal's bell or a desktop message.

use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wait_timeout::ChildExt;

use super::output;
use super::{CliContext, live};
use crate::engine::Turn;
use crate::program::Programs;
use crate::session::Session;
use crate::settings::Notify;
use crate::text::visible_line;

/// The program that shows messages on a desktop.
const PROGRAM: &str = "notify-send";
/// The most time that the program may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the person was already warned that messages cannot be shown.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Notifies the person that a turn has ended.
pub(super) fn turn_ended(context: &CliContext, turn: &Turn) {
    let Turn { session, outbox } = turn;
    match outbox {
        Some(path) => {
            let failed = session.last_results.iter().filter(|outcome| !outcome.success()).count();
            let failed = if failed == 0 { String::new() } else { format!("{failed} failed. ") };
            notify(context, &format!("{failed}The next outbox is {}", context.display(path)));
        }
        None if session.is_complete => {
            notify(context, &format!("Session {} is complete", session.id));
        }
        // `decision_needed` notifies about the question.
        None => {}
    }
}

/// Notifies the person that a session waits for a decision.
pub(super) fn decision_needed(context: &CliContext, session: &Session) {
    let Some(question) = session.question() else { return };
    notify(context, &format!("{} waits for your decision about {}", session.stem(), question.id));
}

fn notify(context: &CliContext, text: &str) {
    match context.config.notify {
        Notify::Off => {}
        Notify::Bell => live::ring(),
        Notify::Desktop => show_on_desktop(context, text),
    }
}

/// Shows a desktop message without waiting for it.
fn show_on_desktop(context: &CliContext, text: &str) {
    let child = Programs::of(&context.config).command(PROGRAM).and_then(|mut command| {
        command.args(["--app-name=deaddrop", "--", "deaddrop", &escape(text)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    });
    let mut child = match child {
        Ok(child) => child,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return warn("it is not installed (on Debian: libnotify-bin)");
        }
        Err(e) => return warn(&e.to_string()),
    };
    let wait = move || match child.wait_timeout(PATIENCE) {
        Ok(Some(status)) if status.success() => {}
        Ok(Some(status)) => warn(&format!("it ended with {status}; is there a desktop?")),
        _ => {
            let _ = child.kill();
            let _ = child.wait();
        }
    };
    // Without a thread, the ended child is not reaped, which does no harm.
    drop(thread::Builder::new().name("notify".into()).spawn(wait));
}

/// Warns only once.
fn warn(why: &str) {
    if !WARNED.swap(true, Ordering::Relaxed) {
        output::warning(&format!(
            "`notify = \"desktop\"` does not work, because {PROGRAM} failed: {why}"
        ));
    }
}

/// Makes control characters visible, and escapes the markup of desktop messages.
fn escape(text: &str) -> String {
    visible_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_holds_nothing_that_acts() {
        assert_eq!(escape("a\u{1b}[2J\n<b>&\u{202e}"), "a␛[2J␊&lt;b&gt;&amp;&lt;U+202E&gt;");
    }
}
