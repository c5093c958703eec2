//! What is waited for, in a line.

use std::ffi::OsString;

use super::Context;
use crate::event::Waiting;
use crate::session::Session;
use crate::text::{count, visible_line};

const STOPS: &str = "Ctrl-C stops";

/// The line that is shown while nothing is to be done: the longest first of those that say it, of which
/// a terminal shows the first that it has room for. Where the inbox is was said before.
pub(super) fn lines(context: &Context, waiting: &Waiting) -> Vec<String> {
    let inbox = context.display(&context.config.inbox);
    let outbox =
        |session: &Session| context.display(&context.config.outbox.join(session.outbox_name()));
    let lines = told(waiting, &inbox, &outbox);
    lines.iter().map(|line| context.ui.in_base(line).into_owned()).collect()
}

fn told(waiting: &Waiting, inbox: &str, outbox: &dyn Fn(&Session) -> String) -> Vec<String> {
    let Waiting { sessions, unfinished } = waiting;
    let (asking, open): (Vec<&Session>, Vec<&Session>) =
        sessions.iter().partition(|session| session.question().is_some());
    let of_sessions = || {
        let mut counted = vec![count(open.len(), "session")];
        counted.extend((!asking.is_empty()).then(|| count(asking.len(), "decision")));
        counted.join(" · ")
    };
    let forms = match unfinished.as_slice() {
        [] => match (open.as_slice(), asking.as_slice()) {
            ([], []) => vec![
                format!("No session is open; waiting for `deaddrop new` or files in {inbox}/"),
                "No session is open: `deaddrop new`".to_owned(),
            ],
            ([], [only]) => {
                let id = only.question().map(|question| question.id.as_str()).unwrap_or_default();
                vec![
                    format!("Waiting for your decision about {id}: `deaddrop approve` or `deny`"),
                    format!("Decide about {id}: `deaddrop approve` or `deny`"),
                    format!("`deaddrop approve` or `deny` {id}"),
                ]
            }
            ([], _) => vec![format!("Waiting for {}", count(asking.len(), "decision"))],
            ([only], []) => {
                let path = outbox(only);
                vec![
                    format!("Waiting for a reply in {inbox}/ · {path}"),
                    format!("Waiting for a reply · {path}"),
                    format!("Waiting · {path}"),
                ]
            }
            _ => vec![
                format!("Waiting for replies in {inbox}/ · {}", of_sessions()),
                format!("Waiting for replies · {}", of_sessions()),
                format!("Waiting · {}", of_sessions()),
            ],
        },
        [only] => vec![
            format!("{} is not finished yet: a program is still writing it", name(only)),
            format!("{} is not finished yet", name(only)),
        ],
        [first, rest @ ..] => vec![format!(
            "{} and {} are not finished yet",
            name(first),
            count(rest.len(), "more file")
        )],
    };
    // How to stop is the first that can be done without, and then where the outbox lies.
    let shortest = forms.last().cloned();
    let is_one = unfinished.is_empty() && asking.is_empty() && open.len() == 1;
    let named = is_one.then(|| {
        [format!("Waiting · {}", open[0].outbox_name()), "Waiting for a reply".to_owned()]
    });
    let mut lines: Vec<String> =
        forms.into_iter().map(|what| format!("{what} · {STOPS}")).collect();
    lines.extend(shortest.into_iter().chain(named.into_iter().flatten()));
    lines
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
        let lines = |sessions: &[&Session], unfinished: &[&str]| {
            let unfinished = unfinished.iter().map(OsString::from).collect();
            let waiting = Waiting { sessions: sessions.to_vec(), unfinished };
            told(&waiting, "inbox", &|session| format!("outbox/{}", session.outbox_name()))
        };
        let line =
            |sessions: &[&Session], unfinished: &[&str]| lines(sessions, unfinished).remove(0);
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
            "r␛.txt is not finished yet: a program is still writing it · Ctrl-C stops"
        );
        assert_eq!(
            line(&[&one], &["r.txt", "s.txt"]),
            "r.txt and 1 more file are not finished yet · Ctrl-C stops"
        );
        assert!(line(&[], &[]).starts_with("No session is open; waiting for `deaddrop new`"));
        assert_eq!(
            lines(&[&one], &[])[1..],
            [
                "Waiting for a reply · outbox/a1b2c3d4_seq0001.txt · Ctrl-C stops",
                "Waiting · outbox/a1b2c3d4_seq0001.txt · Ctrl-C stops",
                "Waiting · outbox/a1b2c3d4_seq0001.txt",
                "Waiting · a1b2c3d4_seq0001.txt",
                "Waiting for a reply",
            ]
        );
    }
}
