//! What is left of secrets where an output was cut.

use super::*;
use crate::secrets::forms::FORMS;
use crate::secrets::{Cut, Look, screened};

const END: Cut = Cut { beginning: false, end: true };
const BEGINNING: Cut = Cut { beginning: true, end: false };

fn left(text: &str, cut: Cut) -> String {
    screened(text, &Look { cut, ..Look::default() }).text.into_owned()
}

#[test]
fn a_token_without_its_end_is_withheld_from_its_fourth_character_on() {
    for form in FORMS.iter().filter(|form| form.before == 0) {
        let letters = super::forms::letters(form.alphabet);
        let (mut shown, mut all) = (0, 0);
        for seed in 0..20 {
            let body = drawn(letters, form.least, seed + 500);
            for length in 4..form.least {
                let cut = format!("{}{}", form.prefix, &body[..length]);
                let kept = if form.shows { form.prefix } else { "" };
                let expected = format!("a line\nkey: {kept}[withheld: {}]", form.sort);
                all += 1;
                shown += usize::from(left(&format!("a line\nkey: {cut}"), END) != expected);
            }
        }
        // Four letters can be a word by chance.
        assert!(shown * 10 <= all, "{}: {shown} of {all} are shown", form.prefix);
    }
    let body = drawn(BASE62, 20, 7);
    assert_eq!(left(&format!("tok_ghp_{body}"), END), "tok_[withheld: GitHub token]");
    // Whole ones that a text happens to end with are no others.
    let token = format!("ghp_{}", drawn(BASE62, 36, 7));
    assert_eq!(left(&token, END), "[withheld: GitHub token]");
    shown(&token[..20], None);
}

#[test]
fn a_value_without_its_end_is_withheld() {
    let value = drawn(BASE62, 12, 71);
    for (before, sort) in [
        ("password = \"", "password"),
        ("DB_PASS=", "password"),
        ("SESSION_KEY: ", "secret"),
        ("Authorization: Bearer ", "token"),
        ("tool --token ", "token"),
        ("DATABASE_URL=postgres://app:", "password in an address"),
    ] {
        let text = format!("x\n{before}{value}");
        assert_eq!(left(&text, END), format!("x\n{before}[withheld: {sort}]"), "{before}");
        // What goes on behind the value does not end with it. A password may be found whole.
        if sort != "password" {
            assert_eq!(left(&format!("{text}\nand more"), END), format!("{text}\nand more"));
        }
    }
    for text in [
        "password = ",
        "token = parse_token",
        "http://localhost:8080",
        "secret: \"chan",
        "key-value",
    ] {
        assert_eq!(left(text, END), text);
    }
}

#[test]
fn a_key_without_its_end_is_withheld_from_its_eighth_character_on() {
    let begins = format!("{0}BEGIN RSA PRIVATE KEY{0}\n", "-".repeat(5));
    let line = drawn(BASE64, 30, 72);
    assert_eq!(left(&format!("{begins}{line}"), END), format!("{begins}[withheld: private key]"));
    // Also where nobody knows that something is missing.
    assert_eq!(
        left(&format!("{begins}{line}"), Cut::default()),
        format!("{begins}[withheld: private key]")
    );
    shown(&format!("{begins}{line}...\n"), None);
    assert_eq!(left(&format!("{begins}{}", &line[..6]), END), format!("{begins}{}", &line[..6]));
}

#[test]
fn the_end_of_a_token_is_withheld_where_the_output_begins_with_it() {
    for length in [10, 16, 30] {
        let (mut shown, rest) = (0, " and the rest\n");
        for seed in 0..50 {
            let text = format!("{}{rest}", drawn(BASE62, length, seed + 900));
            shown +=
                usize::from(left(&text, BEGINNING) != format!("[withheld: cut-off token]{rest}"));
        }
        // Some have too few digits to be told from words.
        let most = if length < 16 { 30 } else { 10 };
        assert!(shown <= most, "{length}: {shown} of 50 are shown");
    }
    let body = format!("{}\n{}\n", drawn(BASE64, 20, 1), drawn(BASE64, 64, 2));
    assert_eq!(left(&format!("{body}all ok\n"), BEGINNING), "[withheld: private key]\n\nall ok\n");
    for text in [
        "ompiling serde v1.0.219\n",
        "s/it/secrets.rs:12\n",
        "12:33:01 ok\n",
        "\nline\n",
        "",
        "1234\n",
    ] {
        assert_eq!(left(text, BEGINNING), text);
    }
}
