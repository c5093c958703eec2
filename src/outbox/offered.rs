//! `## Workspace File Contents`: what the first outbox shows unasked, so that a small workspace need
//! not be asked for. Whole files only.

use std::rc::Rc;

use super::contents::Block;
use super::screening::Texts;
use super::{Shown, tokens_of};
use crate::protocol::Dialect;
use crate::session::Session;
use crate::text::count;
use crate::workspace::Contents;

/// Files that the first outbox may show, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Texts, the most wanted first.
    pub files: Vec<Contents>,
    /// How many of them, the first, the person named: these may take all the room there is.
    pub included: usize,
    /// How many files were looked at and are no text.
    pub not_text: usize,
    /// How many files the workspace lists that hold something.
    pub listed: usize,
    /// How many it lists beside them that are empty.
    pub empty: usize,
}

/// Which of them are shown.
#[derive(Clone)]
pub(super) struct Offer<'a> {
    session: &'a Session,
    offered: &'a Offered,
    /// Each with its text.
    blocks: Rc<[(Block<'a>, String)]>,
    /// Whether each is shown.
    shows: Vec<bool>,
}

impl<'a> Offer<'a> {
    pub(super) fn of(session: &'a Session, offered: &'a Offered, texts: &Texts) -> Self {
        let block = |contents: &'a Contents| {
            let block = Block::of(session, contents, texts);
            let text = block.render(session);
            (block, text)
        };
        let blocks = offered.files.iter().map(block).collect();
        Self { session, offered, blocks, shows: vec![true; offered.files.len()] }
    }

    /// Keeps what fits: of the files that the person named into `room` tokens, of all others into
    /// half of what is left then. What does not fit makes room for the next.
    pub(super) fn within(&mut self, room: usize, count: impl Fn(&str) -> usize) {
        // The heading, and the line below it.
        let mut left = room.saturating_sub(40);
        for (n, ((_, text), is_shown)) in self.blocks.iter().zip(&mut self.shows).enumerate() {
            if n == self.offered.included {
                left /= 2;
            }
            let less = left.checked_sub(tokens_of(text, left, &count));
            *is_shown = less.is_some();
            left = less.unwrap_or(left);
        }
    }

    fn chosen(&self) -> impl Iterator<Item = (&Block<'a>, &str)> {
        let both = self.blocks.iter().zip(&self.shows);
        both.filter(|(_, is_shown)| **is_shown).map(|((block, text), _)| (block, text.as_str()))
    }

    /// What the LLM has seen.
    pub(super) fn shown(&self) -> impl Iterator<Item = Shown> {
        self.chosen().map(|(block, _)| block.shown())
    }

    /// The section; nothing where no file is shown.
    pub(super) fn render(&self) -> String {
        let shown = self.chosen().count();
        if shown == 0 {
            return String::new();
        }
        let Offered { listed, not_text, .. } = *self.offered;
        let read = match self.session.dialect {
            Dialect::Tags => "READ_FILE",
            Dialect::Operations => "readFile",
        };
        let but = match self.offered.empty {
            0 => "",
            _ if shown == 1 => " that holds something",
            _ => " that hold something",
        };
        let told = if shown + not_text == listed {
            match shown {
                1 => format!("The only text file{but}, whole."),
                n => format!("All {n} text files{but}, whole."),
            }
        } else {
            format!(
                "{shown} of {} that hold something, whole; {read} shows others.",
                count(listed, "file")
            )
        };
        let mut out = format!("\n## Workspace File Contents\n{told}\n");
        self.chosen().for_each(|(_, text)| out.push_str(text));
        out
    }
}
