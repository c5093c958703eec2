//! Reading a line ends soon and never panics.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::select;

use crate::policy::reading::{LONGEST, read};
use crate::policy::{Verdict, command, explain};
use crate::protocol::ShellCommand;
use crate::settings::Policy;

const PIECES: &[&str] = &[
    " ", "\n", ";", "&", "&&", "|", "||", "(", ")", "{", "}", "$(", "${", "$((", "))", "`", "'",
    "\"", "\\", "<<E", "\nE\n", "<<'E'", "<<-E", "<<<", ">", "2>&1", "&>", "<(", "#", "$", "*",
    "?", "[", "]", "[[", "]]", "~", "=", "X=1", "if", "then", "fi", "for", "in", "do", "done",
    "case", "esac", "f()", "function", "while", "!", "time", "env", "-S", "sh", "-c", "eval",
    "xargs", "-I", "{}", "find", "-exec", "+", "-delete", "rm", "-rf", "/", "sudo", "git",
    "commit", "echo", "é", "\u{a0}", "😀", "\t", "\r", "a", "1", "--", "-", "\u{7f}", "$'", "$\"",
    "@P",
];

fn everything() -> Vec<Policy> {
    Policy::PRESETS.iter().filter_map(|name| Policy::preset(name)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]
    #[test]
    fn any_line_can_be_read(
        parts in prop::collection::vec(select(PIECES), 0..60),
        noise in ".{0,20}",
    ) {
        let line = parts.concat() + &noise;
        for policy in everything() {
            let _ = explain(&policy, &ShellCommand::new(&line), true);
        }
    }

    #[test]
    fn what_is_denied_is_denied_wherever_it_stands(
        before in select(&["", "true; ", "echo 'a b' && ", "(", "! ", "x=1 ", "ls | ", "$X; ",
            "eval y; ", "echo \"$(", "cat <<E\nit's\nE\n", "# it's\n", "echo \\' ; ", "if "][..]),
        what in select(&["sudo ls", "rm -rf /", "r\\m -r -f ~", "\"sudo\" x", "env sudo x"][..]),
        after in select(&["", "; true", " && ls", " > x", " | cat", " # x", "\nls"][..]),
    ) {
        let close = if before.ends_with("$(") { ")\"" } else if before == "(" { ")" } else { "" };
        let close = if before == "if " { "; then ls; fi" } else { close };
        let (inner, outer) = if close.is_empty() { (after, "") } else { ("", after) };
        let line = format!("{before}{what}{inner}{close}{outer}");
        for name in ["standard", "permissive"] {
            let decision = command(&Policy::preset(name).unwrap(), &line, false);
            prop_assert!(matches!(decision, Verdict::Deny(_)), "{name}: {line}: {decision:?}");
        }
    }
}

/// Texts that could take longer to read than their length suggests.
#[test]
fn no_text_takes_long() {
    let standard = Policy::preset("standard").unwrap();
    let begun = Instant::now();
    let texts = [
        "<<A",
        "<<A\na\n",
        "$(",
        "(",
        "`",
        "${",
        "\"$(",
        "if ",
        "case x in (",
        "ls; ",
        "[",
        "a=",
        "$((1+",
        "{ ",
        "! ",
        "env ",
        "find -exec ",
        "sh -c ",
        "eval ",
        "`a` ",
        "\\`",
        "ls|",
        "'",
        "a\\\n",
        "cat <<A\n",
        "$x",
        "*",
        "~/",
        "a[",
        "xargs ",
        "time ",
        "-",
        "a b ",
        "echo $x;",
    ];
    for text in texts {
        for length in [1_000, LONGEST, 100_000] {
            let line: String = text.chars().cycle().take(length).collect();
            let one = Instant::now();
            let decision = command(&standard, &line, true);
            let took = one.elapsed();
            assert!(took < Duration::from_secs(3), "{text:?} of {length}: {took:?}");
            assert!(length <= LONGEST || decision != Verdict::Allow, "{text:?}");
        }
    }
    let body = format!("cat <<A\n{}", "A \n".repeat(20_000));
    assert_ne!(command(&standard, &body, true), Verdict::Allow);
    let took = begun.elapsed();
    assert!(took < Duration::from_mins(1), "{took:?}");
}

#[test]
fn a_long_pattern_is_found_soon_among_many_flags() {
    let mut policy = Policy::preset("permissive").unwrap();
    policy.shell.blocked = vec!["docker run x y z".to_owned()];
    let begun = Instant::now();
    let line = format!("docker{}", " -x $y".repeat(600));
    assert!(matches!(command(&policy, &line, false), Verdict::Ask(_)));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn what_is_too_long_or_too_deep_asks_and_says_so() {
    let why = |line: &str| read(line).unreadable.join("; ");
    assert!(why(&" ".repeat(LONGEST + 1)).contains("longer than 64 KiB"));
    assert!(why(&format!("{}ls{}", "( ".repeat(150), " )".repeat(150))).contains("too deep"));
    let mut line = "ls".to_owned();
    for _ in 0..5 {
        line = format!("sh -c '{}'", line.replace('\'', "'\\''"));
    }
    assert!(why(&line).contains("too deep"), "{line}");
    assert!(why("a\0b").contains("control character"));
}

#[test]
fn a_large_file_in_a_document_is_still_read() {
    let standard = Policy::preset("standard").unwrap();
    let line =
        format!("cat > notes.md <<'EOF'\n{}EOF\n", "It's `code` of $5; (a) & b\n".repeat(400));
    assert_eq!(command(&standard, &line, true), Verdict::Allow);
}
