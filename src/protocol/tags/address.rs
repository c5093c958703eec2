//! The line of a reply that says which outbox it answers: `[REPLY session="…" sequence="N" key="…"]`.

use memchr::{memchr, memrchr};

use super::attributes::{self, Opening, brief};
use super::lead::lead;
use super::marks::{Mark, What};
use super::names::name;
use super::reader::Reader;
use super::tails::end_of_tag;
use crate::protocol::{Address, Asks, Mistake, Step, Warning, WarningSort};

impl Reader<'_> {
    /// Takes the line that mark `n` is; `tag` is None where it cannot be read, `after` what stands
    /// behind it: a tag there is taken as one on a line of its own.
    pub(super) fn addressed(
        &mut self,
        n: usize,
        number: usize,
        tag: Option<Opening<'_>>,
        after: &str,
    ) {
        let (mark, end) = (&self.marks[n], self.line_end(self.marks[n].at));
        if tag.is_none() && self.is_cut(mark, number) {
            return;
        }
        let line = self.line_at(mark.line);
        let mut behind = self.marks[n + 1..].iter().take_while(|next| next.line < end);
        let has_tag = behind.any(|next| matches!(next.what, What::Opening | What::Misspelt));
        let after = after.strip_prefix("[/REPLY]").unwrap_or(after).trim();
        // Behind a command a decorated one with words behind it is of a sentence.
        let is_read = mark.is_plain()
            || has_tag
            || after.chars().all(decorates)
            || mark.quote == 0 && self.first_command().is_none();
        let rest = &self.text[mark.name_end..end];
        let names_one = attributes::pairs(rest).0.iter().any(|(key, _)| is_session(key));
        let is_whole = mark.alone || !rest.contains(']');
        let given = tag.and_then(|tag| address(&tag.values));
        // Where it is quoted or behind a label, a tag behind it may have been meant.
        let passed = (!has_tag).then(|| self.tag_behind(mark.name_end, end)).flatten();
        passed.iter().for_each(|mark| self.passes_over(mark));
        if given.is_some() && !is_read {
            let told = format!(
                "line {number} `{}` was read as words: the line that says which message a reply answers has no words behind it",
                brief(line)
            );
            return self.note(Warning::new(WarningSort::ReadAsWords, told));
        }
        let Some(found) = given else {
            if names_one && is_whole && mark.quote == 0 && self.blocks.answers.is_none() {
                let told = format!(
                    "Nothing was carried out: line {number} `{}` cannot be read, so which message the reply answers is not known. Put that line first, as the newest message gives it, on one line and with nothing around it: [REPLY session=\"a1b2c3d4\" sequence=\"1\" key=\"…\"]; send the whole reply again",
                    brief(line)
                );
                let step = Step::refused(number, Mistake::ReplyLineUnreadable, told);
                return self.refuse_all(step, mark.line);
            }
            // Decorated it is a word, or a button of a page.
            if mark.is_plain() {
                let told = format!(
                    "line {number} `{}` could not be read and was ignored; the form is [REPLY session=\"a1b2c3d4\" sequence=\"1\"], as the newest message gives it",
                    brief(line)
                );
                self.note(Warning::new(WarningSort::ReplyLineUnreadable, told));
            }
            return;
        };
        if let Some(before) = self.first_command() {
            if self.blocks.answers.as_ref() == Some(&found) && mark.quote == 0 {
                return self.said_again(mark, number);
            }
            // It may be an old one that is quoted.
            if self.blocks.answers.is_some() && mark.quote > 0 {
                let told = format!(
                    "line {number} `{}` was read as words: which message a reply answers is told before its first command",
                    brief(line)
                );
                self.note(Warning::new(WarningSort::ReplyLineLate, told));
                // So are the words behind it.
                self.at = self.next_line(mark.at);
                return;
            }
            if self.blocks.answers.is_none() {
                let (first, origin) = (self.blocks.steps[before].line, self.origins[before]);
                let tag = brief(self.line_at(origin));
                let told = format!(
                    "Nothing was carried out: line {number} `{}` stands behind a command, `{tag}` on line {first}, which may be an example. Put the [REPLY …] line first, before all commands, and no example before it; send the whole reply again",
                    brief(line)
                );
                let step = Step::refused(number, Mistake::ReplyLineLate, told);
                self.refuse_all(step, mark.line);
                // Where it is for another message, it is held all the same.
                self.blocks.answers = Some(found);
                return;
            }
        }
        if !after.is_empty() {
            let shown = brief(after);
            let (sort, told) = if has_tag {
                let told = format!(
                    "line {number}: `{shown}` behind the [REPLY …] line was read as a line of its own"
                );
                (WarningSort::TagRepaired, told)
            } else if passed.is_some() {
                let told = format!(
                    "line {number}: `{shown}` was read as words: a command begins its line with its tag, with nothing before it"
                );
                (WarningSort::ReadAsWords, told)
            } else {
                let told = format!("`{shown}` after the tag on line {number} was ignored");
                (WarningSort::TextAfterTag, told)
            };
            self.note(Warning::new(sort, told));
        }
        match &self.blocks.answers {
            Some(other) if *other != found => {
                let told = format!(
                    "Nothing was carried out: line {number} `{}` and a line before it say that the reply answers two different messages. Send one reply to the newest message, with the [REPLY …] line that it gives",
                    brief(line)
                );
                let step = Step::refused(number, Mistake::ReplyLinesDiffer, told);
                self.refuse_all(step, mark.line);
            }
            _ => self.blocks.answers = Some(found),
        }
    }

    /// The tag that opens a command right behind the one whose name ends at `from`, on the line that ends
    /// at `end`.
    fn tag_behind(&self, from: usize, end: usize) -> Option<Mark> {
        let behind = from + end_of_tag(&self.text[from..end])?;
        let at = behind + memchr(b'[', &self.text.as_bytes()[behind..end])?;
        if !self.text[behind..at].chars().all(decorates) {
            return None;
        }
        let name = name(&self.text[at + 1..end]).filter(|name| !name.is_closing)?;
        let mut mark = Mark::of(What::Opening, at, at, at + 1 + name.length);
        mark.set_command(name.command);
        Some(mark)
    }

    /// Which step is the first that is not a refusal of thoughts before it.
    pub(super) fn first_command(&self) -> Option<usize> {
        self.blocks.steps.iter().position(|step| !is_of_thoughts(step))
    }
}

/// Whether a step refuses thoughts whose beginning is missing.
pub(super) fn is_of_thoughts(step: &Step) -> bool {
    matches!(&step.asks, Asks::Invalid(invalid) if invalid.sort == Mistake::ThoughtsUnopened)
}

/// Whether a text ends with such a line, as one of protocol 1.1 that other tags may stand behind.
pub(super) fn ends_with_line(text: &str) -> bool {
    /// No such line is longer, in bytes; bounds the work where many tags stand on one line.
    const LONGEST: usize = 300;
    let from = text.len().saturating_sub(LONGEST);
    let begin = match memrchr(b'\n', &text.as_bytes()[from..]) {
        Some(at) => from + at + 1,
        None if from == 0 => 0,
        None => return false,
    };
    let line = &text[begin..];
    let tag = line.strip_suffix("[/REPLY]").unwrap_or(line).trim_end();
    let parts = tag.strip_suffix(']').and_then(|tag| tag.split_once("[REPLY"));
    let Some((before, inner)) = parts else { return false };
    // Quoted or in a sentence it says nothing of a tag behind it.
    let is_first = lead(text, begin + before.len()).is_some_and(|lead| lead.quote == 0);
    is_first && inner.starts_with(char::is_whitespace) && !inner.contains(']')
}

/// Whether an attribute says which session a reply belongs to.
fn is_session(key: &str) -> bool {
    key.eq_ignore_ascii_case("session")
}

/// Whether a sign behind the tag says nothing.
fn decorates(c: char) -> bool {
    c.is_whitespace() || "*_`~:;,.-–—".contains(c)
}

fn address(values: &[Option<String>]) -> Option<Address> {
    let [session, sequence, key] = values else { return None };
    let session = session.as_deref()?.trim().to_ascii_lowercase();
    let sequence = sequence.as_deref()?.trim().parse().ok()?;
    let key = key.as_deref().map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
    (!session.is_empty() && sequence > 0).then_some(Address { session, sequence, key })
}

#[cfg(test)]
mod tests {
    use crate::protocol::tags::parse;
    use crate::protocol::{Asks, Kind, Mistake};

    #[test]
    fn the_line_is_read_before_the_first_command() {
        let run = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
        let line = "[REPLY session=\"a1b2c3d4\" sequence=\"3\" key=\"k\"]\n";
        for text in [format!("{line}{run}"), format!("Hello.\n{line}{line}{run}{line}")] {
            let reply = parse(&text);
            let answers = reply.answers.unwrap();
            assert_eq!((answers.session.as_str(), answers.sequence), ("a1b2c3d4", 3));
            assert_eq!(answers.key.as_deref(), Some("k"));
            assert_eq!(reply.steps.len(), 1);
            assert_eq!(reply.steps[0].kind(), Kind::Run);
            // The line again at the end is told of.
            assert_eq!(reply.steps[0].warnings.is_empty(), text.ends_with(run));
        }
        let within = format!("[MESSAGE]\n{line}[/MESSAGE]\n");
        assert_eq!(parse(&within).answers, None);
    }

    #[test]
    fn two_that_differ_refuse_the_reply_and_what_is_no_such_line_is_ignored() {
        let run = "[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n";
        let of = |n: u32| format!("[REPLY session=\"a1b2c3d4\" sequence=\"{n}\"]\n");
        let reply = parse(&format!("{}Or:\n{}{run}", of(1), of(2)));
        assert_eq!(reply.steps.len(), 1);
        let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
        assert!(invalid.reason.contains("two different messages"), "{}", invalid.reason);

        // Behind a command it refuses the reply, too: what stands before may be an example.
        for (before, answered, sort) in [
            (of(1), None, Mistake::ReplyLinesDiffer),
            (String::new(), Some(2), Mistake::ReplyLineLate),
        ] {
            let reply = parse(&format!("{before}{run}As I said:\n{}{run}", of(2)));
            assert_eq!(reply.answers.map(|answers| answers.sequence), answered);
            assert_eq!(reply.steps.len(), 1);
            let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!() };
            assert_eq!(invalid.sort, sort);
        }
        // Quoted behind the right one it is words: perhaps of an old reply.
        let reply = parse(&format!("{}{run}As I said:\n> {}{run}", of(1), of(2)));
        assert_eq!(reply.answers.map(|answers| answers.sequence), Some(1));
        assert_eq!(reply.steps.len(), 2);
        let told = &reply.steps[0].warnings[0];
        assert!(told.contains("was read as words: which message"), "{told:?}");

        for (button, warnings) in
            [("[Reply]\n", 0), ("[reply all]\n", 0), ("[REPLY sequence=\"x\"]\n", 1)]
        {
            let reply = parse(&format!("{button}{run}"));
            assert_eq!((reply.steps.len(), reply.answers), (1, None), "{button}");
            assert_eq!(reply.steps[0].warnings.len(), warnings, "{button}");
        }
    }
}
