//! The words that a reply takes into account, and replies that come twice.

use super::*;
use crate::clock::Timestamp;

fn session() -> Session {
    let now = "2025-01-15T10:30:00Z".parse().unwrap();
    let mut session = Session::new("a1b2c3d4".to_owned(), "A task", Vec::new(), now);
    session.add("one");
    session.add("two");
    session
}

fn answer(session: &Session, key: Option<String>) -> Address {
    Address { session: session.id.clone(), sequence: session.sequence, key }
}

#[test]
fn the_key_of_a_reply_tells_which_words_it_goes_by() {
    for (known, to_say) in [(0, &["one", "two"][..]), (1, &["two"]), (2, &[])] {
        let mut session = session();
        let answers = answer(&session, Some(session.key_with(known).to_uppercase()));
        assert_eq!(session.mismatch(&answers), None);
        session.keep_unread_words(Some(&answers));
        assert_eq!(session.to_say, to_say);
        assert_eq!((session.to_repeat.len(), session.has_unread_words()), (0, known < 2));
        session.next_outbox();
        assert_eq!(session.said, to_say);
        assert_eq!(session.said_before, 0);
    }
}

#[test]
fn what_may_have_been_read_is_said_again() {
    let whose = session();
    let other = Address { sequence: 7, ..answer(&whose, Some(whose.key())) };
    for answers in [None, Some(answer(&whose, None)), Some(other)] {
        let mut session = session();
        session.say("three", session.updated_at);
        session.keep_unread_words(answers.as_ref());
        assert_eq!(session.to_repeat, ["one", "two"]);
        session.next_outbox();
        assert_eq!((session.said.len(), session.said_before, session.added), (3, 2, 0));
        assert!(!session.has_unread_words());
    }
}

#[test]
fn keys_are_all_different_and_no_other_key_is_one() {
    let session = session();
    let keys: Vec<String> = (0..3).map(|added| session.key_with(added)).collect();
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    let why = session.mismatch(&answer(&session, Some(session.key_with(3))));
    assert!(why.is_some_and(|why| why.contains("its key")), "{keys:?}");
}

const REPLY: &str =
    "Here:\n[RUN_COMMAND]\necho a >> log\n\n```\n[/RUN_COMMAND]\n[READ_FILE path=\"a\"]\n";

fn after(reply: &str) -> Session {
    let mut session = Session::new("a1b2c3d4".into(), "x", vec![], Timestamp::now());
    session.last_reply = Some(Session::identity(reply));
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
        assert!(after(REPLY).is_duplicate(&again, None), "{again:?}");
        assert!(after(&again).is_duplicate(REPLY, None), "{again:?}");
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
        assert!(!after(REPLY).is_duplicate(&other, None), "{other:?}");
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
        let (command, output) = ("x".into(), crate::protocol::Output::default());
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
        assert_eq!(session.is_duplicate(REPLY, None), is_repeat, "{:?}", session.last_results);
        // Of a file that was there before anybody could read what came of it, the same text.
        session.updated_at = "2025-01-15T10:30:00Z".parse().unwrap();
        let told = i128::from(session.updated_at.seconds()) * 1_000_000_000;
        assert!(session.is_duplicate(REPLY, Some(told + 5)));
        let later = session.is_duplicate(REPLY, Some(told + 1_000_000_000));
        assert_eq!(later, is_repeat);
        assert!(!session.is_duplicate("other", Some(told)));
    }
}

#[test]
fn a_text_of_which_each_byte_was_noted_is_known_again() {
    let mut session = after(REPLY);
    session.last_reply = Some(Digest::of(REPLY.as_bytes()));
    assert!(session.is_duplicate(REPLY, None) && !session.is_duplicate(REPLY.trim_end(), None));
    session.last_reply = None;
    assert!(!session.is_duplicate(REPLY, None));
}
