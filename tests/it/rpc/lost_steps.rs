//! Steps whose process died: what they came to is told by the disk, or nobody knows; and what is known
//! of steps is kept as long as somebody may ask.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime};

use deaddrop::protocol::jsonrpc::{Done, Method, ResultParams, RpcError, State, StepParams};
use deaddrop::protocol::{Detail, Ending};
use deaddrop::rpc::{Given, Served, Service};

use crate::guests::steps::{Guest, create, ended, result, run, step};
use crate::rpc::steps::{CHILD, OK, fault};
use crate::support::{has_sandbox, set_time, wait_until};

/// A process that was killed while it carried out this step.
fn killed(guest: &Guest, asked: &StepParams, when: impl Fn() -> bool) {
    killed_at(guest, std::slice::from_ref(asked), when);
}

/// The same of several steps at once.
fn killed_at(guest: &Guest, asked: &[StepParams], when: impl Fn() -> bool) {
    let mut child = guest.process_of(CHILD, asked).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the command", when);
    child.kill().unwrap();
    child.wait().unwrap();
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
        assert!(
            warnings.iter().any(|told| told.text.contains("/quarantine/step_k/")),
            "{warnings:?}"
        );
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
    if !is_guarded(&served) {
        return;
    }
    assert!(made, "nothing was there to be put right");
    assert!(!guest.base.exists("workspace/made/.git"), "{warnings:?}");
    assert!(warnings.iter().any(|told| told.text.contains("made/.git")), "{warnings:?}");
    assert_eq!(guest.base.read("workspace/.vscode/kept.json"), "{}\n");
}

/// Whether protected names are guarded here; says so if not.
fn is_guarded(served: &Served) -> bool {
    let guarded = match served
        .call(Method::About(deaddrop::protocol::jsonrpc::AboutParams { tools: true }))
    {
        Ok(Given::About(about)) => about.guarded,
        other => panic!("{other:?}"),
    };
    assert_eq!(guarded, has_sandbox("auto"), "it is what confines commands that guards them");
    if !guarded {
        eprintln!("SKIPPED: what a command does to protected names; nothing guards them here");
    }
    guarded
}

/// Whether it is noted what a step came to.
fn is_done(guest: &Guest, key: &str) -> bool {
    fs::read_to_string(guest.record(key)).is_ok_and(|text| text.matches('\n').count() == 2)
}

#[test]
fn what_a_lost_command_did_is_put_right_before_any_other_runs() {
    let guest = Guest::new();
    let evil = run("k", "mkdir -p made/.git; touch ready; sleep 600");
    killed(&guest, &evil, || guest.base.exists("workspace/ready"));
    if !is_guarded(&guest.served()) {
        return;
    }
    // Nothing of the protocol was asked yet.
    assert!(!guest.base.exists("workspace/made/.git"));
    let (_, warnings) = ended(result(&guest.served(), "k"));
    assert!(warnings.iter().any(|told| told.text.contains("made/.git")), "{warnings:?}");
}

#[test]
fn what_a_second_lost_command_did_is_put_right_too() {
    let guest = Guest::new();
    let first = run("k-1", "touch one; while test ! -e go; do sleep 0.02; done");
    let evil = "touch two; while test ! -e now; do sleep 0.02; done; mkdir -p made/.git; touch ready; sleep 600";
    killed_at(&guest, &[first, run("k-2", evil)], || {
        for (seen, next) in
            [(guest.base.exists("workspace/two"), "go"), (is_done(&guest, "k-1"), "now")]
        {
            if seen {
                guest.base.write(&format!("workspace/{next}"), "");
            }
        }
        guest.base.exists("workspace/ready")
    });
    let served = guest.served();
    assert_eq!(ended(result(&served, "k-1")).0, OK);
    let (ending, warnings) = ended(result(&served, "k-2"));
    assert_eq!(ending, Ending::Lost);
    if is_guarded(&served) {
        assert!(!guest.base.exists("workspace/made/.git"), "{warnings:?}");
        assert!(warnings.iter().any(|told| told.text.contains("made/.git")), "{warnings:?}");
    }
}

#[test]
fn protected_names_are_not_changed_while_another_command_runs() {
    let guest = Guest::new();
    let served = guest.served();
    if !is_guarded(&served) {
        return;
    }
    let approved = |key| StepParams { protected: true, ..create(key, ".vscode/x.json", "{}") };
    let long = run("k-1", "touch ready; while test ! -e go; do sleep 0.02; done");
    thread::scope(|scope| {
        let long = scope.spawn(|| step(&served, long).unwrap());
        wait_until("the command", || guest.base.exists("workspace/ready"));
        let refused = step(&served, approved("k-2")).unwrap();
        guest.base.write("workspace/go", "");
        let State::Done(Done { detail: Detail::Failed(failure), .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(failure.reason.contains("send it again"), "{failure:?}");
        assert!(!guest.base.exists("workspace/.vscode"));
        assert_eq!(ended(long.join().unwrap()), (OK, vec![]));
    });
    step(&served, approved("k-3")).unwrap();
    assert_eq!(guest.base.read("workspace/.vscode/x.json"), "{}");
}

#[test]
fn a_command_that_outlives_its_process_is_running_until_it_ends() {
    let guest = Guest::new();
    let add = || run("k", "echo x >> log; sleep 600");
    killed(&guest, &add(), || guest.lines("log") == 1);
    // As its helper does that is not dead yet.
    let held = fs::File::open(guest.base.at("state/steps/run_k")).unwrap();
    wait_until("its end", || held.try_lock().is_ok());
    let served = guest.served();
    assert_eq!(result(&served, "k"), State::Running);
    thread::scope(|scope| {
        let asked = scope.spawn(|| fault(&served, add()));
        // Whoever wants to stop does not wait for it.
        wait_until("the interrupt", || {
            served.interrupt("k");
            asked.is_finished()
        });
        let fault = asked.join().unwrap();
        assert_eq!(fault.code, RpcError::LATER, "{fault}");
    });
    drop(held);
    // A process that another test starts at this moment holds what is open here until it is another
    // program.
    wait_until("the end of all who hold it", || result(&served, "k") != State::Running);
    assert_eq!(ended(result(&served, "k")).0, Ending::Lost);
    assert_eq!(guest.lines("log"), 1);
}

#[test]
fn who_knows_of_other_steps_is_told_so() {
    let guest = Guest::new();
    let state = |served: &Served| match served
        .call(Method::About(deaddrop::protocol::jsonrpc::AboutParams { tools: true }))
    {
        Ok(Given::About(about)) => about.state,
        other => panic!("{other:?}"),
    };
    let known = state(&guest.served());
    assert_eq!((known.len(), &state(&guest.served())), (32, &known));
    let add =
        |state: &str| StepParams { state: Some(state.to_owned()), ..run("k", "echo x >> log") };
    let served = guest.served();
    assert_eq!(fault(&served, add("other")).code, RpcError::OTHER);
    assert_eq!(guest.lines("log"), 0);
    step(&served, add(&known)).unwrap();
    // A torn one was told to nobody.
    guest.base.write("state/steps/id", &known[..7]);
    let other = state(&guest.served());
    assert!(other.len() == 32 && other != known);
    assert_eq!(fault(&served, add(&known)).code, RpcError::OTHER);
    let asked = ResultParams { key: "k".to_owned(), state: Some(known) };
    assert_eq!(served.call(Method::Result(asked)).unwrap_err().code, RpcError::OTHER);
    assert_eq!(guest.lines("log"), 1);
}

#[test]
fn what_is_old_and_asked_about_is_not_forgotten() {
    let guest = Guest::new();
    let done = run("done", "echo x >> log");
    let told = step(&guest.served(), done.clone()).unwrap();
    killed(&guest, &run("lost", "echo x >> log; sleep 600"), || guest.lines("log") == 2);
    for key in ["done", "lost"] {
        set_time(&guest.record(key), SystemTime::now() - Duration::from_hours(91 * 24));
    }
    assert_eq!(result(&guest.served(), "done"), told);
    assert_eq!(step(&guest.served(), done).unwrap(), told);
    // What has no end is known to nobody else.
    assert_eq!(ended(result(&guest.served(), "lost")).0, Ending::Lost);
    assert_eq!(guest.lines("log"), 2);
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
        let State::Done(Done { detail: Detail::Failed(failure), .. }) = state else { panic!() };
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
    // What is damaged, was once whole: nothing is done on top of it, whether or not the next line is torn.
    for (at, end) in
        [3, begun / 2, begun + 50].map(|at| (at, whole.len())).into_iter().chain([(3, begun + 40)])
    {
        let mut bytes = whole[..end].to_vec();
        bytes[at] ^= 1;
        fs::write(guest.record("k"), bytes).unwrap();
        let fault = fault(&guest.served(), add());
        assert_eq!(fault.code, RpcError::LATER);
        assert!(fault.message.contains("step_k: it is damaged"), "{fault}");
    }
    assert_eq!(guest.lines("log"), 1);
    // A first line that was never whole: nothing was begun.
    let zeros = vec![0; whole.len()];
    for (n, torn) in [&whole[..0], &whole[..1], &whole[..begun - 1], &zeros[..]].iter().enumerate()
    {
        fs::write(guest.record("k"), torn).unwrap();
        assert_eq!(result(&guest.served(), "k"), State::Unknown);
        assert_eq!(ended(step(&guest.served(), add()).unwrap()).0, OK);
        assert_eq!(guest.lines("log"), n + 2);
    }
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
