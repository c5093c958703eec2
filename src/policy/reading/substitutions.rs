//! What the shell puts into words and here-documents: looked into, and looked at twice.

use std::ops::Range;

use tree_sitter::Node;

use super::heredoc::{self, Document, Told};
use super::kinds::{children, is_substitution, outermost};
use super::tree::{LEVELS, Walk};
use super::{variables, word};

impl Walk<'_> {
    /// The outermost substitutions in a word, in order; each is looked into.
    pub(super) fn spans(&mut self, node: Node<'_>, level: usize, spans: &mut Vec<Range<usize>>) {
        for found in outermost(node) {
            let text = &self.text[found.byte_range()];
            let blank = text.len() - text.trim_start().len();
            spans.push(found.start_byte() + blank..found.end_byte());
            self.substitution(found, level + 1);
        }
    }

    /// Looks into the substitutions of a part of which nothing else is believed.
    pub(super) fn inner(&mut self, node: Node<'_>, level: usize) {
        if level > LEVELS {
            return self.into.cannot("its parts are nested too deep");
        }
        for child in children(node) {
            match child.kind() {
                kind if is_substitution(kind) => self.substitution(child, level + 1),
                "command" | "list" | "do_group" | "redirected_statement" | "pipeline" => {
                    self.node(child, level + 1);
                }
                _ => self.inner(child, level + 1),
            }
        }
    }

    pub(super) fn substitution(&mut self, node: Node<'_>, level: usize) {
        if level > LEVELS {
            return self.into.cannot("its parts are nested too deep");
        }
        let text = self.text[node.byte_range()].trim_start();
        let start = node.end_byte() - text.len();
        match node.kind() {
            "simple_expansion" => {
                // The grammar lets blanks stand between the two.
                let name = text.strip_prefix('$').unwrap_or_default();
                let of_name = |c: char| c.is_alphanumeric() || c == '_';
                let special = name.chars().count() == 1 && "@*#?-$!".contains(name);
                if name.is_empty() || !(special || name.chars().all(of_name)) {
                    self.odd();
                }
            }
            "command_substitution" if text.starts_with('`') => {
                match heredoc::backticks(text, &[], 0).as_deref() {
                    Some([(inner, range)]) if range.len() == text.len() => {
                        super::within(inner, self.into, self.budget, self.depth - 1);
                    }
                    _ => self.odd(),
                }
            }
            "command_substitution" | "process_substitution" => {
                if !(text.starts_with("$(") || text.starts_with("<(") || text.starts_with(">("))
                    || !text.ends_with(')')
                {
                    self.odd();
                }
                self.structure(node, start..node.end_byte(), level);
            }
            kind => {
                let mut inner = Vec::new();
                let outer: Vec<Node<'_>> = children(node).into_iter().flat_map(outermost).collect();
                for found in outer {
                    inner.push(found.byte_range());
                    self.substitution(found, level + 1);
                }
                match own(text, start, &inner).filter(|own| is_simple(kind, own)) {
                    Some(own) if kind == "expansion" => variables::expansion(&own, self.into),
                    Some(own) => variables::arithmetic(&own, self.into),
                    None => self.into.cannot("it holds an expansion that cannot be followed"),
                }
            }
        }
    }

    pub(super) fn document(&mut self, node: Node<'_>, level: usize) {
        let parts = children(node);
        let of = |kind: &str| parts.iter().find(|part| part.kind() == kind);
        let (Some(start), Some(end)) = (of("heredoc_start"), of("heredoc_end")) else {
            return self.odd();
        };
        let body = of("heredoc_body");
        let from = body.map_or(end.start_byte(), Node::start_byte);
        let document = Document {
            mark: start.byte_range(),
            tabs: of("<<-").is_some(),
            body: from..end.start_byte(),
            end: end.byte_range(),
        };
        // Between the line and the body nothing may hide.
        let before = parts.iter().filter(|part| !part.kind().starts_with("heredoc_"));
        let last = before.map(Node::end_byte).filter(|end| *end <= from).max();
        self.gap(last.unwrap_or(start.end_byte()).max(start.end_byte())..from, true);
        match document.told(self.text) {
            Told::Odd => self.into.cannot("where its here-document ends is not certain"),
            Told::Data => {}
            Told::Filled => {
                let mut spans = Vec::new();
                if let Some(body) = body {
                    self.spans(*body, level, &mut spans);
                }
                let text = &self.text[document.body.clone()];
                let Some(ticks) = heredoc::backticks(text, &spans, from) else {
                    return self.odd();
                };
                for (inner, range) in ticks {
                    super::within(&inner, self.into, self.budget, self.depth - 1);
                    spans.push(range);
                }
                spans.sort_by_key(|span| span.start);
                if let Err(why) = word::check_quoted(text, from, &spans) {
                    self.into.cannot(why);
                }
            }
        }
    }
}

/// A text that begins at `start`, without the substitutions in it.
fn own(text: &str, start: usize, inner: &[Range<usize>]) -> Option<String> {
    let mut own = String::new();
    let mut at = 0;
    for span in inner {
        own.push_str(text.get(at..span.start.saturating_sub(start))?);
        at = span.end.saturating_sub(start);
    }
    own.push_str(text.get(at..).unwrap_or_default());
    Some(own)
}

/// Whether every shell sees the same end of `${…}` or `$((…))`: no quotes in it, and its brackets
/// are pairs. `own` is its text without the substitutions in it.
fn is_simple(kind: &str, own: &str) -> bool {
    if own.contains(['\'', '"', '`', '\\', '\n']) || own.get(1..).unwrap_or_default().contains('$')
    {
        return false;
    }
    match kind {
        "expansion" => {
            let body = own.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            // `@P` runs what is in the value.
            body.is_some_and(|body| !body.contains(['{', '}']) && !body.ends_with("@P"))
        }
        _ => {
            let body = own.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
            let mut open = 0_i32;
            body.is_some_and(|body| {
                body.chars().all(|c: char| {
                    open += i32::from(c == '(') - i32::from(c == ')');
                    open >= 0 && c != ';'
                }) && open == 0
            })
        }
    }
}
