//! A changed settings file by its lines: what was not changed ends as it did, and a table that nothing is
//! left of goes with its header.

use std::ops::Range;

/// The text `after` a change of the text `before`, with the line ends that this had: those of lines that
/// stayed, and in new ones that of the first.
pub(super) fn ended_as(before: &str, after: &str) -> String {
    fn bare(line: &str) -> &str {
        let line = line.strip_suffix('\n').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    }
    if !before.contains("\r\n") {
        return after.to_owned();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let same = |(old, new): &(&&str, &&str)| bare(old) == bare(new);
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let end = if old[0].ends_with("\r\n") { "\r\n" } else { "\n" };
    let mut text = old[..head].concat();
    if head > 0 && !text.ends_with('\n') {
        text.push_str(end);
    }
    for line in &new[head..new.len() - tail] {
        text.push_str(bare(line));
        if line.ends_with('\n') {
            text.push_str(end);
        }
    }
    text + &old[old.len() - tail..].concat()
}

/// Where the header of an empty table stands, with blank lines that only set it off; None where a comment
/// is about it, or it is written in another way than `[a.b]`.
pub(super) fn of_empty_table(text: &str, tables: &[String]) -> Option<Range<usize>> {
    let header = format!("[{}]", tables.join("."));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines.iter().position(|line| line.trim() == header)?;
    let is_blank = |line: &&&str| line.trim().is_empty();
    let below = lines[at + 1..].iter().take_while(is_blank).count();
    let next = lines.get(at + 1 + below);
    let is_told_of = |line: Option<&&str>| line.is_some_and(|line| line.trim().starts_with('#'));
    if is_told_of(next) || is_told_of(at.checked_sub(1).map(|above| &lines[above])) {
        return None;
    }
    let above = lines[..at].iter().rev().take_while(is_blank).count();
    let first = if next.is_none() { at - above } else { at };
    let start = |n: usize| lines[..n].iter().map(|line| line.len()).sum::<usize>();
    Some(start(first)..start(at + 1 + below))
}
