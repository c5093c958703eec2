//! Steps of a host that are carried out in a guest: once for each key, whoever asks and whoever dies.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime};

use deaddrop::protocol::operations::Encoding;
use deaddrop::protocol::rpc::{ContentsOf, Fault, LookAt, Method, ReadOf, State, StepAsked};
use deaddrop::protocol::{
    Detail, Ending, FailureKind, Operation, Reading, RelPath, ShellCommand, Streams,
};
use deaddrop::rpc::{Given, Served, Service};

use crate::guest::{Guest, asked, carry_out, create, ended, result, run, said, step};
use crate::support::{set_time, wait_until};

/// What brings this program to the test below.
const CHILD: &[&str] =
    &["rpc_steps::a_process_that_carries_out_a_step", "--exact", "--ignored", "--nocapture"];
const OK: Ending = Ending::Exited(0);

#[test]
#[ignore = "other tests start it"]
fn a_process_that_carries_out_a_step() {
    carry_out();
}

/// A process that was killed while it carried out this step.
fn killed(guest: &Guest, asked: &StepAsked, when: impl Fn() -> bool) {
    let mut child = guest.process(CHILD, asked).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the command", when);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn fault(served: &Served, asked: StepAsked) -> Fault {
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
fn a_command_whose_process_died_is_lost_and_not_run_again() {
    let guest = Guest::new();
    let add = run("k", "echo x >> log; mkdir .vscode; echo {} > .vscode/x.json; sleep 600");
    let is_there = || guest.base.exists("workspace/.vscode/x.json") || guest.lines("log") == 1;
    killed(&guest, &add, is_there);
    let served = guest.served();
    // Whatever is asked for first: what the command left is not taken for that one's.
    let (ending, warnings) = ended(step(&served, run("other", "ls -A")).unwrap());
    assert_eq!((ending, warnings), (OK, vec![]));
    let (ending, warnings) = ended(result(&served, "k"));
    assert_eq!(ending, Ending::Lost);
    if guest.base.exists("state/quarantine/step_k") {
        assert!(warnings.iter().any(|told| told.contains("/quarantine/step_k/")), "{warnings:?}");
        assert!(!guest.base.exists("workspace/.vscode"));
    }
    assert_eq!(ended(step(&served, add).unwrap()), (Ending::Lost, warnings));
    assert_eq!(guest.lines("log"), 1);
    assert!(!guest.base.exists("state/steps/run_k"));
}

#[test]
fn what_a_lost_command_did_to_protected_names_is_put_right() {
    let guest = Guest::new();
    guest.base.write("workspace/.vscode/kept.json", "{}\n");
    // Nothing keeps a command from moving the whole folder but the wall, which some machines lack.
    let evil = "mkdir -p sub/.git/hooks; git init -q made 2>/dev/null || mkdir -p made/.git; touch ready; sleep 600";
    killed(&guest, &run("k", evil), || guest.base.exists("workspace/ready"));
    let made = guest.base.exists("workspace/made/.git");
    let served = guest.served();
    let (ending, warnings) = ended(result(&served, "k"));
    assert_eq!(ending, Ending::Lost);
    let guarded = match served.call(Method::About) {
        Ok(Given::About(about)) => about.guarded,
        other => panic!("{other:?}"),
    };
    if !guarded || !made {
        eprintln!("SKIPPED: what a command does to protected names; nothing guards them here");
        return;
    }
    assert!(!guest.base.exists("workspace/made/.git"), "{warnings:?}");
    assert!(warnings.iter().any(|told| told.contains("made/.git")), "{warnings:?}");
    assert_eq!(guest.base.read("workspace/.vscode/kept.json"), "{}\n");
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
fn files_are_made_changed_and_read() {
    let guest = Guest::new();
    let served = guest.served();
    let State::Done { detail, .. } = step(&served, create("c", "a/b.txt", "one\n")).unwrap() else {
        panic!()
    };
    let path = RelPath::parse("a/b.txt").unwrap();
    assert_eq!(detail, Detail::Created { path: path.clone(), bytes: 4, replaced: false });
    // Somebody changes it: what was done is not done again.
    guest.base.write("workspace/a/b.txt", "two\n");
    let again = step(&served, create("c", "a/b.txt", "one\n")).unwrap();
    assert_eq!(again, State::Done { detail, warnings: vec![] });
    assert_eq!(guest.base.read("workspace/a/b.txt"), "two\n");
    let read = Operation::Read { path: path.clone(), reading: Reading::Now(Encoding::Utf8) };
    let state = step(&served, asked("r", read.clone())).unwrap();
    let (content, encoding) = ("two\n".to_owned(), Encoding::Utf8);
    let detail = Detail::Read { path: path.clone(), content, encoding, size: 4 };
    assert_eq!(state, State::Done { detail, warnings: vec![] });
    assert_eq!(result(&served, "r"), State::Unknown);
    let small = StepAsked { read_limit: 3, ..asked("s", read) };
    let State::Done { detail: Detail::Failed(failure), .. } = step(&served, small).unwrap() else {
        panic!()
    };
    assert!(failure.reason.contains("up to 3 bytes"), "{failure:?}");
    step(&served, asked("d", Operation::Delete { path })).unwrap();
    assert!(!guest.base.exists("workspace/a/b.txt"));
}

/// The record of a step that was killed right after it was noted, or in the middle of that.
fn cut(guest: &Guest, key: &str, at: impl Fn(&[u8]) -> usize) {
    let path = guest.record(key);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..at(&bytes)]).unwrap();
}

fn first_line(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == b'\n').unwrap() + 1
}

#[test]
fn of_a_file_that_was_begun_the_disk_tells() {
    let guest = Guest::new();
    let served = guest.served();
    let make = || create("k", "a.txt", "one\n");
    let done = step(&served, make()).unwrap();
    // It was done.
    cut(&guest, "k", first_line);
    assert_eq!(result(&guest.served(), "k"), done);
    // It was not.
    cut(&guest, "k", first_line);
    fs::remove_file(guest.base.at("workspace/a.txt")).unwrap();
    assert_eq!(result(&guest.served(), "k"), State::Unknown);
    assert_eq!(step(&guest.served(), make()).unwrap(), done);
    assert_eq!(guest.base.read("workspace/a.txt"), "one\n");
    // Somebody made another of it, which is left alone.
    cut(&guest, "k", first_line);
    guest.base.write("workspace/a.txt", "theirs\n");
    for state in [result(&guest.served(), "k"), step(&guest.served(), make()).unwrap()] {
        let State::Done { detail: Detail::Failed(failure), .. } = state else { panic!() };
        assert!(failure.reason.contains("neither"), "{failure:?}");
    }
    assert_eq!(guest.base.read("workspace/a.txt"), "theirs\n");
}

#[test]
fn a_torn_record_is_told_from_a_damaged_one() {
    let guest = Guest::new();
    let add = || run("k", "echo x >> log");
    step(&guest.served(), add()).unwrap();
    let whole = fs::read(guest.record("k")).unwrap();
    let begun = first_line(&whole);
    // Every end of the second line: the command was begun, and its outcome is not known.
    for end in [begun, begun + 1, begun + 40, whole.len() - 1] {
        fs::write(guest.record("k"), &whole[..end]).unwrap();
        assert_eq!(ended(result(&guest.served(), "k")).0, Ending::Lost, "cut at {end}");
        assert_eq!(ended(step(&guest.served(), add()).unwrap()).0, Ending::Lost, "cut at {end}");
    }
    assert_eq!(guest.lines("log"), 1);
    // What is damaged, was once whole: nothing is done on top of it.
    for at in [3, begun / 2, begun + 50] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(guest.record("k"), bytes).unwrap();
        let fault = fault(&guest.served(), add());
        assert_eq!(fault.code, Fault::INTERNAL);
        assert!(fault.message.contains("step_k: it is damaged"), "{fault}");
    }
    assert_eq!(guest.lines("log"), 1);
    // A first line that was never whole: nothing was begun.
    let mut zeros = whole.clone();
    zeros[..20].fill(0);
    for (n, torn) in [&whole[..0], &whole[..1], &whole[..begun - 1], &zeros].iter().enumerate() {
        fs::write(guest.record("k"), torn).unwrap();
        assert_eq!(result(&guest.served(), "k"), State::Unknown);
        assert_eq!(ended(step(&guest.served(), add()).unwrap()).0, OK);
        assert_eq!(guest.lines("log"), n + 2);
    }
}

#[test]
fn a_key_is_of_one_operation_and_forgotten_when_settled() {
    let guest = Guest::new();
    let served = guest.served();
    let add = || run("k", "echo x >> log");
    step(&served, add()).unwrap();
    let wrong = fault(&served, run("k", "echo y >> log"));
    assert_eq!((wrong.code, guest.lines("log")), (Fault::PARAMS, 1));
    assert!(wrong.message.contains("another operation"), "{wrong}");
    for key in ["", "a/b", "../k", "ä", "k_1", &"k".repeat(65)] {
        assert_eq!(fault(&served, run(key, "true")).code, Fault::PARAMS, "{key}");
    }
    step(&served, run(&"k".repeat(64), "true")).unwrap();
    let later = Operation::Read { path: RelPath::parse("a").unwrap(), reading: Reading::Later };
    let (text, summary) = (String::new(), String::new());
    let message = Operation::Message { text };
    for operation in [later, message, Operation::Done { summary, if_ok: false }] {
        assert_eq!(fault(&served, asked("m", operation)).code, Fault::PARAMS);
    }
    // A step cannot settle itself.
    let settled = || vec!["k".to_owned()];
    step(&served, StepAsked { settled: settled(), ..add() }).unwrap();
    assert_eq!(guest.lines("log"), 1);
    step(&served, StepAsked { settled: settled(), ..run("next", "true") }).unwrap();
    assert_eq!(result(&served, "k"), State::Unknown);
    assert!(!guest.record("k").exists());
    step(&served, add()).unwrap();
    assert_eq!(guest.lines("log"), 2);
}

#[test]
fn what_is_old_is_forgotten_by_the_next_process() {
    let guest = Guest::new();
    let served = guest.served();
    for key in ["old", "new"] {
        step(&served, run(key, "true")).unwrap();
    }
    let days = |n: u64| SystemTime::now() - Duration::from_secs(n * 24 * 60 * 60);
    set_time(&guest.record("old"), days(91));
    set_time(&guest.record("new"), days(89));
    // Once in a process.
    step(&served, run("here", "true")).unwrap();
    assert!(guest.record("old").exists());
    step(&guest.served(), run("there", "true")).unwrap();
    assert!(!guest.record("old").exists());
    assert!(guest.record("new").exists());
}

#[test]
fn the_guests_own_policy_holds_as_far_as_nobody_need_be_asked() {
    let guest = Guest::new();
    guest.base.write("workspace/x/y", "");
    let served = guest.ruled("standard");
    let denied = |state: State| match state {
        State::Done { detail: Detail::Failed(failure), .. } => {
            assert_eq!(failure.kind, FailureKind::Denied, "{failure:?}");
            failure.reason
        }
        other => panic!("{other:?}"),
    };
    let told = denied(step(&served, run("rm", "rm -r x")).unwrap());
    assert!(told.contains("nobody can be asked there"), "{told}");
    // What opens names and repositories opens nothing else.
    let open = StepAsked { protected: true, repository: true, ..run("rm-2", "rm -r x") };
    denied(step(&served, open).unwrap());
    assert!(guest.base.exists("workspace/x/y"));
    let served = guest.ruled("workspace");
    denied(step(&served, create("p-1", ".vscode/x.json", "{}")).unwrap());
    let open = StepAsked { protected: true, ..create("p-2", ".vscode/x.json", "{}") };
    let state = step(&served, open).unwrap();
    assert!(matches!(&state, State::Done { detail: Detail::Created { .. }, .. }), "{state:?}");
    assert_eq!(guest.base.read("workspace/.vscode/x.json"), "{}");
    let Ok(Given::About(about)) = served.call(Method::About) else { panic!() };
    if !about.guarded {
        eprintln!("SKIPPED: what git may write; nothing keeps it from anything here");
        return;
    }
    let commit = "git commit --allow-empty -m x";
    let told = denied(step(&served, run("g-1", commit)).unwrap());
    assert!(told.contains("'git commit' writes to the repository"), "{told}");
    let open = |key, command| StepAsked { repository: true, ..run(key, command) };
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
    assert_eq!((fault.code, guest.lines("log")), (Fault::INTERNAL, 0));
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
    let Ok(Given::About(about)) = served.call(Method::About) else { panic!() };
    assert_eq!((about.version, &*about.protected), (1, &[".git".into(), ".vscode".into()][..]));
    assert!(about.shell.starts_with("/bin/sh -c") && about.root.ends_with("/workspace"));
    assert_eq!(about.confined, about.guarded);
    let Ok(Given::Walked(walked)) = served.call(Method::Walk) else { panic!() };
    let files: Vec<_> = walked.files.iter().map(|f| (&*f.0, f.1, f.2)).collect();
    assert_eq!(files, [(".vscode/x.json", 2, 'f'), ("a.bin", 2, 'f'), ("b.txt", 3, 'f')]);
    let operation = create("k", ".vscode/x.json", "").operation;
    let look = Method::Look(Box::new(LookAt { operation, standing: true }));
    let Ok(Given::Looked(looked)) = served.call(look) else { panic!() };
    assert!(looked.seen && looked.protected && looked.standing.is_some());
    assert_eq!((looked.size, &looked.real), (Some(2), &looked.place));
    let read = |path: &str, limit| {
        let path = RelPath::parse(path).unwrap();
        match served.call(Method::Read(ReadOf { path, limit })) {
            Ok(Given::Contents(contents)) => contents,
            other => panic!("{other:?}"),
        }
    };
    let path = |path: &str| RelPath::parse(path).unwrap();
    assert_eq!(read("b.txt", 2), ContentsOf::file(path("b.txt"), b"tw".to_vec(), 3));
    assert_eq!(read("a.bin", u64::MAX), ContentsOf::file(path("a.bin"), vec![0, 255], 2));
    assert!(matches!(read("none", 1), ContentsOf::Failed(_)));
}
