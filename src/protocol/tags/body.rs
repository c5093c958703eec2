//! The body of a block: what is none of it is removed if that is beyond doubt, with a warning, and what
//! would have to be guessed is refused.

use super::pairs;
use super::wrong::{Wrong, wrong};
use crate::protocol::content_checks::{FileKind, diff, fence, gutter, may_be_patch};
use crate::protocol::{Kind, Mistake, RelPath, Replacement, Warning, WarningSort};

/// A body, and what is known about it.
pub(super) struct Body<'a> {
    pub(super) kind: Kind,
    pub(super) path: Option<&'a RelPath>,
    pub(super) text: String,
    /// The line of the reply that the text begins on.
    pub(super) line: usize,
    /// Whether its tag gives the word that closes it.
    pub(super) has_end: bool,
}

impl Body<'_> {
    /// What kind of file it is for.
    pub(super) fn file_kind(&self) -> FileKind {
        self.path.map_or(FileKind::Code, FileKind::of)
    }

    fn is_of_code(&self) -> bool {
        matches!(self.kind, Kind::Create | Kind::Edit) && self.file_kind() == FileKind::Code
    }

    fn name(&self) -> String {
        format!("the body from line {} on", self.line)
    }

    /// Removes a fence around all of it.
    fn unfence(&mut self, warnings: &mut Vec<Warning>) -> Result<bool, Wrong> {
        let (text, blank) = match self.kind {
            Kind::Run => {
                let text = self.text.trim_end();
                let begin = text.len() - text.trim_start().len();
                let blank = text[..begin].rfind('\n').map_or(0, |at| at + 1);
                (&text[blank..], blank)
            }
            _ => (&*self.text, 0),
        };
        let Some(inner) = fence::strip(text, &self.name(), warnings)? else { return Ok(false) };
        let inner = inner.to_owned();
        self.line += 1 + self.text[..blank].matches('\n').count();
        self.text = inner;
        Ok(true)
    }
}

/// Checks a body that is not in pairs. `first` is the number of its first line in the file.
pub(super) fn check(
    body: &mut Body<'_>,
    first: Option<u64>,
    warnings: &mut Vec<Warning>,
) -> Result<(), Wrong> {
    let (of, line) = (body.name(), body.line);
    if (body.is_of_code() || body.kind == Kind::Run) && !body.unfence(warnings)? {
        warnings.extend(fence::warn_kept(&body.text, line, ""));
    }
    let is_document = matches!(body.file_kind(), FileKind::Code | FileKind::Document);
    if body.kind == Kind::Create && is_document && pairs::are_first_in(&body.text) {
        let phrase = "the body is pairs of SEARCH and REPLACE and not the content of the file: send all of the content, or the pairs with EDIT_FILE and no line numbers (or RUN_COMMAND, if the file is to contain such lines)";
        return Err(wrong(Mistake::PairsAsContent, phrase));
    }
    if !body.is_of_code() {
        return Ok(());
    }
    if let Some(plain) = gutter::strip(&body.text, gutter::First::Is(first), &of, warnings)? {
        body.text = plain;
    } else {
        warnings.extend(gutter::warn_kept(&body.text, first, &of));
    }
    let is_patch = body.path.is_some_and(may_be_patch);
    let (text, is_edit) = (&body.text, body.kind == Kind::Edit);
    if !is_patch {
        diff::refuse_diff(text, &of)?;
    }
    if !pairs::are_in(text) {
        diff::refuse_conflict(text, &of)?;
    } else if is_edit {
        let phrase = "the tag gives a range of lines, and the body pairs of SEARCH and REPLACE: send one of the two (or the range with RUN_COMMAND, if the file is to contain such lines)";
        return Err(wrong(Mistake::PairsAndRange, phrase));
    } else {
        let text =
            format!("{of} contains a line <<<<<<< SEARCH, as an edit does; it was kept as content");
        warnings.push(Warning::new(WarningSort::MarkersKept, text));
    }
    if !is_patch {
        let is_told = |added, lines| is_edit || added == lines;
        warnings.extend(diff::check_signs(text, &of, is_told)?);
    }
    Ok(())
}

/// The pairs of a body that has some.
pub(super) fn check_pairs(
    body: &mut Body<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Replacement>, Wrong> {
    let of = body.name();
    let is_of_code = body.is_of_code();
    if is_of_code {
        // Lines of fences between pairs are no pairs in any case.
        let _ = body.unfence(warnings);
    }
    let mut replacements = pairs::read(&body.text, body.line, warnings)?;
    if !is_of_code {
        return Ok(replacements);
    }
    let several = replacements.len() > 1;
    let name = |n: usize| {
        if several {
            format!("the REPLACE text of pair {} in {of}", n + 1)
        } else {
            format!("the REPLACE text in {of}")
        }
    };
    for (n, Replacement { old, new }) in replacements.iter_mut().enumerate() {
        // If the lines that are replaced have numbers, too, the file has them, or the search fails.
        if !gutter::has_numbers(old)
            && let Some(plain) = gutter::strip(new, gutter::First::Any, &name(n), warnings)?
        {
            *new = plain;
        }
    }
    for (n, Replacement { old, new }) in replacements.iter().enumerate() {
        fence::refuse_around_part(old, new, &name(n))?;
        warnings.extend(diff::check_replacement(old, new, &name(n))?);
    }
    Ok(replacements)
}

/// What is wrong with the body of an edit without line numbers that has no pairs; None if it has nothing to do
/// with an edit by search.
pub(super) fn no_pairs(body: &Body<'_>) -> Option<Wrong> {
    pairs::nearly(&body.text, body.line).or_else(|| {
        let phrase = "the body is a diff, which is no edit: send the lines that are to be replaced and those for them as a pair, without signs before them";
        diff::is_diff(fence::inside(&body.text)).then(|| wrong(Mistake::Diff, phrase))
    })
}

/// A quoted body without the `>` before each of its lines, as many as before the tag, of which `lead` is
/// what stands before it. None if they do not stand before each line, or if the blank behind them may be
/// part of the line.
pub(super) fn unquoted(text: &str, depth: u8, lead: &str) -> Option<String> {
    let spaced = lead.rsplit('>').next().is_some_and(|behind| behind.starts_with(' '));
    let (mut plain, mut some, mut all_blank) = (String::with_capacity(text.len()), false, true);
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        for _ in 0..depth {
            rest = rest.trim_start_matches([' ', '\t']).strip_prefix('>')?;
        }
        let is_filled = !rest.trim().is_empty();
        let inner = rest.strip_prefix(' ');
        if is_filled && spaced && inner.is_none() {
            return None;
        }
        some |= is_filled;
        all_blank &= !is_filled || inner.is_some();
        plain.push_str(if spaced || !is_filled { inner.unwrap_or(rest) } else { rest });
    }
    (spaced || !some || !all_blank).then_some(plain)
}
