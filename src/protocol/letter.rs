//! A reply on its way from a file to its steps: several ask something of it, and it is parsed once.

use std::cell::{Cell, OnceCell};

use memchr::memmem;

use super::reply::{ends_within, read_blocks};
use super::tags::{self, Blocks};
use super::{Address, Dialect, Reply};

thread_local! {
    static PARSED: Cell<usize> = const { Cell::new(0) };
}

/// How often a [`Letter`] was parsed by this thread: each looks at every byte of a reply.
pub fn parsed() -> usize {
    PARSED.get()
}

/// The text of a reply. It is parsed when that is first needed.
#[derive(Debug, Clone)]
pub struct Letter {
    text: String,
    blocks: OnceCell<Box<Blocks>>,
}

impl Letter {
    /// A reply of this text.
    pub fn new(text: String) -> Self {
        Self { text, blocks: OnceCell::new() }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its text alone.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Which outbox it says it answers, as [`Letter::read`] gives it.
    pub fn answers(&self) -> Option<&Address> {
        // Without the attribute's name no line says so, and it need not be parsed for that.
        let holds = |word: &[u8]| memmem::find(self.text.as_bytes(), word).is_some();
        if holds(b"session") || holds(b"SESSION") { self.blocks().answers.as_ref() } else { None }
    }

    /// Whether it may not be complete yet, see [`ends_early`](super::ends_early).
    pub fn ends_early(&self) -> bool {
        ends_within(&self.text, self.blocks())
    }

    /// Reads it, as [`read`](super::read) does. What was parsed is used up: it is read once.
    pub fn read(&mut self, dialect: Dialect) -> Reply {
        self.blocks();
        let blocks = self.blocks.take().map_or_else(|| tags::blocks(&self.text), |parsed| *parsed);
        read_blocks(&self.text, blocks, dialect, true)
    }

    fn blocks(&self) -> &Blocks {
        self.blocks.get_or_init(|| {
            PARSED.set(PARSED.get() + 1);
            Box::new(tags::blocks(&self.text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ends_early, read};

    #[test]
    fn whatever_is_asked_of_a_letter_it_is_parsed_once() {
        for text in [
            "[REPLY session=\"a1b2c3d4\" sequence=\"3\" key=\"k\"]\n[RUN_COMMAND]\nls\n[/RUN_COMMAND]\n",
            "[REPLY session=\"a1b2c3d4\" sequence=\"3\"]\n[RUN_COMMAND]\nls\n",
            "{\"protocolVersion\": \"1.0\", \"operations\": [{\"type\": \"shell\", \"command\": \"ls\"}]}",
            "",
        ] {
            for dialect in [Dialect::Tags, Dialect::Operations] {
                let (before, mut letter) = (parsed(), Letter::new(text.to_owned()));
                assert_eq!(letter.ends_early(), ends_early(text), "{text}");
                let answers = letter.answers().cloned();
                let reply = letter.read(dialect);
                assert_eq!(parsed() - before, 1, "{text}");
                assert_eq!(reply, read(text, dialect));
                assert_eq!(answers, reply.answers);
                assert_eq!(letter.into_text(), text);
            }
        }
    }

    #[test]
    fn what_names_no_session_is_not_parsed_for_its_address() {
        let before = parsed();
        assert_eq!(Letter::new("[DONE]\nx\n[/DONE]\n".to_owned()).answers(), None);
        assert_eq!(parsed(), before);
    }
}
