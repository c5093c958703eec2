//! Commands in a folder, files read in their place, and what is told of a path beforehand.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use deaddrop::executor::{Executor, LocalExecutor, PathFacts, PreviewExecutor};
use deaddrop::policy::Grant;
use deaddrop::protocol::operations::Encoding;
use deaddrop::protocol::{
    Change, Detail, Digest, Ending, Existing, FailureKind, Operation, Reading, RelPath,
    ShellCommand, TextOrBytes,
};
use deaddrop::runner::Runner;
use deaddrop::settings::{Sandbox, SandboxMode};
use deaddrop::workspace::Workspace;

use crate::support::{Project, has_sandbox, program};

struct Scene {
    base: Project,
    workspace: Workspace,
    runner: Runner,
    own: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let base = Project::new();
        for folder in ["workspace/sub/deep", "workspace/state/x", "workspace/.git", "outside"] {
            fs::create_dir_all(base.at(folder)).unwrap();
        }
        base.write("workspace/sub/file", "text\n");
        base.write("outside/secret", "hunter2");
        let at = |name: &str| base.at("workspace").join(name);
        for (to, name) in [
            ("sub", "link"),
            ("../outside", "out"),
            (".", "root"),
            ("sub/deep/../..", "around"),
            ("state", "own"),
            ("sub/file", "to-file"),
            ("nowhere", "broken"),
            (".git/config", "to-config"),
        ] {
            symlink(to, at(name)).unwrap();
        }
        let root = base.at("workspace").canonicalize().unwrap();
        let state = [root.join("state")];
        let workspace = Workspace::open(&root, &state, &[".git".to_owned()]).unwrap();
        let mode = if has_sandbox("auto") { SandboxMode::Auto } else { SandboxMode::Off };
        let settings = Sandbox { mode, ..Sandbox::default() };
        let runner = Runner::new(program().to_owned(), root, settings);
        let own = base.at("own");
        Self { base, workspace, runner, own }
    }

    /// What comes of these in one turn.
    fn perform<'a>(
        &'a self,
        operations: &[Operation],
        alter: impl FnOnce(&mut LocalExecutor<'a>),
    ) -> Vec<Detail> {
        let mut here =
            LocalExecutor::new(&self.workspace, &self.runner, &self.own, false, &|| false);
        alter(&mut here);
        let perform =
            |operation| here.perform(operation, Grant::default(), &mut |_| Ok(())).unwrap();
        operations.iter().map(perform).collect()
    }
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn read(at: &str, encoding: Encoding) -> Operation {
    Operation::Read { path: path(at), reading: Reading::Now(encoding) }
}

/// Why it failed.
#[track_caller]
fn reason(detail: &Detail) -> (FailureKind, &str) {
    match detail {
        Detail::Failed(failure) => (failure.kind, &failure.reason),
        _ => panic!("{detail:?}"),
    }
}

#[test]
fn a_command_runs_in_a_folder_of_the_workspace_and_in_no_other() {
    let scene = Scene::new();
    let run = |folder: &str| {
        let cwd = Some(path(folder));
        Operation::Run(ShellCommand { cwd, ..ShellCommand::new("pwd") })
    };
    let root = scene.workspace.path().to_str().unwrap();
    for (folder, stands) in [
        ("sub", "/sub"),
        ("sub/deep", "/sub/deep"),
        ("link/deep", "/sub/deep"),
        ("link", "/sub"),
        ("root", ""),
        ("around", ""),
        (".git", "/.git"),
    ] {
        let details = scene.perform(&[run(folder)], |_| {});
        let Detail::Ran(execution) = &details[0] else { panic!("{folder}: {details:?}") };
        assert_eq!(
            execution.output.captures()[0].head,
            format!("{root}{stands}\n"),
            "{execution:?}"
        );
    }
    for (folder, kind, why) in [
        ("x", FailureKind::Execution, "No folder 'x' in the workspace"),
        ("sub/x/y", FailureKind::Execution, "No folder 'sub/x/y' in the workspace"),
        ("broken", FailureKind::Execution, "No folder 'broken' in the workspace"),
        ("sub/file", FailureKind::Execution, "'sub/file' is not a folder"),
        ("to-file", FailureKind::Execution, "'to-file' is not a folder"),
        ("sub/file/x", FailureKind::Execution, "'file' is a file, not a folder"),
        ("out", FailureKind::Rejected, "Path is outside workspace"),
        ("out/x", FailureKind::Rejected, "Path is outside workspace"),
        ("state", FailureKind::Rejected, "deaddrop's own state"),
        ("state/x", FailureKind::Rejected, "deaddrop's own state"),
        ("own", FailureKind::Rejected, "deaddrop's own state"),
    ] {
        let details = scene.perform(&[run(folder)], |_| {});
        let (found, said) = reason(&details[0]);
        assert!(found == kind && said.contains(why), "{folder}: {said}");
    }
}

#[test]
fn an_operations_place_is_told_with_its_links_resolved() {
    let scene = Scene::new();
    let here = LocalExecutor::new(&scene.workspace, &scene.runner, &scene.own, false, &|| false);
    let mut preview = PreviewExecutor::new(&scene.workspace);
    let told = |operation: &Operation, executor: &dyn Executor| {
        executor.resolved_path(operation).unwrap().map(|place| place.to_string())
    };
    let run = |cwd| Operation::Run(ShellCommand { cwd, ..ShellCommand::new("pwd") });
    for (at, leads) in [
        ("sub/deep", Some("sub/deep")),
        ("link/deep", Some("sub/deep")),
        ("link", Some("sub")),
        ("link/new", Some("sub/new")),
        ("to-file", Some("sub/file")),
        ("root", None),
        ("out/x", None),
        ("state/x", None),
    ] {
        for operation in [run(Some(path(at))), read(&format!("{at}/x"), Encoding::Utf8)] {
            let leads = match &operation {
                Operation::Run(_) => leads.map(str::to_owned),
                // A file, or below one.
                _ if at == "to-file" => None,
                _ if at == "root" => Some("x".to_owned()),
                _ => leads.map(|leads| format!("{leads}/x")),
            };
            assert_eq!(told(&operation, &here), leads, "{operation:?}");
            assert_eq!(told(&operation, &preview), leads, "{operation:?}");
        }
    }
    let delete = Operation::Delete { path: path("to-file") };
    assert_eq!(told(&delete, &here).as_deref(), Some("to-file"));
    assert_eq!(told(&run(None), &here), None);
    assert_eq!(told(&Operation::Message { text: String::new() }, &preview), None);
    // A link that would be gone leads nowhere.
    let gone = Operation::Delete { path: path("link") };
    preview.perform(&gone, Grant::default(), &mut |_| Ok(())).unwrap();
    assert_eq!(told(&run(Some(path("link/deep"))), &preview).as_deref(), Some("link/deep"));
}

#[test]
fn what_a_command_asks_for_is_given_to_it() {
    let scene = Scene::new();
    let asks = |timeout| Operation::Run(ShellCommand { timeout, ..ShellCommand::new("sleep 30") });
    let short = Duration::from_millis(200);
    let operations = [asks(Some(short)), asks(None), asks(Some(Duration::MAX))];
    for (n, detail) in scene
        .perform(&operations, |here| {
            here.timeout = &|asked: Option<Duration>| {
                let most = Duration::from_millis(200);
                Some(asked.unwrap_or(most).min(most))
            };
        })
        .iter()
        .enumerate()
    {
        let Detail::Ran(execution) = detail else { panic!("{detail:?}") };
        assert_eq!(execution.ending, Ending::TimedOut(short), "{n}");
    }
    let env = |name: &str, value: &str| {
        let env = [(name.to_owned(), value.to_owned())].into();
        Operation::Run(ShellCommand { env, ..ShellCommand::new("printf %s \"$A\"") })
    };
    let details = scene.perform(&[env("A", "x y"), env("A=B", "x"), env("A", "\0")], |_| {});
    let Detail::Ran(execution) = &details[0] else { panic!("{details:?}") };
    assert_eq!(execution.output.captures()[0].head, "x y");
    for detail in &details[1..] {
        assert_eq!(reason(detail).0, FailureKind::Execution);
    }
}

#[test]
fn a_file_is_read_in_its_place_whole_or_not_at_all() {
    let scene = Scene::new();
    scene.base.write("workspace/binary", [0xff, 0, b'a']);
    scene.base.write("workspace/nine", "123456789");
    let now = |at| read(at, Encoding::Utf8);
    let create = Operation::Create {
        path: path("nine"),
        content: TextOrBytes::from("é"),
        existing: Existing::Replace,
    };
    let given = |at: &str, content: &str, encoding, size| Detail::Read {
        path: path(at),
        content: content.to_owned(),
        encoding,
        size,
    };
    let operations = [
        now("link/file"),
        read("binary", Encoding::Base64),
        now("binary"),
        now("nine"),
        create,
        now("nine"),
        now("sub"),
        now("x"),
        now("out/secret"),
        now("sub/file"),
    ];
    let limit = |read_limit, read_room| {
        move |here: &mut LocalExecutor| (here.read_limit, here.read_room) = (read_limit, read_room)
    };
    let details = scene.perform(&operations, limit(8, 12));
    assert_eq!(details[0], given("sub/file", "text\n", Encoding::Utf8, 5));
    assert_eq!(details[1], given("binary", "/wBh", Encoding::Base64, 3));
    let said = |n: usize| reason(&details[n]).1;
    assert_eq!(
        said(2),
        "'binary' is not UTF-8 text (3 bytes): ask for it with \"encoding\": \"base64\""
    );
    assert!(
        said(3).starts_with("'nine' is 9 bytes long, and only files up to 8 bytes"),
        "{}",
        said(3)
    );
    assert!(said(3).contains("its first line alone is longer"), "{}", said(3));
    assert_eq!(details[5], given("nine", "é", Encoding::Utf8, 2));
    assert!(said(6).contains("is a folder") && said(7).contains("not found"));
    assert_eq!(reason(&details[8]).0, FailureKind::Rejected);
    assert!(said(9).contains("may give 2 bytes more"), "{}", said(9));
    // Exactly as much as may be.
    let details = scene.perform(&[now("sub/file")], limit(5, 5));
    assert_eq!(details[0], given("sub/file", "text\n", Encoding::Utf8, 5));
    // A file that claims more than there is memory.
    scene.base.sh("truncate -s 8T workspace/big");
    let details = scene.perform(&[now("big")], |_| {});
    assert!(reason(&details[0]).1.contains("'big' is 8796093022208 bytes long"));
}

#[test]
fn what_is_told_of_a_path_is_so_here_and_in_a_preview() {
    let scene = Scene::new();
    let mut here =
        LocalExecutor::new(&scene.workspace, &scene.runner, &scene.own, false, &|| false);
    let mut preview = PreviewExecutor::new(&scene.workspace);
    let executors: [&mut dyn Executor; 2] = [&mut preview, &mut here];
    for executor in executors {
        for (at, real, size, protected) in [
            ("link/file", Some("sub/file"), Some(5), false),
            ("new/x", Some("new/x"), None, false),
            ("sub", Some("sub"), None, false),
            (".git/config", Some(".git/config"), None, true),
            ("to-config", Some(".git/config"), None, true),
            ("sub/.GIT/x", Some("sub/.GIT/x"), None, true),
            ("out/secret", None, None, false),
            ("state/x", None, None, false),
        ] {
            let look = Some(PathFacts { real: real.map(path), size, protected, moved: None });
            assert_eq!(executor.path_facts(&read(at, Encoding::Utf8)).unwrap(), look, "{at}");
        }
        let change = Change::Lines { start: 1, end: 1, with: "new\n".to_owned(), seen: None };
        let edit = Operation::Edit { path: path("link/file"), change };
        assert_eq!(executor.content_digest(&edit).unwrap(), Some(Digest::of(b"text\n")));
        executor.perform(&edit, Grant::default(), &mut |_| Ok(())).unwrap();
        assert_eq!(executor.content_digest(&edit).unwrap(), Some(Digest::of(b"new\n")));
        assert_eq!(executor.path_facts(&edit).unwrap().unwrap().size, Some(4));
        let delete = |at: &str| Operation::Delete { path: path(at) };
        assert_eq!(
            executor.content_digest(&delete("to-file")).unwrap(),
            Some(Digest::of_link(b"sub/file"))
        );
        assert_eq!(executor.content_digest(&delete("x")).unwrap(), None);
        assert_eq!(
            executor.content_digest(&Operation::Run(ShellCommand::new("true"))).unwrap(),
            None
        );
        executor.perform(&delete("sub/file"), Grant::default(), &mut |_| Ok(())).unwrap();
        assert_eq!(executor.content_digest(&edit).unwrap(), None);
        let read =
            executor
                .perform(&read("root/sub/file", Encoding::Utf8), Grant::default(), &mut |_| Ok(()));
        assert!(reason(&read.unwrap()).1.contains("not found"));
    }
}
