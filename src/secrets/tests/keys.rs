//! Private keys.

use std::process::Command;

use super::*;

/// Lines as those of a key.
fn body(width: usize) -> Vec<String> {
    let text = format!("MIIE{}Ab==", drawn(BASE64, width * 4, 21));
    text.as_bytes().chunks(width).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect()
}

fn begin(kind: &str) -> String {
    format!("{}BEGIN {kind}PRIVATE KEY-----", "-".repeat(5))
}

fn end(kind: &str) -> String {
    format!("{}END {kind}PRIVATE KEY-----", "-".repeat(5))
}

const MARKER: &str = "[withheld: private key]";

#[test]
fn the_body_of_a_key_goes_and_its_lines_stay() {
    for (kind, width) in [("", 64), ("RSA ", 64), ("EC ", 64), ("OPENSSH ", 70), ("ENCRYPTED ", 76)]
    {
        for line_end in ["\n", "\r\n"] {
            let body = body(width);
            let mut lines = vec!["before".to_owned(), begin(kind)];
            lines.extend(body.clone());
            lines.extend([end(kind), "after".to_owned()]);
            let screened = screen(&lines.join(line_end), None).text.into_owned();
            let mut expected = vec!["before".to_owned(), begin(kind), MARKER.to_owned()];
            expected.extend(vec![String::new(); body.len() - 1]);
            expected.extend([end(kind), "after".to_owned()]);
            assert_eq!(screened, expected.join(line_end));
        }
    }
}

#[test]
fn what_stands_around_the_lines_of_a_key_stays() {
    for (before, after) in [
        ("    \"", "\\n\"\n"),
        ("# ", "\n"),
        (" * ", "\n"),
        ("> ", "\n"),
        ("+", "\n"),
        ("'", "\\n' +\n"),
        ("  ", "\n"),
        ("     2\t", "\n"),
    ] {
        let lines: Vec<String> =
            [begin("RSA ")].into_iter().chain(body(64)).chain([end("RSA ")]).collect();
        let text: String = lines.iter().map(|line| format!("{before}{line}{after}")).collect();
        let Screened { text: shown, found } = screen(&text, Some("key.py"));
        assert_eq!((found.len(), found[0].line), (1, 2), "{text}");
        for line in body(64).iter().filter(|line| line.len() > 8) {
            assert!(!shown.contains(line.as_str()), "{before}: {shown}");
        }
        assert_eq!(shown.lines().count(), text.lines().count());
        if !before.contains('+') {
            let first = text.lines().nth(1).unwrap();
            assert_eq!(shown.lines().nth(1).unwrap(), first.replace(&body(64)[0], MARKER));
        }
    }
}

#[test]
fn a_key_on_one_line_is_found() {
    let text = format!(
        "{{\"private_key\": \"{}\\n{}\\n{}\\n\"}}",
        begin(""),
        body(64).join("\\n"),
        end("")
    );
    let screened = screen(&text, Some("account.json")).text.into_owned();
    assert!(screened.contains(&format!("{}\\n{MARKER}\\n", begin(""))), "{screened}");
    assert!(body(64).iter().take(4).all(|line| !screened.contains(line.as_str())));
    let text = format!("K=\"{}{}{}\"", begin(""), body(64).concat(), end(""));
    assert_eq!(screen(&text, None).text, format!("K=\"{}{MARKER}{}\"", begin(""), end("")));
}

#[test]
fn half_a_key_is_enough() {
    let lines = body(64);
    let text = format!("{}\n{}\n[… 3 lines left out …]\n", begin("RSA "), lines[..2].join("\n"));
    assert_eq!(
        screen(&text, None).text,
        format!("{}\n{MARKER}\n\n[… 3 lines left out …]\n", begin("RSA "))
    );
    let text = format!("left out\n{}\n{}\nnext\n", lines[2..].join("\n"), end("RSA "));
    let shown = screen(&text, None).text.into_owned();
    assert_eq!(
        shown,
        format!("left out\n{MARKER}{}{}\nnext\n", "\n".repeat(lines.len() - 2), end("RSA "))
    );
}

#[test]
fn headers_and_other_kinds_are_known() {
    let body = body(64).join("\n");
    let text = format!(
        "{}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{body}\n{}\n",
        begin("RSA "),
        end("RSA ")
    );
    let shown = screen(&text, None).text.into_owned();
    assert!(shown.contains("DEK-Info: AES-128-CBC,00FF\n\n[withheld: private key]\n\n"), "{shown}");
    let dashes = "-".repeat(5);
    let text = format!(
        "{dashes}BEGIN PGP PRIVATE KEY BLOCK{dashes}\nVersion: 1\n\n{body}\n=aB3x\n{dashes}END PGP PRIVATE KEY BLOCK{dashes}\n"
    );
    let shown = screen(&text, None).text.into_owned();
    assert!(
        shown.contains(MARKER) && !shown.contains("MIIE") && !shown.contains("aB3x"),
        "{shown}"
    );
    let text = format!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 4\n{body}\nPrivate-MAC: 00aa\n"
    );
    let shown = screen(&text, Some("id.ppk")).text.into_owned();
    assert!(
        shown.contains(&format!("Private-Lines: 4\n{MARKER}\n\n"))
            && shown.ends_with("Private-MAC: 00aa\n"),
        "{shown}"
    );
    let text = format!("{} BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{body}\n", "-".repeat(4));
    assert_eq!(sorts(&text, None), ["private key"]);
    use base64::Engine;
    let encoded =
        base64::engine::general_purpose::STANDARD.encode(format!("{}\n{body}\n", begin("RSA ")));
    withheld(&format!("client-key-data: {encoded}\n"), Some("config"), &encoded, "private key");
}

#[test]
fn what_is_no_private_key_is_shown() {
    let body = body(64).join("\n");
    let dashes = "-".repeat(5);
    for kind in ["PUBLIC KEY", "CERTIFICATE", "RSA PUBLIC KEY"] {
        shown(&format!("{dashes}BEGIN {kind}{dashes}\n{body}\n{dashes}END {kind}{dashes}\n"), None);
    }
    let (begin, end) = (begin("RSA "), end("RSA "));
    for text in [
        format!("{begin}\n...\n{end}\n"),
        format!("{begin}\n<your key>\n{end}\n"),
        format!("{begin}\nMIIE...\n{end}\n"),
        format!(
            "const BEGIN: &str = \"{begin}\";\nconst END: &str = \"{end}\";\nfn parse_the_body_of_a_key() {{}}\n"
        ),
        format!(
            "if line.starts_with(\"{begin}\") {{\n    return decode(line.trim_end_matches(\"x\"));\n}}\n"
        ),
        format!("{begin}\n{}\n{end}\n", "x".repeat(64)),
        "The PRIVATE KEY is not here.".to_owned(),
    ] {
        shown(&text, None);
    }
}

#[test]
fn a_key_that_was_made_just_now_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("id");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&path)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no ssh-keygen");
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let shown = screen(&text, Some("id")).text.into_owned();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[1..lines.len() - 1] {
        assert!(!shown.contains(line), "{shown}");
    }
    assert_eq!(shown.lines().count(), lines.len());
    assert_eq!(
        (shown.lines().next(), shown.lines().last()),
        (Some(lines[0]), lines.last().copied())
    );
}
