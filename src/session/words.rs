//! What a person says beside a reply: in which outbox it stands, and whether that was read.
//!
//! Words are put at the end of the newest outbox while that may still be copied, and the line that a
//! reply begins with gets another key with each of them. So the key of a reply tells which of them
//! stood in the text that it answers; what did not is said by the next outbox.

use super::Session;
use crate::clock::Timestamp;
use crate::protocol::Address;

impl Session {
    /// Adds the person's words to the next outbox.
    pub fn say(&mut self, text: &str, now: Timestamp) {
        self.to_say.push(text.to_owned());
        self.updated_at = now;
    }

    /// Adds the person's words to the newest outbox, which is there already.
    pub fn add(&mut self, text: &str) {
        self.said.push(text.to_owned());
        self.added += 1;
    }

    /// Takes a completed session up again, with the person's words for the next outbox.
    pub fn reopen(&mut self, text: &str, now: Timestamp) {
        self.is_complete = false;
        self.say(text, now);
        self.next_outbox();
    }

    /// What the newest outbox said when it was written, and what was added to it afterwards.
    fn words(&self) -> (&[String], &[String]) {
        self.said.split_at(self.said.len() - self.added.min(self.said.len()))
    }

    /// What the newest outbox said when it was written.
    pub fn words_written(&self) -> &[String] {
        self.words().0
    }

    /// What was added to the newest outbox after it had been written.
    pub fn words_added(&self) -> &[String] {
        self.words().1
    }

    /// What the next outbox has to say, what may have been read already first.
    pub fn words_to_say(&self) -> impl Iterator<Item = &String> {
        self.to_repeat.iter().chain(&self.to_say)
    }

    /// What only somebody knows who has seen the newest outbox: eight hexadecimal digits.
    pub fn key(&self) -> String {
        self.key_with(self.added)
    }

    /// The key of the newest outbox as it was when only so many words had been added to it.
    pub fn key_with(&self, added: usize) -> String {
        let mut words = format!("{}\n{}\n{}", self.secret, self.id, self.sequence);
        if added > 0 {
            words.push_str(&format!("\n{added}"));
        }
        let key = blake3::derive_key("deaddrop reply key", words.as_bytes());
        blake3::Hash::from_bytes(key).to_hex()[..8].to_owned()
    }

    /// How many of the added words stood in the newest outbox as it had this key; None where it never
    /// had it.
    pub(super) fn read_up_to(&self, key: &str) -> Option<usize> {
        (0..=self.added).rev().find(|added| key.eq_ignore_ascii_case(&self.key_with(*added)))
    }

    /// A reply came that says it answers that: what was added and did not stand in the text that it
    /// answers is for the next outbox, and so is what may not have, where it does not tell.
    pub fn hear(&mut self, answers: Option<&Address>) {
        let from = self.words_written().len();
        let newest = answers.filter(|it| it.session == self.id && it.sequence == self.sequence);
        let read = newest.and_then(|it| self.read_up_to(it.key.as_deref()?));
        let mut unread = self.said.split_off(from + read.unwrap_or_default());
        match read {
            Some(_) => {
                unread.append(&mut self.to_say);
                self.to_say = unread;
            }
            None => self.to_repeat.append(&mut unread),
        }
        self.added = 0;
    }

    /// Whether the person has said something that the newest reply does not go by, or may not: then
    /// it cannot end the session.
    pub fn is_unheard(&self) -> bool {
        !self.to_say.is_empty() || !self.to_repeat.is_empty()
    }

    /// Whether the person has said anything that no reply has answered, where none came since the session
    /// was taken up again: it is for the next outbox, or only the newest has told it.
    pub fn is_unanswered(&self) -> bool {
        self.is_unheard() || !self.said.is_empty()
    }

    /// What the newest outbox says is for the next one, too: nobody may have read it.
    pub(super) fn repeat_said(&mut self) {
        let mut said = std::mem::take(&mut self.said);
        said.append(&mut self.to_repeat);
        self.to_repeat = said;
    }

    /// On to the next outbox.
    pub(super) fn next_outbox(&mut self) {
        self.sequence += 1;
        self.said = std::mem::take(&mut self.to_repeat);
        (self.said_before, self.added) = (self.said.len(), 0);
        self.said.append(&mut self.to_say);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(session.misses(&answers), None);
            session.hear(Some(&answers));
            assert_eq!(session.to_say, to_say);
            assert_eq!((session.to_repeat.len(), session.is_unheard()), (0, known < 2));
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
            session.hear(answers.as_ref());
            assert_eq!(session.to_repeat, ["one", "two"]);
            session.next_outbox();
            assert_eq!((session.said.len(), session.said_before, session.added), (3, 2, 0));
            assert!(!session.is_unheard());
        }
    }

    #[test]
    fn keys_are_all_different_and_no_other_key_is_one() {
        let session = session();
        let keys: Vec<String> = (0..3).map(|added| session.key_with(added)).collect();
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
        let why = session.misses(&answer(&session, Some(session.key_with(3))));
        assert!(why.is_some_and(|why| why.contains("its key")), "{keys:?}");
    }
}
