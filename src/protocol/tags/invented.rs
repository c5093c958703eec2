//! Results that a reply tells of itself, as an outbox does: what stands in them is no command, be it what a
//! file held that a command once showed.

use super::attributes::brief;
use super::marks::Mark;
use super::odd::tags_were;
use super::reader::Reader;
use crate::protocol::{Warning, WarningSort};

impl Reader<'_> {
    /// A line that tells a result, with what is shown below it.
    pub(super) fn result(&mut self, n: usize, mark: &Mark) {
        let (line, begin) = (self.number(mark.line), self.next_line(mark.at));
        let end = begin + below(&self.text[begin..], &self.text[mark.line..mark.at]);
        let tags = self.tags_within(n, end);
        let mut told = format!(
            "line {line} `{}` was ignored: results are written by the program that carries out the commands",
            brief(&self.text[mark.at..self.line_end(mark.at)])
        );
        if let Some(first) = tags.first() {
            let (at, were) = (self.number(first.line), tags_were(tags.len()));
            told.push_str(&format!(
                "; {were} ignored with it, from line {at} on, as what it shows"
            ));
        }
        self.pass(begin, end);
        self.note(Warning::new(WarningSort::InventedResult, told));
        tags.into_iter().for_each(|tag| self.passes_over(tag));
    }
}

/// How much of a text belongs to the result above it, before whose sign `lead` stands: lines that are
/// indented further, as an outbox shows output, and empty ones between them. A page may have taken the
/// indentation away: below `Output:` all belongs to it up to the first empty line.
fn below(text: &str, lead: &str) -> usize {
    let quotes = lead.bytes().filter(|byte| *byte == b'>').count();
    let own = depth(lead, quotes);
    let (mut end, mut at, mut is_flat) = (0, 0, true);
    let mut shows = false;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let inner = unquoted(line, quotes);
        if inner.trim().is_empty() {
            is_flat = false;
            continue;
        }
        let is_within = depth(line, quotes) >= own + 2;
        shows |= is_flat && !is_within && inner.trim_start().starts_with("Output:");
        if !(is_within || is_flat && shows) {
            break;
        }
        end = at;
    }
    end
}

/// How far a line is indented, in columns, behind so many signs of a quotation.
fn depth(line: &str, quotes: usize) -> usize {
    let inner = unquoted(line, quotes);
    let blanks = inner.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.map(|byte| if byte == b'\t' { 4 } else { 1 }).sum()
}

/// What stands behind so many signs of a quotation, each with a blank or none.
fn unquoted(line: &str, quotes: usize) -> &str {
    let mut inner = line;
    for _ in 0..quotes {
        let Some(rest) = inner.trim_start().strip_prefix('>') else { return inner };
        inner = rest.strip_prefix(' ').unwrap_or(rest);
    }
    inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_result_shows_is_indented_or_follows_its_output() {
        for (text, lead, belongs) in [
            ("  Output: x\n  [DONE]\n\n  y\nz\n", "", "  Output: x\n  [DONE]\n\n  y\n"),
            ("  a\n\n\n[DONE]\n", "", "  a\n"),
            ("[DONE]\n", "", ""),
            (" [DONE]\n", "", ""),
            ("  [DONE]\n", "  ", ""),
            ("    [DONE]\n  x\n", "  ", "    [DONE]\n"),
            ("\t[DONE]\n", "", "\t[DONE]\n"),
            (">   a\n> b\n", "> ", ">   a\n"),
            (">   a\n>\n>   b\nc\n", "> ", ">   a\n>\n>   b\n"),
            ("Output: x\n[DONE]\n\n[DONE]\n", "", "Output: x\n[DONE]\n"),
            ("Output:\n```\n[DONE]\n```\n\nx", "", "Output:\n```\n[DONE]\n```\n"),
            ("  Warning: w\nOutput: x\ny\n\nz", "", "  Warning: w\nOutput: x\ny\n"),
            ("\nOutput: x\n", "", ""),
            ("  Output: x\n[DONE]\n", "", "  Output: x\n"),
        ] {
            assert_eq!(&text[..below(text, lead)], belongs, "{text}");
        }
    }
}
