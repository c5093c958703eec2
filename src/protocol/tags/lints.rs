//! What is odd in a body, and is kept all the same: a list of lints. The words of chat pages are in
//! `data/page.toml`.

use std::sync::LazyLock;

use memchr::{memchr_iter, memchr2, memmem};
use serde::Deserialize;

use super::body::Body;
use super::catalogue::COMMANDS;
use super::range::is_number;
use crate::protocol::content_checks::FileKind;
use crate::protocol::content_checks::fence::fence_of;
use crate::protocol::mistake::brief;
use crate::protocol::{Kind, Warning, WarningSort};

#[derive(Deserialize)]
struct Page {
    buttons: Vec<String>,
    notices: Vec<String>,
    languages: Vec<String>,
    signs: Vec<String>,
    entities: Vec<String>,
    citations: Vec<(String, String)>,
}

static PAGE: LazyLock<Page> =
    LazyLock::new(|| toml::from_str(include_str!("data/page.toml")).expect("a constant table"));

/// Lints of every body.
const ALL: [fn(&Body) -> Option<Warning>; 2] = [own_closing_tag, citation];
/// Lints of bodies that are written to a file or run, in which a warning says what to look for.
const OF_CODE: [fn(&Body) -> Option<Warning>; 6] =
    [strange_characters, dash, quotation_signs, numbers_above, page_furniture, entities];

/// Runs all lints that apply to a body.
pub(super) fn run(body: &Body<'_>, warnings: &mut Vec<Warning>) {
    let is_said = matches!(body.kind, Kind::Message | Kind::Done);
    let of_code = OF_CODE.iter().filter(|_| !is_said);
    warnings.extend(ALL.iter().chain(of_code).filter_map(|lint| lint(body)));
}

impl Body<'_> {
    /// The number of the line that contains an offset.
    fn line_of(&self, at: usize) -> usize {
        self.line + memchr_iter(b'\n', &self.text.as_bytes()[..at]).count()
    }

    fn is_prose(&self) -> bool {
        !matches!(self.file_kind(), FileKind::Code | FileKind::Patch)
    }

    fn is_new_code(&self) -> bool {
        self.kind == Kind::Create && self.file_kind() == FileKind::Code
    }
}

/// The part of the text behind an opening tag that begins its body, and a warning. A sign that a sentence or
/// the chat puts there is no part of a body whose lines are below.
pub(super) fn behind_tag<'a>(
    kind: Kind,
    first: &'a str,
    lines: &str,
    number: usize,
) -> (&'a str, Option<Warning>) {
    if first.is_empty() || matches!(kind, Kind::Message | Kind::Done) {
        return (first, None);
    }
    let sign = first.trim();
    let footnote = sign.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_footnote = sign.len() < 6 && footnote.is_some_and(is_number);
    let is_break = PAGE.signs.iter().any(|known| known == sign);
    let is_fence = fence_of(sign) == Some(sign);
    let is_open = || !lines.lines().any(|line| fence_of(line).is_some());
    if !lines.trim().is_empty() && (is_footnote || is_break || is_fence && is_open()) {
        let text = format!(
            "`{}` behind the tag on line {number} was ignored: send the tag alone on its line",
            brief(sign)
        );
        return ("", Some(Warning::new(WarningSort::TextAfterTag, text)));
    }
    let text = format!(
        "the body began on the line of its tag (line {number}): send the tag alone on its line"
    );
    (first, Some(Warning::new(WarningSort::BodyOnTagLine, text)))
}

/// Each line of a body begins with the blanks that stand before its tag.
pub(super) fn indented(body: &str, lead: &str, line: usize) -> Option<Warning> {
    // Behind a bullet or a number the lines of an item are below its text.
    let is_of_list = |c: char| c.is_ascii_digit() || " \t.)-+*•".contains(c);
    let is_item = !lead.trim().is_empty() && lead.chars().all(is_of_list);
    let lead = if is_item { " ".repeat(lead.chars().count()) } else { lead.to_owned() };
    let mut lines = body.lines().filter(|line| !line.trim().is_empty()).peekable();
    let is_indented = !lead.is_empty()
        && lead.trim().is_empty()
        && lines.peek().is_some()
        && lines.all(|line| line.starts_with(&lead));
    let text = format!(
        "each line of the body from line {line} on is indented as its tag is; it was kept as it is"
    );
    is_indented.then(|| Warning::new(WarningSort::IndentedBody, text))
}

/// Whether a word in small letters is on a button of a chat page.
pub fn is_button(word: &str) -> bool {
    PAGE.buttons.iter().any(|button| button == word)
}

/// A line that begins or ends with the block's own closing tag, and has other text.
fn own_closing_tag(body: &Body) -> Option<Warning> {
    let closing = COMMANDS.iter().find(|command| command.kind == body.kind)?.closing?;
    let text = &body.text;
    let begins = |at: usize| {
        let before = text[..at].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with('\n')
    };
    let ends = |at: usize| {
        let after = text[at + closing.len()..].trim_start_matches([' ', '\t', '\r']);
        after.is_empty() || after.starts_with('\n')
    };
    // Each may stand beside many blanks, so only a few are looked at.
    let mut found = memmem::find_iter(text.as_bytes(), closing.as_bytes()).take(16);
    let at = found.find(|at| !body.has_end && (begins(*at) || ends(*at)))?;
    let begin = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let told = format!(
        "line {} `{}` {} {closing}, which closes a block only if it is alone on its line; it was kept as a part of the body",
        body.line_of(at),
        brief(text[begin..].lines().next().unwrap_or_default().trim()),
        if begins(at) { "begins with" } else { "ends in" }
    );
    Some(Warning::new(WarningSort::OwnClosingInBody, told))
}

/// A mark where a chat cites something: `【5:0†source】`, `:contentReference[oaicite:0]`.
fn citation(body: &Body) -> Option<Warning> {
    let text = &body.text;
    let is_bracketed = |at: &usize| {
        let before: Vec<char> = text[..*at].chars().rev().take(12).collect();
        let begin = before.iter().position(|c| *c == '【').unwrap_or_default();
        let is_number = |c: &char| c.is_ascii_digit() || *c == ':';
        let mut behind = text[*at..].chars().take(60).take_while(|c| *c != '\n');
        begin > 0 && before[..begin].iter().all(is_number) && behind.any(|c| c == '】')
    };
    let known = PAGE.citations.iter().find_map(|(mark, shown)| {
        memmem::find(text.as_bytes(), mark.as_bytes()).map(|at| (at, shown.as_str()))
    });
    let (at, shown) = known.or_else(|| {
        let mut found = memmem::find_iter(text.as_bytes(), "†");
        found.find(is_bracketed).map(|at| (at, "【…†…】"))
    })?;
    let line = body.line_of(at);
    let told = format!("line {line} contains a citation mark of the chat ({shown}); it was kept");
    Some(Warning::new(WarningSort::CitationMark, told))
}

/// Whether a character is one that a chat window puts in, that nobody sees or that acts on a terminal.
/// Curly quotes and fixed spaces of texts are the writer's own.
fn is_strange(c: char, is_prose: bool) -> bool {
    match c {
        '\u{a0}' | '\u{202f}' | '\u{2018}'..='\u{201f}' => !is_prose,
        // Invisible characters, also tags and the variation selectors that no script needs.
        '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}'
        // The direction of writing.
        | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Ends of lines for some programs, and control characters.
        | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{8}' | '\u{b}' | '\u{1b}'
        // Letters that look like blanks.
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' => true,
        _ => false,
    }
}

/// Characters that a chat window may have put in, also a carriage return that ends no line.
fn strange_characters(body: &Body) -> Option<Warning> {
    /// How many lines and how many characters are named.
    const LINES: usize = 3;
    const CHARACTERS: usize = 16;
    let is_prose = body.is_prose();
    let may_be = |byte: &u8| !byte.is_ascii() || matches!(byte, 8 | 11 | 13 | 27);
    let (mut characters, mut lines) = (Vec::new(), Vec::new());
    for (n, text) in body.text.split('\n').enumerate() {
        if !text.as_bytes().iter().any(may_be) {
            continue;
        }
        let inner = text.strip_suffix('\r').unwrap_or(text);
        let mut found = inner.chars().filter(|c| *c == '\r' || is_strange(*c, is_prose)).peekable();
        if found.peek().is_some() && lines.len() <= LINES {
            lines.push((body.line + n).to_string());
        }
        for c in found.map(u32::from) {
            if characters.len() < CHARACTERS && !characters.contains(&c) {
                characters.push(c);
            }
        }
    }
    let more = if lines.len() > LINES { "…" } else { "" };
    lines.truncate(LINES);
    let characters: Vec<String> = characters.iter().map(|c| format!("U+{c:04X}")).collect();
    let text = format!(
        "the body contains {} (line {}{more}), as a chat window may put in; it was kept as it is",
        characters.join(", "),
        lines.join(", ")
    );
    (!lines.is_empty()).then(|| Warning::new(WarningSort::StrangeCharacters, text))
}

/// A dash before a letter in a command, where an option has one or two hyphens: `ls —all`.
fn dash(body: &Body) -> Option<Warning> {
    let text = body.text.as_str();
    if body.kind != Kind::Run {
        return None;
    }
    let (at, c) = text.char_indices().find(|(at, c)| {
        matches!(c, '–' | '—' | '−' | '‐' | '‑')
            && text[..*at].ends_with([' ', '\t'])
            && text[at + c.len_utf8()..].starts_with(|c: char| c.is_ascii_alphanumeric())
    })?;
    let told = format!(
        "line {} contains U+{:04X} ({c}) where an option begins with - or --; it was kept as it is",
        body.line_of(at),
        u32::from(c)
    );
    Some(Warning::new(WarningSort::StrangeCharacters, told))
}

/// The sign of a quotation before each line of code.
fn quotation_signs(body: &Body) -> Option<Warning> {
    let mut lines = body.text.lines().filter(|line| !line.trim().is_empty()).peekable();
    let is_quoted = |line: &&str| *line == ">" || line.starts_with("> ");
    let text = format!(
        "each line of the body from line {} on begins with >, as in a quotation; it was kept as it is",
        body.line
    );
    (body.is_new_code()
        && lines.peek().is_some_and(is_quoted)
        && lines.all(|line| is_quoted(&line)))
    .then(|| Warning::new(WarningSort::SignsKept, text))
}

/// A block of line numbers above code, as a page has them beside it.
fn numbers_above(body: &Body) -> Option<Warning> {
    let numbered = body.text.lines().zip(1u64..);
    let count = numbered.take_while(|(line, n)| line.trim().parse() == Ok(*n)).count();
    let follows = || body.text.lines().skip(count).any(|line| !line.trim().is_empty());
    let text = format!(
        "the body from line {} on begins with the numbers from 1 to {count}, each on a line, as a page has them beside its code; they were kept",
        body.line
    );
    (body.is_new_code() && count > 1 && follows())
        .then(|| Warning::new(WarningSort::NumbersKept, text))
}

/// A button or a label of the chat page in the first lines, or one of its notices anywhere.
fn page_furniture(body: &Body) -> Option<Warning> {
    /// None is longer, in bytes.
    const LONGEST: usize = 40;
    let is_one_line = body.text.trim_end().lines().nth(1).is_none();
    let is_furniture = |n: usize, word: &str| {
        let is_label = n == 0
            && !body.is_prose()
            && !(is_one_line && body.kind == Kind::Run)
            && PAGE.languages.iter().any(|language| language == word);
        // Both stick together if the page has no line between them.
        let button =
            |language: &String| word.strip_prefix(language.as_str()).is_some_and(is_button);
        n < 3 && (is_label || is_button(word) || n == 0 && PAGE.languages.iter().any(button))
    };
    let words = body.text.lines().map(|line| (line, line.len() <= LONGEST));
    let (n, (line, _)) = words.enumerate().find(|(n, (line, is_short))| {
        let word = if *is_short { line.trim().to_ascii_lowercase() } else { String::new() };
        is_furniture(*n, &word) || PAGE.notices.contains(&word)
    })?;
    let told = format!(
        "line {} `{}` looks like a label or a button of the chat page; it was kept",
        body.line + n,
        brief(line.trim())
    );
    Some(Warning::new(WarningSort::PageFurniture, told))
}

/// All characters that HTML writes as entities are written so.
fn entities(body: &Body) -> Option<Warning> {
    let text = body.text.as_str();
    let is_entity =
        |at: usize| PAGE.entities.iter().any(|entity| text[at..].starts_with(entity.as_str()));
    let mut signs = memchr_iter(b'&', text.as_bytes()).peekable();
    let are_all = signs.peek().is_some()
        && signs.all(is_entity)
        && memchr2(b'<', b'>', text.as_bytes()).is_none()
        && !(text.contains("&quot;") && text.contains('"'));
    let told = format!(
        "the body from line {} on contains HTML entities (such as &lt;) and none of the characters themselves; it was kept as it is",
        body.line
    );
    are_all.then(|| Warning::new(WarningSort::EntitiesOnly, told))
}
