//! Checks the body of a block. Text that clearly does not belong to the body is removed with a warning. If it is
//! unclear whether text belongs to the body, the block is refused.

use std::sync::LazyLock;

use memchr::memchr_iter;
use regex::Regex;

use super::{lints, pairs};
use crate::protocol::content_checks::{FileKind, diff, fence, gutter, may_be_patch};
use crate::protocol::mistake::Problem;
use crate::protocol::{Kind, Mistake, RelPath, Replacement, Warning, WarningKind};

/// The body of a block.
pub(super) struct Body {
    pub(super) kind: Kind,
    /// The kind of file that the body is written to. A command counts as code.
    pub(super) file_kind: FileKind,
    /// Whether the file may contain a diff.
    may_be_patch: bool,
    pub(super) text: String,
    /// The line of the reply on which the text begins.
    pub(super) line: usize,
    /// Whether the tag has an end word.
    pub(super) has_end: bool,
    pub(super) rare: RareText,
}

/// Rare text, searched once in the whole reply. If the reply does not contain it, no body is checked for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RareText {
    /// Whether this body contains the tag of a command.
    pub(super) has_tag: bool,
    /// A fence, a pair or conflict marker, an added line of a diff, or a citation mark.
    pub(super) has_marks: bool,
    /// Characters that a chat window may have inserted, and carriage returns within a line.
    pub(super) has_strange: bool,
}

impl RareText {
    pub(super) fn of(text: &str) -> Self {
        static MARKS: LazyLock<Regex> = LazyLock::new(|| {
            let pattern = r"```|~~~|<<<<<|\n\+|contentReference|oai_citation|\x{e200}|【";
            Regex::new(pattern).expect("a constant pattern")
        });
        let has_strange = lints::strange(text).next().is_some();
        Self { has_tag: false, has_marks: MARKS.is_match(text), has_strange }
    }
}

impl Body {
    pub(super) fn new(
        kind: Kind,
        path: Option<&RelPath>,
        text: String,
        line: usize,
        has_end: bool,
        rare: RareText,
    ) -> Self {
        let file_kind = path.map_or(FileKind::Code, FileKind::of);
        let may_be_patch = path.is_some_and(may_be_patch);
        Self { kind, file_kind, may_be_patch, text, line, has_end, rare }
    }

    /// Whether the body is code that is written to a file.
    pub(super) fn is_code(&self) -> bool {
        matches!(self.kind, Kind::Create | Kind::Edit) && self.file_kind == FileKind::Code
    }

    /// Removes a fence around the whole body. Blank lines before and after a command are ignored.
    fn unfence(&mut self, warnings: &mut Vec<Warning>) -> Result<bool, Problem> {
        let mut begin = 0;
        let mut text = &*self.text;
        if self.kind == Kind::Run {
            text = text.trim_end();
            let blank = &text[..text.len() - text.trim_start().len()];
            begin = blank.rfind('\n').map_or(0, |at| at + 1);
        }
        let of = format_args!("the body from line {} on", self.line);
        let Some(inner) = fence::strip(&text[begin..], &of, warnings)? else { return Ok(false) };
        let inner = inner.to_owned();
        self.line += 1 + memchr_iter(b'\n', &self.text.as_bytes()[..begin]).count();
        self.text = inner;
        Ok(true)
    }
}

/// Checks a body that does not consist of pairs. `first` is the line number that its first line has in the file.
pub(super) fn check(
    body: &mut Body,
    first: usize,
    warnings: &mut Vec<Warning>,
) -> Result<(), Problem> {
    let (is_code, is_edit, line) = (body.is_code(), body.kind == Kind::Edit, body.line);
    let of = format_args!("the body from line {line} on");
    let may_have_fence = body.rare.has_marks && (is_code || body.kind == Kind::Run);
    if may_have_fence && !body.unfence(warnings)? {
        warnings.extend(fence::warn_kept(&body.text, body.line, ""));
    }
    let has_pairs = body.rare.has_marks && pairs::are_in(&body.text);
    let is_document = matches!(body.file_kind, FileKind::Code | FileKind::Document);
    if body.kind == Kind::Create && is_document && has_pairs && pairs::are_first_in(&body.text) {
        let phrase = "the body is pairs of SEARCH and REPLACE and not the content of the file: send all of the content, or the pairs with EDIT_FILE and no line numbers (or RUN_COMMAND, if the file is to contain such lines)";
        return Err(Problem::new(Mistake::PairsAsContent, phrase));
    }
    if !is_code {
        return Ok(());
    }
    let first = u64::try_from(first).ok();
    if let Some(plain) = gutter::strip(&body.text, gutter::First::Is(first), &of, warnings)? {
        // A mark may have been hidden behind a line number.
        (body.text, body.rare.has_marks) = (plain, true);
    }
    let text = &body.text;
    if !body.may_be_patch {
        diff::refuse_diff(text, &of)?;
    }
    if !body.rare.has_marks {
        return Ok(());
    }
    if has_pairs && is_edit {
        let phrase = "the tag gives a range of lines, and the body pairs of SEARCH and REPLACE: send one of the two (or the range with RUN_COMMAND, if the file is to contain such lines)";
        return Err(Problem::new(Mistake::PairsAndRange, phrase));
    }
    if has_pairs {
        let text = format!("{of} contains a line <<<<<<< SEARCH, as in an edit; it was kept");
        warnings.push(Warning::new(WarningKind::MarkersKept, text));
    } else {
        diff::refuse_conflict(text, &of)?;
    }
    if !body.may_be_patch {
        let should_warn = |added, lines| is_edit || added == lines;
        warnings.extend(diff::check_signs(text, &of, should_warn)?);
    }
    Ok(())
}

/// Reads a body that consists of pairs. `tag` is the line of its opening tag.
pub(super) fn read_pairs(
    body: &mut Body,
    tag: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Replacement>, Problem> {
    pairs::dedent(&mut body.text, tag, body.line, warnings);
    if !pairs::are_in(&body.text) {
        let diff = "the body is a diff, which is not an edit: send the lines that are to be replaced and those for them as a pair, without signs before them";
        let is_diff = diff::is_diff(fence::inside(&body.text));
        if is_diff {
            return Err(Problem::new(Mistake::Diff, diff));
        }
        let markers = pairs::MARKERS;
        let phrase =
            format!("the attribute start_line is missing, and the body has no pair: {markers}");
        return Err(Problem::new(Mistake::AttributeMissing, phrase));
    }
    let (is_code, line) = (body.is_code(), body.line);
    if is_code {
        // Fence lines between pairs are ignored anyway.
        let _ = body.unfence(warnings);
    }
    let mut replacements = pairs::read(&body.text, body.line, warnings)?;
    if !is_code {
        return Ok(replacements);
    }
    for (n, Replacement { old, new }) in (1..).zip(&mut replacements) {
        let of = format_args!("the REPLACE text of pair {n} in the body from line {line} on");
        // If the old lines have numbers, too, either the file contains the numbers or the search fails.
        if !gutter::has_numbers(old)
            && let Some(plain) = gutter::strip(new, gutter::First::Any, &of, warnings)?
        {
            *new = plain;
        }
        fence::refuse_around_part(old, new, &of)?;
        warnings.extend(diff::check_replacement(old, new, &of)?);
    }
    Ok(replacements)
}

/// Removes `depth` quotation marks from each line of a quoted body. `lead` is the text before the opening tag. None if
/// a line lacks the marks, or if the space after them may be part of the line.
pub(super) fn unquoted(text: &str, depth: u8, lead: &str) -> Option<String> {
    let is_spaced = lead.rsplit('>').next().is_some_and(|rest| rest.starts_with(' '));
    let mut plain = String::with_capacity(text.len());
    let (mut is_empty, mut all_spaced) = (true, true);
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        for _ in 0..depth {
            rest = rest.trim_start_matches([' ', '\t']).strip_prefix('>')?;
        }
        let is_blank = rest.trim().is_empty();
        let inner = rest.strip_prefix(' ');
        if !is_blank && is_spaced && inner.is_none() {
            return None;
        }
        is_empty &= is_blank;
        all_spaced &= is_blank || inner.is_some();
        plain.push_str(if is_spaced || is_blank { inner.unwrap_or(rest) } else { rest });
    }
    (is_spaced || is_empty || !all_spaced).then_some(plain)
}

/// If the tag arrived escaped and the command contains escaped characters, too, returns why the command is unclear.
/// After an unescaped tag, escapes prove nothing, because shells use some of them. The body begins on `line`.
pub(super) fn escapes(body: &str, line: usize) -> Option<Problem> {
    let is_escaped = |byte: &u8| b"_*[]()#<>~`&|!+-.{}".contains(byte);
    let at = memchr_iter(b'\\', body.as_bytes())
        .find(|at| body.as_bytes().get(at + 1).is_some_and(is_escaped))?;
    let line = line + memchr_iter(b'\n', &body.as_bytes()[..at]).count();
    let phrase = format!(
        "the characters of the tag arrived escaped (\\), and so may have those of the command (`{}` on line {line}), so what it was is unclear: send it in a code block",
        &body[at..at + 2]
    );
    Some(Problem::new(Mistake::CommandUnclear, phrase))
}
