//! A project as its own project: `init`, and what of it is out of reach.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::scene::{Asked, Scene, Way, printed};
use crate::support::{ID, Project, Run};

/// A repository with a file in it, made a project.
pub fn project() -> Project {
    let base = Project::new();
    base.sh("git init -q .; mkdir -p src/deep; echo 'fn main() {}' > src/main.rs");
    base.run(&["init"]).ok();
    base
}

/// Runs the program in a folder of a project.
pub fn run_in(base: &Project, folder: &str, arguments: &[&str]) -> Run {
    Run::of(base.command(arguments).current_dir(base.at(folder)), "")
}

#[test]
fn init_makes_a_project_a_base_directory() {
    let base = Project::new();
    base.sh("git init -q .; printf 'target\\n' > .gitignore; echo x > own.txt");
    let run = base.run(&["init"]).ok();
    assert_eq!(run.stdout, "deaddrop.toml\n");
    for told in ["is set up", "Git ignores it", "Next: deaddrop new", ".deaddrop/inbox/"] {
        assert!(run.stderr.contains(told), "{told}: {}", run.stderr);
    }
    let folders = [".gitignore", "approvals", "inbox", "outbox", "sessions"];
    assert_eq!(base.names(".deaddrop"), folders);
    assert_eq!(base.read(".gitignore"), "target\n", "the repository's own rules stay");
    let git = ["status", "--porcelain", "-uall"];
    let status = Command::new("git").args(git).current_dir(base.path()).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status, "?? .gitignore\n?? own.txt\n");

    let settings = base.read("deaddrop.toml");
    let again = base.run(&["init", "--json"]).ok();
    let told: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(
        (&told["made"], &told["next"]),
        (&false.into(), &"deaddrop new \"what is to be done\"".into())
    );
    assert_eq!(base.read("deaddrop.toml"), settings);

    let outbox = base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok().stdout;
    assert_eq!(outbox, format!(".deaddrop/outbox/{ID}_seq0001.txt\n"));
    let outbox = base.read(outbox.trim());
    let (_, listing) = outbox.split_once("\n## Workspace Files\n").unwrap();
    let (listing, _) = listing.split_once("\n\n").unwrap();
    assert_eq!(listing, "  .gitignore (7 bytes)\n  own.txt (2 bytes)");
    // The person's own settings lie in the workspace here, and no command may make them.
    let names = [".deaddrop", ".git", ".gitignore", ".no-config", "deaddrop.toml", "own.txt"];
    assert_eq!(base.names("."), names);
}

#[test]
fn git_passes_settings_by_that_it_does_not_track() {
    let base = Project::new();
    base.sh("git init -q .; mkdir -p 'a [b]/c'; printf '# none' > .git/info/exclude");
    for _ in 0..2 {
        let told = run_in(&base, "a [b]/c", &["init"]).ok().stderr;
        assert!(told.contains("Git ignores deaddrop.toml"), "{told}");
    }
    let exclude = base.read(".git/info/exclude");
    assert_eq!(exclude, "# none\n/a\\ \\[b]/c/deaddrop.toml\n");
    base.sh("git add -A; git -c user.name=x -c user.email=x commit -q --allow-empty -m x");
    base.sh("test -z \"$(git ls-files)\"");
    base.sh("git add -f 'a [b]/c/deaddrop.toml'");
    let told = run_in(&base, "a [b]/c", &["init"]).ok().stderr;
    let sees = "Git sees deaddrop.toml (it is tracked). Commands can read it, but not";
    assert!(told.contains(sees), "{told}");
}

#[test]
fn init_adds_what_settings_do_not_say() {
    let base = Project::new();
    base.write(
        "deaddrop.toml",
        "# mine\nmax_tokens = 5000 # small\n\n[sandbox]\nnetwork = false\n",
    );
    base.run(&["init"]).ok();
    let own = "workspace_dir = \".\"\ninbox_dir = \".deaddrop/inbox\"\noutbox_dir = \".deaddrop/outbox\"\nsessions_dir = \".deaddrop/sessions\"\napprovals_dir = \".deaddrop/approvals\"\n";
    let text = format!("# mine\nmax_tokens = 5000 # small\n{own}\n[sandbox]\nnetwork = false\n");
    assert_eq!(base.read("deaddrop.toml"), text);
    base.run(&["init"]).ok();
    assert_eq!(base.read("deaddrop.toml"), text);
    base.run(&["new", "--no-watch", "A task"]).ok();
    assert_eq!(base.names(".deaddrop/outbox").len(), 1);

    let base = Project::new();
    base.write("deaddrop.toml", "workspace_dir = \"src\"\n");
    base.run(&["init"]).ok();
    assert!(base.read("deaddrop.toml").starts_with("workspace_dir = \"src\"\ninbox_dir = "));
}

#[test]
fn init_leaves_alone_what_is_there() {
    let refused = |base: &Project, arguments: &[&str], told: &str| {
        let run = base.fails(arguments, "usage").with_code(2);
        assert!(run.message().contains(told), "{told}: {run:?}");
    };
    let base = Project::new();
    base.write("deaddrop.toml", "max_tokens = 5000 # mine\n");
    refused(&base, &["init", "--policy", "standard"], "config set policy 'standard'");
    assert_eq!(base.read("deaddrop.toml"), "max_tokens = 5000 # mine\n");
    assert_eq!(base.names("."), ["deaddrop.toml"]);
    base.write("deaddrop.toml", "inbox_dir = \"in\"\n");
    refused(&base, &["init"], "keeps deaddrop's files elsewhere than in .deaddrop/");
    assert_eq!(base.names("."), ["deaddrop.toml"]);
    // With sessions that have begun they would not be found again.
    let base = Project::new();
    base.write("deaddrop.toml", "max_tokens = 5000\n");
    base.run(&["new", "--no-watch", "A task"]).ok();
    refused(&base, &["init"], "keeps deaddrop's files elsewhere than in .deaddrop/");
    assert_eq!(base.read("deaddrop.toml"), "max_tokens = 5000\n");

    let base = Project::new();
    base.write(".deaddrop", "a file");
    refused(&base, &["init"], ".deaddrop is not a folder");
    let base = Project::new();
    let mut command = base.command(&["init"]);
    let run = Run::of(command.env("HOME", base.path()), "").with_code(2);
    assert!(run.stderr.contains("this is your home folder"), "{run:?}");
    assert_eq!(base.names("."), [] as [&str; 0]);
    Run::of(base.command(&["init", "--force"]).env("HOME", base.path()), "").ok();
    refused(&base, &["init", "/"], "this is the whole machine");
    refused(&base, &["-C", "x", "init", "y"], "give only one");

    let base = Project::new();
    base.run(&["new", "--no-watch", "A task"]).ok();
    refused(&base, &["init"], "its sessions, in sessions/, would no longer be found");
}

#[test]
fn init_is_refused_within_another_base_directory() {
    let base = project();
    for (folder, told) in [
        (".deaddrop/inbox", "contains deaddrop's own files"),
        (".deaddrop/inbox/new", "contains deaddrop's own files"),
        ("src", "is in the workspace of the project"),
    ] {
        let run = base.fails(&["init", folder], "usage").with_code(2);
        assert!(run.message().contains(told), "{run:?}");
        assert!(!base.exists(&format!("{folder}/deaddrop.toml")));
    }
    assert!(!base.exists(".deaddrop/inbox/new"));
    base.run(&["init", "--force", ".deaddrop/inbox"]).with_code(2);
    let run = base.run(&["init", "--force", "src"]).ok();
    assert!(run.stderr.contains("commands need -C here"), "{run:?}");
    let run = run_in(&base, "src", &["status", ID, "--json"]).with_code(2);
    assert_eq!(run.error()["code"], "invalid-setting");
    let told = run.message();
    assert!(told.contains("where replies and commands write; name a project with -C"), "{told}");
    run_in(&base, "src", &["-C", ".", "status"]).ok();
}

#[test]
fn init_writes_settings_that_are_flags() {
    let base = Project::new();
    base.sh("mkdir p");
    let arguments =
        ["init", "drop", "--workspace-dir", "../p", "--sandbox", "off", "--max-tokens", "5000"];
    let run = base.run(&arguments).ok();
    assert!(run.stderr.contains("Next: deaddrop -C "), "{run:?}");
    let settings = base.read("drop/deaddrop.toml");
    for line in ["workspace_dir = \"../p\"", "sandbox = \"off\"", "max_tokens = 5000"] {
        assert!(settings.contains(&format!("\n{line}\n")), "{settings}");
    }
    run_in(&base, "drop", &["new", "--no-watch", "--id", ID, "A task"]).ok();
    let reply = base.write("reply.txt", "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n");
    run_in(&base, "drop", &["apply", reply.to_str().unwrap()]).ok();
    assert_eq!(base.names("p"), ["a"]);
    base.run(&["init", "new", "--max-tokens", "5"]).with_code(2);
    assert!(!base.exists("new/deaddrop.toml"));
}

#[test]
fn its_own_files_are_out_of_reach_of_replies() {
    let base = project();
    base.run(&["new", "--no-watch", "--id", ID, "A task about outboxes"]).ok();
    let own = [
        ".deaddrop",
        ".deaddrop/.gitignore",
        ".deaddrop/new",
        &format!(".deaddrop/sessions/{ID}.json"),
        "src/../.deaddrop/inbox/x.txt",
        "deaddrop.toml",
    ];
    symlink("../.deaddrop", base.at("src/link")).unwrap();
    let mut reply = String::from(
        "[LIST_FILES path=\".deaddrop\"]\n[SEARCH pattern=\"outbox\" path=\".deaddrop\"]\n[SEARCH pattern=\"task about\"]\n[LIST_FILES]\n",
    );
    for path in own.iter().chain(&["src/link/inbox/x.txt"]) {
        reply.push_str(&format!("[READ_FILE path=\"{path}\"]\n[CREATE_FILE path=\"{path}\"]\n[/CREATE_FILE]\n[MOVE_FILE path=\"src/main.rs\" to=\"{path}\"]\n"));
    }
    for path in [".deaddrop", "deaddrop.toml", ".deaddrop/outbox"] {
        reply.push_str(&format!(
            "[MOVE_FILE path=\"{path}\" to=\"mine\"]\n[DELETE_FILE path=\"{path}\"]\n"
        ));
    }
    let asked =
        reply.lines().filter(|line| line.starts_with('[') && !line.starts_with("[/")).count();
    let settings = base.read("deaddrop.toml");
    let told = base.run_with(&["apply", "-", "--json"], &reply);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let results = told["results"].as_array().unwrap();
    assert_eq!(results.len(), asked);
    // The search of everything, and the list of it, find nothing of all that.
    let well: Vec<_> = results.iter().filter(|result| result["success"] == true).collect();
    assert_eq!(well.len(), 2, "{well:#?}");
    let outbox = base.read(told["outbox"].as_str().unwrap());
    let (_, shown) = outbox.split_once("## Workspace Files").unwrap();
    assert!(shown.contains("No line matches"), "{shown}");
    let found = shown
        .lines()
        .filter(|line| line.starts_with("  .deaddrop") || line.starts_with("  deaddrop.toml"));
    assert_eq!(found.count(), 0, "{shown}");
    assert_eq!(base.read("deaddrop.toml"), settings);
    assert!(!base.exists("mine") && base.exists("src/main.rs"));
}

#[test]
fn its_own_files_are_out_of_reach_of_commands() {
    for scene in Scene::full() {
        let base = &scene.base;
        scene.becomes_a_project("echo x > own.txt");
        scene.hand_over();
        let settings = base.read("deaddrop.toml");
        let output = scene.applies_in_project(&[
            "cat own.txt; ls -A .deaddrop; find .deaddrop -type f; cmp deaddrop.toml deaddrop.toml && cat deaddrop.toml | grep -c workspace_dir; grep -rl 'A task' .deaddrop deaddrop.toml || echo unseen",
            "mv .deaddrop d || echo pinned; rm -rf .deaddrop deaddrop.toml; mkdir -p .deaddrop/inbox && echo '[DONE]' > .deaddrop/inbox/x.txt; echo 'sandbox = \"off\"' > deaddrop.toml; echo x > y; mv y deaddrop.toml; mv own.txt .deaddrop/.gitignore; echo tried",
        ]);
        let outbox = base.read(&format!(".deaddrop/outbox/{ID}_seq0002.txt"));
        let unseen = outbox.contains("  Output: x\n  1\n  unseen\n");
        assert!(unseen, "{}: {outbox} {output:?}", scene.name());
        assert!(
            printed(&outbox, "pinned") && printed(&outbox, "tried"),
            "{}: {outbox}",
            scene.name()
        );
        assert_eq!(base.read("deaddrop.toml"), settings);
        assert_eq!(base.read(".deaddrop/.gitignore"), "*\n");
        assert_eq!(base.names(".deaddrop/inbox"), [".claimed", "processed"]);
        assert!(base.exists(&format!(".deaddrop/sessions/{ID}.json")));
    }
}

#[test]
fn where_landlock_is_all_there_is_init_and_doctor_say_what_to_do() {
    let Some(scene) = Scene::with(Way::AsItIs, Asked::Partial) else { return };
    let base = &scene.base;
    base.sh("mkdir p");
    let run = base.run(&["init", "p"]).ok();
    assert!(!run.stderr.contains("no sandbox"), "{run:?}");
    base.write(
        "p/deaddrop.toml",
        format!("{}sandbox = \"partial\"\n", base.read("p/deaddrop.toml")),
    );
    let run = base.run(&["init", "p"]).ok();
    assert!(
        run.stderr.contains("there is no sandbox here, so commands in replies are refused"),
        "{run:?}"
    );
    let doctor = run_in(base, "p", &["doctor", "--json"]).with_code(1).json_lines();
    let commands = doctor.iter().find(|line| line["what"] == "commands").unwrap();
    assert_eq!(commands["well"], false);
    let told = commands["told"].as_str().unwrap();
    assert!(
        told.contains("own files are in the workspace, and Landlock cannot hide them"),
        "{told}"
    );
    assert!(told.contains("deaddrop init DIR --workspace-dir"), "{told}");

    // What they say helps.
    base.run(&["init", "drop", "--workspace-dir", "../q", "--sandbox", "partial"]).ok();
    base.sh("mkdir q");
    run_in(base, "drop", &["new", "--no-watch", "--id", "00ff00ff", "A task"]).ok();
    let reply = base.write(
        "reply.txt",
        crate::scene::reply(&[
            "echo ran > ran; ls -A ../drop/.deaddrop; echo x > ../drop/deaddrop.toml",
        ]),
    );
    run_in(base, "drop", &["apply", reply.to_str().unwrap()]).ok();
    assert_eq!(base.read("q/ran"), "ran\n");
    assert!(base.read("drop/deaddrop.toml").contains("sandbox = \"partial\""));
    let outbox = base.read("drop/.deaddrop/outbox/00ff00ff_seq0002.txt");
    assert!(outbox.contains("Permission denied") && !outbox.contains("  inbox\n"), "{outbox}");
}
