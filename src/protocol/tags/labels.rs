//! Whole tags behind something that is no decoration but seems to be meant as one: a label, a cell of
//! a table, a quotation mark, an element of a page.

use std::cell::OnceCell;
use std::collections::HashSet;

use memchr::memrchr;

use super::attributes::{self, brief};
use super::lead::lead as lead_of;
use super::marks::{Mark, What};
use super::names;
use super::pairs;
use super::paths;
use super::prose::Found;
use super::reader::Reader;
use super::repairs::Repairs;
use super::tails::end_of_tag;
use crate::protocol::{Asks, Kind, Operation, RelPath, Step, Warning, WarningSort};

/// No label is longer, in bytes; bounds the work where many tags stand on one line.
const LONGEST: usize = 100;
/// Nor is one that is neither bold nor an item of a list or a table.
const PLAIN: usize = 64;

impl Reader<'_> {
    /// Tells of a line that looks like one with a tag.
    pub(super) fn seems(&mut self, n: usize, mark: &Mark) {
        let (number, shown) = (self.number(mark.line), brief(self.line_at(mark.line)));
        if mark.command().kind == Kind::Reply {
            let rest = &self.text[mark.name_end..self.line_end(mark.at)];
            let tag = attributes::read(mark.command(), rest, &mut Repairs::default()).ok();
            let after = tag.as_ref().map_or("", |tag| tag.after);
            let after = if is_closed(after) { "" } else { after.trim() };
            return self.addressed(n, number, tag, after);
        }
        self.passes_over(mark);
        let told = format!(
            "line {number} `{shown}` was read as words: a command begins its line with its tag, with nothing before it"
        );
        self.note(Warning::new(WarningSort::ReadAsWords, told));
    }

    /// Tells of a pair that stands in no block, and passes over the tags in its texts, where it is whole.
    pub(super) fn pair(&mut self, n: usize, mark: &Mark) {
        let (number, shown) = (self.number(mark.line), brief(self.line_at(mark.line)));
        let told = format!(
            "line {number} `{shown}` was read as words: a pair stands in a block, with [EDIT_FILE path=\"relative/path\"] alone on the line above it and [/EDIT_FILE] below"
        );
        self.note(Warning::new(WarningSort::ReadAsWords, told));
        self.passed_over.pairs = true;
        let marks = self.marks;
        let behind = &marks[n + 1..];
        let limit = behind.iter().find(|next| next.what == What::Pair);
        let limit = limit.map_or(self.text.len(), |next| next.line);
        let Some(length) = pairs::ends(&self.text[mark.line..limit]) else { return };
        let end = mark.line + length;
        self.at = end;
        let within = behind.iter().take_while(|tag| tag.at < end);
        within.filter(|tag| tag.what == What::Opening).for_each(|tag| self.passes_over(tag));
    }

    /// Whether a tag stands in the reply that is not quoted, be it in thoughts.
    pub(super) fn has_unquoted(&self) -> bool {
        let is_command = |mark: &Mark| {
            mark.what == What::Opening && mark.alone && mark.command().kind != Kind::Reply
        };
        let is_plain = |mark: &Mark| is_command(mark) && mark.quote == 0;
        *self.passed_over.has_unquoted.get_or_init(|| self.marks.iter().any(is_plain))
    }

    /// Passes over a line that is no tag, and tells of it where it could be meant as one.
    pub(super) fn words(&mut self, mark: &Mark, number: usize, line: &str, found: &Found<'_>) {
        let needs_more = mark.command().attributes.iter().any(|known| known.required);
        if mark.alone || !found.is_broken && needs_more {
            let shown = brief(line.trim());
            let told = format!(
                "line {number} `{shown}` was read as words: a command stands alone on its line, with nothing around its tag"
            );
            self.note(Warning::new(WarningSort::ReadAsWords, told));
            self.passes_over(mark);
        }
    }

    /// Notes that a whole tag was read as words: if it was meant, not all is done. A label over a summary
    /// or a message does nothing.
    pub(super) fn passes_over(&mut self, mark: &Mark) {
        let kind = mark.command().kind;
        if matches!(kind, Kind::Done | Kind::Message) {
            return;
        }
        let (found, _) = attributes::pairs(&self.text[mark.name_end..self.line_end(mark.at)]);
        let given = found.iter().find(|(key, _)| key.eq_ignore_ascii_case("path"));
        // A search says more than where.
        let given = given.filter(|_| kind != Kind::Search);
        match given.and_then(|(_, path)| paths::read(path, &mut Vec::new()).ok()) {
            Some(path) => self.passed_over.on_paths.push((kind, path)),
            None => self.passed_over.others = true,
        }
    }

    /// Where a whole tag was read as words, what ends the session only if all is well does not end it:
    /// unless the same command on the same path is asked for as well, as behind a list of what is done.
    pub(super) fn hold_the_end(&mut self) {
        let steps = &mut self.blocks.steps;
        let Passed { others, on_paths, pairs, .. } = &self.passed_over;
        let edits = |step: &Step| step.kind() == Kind::Edit;
        // Else it may be shown beside the block that holds it.
        let is_held = *others
            || *pairs && !steps.iter().any(edits)
            || !on_paths.is_empty() && {
                let asked: HashSet<(Kind, &RelPath)> = steps.iter().filter_map(asks_on).collect();
                on_paths.iter().any(|(kind, path)| !asked.contains(&(*kind, path)))
            };
        let ends_if_ok = |step: &&mut Step| {
            matches!(step.asks, Asks::Operation(Operation::Done { if_ok: true, .. }))
        };
        let steps = steps.iter_mut().filter(ends_if_ok);
        steps.for_each(|step| step.passes_over = is_held);
    }
}

/// The whole tags that were read as words.
#[derive(Default)]
pub(super) struct Passed {
    /// Whether there are any whose path is not known.
    others: bool,
    /// The commands and the paths of the others.
    on_paths: Vec<(Kind, RelPath)>,
    /// Whether there was a pair of SEARCH and REPLACE in no block.
    pairs: bool,
    /// Whether there is a tag that is not quoted, once that was asked.
    has_unquoted: OnceCell<bool>,
}

/// What a step asks for, and the path that it names.
fn asks_on(step: &Step) -> Option<(Kind, &RelPath)> {
    match &step.asks {
        Asks::Operation(operation) => Some((operation.kind(), operation.path()?)),
        Asks::Invalid(_) => None,
    }
}

/// A whole tag behind few signs that are no decoration but seem to be meant as one: `→ [READ_FILE
/// path="a"]`, `Step 1: [DONE]`, `- [ ] [DELETE_FILE path="a"]`, `| [DELETE_FILE path="a"] |`.
pub(super) fn seems(text: &str, at: usize, end: usize) -> Option<Mark> {
    let name = names::name(&text[at + 1..])?;
    if name.is_closing || name.is_misspelt || name.is_far || !name.is_upper {
        return None;
    }
    let line = begins(text, at)?;
    let lead = &text[line..at];
    let kind = meaning(lead)?;
    let name_end = at + 1 + name.length;
    let rest = &text[name_end..end];
    let (tag, after) = rest.split_at(end_of_tag(rest)?);
    // In quotes a word in brackets is of a sentence, or what a program writes.
    let is_bare = kind == Meaning::Label
        && !lead.trim_end().ends_with(['"', '\'', '`', '('])
        && tag.trim_matches(['\\', ' ']) == "]";
    let is_tag = tag.contains('=') || is_bare;
    let mut mark = Mark::of(What::Seems, line, at, name_end);
    mark.repairs.add(Repairs::EMPHASIS);
    mark.set_command(name.command);
    let is_alone = is_closed(after)
        || mark.command().kind == Kind::Reply
        || kind == Meaning::Cell && after.trim_start_matches(closes).starts_with('|');
    (is_tag && is_alone && lead_of(text, at).is_none()).then_some(mark)
}

/// Where the line begins that holds an offset, if that is not far.
fn begins(text: &str, at: usize) -> Option<usize> {
    let before = &text.as_bytes()[at.saturating_sub(LONGEST + 1)..at];
    let line = memrchr(b'\n', before).map(|n| at - before.len() + n + 1);
    line.or_else(|| (at <= LONGEST).then_some(0))
}

/// What stands before a tag that seems to be meant as one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// A label, a number, a sign.
    Label,
    /// What encloses the tag, and nothing else.
    Around,
    /// The cells of a table before it.
    Cell,
}

/// What it is, if it seems to lead to the tag.
fn meaning(lead: &str) -> Option<Meaning> {
    let given = lead.trim();
    let rest = without_opening(given);
    let has_letter = rest.contains(char::is_alphabetic);
    let is_opened = rest.len() < given.len();
    let label = |is_one: bool| is_one.then_some(Meaning::Label);
    let Some(last) = rest.chars().next_back() else {
        return is_opened.then_some(Meaning::Around);
    };
    if rest.starts_with('|') && last == '|' {
        return Some(Meaning::Cell);
    }
    let is_item = given.starts_with(|c: char| c.is_ascii_digit() || "*-+•_#>".contains(c));
    if !is_item && rest.len() > PLAIN {
        return None;
    }
    let is_box = ["[ ]", "[x]", "[X]"].iter().any(|sign| rest.ends_with(sign));
    if !has_letter {
        let is_sign = !",;\\.".contains(last)
            || given.starts_with(|c: char| c.is_ascii_digit())
            || rest.trim_start_matches(opens).starts_with(|c: char| c.is_ascii_digit());
        return label(is_sign);
    }
    let is_arrow = ["→", "⇒", "➜", "➡", "->", "=>"].iter().any(|sign| rest.ends_with(sign));
    let is_dash = is_item && ["–", "—", " -"].iter().any(|sign| rest.ends_with(sign));
    // Before a code span only a short label is one, and no sentence that shows a tag.
    let is_said = !is_item
        && given.ends_with('`')
        && (rest.split_whitespace().nth(3).is_some() || rest.starts_with(char::is_lowercase));
    if last == ':' && !is_said || is_box || is_arrow || is_dash {
        return Some(Meaning::Label);
    }
    let words =
        rest.trim_start_matches(|c: char| c.is_whitespace() || opens(c) || "-+•#>".contains(c));
    // `a)`, `iv.`
    let sign = words.strip_suffix([')', '.']).unwrap_or_default();
    let is_roman = sign.bytes().all(|c| b"ivxIVX".contains(&c));
    let is_letter = sign.len() == 1 && sign.as_bytes()[0].is_ascii_alphabetic();
    if is_letter || !sign.is_empty() && sign.len() <= 5 && is_roman {
        return Some(Meaning::Label);
    }
    let is_word = !words.contains(|c: char| !c.is_ascii_alphanumeric() && c != '+' && c != '#');
    let is_fence = given.starts_with("```") || given.starts_with("~~~");
    let is_glued = !lead.ends_with(char::is_whitespace) && words == given && words.len() <= 12;
    // The language of a code block, as a page shows it.
    if is_word && (is_fence || is_glued) {
        return Some(Meaning::Around);
    }
    // A heading in bold in the line of its text.
    let item = given.trim_start_matches(|c: char| c.is_ascii_digit() || " .)-+•".contains(c));
    let item = item.strip_prefix("* ").unwrap_or(item).trim_start();
    label(["**", "__"].iter().any(|sign| {
        let inner = item.strip_prefix(sign).and_then(|inner| inner.split_once(sign));
        inner.is_some_and(|(_, behind)| !behind.contains(char::is_alphanumeric))
    }))
}

/// Whether a sign before a tag opens something around it.
fn opens(c: char) -> bool {
    "*_`~\"'“‘«‹($\\".contains(c)
}

/// Whether a sign behind a tag closes something around it, or ends its sentence.
fn closes(c: char) -> bool {
    c.is_whitespace() || "*_`~\"'”’»›)$\\.,;".contains(c)
}

/// What stands before what encloses the tag.
fn without_opening(lead: &str) -> &str {
    let mut rest = lead;
    loop {
        let shorter = rest.trim_end().trim_end_matches(opens).trim_end();
        let element = shorter.strip_suffix('>').and_then(|inner| inner.rfind('<'));
        let is_name = |c: char| c.is_ascii_alphabetic();
        let element = element.filter(|at| shorter[at + 1..].starts_with(is_name));
        let shorter = element.map_or(shorter, |at| &shorter[..at]);
        if shorter.len() == rest.len() {
            return rest;
        }
        rest = shorter;
    }
}

/// Whether nothing stands there but what closes something around a tag.
fn is_closed(after: &str) -> bool {
    let mut rest = after;
    loop {
        rest = rest.trim_start_matches(|c| closes(c) || c == '|');
        let Some((_, behind)) = rest.strip_prefix("</").and_then(|inner| inner.split_once('>'))
        else {
            return rest.is_empty();
        };
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lead_to_a_tag_and_sentences_do_not() {
        for lead in [
            "Step 1: ",
            "**1.** ",
            "**1)** ",
            "a) ",
            "(b) ",
            "iv. ",
            "1. **Remove the old file:** ",
            "- **Delete:** `",
            "| ",
            "| 1 | ",
            "<code>",
            "<p>",
            "(",
            "\"",
            "$",
            "Remove: `",
            "Remove: **",
            "```text ",
            "python",
            "Then → ",
            "**Delete** ",
            "👉 ",
            "- [ ] ",
            "- Remove it – ",
        ] {
            assert!(meaning(lead).is_some(), "{lead}");
        }
        for lead in [
            "Now remove it with ",
            "the tag `",
            "see (",
            "It says \"",
            "a, ",
            "the form is: `",
            "The form of it is: `",
            "Done. ",
            "x; ",
            "as in ",
            "**Use** the tag ",
            "- the tag `",
            "cost: 5 $",
            "...",
            "f(x)",
        ] {
            assert!(meaning(lead).is_none(), "{lead}");
        }
    }
}
