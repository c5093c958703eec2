//! Secrets stay: whatever shows them in an outbox shows that they are withheld.

use crate::support::{Base, ID};

/// Made here, so that no file of the project holds what looks like a key.
fn key() -> String {
    format!("{}{}", "AKIA", "Q3EGRAZBXS4JKTPN")
}

fn with_key() -> Base {
    let base = Base::new();
    base.write("workspace/conf.toml", format!("name = \"x\"\nkey = \"{}\"\nport = 80\n", key()));
    base
}

fn begin(base: &Base, more: &[&str]) -> String {
    let new = ["new", "--no-watch", "--id", ID, "A task"];
    base.run(&[&new[..], more].concat()).ok().stderr
}

#[test]
fn a_key_is_withheld_wherever_it_would_be_shown() {
    let base = with_key();
    let said = begin(&base, &[]);
    assert!(said.contains("withheld from the outbox: AWS key in conf.toml line 2"), "{said}");
    assert!(said.contains("secrets_allow = [\"conf.toml\"]"), "{said}");
    let first = base.outbox(1);
    assert!(first.contains("key = \"[withheld: AWS key]\"\nport = 80\n"), "{first}");

    base.write(&format!("workspace/{}.txt", key()), "x\n");
    let secret = key();
    let reply = format!(
        "[READ_FILE path=\"conf.toml\"]\n[READ_FILE path=\"conf.toml\" start_line=\"2\" numbered=\"true\"]\n\
         [SEARCH pattern=\"AKIA\"]\n[LIST_FILES]\n\
         [EDIT_FILE path=\"conf.toml\" start_line=\"3\" end_line=\"3\"]\nport = 81\n[/EDIT_FILE]\n\
         [EDIT_FILE path=\"conf.toml\"]\n<<<<<<< SEARCH\nkey = \"other\"\n=======\nx\n>>>>>>> REPLACE\n[/EDIT_FILE]\n\
         [RUN_COMMAND]\ncat conf.toml; echo '{}' '{}' >&2\n[/RUN_COMMAND]\n",
        &secret[..4],
        &secret[4..],
    );
    base.write("reply.txt", &reply);
    let run = base.run(&["apply", "reply.txt", "--json"]).ok();
    let second = base.outbox(2);
    assert!(!second.contains(&secret), "{second}");
    // The listing, two ways to read, the search, two edits and the command.
    assert!(second.matches("[withheld: AWS key]").count() >= 7, "{second}");
    assert!(second.contains("2| key = \"[withheld: AWS key]\""), "{second}");
    let told: serde_json::Value = serde_json::from_str(run.stdout.trim()).unwrap();
    assert!(told["withheld"].to_string().contains("AWS key in conf.toml line 2"), "{told}");
    assert!(base.read("workspace/conf.toml").contains(&secret));
}

#[test]
fn what_stands_for_a_secret_never_takes_its_place() {
    let base = with_key();
    begin(&base, &[]);
    let line = "key = \"[withheld: AWS key]\"";
    let outbox = base.apply(&format!(
        "[CREATE_FILE path=\"conf.toml\"]\n{line}\nport = 81\n[/CREATE_FILE]\n\
         [EDIT_FILE path=\"conf.toml\" start_line=\"1\" end_line=\"2\"]\n{line}\n[/EDIT_FILE]\n\
         [EDIT_FILE path=\"conf.toml\"]\n<<<<<<< SEARCH\nname = \"x\"\n=======\n{line}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n\
         [EDIT_FILE path=\"conf.toml\"]\n<<<<<<< SEARCH\nport = 80\n=======\nport = 81\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"
    ));
    assert_eq!(
        outbox.matches("stands for a secret, which 'conf.toml' would lose").count(),
        3,
        "{outbox}"
    );
    let expected = format!("name = \"x\"\nkey = \"{}\"\nport = 81\n", key());
    assert_eq!(base.read("workspace/conf.toml"), expected);
}

#[test]
fn the_person_releases_what_may_be_shown() {
    let base = with_key();
    base.write("deaddrop.toml", "secrets_allow = [\"*.toml\"]\n");
    let said = begin(&base, &[]);
    assert!(base.outbox(1).contains(&key()) && !said.contains("AWS key"), "{said}");

    let base = with_key();
    base.write("deaddrop.toml", "secrets = \"warn\"\n");
    let said = begin(&base, &[]);
    assert!(base.outbox(1).contains(&key()));
    assert!(
        said.contains("shown in the outbox (secrets = \"warn\"): AWS key in conf.toml"),
        "{said}"
    );
}

#[test]
fn events_in_an_outbox_hold_no_secret_either() {
    let base = with_key();
    begin(&base, &["--dialect", "operations", "--no-contents"]);
    let message = r#"{"protocolVersion": "1.0", "operations": [
        {"type": "readFile", "path": "conf.toml"},
        {"type": "readFile", "path": "conf.toml", "encoding": "base64"},
        {"type": "shell", "command": "cat conf.toml"},
        {"type": "createFile", "path": "conf.toml", "overwrite": true, "content": "key = \"[withheld: AWS key]\"\n"},
        {"type": "editFile", "path": "conf.toml", "edits": [{"oldContent": "80", "newContent": "\n[withheld: AWS key]\n"}]}
    ]}"#;
    let outbox = base.apply(message);
    assert!(!outbox.contains(&key()), "{outbox}");
    assert_eq!(
        outbox.matches("stands for a secret, which 'conf.toml' would lose").count(),
        2,
        "{outbox}"
    );
    assert!(base.read("workspace/conf.toml").contains(&key()));
}

#[test]
fn a_private_key_is_withheld_also_where_only_its_middle_is_asked_for() {
    let base = Base::new();
    let body = "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun\n".repeat(20);
    let (begins, ends) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
    base.write("workspace/server.pem", format!("{begins} KEY-----\n{body}{ends} KEY-----\n"));
    begin(&base, &[]);
    let outbox = base.apply("[READ_FILE path=\"server.pem\" start_line=\"5\" end_line=\"9\"]\n");
    assert!(!outbox.contains("MIIEow"), "{outbox}");
    assert!(outbox.contains("--- server.pem (lines 5-9 of 22) ---\n\n\n\n\n\n--- end"), "{outbox}");
}
