//! The attributes of an opening tag.

use std::sync::LazyLock;

use regex::Regex;

use super::catalogue::Command;

static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^\s*([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*"([^"]*)""#).expect("a constant pattern")
});

/// More attributes than any command has; bounds the work on a hostile tag.
const LIMIT: usize = 16;

/// An opening tag's attributes, in the catalogue's order, and what follows its `]`.
pub(super) struct Opening<'a> {
    pub(super) values: Vec<&'a str>,
    pub(super) after: &'a str,
    pub(super) warnings: Vec<String>,
}

/// Reads what follows a command's name in its opening tag. An error is a phrase that says what is
/// wrong with the tag.
pub(super) fn read<'a>(command: &Command, text: &'a str) -> Result<Opening<'a>, String> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut rest = text;
    while let Some(pair) = PAIR.captures(rest) {
        let (whole, [key, value]) = pair.extract();
        if found.iter().any(|(k, _)| *k == key) {
            return Err(format!("the attribute {key} stands there twice"));
        }
        if found.len() == LIMIT {
            return Err(format!("there are more than {LIMIT} attributes"));
        }
        found.push((key, value));
        rest = &rest[whole.len()..];
    }
    let end = rest.trim_start();
    let Some(after) = end.strip_prefix("/]").or_else(|| end.strip_prefix(']')) else {
        return Err(if end.is_empty() {
            "the tag does not end in ]".to_owned()
        } else {
            format!("cannot read `{}` as attributes (key=\"value\") and a closing ]", brief(end))
        });
    };

    let mut warnings = Vec::new();
    for (key, _) in &found {
        if !command.attributes.contains(key) {
            warnings.push(format!(
                "the attribute {key} is unknown to {} and was ignored",
                command.name
            ));
        }
    }
    let mut values = Vec::with_capacity(command.attributes.len());
    for wanted in command.attributes {
        match found.iter().find(|(key, _)| key == wanted) {
            Some((_, value)) => values.push(*value),
            None => return Err(format!("the attribute {wanted} is missing")),
        }
    }
    Ok(Opening { values, after, warnings })
}

/// The first characters of `text`, for quoting.
pub(super) fn brief(text: &str) -> String {
    const LIMIT: usize = 100;
    let shown = crate::text::visible_line(text.trim_end());
    match shown.char_indices().nth(LIMIT) {
        None => shown.into_owned(),
        Some((cut, _)) => format!("{}…", &shown[..cut]),
    }
}
