//! A reply on its way from a file to its steps: several ask something of it, and it is parsed once.

use std::cell::{Cell, OnceCell};
use std::path::Path;

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

    /// The same if the real path of the workspace is known: in tags, an absolute path that lies in it is used as the
    /// relative one.
    pub fn read_in(&mut self, dialect: Dialect, workspace: Option<&Path>) -> Reply {
        let names = |path: &&str| memmem::find(self.text.as_bytes(), path.as_bytes()).is_some();
        let workspace = workspace.and_then(Path::to_str).filter(names);
        let Some(workspace) = workspace else { return self.read(dialect) };
        // The blocks that were parsed before do not know it.
        PARSED.set(PARSED.get() + 1);
        read_blocks(&self.text, tags::blocks_in(&self.text, Some(workspace)), dialect, true)
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
    use crate::protocol::{Asks, Operation, ends_early, read};

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
    fn an_absolute_path_in_the_workspace_is_the_relative_one() {
        let rejected = |path: &str| (path.to_owned(), None);
        for (given, (expected, warnings)) in [
            ("/home/u/ws/src/a.py", ("src/a.py".to_owned(), Some(1))),
            ("/home/./u//ws/a.py", rejected("outside")),
            ("`/home/u/ws//./b.py`", ("b.py".to_owned(), Some(1))),
            ("/home/u/ws/a/../b.py", rejected("outside")),
            ("/home/u/ws2/a.py", rejected("outside")),
            ("/home/u/ws/../ws2/a.py", rejected("outside")),
            ("/home/u/a.py", rejected("outside")),
            ("/home/u/ws", rejected("names no file")),
        ] {
            let text = format!("[READ_FILE path=\"{given}\"]\n[READ_FILE path=\"a\"]\n");
            let workspace = Some(Path::new("/home/u/ws"));
            let step = Letter::new(text).read_in(Dialect::Tags, workspace).steps.remove(0);
            match (&step.asks, warnings) {
                (Asks::Operation(operation), Some(count)) => {
                    assert_eq!(operation.path().unwrap().as_str(), expected, "{given}");
                    assert_eq!(step.warnings.len(), count, "{given}");
                }
                (Asks::Invalid(invalid), None) => {
                    assert!(invalid.rejected && invalid.reason.contains(&expected), "{invalid:?}");
                }
                _ => panic!("{step:?}"),
            }
        }
        let list = "[LIST_FILES path=\"/home/u/ws/\"]\n".to_owned();
        let mut list = Letter::new(list);
        let steps = list.read_in(Dialect::Tags, Some(Path::new("/home/u/ws"))).steps;
        assert_eq!(steps[0].asks, Asks::Operation(Operation::List { path: None }));
    }

    #[test]
    fn what_names_no_session_is_not_parsed_for_its_address() {
        let before = parsed();
        assert_eq!(Letter::new("[DONE]\nx\n[/DONE]\n".to_owned()).answers(), None);
        assert_eq!(parsed(), before);
    }
}
