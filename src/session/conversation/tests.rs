//! Which messages a reply has read.

use super::*;

fn session() -> Session {
    let now = "2025-01-15T10:30:00Z".parse().unwrap();
    let mut session = Session::new("a1b2c3d4".to_owned(), "A task", Vec::new(), now);
    session.add("one");
    session.add("two");
    session
}

fn answer(session: &Session, key: Option<String>) -> ReplyAddress {
    ReplyAddress { session: session.id.clone(), sequence: session.sequence, key }
}

#[test]
fn the_key_of_a_reply_tells_which_words_it_goes_by() {
    for (known, to_say) in [(0, &["one", "two"][..]), (1, &["two"]), (2, &[])] {
        let mut session = session();
        let answers = answer(&session, Some(session.key_of(1, known).to_uppercase()));
        assert_eq!(session.words_read(1, answers.key.as_deref().unwrap()), Some(known));
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
    let other = ReplyAddress { sequence: 7, ..answer(&whose, Some(whose.key())) };
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
    let keys: Vec<String> = (0..3).map(|added| session.key_of(1, added)).collect();
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    assert_eq!(session.words_read(1, &session.key_of(1, 3)), None);
}
