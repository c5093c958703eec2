//! The unit for systemd, and what systemd is told.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::scene::put;
use crate::support::wrapper::with_environment;
use crate::support::{ID, PATIENCE, Project, Run, program, wait_until};

#[test]
fn a_unit_says_what_it_starts_and_how_to_install_it() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "");
    let text = base.run(&["generate", "systemd-unit"]).ok().stdout;
    let line = format!(
        "ExecStart=\"{}\" -C \"{}\" --color never watch\n",
        program().canonicalize().unwrap().display(),
        base.path().canonicalize().unwrap().display()
    );
    for told in
        [&line, "Type=notify\n", "systemctl --user enable --now deaddrop-", "=default.target\n"]
    {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    let json = base.json(&["generate", "systemd-unit"]);
    assert_eq!(json["text"].as_str(), Some(&*text));
    assert!(text.contains(json["unit"].as_str().unwrap()), "{json}");
    for (flag, line) in [("--copy", " watch --copy\n"), ("--clipboard", " watch --clipboard\n")] {
        let text = base.run(&["generate", "systemd-unit", flag]).ok().stdout;
        for told in [
            line,
            "\nWantedBy=graphical-session.target\n",
            "\nAfter=graphical-session.target\n",
            "\nPartOf=graphical-session.target\n",
        ] {
            assert!(text.contains(told), "{told:?} is not in {text}");
        }
    }
}

#[test]
fn a_unit_takes_no_settings_from_flags() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "");
    let run = base.run(&["generate", "systemd-unit", "--sandbox", "off"]).with_code(2);
    assert!(run.stdout.is_empty(), "{run:?}");
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
    let base = Project::new();
    // What systemd would read otherwise is refused.
    for folder in ["50%", "\"off\"", "\\x41", "$HOME"] {
        base.write(&format!("{folder}/deaddrop.toml"), "");
        let run = base.run(&["-C", folder, "generate", "systemd-unit"]).with_code(2);
        assert!(run.stdout.is_empty() && run.stderr.contains("systemd needs"), "{run:?}");
    }
    let folder = "My project; {X} é";
    base.write(&format!("{folder}/deaddrop.toml"), "");
    let odd = base.programs().join("a b; é/deaddrop");
    fs::create_dir(odd.parent().unwrap()).unwrap();
    put("program", program(), &odd);
    let arguments = ["-C", folder, "generate", "systemd-unit"];
    let mut command = Command::new(&odd);
    command.args(arguments).current_dir(base.path());
    with_environment(&mut command, &base.command(&arguments));
    let unit = base.at("deaddrop-odd.service");
    fs::write(&unit, Run::of(&mut command, "").ok().stdout).unwrap();
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
    // It would say so if the program's name came to another.
    let text = fs::read_to_string(&unit).unwrap();
    fs::write(&unit, text.replacen("\" -C", " -C", 1)).unwrap();
    let output = verify(&unit).unwrap();
    assert!(!output.stderr.is_empty(), "{output:?}");
}

#[test]
fn systemd_is_told_when_replies_are_taken() {
    let base = Project::with_session();
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
