//! What a tag lacks, or holds that its command does not know.

use super::attributes::brief;
use super::catalogue::Command;
use super::range::is_number;
use super::wrong::{Wrong, wrong};
use crate::protocol::{Kind, Mistake, Warning, WarningSort};

/// That a tag cannot be read from there on.
pub(super) fn unreadable(command: &Command, from: &str) -> Wrong {
    let told = if from.trim_end().is_empty() {
        "the tag does not end in ]".to_owned()
    } else {
        format!("cannot read `{}` as attributes (key=\"value\") and a closing ]", brief(from))
    };
    let told = match command.kind {
        Kind::Search if from.contains('"') => {
            format!(
                "{told} (a pattern that holds double quotes goes in single ones, without \\ before them: pattern='print(\"x\")')"
            )
        }
        _ => told,
    };
    wrong(Mistake::TagUnreadable, told)
}

/// What is told of attributes that the command does not know. What ends the session may have been meant
/// to depend on one that reads like a condition, and a command to run where one says.
pub(super) fn unknown(
    command: &Command,
    found: &[(String, String)],
) -> Result<Vec<Warning>, Wrong> {
    let mut warnings = Vec::new();
    let is_known = |key: &str| command.attributes.iter().any(|known| known.name == key);
    for (key, _) in found.iter().filter(|(key, _)| !is_known(key)) {
        let but = match command.kind {
            // Elsewhere it may do harm.
            Kind::Run if is_place(key) => {
                "whose commands begin at the workspace root (let the first line be `cd` and the folder)"
            }
            Kind::Done if is_condition(key) => "which knows only the condition if=\"ok\"",
            _ => "",
        };
        let key = brief(key);
        if !but.is_empty() {
            let told = format!("the attribute {key} is unknown to {}, {but},", command.name);
            return Err(wrong(Mistake::UnknownAttribute, told));
        }
        let told = format!("the attribute {key} is unknown to {} and was ignored", command.name);
        warnings.push(Warning::new(WarningSort::UnknownAttribute, told));
    }
    Ok(warnings)
}

/// Whether an attribute reads like a condition: `if_ok`, `when`, `only_if`, `on_success`.
fn is_condition(key: &str) -> bool {
    const WORDS: [&str; 5] = ["ok", "on", "once", "until", "after"];
    const BEGINS: [&str; 7] = ["if", "only", "when", "unless", "condition", "provided", "require"];
    let key = key.to_ascii_lowercase();
    let mut words = key.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| WORDS.contains(&word) || BEGINS.iter().any(|begin| word.starts_with(begin)))
}

/// Whether an attribute says where a command is to run: `cwd`, `dir`, `working_directory`.
fn is_place(key: &str) -> bool {
    const ENDS: [&str; 6] = ["cwd", "pwd", "dir", "directory", "folder", "path"];
    const WORDS: [&str; 6] = ["cd", "wd", "root", "location", "in", "at"];
    let key = key.to_ascii_lowercase();
    WORDS.contains(&&*key) || ENDS.iter().any(|end| key.ends_with(end))
}

/// That an attribute is missing which the command needs.
pub(super) fn missing(command: &Command, name: &str, found: &[(String, String)]) -> Wrong {
    let range = found.iter().find(|(key, value)| {
        command.attributes.iter().any(|known| known.name == key) && is_range(value)
    });
    match range {
        Some((key, value)) => {
            let value = brief(value);
            let told = format!("{key}=\"{value}\" is no line number, and {name} is missing");
            wrong(Mistake::LineNumber, told)
        }
        None => wrong(Mistake::AttributeMissing, format!("the attribute {name} is missing")),
    }
}

fn is_range(value: &str) -> bool {
    value.split_once('-').is_some_and(|(from, to)| is_number(from.trim()) && is_number(to.trim()))
}

/// The attribute that was given what belongs into the body, if one was.
pub(super) fn carries_its_body<'a>(
    command: &Command,
    found: &'a [(String, String)],
) -> Option<&'a str> {
    let bodies: &[&str] = match command.kind {
        Kind::Run => &["command", "cmd"],
        Kind::Create | Kind::Edit => &["content", "contents"],
        Kind::Message | Kind::Done => &["text", "message", "summary"],
        _ => &[],
    };
    let is_body = |key: &&str| bodies.iter().any(|body| body.eq_ignore_ascii_case(key));
    found.iter().map(|(key, _)| key.as_str()).find(is_body)
}
