//! From the tree of the grammar to simple commands, with a second look at all that it says.

use std::ops::Range;

use tree_sitter::Node;

use super::grammar::Budget;
use super::kinds::{children, is_wordlike};
use super::word::{self, Word};
use super::{Reading, looked_through, variables};

/// How deep the parts of a line may be nested.
pub(super) const LEVELS: usize = 100;
const ODD: &str = "its words and quotes can be taken in more than one way";

/// What stands in a command, in its order.
struct Token {
    kind: TokenKind,
    range: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// A word, or a part of one.
    Piece,
    /// The number of a file before a redirection.
    Number,
    /// A redirection; the next word is its file.
    To,
    /// The same where `sh` and `bash` disagree on what follows.
    BothTo,
    /// Something that is no word.
    Other,
}

/// A line, and what is found in it.
pub(super) struct Walk<'a> {
    pub(super) text: &'a str,
    pub(super) into: &'a mut Reading,
    pub(super) budget: &'a mut Budget,
    pub(super) depth: u8,
}

impl Walk<'_> {
    pub(super) fn program(&mut self, root: Node<'_>) {
        if root.is_error() {
            self.into.cannot("the shell's grammar does not fit it");
        }
        self.structure(root, 0..self.text.len(), 0);
    }

    pub(super) fn odd(&mut self) {
        self.into.cannot(ODD);
    }

    /// Looks at a part of a line that is made of others.
    pub(super) fn structure(&mut self, node: Node<'_>, range: Range<usize>, level: usize) {
        if level > LEVELS {
            return self.into.cannot("its parts are nested too deep");
        }
        if let Some(variable) = node.child_by_field_name("variable") {
            variables::set_by_syntax(&self.text[variable.byte_range()], self.into);
        }
        let mut at = range.start;
        let mut words: Vec<Token> = Vec::new();
        let mut nodes: Vec<Node<'_>> = Vec::new();
        for child in children(node) {
            self.gap(at..child.start_byte(), true);
            at = child.end_byte().max(at);
            let kind = child.kind();
            if child.is_named() && is_wordlike(kind) && kind != "variable_assignment" {
                self.pieces(child, level, &mut words);
                nodes.push(child);
            } else if child.is_named() || child.is_missing() {
                self.node(child, level + 1);
            }
        }
        self.gap(at..range.end, true);
        self.words(words, nodes, level, false);
    }

    pub(super) fn node(&mut self, node: Node<'_>, level: usize) {
        let range = node.byte_range();
        match node.kind() {
            _ if node.is_missing() => self.into.cannot("the shell's grammar does not fit it"),
            "ERROR" => {
                self.into.cannot("the shell's grammar does not fit it");
                self.structure(node, range, level);
            }
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments"
            | "file_redirect"
            | "herestring_redirect"
            | "heredoc_redirect"
            | "test_command" => self.command(&[node], level),
            "redirected_statement" => self.redirected(node, level),
            "compound_statement" | "c_style_for_statement"
                if self.text[range.clone()].starts_with("((")
                    || node.kind().starts_with("c_style") =>
            {
                // Arithmetic to `bash`, a subshell in a subshell to others.
                self.odd();
                self.inner(node, level);
            }
            "comment" => self.comment(range),
            "program"
            | "list"
            | "pipeline"
            | "negated_command"
            | "subshell"
            | "compound_statement"
            | "do_group"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "for_statement"
            | "case_statement"
            | "case_item"
            | "function_definition" => self.structure(node, range, level),
            _ => {
                self.odd();
                self.inner(node, level);
            }
        }
    }

    /// A command with what is redirected behind it.
    fn redirected(&mut self, node: Node<'_>, level: usize) {
        let parts = children(node);
        let of_command = |node: &Node<'_>| {
            let kind = node.kind();
            kind.ends_with("_redirect")
                || matches!(kind, "command" | "declaration_command" | "unset_command" | "comment")
        };
        if parts.iter().all(of_command) {
            return self.command(&parts, level);
        }
        let mut at = node.start_byte();
        let mut rest = Vec::new();
        for part in parts {
            self.gap(at..part.start_byte(), true);
            at = part.end_byte();
            if part.kind().ends_with("_redirect") {
                rest.push(part);
            } else {
                self.node(part, level + 1);
            }
        }
        let (mut tokens, mut nodes) = (Vec::new(), Vec::new());
        for part in rest {
            self.tokens(part, level, &mut tokens, &mut nodes);
        }
        // A word behind them belongs to the last command of the part, and is taken for one.
        let words = self.words(tokens, nodes, level, true);
        if !words.is_empty() {
            self.odd();
            looked_through::add(words, self.into, self.budget, self.depth);
        }
    }

    /// One command, whose parts follow each other.
    fn command(&mut self, parts: &[Node<'_>], level: usize) {
        if level > LEVELS {
            return self.into.cannot("its parts are nested too deep");
        }
        let (mut tokens, mut nodes) = (Vec::new(), Vec::new());
        for part in parts {
            self.tokens(*part, level, &mut tokens, &mut nodes);
        }
        let words = self.words(tokens, nodes, level, true);
        looked_through::add(words, self.into, self.budget, self.depth);
    }

    /// Takes a command apart.
    fn tokens<'t>(
        &mut self,
        node: Node<'t>,
        level: usize,
        tokens: &mut Vec<Token>,
        nodes: &mut Vec<Node<'t>>,
    ) {
        if level > LEVELS {
            return self.into.cannot("its parts are nested too deep");
        }
        if node.kind() == "heredoc_redirect" {
            self.document(node, level);
        }
        for child in children(node) {
            let (kind, range) = (child.kind(), child.byte_range());
            let token = match kind {
                _ if child.is_missing() => {
                    self.into.cannot("the shell's grammar does not fit it");
                    continue;
                }
                "file_redirect"
                | "herestring_redirect"
                | "heredoc_redirect"
                | "variable_assignments"
                | "binary_expression"
                | "unary_expression" => {
                    self.tokens(child, level + 1, tokens, nodes);
                    continue;
                }
                "file_descriptor" => TokenKind::Number,
                "&>" | "&>>" => TokenKind::BothTo,
                ">&-" | "<&-" => TokenKind::Other,
                "<" | ">" | ">>" | "<&" | ">&" | ">|" | "<<<" | "<<" | "<<-"
                    if node.kind().ends_with("_redirect") =>
                {
                    TokenKind::To
                }
                "heredoc_body" | "heredoc_end" => continue,
                "&&" | "||" if node.kind() == "heredoc_redirect" => TokenKind::Other,
                "heredoc_start" => TokenKind::Piece,
                "comment" => {
                    self.comment(range.clone());
                    TokenKind::Other
                }
                _ if node.kind() == "heredoc_redirect" && !is_wordlike(kind) => {
                    self.node(child, level + 1);
                    TokenKind::Other
                }
                _ if !child.is_named() || is_wordlike(kind) => {
                    nodes.push(child);
                    self.pieces(child, level, tokens);
                    continue;
                }
                _ => {
                    self.odd();
                    self.node(child, level + 1);
                    TokenKind::Other
                }
            };
            tokens.push(Token { kind: token, range });
        }
    }

    /// A node that is a word or a part of one; arrays are no words of `sh`.
    fn pieces(&mut self, node: Node<'_>, level: usize, tokens: &mut Vec<Token>) {
        let is_array = node.kind() == "array"
            || node.child_by_field_name("value").is_some_and(|value| value.kind() == "array");
        if is_array {
            self.odd();
            self.inner(node, level);
            return tokens.push(Token { kind: TokenKind::Other, range: node.byte_range() });
        }
        let text = &self.text[node.byte_range()];
        // The grammar counts blanks before a backtick to it.
        let blank = text.len() - text.trim_start_matches([' ', '\t']).len();
        let range = node.start_byte() + blank..node.end_byte();
        tokens.push(Token { kind: TokenKind::Piece, range });
    }

    /// Makes words of what a command is made of, and looks into their substitutions. Where they are
    /// `adjacent`, only blanks may stand between them.
    fn words(
        &mut self,
        tokens: Vec<Token>,
        nodes: Vec<Node<'_>>,
        level: usize,
        adjacent: bool,
    ) -> Vec<Word> {
        let mut spans = Vec::new();
        for node in nodes {
            self.spans(node, level, &mut spans);
        }
        let mut spans = &spans[..];
        let (mut words, mut to, mut both) = (Vec::new(), false, false);
        let mut tokens = tokens.into_iter().peekable();
        while let Some(Token { kind, mut range }) = tokens.next() {
            let joined = |next: &Token, range: &Range<usize>, text: &str| {
                text.get(range.end..next.range.start)
                    .is_some_and(|gap| gap.replace("\\\n", "").is_empty())
            };
            if kind == TokenKind::Piece {
                while let Some(next) =
                    tokens.next_if(|next| next.kind == kind && joined(next, &range, self.text))
                {
                    range.end = next.range.end;
                }
            }
            if let Some(next) = tokens.peek().filter(|_| adjacent) {
                let stuck = joined(next, &range, self.text);
                // `a2>b` is the word `a2`.
                if next.kind == TokenKind::Number && stuck && kind == TokenKind::Piece {
                    self.odd();
                }
                self.gap(range.end..next.range.start.max(range.end), false);
                // `{name}>file` sets a variable.
                if stuck && matches!(next.kind, TokenKind::To | TokenKind::BothTo) {
                    let raw = &self.text[range.clone()];
                    let name = raw.strip_prefix('{').and_then(|raw| raw.strip_suffix('}'));
                    variables::set_by_syntax(name.unwrap_or_default(), self.into);
                }
            }
            match kind {
                TokenKind::To => to = true,
                TokenKind::BothTo => (to, both) = (true, true),
                TokenKind::Number | TokenKind::Other => {}
                TokenKind::Piece => {
                    let skip = spans.partition_point(|span| span.end <= range.start);
                    spans = &spans[skip..];
                    let raw = &self.text[range.clone()];
                    let word = word::unquoted(raw, range.start, spans).unwrap_or_else(|why| {
                        self.into.cannot(why);
                        Word::unknown(raw)
                    });
                    if std::mem::take(&mut to) {
                        continue;
                    }
                    if both {
                        self.into.cannot("words follow `&>`, which `sh` takes for `&`");
                    }
                    words.push(word);
                }
            }
        }
        words
    }

    /// A comment must be one for the shell, too.
    pub(super) fn comment(&mut self, range: Range<usize>) {
        let before = &self.text[..range.start];
        let begins =
            before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        let escaped = before.trim_end_matches([' ', '\t', '\n']).ends_with('\\');
        if !begins || escaped || self.text[range].contains('\n') {
            self.odd();
        }
    }

    /// Nothing but blanks may stand between the parts that the grammar found.
    pub(super) fn gap(&mut self, range: Range<usize>, lines: bool) {
        let Some(gap) = self.text.get(range.clone()) else { return };
        let rest = gap.replace("\\\n", "");
        let blank = |c: char| matches!(c, ' ' | '\t') || (lines && c == '\n');
        let is_operator = |c: &char| ";&|()<>".contains(*c);
        let around =
            [self.text[..range.start].chars().next_back(), self.text[range.end..].chars().next()];
        // A backslash at the end of a line joins what stands around it.
        let joins = rest.is_empty()
            && !gap.is_empty()
            && lines
            && around
                .iter()
                .all(|c| c.as_ref().is_some_and(|c| !is_operator(c) && !c.is_whitespace()));
        if !rest.chars().all(blank) || joins {
            self.odd();
        }
    }
}
