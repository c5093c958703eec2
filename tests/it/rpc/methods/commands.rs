//! `exec` and `exec_code`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use deaddrop::protocol::jsonrpc::{ExecResult, Method, TRUNCATED};
use serde_json::json;

use super::{Scene, Setup};
use crate::scene::{marked, marker};
use crate::support::{PATIENCE, wait_until};

/// The scenes that there are here: without a sandbox, and in one.
fn scenes() -> impl Iterator<Item = Scene> {
    [Some(Setup::default()), Setup::confined()].into_iter().flatten().map(Setup::serve)
}

fn result(exit_code: i32, stdout: &str, stderr: &str) -> ExecResult {
    ExecResult { exit_code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}

#[track_caller]
fn assert_not_started(result: &ExecResult, why: &str) {
    assert_eq!((result.exit_code, &*result.stdout), (-1, ""), "{result:?}");
    assert!(result.stderr.contains(why), "no {why:?} in {result:?}");
}

#[test]
fn a_command_gives_its_exit_code_and_both_streams() {
    for scene in scenes() {
        let given = scene.call(Method::Exec { cmd: "true".to_owned() }).unwrap();
        assert_eq!(given, json!({ "exit_code": 0, "stdout": "", "stderr": "" }));
        assert_eq!(
            scene.exec("echo hello && echo ouch >&2; exit 3"),
            result(3, "hello\n", "ouch\n")
        );
        assert_eq!(scene.exec("pwd"), result(0, &format!("{}\n", scene.root()), ""));
        assert_eq!(scene.exec("nosuchtool 2>/dev/null").exit_code, 127);
        // Its input is empty, and ends at once.
        assert_eq!(scene.exec("cat; echo $?"), result(0, "0\n", ""));
        assert_eq!(scene.exec("exit 255").exit_code, 255);
        assert_eq!(scene.exec(""), result(0, "", ""));
        assert_eq!(scene.exec("echo made > file").exit_code, 0);
        assert_eq!(scene.read("file").unwrap(), "made\n");
    }
}

#[test]
fn a_signal_is_no_exit_code() {
    for scene in scenes() {
        let killed = scene.exec("echo begun; kill -9 $$");
        assert_eq!(killed, result(-1, "begun\n", "deaddrop: ended by signal 9\n"));
        let ended = scene.exec("printf said >&2; kill -TERM $$");
        assert_eq!(ended, result(-1, "", "said\ndeaddrop: ended by signal 15\n"));
    }
}

#[test]
fn at_the_deadline_all_of_it_ends() {
    for setup in [Some(Setup::default()), Setup::confined()].into_iter().flatten() {
        let scene = Setup { timeout: Duration::from_secs(3), ..setup }.serve();
        let n = marker();
        let begun = Instant::now();
        let late = scene.exec(&format!("echo begun; (setsid sleep {n} &); sleep {n}"));
        assert!(begun.elapsed() < PATIENCE);
        assert_eq!((late.exit_code, &*late.stdout), (124, "begun\n"), "{late:?}");
        assert!(late.stderr.starts_with("deaddrop: timed out after 3 s"), "{late:?}");
        assert_eq!(late.stderr.lines().count(), 1);
        assert_eq!(marked(&n), [""; 0]);
    }
}

#[test]
fn when_the_server_stops_its_commands_end() {
    for scene in scenes() {
        let n = marker();
        let ended = thread::scope(|scope| {
            let running =
                scope.spawn(|| scene.exec(&format!("echo begun; touch ready; sleep {n}")));
            wait_until("the command", || scene.base.exists("root/ready"));
            scene.stop.ask();
            running.join().unwrap()
        });
        assert_eq!((ended.exit_code, &*ended.stdout), (-1, "begun\n"));
        assert!(ended.stderr.starts_with("deaddrop: ended, since the server stops"), "{ended:?}");
        assert_eq!(marked(&n), [""; 0]);
    }
}

#[test]
fn a_stream_is_cut_after_a_megabyte_where_a_character_ends() {
    let scene = Scene::new();
    let x = "head -c 1000000 /dev/zero | tr '\\0' x";
    let whole = scene.exec(x);
    assert_eq!((whole.stdout.len(), whole.exit_code), (1_000_000, 0));
    assert!(whole.stdout.bytes().all(|b| b == b'x'));
    let more = scene.exec(&format!("{x}; echo; {x} >&2"));
    assert_eq!(more.stdout, format!("{}{TRUNCATED}", whole.stdout));
    assert_eq!(more.stderr, whole.stdout);
    let both = scene.exec(&format!("{x} >&2; echo y >&2; kill -9 $$"));
    let told = format!("{}{TRUNCATED}\ndeaddrop: ended by signal 9\n", whole.stdout);
    assert!(both.stderr == told);
    // Four bytes across the end, and bytes that are no text.
    let across = "head -c 999998 /dev/zero | tr '\\0' x; printf '\\360\\237\\230\\200'; echo tail";
    let across = scene.exec(across);
    assert_eq!(across.stdout, format!("{}{TRUNCATED}", "x".repeat(999_998)));
    let odd = scene.exec("head -c 1000000 /dev/zero | tr '\\0' '\\377'").stdout;
    let odd = odd.strip_suffix(TRUNCATED).unwrap();
    assert_eq!(odd.len(), 999_999);
    assert!(odd.chars().all(|c| c == '\u{fffd}'));
    assert_eq!(scene.exec("printf 'a\\377b'").stdout, "a\u{fffd}b");
    assert_eq!(TRUNCATED, "\n... [output truncated]");
}

#[test]
fn code_is_run_by_the_interpreter_of_its_language_to_the_letter() {
    for scene in scenes() {
        assert_eq!(
            scene.exec_code("sh", "echo \"it's\" '$HOME'\necho é"),
            result(0, "it's $HOME\né\n", "")
        );
        assert_eq!(scene.exec_code("SH", "exit 127"), result(127, "", ""));
        assert_eq!(scene.exec_code("sh", ""), result(0, "", ""));
        assert_eq!(scene.exec_code("sh", "-x"), scene.exec("sh -c -x"));
        for (languages, check, code) in [
            (&["bash", "Bash"][..], "bash -c true", "[[ \"it's\" == *s ]] && echo \"it's\""),
            (&["python", "Python3"], "python3 -c 0", "print(\"it's\")"),
            (&["node", "JavaScript", "js"], "node -e 0", "console.log(\"it's\")"),
        ] {
            if scene.exec(check).exit_code != 0 {
                eprintln!("SKIPPED: '{check}' fails here");
                continue;
            }
            for language in languages {
                assert_eq!(scene.exec_code(language, code), result(0, "it's\n", ""), "{language}");
            }
        }
    }
}

#[test]
fn a_language_that_is_not_known_is_named_as_it_was_sent() {
    let scene = Scene::new();
    for language in ["cobol", "COBOL", "", "python2"] {
        let told = format!("unsupported language: {language}");
        assert_eq!(scene.exec_code(language, "x"), result(-1, "", &told));
    }
}

#[test]
fn an_interpreter_that_is_not_there_is_no_exit_code_of_the_codes() {
    let nowhere = vec![("PATH".to_owned(), Some("/nowhere".to_owned()))];
    let scene = Setup { env: nowhere, ..Setup::default() }.serve();
    let missing = scene.exec_code("python", "print(1)");
    assert_not_started(&missing, "deaddrop: cannot start python3: there is no such program");
    // A file that cannot be run is none.
    let tools = scene.base.at("tools");
    fs::create_dir(&tools).unwrap();
    scene.base.write("tools/node", "#!/bin/sh\n");
    let path = vec![("PATH".to_owned(), Some(tools.to_str().unwrap().to_owned()))];
    let scene = Setup { env: path, ..Setup::default() }.serve();
    assert_not_started(&scene.exec_code("js", "1"), "cannot start node");

    // What the sandbox does not show is not there either.
    let Some(setup) = Setup::confined() else { return };
    let hidden = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = hidden.path().join("node");
    crate::support::file_writer::write_program(&program, "#!/bin/sh\necho hidden\n");
    let path = vec![("PATH".to_owned(), Some(hidden.path().to_str().unwrap().to_owned()))];
    let open = Setup { env: path.clone(), ..Setup::default() }.serve();
    assert_eq!(open.exec_code("js", "1"), result(0, "hidden\n", ""));
    let scene = Setup { env: path, ..setup }.serve();
    assert_not_started(&scene.exec_code("js", "1"), "cannot start node");
}

#[test]
fn what_cannot_be_started_is_told() {
    for scene in scenes() {
        // The longest argument of Linux, with the shell's own end.
        let fits = format!(": {}; echo ok", "x".repeat(100_000));
        assert_eq!(scene.exec(&fits), result(0, "ok\n", ""));
        let long = format!("echo {}", "x".repeat(200_000));
        assert_not_started(&scene.exec(&long), "the command is 200005 bytes long");
        assert_not_started(
            &scene.exec_code("sh", &long),
            "bytes long, more than this system takes",
        );
        assert_not_started(&scene.exec("echo a\0b"), "NUL");
        assert_not_started(&scene.exec_code("sh", "echo a\0b"), "NUL");
    }
    let scene = Setup { helper: "/nowhere/deaddrop".into(), ..Setup::default() }.serve();
    assert_not_started(&scene.exec("true"), "deaddrop: there is no sandbox on this machine");
}

#[test]
fn what_a_command_makes_under_a_protected_name_is_told_on_stderr() {
    let Some(setup) = Setup::confined() else { return };
    let scene = setup.serve();
    let made = scene.exec("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo done >&2");
    assert_eq!(made.exit_code, 0, "{made:?}");
    assert!(made.stderr.starts_with("done\ndeaddrop: a command made '.git'"), "{made:?}");
    assert!(made.stderr.ends_with('\n'));
    assert!(!scene.base.exists("root/.git"));
    let quarantine = scene.base.names("state/quarantine");
    assert_eq!(quarantine.len(), 1);
    assert_eq!(scene.base.names(&format!("state/quarantine/{}", quarantine[0])), ["1_.git"]);
    assert_eq!(scene.exec("ls -A"), result(0, "", ""));
}

#[test]
fn what_a_person_changes_between_commands_is_theirs() {
    let Some(setup) = Setup::confined() else { return };
    let scene = setup.serve();
    scene.base.write("root/.git/config", "[core]\n");
    scene.base.write("root/sub/x", "");
    assert_eq!(scene.exec("true"), result(0, "", ""));
    // A file that was there, one that is new beside it, and a repository in a folder that was there.
    scene.base.write("root/.git/config", "[core]\n\tbare = false\n");
    scene.base.write("root/.git/hooks/pre-commit", "theirs");
    scene.base.write("root/sub/.git/config", "[core]\n");
    assert_eq!(scene.exec("true"), result(0, "", ""));
    assert_eq!(scene.exec("true"), result(0, "", ""));
    for kept in [".git/hooks/pre-commit", "sub/.git/config"] {
        assert!(scene.base.exists(&format!("root/{kept}")), "{kept}");
    }
    // And a command changes none of it.
    scene.exec("rm -rf sub/.git; echo evil > .git/hooks/pre-commit");
    assert_eq!(scene.base.read("root/.git/hooks/pre-commit"), "theirs");
    assert_eq!(scene.base.read("root/sub/.git/config"), "[core]\n");
    // What one makes after one that made nothing is found.
    scene.exec("mkdir -p sub/new/.git/hooks");
    assert!(!scene.base.exists("root/sub/new/.git"));
}

#[test]
fn a_policy_judges_commands_and_nobody_is_asked() {
    let scene = Setup::with_policy("standard").serve();
    assert_eq!(scene.exec("echo ok"), result(0, "ok\n", ""));
    scene.base.write("root/x/y", "");
    let denied = scene.exec("sudo true");
    assert_not_started(&denied, "deaddrop: ");
    assert_not_started(&denied, "of the policy 'standard'");
    assert_not_started(&scene.exec_code("sh", "sudo true"), "standard");
    let scene = Setup::with_policy("permissive").serve();
    scene.base.write("root/x/y", "");
    assert_not_started(&scene.exec("rm -r x"), "nobody can be asked");
    assert!(scene.base.exists("root/x/y"));
    let mut setup = Setup::with_policy("workspace");
    setup.policy.as_mut().unwrap().shell.enabled = false;
    assert_not_started(&setup.serve().exec("true"), "shell.enabled");
}

#[test]
fn a_policys_deadline_and_network_hold() {
    let mut setup = Setup::with_policy("workspace");
    setup.policy.as_mut().unwrap().shell.timeout_seconds = Some(1);
    let late = setup.serve().exec("sleep 60");
    assert_eq!(late.exit_code, 124);
    assert!(late.stderr.starts_with("deaddrop: timed out after 1 s"), "{late:?}");
    let Some(setup) = Setup::confined() else { return };
    let sees = |network: Option<bool>| {
        let mut policy = Setup::with_policy("workspace").policy;
        policy.as_mut().unwrap().network = network;
        let scene = Setup { policy, ..Setup::confined().unwrap() }.serve();
        let told = scene.exec("readlink /proc/self/ns/net; echo ran").stdout;
        told.strip_suffix("ran\n").expect(&told).to_owned()
    };
    let outside = fs::read_link("/proc/self/ns/net").unwrap();
    let outside = format!("{}\n", outside.display());
    drop(setup);
    let closed = sees(Some(false));
    if closed.is_empty() {
        eprintln!("SKIPPED: commands see no namespaces here");
        return;
    }
    assert_ne!(closed, outside);
    assert_ne!(sees(None), outside);
    assert_eq!(sees(Some(true)), outside);
}
