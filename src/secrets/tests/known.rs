//! Secrets of files, found again elsewhere.

use super::*;
use crate::secrets::{Cut, Known, Look, holds_secrets, screened};

const ENV: &str = "PORT=8080\nDEBUG=true\nAPP_NAME=internal thing\nDB_PASSWORD=\"plain but mine\"\n\
    HOOK=https://hooks.corp/T7/b81\nPIN=1234\nADMIN_PASSWORD=password\nEDITOR_KEY=private key\n";

fn shown_with(known: &Known, text: &str, cut: Cut) -> String {
    screened(text, &Look { known: Some(known), cut, ..Look::default() }).text.into_owned()
}

#[test]
fn values_of_an_environment_are_found_wherever_they_stand() {
    let known = Known::of([("app/.env", ENV)]);
    assert_eq!(known.len(), 3, "{known:?}");
    let output = "DB_PASSWORD=plain but mine\nPORT=8080\nAPP_NAME=internal thing\nADMIN_PASSWORD=password\n\
        connecting with \"plain but mine\"; posted to https://hooks.corp/T7/b81?x=1\n1234 tests\n";
    let expected = output
        .replace("plain but mine", "[withheld: .env value]")
        .replace("APP_NAME=internal thing", "APP_NAME=[withheld: .env value]")
        .replace("ADMIN_PASSWORD=password", "ADMIN_PASSWORD=[withheld: .env value]")
        .replace("https://hooks.corp/T7/b81", "[withheld: .env value]");
    assert_eq!(shown_with(&known, output, Cut::default()), expected);
    // A password that is what stands for others does not stand for itself.
    let key = "a private key here: [withheld: private key]\n";
    let expected = "a [withheld: .env value] here: [withheld: private key]\n";
    assert_eq!(shown_with(&known, key, Cut::default()), expected);
    assert_eq!(shown_with(&known, expected, Cut::default()), expected);
    assert!(Known::of([(".env.example", ENV), ("README.md", ENV)]).is_empty());
}

#[test]
fn a_weak_value_is_found_beside_its_name() {
    let known =
        Known::of([(".env", "DB_PASSWORD=hunter22\nexport PIN='12'\nPIN=12345\nOFF=false\n")]);
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
        assert_eq!(shown_with(&known, text, Cut::default()), shown.replace('§', mark));
    }
    let end = Cut { beginning: false, end: true };
    assert_eq!(shown_with(&known, "x DB_PASSWORD=hunt", end), format!("x DB_PASSWORD={mark}"));
    assert_eq!(shown_with(&known, "x DB_PASSWORD=", end), "x DB_PASSWORD=");
    assert!(Known::of([("README.md", "DB_PASSWORD=hunter22\n")]).pairs.is_empty());
}

#[test]
fn what_was_cut_of_a_value_is_found_too() {
    let known = Known::of([(".env", ENV)]);
    let (end, beginning) =
        (Cut { beginning: false, end: true }, Cut { beginning: true, end: false });
    assert_eq!(shown_with(&known, "with plain but", end), "with [withheld: .env value]");
    assert_eq!(shown_with(&known, "but mine\nnext", beginning), "[withheld: .env value]\nnext");
    assert_eq!(shown_with(&known, "with plain but", Cut::default()), "with plain but");
    assert_eq!(shown_with(&known, "in plain", end), "in plain");
}

#[test]
fn lines_of_a_key_are_found_in_any_order() {
    let lines: Vec<String> = (0..5).map(|n| drawn(BASE64, 64, n + 80)).collect();
    let dashes = "-".repeat(5);
    let key = format!(
        "{dashes}BEGIN PRIVATE KEY{dashes}\n{}\n{dashes}END PRIVATE KEY{dashes}\n",
        lines.join("\n")
    );
    let known = Known::of([("certs/server.key", &*key)]);
    assert_eq!(known.len(), 5);
    let output = format!("{}\n{}\n", lines[3], lines[1]);
    let mark = "[withheld: private key]";
    // Of a whole key still only the first line says so.
    let expected = format!(
        "{dashes}BEGIN PRIVATE KEY{dashes}\n{mark}\n\n\n\n\n{dashes}END PRIVATE KEY{dashes}\n"
    );
    assert_eq!(shown_with(&known, &key, Cut::default()), expected);
    assert_eq!(shown_with(&known, &output, Cut::default()), format!("{mark}\n{mark}\n"));
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
        assert!(holds_secrets(name), "{name}");
    }
    for name in ["env", "env.rs", ".env.example", "id_rsa.pub", "key", "pem.md", "environment"] {
        assert!(!holds_secrets(name), "{name}");
    }
}

#[test]
fn what_is_looked_for_is_bounded() {
    let many: String = (0..2_000).map(|n| format!("K{n}_KEY={}\n", drawn(BASE62, 40, n))).collect();
    let known = Known::of([(".env", &*many)]);
    assert_eq!(known.len(), 500);
    let long = format!("A_KEY={}\nB_KEY={}\n", drawn(BASE62, 2_000, 1), drawn(BASE62, 40, 2));
    assert_eq!(Known::of([(".env", &*long)]).len(), 1);
}

#[test]
fn a_value_that_stands_in_many_files_takes_room_once() {
    let long = |n| format!("SECRET_TOKEN={}\n", drawn(BASE64, 200, n));
    let (same, last) = (long(7), long(8));
    // Two hundred times that is more than is kept in mind.
    let files: Vec<String> = (0..200).map(|n| format!("{n}/.env")).collect();
    let mut all: Vec<(&str, &str)> = files.iter().map(|path| (&**path, &*same)).collect();
    all.push(("z/.env", &last));
    assert_eq!(Known::of(all).len(), 2);
}
