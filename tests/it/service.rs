//! `daemon`: the unit that is written, what systemd is asked to do, and what it is told.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::scene::put;
use crate::support::wrapped::with_environment;
use crate::support::{Base, ID, PATIENCE, Run, program, wait_until};

/// Programs in the place of systemd's, which note what they are asked for.
fn systemd(base: &Base, systemctl: &str) {
    for (name, script) in [("systemctl", systemctl), ("journalctl", "echo a line of the log")] {
        let notes = base.at("notes");
        let script = format!("echo \"{name} $*\" >> '{}'\n{script}", notes.display());
        base.installs(name, &script);
    }
}

fn run(base: &Base, arguments: &[&str]) -> Run {
    let mut command = base.command(arguments);
    let path = format!("{}:/usr/bin:/bin", base.programs().display());
    Run::of(command.env("PATH", path), "")
}

/// The same where nothing is installed but what is in the place of systemd's programs.
fn run_without(base: &Base, arguments: &[&str]) -> Run {
    Run::of(base.command(arguments).env("PATH", base.programs()), "")
}

/// What systemd was asked for since this was asked last, without the unit's name.
fn asked(base: &Base, unit: &str) -> Vec<String> {
    let notes = fs::read_to_string(base.at("notes")).unwrap_or_default();
    let _ = fs::remove_file(base.at("notes"));
    notes.lines().map(|line| line.replace(unit, "UNIT")).collect()
}

#[test]
fn a_service_is_installed_asked_and_removed() {
    let base = Base::with_session();
    base.write("deaddrop.toml", "");
    systemd(
        &base,
        "case \"$*\" in *show*) printf 'ActiveState=active\\nSubState=running\\nMainPID=77\\nUnitFileState=enabled\\n';; esac",
    );
    let install = run(&base, &["daemon", "install"]).ok();
    let unit = install.stdout.trim().rsplit('/').next().unwrap().to_owned();
    let path = base.at(".no-config/systemd/user").join(&unit);
    assert!(install.stdout.trim().ends_with(path.to_str().unwrap()), "{install:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(install.stderr.contains(text.trim_end()), "what is written is printed: {install:?}");
    let base_directory = base.path().canonicalize().unwrap();
    let line = format!(
        "ExecStart=\"{}\" -C \"{}\" --color never watch\n",
        program().canonicalize().unwrap().display(),
        base_directory.display()
    );
    assert!(text.contains(&line) && text.contains("Type=notify\n"), "{text}");
    let enable =
        ["systemctl --user --no-pager daemon-reload", "systemctl --user --no-pager enable UNIT"];
    assert_eq!(asked(&base, &unit), enable);
    // Done again it is the same.
    run(&base, &["daemon", "install", "--start"]).ok();
    assert_eq!(asked(&base, &unit)[1], "systemctl --user --no-pager enable --now UNIT");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    run(&base, &["daemon", "start"]).ok();
    run(&base, &["daemon", "stop"]).ok();
    assert_eq!(
        asked(&base, &unit),
        ["systemctl --user --no-pager start UNIT", "systemctl --user --no-pager stop UNIT"]
    );
    let status = run(&base, &["daemon", "status"]).ok();
    assert_eq!(
        status.stdout,
        format!("{unit}: active (running), process 77, starts when you log in\n")
    );
    let status: Value =
        serde_json::from_str(&run(&base, &["daemon", "status", "--json"]).ok().stdout).unwrap();
    assert_eq!((&status["state"], &status["process"]), (&"active".into(), &77.into()));
    asked(&base, &unit);
    let logs = run(&base, &["daemon", "logs", "-n", "7", "--follow"]).ok();
    assert_eq!(logs.stdout, "a line of the log\n");
    assert_eq!(
        asked(&base, &unit),
        [
            "journalctl --user --no-pager --quiet --output=cat --lines 1 --unit UNIT",
            "journalctl --user --no-pager --quiet --output=cat --lines 7 --unit UNIT --follow"
        ]
    );
    let logs = run(&base, &["daemon", "logs"]).ok();
    assert_eq!(logs.stdout, "a line of the log\n");
    asked(&base, &unit);

    run(&base, &["daemon", "uninstall"]).ok();
    assert_eq!(
        asked(&base, &unit),
        [
            "systemctl --user --no-pager disable --now UNIT",
            "systemctl --user --no-pager daemon-reload"
        ]
    );
    assert!(!path.exists());
    run(&base, &["daemon", "uninstall"]).ok();
    let status = run(&base, &["daemon", "status"]).with_code(1);
    assert!(status.stdout.contains("not installed"), "{status:?}");
    for command in ["start", "stop", "logs"] {
        let told = run(&base, &["daemon", command]).with_code(2);
        assert!(told.stderr.contains("`deaddrop daemon install` writes it"), "{told:?}");
    }
    assert_eq!(asked(&base, &unit), [] as [&str; 0]);
}

#[test]
fn what_keeps_a_service_from_being_had_is_told() {
    let base = Base::with_session();
    base.write("deaddrop.toml", "");
    systemd(&base, "echo 'Failed to connect to bus: No medium found' >&2; exit 1");
    let told = run(&base, &["daemon", "install"]).with_code(1);
    assert!(told.stderr.contains("loginctl enable-linger"), "{told:?}");
    assert!(told.stderr.contains("; no unit is left") && told.stdout.is_empty(), "{told:?}");
    assert!(!base.exists(".no-config"), "nothing is left behind");
    systemd(&base, "");
    let unit = run(&base, &["daemon", "install"]).ok().stdout.trim().to_owned();
    let text = fs::read_to_string(&unit).unwrap();
    let name = Path::new(&unit).file_name().unwrap();
    let wants = Path::new(&unit).with_file_name("default.target.wants");
    fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink(&unit, wants.join(name)).unwrap();

    systemd(&base, "echo 'Failed to connect to bus: No medium found' >&2; exit 1");
    let told = run(&base, &["daemon", "install", "--clipboard"]).with_code(1);
    assert!(told.stderr.contains("; the unit is as it was"), "{told:?}");
    assert_eq!(fs::read_to_string(&unit).unwrap(), text);
    run(&base, &["daemon", "status"]).with_code(1);
    let told = run(&base, &["daemon", "uninstall"]).ok();
    assert!(
        told.stderr.contains(
            "is removed, and starts no more. It was not stopped: no systemd of your own answers"
        ),
        "{told:?}"
    );
    assert!(!Path::new(&unit).exists() && !wants.join(name).is_symlink());

    systemd(&base, "");
    run(&base, &["daemon", "install"]).ok();
    systemd(&base, "echo 'Job for it failed.' >&2; exit 1");
    let told = run(&base, &["daemon", "start"]).with_code(1);
    assert!(told.stderr.contains("Job for it failed.; `deaddrop daemon logs` shows"), "{told:?}");
    fs::write(&unit, "[Unit]\n# mine\n").unwrap();
    let told = run(&base, &["daemon", "install"]).with_code(2);
    assert!(told.stderr.contains(&unit), "{told:?}");
    assert!(told.stderr.contains("is none that deaddrop wrote"), "{told:?}");
    assert_eq!(fs::read_to_string(&unit).unwrap(), "[Unit]\n# mine\n");
    let told = run(&base, &["daemon", "install", "--sandbox", "off"]).with_code(2);
    assert!(told.stderr.contains("flags have no say"), "{told:?}");

    fs::remove_file(base.programs().join("systemctl")).unwrap();
    base.sh("rm -r .no-config");
    let told = run_without(&base, &["daemon", "install"]).with_code(1);
    assert!(told.stderr.contains("systemctl is not on this machine"), "{told:?}");
}

#[test]
fn where_there_is_no_log_the_cause_is_said_and_what_to_read_instead() {
    let base = Base::with_session();
    base.write("deaddrop.toml", "");
    systemd(&base, "");
    run(&base, &["daemon", "install"]).ok();
    let told = |systemctl: &str, journalctl: &str, arguments: &[&str]| {
        systemd(&base, systemctl);
        base.installs("journalctl", journalctl);
        let told = run(&base, &[&["daemon", "logs"], arguments].concat()).with_code(1);
        assert!(told.stdout.is_empty(), "{told:?}");
        for part in ["there is no log to show: ", "sessions (`deaddrop log`)", "`deaddrop doctor`"]
        {
            assert!(told.stderr.contains(part), "{part:?} is not in {told:?}");
        }
        told.stderr
    };
    // As both say it where nobody is logged in: the one in words, the other with nothing.
    let away = "echo 'Failed to connect to bus: No medium found' >&2; exit 1";
    for arguments in [&[][..], &["--follow"]] {
        assert!(told(away, "exit 0", arguments).contains("loginctl enable-linger"));
    }
    let fails = "echo 'No journal files were found.' >&2; exit 1";
    let failed = told("", fails, &[]);
    assert!(failed.contains("journalctl has failed (exit status: 1)"), "{failed}");
    assert!(failed.contains("(journalctl: No journal files were found.)"), "{failed}");
    assert!(told("", "exit 0", &[]).contains("it has not run"));
    // Who follows a service that has yet to say something waits for it.
    base.installs("journalctl", "case \"$*\" in *follow) echo the first;; esac");
    let logs = run(&base, &["daemon", "logs", "--follow"]).ok();
    assert!(
        logs.stdout == "the first\n" && logs.stderr.contains("has said nothing yet"),
        "{logs:?}"
    );
    for name in ["journalctl", "systemctl"] {
        fs::remove_file(base.programs().join(name)).unwrap();
    }
    let told = run_without(&base, &["daemon", "logs"]).with_code(1);
    assert!(told.stderr.contains("journalctl is not on this machine"), "{told:?}");
}

#[test]
fn a_service_with_the_clipboard_starts_with_the_desktop() {
    let base = Base::with_session();
    base.write("deaddrop.toml", "");
    systemd(
        &base,
        "case \"$*\" in *show*) printf 'ActiveState=inactive\\nUnitFileState=enabled\\n';; esac",
    );
    let unit = run(&base, &["daemon", "install"]).ok().stdout.trim().to_owned();
    let name = Path::new(&unit).file_name().unwrap();
    // As `systemctl enable` would leave it.
    let wants = Path::new(&unit).with_file_name("default.target.wants");
    fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink(&unit, wants.join(name)).unwrap();
    for (flag, line) in [("--copy", " watch --copy\n"), ("--clipboard", " watch --clipboard\n")] {
        let install = run(&base, &["daemon", "install", flag]).ok();
        assert!(install.stderr.contains("starts with your desktop"), "{install:?}");
        let text = fs::read_to_string(&unit).unwrap();
        for told in [
            line,
            "\nWantedBy=graphical-session.target\n",
            "\nAfter=graphical-session.target\n",
            "\nPartOf=graphical-session.target\n",
        ] {
            assert!(text.contains(told), "{told:?} is not in {text}");
        }
        assert!(!wants.join(name).is_symlink(), "it no longer starts without a desktop");
    }
    let status = run(&base, &["daemon", "status"]).with_code(1);
    assert!(status.stdout.contains("starts with your desktop"), "{status:?}");
    // The flags are those of the last time.
    run(&base, &["daemon", "install"]).ok();
    assert!(fs::read_to_string(&unit).unwrap().contains(" watch\n"));
}

#[test]
fn systemd_reads_the_unit_as_it_is_meant() {
    let verify = |unit: &Path| {
        Command::new("systemd-analyze")
            .args(["--user", "--man=no", "verify"])
            .arg(unit)
            .env("XDG_RUNTIME_DIR", unit.parent().unwrap())
            .output()
    };
    let base = Base::new();
    // Whatever a folder's name may hold.
    let folder = "50% \"off\" \\x41 %h $HOME ${X} ; é";
    base.write(&format!("{folder}/deaddrop.toml"), "");
    systemd(&base, "");
    let odd = base.programs().join("50% %h $HOME ${X} ; é/deaddrop");
    fs::create_dir(odd.parent().unwrap()).unwrap();
    put("program", program(), &odd);
    let install = |program: &Path| {
        let arguments = ["-C", folder, "daemon", "install"];
        let command = base.command(&arguments);
        let mut odd = Command::new(program);
        odd.args(arguments).current_dir(base.path());
        with_environment(&mut odd, &command);
        let path = format!("{}:/usr/bin:/bin", base.programs().display());
        let run = Run::of(odd.env("PATH", path), "").ok();
        base.at(run.stdout.trim())
    };
    let unit = install(&odd);
    match verify(&unit) {
        Err(e) => {
            eprintln!("SKIPPED: reading the unit, since systemd-analyze is not there ({e})");
            return;
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && !said.contains("deaddrop-"), "{said}");
        }
    }
    // It would say so if the program's name came to another, or a quote ended early.
    let text = fs::read_to_string(&unit).unwrap();
    for (right, wrong) in [("\"off\\\"", "\"off\""), ("/50%% %%h", "/50%% %h"), ("\" -C", " -C")] {
        assert!(text.contains(right), "{right}: {text}");
        fs::write(&unit, text.replacen(right, wrong, 1)).unwrap();
        let output = verify(&unit).unwrap();
        assert!(!output.stderr.is_empty(), "{right} as {wrong}: {output:?}");
    }
}

#[test]
fn systemd_is_told_when_replies_are_taken() {
    let base = Base::with_session();
    let socket = base.at("notify");
    let told = UnixDatagram::bind(&socket).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = base.command(&["watch"]);
    let mut child = command
        .env("NOTIFY_SOCKET", &socket)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let hear = || {
        let mut text = [0; 100];
        let length = told.recv(&mut text).unwrap();
        String::from_utf8(text[..length].to_vec()).unwrap()
    };
    assert_eq!(hear().trim(), "READY=1");
    // From then on a reply is carried out.
    base.write("inbox/reply.txt", "[RUN_COMMAND]\necho \"$NOTIFY_SOCKET.\"\n[/RUN_COMMAND]\n");
    let outbox = base.wait_for_outbox(2);
    assert!(outbox.contains("  Output: .\n"), "{outbox}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    assert_eq!(hear().trim(), "STOPPING=1");
    wait_until("the end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130), "the unit takes this for an orderly end");
    told.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(told.recv(&mut [0; 10]).is_err(), "nothing else is said");
    base.run(&["status", ID]).ok();
}
