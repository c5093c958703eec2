//! Which settings need consent, and which do not.

use std::path::PathBuf;

use super::*;
use crate::settings::{Config, FILE, Source};

/// The names of these settings that need consent, compared with the person's own settings.
fn opened_over(own: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().canonicalize().unwrap();
    opened_in(&project, own, text)
}

fn opened_in(project: &Path, own: &str, text: &str) -> Vec<String> {
    let own = Layer::from_text(own, Path::new("own.toml"), Source::OwnFile).unwrap();
    let file = Layer::from_text(text, &project.join(FILE), Source::File).unwrap();
    let layers = Layers { own, file, ..Layers::default() };
    Config::of_layers(project.to_owned(), &layers).expect("settings in order");
    weakenings(project, &layers).into_iter().map(|weakening| weakening.name).collect()
}

fn opened(text: &str) -> Vec<String> {
    opened_over("", text)
}

#[test]
fn what_is_set_by_itself_and_what_is_stricter_opens_nothing() {
    for text in [
        "",
        "workspace_dir = '.'\ninbox_dir = '.deaddrop/inbox'\nsessions_dir = '../BASE/x'",
        "command_timeout_seconds = 3600\nmax_output_length = 1000000\nmax_tokens = 10000000",
        "first_contents = false\npart_characters = 1000\ncheckpoints = false\nnotify = 'desktop'",
        "policy = ''",
        "sandbox = 'auto'",
        "[sandbox]\nnetwork = false\nwritable = []\nreadable = []\nenv = []\nmin_free_bytes = 0",
        "secrets = 'withhold'\nsecrets_allow = []",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        let text = text.replace("BASE", &project.file_name().unwrap().to_string_lossy());
        assert_eq!(opened_in(&project, "", &text), [""; 0], "{text}");
    }
    let same: Vec<_> = crate::settings::protected_by_default().collect();
    assert_eq!(opened(&format!("protected_names = {same:?}")), [""; 0]);
}

#[test]
fn what_names_programs_takes_walls_away_or_leads_out_opens_something() {
    for (text, names) in [
        ("workspace_dir = '/'", &["workspace_dir"][..]),
        ("workspace_dir = '..'", &["workspace_dir"]),
        ("inbox_dir = '/tmp/x'\napprovals_dir = '../a'", &["inbox_dir", "approvals_dir"]),
        ("sandbox = 'off'", &["sandbox"]),
        ("sandbox = 'bwrap'", &["sandbox"]),
        ("[sandbox]\nmode = 'partial'", &["sandbox"]),
        ("sandbox.network = true", &["sandbox.network"]),
        (
            "[sandbox]\nwritable = ['x']\nreadable = ['y']\nenv = ['Z']",
            &["sandbox.writable", "sandbox.readable", "sandbox.env"],
        ),
        ("protected_names = ['.git']", &["protected_names"]),
        ("policy = 'restrictive'", &["policy"]),
        ("secrets = 'warn'\nsecrets_allow = ['.env']", &["secrets", "secrets_allow"]),
        ("policy = 'permissive'", &["policy"]),
        ("policy = 'workspace'", &["policy"]),
        (
            "policy = 'mine'\n[policies.mine]\npreset = 'workspace'",
            &["policy", "policies.mine.preset"],
        ),
        (
            "[policies.standard]\nfiles.blocked = []\nshell.enabled = false",
            &["policies.standard.files.blocked", "policies.standard.shell.enabled"],
        ),
        (
            "[policies.standard]\nshell.blocked = []\nnetwork = true",
            &["policies.standard.network", "policies.standard.shell.blocked"],
        ),
        (
            "[policies.mine]\npreset = 'workspace'\nnetwork = true",
            &["policies.mine.network", "policies.mine.preset"],
        ),
        ("[guest]\ncommand = ['sh']", &["guest.command"]),
        ("[guest]\nsocket = 's'", &["guest.socket", "guest.port"]),
    ] {
        assert_eq!(opened(text), names, "{text}");
    }
}

#[test]
fn it_is_measured_by_what_the_person_set_for_all() {
    for text in [
        "sandbox = 'off'",
        "sandbox.network = true",
        "sandbox.readable = ['/srv', '~/x']",
        "policy = 'permissive'",
        "policy = 'mine'\n[policies.mine]\npreset = 'permissive'",
        "workspace_dir = '/srv/w'",
        "secrets = 'warn'",
        "protected_names = []",
        "[guest]\ncommand = ['ssh', 'box']",
    ] {
        assert_ne!(opened(text), [""; 0], "{text}");
        assert_eq!(opened_over(text, text), [""; 0], "{text}");
        assert_eq!(opened_over(text, ""), [""; 0], "{text}");
    }
    assert_eq!(opened_over("sandbox = 'partial'", "sandbox = 'partial'"), [""; 0]);
    assert_eq!(opened_over("sandbox = 'partial'", "sandbox = 'off'"), ["sandbox"]);
    for (own, file, opens) in [
        ("partial", "bwrap", true),
        ("bwrap", "partial", true),
        ("bwrap", "off", true),
        ("bwrap", "bwrap", false),
        ("bwrap", "auto", false),
        ("off", "bwrap", true),
    ] {
        let set = |mode: &str| format!("sandbox = '{mode}'");
        let opened = opened_over(&set(own), &set(file));
        assert_eq!(opened.len(), usize::from(opens), "{own} {file}: {opened:?}");
    }
    assert_eq!(opened_over("policy = 'restrictive'", "policy = 'standard'"), ["policy"]);
    let tight = "policy = 'mine'\n[policies.mine]\npreset = 'workspace'\nfiles.read_only = true";
    for (own, opens) in [
        ("policy = 'restrictive'", true),
        ("policy = 'standard'", true),
        ("policy = 'permissive'", true),
        (tight, true),
        ("policy = 'workspace'", true),
        ("policy = ''", false),
        ("", false),
    ] {
        let opened = opened_over(own, "policy = ''");
        assert_eq!(opened.len(), usize::from(opens), "{own}: {opened:?}");
    }
    assert_eq!(
        opened_over("protected_names = ['a', 'b']", "protected_names = ['b']"),
        ["protected_names"]
    );
    let over = "[guest]\ncommand = ['ssh', 'other']";
    assert_eq!(opened_over("[guest]\ncommand = ['ssh', 'box']", over), ["guest.command"]);
}

#[test]
fn a_protected_name_below_the_base_directory_opens_something() {
    for (text, names) in [
        ("workspace_dir = '.git'", &["workspace_dir"][..]),
        ("workspace_dir = 'sub/.GIT/hooks'", &["workspace_dir"]),
        ("workspace_dir = 'GIT~1'", &["workspace_dir"]),
        ("workspace_dir = 'x/../.vscode'", &["workspace_dir"]),
        ("workspace_dir = '.husky/_'", &["workspace_dir"]),
        ("workspace_dir = '.deaddrop'", &["workspace_dir"]),
        ("workspace_dir = 'mine'", &["workspace_dir"]),
        ("outbox_dir = '.git/hooks'\ninbox_dir = '.git/refs'", &["inbox_dir", "outbox_dir"]),
        ("sessions_dir = '.git/objects'", &["sessions_dir"]),
        ("approvals_dir = '.deaddrop/.git'", &["approvals_dir"]),
        ("approvals_dir = 'sub/.deaddrop/approvals'", &["approvals_dir"]),
        ("sessions_dir = '.deaddrop/a'\napprovals_dir = '.deaddrop/b'", &[]),
        ("workspace_dir = '.github'\noutbox_dir = 'git/hooks'", &[]),
    ] {
        assert_eq!(opened_over("protected_names = ['Mine']", text), names, "{text}");
    }
    // The person chose the folder that contains the project.
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().canonicalize().unwrap().join(".claude");
    std::fs::create_dir(&project).unwrap();
    assert_eq!(opened_in(&project, "", "workspace_dir = '.'"), [""; 0]);
    assert_eq!(opened_in(&project, "workspace_dir = '.git'", ""), [""; 0], "the person's own word");
}

#[cfg(unix)]
#[test]
fn a_folder_that_a_link_leads_out_counts_without_any_setting() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().canonicalize().unwrap().join("project");
    std::fs::create_dir_all(project.join("within")).unwrap();
    let link = |to: &str, name: &str| {
        let path = project.join(name);
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(PathBuf::from(to), path).unwrap();
    };
    link("within", "inbox");
    assert_eq!(opened_in(&project, "", ""), [""; 0]);
    std::fs::create_dir(project.join("../elsewhere")).unwrap();
    link("../elsewhere", "inbox");
    assert_eq!(opened_in(&project, "", ""), ["inbox_dir"]);
    let own = format!("inbox_dir = {:?}", project.join("../elsewhere"));
    assert_eq!(opened_in(&project, &own, ""), [""; 0], "the person's own word");
    assert_eq!(opened_in(&project, "inbox_dir = '../elsewhere'", ""), [""; 0], "also from there");
    // The name does not show where a link with this name leads. Here, `~` is an ordinary name.
    link("../elsewhere", "~");
    for own in ["'inbox'", "'inbox/../elsewhere'", "'~/x'", "'./inbox'"] {
        let own = format!("inbox_dir = {own}");
        assert_eq!(opened_in(&project, &own, ""), ["inbox_dir"], "{own}");
        assert_eq!(opened_in(&project, &own, &own), ["inbox_dir"], "{own}");
    }
    let through = format!("inbox_dir = {:?}", project.join("inbox"));
    assert_eq!(opened_in(&project, &through, ""), ["inbox_dir"]);
    assert_eq!(opened_in(&project, "", "inbox_dir = 'inbox/x'"), ["inbox_dir"]);
}

#[test]
fn a_change_is_of_what_it_names() {
    let weakening = |name: &str| Weakening {
        name: name.to_owned(),
        value: String::new(),
        origin: None,
        does: "",
        exact: String::new(),
    };
    for (name, key) in [
        ("sandbox", "sandbox"),
        ("sandbox", "sandbox.mode"),
        ("sandbox.network", "sandbox.network"),
        ("guest.command", "guest.command"),
        ("guest.command", "guest"),
        ("policies.mine.network", "policies.mine"),
    ] {
        assert!(weakening(name).may_result_from(key), "{name} {key}");
    }
    for (name, key) in [
        ("sandbox", "sandbox.network"),
        ("sandbox.network", "sandbox"),
        ("guest.command", "guest.port"),
        ("policies.mine.network", "policies.other.network"),
        ("policies.mine.network", "policies.mine.preset"),
        ("policy", "policies.mine.network"),
        ("secrets", "secrets_allow"),
        ("policy", "sandbox"),
    ] {
        assert!(!weakening(name).may_result_from(key), "{name} {key}");
    }
}
