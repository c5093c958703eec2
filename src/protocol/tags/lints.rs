//! Lints that warn about something unusual in a body. The body is kept. In an ordinary body, a lint reads only the
//! first lines or searches for a few bytes. The words of chat pages are in `data/page.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::{memchr_iter, memchr2, memchr3_iter, memmem, memrchr};
use serde::Deserialize;

use super::body::Body;
use super::catalogue::COMMANDS;
use crate::protocol::content_checks::fence::fence_of;
use crate::protocol::content_checks::{FileKind, TablePattern};
use crate::protocol::mistake::brief;
use crate::protocol::{Kind, Warning, WarningKind};

#[derive(Deserialize)]
struct PageWords {
    buttons: Vec<String>,
    notices: Vec<String>,
    languages: Vec<String>,
    entities: Vec<String>,
    typography: String,
    text_after_tag: TablePattern,
    citation: TablePattern,
    strange: Vec<(char, char)>,
}

static PAGE: LazyLock<PageWords> =
    LazyLock::new(|| toml::from_str(include_str!("data/page.toml")).expect("a constant table"));

/// A lint: its code, and a function that returns a message if it applies.
type Lint = (WarningKind, fn(&Body) -> Option<String>);

/// Lints for every body.
const OF_ALL: [Lint; 2] =
    [(WarningKind::OwnClosingInBody, own_closing_tag), (WarningKind::CitationMark, citation)];

/// Lints for bodies that are written to a file or run as a command.
const OF_CODE: [Lint; 3] = [
    (WarningKind::StrangeCharacters, strange_characters),
    (WarningKind::PageFurniture, page_furniture),
    (WarningKind::EntitiesOnly, entities),
];

/// Runs all lints that apply to a body.
pub(super) fn run(body: &Body, warnings: &mut Vec<Warning>) {
    let is_said = matches!(body.kind, Kind::Message | Kind::Done);
    for (sort, lint) in OF_ALL.iter().chain(OF_CODE.iter().filter(|_| !is_said)) {
        warnings.extend(lint(body).map(|text| Warning::new(*sort, text)));
    }
}

impl Body {
    /// The number of the line that contains an offset.
    fn line_number_at(&self, at: usize) -> usize {
        self.line + memchr_iter(b'\n', &self.text.as_bytes()[..at]).count()
    }

    /// The line that contains an offset, trimmed and shortened for a message.
    fn quoted_line(&self, at: usize) -> String {
        let begin = memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1);
        brief(self.text[begin..].lines().next().unwrap_or_default().trim())
    }

    fn is_prose(&self) -> bool {
        !matches!(self.file_kind, FileKind::Code | FileKind::Patch)
    }
}

/// Returns the text after an opening tag if it is the beginning of the body, and a warning. If the body has more lines
/// below, punctuation or a sign of the chat page after the tag is not part of it.
pub(super) fn text_after_tag<'a>(
    kind: Kind,
    first: &'a str,
    lines: &str,
    number: usize,
) -> (&'a str, Option<Warning>) {
    if first.is_empty() || matches!(kind, Kind::Message | Kind::Done) {
        return (first, None);
    }
    let sign = first.trim();
    let is_ignored = !lines.trim().is_empty()
        && PAGE.text_after_tag.is_match(sign)
        // The sign may open a fence.
        && !(fence_of(sign).is_some() && lines.lines().any(|line| fence_of(line).is_some()));
    if is_ignored {
        let text = format!(
            "`{}` behind the tag on line {number} was ignored: send the tag alone on its line",
            brief(sign)
        );
        return ("", Some(Warning::new(WarningKind::TextAfterTag, text)));
    }
    let text = format!(
        "the body began on the line of its tag (line {number}): send the tag alone on its line"
    );
    (first, Some(Warning::new(WarningKind::BodyOnTagLine, text)))
}

/// Warns if each line of a body is indented as far as its tag, or by the width of the list marker before the tag.
pub(super) fn indented(body: &str, lead: &str, line: usize) -> Option<Warning> {
    let is_of_list = |c: char| c.is_ascii_digit() || " \t.)-+*•".contains(c);
    let is_item = !lead.trim().is_empty() && lead.chars().all(is_of_list);
    let blanks = if is_item { " ".repeat(lead.chars().count()) } else { lead.to_owned() };
    let mut lines = filled(body).peekable();
    let is_indented = !blanks.is_empty()
        && blanks.trim().is_empty()
        && lines.peek().is_some()
        && lines.all(|line| line.starts_with(&blanks));
    is_indented.then(|| {
        let text = format!(
            "each line of the body from line {line} on is indented as its tag is; it was kept as it is"
        );
        Warning::new(WarningKind::IndentedBody, text)
    })
}

fn filled(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

/// Whether a word is a button label of a chat page.
pub fn is_button(word: &str) -> bool {
    PAGE.buttons.iter().any(|button| button.eq_ignore_ascii_case(word))
}

/// Finds the block's own closing tag at the beginning or end of a line that contains other text, too.
fn own_closing_tag(body: &Body) -> Option<String> {
    if body.has_end || !body.rare.has_tag {
        return None;
    }
    let closing = COMMANDS.iter().find(|command| command.kind == body.kind)?.closing?;
    let text = &body.text;
    let is_at_edge = |at: &usize| {
        let before = text[..*at].trim_end_matches([' ', '\t']);
        let after = text[at + closing.len()..].trim_start_matches([' ', '\t', '\r']);
        before.is_empty() || before.ends_with('\n') || after.is_empty() || after.starts_with('\n')
    };
    // Check only a few, because each may be next to a long run of blanks.
    let mut found = memmem::find_iter(text.as_bytes(), closing).take(16);
    let at = found.find(is_at_edge)?;
    Some(format!(
        "line {} `{}` begins or ends with {closing}, which closes a block only if it is alone on its line; it was kept as a part of the body",
        body.line_number_at(at),
        body.quoted_line(at)
    ))
}

/// Finds a citation mark inserted by a chat: `【5:0†source】`, `:contentReference[oaicite:0]`.
fn citation(body: &Body) -> Option<String> {
    let found = body.rare.has_marks.then(|| PAGE.citation.find(&body.text)).flatten()?;
    let (line, shown) = (body.line_number_at(found.start()), brief(found.as_str()));
    Some(format!("line {line} contains a citation mark of the chat ({shown}); it was kept"))
}

/// Finds characters that a chat window may have inserted, and carriage returns within a line. Curly quotes and no-break
/// spaces in prose count as the author's own.
fn strange_characters(body: &Body) -> Option<String> {
    /// The most characters that are listed.
    const MOST: usize = 16;
    if !body.rare.has_strange {
        return None;
    }
    let is_own = |c: char| body.is_prose() && PAGE.typography.contains(c);
    let mut first: BTreeMap<char, usize> = BTreeMap::new();
    for (at, c) in strange(&body.text).filter(|(_, c)| !is_own(*c)) {
        first.entry(c).and_modify(|known| *known = at.min(*known)).or_insert(at);
    }
    let mut found: Vec<(usize, char)> = first.into_iter().map(|(c, at)| (at, c)).collect();
    found.sort_unstable();
    let line = body.line_number_at(found.first()?.0);
    let names = found.iter().take(MOST).map(|(_, c)| format!("U+{:04X}", u32::from(*c)));
    let names = names.collect::<Vec<_>>().join(", ");
    Some(format!(
        "the body contains {names} (first on line {line}), which a chat window may have inserted; it was kept as it is"
    ))
}

/// The unusual characters of a text with their offsets, in no particular order.
pub(super) fn strange(text: &str) -> impl Iterator<Item = (usize, char)> {
    let bytes = text.as_bytes();
    let wide = if text.is_ascii() { &[] } else { bytes };
    let character = |at: usize| Some((at, text[at..].chars().next()?));
    let is_strange = |(at, c): &(usize, char)| match c {
        // A carriage return counts only if it is within a line.
        '\r' => bytes.get(at + 1).is_some_and(|next| *next != b'\n'),
        c => {
            let before = PAGE.strange.partition_point(|(first, _)| first <= c);
            PAGE.strange[..before].last().is_some_and(|(_, last)| c <= last)
        }
    };
    // These are all bytes with which such a character can begin.
    let starts = memchr3_iter(8, 11, 27, bytes).chain(memchr_iter(b'\r', bytes));
    let wide = memchr3_iter(0xc2, 0xe2, 0xef, wide).chain(memchr3_iter(0xe1, 0xe3, 0xf3, wide));
    starts.chain(wide).filter_map(character).filter(is_strange)
}

/// Finds a button or label of the chat page in the first lines, or a notice in the first lines or in the last line.
fn page_furniture(body: &Body) -> Option<String> {
    let text = body.text.trim_end();
    let last = memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1);
    // A command may consist of only the name of a language.
    let may_be_label = !body.is_prose() && (body.kind != Kind::Run || last > 0);
    let is_label = |word: &str| {
        PAGE.languages.iter().any(|language| {
            let begin = word.get(..language.len());
            // On some pages a button follows the label directly, on the same line.
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(language))
                && (is_button(&word[language.len()..])
                    || may_be_label && word.len() == language.len())
        })
    };
    let is_notice = |word: &str| PAGE.notices.iter().any(|known| known.eq_ignore_ascii_case(word));
    // All labels begin with a letter and have at most this length.
    let is_short = |word: &str| {
        word.len() <= 32 && word.starts_with(|first: char| first.is_ascii_alphabetic())
    };
    let mut next = 0;
    let furniture = text.split('\n').take(3).find_map(|line| {
        let (at, word) = (next, line.trim());
        next += line.len() + 1;
        let is_one =
            is_short(word) && (is_button(word) || is_notice(word) || at == 0 && is_label(word));
        is_one.then_some(at)
    });
    let at = furniture.or_else(|| is_notice(text[last..].trim()).then_some(last))?;
    Some(format!(
        "line {} `{}` looks like a label or a button of the chat page; it was kept",
        body.line_number_at(at),
        body.quoted_line(at)
    ))
}

/// Warns if all characters that HTML escapes are written as entities.
fn entities(body: &Body) -> Option<String> {
    let text = body.text.as_str();
    let is_entity = |at: usize| PAGE.entities.iter().any(|known| text[at..].starts_with(known));
    let mut signs = memchr_iter(b'&', text.as_bytes()).peekable();
    signs.peek()?;
    let are_all = signs.all(is_entity)
        && memchr2(b'<', b'>', text.as_bytes()).is_none()
        && !(text.contains("&quot;") && text.contains('"'));
    are_all.then(|| {
        format!(
            "the body from line {} on contains HTML entities (such as &lt;) and none of the characters themselves; it was kept as it is",
            body.line
        )
    })
}
