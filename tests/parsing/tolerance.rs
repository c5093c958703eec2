//! Replies however they are decorated: what is canonical is read without a warning, what decorates
//! tag lines changes nothing but that there are warnings, and no body is altered on the way.

use crate::fuzz_corpus::tags::print::print;
use deaddrop::protocol::{Operation, StepContent, tags};
use proptest::prelude::*;
use proptest::sample::select;

/// Lines that bodies are made of; none is changed or told of by any rule.
const LINES: &[&str] = &[
    "fn main() {}",
    "    indented",
    "",
    "- a list",
    "> quoted",
    "[0, 1]",
    "[x](y)",
    "    # [not a tag]",
    "naïve = \"ü\"",
    "a \\_ b &amp; c <d>",
    "$ echo",
    "[DELETE_FILE path=\"a\"]",
    "**[OK] fine**",
    "x = {...y}",
    "<think>",
    "=== PROTOCOL ===",
    "trailing  ",
];

fn body() -> impl Strategy<Value = String> {
    // What a rule looks at is the first and the last line.
    prop::collection::vec(select(LINES), 0..8)
        .prop_map(|lines| format!("begin\n{}\nend\n", lines.join("\n")))
}

/// Blocks in canonical form: an opening tag, a body where there is one, a closing tag.
fn block() -> impl Strategy<Value = (String, Option<String>, String)> {
    let path = select(&["a.rs", "src/b c.py", "__init__.py", "d/e_f.md"][..]);
    let open = |tag: String, body: String, name: &str| (tag, Some(body), format!("[/{name}]"));
    prop_oneof![
        (path.clone(), body()).prop_map(move |(path, body)| open(
            format!("[CREATE_FILE path=\"{path}\"]"),
            body,
            "CREATE_FILE"
        )),
        (path.clone(), 1usize..50, body()).prop_map(move |(path, n, body)| open(
            format!("[EDIT_FILE path=\"{path}\" start_line=\"{n}\" end_line=\"{n}\"]"),
            body,
            "EDIT_FILE"
        )),
        body().prop_map(move |body| open("[RUN_COMMAND]".to_owned(), body, "RUN_COMMAND")),
        body().prop_map(move |body| open("[MESSAGE]".to_owned(), body, "MESSAGE")),
        path.clone().prop_map(|path| (format!("[READ_FILE path=\"{path}\"]"), None, String::new())),
        path.prop_map(|path| (format!("[DELETE_FILE path=\"{path}\"]"), None, String::new())),
    ]
}

fn joined(blocks: &[(String, Option<String>, String)], tag: impl Fn(&str) -> String) -> String {
    let mut reply = String::new();
    for (opening, body, closing) in blocks {
        reply.push_str(&format!("{}\n", tag(opening)));
        if let Some(body) = body {
            reply.push_str(&format!("{body}{}\n", tag(closing)));
        }
    }
    reply
}

fn operations(text: &str) -> Vec<Operation> {
    let steps = tags::parse(text).steps.into_iter();
    steps
        .map(|step| match step.asks {
            StepContent::Operation(operation) => operation,
            StepContent::Invalid(invalid) => panic!("{}\n{text}", invalid.reason),
        })
        .collect()
}

/// What a chat window may do to a tag line.
fn decorated(how: usize, tag: &str) -> String {
    let path = tag.find('"');
    let name = |tag: &str, f: fn(&str) -> String| match path {
        Some(at) => f(&tag[..at]) + &tag[at..],
        None => f(tag),
    };
    match how {
        0 => format!("**{tag}**"),
        1 => format!("- {tag}"),
        2 => format!("### {tag}"),
        3 => format!("12. {tag}"),
        4 => format!("`{tag}`"),
        5 => format!("  * __{tag}__"),
        6 => format!("\u{feff}{tag}\u{200b}"),
        7 => name(tag, str::to_lowercase),
        8 => name(tag, |head| head.replace('_', "\\_").replace('[', "\\[")).replace("\"]", "\"\\]"),
        9 => tag.replace("=\"", "=“").replace('"', "”"),
        10 => tag.replace('"', "'"),
        11 => tag.replace('"', "&quot;"),
        12 => tag.replace(" path", "\u{a0}path"),
        _ => format!("• **{}**", name(tag, str::to_lowercase).replace('"', "’")),
    }
}

/// What is nasty about replies, in any disorder.
fn nasty() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "[CREATE_FILE path=\"a\"]",
        "[/CREATE_FILE]",
        "[create_file path=a]",
        "[/Create_File]",
        "\\[RUN\\_COMMAND\\]",
        "\\[/RUN\\_COMMAND\\]",
        "[RUN_COMMAND command=“x",
        "[RUN COMMAND]",
        "[READ_FILE path=&quot;",
        "[READ_FILE path=[a](http://a)]",
        "&amp;",
        "**",
        "> ",
        ">",
        "- ",
        "1. ",
        "### ",
        "`",
        "```\n",
        "~~~\n",
        "<think>",
        "</think>",
        "</thinking>",
        "<reasoning>",
        "</Reasoning>",
        "[WRITE_FILE path=\"a\"]",
        "[/WRITE_FILE]",
        "[READ_FILE: a]",
        "<RUN_COMMAND>",
        "</RUN_COMMAND>",
        "［DONE］",
        "[[DONE]]",
        "--- a ---\n",
        "--- end a ---\n",
        "~~",
        "&nbsp;",
        "\u{202a}",
        "[OK] MESSAGE: x",
        "=== PROMPT ===",
        "12| x\n13| y\n",
        "@@ -1 +1 @@\n",
        "--- a\n+++ b\n",
        "<<<<<<< \n=======\n>>>>>>> \n",
        "// ... rest ...\n",
        "…",
        "【1†x】",
        "†",
        "\u{feff}",
        "\u{200b}",
        "\u{a0}",
        "\u{2003}",
        "é",
        "\\",
        "\"",
        "'",
        "“",
        "]",
        "[",
        "/",
        "=",
        ",",
        "\r\n",
        "\n",
        "\n",
        "\n",
        " ",
        "\0",
    ];
    prop::collection::vec(select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn canonical_replies_are_read_without_a_warning(blocks in prop::collection::vec(block(), 1..5)) {
        let reply = joined(&blocks, str::to_owned);
        let printed = print(&operations(&reply));
        prop_assert_eq!(&printed, &reply);
        prop_assert!(tags::parse(&reply).steps.iter().all(|step| step.warnings.is_empty()));
    }

    #[test]
    fn decoration_changes_nothing_but_that_there_are_warnings(
        blocks in prop::collection::vec(block(), 1..5),
        how in 0usize..14,
        fenced in any::<bool>(),
    ) {
        // Behind an escaped tag nobody knows which command such a body was; that is refused.
        let is_unclear = blocks.iter().any(|(tag, body, _)| {
            tag.starts_with("[RUN_COMMAND") && body.as_deref().is_some_and(|it| it.contains('\\'))
        });
        prop_assume!(how != 8 || !is_unclear);
        let plain = joined(&blocks, str::to_owned);
        let mut reply = joined(&blocks, |tag| decorated(how, tag));
        let changed = reply != plain;
        if fenced {
            reply = format!("So:\n````\n{reply}````\n");
        }
        prop_assert_eq!(operations(&reply), operations(&plain), "{}", reply);
        let warned = tags::parse(&reply).steps.iter().any(|step| !step.warnings.is_empty());
        prop_assert_eq!(warned, changed, "{}", reply);
    }

    #[test]
    fn a_quoted_reply_is_the_same(blocks in prop::collection::vec(block(), 1..4)) {
        let plain = joined(&blocks, str::to_owned);
        let reply: String = plain.lines().map(|line| format!("> {line}\n")).collect();
        // A mark within a body that is quoted with it keeps its own.
        prop_assert_eq!(operations(&reply), operations(&plain), "{}", reply);
    }

    #[test]
    fn nothing_nasty_is_too_much(text in nasty()) {
        let reply = tags::parse(&text);
        prop_assert!(!reply.steps.is_empty());
        prop_assert!(reply.steps.is_sorted_by(|a, b| a.line <= b.line), "{:?}", reply);
        let lines = text.matches('\n').count() + 1;
        prop_assert!(reply.steps.iter().all(|step| (1..=lines).contains(&step.line)), "{:?}", reply);
        for step in &reply.steps {
            prop_assert!(!step.ends || step == reply.steps.last().unwrap(), "{:?}", reply);
            prop_assert!(step.warnings.iter().all(|told| !told.text.contains('\n')), "{:?}", reply);
        }
    }
}
