//! Steps of a host that are carried out in a guest: once for each key, whoever asks and whoever dies.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use deaddrop::protocol::EntryKind::File;
use deaddrop::protocol::jsonrpc::{
    Done, Method, PathFactsParams, ReadParams, ReadResult, RpcError, State, StepParams, VERSION,
};
use deaddrop::protocol::operations::Encoding;
use deaddrop::protocol::{
    Detail, Ending, FailureKind, Operation, Part, Reading, RelPath, ShellCommand, Streams,
};
use deaddrop::rpc::{Given, Served, Service};

use crate::guests::steps::{Guest, asked, carry_out, create, ended, result, run, said, step};
use crate::support::{has_sandbox, wait_until};

/// What brings this program to the test below.
pub const CHILD: &[&str] =
    &["rpc::steps::a_process_that_carries_out_a_step", "--exact", "--ignored", "--nocapture"];
pub const OK: Ending = Ending::Exited(0);

#[test]
#[ignore = "other tests start it"]
fn a_process_that_carries_out_a_step() {
    carry_out();
}

pub fn fault(served: &Served, asked: StepParams) -> RpcError {
    step(served, asked).unwrap_err()
}

#[test]
fn a_step_is_carried_out_once() {
    let guest = Guest::new();
    let served = guest.served();
    let add = || run("k-1", "echo said; echo x >> log");
    assert_eq!(result(&served, "k-1"), State::Unknown);
    let first = step(&served, add()).unwrap();
    assert_eq!(ended(first.clone()), (OK, vec![]));
    assert_eq!(step(&served, add()).unwrap(), first);
    assert_eq!(result(&guest.served(), "k-1"), first);
    assert_eq!(step(&guest.served(), add()).unwrap(), first);
    assert_eq!(guest.lines("log"), 1);
    step(&served, run("k-2", "echo x >> log")).unwrap();
    assert_eq!(guest.lines("log"), 2);
}

#[test]
fn threads_and_processes_that_ask_at_once_are_told_the_same() {
    let guest = Guest::new();
    let (one, other) = (guest.served(), guest.served());
    let add = || run("k", "echo $$; sleep 0.2; echo x >> log");
    let processes = [(); 2].map(|()| {
        guest.process(CHILD, &add()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    });
    let mut states: Vec<State> = thread::scope(|scope| {
        let threads = [&one, &one, &other].map(|served| scope.spawn(|| step(served, add())));
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    states.extend(processes.map(|child| said(&child.wait_with_output().unwrap().stdout).unwrap()));
    assert_eq!(guest.lines("log"), 1);
    assert_eq!(ended(states[0].clone()).0, OK);
    assert!(states.iter().all(|state| *state == states[0]), "{states:#?}");
}

#[test]
fn while_it_runs_it_is_running_and_can_be_interrupted() {
    let guest = Guest::new();
    let (here, elsewhere) = (guest.served(), guest.served());
    let long = || run("k", "touch ready; sleep 600");
    thread::scope(|scope| {
        let first = scope.spawn(|| step(&here, long()).unwrap());
        wait_until("the command", || guest.base.exists("workspace/ready"));
        assert_eq!(result(&here, "k"), State::Running);
        assert_eq!(result(&elsewhere, "k"), State::Running);
        // Neither another step nor another process's is ended.
        here.interrupt("other");
        elsewhere.interrupt("k");
        let mut settles = run("next", "true");
        settles.settled = vec!["k".to_owned(), "../k".to_owned(), "never".to_owned()];
        assert_eq!(ended(step(&elsewhere, settles).unwrap()).0, OK);
        assert_eq!(result(&here, "k"), State::Running);
        here.interrupt("k");
        let state = first.join().unwrap();
        assert_eq!(ended(state.clone()).0, Ending::Interrupted);
        assert_eq!(step(&elsewhere, long()).unwrap(), state);
    });
    // What is over is not interrupted in advance.
    here.interrupt("later");
    assert_eq!(ended(step(&here, run("later", "true")).unwrap()).0, OK);
}

#[test]
fn files_are_made_and_go() {
    let guest = Guest::new();
    let served = guest.served();
    let State::Done(Done { detail, .. }) = step(&served, create("c", "a/b.txt", "one\n")).unwrap()
    else {
        panic!()
    };
    let path = RelPath::parse("a/b.txt").unwrap();
    assert_eq!(detail, Detail::Created { path: path.clone(), bytes: 4, replaced: false });
    // Somebody changes it: what was done is not done again.
    guest.base.write("workspace/a/b.txt", "two\n");
    let again = step(&served, create("c", "a/b.txt", "one\n")).unwrap();
    assert_eq!(again, State::Done(Done { detail, warnings: vec![] }));
    assert_eq!(guest.base.read("workspace/a/b.txt"), "two\n");
    step(&served, asked("d", Operation::Delete { path })).unwrap();
    assert!(!guest.base.exists("workspace/a/b.txt"));
}

#[test]
fn a_key_is_of_one_operation_and_forgotten_when_settled() {
    let guest = Guest::new();
    let served = guest.served();
    let add = || run("k", "echo x >> log");
    step(&served, add()).unwrap();
    let wrong = fault(&served, run("k", "echo y >> log"));
    assert_eq!((wrong.code, guest.lines("log")), (RpcError::PARAMS, 1));
    assert!(wrong.message.contains("another operation"), "{wrong}");
    for key in ["", "a/b", "../k", "ä", "k_1", &"k".repeat(65)] {
        assert_eq!(fault(&served, run(key, "true")).code, RpcError::PARAMS, "{key}");
    }
    step(&served, run(&"k".repeat(64), "true")).unwrap();
    let read = |reading| Operation::Read { path: RelPath::parse("a").unwrap(), reading };
    let (now, later) = (read(Reading::Now(Encoding::Utf8)), read(Reading::default()));
    let (text, summary) = (String::new(), String::new());
    let message = Operation::Message { text };
    for operation in [now, later, message, Operation::Done { summary, if_ok: false }] {
        assert_eq!(fault(&served, asked("m", operation)).code, RpcError::PARAMS);
    }
    // A step cannot settle itself.
    let settled = || vec!["k".to_owned()];
    step(&served, StepParams { settled: settled(), ..add() }).unwrap();
    assert_eq!(guest.lines("log"), 1);
    step(&served, StepParams { settled: settled(), ..run("next", "true") }).unwrap();
    assert_eq!(result(&served, "k"), State::Unknown);
    assert!(!guest.record("k").exists());
    step(&served, add()).unwrap();
    assert_eq!(guest.lines("log"), 2);
}

#[test]
fn the_guests_own_policy_holds_as_far_as_nobody_need_be_asked() {
    let guest = Guest::new();
    guest.base.write("workspace/x/y", "");
    let served = guest.ruled("standard");
    let denied = |state: State| match state {
        State::Done(Done { detail: Detail::Failed(failure), .. }) => {
            assert_eq!(failure.kind, FailureKind::Denied, "{failure:?}");
            failure.reason
        }
        other => panic!("{other:?}"),
    };
    let told = denied(step(&served, run("rm", "rm -r x")).unwrap());
    assert!(told.contains("nobody can be asked"), "{told}");
    // What opens names and repositories opens nothing else.
    let open = StepParams { protected: true, repository: true, ..run("rm-2", "rm -r x") };
    denied(step(&served, open).unwrap());
    assert!(guest.base.exists("workspace/x/y"));
    let served = guest.ruled("workspace");
    denied(step(&served, create("p-1", ".vscode/x.json", "{}")).unwrap());
    let open = StepParams { protected: true, ..create("p-2", ".vscode/x.json", "{}") };
    let state = step(&served, open).unwrap();
    assert!(
        matches!(&state, State::Done(Done { detail: Detail::Created { .. }, .. })),
        "{state:?}"
    );
    assert_eq!(guest.base.read("workspace/.vscode/x.json"), "{}");
    let Ok(Given::About(about)) =
        served.call(Method::About(deaddrop::protocol::jsonrpc::AboutParams { tools: true }))
    else {
        panic!()
    };
    assert_eq!(about.guarded, has_sandbox("auto"), "it is what confines commands that guards them");
    if !about.guarded {
        eprintln!("SKIPPED: what git may write; nothing keeps it from anything here");
        return;
    }
    let commit = "git commit --allow-empty -m x";
    let told = denied(step(&served, run("g-1", commit)).unwrap());
    assert!(told.contains("'git commit' writes to the repository"), "{told}");
    let open = |key, command| StepParams { repository: true, ..run(key, command) };
    // Whether there is a git, or a repository, is another matter.
    assert!(matches!(ended(step(&served, open("g-2", commit)).unwrap()).0, Ending::Exited(_)));
    let more = open("g-3", "rm -r x; git commit -m x");
    denied(step(&guest.ruled("standard"), more).unwrap());
    assert!(guest.base.exists("workspace/x/y"));
}

#[test]
fn a_command_gets_the_time_that_it_asks_for() {
    let guest = Guest::new();
    let limit = Duration::from_millis(300);
    let command = "sleep 600".to_owned();
    let command = ShellCommand {
        command,
        timeout: Some(limit),
        streams: Streams::Apart,
        ..Default::default()
    };
    let state = step(&guest.served(), asked("k", Operation::Run(command))).unwrap();
    assert_eq!(ended(state).0, Ending::TimedOut(limit));
}

#[test]
fn what_cannot_be_noted_is_not_done() {
    let guest = Guest::new();
    // A file where the folder is to be.
    guest.base.write("state/steps", "");
    let served = guest.served();
    let fault = fault(&served, run("k", "echo x >> log"));
    assert_eq!((fault.code, guest.lines("log")), (RpcError::LATER, 0));
    assert!(fault.message.contains("step_k"), "{fault}");
    fs::remove_file(guest.base.at("state/steps")).unwrap();
    assert_eq!(ended(step(&served, run("k", "echo x >> log")).unwrap()).0, OK);
}

#[test]
fn a_guest_tells_what_it_is_and_what_it_holds() {
    let guest = Guest::new();
    guest.base.write("workspace/b.txt", "two");
    guest.base.write("workspace/.vscode/x.json", "{}");
    fs::File::create(guest.base.at("workspace/a.bin")).unwrap().write_all(&[0, 255]).unwrap();
    let served = guest.served();
    let Ok(Given::About(about)) =
        served.call(Method::About(deaddrop::protocol::jsonrpc::AboutParams { tools: true }))
    else {
        panic!()
    };
    assert_eq!(
        (about.version, &*about.protected),
        (VERSION, &[".git".into(), ".vscode".into()][..])
    );
    assert!(about.shell.starts_with("/bin/sh -c") && about.root.ends_with("/workspace"));
    assert_eq!(about.confined, about.guarded);
    let Ok(Given::Walked(walked)) = served.call(Method::Walk {}) else { panic!() };
    let files: Vec<_> = walked.files.iter().map(|f| (&*f.0, f.1, f.2)).collect();
    assert_eq!(files, [(".vscode/x.json", 2, File), ("a.bin", 2, File), ("b.txt", 3, File)]);
    let operation = create("k", ".vscode/x.json", "").operation;
    let look = Method::PathFacts(Box::new(PathFactsParams { operation, with_digest: true }));
    let Ok(Given::Looked(looked)) = served.call(look) else { panic!() };
    let look = looked.facts.unwrap();
    assert!(look.protected && looked.content_digest.is_some());
    assert_eq!((look.size, look.real), (Some(2), looked.resolved_path));
    let read = |path: &str, limit| {
        let path = RelPath::parse(path).unwrap();
        match served.call(Method::Read(ReadParams { path, limit, part: Part::default() })) {
            Ok(Given::Contents(contents)) => contents,
            other => panic!("{other:?}"),
        }
    };
    let path = |path: &str| RelPath::parse(path).unwrap();
    assert_eq!(read("b.txt", 2), ReadResult::file(path("b.txt"), b"tw".to_vec(), 3, None));
    assert_eq!(read("a.bin", u64::MAX), ReadResult::file(path("a.bin"), vec![0, 255], 2, None));
    assert!(matches!(read("none", 1), ReadResult::Failed(_)));
}
