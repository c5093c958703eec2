//! Reading takes time in proportion to the length of a reply, whatever it is made of. What is
//! measured is the time that the processor spends on this thread, so a busy machine does not count.

use std::hint::black_box;
use std::time::Duration;

use deaddrop::protocol::{Dialect, read, tags};
use deaddrop::secrets;
use rustix::time::{ClockId, clock_gettime};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The most that a byte of a longer reply may take, as a multiple of what one of the shortest takes.
/// Quadratic work takes 16 times as long a byte where the longer reply has 16 times the length, as
/// here at the least, and 64 times from 1 to 64 MiB.
const MOST: f64 = 4.0;
/// So many nanoseconds a byte are nothing, however few it took before.
const NOTHING: f64 = 2.0;
/// A measurement that is too high is made again, up to so many times in all: what else runs on the
/// machine also takes of its caches.
const RUNS: usize = 4;

/// How long this thread has worked so far.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("no time is negative")
}

fn size(reply: &str) -> f64 {
    f64::from(u32::try_from(reply.len()).unwrap())
}

/// How many nanoseconds a byte of a reply takes.
fn per_byte(reply: &str, reading: fn(&str)) -> f64 {
    let begun = worked();
    reading(black_box(reply));
    let took = worked().saturating_sub(begun);
    f64::from(u32::try_from(took.as_micros()).unwrap()) * 1e3 / size(reply)
}

/// Reads replies that are made for these lengths, the shortest first, and holds the time a byte
/// against that of the shortest.
fn is_flat(name: &str, lengths: &[usize], reply: &dyn Fn(usize) -> String, reading: fn(&str)) {
    let short = reply(lengths[0]);
    // The first run pays for what is done once.
    let few = (0..3).map(|_| per_byte(&short, reading)).fold(f64::MAX, f64::min);
    let most = (few * MOST).max(NOTHING);
    let mut told = format!("{name:?}: {few:.1} ns a byte");
    for length in &lengths[1..] {
        let reply = reply(*length);
        let mut runs = (0..RUNS).map(|_| per_byte(&reply, reading));
        let mut best = f64::MAX;
        let flat = runs.any(|run| {
            best = best.min(run);
            best <= most
        });
        told.push_str(&format!(", {best:.1} of {} KiB", reply.len() / KIB));
        assert!(flat, "{told}: that grows with the length");
    }
    eprintln!("{told}");
}

fn tags(text: &str) {
    assert!(!tags::parse(text).steps.is_empty());
}

/// As a session does, with a look for a message of operations.
fn all(text: &str) {
    assert!(!read(text, Dialect::Operations).steps.is_empty());
}

/// What a reply is made of: a name, the shortest length that is measured, and what makes it.
type Shape = (&'static str, usize, fn(usize) -> String);

fn many(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}

/// In a file's body.
fn in_a_file(piece: &str, bytes: usize) -> String {
    format!("[CREATE_FILE path=\"a\"]\n{}[/CREATE_FILE]\n", many(piece, bytes))
}

fn message(operations: &str) -> String {
    format!("{{\"protocolVersion\": \"1.0\", \"operations\": [{operations}]}}\n")
}

const PROSE: &str = "I'll run the build, look at its operations and decide what to do. ";

/// Those that take long a byte are shorter.
const SHAPES: [Shape; 14] = [
    ("openings of one kind", 256 * KIB, |n| many("[CREATE_FILE path=\"a\"]\n", n)),
    ("openings without their ]", 256 * KIB, |n| many("[CREATE_FILE path=\"\n", n)),
    ("closings", 64 * KIB, |n| many("[/CREATE_FILE]\n", n)),
    ("closings on one line", 256 * KIB, |n| in_a_file("[/CREATE_FILE]", n)),
    ("fences", 256 * KIB, |n| many("```\n", n)),
    ("fences in a body", 256 * KIB, |n| in_a_file("````\n```\n", n)),
    ("quotations", 256 * KIB, |n| format!("> {}", in_a_file("> x\n", n).replace("\n[/", "\n> [/"))),
    ("one long line", 256 * KIB, |n| many(PROSE, n)),
    ("look-alike tags", 64 * KIB, |n| many("[READFILE a]\n[ READ x\n[OK] x: y\n[Done](u)\n", n)),
    ("thoughts", 256 * KIB, |n| many("<think>\n[DONE]\n</think>\n", n)),
    ("braces", 256 * KIB, |n| many("{\"operations\": ", n)),
    ("braces and brackets", 64 * KIB, |n| many("{ \"operations\" [ } ] ", n)),
    ("messages in fences", 64 * KIB, |n| many("```json\n{\"operations\": [}\n```\n", n)),
    ("operations", 256 * KIB, |n| {
        message(&many("{\"type\": \"shell\", \"command\": \"ls\"},\n", n))
    }),
];

#[test]
#[should_panic(expected = "that grows with the length")]
fn what_looks_back_at_all_before_is_found() {
    let reading = |text: &str| {
        for line in (0..text.len()).step_by(256) {
            black_box(text[..line].bytes().map(u64::from).sum::<u64>());
        }
    };
    is_flat("backwards", &[4 * KIB, 64 * KIB], &|n| many("[x]\n", n), reading);
}

#[test]
fn hostile_replies_are_read_in_linear_time() {
    for (name, least, shape) in SHAPES {
        is_flat(name, &[least, least * 16], &shape, all);
    }
}

#[test]
fn replies_of_64_mib_are_read_in_linear_time() {
    let lines = |n| many(&format!("{PROSE}\n"), n);
    is_flat("prose", &[MIB, 64 * MIB], &lines, all);
    let files = |n| many(&in_a_file(&format!("{PROSE}\n"), 4 * KIB), n);
    is_flat("files", &[MIB, 64 * MIB], &files, all);
    is_flat("openings of one kind", &[MIB, 64 * MIB], &SHAPES[0].2, tags);
}

#[test]
fn many_more_shapes_are_read_in_linear_time() {
    // Each length of all shapes is made once: making them takes as long as reading them.
    let all = |bytes| {
        [hostile_replies(bytes), many_on_a_line(bytes), words(bytes), nearly_tags(bytes)].concat()
    };
    let [short, long] = [16 * KIB, 256 * KIB];
    for (few, many) in all(short).into_iter().zip(all(long)) {
        let name: String = few.chars().take(40).collect();
        let shape = |bytes| if bytes == short { few.clone() } else { many.clone() };
        is_flat(&name, &[short, long], &shape, tags);
    }
}

/// Replies in which each tag or marker may cost the rest of its line, or all before it.
fn many_on_a_line(bytes: usize) -> Vec<String> {
    let opening = "[CREATE_FILE path=\"a\"]\n";
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    vec![
        format!("<think>\n{}</think>\n", many("[DONE] x\n")),
        format!("<!--\n{}</think>\n[/DONE end=\"E\"]\n-->\n", many("[DONE end=\"E\"] x\n")),
        format!("{}[OK] MESSAGE: x\nOutput: x\n{}", many(" "), many("a\n")),
        many("‹!--"),
        format!("x {}", many("</b>")),
        format!("{}x{}", many(" "), many("</b>y")),
        format!("{opening}{}{}\n[/CREATE_FILE]", many(" "), many("[/CREATE_FILE] x")),
        format!("{opening}{}{}\n[/CREATE_FILE]", many("[/CREATE_FILE] x"), many(" ")),
        format!("[CREATE_FILE path=\"a\" end=\"T\"]\n{}", many("[/CREATE_FILE end=[](")),
        format!("[READ_FILE path=\"a\"]\n{}", many("[/DONE]\n")),
        format!("{}{}", many("[READ_FILE path=\"a\"]\n"), many("[/DONE]\n")),
        many("[REPLY session=\"a\" sequence=\"1\"] x\n"),
        many("[FOO_BAR]\n"),
    ]
}

/// Replies that take a careless reader more than linear time, of about this many bytes.
fn hostile_replies(bytes: usize) -> Vec<String> {
    let opening = "[CREATE_FILE path=\"a\"]\n";
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    let numbers = (0..bytes / 12).map(|n| n.to_string());
    let attributes: String =
        numbers.flat_map(|n| [" k".to_owned(), n, "=\"v\"".to_owned()]).collect();
    vec![
        format!("{opening}{}", many("[/CREATE_FILE]")),
        format!("{opening}{}", many("[/CREATE_FILE] \t\u{2003}")),
        format!("{opening}{}[/CREATE_FILE]x", many(" ")),
        many(opening),
        many("[CREATE_FILE path=\"a\"][/CREATE_FILE]\n"),
        many(" "),
        many(" \r\n\t"),
        format!("[CREATE_FILE{}path=\"a\"]", many(" ")),
        format!("[CREATE_FILE{attributes}]\n"),
        format!("[CREATE_FILE path=\"{}\"]\n[/CREATE_FILE]", many("a/../")),
        format!("[CREATE_FILE path=\"{}", many("\\")),
        many("[CREATE_FILE path=\"\n"),
        many("[RUN_COMMAND]\n[/RUN_COMMAND]\n"),
        many("[DONE][/DONE]"),
        many("> [MESSAGE]\n"),
        many("> > - **[DONE]**\n"),
        many("**[DONE]\n"),
        many("[/CREATE_FILE]\n"),
        many("[CREATE FILE path\n"),
        many("[CREATE FILE path\n[/CREATE FILE]\n"),
        many("[OK] MESSAGE: x\n"),
        many("[OK] MESSAGE: x\n  [DONE]\n\n"),
        many("> [OK] MESSAGE: x\n> Output:\n> [DONE]\n"),
        format!("[OK] MESSAGE: x\n{}", many("  [OK] MESSAGE: x\n")),
        many("<think>[DONE]</think>\n"),
        many("<think>\n"),
        many("</think>"),
        many(" === PROMPT === "),
        many("[\\_"),
        many("[MESSAGE]\nx[/MESSAGE]\n"),
        many("[MESSAGE]x\n**[/MESSAGE]**\n"),
        format!("[READ_FILE path=&quot;{}", many("&amp;")),
        format!("[READ_FILE path={}]", many("[a](b)")),
        format!("{opening}{}[/CREATE_FILE]", many("12| x\n")),
        format!("{opening}{}[/CREATE_FILE]", many("… ... \n")),
        format!("{opening}{}[/CREATE_FILE]", many("...…")),
        format!("{opening}{}\n[/CREATE_FILE]", many("【1†")),
        format!("{opening}{}\n[/CREATE_FILE]", many("&lt;\u{a0}")),
        format!("{opening}```\n{}\n```\n[/CREATE_FILE]", many("` ```\n")),
        format!("> {opening}{}> [/CREATE_FILE]\n", many("> x\n")),
        format!("[CREATE_FILE path=\"a\" end=\"T\"]\n{}", many("[/CREATE_FILE end=\"U\"]\n")),
        format!("[CREATE_FILE path=\"a\" end=\"T\"]\n{}", many("[/CREATE_FILE  \t")),
        format!("[CREATE_FILE path=\"a\" {}]\n", many("end  ")),
        many("[CREATE_FILE path=\"a\" end=\"T\"]\n[/CREATE_FILE end=\"T\"]\n"),
        many("[CREATE_FILE path=\"a\" end=\"T\"]\n[/CREATE_FILE end=”T”]\n"),
        many("[CREATE_FILE end=\"T\"]\n[/CREATE_FILE end=\"T\"]\n[/CREATE_FILE end=\"T\"]\n"),
        format!("[/MESSAGE end=\"T\"]\n{}", many("[MESSAGE end=\"T\"]x\n")),
        format!("[CREATE_FILE path=\"a\" end=\"T\"]\n{}", many("T")),
        format!("[CREATE_FILE path=\"a\" end=\"T\"]\n{}", many("T\n")),
        format!("[CREATE_FILE path=\"a\" end=\"T\"]\n{}", many("[/CREATE_FILE end=\"T\"")),
        many("=== PART 1 of 2 "),
        many("**=== PART 1 of 2\n"),
        format!(
            "[REPLY session=\"a\" sequence=\"1\"]\n[DONE][/DONE]\n{}",
            many("> [REPLY session=\"b\" sequence=\"2\"]\n")
        ),
        many("[EDIT_FILE path=\"a\"]\n<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"),
        format!(
            "[EDIT_FILE path=\"a\"]\n{}[/EDIT_FILE]\n",
            many("<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n")
        ),
        format!("[EDIT_FILE path=\"a\"]\n<<<<<<< SEARCH\n{}[/EDIT_FILE]\n", many("=====\n")),
        many("[SEARCH pattern='a\"b' path=\"c/\"]\n"),
        format!("[SEARCH pattern=\"{}\"]\n", many("&amp;")),
        format!("[SEARCH pattern=\"{}\"]\n", many("\\\"")),
        many("[SEARCH pattern=\"\\\"a\\\"\"]\n"),
        many("<<<<<<< SEARCH"),
        many("<<<<<<< SEARCH\n"),
        format!("{}[READ_FILE path=\"b\"]\n", many("> [DELETE_FILE path=\"a\"]\n")),
        many("[MOVE_FILE path=\"a\" to=\"b\"]\n"),
        format!("[LIST_FILES path=\"a{}\"]\n", many("/")),
        many("[REPLY session=\"a1b2c3d4\" sequence=\"1\"]\n"),
        many("[REPLY session=\n"),
        many("[CREATE_FILE]\n[/CREATE_FILE] x\n"),
        many("--- a ---\n"),
        many("--- a ---\n[DONE]\n--- end a ---\n"),
        many("--- end a ---\n--- a ---\n[DONE]\n"),
        many("<DONE>"),
        many("<DONE>\n"),
        many("[["),
        many("［DONE"),
        many("[[DONE]]\n</DONE>\n"),
        many("[THINK][/THINK]"),
        many("[THINK]\n[/THINK]\n"),
        many("~~[DONE]~~\n"),
        format!("  {opening}{}  [/CREATE_FILE]\n", many("  x\n")),
        format!("{opening}{}[/CREATE_FILE]", many("[/CREATE_FILE] x\n")),
    ]
}

/// Blocks that each end by a word of their own, once and twice, and such as are drafted in thoughts.
fn words(bytes: usize) -> Vec<String> {
    let numbered = |tags: fn(usize) -> String, bytes: usize| -> String {
        (0..bytes / tags(10_000).len()).map(tags).collect()
    };
    let block = |n| format!("[MESSAGE end=\"w{n}\"]\nx\n[/MESSAGE end=\"w{n}\"]\n");
    let opening = |n| format!("[MESSAGE end=\"w{n}\"]\n");
    let closing = |n| format!("[/MESSAGE end=\"w{n}\"]\n");
    let other = |n| format!("[NAME_{n} x=\"y\"]\n[/NAME_{n}]\n");
    vec![
        numbered(block, bytes),
        numbered(block, bytes / 2).repeat(2),
        format!("<think>\n{}</think>\n", numbered(opening, bytes)),
        format!("{}{}", opening(0), numbered(closing, bytes)),
        numbered(other, bytes),
        format!(
            "<think>\n{}{}",
            "[MESSAGE end=\"E\"] x\n".repeat(bytes / 50),
            "[/MESSAGE end='E']\n".repeat(bytes / 50)
        ),
    ]
}

/// The same with what is nearly a tag, or stands behind thoughts on their line.
fn nearly_tags(bytes: usize) -> Vec<String> {
    let opening = "[CREATE_FILE path=\"a\"]\n";
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    vec![
        format!("{opening}{}\n[/CREATE_FILE]\n", many("[/CREATE_FILE] [CREATE_FILE \"")),
        format!("{opening}{}\n[/CREATE_FILE]\n", many("}[/CREATE_FILE][DONE")),
        many("<plan>"),
        many("</think><plan>"),
        many("<think>a</think>b\n[DONE]\n"),
        many("<plan>\n[DONE]\n</plan>\n"),
        format!("{}{}", "<plan>\n".repeat(bytes / 24), "[x]\n</plan>\n".repeat(bytes / 36)),
        many("<plan>\n</think>\n<think>\n[DONE]\n</plan>\n"),
        many("[MESSAGE]\n</plan>\n</think>\n"),
        many("[MESSAGE]\n<plan>\n</plan>\n[/MESSAGE]\n"),
        many("-->"),
        many("<!---->[DONE]"),
        many("<!--\n[DONE]\n-->[DONE]\n"),
        format!("{}{}", " ".repeat(bytes / 2), "-->".repeat(bytes / 6)),
        many("<|end|><|start|>assistant<|channel|>final<|message|>"),
        many("<|channel|>analysis<|message|>\n[DONE]\n<|end|>"),
        many("[think"),
        many("x </b>"),
        many("◁think▷◁/think▷[DONE]"),
        many("<plan>\n"),
        many("&lt;a "),
        many("<antThinking "),
        many("<details><summary"),
        many("</think>READ_FILE path=\"a\" "),
        many("READ_FILE path=\"a\"\n"),
        many("Step: [DONE \""),
        many("**Step:** [READ_FILE path=\"a\"] "),
        many("| [READ_FILE path=\"a\"] "),
        many("[REPLY session=\"a1b2c3d4\" sequence=\"1\"]\n"),
        many("x [DONE]\n[/DONE] x\n[/RUN_COMMAND]\n"),
        many("Delete or move a file:\n[DELETE_FILE path=\"a\"]\n"),
        many("</think><DONE>"),
        many("</think>&#91;DONE&#93;"),
        many("</think>[ASK]"),
        many("</think>[/ASK]"),
        many("</think>[COPY_FILE \""),
        many("</think>=== HEADER ==="),
        format!("{}{}", "[MESSAGE]\nx[/MESSAGE]\n".repeat(bytes / 44), "\n".repeat(bytes / 2)),
        many("\\<think\\> x\n"),
        many("\\</think\\>\n[DONE]\n[/DONE]\n"),
        many("**<think>**\n[DONE]\n**</think>**\n"),
        many("`</think>`&lt;/think&gt;"),
        many("**[THINK]**"),
        many("\\[/THINK\\]\n"),
        format!("{}THINK]", many("\\")),
        format!("[MESSAGE]\n{}\n[/MESSAGE]\n", many("`[/MESSAGE] [DONE]`")),
        format!("[MESSAGE]\n`{}`\n[/MESSAGE]\n", many("[/MESSAGE] [DONE] ")),
        many("- `[DELETE_FILE path=\"a\"]` — x\n"),
        format!("--- a ---\n{}--- end a ---\n", many("[DELETE_FILE path=\"a\"]\n")),
        in_blocks(bytes),
        many("[REPLY session=\"a\" sequence=\"1\"] [READ_FILE path=\"a\"]\n"),
        many("x: [REPLY session=\"a\" sequence=\"1\"] [READ_FILE path=\"a\"] "),
        format!(
            "[EDIT_FILE path=\"a\"]\n{}[/EDIT_FILE]\n",
            many("<<<<<<< SEARCH\nx\n=======\n``` x\n>>>>>>> REPLACE\n")
        ),
    ]
}

/// Many commands, each below the same line.
fn in_blocks(bytes: usize) -> String {
    let block = |n| format!("[REPLY session=\"a\" sequence=\"1\"]\n[READ_FILE path=\"{n}\"]\n");
    (0..bytes / 58).map(block).collect()
}

#[test]
fn keys_that_begin_and_do_not_end_are_looked_through_once() {
    let screened = |text: &str| drop(black_box(secrets::redact(text, Some("a.txt"))));
    let dashes = "-".repeat(5);
    let line = "q7Zk9wB3xT5vN1mR8cL2pD6sF4gH0jKyQ7Zk9wB3xT5vN1mR8cL2pD6sF4gH0jKy";
    let encoded = format!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk{line}");
    for (name, piece) in [
        ("begin", format!("{dashes}BEGIN PRIVATE KEY{dashes}\n")),
        ("begin and a line", format!("{dashes}BEGIN PRIVATE KEY{dashes}\n{line}\n")),
        ("end and a line", format!("{line}\n{dashes}END PRIVATE KEY{dashes}\n")),
        ("on one line", format!("{dashes}BEGIN PRIVATE KEY{dashes} words of no key {line}")),
        ("lines", format!("{line}\n")),
        ("Private-Lines", "Private-Lines: 9\nsome words\n".to_owned()),
        ("encoded", format!("{encoded} ")),
        ("encoded lines", format!("{encoded}\n")),
        ("dashes", "-".repeat(64)),
    ] {
        let text =
            |bytes: usize| format!("{dashes}BEGIN PRIVATE KEY{dashes}\n{}", many(&piece, bytes));
        is_flat(name, &[MIB / 4, 4 * MIB], &text, screened);
    }
}

#[test]
fn what_follows_a_name_is_not_looked_at_once_for_each_pattern() {
    let screened = |text: &str| drop(black_box(secrets::redact(text, Some("a.js"))));
    // Behind names that are about secrets, and are none of one, there is nothing to look at.
    let (plain, names) = (
        many("tokenizer = passwordless(secretary, api_keyed);", MIB / 2),
        many("token = password(secret, api_key);", MIB / 2),
    );
    let few = (0..3).map(|_| per_byte(&plain, screened)).fold(f64::MAX, f64::min);
    let least = (0..RUNS).map(|_| per_byte(&names, screened)).fold(f64::MAX, f64::min);
    eprintln!("{few:.1} ns a byte, {least:.1} of names");
    assert!(least <= few * 4.0, "{least:.1} ns a byte, where it is {few:.1} else");
}

#[test]
fn what_could_begin_a_token_anywhere_is_not_looked_through_each_time() {
    let screened = |text: &str| drop(black_box(secrets::redact(text, Some("a.txt"))));
    let text = |end: &str| many(&format!("{}{end}", many("eyJhbGc", 448)), MIB / 4);
    // A header of a JSON web token ends with a dot; without one there is nothing to look at.
    let (plain, hostile) = (text(" "), text("."));
    let few = (0..3).map(|_| per_byte(&plain, screened)).fold(f64::MAX, f64::min);
    let least = (0..RUNS).map(|_| per_byte(&hostile, screened)).fold(f64::MAX, f64::min);
    eprintln!("{few:.1} ns a byte, {least:.1} of what could be tokens");
    assert!(least <= few * 6.0, "{least:.1} ns a byte, where it is {few:.1} else");
}
