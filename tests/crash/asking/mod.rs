//! A session in which replies stop to ask, three times under one id, stopped anywhere: until the
//! person decides nothing of what is asked is done, and then what they decided, once.

mod judging;
mod story;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::scene::{Traced, can_trace};
use crate::trace::{self, Point};
use crate::verdict::{ERRORS, log, outboxes, strays};
use crate::{Random, Tally, all, is_told, order, sample};
use story::*;

/// A story as it is undisturbed.
struct Told {
    story: Story,
    reference: Reference,
    /// The points to stop it at, by stage.
    points: Vec<(usize, Point)>,
    /// It, before each stage.
    stages: Vec<Asked>,
}

/// The stories, shared by the tests that run at one time; nothing where a run cannot be watched.
fn stories() -> Option<Arc<Vec<Told>>> {
    static TOLD: Mutex<Weak<Vec<Told>>> = Mutex::new(Weak::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(told) = told.upgrade() {
        return Some(told);
    }
    let new = Arc::new(STORIES.into_iter().map(undisturbed).collect::<Option<Vec<Told>>>()?);
    *told = Arc::downgrade(&new);
    Some(new)
}

fn undisturbed(story: Story) -> Option<Told> {
    if !can_trace() {
        return None;
    }
    let mut asked = Asked::new(story);
    let (mut points, mut stages) = (Vec::new(), Vec::new());
    for stage in 0..STAGES {
        stages.push(asked.again());
        asked.prepare();
        let trace = asked.scene.go_on_traced();
        asked.look();
        let found = trace::points(&trace::read(&trace), asked.scene.base.path());
        assert!(found.iter().any(|point| point.touches));
        // Up to the first question all stories are one.
        if stage > 0 || story == STORIES[0] {
            let found = trace::own(found, stage == 0).into_iter();
            points.extend(found.map(|point| (stage, point)));
        }
        asked.go_on();
    }
    let reference = Reference::of(&asked.scene);
    let lost = asked.judge(&reference);
    assert!(asked.scene.wrong.is_empty() && lost.is_empty(), "{:#?}", asked.scene.wrong);
    if !trace::sees_paths(points.iter().map(|(_, point)| point)) {
        return None;
    }
    Some(Told { story, reference, points, stages })
}

/// A story that is disturbed once, in this stage.
fn disturbed(told: &Told, stage: usize, injection: &str) -> (Asked, Traced) {
    let mut asked = told.stages[stage].again();
    asked.prepare();
    let traced = asked.disturb(injection);
    (asked, traced)
}

#[test]
fn killed_at_any_call_what_is_asked_is_done_as_it_is_decided() {
    let mut tally = Tally::default();
    let Some(stories) = stories() else { return };
    for (which, told) in stories.iter().enumerate() {
        let Told { story, reference, points, .. } = told;
        for (stage, point) in sample(&points[which..], 37) {
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let (mut asked, traced) = disturbed(told, stage, &kill);
            tally.count("killed", usize::from(traced.killed));
            asked.go_to_the_end();
            tally.count("commands interrupted", asked.judge(reference).len());
            asked.scene.must_be_killed(&traced, &point);
            tally.add(
                &format!("{story:?}, stage {stage}, {} ({})", point.n, point.what),
                &asked.scene,
            );
        }
    }
    tally.conclude("kill points of replies that ask");
}

#[test]
fn killed_several_times_what_is_asked_is_done_as_it_is_decided() {
    let mut tally = Tally::default();
    let Some(stories) = stories() else { return };
    // A point can lie behind the end of a recovery: runs with a single kill are not counted.
    let (runs, mut seed) = (if all() { 60 } else { 3 }, 0);
    while tally.tried < runs {
        seed += 1;
        let mut random = Random::new(seed);
        let Told { story, reference, points, .. } = &stories[random.below(2)];
        let (mut asked, mut places) = (Asked::new(*story), Vec::new());
        let wanted = 2 + random.below(3);
        let first = random.below(STAGES);
        for stage in 0..STAGES {
            asked.prepare();
            let points: Vec<&Point> =
                points.iter().filter(|p| p.0 == stage).map(|p| &p.1).collect();
            while stage >= first && !points.is_empty() && asked.scene.stops < wanted {
                // A recovery has fewer calls than what it recovers from.
                let left = points.len() / if asked.scene.stops == 0 { 1 } else { 2 };
                let point = points[random.below(left)];
                let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
                let traced = asked.disturb(&kill);
                asked.scene.told.push_str(&traced.run.stderr);
                if !traced.killed {
                    break;
                }
                places.push(format!("stage {stage}, {} ({})", point.n, point.what));
                asked.ask_for(&["resume", "--no-watch"]);
            }
            asked.go_on();
        }
        if asked.scene.stops < 2 && asked.scene.wrong.is_empty() {
            continue;
        }
        tally.count(&format!("with {} kills", asked.scene.stops), 1);
        tally.count("commands interrupted", asked.judge(reference).len());
        tally.add(&format!("seed {seed}, {story:?}, {places:?}"), &asked.scene);
    }
    tally.conclude("runs with several kills of replies that ask");
}

#[test]
fn an_error_of_the_disk_decides_nothing() {
    let errors = [("ENOSPC", ERRORS[0]), ("EIO", ERRORS[1])];
    let mut tally = Tally::default();
    let Some(stories) = stories() else { return };
    for told in &stories[1..] {
        let Told { story, reference, points, .. } = told;
        let touching = points.iter().filter(|(_, p)| p.touches && !p.is_for_commands()).cloned();
        let cases: Vec<_> = touching.zip(errors.into_iter().cycle()).collect();
        for ((stage, point), (error, words)) in sample(&cases, 31) {
            let inject = format!("{}:error={error}:when={}", point.name, point.n);
            let (mut asked, traced) = disturbed(told, stage, &inject);
            let run = traced.run;
            let (stopped, well) =
                (run.code == Some(1) && run.stderr.contains(words), run.went_well());
            if well {
                asked.scene.stops = 0;
            }
            asked.go_to_the_end();
            // What could not be done to a file is a result.
            let mut told = outboxes(&asked.scene).into_values();
            let reported = well && told.any(|text| text.contains(words));
            if reported {
                tally.count("reported", 1);
                let mut wrong = strays(&asked.scene);
                asked.put_away(&mut wrong);
                asked.scene.wrong.append(&mut wrong);
            } else {
                asked.judge(reference);
                tally.count(if stopped { "stopped" } else { "harmless" }, 1);
            }
            // Of checkpoints nothing may be lacking then, or it is said.
            let is_kept = || log(&asked.scene).iter().all(|turn| !turn["changed"].is_null());
            let harmless = point.is_harmless()
                || point.is_of_checkpoints()
                    && (is_told(&asked.scene, &point, words, &run.stderr) || is_kept());
            if !(stopped || reported || well && harmless) {
                asked.wrong(format!("the error was passed over: {run:?}"));
            }
            tally.add(
                &format!("{story:?}, stage {stage}, {error} at {} ({})", point.n, point.what),
                &asked.scene,
            );
        }
    }
    tally.conclude("error points of replies that ask");
}

#[test]
fn what_is_asked_and_decided_is_synced_before_what_follows() {
    let mut tally = Tally::default();
    let mut seen = BTreeMap::new();
    let Some(stories) = stories() else { return };
    for (which, told) in stories.iter().enumerate() {
        let Told { story, points, .. } = told;
        let mut asked = Asked::new(*story);
        for _ in 0..STAGES {
            asked.prepare();
            asked.check_order(&mut seen);
            asked.go_on();
        }
        tally.add(&format!("{story:?}, undisturbed"), &asked.scene);
        let dropped = asked.dropped().count();
        for (what, least) in
            [("questions", 3), ("refused early", 3), ("decisions archived", dropped)]
        {
            let found = seen.get(what).copied().unwrap_or_default();
            assert!(found >= least, "{found} {what}");
        }
        let points: Vec<_> = points.iter().skip(which).step_by(7).cloned().collect();
        for (stage, point) in sample(&points, 17) {
            let kill = format!("{}:signal=KILL:when={}", point.name, point.n);
            let (mut asked, traced) = disturbed(told, stage, &kill);
            tally.count("killed", usize::from(traced.killed));
            asked.ask_for(&["resume", "--no-watch"]);
            asked.check_order(&mut seen);
            tally.add(
                &format!("{story:?}, after {stage}, {} ({})", point.n, point.what),
                &asked.scene,
            );
        }
    }
    tally.counts.extend(seen.into_iter().map(|(what, n)| (what.to_owned(), n)));
    tally.conclude("orders of syncs of replies that ask");
}

impl Asked {
    fn check_order(&mut self, seen: &mut BTreeMap<&'static str, usize>) {
        let trace = self.scene.go_on_traced();
        self.look();
        let base = self.scene.base.path().to_string_lossy().into_owned();
        self.scene.wrong.extend(order::check(&trace::read(&trace), &base, seen));
    }
}
