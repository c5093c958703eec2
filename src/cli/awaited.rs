//! What is waited for, in a line.

use std::ffi::OsString;

use super::Context;
use crate::daemon::Waiting;
use crate::session::Session;
use crate::text::{count, visible_line};

const STOPS: &str = "Ctrl-C stops";

/// The line that is shown while nothing is to be done.
pub(super) fn line(context: &Context, waiting: &Waiting) -> String {
    let inbox = context.display(&context.config.inbox);
    let outbox =
        |session: &Session| context.display(&context.config.outbox.join(session.outbox_name()));
    told(waiting, &inbox, &outbox)
}

fn told(waiting: &Waiting, inbox: &str, outbox: &dyn Fn(&Session) -> String) -> String {
    let Waiting { sessions, unfinished } = waiting;
    let (asking, open): (Vec<&Session>, Vec<&Session>) =
        sessions.iter().partition(|session| session.question().is_some());
    let what = match unfinished.as_slice() {
        [] => match (open.as_slice(), asking.as_slice()) {
            ([], []) => {
                format!("No session is open; waiting for `deaddrop new` or files in {inbox}/")
            }
            ([], [only]) => {
                let id = only.question().map(|question| question.id.as_str()).unwrap_or_default();
                format!("Waiting for your decision about {id}: `deaddrop approve` or `deny`")
            }
            ([], _) => format!("Waiting for {}", count(asking.len(), "decision")),
            ([only], []) => format!("Waiting for a reply in {inbox}/ · {}", outbox(only)),
            (open, []) => {
                format!("Waiting for replies in {inbox}/ · {}", count(open.len(), "session"))
            }
            (open, asking) => format!(
                "Waiting for replies in {inbox}/ · {} · {}",
                count(open.len(), "session"),
                count(asking.len(), "decision")
            ),
        },
        [only] => format!("{} is not finished yet: somebody still writes it", name(only)),
        [first, rest @ ..] => {
            format!("{} and {} are not finished yet", name(first), count(rest.len(), "more file"))
        }
    };
    format!("{what} · {STOPS}")
}

fn name(name: &OsString) -> String {
    visible_line(&name.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    #[test]
    fn one_line_says_what_is_waited_for() {
        let now = Timestamp::now();
        let [one, two] = ["a1b2c3d4", "00ff00ff"]
            .map(|id| Session::new(id.to_owned(), "A task", Vec::new(), now));
        let line = |sessions: &[&Session], unfinished: &[&str]| {
            let unfinished = unfinished.iter().map(OsString::from).collect();
            let waiting = Waiting { sessions: sessions.to_vec(), unfinished };
            told(&waiting, "inbox", &|session| format!("outbox/{}", session.outbox_name()))
        };
        assert_eq!(
            line(&[&one], &[]),
            "Waiting for a reply in inbox/ · outbox/a1b2c3d4_seq0001.txt · Ctrl-C stops"
        );
        assert_eq!(
            line(&[&one, &two], &[]),
            "Waiting for replies in inbox/ · 2 sessions · Ctrl-C stops"
        );
        assert_eq!(
            line(&[&one], &["r\u{1b}.txt"]),
            "r␛.txt is not finished yet: somebody still writes it · Ctrl-C stops"
        );
        assert_eq!(
            line(&[&one], &["r.txt", "s.txt"]),
            "r.txt and 1 more file are not finished yet · Ctrl-C stops"
        );
        assert!(line(&[], &[]).starts_with("No session is open; waiting for `deaddrop new`"));
    }
}
