//! What the nodes of the grammar are.

use tree_sitter::Node;

pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// What the shell puts something in for.
pub(super) fn is_substitution(kind: &str) -> bool {
    matches!(
        kind,
        "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "arithmetic_expansion"
            | "process_substitution"
    )
}

pub(super) fn is_wordlike(kind: &str) -> bool {
    is_substitution(kind)
        || matches!(
            kind,
            "word"
                | "string"
                | "raw_string"
                | "ansi_c_string"
                | "translated_string"
                | "concatenation"
                | "number"
                | "brace_expression"
                | "variable_name"
                | "special_variable_name"
                | "extglob_pattern"
                | "regex"
                | "test_operator"
                | "command_name"
                | "variable_assignment"
                | "array"
                | "subscript"
                | "$"
                | "=="
                | "=~"
        )
}

/// The outermost substitutions in a node, itself included.
pub(super) fn outermost(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    loop {
        let is_found = is_substitution(cursor.node().kind());
        if is_found {
            found.push(cursor.node());
        }
        if !is_found && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// Whether every node begins and ends where `is_between` two characters.
pub(super) fn all_between(root: Node<'_>, is_between: impl Fn(usize) -> bool) -> bool {
    let mut cursor = root.walk();
    loop {
        if !(is_between(cursor.node().start_byte()) && is_between(cursor.node().end_byte())) {
            return false;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}
