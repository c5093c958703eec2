//! Properties that hold for any text.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Pieces of secrets and of the text around them, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let dashes = "-".repeat(5);
    let mut pieces: Vec<String> = [
        "\n",
        "\r\n",
        " ",
        "\"",
        "'",
        "\\n",
        "\\\"",
        "=",
        ":",
        ": ",
        "é",
        "\u{1b}[1m",
        "://",
        "@",
        "%3D",
        "&",
        "?",
        "password",
        "token",
        "API_KEY",
        "secret = ",
        "--token ",
        "Bearer ",
        "Authorization: Basic ",
        "export A=",
        "machine m login l password ",
        "kind: Secret\ndata:\n  a: ",
        "\"auth\": \"",
        "postgres://u:",
        "@h.corp/x",
        "eyJ",
        ".",
        "-",
        "/",
        "Private-Lines: 2\n",
        "LS0tLS1CRUdJTi",
        "[withheld: AWS key]",
        "[withheld: ",
        "]",
        "Proc-Type: 4,E\n",
        "x",
        "discord",
        "${A}",
        "---\n",
        "`",
    ]
    .map(str::to_owned)
    .into();
    pieces.extend([
        format!("{dashes}BEGIN RSA PRIVATE KEY{dashes}"),
        format!("{dashes}END RSA PRIVATE KEY{dashes}"),
        format!("{dashes}BEGIN PRIVATE KEY{dashes}\n"),
    ]);
    for seed in 0..6 {
        pieces.extend([
            drawn(BASE64, 64, seed),
            drawn(BASE64, 40, seed),
            drawn(BASE62, 22, seed),
            drawn(HEX, 32, seed),
            format!("AKIA{}", drawn(BASE32, 16, seed)),
            format!("ghp_{}", drawn(BASE62, 36, seed)),
            format!("sk-ant-{}", drawn(BASE62, 40, seed)),
            format!("12345678:AA{}", drawn(BASE62, 33, seed)),
        ]);
    }
    prop::collection::vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

fn names() -> impl Strategy<Value = Option<&'static str>> {
    select(vec![
        None,
        Some(".env"),
        Some("a.rs"),
        Some("x/.netrc"),
        Some("a.yml"),
        Some(".pgpass"),
        Some("README.md"),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn lines_stay_and_twice_is_once(text in pieces(), name in names()) {
        let once = redact(&text, name);
        prop_assert_eq!(once.text.matches('\n').count(), text.matches('\n').count());
        let twice = redact(&once.text, name);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.findings.is_empty());
        prop_assert_eq!(once.findings.is_empty(), once.text == text);
        let lines = text.matches('\n').count() + 1;
        prop_assert!(once.findings.iter().all(|findings| (1..=lines).contains(&findings.line)));
    }

    #[test]
    fn any_text_is_taken(text in any::<String>(), name in names()) {
        redact(&text, name);
    }

    #[test]
    fn a_token_between_any_texts_is_gone(before in pieces(), after in pieces(), seed in 0..1_000_u64, name in names()) {
        let token = format!("ghp_{}", drawn(BASE62, 36, seed + 100));
        prop_assume!(!sorts(&token, None).is_empty());
        let text = format!("{before}\n{token}\n{after}");
        prop_assert!(!redact(&text, name).text.contains(&token));
    }
}
