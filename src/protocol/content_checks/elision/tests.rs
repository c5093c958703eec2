//! Lines that stand for other lines, and lines that only look like that.

use super::*;

fn path(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

fn finds(text: &str, name: &str, loss: Loss) -> bool {
    let path = path(name);
    let extension = name.rsplit_once('.').map_or("", |(_, end)| end).to_owned();
    let detector = Detector::new(text, FileKind::of(&path), Some(extension), loss);
    candidates(text).any(|(start, line)| detector.is_elision(start, line))
}

/// The smallest loss with which a line of code counts as an elision.
fn least(line: &str, before: &str) -> Option<Loss> {
    let text = format!("{before}\n{line}\nb\n");
    let losses = [Loss::Any, Loss::Some, Loss::Half];
    losses.into_iter().find(|loss| finds(&text, "a.js", *loss))
}

/// Lines, by the smallest loss with which they count as elisions.
const LINES: [(Option<Loss>, &[&str]); 4] = [
    (
        Some(Loss::Any),
        &[
            "// ... rest unchanged ...",
            "    # ... existing code ...",
            "/* ... the rest of the styles ... */",
            "<!-- ... other rows ... -->",
            "{/* ... remaining items ... */}",
            "-- … unchanged …",
            "// ...",
            "// ⋮",
            "/* remaining styles stay the same */",
            "# The rest of your code here",
            "// ... Rest bleibt unverändert ...",
            "# rest of the file is the same as before...",
            "... (rest of the file unchanged) ...",
            "// Same as above...",
            "// ... Remaining methods",
            "// ...existing code...",
            "// ...rest of the code",
            "[... rest of the code ...]",
            "# (rest of the code remains the same)",
            "// existing code remains unchanged",
            "<!-- rest of file -->",
            "# [existing code here]",
            "/* other rules unchanged */",
            "key = \"[withheld: AWS key]\"",
            "[...]",
            "[…]",
        ],
    ),
    (
        Some(Loss::Some),
        &[
            "...",
            "// ... 其余代码保持不变 ...",
            "# ... le reste du code reste inchangé",
            "// … and so on for f1..f39",
            "// … (37 more functions)",
            "(rest unchanged)",
            "# Existing code...",
            "# keep the rest as is",
            "# code omitted for brevity",
            "// existing methods",
            "    // other imports remain",
            "{/* rest of the component */}",
            "[rest of file unchanged]",
            "-- previous functions remain",
            "// (implementation omitted)",
            "# (same as before)",
            "# (unchanged)",
            "/* unchanged */",
            "# -- snip --",
            "# ... truncated ...",
            "// (truncated)",
            "[elided]",
            "# lines 4-9 unchanged",
            "# --- unchanged below ---",
            "# no changes below",
            "pass  # existing implementation",
        ],
    ),
    (
        Some(Loss::Half),
        &[
            "// Rest as in original",
            "// No changes below this line",
            "// f1 to f39 as before",
            "// (f1 - f39 stay the same)",
            "// The remaining functions are identical to before",
            "// f1..f39: same",
            "... sonst wie gehabt ...",
            "... the helpers",
        ],
    ),
    (
        None,
        &[
            "f(...rest)",
            "let { a, ...rest } = x;",
            "...rest,",
            "print(\"...\")",
            "# Loading...",
            "# Restarting server...",
            "// Creating another connection...",
            "# Restoring backup...",
            "// Checking other hosts...",
            "# ...keep going until all others are done",
            "# Removing the existing file...",
            "// see above",
            "# Other fields are kept in the same order",
            "* Other commands are unchanged",
            "# keeps the existing code",
            "rest of the code",
            "// The rest of the arguments",
            "match x { 0.. => () }",
            "* ...",
            "# Existing file",
            "# Keep the original file",
            "# keep other imports",
            "# Other methods",
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
            "# unchanged since 1.0",
            "# lines 4-9 are unchanged by it",
            "# line endings unchanged",
            "pass  # keep going",
            "passage = 1",
            "// .. and 3",
            "// ... and then goes on",
            "# ... and nothing should happen",
            "# the counter is the same",
            "print('// ... x ...')",
            "x = [...]",
            "# An empty key leaves the map unchanged.",
            "/// Returns the input unchanged.",
            "// On an error: same",
            "// The number of lines stays the same",
            "# ...then the network.",
            "[...xs, item]",
            "[..., None]",
            "//! <...>content</...>",
            "/// // ...",
        ],
    ),
];

#[test]
fn lines_that_stand_for_others_are_told_from_code_and_comments() {
    for (loss, lines) in LINES {
        for line in lines {
            assert_eq!(least(line, "a"), loss, "{line}");
        }
    }
    assert_eq!(least("// ... goes on", "// it waits, and then"), None);
    assert_eq!(least("///     ...", "a"), Some(Loss::Some));
}

#[test]
fn texts_have_other_signs() {
    for (line, loss, is_one) in [
        ("*(rest of the file unchanged)*", Loss::Half, true),
        ("*… rest of the README unchanged …*", Loss::Some, true),
        ("*Rest of the file remains the same.*", Loss::Some, true),
        ("`(rest of the README unchanged)`", Loss::Some, true),
        ("> (rest of the README.md unchanged.)", Loss::Some, true),
        ("- (other sections unchanged)", Loss::Half, true),
        ("<rest of the README unchanged>", Loss::Half, true),
        ("---- rest unchanged ----", Loss::Half, true),
        ("(keep the rest of the document)", Loss::Half, true),
        ("(content omitted for brevity)", Loss::Half, true),
        ("(rest of the README omitted)", Loss::Some, true),
        ("...rest of the README unchanged...", Loss::Half, true),
        ("...rest of the README unchanged...", Loss::Some, false),
        ("**Rest of the arguments**", Loss::Half, false),
        ("*Other commands*", Loss::Half, false),
        ("- rest unchanged", Loss::Half, false),
        ("[Usage](#usage)", Loss::Half, false),
        ("---", Loss::Half, false),
        ("**", Loss::Half, false),
        ("(rest of the notes unchanged)", Loss::Some, true),
        ("(this is unchanged)", Loss::Some, false),
        ("[...]", Loss::Some, true),
        ("[...]", Loss::Any, false),
        ("rest of the README unchanged", Loss::Half, false),
        ("...", Loss::Half, true),
        ("...", Loss::Some, false),
        ("# ... a heading", Loss::Half, false),
        ("The rest is unchanged", Loss::Half, false),
    ] {
        assert_eq!(finds(&format!("# A\n{line}\n"), "a.md", loss), is_one, "{line}");
    }
    // Program output may be shown with gaps.
    assert!(!finds("# A\n```\n$ run\n...\n```\n", "a.md", Loss::Half));
    assert!(finds("# A\n```\n$ run\n```\n...\n", "a.md", Loss::Half));
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
        ("[rest of the file unchanged]\n", "a.md", true),
    ] {
        assert_eq!(finds(new, path, Loss::Some), is_one, "{path}: {new}");
    }
}

/// The number of the first line that stands for omitted lines, and the line itself.
fn one_left_out<'a>(
    new: &'a str,
    replaced: &'a [u8],
    old: &[u8],
    path: &RelPath,
) -> Option<(usize, &'a str)> {
    left_out([(new, replaced)], old, path).map(|(_, line, text)| (line, text))
}

#[test]
fn only_lines_that_the_file_lacks_are_left_out() {
    let always = |new, old: &[u8]| one_left_out(new, b"", old, &path("a.py"));
    let new = "a\n// ... rest unchanged ...\nb\n";
    assert_eq!(always(new, b"a\nb\n"), Some((2, "// ... rest unchanged ...")));
    assert_eq!(always(new, b"x\n  // ... rest unchanged ...\r\n"), None);
    assert_eq!(always("a\nb\n", b""), None);
    let (new, old) = ("a\n\n# existing methods\n", b"a\nb\nc\nd\n");
    assert!(may_leave_out(new) && always(new, old).is_none());
    assert_eq!(one_left_out(new, old, old, &path("a.py")), Some((3, "# existing methods")));
    assert_eq!(one_left_out(new, b"a\n", b"a\nb\nc\n", &path("a.py")), None);
    let old = b"a\n  # existing methods\nb\nc\nd\n";
    assert_eq!(one_left_out(new, old, old, &path("a.py")), None);
    assert_eq!(one_left_out("run\n...\n", b"a\nb\nc\nd\ne\n", b"", &path("a.log")), None);
}

#[test]
fn an_example_in_a_text_may_have_gaps() {
    let left_out = |text| one_left_out(text, b"", b"", &path("README.md")).map(|found| found.0);
    let example = "# A\n```rust\nf();\n// ...\n```\n";
    assert_eq!(left_out(example), None);
    assert!(finds(example, "a.rs", Loss::Any));
    assert_eq!(left_out("# A\n// ...\n"), Some(2));
    assert_eq!(left_out("# A\n```rust\nf();\n// ... rest unchanged ...\n```\n"), Some(4));
}

#[test]
fn each_of_many_pairs_is_looked_at() {
    let mut pairs = vec![("x: int\n...\n", &b"x: int\ny\n"[..]); 40];
    let last = "# existing methods\n";
    pairs.push((last, b"a\nb\nc\n"));
    let found = left_out(pairs, b"", &path("a.py"));
    assert_eq!(found, Some((40, 1, last.trim_end())));
}

#[test]
fn the_loss_is_counted_in_lines_that_are_not_blank() {
    for (new, old, loss) in [
        ("a\n\n\n", "a\nb\n", Loss::Half),
        ("a\nb\n", "a\nb\nc\n", Loss::Some),
        ("a\n", "b\n", Loss::Any),
        ("a\n", "b and more\n", Loss::Some),
        ("a\n\n\n", "b\n", Loss::Any),
        ("a\nb\n", "a\n", Loss::Any),
    ] {
        assert_eq!(Loss::of(new, old.as_bytes()), loss, "{new:?}");
    }
}

#[test]
fn a_placeholder_of_a_secret_is_told_from_the_rule_about_it() {
    let new = "a = 1\nkey = \"[withheld: AWS key]\"\n";
    assert!(may_leave_out(new) && !may_leave_out("withheld: [x]\n"));
    assert_eq!(secret_placeholder_line(new.as_bytes()), Some(2));
    assert_eq!(secret_placeholder_line(b"- [withheld: ...] stands for a secret\n"), None);
    let both = "[withheld: ...] or\n[withheld: password]\n";
    assert_eq!(secret_placeholder_line(both.as_bytes()), Some(2));
    // If it replaces lines of a file, this text may stand for a secret.
    assert!(
        one_left_out("key = [withheld: ...]\n", b"key = x\n", b"key = x\n", &path("a")).is_some()
    );
    assert!(explain_loss("[withheld: x]", "a", "").contains("erase the real secret in 'a'"));
    assert!(explain_loss("// ...", "a", "b").starts_with("stands for lines that 'a' would lose"));
}
