//! What the person is told.

use super::*;
use crate::config::{Secrets, SecretsMode};
use crate::secrets::{Cut, Screen};

fn token(seed: u64) -> String {
    format!("ghp_{}", drawn(BASE62, 36, seed))
}

#[test]
fn each_place_and_sort_is_told_once_with_its_lines() {
    let mut screen = Screen::new(&Secrets::default());
    let text: String = (1..8).map(|n| format!("t = {}\n", token(n))).collect();
    let shown = screen.contents("a b/x.py", &text).into_owned();
    assert_eq!(shown, "t = [withheld: GitHub token]\n".repeat(7));
    assert_eq!(screen.contents("a b/x.py", &text), shown, "asked for twice, told once");
    screen.output("'env'", &format!("\nT={}\n", token(9)));
    let name = format!("{}.txt", token(10));
    assert_eq!(screen.name(&name), "[withheld: GitHub token].txt");
    assert_eq!(screen.name("plain.txt"), "plain.txt");
    assert_eq!(
        screen.told(),
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
    let mut screen = Screen::new(&Secrets { allow, ..Secrets::default() });
    let text = token(1);
    assert_eq!(screen.contents("fixtures/a.pem", &text), text);
    assert!(screen.told().is_empty());
    assert_ne!(screen.contents("a.pem", &text), text);
    assert_eq!(screen.told().len(), 1);
}

#[test]
fn a_warning_shows_and_tells() {
    let mut screen = Screen::new(&Secrets { mode: SecretsMode::Warn, ..Secrets::default() });
    let text = token(1);
    assert_eq!(screen.contents("a.txt", &text), text);
    assert_eq!(
        screen.told(),
        ["shown in the outbox (secrets = \"warn\"): GitHub token in a.txt line 1"]
    );
}

#[test]
fn of_a_part_the_lines_are_those_of_the_file() {
    let mut screen = Screen::new(&Secrets { mode: SecretsMode::Warn, ..Secrets::default() });
    let text = format!("x\nt = {}\n", token(1));
    assert_eq!(screen.stray(Some("a.txt"), 900, &text, Cut::default()), text);
    // The line by itself is the same.
    screen.stray(Some("a.txt"), 901, text.lines().nth(1).unwrap(), Cut::default());
    assert_eq!(
        screen.told(),
        ["shown in the outbox (secrets = \"warn\"): GitHub token in a.txt line 901"]
    );
}

#[test]
fn many_places_are_counted() {
    let mut screen = Screen::new(&Secrets::default());
    for n in 0..25 {
        screen.contents(&format!("f{n}"), &token(n));
    }
    let told = screen.told();
    assert_eq!(told.len(), 21);
    assert_eq!(told[20], "withheld from the outbox: secrets in 5 more places");
}
