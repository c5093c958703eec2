//! Sessions whose operations are carried out in a guest, with the host, the guest or what connects them
//! stopped anywhere: nothing runs twice, and what is told is what happened.

mod order;
mod pair;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::scene::can_trace;
use crate::support::PATIENCE;
use crate::trace::{self, Point};
use crate::{Random, Tally, all, sample};
use pair::{End, Pair, TURNS, Victim, Way, ended};
use verdict::{Reference, judge};

/// An undisturbed session with a guest.
fn undisturbed(way: Way) -> (Pair, Reference) {
    let mut pair = Pair::new(way);
    pair.drop_replies();
    pair.go_on();
    let reference = Reference::of(&pair);
    assert_eq!(judge(&mut pair, &reference), 0);
    assert!(pair.scene.wrong.is_empty(), "{:#?}", pair.scene.wrong);
    (pair, reference)
}

#[test]
fn a_host_that_is_killed_at_any_call_has_its_guest_do_nothing_twice() {
    if !can_trace() {
        return;
    }
    let (_, reference) = undisturbed(Way::Direct);
    let mut watched = Pair::new(Way::Direct);
    watched.drop_replies();
    let calls = trace::read(&watched.scene.go_on_traced());
    let mut points = trace::points(&calls, watched.scene.base.path());
    if !trace::sees_paths(&points) {
        return;
    }
    points.retain(|point| point.touches);
    let mut points = sample(&points, 29);
    // There it waits: for its guest, most of the time. How often is a matter of time.
    let waits = (0..if all() { 120 } else { 6 }).map(|n| Point {
        name: "futex".to_owned(),
        n: 4 + n * if all() { 1 } else { 13 },
        what: "a wait".to_owned(),
        touches: false,
    });
    points.extend(waits);
    let mut tally = Tally::default();
    for point in points {
        let mut pair = Pair::new(Way::Direct);
        pair.drop_replies();
        let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
        let traced = pair.scene.disturb(&kill);
        tally.count("killed", usize::from(traced.killed));
        if !traced.killed && point.touches {
            pair.scene.wrong.push(format!("was not killed: {:?}", traced.run));
        }
        pair.go_on();
        // The guest goes on without it, so what it came to can be asked.
        judge(&mut pair, &reference);
        tally.add(&format!("{} ({})", point.n, point.what), &pair.scene);
    }
    tally.conclude("kill points of a host");
}

/// A host whose first guest is watched, with these options.
fn with_guest_traced(options: &str) -> (Pair, String) {
    let mut pair = Pair::new(Way::Traced);
    pair.drop_replies();
    pair.scene.base.write("inject", options);
    pair.go_on();
    let trace = fs::read(pair.scene.base.at("guest.trace")).unwrap_or_default();
    (pair, String::from_utf8_lossy(&trace).into_owned())
}

/// The threads of the process that was started, in a trace made with `-f`. The first is first.
fn threads(text: &str) -> Vec<&str> {
    let first = text.lines().next().and_then(|line| Some(line.split_once(' ')?.0));
    let begun = text.lines().filter_map(|line| line.split_once("parent_tid=[")?.1.split_once(']'));
    let begun: BTreeSet<&str> = begun.map(|(thread, _)| thread).collect();
    first.into_iter().chain(begun.into_iter().filter(|thread| Some(*thread) != first)).collect()
}

/// What such a trace says of one thread.
fn lines_of(text: &str, thread: &str) -> String {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let own = lines.filter(|(of, _)| *of == thread).map(|(_, line)| line.trim_start());
    own.collect::<Vec<_>>().join("\n")
}

/// Whether another process than the guest comes to a point first, such as one that tries out the sandbox. strace
/// counts the calls of each thread and process by itself.
fn strikes_another(text: &str, point: &Point) -> bool {
    let (call, own) = (format!("{}(", point.name), threads(text));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let mut callers = lines.filter(|(_, line)| line.trim_start().starts_with(&call));
    let first = callers.find(|(caller, _)| {
        let count = counts.entry(caller).or_default();
        *count += 1;
        *count == point.n
    });
    first.is_some_and(|(caller, _)| !own.contains(&caller))
}

#[test]
fn a_guest_that_is_killed_at_any_call_has_done_nothing_twice() {
    if !can_trace() {
        return;
    }
    let (_, reference) = undisturbed(Way::Direct);
    let watch = format!("-e trace={}", trace::CALLS);
    let (mut watched, text) = with_guest_traced(&watch);
    judge(&mut watched, &reference);
    let mut tally = Tally::default();
    tally.add("undisturbed", &watched.scene);
    let mut points: Vec<Point> = Vec::new();
    for thread in threads(&text) {
        let calls = trace::read(&lines_of(&text, thread));
        let found = trace::points(&calls, watched.guest.path());
        let found = found.into_iter().filter(|point| point.touches);
        for point in found {
            if !points.iter().any(|known| known.name == point.name && known.n == point.n) {
                points.push(point);
            }
        }
    }
    if !points.iter().any(|point| point.what.contains("/sessions/steps/step_")) {
        eprintln!("SKIPPED: strace does not see what the threads of a guest do with files");
        return;
    }
    let (others, own): (Vec<Point>, Vec<Point>) =
        points.into_iter().partition(|point| strikes_another(&text, point));
    for point in sample(&own, 17).iter().chain(&others) {
        let options = format!("{watch} --inject={}:signal=KILL:when={}", point.name, point.n);
        let (mut pair, text) = with_guest_traced(&options);
        let first = text.split(' ').next().unwrap_or_default();
        let killed = !text.contains(&format!("\n{first} +++ exited with "));
        tally.count("killed", usize::from(killed));
        pair.guest_kills = usize::from(killed);
        pair.struck_another = strikes_another(&text, point);
        tally.count("other processes struck", usize::from(pair.struck_another));
        tally.count("nothing struck", usize::from(!killed && !pair.struck_another));
        let lost = judge(&mut pair, &reference);
        tally.count("commands interrupted", lost);
        // Once it was there, the host makes a new connection by itself.
        let was_there = text.contains(r#"pong\":true"#);
        tally.count("mended", usize::from(killed && pair.starts == 1));
        if was_there && pair.starts > 1 {
            pair.scene.wrong.push(format!("it took {} starts", pair.starts));
        }
        tally.add(&format!("{} ({})", point.n, point.what), &pair.scene);
    }
    assert!(tally.counts["killed"] > 0, "{:?}", tally.counts);
    let otherwise = tally.counts["other processes struck"] + tally.counts["nothing struck"];
    assert!(otherwise <= others.len() + tally.tried / 10, "{:?}", tally.counts);
    tally.conclude("kill points of a guest");
}

/// One session with kills at random times of `span`.
fn round(seed: u64, span: Duration, way: Way, tally: &mut Tally) -> Pair {
    let mut random = Random::new(seed);
    let victims = [Victim::Host, Victim::Guest, Victim::Connection];
    let mut kills: Vec<(Duration, Victim)> = (0..=random.below(3))
        .map(|_| {
            let at = u32::try_from(random.below(1000)).unwrap();
            (span * at / 1000, victims[random.below(victims.len())])
        })
        .collect();
    kills.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    // One that waits for replies leaves its guest alone between them.
    let waits = random.below(2) == 0;
    let arguments: &[&str] = if waits { &["resume"] } else { &["resume", "--no-watch"] };
    let mut pair = Pair::new(way);
    let mut dropped = 1;
    if waits {
        pair.drop_reply(1);
    } else {
        pair.drop_replies();
    }
    let mut host = pair.start(arguments);
    let begun = Instant::now();
    loop {
        while let Some((_, victim)) = kills.pop_if(|(at, _)| begun.elapsed() >= *at) {
            let name = if pair.kill(victim, &mut host) { "killed" } else { "not there" };
            tally.count(&format!("{victim:?} {name}"), 1);
        }
        let next = format!("outbox/{}_seq{:04}.txt", crate::support::ID, dropped + 1);
        if waits && dropped < TURNS && pair.scene.base.exists(&next) {
            dropped += 1;
            pair.drop_reply(dropped);
        }
        if let Some(status) = host.try_wait().unwrap() {
            let said = pair.scene.base.read("daemon.log");
            pair.scene.look();
            match ended(status.code(), &said) {
                End::Done => break,
                End::Killed | End::Away if begun.elapsed() < 3 * PATIENCE => {}
                _ => {
                    pair.scene.wrong.push(format!("a start ended with {status}: {said}"));
                    break;
                }
            }
            tally.count("starts anew", 1);
            host = pair.start(arguments);
        } else if begun.elapsed() > 5 * PATIENCE {
            let _ = host.kill();
            let said = pair.scene.base.read("daemon.log");
            pair.scene.wrong.push(format!("it did not end: {said}"));
            break;
        }
        // What is waited for is looked at again; when a kill comes is the chance that is tried.
        thread::sleep(Duration::from_millis(2));
    }
    let _ = host.wait();
    pair.wait_for_guests();
    pair
}

#[test]
fn killed_at_random_times_host_guest_and_connection_come_to_the_same() {
    let has_setsid = Command::new("setsid").arg("true").stdout(Stdio::null()).status();
    if !has_setsid.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: setsid is missing here, and a guest would die with its connection");
        return;
    }
    let (_, reference) = undisturbed(Way::Relay);
    let mut watched = Pair::new(Way::Relay);
    watched.drop_replies();
    let begun = Instant::now();
    watched.go_on();
    let span = begun.elapsed();
    let tally = Mutex::new(Tally::default());
    let seeds = AtomicU64::new(0);
    let rounds = || {
        loop {
            let seed = seeds.fetch_add(1, Ordering::Relaxed);
            if seed >= if all() { 400 } else { 40 } {
                return;
            }
            let way = if seed % 3 == 2 { Way::Rooted } else { Way::Relay };
            let mut own = Tally::default();
            let mut pair = round(seed, span, way, &mut own);
            own.count("commands interrupted", judge(&mut pair, &reference));
            let mut tally = tally.lock().unwrap();
            own.counts.iter().for_each(|(what, n)| tally.count(what, *n));
            tally.add(&format!("seed {seed}, {way:?}"), &pair.scene);
        }
    };
    // Most of a round is waiting.
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(rounds))));
    eprintln!("seeds from 0; an undisturbed session takes {span:?}");
    tally.into_inner().unwrap().conclude("rounds with kills at random times");
}
