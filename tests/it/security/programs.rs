//! No program, module, configuration or link that replies or commands can write is used with the person's rights.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use deaddrop::Space;

use crate::support::file_writer::{put, write_program};
use crate::support::{
    ID, Project, Run, has_full_sandbox, has_git, has_sandbox, program, wait_until,
};
use crate::tmux::Tmux;

/// All that deaddrop asks for a version or starts, but the programs that people name.
const NAMES: [&str; 16] = [
    "python3",
    "pip",
    "pytest",
    "node",
    "npm",
    "cargo",
    "java",
    "make",
    "git",
    "bwrap",
    "sh",
    "notify-send",
    "xdg-open",
    "systemctl",
    "journalctl",
    "tmux",
];

/// A project whose workspace lies where only the person can write.
struct Scene {
    base: Project,
    /// Canonical.
    workspace: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let base = Project::new();
        let workspace = base.programs().canonicalize().unwrap().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let scene = Self { base, workspace };
        scene.sets("");
        scene
    }

    fn sets(&self, more: &str) {
        let workspace = self.workspace.display();
        self.base.write(
            "deaddrop.toml",
            format!("workspace_dir = \"{workspace}\"\nnotify = \"desktop\"\n{more}"),
        );
    }

    /// What tells that a planted program has run with the person's rights, or changed the workspace.
    fn canaries(&self) -> [PathBuf; 2] {
        [self.base.at("canary"), self.workspace.join("canary")]
    }

    /// The text of a shell script that leaves them.
    fn canary(&self) -> String {
        let [outside, inside] = self.canaries();
        let (outside, inside) = (outside.display(), inside.display());
        format!("#!/bin/sh\necho \"$0 $*\" >> '{outside}'\necho \"$0 $*\" >> '{inside}'\nexit 1\n")
    }

    /// The same in Python.
    fn module(&self) -> String {
        let write = |path: &Path| {
            let path = path.to_str().unwrap();
            format!("    open({path:?}, 'a').write(__file__)\n")
        };
        let tries =
            self.canaries().map(|path| format!("try:\n{}except OSError: pass\n", write(&path)));
        tries.concat()
    }

    /// Plants programs of all names in this folder.
    fn plants(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for name in NAMES {
            write_program(&folder.join(name), self.canary());
        }
    }

    #[track_caller]
    fn nothing_ran(&self, what: &str) {
        for canary in self.canaries() {
            let ran = fs::read_to_string(&canary).unwrap_or_default();
            assert!(ran.is_empty(), "{what}: {ran}");
        }
    }

    fn command(&self, arguments: &[&str], environment: &[(&str, String)]) -> Command {
        let mut command = self.base.command(arguments);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Does all that starts programs, and what comes before the person has agreed to anything.
    fn does_everything(&self, what: &str, environment: &[(&str, String)]) -> Vec<Run> {
        let _ = fs::remove_dir_all(self.base.at("sessions"));
        let _ = fs::remove_dir_all(self.base.at("outbox"));
        let mut runs = Vec::new();
        let mut does = |arguments: &[&str], input: &str| {
            runs.push(Run::of(&mut self.command(arguments, environment), input));
            self.nothing_ran(&format!("{what}: {arguments:?}"));
        };
        does(&["status", ID], "");
        does(&["new", "--no-watch", "--id", ID, "A task"], "");
        does(&["status", ID], "");
        does(&["doctor"], "");
        fs::create_dir_all(self.base.at("inbox")).unwrap();
        self.base.write("inbox/r.txt", "[MESSAGE]\nHello\n[/MESSAGE]\n");
        does(&["resume", "--no-watch"], "");
        does(&["show", "--copy"], "");
        does(&["apply", "--clipboard"], "");
        does(&["show", "--open"], "");
        does(&["generate", "systemd-unit"], "");
        let line =
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"about\",\"params\":{\"tools\":true}}\n";
        does(&["rpc", "--root", "."], line);
        let project = self.base.at("project");
        let _ = fs::remove_dir_all(&project);
        fs::create_dir_all(project.join(".git")).unwrap();
        does(&["init", "project"], "");
        does(&["-C", "project", "config", "show"], "");
        // A start that asks for consent.
        self.base.write("asks/deaddrop.toml", "sandbox = \"off\"\n[guest]\ncommand = [\"sh\"]\n");
        fs::create_dir_all(self.base.at("asks/.git")).unwrap();
        does(&["-C", "asks", "new", "--no-watch", "A task"], "");
        does(&["-C", "asks", "status"], "");
        does(&["-C", "asks", "doctor"], "");
        runs
    }

    /// `PATH` with a folder first; displays that need a program.
    fn with_path(&self, first: &str) -> Vec<(&'static str, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        vec![
            ("PATH", format!("{first}:{path}")),
            ("DISPLAY", ":7654".to_owned()),
            ("WAYLAND_DISPLAY", self.base.at("wayland-none").display().to_string()),
            ("TMUX", "/nowhere,1,0".to_owned()),
            ("TERM", "xterm".to_owned()),
        ]
    }
}

#[test]
fn no_program_that_replies_commands_or_others_can_write_is_started() {
    let scene = Scene::new();
    let (workspace, trusted) = (scene.workspace.clone(), scene.base.programs().to_owned());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let at = |path: &str| {
        scene.plants(&workspace.join(path));
        text(&workspace.join(path))
    };
    let mut places = vec![at(".venv/bin"), at("node_modules/.bin"), at("deep/er/bin")];
    // The folder above the project is the current one.
    scene.plants(&scene.base.at("here"));
    places.extend([".".to_owned(), "here".to_owned(), String::new()]);
    scene.plants(scene.base.path());
    for name in NAMES {
        fs::remove_file(scene.base.at(name)).unwrap();
    }
    // Links into the workspace: a folder, one on the way, each program, and one that only passes through it.
    symlink(workspace.join(".venv/bin"), trusted.join("folder")).unwrap();
    symlink(&workspace, trusted.join("way")).unwrap();
    for folder in ["links", "through"] {
        fs::create_dir(trusted.join(folder)).unwrap();
    }
    symlink("/bin/sh", workspace.join("sh-of-the-system")).unwrap();
    for name in NAMES {
        symlink(workspace.join(".venv/bin").join(name), trusted.join("links").join(name)).unwrap();
        symlink(workspace.join("sh-of-the-system"), trusted.join("through").join(name)).unwrap();
    }
    places.extend(
        ["folder", "way/.venv/bin", "links", "through"].map(|name| text(&trusted.join(name))),
    );
    // Where everybody can write, also below it, and a file that everybody can write.
    scene.plants(&trusted.join("open/below"));
    scene.plants(&trusted.join("files"));
    scene.plants(&trusted.join("sticky"));
    for (path, mode) in [("open", 0o777), ("sticky", 0o1777)] {
        fs::set_permissions(trusted.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    for name in NAMES {
        let file = trusted.join("files").join(name);
        fs::set_permissions(file, fs::Permissions::from_mode(0o777)).unwrap();
    }
    places.extend(["open/below", "files", "sticky"].map(|name| text(&trusted.join(name))));
    let own = tempfile::tempdir_in("/tmp").unwrap();
    scene.plants(own.path());
    places.push(text(own.path()));
    for place in places {
        let runs = scene.does_everything(&place, &scene.with_path(&place));
        assert_eq!(runs[1].code, Some(0), "{place}: {:?}", runs[1]);
    }
}

#[test]
fn no_program_of_a_folder_that_commands_may_write_is_started() {
    let scene = Scene::new();
    let shared = scene.base.programs().join("shared");
    scene.plants(&shared.join("bin"));
    scene.sets(&format!("sandbox.writable = [\"{}\"]\n", shared.display()));

    scene.does_everything("shared", &scene.with_path(&shared.join("bin").display().to_string()));
}

#[test]
fn programs_that_only_the_person_can_write_are_started() {
    let scene = Scene::new();
    let bin = scene.base.programs().join("bin");
    let log = scene.base.at("log");
    for name in ["notify-send", "xdg-open", "git"] {
        fs::create_dir_all(&bin).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"{name} $PWD ${{PYTHONPATH-}}${{LD_PRELOAD-}}${{GIT_DIR-}}${{BASH_ENV-}}${{NODE_OPTIONS-}}${{MY_KEY-}}|\" >> '{}'\ncat > /dev/null\n",
            log.display()
        );
        write_program(&bin.join(name), script);
    }
    let mut environment = scene.with_path(&bin.display().to_string());
    environment.retain(|(name, _)| *name != "WAYLAND_DISPLAY");
    for name in ["PYTHONPATH", "GIT_DIR", "BASH_ENV", "NODE_OPTIONS", "MY_KEY"] {
        environment.push((name, "/leaked".to_owned()));
    }
    scene.does_everything("trusted", &environment);
    for name in ["notify-send", "xdg-open", "git"] {
        let told = format!("{name} / |");
        wait_until(&told, || fs::read_to_string(&log).unwrap_or_default().contains(&told));
    }
    let log = fs::read_to_string(&log).unwrap();
    assert!(!log.contains("leaked"), "{log}");
}

#[test]
fn no_module_is_imported_from_where_replies_or_others_write() {
    let scene = Scene::new();
    let module = scene.module();
    let temporary = scene.base.at("temporary");
    let site = scene.workspace.join(".venv/lib/python3.11/site-packages");
    let folders = [&temporary, &scene.workspace, &site, &scene.base.path().to_owned()];
    for folder in folders {
        fs::create_dir_all(folder).unwrap();
        for name in
            ["pip.py", "pytest.py", "sitecustomize.py", "usercustomize.py", "os.py", "runpy.py"]
        {
            fs::write(folder.join(name), &module).unwrap();
        }
    }
    let line = format!("import sys; exec({module:?})\n");
    fs::write(site.join("planted.pth"), line).unwrap();
    let of = |path: &Path| path.display().to_string();
    let venv = scene.workspace.join(".venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\n").unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    if let Some(python) = found.find(|python| python.is_absolute() && python.is_file()) {
        symlink(python, venv.join("bin/python3")).unwrap();
    }
    let way = |variables: &[(&'static str, String)]| variables.to_vec();
    for environment in [
        way(&[("TMPDIR", of(&temporary))]),
        way(&[("PYTHONPATH", of(&scene.workspace))]),
        way(&[("PYTHONPATH", ".".to_owned())]),
        way(&[("PYTHONUSERBASE", of(&venv)), ("PYTHONHOME", of(&venv))]),
        way(&[("PYTHONSTARTUP", of(&temporary.join("pip.py")))]),
        way(&[("NODE_OPTIONS", format!("--require {}/x.js", of(&scene.workspace)))]),
        way(&[("PERL5OPT", "-Mx".to_owned()), ("PERL5LIB", of(&scene.workspace))]),
        way(&[("VIRTUAL_ENV", of(&venv)), ("PATH", format!("{}/bin:{path}", of(&venv)))]),
    ] {
        let what = format!("{environment:?}");
        scene.does_everything(&what, &environment);
    }
}

#[test]
fn versions_are_asked_for_in_the_sandbox_and_nowhere_else() {
    if !has_full_sandbox() {
        return;
    }
    let scene = Scene::new();
    let tools = scene.workspace.join("bin");
    let [outside, inside] = scene.canaries();
    for name in ["node", "make", "ruby"] {
        let script = format!(
            "#!/bin/sh\n(: > '{}')\n(: > '{}')\necho {name} 7.6.5\n",
            outside.display(),
            inside.display()
        );
        fs::create_dir_all(&tools).unwrap();
        write_program(&tools.join(name), script);
    }
    let environment = scene.with_path(&tools.display().to_string());
    for (mode, version) in
        [("auto", " 7.6.5"), ("bwrap", " 7.6.5"), ("partial", " 7.6.5"), ("off", "")]
    {
        if mode != "off" && !has_sandbox(mode) {
            continue;
        }
        let arguments = ["new", "--no-watch", "--sandbox", mode, "A task"];
        let run = Run::of(&mut scene.command(&arguments, &environment), "").ok();
        scene.nothing_ran(mode);
        let outbox = scene.base.read(run.stdout.trim());
        let line = outbox.lines().find(|line| line.starts_with("  Tools: ")).unwrap();
        let named: Vec<&str> = line["  Tools: ".len()..].split(", ").collect();
        for name in ["node", "make", "ruby"] {
            assert!(named.contains(&&*format!("{name}{version}")), "{mode}: {line}");
        }
    }
}

#[test]
fn git_starts_nothing_that_a_repository_or_the_environment_names() {
    if !has_git() {
        return;
    }
    let scene = Scene::new();
    let base = &scene.base;
    base.program("evil", scene.canary());
    let evil = base.at("evil").display().to_string();
    base.sh(
        "mkdir hooks project; git init -q project; echo x > project/file; git -C project add file",
    );
    for hook in ["post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"] {
        base.program(&format!("hooks/{hook}"), scene.canary());
        base.program(&format!("project/.git/hooks/{hook}"), scene.canary());
    }
    base.program("commands/git-ls-files", scene.canary());
    base.program("commands/git-rev-parse", scene.canary());
    let hooks = base.at("hooks").display().to_string();
    let config = format!(
        "[core]\n\tfsmonitor = {evil}\n\thooksPath = {hooks}\n\tpager = {evil}\n\teditor = {evil}\n\tsshCommand = {evil}\n\taskPass = {evil}\n\talternateRefsCommand = {evil}\n[diff]\n\texternal = {evil}\n[pager]\n\tls-files = {evil}\n[alias]\n\tls-files = !{evil}\n[filter \"x\"]\n\tclean = {evil}\n\tprocess = {evil}\n\trequired = true\n[diff \"x\"]\n\ttextconv = {evil}\n[credential]\n\thelper = !{evil}\n"
    );
    base.write("more", &config);
    base.write("project/.gitattributes", "* filter=x diff=x\n");
    let agreed = base.read("project/.git/config");
    let settings = [config, format!("[include]\n\tpath = {}\n", base.at("more").display())];
    let [commands, more, git] =
        ["commands", "more", "project/.git"].map(|path| base.at(path).display().to_string());
    let environments: Vec<Vec<(&str, &str)>> = vec![
        vec![],
        vec![("GIT_EXTERNAL_DIFF", &evil), ("GIT_PAGER", &evil), ("PAGER", &evil)],
        vec![("GIT_EXEC_PATH", &commands), ("GIT_TRACE", &evil), ("GIT_EDITOR", &evil)],
        vec![
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_0", &evil),
        ],
        vec![("GIT_CONFIG_GLOBAL", &more), ("GIT_SSH_COMMAND", &evil)],
        vec![("GIT_DIR", &git), ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='/evil'")],
    ];
    for (setting, environment) in
        settings.iter().flat_map(|s| environments.iter().map(move |e| (s, e)))
    {
        base.write("project/.git/config", format!("{agreed}{setting}"));
        let environment: Vec<(&str, String)> =
            environment.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        for arguments in [
            &["init", "project"][..],
            &["-C", "project", "status"],
            &["-C", "project", "doctor"],
            &["-C", "project", "new", "--no-watch", "A task"],
            &["-C", "project", "resume", "--no-watch"],
        ] {
            let run = Run::of(&mut scene.command(arguments, &environment), "");
            scene
                .nothing_ran(&format!("{arguments:?} with {environment:?} and {setting}: {run:?}"));
        }
        base.sh("rm -rf project/.deaddrop project/deaddrop.toml");
    }
    assert_eq!(base.read("evil"), scene.canary(), "no trace was written there");
}

#[test]
fn an_editor_from_the_workspace_is_not_started() {
    let scene = Scene::new();
    let base = &scene.base;
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    let Some(tmux) = Tmux::start(base, 120) else { return };
    let bin = scene.workspace.join("bin");
    fs::create_dir(&bin).unwrap();
    write_program(&bin.join("my-editor"), scene.canary());
    symlink(bin.join("my-editor"), base.programs().join("linked")).unwrap();
    base.installs("good", &format!("echo \"$MINE $*\" > '{}'", base.at("opened").display()));
    let (bin, trusted) = (bin.display(), base.programs().display());
    for (n, editor) in [
        "my-editor".to_owned(),
        "my-editor --wait".to_owned(),
        format!("{bin}/my-editor -x"),
        format!("'{bin}/my-editor' -x"),
        format!("\"{bin}/my-editor\""),
        format!("{trusted}/linked"),
        "$(my-editor)".to_owned(),
        "A=1 my-editor".to_owned(),
        "`my-editor`".to_owned(),
        ";my-editor".to_owned(),
        // Programs of the person's that start others by name.
        "env my-editor".to_owned(),
        "nice my-editor -x".to_owned(),
        "sh -c my-editor".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        base.write("editor", editor);
        tmux.types(&format!(
            "PATH='{bin}':\"$PATH\" EDITOR=\"$(cat editor)\" deaddrop show --open; echo $? > ended{n}"
        ));
        let ended = base.at(&format!("ended{n}"));
        wait_until(editor, || fs::read_to_string(&ended).is_ok_and(|text| text == "1\n"));
        scene.nothing_ran(editor);
    }
    tmux.types(&format!("MINE=kept EDITOR='{trusted}/good --wait' deaddrop show --open"));
    wait_until("the editor", || {
        fs::read_to_string(base.at("opened")).is_ok_and(|text| text.starts_with("kept --wait /"))
    });
}

#[test]
fn a_program_that_speaks_for_a_guest_is_not_taken_from_the_workspace() {
    let scene = Scene::new();
    let bin = scene.workspace.join("bin");
    fs::create_dir(&bin).unwrap();
    write_program(&bin.join("my-ssh"), scene.canary());
    let trusted = scene.base.programs();
    symlink(bin.join("my-ssh"), trusted.join("linked")).unwrap();
    let environment = scene.with_path(&bin.display().to_string());
    let [full, linked] = [bin.join("my-ssh"), trusted.join("linked")];
    for command in [
        "my-ssh",
        "workspace/bin/my-ssh",
        full.to_str().unwrap(),
        linked.to_str().unwrap(),
        "env\", \"my-ssh",
        "nice\", \"my-ssh",
        "sh\", \"-c\", \"exec my-ssh",
    ] {
        scene.sets(&format!("[guest]\ncommand = [\"{command}\", \"box\"]\n"));

        for arguments in [&["doctor"][..], &["new", "--no-watch", "A task"]] {
            let run = Run::of(&mut scene.command(arguments, &environment), "");
            assert_ne!(run.code, Some(0), "{command}: {run:?}");
            scene.nothing_ran(command);
        }
    }
    // One of the person's is, with their environment.
    scene
        .base
        .installs("my-ssh", &format!("echo \"$MINE $*\" > '{}'", scene.base.at("ran").display()));
    scene.sets("[guest]\ncommand = [\"my-ssh\", \"box\"]\n");
    let mut command = scene.command(&["doctor"], &environment);

    let path = scene.base.path_with_programs();
    Run::of(command.env("PATH", format!("{}:{path}", bin.display())).env("MINE", "kept"), "");
    assert_eq!(scene.base.read("ran"), "kept box\n");
    scene.nothing_ran("my-ssh");
}

#[test]
fn the_program_that_runs_is_the_one_that_was_started() {
    for mode in ["auto", "bwrap", "partial"] {
        if !has_sandbox(mode) {
            continue;
        }
        let scene = Scene::new();
        let base = &scene.base;
        base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
        let own = scene.workspace.join("target/release/deaddrop");
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        put("program", program(), &own);
        fs::write(scene.workspace.join("evil"), scene.canary()).unwrap();
        let replaces = "chmod 755 evil; mv evil target/release/deaddrop; echo replaced";
        let reply = [
            "[RUN_COMMAND]\n",
            replaces,
            "\n[/RUN_COMMAND]\n[RUN_COMMAND]\necho after; id -u\n[/RUN_COMMAND]\n",
        ];
        base.write("inbox/1.txt", reply.concat());
        let as_usual = base.command(&[]);
        let mut command = Command::new(&own);
        command.args(["resume", "--no-watch", "--sandbox", mode]).current_dir(base.path());
        crate::support::wrapper::with_environment(&mut command, &as_usual);
        let run = Run::of(&mut command, "");
        scene.nothing_ran(mode);
        assert_eq!(fs::read_to_string(&own).unwrap(), scene.canary(), "{mode}: {run:?}");
        let outbox = base.outbox(2);
        assert!(outbox.contains("replaced") && outbox.contains("after"), "{mode}: {outbox}");
    }
}

#[test]
fn a_program_in_the_workspace_is_made_no_service() {
    let scene = Scene::new();
    let own = scene.workspace.join("deaddrop");
    put("program", program(), &own);
    scene.base.installs("systemctl", "exit 0");
    let as_usual = scene.base.command(&[]);
    let mut command = Command::new(&own);
    command.args(["generate", "systemd-unit"]).current_dir(scene.base.path());
    crate::support::wrapper::with_environment(&mut command, &as_usual);
    let run = Run::of(command.env("PATH", scene.base.path_with_programs()), "").with_code(2);
    assert!(run.stderr.contains("replies and commands can write"), "{run:?}");
    assert!(scene.base.names(".no-config").is_empty());
}

#[test]
fn a_library_leaves_its_host_no_subreaper() {
    if !has_sandbox("auto") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let space = Space::open(folder.path(), program()).unwrap();
    let mut space = space.with_policy("permissive").unwrap();
    let message = r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "echo it runs"}]}"#;
    let run = space.run(message).unwrap();
    assert_eq!(run.events[0].stdout.as_deref(), Some("it runs\n"), "{run:?}");
    assert_eq!(rustix::process::child_subreaper().unwrap(), None);
}
