//! `say`, stopped hard at its system calls, and met by errors at them: an outbox is the old or the new one
//! whole, and what was said is told once, also where it is said again after it has failed.

use serde_json::Value;

use crate::scene::{Scene, can_trace};
use crate::support::{ID, Run};
use crate::trace::Point;
use crate::{Tally, sample};

const WORDS: &str = "Use tabs everywhere";
const MESSAGE: &str = "[MESSAGE]\nWell\n[/MESSAGE]\n";

/// A session whose newest outbox can be added to, or, where it was edited, not.
struct Before {
    scene: Scene,
    /// That outbox.
    old: String,
    /// What `say` makes of it.
    new: String,
    points: Vec<Point>,
}

impl Before {
    /// Nothing, and said so, where a run cannot be watched.
    fn new(edited: bool) -> Option<Self> {
        let mut scene = Scene::new();
        if edited {
            let old = scene.base.outbox(1);
            scene.base.write(&format!("outbox/{ID}_seq0001.txt"), format!("{old}edited\n"));
        }
        scene.arguments = ["say", WORDS].map(str::to_owned).into();
        let mut undisturbed = scene.again();
        let old = scene.base.outbox(1);
        let points = undisturbed.points();
        assert!(undisturbed.wrong.is_empty(), "{:#?}", undisturbed.wrong);
        let points = points?;
        let new = undisturbed.base.outbox(1);
        assert_eq!(new.contains(WORDS), !edited);
        Some(Self { scene, old, new, points })
    }

    /// Looks at what it came to once the next start has gone on; how often it was told in the end.
    fn judge(&self, scene: &mut Scene) -> usize {
        scene.arguments = ["resume", "--no-watch"].map(str::to_owned).into();
        scene.go_on();
        let noted = noted(scene);
        let outbox = scene.base.outbox(1);
        let told = outbox.matches(WORDS).count();
        if outbox != self.old && outbox != self.new {
            scene.wrong.push("the outbox is neither the old nor the new one".to_owned());
        }
        if told > noted {
            scene.wrong.push("an outbox tells what the session does not know".to_owned());
        }
        let left = scene.base.names("outbox");
        if left != [format!("{ID}_seq0001.txt")] {
            scene.wrong.push(format!("left: {left:?}"));
        }
        let line = outbox.rfind("[REPLY ").and_then(|at| outbox[at..].lines().next()).unwrap();
        let run = scene.base.run_with(&["apply", "-"], format!("{line}\n{MESSAGE}"));
        if run.code != Some(0) {
            scene.wrong.push(format!("its key is not known: {run:?}"));
            return told;
        }
        let told = told + scene.base.outbox(2).matches(WORDS).count();
        if told != noted {
            scene.wrong.push(format!("noted {noted} times, and told {told} times"));
        }
        told
    }
}

/// How often the session holds what was said.
fn noted(scene: &Scene) -> usize {
    let text = scene.base.read(&format!("sessions/{ID}.json"));
    let session: Value = serde_json::from_str(&text).unwrap();
    let lists = ["said", "toSay", "toRepeat"].map(|key| session[key].as_array().cloned());
    lists.into_iter().flatten().flatten().filter(|words| words == WORDS).count()
}

#[test]
fn killed_anywhere_what_is_said_is_told_once_or_was_never_said() {
    if !can_trace() {
        return;
    }
    let mut tally = Tally::default();
    for edited in [false, true] {
        let Some(before) = Before::new(edited) else { return };
        // All of those by which something is said; of the others some.
        let says = |point: &&Point| {
            point.touches && ["/outbox", "/sessions"].iter().any(|of| point.what.contains(of))
        };
        let (says, others): (Vec<&Point>, Vec<&Point>) = before.points.iter().partition(says);
        for point in says.into_iter().chain(sample(&others, 8)) {
            let mut scene = before.scene.again();
            let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
            let of = scene.base.outbox(1);
            if of != before.old && of != before.new {
                scene.wrong.push("the outbox is torn".to_owned());
            }
            scene.must_be_killed(&traced, point);
            match before.judge(&mut scene) {
                0 => tally.count("never said", 1),
                1 => tally.count("told", 1),
                n => scene.wrong.push(format!("told {n} times")),
            }
            tally.add(&format!("{} ({})", point.n, point.what), &scene);
        }
    }
    assert!(tally.counts["never said"] > 0 && tally.counts["told"] > 0, "{:?}", tally.counts);
    tally.conclude("kill points of words");
}

#[test]
fn what_failed_and_is_said_again_is_told_once() {
    if !can_trace() {
        return;
    }
    let mut tally = Tally::default();
    for edited in [false, true] {
        let Some(before) = Before::new(edited) else { return };
        let touching: Vec<_> = before.points.iter().filter(|point| point.touches).collect();
        for (n, point) in touching.into_iter().enumerate() {
            let error = ["ENOSPC", "EIO"][n % 2];
            let mut scene = before.scene.again();
            let error = format!("{}:error={error}:when={}", point.name, point.n);
            let traced = scene.traced(Some(&error));
            match traced.run.code {
                Some(0) => tally.count("said all the same", 1),
                Some(1) => {
                    tally.count("failed", 1);
                    let again = scene.base.run(&["say", WORDS]);
                    if again.code != Some(0) {
                        scene.wrong.push(format!("it cannot be said again: {again:?}"));
                    }
                }
                _ => scene.wrong.push(format!("{:?}", traced.run)),
            }
            let told = before.judge(&mut scene);
            if told != 1 {
                scene.wrong.push(format!("told {told} times after {:?}", traced.run));
            }
            tally.add(&format!("{error} ({})", point.what), &scene);
        }
    }
    assert!(tally.counts["failed"] > 0, "{:?}", tally.counts);
    tally.conclude("error points of words");
}

#[test]
fn where_all_that_follows_fails_too_nobody_is_told_that_it_was_not_said_when_it_may_be() {
    if !can_trace() {
        return;
    }
    let Some(before) = Before::new(false) else { return };
    let mut tally = Tally::default();
    // What is told to the person is written, too.
    let touching = before.points.iter().filter(|point| point.touches && point.name != "write");
    for point in touching {
        let mut scene = before.scene.again();
        let error = format!("{}:error=EIO:when={}+", point.name, point.n);
        let Run { code, stderr, .. } = scene.traced(Some(&error)).run;
        let doubts = stderr.contains("your words may have been kept");
        match (code, before.judge(&mut scene)) {
            (Some(0), 1) => tally.count("said", 1),
            (Some(1), 0 | 1) if doubts => tally.count("in doubt", 1),
            (Some(1), 0) => tally.count("not said", 1),
            (_, told) => scene.wrong.push(format!("told {told} times: {code:?}, {stderr}")),
        }
        tally.add(&format!("EIO from {} ({})", point.name, point.what), &scene);
    }
    assert!(tally.counts.contains_key("in doubt"), "{:?}", tally.counts);
    tally.conclude("errors that last");
}
