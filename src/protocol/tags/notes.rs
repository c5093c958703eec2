//! What is noticed in a body that may not be meant, and is kept all the same.

use memchr::memmem;

use super::attributes::brief;
use super::catalogue::COMMANDS;
use super::fences::fence_of;
use super::range::is_number;
use super::sorts::{Sort, sort};
use super::strange::{dash, strange};
use crate::protocol::{Kind, RelPath, Warning, WarningSort};

/// Tells what is odd in the body of a block that begins on `line` of the reply.
pub(super) fn tell(
    kind: Kind,
    path: Option<&RelPath>,
    body: &str,
    line: usize,
    warnings: &mut Vec<Warning>,
) {
    let is_said = matches!(kind, Kind::Message | Kind::Done);
    let is_prose = path.is_some_and(|path| sort(path) == Sort::Prose);
    if !is_said {
        warnings.extend(strange(body, line, is_prose));
        warnings.extend(dash(kind, body, line));
    }
    warnings.extend(citation(body, line));
    if is_said {
        return;
    }
    if kind == Kind::Create && path.is_some_and(|path| sort(path) == Sort::Code) {
        warnings.extend(beside(body, line));
    }
    warnings.extend(furniture(kind, is_prose, body, line).or_else(|| page(body, line)));
    if only_entities(body) {
        let told = format!(
            "the body from line {line} on holds HTML entities (such as &lt;) and none of the characters themselves; it was kept as it is"
        );
        warnings.push(Warning::new(WarningSort::EntitiesOnly, told));
    }
}

/// What of the text behind an opening tag begins its body, and what is told of it. A sign that a sentence
/// or the chat puts there is none of a body whose lines stand below.
pub(super) fn behind_tag<'a>(
    kind: Kind,
    first: &'a str,
    lines: &str,
    number: usize,
) -> (&'a str, Option<Warning>) {
    let is_said = matches!(kind, Kind::Message | Kind::Done);
    if first.is_empty() || is_said {
        return (first, None);
    }
    let sign = first.trim();
    let is_note = sign.len() < 6
        && sign.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(is_number);
    let is_break = matches!(sign, ":" | "." | "," | ";" | "\\" | "<br>" | "<br/>" | "<br />");
    let is_fence = fence_of(sign) == Some(sign);
    let is_open = || !lines.lines().any(|line| fence_of(line).is_some());
    if !lines.trim().is_empty() && (is_note || is_break || is_fence && is_open()) {
        let told = format!(
            "`{}` behind the tag on line {number} was ignored; the tag is to be alone on its line",
            brief(sign)
        );
        return ("", Some(Warning::new(WarningSort::TextAfterTag, told)));
    }
    let told = format!(
        "the body began on the line of its tag (line {number}); put the tag on a line of its own"
    );
    (first, Some(Warning::new(WarningSort::BodyOnTagLine, told)))
}

/// A quotation's sign before each line of code, or a block of numbers before it, which are kept.
fn beside(body: &str, line: usize) -> Option<Warning> {
    let mut filled = body.lines().filter(|line| !line.trim().is_empty()).peekable();
    let is_quoted = |line: &str| line == ">" || line.starts_with("> ");
    if filled.peek().is_some_and(|line| is_quoted(line)) && filled.all(is_quoted) {
        let told = format!(
            "each line of the body from line {line} on begins with >, as in a quotation; it was kept as it is"
        );
        return Some(Warning::new(WarningSort::SignsKept, told));
    }
    let numbered = body.lines().zip(1u64..).take_while(|(line, n)| line.trim().parse() == Ok(*n));
    let count = numbered.count();
    let follows = || body.lines().skip(count).any(|line| !line.trim().is_empty());
    (count > 1 && follows()).then(|| {
        let told = format!(
            "the body from line {line} on begins with the numbers from 1 to {count}, each on a line, as a page has them beside its code; they were kept"
        );
        Warning::new(WarningSort::NumbersKept, told)
    })
}

/// Whether each line of a body begins with the blanks that stand before its tag.
pub(super) fn indented(body: &str, lead: &str, line: usize) -> Option<Warning> {
    let mut lines = body.lines().filter(|line| !line.trim().is_empty()).peekable();
    // Behind a bullet or a number the lines of an item stand below its text.
    let is_of_list = |c: char| c.is_ascii_digit() || " \t.)-+*•".contains(c);
    let below = lead.chars().all(is_of_list).then(|| " ".repeat(lead.chars().count()));
    let lead = below.as_deref().filter(|_| !lead.trim().is_empty()).unwrap_or(lead);
    let is_blank = !lead.is_empty() && lead.trim().is_empty();
    let is_indented =
        is_blank && lines.peek().is_some() && lines.all(|line| line.starts_with(lead));
    is_indented.then(|| {
        let told = format!(
            "each line of the body from line {line} on is indented as its tag is; it was kept as it is"
        );
        Warning::new(WarningSort::IndentedBody, told)
    })
}

/// A line that begins with the block's own closing tag, and goes on, or one that ends in it.
pub(super) fn own_closing(kind: Kind, body: &str, line: usize) -> Option<Warning> {
    let closing = COMMANDS.iter().find(|command| command.kind == kind)?.closing?;
    let begins = |at: usize| {
        let before = body[..at].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with('\n')
    };
    let ends = |at: usize| {
        let after = body[at + closing.len()..].trim_start_matches([' ', '\t', '\r']);
        after.is_empty() || after.starts_with('\n')
    };
    // No more are looked at: each may stand beside many blanks.
    let mut found = memmem::find_iter(body.as_bytes(), closing.as_bytes()).take(16);
    let at = found.find(|at| begins(*at) || ends(*at))?;
    let line = line + memchr::memchr_iter(b'\n', &body.as_bytes()[..at]).count();
    let begin = body[..at].rfind('\n').map_or(0, |n| n + 1);
    let shown = brief(body[begin..].lines().next().unwrap_or_default().trim());
    let verb = if begins(at) { "begins with" } else { "ends in" };
    let told = format!(
        "line {line} `{shown}` {verb} {closing}, which closes a block only where it is alone on its line; it was kept as a part of the body"
    );
    Some(Warning::new(WarningSort::OwnClosingInBody, told))
}

/// Whether that is what a button of a chat page says, in small letters.
pub fn is_button(word: &str) -> bool {
    matches!(word, "copy code" | "copy" | "edit" | "copied!" | "run code" | "copyedit")
}

/// What a page of a chat says below a code block, or above it, and no code does.
fn is_page(word: &str) -> bool {
    matches!(word, "use code with caution" | "use code with caution." | "content_copy")
}

/// Such a line anywhere in a body.
fn page(body: &str, line: usize) -> Option<Warning> {
    const LONGEST: usize = 40;
    let is_one = |text: &str| text.len() < LONGEST && is_page(&text.trim().to_ascii_lowercase());
    let (n, shown) = body.lines().enumerate().find(|(_, text)| is_one(text))?;
    let told = format!(
        "line {} `{}` looks like a label or a button of the chat page; it was kept",
        line + n,
        brief(shown.trim())
    );
    Some(Warning::new(WarningSort::PageFurniture, told))
}

/// A button or a label of the chat page in the first lines.
fn furniture(kind: Kind, is_prose: bool, body: &str, line: usize) -> Option<Warning> {
    const LABELS: [&str; 22] = [
        "python",
        "bash",
        "shell",
        "sh",
        "javascript",
        "typescript",
        "js",
        "ts",
        "jsx",
        "tsx",
        "json",
        "yaml",
        "toml",
        "html",
        "css",
        "sql",
        "rust",
        "go",
        "java",
        "cpp",
        "csharp",
        "php",
    ];
    let mut lines = body.lines().enumerate().take(3);
    let is_one_line = body.trim_end().lines().nth(1).is_none();
    let (n, shown) = lines.find(|(n, text)| {
        // No button is longer.
        if text.len() > 40 {
            return false;
        }
        let word = text.trim().to_ascii_lowercase();
        let is_label = *n == 0 && !is_prose && LABELS.contains(&word.as_str());
        // Both stick together where the page has no line between them.
        let behind = |label: &str| word.strip_prefix(label).is_some_and(is_button);
        let is_both = *n == 0 && LABELS.iter().any(|label| behind(label));
        is_button(&word) || is_both || is_label && !(is_one_line && kind == Kind::Run)
    })?;
    let told = format!(
        "line {} `{}` looks like a label or a button of the chat page; it was kept",
        line + n,
        brief(shown.trim())
    );
    Some(Warning::new(WarningSort::PageFurniture, told))
}

/// A mark that a chat puts where it cites something: `【5:0†source】`, `:contentReference[oaicite:0]` and
/// the signs around such marks that no font has.
fn citation(body: &str, line: usize) -> Option<Warning> {
    const MARKS: [(&str, &str); 3] = [
        (":contentReference[oaicite:", ":contentReference[oaicite:…]"),
        ("[oai_citation:", "[oai_citation:…]"),
        ("\u{e200}cite", "U+E200"),
    ];
    for (mark, shown) in MARKS {
        if let Some(at) = memmem::find(body.as_bytes(), mark.as_bytes()) {
            let line = line + memchr::memchr_iter(b'\n', &body.as_bytes()[..at]).count();
            let told =
                format!("line {line} holds a citation mark of the chat ({shown}); it was kept");
            return Some(Warning::new(WarningSort::CitationMark, told));
        }
    }
    for at in memmem::find_iter(body.as_bytes(), "†") {
        let before: Vec<char> = body[..at].chars().rev().take(12).collect();
        let Some(begin) = before.iter().position(|c| *c == '【') else { continue };
        let is_number = |c: &char| c.is_ascii_digit() || *c == ':';
        let ends = body[at..].chars().take(60).take_while(|c| *c != '\n').any(|c| c == '】');
        if ends && begin > 0 && before[..begin].iter().all(is_number) {
            let line = line + memchr::memchr_iter(b'\n', &body.as_bytes()[..at]).count();
            let told =
                format!("line {line} holds a citation mark of the chat (【…†…】); it was kept");
            return Some(Warning::new(WarningSort::CitationMark, told));
        }
    }
    None
}

/// Whether all of the characters that HTML writes as entities are written so.
fn only_entities(body: &str) -> bool {
    const ENTITIES: [&str; 6] = ["&lt;", "&gt;", "&quot;", "&amp;", "&#39;", "&apos;"];
    let mut some = false;
    for at in memchr::memchr_iter(b'&', body.as_bytes()) {
        if !ENTITIES.iter().any(|entity| body[at..].starts_with(entity)) {
            return false;
        }
        some = true;
    }
    some && memchr::memchr2(b'<', b'>', body.as_bytes()).is_none()
        && (memmem::find(body.as_bytes(), b"&quot;").is_none() || !body.contains('"'))
}
