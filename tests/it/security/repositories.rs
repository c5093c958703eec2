//! File operations cannot create what the person's tools execute.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::guests::sessions::Pair;
use crate::rpc::methods::Setup;
use crate::scene::Scene;
use crate::support::{ID, Project, Run, has_git, has_sandbox, wait_until};

/// What a repository without `.git` needs, in a folder: settings by which git runs what leaves a mark.
const PARTS: &str = "mkdir -p F/objects F/refs; printf 'ref: refs/heads/main\\n' > F/HEAD; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \"touch CANARY; false\"\\n' > F/config; ";
const HEAD: &str = "ref: refs/heads/main\n";

/// A project whose workspace was made by a script, in which `CANARY` is a file outside of the workspace.
fn scene(script: &str) -> Project {
    let base = Project::with_session();
    base.sh(&format!(
        "cd workspace; {}",
        script.replace("CANARY", canary(&base).to_str().unwrap())
    ));
    base
}

fn canary(base: &Project) -> PathBuf {
    base.path().join("canary")
}

fn create(path: &str, content: &str) -> String {
    format!("[CREATE_FILE path=\"{path}\"]\n{content}[/CREATE_FILE]\n")
}

fn moved(from: &str, to: &str) -> String {
    format!("[MOVE_FILE path=\"{from}\" to=\"{to}\"]\n")
}

fn edit(path: &str, old: &str, new: &str) -> String {
    format!(
        "[EDIT_FILE path=\"{path}\"]\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n[/EDIT_FILE]\n"
    )
}

fn run(command: &str) -> String {
    format!("[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n")
}

/// Applies a reply; whether the person is asked about what only they may write.
fn asks(base: &Project, reply: &str) -> bool {
    let run = base.run_with(&["apply", "--session", ID, "-"], reply);
    let waiting = base.waiting(ID);
    assert!(waiting.is_null() || waiting["opens"]["protected"] == true, "{run:?} {waiting}");
    !waiting.is_null()
}

/// Runs the person's git in a folder of the workspace, and tells whether something ran with it.
fn git_status_runs_something(base: &Project, folder: &str) -> bool {
    let mut git = Command::new("git");
    git.arg("status").current_dir(base.at("workspace").join(folder));
    git.env("HOME", base.path().join("home")).env_remove("XDG_CONFIG_HOME");
    Run::of(&mut git, "");
    fs::remove_file(canary(base)).is_ok()
}

/// What is there before, and the reply that completes a repository in a folder.
fn completing() -> Vec<(&'static str, String, String)> {
    let all = |folder: &str| PARTS.replace('F', folder);
    let without = |part: &str| format!("{}rm -r f/{part}", all("f"));
    let f = |name: &'static str, script: String, reply: String| (name, script, reply);
    let operations =
        |operation: Value| json!({"protocolVersion": "1.0", "operations": [operation]}).to_string();
    vec![
        f("HEAD", without("HEAD"), create("f/HEAD", HEAD)),
        f("objects", without("objects"), create("f/objects/x", "")),
        f("refs", without("refs"), create("f/refs/heads/x", "")),
        f("HEAD by MOVE_FILE", format!("{}mv f/HEAD .", all("f")), moved("HEAD", "f/HEAD")),
        f("objects by MOVE_FILE", format!("{}mv f/objects o", all("f")), moved("o", "f/objects")),
        f("refs by MOVE_FILE", format!("{}mv f/refs r", all("f")), moved("r", "f/refs")),
        f("a folder with all of it", format!("mkdir a; {}mv f a/g", all("f")), moved("a", "f")),
        f("the folder itself", format!("{}mv f g", all("f")), moved("g", "f")),
        f(
            "HEAD by EDIT_FILE",
            format!("{}echo none > f/HEAD", all("f")),
            edit("f/HEAD", "none\n", HEAD),
        ),
        f(
            "HEAD by its lines",
            format!("{}echo none > f/HEAD", all("f")),
            format!(
                "[EDIT_FILE path=\"f/HEAD\" start_line=\"1\" end_line=\"1\"]\n{HEAD}[/EDIT_FILE]\n"
            ),
        ),
        f("HEAD over another", format!("{}echo none > f/HEAD", all("f")), create("f/HEAD", HEAD)),
        f(
            "a nested folder",
            format!("mkdir -p f/a/b; {}rm f/a/b/HEAD", PARTS.replace('F', "f/a/b")),
            create("f/a/b/HEAD", HEAD),
        ),
        f("the workspace's root", format!("{}rm HEAD", all(".")), create("HEAD", HEAD)),
        f(
            "an ignored folder",
            format!("{}echo /f > .gitignore", without("HEAD; ")),
            create("f/HEAD", HEAD),
        ),
        f(
            "commondir",
            format!("{}mkdir c; mv f/objects f/refs c", all("f")),
            create("f/commondir", "../c\n"),
        ),
        f(
            "HEAD beside commondir",
            format!(
                "{}mkdir c; mv f/objects f/refs c; echo ../c > f/commondir; mv f/HEAD .",
                all("f")
            ),
            moved("HEAD", "f/HEAD"),
        ),
        f("through a link", format!("{}ln -s f g", without("HEAD; ")), create("g/HEAD", HEAD)),
        f("its config", format!("{}mv f/config c", all("f")), moved("c", "f/config")),
        f(
            "HEAD in the dialect of operations",
            without("HEAD"),
            operations(json!({"type": "createFile", "path": "f/HEAD", "content": HEAD})),
        ),
        f(
            "HEAD over another in the dialect of operations",
            format!("{}echo none > f/HEAD", all("f")),
            operations(
                json!({"type": "createFile", "path": "f/HEAD", "content": HEAD, "overwrite": true}),
            ),
        ),
    ]
}

#[test]
fn who_completes_a_repository_asks_first() {
    let has_git = has_git();
    for (name, script, reply) in completing() {
        let base = scene(&script);
        assert!(asks(&base, &reply), "{name}");
        if has_git {
            let folder = base.names("workspace").contains(&"f".to_owned()).then_some("f");
            assert!(!git_status_runs_something(&base, folder.unwrap_or(".")), "{name}");
        }
        base.run(&["deny"]).ok();
        assert!(!git_status_runs_something(&base, "."), "{name}");
    }
}

/// The mark is left where the person agrees, so what the other tests make is a repository to git.
#[test]
fn what_the_person_agrees_to_is_made() {
    let base = scene(&format!("{}mv f/HEAD .", PARTS.replace('F', "f")));
    // After a command, which could have made it.
    assert!(asks(&base, &(run("true") + &create("f/HEAD", HEAD) + &run("ls f"))));
    base.run(&["approve"]).ok();
    assert_eq!(base.read("workspace/f/HEAD"), HEAD);
    assert!(!base.exists("sessions/quarantine"));
    if has_git() {
        assert!(git_status_runs_something(&base, "f"));
    }
    // From then on it is as protected as `.git`.
    assert!(asks(&base, &create("f/hooks/pre-commit", "x\n")));
}

#[test]
fn what_lies_in_a_repository_without_git_is_protected_like_git() {
    for reply in [
        create("f/config", "x\n"),
        create("f/hooks/post-checkout", "x\n"),
        create("f/info/attributes", "x\n"),
        edit("f/config", "\tbare = false\n", "\tbare = true\n"),
        "[DELETE_FILE path=\"f/HEAD\"]\n".to_owned(),
        moved("f/config", "c"),
        moved("x", "f/hooks"),
        moved("f", "g"),
        create("link/config", "x\n"),
    ] {
        let base = scene(&(PARTS.replace('F', "f") + "mkdir x; touch x/y; ln -s f link"));
        assert!(asks(&base, &reply), "{reply}");
        assert!(base.exists("workspace/f/HEAD") && base.exists("workspace/x/y"));
        assert!(base.read("workspace/f/config").contains("fsmonitor"));
    }
    let base = scene(&PARTS.replace('F', "f"));
    let outbox = base.apply("[READ_FILE path=\"f/config\"]\n");
    assert!(outbox.contains("fsmonitor"), "{outbox}");
}

#[test]
fn where_case_does_not_count_another_spelling_is_the_same() {
    for (part, path) in [
        ("HEAD", "f/head"),
        ("HEAD", "f/Head"),
        ("objects", "f/Objects/x"),
        ("refs", "f/REFS/x"),
        ("refs", "f/refs./x"),
        ("HEAD", "f/HEAD::$DATA"),
    ] {
        let base = scene(&format!("{}rm -r f/{part}", PARTS.replace('F', "f")));
        let is_asked = asks(&base, &create(path, HEAD));
        // Some names are refused outright.
        assert!(is_asked || base.names("workspace/f").len() == 3, "{path}");
    }
}

#[test]
fn a_part_of_a_repository_alone_is_a_file_like_any_other() {
    for (script, reply, made) in [
        ("true", create("HEAD", HEAD), "HEAD"),
        ("true", create("f/config", "x\n"), "f/config"),
        ("true", create("f/refs/x", "x\n"), "f/refs/x"),
        ("true", create("f/hooks/pre-commit", "x\n"), "f/hooks/pre-commit"),
        ("true", create("f/commondir", "x\n"), "f/commondir"),
        ("mkdir -p f/objects f/refs", create("f/config", "x\n"), "f/config"),
        ("mkdir -p f/objects; echo x > f/HEAD", create("f/config", "x\n"), "f/config"),
        ("mkdir -p f/objects", create("f/refs/x", "x\n"), "f/refs/x"),
        ("mkdir -p f/objects f/refs", create("f/a/HEAD", HEAD), "f/a/HEAD"),
        ("mkdir -p f/objects f/refs; touch f/x", moved("f", "g"), "g/x"),
        ("mkdir -p f/objects f/refs f/HEAD; touch f/HEAD/x", create("f/y", "x\n"), "f/y"),
        ("mkdir f; echo x > HEAD", moved("HEAD", "f/HEAD"), "f/HEAD"),
    ] {
        let base = scene(script);
        assert!(!asks(&base, &reply), "{reply}");
        assert!(base.exists(&format!("workspace/{made}")), "{reply}");
        assert!(!base.exists("sessions/quarantine"));
    }
}

#[test]
fn parts_that_come_one_after_the_other_are_asked_about_with_the_last() {
    let base = scene("mkdir o; touch o/x");
    let reply = create("f/config", "x\n")
        + &create("f/HEAD", HEAD)
        + &create("f/refs/x", "")
        + &moved("o", "f/objects")
        + &create("after", "x\n");
    assert!(asks(&base, &reply));
    assert_eq!(base.names("workspace/f"), ["HEAD", "config", "refs"]);
    base.run(&["deny"]).ok();
    assert!(base.exists("workspace/after") && base.exists("workspace/o/x"));
    // A folder that lacks only its HEAD moves as any does, and the HEAD is what is asked about.
    let base = scene(&format!("{}mv f/HEAD .", PARTS.replace('F', "f")));
    assert!(asks(&base, &(moved("f", "g") + &moved("HEAD", "g/HEAD"))));
    assert!(base.exists("workspace/g/config") && base.exists("workspace/HEAD"));
}

#[test]
fn nobody_is_asked_over_json_rpc_so_it_is_refused() {
    let Some(setup) = Setup::confined() else { return };
    let scene = setup.serve();
    scene.base.sh(&format!(
        "cd root; {}mv f/HEAD .; mkdir g; echo x > g/HEAD; mkdir g/refs",
        PARTS.replace('F', "f")
    ));
    for path in ["f/HEAD", "f/head", "g/objects/x"] {
        let absolute = format!("{}/{path}", scene.root());
        for path in [path, &absolute] {
            assert!(scene.write(path, HEAD).is_err(), "{path}");
            assert!(!scene.base.exists(&format!("root/{path}")), "{path}");
        }
    }
    assert!(scene.write("f/config", "x").is_ok());
    scene.base.sh("mv root/HEAD root/f");
    assert!(scene.write("f/config", "y").is_err());
    assert_eq!(scene.base.read("root/f/config"), "x");
    // A command is told of what was put away after it.
    let made = scene.exec("mkdir h; cp -r f/* h");
    assert!(!made.stderr.is_empty() && !scene.base.exists("root/h/HEAD"), "{made:?}");
}

#[test]
fn a_guest_asks_as_its_host_would() {
    let pair = Pair::with_session();
    pair.guest
        .sh(&format!("mkdir -p workspace; cd workspace; {}mv f/HEAD .", PARTS.replace('F', "f")));
    assert!(asks(&pair.host, &moved("HEAD", "f/HEAD")));
    assert!(!pair.guest.exists("workspace/f/HEAD"));
}

#[test]
fn what_a_command_completes_is_put_away() {
    let has_git = has_git();
    for sandbox in ["auto", "partial"].into_iter().filter(|sandbox| has_sandbox(sandbox)) {
        let by_hand = PARTS.replace('F', "f").replace('\n', "\\n");
        let by_hand = by_hand.trim_end().trim_end_matches(';').to_owned();
        for (script, command, place) in [
            (String::new(), by_hand.clone(), "f"),
            (String::new(), by_hand.replace("f/", "a/b/f/"), "a/b/f"),
            (format!("{}rm f/HEAD", PARTS.replace('F', "f")), format!("printf '{}' > f/HEAD", HEAD.trim()), "f"),
            (format!("{}rmdir f/refs", PARTS.replace('F', "f")), "mkdir f/refs".to_owned(), "f"),
            (format!("{}mkdir c; mv f/refs f/objects c", PARTS.replace('F', "f")), "echo ../c > f/commondir".to_owned(), "f"),
            (String::new(), format!("{by_hand}; echo /f > .gitignore"), "f"),
            (String::new(), "git init -q --bare f; git -C f config core.bare false; git -C f config core.worktree .; git -C f config core.fsmonitor 'touch CANARY; false'".to_owned(), "f"),
        ] {
            if command.starts_with("git ") && !has_git {
                continue;
            }
            let base = scene(&script);
            base.write("deaddrop.toml", format!("sandbox = \"{sandbox}\"\n"));
            let command = command.replace("CANARY", canary(&base).to_str().unwrap());
            // `git init` is asked about, and not left there whatever the person says.
            let outbox = match base.run_with(&["apply", "-"], run(&command)).code {
                Some(3) => base.run(&["approve"]).ok(),
                _ => Run { stdout: String::new(), stderr: String::new(), code: None },
            };
            let outbox = format!("{outbox:?}{}", base.outbox(2));
            assert!(outbox.contains("\n  Warning: "), "{command}: {outbox}");
            assert!(!base.exists(&format!("workspace/{place}/HEAD")), "{sandbox}: {command}: {outbox}");
            assert_eq!(base.names("sessions/quarantine/a1b2c3d4_seq0001").len(), 1, "{command}");
            if has_git {
                assert!(!git_status_runs_something(&base, place), "{sandbox}: {command}");
            }
        }
    }
}

#[test]
fn commands_cannot_change_what_git_obeys_in_a_repository_without_git() {
    for sandbox in ["auto", "partial"].into_iter().filter(|sandbox| has_sandbox(sandbox)) {
        for command in [
            "echo evil >> f/config",
            "mkdir f/hooks; echo evil > f/hooks/pre-commit",
            "mkdir f/info; echo evil > f/info/attributes",
            "mv f/config f/c",
            "echo /tmp > f/objects/info/alternates || mkdir f/objects/info && echo /tmp > f/objects/info/alternates",
            "echo x > f/commondir",
        ] {
            let base = scene(&PARTS.replace('F', "f"));
            base.write("deaddrop.toml", format!("sandbox = \"{sandbox}\"\n"));
            let config = base.read("workspace/f/config");
            let outbox = base.apply(&run(command));
            assert_eq!(base.read("workspace/f/config"), config, "{sandbox}: {command}: {outbox}");
            for made in
                ["hooks/pre-commit", "info/attributes", "objects/info/alternates", "commondir"]
            {
                assert!(
                    !base.exists(&format!("workspace/f/{made}")),
                    "{sandbox}: {command}: {outbox}"
                );
            }
        }
        // It is there to be pushed to, and read.
        let base = scene(&PARTS.replace('F', "f"));
        base.write("deaddrop.toml", format!("sandbox = \"{sandbox}\"\n"));
        let outbox = base.apply(&run("mkdir -p f/refs/heads f/objects/aa && echo x > f/objects/aa/bb && echo x > f/refs/heads/x && echo 'ref: refs/heads/x' > f/HEAD"));
        assert!(outbox.contains("[OK] RUN_COMMAND") && !outbox.contains("Warning: "), "{outbox}");
        assert!(base.exists("workspace/f/objects/aa/bb"));
    }
}

/// A project in a repository, and a home for the person.
fn with_settings(files: &[(&str, &str)]) -> Project {
    let base = scene(
        "mkdir -p .git/objects .git/refs .git/hooks; printf 'ref: refs/heads/main\\n' > .git/HEAD; printf '[core]\\n\\tbare = false\\n' > .git/config; mkdir -p tools hooks; echo old > tools/x; echo old > hooks/pre-commit; chmod +x hooks/pre-commit",
    );
    fs::create_dir_all(base.at("home")).unwrap();
    let root = base.path().canonicalize().unwrap();
    for (file, text) in files {
        let text = text.replace("WORKSPACE", root.join("workspace").to_str().unwrap());
        let before = fs::read_to_string(base.at(file)).unwrap_or_default();
        base.write(file, before + &text);
    }
    base
}

fn with_home(base: &Project, arguments: &[&str], input: &str) -> Run {
    let mut command = base.command(arguments);
    command.env("HOME", base.at("home")).env_remove("GIT_CONFIG_GLOBAL");
    Run::of(&mut command, input)
}

/// Where settings of git's stand, with what they name in the workspace.
const NAMED: [(&str, &str, &str); 44] = [
    ("workspace/.git/config", "[core]\n hooksPath = hooks\n", "hooks/pre-commit"),
    ("workspace/.git/config", "[core]\n hooksPath = hooks/\n", "hooks/new"),
    (
        "workspace/.git/config",
        "[core] hooksPath = \"WORKSPACE/hooks\" ; mine\n",
        "hooks/pre-commit",
    ),
    ("workspace/.git/config", "[core]\n hooksPath = missing/deep\n", "missing/deep/pre-commit"),
    ("workspace/.git/config", "[include]\n path = ../tools/x\n", "tools/x"),
    (
        "workspace/.git/config",
        "[includeIf \"gitdir:/nowhere/\"]\n path = WORKSPACE/tools/x\n",
        "tools/x",
    ),
    ("workspace/.git/config", "[core]\n attributesFile = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[filter \"f\"]\n clean = sh ./tools/x %f\n", "tools/x"),
    ("workspace/.git/config", "[diff \"d\"]\n textconv = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[alias]\n x = !tools/x\n", "tools/x"),
    ("workspace/.git/config", "[submodule \"a\"]\n update = !tools/x\n", "tools/x"),
    ("workspace/.git/config", "[core]\n fsmonitor = WORKSPACE/tools/x\n", "tools/x"),
    ("workspace/.git/config.worktree", "[core]\n hooksPath = hooks\n", "hooks/pre-commit"),
    ("home/.gitconfig", "[core]\n hooksPath = hooks\n", "hooks/pre-commit"),
    ("home/.gitconfig", "[core]\n hooksPath = WORKSPACE/hooks\n", "hooks/pre-commit"),
    ("home/.gitconfig", "[core]\n hooksPath = ~/../workspace/hooks\n", "hooks/pre-commit"),
    ("home/.gitconfig", "[include]\n path = ~/../workspace/tools/x\n", "tools/x"),
    ("home/.gitconfig", "[include]\n path = ../workspace/tools/x\n", "tools/x"),
    ("home/.gitconfig", "[includeIf \"onbranch:x\"]\n path = WORKSPACE/tools/x\n", "tools/x"),
    ("home/.gitconfig", "[core]\n attributesFile = WORKSPACE/tools/x\n", "tools/x"),
    (".no-config/git/config", "[core]\n hooksPath = hooks\n", "hooks/pre-commit"),
    (".no-config/git/config", "[core]\n attributesFile = ~/../workspace/tools/x\n", "tools/x"),
    // Command lines, however they come to the file.
    ("workspace/.git/config", "[filter \"f\"]\n clean = python3 clean.py\n", "clean.py"),
    ("workspace/.git/config", "[filter \"f\"]\n clean = \"'tools/my x' %f\"\n", "tools/my x"),
    ("workspace/.git/config", "[filter \"f\"]\n clean = tools/my\\\\ x %f\n", "tools/my x"),
    ("workspace/.git/config", "[alias]\n a = !cd tools && ./x\n", "tools/x"),
    ("workspace/.git/config", "[alias]\n a = \"!(cd tools; sh<x)\"\n", "tools/x"),
    (
        "workspace/.git/config",
        "[alias]\n a = \"!$(git rev-parse --show-toplevel)/tools/x\"\n",
        "tools/x",
    ),
    ("workspace/.git/config", "[alias]\n a = !$PWD/tools/x\n", "tools/x"),
    ("workspace/.git/config", "[alias]\n a = \"!${GIT_PREFIX:-.}/tools/x\"\n", "tools/x"),
    ("workspace/.git/config", "[alias]\n a = \"!sh ${GIT_PREFIX}new.sh\"\n", "deep/new.sh"),
    ("workspace/.git/config", "[alias]\n a = -c core.fsmonitor=tools/x status\n", "tools/x"),
    ("home/.gitconfig", "[filter \"f\"]\n smudge = python3 clean.py\n", "clean.py"),
    // Settings of all sorts.
    ("workspace/.git/config", "[sendemail]\n toCmd = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[sendemail]\n sendmailCmd = tools/x -t\n", "tools/x"),
    ("workspace/.git/config", "[sendemail]\n headerCmd = sh tools/x\n", "tools/x"),
    ("workspace/.git/config", "[lfs \"customtransfer.x\"]\n path = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[svn]\n authorsProg = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[remote \"o\"]\n url = ext::tools/x\n", "tools/x"),
    ("workspace/.git/config", "[gpg \"ssh\"]\n allowedSignersFile = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[hook \"h\"]\n event = pre-commit\n command = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[someday]\n runs = tools/x\n", "tools/x"),
    ("workspace/.git/config", "[someday]\n runsPath = tools/x\n", "tools/x"),
    ("home/.gitconfig", "[difftool \"d\"]\n cmd = node new.js \"$LOCAL\"\n", "new.js"),
];

/// Repositories beside the workspace's own, as scripts, with settings of theirs and what those name.
const OTHERS: [(&str, &str, &str, &str); 10] = [
    ("", "sub/.git/config", "[core]\n hooksPath = ../hooks\n", "hooks/pre-commit"),
    ("", "sub/.git/config", "[include]\n path = ../../tools/x\n", "tools/x"),
    ("", "sub/.git/config", "[alias]\n a = !cd ../tools && ./x\n", "tools/x"),
    ("", "sub/.git/config", "[filter \"f\"]\n clean = python3 clean.py\n", "sub/clean.py"),
    (
        "git .git/modules/s; mkdir s; echo 'gitdir: ../.git/modules/s' > s/.git",
        ".git/modules/s/config",
        "[core]\n worktree = ../../../s\n hooksPath = ../hooks\n",
        "hooks/pre-commit",
    ),
    (
        "git .git/modules/a/t",
        ".git/modules/a/t/config",
        "[filter \"f\"]\n clean = sh tools/x\n",
        "tools/x",
    ),
    (
        "mkdir -p .git/worktrees/w w; echo ../.. > .git/worktrees/w/commondir; echo 'gitdir: ../.git/worktrees/w' > w/.git",
        ".git/worktrees/w/config.worktree",
        "[core]\n hooksPath = ../hooks\n",
        "hooks/pre-commit",
    ),
    ("git b", "b/config", "[core]\n hooksPath = WORKSPACE/hooks\n", "hooks/pre-commit"),
    ("git b", "b/config", "[include]\n path = ../tools/x\n", "tools/x"),
    ("git deep/in/b", "deep/in/b/config", "[alias]\n a = !../../../tools/x\n", "tools/x"),
];

/// Neither operations nor commands write there. Each kind of wall is tried with half of them.
fn is_protected(base: &Project, path: &str, n: usize, told: &str) {
    let apply = ["apply", "--session", ID, "-"];
    let before = fs::read_to_string(base.at("workspace").join(path)).ok();
    let run_of = with_home(base, &apply, &create(path, "evil\n"));
    assert_eq!(run_of.code, Some(3), "{told}: {run_of:?}");
    assert_eq!(base.waiting(ID)["opens"]["protected"], true, "{told}");
    assert_eq!(fs::read_to_string(base.at("workspace").join(path)).ok(), before);
    with_home(base, &["deny"], "").ok();
    // What else lies there is no secret of git's.
    with_home(base, &apply, &create("other", "x\n")).ok();
    assert!(base.exists("workspace/other"), "{told}");
    let sandbox = ["auto", "partial"][n % 2];
    if has_sandbox(sandbox) {
        let command = format!("mkdir -p '{path}'; rmdir '{path}'; echo evil > '{path}'");
        let config = ["--sandbox", sandbox];
        with_home(base, &[&apply[..], &["--again"], &config].concat(), &run(&command));
        let after = fs::read_to_string(base.at("workspace").join(path)).ok();
        assert_eq!(after, before, "{sandbox}: {told}");
    }
}

#[test]
fn what_gits_settings_name_is_protected() {
    for (n, (file, text, path)) in NAMED.into_iter().enumerate() {
        let base = with_settings(&[(file, text)]);
        is_protected(&base, path, n / 2, &format!("{file}: {text}"));
    }
}

#[test]
fn what_the_settings_of_other_repositories_name_is_protected() {
    for (n, (script, file, text, path)) in OTHERS.into_iter().enumerate() {
        let base = with_settings(&[]);
        base.sh(&format!(
            "cd workspace; git() {{ mkdir -p $1/objects $1/refs; echo 'ref: refs/heads/main' > $1/HEAD; }}; {script}"
        ));
        let root = base.path().canonicalize().unwrap().join("workspace");
        base.write(&format!("workspace/{file}"), text.replace("WORKSPACE", root.to_str().unwrap()));
        is_protected(&base, path, n, &format!("{file}: {text}"));
    }
}

#[test]
fn what_git_obeys_without_a_setting_is_protected_where_a_link_leads_there() {
    for (n, script) in [
        "mkdir -p .no-config; ln -s ../workspace/tools .no-config/git",
        "mkdir -p .no-config/git; ln -s ../../workspace/tools/attributes .no-config/git/attributes",
        "mkdir -p workspace/.git/info; ln -s ../../tools/attributes workspace/.git/info/attributes",
    ]
    .into_iter()
    .enumerate()
    {
        let base = with_settings(&[("workspace/tools/attributes", "old\n")]);
        base.sh(script);
        is_protected(&base, "tools/attributes", n, script);
    }
}

#[test]
fn a_folder_with_what_a_command_line_names_moves_only_if_the_person_agrees() {
    let text = "[alias]\n a = !cd tools && ./x\n b = !sh new.sh\n";
    for reply in [
        moved("tools", "t"),
        "[DELETE_FILE path=\"tools/x\"]\n".to_owned(),
        moved("tools/x", "t"),
        moved("more", "tools/more"),
        moved("other.sh", "new.sh"),
    ] {
        let base = with_settings(&[("workspace/.git/config", text)]);
        base.sh("cd workspace; mkdir -p more/tools; touch more/tools/x other.sh");
        with_home(&base, &["apply", "--session", ID, "-"], &reply).with_code(3);
        assert!(base.exists("workspace/tools/x"), "{reply}");
        with_home(&base, &["deny"], "").ok();
    }
    // Who agrees gets it, also after commands.
    let base = with_settings(&[("workspace/.git/config", text)]);
    let reply = run("true") + &create("new.sh", "x\n") + &run("true");
    with_home(&base, &["apply", "--session", ID, "-"], &reply).with_code(3);
    with_home(&base, &["approve"], "").ok();
    assert_eq!(base.read("workspace/new.sh"), "x\n");
    assert!(!base.exists("sessions/quarantine"));
}

#[test]
fn what_includes_of_includes_and_links_of_hooks_lead_to_is_protected() {
    let base = with_settings(&[
        ("home/.gitconfig", "[include]\n path = more\n"),
        ("home/more", "[include]\n path = more\n[core]\n hooksPath = WORKSPACE/hooks\n"),
    ]);
    std::os::unix::fs::symlink("../../tools/x", base.at("workspace/.git/hooks/pre-push")).unwrap();
    for (path, more) in [("hooks/pre-commit", ""), ("tools/x", "")] {
        let reply = create(path, "evil\n") + more;
        with_home(&base, &["apply", "--session", ID, "-"], &reply).with_code(3);
        with_home(&base, &["deny"], "").ok();
    }
    for reply in [
        moved("hooks", "h"),
        moved("hooks/pre-commit", "h"),
        "[DELETE_FILE path=\"tools/x\"]\n".to_owned(),
    ] {
        with_home(&base, &["apply", "--session", ID, "-"], &reply).with_code(3);
        with_home(&base, &["deny"], "").ok();
    }
    assert_eq!(base.read("workspace/hooks/pre-commit"), "old\n");
}

#[test]
fn settings_that_name_nothing_to_run_protect_nothing() {
    let base = with_settings(&[
        (
            "workspace/.git/config",
            "[core]\n worktree = WORKSPACE\n[remote \"o\"]\n url = WORKSPACE/tools\n fetch = +refs/heads/new:refs/remotes/o/new\n[branch \"new\"]\n merge = refs/heads/new\n[alias]\n c = commit\n l = !grep y tools\n",
        ),
        (
            "home/.gitconfig",
            "[safe]\n directory = WORKSPACE\n[user]\n name = tools\n[core]\n editor = vim\n",
        ),
    ]);
    for path in ["tools/x", "hooks/pre-commit", "new"] {
        with_home(&base, &["apply", "--session", ID, "-"], &create(path, "x\n")).ok();
        assert_eq!(base.read(&format!("workspace/{path}")), "x\n");
    }
}

/// What stands in the place of a file that git reads, as a script.
const ODD: [(&str, &str); 13] = [
    ("index", "mkfifo .git/index"),
    ("HEAD", "rm .git/HEAD; mkfifo .git/HEAD"),
    ("config", "rm .git/config; mkfifo .git/config"),
    ("a link", "rm .git/config; ln -s /dev/zero .git/config"),
    ("an include", "mkfifo fifo; printf '[include]\\n path = ../fifo\\n' >> .git/config"),
    (
        "the person's include",
        "mkfifo fifo; printf '[include]\\n path = '$PWD/fifo'\\n' > ../home/.gitconfig",
    ),
    ("attributes", "mkfifo fifo; printf '[core]\\n attributesFile = fifo\\n' >> .git/config"),
    ("exclude", "mkdir .git/info; mkfifo .git/info/exclude"),
    ("packed refs", "mkfifo .git/packed-refs"),
    (
        "a shared index",
        "printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\0link\\0\\0\\0\\24AAAAAAAAAAAAAAAAAAAA00000000000000000000' > .git/index; mkfifo .git/sharedindex.4141414141414141414141414141414141414141",
    ),
    ("sparse checkout", "mkdir .git/info; mkfifo .git/info/sparse-checkout"),
    ("alternates", "mkdir .git/objects/info; mkfifo .git/objects/info/alternates"),
    ("something new", "ln -s /dev/zero .git/shallow"),
];

#[test]
fn nothing_waits_for_what_is_no_file_in_the_place_of_one_of_gits() {
    for (name, script) in ODD {
        // The repository around the project, and the workspace's own.
        for folder in [".", "workspace"] {
            let base = Project::with_session();
            fs::create_dir_all(base.at("home")).unwrap();
            let git = "mkdir -p home; mkdir -p .git/objects .git/refs; echo 'ref: refs/heads/main' > .git/HEAD; printf '[core]\\n\\tbare = false\\n' > .git/config; ";
            base.sh(&format!(
                "cd {folder}; {git}{}",
                script.replace("../home", base.at("home").to_str().unwrap())
            ));
            for (arguments, input) in [
                (&["status", ID][..], ""),
                (&["doctor"], ""),
                (
                    &["apply", "--session", ID, "-"],
                    "[CREATE_FILE path=\"a/b\"]\nx\n[/CREATE_FILE]\n[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n",
                ),
                (&["new", "--no-watch", "A task"], ""),
                (&["status"], ""),
                (&["init"], ""),
            ] {
                let mut command = base.command(arguments);
                command.env("HOME", base.at("home")).stdout(Stdio::null()).stderr(Stdio::null());
                let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
                let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
                wait_until(&format!("{name} in {folder}: {arguments:?}"), || {
                    child.try_wait().unwrap().is_some()
                });
            }
            // Of a repository around the project that cannot be asked, the person has to say that it is theirs.
            assert_eq!(base.exists("workspace/a/b"), folder == "workspace", "{name}");
        }
    }
}

/// Makes a repository without `.git`, in a folder: a script, since a line with a function in it is asked about.
const MAKE: &str =
    "mkdir -p $1/objects $1/refs; cp conf $1/config; printf 'ref: refs/heads/main\\n' > $1/HEAD;";

/// What of a repository is left in a workspace; `mine` is the person's.
fn heads(base: &Project) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(base.at("workspace")).into_iter();
    let entries = entries.filter_entry(|entry| entry.file_name() != "mine").map(Result::unwrap);
    entries.map(walkdir::DirEntry::into_path).filter(|path| path.ends_with("HEAD")).collect()
}

#[test]
fn a_closed_folder_hides_no_repository() {
    let hidden = [
        "sh mk a/f; chmod 111 a",
        "sh mk b; chmod 311 b",
        "sh mk c/f; chmod 000 c",
        "sh mk d/e/f; chmod 111 d/e d",
        "mkdir -p e/f/.git; sh mk e/f/.git; chmod 111 e",
        "sh mk g/f; chmod 444 g",
        "sh mk before/f; chmod 111 before",
        "p=n; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do p=$p/n; done; sh mk $p; while [ $p != . ]; do chmod 100 $p; p=${p%/*}; [ $p = n ] && p=.; done; chmod 100 n",
    ];
    for scene in Scene::confined() {
        scene.base.write("workspace/mk", MAKE);
        scene.base.sh("cd workspace; touch conf; mkdir before; sh mk mine/f; chmod 000 mine");
        scene.hand_over();
        let told = scene.run(&hidden, &[]);
        let left = heads(&scene.base);
        assert!(left.is_empty(), "{}: {left:?} {told}", scene.name());
        scene.base.sh("chmod 700 workspace/mine");
        assert!(scene.base.exists("workspace/mine/f/HEAD"), "{}", scene.name());
        let number = scene.base.names("sessions/quarantine/a1b2c3d4_seq0001").len();
        assert_eq!(number, hidden.len(), "{}: {told}", scene.name());
    }
}

#[test]
fn rules_that_changed_during_the_turn_hide_no_repository() {
    if !has_sandbox("auto") {
        return;
    }
    for (script, hidden) in [
        ("true", "sh mk f/g; echo f >> .gitignore"),
        ("true", "sh mk f/.git; echo f > .ignore"),
        ("mkdir -p f/g", "sh mk f/g; printf '*' > f/.gitignore"),
        ("echo '/f/*\n!/f/g' > .gitignore", "sh mk f/g/h/i; echo /f > .gitignore"),
        ("true", "sh mk f/g/h; chmod 100 f/g; echo f >> .deaddropignore"),
    ] {
        let base =
            scene(&format!("touch conf; mkdir -p out/old; echo /out >> .gitignore; {script}"));
        base.write("workspace/mk", MAKE);
        let told = base.apply(&run(hidden));
        let left = heads(&base);
        assert!(left.is_empty(), "{hidden}: {left:?} {told}");
        assert!(base.exists("workspace/out/old"));
    }
    // What was ignored before stays the tools' own, also where rules change.
    let base = scene(&format!("touch conf; mk() {{ {MAKE} }}; mk out/f; echo /out > .gitignore"));
    let told = base.apply(&run("echo /more >> .gitignore; mkdir more"));
    assert!(base.exists("workspace/out/f/HEAD") && !base.exists("sessions/quarantine"), "{told}");
}
