//! State that cannot be read fails closed, and is never opened through a link.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::scene::{Asked, NOBODY, Scene, Way};
use crate::support::{ID, PATIENCE, Project, Run, wait_until};

/// What nobody of deaddrop's may write to, or show.
const SECRET: &str = "what a link leads to";

/// What may stand where a file of deaddrop's own is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    Fifo,
    Link,
    Dangling,
    Circle,
    Socket,
}

const KINDS: [Kind; 6] =
    [Kind::Folder, Kind::Fifo, Kind::Link, Kind::Dangling, Kind::Circle, Kind::Socket];

impl Kind {
    /// Puts it in the place of a file; a link leads to what that file was, kept elsewhere.
    fn put(self, base: &Project, path: &Path) {
        let kept = base.at("kept");
        if path.exists() {
            fs::copy(path, &kept).unwrap();
            fs::remove_file(path).unwrap();
        } else {
            fs::write(&kept, SECRET).unwrap();
        }
        match self {
            Self::Folder => fs::create_dir(path).unwrap(),
            Self::Fifo => base.sh(&format!("mkfifo '{}'", path.display())),
            Self::Link => symlink(&kept, path).unwrap(),
            Self::Dangling => symlink(base.at("nothing"), path).unwrap(),
            Self::Circle => symlink(path, path).unwrap(),
            Self::Socket => {
                drop(std::os::unix::net::UnixListener::bind(path).unwrap());
            }
        }
    }
}

/// How a program ends, which must not wait for anybody.
#[track_caller]
fn ends(command: &mut Command, what: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::File::create(folder.path().join(name)).unwrap();
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{what}: it waits");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    Run { code: status.code(), stdout: read("out"), stderr: read("err") }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// A project that was used, and where that is noted.
fn used() -> (Project, std::path::PathBuf) {
    // What is noted is noted by the program alone.
    let base = Project::that_nobody_agrees_to();
    base.run(&["new", "--no-watch", "--id", ID, "A task"]).ok();
    let registry = base.state().join("deaddrop/bases");
    assert!(registry.is_file());
    (base, registry)
}

/// What begins something, goes on with it or tells of it, each with the list of projects.
const ATTEMPTS: [&[&str]; 7] = [
    &["new", "--no-watch", "Another task"],
    &["resume", "--no-watch"],
    &["apply", "--session", ID, "reply.txt"],
    &["status", ID],
    &["status"],
    &["rpc"],
    &["init", "other"],
];

#[test]
fn a_list_of_base_directories_that_cannot_be_read_stops_everything() {
    type Spoil = fn(&[u8]) -> Vec<u8>;
    let garbage: [(&str, Spoil); 6] = [
        ("garbage", |_| b"\x01nonsense".to_vec()),
        ("empty", |_| Vec::new()),
        ("cut", |bytes| bytes[..bytes.len() - 3].to_vec()),
        ("zeros", |bytes| vec![0; bytes.len()]),
        ("an unknown field", |bytes| [bytes, b"?x\0"].concat()),
        ("a relative path", |_| b"brelative\0".to_vec()),
    ];
    let kinds = KINDS.iter().map(|kind| (format!("{kind:?}"), Some(*kind), None));
    let spoilt = garbage.iter().map(|(name, spoil)| ((*name).to_owned(), None, Some(*spoil)));
    for (name, kind, spoil) in kinds.chain(spoilt) {
        let (base, registry) = used();
        base.write("reply.txt", "[CREATE_FILE path=\"made\"]\nx\n[/CREATE_FILE]\n");
        let good = fs::read(&registry).unwrap();
        match (kind, spoil) {
            (Some(kind), _) => kind.put(&base, &registry),
            (_, Some(spoil)) => fs::write(&registry, spoil(&good)).unwrap(),
            _ => {}
        }
        let before = fs::symlink_metadata(&registry).unwrap();
        for arguments in ATTEMPTS {
            let what = format!("{name}, {arguments:?}");
            let mut command = base.command(arguments);
            let run = ends(&mut command, &what).with_code(2);
            assert!(run.stderr.contains("deaddrop/bases"), "{what}: {run:?}");
        }
        // `doctor` tells, and nothing is begun anew.
        let run = ends(&mut base.command(&["doctor"]), &name).with_code(1);
        assert!(run.stdout.contains("deaddrop/bases"), "{name}: {run:?}");
        let now = fs::symlink_metadata(&registry).unwrap();
        assert_eq!((now.ino(), now.len()), (before.ino(), before.len()), "{name}");
        assert!(!base.exists("workspace/made") && !base.exists("other/deaddrop.toml"), "{name}");
        // The list is restored.
        base.sh(&format!("rm -rf '{}'", registry.display()));
        fs::write(&registry, good).unwrap();
        ends(&mut base.command(&["status", ID]), &name).ok();
    }
}

#[test]
fn the_persons_settings_are_no_link_into_a_workspace() {
    let base = Project::with_session();
    base.sh("mkdir other");
    base.run(&["-C", "other", "new", "--no-watch", "Another task"]).ok();
    // Another project's workspace counts, and links in the middle of the way do.
    for (what, target) in [
        ("own", base.at("workspace/dot")),
        ("other", base.at("other/workspace/dot")),
        ("linked", base.at("workspace/link/dot")),
    ] {
        let settings = base.at(&format!("{what}/deaddrop"));
        fs::create_dir_all(&settings).unwrap();
        base.sh("mkdir -p elsewhere; ln -sfn ../elsewhere workspace/link");
        fs::write(&target, "max_tokens = 20000\n").unwrap();
        symlink(&target, settings.join("config.toml")).unwrap();
        for arguments in [&["new", "--no-watch", "A task"][..], &["apply", "-"], &["resume"]] {
            let mut command = base.command(&[arguments, &["--json"]].concat());
            let run = Run::of(command.env("XDG_CONFIG_HOME", settings.parent().unwrap()), "");
            assert!(run.stderr.contains(r#""code":"invalid-setting""#), "{what}: {run:?}");
            run.with_code(2);
        }
        // A link to where no reply writes is the person's own matter.
        fs::remove_file(settings.join("config.toml")).unwrap();
        fs::write(base.at("mine.toml"), "max_tokens = 20000\n").unwrap();
        symlink(base.at("mine.toml"), settings.join("config.toml")).unwrap();
        let mut command = base.command(&["apply", "-"]);
        command.env("XDG_CONFIG_HOME", settings.parent().unwrap());
        Run::of(&mut command, format!("[MESSAGE]\n{what}\n[/MESSAGE]\n")).ok();
    }
}

#[test]
fn what_belongs_to_another_base_directory_stays_so_without_a_list() {
    let base = Project::that_nobody_agrees_to();
    base.sh("mkdir -p workspace/inner");
    base.run(&["-C", "workspace/inner", "new", "--no-watch", "Another task"]).ok();
    base.run(&["-C", ".", "new", "--no-watch", "--id", ID, "A task"]).ok();
    let registry = base.state().join("deaddrop/bases");
    fs::write(&registry, "garbage").unwrap();
    let file = "inner/approvals/made.json";
    base.write("reply.txt", format!("[CREATE_FILE path=\"{file}\"]\nx\n[/CREATE_FILE]\n"));
    // Also where somebody agrees to all that is found.
    base.run(&["-C", ".", "config", "allow"]).with_code(2);
    base.run(&["-C", ".", "apply", "--session", ID, "reply.txt"]).with_code(2);
    assert!(!base.exists(&format!("workspace/{file}")));
    assert_eq!(fs::read(&registry).unwrap(), b"garbage");
}

#[test]
fn a_list_that_may_not_be_read_stops_everything() {
    let Some(scene) = Scene::new(Way::OrdinaryUser) else { return };
    let base = &scene.base;
    let registry = base.state().join("deaddrop/bases");
    let run = |arguments: &[&str]| {
        // Without the notes that other tests may add before each run.
        let mut command = scene.command(&scene.program, arguments);
        fs::set_permissions(&registry, fs::Permissions::from_mode(0o000)).unwrap();
        ends(&mut command, "mode 000")
    };
    scene.agree();
    for arguments in [&["status", ID][..], &["resume", "--no-watch"]] {
        let told = run(arguments).with_code(2);
        assert!(told.stderr.contains("deaddrop/bases"), "{told:?}");
    }
}

#[test]
fn without_a_list_it_is_a_first_start() {
    let base = Project::that_nobody_agrees_to();
    let registry = base.state().join("deaddrop/bases");
    assert!(!registry.exists());
    base.run(&["status", ID]).with_code(5);
    base.run(&["init", "a"]).ok();
    assert!(!registry.exists());
    base.run(&["-C", "a", "new", "--no-watch", "A task"]).ok();
    assert!(registry.is_file());
    assert_eq!(mode(&registry), 0o600);
}

#[test]
fn deaddrops_own_files_are_regular_ones() {
    let journal = "sessions/journal".to_owned();
    let session = format!("sessions/{ID}.json");
    let log = format!("sessions/{ID}.log");
    let outbox = format!("outbox/{ID}_seq0002.txt");
    let next = format!("outbox/{ID}_seq0003.txt");
    for name in [&journal, &session, &log, &outbox, &next, "sessions/.lock", "sessions/run.lock"] {
        for kind in KINDS {
            let base = Project::with_session();
            base.apply("[RUN_COMMAND]\necho x > made\n[/RUN_COMMAND]\n");
            base.write("reply.txt", "[RUN_COMMAND]\ncat made > again\n[/RUN_COMMAND]\n");
            base.write("target", SECRET);
            let path = base.at(name);
            kind.put(&base, &path);
            base.write("kept", SECRET);
            let arguments: [&[&str]; 7] = [
                &["status", ID],
                &["status"],
                &["log"],
                &["show"],
                &["resume", "--no-watch"],
                &["apply", "--session", ID, "reply.txt"],
                &["undo"],
            ];
            for arguments in arguments {
                let what = format!("{name} as {kind:?}, {arguments:?}");
                let run = ends(&mut base.command(arguments), &what);
                assert!(run.code.is_some_and(|code| code < 100), "{what}: {run:?}");
                let told = run.stdout + &run.stderr;
                assert!(!told.contains(SECRET), "{what}: {told}");
            }
            assert_eq!(base.read("kept"), SECRET, "{name} as {kind:?}");
            assert!(!base.exists("nothing"), "{name} as {kind:?}");
        }
    }
}

#[test]
fn nothing_in_the_inbox_or_among_the_approvals_is_waited_for() {
    let base = Project::new();
    base.begin_asking(ID);
    base.sh("mkdir -p workspace/kept");
    for name in ["inbox/a.txt", "inbox/b.json", "approvals/a.json", "approvals/b.txt"] {
        base.sh(&format!("mkfifo {name}"));
    }
    base.sh("ln -s ../kept inbox/link.txt; ln -s ../kept approvals/link.json; echo n > kept");
    let daemon = base.serve(&["watch"]);
    base.write("inbox/r.txt", "[RUN_COMMAND]\nrm -r kept\n[/RUN_COMMAND]\n");
    wait_until("the question", || base.waiting(ID).is_object());
    // Others come while it waits.
    base.sh("mkfifo approvals/c.json; mkfifo inbox/c.txt");
    let operation = base.waiting(ID)["operation"].as_str().unwrap().to_owned();
    base.run(&["approve", &operation]).ok();
    base.wait_for_outbox(2);
    assert!(!base.exists("workspace/kept"));
    daemon.stop();
}

#[test]
fn sessions_are_the_persons_alone_whatever_the_umask() {
    for umask in ["000", "002", "022", "077"] {
        let base = Project::new();
        base.sh("mkdir workspace; echo x > workspace/a");
        let run = |arguments: &str| {
            let mut command = base.command(&[]);
            let program = command.get_program().to_owned();
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("umask {umask}; exec \"$0\" {arguments}")]).arg(program);
            shell.current_dir(base.path());
            for (name, value) in command.env("NO_COLOR", "1").get_envs() {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
            Run::of(&mut shell, "").ok()
        };
        run(&format!("new --no-watch --id {ID} 'A task'"));
        base.write(
            "reply.txt",
            "[CREATE_FILE path=\"a\"]\ny\n[/CREATE_FILE]\n[RUN_COMMAND]\ncat a\n[/RUN_COMMAND]\n",
        );
        run(&format!("apply --session {ID} reply.txt"));
        run("undo");
        assert_private(&base, umask);
    }
}

/// Asserts that nobody else gets at anything of the sessions.
#[track_caller]
fn assert_private(base: &Project, what: &str) {
    assert_eq!(mode(&base.at("sessions")), 0o700, "{what}");
    for entry in fs::read_dir(base.at("sessions")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            assert_eq!(mode(&entry.path()) & 0o077, 0, "{what}: {entry:?}");
        }
    }
    for name in ["journal", ".lock", &format!("{ID}.json"), &format!("{ID}.log")] {
        assert_eq!(mode(&base.at("sessions").join(name)), 0o600, "{what}: {name}");
    }
}

#[test]
fn what_was_wider_is_narrowed_at_the_next_start() {
    let base = Project::with_session();
    base.apply("[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n");
    base.sh("chmod -R a+rwX sessions");
    base.write("target", SECRET);
    fs::set_permissions(base.at("target"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink(base.at("target"), base.at("sessions/link")).unwrap();
    base.run(&["resume", "--no-watch"]).ok();
    assert_private(&base, "narrowed");
    assert_eq!(mode(&base.at("target")), 0o644);
}

#[test]
fn commands_of_another_user_still_reach_what_is_theirs() {
    for asked in [Asked::Auto, Asked::Bwrap, Asked::Partial] {
        let Some(scene) = Scene::with(Way::AsItIs, asked) else { continue };
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root serves what is somebody else's");
            return;
        }
        let base = &scene.base;
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(base.at("workspace"), Some(NOBODY), Some(NOBODY)).unwrap();
        scene.run(
            &["id -u > user && echo x > \"$HOME/x\" && echo x > \"$TMPDIR/x\" && echo x > well"],
            &[],
        );
        assert_eq!(base.read("workspace/user").trim(), NOBODY.to_string(), "{}", scene.name());
        assert!(base.exists("workspace/well"), "{}", scene.name());
        let sessions = base.at("sessions");
        assert_eq!(mode(&sessions) & 0o066, 0, "{}", scene.name());
        let journal = sessions.join("journal");
        let told = Command::new("setpriv")
            .args([&format!("--reuid={NOBODY}"), "--clear-groups", "cat"])
            .arg(journal)
            .output()
            .unwrap();
        assert!(!told.status.success(), "{}: {told:?}", scene.name());
    }
}
