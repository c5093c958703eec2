//! Opening tags that did not count as such: of what opened a block before a closing tag that is left over.

use memchr::{memmem, memrchr};

use super::attributes::brief;
use super::marks::Mark;
use super::reader::Reader;

impl Reader<'_> {
    /// That the last line before a closing tag that holds its opening tag does not begin with it, as a
    /// sentence with a blank before it; empty where none does.
    pub(super) fn opened_before(&mut self, mark: &Mark) -> String {
        let slot = &mut self.sought[mark.which()];
        // What stands in the body of another block is none.
        let from = self.blocks.bodies.last().map_or(0, |body| body.end).max(slot.0);
        let tag = format!("[{}", mark.command().name);
        if let Some(region) = self.text.get(from..mark.line) {
            let ends = |at: &usize| {
                let after = region.as_bytes().get(at + tag.len());
                after.is_some_and(|byte| *byte == b']' || byte.is_ascii_whitespace())
            };
            let found = memmem::find_iter(region.as_bytes(), tag.as_bytes()).filter(ends).last();
            *slot = (mark.line, found.map(|at| from + at));
        }
        let Some(at) = slot.1 else { return String::new() };
        let begin = memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1);
        let (line, shown) = (self.number(begin), brief(self.line_at(begin)));
        format!(" `{shown}` on line {line} does not open it, since the tag is to begin its line.")
    }
}
