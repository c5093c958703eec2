//! Settings that somebody else planted: what a `deaddrop.toml` opens counts once the person has agreed to
//! it, and not before.

mod around;
mod found;
mod leads;
mod noted;
mod stale;
mod tracked;
mod unread;
mod within;

use std::fs;
use std::path::Path;

use crate::approvals::at_terminal::AtTerminal;
use crate::support::{ID, Project, Run};

/// What is told to do.
const ALLOW: &str = "config allow";

/// A folder as `git clone` brings it: its settings have this program run, and it leaves a mark.
fn cloned() -> Project {
    let base = Project::that_nobody_agrees_to();
    let script = base.write("reach.sh", "touch \"$(dirname \"$0\")/ran\"; exit 1\n");
    base.write("deaddrop.toml", guest(&script));
    base
}

fn guest(script: &Path) -> String {
    format!("max_tokens = 9000\n[guest]\ncommand = {}\n", serde_json::json!(["/bin/sh", script]))
}

/// That a call with `--json` is refused until the person agrees to these; gives what is told.
#[track_caller]
fn is_refused(run: Run, names: &[&str]) -> String {
    let run = run.with_code(2);
    assert_eq!(run.error()["code"], "consent-needed", "{run:?}");
    let told = run.message();
    assert!(told.contains(ALLOW), "{told}");
    for name in names {
        assert!(told.contains(&format!("\n  {name} = ")), "{name}: {told}");
    }
    told
}

fn as_json<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["--json"], arguments].concat()
}

#[test]
fn nothing_is_begun_with_settings_that_nobody_agreed_to() {
    let base = cloned();
    let before = base.names(".");
    let here = base.path().canonicalize().unwrap();
    for arguments in [
        &["new", "--no-watch", "A task"][..],
        &["resume"],
        &["watch"],
        &["apply", "reach.sh"],
        &["check", "reach.sh"],
        &["ops", "run"],
        &["rpc"],
        &["say", "x"],
        &["status"],
        &["status", ID],
        &["show"],
        &["show", "--copy"],
        &["undo"],
        &["approve"],
        &["generate", "systemd-unit"],
        &["-C", ".", "new", "--no-watch", "A task"],
        &["new", "--no-watch", "--sandbox", "auto", "--policy", "standard", "A task"],
    ] {
        let told = is_refused(base.run(&as_json(arguments)), &["guest.command"]);
        for part in [
            &*format!("{}/deaddrop.toml: ", here.display()),
            "this program runs with your rights",
            "(line 3)",
            &format!("`deaddrop -C '{}' config allow`", here.display()),
        ] {
            assert!(told.contains(part), "{arguments:?}: {part}: {told}");
        }
    }
    assert_eq!(base.names("."), before, "something was made, or the guest's program ran");
    assert_eq!(fs::read_dir(base.state()).unwrap().count(), 0, "something was noted");
}

#[test]
fn what_only_tells_of_settings_needs_nobody_to_agree() {
    let base = cloned();
    let doctor = base.run(&["doctor"]).with_code(1).stdout;
    assert!(doctor.contains("NO  settings         needs your consent: guest.command;"), "{doctor}");
    let settings = base.finding("settings");
    assert_eq!((&settings["well"], &settings["fault"]), (&false.into(), &true.into()));
    assert!(settings["told"].as_str().unwrap().contains("guest.command"), "{settings}");
    let guest = base.finding("guest");
    assert_eq!(guest["well"], false);
    let told = guest["told"].as_str().unwrap();
    assert!(told.contains("was not asked: it needs your consent"), "{guest}");
    let shown = base.run(&["config", "show", "--changed"]).ok();
    assert!(shown.stdout.contains(":3, needs consent)"), "{shown:?}");
    assert!(shown.stdout.contains("deaddrop.toml:1)"), "{shown:?}");
    assert!(shown.stderr.starts_with("warning: settings marked"), "{shown:?}");
    let shown = base.run(&["config", "show", "--json"]).ok().json_lines();
    let (allowed, not): (Vec<_>, Vec<_>) = shown.iter().partition(|line| line["allowed"] == true);
    assert!(not.len() == 1 && not[0]["name"] == "guest.command", "{not:?}");
    assert!(allowed.len() > 20, "{allowed:?}");
    base.run(&["config", "get", "max_tokens"]).ok();
    base.run(&["config", "path"]).ok();
    base.run(&["policy", "list"]).ok();
    base.run(&["generate", "completions", "bash"]).ok();
    base.run(&["new", "--help"]).ok();
    assert!(!base.exists("ran"));
}

#[test]
fn what_is_agreed_to_is_exactly_what_stands_there() {
    let base = cloned();
    let told = base.run(&["config", "allow"]).ok();
    assert!(told.stdout.starts_with("guest.command = [\"/bin/sh\", \""), "{told:?}");
    assert!(told.stderr.contains("is recorded for"), "{told:?}");
    assert!(!base.exists("ran"), "to agree is not to run");
    let starts = || {
        let run = base.run(&["new", "--no-watch", "A task", "--json"]);
        let ran = base.exists("ran");
        let _ = fs::remove_file(base.at("ran"));
        assert_eq!(ran, run.code == Some(1), "{run:?}");
        run
    };
    starts().with_code(1);
    let settings = base.finding("settings");
    assert_eq!(settings["well"], true);
    assert!(
        settings["told"]
            .as_str()
            .unwrap()
            .starts_with("can weaken the defaults, with your consent"),
        "{settings}"
    );

    // What opens nothing may change.
    let text = base.read("deaddrop.toml");
    base.write("deaddrop.toml", format!("# mine\n{}", text.replace("9000", "9001")));
    starts().with_code(1);
    for (changed, names) in [
        (text.replace("reach.sh\"", "reach.sh\", \"-x\""), &["guest.command"][..]),
        (format!("sandbox = \"off\"\n{text}"), &["sandbox", "guest.command"]),
        ("sandbox = \"off\"\n".to_owned(), &["sandbox"]),
    ] {
        base.write("deaddrop.toml", changed);
        is_refused(starts(), names);
    }
    base.write("deaddrop.toml", &text);
    starts().with_code(1);
    let told = base.run(&["config", "deny"]).ok().stderr;
    assert!(told.contains("Your consent is withdrawn"), "{told}");
    is_refused(starts(), &["guest.command"]);
    let again = base.run(&["config", "deny"]).ok().stderr;
    assert!(again.contains("no consent to withdraw") && again != told, "{again}");

    // Agreed to is what stands in this folder.
    base.run(&["config", "allow", "--json"]).ok();
    base.sh("mkdir other; cp deaddrop.toml other");
    is_refused(
        base.run(&["--json", "-C", "other", "new", "--no-watch", "A task"]),
        &["guest.command"],
    );
}

#[test]
fn a_folder_that_leads_out_is_asked_about_as_a_program_is() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("diary"), "private\n").unwrap();
    let at = elsewhere.path().canonicalize().unwrap().display().to_string();
    for name in ["workspace", "inbox", "outbox", "sessions", "approvals"] {
        let base = Project::that_nobody_agrees_to();
        let setting = format!("{name}_dir");
        base.write("deaddrop.toml", format!("{setting} = \"{at}\"\n"));
        let told = is_refused(base.run(&["--json", "new", "--no-watch", "A task"]), &[&setting]);
        assert!(told.contains(&at), "{told}");
        // The same by a link that came with the folder, without any setting.
        let base = Project::that_nobody_agrees_to();
        std::os::unix::fs::symlink(elsewhere.path(), base.at(name)).unwrap();
        let told = is_refused(
            base.run(&["--json", "-C", ".", "new", "--no-watch", "A task"]),
            &[&setting],
        );
        assert!(told.contains(&format!("-> {at}")), "{told}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }
}

#[test]
fn what_the_person_says_otherwise_needs_no_note() {
    let base = Project::that_nobody_agrees_to();
    base.write("deaddrop.toml", "sandbox = \"off\"\npolicy = \"permissive\"\n");
    let new = ["new", "--no-watch", "A task"];
    is_refused(base.run(&as_json(&new)), &["sandbox", "policy"]);
    // A flag or a variable goes over it.
    let over = ["new", "--no-watch", "--policy", "standard", "--sandbox", "off", "A task"];
    base.run(&over).ok();
    let mut command = base.command(&new);
    command.env("DEADDROP_SANDBOX", "off").env("DEADDROP_POLICY", "standard");
    Run::of(&mut command, "").ok();
    // The person's own file is theirs.
    base.write(".no-config/deaddrop/config.toml", "sandbox = \"off\"\npolicy = \"permissive\"\n");
    base.run(&new).ok();
    fs::remove_file(base.at("deaddrop.toml")).unwrap();
    base.run(&new).ok();
    let registry = fs::read_to_string(base.state().join("deaddrop/bases")).unwrap();
    assert!(!registry.split('\0').any(|field| field.starts_with('c')), "{registry}");
}

#[test]
fn at_a_terminal_the_person_is_asked_once() {
    let base = Project::that_nobody_agrees_to();
    base.write("deaddrop.toml", "secrets_allow = [\"\u{202e}x\\u001b[2J\"]\n");
    let start = || AtTerminal::start(&base, &["new", "--no-watch", "A task"]);
    for no in ["\n", "n\n", "maybe\n"] {
        let Some(mut terminal) = start() else { return };
        terminal.wait_for("[y/N]", 1);
        terminal.types(no);
        assert_eq!(terminal.ends(), Some(2));
    }
    assert!(!base.exists("sessions"));
    let mut terminal = start().unwrap();
    terminal.wait_for("[y/N]", 1);
    let asked = terminal.shown();
    assert!(asked.contains("secrets_allow = "), "{asked}");
    assert!(!asked.contains('\u{202e}') && !asked.contains("\u{1b}[2J"), "{asked}");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    base.run(&["new", "--no-watch", "A task"]).ok();
    // Who wants nothing drawn and nothing said is not asked.
    base.run(&["config", "deny"]).ok();
    let mut terminal = AtTerminal::start(&base, &["-q", "new", "--no-watch", "A task"]).unwrap();
    assert_eq!(terminal.ends(), Some(2));
    assert_eq!(base.names("outbox").len(), 2);
}

#[test]
fn what_the_person_sets_is_agreed_to() {
    let base = Project::that_nobody_agrees_to();
    base.run(&["init", "--sandbox", "off", "--workspace-dir", "."]).ok();
    let new = ["new", "--no-watch", "--id", ID, "A task"];
    base.run(&new).ok();
    let set = |arguments: &[&str]| {
        let run = base.run(&[&["config"], arguments].concat()).ok();
        assert!(!run.stderr.contains(ALLOW), "{run:?}");
        base.run(&["status", ID]).ok();
    };
    set(&["set", "secrets", "warn"]);
    set(&["set", "sandbox.mode", "partial"]);
    set(&["set", "policies.mine.preset", "permissive"]);
    set(&["set", "policy", "mine"]);
    set(&["set", "policies.mine.shell.blocked", "[]"]);
    set(&["unset", "secrets"]);
    // What others have written in the meantime is not agreed to by that.
    let text = base.read("deaddrop.toml");
    base.write("deaddrop.toml", format!("protected_names = []\n{text}"));
    let run = base.run(&["config", "set", "secrets", "warn"]).ok();
    assert!(run.stderr.contains(ALLOW), "{run:?}");
    is_refused(base.run(&["--json", "status"]), &["protected_names", "secrets"]);
    base.run(&["config", "allow"]).ok();
    base.run(&["status", ID]).ok();
    // And what is taken away is not agreed to for later.
    base.write("deaddrop.toml", "secrets = \"warn\"\n");
    base.run(&["config", "allow"]).ok();
    base.run(&["config", "unset", "secrets"]).ok();
    base.write("deaddrop.toml", "secrets = \"warn\"\n");
    is_refused(base.run(&["--json", "status"]), &["secrets"]);
}

#[test]
fn init_agrees_to_nothing_that_came_with_the_folder() {
    let base = Project::that_nobody_agrees_to();
    base.run(&["init"]).ok();
    assert_eq!(fs::read_dir(base.state()).unwrap().count(), 0);
    base.write("deaddrop.toml", format!("{}sandbox = \"off\"\n", base.read("deaddrop.toml")));
    let run = base.run(&["init"]).ok();
    assert!(run.stderr.contains(ALLOW), "{run:?}");
    is_refused(base.run(&["--json", "new", "--no-watch", "A task"]), &["sandbox"]);

    let elsewhere = tempfile::tempdir().unwrap();
    let base = Project::that_nobody_agrees_to();
    fs::create_dir(base.at(".deaddrop")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), base.at(".deaddrop/approvals")).unwrap();
    let run = base.run(&["init", "--policy", "permissive"]).ok();
    assert!(run.stderr.contains(ALLOW), "{run:?}");
    is_refused(base.run(&["--json", "new", "--no-watch", "A task"]), &["policy", "approvals_dir"]);
}

#[test]
fn where_it_cannot_be_noted_the_way_without_is_told() {
    let base = Project::that_nobody_agrees_to();
    base.write("deaddrop.toml", "sandbox = \"off\"\n");
    let file = base.write("a-file", "");
    let without =
        |arguments: &[&str]| Run::of(base.command(arguments).env("XDG_STATE_HOME", &file), "");
    let told = without(&["new", "--no-watch", "A task"]).with_code(2).stderr;
    assert!(told.contains("config allow` once"), "{told}");
    let told = without(&["config", "allow"]).with_code(2).stderr;
    assert!(told.contains("flags, variables (DEADDROP_…) and your own"), "{told}");
    let by_flag = &["new", "--no-watch", "--sandbox", "off", "A task"];
    let told = without(by_flag).with_code(2).stderr;
    assert!(told.contains("that this project is yours"), "{told}");
    assert_eq!(base.names("."), ["a-file", "deaddrop.toml"]);
    base.run(by_flag).ok();
    base.run(&["config", "allow"]).ok();
    base.run(&["status"]).ok();
    let registry = base.state().join("deaddrop/bases");
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&registry), mode(registry.parent().unwrap())), (0o600, 0o700));
}
