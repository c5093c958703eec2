//! Private keys.

use std::process::Command;

use super::*;

/// Lines that look like those of a key.
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
            let redacted = redact(&lines.join(line_end), None).text;
            let mut expected = vec!["before".to_owned(), begin(kind), MARKER.to_owned()];
            expected.extend(vec![String::new(); body.len() - 1]);
            expected.extend([end(kind), "after".to_owned()]);
            assert_eq!(redacted, expected.join(line_end));
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
        let Redacted { text: shown, findings } = redact(&text, Some("key.py"));
        assert_eq!((findings.len(), findings[0].line), (1, 2), "{text}");
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
    let redacted = redact(&text, Some("account.json")).text;
    assert!(redacted.contains(&format!("{}\\n{MARKER}\\n", begin(""))), "{redacted}");
    assert!(body(64).iter().take(4).all(|line| !redacted.contains(line.as_str())));
    let text = format!("K=\"{}{}{}\"", begin(""), body(64).concat(), end(""));
    assert_eq!(redact(&text, None).text, format!("K=\"{}{MARKER}{}\"", begin(""), end("")));
}

#[test]
fn a_marker_may_have_other_blanks_and_letters() {
    for (from, to) in [("RSA PRIVATE", "RSA  PRIVATE"), (" ", "\u{a0}"), (" ", "\t")] {
        let marker = |text: String| text.replace(from, to);
        let text =
            format!("{}\n{}\n{}\n", marker(begin("RSA ")), body(64).concat(), marker(end("RSA ")));
        assert_eq!(sorts(&text, None), ["private key"], "{text}");
        assert_eq!(sorts(&text.replace("BEGIN", "Begin"), None), ["private key"], "{text}");
    }
}

#[test]
fn half_a_key_is_enough() {
    let lines = body(64);
    let text = format!("{}\n{}\n[… 3 lines left out …]\n", begin("RSA "), lines[..2].join("\n"));
    assert_eq!(
        redact(&text, None).text,
        format!("{}\n{MARKER}\n\n[… 3 lines left out …]\n", begin("RSA "))
    );
    let text = format!("left out\n{}\n{}\nnext\n", lines[2..].join("\n"), end("RSA "));
    let shown = redact(&text, None).text;
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
    let shown = redact(&text, None).text;
    assert!(shown.contains("DEK-Info: AES-128-CBC,00FF\n\n[withheld: private key]\n\n"), "{shown}");
    let dashes = "-".repeat(5);
    let text = format!(
        "{dashes}BEGIN PGP PRIVATE KEY BLOCK{dashes}\nVersion: 1\n\n{body}\n=aB3x\n{dashes}END PGP PRIVATE KEY BLOCK{dashes}\n"
    );
    let shown = redact(&text, None).text;
    assert!(
        shown.contains(MARKER) && !shown.contains("MIIE") && !shown.contains("aB3x"),
        "{shown}"
    );
    let text = format!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 4\n{body}\nPrivate-MAC: 00aa\n"
    );
    let shown = redact(&text, Some("id.ppk")).text;
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
        format!(
            "<match type=\"string\" value=\"{begin}\" offset=\"0\"/>\n<match type=\"big16\" value=\"0x9501\" offset=\"0\"/>\n<match type=\"big16\" value=\"0x9500\" offset=\"0\"/>\n"
        ),
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
    let shown = redact(&text, Some("id")).text;
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

/// The lines of a key, `width` characters each and formatted with `around`, and the whole text.
fn framed(width: usize, around: &str) -> (Vec<String>, String) {
    let all = drawn(BASE64, 64 * 5 + 9, 31 + width as u64);
    let body: Vec<String> =
        all.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into()).collect();
    let lines = [begin("RSA ")].into_iter().chain(body.clone()).chain([end("RSA ")]).zip(1..);
    let text = lines
        .map(|(line, n)| around.replace("{n}", &format!("{n}")).replace("{}", &line))
        .collect();
    (body, text)
}

#[track_caller]
fn withholds_all(body: &[String], text: &str) {
    let shown = redact(text, None).text;
    let piece = body.iter().filter(|line| line.len() >= 8).find(|line| shown.contains(&line[..8]));
    assert_eq!(piece, None, "{text}\n{shown}");
    assert!(shown.contains(MARKER), "{shown}");
}

#[test]
fn a_key_is_withheld_among_more_words_than_it_has_characters() {
    for width in [64, 32, 16, 12, 8] {
        for around in [
            "echo {} >> /etc/ssl/private/server.key\n",
            "{\"n\":{n},\"text\":\"{}\",\"source\":\"kubernetes/secret/server\",\"checked\":true}\n",
            "| {n} | {} | the text of the line as it was found in the file |\n",
            "    keyMaterial.append(\"{}\"); // part {n} of the service account key\n",
            "2026-01-02T03:04:0{n}Z INFO com.example.KeyLoader [main] {} (loaded by the worker)\n",
            "  SERVICE_ACCOUNT_KEY_LINE_{n}: \"{}\"\n",
            "{}\nIt is a long established fact that a reader will be distracted by the page\n",
        ] {
            let (body, text) = framed(width, around);
            withholds_all(&body, &text);
        }
    }
    // The same holds if only the lines of the key have other text around them.
    let lines: Vec<String> = (0..20).map(|n| drawn(BASE64, 16, n)).collect();
    let commands: String =
        lines.iter().map(|line| format!("echo {line} >> /etc/ssl/private/server.key\n")).collect();
    let text = format!("{}\n{commands}{}\n", begin("RSA "), end("RSA "));
    withholds_all(&lines, &text);
    assert!(redact(&text, None).text.contains(">> "));
}

#[test]
fn every_half_of_a_narrow_key_is_withheld() {
    for width in [8, 12, 16, 24, 64] {
        for around in ["{}\n", "<p>{}</p>\n", "log: {}\n"] {
            let (body, text) = framed(width, around);
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            for count in 3..lines.len() - 1 {
                withholds_all(&body, &lines[..count].concat());
                withholds_all(&body, &lines[lines.len() - count..].concat());
            }
            for at in [100, 150, 200] {
                withholds_all(&body, &text[..at]);
                withholds_all(&body, &text[text.len() - at..]);
            }
            let reversed: String = lines.iter().rev().copied().collect();
            withholds_all(&body, &reversed);
        }
    }
}

#[test]
fn what_begins_a_key_of_rsa_does_not_look_random_and_is_withheld() {
    // Every RSA key in PKCS #8 begins like this.
    let all = format!("MIIEuwIBADANBgkqhkiG9w0BAQEFAASCBKUwggSh{}", drawn(BASE64, 400, 5));
    for width in [12, 16] {
        let lines: Vec<String> =
            all.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into()).collect();
        for count in 5..9 {
            let text = format!("{}\n{}\n", begin(""), lines[..count].join("\n"));
            withholds_all(&lines, &text);
        }
        withholds_all(&lines, &format!("{}\n{}\n{}\n", begin(""), lines.join("\n"), end("")));
    }
}

#[test]
fn empty_lines_of_a_frame_and_headers_do_not_end_a_key() {
    let body = body(64);
    let head =
        [&*begin("RSA "), "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,A66627C24B10", ""];
    let lines = head.into_iter().chain(body.iter().map(String::as_str));
    let text: String = lines.map(|line| format!("<p>{line}</p>\n")).collect();
    withholds_all(&body, &text);
    assert!(redact(&text, None).text.contains("<p>DEK-Info: AES-128-CBC,A66627C24B10</p>"));
}

#[test]
fn what_stands_between_two_keys_is_shown() {
    let dashes = "-".repeat(5);
    let key = format!("{}\n{}\n{}\n", begin(""), body(64).join("\n"), end(""));
    let certificate = format!("{dashes}BEGIN CERTIFICATE{dashes}\n{}\n", drawn(BASE64, 64, 3))
        + &format!("{dashes}END CERTIFICATE{dashes}\n");
    let shown = redact(&format!("{key}{certificate}{key}"), None).text;
    assert!(shown.contains(&certificate), "{shown}");
    // Text after a marker that is only mentioned, or before one, also stays.
    stays(&format!("A file that has {} first.\n{certificate}", begin("")));
    stays(&format!("{certificate}It ends with\n{}\n", end("")));
}

#[track_caller]
fn stays(text: &str) {
    super::shown(text, None);
}
