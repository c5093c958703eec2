//! What the specification says in tables and blocks, taken from the document itself.

use serde_json::Value;

/// bouvet-jsonrpc, to the letter.
const TEXT: &str = include_str!("bouvet-jsonrpc.md");

/// What stands between a heading and the next of its level or above.
#[track_caller]
pub fn section(heading: &str) -> &'static str {
    let level = heading.split(' ').next().unwrap();
    let from = format!("\n{heading}\n");
    let begin = TEXT.find(&from).unwrap_or_else(|| panic!("no {heading}")) + from.len();
    let rest = &TEXT[begin..];
    let above = (2..=level.len()).map(|n| format!("\n{} ", "#".repeat(n)));
    let end = above.filter_map(|mark| rest.find(&mark)).min().unwrap_or(rest.len());
    &rest[..end]
}

/// The fenced blocks of a section.
pub fn blocks(section: &'static str) -> Vec<&'static str> {
    section
        .split("```")
        .skip(1)
        .step_by(2)
        .map(|block| block.split_once('\n').expect("it begins with its language").1)
        .collect()
}

/// A block of JSON with comments at the ends of its lines.
#[track_caller]
pub fn commented(block: &str) -> Value {
    let plain = block.lines().map(|line| line.split_once(" //").map_or(line, |(json, _)| json));
    serde_json::from_str(&plain.collect::<String>()).unwrap_or_else(|e| panic!("{e}: {block}"))
}

/// The rows of a section's table, without its head.
pub fn rows(section: &'static str) -> Vec<Vec<&'static str>> {
    let lines = section.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let cells = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
    lines.skip(2).map(cells).collect()
}

/// What stands in backticks in a cell.
pub fn quoted(cell: &'static str) -> Vec<&'static str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names in `{name: type, name: type}`.
pub fn names(written: &'static str) -> Vec<&'static str> {
    let inside = written.trim_start_matches('{').trim_end_matches('}');
    inside.split(',').filter_map(|field| Some(field.split_once(':')?.0.trim())).collect()
}

/// The titles of the examples, in their order.
pub fn examples() -> Vec<&'static str> {
    section("## Examples").lines().filter(|line| line.starts_with("### ")).collect()
}

#[test]
fn the_document_is_read_as_it_is_meant() {
    assert_eq!(section("### Ping (Health Check)").matches("```json").count(), 2);
    assert_eq!(blocks(section("## Wire Format")).len(), 1);
    assert_eq!(rows(section("## Error Codes")).len(), 5);
    assert_eq!(names("{lang: string, code: string}"), ["lang", "code"]);
    assert_eq!(names("{}"), [""; 0]);
    assert_eq!(quoted("`node`, `js`"), ["node", "js"]);
    assert_eq!(commented("{ \"a\": 1 // one\n}"), serde_json::json!({ "a": 1 }));
}
