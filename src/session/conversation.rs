//! How a session advances: replies, messages from the person, and which messages a reply has read.
//!
//! The person can add messages to the newest outbox while it awaits a reply. Each added message changes the key, which
//! the first line of a reply repeats. So the key shows which messages the reply has read; the next outbox has the rest.

use super::{Pending, Session, TurnChanges};
use crate::clock::Timestamp;
use crate::protocol::{Detail, Outcome, ReplyAddress};

impl Session {
    /// Advances to the next outbox with the outcomes of a reply, or completes the session.
    pub fn advance(&mut self, outcomes: Vec<Outcome>, now: Timestamp) {
        self.summary = outcomes.iter().find_map(|outcome| match &outcome.detail {
            Detail::Completed { summary } => Some(summary.clone()),
            _ => None,
        });
        if !outcomes.iter().all(Outcome::is_unread) {
            self.unanswered.clear();
        }
        self.last_results = outcomes;
        self.updated_at = now;
        self.pending = None;
        self.is_complete = self.summary.is_some() || self.run.is_some();
        if !self.is_complete {
            self.next_outbox();
        }
    }

    /// Stops the turn until the person decides.
    pub fn pause(&mut self, pending: Pending, now: Timestamp) {
        if !self.asked.contains(&pending.question.id) {
            self.asked.push(pending.question.id.clone());
        }
        self.pending = Some(Box::new(pending));
        self.updated_at = now;
    }

    /// Advances to an outbox that reports an undo or a redo with the person's `reason`, or completes the session again
    /// with the summary in `completes`. The next outbox repeats the messages of the newest, which may be unread.
    pub fn record_undo(
        &mut self,
        changed: TurnChanges,
        reason: Option<String>,
        completes: Option<String>,
        now: Timestamp,
    ) {
        self.unanswered.clear();
        self.read = None;
        self.last_results = Vec::new();
        self.changed = Some(Box::new(changed));
        self.updated_at = now;
        self.is_complete = completes.is_some();
        self.summary = completes;
        if self.is_complete {
            return;
        }
        self.to_repeat.splice(0..0, std::mem::take(&mut self.said));
        self.to_say.extend(reason);
        self.next_outbox();
    }

    /// Reopens a completed session with a message for the next outbox.
    pub fn reopen(&mut self, text: &str, now: Timestamp) {
        self.is_complete = false;
        self.unanswered.clear();
        // The work may continue in another chat.
        self.read = None;
        self.say(text, now);
        self.next_outbox();
    }

    fn next_outbox(&mut self) {
        self.sequence += 1;
        self.said = std::mem::take(&mut self.to_repeat);
        (self.said_before, self.added) = (self.said.len(), 0);
        self.said.append(&mut self.to_say);
    }

    /// Adds a message from the person to the next outbox.
    pub fn say(&mut self, text: &str, now: Timestamp) {
        self.to_say.push(text.to_owned());
        self.updated_at = now;
    }

    /// Adds a message from the person to the newest outbox, which is already written.
    pub fn add(&mut self, text: &str) {
        self.said.push(text.to_owned());
        self.added += 1;
    }

    /// The messages that were in the newest outbox when it was written.
    pub fn words_written(&self) -> &[String] {
        &self.said[..self.said.len().saturating_sub(self.added)]
    }

    /// The messages that were added to the newest outbox afterwards.
    pub fn words_added(&self) -> &[String] {
        &self.said[self.words_written().len()..]
    }

    /// The messages for the next outbox. Those that the model may have read already come first.
    pub fn words_to_say(&self) -> impl Iterator<Item = &String> {
        self.to_repeat.iter().chain(&self.to_say)
    }

    /// Whether there is a message from the person that the newest reply may not have read. Then the reply cannot
    /// complete the session.
    pub fn has_unread_words(&self) -> bool {
        self.words_to_say().next().is_some()
    }

    /// Prepares the messages for the next outbox after a reply: those that the answered text did not contain, and again
    /// those that it may not have contained. `answers` is the outbox that the reply answers.
    pub fn keep_unread_words(&mut self, answers: Option<&ReplyAddress>) {
        let answers = answers.filter(|it| it.session == self.id);
        self.read = Some(answers.map_or(self.sequence, |it| it.sequence));
        let from = match answers {
            Some(it) if it.sequence < self.sequence => 0,
            _ => self.words_written().len(),
        };
        let newest = answers.filter(|it| it.sequence == self.sequence);
        let read = newest.and_then(|it| self.words_read(it.sequence, it.key.as_deref()?));
        let unread = self.said.split_off(from + read.unwrap_or_default());
        match read {
            Some(_) => drop(self.to_say.splice(0..0, unread)),
            None => self.to_repeat.extend(unread),
        }
        self.unanswered.insert(self.sequence, self.added);
        self.added = 0;
    }

    /// The key of the newest outbox: eight hexadecimal digits that only readers of the outbox can know.
    pub fn key(&self) -> String {
        self.key_of(self.sequence, self.added)
    }

    /// The key of an outbox after `added` messages were added to it.
    pub fn key_of(&self, sequence: u32, added: usize) -> String {
        let mut words = format!("{}\n{}\n{sequence}", self.secret, self.id);
        if added > 0 {
            words.push_str(&format!("\n{added}"));
        }
        let key = blake3::derive_key("deaddrop reply key", words.as_bytes());
        blake3::Hash::from_bytes(key).to_hex()[..8].to_owned()
    }

    /// The number of messages added to this outbox; None if it can no longer be answered. It can be answered if it is
    /// the newest, or if no later reply could be read.
    pub fn words_added_to(&self, sequence: u32) -> Option<usize> {
        let earlier = || self.unanswered.get(&sequence).copied();
        if sequence == self.sequence { Some(self.added) } else { earlier() }
    }

    /// The number of added messages that the outbox contained when it had this key; None if it never had the key or can
    /// no longer be answered.
    pub fn words_read(&self, sequence: u32, key: &str) -> Option<usize> {
        let is_it = |added: &usize| key.eq_ignore_ascii_case(&self.key_of(sequence, *added));
        (0..=self.words_added_to(sequence)?).rev().find(is_it)
    }
}

#[cfg(test)]
mod tests;
