//! Where deaddrop meets git: git directories, projects where nobody ran `init`, and replies that would
//! make a repository.

use crate::support::{ID, Project, has_git, has_sandbox};
use crate::tmux::{PROMPT, Tmux};

#[test]
fn a_git_directory_is_no_project_and_no_workspace() {
    if !has_git() {
        return;
    }
    let base = Project::new();
    base.sh(
        "git init -q project; git init -q --bare bare.git; mkdir home; ln -s project/.git link",
    );
    for folder in ["project/.git", "project/.git/hooks", "bare.git", "bare.git/hooks", "link"] {
        for more in [&[][..], &["--force"], &["--workspace-dir", "../home"]] {
            let run = base.fails(&[&["init", folder], more].concat(), "usage").with_code(2);
            assert!(run.message().contains("git directory"), "{folder}: {run:?}");
            assert!(!base.exists(&format!("{folder}/deaddrop.toml")), "{folder}");
            assert!(!base.exists(&format!("{folder}/.deaddrop")), "{folder}");
        }
        let run = base.fails(&["rpc", "--root", folder], "usage").with_code(2);
        assert!(run.message().contains("it is a git directory, or in one"), "{run:?}");
        base.sh("rm -rf settings; mkdir settings");
        base.write("settings/deaddrop.toml", "");
        let place = format!("../{folder}");
        let arguments = ["-C", "settings", "config", "set", "workspace_dir", &place];
        let run = base.fails(&arguments, "invalid-setting").with_code(2);
        assert!(run.message().contains("it is a git directory, or in one"), "{run:?}");
        assert_eq!(base.read("settings/deaddrop.toml"), "");
        base.write("settings/deaddrop.toml", format!("workspace_dir = \"{place}\"\n"));
        // Nobody is asked about what cannot be.
        let new = ["-C", "settings", "new", "--no-watch", "A task"];
        let run = base.fails(&new, "invalid-setting").with_code(2);
        let told = "cannot be the workspace: it is a git directory";
        assert!(run.message().contains(told), "{run:?}");
        let doctor = base.run(&["-C", "settings", "doctor"]).with_code(1).stdout;
        assert!(doctor.contains(told), "{doctor}");
        // What is wrong there can be put right.
        base.run(&["-C", "settings", "config", "set", "workspace_dir", "../home"]).ok();
    }
    let told = base.run(&["init", "project/.git"]).with_code(2).stderr;
    assert!(told.trim_end().ends_with("/project"), "{told}");
    // Beside it all is as ever.
    base.run(&["init", "project"]).ok();
}

#[test]
fn without_a_terminal_nothing_is_written_into_a_folder_with_contents() {
    if !has_git() {
        return;
    }
    let base = Project::new();
    base.sh(
        "git init -q repository; mkdir empty files one made; echo x | tee files/a files/b one/TASK.md",
    );
    // As the repository of deaddrop itself has them.
    base.sh(
        "cd made; git init -q; mkdir workspace inbox outbox sessions; touch README.md Cargo.toml",
    );
    let new = ["new", "--no-watch", "A task"];
    let begins = |folder: &str| base.run(&[&["-C", folder][..], &new].concat());
    for (folder, names) in
        [("repository", &[".git"][..]), ("files", &["a", "b"]), ("one", &["TASK.md"])]
    {
        for command in [&new[..], &["watch"], &["ops", "run", "-"]] {
            let run = base.run(&[&["-C", folder][..], command].concat()).with_code(2);
            assert!(run.stderr.contains("`deaddrop init`"), "{command:?}: {run:?}");
            assert_eq!(base.names(folder), names);
        }
        base.run(&["init", folder]).ok();
        begins(folder).ok();
    }
    for folder in ["empty", "made"] {
        begins(folder).ok();
        assert!(base.exists(&format!("{folder}/workspace")));
    }
}

#[test]
fn at_a_terminal_new_in_a_repository_asks_whether_to_work_on_it() {
    if !has_git() {
        return;
    }
    let base = Project::new();
    base.sh("git init -q project");
    let Some(tmux) = Tmux::start(&base, 120) else { return };
    tmux.types("cd project; clear");
    tmux.wait_for("an empty screen", |screen| screen == PROMPT);
    tmux.types("deaddrop new --no-watch A task");
    tmux.shows("Work on this repository? [Y/n]");
    assert_eq!(base.names("project"), [".git"]);
    tmux.types("n");
    tmux.shows("nothing was created");
    assert_eq!(base.names("project"), [".git"]);
    tmux.types("clear");
    tmux.wait_for("an empty screen", |screen| screen == PROMPT);
    tmux.types("deaddrop new --no-watch A task");
    tmux.shows("Work on this repository? [Y/n]");
    tmux.types("");
    tmux.shows("Paste this file into a chat window");
    assert_eq!(base.names("project"), [".deaddrop", ".git", "deaddrop.toml"]);
}

#[test]
fn making_a_repository_is_refused_at_once_and_writing_to_one_is_asked_about() {
    if !has_sandbox("auto") || !has_git() {
        eprintln!("SKIPPED: git that is kept from its repository, without a sandbox");
        return;
    }
    let reply = |command: &str| format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n");
    for command in ["git init", "git init -q . && git add -A", "mkdir sub && git init sub"] {
        let base = Project::with_session();
        let turn = base.turn(&reply(command));
        assert_eq!(turn.codes(), ["denied"]);
        for told in [
            "[FAILED] RUN_COMMAND: Commands must not create a repository in the workspace",
            "Leave git init out, and ask the user to run it",
        ] {
            assert!(turn.outbox.contains(told), "{told}: {turn:?}");
        }
        assert!(!base.exists("workspace/.git") && !base.exists("workspace/sub"));
    }
    // Where the name is not protected, nothing is moved to quarantine.
    let base = Project::with_session();
    base.write("deaddrop.toml", "protected_names = ['.vscode']\n");
    base.run(&["config", "allow"]).ok();
    base.run_with(&["apply", "-"], reply("git init -q")).with_code(3);
    let id = base.waiting(ID)["operation"].as_str().unwrap().to_owned();
    base.run(&["approve", &id]).ok();
    assert!(base.exists("workspace/.git/HEAD"));
    // One that is there stays in its place, and what is made elsewhere is nobody's concern.
    for (command, why) in [
        ("git init -q && git add -A", "if new in the workspace, deaddrop moves it to quarantine"),
        ("cd /tmp && git init -q x", "if new in the workspace, deaddrop moves it to quarantine"),
        ("git add -A", "'git add' writes to the repository"),
    ] {
        let base = Project::with_session();
        base.sh("git init -q workspace");
        let run = base.run_with(&["apply", "-"], reply(command)).with_code(3);
        let asked = base.asked_why();
        assert!(asked.contains(why), "{asked}");
        // The person reads it, too, in lines of some length.
        let words = run.stderr.split_whitespace().filter(|word| *word != "|");
        let said: Vec<&str> = words.collect();
        assert!(said.join(" ").contains(why), "{run:?}");
        assert!(base.waiting(ID)["command"] == command);
    }
}
