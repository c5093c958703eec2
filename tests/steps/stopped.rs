//! Where a process is stopped that carries out a step, and what must have come of it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use deaddrop::protocol::jsonrpc::{Done, State, StepParams};
use deaddrop::protocol::{Detail, Ending};

use crate::guest::{Guest, create, result, run, said, step};
use crate::trace::{self, Point};

/// All trials, by name.
pub(crate) const ALL: [(&str, fn()); 4] = [
    ("what_is_begun_is_on_disk_before_it_is_done", what_is_begun_is_on_disk_before_it_is_done),
    ("killed_at_any_call_a_step_is_done_once", killed_at_any_call_a_step_is_done_once),
    (
        "an_error_of_the_disk_before_a_step_leaves_it_undone",
        an_error_of_the_disk_before_a_step_leaves_it_undone,
    ),
    (
        "killed_at_whatever_time_a_command_runs_once_or_is_lost",
        killed_at_whatever_time_a_command_runs_once_or_is_lost,
    ),
];

/// What the host asks for.
const KEY: &str = "k-1";

fn all() -> bool {
    std::env::var("CRASH").is_ok_and(|wanted| wanted == "all")
}

/// Whether processes can be watched here; says so if not.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let can = tried.as_ref().is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("SKIPPED: strace is missing here, or may not trace: {tried:?}");
    }
    can
}

/// A command, or a file that replaces another.
fn steps() -> [StepParams; 2] {
    [run(KEY, "echo said; echo x >> log"), create(KEY, "deep/a.txt", "new\n")]
}

fn scene() -> Guest {
    let guest = Guest::new();
    guest.base.write("workspace/deep/a.txt", "old\n");
    guest
}

/// A process that carries out a step, watched, with this done to it.
fn traced(
    guest: &Guest,
    asked: &StepParams,
    injection: Option<&str>,
) -> (Option<State>, bool, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = guest.process(&[], asked);
    let injection = injection.map(|injection| format!("--inject={injection}"));
    let mut command = trace::under_strace(&plain, injection.as_deref(), file.path());
    let output = command.output().unwrap();
    let trace = String::from_utf8_lossy(&fs::read(file.path()).unwrap()).into_owned();
    (said(&output.stdout), output.status.signal() == Some(9), trace)
}

/// Where an undisturbed process can be stopped once it has to do with the step.
fn undisturbed(asked: &StepParams) -> Option<Vec<Point>> {
    if !can_trace() {
        return None;
    }
    let guest = scene();
    let (state, _, trace) = traced(&guest, asked, None);
    assert_eq!(judge(&guest, asked, state, false), Ok(false));
    let mut points = trace::points(&trace::read(&trace), guest.base.path());
    let Some(first) = points.iter().position(|point| point.what.contains("/state/steps")) else {
        eprintln!("SKIPPED: strace does not see what the first thread does with files");
        return None;
    };
    points.drain(..first);
    points.dedup_by(|next, point| !point.touches && !next.touches && point.name == next.name);
    Some(points)
}

/// Whether a step came to what it may come to; gives whether it was lost.
fn judge(
    guest: &Guest,
    asked: &StepParams,
    state: Option<State>,
    stopped: bool,
) -> Result<bool, String> {
    let ran = guest.lines("log");
    let is_command = *asked == steps()[0];
    let told = match state {
        Some(State::Done(Done { detail, warnings })) if warnings.is_empty() => detail,
        other => return Err(format!("it came to {other:?}")),
    };
    let lost = match &told {
        Detail::Ran(execution) if is_command => match execution.ending {
            Ending::Exited(0) if ran == 1 => false,
            Ending::Lost if ran < 2 && stopped => true,
            _ => return Err(format!("it ran {ran} times, and is told as {told:?}")),
        },
        Detail::Created { replaced: true, .. } if !is_command => false,
        _ => return Err(format!("it is told as {told:?}")),
    };
    let expected = if is_command { "old\n" } else { "new\n" };
    if guest.base.read("workspace/deep/a.txt") != expected {
        return Err(format!("the file is {:?}", guest.base.read("workspace/deep/a.txt")));
    }
    if guest.base.names("workspace/deep") != ["a.txt"] {
        return Err(format!("there lie {:?}", guest.base.names("workspace/deep")));
    }
    Ok(lost)
}

/// A host that asks what became of it, asks for it again where it may, and once more.
fn ask_again(guest: &Guest, asked: &StepParams) -> Result<State, String> {
    let served = guest.served();
    let told = result(&served, KEY);
    let again = step(&served, asked.clone()).map_err(|e| e.to_string())?;
    if told != State::Unknown && told != again {
        return Err(format!("first {told:?}, then {again:?}"));
    }
    let later = step(&guest.served(), asked.clone()).map_err(|e| e.to_string())?;
    if later == again { Ok(again) } else { Err(format!("first {again:?}, then {later:?}")) }
}

fn what_is_begun_is_on_disk_before_it_is_done() {
    for (asked, effect) in steps().iter().zip([&["clone", "vfork"][..], &["rename"]]) {
        let Some(points) = undisturbed(asked) else { return };
        let told: Vec<&str> = points.iter().map(|point| point.what.as_str()).collect();
        let at = |what: &str| told.iter().position(|told| *told == what);
        let record = format!("/state/steps/step_{KEY}");
        let noted = at(&format!("write {record}"));
        let synced = at(&format!("fdatasync {record}"));
        let entered = at("fsync /state/steps");
        let done = told.iter().position(|told| effect.iter().any(|name| told.starts_with(name)));
        assert!(
            noted.is_some() && noted < synced && synced < entered && entered < done,
            "{told:#?}"
        );
    }
}

fn killed_at_any_call_a_step_is_done_once() {
    let (mut tried, mut killed, mut lost, mut wrong) = (0, 0, 0, Vec::new());
    for asked in steps() {
        let Some(points) = undisturbed(&asked) else { return };
        for point in points.iter().step_by(if all() { 1 } else { 3 }) {
            let guest = scene();
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let (_, was_killed, _) = traced(&guest, &asked, Some(&kill));
            let judged = ask_again(&guest, &asked)
                .and_then(|state| judge(&guest, &asked, Some(state), was_killed));
            (tried, killed) = (tried + 1, killed + usize::from(was_killed));
            match judged {
                Ok(is_lost) => lost += usize::from(is_lost),
                Err(told) => wrong.push(format!("{} ({}): {told}", point.n, point.what)),
            }
            if point.touches && !was_killed {
                wrong.push(format!("{} ({}): was not killed", point.n, point.what));
            }
        }
    }
    eprintln!("kill points of a step: {tried} tried, {killed} killed, {lost} lost");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(lost > 0 && lost < killed, "{lost} lost of {killed}");
}

fn an_error_of_the_disk_before_a_step_leaves_it_undone() {
    let (mut failed, mut wrong) = (0, Vec::new());
    for asked in steps() {
        let Some(points) = undisturbed(&asked) else { return };
        let own = points.iter().filter(|p| p.touches && p.what.contains("/state/steps"));
        for (point, error) in own.zip(["ENOSPC", "EIO"].into_iter().cycle()) {
            let guest = scene();
            let inject = format!("{}:error={error}:when={}", point.name, point.n);
            let (state, _, _) = traced(&guest, &asked, Some(&inject));
            let place = format!("{error} at {} ({})", point.n, point.what);
            failed += usize::from(state.is_none());
            let is_done =
                guest.lines("log") > 0 || guest.base.read("workspace/deep/a.txt") == "new\n";
            if state.is_none() && is_done {
                wrong.push(format!("{place}: it was done, and nobody told"));
            }
            // After the effect the outcome may not have been noted.
            let judged = ask_again(&guest, &asked)
                .and_then(|state| judge(&guest, &asked, Some(state), true));
            wrong.extend(judged.err().map(|told| format!("{place}: {told}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(failed > 0, "nothing failed");
}

fn killed_at_whatever_time_a_command_runs_once_or_is_lost() {
    let asked = run(KEY, "echo x >> log");
    let (mut lost, runs) = (0, if all() { 120 } else { 12 });
    for n in 0..runs {
        let guest = Guest::new();
        let mut was_killed = false;
        // The host asks until it is told.
        for _ in 0..3 {
            let mut child = guest.process(&[], &asked);
            let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // How long it lives is the chance that is tried, not something to wait for.
            thread::sleep(Duration::from_millis(n * 120 / runs));
            was_killed |= child.try_wait().unwrap().is_none();
            let _ = child.kill();
            child.wait().unwrap();
        }
        let state = ask_again(&guest, &asked).unwrap();
        let State::Done(Done { detail: Detail::Ran(execution), .. }) = state else {
            panic!("{state:?}")
        };
        let ran = guest.lines("log");
        match execution.ending {
            Ending::Exited(0) => assert_eq!(ran, 1),
            Ending::Lost if was_killed => {
                assert!(ran < 2, "it ran {ran} times");
                lost += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    eprintln!("steps killed at some time: {runs}, {lost} lost");
}
