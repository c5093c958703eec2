//! Secrets from files that are found in other texts.

use super::*;
use crate::secrets::{SecretSnapshot, TextContext, is_secret_text_file, redact_part};

const ENV: &str = "PORT=8080\nDEBUG=true\nAPP_NAME=internal thing\nDB_PASSWORD=\"plain but mine\"\n\
    HOOK=https://hooks.corp/T7/b81\nPIN=1234\nADMIN_PASSWORD=password\nEDITOR_KEY=private key\n";

fn shown_with(snapshot: &SecretSnapshot, text: &str) -> String {
    part_shown_with(snapshot, "", text, "")
}

/// The redacted middle of a text.
fn part_shown_with(snapshot: &SecretSnapshot, before: &str, text: &str, after: &str) -> String {
    let context = TextContext { snapshot: Some(snapshot), ..TextContext::default() };
    let whole = [before, text, after].concat();
    let part = before.len()..before.len() + text.len();
    redact_part(&whole, part, &context).text
}

#[test]
fn values_of_an_environment_are_found_wherever_they_stand() {
    let snapshot = SecretSnapshot::of([("app/.env", ENV)]);
    assert_eq!(snapshot.kinds.len(), 3, "{snapshot:?}");
    let output = "DB_PASSWORD=plain but mine\nPORT=8080\nAPP_NAME=internal thing\nADMIN_PASSWORD=password\n\
        connecting with \"plain but mine\"; posted to https://hooks.corp/T7/b81?x=1\n1234 tests\n";
    let expected = output
        .replace("plain but mine", "[withheld: .env value]")
        .replace("APP_NAME=internal thing", "APP_NAME=[withheld: .env value]")
        .replace("ADMIN_PASSWORD=password", "ADMIN_PASSWORD=[withheld: .env value]")
        .replace("https://hooks.corp/T7/b81", "[withheld: .env value]");
    assert_eq!(shown_with(&snapshot, output), expected);
    // A password may be the same as the words in a mark. Marks are not redacted again.
    let key = "a private key here: [withheld: private key]\n";
    let expected = "a [withheld: .env value] here: [withheld: private key]\n";
    assert_eq!(shown_with(&snapshot, key), expected);
    assert_eq!(shown_with(&snapshot, expected), expected);
    assert!(SecretSnapshot::of([(".env.example", ENV), ("README.md", ENV)]).kinds.is_empty());
}

#[test]
fn a_weak_value_is_found_beside_its_name() {
    let snapshot = SecretSnapshot::of([(
        ".env",
        "DB_PASSWORD=hunter22\nexport PIN='12'\nPIN=12345\nOFF=false\n",
    )]);
    let mark = "[withheld: .env value]";
    for (text, shown) in [
        ("DB_PASSWORD=hunter22\n", "DB_PASSWORD=§\n"),
        ("export DB_PASSWORD=\"hunter22\"", "export DB_PASSWORD=\"§\""),
        ("{\\\"DB_PASSWORD\\\":\\\"hunter22\\\"}", "{\\\"DB_PASSWORD\\\":\\\"§\\\"}"),
        ("DB_PASSWORD => hunter22, 'PIN' => '12'", "DB_PASSWORD => §, 'PIN' => '§'"),
        ("  DB_PASSWORD: hunter22", "  DB_PASSWORD: §"),
        (
            "{\"DB_PASSWORD\": \"hunter22\", \"PIN\": \"12\"}",
            "{\"DB_PASSWORD\": \"§\", \"PIN\": \"§\"}",
        ),
        ("PIN=12, PIN=12345;PIN = 12", "PIN=§, PIN=§;PIN = §"),
        ("PIN=123 PIN=1 SPIN=12 PIN==12 PIN\n=12", "PIN=123 PIN=1 SPIN=12 PIN==12 PIN\n=12"),
        ("DB_PASSWORD=other hunter2, OFF=false", "DB_PASSWORD=other hunter2, OFF=false"),
    ] {
        assert_eq!(shown_with(&snapshot, text), shown.replace('§', mark));
    }
    let cut = |text: &str, after: &str| part_shown_with(&snapshot, "", text, after);
    assert_eq!(cut("x DB_PASSWORD=hunt", "er22\n"), format!("x DB_PASSWORD={mark}"));
    assert_eq!(cut("x DB_PASSWORD=h", "unter22\n"), format!("x DB_PASSWORD={mark}"));
    assert_eq!(cut("x DB_PASSWORD=", "hunter22\n"), "x DB_PASSWORD=");
    assert!(SecretSnapshot::of([("README.md", "DB_PASSWORD=hunter22\n")]).variables.is_none());
}

#[test]
fn what_was_cut_of_a_value_is_found_too() {
    let snapshot = SecretSnapshot::of([(".env", ENV)]);
    let shown = |before, text, after| part_shown_with(&snapshot, before, text, after);
    let mark = "[withheld: .env value]";
    assert_eq!(shown("", "with plain but", " mine\n"), format!("with {mark}"));
    assert_eq!(shown("x plain ", "but mine\nnext", ""), format!("{mark}\nnext"));
    assert_eq!(shown("x plain ", "but", " mine\n"), mark);
    assert_eq!(shown("", "with plain but", " other\n"), "with plain but");
    assert_eq!(shown("", "in p", "lain but mine"), format!("in {mark}"));
}

#[test]
fn lines_of_a_key_are_found_in_any_order() {
    let lines: Vec<String> = (0..5).map(|n| drawn(BASE64, 64, n + 80)).collect();
    let dashes = "-".repeat(5);
    let key = format!(
        "{dashes}BEGIN PRIVATE KEY{dashes}\n{}\n{dashes}END PRIVATE KEY{dashes}\n",
        lines.join("\n")
    );
    let snapshot = SecretSnapshot::of([("certs/server.key", &*key)]);
    assert_eq!(snapshot.kinds.len(), 5);
    let output = format!("{}\n{}\n", lines[3], lines[1]);
    let mark = "[withheld: private key]";
    // For a whole key, only the first line still gets a mark.
    let expected = format!(
        "{dashes}BEGIN PRIVATE KEY{dashes}\n{mark}\n\n\n\n\n{dashes}END PRIVATE KEY{dashes}\n"
    );
    assert_eq!(shown_with(&snapshot, &key), expected);
    assert_eq!(shown_with(&snapshot, &output), format!("{mark}\n{mark}\n"));
}

#[test]
fn files_that_hold_secrets_are_told_by_their_names() {
    for name in [
        ".env",
        "a/.env.local",
        ".env-prod",
        "prod.env",
        ".pgpass",
        "x.ppk",
        ".npmrc",
        ".envrc",
        ".netrc",
        "a/id_rsa",
        "x.PEM",
        ".htpasswd",
    ] {
        assert!(is_secret_text_file(name), "{name}");
    }
    for name in ["env", "env.rs", ".env.example", "id_rsa.pub", "key", "pem.md", "environment"] {
        assert!(!is_secret_text_file(name), "{name}");
    }
}

#[test]
fn what_is_looked_for_is_bounded() {
    let many: String = (0..2_000).map(|n| format!("K{n}_KEY={}\n", drawn(BASE62, 40, n))).collect();
    let snapshot = SecretSnapshot::of([(".env", &*many)]);
    assert_eq!(snapshot.kinds.len(), 500);
    let long = format!("A_KEY={}\nB_KEY={}\n", drawn(BASE62, 2_000, 1), drawn(BASE62, 40, 2));
    assert_eq!(SecretSnapshot::of([(".env", &*long)]).kinds.len(), 1);
}

#[test]
fn a_value_that_stands_in_many_files_takes_room_once() {
    let long = |n| format!("SECRET_TOKEN={}\n", drawn(BASE64, 200, n));
    let (same, last) = (long(7), long(8));
    // Two hundred different values of this length would exceed the limit.
    let files: Vec<String> = (0..200).map(|n| format!("{n}/.env")).collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|path| (&**path, &*same)).collect();
    all.push(("z/.env", &last));
    assert_eq!(SecretSnapshot::of(all).kinds.len(), 2);
}
