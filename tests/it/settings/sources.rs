//! Settings: where they come from, which wins, what they do, and how wrong ones are told.

use std::process::Command;

use crate::cli::command_line::not_as_root;
use crate::support::{ID, Project, Run};

/// Each key, with a value of its own for the person's file, deaddrop.toml, a variable and a flag.
const KEYS: [(&str, [&str; 4]); 6] = [
    ("workspace_dir", ["w1", "w2", "w3", "w4"]),
    ("inbox_dir", ["i1", "i2", "i3", "i4"]),
    ("outbox_dir", ["o1", "o2", "o3", "o4"]),
    ("sessions_dir", ["s1", "s2", "s3", "s4"]),
    ("command_timeout_seconds", ["11", "12", "13", "14"]),
    ("max_output_length", ["101", "102", "103", "104"]),
];

fn line(key: &str, value: &str) -> String {
    let quote = if key.ends_with("_dir") { "\"" } else { "" };
    format!("{key} = {quote}{value}{quote}\n")
}

fn write_own(base: &Project, text: &str) {
    base.write(".no-config/deaddrop/config.toml", text);
}

fn new(base: &Project) -> Command {
    base.command(&["new", "--no-watch", "--id", ID, "A task"])
}

/// Where the value of a key shows after `new`.
fn shows(base: &Project, key: &str, value: &str) -> bool {
    if key.ends_with("_dir") {
        return base.path().join(value).is_dir();
    }
    let outbox = base.names(".").into_iter().find(|name| name.starts_with('o')).unwrap();
    let outbox = base.read(&format!("{outbox}/{ID}_seq0001.txt"));
    outbox.contains(&match key {
        "command_timeout_seconds" => format!("Limits: {value} s a command"),
        _ => format!("{value} characters of its output"),
    })
}

#[test]
fn for_every_key_flags_go_over_variables_over_the_base_over_the_person_over_defaults() {
    for layers in 0..=4 {
        let base = Project::new();
        let text = |n: usize| KEYS.map(|(key, values)| line(key, values[n])).concat();
        let mut arguments = ["new", "--no-watch", "--id", ID, "A task"].map(String::from).to_vec();
        if layers > 0 {
            write_own(&base, &text(0));
        }
        if layers > 1 {
            base.write("deaddrop.toml", text(1));
        }
        if layers > 3 {
            for (key, values) in KEYS {
                arguments.push(format!("--{}={}", key.replace('_', "-"), values[3]));
            }
        }
        let mut command = base.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        if layers > 2 {
            for (key, values) in KEYS {
                command.env(format!("DEADDROP_{}", key.to_uppercase()), values[2]);
            }
        }
        Run::of(&mut command, "").ok();
        let defaults = ["workspace", "inbox", "outbox", "sessions", "30", "4000"];
        for ((key, values), default) in KEYS.into_iter().zip(defaults) {
            let expected = if layers == 0 { default } else { values[layers - 1] };
            assert!(shows(&base, key, expected), "{key} with {layers} layers");
        }
        let folders = base.names(".").len() - usize::from(layers > 0) - usize::from(layers > 1);
        assert_eq!(folders, 5, "only those: {:?}", base.names("."));
    }
}

#[test]
fn a_layer_that_sets_one_key_leaves_the_others() {
    let base = Project::new();
    write_own(&base, "max_output_length = 200\ninbox_dir = \"in\"\n");
    base.write("deaddrop.toml", "command_timeout_seconds = 7\n");
    Run::of(new(&base).env("DEADDROP_INBOX_DIR", "drop"), "").ok();
    assert!(base.outbox(1).contains("Limits: 7 s a command, 200 characters of its output"));
    assert!(base.exists("drop") && !base.exists("in"));
}

#[track_caller]
fn tells(said: &str, all: &[&str]) {
    for told in all {
        assert!(said.contains(told), "{told} in {said}");
    }
}

#[test]
fn wrong_settings_are_told_with_file_line_and_nearest_key() {
    let base = Project::new();
    let told = |text: &str| {
        base.write("deaddrop.toml", text);
        base.fails(&["status"], "invalid-setting").with_code(2).message()
    };
    for (text, expected) in [
        (
            "\n\ninbox_dri = \"x\"\n",
            "deaddrop.toml:3: unknown setting 'inbox_dri'; did you mean 'inbox_dir'?",
        ),
        ("max_output_length = 5\n", "deaddrop.toml:1: max_output_length is 5 but must be"),
        (
            "# x\ncommand_timeout_seconds = \"soon\"\n",
            "deaddrop.toml:2: command_timeout_seconds is \"soon\" but must be a whole",
        ),
        ("command_timeout_seconds = 1.5\n", "deaddrop.toml:1: command_timeout_seconds is 1.5"),
        ("inbox_dir = \"a\"\ninbox_dir = \"b\"\n", "deaddrop.toml:2: "),
        ("[inbox]\ndir = \"a\"\n", "deaddrop.toml:1: unknown setting 'inbox'"),
        ("zzzzzzzz = 1\n", "`deaddrop config show` lists all settings"),
    ] {
        tells(&told(text), &[expected]);
    }
    base.sh("rm deaddrop.toml");
    write_own(&base, "\nsession_dir = \"x\"\n");
    let said = base.fails(&["status"], "invalid-setting").with_code(2).message();
    tells(&said, &["config.toml:2: unknown setting 'session_dir'", "'sessions_dir'"]);
    assert_eq!(base.names("."), [".no-config"]);
}

#[test]
fn wrong_variables_and_flags_are_told_by_name() {
    let base = Project::new();
    for (name, value, expected) in [
        ("DEADDROP_COMMAND_TIMEOUT_SECONDS", "0", "from 1 to 3600"),
        ("DEADDROP_TIMEOUT", "5", "environment variable DEADDROP_TIMEOUT"),
        ("DEADDROP_INBOXDIR", "5", "did you mean 'DEADDROP_INBOX_DIR'?"),
        ("DEADDROP_OUTBOX_DIR", "", "outbox_dir is \"\" but must be a folder"),
    ] {
        let mut command = base.command(&["status", "--json"]);
        let run = Run::of(command.env(name, value), "").with_code(2);
        assert_eq!(run.error()["code"], "invalid-setting");
        tells(&run.message(), &[expected]);
    }
    let wrong = ["say", "--max-output-length", "many", "x"];
    let said = base.fails(&wrong, "invalid-setting").with_code(2).message();
    tells(&said, &["--max-output-length: max_output_length is \"many\""]);
}

#[test]
fn the_time_limit_of_commands_holds() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "command_timeout_seconds = 3\n");
    let turn = base.turn("[RUN_COMMAND]\necho begun; sleep 300\n[/RUN_COMMAND]\n");
    assert_eq!(turn.codes(), ["timed-out"]);
    assert!(turn.outbox.contains("timed out after 3 s"), "{turn:?}");
    assert!(turn.outbox.contains("Output: begun"), "{turn:?}");
}

#[test]
fn the_limit_of_output_holds() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "max_output_length = 100\n");
    let outbox = base.apply("[RUN_COMMAND]\nseq 1000; echo end\n[/RUN_COMMAND]\n");
    let output = outbox.split_once("Output: ").unwrap().1.split_once("\n\n=== PROMPT").unwrap().0;
    assert!(output.starts_with("1\n  2\n") && output.ends_with("\n  end"), "{output}");
    assert!(output.contains("characters left out") && output.len() < 300, "{output}");
}

#[test]
fn folders_may_lie_anywhere() {
    let base = Project::new();
    let elsewhere = Project::new();
    let text: String = ["workspace", "inbox", "outbox", "sessions", "approvals"]
        .map(|name| line(&format!("{name}_dir"), elsewhere.at(name).to_str().unwrap()))
        .concat();
    base.write("deaddrop.toml", text);
    let mut daemon = base.serve(&["new", "--id", ID, "A task"]);
    elsewhere.write("inbox/r.txt", "[RUN_COMMAND]\npwd > here\n[/RUN_COMMAND]\n");
    elsewhere.wait_for_outbox(2);
    assert_eq!(
        elsewhere.read("workspace/here").trim(),
        elsewhere.at("workspace").to_str().unwrap()
    );
    elsewhere.write("inbox/r.txt", "[DONE]\nWell\n[/DONE]\n");
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(base.names("."), ["daemon.log", "deaddrop.toml"]);
}

#[test]
fn settings_in_the_workspace_are_never_read() {
    let base = Project::with_session();
    base.write("workspace/deaddrop.toml", "nonsense\n");
    base.apply("[READ_FILE path=\"deaddrop.toml\"]\n");
    base.run(&["status"]).ok();
}

#[test]
fn settings_of_a_base_that_is_the_workspace_are_out_of_reach_of_replies() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "workspace_dir = \".\"\n");
    let before = base.read("deaddrop.toml");
    for path in ["deaddrop.toml", "./x/../deaddrop.toml", "inbox/r.txt", "sessions/00ff00ff.json"] {
        let turn = base.turn(&format!("[CREATE_FILE path=\"{path}\"]\nx\n[/CREATE_FILE]\n"));
        assert_eq!(turn.codes(), ["own-state"], "{path}");
        assert!(!turn.outbox.contains("\n  deaddrop.toml"), "not listed: {turn:?}");
        let both = format!("[DELETE_FILE path=\"{path}\"]\n[READ_FILE path=\"{path}\"]\n");
        assert_eq!(base.codes(&both), ["own-state", "own-state"], "{path}");
    }
    assert_eq!(base.read("deaddrop.toml"), before);
}

#[test]
fn folders_in_each_other_are_refused() {
    for text in [
        "outbox_dir = \"inbox\"",
        "outbox_dir = \"inbox/out\"",
        "inbox_dir = \"./sessions/../sessions/in\"",
        "workspace_dir = \"inbox/w\"",
        "workspace_dir = \"outbox\"",
        "workspace_dir = \"sessions/a/b\"",
        "sessions_dir = \".\"",
    ] {
        let base = Project::new();
        base.write("deaddrop.toml", format!("{text}\n"));
        let run = Run::of(new(&base).arg("--json"), "").with_code(2);
        assert_eq!(run.error()["code"], "invalid-setting", "{text}");
        tells(&run.message(), &["deaddrop.toml:1: ", "must not be in"]);
        assert_eq!(base.names("."), ["deaddrop.toml"]);
    }
}

#[test]
fn folders_that_are_the_same_by_a_link_are_refused() {
    let base = Project::new();
    base.sh("mkdir inbox; ln -s inbox outbox");
    let run = Run::of(new(&base).arg("--json"), "").with_code(2);
    assert_eq!(run.error()["code"], "invalid-setting");
    tells(&run.message(), &["must not be in"]);
}

/// A wrong value with a number in it, for a file and for a variable.
type Wrong = fn(usize) -> [String; 2];

/// Each setting of the sandbox and beside it: a right value for a file and for a variable, and wrong
/// ones.
const LATER: [(&str, [&str; 2], Wrong); 10] = [
    ("sandbox", ["'partial'", "off"], |n| same("'", &format!("wrong{n}"))),
    ("sandbox.network", ["true", "false"], |n| [format!("'wrong{n}'"), format!("wrong{n}")]),
    ("sandbox.writable", ["['~/a', 'b']", "/a:b"], |n| list(&format!("~wrong{n}"))),
    ("sandbox.readable", ["['~/a', 'b']", "/a:b"], |n| list(&format!("~wrong{n}"))),
    ("sandbox.env", ["['A', 'B=']", "A,B="], |n| list(&format!("-wrong{n}"))),
    ("sandbox.max_processes", ["350", "1000000"], |n| same("", &n.to_string())),
    ("sandbox.max_file_bytes", ["1_000_000", "1000000"], |n| same("", &n.to_string())),
    ("sandbox.max_memory_bytes", ["0", "100000000"], |n| same("", &(n + 1).to_string())),
    ("sandbox.min_free_bytes", ["0", "1"], |n| same("", &format!("-{}", n + 1))),
    ("protected_names", ["['.git', 'a b']", ".git,a b"], |n| list(&format!("a/wrong{n}"))),
];

fn same(quote: &str, value: &str) -> [String; 2] {
    [format!("{quote}{value}{quote}"), value.to_owned()]
}

fn list(item: &str) -> [String; 2] {
    [format!("['{item}']"), item.to_owned()]
}

fn variable(key: &str) -> String {
    format!("DEADDROP_{}", key.to_uppercase().replace('.', "_"))
}

#[test]
fn for_the_sandbox_too_the_higher_layer_wins_and_is_named() {
    let base = Project::new();
    let run = |own: &str, file: &str, variable: Option<(&str, &str)>| {
        write_own(&base, own);
        base.write("deaddrop.toml", file);
        Run::of(base.command(&["status"]).envs(variable), "")
    };
    for (key, [right, right_variable], wrong) in LATER {
        let variable = variable(key);
        let text = |value: &str| format!("\n{key} = {value}\n");
        let [own, file] = [0, 1].map(|n| text(&wrong(n)[0]));
        let told = |run: Run, origin: &str, n: usize| {
            let said = run.with_code(2).stderr;
            let shown = &wrong(n)[1];
            assert!(said.contains(&format!("{origin}: {key} ")), "{key}: {said}");
            assert!(said.contains(shown), "{key}: {said}");
        };
        told(run(&own, "", None), "config.toml:2", 0);
        // A wrong value is told even where a higher layer wins, but only the paths in force are looked at.
        if ["sandbox.writable", "sandbox.readable"].contains(&key) {
            run(&own, &file, Some((&variable, right_variable))).ok();
        } else {
            told(run(&own, &text(right), None), "config.toml:2", 0);
            told(run("", &file, Some((&variable, right_variable))), "deaddrop.toml:2", 1);
        }
        let [_, wrong_variable] = wrong(2);
        let run = run("", &text(right), Some((&variable, &wrong_variable)));
        told(run, &format!("environment variable {variable}"), 2);
    }
}

#[test]
fn the_flag_of_the_sandbox_goes_over_all() {
    let base = Project::new();
    base.write("deaddrop.toml", "sandbox = \"auto\"\n");
    for mode in ["auto", "bwrap", "partial", "off"] {
        let mut command = base.command(&["doctor", "--json", "--sandbox", mode]);
        let told = Run::of(command.env("DEADDROP_SANDBOX", "partial"), "").stdout;
        assert_eq!(
            told.contains("off: commands have the user's own rights"),
            mode == "off",
            "{mode}: {told}"
        );
        Run::of(base.command(&["status"]).env("DEADDROP_SANDBOX", mode), "").ok();
    }
    let said = base.fails(&["status", "--sandbox=none"], "invalid-setting").with_code(2).message();
    let expected = "--sandbox: sandbox is \"none\" but must be one of auto, bwrap, partial, off";
    tells(&said, &[expected]);
    let help = base.run(&["new", "--help"]).ok().stdout;
    assert!(help.contains("--sandbox <MODE>"), "{help}");
    for no_flag in ["--sandbox-network", "--protected-names"] {
        base.run(&["status", no_flag, "x"]).with_code(2);
    }
}

#[test]
fn wrong_settings_of_the_sandbox_are_told_with_what_is_right() {
    let base = Project::new();
    for (text, expected) in [
        (
            "[sandbox]\nnetwrok = true\n",
            "deaddrop.toml:2: unknown setting 'sandbox.netwrok'; did you mean 'sandbox.network'?",
        ),
        (
            "[sandbox]\nmax_output_length = 500\n",
            "deaddrop.toml:2: unknown setting 'sandbox.max_output_length'; did you mean 'max_output_length'?",
        ),
        ("readable = []\n", "unknown setting 'readable'; did you mean 'sandbox.readable'?"),
        ("sandbox = true\n", "deaddrop.toml:1: sandbox is true but must be one of auto, bwrap"),
        (
            "[sandbox]\nwritable = [\n  \"/a\",\n  \"/b/..\",\n]\n",
            "deaddrop.toml:2: sandbox.writable contains \"/b/..\", which is the whole machine",
        ),
        (
            "[sandbox]\nenv = [\"A\", 1]\n",
            "deaddrop.toml:2: sandbox.env contains 1 but each item must be",
        ),
        ("sandbox = \"off\"\n[sandbox]\nnetwork = true\n", "deaddrop.toml:2: "),
    ] {
        base.write("deaddrop.toml", text);
        let said = base.fails(&["status"], "invalid-setting").with_code(2).message();
        tells(&said, &[expected]);
    }
    base.write("deaddrop.toml", "sandbox.readable = [\"~/x\"]\n");
    base.run(&["status"]).ok();
    let said = Run::of(base.command(&["status"]).env_remove("HOME"), "").with_code(2).stderr;
    tells(&said, &["sandbox.readable contains \"~/x\", but HOME does not name"]);
}

#[test]
fn a_folder_that_is_not_there_is_told_and_one_that_cannot_be_is_refused() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "");
    base.write("file", "");
    base.sh("ln -s nowhere link; mkdir there");
    for (wrong, why) in
        [("file", "is not a folder"), ("file/x", "is not a folder"), ("link", "leads nowhere")]
    {
        let set = ["config", "set", "workspace_dir", wrong];
        let said = base.fails(&set, "invalid-setting").with_code(2).message();
        tells(&said, &[why]);
        assert_eq!(base.read("deaddrop.toml"), "");
    }
    let run = base.run(&["config", "set", "workspace_dir", "there"]).ok();
    assert!(!run.stderr.contains("warning"), "{run:?}");
    let run = base.run(&["config", "set", "workspace_dir", "elsewhere/x"]).ok();
    let made = "elsewhere/x does not exist; it is created, empty, at the next start\n";
    tells(&run.stderr, &["warning: ", made]);
    // Of deaddrop's own nobody expects it.
    let run = base.run(&["config", "set", "inbox_dir", "in"]).ok();
    assert!(!run.stderr.contains("warning"), "{run:?}");
    for (wide, why) in
        [("/", "the whole machine"), ("/..", "the whole machine"), ("home", "home folder")]
    {
        base.sh("mkdir -p home");
        let run = |more: &[&str]| {
            let arguments = [&["config", "set", "workspace_dir", wide], more].concat();
            Run::of(base.command(&arguments).env("HOME", base.at("home")), "")
        };
        let before = base.read("deaddrop.toml");
        let refused = run(&[]).with_code(2).stderr;
        tells(&refused, &[why, "or use --force"]);
        assert_eq!(base.read("deaddrop.toml"), before);
        run(&["--force"]).ok();
        base.run(&["config", "set", "workspace_dir", "there"]).ok();
    }
    let settings = base.read("deaddrop.toml");
    let set = ["config", "set", "workspace_dir", "/nonexist/x"];
    let Some(mut set) = not_as_root(&base, &set) else { return };
    let run = Run::of(&mut set, "").with_code(2);
    tells(&run.stderr, &["/ is a folder that you cannot write to"]);
    assert_eq!(base.read("deaddrop.toml"), settings);
}
