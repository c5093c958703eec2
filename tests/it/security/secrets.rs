//! Secrets that stand in what others cannot be told by: keys with something before, between and behind
//! their lines, in pieces, in base64 and in bytes that are no text. No key here is anybody's.

use crate::support::{ID, Project};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Fewer characters can stand anywhere by chance.
const PIECE: usize = 8;

/// A private key that was never one.
struct Key {
    begin: String,
    body: Vec<String>,
    end: String,
}

/// What stands between the dashes, without `BEGIN` and `END`.
const KINDS: [&str; 6] = [
    "PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "PGP PRIVATE KEY BLOCK",
];

/// As many characters, the same for the same seed.
fn drawn(length: usize, seed: usize) -> String {
    let mut state = (seed as u64 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 58).unwrap()
    };
    (0..length).map(|_| char::from(BASE64[next()])).collect()
}

impl Key {
    /// One of a few lines, of which the last is short.
    fn new(seed: usize) -> Self {
        let kind = KINDS[seed % KINDS.len()];
        let dashes = "-".repeat(5);
        let all = drawn(64 * 5 + 9, seed);
        let body = all.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into());
        Self {
            begin: format!("{dashes}BEGIN {kind}{dashes}"),
            body: body.collect(),
            end: format!("{dashes}END {kind}{dashes}"),
        }
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        let all = [&self.begin].into_iter().chain(&self.body).chain([&self.end]);
        all.map(String::as_str)
    }

    fn text(&self) -> String {
        self.lines().map(|line| format!("{line}\n")).collect()
    }

    /// The same, each line as `around` writes it, with its number.
    fn framed(&self, around: &str) -> String {
        let lines = self.lines().zip(1..);
        lines.map(|(line, n)| around.replace("{n}", &format!("{n}")).replace("{}", line)).collect()
    }

    /// What of it stands in a text.
    fn piece_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let all = self.body.iter().flat_map(|line| line.as_bytes().windows(PIECE));
        all.filter_map(|piece| text.find(std::str::from_utf8(piece).unwrap()))
            .map(|at| text[at.saturating_sub(60)..].lines().next().unwrap())
            .next()
    }
}

#[track_caller]
fn hidden(keys: &[(String, Key)], text: &str) {
    for (what, key) in keys {
        if let Some(line) = key.piece_in(text) {
            panic!("{what:?} is shown: {line}\n{text}");
        }
    }
}

/// What may stand around a line of a key.
const AROUND: [&str; 37] = [
    "{}\n",
    "file:{}\n",
    "server.pem:{n}:{}\n",
    "server.pem-{n}-{}\n",
    "< {}\n",
    "> {}\n",
    "-- {}\n",
    "% {}\n",
    "+{}\n",
    "-{}\n",
    "println(\"{}\")\n",
    "    System.out.println(\"{}\\n\");\n",
    "<p>{}</p>\n",
    "{}<br/>\n",
    "'{}' +\n",
    "\"{}\\n\" \\\n",
    "\"{}\\r\\n\" .\n",
    "{n}\t{}\n",
    "  {n}: {}\n",
    "    {n} | {}\n",
    "  \"{}\",\n",
    "    - {}\n",
    "key: {}\n",
    "// {}\n",
    "rem {}\n",
    "$ {}\n",
    "| {} |\n",
    "\u{1b}[32m{}\u{1b}[0m\n",
    "2026-01-02T03:04:05Z host app[77]: {}\n",
    "key[{n}] = \"{}\";\n",
    "{}\n\n",
    "{}\r\n",
    "echo {} >> /etc/ssl/private/server.key\n",
    "{\"n\":{n},\"text\":\"{}\",\"source\":\"kubernetes/secret/server\",\"checked\":true}\n",
    "| {n} | {} | the text of the line as it was found in the file |\n",
    "    keyMaterial.append(\"{}\"); // part {n} of the service account key\n",
    "2026-01-02T03:04:0{n}Z INFO com.example.KeyLoader [main] {} (loaded by the worker)\n",
];

/// Keys in files of their own, by what stands around them.
fn keys(base: &Project) -> Vec<(String, Key)> {
    let mut keys: Vec<(String, Key)> = Vec::new();
    let mut put = |what: &str, key: Key, text: String| {
        base.write(&format!("workspace/f{:02}.txt", keys.len()), text);
        keys.push((what.to_owned(), key));
    };
    for (n, around) in AROUND.into_iter().enumerate() {
        let key = Key::new(n);
        let text = key.framed(around);
        put(around, key, text);
    }
    for (n, between) in ["\\n", "\\\\n", " ", "", "\\r\\n", "%0A", "&#10;", "\", \"", "<br>"]
        .into_iter()
        .enumerate()
    {
        let key = Key::new(40 + n);
        let text = key.lines().collect::<Vec<_>>().join(between);
        put(between, key, format!("{{\"name\": \"x\", \"private_key\": \"{text}\"}}\n"));
    }
    for (n, width) in [4, 9, 16].into_iter().enumerate() {
        for around in ["{}\n", "part: {}\n", "\"{}\" +\n", "echo {} >> /etc/ssl/private/a.key\n"] {
            let key = Key::new(60 + n);
            let all = key.body.concat();
            let pieces =
                all.as_bytes().chunks(width).map(|piece| std::str::from_utf8(piece).unwrap());
            let lines = [&*key.begin].into_iter().chain(pieces).chain([&*key.end]);
            let text = lines.map(|line| around.replace("{}", line)).collect();
            put(&format!("{width}: {around}"), key, text);
        }
    }
    let key = Key::new(80);
    let text = format!(
        "{}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{}\n{}\n",
        key.begin,
        key.body.join("\n"),
        key.end
    );
    put("headers", key, text);
    let key = Key::new(81);
    let (n, body) = (key.body.len(), key.body.join("\n"));
    let text = format!(
        "PuTTY-User-Key-File-3: ssh-rsa\nPublic-Lines: 1\nAAAA\nPrivate-Lines: {n}\n{body}\nPrivate-MAC: 00aa\n"
    );
    put("PuTTY", key, text);
    let key = Key::new(82);
    let text = format!("a: {}\n", STANDARD.encode(key.text()));
    put("encoded", key, text);
    keys
}

fn begin(base: &Project, more: &[&str]) -> String {
    base.write("deaddrop.toml", "max_tokens = 400000\nmax_output_length = 60000\n");
    let new = ["new", "--no-watch", "--id", ID, "A task"];
    base.run(&[&new[..], more].concat()).ok().stderr
}

fn each(keys: &[(String, Key)], reply: impl Fn(&str) -> String) -> String {
    (0..keys.len()).map(|n| reply(&format!("f{n:02}.txt"))).collect()
}

#[test]
fn a_key_is_withheld_whatever_stands_around_its_lines() {
    let base = Project::new();
    let keys = keys(&base);
    begin(&base, &[]);
    hidden(&keys, &base.outbox(1));

    let reads = each(&keys, |name| format!("[READ_FILE path=\"{name}\"]\n"));
    let outbox = base.apply(&reads);
    hidden(&keys, &outbox);
    for (n, (what, _)) in keys.iter().enumerate() {
        let block = outbox.split(&format!("--- f{n:02}.txt ---")).nth(1).unwrap();
        let block = block.split(&format!("--- end f{n:02}.txt")).next().unwrap();
        assert!(block.contains("[withheld: private key]"), "{what:?}: {block}");
        let file = base.read(&format!("workspace/f{n:02}.txt"));
        assert_eq!(
            block.trim_matches('\n').matches('\n').count() > 0,
            file.trim_end().contains('\n')
        );
    }
    // A part of each, with neither of its ends.
    hidden(
        &keys,
        &base.apply(&each(&keys, |name| {
            format!(
                "[READ_FILE path=\"{name}\" start_line=\"3\" end_line=\"5\" numbered=\"true\"]\n"
            )
        })),
    );
    let searches = each(&keys, |name| format!("[SEARCH pattern=\".\" path=\"{name}\"]\n"));
    hidden(&keys, &base.apply(&searches));
    hidden(&keys, &base.apply("[RUN_COMMAND]\ncat f*.txt; cat f*.txt >&2\n[/RUN_COMMAND]\n"));
    hidden(&keys, &base.apply("[RUN_COMMAND]\ngrep -n '' f*.txt\n[/RUN_COMMAND]\n"));
    let edits = each(&keys, |name| {
        format!(
            "[EDIT_FILE path=\"{name}\" start_line=\"1\" end_line=\"1\"]\nother\n[/EDIT_FILE]\n"
        )
    });
    hidden(&keys, &base.apply(&edits));
}

#[test]
fn half_a_key_in_what_a_command_writes_is_withheld() {
    let base = Project::new();
    let keys = keys(&base);
    begin(&base, &["--no-contents"]);
    for command in ["head -n 4", "head -n 2", "tail -n 3", "head -c 150", "tail -c 120"] {
        // What is written over several lines, each of them long enough to tell.
        let lines = AROUND.len();
        let run = format!(
            "[RUN_COMMAND]\nfor f in f??.txt; do {command} $f; echo; echo ==; done\n[/RUN_COMMAND]\n"
        );
        let outbox = base.apply(&run);
        hidden(&keys[..lines], &outbox);
        assert!(outbox.contains("[withheld: private key]"), "{command}: {outbox}");
    }
}

/// The same key in lines of this width.
fn narrow(key: &mut Key, width: usize) {
    let all = key.body.concat();
    let lines = all.as_bytes().chunks(width);
    key.body = lines.map(|line| String::from_utf8_lossy(line).into()).collect();
}

#[test]
fn half_a_narrow_key_is_withheld() {
    let base = Project::new();
    let mut keys = Vec::new();
    for (n, (width, around)) in
        [(8, "{}\n"), (12, "{}\n"), (16, "{}\n"), (16, "<p>{}</p>\n")].into_iter().enumerate()
    {
        let mut key = Key::new(120 + n);
        narrow(&mut key, width);
        base.write(&format!("workspace/f{n:02}.txt"), key.framed(around));
        keys.push((format!("{width}: {around}"), key));
    }
    begin(&base, &["--no-contents"]);
    for command in ["head -n 6", "tail -n 6", "head -n 3", "tail -n 3", "tail -c 100", "tac"] {
        let run = format!(
            "[RUN_COMMAND]\nfor f in f??.txt; do {command} $f; echo; echo ==; done\n[/RUN_COMMAND]\n"
        );
        hidden(&keys, &base.apply(&run));
    }
}

#[test]
fn files_that_are_not_looked_into_show_nothing_of_a_key() {
    let base = Project::new();
    let mut keys = Vec::new();
    for n in 0..72 {
        let mut key = Key::new(200 + n);
        narrow(&mut key, 16);
        base.write(&format!("workspace/f{n:02}.txt"), key.text());
        keys.push((format!("f{n:02}.txt"), key));
    }
    let mut key = Key::new(300);
    narrow(&mut key, 16);
    base.write("workspace/long.txt", "q\n".repeat(2_200_000) + &key.text());
    keys.push(("long.txt".to_owned(), key));
    begin(&base, &["--no-contents"]);
    let ranges = each(&keys[..72], |name| {
        format!("[READ_FILE path=\"{name}\" start_line=\"3\" end_line=\"6\"]\n")
    });
    hidden(&keys, &base.apply(&ranges));
    let searches = each(&keys[..72], |name| format!("[SEARCH pattern=\".\" path=\"{name}\"]\n"));
    hidden(&keys, &base.apply(&searches));
    let outbox = base.apply(
        "[SEARCH pattern=\"^.{9,16}$\" path=\"long.txt\"]\n\
         [READ_FILE path=\"long.txt\" start_line=\"2200001\" end_line=\"2200009\"]\n",
    );
    hidden(&keys, &outbox);
    assert!(outbox.contains("[withheld: private key]"), "{outbox}");
}

#[test]
fn bytes_of_a_secret_file_are_shown_only_if_it_is_released() {
    let base = Project::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(900).collect();
    for name in ["server.key", "store.p12"] {
        base.write(&format!("workspace/{name}"), &bytes);
    }
    begin(&base, &["--dialect", "operations", "--no-contents"]);
    let read = |name: &str| {
        format!(
            r#"{{"protocolVersion": "1.0", "operations": [{{"type": "readFile", "path": "{name}", "encoding": "base64"}}]}}"#
        )
    };
    let encoded = STANDARD.encode(&bytes);
    for name in ["server.key", "store.p12"] {
        let outbox = base.apply(&read(name));
        assert!(!outbox.contains(&encoded[..40]), "{outbox}");
        assert!(outbox.contains(&format!("'{name}' is not shown")), "{outbox}");
    }
    base.write("deaddrop.toml", "secrets_allow = [\"server.key\"]\n");
    assert!(base.apply(&read("server.key")).contains(&encoded));
}

#[test]
fn a_key_in_which_an_output_was_cut_is_withheld() {
    let base = Project::new();
    let key = Key::new(3);
    base.write("workspace/key.txt", key.text());
    begin(&base, &["--no-contents"]);
    for limit in [400, 500, 620] {
        base.write("deaddrop.toml", format!("max_output_length = {limit}\n"));
        for command in ["cat key.txt; seq 1 9999", "seq 1 9999; cat key.txt", "cat key.txt key.txt"]
        {
            for to in ["", " >&2"] {
                let outbox =
                    base.apply(&format!("[RUN_COMMAND]\n({command}){to}\n[/RUN_COMMAND]\n"));
                assert_eq!(key.piece_in(&outbox), None, "{limit}: {command}: {outbox}");
            }
        }
    }
}

#[test]
fn a_difference_of_keys_is_withheld() {
    let base = Project::new();
    let keys = [("old".to_owned(), Key::new(1)), ("new".to_owned(), Key::new(7))];
    base.write("workspace/a.txt", keys[0].1.text());
    base.write("workspace/b.txt", keys[1].1.text());
    begin(&base, &["--no-contents"]);
    let outbox = base
        .apply("[RUN_COMMAND]\ndiff -U9 a.txt b.txt; diff -y -W 200 a.txt b.txt\n[/RUN_COMMAND]\n");
    hidden(&keys, &outbox);
    assert!(outbox.contains("[withheld: private key]"), "{outbox}");
}

#[test]
fn hits_of_a_search_are_of_their_file_whatever_its_path_is() {
    let base = Project::new();
    let mut keys = Vec::new();
    for (n, path) in
        ["12:b:3.txt", "7:c.txt", "x1: 3:y z/9:k.txt", "a b.txt", "dd:1", "plain/e.txt"]
            .into_iter()
            .enumerate()
    {
        let key = Key::new(n);
        base.write(
            &format!("workspace/{path}"),
            format!("before: it\n{}after: it\n", key.framed("k: {}\n")),
        );
        keys.push((path.to_owned(), key));
    }
    // What a search can be taken for.
    base.write("workspace/words.txt", "x.pem:3:MIIE of words … and 4 more lines\n");
    begin(&base, &["--no-contents"]);
    let run = base.run_with(
        &["apply", "--session", ID, "--json", "-"],
        "[SEARCH pattern=\"^(k|before|after): |words\"]\n",
    );
    let told: serde_json::Value = serde_json::from_str(run.ok().stdout.trim()).unwrap();
    let outbox = base.outbox(2);
    hidden(&keys, &outbox);
    for (path, _) in &keys {
        assert!(outbox.contains(&format!("  {path}:1:before: it\n")), "{path}: {outbox}");
        assert!(
            outbox.contains(&format!("  {path}:3:k: [withheld: private key]\n")),
            "{path}: {outbox}"
        );
        let is_told = told["withheld"].to_string().contains(&format!("private key in {path} line"));
        assert!(is_told, "{path}: {told}");
    }
    assert!(
        outbox.contains("  words.txt:1:x.pem:3:MIIE of words … and 4 more lines\n"),
        "{outbox}"
    );

    // Gone, or with other lines, by the time that they are shown.
    let outbox = base.apply(
        "[SEARCH pattern=\"^k: \" path=\"plain/e.txt\"]\n[DELETE_FILE path=\"plain/e.txt\"]\n\
         [SEARCH pattern=\"^k: \" path=\"a b.txt\"]\n\
         [EDIT_FILE path=\"a b.txt\" start_line=\"1\" end_line=\"1\"]\none\ntwo\n[/EDIT_FILE]\n\
         [SEARCH pattern=\"^k: .{40,}\" path=\"dd:1\"]\n[CREATE_FILE path=\"dd:1\" overwrite=\"true\"]\nother\n[/CREATE_FILE]\n",
    );
    let long = |(path, key): &(String, Key)| {
        let body = key.body.iter().filter(|line| line.len() > 40).cloned().collect();
        (path.clone(), Key { begin: String::new(), body, end: String::new() })
    };
    hidden(&keys.iter().map(long).collect::<Vec<_>>(), &outbox);
}

#[test]
fn what_is_read_in_base64_is_screened_as_bytes() {
    let base = Project::new();
    let token = ["gh", "p_", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"].concat();
    let key = Key::new(5);
    let latin: Vec<u8> = [b"gr\xfc\xdfe\n".to_vec(), key.text().into_bytes()].concat();
    let wide: Vec<u8> = key.text().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files: [(&str, Vec<u8>); 6] = [
        ("text.txt", key.text().into_bytes()),
        ("latin.txt", latin),
        ("wide.txt", [b"\xff\xfe".to_vec(), wide.clone()].concat()),
        ("wider.txt", wide),
        (
            "token.bin",
            [b"\x80\x81\0\x01 ".to_vec(), token.clone().into_bytes(), b"\0\xff".to_vec()].concat(),
        ),
        (".env", b"# \xfc\nDB_PASSWORD=plain but mine\n".to_vec()),
    ];
    for (name, bytes) in &files {
        base.write(&format!("workspace/{name}"), bytes);
    }
    let plain = b"\x89PNG\r\n\x1a\n\0\xff nothing of that".to_vec();
    base.write("workspace/plain.bin", &plain);
    begin(&base, &["--dialect", "operations", "--no-contents"]);
    let names = files.iter().map(|(name, _)| *name).chain(["plain.bin"]);
    let reads = names
        .map(|name| format!(r#"{{"type": "readFile", "path": "{name}", "encoding": "base64"}}"#));
    let reads: Vec<String> = reads.collect();
    let message = format!(r#"{{"protocolVersion": "1.0", "operations": [{}]}}"#, reads.join(","));
    let outbox = base.apply(&message);
    let events: serde_json::Value =
        serde_json::from_str(&base.read(&format!("outbox/{ID}_seq0002.events.json"))).unwrap();
    let is_read = |event: &&serde_json::Value| {
        event["type"].as_str().is_some_and(|kind| kind.starts_with("readFile"))
    };
    let events: Vec<&serde_json::Value> =
        events["events"].as_array().unwrap().iter().filter(is_read).collect();
    assert_eq!(events.len(), 7, "{events:?}");
    for (event, (name, bytes)) in events.iter().zip(&files) {
        let shown = STANDARD.decode(event["content"].as_str().unwrap_or_default()).unwrap();
        assert_ne!(&shown, bytes, "{name}");
        let text = String::from_utf8_lossy(&shown).replace('\0', "");
        assert_eq!(key.piece_in(&text), None, "{name}: {text}");
        assert!(!text.contains(&token) && !text.contains("plain but"), "{name}: {text}");
        assert!(!outbox.contains(&STANDARD.encode(bytes)), "{name}");
    }
    let shown = events[6]["content"].as_str().unwrap();
    assert_eq!(STANDARD.decode(shown).unwrap(), plain);

    // A released file is shown as it is.
    base.write("deaddrop.toml", "secrets_allow = [\"latin.txt\"]\n");
    let outbox = base.apply(&message.replace("plain.bin", "text.txt"));
    assert!(outbox.contains(&STANDARD.encode(&files[1].1)), "{outbox}");
}

#[test]
fn a_file_that_is_not_utf8_hides_its_secrets_from_searches_and_commands() {
    let base = Project::new();
    let key = Key::new(9);
    base.write(
        "workspace/latin.txt",
        [b"gr\xfc\xdfe\n".to_vec(), key.framed("k: {}\n").into_bytes()].concat(),
    );
    base.write("workspace/.env", b"# \xfc\nDB_PASSWORD=plain but mine\n");
    begin(&base, &["--no-contents"]);
    let outbox = base.apply(
        "[SEARCH pattern=\"^k: \"]\n[RUN_COMMAND]\ncat latin.txt; sed 's/.*=//' .env\n[/RUN_COMMAND]\n",
    );
    assert_eq!(key.piece_in(&outbox), None, "{outbox}");
    assert!(!outbox.contains("plain but mine"), "{outbox}");
    assert!(outbox.contains("latin.txt:3:k: [withheld: private key]"), "{outbox}");
}

#[test]
fn files_of_secrets_are_the_same_for_all_who_ask() {
    let base = Project::new();
    let value = "plain but mine";
    let env = format!("DB_PASSWORD=\"{value}\"\n");
    let hidden = [
        "prod.env",
        ".env-prod",
        ".envrc",
        "sub/.ENV.local",
        ".env~",
        ".env.bak",
        "prod.env.old",
        ".flaskenv",
        ".dev.vars",
        "env.local",
    ];
    for name in hidden {
        base.write(&format!("workspace/{name}"), &env);
    }
    let passwords = ["h:1:d:u:quite-secret-7", "u:$apr1$x9$TdY8mZQ2wE"];
    base.write("workspace/.pgpass.bak", "h:1:d:u:quite-secret-8\n");
    base.write("workspace/users.htpasswd", "u:$apr1$x9$TdY8mZQ2wX\n");
    base.write("workspace/.my.cnf", "[client]\npassword=quite-secret-9\n");
    base.write("workspace/.pgpass", format!("{}\n", passwords[0]));
    base.write("workspace/.htpasswd", format!("{}\n", passwords[1]));
    let key = Key::new(11);
    for name in ["k.ppk", "k.pk8", "id_ecdsa_sk"] {
        base.write(&format!("workspace/{name}"), key.text());
    }
    for name in ["store.p12", "store.jks", "store.kdbx"] {
        base.write(&format!("workspace/{name}"), "a text of no secrets: stored-elsewhere\n");
    }
    base.write("workspace/.env.test-example", "DB_PASSWORD=stands-for-one\n");
    begin(&base, &[]);
    let first = base.outbox(1);
    let blocks: Vec<&str> = first
        .lines()
        .filter(|line| line.starts_with("--- ") && !line.starts_with("--- end"))
        .collect();
    assert!(blocks.iter().any(|line| line.contains(".env.test-example")), "{first}");
    assert_eq!(blocks.len(), 1, "{blocks:?}");
    assert!(first.contains("stands-for-one"), "{first}");
    let outbox = base.apply(
        "[RUN_COMMAND]\ncat prod.env .env-prod .envrc sub/.ENV.local | sed 's/.*=//'; cut -d: -f5 .pgpass; cut -d: -f2 .htpasswd; cut -d: -f5 .pgpass.bak; cut -d: -f2 users.htpasswd; sed 's/.*=//' .my.cnf; sed -n 3,5p k.ppk\n[/RUN_COMMAND]\n",
    );
    for secret in [value, "quite-secret-", "TdY8mZQ2w"] {
        assert!(!outbox.contains(secret), "{secret}: {outbox}");
    }
    assert_eq!(key.piece_in(&outbox), None, "{outbox}");
}

#[test]
fn what_only_tells_of_keys_is_shown() {
    let base = Project::new();
    let dashes = "-".repeat(5);
    let (begins, ends) = (
        format!("{dashes}BEGIN RSA PRIVATE KEY{dashes}"),
        format!("{dashes}END RSA PRIVATE KEY{dashes}"),
    );
    let source = format!(
        "const BEGIN: &str = \"{begins}\";\nconst END: &str = \"{ends}\";\n\n/// Reads x509 keys.\nfn parseTheBodyOfAKey(text: &str) -> Option<Vec<u8>> {{\n    let from = text.find(BEGIN)? + BEGIN.len();\n    base64Decode(&text[from..text.find(END)?]) // see RFC7468\n}}\n\n#[test]\nfn it_reads() {{\n    assert!(parseTheBodyOfAKey(\"{begins}\\n<base64>\\n{ends}\").is_none());\n}}\n"
    );
    let words = format!(
        "Paste it like this:\n\n{begins}\nMIIE...\n...\n{ends}\n\nand save the file. {begins} comes first.\n"
    );
    let public = format!(
        "{dashes}BEGIN PUBLIC KEY{dashes}\n{}\n{dashes}END PUBLIC KEY{dashes}\n",
        drawn(64, 1)
    );
    base.write("workspace/source.rs", &source);
    base.write("workspace/words.md", &words);
    base.write("workspace/public.txt", &public);
    begin(&base, &["--no-contents"]);
    let outbox = base.apply(
        "[READ_FILE path=\"source.rs\"]\n[READ_FILE path=\"words.md\"]\n[READ_FILE path=\"public.txt\"]\n[RUN_COMMAND]\ncat source.rs words.md public.txt\n[/RUN_COMMAND]\n",
    );
    for text in [&source, &words, &public] {
        let is_printed = |line: &&str| outbox.contains(&format!("{line}\n"));
        assert_eq!(text.lines().find(|line| !is_printed(line)), None, "{outbox}");
    }
    assert!(!outbox.contains("[withheld: private"), "{outbox}");
}
