//! An undo, stopped hard at its system calls, and met by errors at them: what is undone is undone whole,
//! told once, and one more start does nothing.

use std::path::Path;

use std::collections::BTreeMap;
use std::fs;

use crate::scene::{Scene, can_trace};
use crate::support::ID;
use crate::trace::{self, Point};
use crate::{Tally, sample};

const REPLY: &str = "[CREATE_FILE path=\"a.txt\"]\nanother\n[/CREATE_FILE]\n\
    [RUN_COMMAND]\nmkdir new; echo n > new/n; rm -r old; ln -sfn a.txt link; chmod 755 run; chmod 750 .; echo f > folder-was; rm -r f; echo now > f\n[/RUN_COMMAND]\n\
    [MOVE_FILE path=\"big\" to=\"far/away/big\"]\n";

/// A scene whose turn was carried out, and what was there before it.
fn scene() -> (Scene, BTreeMap<String, Vec<u8>>) {
    let mut scene = Scene::new();
    // What is larger is not kept, and goes back by a rename.
    scene.base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    scene.base.sh("cd workspace && head -c 2000 /dev/zero > big && echo a > a.txt && mkdir old f && echo x > old/x && echo i > f/in && ln -s old link && echo r > run && chmod 600 run");
    let before = seen(&scene);
    let path = scene.base.write("r.part", REPLY);
    fs::rename(path, scene.base.at("inbox/r.txt")).unwrap();
    scene.go_on();
    assert_ne!(seen(&scene), before);
    scene.arguments = vec!["undo".to_owned()];
    (scene, before)
}

/// What stands in the workspace; where links lead, and permissions.
fn seen(scene: &Scene) -> BTreeMap<String, Vec<u8>> {
    use std::os::unix::fs::PermissionsExt;
    let mut files = BTreeMap::new();
    for entry in walkdir::WalkDir::new(scene.base.at("workspace")) {
        let entry = entry.unwrap();
        let found = entry.path().symlink_metadata().unwrap();
        let mut told = format!("{:o} ", found.permissions().mode()).into_bytes();
        if found.is_file() {
            told.extend(fs::read(entry.path()).unwrap());
        } else if found.is_symlink() {
            told.extend(fs::read_link(entry.path()).unwrap().as_os_str().as_encoded_bytes());
        }
        files.insert(entry.path().to_string_lossy().into_owned(), told);
    }
    let root = scene.base.at("workspace").to_string_lossy().into_owned();
    files.into_iter().map(|(path, told)| (path[root.len()..].to_owned(), told)).collect()
}

/// Looks at what an undo came to that was disturbed and gone on with; whether it was begun at all.
fn judge(
    scene: &mut Scene,
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> bool {
    scene.arguments = ["resume", "--no-watch"].map(str::to_owned).into();
    scene.go_on();
    let log = scene.base.read(&format!("sessions/{ID}.log"));
    let begun = log.contains("\"undid\":[1]");
    let now = seen(scene);
    if now != if begun { before.clone() } else { after.clone() } {
        scene.wrong.push(format!("begun: {begun}, and there is {:?}", now.keys()));
    }
    if log.lines().count() != 1 + usize::from(begun) {
        scene.wrong.push(format!("the log: {log}"));
    }
    let outbox = format!("outbox/{ID}_seq0003.txt");
    if begun != scene.base.exists(&outbox) {
        scene.wrong.push(format!("begun: {begun}, and the outbox is the other"));
    } else if begun && !scene.base.read(&outbox).contains("The user has undone what you changed") {
        scene.wrong.push(format!("it is not told: {}", scene.base.read(&outbox)));
    }
    let mut packs = scene.base.names("sessions/checkpoints/packs");
    packs.retain(|name| Path::new(name).extension().is_none_or(|ending| ending != "pack"));
    if !packs.is_empty() {
        scene.wrong.push(format!("left: {packs:?}"));
    }
    begun
}

/// Kills an undo at each of these places, in a scene of its own, and goes on; some were begun by then.
fn killed(
    points: &[Point],
    scene: impl Fn() -> Scene + Sync,
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> Tally {
    let mut tally = Tally::default();
    tally.side_by_side(points, |_, point, tally| {
        let mut scene = scene();
        let traced = scene.disturb(&format!("{}:signal=KILL:when={}", point.name, point.n));
        tally.count("killed", usize::from(traced.killed));
        scene.must_be_killed(&traced, point);
        let begun = judge(&mut scene, before, after);
        tally.count("gone on with", usize::from(begun));
        tally.add(&format!("{} ({})", point.n, point.what), &scene);
    });
    assert!(tally.counts["gone on with"] > 0 && tally.counts["killed"] > 0, "{:?}", tally.counts);
    tally
}

#[test]
fn stopped_anywhere_an_undo_is_whole_or_was_never_begun() {
    if !can_trace() {
        return;
    }
    let (mut undisturbed, before) = scene();
    let after = seen(&undisturbed);
    let Some(points) = undisturbed.points() else { return };
    assert!(judge(&mut undisturbed, &before, &after), "{:#?}", undisturbed.wrong);
    assert!(undisturbed.wrong.is_empty(), "{:#?}", undisturbed.wrong);
    assert!(points.iter().any(|point| point.what.contains("/workspace/old/")), "{points:#?}");
    let mut tally = killed(&sample(&points, 3), || scene().0, &before, &after);
    let touching: Vec<_> = points.iter().filter(|point| point.touches).cloned().collect();
    tally.side_by_side(&sample(&touching, 4), |n, point, tally| {
        let error = ["ENOSPC", "EIO"][n % 2];
        let (mut scene, _) = scene();
        let traced = scene.disturb(&format!("{}:error={error}:when={}", point.name, point.n));
        tally.count("met by an error", usize::from(traced.run.code == Some(1)));
        let words = ["No space left on device", "Input/output error"][n % 2];
        let told = traced.run.stderr.contains(words);
        if !(traced.run.code == Some(0) || traced.run.code == Some(1) && told) {
            scene.wrong.push(format!("{:?}", traced.run));
        }
        judge(&mut scene, &before, &after);
        tally.add(&format!("{error} at {} ({})", point.n, point.what), &scene);
    });
    tally.conclude("places of an undo");
}

#[test]
fn what_was_put_back_before_a_stop_and_changed_after_it_is_named_by_a_redo() {
    if !can_trace() {
        return;
    }
    let (mut undisturbed, _) = scene();
    let traced = undisturbed.go_on_traced();
    let points = trace::points(&trace::read(&traced), undisturbed.base.path());
    // The last that touches the workspace: all else is put back by then.
    let Some(last) = points.iter().rfind(|point| point.what.contains("/workspace/")) else {
        eprintln!("SKIPPED: strace does not see the paths of open files; it may as root");
        return;
    };
    let (mut scene, before) = scene();
    let traced = scene.disturb(&format!("{}:signal=KILL:when={}", last.name, last.n));
    assert!(traced.killed, "{:?}", traced.run);
    let now = seen(&scene);
    assert_eq!(now["/a.txt"], before["/a.txt"]);
    scene.base.write("workspace/a.txt", "mine\n");
    scene.arguments = ["resume", "--no-watch"].map(str::to_owned).into();
    scene.go_on();
    assert_eq!(scene.base.read("workspace/a.txt"), "mine\n");
    let outbox = scene.base.read(&format!("outbox/{ID}_seq0003.txt"));
    assert!(outbox.contains("Left as they are: a.txt\n"), "{outbox}");
    let redo = scene.base.run(&["redo"]).with_code(1);
    assert!(redo.stderr.contains("nothing was touched: 'a.txt'"), "{}", redo.stderr);
    scene.base.run(&["redo", "--force"]).ok();
    assert_eq!(scene.base.read("workspace/a.txt"), "another\n");
}

#[test]
fn many_files_are_put_back_together_wherever_that_is_stopped() {
    if !can_trace() {
        return;
    }
    let many = || {
        let mut scene = Scene::new();
        scene.base.sh("cd workspace && for n in $(seq 60); do echo $n > f$n; done; ln f1 g");
        let before = seen(&scene);
        let reply = "[RUN_COMMAND]\nfor f in f* g; do echo x >> $f; done; chmod 755 f2; rm f3\n[/RUN_COMMAND]\n";
        let path = scene.base.write("r.part", reply);
        fs::rename(path, scene.base.at("inbox/r.txt")).unwrap();
        scene.go_on();
        scene.arguments = vec!["undo".to_owned()];
        (scene, before)
    };
    let (mut undisturbed, before) = many();
    let after = seen(&undisturbed);
    let Some(points) = undisturbed.points() else { return };
    let renames: Vec<_> = points.iter().filter(|p| p.name.starts_with("rename")).cloned().collect();
    let points = [sample(&renames, 12), sample(&points, 40)].concat();
    killed(&points, || many().0, &before, &after).conclude("places of an undo of many files");
}
