//! From settings in text and variables to the resolved values.

use std::ffi::OsString;

use super::table::SETTINGS;
use super::*;

const HOME: &str = "/home/me";

fn resolved(raw: &Layer) -> Result<Config> {
    Config::resolve("/project".into(), raw, Some(HOME.as_ref()))
}

fn config(text: &str) -> Result<Config> {
    resolved(&layer(text)?)
}

fn layer(text: &str) -> Result<Layer> {
    Layer::from_text(text, &Path::new("/project").join(FILE), Source::File)
}

fn error(text: &str) -> String {
    config(text).expect_err(text).to_string()
}

fn variable(name: &str, value: impl Into<OsString>) -> Result<Layer> {
    Layer::from_environment([(name.into(), value.into())].into_iter())
}

#[track_caller]
fn with_variable(name: &str, value: &str) -> Config {
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
        "/project/deaddrop.toml:2: unknown setting 'workspce_dir'; did you mean 'workspace_dir'?"
    );
    assert_eq!(
        error("command_timeout_seconds = 0"),
        "/project/deaddrop.toml:1: command_timeout_seconds is 0 but must be a whole number from 1 to 3600"
    );
    assert!(error("max_tokens = 3999").ends_with("a whole number from 4000 to 10000000"));
    assert!(error("a = = 1").starts_with("/project/deaddrop.toml:1: "));
    assert!(error("inbox_dir = true").contains("inbox_dir is true but must be a folder"));
    assert!(error("inbox_dir = \"\"").contains("is \"\" but must be a folder"));
}

#[test]
fn folders_of_its_own_are_kept_apart() {
    assert!(error("outbox_dir = \"inbox\"").contains("must not be in"));
    assert!(error("outbox_dir = \"./inbox/../inbox/out\"").contains("must not be in"));
    assert!(
        error("workspace_dir = \"inbox/w\"").contains("workspace_dir must not be in inbox_dir")
    );
}

#[test]
fn later_layers_win_and_variables_are_checked() {
    let raw = layer("max_output_length = 5_000\ninbox_dir = \"in\"").unwrap();
    let over = variable("DEADDROP_MAX_OUTPUT_LENGTH", "600").unwrap();
    let config = resolved(&Layer::merged([&raw, &over])).unwrap();
    assert_eq!(config.max_output_length, 600);
    assert_eq!(config.inbox, Path::new("/project/in"));
    assert_eq!(config.workspace, Path::new("/project/workspace"));
    let error = variable("DEADDROP_INBOX", "x").unwrap_err().to_string();
    assert!(error.contains("did you mean 'DEADDROP_INBOX_DIR'"), "{error}");
}

#[test]
fn the_table_of_defaults_is_what_the_types_say() {
    let config = config("").unwrap();
    assert_eq!((config.sandbox.mode, config.sandbox.network), (SandboxMode::Auto, false));
    let sandbox = &config.sandbox;
    assert_eq!((sandbox.max_processes, sandbox.max_memory_bytes), (4_096, None));
    assert_eq!((sandbox.max_file_bytes, sandbox.min_free_bytes), (4 << 30, 100 << 20));
    assert_eq!(config.protected_names.len(), 27);
    assert_eq!(config.protected_names[..2], [".git", ".gitmodules"]);
    assert_eq!(config.protected_names[9..11], [".envrc", ".bashrc"]);
    assert_eq!(config.protected_names[24..], [".inputrc", FILE, FOLDER]);
}

/// docs/settings.md, generated from the table.
fn reference() -> String {
    let mut text = String::from(REFERENCE);
    for setting in SETTINGS.iter().filter(|setting| !setting.is_of_file()) {
        let flag =
            if setting.flag { format!("`--{}`", setting.flag_name()) } else { String::new() };
        let default = match (&*setting.name, &*setting.default) {
            ("protected_names", _) => "see below".to_owned(),
            (_, "") => "empty".to_owned(),
            (_, default) => format!("`{default}`"),
        };
        text += &format!(
            "| `{}` | {flag} | {default} | {} | {} | {} |\n",
            setting.name,
            setting.kind.form(),
            setting.about,
            if setting.consent.is_some() { "yes" } else { "" },
        );
    }
    text += "\nThe default of `protected_names`: ";
    text += &table::protected_by_default()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    text += ".\n\n## Tables\n\nOnly settings files have these. `[guest]` names another machine ([guests.md](guests.md)), `[policies.NAME]` changes a policy or makes one ([policies.md](policies.md)). All of them can need consent.\n\n| setting | value | meaning |\n|---|---|---|\n";
    for setting in SETTINGS.iter().filter(|setting| setting.is_of_file()) {
        let (name, form) = (setting.name.replace('*', "NAME"), setting.kind.form());
        text += &format!("| `{name}` | {form} | {} |\n", setting.about);
    }
    text
}

const REFERENCE: &str = "\
# Settings

This page is made from the table of settings (`SETTINGS=overwrite cargo test --lib -- settings::tests`); [projects.md](projects.md#change-settings) explains how to change them.

A command takes only the flags of settings that it reads; its `--help` lists them. Flags override environment variables, which override `deaddrop.toml`, which overrides your own file (`~/.config/deaddrop/config.toml`). The environment variable of a setting is `DEADDROP_` followed by its name in capitals, with `_` instead of a dot: `sandbox.network` is `DEADDROP_SANDBOX_NETWORK`. Consent: a project's `deaddrop.toml` needs your consent to change these settings ([security.md](security.md#settings-that-somebody-else-wrote)).

| setting | flag | default | value | meaning | consent |
|---|---|---|---|---|---|
";

#[test]
fn every_setting_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    if env::var_os("SETTINGS").is_some_and(|mode| mode == "overwrite") {
        std::fs::write(&path, reference()).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap();
    assert!(there == reference(), "docs/settings.md is outdated: SETTINGS=overwrite writes it");
    let docs = include_str!("../../docs/sandbox.md");
    let examples: Vec<&str> = docs.split("```toml\n").skip(1).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        config(example.split("```").next().unwrap()).unwrap();
    }
}

#[test]
fn every_row_of_the_table_is_in_order() {
    for setting in SETTINGS.iter() {
        if !setting.is_of_file() {
            let default = setting.kind.value_of(&setting.default);
            assert_eq!(setting.kind.fault(&default), None, "{}", setting.name);
        }
        assert!(!setting.about.is_empty(), "{}", setting.name);
    }
    let harmless = [
        "command_timeout_seconds",
        "max_output_length",
        "max_tokens",
        "context_tokens",
        "first_contents",
        "brief",
        "part_characters",
        "sandbox.max_processes",
        "sandbox.max_file_bytes",
        "sandbox.max_memory_bytes",
        "sandbox.min_free_bytes",
        "checkpoints",
        "checkpoint_file_bytes",
        "checkpoint_ignored_file_bytes",
        "checkpoint_ignored_bytes",
        "checkpoint_max_bytes",
        "notify",
    ];
    let without_consent = SETTINGS.iter().filter(|setting| setting.consent.is_none());
    let without_consent: Vec<&str> = without_consent.map(|setting| &*setting.name).collect();
    assert_eq!(without_consent, harmless);
    for setting in SETTINGS.iter().filter(|setting| setting.variable().is_some()) {
        for choice in setting.choices() {
            with_variable(&setting.variable().unwrap(), choice);
        }
    }
    assert_eq!(table::find("policies.x.preset").unwrap().choices(), Policy::PRESETS);
}

#[test]
fn the_sandbox_is_a_word_or_a_table() {
    for (text, mode) in [
        ("sandbox = \"off\"", SandboxMode::Off),
        ("[sandbox]\nmode = \"partial\"", SandboxMode::Partial),
        ("sandbox.mode = \"bwrap\"", SandboxMode::Bwrap),
        ("sandbox = { mode = \"auto\", network = true }", SandboxMode::Auto),
    ] {
        assert_eq!(config(text).unwrap().sandbox.mode, mode, "{text}");
    }
    let raw = layer("sandbox = \"off\"").unwrap();
    let over = layer("[sandbox]\nnetwork = true").unwrap();
    let sandbox = resolved(&Layer::merged([&raw, &over])).unwrap().sandbox;
    assert!(
        sandbox.mode == SandboxMode::Off && sandbox.network,
        "a layer leaves what it does not set"
    );
    assert_eq!(with_variable("DEADDROP_SANDBOX", "off").sandbox.mode, SandboxMode::Off);
    assert_eq!(
        error("\nsandbox = \"on\""),
        "/project/deaddrop.toml:2: sandbox is \"on\" but must be one of auto, bwrap, partial, off"
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
        mode: SandboxMode::Auto,
        network: true,
        writable: ["/data/x", "/project/out", "/home/me/cache"].map(PathBuf::from).into(),
        readable: ["/lib", "/home/me", "/project/~odd"].map(PathBuf::from).into(),
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
        ["/a", "/project/c", "/home/me/d"].map(PathBuf::from)
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
    // An empty variable is an empty list. It overrides the layers below.
    let raw = layer("[sandbox]\nreadable = [\"/a\"]").unwrap();
    let over = variable("DEADDROP_SANDBOX_READABLE", "").unwrap();
    assert_eq!(
        resolved(&Layer::merged([&raw, &over])).unwrap().sandbox.readable,
        [] as [PathBuf; 0]
    );
    assert_eq!(with_variable("DEADDROP_PROTECTED_NAMES", "").protected_names, [] as [&str; 0]);
}

#[cfg(unix)]
#[test]
fn variables_are_utf_8() {
    use std::os::unix::ffi::OsStringExt;
    for name in ["DEADDROP_SANDBOX_WRITABLE", "DEADDROP_PROTECTED_NAMES", "DEADDROP_SANDBOX"] {
        let said = variable(name, OsString::from_vec(b"/a\xff".to_vec())).unwrap_err().to_string();
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
        for wrong in [&*above.to_string(), "-1"] {
            let form = format!("a whole number from {least} to {most}");
            let none = if or_none { "0 (no limit) or " } else { "" };
            assert_eq!(
                error(&text(wrong)),
                format!(
                    "/project/deaddrop.toml:2: sandbox.{name} is {wrong} but must be {none}{form}"
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
        ("inbox_dir = 5", ":1: inbox_dir is 5 but must be a folder"),
        ("max_output_length = \"500\"", "is \"500\" but must be a whole number"),
        ("sandbox = false", ":1: sandbox is false but must be one of auto,"),
        ("sandbox = [\"off\"]", "sandbox is a list but must be one of auto,"),
        ("[[sandbox]]\nnetwork = true", "sandbox is a list but"),
        ("[sandbox]\nmode = 1", ":2: sandbox is 1 but"),
        ("[sandbox.mode]\nx = 1", "sandbox is a table but"),
        ("[sandbox]\nnetwork = \"true\"", "sandbox.network is \"true\" but must be true or false"),
        (
            "[sandbox]\nwritable = \"/a\"",
            "sandbox.writable is \"/a\" but must be a list of files and folders, as strings",
        ),
        (
            "[sandbox]\n\nreadable = [\"/a\", 7]",
            ":3: sandbox.readable contains 7 but each item must be",
        ),
        (
            "[sandbox]\nenv = { A = \"1\" }",
            "sandbox.env is a table but must be a list of strings NAME or NAME=VALUE",
        ),
        ("[sandbox]\nenv = [[\"A\"]]", "sandbox.env contains a list but each item must be"),
        ("[sandbox]\nmax_processes = 1e4", "sandbox.max_processes is 10000.0 but must be"),
        ("[sandbox.network]\nx = 1", "sandbox.network is a table but"),
        ("protected_names = true", "protected_names is true but must be a list of names"),
        ("protected_names = 2020-01-01", "protected_names is \"2020-01-01\" but"),
    ]);
}

#[test]
fn wrong_items_of_lists_are_told() {
    all_told(&[
        (
            "[sandbox]\nwritable = [\"/\"]",
            ":2: sandbox.writable contains \"/\", which is the whole machine; list only the",
        ),
        (
            "[sandbox]\nreadable = [\"../../..\"]",
            "sandbox.readable contains \"../../..\", which is the whole machine",
        ),
        ("[sandbox]\nreadable = [\"\"]", "contains \"\" but each item must be the path of"),
        ("[sandbox]\nreadable = [\"a\\u0000\"]", "but each item must be the path of"),
        (
            "[sandbox]\nreadable = [\"~you/x\"]",
            "contains \"~you/x\", but only '~/', your home folder",
        ),
        (
            "[sandbox]\nenv = [\"A\", \"1A=2\"]",
            "sandbox.env contains \"1A=2\" but each item must be NAME or NAME=VALUE",
        ),
        ("[sandbox]\nenv = [\"\"]", "sandbox.env contains \"\""),
        ("[sandbox]\nenv = [\"=1\"]", "sandbox.env contains \"=1\""),
        ("[sandbox]\nenv = [\"A B\"]", "sandbox.env contains \"A B\""),
        ("[sandbox]\nenv = [\"É\"]", "sandbox.env contains \"É\""),
        ("[sandbox]\nenv = [\"A=\\u0000\"]", "sandbox.env contains \"A="),
        (
            "protected_names = [\".git/hooks\"]",
            "protected_names contains \".git/hooks\" but each item must be the name",
        ),
        ("protected_names = [\"\"]", "protected_names contains \"\""),
        ("protected_names = [\".\"]", "protected_names contains \".\""),
        ("protected_names = [\"..\"]", "protected_names contains \"..\""),
    ]);
    let raw = variable("DEADDROP_SANDBOX_WRITABLE", "/a:~/b").unwrap();
    for home in [None, Some(Path::new("")), Some(Path::new("me"))] {
        let said = Config::resolve("/project".into(), &raw, home).unwrap_err().to_string();
        assert!(
            said.contains("DEADDROP_SANDBOX_WRITABLE: sandbox.writable contains \"~/b\""),
            "{said}"
        );
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
            "unknown setting 'sandbox.zzzzzz'; `deaddrop config show` lists all",
        ),
        ("[sandbox]\ninbox_dir = \"x\"", "'sandbox.inbox_dir'; did you mean 'inbox_dir'?"),
        ("[sandbox]\nsandbox = \"off\"", "did you mean 'sandbox'?"),
        ("network = true", "unknown setting 'network'; did you mean 'sandbox.network'?"),
        (
            "\"sandbox.network\" = true",
            "unknown setting '\"sandbox.network\"'; did you mean 'sandbox.network'?",
        ),
        ("[sandox]\nnetwork = true", ":1: unknown setting 'sandox'; did you mean 'sandbox'?"),
        ("protected_name = []", "did you mean 'protected_names'?"),
        ("qqqq = 1", "`deaddrop config show` lists all settings"),
    ]);
    for (name, meant) in [
        ("DEADDROP_SANDBOX_NETWROK", "did you mean 'DEADDROP_SANDBOX_NETWORK'?"),
        ("DEADDROP_SANDBOX_MODE", "did you mean 'DEADDROP_SANDBOX'?"),
        ("DEADDROP_SANDBX", "did you mean 'DEADDROP_SANDBOX'?"),
        ("DEADDROP_PROTECTED", "did you mean 'DEADDROP_PROTECTED_NAMES'?"),
        ("DEADDROP_QQQQ", "`deaddrop config show` lists all settings"),
    ] {
        let said = variable(name, "x").unwrap_err().to_string();
        assert!(said.starts_with(&format!("environment variable {name}: unknown")), "{said}");
        assert!(said.contains(meant), "{said}");
    }
}

fn secrets(text: &str) -> Result<Secrets> {
    config(text).map(|config| config.secrets)
}

#[test]
fn secrets_are_withheld_unless_the_person_says_otherwise() {
    assert_eq!(secrets("").unwrap(), Secrets { mode: SecretsMode::Withhold, allow: vec![] });
    let set = secrets("secrets = \"warn\"\nsecrets_allow = [\"a/*.pem\", \".env.ci\"]").unwrap();
    assert_eq!(set.mode, SecretsMode::Warn);
    assert_eq!(set.allow, ["a/*.pem", ".env.ci"]);
    assert!(set.allows("a/server.pem") && !set.allows("server.pem"));
    assert_eq!(with_variable("DEADDROP_SECRETS", "warn").secrets.mode, SecretsMode::Warn);
    assert_eq!(with_variable("DEADDROP_SECRETS_ALLOW", "a, b/**").secrets.allow, ["a", "b/**"]);
}

#[test]
fn wrong_settings_of_secrets_are_told() {
    for (text, told) in [
        ("secrets = \"off\"", ":1: secrets is \"off\" but must be one of withhold, warn"),
        ("\nsecrets = true", ":2: secrets is true but must be one of"),
        ("[secrets]\nx = 1", "secrets is a table but must be one of withhold, warn"),
        ("secrets_allow = \"a\"", "secrets_allow is \"a\" but must be a list of patterns of files"),
        ("secrets_allow = [1]", "secrets_allow contains 1 but each item must be"),
        ("secrets_allow = [\"\"]", "secrets_allow contains \"\" but each item must be"),
        ("secrets_allow = [\"/etc/x\"]", "secrets_allow contains \"/etc/x\" but each item must be"),
        ("secrets_allow = [\"a/../b\"]", "secrets_allow contains \"a/../b\" but each item must be"),
        ("secret_allow = []", "did you mean 'secrets_allow'?"),
    ] {
        let error = secrets(text).expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

fn notify(text: &str) -> Result<Notify> {
    config(text).map(|config| config.notify)
}

#[test]
fn nobody_is_disturbed_who_has_not_asked_for_it() {
    assert_eq!(notify("").unwrap(), Notify::Off);
    assert_eq!(notify("notify = \"bell\"").unwrap(), Notify::Bell);
    assert_eq!(with_variable("DEADDROP_NOTIFY", "desktop").notify, Notify::Desktop);
    for (text, told) in [
        ("notify = \"beep\"", ":1: notify is \"beep\" but must be one of off, bell, desktop"),
        ("notify = true", ":1: notify is true but must be one of off"),
    ] {
        let error = notify(text).expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

fn guest(text: &str) -> Result<Option<GuestAddress>> {
    config(text).map(|config| config.guest)
}

#[test]
fn a_guest_is_reached_by_a_command_or_a_socket() {
    assert_eq!(guest("").unwrap(), None);
    let told = guest("[guest]\ncommand = [\"ssh\", \"build-box\", \"deaddrop\", \"rpc\"]\n");
    let told = told.unwrap().unwrap();
    assert_eq!(told.label(), "ssh build-box deaddrop rpc");
    let told = guest("[guest]\nsocket = \"vm.sock\"").unwrap().unwrap();
    let socket = GuestAddress::Socket { path: PathBuf::from("/project/vm.sock"), port: 52 };
    assert_eq!(told.label(), "/project/vm.sock (port 52)");
    assert_eq!(told, socket);
    let told = guest("[guest]\nsocket = \"/run/vm\"\nport = 0x10").unwrap().unwrap();
    assert_eq!(told.label(), "/run/vm (port 16)");
}

#[test]
fn wrong_settings_of_the_guest_are_told() {
    for (text, told) in [
        ("guest = 1", ":1: guest must be a table, as [guest]"),
        ("[guest]", ":1: [guest] needs a command"),
        (
            "\n[guest]\ncomand = []",
            ":3: unknown setting 'guest.comand'; did you mean 'guest.command'?",
        ),
        ("[guest]\nx = 1", ":2: unknown setting 'guest.x'; `deaddrop config show` lists"),
        ("[guest]\ncommand = \"ssh\"", ":2: guest.command is \"ssh\" but must be"),
        (
            "[guest]\ncommand = []",
            ":2: guest.command is a list but must be a list of strings, a program",
        ),
        ("[guest]\ncommand = [\" \"]", ":2: guest.command"),
        ("[guest]\ncommand = [1]", ":2: guest.command"),
        ("[guest]\nsocket = \"\"", ":2: guest.socket"),
        ("[guest]\nport = -1", ":2: guest.port"),
        ("[guest]\ncommand = [\"a\"]\nsocket = \"b\"", ":1: [guest] has a command and a socket"),
        ("[guest]\ncommand = [\"a\"]\nport = 5", ":1: [guest] has a port, but only"),
    ] {
        let error = guest(text).expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}
