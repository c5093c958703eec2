//! Secrets across the edge of the shown part: the rest of the text helps to recognise them.

use super::forms::Form;
use super::*;
use crate::secrets::{CutEnds, TextContext, redact_part};

/// The redacted middle of a text.
fn shown_part(before: &str, text: &str, after: &str) -> String {
    let whole = [before, text, after].concat();
    let part = before.len()..before.len() + text.len();
    redact_part(&whole, part, &TextContext::default()).text
}

/// Cuts a secret after each of its characters, and checks that both sides are withheld.
#[track_caller]
fn withheld_at_every_cut(before: &str, secret: &str, after: &str, kind: &str) {
    for at in 1..secret.len() {
        let (one, two) = secret.split_at(at);
        let shown = shown_part("", &format!("{before}{one}"), &format!("{two}{after}"));
        assert_eq!(shown, format!("{before}[withheld: {kind}]"), "{one}");
        let shown = shown_part(&format!("{before}{one}"), &format!("{two}{after}"), "");
        assert_eq!(shown, format!("[withheld: {kind}]{after}"), "{two}");
    }
}

#[test]
fn a_token_is_withheld_on_both_sides_of_every_cut() {
    for form in Form::all().into_iter().filter(|form| form.before == 0) {
        let letters = &form.letters();
        for seed in 0..20 {
            let body = drawn(letters, form.length.0, seed + 500);
            let kept = if form.keep_prefix { form.prefix } else { "" };
            let secret = if kept.is_empty() { form.prefix.to_owned() + &body } else { body };
            let before = format!("a line\nkey: {kept}");
            withheld_at_every_cut(&before, &secret, " end\nlast\n", &form.kind);
        }
    }
    let body = drawn(BASE62, 36, 7);
    let (head, rest) = body.split_at(20);
    let shown = shown_part("", &format!("tok_ghp_{head}"), rest);
    assert_eq!(shown, "tok_[withheld: GitHub token]");
    // A token at the end of a part may be complete.
    let token = format!("ghp_{body}");
    assert_eq!(shown_part("", &token, "\nx"), "[withheld: GitHub token]");
    assert_eq!(shown_part("x", "", &token), "");
    super::shown(&token[..20], None);
}

#[test]
fn a_value_is_withheld_on_both_sides_of_every_cut() {
    let value = drawn(BASE62, 22, 71);
    for (before, after, sort) in [
        ("password = \"", "\"\n", "password"),
        ("DB_PASS=", "\n", "password"),
        ("SESSION_KEY: ", "\n", "secret"),
        ("Authorization: Bearer ", "\n", "token"),
        ("tool --token ", " x\n", "token"),
        ("DATABASE_URL=postgres://app:", "@db.corp/x\n", "password in an address"),
    ] {
        withheld_at_every_cut(&format!("x\n{before}"), &value, after, sort);
    }
    for (text, after) in [
        ("password = ", "\n"),
        ("token = parse_token", "(text)\n"),
        ("http://localhost:8080", "/x\n"),
        ("secret: \"chan", "geme\"\n"),
        ("key-value", "-store\n"),
    ] {
        assert_eq!(shown_part("", text, after), text);
    }
}

#[test]
fn a_key_is_withheld_on_both_sides_of_every_cut() {
    let dashes = "-".repeat(5);
    let body: Vec<String> = (0..3).map(|n| drawn(BASE64, 64, 72 + n)).collect();
    let (begin, end) = (
        format!("{dashes}BEGIN RSA PRIVATE KEY{dashes}\n"),
        format!("\n{dashes}END RSA PRIVATE KEY{dashes}\n"),
    );
    let text = format!("{begin}{}{end}", body.join("\n"));
    for at in 0..text.len() {
        let (one, two) = text.split_at(at);
        for shown in [shown_part("", one, two), shown_part(one, two, "")] {
            assert!(!body.iter().any(|line| shown.contains(&line[..6])), "{shown}");
            assert!(!body.iter().any(|line| shown.contains(&line[58..])), "{shown}");
        }
        if (begin.len() + 1..text.len() - end.len()).contains(&at) {
            let shown = shown_part(one, two, "");
            assert!(shown.contains("[withheld: private key]"), "{shown}");
        }
    }
    // The same holds if it is unknown that the text was cut off.
    let line = &body[0][..30];
    let withheld = format!("{begin}[withheld: private key]");
    assert_eq!(redact(&format!("{begin}{line}"), None).text, withheld);
    shown(&format!("{begin}{line}...\n"), None);
    shown(&format!("{begin}{}", &line[..6]), None);
}

#[test]
fn findings_are_counted_from_the_beginning_of_the_part() {
    let token = format!("ghp_{}", drawn(BASE62, 36, 7));
    let (one, two) = token.split_at(9);
    let (before, text) = (format!("a\n{token}\nb {one}"), format!("{two}\nc\n{token}\n{one}"));
    let whole = [&before, &*text, two].concat();
    let part = before.len()..before.len() + text.len();
    let redacted = redact_part(&whole, part, &TextContext::default());
    let mark = "[withheld: GitHub token]";
    assert_eq!(redacted.text, format!("{mark}\nc\n{mark}\n{mark}"));
    let lines: Vec<usize> = redacted.findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [1, 3, 4]);
}

fn isolated(text: &str, cut: CutEnds) -> String {
    redact_part(text, 0..text.len(), &TextContext { isolated: Some(cut), ..TextContext::default() })
        .text
}

#[test]
fn a_piece_of_a_token_is_withheld_at_the_edge_of_an_isolated_line() {
    let (beginning, end) =
        (CutEnds { beginning: true, end: false }, CutEnds { beginning: false, end: true });
    for length in [10, 16, 30] {
        let (mut shown, rest) = (0, " and the rest");
        for seed in 0..50 {
            let piece = drawn(BASE62, length, seed + 900);
            let text = isolated(&format!("{piece}{rest}"), beginning);
            shown += usize::from(text != format!("[withheld: cut-off token]{rest}"));
            let text = isolated(&format!("{rest} key={piece}"), end);
            shown += usize::from(text != format!("{rest} key=[withheld: cut-off token]"));
        }
        // Some have too few digits to be distinguished from words.
        let most = if length < 16 { 60 } else { 20 };
        assert!(shown <= most, "{length}: {shown} of 100 are shown");
    }
    for text in [
        "ompiling serde v1.0.219\n",
        "s/it/secrets.rs:12\n",
        "12:33:01 ok\n",
        "\nline\n",
        "",
        "1234\n",
    ] {
        assert_eq!(isolated(text, beginning), text);
    }
    let body = format!("{} {}\n", drawn(BASE64, 20, 1), drawn(BASE64, 64, 2));
    let marks = "[withheld: cut-off token] [withheld: private key]\n";
    assert_eq!(isolated(&body, beginning), marks);
}
