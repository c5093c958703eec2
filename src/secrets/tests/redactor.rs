//! The report for the person.

use super::*;
use crate::secrets::{CutEnds, Redactor};
use crate::settings::{Secrets, SecretsMode};

fn token(seed: u64) -> String {
    format!("ghp_{}", drawn(BASE62, 36, seed))
}

#[test]
fn each_place_and_sort_is_told_once_with_its_lines() {
    let mut redactor = Redactor::new(&Secrets::default());
    let text: String = (1..8).map(|n| format!("t = {}\n", token(n))).collect();
    let shown = redactor.contents("a b/x.py", &text).into_owned();
    assert_eq!(shown, "t = [withheld: GitHub token]\n".repeat(7));
    assert_eq!(redactor.contents("a b/x.py", &text), shown, "asked for twice, told once");
    redactor.output("'env'", None, &format!("\nT={}\n", token(9)));
    let name = format!("{}.txt", token(10));
    assert_eq!(redactor.name(&name), "[withheld: GitHub token].txt");
    assert_eq!(redactor.name("plain.txt"), "plain.txt");
    assert_eq!(
        redactor.summaries(),
        [
            "withheld from the outbox: GitHub token in a b/x.py lines 1, 2, 3, 4, 5 and 2 more (secrets = \"warn\" or secrets_allow = [\"a b/x.py\"] releases it)",
            "withheld from the outbox: GitHub token in the output of 'env', line 2 (secrets = \"warn\" releases it)",
            "withheld from the outbox: GitHub token in the name of a file ([withheld: GitHub token].txt) (secrets = \"warn\" releases it)",
        ]
    );
}

#[test]
fn what_is_released_is_shown_and_not_told() {
    let allow = vec!["fixtures/*.pem".to_owned()];
    let mut redactor = Redactor::new(&Secrets { allow, ..Secrets::default() });
    let text = token(1);
    assert_eq!(redactor.contents("fixtures/a.pem", &text), text);
    assert!(redactor.summaries().is_empty());
    assert_ne!(redactor.contents("a.pem", &text), text);
    assert_eq!(redactor.summaries().len(), 1);
}

#[test]
fn a_warning_shows_and_tells() {
    let mut redactor = Redactor::new(&Secrets { mode: SecretsMode::Warn, ..Secrets::default() });
    let text = token(1);
    assert_eq!(redactor.contents("a.txt", &text), text);
    assert_eq!(
        redactor.summaries(),
        ["shown in the outbox (secrets = \"warn\"): GitHub token in a.txt line 1"]
    );
}

#[test]
fn of_a_part_the_lines_are_those_of_the_file() {
    let mut redactor = Redactor::new(&Secrets { mode: SecretsMode::Warn, ..Secrets::default() });
    let text = format!("x\nt = {}\n", token(1));
    assert_eq!(redactor.isolated_lines(Some("a.txt"), 900, &text, CutEnds::default()), text);
    // The line on its own gives the same result.
    redactor.isolated_lines(Some("a.txt"), 901, text.lines().nth(1).unwrap(), CutEnds::default());
    assert_eq!(
        redactor.summaries(),
        ["shown in the outbox (secrets = \"warn\"): GitHub token in a.txt line 901"]
    );
}

#[test]
fn many_places_are_counted() {
    let mut redactor = Redactor::new(&Secrets::default());
    for n in 0..25 {
        redactor.contents(&format!("f{n}"), &token(n));
    }
    let told = redactor.summaries();
    assert_eq!(told.len(), 21);
    assert_eq!(told[20], "withheld from the outbox: secrets in 5 more places");
}

#[test]
fn a_secret_file_that_no_rule_can_read_is_withheld_as_a_whole() {
    let mut redactor = Redactor::new(&Secrets::default());
    for name in ["server.key", "store.p12", "a/store.jks.bak"] {
        let shown = redactor.contents(name, "0\u{fffd}\0\u{1}x\nrest").into_owned();
        assert_eq!(shown, "[withheld: secret file]\n", "{name}");
    }
    assert_eq!(redactor.contents("picture.png", "\u{fffd}PNG\0"), "\u{fffd}PNG\0");
    assert_eq!(redactor.contents("store.p12", "only words"), "only words");
    let allow = vec!["*.p12".to_owned()];
    let mut redactor = Redactor::new(&Secrets { allow, ..Secrets::default() });
    assert_eq!(redactor.contents("store.p12", "0\0"), "0\0");
}

#[test]
fn stray_lines_of_a_narrow_key_are_withheld() {
    let mut redactor = Redactor::new(&Secrets::default());
    let cut = CutEnds::default();
    for width in [8, 12, 16] {
        let path = &*format!("k{width}.txt");
        let mut shown = 0;
        for seed in 0..200 {
            let line = drawn(BASE64, width, seed);
            let text = redactor.isolated_lines(Some(path), 9, &line, cut).into_owned();
            shown += usize::from(text.contains(&line[..8]));
        }
        // At most the text before the first run that looks random is shown.
        assert!(shown <= 1, "{width}: {shown} are shown");
        let block: String = (0..4).map(|n| drawn(BASE64, width, n) + "\n").collect();
        let text = redactor.isolated_lines(Some("other.txt"), 9, &block, cut);
        assert_eq!(text, "[withheld: private key]\n".repeat(4), "{block}");
    }
    for line in
        ["    parse_key(&text)", "use std::collections::HashMap;", "sha256sum 3f2a9c1d", "}"]
    {
        assert_eq!(redactor.isolated_lines(Some("source.rs"), 1, line, cut), line);
    }
}
