//! The path in a tag, without what a chat window or a habit put around it. Never guessed: where two
//! paths could be meant, none is taken.

use super::attributes::brief;
use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, PathFault, RelPath, Warning, WarningSort};

/// Why a path was not taken.
pub(super) enum Refusal {
    /// It is no path inside the workspace.
    Fault(PathFault),
    /// It is none at all, for this reason.
    Unclear(Wrong),
}

/// Reads the value of a `path` that may be the workspace itself, which is None.
pub(super) fn read_folder(
    value: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Option<RelPath>, Refusal> {
    if matches!(value.trim(), "" | "." | "./") {
        return Ok(None);
    }
    read_either(value, warnings).map(Some)
}

/// Reads the value of a `path` that may be a folder's, which may end in a slash.
pub(super) fn read_either(value: &str, warnings: &mut Vec<Warning>) -> Result<RelPath, Refusal> {
    let path = value.trim().trim_end_matches('/');
    if path.is_empty() {
        return read(value, warnings);
    }
    let found = read(path, warnings)?;
    if value.trim() != value && undecorated(path) == path {
        warnings.push(trimmed(value, &found));
    }
    Ok(found)
}

/// Reads the value of a `path`. What was repaired is told in `warnings`.
pub(super) fn read(value: &str, warnings: &mut Vec<Warning>) -> Result<RelPath, Refusal> {
    let given = value.trim();
    let bare = undecorated(given);
    let unlinked = unlinked(bare)?;
    let text = unlinked.as_deref().unwrap_or(bare);
    let none = |(sort, told): (Mistake, String)| {
        Refusal::Unclear(wrong(sort, format!("path=\"{}\" {told}", brief(given))))
    };
    if let Some(found) = no_path(text) {
        return Err(none(found));
    }
    if is_escaped_or_in_a_folder(text) {
        let told = format!(
            "path=\"{}\" may be '{}' with escaped characters or '{}' with \\ between folders",
            brief(given),
            brief(&text.replace('\\', "")),
            brief(&text.replace('\\', "/"))
        );
        return Err(Refusal::Unclear(wrong(Mistake::PathBackslashes, told)));
    }
    let path = RelPath::parse(text).map_err(Refusal::Fault)?;
    warnings.extend(stood_for(text, &path).map_err(none)?);
    if text != given {
        let told = format!("the path '{}' was read as '{path}'", brief(given));
        warnings.push(Warning::new(WarningSort::PathDecorated, told));
    } else if text.contains('\\') {
        let told =
            format!("the path '{}' was read as '{path}': write / between folders", brief(value));
        warnings.push(Warning::new(WarningSort::PathBackslashes, told));
    } else if given != value {
        warnings.push(trimmed(value, &path));
    }
    // Some systems write them into names of their own.
    if let Some(c) = path.as_str().chars().find(|c| c.is_whitespace() && *c != ' ') {
        let told = format!(
            "the path '{path}' holds U+{:04X}, as a chat window may put in for a blank; it was taken as it is written",
            u32::from(c)
        );
        warnings.push(Warning::new(WarningSort::StrangeCharacters, told));
    }
    Ok(path)
}

/// What a path is that is none in any workspace, if it is that: a placeholder, an address, one in a home,
/// one with a mark of the chat in it. Told as it follows the path's name.
pub(in crate::protocol) fn no_path(text: &str) -> Option<(Mistake, String)> {
    let (sort, told) = if is_placeholder(text) {
        (Mistake::PathPlaceholder, PLACEHOLDER)
    } else if is_elsewhere(text) {
        (Mistake::PathElsewhere, "is not relative to the workspace")
    } else if text.contains('【') && text.contains('†') {
        (Mistake::PathCitation, "holds a citation mark of the chat")
    } else {
        return None;
    };
    Some((sort, told.to_owned()))
}

const PLACEHOLDER: &str = "is a placeholder and no real path";

/// What is told of a path, which was sent as `text`, that may stand for one to be put in and is taken all
/// the same.
///
/// # Errors
/// It stands for one: told as it follows the path's name.
pub(in crate::protocol) fn stood_for(
    text: &str,
    path: &RelPath,
) -> Result<Option<Warning>, (Mistake, String)> {
    let none = |told: String| Err((Mistake::PathPlaceholder, told));
    // As in `path//to/file`.
    if is_placeholder(path.as_str()) {
        return none(PLACEHOLDER.to_owned());
    }
    match stands_for(path.as_str()) {
        // Behind `./` it is a name like another.
        Some(Likely::Placeholder) if !text.starts_with("./") => {
            none(format!("{PLACEHOLDER} (a file of that very name is ./{path})"))
        }
        Some(Likely::Name) => {
            let told = format!(
                "the path '{path}' reads like a placeholder, and was taken as it is written"
            );
            Ok(Some(Warning::new(WarningSort::PathPlaceholder, told)))
        }
        _ => Ok(None),
    }
}

/// What is told of a path with blanks around it.
fn trimmed(value: &str, path: &RelPath) -> Warning {
    let ends = [("before", value.trim_start()), ("behind", value.trim_end())];
    let ends: Vec<&str> = ends.iter().filter(|end| end.1 != value).map(|end| end.0).collect();
    let told = format!("the path '{path}' was read without the blanks {} it", ends.join(" and "));
    Warning::new(WarningSort::PathDecorated, told)
}

/// Without pairs of marks around it.
fn undecorated(mut text: &str) -> &str {
    const PAIRS: [(&str, &str); 8] = [
        ("`", "`"),
        ("**", "**"),
        ("*", "*"),
        ("\"", "\""),
        ("'", "'"),
        ("“", "”"),
        ("‘", "’"),
        ("«", "»"),
    ];
    while let Some(inner) = PAIRS.iter().find_map(|(open, close)| {
        text.strip_prefix(open)?.strip_suffix(close).filter(|inner| !inner.is_empty())
    }) {
        text = inner.trim();
    }
    text
}

/// The text of a link that was made of a file's name, where it is that of its target; None where
/// there is no link.
fn unlinked(text: &str) -> Result<Option<String>, Refusal> {
    let Some((before, rest)) = text.split_once("](") else { return Ok(None) };
    let unclear = || {
        let told = format!(
            "path=\"{}\" holds a link, which leaves open which file is meant,",
            brief(text)
        );
        Refusal::Unclear(wrong(Mistake::PathLink, told))
    };
    let (folder, name) = before.rsplit_once('[').ok_or_else(unclear)?;
    let (target, after) = rest.split_once(')').ok_or_else(unclear)?;
    let scheme = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
    let target = scheme.unwrap_or(target);
    let same = target == name || target.strip_suffix('/') == Some(name);
    if !same || name.is_empty() || after.contains("](") {
        return Err(unclear());
    }
    Ok(Some(format!("{folder}{name}{after}")))
}

/// Whether it stands in a form for a path to be put in.
fn is_placeholder(text: &str) -> bool {
    let unified = text.replace('\\', "/");
    let inner = unified.trim_start_matches("./");
    let first = |words: &str| {
        inner.get(..words.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(words))
            && matches!(inner.as_bytes().get(words.len()), None | Some(b'/'))
    };
    // Also as in `<name>.py`.
    let in_angles = |part: &str| part.starts_with('<') && part.contains('>');
    ["path/to", "relative/path", "your/path"].iter().any(|words| first(words))
        || in_angles(inner)
        || inner.split('/').any(|part| in_angles(part) || matches!(part, "..." | "…"))
}

/// What a path may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likely {
    /// For one that is to be put in.
    Placeholder,
    /// For one of these, or for itself.
    Name,
}

/// Whether a path reads like one that is to be put in: `{path}`, `[path]`, `your_file.py`. Templates and
/// routes have names in brackets (`{{cookiecutter.slug}}`, `[slug].tsx`), so only words that say nothing
/// but what a path is are meant, and within a longer path these may be a name as well.
fn stands_for(text: &str) -> Option<Likely> {
    if in_brackets(text).is_some_and(tells_nothing) {
        return Some(Likely::Placeholder);
    }
    let mut likely = None;
    for part in text.split('/') {
        let (stem, ending) = part.split_once('.').unwrap_or((part, ""));
        match letters(stem).as_str() {
            "file" | "filename" if ending == "ext" => return Some(Likely::Placeholder),
            "filename" | "filepath" if part == text && ending.is_empty() => {
                likely = Some(Likely::Name);
            }
            "yourfile" | "yourfilename" | "yourfilepath" | "yourfilehere" | "yourpath"
            | "yourscript" | "pathtofile" | "pathtoyourfile" | "pathtothefile" => {
                return Some(Likely::Placeholder);
            }
            "yourproject" | "yourfolder" | "yourdirectory" | "yourmodule" | "yourpackage"
            | "yourclass" | "yourtest" => likely = Some(Likely::Name),
            _ => {}
        }
        let in_braces = part.starts_with('{') && !part.starts_with("{{");
        if in_braces && in_brackets(stem).is_some_and(tells_nothing) {
            likely = Some(Likely::Name);
        }
    }
    likely
}

/// What stands between brackets that a text begins and ends with.
fn in_brackets(text: &str) -> Option<&str> {
    [("${", "}"), ("{{", "}}"), ("{", "}"), ("[", "]")].iter().find_map(|(open, close)| {
        let inner = text.strip_prefix(open)?.strip_suffix(close)?;
        (!inner.contains(['{', '}', '[', ']'])).then(|| inner.trim())
    })
}

/// Whether a name says only what a path is.
fn tells_nothing(name: &str) -> bool {
    let name = letters(name);
    let name = ["your", "the", "relative", "new", "target"]
        .iter()
        .fold(name.as_str(), |name, word| name.strip_prefix(word).unwrap_or(name));
    let words = [
        "path",
        "pathtofile",
        "pathhere",
        "file",
        "filepath",
        "filename",
        "folder",
        "foldername",
        "directory",
        "dir",
    ];
    words.contains(&name)
}

/// The letters of a name, small; other characters but `_`, `-` and blanks are kept.
fn letters(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Whether a path that is written like that is taken for something else, and for itself behind `./`.
pub(super) fn needs_guard(path: &RelPath) -> bool {
    let text = path.as_str();
    undecorated(text) != text
        || text.starts_with(char::is_whitespace)
        || is_elsewhere(text)
        || stands_for(text) == Some(Likely::Placeholder)
}

/// Whether it is an address, or begins in somebody's home.
fn is_elsewhere(text: &str) -> bool {
    let begins =
        |with: &str| text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    text.starts_with("~/") || ["file:/", "http://", "https://"].into_iter().any(begins)
}

/// Whether each `_` has a `\` before it, as Markdown escapes them, and there is no other: then it may
/// as well stand between folders.
fn is_escaped_or_in_a_folder(text: &str) -> bool {
    let signs = text.matches('_').count();
    signs > 0 && signs == text.matches("\\_").count() && signs == text.matches('\\').count()
}
