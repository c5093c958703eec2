//! `exec` and `exec_code`.

use std::time::Instant;

use serde_json::json;

use super::super::client::{Server, rpc};
use super::{Talk, of_command, sandboxes};
use crate::scene::{marked, marker};
use crate::support::{PATIENCE, Project, Run};

const MEGABYTE: usize = 1_000_000;
const MARK: &str = "\n... [output truncated]";

fn answered(code: i64, stdout: &str, stderr: &str) -> (i64, String, String) {
    (code, stdout.to_owned(), stderr.to_owned())
}

#[test]
fn an_exit_code_is_the_commands_own_and_a_signal_is_minus_one() {
    for sandbox in sandboxes() {
        let mut talk = Talk::new(&["--sandbox", sandbox]);
        for code in [0, 1, 2, 77, 124, 126, 127, 128, 137, 254, 255] {
            let told = talk.exec(&format!("echo out; echo err >&2; exit {code}"));
            assert_eq!(told, answered(code, "out\n", "err\n"));
        }
        assert_eq!(talk.exec("nosuchtool 2>/dev/null"), answered(127, "", ""));
        for (signal, n) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2)] {
            let told = format!("said\ndeaddrop: ended by signal {n}\n");
            let killed = talk.exec(&format!("echo out; printf said >&2; kill -s {signal} $$"));
            assert_eq!(killed, answered(-1, "out\n", &told));
        }
        let code = json!({ "lang": "sh", "code": "kill -9 $$" });
        let killed = of_command(&talk.gives("exec_code", &code));
        assert_eq!(killed, answered(-1, "", "deaddrop: ended by signal 9\n"));
        assert_eq!(talk.exec("pwd"), answered(0, &format!("{}\n", talk.root()), ""));
    }
}

#[test]
fn at_the_deadline_the_whole_tree_ends_and_the_code_is_124() {
    for sandbox in sandboxes() {
        let mut talk = Talk::new(&["--sandbox", sandbox, "--command-timeout", "3"]);
        let n = marker();
        let begun = Instant::now();
        let late = talk.exec(&format!(
            "echo out; echo err >&2; setsid sleep {n} & (trap '' TERM; sleep {n}) & sleep {n}"
        ));
        assert_eq!((late.0, &*late.1), (124, "out\n"), "{late:?}");
        assert!(late.2.starts_with("err\ndeaddrop: timed out after 3 s"), "{late:?}");
        assert_eq!(late.2.lines().count(), 2, "{late:?}");
        assert!(begun.elapsed() < PATIENCE);
        assert_eq!(marked(&n), [""; 0]);
        let code = json!({ "lang": "sh", "code": format!("sleep {n}") });
        assert_eq!(of_command(&talk.gives("exec_code", &code)).0, 124);
        assert_eq!(talk.exec("echo next"), answered(0, "next\n", ""));
    }
}

#[test]
fn the_deadline_is_no_setting_of_the_base_directory() {
    let base = Project::new();
    base.write("deaddrop.toml", "command_timeout_seconds = 1\n");
    let mut talk = Talk::in_base(base, &[]);
    assert_eq!(talk.exec("sleep 1.5; echo done"), answered(0, "done\n", ""));
    drop(talk);
    let mut talk = Talk::new(&["--command-timeout", "1"]);
    assert_eq!(talk.exec("sleep 60").0, 124);
    let help = Project::new().run(&["rpc", "--help"]).ok().stdout;
    assert!(help.contains("Time limit of a command [default: 25]"), "{help}");
}

#[test]
fn standard_input_is_empty() {
    for sandbox in sandboxes() {
        let mut talk = Talk::new(&["--sandbox", sandbox]);
        assert_eq!(talk.exec("cat; echo $?"), answered(0, "0\n", ""));
        let code = json!({ "lang": "sh", "code": "read line; echo $?" });
        assert_eq!(talk.gives("exec_code", &code)["stdout"], "1\n");
        // What the client sends next is no input of a command.
        let lines = [
            super::super::client::request(5, "exec", &json!({ "cmd": "sleep 0.2; cat" })),
            super::super::client::ping(6),
        ];
        talk.client.send(lines.concat());
        assert_eq!(talk.client.answer()["result"]["stdout"], "");
        assert_eq!(talk.client.answer()["id"], 6);
    }
}

#[test]
fn each_stream_is_cut_after_a_megabyte_where_a_character_ends() {
    let mut talk = Talk::new(&[]);
    let x = "head -c 1000000 /dev/zero | tr '\\0' x";
    let (code, out, err) = talk.exec(&format!("{x}; {x} >&2; exit 3"));
    assert!(code == 3 && out.len() == MEGABYTE && err == out, "a megabyte is whole");
    let (code, out, err) = talk.exec(&format!("{x}; echo y; {x} >&2; echo y >&2; exit 4"));
    assert_eq!(code, 4);
    let cut = format!("{}{MARK}", "x".repeat(MEGABYTE));
    assert!(out == cut && err == cut, "{} {}", out.len(), err.len());
    for (before, shown) in [(999_999, 999_999), (999_998, 1_000_000), (999_997, 999_999)] {
        let text = format!("head -c {before} /dev/zero | tr '\\0' x; printf 'éé'");
        for to in ["", " >&2"] {
            let (_, out, err) = talk.exec(&format!("{{ {text}; }}{to}"));
            let cut = if to.is_empty() { out } else { err };
            let cut = cut.strip_suffix(MARK).unwrap();
            assert_eq!(cut.len(), shown, "{before}");
            let whole = cut.trim_start_matches('x');
            assert_eq!(whole, if shown > before { "é" } else { "" });
        }
    }
    let (_, out, _) = talk.exec("printf 'a\\377\\300b\\0c'");
    assert_eq!(out, "a\u{fffd}\u{fffd}b\0c");
    // However much comes.
    let (code, out, _) = talk.exec("head -c 200000000 /dev/zero | tr '\\0' x");
    assert!(code == 0 && out == cut);
    if let Some(peak) = talk.server.peak() {
        assert!(peak < 100 << 10, "{peak} KiB");
    }
}

#[test]
fn languages_are_known_in_any_case_and_others_are_named() {
    let mut talk = Talk::new(&[]);
    for (languages, program, code) in [
        (&["sh", "SH", "Sh"][..], "sh", "echo \"it's\" '$HOME'"),
        (&["bash", "BASH"], "bash", "[[ a == a ]] && echo \"it's\" '$HOME'"),
        (&["python", "Python", "PYTHON3", "python3"], "python3", "print(\"it's\", '$HOME')"),
        (&["node", "JavaScript", "JS", "js"], "node", "console.log(\"it's\", '$HOME')"),
    ] {
        if talk.exec(&format!("{program} --version >&2 || {program} -c :")).0 != 0 {
            eprintln!("SKIPPED: no {program} that commands can run");
            continue;
        }
        for lang in languages {
            let given = talk.gives("exec_code", &json!({ "lang": lang, "code": code }));
            assert_eq!(of_command(&given), answered(0, "it's $HOME\n", ""), "{lang}");
        }
    }
    for lang in ["cobol", "COBOL", "", "python2", "sh ", "ruby"] {
        let given = talk.gives("exec_code", &json!({ "lang": lang, "code": "echo x" }));
        let told = format!("unsupported language: {lang}");
        assert_eq!(of_command(&given), answered(-1, "", &told));
    }
}

#[test]
fn what_cannot_be_started_is_minus_one_with_the_reason() {
    for sandbox in sandboxes() {
        let base = Project::new();
        let mut command = rpc(&base, &["--sandbox", sandbox]);
        let (_server, mut client) = Server::piped(command.env("PATH", "/nowhere/at/all"));
        for (method, params, why) in [
            ("exec_code", json!({ "lang": "js", "code": "1" }), "cannot start node"),
            ("exec_code", json!({ "lang": "python", "code": "1" }), "cannot start python3"),
            ("exec_code", json!({ "lang": "sh", "code": "a\0b" }), "NUL"),
            ("exec", json!({ "cmd": "a\0b" }), "NUL"),
            ("exec", json!({ "cmd": ":".repeat(200_000) }), "the command is 200000 bytes long"),
        ] {
            let answer = super::checked(client.ask(1, method, &params));
            let (code, stdout, stderr) = of_command(&answer["result"]);
            assert_eq!((code, &*stdout), (-1, ""), "{answer}");
            assert!(stderr.starts_with("deaddrop: ") && stderr.contains(why), "{answer}");
            assert_eq!(stderr.lines().count(), 1);
        }
        client.pings(2);
    }
}

#[test]
fn a_policy_rules_only_where_the_command_line_names_it() {
    let settings = "policy = \"restrictive\"\n";
    let base = Project::new();
    base.write("deaddrop.toml", settings);
    let mut talk = Talk::in_base(base, &[]);
    assert_eq!(talk.exec("echo free"), answered(0, "free\n", ""));
    drop(talk);
    let base = Project::new();
    let mut command = rpc(&base, &[]);
    let line = super::super::client::request(1, "exec", &json!({ "cmd": "echo free" }));
    let run = Run::of(command.env("DEADDROP_POLICY", "restrictive"), line).ok();
    assert!(run.stdout.contains(r#""stdout":"free\n""#), "{run:?}");

    let mut talk = Talk::new(&["--policy", "restrictive"]);
    talk.client.pings(1);
    talk.base.write("workspace/file", "text");
    talk.base.write("workspace/.env", "SECRET=1");
    let denied = talk.exec("echo x > made");
    assert_eq!((denied.0, &*denied.1), (-1, ""));
    assert!(denied.2.contains("of the policy 'restrictive'"), "{denied:?}");
    let code = json!({ "lang": "sh", "code": "echo x > made" });
    assert_eq!(of_command(&talk.gives("exec_code", &code)).0, -1);
    let told = talk.fails("write_file", &json!({ "path": "file", "content": "x" }));
    super::assert_told(&told, -32603, &["'file'", "restrictive"]);
    let told = talk.fails("read_file", &json!({ "path": ".env" }));
    super::assert_told(&told, -32603, &["'.env'", "restrictive"]);
    assert_eq!(talk.gives("read_file", &json!({ "path": "file" }))["content"], "text");
    assert_eq!(talk.base.names("workspace"), [".env", "file"]);
    assert_eq!(talk.base.read("workspace/file"), "text");
}

#[test]
fn what_a_policy_would_ask_about_is_refused() {
    let mut talk = Talk::new(&["--policy", "permissive"]);
    talk.client.pings(1);
    talk.base.write("workspace/x/y", "");
    assert_eq!(talk.exec("echo ok"), answered(0, "ok\n", ""));
    for (command, why) in [("rm -r x", "nobody can be asked"), ("sudo true", "denied")] {
        let told = talk.exec(command);
        assert_eq!((told.0, &*told.1), (-1, ""));
        assert!(told.2.starts_with("deaddrop: ") && told.2.contains(why), "{told:?}");
        assert!(told.2.contains("'permissive'"), "{told:?}");
    }
    assert!(talk.base.exists("workspace/x/y"));
    drop(talk);
    let mut talk = Talk::new(&["--policy", "standard"]);
    for command in ["curl example.org", "rm -r x", "unheard-of"] {
        let told = talk.exec(command);
        assert_eq!((told.0, &*told.1), (-1, ""), "{command}");
        assert!(told.2.contains("'standard'"), "{command}: {told:?}");
    }
}
