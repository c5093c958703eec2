//! The program stopped at each of its system calls, met by errors at each of them, and watched for
//! the order of its syncs. A sample is tried in each run, all of it with `CRASH=all`.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]
#![cfg(target_os = "linux")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod asking;
mod guard;
mod guests;
mod logs;
mod looks;
mod moves;
mod order;
mod runs;
mod say;
mod scene;
#[path = "../it/support/mod.rs"]
mod support;
mod theirs;
mod together;
mod trace;
mod undo;
mod verdict;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use scene::{LEGS, Scene, Traced, can_trace};
use trace::Point;
use verdict::{Reference, Reported, judge};

fn all() -> bool {
    std::env::var("CRASH").is_ok_and(|wanted| wanted == "all")
}

/// Every `step`-th of these, or all where that is asked for.
fn sample<T: Clone>(of: &[T], step: usize) -> Vec<T> {
    of.iter().step_by(if all() { 1 } else { step }).cloned().collect()
}

/// An undisturbed session.
struct Undisturbed {
    /// What it comes to.
    reference: Reference,
    /// The places that it can be stopped at, by leg.
    points: [Vec<Point>; 2],
    /// It, before each leg.
    legs: [Scene; 2],
}

/// One for all tests that run at one time. Nothing, and said so, where a run cannot be watched.
fn undisturbed() -> Option<Arc<Undisturbed>> {
    static FOUND: Mutex<Weak<Undisturbed>> = Mutex::new(Weak::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = found.upgrade() {
        return Some(found);
    }
    let new = Arc::new(watched()?);
    *found = Arc::downgrade(&new);
    Some(new)
}

fn watched() -> Option<Undisturbed> {
    if !can_trace() {
        return None;
    }
    let mut scene = Scene::new();
    let mut legs = Vec::new();
    let points = [0, 1].map(|leg| {
        legs.push(scene.again());
        scene.drop_replies(leg);
        let trace = scene.go_on_traced();
        trace::points(&trace::read(&trace), scene.base.path())
    });
    let reference = Reference::of(&scene);
    let reported = judge(&mut scene, &reference);
    assert!(scene.wrong.is_empty() && reported.lost.is_empty(), "{:#?}", scene.wrong);
    if !trace::sees_paths(&points[0]) {
        return None;
    }
    let legs = legs.try_into().ok()?;
    Some(Undisturbed { reference, points, legs })
}

impl Undisturbed {
    /// A session that is disturbed once, in this leg.
    fn disturbed(&self, leg: usize, injection: &str) -> (Scene, Traced) {
        let mut scene = self.legs[leg].again();
        scene.drop_replies(leg);
        let traced = scene.disturb(injection);
        (scene, traced)
    }
}

/// Goes on undisturbed from a leg to the end.
fn to_the_end(scene: &mut Scene, leg: usize, reference: &Reference) -> Reported {
    scene.go_on();
    for after in leg + 1..LEGS.len() {
        scene.drop_replies(after);
        scene.go_on();
    }
    judge(scene, reference)
}

/// What was tried, and what was found.
#[derive(Default)]
struct Tally {
    tried: usize,
    counts: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, what: &str, n: usize) {
        *self.counts.entry(what.to_owned()).or_default() += n;
    }

    /// Tries each place, in its own scene, several at a time. For tests that would still run when all others
    /// have ended: one place after another, they leave the rest of the machine idle then.
    fn side_by_side<T: Sync>(&mut self, places: &[T], one: impl Fn(usize, &T, &mut Self) + Sync) {
        let next = AtomicUsize::new(0);
        let some = || {
            let mut tally = Self::default();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = places.get(n) else { return tally };
                one(n, place, &mut tally);
            }
        };
        thread::scope(|scope| {
            let begun = [(); 3].map(|()| scope.spawn(some));
            for tally in begun {
                let tally = tally.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                self.tried += tally.tried;
                self.wrong.extend(tally.wrong);
                for (what, n) in tally.counts {
                    self.count(&what, n);
                }
            }
        });
    }

    fn add(&mut self, place: &str, scene: &Scene) {
        self.tried += 1;
        self.count("places with violations", usize::from(!scene.wrong.is_empty()));
        self.wrong.extend(scene.wrong.iter().map(|wrong| format!("{place}: {wrong}")));
    }

    #[track_caller]
    fn conclude(self, what: &str) {
        eprintln!("{what}: {} tried, {:?}", self.tried, self.counts);
        assert!(self.tried > 0, "no {what} were found to be tried");
        assert_ne!(self.counts.get("killed"), Some(&0), "{what}: nothing was killed");
        let (n, first) = (self.wrong.len(), &self.wrong[..self.wrong.len().min(40)]);
        assert!(n == 0, "{n} violations in {} {what}, among them {first:#?}", self.tried);
    }
}

fn places(points: &[Vec<Point>; 2]) -> Vec<(usize, Point)> {
    let of = |leg: usize| points[leg].iter().cloned().map(move |point| (leg, point));
    of(0).chain(of(1)).collect()
}

#[test]
fn killed_at_any_call_nothing_is_lost_and_nothing_run_twice() {
    let Some(undisturbed) = undisturbed() else { return };
    let Undisturbed { reference, points, .. } = &*undisturbed;
    let mut tally = Tally::default();
    tally.side_by_side(&sample(&places(points), 6), |_, (leg, point), tally| {
        let (mut scene, traced) =
            undisturbed.disturbed(*leg, &format!("{}:signal=KILL:when={}", point.name, point.n));
        tally.count("killed", usize::from(traced.killed));
        let reported = to_the_end(&mut scene, *leg, reference);
        tally.count("commands interrupted", reported.lost.len());
        scene.must_be_killed(&traced, point);
        tally.add(&format!("leg {leg}, {} ({})", point.n, point.what), &scene);
    });
    tally.conclude("kill points");
}

#[test]
fn killed_several_times_also_while_it_recovers() {
    let Some(undisturbed) = undisturbed() else { return };
    let Undisturbed { reference, points, .. } = &*undisturbed;
    let mut tally = Tally::default();
    // A point can lie behind the end of a recovery: runs with a single kill are not counted.
    let (runs, mut seed) = (if all() { 300 } else { 12 }, 0);
    while tally.tried < runs {
        seed += 1;
        let mut random = Random::new(seed);
        let (mut scene, mut places) = (Scene::new(), Vec::new());
        let wanted = 2 + random.below(3);
        let first_leg = random.below(2);
        for (leg, points) in points.iter().enumerate() {
            scene.drop_replies(leg);
            while leg >= first_leg && scene.stops < wanted {
                // A recovery has fewer calls than what it recovers from.
                let left = points.len() / if scene.stops == 0 { 1 } else { 2 };
                let point = &points[random.below(left)];
                let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
                scene.told.push_str(&traced.run.stderr);
                if !traced.killed {
                    break;
                }
                places.push(format!("leg {leg}, {} ({})", point.n, point.what));
            }
            scene.go_on();
        }
        if scene.stops < 2 && scene.wrong.is_empty() {
            continue;
        }
        tally.count(&format!("with {} kills", scene.stops), 1);
        tally.count("commands interrupted", judge(&mut scene, reference).lost.len());
        tally.add(&format!("seed {seed}, {places:?}"), &scene);
    }
    tally.conclude("runs with several kills");
}

/// Whether it was said that this error keeps a turn from being taken back; where it met what is not of
/// checkpoints alone, such as the folder around them, with the path that it met.
fn is_told(scene: &Scene, point: &Point, words: &str, said: &str) -> bool {
    let mut told = said
        .lines()
        .filter(|line| line.contains("this turn cannot be undone: ") && line.contains(words));
    let (_, path) = point.what.split_once(' ').unwrap_or_default();
    let path = format!("cannot sync {}{path}: ", scene.base.path().display());
    told.any(|line| point.is_of_checkpoints() || line.contains(&path))
}

/// Whether an error about checkpoints cost nothing: all turns of the session can be taken back at its end.
fn is_kept(scene: &Scene, point: &Point) -> bool {
    let all = LEGS.concat().len().to_string();
    point.is_of_checkpoints()
        && scene.base.run(&["undo", "--last", &all]).code == Some(0)
        && scene.files("workspace").is_empty()
}

#[test]
fn an_error_of_the_disk_stops_it_and_nothing_is_lost() {
    let Some(undisturbed) = undisturbed() else { return };
    let Undisturbed { reference, points, .. } = &*undisturbed;
    let touching = places(points).into_iter().filter(|(_, p)| p.touches && !p.is_for_commands());
    let touching: Vec<_> = touching.collect();
    let errors = [("ENOSPC", "No space left on device"), ("EIO", "Input/output error")];
    let cases: Vec<_> =
        touching.iter().flat_map(|p| errors.map(|error| (p.clone(), error))).collect();
    let mut tally = Tally::default();
    for ((leg, point), (error, words)) in sample(&cases, 13) {
        let (mut scene, traced) =
            undisturbed.disturbed(leg, &format!("{}:error={error}:when={}", point.name, point.n));
        let run = &traced.run;
        let stopped = run.code == Some(1) && run.stderr.contains(words);
        let went_well = run.code == Some(0);
        if went_well {
            // What could not be done to a file is a result; it may interrupt nothing.
            scene.stops = 0;
        }
        let said = traced.run.stderr;
        let reported = to_the_end(&mut scene, leg, reference);
        let harmless = went_well && point.is_harmless();
        match (stopped, reported.files.is_empty()) {
            (true, _) => tally.count("stopped", 1),
            (false, false) if went_well => tally.count("reported", 1),
            _ if harmless => tally.count("harmless", 1),
            // What turns change is kept as far as that can be, and nothing else depends on it.
            _ if went_well
                && (is_told(&scene, &point, words, &said) || is_kept(&scene, &point)) =>
            {
                tally.count("not kept, or not needed", 1);
            }
            _ => scene.wrong.push(format!("the error was passed over: {said}")),
        }
        tally.add(&format!("leg {leg}, {error} at {} ({})", point.n, point.what), &scene);
    }
    tally.conclude("error points");
}

#[test]
fn syncs_come_before_what_is_built_upon_them() {
    let Some(undisturbed) = undisturbed() else { return };
    let Undisturbed { reference, points, .. } = &*undisturbed;
    let mut seen = BTreeMap::new();
    let mut tally = Tally::default();
    let mut scene = Scene::new();
    for leg in 0..LEGS.len() {
        scene.drop_replies(leg);
        let trace = scene.go_on_traced();
        let base = scene.base.path().to_string_lossy().into_owned();
        scene.wrong.extend(order::check(&trace::read(&trace), &base, &mut seen));
    }
    judge(&mut scene, reference);
    tally.add("undisturbed", &scene);
    let of_one = seen.clone();

    // And in runs after a kill.
    for (leg, point) in sample(&places(points), 20) {
        let (mut scene, traced) =
            undisturbed.disturbed(leg, &format!("{}:signal=KILL:when={}", point.name, point.n));
        tally.count("killed", usize::from(traced.killed));
        let trace = scene.go_on_traced();
        let base = scene.base.path().to_string_lossy().into_owned();
        let wrong = order::check(&trace::read(&trace), &base, &mut seen);
        scene.wrong = wrong;
        tally.add(&format!("after a kill in leg {leg}, {} ({})", point.n, point.what), &scene);
    }
    tally.counts.extend(seen.into_iter().map(|(what, n)| (what.to_owned(), n)));
    tally.conclude("orders of syncs");
    let expected = [("archived", 4), ("commands", scene::COMMANDS), ("outboxes", 3)];
    assert!(expected.iter().all(|(what, n)| of_one.get(what) == Some(n)), "{of_one:?}");
    assert!(of_one.contains_key("compactions") && of_one.contains_key("effects"), "{of_one:?}");
}

#[test]
fn only_the_first_thread_writes() {
    if !can_trace() {
        return;
    }
    let scene = Scene::new();
    for leg in 0..LEGS.len() {
        scene.drop_replies(leg);
    }
    let (calls, threads) = trace::of_threads(&scene.serve_traced());
    assert_eq!(scene.base.names("inbox/processed").len(), 4);
    // For signals, and for the inbox.
    assert!(threads >= 2, "{threads} threads");
    let points = trace::points(&calls, scene.base.path());
    let touching: Vec<_> = points.iter().filter(|point| point.touches).collect();
    assert!(touching.is_empty(), "{touching:#?}");
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed * 2 + 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }
}
