//! Everything from a reply, a file, a setting or a program is made visible before it reaches a terminal.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::approvals::asked::ASKS;
use crate::approvals::at_terminal::AtTerminal;
use crate::support::{ID, Project, Run};

/// What colours, takes the clipboard, rings, writes over the line, steers in eight bits, reorders, or is
/// not seen. It has no `/`, so that it can be a name.
const HOSTILE: &str =
    "a\u{1b}[35mX\u{1b}]52;c;aGk=\u{7}\rFORGED\u{9b}2J\u{202e}\u{e0041}\u{200b}z\u{7f}";
/// None of it may come through. deaddrop itself writes none of these here.
const RAW: [&str; 9] = [
    "\u{1b}[35m",
    "\u{1b}]52",
    "\u{7}",
    "\rFORGED",
    "\u{9b}",
    "\u{202e}",
    "\u{e0041}",
    "\u{200b}",
    "\u{7f}",
];

/// As a string of TOML.
fn toml() -> String {
    HOSTILE.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect()
}

/// As a word of JSON.
fn json() -> String {
    serde_json::json!(HOSTILE).to_string()
}

/// Which of it came through.
fn raw_in(shown: &str) -> Vec<&'static str> {
    RAW.into_iter().filter(|raw| shown.contains(raw)).collect()
}

/// Runs this to a pipe and at a terminal, and looks for what came through; gives what the pipe got.
#[track_caller]
fn shows_nothing_raw(what: &str, command: impl Fn() -> Command) -> String {
    let run = Run::of(&mut command(), "");
    let piped = run.stdout + &run.stderr;
    assert_eq!(raw_in(&piped), [""; 0], "{what}, piped: {piped:?}");
    let mut command = command();
    // It has no clipboard.
    command.env("TERM", "linux");
    let Some(mut terminal) = AtTerminal::begin(command) else { return piped };
    let (mut answered, step) = (0, Duration::from_millis(5));
    while !terminal.has_ended() {
        // Whatever is asked.
        answered += 1;
        if answered % 40 == 0 {
            terminal.types("n\r");
        }
        sleep(step);
    }
    terminal.ends();
    let shown = terminal.shown();
    assert_eq!(raw_in(&shown), [""; 0], "{what}, at a terminal: {shown:?}");
    piped
}

/// The same of several command lines, each also with `--json`; what each gives to a pipe.
#[track_caller]
fn show_nothing_raw(base: &Project, source: &str, lines: &[&[&str]]) -> Vec<String> {
    let told = lines.iter().flat_map(|line| {
        let what = format!("{source}: {line:?}");
        let json = [line, &["--json"][..]].concat();
        let run = base.run(&json);
        let json = run.stdout + &run.stderr;
        assert_eq!(raw_in(&json), [""; 0], "{what}, as JSON: {json:?}");
        [json, shows_nothing_raw(&what, || base.command(line))]
    });
    told.collect()
}

/// Whether some of it was told at all, visibly or as JSON.
#[track_caller]
fn was_told(told: &[String]) {
    let shows = |told: &String| told.contains("␛[35mX") || told.contains("\\u001b[35mX");
    assert!(told.iter().any(shows), "the source reaches nobody: {told:?}");
}

#[test]
fn a_reply_shows_nothing_raw() {
    let replies = [
        format!("{HOSTILE}\n[CREATE_FILE path=\"f\"]\n{HOSTILE}\n[/CREATE_FILE]\n"),
        format!("[CREATE_FILE path=\"{HOSTILE}\"]\nx\n[/CREATE_FILE]\n"),
        format!("[RUN_COMMAND]\necho '{HOSTILE}'; echo '{HOSTILE}' >&2; exit 3\n[/RUN_COMMAND]\n"),
        format!("[READ_FILE path=\"{HOSTILE}\"]\n[SEARCH]\n{HOSTILE}\n[/SEARCH]\n"),
        format!("[SHOW_USER]\n{HOSTILE}\n[/SHOW_USER]\n[MESSAGE]\n{HOSTILE}\n[/MESSAGE]\n"),
        format!(
            "[{HOSTILE} path=\"{HOSTILE}\" {HOSTILE}=\"{HOSTILE}\"]\n[CREATE_FILE {HOSTILE}]\n"
        ),
        format!("[DONE]\n{HOSTILE}\n[/DONE]\n"),
        format!("[REPLY session=\"{HOSTILE}\" to=\"{HOSTILE}\"]\n{ASKS}"),
        format!("[REPLY {ID} 1 {HOSTILE}]\n{ASKS}"),
        format!("[RUN_COMMAND]\nrm -r temp '{HOSTILE}'\n[/RUN_COMMAND]\n"),
        format!(
            "{{\"protocolVersion\":\"1.0\",\"operations\":[{{\"type\":\"createFile\",\"id\":{0},\"path\":{0},\"content\":{0}}}]}}",
            json()
        ),
        format!(
            "{{\"protocolVersion\":\"1.0\",\"operations\":[{{\"type\":{0},{0}:{0}}}]}}",
            json()
        ),
    ];
    let mut told = Vec::new();
    for reply in &replies {
        let base = crate::approvals::asked::scene();
        base.write("r.txt", reply);
        let lines: [&[&str]; 8] = [
            &["check", "r.txt"],
            &["ops", "validate", "r.txt"],
            &["apply", "r.txt"],
            &["apply", "--again", "--force", "r.txt"],
            &["status", ID],
            &["log", "--session", ID],
            &["status"],
            &["undo"],
        ];
        told.extend(show_nothing_raw(&base, reply, &lines));
        // To a pipe it is a patch, which is exact.
        told.push(diff_at_a_terminal(&base));
    }
    was_told(&told);
}

/// What `diff` shows at a terminal.
#[track_caller]
fn diff_at_a_terminal(base: &Project) -> String {
    let line = ["diff", "--all", ID];
    let Some(mut terminal) = AtTerminal::start(base, &line) else { return String::new() };
    terminal.ends();
    assert_eq!(raw_in(&terminal.shown()), [""; 0], "{:?}", terminal.shown());
    terminal.shown()
}

#[test]
fn a_session_shows_nothing_raw() {
    let base = Project::new();
    base.write(&format!("workspace/{HOSTILE}"), HOSTILE);
    let told = show_nothing_raw(
        &base,
        "a task, a name of a file",
        &[
            &["new", "--no-watch", HOSTILE],
            &["new", "--no-watch", "--include", HOSTILE, "A task"],
            &["status"],
            &["status", ID],
            &["say", HOSTILE],
            &["status", ID],
            &["resume", "--no-watch"],
            &["show", "--copy"],
        ],
    );
    was_told(&told);

    // What somebody else wrote there.
    let base = Project::with_session();
    base.write(&format!("sessions/{HOSTILE}.json"), HOSTILE);
    base.write(
        "sessions/00ff00ff.json",
        base.read(&format!("sessions/{ID}.json")).replace("A task", &json()),
    );
    base.write("sessions/journal", format!("{HOSTILE}\n"));
    let lines: [&[&str]; 5] = [
        &["status"],
        &["status", ID],
        &["status", "00ff00ff"],
        &["doctor"],
        &["resume", "--no-watch"],
    ];
    show_nothing_raw(&base, "a damaged session", &lines);
}

#[test]
fn an_outbox_is_exact_for_a_program_and_visible_for_a_person() {
    let base = Project::with_session();
    let text = format!("{}{HOSTILE}\n", base.outbox(1));
    base.write(&format!("outbox/{ID}_seq0001.txt"), &text);
    assert_eq!(base.run(&["show"]).ok().stdout, text);
    let told: serde_json::Value =
        serde_json::from_str(&base.run(&["show", "--json"]).ok().stdout).unwrap();
    assert_eq!(told["text"], text);
    let Some(mut terminal) = AtTerminal::start(&base, &["show"]) else { return };
    terminal.ends();
    assert_eq!(raw_in(&terminal.shown()), [""; 0]);
    assert!(terminal.shown().contains("␛[35mX␛]52;c;aGk=␇␍FORGED<U+009B>2J<U+202E><U+E0041>"));
    shows_nothing_raw("show --json", || base.command(&["show", "--json"]));
    shows_nothing_raw("copy --json", || {
        let mut command = base.command(&["show", "--copy", "--json"]);
        command.env("TERM", "dumb");
        command
    });
}

#[test]
fn a_setting_shows_nothing_raw() {
    let lines: [&[&str]; 12] = [
        &["config", "show"],
        &["config", "get", "secrets_allow"],
        &["config", "get", "protected_names"],
        &["config", "get", "workspace_dir"],
        &["config", "set", "policy", HOSTILE],
        &["config", "set", HOSTILE, HOSTILE],
        &["config", "allow"],
        &["policy", "list"],
        &["policy", "check", HOSTILE],
        &["doctor"],
        &["status", ID],
        &["new", "--no-watch", "A task"],
    ];
    let value = toml();
    let mut told = Vec::new();
    for settings in [
        format!("secrets_allow = [\"{value}\"]\nprotected_names = [\"{value}\"]\n"),
        format!("workspace_dir = \"{value}\"\ninbox_dir = \"{value}i\"\n"),
        format!("policy = \"{value}\"\n"),
        format!("notify = \"{value}\"\nsandbox = \"{value}\"\n"),
        format!("\"{value}\" = \"{value}\"\n"),
        format!("[policies.\"{value}\"]\nfiles = \"{value}\"\n"),
        format!("[guest]\ncommand = [\"{value}\"]\n"),
        format!("secrets_allow = [{HOSTILE}\n"),
    ] {
        let base = Project::new();
        base.write("deaddrop.toml", &settings);
        told.extend(show_nothing_raw(&base, &settings, &lines));
        let base = Project::that_nobody_agrees_to();
        base.write("deaddrop.toml", &settings);
        told.extend(show_nothing_raw(
            &base,
            &settings,
            &[&["status", ID], &["new", "--no-watch", "A task"]],
        ));
    }
    was_told(&told);

    // A setting of a variable's.
    let mut told = Vec::new();
    let base = Project::with_session();
    for name in ["DEADDROP_SECRETS_ALLOW", "DEADDROP_POLICY", "DEADDROP_INBOX_DIR", "DEADDROP_X"] {
        for line in [&["config", "show"][..], &["doctor"], &["status"], &["show", "--copy"]] {
            told.push(shows_nothing_raw(name, || {
                let mut command = base.command(line);
                command.env(name, HOSTILE);
                command
            }));
        }
    }
    was_told(&told);
}

#[test]
fn an_argument_shows_nothing_raw() {
    let base = Project::with_session();
    let option = format!("--{HOSTILE}");
    let lines: [&[&str]; 18] = [
        &[HOSTILE],
        &[&option],
        &["--color", HOSTILE],
        &["--now", HOSTILE],
        &["-C", HOSTILE, "status"],
        &["new", "--policy", HOSTILE, "--no-watch", "A task"],
        &["say", "--max-tokens", HOSTILE, "x"],
        &["status", HOSTILE],
        &["show", "--session", HOSTILE],
        &["show", "--part", HOSTILE],
        &["apply", HOSTILE],
        &["check", HOSTILE, HOSTILE],
        &["diff", HOSTILE],
        &["approve", HOSTILE],
        &["generate", "man", HOSTILE],
        &["generate", "completions", HOSTILE],
        &["ops", "schema", HOSTILE],
        &["init", HOSTILE],
    ];
    was_told(&show_nothing_raw(&base, "an argument", &lines));
    // The program's own name is one, too, and what is no UTF-8.
    for line in [&["--help"][..], &["status", "--help"], &["status", "--x"], &[]] {
        shows_nothing_raw("arg0", || {
            let mut command = base.command(line);
            command.arg0(HOSTILE);
            command
        });
    }
    shows_nothing_raw("bytes", || {
        let mut command = base.command(&["status", ID]);
        command.arg(OsString::from_vec(b"\x9b2J\x1b[35m\xff\x07".to_vec()));
        command
    });
}

#[test]
fn what_a_message_is_faulted_for_shows_nothing_raw() {
    let (base, mut told) = (Project::new(), Vec::new());
    for (n, message) in [
        format!("{{\"protocolVersion\":\"1.0\",\"operations\":[{{\"type\":{0}}}],{0}:1}}", json()),
        format!("{{\"protocolVersion\":\"1.0\",\"operations\":[{{\"type\":\"readFile\",\"path\":{0},{0}:{0}}}]}}", json()),
        format!("{{\"protocolVersion\":\"1.0\",\"events\":[{{\"type\":{0}}}]}}", json()),
        format!("{HOSTILE}{{"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{n}{HOSTILE}.json");
        base.write(&name, message);
        let lines: [&[&str]; 2] = [&["ops", "validate", &name], &["ops", "run", &name]];
        told.extend(show_nothing_raw(&base, "a message", &lines));
    }
    was_told(&told);
}

#[test]
fn git_and_the_inbox_show_nothing_raw() {
    let base = Project::new();
    base.write("workspace/.git/HEAD", format!("ref: refs/heads/{HOSTILE}\n"));
    base.write("workspace/.git/config", format!("[core]\n\tx = \"{HOSTILE}\n"));
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(base.at("workspace/.git").join(folder)).unwrap();
    }
    base.write(&format!("inbox/{HOSTILE}.txt"), [0xff]);
    base.write(&format!("inbox/{HOSTILE}.md"), HOSTILE);
    let lines: [&[&str]; 5] = [
        &["new", "--no-watch", "A task"],
        &["status", ID],
        &["doctor"],
        &["init", "workspace"],
        &["resume", "--no-watch"],
    ];
    show_nothing_raw(&base, "a branch, a file in the inbox", &lines);
}

#[test]
fn a_folder_with_such_a_name_shows_nothing_raw() {
    let base = Project::new();
    let folder = base.at(HOSTILE);
    std::fs::create_dir(&folder).unwrap();
    let mut told = Vec::new();
    for line in [
        &["init"][..],
        &["new", "--no-watch", "A task"],
        &["status", ID],
        &["status"],
        &["show"],
        &["doctor"],
        &["config", "path"],
        &["config", "show"],
        &["config", "allow"],
        &["rpc", "--socket", HOSTILE],
        &["generate", "systemd-unit"],
    ] {
        told.push(shows_nothing_raw(&format!("{line:?} in it"), || {
            let mut command = base.command(line);
            command.current_dir(&folder);
            command
        }));
    }
    was_told(&told);
}

#[test]
fn own_styles_come_through_and_only_they() {
    let base = Project::with_session();
    base.write("r.txt", format!("[CREATE_FILE path=\"f\"]\n{HOSTILE}\n[/CREATE_FILE]\n"));
    let run = base.run(&["check", "r.txt", "--color", "always"]).ok();
    assert!(run.stdout.contains("\u{1b}[32m+a␛[35mX␛]52;c;aGk=␇"), "{run:?}");
    assert_eq!(raw_in(&(run.stdout + &run.stderr)), [""; 0]);
}

#[test]
fn json_stays_the_same_value() {
    let base = Project::new();
    base.write("deaddrop.toml", format!("secrets_allow = [\"{}\"]\n", toml()));
    let told = base.run(&["config", "get", "secrets_allow", "--json"]).ok().stdout;
    assert_eq!(raw_in(&told), [""; 0]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["value"], serde_json::json!([HOSTILE]));
}
