//! Settings from text and variables to what they mean.

use std::ffi::OsString;

use super::keys::KEYS;
use super::*;

const HOME: &str = "/home/me";

pub(super) fn resolved(raw: &Raw) -> Result<Config> {
    Config::resolve("/base".into(), raw, Some(HOME.as_ref()))
}

fn config(text: &str) -> Result<Config> {
    resolved(&Raw::from_text(text, Path::new("/base").join(FILE).as_path())?)
}

fn error(text: &str) -> String {
    config(text).expect_err(text).to_string()
}

fn variable(name: &str, value: impl Into<OsString>) -> Result<Raw> {
    Raw::from_environment([(name.to_owned(), value.into())].into_iter())
}

#[track_caller]
pub(super) fn with_variable(name: &str, value: &str) -> Config {
    variable(name, value).and_then(|raw| resolved(&raw)).unwrap()
}

#[track_caller]
fn all_told(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let said = error(text);
        assert!(said.contains(expected), "{text}: {expected} in {said}");
    }
}

#[test]
fn wrong_settings_name_file_line_and_the_nearest_key() {
    assert_eq!(
        error("# mine\nworkspce_dir = \"x\"\n"),
        "/base/deaddrop.toml:2: unknown setting 'workspce_dir'; did you mean 'workspace_dir'?"
    );
    assert_eq!(
        error("command_timeout_seconds = 0"),
        "/base/deaddrop.toml:1: command_timeout_seconds is '0' but must be a whole number from 1 to 3600"
    );
    assert!(error("max_tokens = 3999").ends_with("a whole number from 4000 to 10000000"));
    assert!(error("a = = 1").starts_with("/base/deaddrop.toml:1: "));
    assert!(error("inbox_dir = true").contains("inbox_dir cannot be"));
    assert!(error("inbox_dir = \"\"").contains("is empty"));
}

#[test]
fn folders_of_its_own_are_kept_apart() {
    assert!(error("outbox_dir = \"inbox\"").contains("must not lie in"));
    assert!(error("outbox_dir = \"./inbox/../inbox/out\"").contains("must not lie in"));
    assert!(
        error("workspace_dir = \"inbox/w\"").contains("workspace_dir must not lie in inbox_dir")
    );
}

#[test]
fn later_layers_win_and_variables_are_checked() {
    let mut raw =
        Raw::from_text("max_output_length = 5_000\ninbox_dir = \"in\"", Path::new("f")).unwrap();
    raw.overlay(variable("DEADDROP_MAX_OUTPUT_LENGTH", "600").unwrap());
    let config = resolved(&raw).unwrap();
    assert_eq!(config.max_output_length, 600);
    assert_eq!(config.inbox, Path::new("/base/in"));
    assert_eq!(config.workspace, Path::new("/base/workspace"));
    let error = variable("DEADDROP_INBOX", "x").unwrap_err().to_string();
    assert!(error.contains("did you mean 'DEADDROP_INBOX_DIR'"), "{error}");
}

#[test]
fn the_table_of_defaults_is_what_the_types_say() {
    let config = config("").unwrap();
    assert_eq!(config.sandbox, Sandbox::default());
    assert_eq!(config.protected_names.len(), 27);
    assert_eq!(config.protected_names[..2], [".git", ".gitmodules"]);
    assert_eq!(config.protected_names[9..11], [".envrc", ".bashrc"]);
    assert_eq!(config.protected_names[24..], [".inputrc", FILE, FOLDER]);
}

#[test]
fn every_setting_is_documented() {
    let docs = include_str!("../../docs/use.md");
    for key in &KEYS {
        let variable = format!("DEADDROP_{}", key.name.to_uppercase().replace('.', "_"));
        for name in [key.name, &variable] {
            assert!(docs.contains(&format!("| `{name}` |")), "docs/use.md: {name}");
        }
    }
    for name in config("").unwrap().protected_names {
        assert!(docs.contains(&format!("`{name}`")), "docs/use.md: {name}");
    }
    let examples: Vec<&str> = docs
        .split(
            "```toml
",
        )
        .skip(1)
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        config(example.split("```").next().unwrap()).unwrap();
    }
}

#[test]
fn the_sandbox_is_a_word_or_a_table() {
    for (text, mode) in [
        ("sandbox = \"off\"", Mode::Off),
        ("[sandbox]\nmode = \"partial\"", Mode::Partial),
        ("sandbox.mode = \"bwrap\"", Mode::Bwrap),
        ("sandbox = { mode = \"auto\", network = true }", Mode::Auto),
    ] {
        assert_eq!(config(text).unwrap().sandbox.mode, mode, "{text}");
    }
    let mut raw = Raw::from_text("sandbox = \"off\"", Path::new("f")).unwrap();
    raw.overlay(Raw::from_text("[sandbox]\nnetwork = true", Path::new("f")).unwrap());
    let sandbox = resolved(&raw).unwrap().sandbox;
    assert!(sandbox.mode == Mode::Off && sandbox.network, "a layer leaves what it does not set");
    assert_eq!(with_variable("DEADDROP_SANDBOX", "off").sandbox.mode, Mode::Off);
    assert_eq!(
        error("\nsandbox = \"on\""),
        "/base/deaddrop.toml:2: sandbox is 'on' but must be one of auto, bwrap, partial, off"
    );
}

#[test]
fn the_table_of_the_sandbox_is_taken_whole() {
    let text = r#"
        protected_names = [".git", "Makefile"]
        [sandbox]
        network = true
        writable = ["/srv/../data/./x/", "out", "~/cache"]
        readable = ["../lib", "~", "./~odd"]
        env = ["CI", "_A1=b=c, d", "EMPTY="]
        max_processes = 350
        max_file_bytes = 0x10_0000
        max_memory_bytes = 1125899906842624
        min_free_bytes = 0
    "#;
    let config = config(text).unwrap();
    assert_eq!(config.protected_names, [".git", "Makefile"]);
    let value = |text: &str| Some(text.to_owned());
    let expected = Sandbox {
        mode: Mode::Auto,
        network: true,
        writable: ["/data/x", "/base/out", "/home/me/cache"].map(PathBuf::from).into(),
        readable: ["/lib", "/home/me", "/base/~odd"].map(PathBuf::from).into(),
        env: vec![
            ("CI".to_owned(), None),
            ("_A1".to_owned(), value("b=c, d")),
            ("EMPTY".to_owned(), value("")),
        ],
        max_processes: 350,
        max_file_bytes: 1 << 20,
        max_memory_bytes: Some(1 << 50),
        min_free_bytes: 0,
    };
    assert_eq!(config.sandbox, expected);
}

#[test]
fn variables_hold_lists_too() {
    let sandbox = |name: &str, value: &str| with_variable(name, value).sandbox;
    assert_eq!(
        sandbox("DEADDROP_SANDBOX_WRITABLE", "/a::b/../c:~/d:").writable,
        ["/a", "/base/c", "/home/me/d"].map(PathBuf::from)
    );
    assert_eq!(
        sandbox("DEADDROP_SANDBOX_ENV", "A, B=1 2,").env,
        [("A".to_owned(), None), ("B".to_owned(), Some("1 2".to_owned()))]
    );
    assert!(sandbox("DEADDROP_SANDBOX_NETWORK", "true").network);
    assert_eq!(sandbox("DEADDROP_SANDBOX_MAX_MEMORY_BYTES", "0").max_memory_bytes, None);
    assert_eq!(
        with_variable("DEADDROP_PROTECTED_NAMES", ".git, x y").protected_names,
        [".git", "x y"]
    );
    // An empty variable is an empty list, over what was set below it.
    let mut raw = Raw::from_text("[sandbox]\nreadable = [\"/a\"]", Path::new("f")).unwrap();
    raw.overlay(variable("DEADDROP_SANDBOX_READABLE", "").unwrap());
    assert_eq!(resolved(&raw).unwrap().sandbox.readable, [] as [PathBuf; 0]);
    assert_eq!(with_variable("DEADDROP_PROTECTED_NAMES", "").protected_names, [] as [&str; 0]);
}

#[cfg(unix)]
#[test]
fn paths_of_variables_may_be_any_bytes_and_nothing_else_may() {
    use std::os::unix::ffi::OsStringExt;
    let odd = |name: &str| variable(name, OsString::from_vec(b"/a\xff".to_vec()));
    let writable = resolved(&odd("DEADDROP_SANDBOX_WRITABLE").unwrap()).unwrap().sandbox.writable;
    assert_eq!(writable, [PathBuf::from(OsString::from_vec(b"/a\xff".to_vec()))]);
    for name in ["DEADDROP_SANDBOX_ENV", "DEADDROP_PROTECTED_NAMES", "DEADDROP_SANDBOX"] {
        let said = odd(name).unwrap_err().to_string();
        assert!(said.contains(name) && said.contains("not valid UTF-8"), "{said}");
    }
}

#[test]
fn numbers_have_bounds() {
    let most = (1_u64 << 50).to_string();
    for (name, least, most, or_none) in [
        ("max_processes", 350_u64, "1000000", false),
        ("max_file_bytes", 1_000_000, &*most, false),
        ("max_memory_bytes", 100_000_000, &*most, true),
        ("min_free_bytes", 0, &*most, false),
    ] {
        let text = |value: &str| format!("[sandbox]\n{name} = {value}");
        let above = most.parse::<u64>().unwrap() + 1;
        for right in [&*least.to_string(), most] {
            assert!(config(&text(right)).is_ok(), "{name} {right}");
        }
        for wrong in [&*above.to_string(), "-1", "99999999999999999999999999999999999999999"] {
            let form = format!("a whole number from {least} to {most}");
            let none = if or_none { "0 (no limit) or " } else { "" };
            assert_eq!(
                error(&text(wrong)),
                format!(
                    "/base/deaddrop.toml:2: sandbox.{name} is '{wrong}' but must be {none}{form}"
                )
            );
        }
        let below = least.wrapping_sub(1).to_string();
        assert!(config(&text(&below)).is_err(), "{name} {below}");
        assert_eq!(config(&text("0")).is_ok(), or_none || least == 0, "{name} 0");
    }
}

#[test]
fn wrong_types_are_told() {
    all_told(&[
        ("inbox_dir = 5", ":1: inbox_dir cannot be an integer (5); it must be a folder"),
        ("max_output_length = \"500\"", "cannot be a string ('500'); it must be a whole number"),
        ("sandbox = false", ":1: sandbox cannot be a boolean (false); it must be one of auto,"),
        ("sandbox = [\"off\"]", "sandbox cannot be a list; it must be one of auto,"),
        ("[[sandbox]]\nnetwork = true", "sandbox cannot be a list"),
        ("[sandbox]\nmode = 1", ":2: sandbox cannot be an integer (1)"),
        ("[sandbox.mode]\nx = 1", "sandbox cannot be a table"),
        (
            "[sandbox]\nnetwork = \"true\"",
            "sandbox.network cannot be a string ('true'); it must be true or false",
        ),
        (
            "[sandbox]\nwritable = \"/a\"",
            "sandbox.writable cannot be a string ('/a'); it must be a list of files and folders, as strings",
        ),
        (
            "[sandbox]\n\nreadable = [\"/a\", 7]",
            ":3: sandbox.readable holds an integer (7); it must be a list of files",
        ),
        (
            "[sandbox]\nenv = { A = \"1\" }",
            "sandbox.env cannot be a table; it must be a list of strings NAME or NAME=VALUE",
        ),
        ("[sandbox]\nenv = [[\"A\"]]", "sandbox.env holds a list; it must be"),
        (
            "[sandbox]\nmax_processes = 1e4",
            "sandbox.max_processes cannot be a float (1e4); it must be",
        ),
        ("[sandbox.network]\nx = 1", "sandbox.network cannot be a table"),
        (
            "protected_names = true",
            "protected_names cannot be a boolean (true); it must be a list of names",
        ),
        ("protected_names = 2020-01-01", "protected_names cannot be a time (2020-01-01)"),
    ]);
}

#[test]
fn wrong_items_of_lists_are_told() {
    all_told(&[
        (
            "[sandbox]\nwritable = [\"/\"]",
            ":2: sandbox.writable holds '/', which is the whole machine; name the",
        ),
        (
            "[sandbox]\nreadable = [\"../../..\"]",
            "sandbox.readable holds '../../..', which is the whole machine",
        ),
        ("[sandbox]\nreadable = [\"\"]", "holds '', but each item must be the path of"),
        ("[sandbox]\nreadable = [\"a\\u0000\"]", "but each item must be the path of"),
        ("[sandbox]\nreadable = [\"~you/x\"]", "holds '~you/x', but only '~/' stands for"),
        (
            "[sandbox]\nenv = [\"A\", \"1A=2\"]",
            "sandbox.env holds '1A=2' but each item must be NAME or NAME=VALUE",
        ),
        ("[sandbox]\nenv = [\"\"]", "sandbox.env holds ''"),
        ("[sandbox]\nenv = [\"=1\"]", "sandbox.env holds '=1'"),
        ("[sandbox]\nenv = [\"A B\"]", "sandbox.env holds 'A B'"),
        ("[sandbox]\nenv = [\"É\"]", "sandbox.env holds 'É'"),
        ("[sandbox]\nenv = [\"A=\\u0000\"]", "sandbox.env holds 'A="),
        ("[sandbox]\nenv = [\"A\", \"A=1\"]", "sandbox.env names A twice"),
        (
            "protected_names = [\".git/hooks\"]",
            "protected_names holds '.git/hooks' but each item must be the name",
        ),
        ("protected_names = [\"\"]", "protected_names holds ''"),
        ("protected_names = [\".\"]", "protected_names holds '.'"),
        ("protected_names = [\"..\"]", "protected_names holds '..'"),
    ]);
    let raw = variable("DEADDROP_SANDBOX_WRITABLE", "/a:~/b").unwrap();
    for home in [None, Some(Path::new("")), Some(Path::new("me"))] {
        let said = Config::resolve("/base".into(), &raw, home).unwrap_err().to_string();
        assert!(said.contains("DEADDROP_SANDBOX_WRITABLE: sandbox.writable holds '~/b'"), "{said}");
        assert!(said.contains("HOME"), "{said}");
    }
}

#[test]
fn unknown_names_are_told_with_the_one_that_was_meant() {
    all_told(&[
        (
            "[sandbox]\nnetwrok = true",
            ":2: unknown setting 'sandbox.netwrok'; did you mean 'sandbox.network'?",
        ),
        ("[sandbox]\nmod = \"off\"", "unknown setting 'sandbox.mod'; did you mean 'sandbox.mode'?"),
        (
            "sandbox.zzzzzz = 1",
            "unknown setting 'sandbox.zzzzzz'; there are sandbox.mode, sandbox.network,",
        ),
        (
            "[sandbox]\ninbox_dir = \"x\"",
            "'sandbox.inbox_dir'; did you mean 'inbox_dir', above [sandbox]?",
        ),
        ("[sandbox]\nsandbox = \"off\"", "did you mean 'sandbox', above [sandbox]?"),
        ("network = true", "unknown setting 'network'; did you mean 'sandbox.network'?"),
        (
            "\"sandbox.network\" = true",
            "unknown setting '\"sandbox.network\"'; did you mean 'sandbox.network'?",
        ),
        ("[sandox]\nnetwork = true", ":1: unknown setting 'sandox'; did you mean 'sandbox'?"),
        ("protected_name = []", "did you mean 'protected_names'?"),
        (
            "qqqq = 1",
            "there are workspace_dir, inbox_dir, outbox_dir, sessions_dir, approvals_dir, command_timeout_seconds, max_output_length, max_tokens, first_contents, part_characters, policy, sandbox, protected_names, checkpoints, checkpoint_file_bytes, checkpoint_ignored_file_bytes, checkpoint_ignored_bytes, checkpoint_max_bytes, secrets, secrets_allow",
        ),
    ]);
    for (name, meant) in [
        ("DEADDROP_SANDBOX_NETWROK", "did you mean 'DEADDROP_SANDBOX_NETWORK'?"),
        ("DEADDROP_SANDBOX_MODE", "did you mean 'DEADDROP_SANDBOX'?"),
        ("DEADDROP_SANDBX", "did you mean 'DEADDROP_SANDBOX'?"),
        ("DEADDROP_PROTECTED", "did you mean 'DEADDROP_PROTECTED_NAMES'?"),
        ("DEADDROP_QQQQ", "there are DEADDROP_WORKSPACE_DIR, "),
    ] {
        let said = variable(name, "x").unwrap_err().to_string();
        assert!(said.starts_with(&format!("environment variable {name}: unknown")), "{said}");
        assert!(said.contains(meant), "{said}");
    }
}
