//! Lines that stand for others where a file would become shorter. They say it with fewer words than
//! those that count everywhere, or with dots alone, and may be meant as they are in a file that grows.

use super::{Between, Filled, filled, said};
use crate::protocol::RelPath;
use crate::protocol::tags::is_code;

/// Those of the whole content that the file at `path` is to have, with where they begin; where that
/// does not count, all that could be one in some file.
pub(super) fn lines<'a>(
    new: &'a str,
    path: Option<&RelPath>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let ending = path.map(|path| {
        let name = path.name().to_ascii_lowercase();
        name.rsplit_once('.').map(|(_, end)| end.to_owned()).unwrap_or_default()
    });
    let is_code = path.is_none_or(is_code);
    let mut quotes = Between::quotes(new);
    let stands = move |line: &Filled| {
        let ending = ending.as_deref();
        if is_dots(line.shown) {
            return is_code
                && may_be_left_by(line.at.1, line.before, ending)
                && !(is_python(ending) && quotes.is_there(line.at.0));
        }
        // A body of which nothing but that is said.
        let pass = line.shown.strip_prefix("pass").map(str::trim_start).filter(|_| is_code);
        let stays = |words: &str| tells_of_more(words) || says_it_stays(words, line.shown);
        // What else is set off in a text counts where more is lost.
        let counts =
            |marker: Option<&str>| is_code || marker.is_some() || line.shown.starts_with('[');
        said(pass.unwrap_or(line.shown), is_code)
            .is_some_and(|(marker, words)| counts(marker) && stays(words))
    };
    filled(new).filter(stands).map(|line| line.at)
}

fn is_python(ending: Option<&str>) -> bool {
    matches!(ending, Some("py" | "pyx" | "ipy"))
}

/// Whether a line is nothing but dots.
fn is_dots(line: &str) -> bool {
    matches!(line, "..." | "…" | "[...]" | "[…]")
}

/// Whether dots alone, behind such a line, can be no code in a file with that ending.
fn may_be_left_by(line: &str, before: &str, ending: Option<&str>) -> bool {
    if line.contains('…') {
        return true;
    }
    // The last of the parameters in C, Lua and R.
    if before.ends_with([',', '(']) {
        return false;
    }
    match ending {
        // Of a stub it is what a body is, and in YAML the end of a document.
        Some("pyi" | "yaml" | "yml") => false,
        _ if is_python(ending) && line.starts_with([' ', '\t']) => !may_be_a_body(before),
        _ => true,
    }
}

/// Whether dots alone may be what a body of Python is, below such a line, or of an example in its words.
fn may_be_a_body(before: &str) -> bool {
    before.is_empty()
        || before.ends_with([':', '"', '\''])
        || ["#", "@", ">>>", "..."].iter().any(|begin| before.starts_with(begin))
        || before.rsplit_once('#').is_some_and(|(code, _)| code.trim_end().ends_with(':'))
        || is_declared(before)
}

/// Whether a line only names something and its type, as the classes do that say what others have.
fn is_declared(line: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.split_once(": ").is_some_and(|(name, of)| name.chars().all(is_name) && !of.contains('='))
}

/// Whether these words say of what is not there that it stays: each has to be one that such a line is
/// made of, since a comment that tells anything else tells of the code.
pub(super) fn tells_of_more(words: &str) -> bool {
    const FILLING: [&str; 16] = [
        "the", "your", "my", "our", "all", "of", "this", "in", "is", "are", "as", "for", "go",
        "goes", "and", "exactly",
    ];
    const REST: [&str; 8] =
        ["rest", "remaining", "remainder", "existing", "other", "others", "previous", "original"];
    const MANY: [&str; 27] = [
        "code",
        "file",
        "content",
        "contents",
        "method",
        "methods",
        "function",
        "functions",
        "imports",
        "class",
        "classes",
        "implementation",
        "logic",
        "lines",
        "rules",
        "styles",
        "routes",
        "tests",
        "fields",
        "properties",
        "handlers",
        "definitions",
        "module",
        "script",
        "program",
        "component",
        "components",
    ];
    const STAYS: [&str; 11] = [
        "here",
        "unchanged",
        "unmodified",
        "untouched",
        "intact",
        "remain",
        "remains",
        "stay",
        "stays",
        "kept",
        "continues",
    ];
    const OMITTED: [&str; 5] = ["omitted", "elided", "truncated", "snipped", "skipped"];
    const OTHERWISE: [&str; 4] = ["same", "brevity", "keep", "leave"];
    // Others do not name a part of a file without saying what comes of it.
    const CODE: [&str; 6] = ["code", "methods", "functions", "imports", "implementation", "logic"];

    let is_separator = |c: char| c.is_whitespace() || ".…-–—=*_()[]<>,:!/#".contains(c);
    let words = words.to_lowercase();
    let words: Vec<&str> = words.split(is_separator).filter(|word| !word.is_empty()).collect();
    let sets: [&[&str]; 6] = [&FILLING, &REST, &MANY, &STAYS, &OMITTED, &OTHERWISE];
    if words.len() > 10 || !words.iter().all(|word| sets.iter().any(|set| set.contains(word))) {
        return false;
    }
    let has = |set: &[&str]| words.iter().any(|word| set.contains(word));
    if has(&OMITTED) {
        return has(&REST) || has(&["brevity", "code", "implementation"]);
    }
    if has(&["keep", "leave"]) {
        return has(&["rest", "remainder"]) || has(&["code", "implementation"]) && has(&REST);
    }
    if !has(&REST) {
        return false;
    }
    let is_same = has(&["same"]) || words.ends_with(&["as", "is"]);
    has(&STAYS)
        || is_same && !has(&["previous", "original"])
        || has(&["existing"]) && has(&CODE)
        || has(&["rest"]) && has(&MANY)
}

/// Whether these words, of that line, say nothing but that something is left as it was, or out.
fn says_it_stays(words: &str, line: &str) -> bool {
    const STAYS: [&str; 13] = [
        "unchanged",
        "unverändert",
        "same as before",
        "as before",
        "unchanged below",
        "unchanged above",
        "unchanged from here",
        "no change",
        "no changes",
        "no changes below",
        "no changes above",
        "no changes here",
        "no change here",
    ];
    const LEFT_OUT: [&str; 5] = ["snip", "snipped", "truncated", "omitted", "elided"];
    let words = words.trim();
    let inner = words.trim_matches(|c: char| c.is_whitespace() || ".…-–—=*_()[]<>".contains(c));
    // Without anything around it a single word may be said of the code.
    let is_framed = inner.len() < words.len() || line.ends_with("*/") || line.ends_with("-->");
    let inner = inner.to_lowercase();
    let lines = inner.strip_prefix("lines ").or_else(|| inner.strip_prefix("line "));
    if let Some(numbers) = lines.and_then(|rest| rest.strip_suffix(" unchanged")) {
        let is_of_range = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '-' | '–' | ',');
        return numbers.starts_with(|c: char| c.is_ascii_digit())
            && numbers.chars().all(is_of_range);
    }
    STAYS.contains(&inner.as_str()) && (is_framed || inner.contains([' ', 'ä']))
        || is_framed && LEFT_OUT.contains(&inner.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(new: &str, path: &str) -> bool {
        lines(new, Some(&RelPath::parse(path).unwrap())).next().is_some()
    }

    #[test]
    fn lines_that_stand_for_others_are_told_from_comments() {
        for line in [
            "# The rest of your code here",
            "# your existing code here",
            "# Existing code...",
            "# --- existing code ---",
            "# keep the rest as is",
            "# code omitted for brevity",
            "// existing methods",
            "    // other imports remain",
            "/* remaining styles stay the same */",
            "<!-- existing content unchanged -->",
            "{/* rest of the component */}",
            "[rest of file unchanged]",
            "-- previous functions remain",
            "// (implementation omitted)",
            "# (same as before)",
            "# (unchanged)",
            "/* unchanged */",
            "# -- snip --",
            "# ... truncated ...",
            "# lines 4-9 unchanged",
            "# --- unchanged below ---",
            "# no changes below",
            "# <existing code>",
            "pass  # existing implementation",
            "// … (unverändert) …",
        ] {
            assert!(found(&format!("a\n{line}\nb\n"), "a.js"), "{line}");
        }
        for line in [
            "# Existing file",
            "# Keep the original file",
            "# keep other imports",
            "# Other methods",
            "# The rest of the arguments",
            "# same as the previous line",
            "# tests skipped",
            "# here",
            "# all of the tests",
            "# Remaining fields",
            "#[test]",
            "[rest, other]x",
            "rest of file unchanged",
            "print('# existing code')",
            "# existing code that reads 'a'",
            "# snip",
            "# truncated",
            "# unchanged",
            "# unchanged since 1.0",
            "# lines 4-9 are unchanged by it",
            "# line endings unchanged",
            "pass  # keep going",
            "passage = 1",
        ] {
            assert!(!found(&format!("a\n{line}\nb\n"), "a.py"), "{line}");
        }
    }

    #[test]
    fn dots_alone_are_told_from_code() {
        for (new, path, is_one) in [
            ("a\n...\n", "a.py", true),
            ("def f():\n    ...\n", "a.py", false),
            ("def f():\n    g()\n    ...\n", "a.py", true),
            ("def f():\n    'Says.'\n    ...\n", "a.py", false),
            ("class P(Protocol):\n    x: int\n    ...\n", "a.py", false),
            ("def f():\n    x: int = g()\n    ...\n", "a.py", true),
            ("S = \"\"\"\n>>> f()\n0\n...\n\"\"\"\n", "a.py", false),
            ("S = \"\"\"a\"\"\"\ng()\n...\n", "a.py", true),
            ("def f(): ...\n...\n", "a.pyi", false),
            ("a {\n    ...\n}\n", "a.rs", true),
            ("int f(int a,\n    ...\n);\n", "a.h", false),
            ("f(\n  ...\n)\n", "a.R", false),
            ("a: 1\n...\n", "a.yaml", false),
            ("a\n…\n", "a.py", true),
            ("a\n[...]\n", "a.ts", true),
            ("a\n...\n", "a.md", false),
            ("# Existing code\n", "a.md", false),
            ("[rest of the file unchanged]\n", "a.md", true),
        ] {
            assert_eq!(found(new, path), is_one, "{path}: {new}");
        }
    }
}
