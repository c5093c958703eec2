//! The path in a tag, without what a chat window or a habit put around it. It is never guessed: if two
//! paths could be meant, the tag is refused.

use std::sync::LazyLock;

use regex::Regex;

use super::wrong::{Wrong, wrong};
use crate::protocol::mistake::brief;
use crate::protocol::{Kind, Mistake, PathFault, RelPath, Warning, WarningSort};

/// Why a path cannot be used.
pub(super) enum Refusal {
    /// It is no path inside the workspace. `given` is the value as it was sent.
    Outside { given: String, fault: PathFault },
    /// It is no path at all.
    Unclear(Wrong),
}

/// Reads the value of an attribute `key` that is a path, for a command of that kind. None is the workspace itself.
/// An absolute path is used if it lies in the workspace, whose real path is `workspace`. What was
/// repaired is a warning.
pub(super) fn read_as(
    kind: Kind,
    (key, value): (&str, &str),
    workspace: Option<&str>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<RelPath>, Refusal> {
    let may_be_workspace = matches!(kind, Kind::List | Kind::Search);
    if may_be_workspace && matches!(value.trim(), "" | "." | "./") {
        return Ok(None);
    }
    let mut given = value.trim();
    if may_be_workspace || kind == Kind::Move {
        let folder = given.trim_end_matches('/');
        given = if folder.is_empty() { given } else { folder };
    }
    let unclear = |sort, phrase: String| {
        let phrase = format!("{key}=\"{}\" {phrase}", brief(given));
        Refusal::Unclear(wrong(sort, phrase))
    };
    let outside = |fault| Refusal::Outside { given: value.to_owned(), fault };
    let bare = undecorated(given);
    let unlinked =
        unlinked(bare).map_err(|phrase| unclear(Mistake::PathLink, phrase.to_owned()))?;
    let text = unlinked.as_deref().unwrap_or(bare);
    if let Some((sort, phrase)) = no_path(text) {
        return Err(unclear(sort, phrase));
    }
    if has_escapes_or_folders(text) {
        let (one, other) = (brief(&text.replace('\\', "")), brief(&text.replace('\\', "/")));
        let phrase =
            format!("may be '{one}' with escaped characters or '{other}' with \\ between folders");
        return Err(unclear(Mistake::PathBackslashes, phrase));
    }
    let inside = workspace.and_then(|workspace| inside(workspace, text));
    if may_be_workspace && inside.as_deref() == Some("") {
        return Ok(None);
    }
    let path = RelPath::parse(inside.as_deref().unwrap_or(text)).map_err(outside)?;
    let placeholder = stood_for(text, &path).map_err(|(sort, phrase)| unclear(sort, phrase))?;
    warnings.extend(placeholder);
    let shown = brief(given);
    if inside.is_some() {
        let text = format!(
            "the path '{shown}' was read as '{path}': write paths relative to the workspace"
        );
        warnings.push(Warning::new(WarningSort::PathDecorated, text));
    } else if text != given {
        let text = format!("the path '{shown}' was read as '{path}'");
        warnings.push(Warning::new(WarningSort::PathDecorated, text));
    } else if text.contains('\\') {
        let text = format!("the path '{shown}' was read as '{path}': write / between folders");
        warnings.push(Warning::new(WarningSort::PathBackslashes, text));
    } else if value.trim() != value {
        let text = format!("the path '{path}' was read without the blanks around it");
        warnings.push(Warning::new(WarningSort::PathDecorated, text));
    }
    // Some systems write them into names of their own.
    if let Some(c) = path.as_str().chars().find(|c| c.is_whitespace() && *c != ' ') {
        let text = format!(
            "the path '{path}' contains U+{:04X}, as a chat window may put in for a blank; it was used as it is written",
            u32::from(c)
        );
        warnings.push(Warning::new(WarningSort::StrangeCharacters, text));
    }
    Ok(Some(path))
}

/// An absolute path without the components of the workspace that it begins with. None if it lies elsewhere, or
/// if a `..` may lead out.
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

/// Why a text is no path in any workspace, as a phrase that follows it: it is a placeholder, an address, a path
/// in somebody's home, or contains a citation mark of the chat.
pub(in crate::protocol) fn no_path(text: &str) -> Option<(Mistake, String)> {
    let (sort, phrase) = if is_placeholder(text) {
        (Mistake::PathPlaceholder, PLACEHOLDER)
    } else if is_elsewhere(text) {
        (Mistake::PathElsewhere, "is not relative to the workspace")
    } else if text.contains('【') && text.contains('†') {
        (Mistake::PathCitation, "contains a citation mark of the chat")
    } else {
        return None;
    };
    Some((sort, phrase.to_owned()))
}

const PLACEHOLDER: &str = "is a placeholder and no real path";

/// A warning about a path, sent as `text`, that reads like a placeholder but may be a name.
///
/// # Errors
/// It is a placeholder: the phrase follows the path.
pub(in crate::protocol) fn stood_for(
    text: &str,
    path: &RelPath,
) -> Result<Option<Warning>, (Mistake, String)> {
    let none = |phrase: String| Err((Mistake::PathPlaceholder, phrase));
    // As in `path//to/file`.
    if is_placeholder(path.as_str()) {
        return none(PLACEHOLDER.to_owned());
    }
    let letters = letters(path.as_str());
    // Behind `./` it is a name like another.
    if GENERIC.is_match(&letters) && !text.starts_with("./") {
        return none(format!("{PLACEHOLDER} (a file of that very name is ./{path})"));
    }
    let may_be = !GENERIC.is_match(&letters) && MAYBE_GENERIC.is_match(&letters);
    let text = format!("the path '{path}' reads like a placeholder, and was used as it is written");
    Ok(may_be.then(|| Warning::new(WarningSort::PathPlaceholder, text)))
}

/// Whether a path that is written like that is read as something else, but for itself behind `./`.
pub(super) fn needs_guard(path: &RelPath) -> bool {
    let text = path.as_str();
    undecorated(text) != text
        || text.starts_with(char::is_whitespace)
        || is_elsewhere(text)
        || GENERIC.is_match(&letters(text))
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

/// The text of a link that a chat made of a file's name, whose target is that name; None if there is no
/// link.
fn unlinked(text: &str) -> Result<Option<String>, &'static str> {
    const UNCLEAR: &str = "contains a link, so which file is meant is not clear,";
    let Some((before, rest)) = text.split_once("](") else { return Ok(None) };
    let (folder, name) = before.rsplit_once('[').ok_or(UNCLEAR)?;
    let (target, after) = rest.split_once(')').ok_or(UNCLEAR)?;
    let scheme = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
    let target = scheme.unwrap_or(target);
    let is_same = target == name || target.strip_suffix('/') == Some(name);
    let is_clear = is_same && !name.is_empty() && !after.contains("](");
    is_clear.then(|| Some(format!("{folder}{name}{after}"))).ok_or(UNCLEAR)
}

static PLACEHOLDERS: LazyLock<Regex> = LazyLock::new(|| {
    let forms = r"^(path/to|relative/path|your/path)(/|$)|^<.*>|(^|/)<[^/]*>|(^|/)(\.\.\.|…)(/|$)";
    Regex::new(forms).expect("a constant pattern")
});

/// Whether a text is a form that a path is to be put into: `path/to/x`, `<name>.py`, `...`.
fn is_placeholder(text: &str) -> bool {
    let text = text.replace('\\', "/").to_lowercase();
    PLACEHOLDERS.is_match(text.trim_start_matches("./"))
}

/// Words that say only what a path is. Templates and routes have names in brackets as well
/// (`{{cookiecutter.slug}}`, `[slug].tsx`).
const WORDS: &str = "(your)?(the)?(relative)?(new)?(target)?(path(tofile|here)?|file(path|name)?|folder(name)?|directory|dir)";

/// Paths that stand for one: `{path}`, `[path]`, `your_file.py`, by their letters.
static GENERIC: LazyLock<Regex> = LazyLock::new(|| {
    let forms = format!(
        r"^(\$\{{{WORDS}\}}|\{{\{{{WORDS}\}}\}}|\{{{WORDS}\}}|\[{WORDS}\])$|(^|/)(file|filename)\.ext(/|$)|(^|/)(your(file(name|path|here)?|path|script)|pathto(your|the)?file)(\.[^/]*)?(/|$)"
    );
    Regex::new(&forms).expect("a constant pattern")
});

/// Paths that may stand for one, or for themselves.
static MAYBE_GENERIC: LazyLock<Regex> = LazyLock::new(|| {
    let forms = format!(
        r"^file(name|path)$|(^|/)your(project|folder|directory|module|package|class|test)(\.[^/]*)?(/|$)|(^|/)\{{{WORDS}\}}(\.[^/]*)?(/|$)"
    );
    Regex::new(&forms).expect("a constant pattern")
});

/// A path in small letters, without `_`, `-` and blanks.
fn letters(path: &str) -> String {
    path.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Whether it is an address, or begins in somebody's home.
fn is_elsewhere(text: &str) -> bool {
    let begins =
        |with: &&str| text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    text.starts_with("~/") || ["file:/", "http://", "https://"].iter().any(begins)
}

/// Whether each `_` has a `\` before it, as Markdown escapes them, and there is no other: it may as well
/// stand between folders.
fn has_escapes_or_folders(text: &str) -> bool {
    let signs = text.matches('_').count();
    signs > 0 && signs == text.matches("\\_").count() && signs == text.matches('\\').count()
}
