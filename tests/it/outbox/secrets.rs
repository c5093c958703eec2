//! Secrets stay: whatever shows them in an outbox shows that they are withheld.

use crate::support::{ID, Project};

/// Made here, so that no file of the project holds what looks like a key.
fn key() -> String {
    format!("{}{}", "AKIA", "Q3EGRAZBXS4JKTPN")
}

fn with_key() -> Project {
    let base = Project::new();
    base.write("workspace/conf.toml", format!("name = \"x\"\nkey = \"{}\"\nport = 80\n", key()));
    base
}

fn begin(base: &Project, more: &[&str]) -> String {
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
    let withheld = told["withheld"][0].as_str().unwrap();
    assert!(withheld.contains("withheld from the outbox: AWS key in conf.toml line 2"), "{told}");
    assert!(base.read("workspace/conf.toml").contains(&secret));
}

#[test]
fn what_stands_for_a_secret_never_takes_its_place() {
    let base = with_key();
    begin(&base, &[]);
    let line = "key = \"[withheld: AWS key]\"";
    let codes = base.codes(&format!(
        "[CREATE_FILE path=\"conf.toml\"]\n{line}\nport = 81\n[/CREATE_FILE]\n\
         [EDIT_FILE path=\"conf.toml\" start_line=\"1\" end_line=\"2\"]\n{line}\n[/EDIT_FILE]\n\
         [EDIT_FILE path=\"conf.toml\"]\n<<<<<<< SEARCH\nname = \"x\"\n=======\n{line}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n\
         [EDIT_FILE path=\"conf.toml\"]\n<<<<<<< SEARCH\nport = 80\n=======\nport = 81\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"
    ));
    assert_eq!(codes, ["lines-left-out", "lines-left-out", "lines-left-out", "ok"]);
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
    let turn = base.turn(message);
    assert!(!turn.outbox.contains(&key()), "{turn:?}");
    assert_eq!(turn.codes()[3..], ["lines-left-out"; 2], "{turn:?}");
    assert!(base.read("workspace/conf.toml").contains(&key()));
}

#[test]
fn a_private_key_is_withheld_also_where_only_its_middle_is_asked_for() {
    let base = Project::new();
    let body = "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun\n".repeat(20);
    let (begins, ends) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
    base.write("workspace/server.pem", format!("{begins} KEY-----\n{body}{ends} KEY-----\n"));
    begin(&base, &[]);
    let outbox = base.apply("[READ_FILE path=\"server.pem\" start_line=\"5\" end_line=\"9\"]\n");
    assert!(!outbox.contains("MIIEow"), "{outbox}");
    assert!(outbox.contains("--- server.pem (lines 5-9 of 22) ---\n\n\n\n\n\n--- end"), "{outbox}");
}

/// A private key of so many lines, each another.
fn private_key(lines: usize) -> (String, Vec<String>) {
    let body: Vec<String> = (0..lines)
        .map(|n| {
            format!("MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt{:04}", n + 7)
        })
        .collect();
    let (begins, ends) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
    (format!("{begins} KEY-----\n{}\n{ends} KEY-----\n", body.join("\n")), body)
}

#[test]
fn lines_of_a_secret_are_withheld_wherever_they_stand_alone() {
    let base = Project::new();
    let (key, body) = private_key(20);
    for name in ["server.pem", "searched.pem", "gone.pem"] {
        base.write(&format!("workspace/{name}"), &key);
    }
    base.write("workspace/big.txt", "line\n".repeat(900_000) + &key);
    let hidden = ["SGVsbG9Xb3JsZFBhc3N3b3JkMTIz", "tR5uWq8ZkLmN3bVc", "QuiteSecretLine77"];
    let [pod, value, second] = hidden;
    base.write("workspace/pod.yaml", format!("apiVersion: v1\nkind: Secret\ndata:\n  pw: {pod}\n"));
    base.write("workspace/.env", format!("x\ny\nAPI={value}\nM=\"abc\n{second}\nend\"\n"));
    begin(&base, &[]);
    let run = base.run_with(
        &["apply", "--session", ID, "-"],
        "[EDIT_FILE path=\"server.pem\" start_line=\"5\" end_line=\"5\"]\nchanged\n[/EDIT_FILE]\n\
         [SEARCH pattern=\"^[A-Za-z0-9]{30,}\" path=\"searched.pem\"]\n\
         [SEARCH pattern=\"^[A-Za-z0-9]{30,}\" path=\"gone.pem\"]\n[DELETE_FILE path=\"gone.pem\"]\n\
         [SEARCH pattern=\"pw:|API=|Quite\"]\n\
         [EDIT_FILE path=\"pod.yaml\" start_line=\"1\" end_line=\"1\"]\napiVersion: v2\n[/EDIT_FILE]\n\
         [EDIT_FILE path=\".env\"]\n<<<<<<< SEARCH\nx\nz\nAPI=other\n=======\nq\n>>>>>>> REPLACE\n[/EDIT_FILE]\n\
         [READ_FILE path=\"big.txt\" start_line=\"900004\" end_line=\"900009\"]\n",
    );
    let told = run.ok().stderr;
    let outbox = base.outbox(2);
    assert!(outbox.contains("  2| [withheld: private key]\n  3|\n"), "{outbox}");
    assert!(outbox.contains("  searched.pem:2:[withheld: private key]\n  searched.pem:3:\n"));
    assert!(outbox.contains("  gone.pem:9:[withheld: private key]\n"), "{outbox}");
    assert!(outbox.contains("  4|   pw: [withheld: Kubernetes secret]\n"), "{outbox}");
    assert!(outbox.contains("  pod.yaml:4:  pw: [withheld: Kubernetes secret]\n"), "{outbox}");
    assert!(outbox.contains("  3| API=[withheld: .env value]\n"), "{outbox}");
    let leaked = |line: &&str| outbox.contains(*line);
    assert_eq!(body.iter().map(String::as_str).chain(hidden).find(leaked), None, "{outbox}");
    assert!(told.contains("private key in server.pem lines 2, 3"), "{told}");
}

#[test]
fn a_secret_that_a_long_line_is_cut_in_is_withheld_to_its_last_character() {
    let base = Project::new();
    let token = format!("{}{}", "ghp_", "aB3dE5gH7jK9mN1pQ3sT5vX7zA2cD4eF6hJ8");
    let line = format!("{} key={token}", "x".repeat(178));
    base.write("workspace/long.txt", format!("{line}\nx\n"));
    base.write("workspace/longer.txt", format!("{}{line} end\n", "x".repeat(1_000)));
    begin(&base, &[]);
    let outbox = base.apply(
        "[EDIT_FILE path=\"long.txt\" start_line=\"2\" end_line=\"2\"]\ny\n[/EDIT_FILE]\n\
         [SEARCH pattern=\"5gH7\"]\n[SEARCH pattern=\"6hJ8 end\"]\n",
    );
    for piece in ["ghp_", "aB3d", "mN1p", "eF6h"] {
        let shown = outbox.matches(piece).count();
        let own =
            outbox.lines().filter(|line| line.starts_with('[') && line.contains(piece)).count();
        assert_eq!(shown, own, "{piece}: {outbox}");
    }
    assert!(outbox.matches("key=[withheld: GitHub token]").count() >= 3, "{outbox}");
}

#[test]
fn a_name_that_holds_a_secret_is_shown_nowhere() {
    let base = Project::new();
    let name = format!("{}.txt", key());
    base.write(&format!("workspace/{name}"), "needle\n");
    begin(&base, &[]);
    assert!(!base.outbox(1).contains(&key()), "{}", base.outbox(1));
    let outbox =
        base.apply("[SEARCH pattern=\"needle\"]\n[LIST_FILES]\n[READ_FILE path=\"AKIA.txt\"]\n");
    assert!(!outbox.contains(&key()), "{outbox}");
    assert!(outbox.contains("  [withheld: AWS key].txt:1:needle\n"), "{outbox}");
}

#[test]
fn what_files_of_secrets_hold_is_withheld_from_what_commands_write() {
    let base = Project::new();
    let (key, body) = private_key(20);
    let (password, hook) = ("plain but mine", "https://hooks.corp/T7/b81");
    base.write("workspace/.gitignore", ".env\n*.key\n");
    base.write(
        "workspace/.env",
        format!("PORT=8080\nDB_PASSWORD=\"{password}\"\nHOOK={hook}\nPIN=48\n"),
    );
    base.write("workspace/app/server.key", &key);
    base.write("workspace/run.log", "x\n".repeat(30_000));
    base.write("deaddrop.toml", "max_output_length = 400\n");
    begin(&base, &["--no-contents"]);
    let head = "y".repeat(187);
    let outbox = base.apply(&format!(
        "[RUN_COMMAND]\ncat .env\n[/RUN_COMMAND]\n\
         [RUN_COMMAND]\nsed 's/.*=//' .env; sed -n '9p;4p' app/server.key\n[/RUN_COMMAND]\n\
         [RUN_COMMAND]\necho '{head}' $(sed -n 's/.*PASS.*=//p' .env); cat run.log\n[/RUN_COMMAND]\n"
    ));
    let leaked = |line: &&str| outbox.contains(*line);
    let secrets = body.iter().map(String::as_str).chain([password, hook, "plain b"]);
    assert_eq!(secrets.clone().find(leaked), None, "{outbox}");
    assert!(outbox.contains("PORT=8080\n"), "{outbox}");
    // One that could be anything, beside its name.
    assert!(outbox.contains("PIN=[withheld: .env value]\n"), "{outbox}");
    assert_eq!(outbox.matches("[withheld: .env value]").count(), 6, "{outbox}");
    assert_eq!(outbox.matches("[withheld: private key]").count(), 2, "{outbox}");

    // Under another name it is what it was.
    let outbox = base.apply(
        "[RUN_COMMAND]\ncp .env cfg.txt\n[/RUN_COMMAND]\n[MOVE_FILE path=\".env\" to=\"e.txt\"]\n\
         [READ_FILE path=\"e.txt\"]\n[READ_FILE path=\"cfg.txt\"]\n",
    );
    assert!(!outbox.contains("=48"), "{outbox}");
    assert_eq!(outbox.matches("PIN=[withheld: .env value]\n").count(), 2, "{outbox}");
    let outbox = base.apply("[RUN_COMMAND]\ncat e.txt\n[/RUN_COMMAND]\n");
    assert!(!outbox.contains("=48"), "{outbox}");
    base.sh("mv workspace/e.txt workspace/.env");

    // What is released may be shown, wherever it stands.
    base.write("deaddrop.toml", "secrets_allow = [\".env\"]\n");
    let outbox = base.apply("[RUN_COMMAND]\nsed 's/.*=//' .env\n[/RUN_COMMAND]\n");
    assert!(outbox.contains(password) && outbox.contains(hook), "{outbox}");
}

#[test]
fn what_is_left_of_a_token_where_an_output_was_cut_is_withheld() {
    let base = Project::new();
    base.write("deaddrop.toml", "max_output_length = 400\n");
    begin(&base, &[]);
    let token = format!("{}{}", "ghp_", "aB3dE5gH7jK9mN1pQ3sT5vX7zA2cD4eF6hJ8");
    base.write("workspace/a.txt", format!("{} {token} ", "x".repeat(180)));
    base.write("workspace/b.txt", format!(" {token} {}", "x".repeat(180)));
    let outbox = base.apply("[RUN_COMMAND]\ncat a.txt; seq 1 9999; cat b.txt\n[/RUN_COMMAND]\n");
    assert!(outbox.contains("x [withheld: GitHub token]\n"), "{outbox}");
    assert!(outbox.contains("\n  [withheld: GitHub token] x"), "{outbox}");
    assert!(!outbox.contains("aB3dE5") && !outbox.contains("eF6hJ8"), "{outbox}");
}

#[test]
fn the_events_of_an_outbox_are_screened_as_it_is() {
    let base = with_key();
    base.write("workspace/.env", "DB_PASSWORD=\"plain but mine\"\n");
    begin(&base, &["--dialect", "operations", "--no-contents"]);
    let message = |more: &str| {
        format!(
            r#"{{"protocolVersion": "1.0", "operations": [
                {{"type": "readFile", "path": "conf.toml"}},
                {{"type": "shell", "command": "cat conf.toml; sed 's/.*=//' .env"}}{more}
            ]}}"#
        )
    };
    base.apply(&message(""));
    let done = r#", {"type": "message", "id": "done", "content": "all"}"#;
    base.run_with(&["apply", "--session", ID, "-"], message(done)).ok();
    for n in [2, 3] {
        let events = base.read(&format!("outbox/{ID}_seq000{n}.events.json"));
        assert!(!events.contains(&key()) && !events.contains("plain but mine"), "{events}");
        assert!(events.matches("[withheld: AWS key]").count() == 2, "{events}");
        assert!(events.contains("[withheld: .env value]"), "{events}");
    }
}

#[test]
fn a_released_file_is_shown_with_an_edit_of_it_that_failed() {
    let base = with_key();
    let secret = key();
    base.write("workspace/it's.toml", format!("key = \"{secret}\"\n"));
    base.write("deaddrop.toml", "secrets_allow = [\"*.toml\"]\n");
    begin(&base, &["--no-contents"]);
    let edit = |path: &str| {
        format!(
            "[EDIT_FILE path=\"{path}\"]\n<<<<<<< SEARCH\nkey = \"other\"\n=======\nx\n>>>>>>> REPLACE\n[/EDIT_FILE]\n"
        )
    };
    let outbox = base.apply(&(edit("conf.toml") + &edit("it's.toml")));
    assert_eq!(outbox.matches(&secret).count(), 2, "{outbox}");

    base.write("deaddrop.toml", "secrets_allow = [\"conf.toml\"]\n");
    let outbox = base.apply(&(edit("it's.toml") + &edit("conf.toml")));
    assert_eq!(outbox.matches(&secret).count(), 1, "{outbox}");
}

#[test]
fn a_new_file_with_what_stands_for_a_secret_is_told_of() {
    let base = Project::new();
    begin(&base, &[]);
    let reply =
        "[CREATE_FILE path=\"a.toml\"]\nport = 80\nkey = \"[withheld: AWS key]\"\n[/CREATE_FILE]\n";
    let check = base.check(reply, 0);
    assert_eq!(check["warningsByKind"], serde_json::json!({ "stand-in": 1 }));
    let turn = base.turn(reply);
    assert_eq!(turn.warnings(), ["stand-in"]);
    let told = &turn.messages("stand-in")[0];
    assert!(told.contains("line 2 of 'a.toml'"), "{told}");
    assert!(turn.outbox.contains(&format!("  Warning: {told}")), "{turn:?}");
    assert!(base.exists("workspace/a.toml"));
}

#[test]
fn a_reply_that_is_only_looked_at_tells_what_of_requested_files_would_be_withheld() {
    let base = with_key();
    begin(&base, &[]);
    for reply in [
        "[READ_FILE path=\"conf.toml\"]\n",
        "[READ_FILE path=\"conf.toml\" start_line=\"2\" end_line=\"2\"]\n",
    ] {
        let told = base.check(reply, 0);
        let withheld = told["withheld"].as_array().unwrap();
        assert!(withheld.len() == 1, "{told}");
        assert!(withheld[0].as_str().unwrap().contains("AWS key in conf.toml line 2"), "{told}");
        let run = base.run_with(&["check"], reply).ok();
        assert!(run.stdout.contains(withheld[0].as_str().unwrap()), "{run:?}");
        assert!(!run.stdout.contains(&key()) && !told.to_string().contains(&key()), "{run:?}");
    }
    let none = base.check("[READ_FILE path=\"conf.toml\" end_line=\"1\"]\n", 0);
    assert_eq!(none["withheld"], serde_json::json!([]));
}

#[test]
fn what_a_file_held_stays_secret_when_the_same_reply_takes_it_away() {
    let value = "abcd9876xyz";
    let show = "[RUN_COMMAND]\ncut -d= -f2 .env\n[/RUN_COMMAND]\n";
    for rest in [
        "[RUN_COMMAND]\nmv .env prod.txt\n[/RUN_COMMAND]\n",
        "[RUN_COMMAND]\necho DB_PASS=none > .env\n[/RUN_COMMAND]\n",
        "[DELETE_FILE path=\".env\"]\n",
        "[CREATE_FILE path=\".env\"]\nDB_PASS=none\n[/CREATE_FILE]\n",
        "[MOVE_FILE path=\".env\" to=\"prod.txt\"]\n",
    ] {
        let base = Project::new();
        base.write("workspace/.env", format!("DB_PASS={value}\n"));
        begin(&base, &[]);
        let turn = base.turn(&format!("{show}{rest}"));
        assert_eq!(turn.codes(), ["ok", "ok"], "{rest}");
        let outbox = turn.outbox;
        assert!(outbox.contains("[withheld: .env value]"), "{rest}: {outbox}");
        assert!(!outbox.contains(value), "{rest}: {outbox}");
        // Later turns show no more of it, and neither does the same outbox written anew.
        std::fs::remove_file(base.path().join(format!("outbox/{ID}_seq0002.txt"))).unwrap();
        base.run(&["resume", "--no-watch"]).ok();
        assert!(!base.outbox(2).contains(value), "{rest}");
        if base.exists("workspace/prod.txt") {
            let outbox = base.apply("[RUN_COMMAND]\ncut -d= -f2 prod.txt\n[/RUN_COMMAND]\n");
            assert!(!outbox.contains(value), "{outbox}");
        }
    }
}

#[test]
fn a_session_keeps_only_what_is_no_longer_there() {
    let base = Project::new();
    base.write("workspace/.env", "DB_PASS=abcd9876xyz\n");
    begin(&base, &[]);
    base.apply("[RUN_COMMAND]\ncat .env\n[/RUN_COMMAND]\n");
    let session = format!("sessions/{ID}.json");
    let held = || {
        let session: serde_json::Value = serde_json::from_str(&base.read(&session)).unwrap();
        session["held"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(held(), 0);
    base.apply("[DELETE_FILE path=\".env\"]\n");
    assert!(held() > 0);
}

#[test]
fn what_a_file_held_stays_secret_across_a_question() {
    let base = Project::new();
    base.write("workspace/.env", "DB_PASS=abcd9876xyz\n");
    base.begin_asking(ID);
    let reply =
        "[RUN_COMMAND]\ncat .env\n[/RUN_COMMAND]\n[RUN_COMMAND]\nrm -rf temp\n[/RUN_COMMAND]\n";
    base.run_with(&["apply", "-"], reply).with_code(3);
    base.write("workspace/.env", "DB_PASS=none\n");
    base.run(&["deny", "--session", ID]).ok();
    let outbox = base.outbox(2);
    assert!(outbox.contains("DB_PASS=[withheld: .env value]"), "{outbox}");
    assert!(!outbox.contains("abcd9876xyz"), "{outbox}");
}
