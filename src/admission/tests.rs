//! Replies to an outbox that is not the newest, and duplicate replies.

use super::*;
use crate::clock::Timestamp;

fn carries_key(session: &Session, text: &str) -> bool {
    let reply = ParsedReply::new(text.to_owned());
    reply.answers().is_some_and(|answers| is_authentic(session, answers))
}

#[test]
fn only_the_key_of_the_newest_outbox_is_one() {
    let now = "2025-01-15T10:30:00Z".parse().unwrap();
    let mut session = Session::new("a1b2c3d4".to_owned(), "A task", Vec::new(), now);
    let line = |sequence: u32, key: &str| {
        format!("[REPLY session=\"a1b2c3d4\" sequence=\"{sequence}\"{key}]\n[DONE]\nx\n[/DONE]\n")
    };
    let keyed = |key: &str| format!(" key=\"{key}\"");
    let old = keyed(&session.key());
    assert!(carries_key(&session, &line(1, &old)));
    assert!(carries_key(&session, &line(1, &old.to_uppercase().replace("KEY", "key"))));
    for text in [
        line(1, ""),
        line(1, &keyed("00000000")),
        line(2, &old),
        line(1, &old).replace("a1b2", "b1b2"),
        "[DONE]\nx\n[/DONE]\n".to_owned(),
    ] {
        assert!(!carries_key(&session, &text), "{text}");
    }
    // After a command the line counts, too, and the whole reply is refused.
    let late = format!("[MESSAGE]\nx\n[/MESSAGE]\n{}", line(1, &old));
    assert!(carries_key(&session, &late));
    session.sequence = 2;
    assert!(!carries_key(&session, &line(1, &old)) && !carries_key(&session, &line(2, &old)));
    let new = keyed(&session.key());
    assert!(carries_key(&session, &line(2, &new)));
    session.is_complete = true;
    assert!(!carries_key(&session, &line(2, &new)));
}

const REPLY: &str =
    "Here:\n[RUN_COMMAND]\necho a >> log\n\n```\n[/RUN_COMMAND]\n[READ_FILE path=\"a\"]\n";

fn after(reply: &str) -> Session {
    let mut session = Session::new("a1b2c3d4".into(), "x", vec![], Timestamp::now());
    session.last_reply = Some(identity(reply));
    session
}

#[test]
fn the_same_text_by_another_way_is_the_same() {
    let trimmed = REPLY.trim_end();
    for again in [
        REPLY.to_owned(),
        trimmed.to_owned(),
        REPLY.replace('\n', "\r\n"),
        format!("\n \n{REPLY}\n\n"),
        format!("\u{feff}{REPLY}"),
        REPLY.replace('\n', "  \t\n"),
        format!("```text\n{REPLY}```\n"),
        format!("~~~~\n{REPLY}~~~~"),
        format!("Copy code\n{REPLY}"),
        format!("```\nCopy code\n\n{trimmed}\n```\nEdit\n"),
    ] {
        assert!(is_duplicate(&after(REPLY), &again, None), "{again:?}");
        assert!(is_duplicate(&after(&again), REPLY, None), "{again:?}");
    }
}

#[test]
fn another_text_is_another() {
    for other in [
        REPLY.replace("log", "Log"),
        REPLY.replace("```\n", ""),
        REPLY.replace("\n\n", "\n"),
        REPLY.replace("echo", " echo"),
        format!("Copy code of it\n{REPLY}"),
        format!("{REPLY}{REPLY}"),
        String::new(),
    ] {
        assert!(!is_duplicate(&after(REPLY), &other, None), "{other:?}");
    }
}

#[test]
fn what_was_refused_is_sent_again_where_nothing_was_done() {
    let of =
        |kind, detail| Outcome { kind, line: 1, detail, warnings: vec![], asked: None, at: None };
    let failed = |kind, sort| of(kind, Failure::new(sort, "no").into());
    let stale = || {
        let failure = Failure::execution("no").as_a(crate::protocol::Mistake::StaleLines);
        of(Kind::Edit, failure.into())
    };
    let said = || of(Kind::Message, Detail::Shown { text: "x".into() });
    let ran = |ending| {
        let (command, output) = ("x".into(), crate::protocol::CommandOutput::default());
        let duration = std::time::Duration::ZERO;
        of(Kind::Run, Detail::Ran(crate::protocol::Execution { command, ending, output, duration }))
    };
    let path = || crate::protocol::RelPath::parse("a").unwrap();
    let read = || {
        of(Kind::Read, Detail::ReadLater { path: path(), part: crate::protocol::Part::default() })
    };
    let ineffective = || {
        let (summary, reason) = ("x".into(), "no".into());
        of(Kind::Done, Detail::Ineffective { summary, reason })
    };
    let deleted = || of(Kind::Delete, Detail::Deleted { path: path() });
    for (results, is_repeat) in [
        (vec![said(), stale()], false),
        (vec![read(), failed(Kind::Create, FailureKind::Rejected)], false),
        (vec![failed(Kind::Reply, FailureKind::CutOff)], false),
        (vec![failed(Kind::Delete, FailureKind::Denied)], false),
        (vec![failed(Kind::List, FailureKind::Execution)], false),
        (vec![ran(Ending::NotStarted("no shell".into()))], false),
        (vec![failed(Kind::Create, FailureKind::System)], true),
        (vec![stale(), ran(Ending::Exited(1))], true),
        (vec![ran(Ending::Lost), stale()], true),
        (vec![deleted(), stale()], true),
        (vec![read()], true),
        (vec![said()], true),
        (vec![ineffective()], true),
        (vec![failed(Kind::Read, FailureKind::Execution), ineffective()], false),
        (vec![], true),
    ] {
        let mut session = after(REPLY);
        session.last_results = results;
        assert_eq!(is_duplicate(&session, REPLY, None), is_repeat, "{:?}", session.last_results);
        // The same text is a duplicate if its file was written before anybody could read the results.
        session.updated_at = "2025-01-15T10:30:00Z".parse().unwrap();
        let told = session.updated_at.seconds() * 1_000_000_000;
        assert!(is_duplicate(&session, REPLY, Some(told + 5)));
        let later = is_duplicate(&session, REPLY, Some(told + 1_000_000_000));
        assert_eq!(later, is_repeat);
        assert!(!is_duplicate(&session, "other", Some(told)));
    }
}

#[test]
fn a_text_of_which_each_byte_was_noted_is_known_again() {
    let mut session = after(REPLY);
    session.last_reply = Some(Digest::of(REPLY.as_bytes()));
    assert!(is_duplicate(&session, REPLY, None) && !is_duplicate(&session, REPLY.trim_end(), None));
    session.last_reply = None;
    assert!(!is_duplicate(&session, REPLY, None));
}
