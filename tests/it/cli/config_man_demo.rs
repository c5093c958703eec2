//! What a person needs beside the loop: settings from the command line, the manual, completions, an
//! outbox in an editor, what the doctor says, and the demonstration.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::support::{ID, Project, Run, has_full_sandbox, has_git, wait_until};
use crate::tmux::Tmux;

fn lines(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_setting_is_shown_with_where_it_was_made() {
    let base = Project::new();
    base.write(
        ".no-config/deaddrop/config.toml",
        "\nmax_output_length = 5000\nmax_tokens = 6000\n",
    );
    base.write(
        "deaddrop.toml",
        "max_tokens = 7000\n\n[guest]\nsocket = \"vm.sock\"\n[policies.mine]\npreset = \"standard\"\n",
    );
    let mut command = base.command(&["config", "show", "--json"]);
    command.env("DEADDROP_SANDBOX_ENV", "A,B=1").env("DEADDROP_SANDBOX", "off");
    let told = lines(&Run::of(&mut command, "").ok());
    let one = |name: &str| told.iter().find(|line| line["name"] == name).expect(name);
    let file = base.path().canonicalize().unwrap().join("deaddrop.toml");
    let file = file.to_str().unwrap();
    let own = base.at(".no-config/deaddrop/config.toml");
    for (name, value, source, origin) in [
        ("max_tokens", Value::from(7000), "file", format!("{file}:1")),
        ("max_output_length", 5000.into(), "own file", format!("{}:2", own.display())),
        (
            "sandbox",
            "off".into(),
            "environment",
            "environment variable DEADDROP_SANDBOX".to_owned(),
        ),
        (
            "sandbox.env",
            vec!["A", "B=1"].into(),
            "environment",
            "environment variable DEADDROP_SANDBOX_ENV".to_owned(),
        ),
        ("first_contents", true.into(), "default", "default settings".to_owned()),
        ("guest.port", 52.into(), "default", "default settings".to_owned()),
        ("policies.mine.preset", "standard".into(), "file", format!("{file}:6")),
    ] {
        let found = one(name);
        assert_eq!(
            (&found["value"], &found["source"], &found["origin"]),
            (&value, &source.into(), &origin.into()),
            "{name}"
        );
    }
    assert!(told[0]["about"].as_str().unwrap().contains("replies may read"), "{}", told[0]);
    // Each that a settings file can have is there, as settings.md lists them.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let page = fs::read_to_string(page).unwrap();
    let (listed, _) = page.split_once("## Tables").unwrap();
    let listed: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    assert!(listed.len() > 20);
    for name in listed {
        assert!(!one(name)["about"].as_str().unwrap().is_empty(), "{name}");
    }

    let changed = base.run(&["config", "show", "--changed"]).ok().stdout;
    assert!(changed.starts_with("max_output_length    = 5000  ("), "{changed}");
    assert!(!changed.contains("default"), "{changed}");
    let run = base.run(&["config", "show", "-v"]).ok().stdout;
    assert!(run.contains(one("max_tokens")["about"].as_str().unwrap()), "{run}");
    assert!(run.contains("the longest outbox, in tokens"), "{run}");
}

#[test]
fn a_setting_is_read_set_and_removed() {
    let base = Project::new();
    base.write("deaddrop.toml", "# Mine.\nmax_tokens = 7000 # small\n");
    let get = |key: &str| base.run(&["config", "get", key]).ok().stdout;
    assert_eq!(get("max_tokens"), "7000\n");
    base.run(&["config", "set", "max_tokens", "8000"]).ok();
    assert_eq!(base.read("deaddrop.toml"), "# Mine.\nmax_tokens = 8000 # small\n");
    base.run(&["config", "set", "sandbox.readable", "/srv/a b", "~/x"]).ok();
    assert_eq!(get("sandbox.readable"), "/srv/a b\n~/x\n");
    let run = base.run(&["config", "set", "max_tokns", "1"]).with_code(2);
    assert!(run.stderr.contains("did you mean 'max_tokens'?"), "{run:?}");
    let before = base.read("deaddrop.toml");
    let run = base.fails(&["config", "set", "max_tokens", "1"], "invalid-setting").with_code(2);
    assert!(run.message().ends_with("; nothing was written"), "{run:?}");
    assert_eq!(base.read("deaddrop.toml"), before);
    base.run(&["config", "unset", "max_tokens"]).ok();
    assert_eq!(
        base.read("deaddrop.toml"),
        "# Mine.\n\n[sandbox]\nreadable = [\"/srv/a b\", \"~/x\"]\n"
    );
    assert_eq!(get("max_tokens"), "24000\n");
    base.run(&["config", "get", "guest.command"]).with_code(1);
    base.run(&["config", "get", "guest.rot.x"]).with_code(2);
    let run = base.run(&["config", "unset", "policy"]).ok();
    assert!(run.stderr.contains("is not set there"), "{run:?}");
    let both = ["config", "set", "max_tokens", "9000", "--sandbox", "off"];
    base.run(&both).with_code(2);

    // The person's own file, and what goes over another.
    base.run(&["config", "set", "--own", "policy", "standard"]).ok();
    assert_eq!(base.read(".no-config/deaddrop/config.toml"), "policy = \"standard\"\n");
    let run = base.run(&["config", "path", "--own"]).ok();
    assert!(run.stdout.ends_with(".no-config/deaddrop/config.toml\n"), "{run:?}");
    base.run(&["config", "set", "secrets", "warn"]).ok();

    // What is not in order can be put right, and is shown by nothing else.
    base.write("deaddrop.toml", "# Mine.\nmax_tokens = \nfirst_contents = true\n");
    for arguments in [&["config", "set", "policy", "standard"][..], &["status", ID]] {
        let told = base.fails(arguments, "invalid-setting").with_code(2).message();
        let named = "deaddrop.toml:2: max_tokens has no value; write one after the =";
        assert!(told.contains(named), "{told}");
    }
    base.write("deaddrop.toml", "max_tokens = 1\n");
    base.run(&["config", "show"]).with_code(2);
    base.run(&["config", "path"]).ok();
    base.run(&["config", "set", "max_tokens", "5000"]).ok();
    base.run(&["status"]).ok();
}

#[test]
fn the_manual_and_completions_need_no_base_directory() {
    let base = Project::new();
    base.write("deaddrop.toml", "this is no TOML");
    let page = base.run(&["generate", "man"]).ok().stdout;
    assert!(page.contains(".TH deaddrop 1") && page.contains("doctor"), "{page}");
    let page = base.run(&["generate", "man", "config", "set"]).ok().stdout;
    for part in [".TH deaddrop-config-set 1", "Examples:", "sandbox.network true"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let run = base.fails(&["generate", "man", "confg"], "usage").with_code(2);
    assert!(run.message().contains("there is no command 'confg'"), "{run:?}");
    base.run(&["generate", "man", "--dir", "pages"]).ok();
    for name in ["deaddrop.1", "deaddrop-new.1", "deaddrop-config-set.1", "deaddrop-generate-man.1"]
    {
        assert!(base.exists(&format!("pages/{name}")), "{name}: {:?}", base.names("pages"));
    }
    // Small images have a `man` that only says that there is none.
    let mut man = Command::new("man");
    let version = man.arg("--version").env("LC_ALL", "C.UTF-8").output();
    let is_man_db =
        version.as_ref().is_ok_and(|o| o.status.success() && o.stdout.starts_with(b"man "));
    if is_man_db {
        let mut man = Command::new("man");
        man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8"]).env("LC_ALL", "C.UTF-8");
        let output = man.arg(base.at("pages/deaddrop-new.1")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("TASK"));
    } else {
        eprintln!("SKIPPED: reading a page of the manual, which needs man-db: {version:?}");
    }

    let as_json = |arguments: &[&str], plain: &[&str], name: &str, text: &str| {
        let told = base.run(arguments).ok().stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told[text].as_str(), Some(&*base.run(plain).ok().stdout));
        told[name].as_str().unwrap().to_owned()
    };
    let page = as_json(
        &["generate", "man", "config", "set", "--json"],
        &["generate", "man", "config", "set"],
        "page",
        "roff",
    );
    assert_eq!(page, "deaddrop-config-set");
    let shell = as_json(
        &["generate", "completions", "zsh", "--json"],
        &["generate", "completions", "zsh"],
        "shell",
        "script",
    );
    assert_eq!(shell, "zsh");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = base.run(&["generate", "completions", shell]).ok().stdout;
        assert!(script.contains("_DEADDROP_COMPLETE"), "{shell}");
    }
    base.run(&["generate", "completions", "cmd"]).with_code(2);
}

#[test]
fn an_outbox_is_opened_by_the_desktop_or_in_an_editor() {
    let base = Project::with_session();
    let opened = base.at("opened");
    base.installs("xdg-open", &format!("echo \"desktop $1\" >> '{}'", opened.display()));
    base.installs("my-editor", "echo \"editor $1 $2\" >> opened");
    let outbox = format!("outbox/{ID}_seq0001.txt");
    let run = |arguments: &[&str]| {
        Run::of(
            base.command(arguments)
                .env("PATH", base.path_with_programs())
                .env("EDITOR", "my-editor --wait"),
            "",
        )
    };
    // Without a terminal an editor is of no use.
    let opened = run(&["show", "--open"]).ok();
    assert_eq!(opened.stdout, format!("{outbox}\n"));
    assert!(opened.stderr.contains(&format!("Opening {outbox} with xdg-open")), "{opened:?}");
    let full = base.path().canonicalize().unwrap();
    assert_eq!(base.read("opened"), format!("desktop {}\n", full.join(&outbox).display()));
    run(&["show", "--session", "00ff00ff", "--open"]).with_code(5);

    base.installs("xdg-open", "exit 3");
    let failed = run(&["show", "--session", ID, "--open"]).with_code(1);
    assert!(
        failed.stderr.contains("xdg-open could not open") && failed.stderr.contains("set EDITOR"),
        "{failed:?}"
    );
    base.sh(&format!("rm {outbox}"));
    run(&["show", "--open"]).with_code(1);
}

#[test]
fn a_task_is_written_in_the_editor() {
    let base = Project::new();
    let run = base.run(&["new", "--no-watch"]).with_code(2);
    assert!(run.stderr.contains("your $EDITOR opens if it is set"), "{run:?}");
    assert!(base.names(".").is_empty());
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    base.installs(
        "writes",
        "cp \"$1\" before; { echo '# Sort'; echo 'the imports'; cat before; } > \"$1\"",
    );
    base.installs("writes-nothing", "exit 0");
    let bin = base.programs().display();
    for (editor, code) in [("writes", "0"), ("writes-nothing", "2"), ("false", "1")] {
        tmux.types(&format!(
            "PATH=\"{bin}:$PATH\" EDITOR={editor} deaddrop new --no-watch; echo $? > ended-{editor}"
        ));
        let ended = format!("ended-{editor}");
        wait_until("the end of the editor", || {
            fs::read_to_string(base.at(&ended)).is_ok_and(|text| text.ends_with('\n'))
        });
        assert_eq!(base.read(&ended).trim(), code, "{editor}");
    }
    let sessions = base.run(&["status", "--json"]).ok().json_lines();
    assert_eq!((sessions.len(), &sessions[0]["task"]), (1, &"# Sort\nthe imports".into()));

    // A task is not lost if its session cannot begin.
    tmux.types(&format!(
        "PATH=\"{bin}:$PATH\" EDITOR=writes deaddrop new --include none.rs --no-watch 2> refused; echo $? > ended"
    ));
    wait_until("the refusal", || {
        fs::read_to_string(base.at("ended")).is_ok_and(|text| text.ends_with('\n'))
    });
    let refused = base.read("refused");
    let kept = refused.split("--task-file ").nth(1).unwrap_or_else(|| panic!("{refused}"));
    let kept = kept.split('`').next().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "# Sort\nthe imports");
    fs::remove_file(kept).unwrap();
}

#[test]
fn at_a_terminal_it_is_the_editor() {
    let base = Project::with_session();
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    base.installs("my-editor", "echo \"editor $1 $2\" > opened");
    let bin = base.programs().display();
    tmux.types(&format!(
        "PATH=\"{bin}:$PATH\" EDITOR='my-editor --wait' deaddrop show --open; echo $? > ended"
    ));
    wait_until("the end of the editor", || {
        fs::read_to_string(base.at("ended")).is_ok_and(|text| text.ends_with('\n'))
    });
    assert_eq!(base.read("ended"), "0\n");
    let outbox = base.path().canonicalize().unwrap().join(format!("outbox/{ID}_seq0001.txt"));
    assert_eq!(base.read("opened"), format!("editor --wait {}\n", outbox.display()));
}

#[test]
fn the_doctor_looks_at_all_of_it() {
    let base = Project::new();
    if !has_git() {
        return;
    }
    base.sh("git init -q .");
    base.run(&["init"]).ok();
    let finding = |what: &str| {
        let told = lines(&base.run(&["doctor", "--json"]));
        told.into_iter().find(|line| line["what"] == what).unwrap_or_else(|| panic!("{what}"))
    };
    for what in [
        "project folder",
        "workspace",
        "inbox",
        "outbox",
        "sessions",
        "approvals",
        "commands",
        "clipboard",
        "git",
        "watching",
        "disk",
        "memory",
    ] {
        assert!(!finding(what)["told"].as_str().unwrap().is_empty(), "{what}");
    }
    let git = finding("git");
    assert_eq!(git["well"], true, "{git}");
    assert!(git["told"].as_str().unwrap().ends_with("the workspace is a repository"), "{git}");
    let watching = finding("watching");
    assert_eq!(watching["well"], true);
    assert!(watching["told"].as_str().unwrap().contains("watches"), "{watching}");
    base.sh("rm .deaddrop/.gitignore; chmod 0757 .deaddrop/inbox");
    let git = finding("git");
    assert!(git["well"] == false && git["told"].as_str().unwrap().contains("echo '*' > "), "{git}");
    let inbox = finding("inbox");
    assert!(
        inbox["well"] == false && inbox["told"].as_str().unwrap().contains("chmod o-w"),
        "{inbox}"
    );
    base.run(&["doctor"]).with_code(1);
    // What it says to do helps.
    base.run(&["init"]).ok();
    base.sh("chmod o-w .deaddrop/inbox");
    assert!(finding("git")["well"] == true && finding("inbox")["well"] == true);

    let mut command = base.command(&["doctor", "--json"]);
    command.env("DISPLAY", ":7").env_remove("WAYLAND_DISPLAY").env("SSH_TTY", "/dev/pts/1");
    let told = lines(&Run::of(&mut command, ""));
    let of = |told: &[Value], what: &str| -> String {
        let found = told.iter().find(|line| line["what"] == what);
        found.unwrap_or_else(|| panic!("{what}: {told:#?}"))["told"].as_str().unwrap().to_owned()
    };
    let clipboard = of(&told, "clipboard");
    assert!(clipboard.starts_with("the desktop's clipboard, over X11"), "{clipboard}");
    // What `copy` says of the same surroundings, in its words.
    let mut command = base.command(&["doctor", "--json"]);
    for name in ["DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    let told = lines(&Run::of(&mut command, ""));
    for (what, why) in [
        ("clipboard", "there is no display here"),
        ("  terminal", "this does not run at a terminal"),
    ] {
        assert!(of(&told, what).starts_with(why), "{told:#?}");
    }
    let empty = Project::new();
    let told = lines(&empty.run(&["doctor", "--json"]));
    assert!(
        told[0]["what"] == "project" && told[0]["told"].as_str().unwrap().contains("deaddrop init")
    );
}

#[test]
fn the_demonstration_plays_a_session_and_leaves_nothing() {
    let base = Project::new();
    base.sh("mkdir tmp");
    let begun = Instant::now();
    let run = |arguments: &[&str]| {
        let mut command = base.command(arguments);
        // What the person has set is not to change it.
        Run::of(command.env("TMPDIR", base.at("tmp")).env("DEADDROP_MAX_TOKENS", "wrong"), "")
    };
    let told = run(&["demo"]).ok().stdout;
    eprintln!("the demonstration took {:?}", begun.elapsed());
    for part in [
        "1. A project",
        "$ deaddrop new --no-watch \"Write a script that greets people\"",
        "  │ [CREATE_FILE path=\"greet.sh\"]",
        "Created 'greet.sh'",
        "REJECTED: ",
        "  │ -echo \"Hello, $1.\"\n",
        "$ deaddrop undo\n\n  │ Turn 2 undone in session ",
        "$ deaddrop redo\n\n  │ Turn 2 put back in session ",
        "$ deaddrop approve",
        "Created '.envrc'",
        "is complete.",
        "  │ +echo \"Hello, ${1:-world}.\"",
        "Its files are removed.",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    if has_full_sandbox() {
        assert!(told.contains("  │           Hello, Ada.\n"), "{told}");
    }
    assert_eq!(base.names("tmp"), [] as [&str; 0]);
    assert_eq!(base.names("."), ["tmp"]);

    let kept = run(&["demo", "--keep", "--json"]).ok();
    let told = lines(&kept);
    let turns: Vec<_> = told.iter().filter(|line| line["results"].is_array()).collect();
    let failed = |turn: &&Value| {
        let results = turn["results"].as_array().unwrap();
        results.iter().filter(|result| result["success"] == false).count()
    };
    // The three replies, an undo and a redo, the one that is approved, and the last.
    let commands = if has_full_sandbox() { [0, 1] } else { [1, 2] };
    assert_eq!(turns.iter().map(failed).take(3).collect::<Vec<_>>()[1..], commands, "{turns:#?}");
    assert_eq!(turns.last().unwrap()["isComplete"], true);
    let folder = Path::new(told.last().unwrap()["kept"].as_str().unwrap());
    assert!(folder.join("project/.envrc").exists() && !folder.join("notes.txt").exists());
}

#[test]
fn a_demonstration_that_is_stopped_leaves_nothing() {
    let base = Project::new();
    base.sh("mkdir tmp");
    let out = fs::File::create(base.at("told")).unwrap();
    let mut command = base.command(&["demo"]);
    let mut child = command.env("TMPDIR", base.at("tmp")).stdout(out).spawn().unwrap();
    wait_until("the first outbox", || base.read("told").contains("_seq0001.txt"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    wait_until("its end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(base.names("tmp"), [] as [&str; 0]);
}
