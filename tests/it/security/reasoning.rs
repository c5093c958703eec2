//! What may be reasoning is not executed, in either dialect.

use serde_json::Value;

use crate::support::Project;

/// The markers of reasoning whose end counts without its beginning.
const MARKERS: [(&str, &str); 40] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<analysis>", "</analysis>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<THINK>", "</Think>"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("[think]", "[/think]"),
    ("[thinking]", "[/thinking]"),
    ("[thought]", "[/thought]"),
    ("[reasoning]", "[/reasoning]"),
    ("[reflection]", "[/reflection]"),
    ("[analysis]", "[/analysis]"),
    ("[scratchpad]", "[/scratchpad]"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("◁thinking▷", "◁/thinking▷"),
    ("◁thought▷", "◁/thought▷"),
    ("◁reasoning▷", "◁/reasoning▷"),
    ("◁reflection▷", "◁/reflection▷"),
    ("◁analysis▷", "◁/analysis▷"),
    ("◁scratchpad▷", "◁/scratchpad▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<antThinking>", "</antThinking>"),
    ("<seed:think>", "</seed:think>"),
    ("<think>", "</think/>"),
    ("<think>", "</think id=\"1\">"),
    ("&#60;think&#62;", "&#x3c;/think&#x3E;"),
    ("＜think＞", "＜／think＞"),
    ("<th\u{200b}ink>", "</thi\u{200d}nk>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|thinking_start|>", "<|thinking_end|>"),
    ("<|thought_begin|>", "<|thought_end|>"),
    ("<|begin_thought|>", "<|end_thought|>"),
    ("[BEGIN_THINK]", "[END_THINK]"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
];
/// Those whose end counts only with its beginning.
const PAIRS: [(&str, &str); 4] = [
    ("<!--", "-->"),
    ("<details type=\"reasoning\">", "</details>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant", "<|end|>"),
];
/// Other elements.
const ELEMENTS: [(&str, &str); 5] = [
    ("<anything>", "</anything>"),
    ("<response>", "</response>"),
    ("<plan step=\"1\" draft>", "</plan>"),
    ("<details>", "</details>"),
    ("<план>", "</план>"),
];

/// A dialect: how it asks for files, and for the end if all is well.
type Dialect = fn(&[&str]) -> String;

const DONE_IF_OK: &str = "[DONE if=\"ok\"]\nx\n[/DONE]\n";

fn tags(files: &[&str]) -> String {
    files.iter().map(|file| format!("[CREATE_FILE path=\"{file}\"]\nx\n[/CREATE_FILE]\n")).collect()
}

fn operations(files: &[&str]) -> String {
    let create = |file: &&str| {
        format!("{{\"type\": \"createFile\", \"path\": \"{file}\", \"content\": \"x\"}}")
    };
    let all: Vec<String> = files.iter().map(create).collect();
    format!("{{\"protocolVersion\": \"1.0\", \"operations\": [\n{}\n]}}\n", all.join(",\n"))
}

/// The files that a reply makes, as it is carried out.
fn made(reply: &str) -> Vec<String> {
    let base = Project::with_session();
    base.run_with(&["apply"], reply).ok();
    base.names("workspace")
}

/// What `check` tells of many replies.
fn checked(replies: &[String]) -> Vec<Value> {
    let base = Project::with_session();
    let names: Vec<String> = (0..replies.len()).map(|n| format!("r{n:04}")).collect();
    names.iter().zip(replies).for_each(|(name, reply)| _ = base.write(name, reply));
    let mut arguments = vec!["check", "--json"];
    arguments.extend(names.iter().map(String::as_str));
    let run = base.run(&arguments);
    let told: Vec<Value> =
        run.stdout.split_terminator('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), replies.len(), "{}", run.stderr);
    told
}

/// A reply, the files that it makes, and the sorts of its errors and its warnings.
type Case = (String, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn hold(cases: &[Case]) {
    let replies: Vec<String> = cases.iter().map(|case| case.0.clone()).collect();
    for ((reply, files, errors, warnings), told) in cases.iter().zip(checked(&replies)) {
        let made: Vec<&str> = told["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["path"].as_str().unwrap())
            .collect();
        assert_eq!(made, *files, "{reply}\n{told}");
        assert_eq!(keys(&told["errorsByKind"]), *errors, "{reply}\n{told}");
        assert_eq!(keys(&told["warningsByKind"]), *warnings, "{reply}\n{told}");
    }
}

/// Cases of markers that close reasoning on any terms.
fn of_pairs(begin: &str, end: &str, ask: Dialect) -> Vec<Case> {
    let (bad, good) = (ask(&["bad"]), ask(&["good"]));
    let closed = |reply: String| -> Case { (reply, &["good"], &[], &["tags-in-thoughts"]) };
    let nothing = |reply: String| -> Case { (reply, &[], &["cut-off"], &[]) };
    vec![
        closed(format!("{begin}\n{bad}{end}\n{good}")),
        closed(format!("{begin}\n{bad}{end}\nSure:\n{good}")),
        closed(format!("{begin}\n{bad}{end}{good}")),
        closed(format!("{begin}\n{bad}So.{end}\n{good}")),
        closed(format!("{begin}Well\n{bad}{end} Sure:\n{good}")),
        closed(format!("{begin}\n{bad}So.{end}Sure:\n{good}")),
        closed(format!("{begin}\n{bad}{end}\n{good}").replace('\n', "\r\n")),
        closed(format!("> {begin}\n{bad}> {end}\n{good}")),
        closed(format!("```\n{begin}\n{bad}{end}\n```\n{good}")),
        (format!("{begin}x{end}Sure:\n{good}"), &["good"], &[], &[]),
        nothing(format!("{begin}\n{bad}")),
        nothing(format!("{begin} Well\n{bad}")),
        // In a sentence and in code they are words.
        (format!("All up to `{end}` goes.\n{good}"), &["good"], &[], &[]),
        (format!("All up to {end} goes.\n{good}"), &["good"], &[], &[]),
    ]
}

fn of_lost_beginnings(end: &str, ask: Dialect) -> Vec<Case> {
    let (bad, good) = (ask(&["bad"]), ask(&["good"]));
    let is_message = bad.starts_with('{');
    let errors: &[&str] = if is_message { &[] } else { &["thoughts-unopened"] };
    let warnings: &[&str] = if is_message { &["tags-in-thoughts"] } else { &[] };
    let lost = |reply: String| -> Case { (reply, &["good"], errors, warnings) };
    vec![
        lost(format!("I could\n{bad}{end}\n{good}")),
        lost(format!("{bad}{end}{good}")),
        lost(format!("{bad}{end} Sure:\n{good}")),
        lost(format!("{bad}{end}Sure:\n{good}")),
        lost(format!("{bad}So.{end}\n{good}")),
        lost(format!("{bad}> {end}\n{good}")),
        lost(format!("{bad}{end}\n{good}").replace('\n', "\r\n")),
        lost(format!("```\n{bad}{end}\n```\n{good}")),
    ]
}

#[test]
fn reasoning_is_not_carried_out_and_what_follows_it_is() {
    let mut cases = Vec::new();
    for ask in [tags as Dialect, operations] {
        for (begin, end) in MARKERS {
            cases.extend(of_pairs(begin, end, ask));
            cases.extend(of_lost_beginnings(end, ask));
        }
        for (begin, end) in PAIRS {
            let is_in_a_line = end != "</details>";
            let of_a_sentence = |case: &Case| !case.0.contains("Sure:") || is_in_a_line;
            cases.extend(of_pairs(begin, end, ask).into_iter().filter(|case| {
                // A comment has another beginning on that line, and an element no words behind it.
                of_a_sentence(case) && (is_in_a_line || !case.0.contains(" Well"))
            }));
        }
    }
    hold(&cases);
}

#[test]
fn markers_nest() {
    let (bad, good) = (tags(&["bad"]), tags(&["good"]));
    let mut cases: Vec<Case> = Vec::new();
    for (begin, end) in MARKERS.into_iter().chain(PAIRS) {
        if end.contains("final") {
            continue;
        }
        let inner = format!("{begin}\nx\n{end}\n");
        cases.push((
            format!("{begin}\n{inner}{bad}{end}\n{good}"),
            &["good"],
            &[],
            &["tags-in-thoughts"],
        ));
        cases.push((format!("{begin}\n{begin}\n{bad}{end}\n{bad}"), &[], &["cut-off"], &[]));
    }
    for (begin, end) in ELEMENTS {
        cases.push((
            format!("{begin}\n{begin}\nx\n{end}\n{bad}{end}\n{good}"),
            &["good"],
            &[],
            &["tags-in-element"],
        ));
    }
    hold(&cases);
}

#[test]
fn in_a_body_markers_are_text() {
    let bodies: Vec<String> = MARKERS
        .into_iter()
        .chain(PAIRS)
        .chain(ELEMENTS)
        .map(|(begin, end)| format!("{begin}\n{end}\n{end} x\nx{end}\n{begin}\n"))
        .collect();
    let base = Project::with_session();
    let file = |(n, body): (usize, &String)| {
        format!("[CREATE_FILE path=\"{n:02}.md\"]\n{body}[/CREATE_FILE]\n")
    };
    let files: String = bodies.iter().enumerate().map(file).collect();
    base.run_with(&["apply"], format!("{}{files}{}", tags(&["first"]), tags(&["last"]))).ok();
    let operation = |(n, body): (usize, &String)| serde_json::json!({"type": "createFile", "path": format!("{n:02}.txt"), "content": body});
    let operations: Vec<Value> = bodies.iter().enumerate().map(operation).collect();
    let message = serde_json::json!({"protocolVersion": "1.0", "operations": operations});
    base.run_with(&["apply"], message.to_string()).ok();
    for (n, body) in bodies.iter().enumerate() {
        for ending in ["md", "txt"] {
            assert_eq!(base.read(&format!("workspace/{n:02}.{ending}")), *body);
        }
    }
    assert_eq!(base.names("workspace").len(), 2 * bodies.len() + 2);
    // Nor do they end reasoning that such a body is drafted in.
    let draft = |(begin, end): (&str, &str)| {
        let draft = format!("[CREATE_FILE path=\"a\"]\n{end}\n[/CREATE_FILE]\n");
        format!("{begin}\n{draft}{}{end}\n{}", tags(&["bad"]), tags(&["good"]))
    };
    let replies = MARKERS.map(draft);
    for (reply, told) in replies.iter().zip(checked(&replies)) {
        let files = told["files"].as_array().unwrap();
        let made: Vec<&Value> = files.iter().map(|file| &file["path"]).collect();
        assert_eq!(made, ["good"], "{reply}");
    }
    assert_eq!(made(&replies[0]), ["good"]);
}

#[test]
fn ends_that_others_share_count_only_with_their_beginning() {
    let good = tags(&["good"]);
    let cases = ["-->", "</details>", "<|end|>", "</anything>", "a -->", "--> so"];
    hold(&cases.map(|end| (format!("{good}{end}\n"), &["good"][..], &[][..], &[][..])));
    // A beginning in a body is none.
    let body = "[CREATE_FILE path=\"a.html\"]\n<!--\n[/CREATE_FILE]\n";
    assert_eq!(made(&format!("{body}{good}-->\n")), ["a.html", "good"]);
    for end in ["-->", "--> ", "<|end|>"] {
        assert_eq!(made(&format!("{end}{good}")), [] as [&str; 0], "{end}");
    }
    // Behind an arrow a tag is words; behind the end of a comment it counts.
    assert_eq!(made("<!--\n--> [CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n"), ["a"]);
}

#[test]
fn commands_in_an_element_are_reported() {
    let (bad, good) = (tags(&["bad"]), tags(&["good"]));
    let mut cases: Vec<Case> = Vec::new();
    for (begin, end) in ELEMENTS {
        let warnings = &["tags-in-element"][..];
        cases.push((format!("{begin}\n{bad}{end}\n{good}"), &["good"], &[], warnings));
        cases.push((
            format!("{begin}\n{bad}{end}\n{good}").replace('\n', "\r\n"),
            &["good"],
            &[],
            warnings,
        ));
        cases.push((format!("{begin}\n{bad}{end}\n"), &[], &["no-command"], warnings));
        let message = operations(&["bad"]);
        cases.push((format!("{begin}\n{message}{end}\n"), &[], &["no-command"], warnings));
        // The end of reasoning in it counts, and the beginning.
        cases.push((
            format!("{bad}{begin}\n</think>\n{bad}{end}\n{good}"),
            &["good"],
            &["thoughts-unopened"],
            warnings,
        ));
        cases.push((format!("{begin}\n<think>\n{end}\n{bad}"), &[], &["cut-off"], &[]));
        // Without its end it is a word.
        cases.push((format!("{begin}\n{good}"), &["good"], &[], &[]));
        // Nor does it count in a line.
        cases.push((format!("See {begin}\n{good}and {end} for more\n"), &["good"], &[], &[]));
    }
    hold(&cases);
}

#[test]
fn what_was_not_carried_out_keeps_the_session_open() {
    for (reply, files) in [
        (format!("<response>\n{}</response>\n{DONE_IF_OK}", tags(&["bad"])), &[][..]),
        (format!("{}</think> Sure:\n{DONE_IF_OK}", tags(&["bad"])), &[]),
        (format!("<think>\n{DONE_IF_OK}</think>\n{}", tags(&["good"])), &["good"]),
        (format!("[DONE]\nx\n[/DONE]\n</think>\n{}", tags(&["good"])), &["good"]),
        (format!("{}[DONE]\nx\n[/DONE]\n</think>Well.\n", tags(&["bad"])), &[]),
    ] {
        let base = Project::with_session();
        base.run_with(&["apply"], &reply).ok();
        assert_eq!(base.names("workspace"), files, "{reply}");
        assert!(!base.outbox(2).is_empty(), "the results come back: {reply}");
    }
    let base = Project::with_session();
    base.run_with(&["apply"], format!("<think>\nx\n</think>Sure:\n{DONE_IF_OK}")).ok();
    assert!(
        !base.exists("outbox/a1b2c3d4_seq0002.txt"),
        "reasoning without commands holds nothing"
    );
}

#[test]
fn what_ends_nowhere_is_no_way_around_the_end_of_reasoning() {
    let bad = tags(&["bad"]);
    for rest in [
        "[RUN_COMMAND]\n</think>\nSure.\n",
        "[CREATE_FILE path=\"a\"]\n</think>\n[CREATE_FILE path=\"b\"]\n",
        "[READ_FILE path=\"a\"]\n[DONE]\n</think> So:\n[MESSAGE]\n",
        "<plan>\n</think>\n</plan>\n",
        "<reasoning>\n</think>\n",
    ] {
        for reply in [format!("{bad}{rest}"), format!("{}{rest}", operations(&["bad"]))] {
            assert_eq!(made(&reply), [] as [&str; 0], "{reply}");
        }
    }
    // A message with markers in it is none.
    let message = operations(&["bad", "worse"]);
    for marker in ["<think>x</think>", "<!--x-->", "<plan>\n[x]\n</plan>", "[/think]"] {
        let reply = message.replacen(",\n", &format!(",\n{marker}\n"), 1);
        assert_eq!(made(&reply), [] as [&str; 0], "{reply}");
    }
}

#[test]
fn a_body_with_an_end_of_reasoning_is_certain_only_without_another_opening_tag() {
    let bad = tags(&["bad"]);
    for end in ["</think>", "<|channel|>final<|message|>"] {
        for opening in [
            "**[CREATE_FILE path=\"good.py\"]**",
            "# [CREATE_FILE path=\"good.py\"]",
            "- [CREATE_FILE path=\"good.py\"]",
            "`[CREATE_FILE path=\"good.py\"]`",
            "\\[CREATE\\_FILE path=\"good.py\"\\]",
            "[create_file path=\"good.py\"]",
            "[CREATE_FILE path=\"good.py\"] as I said",
            "[CREATE_\nFILE path=\"good.py\"]",
        ] {
            let draft = format!("[CREATE_FILE path=\"a.py\"]\nbut no.\n{end}\n{opening}\nx = 1\n");
            for close in ["[/CREATE_FILE]\n", "**[/CREATE_FILE]**\n", ""] {
                let files = made(&format!("{bad}{draft}{close}"));
                let is_made = |file: &&str| files.contains(&(*file).to_owned());
                assert!(!["bad", "a.py"].iter().any(is_made), "{draft}{close}");
            }
        }
    }
}

#[test]
fn what_is_skipped_may_end_reasoning() {
    let bad = tags(&["bad"]);
    for skipped in [
        "[OK] RUN_COMMAND: x\nOutput:\nfine\n</think>\n\nSo.\n",
        "[OK] RUN_COMMAND: x\n  fine\n  </think>\n\nSo.\n",
        "--- a.txt ---\n</think>\n--- end a.txt ---\n",
        "<<<<<<< SEARCH\n</think>\n=======\n>>>>>>> REPLACE\n",
        "<!--\n</think>\n-->\n",
        "<!--\n[CREATE_FILE path=\"a\"]\n</think>\n[/CREATE_FILE]\n-->\n",
        "<plan>\n[CREATE_FILE path=\"a\"]\n</think>\n[/CREATE_FILE]\n</plan>\n",
        "[WRITE_FILE path=\"a\"]\n</think>\n[/WRITE_FILE]\n",
        "[CREAT_FILE path=\"a\"]\n</think>\n[/CREAT_FILE]\n",
        "[FROBNICATE]\n</think>\n[/FROBNICATE]\n",
        "[CREATE_FILE pth=\"a\"]\n</think>\n[/CREATE_FILE]\n",
        "[CREATE_FILE path=\"../a\"]\n</think>\n[/CREATE_FILE]\n",
        "[RUN_COMMAND]\n\n</think>\n[/RUN_COMMAND\n",
    ] {
        assert_eq!(made(&format!("{bad}{skipped}")), [] as [&str; 0], "{skipped}");
        let message = format!("{}{skipped}", operations(&["bad"]));
        assert_eq!(made(&message), [] as [&str; 0], "{message}");
    }
}

#[test]
fn what_begins_in_what_is_skipped_ends_where_it_ends() {
    let (bad, good) = (tags(&["bad"]), tags(&["good"]));
    for (reply, files) in [
        (format!("<think>\n<plan>\n</think>\n{bad}</plan>\n{good}"), &["good"][..]),
        (format!("<think>\n<reasoning>\n</think>\n{bad}</reasoning>\n{good}"), &["good"]),
        (format!("<think>\n<reasoning>\n</think>\n{good}"), &["good"]),
        (format!("<plan>\n<x>\n</plan>\n{bad}</x>\n{good}"), &["good"]),
        (format!("[OK] RUN_COMMAND: x\n  <plan>\n{bad}</plan>\n{good}"), &["good"]),
        (format!("[FROBNICATE]\n<plan>\n[/FROBNICATE]\n{bad}</plan>\n{good}"), &["good"]),
    ] {
        assert_eq!(made(&reply), files, "{reply}");
    }
}

#[test]
fn an_end_of_reasoning_counts_with_signs_and_tags_around_it() {
    let (bad, good) = (tags(&["bad"]), tags(&["good"]));
    for end in [
        "So.</think>.",
        "</think>:",
        "</think> <!-- x -->",
        "</think><br>",
        "</think></p>",
        "So. </think> ✅",
        "(</think>)",
        "<p></p></think> Sure",
        "'So'</think>'",
        "&nbsp;</think> Sure",
        "<br/></think> Sure",
    ] {
        let lost = format!("{bad}{end}\n{good}");
        assert_eq!(made(&lost), ["good"], "{lost}");
    }
    let message = operations(&["bad"]);
    assert_eq!(made(&format!("{}</think> Sure\n", message.trim_end())), [] as [&str; 0]);
    for begin in ["Okay. <think>", "Okay. <think>.", "- <think>", "Okay. [THINK]"] {
        assert_eq!(made(&format!("{begin}\n{bad}")), [] as [&str; 0], "{begin}");
        assert_eq!(made(&format!("{begin}\n{bad}</think>\n{bad}[/THINK]\n")), [] as [&str; 0]);
    }
}

#[test]
fn any_tag_at_the_beginning_of_a_line_may_be_of_an_element() {
    let (bad, good) = (tags(&["bad"]), tags(&["good"]));
    let long = "x".repeat(500);
    for (begin, end) in [
        ("<thought process>", "</thought process>"),
        ("<a><b>", "</b></a>"),
        ("<![CDATA[", "]]>"),
        ("<план>", "</план>"),
        ("<plan title=\"a > b\">", "</plan>"),
        ("<plan title=\"it's>", "</plan>"),
        ("<plan> <!-- a draft -->", "</plan>"),
        ("<!-- a --><plan>", "</plan>"),
        ("<my.plan-2>", "</my.plan-2>"),
        ("<plan />x\n<plan>", "</plan>"),
        (&format!("<plan title=\"{long}\">"), "</plan>"),
        (&format!("<{long}>"), &format!("</{long}>")),
    ] {
        let reply = format!("{begin}\n{bad}{end}\n{good}");
        assert_eq!(made(&reply), ["good"], "{reply}");
    }
}

#[test]
fn behind_an_end_that_ends_nothing_only_a_plain_tag_counts() {
    for end in ["-->", "<|end|>", "[/THINK]", "</think>", "</details>"] {
        for tag in ["> [DELETE_FILE path=\"a\"]", "**[DELETE_FILE path=\"a\"]**"] {
            for between in ["", " "] {
                let reply = format!("{end}{between}{tag}\n");
                assert_eq!(made(&reply), [] as [&str; 0], "{reply}");
            }
        }
    }
}
