//! Reads the path in a tag, and removes decoration that a chat window or habit has added. The path is never a guess: if
//! two paths are possible, the tag is refused.

use std::sync::LazyLock;

use memchr::memchr;
use regex::Regex;
use serde::Deserialize;

use super::attributes::RefusedPattern;
use crate::protocol::content_checks::TablePattern;
use crate::protocol::mistake::{Problem, brief};
use crate::protocol::{Kind, Mistake, PathFault, RelPath, Warning, WarningKind};

/// The problem with a block.
pub(super) enum TagError {
    /// A path is outside the workspace. `given` is the value as it was sent.
    PathOutside {
        given: String,
        fault: PathFault,
    },
    Problem(Problem),
}

impl From<Problem> for TagError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

#[derive(Deserialize)]
struct PathTables {
    marks: Vec<(String, String)>,
    refused: Vec<RefusedPattern>,
    placeholder_name: TablePattern,
    may_be_placeholder: TablePattern,
}

static TABLES: LazyLock<PathTables> =
    LazyLock::new(|| toml::from_str(include_str!("data/paths.toml")).expect("a constant table"));

/// All patterns combined into one, because few paths match any of them.
static ANY: LazyLock<Regex> = LazyLock::new(|| {
    let refused = TABLES.refused.iter().map(|refused| &refused.pattern);
    let all = refused.chain([&TABLES.placeholder_name, &TABLES.may_be_placeholder]);
    let all: Vec<String> = all.map(|pattern| format!("(?:{})", pattern.as_str())).collect();
    Regex::new(&all.join("|")).expect("patterns of a constant table")
});

/// Reads a path from the value of the attribute `key`. None stands for the workspace itself. An absolute path is
/// accepted if it is in the workspace, whose real path is `workspace`. Repairs are reported as warnings.
pub(super) fn read(
    kind: Kind,
    (key, value): (&str, &str),
    workspace: Option<&str>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<RelPath>, TagError> {
    let may_be_workspace = matches!(kind, Kind::List | Kind::Search);
    let (mut given, mut has_blanks) = (value.trim(), value.trim() != value);
    if may_be_workspace && matches!(given, "" | "." | "./") {
        return Ok(None);
    }
    if may_be_workspace || kind == Kind::Move {
        let folder = given.trim_end_matches(|c: char| c == '/' || c.is_whitespace());
        if !folder.is_empty() {
            has_blanks |= given[folder.len()..].contains(char::is_whitespace);
            given = folder;
        }
    }
    let unclear = |(mistake, phrase): (Mistake, &str)| {
        TagError::Problem(Problem::new(mistake, format!("{key}=\"{}\" {phrase}", brief(given))))
    };
    let bare = undecorated(given);
    let unlinked = unlinked(bare).map_err(unclear)?;
    let text = unlinked.as_deref().unwrap_or(bare);
    // Few paths match any of the patterns.
    let suspect = |path: &str| Some(letters(path)).filter(|letters| ANY.is_match(letters));
    let mut suspected = suspect(text);
    refuse(suspected.as_deref(), text).map_err(unclear)?;
    // `\_` may be an escaped `_`, or a Windows separator followed by `_`.
    if text.contains('\\') && !text.replace("\\_", "").contains(['\\', '_']) {
        let [one, other] = ["", "/"].map(|sign| brief(&text.replace('\\', sign)));
        let phrase =
            format!("may be '{one}' with escaped characters or '{other}' with \\ between folders");
        return Err(unclear((Mistake::PathBackslashes, &phrase)));
    }
    let inside = workspace.and_then(|workspace| inside(workspace, text));
    if may_be_workspace && inside.as_deref() == Some("") {
        return Ok(None);
    }
    let path = RelPath::parse(inside.as_deref().unwrap_or(text))
        .map_err(|fault| TagError::PathOutside { given: value.to_owned(), fault })?;
    if path.as_str() != text {
        suspected = suspect(path.as_str());
        refuse(suspected.as_deref(), text).map_err(unclear)?;
    }
    // A name after `./` is never a placeholder.
    let suspected = suspected.filter(|_| !text.starts_with("./"));
    if suspected.as_ref().is_some_and(|letters| TABLES.placeholder_name.is_match(letters)) {
        let phrase =
            format!("is a placeholder and not a real path (a file of that very name is ./{path})");
        return Err(unclear((Mistake::PathPlaceholder, &phrase)));
    }
    if suspected.is_some_and(|letters| TABLES.may_be_placeholder.is_match(&letters)) {
        let text = format!("the path '{path}' looks like a placeholder, and was used as written");
        warnings.push(Warning::new(WarningKind::PathPlaceholder, text));
    }
    let read_as =
        |advice: &str| format!("the path '{}' was read as '{path}'{advice}", brief(given));
    let repair = if inside.is_some() {
        Some((WarningKind::PathDecorated, read_as(": write paths relative to the workspace")))
    } else if text != given {
        Some((WarningKind::PathDecorated, read_as("")))
    } else if text.contains('\\') {
        Some((WarningKind::PathBackslashes, read_as(": write / between folders")))
    } else if has_blanks {
        let text = format!("the path '{path}' was read without the blanks around it");
        Some((WarningKind::PathDecorated, text))
    } else {
        None
    };
    warnings.extend(repair.map(|(sort, text)| Warning::new(sort, text)));
    // Some systems create file names with such spaces.
    let blank = path.as_str().chars().find(|c| c.is_whitespace() && *c != ' ');
    if let Some(c) = blank {
        let text = format!(
            "the path '{path}' contains U+{:04X}, which a chat window may insert for a blank; it was used as written",
            u32::from(c)
        );
        warnings.push(Warning::new(WarningKind::StrangeCharacters, text));
    }
    Ok(Some(path))
}

/// Converts an absolute path to one relative to the workspace. None if it is outside, or if a `..` may lead outside.
fn inside(workspace: &str, path: &str) -> Option<String> {
    fn components(path: &str) -> impl Iterator<Item = &str> {
        path.split('/').filter(|part| !matches!(*part, "" | "."))
    }
    let is_absolute = path.starts_with('/') && workspace.starts_with('/');
    let mut rest = components(path);
    let is_inside = is_absolute && components(workspace).all(|part| rest.next() == Some(part));
    let rest: Vec<&str> = rest.collect();
    (is_inside && !rest.contains(&"..")).then(|| rest.join("/"))
}

/// Refuses a path whose suspicious `letters` match a row of the table. `sent` is the path as it was sent.
fn refuse(letters: Option<&str>, sent: &str) -> Result<(), (Mistake, &'static str)> {
    let Some(letters) = letters else { return Ok(()) };
    let is_guarded = sent.starts_with("./");
    let is_refused = |refused: &&RefusedPattern| {
        (refused.always || !is_guarded) && refused.pattern.is_match(letters)
    };
    let refused = TABLES.refused.iter().find(is_refused);
    refused.map_or(Ok(()), |refused| Err((refused.mistake, refused.phrase.as_str())))
}

/// A path in lower case, with `/` as separator, and without `_`, `-`, spaces and a leading `./`.
fn letters(path: &str) -> String {
    let mut letters = String::with_capacity(path.len());
    let kept = path.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.extend(kept.map(|c| if c == '\\' { '/' } else { c.to_ascii_lowercase() }));
    letters.drain(..letters.len() - letters.trim_start_matches("./").len());
    letters
}

/// Removes the pairs of marks that enclose a text.
fn undecorated(mut text: &str) -> &str {
    // No mark begins with a letter or digit, but nearly every path does.
    if text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return text;
    }
    while let Some(inner) = TABLES.marks.iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(open.as_str())?.strip_suffix(close.as_str())?;
        (!inner.is_empty()).then_some(inner)
    }) {
        text = inner.trim();
    }
    text
}

/// The text without the link that a chat made of a file name, if the target is the same name. None without a link.
fn unlinked(text: &str) -> Result<Option<String>, (Mistake, &'static str)> {
    let link = memchr(b']', text.as_bytes()).and_then(|_| text.split_once("]("));
    let Some((before, rest)) = link else { return Ok(None) };
    let plain = || {
        let (folder, name) = before.rsplit_once('[')?;
        let (target, after) = rest.split_once(')')?;
        let scheme = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
        let target = scheme.unwrap_or(target);
        let is_same = target == name || target.strip_suffix('/') == Some(name);
        let is_clear = is_same && !name.is_empty() && !after.contains("](");
        is_clear.then(|| format!("{folder}{name}{after}"))
    };
    let phrase = "contains a link, so which file is meant is unclear";
    plain().map(Some).ok_or((Mistake::PathLink, phrase))
}
