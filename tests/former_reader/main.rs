//! Replies, and what the reader before the present one made of them: nothing that it refused or ignored
//! may become an operation, and nothing else may change unnoticed.
//!
//! `replies.txt` holds some thousand replies, most of them broken: the cases of `tests/replies`, of the
//! scenarios and of the fuzz corpus, and mutations of them that were chosen so that every kind of step,
//! warning and error, alone and beside another, occurs in a short one. Below each, behind a line `%-`, is
//! what the reader of commit d04e2d57 made of it, as [`reading::lines`] puts it. This file was written once
//! and never changes.
//!
//! `differences.txt` lists where the present reader differs, each time with a reason; its head explains the
//! format. `FORMER_READER=overwrite cargo test --test former_reader` writes its mechanical part anew. It
//! keeps the reasons of differences that stayed the same and leaves new ones without (`?`): give each
//! one, after reading the reply. The test fails until then.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

mod reading;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use similar::{ChangeTag, TextDiff};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/former_reader").join(name)
}

/// Codes of the former reader that another replaced: they are no differences.
const RENAMED: [(&str, &str); 6] = [
    ("misspelt", "looks-like-tag"),
    ("other-brackets", "looks-like-tag"),
    ("other-name", "looks-like-tag"),
    ("read-as-words", "looks-like-tag"),
    ("struck-tag", "looks-like-tag"),
    ("tags-in-shown-file", "tags-in-element"),
];

/// The warnings below each step in the order of their codes.
fn in_order(mut lines: Vec<String>) -> Vec<String> {
    let is_warning = |line: &str| line.starts_with("    ~ ");
    lines.chunk_by_mut(|a, b| is_warning(a) == is_warning(b)).for_each(|part| {
        if is_warning(&part[0]) {
            part.sort();
        }
    });
    lines
}

/// A line of a former reading, with the codes of today.
fn renamed(line: &str) -> String {
    let Some((before, code)) = line.rsplit_once(' ') else { return line.to_owned() };
    let new = RENAMED.iter().find(|(old, _)| *old == code).map_or(code, |(_, new)| new);
    format!("{before} {new}")
}

/// A reply of `replies.txt`.
struct Case {
    number: usize,
    text: String,
    former: Vec<String>,
}

fn cases() -> Vec<Case> {
    let stored = fs::read_to_string(file("replies.txt")).unwrap();
    let cases = stored.strip_prefix("%% ").unwrap().trim_end_matches('\n').split("\n%% ");
    let case = |case: &str| {
        let (number, rest) = case.split_once('\n').unwrap();
        let (text, former) = rest.split_once("\n%-\n").unwrap();
        let former = in_order(former.lines().map(renamed).collect());
        Case { number: number.parse().unwrap(), text: unescaped(text), former }
    };
    cases.map(case).collect()
}

/// The text that is stored so: `\t`, `\r` and `\\` for those characters, `\u{…}` for others.
fn unescaped(stored: &str) -> String {
    let mut text = String::new();
    let mut rest = stored;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let (character, after) = match after.strip_prefix("u{") {
            Some(after) => {
                let (code, after) = after.split_once('}').unwrap();
                (char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap(), after)
            }
            None => match after.split_at(1) {
                ("t", after) => ('\t', after),
                ("r", after) => ('\r', after),
                ("\\", after) => ('\\', after),
                (other, _) => panic!("unknown escape {other:?}"),
            },
        };
        text.push(character);
        rest = after;
    }
    text + rest
}

/// The operations of a reading that would be carried out, each as its line. `[DONE if="ok"]` is none
/// where it cannot end the session: behind an error, before another step, or held.
fn executed(lines: &[String]) -> Vec<&str> {
    let steps: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    let is_operation = |line: &str| line.split(' ').nth(1) == Some("+");
    let counts = |(n, line): (usize, &&str)| {
        let is_idle = line.contains(" + done if ok ")
            && (line.ends_with(", held")
                || n + 1 < steps.len()
                || !steps[..n].iter().all(|step| is_operation(step)));
        is_operation(line) && !is_idle
    };
    steps.iter().enumerate().filter(|&(n, line)| counts((n, line))).map(|(_, line)| *line).collect()
}

/// Whether something would be carried out that the former reader did not give out.
fn breaks_the_law(former: &[String], now: &[String]) -> bool {
    let mut left = executed(former);
    executed(now).into_iter().any(|line| match left.iter().position(|other| *other == line) {
        Some(at) => {
            left.remove(at);
            false
        }
        None => true,
    })
}

/// What differs: lines of the former reading behind `-`, of the present one behind `+`.
fn difference(former: &[String], now: &[String]) -> String {
    let (former, now) = (former.join("\n") + "\n", now.join("\n") + "\n");
    let diff = TextDiff::from_lines(&former, &now);
    let mut out = String::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Equal => continue,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        write!(out, "    {sign} {}", change.value()).unwrap();
    }
    out
}

/// An entry of `differences.txt`: whether it executes more, why, and what differs.
#[derive(Clone, PartialEq)]
struct Entry {
    executes: bool,
    reason: String,
    difference: String,
}

/// What `differences.txt` says: its head, the numbers of the reasons that it explains, and its entries.
fn listed() -> (String, Vec<String>, BTreeMap<usize, Entry>) {
    let list = fs::read_to_string(file("differences.txt")).unwrap();
    let (head, entries) = list.split_once("\n%% ").unwrap_or((&list, ""));
    let reasons = head.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let reasons = reasons.filter_map(|line| Some(line.split_once(". ")?.0.to_owned())).collect();
    let entry = |entry: &str| {
        let (title, difference) = entry.split_once('\n').unwrap_or((entry, ""));
        let (number, rest) = title.split_once(' ').unwrap();
        let (executes, reason) = match rest.strip_prefix("EXECUTES ") {
            Some(reason) => (true, reason),
            None => (false, rest),
        };
        let difference = format!("{}\n", difference.trim_end_matches('\n'));
        (number.parse().unwrap(), Entry { executes, reason: reason.to_owned(), difference })
    };
    let entries = entries.split("\n%% ").filter(|entry| !entry.is_empty()).map(entry).collect();
    (head.trim_end().to_owned() + "\n", reasons, entries)
}

/// Whether a reason is one that the head of the list explains; of what executes more, with a sentence
/// of its own behind it.
fn is_given(entry: &Entry, reasons: &[String]) -> bool {
    let (number, own) = entry.reason.split_once(": ").unwrap_or((&entry.reason, ""));
    reasons.iter().any(|reason| reason == number) && (!entry.executes || own.len() > 10)
}

#[test]
fn nothing_is_read_otherwise_than_before_without_a_reason() {
    let (head, reasons, listed) = listed();
    let mut actual = BTreeMap::new();
    for case in cases() {
        let now = reading::lines(&case.text);
        if now == case.former {
            continue;
        }
        let difference = difference(&case.former, &now);
        let executes = breaks_the_law(&case.former, &now);
        let mut entry = Entry { executes, reason: "?".to_owned(), difference };
        if let Some(known) = listed.get(&case.number) {
            let same = Entry { reason: known.reason.clone(), ..entry.clone() };
            if same == *known {
                entry = same;
            }
        }
        actual.insert(case.number, entry);
    }
    if std::env::var("FORMER_READER").is_ok_and(|value| value == "overwrite") {
        let mut list = head;
        for (number, Entry { executes, reason, difference }) in &actual {
            let executes = if *executes { "EXECUTES " } else { "" };
            write!(list, "\n%% {number} {executes}{reason}\n{difference}").unwrap();
        }
        fs::write(file("differences.txt"), list).unwrap();
    }
    let mut wrong = Vec::new();
    for (number, entry) in &actual {
        if !is_given(entry, &reasons) {
            let law = if entry.executes { " EXECUTES what was not executed before" } else { "" };
            wrong.push(format!("{number}{law}\n{}", entry.difference));
        }
    }
    let gone = listed.keys().filter(|number| !actual.contains_key(number));
    wrong.extend(gone.map(|number| format!("{number} is listed, but does not differ any more\n")));
    assert!(
        wrong.is_empty(),
        "{} differences to the former reader without a reason (see the head of tests/former_reader/main.rs):\n{}",
        wrong.len(),
        wrong.iter().take(40).cloned().collect::<String>()
    );
}

#[test]
fn the_replies_are_many_and_of_every_kind() {
    let cases = cases();
    assert!((3_000..=5_000).contains(&cases.len()), "{}", cases.len());
    assert!(cases.iter().enumerate().all(|(n, case)| case.number == n + 1));
    let all: String = cases.iter().map(|case| case.former.join("\n") + "\n").collect();
    for kind in [
        "message",
        "create",
        "edit",
        "delete",
        "read",
        "list",
        "search",
        "move",
        "run",
        "done",
        "done if ok",
    ] {
        let count = all.matches(&format!(" + {kind} ")).count();
        assert!(count >= 30, "{kind}: {count}");
    }
}

#[test]
fn the_law_is_about_what_would_be_carried_out() {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    for (former, now, breaks) in [
        ("1 + delete \"a\" 0", "1 + delete \"a\" 0", false),
        ("1 + delete \"a\" 0\n2 + run 1", "2 + run 1", false),
        ("1 ! delete path-refused", "1 + delete \"a\" 0", true),
        ("1 + delete \"a\" 0", "1 + delete \"a\" 0\n1 + delete \"a\" 0", true),
        ("1 + run 1", "1 + run 2", true),
        ("1 + run 1\n2 + done if ok 3, held", "1 + run 1\n2 + done if ok 3", true),
        ("1 ! run cut-off\n2 + done if ok 3", "2 + done if ok 3", true),
        ("1 ! run cut-off", "1 ! run cut-off\n2 + done if ok 3", false),
    ] {
        assert_eq!(breaks_the_law(&lines(former), &lines(now)), breaks, "{former} => {now}");
    }
}
