//! What a command could do to the person's other programs without opening any of their files:
//! their terminals, their limits and their shared memory.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::ptr;

use super::processes::Victim;
use super::{Attack, python};
use crate::scene::{Asked, Scene, Walls, Way};

/// A terminal that somebody else sits at, who let everybody write to it.
struct Terminal {
    _ours: OwnedFd,
    _theirs: OwnedFd,
    number: String,
}

impl Terminal {
    fn open() -> Option<Self> {
        let (ours, theirs) = super::terminal()?;
        rustix::fs::fchmod(&theirs, rustix::fs::Mode::from_raw_mode(0o666)).unwrap();
        let name = rustix::termios::ttyname(&theirs, Vec::new()).unwrap();
        let number = name.to_str().unwrap().trim_start_matches("/dev/pts/").to_owned();
        Some(Self { _ours: ours, _theirs: theirs, number })
    }
}

#[test]
fn nobodys_terminal_is_written_to_or_read() {
    let Some(terminal) = Terminal::open() else { return };
    let attack = Attack::new()
        .by("write", format!("printf x > /dev/pts/{}", terminal.number))
        .by("read", format!(": < /dev/pts/{}", terminal.number));
    for scene in Scene::confined() {
        attack.fails_in(&scene);
    }
    attack.gets_through_as_root(|_| ());
}

#[test]
fn nobodys_limits_and_priorities_are_changed() {
    let calls = |pid: u32| {
        Some(
            Attack::new()
                .by(
                    "limits",
                    python(&format!(
                        "import resource; resource.prlimit({pid}, resource.RLIMIT_CORE, (0, 0))"
                    ))?,
                )
                .by(
                    "priority",
                    python(&format!("import os; os.setpriority(os.PRIO_PROCESS, {pid}, 1)"))?,
                )
                .by(
                    "processors",
                    python(&format!(
                        "import os; os.sched_setaffinity({pid}, os.sched_getaffinity(0))"
                    ))?,
                )
                .by(
                    "scheduling",
                    python(&format!(
                        "import os; os.sched_setscheduler({pid}, os.SCHED_BATCH, os.sched_param(0))"
                    ))?,
                ),
        )
    };
    for scene in Scene::confined() {
        let victim = Victim::of(&scene);
        let Some(attack) = calls(victim.0.id()) else { return };
        attack.fails_in(&scene);
    }
    // All processes of a user at once.
    if let Some(all) = python("import os; os.setpriority(os.PRIO_USER, 0, 1)") {
        for scene in Scene::confined_with(|walls| walls == Walls::Partial) {
            Attack::new().by("all of the user", all.clone()).fails_in(&scene);
        }
    }
    // A subreaper leaves the process numbers of the machine in sight.
    let Some(open) = Scene::with(Way::NoNamespaces, Asked::Off) else { return };
    let victim = Victim::of(&open);
    let Some(attack) = calls(victim.0.id()) else { return };
    attack.gets_through(&open);
}

#[test]
fn shared_memory_and_queues_of_others_are_out_of_reach() {
    /// A segment that everybody may use, gone with the test.
    struct Segment(i32);
    impl Drop for Segment {
        fn drop(&mut self) {
            // SAFETY: a system call on integers.
            unsafe { libc::shmctl(self.0, libc::IPC_RMID, ptr::null_mut()) };
        }
    }
    // SAFETY: a system call on integers.
    let segment =
        Segment(unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o666) });
    if segment.0 < 0 {
        eprintln!("SKIPPED: no shared memory is to be had");
        return;
    }
    let Some(condition) = python(&format!(
        "import ctypes,sys; l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_long; sys.exit(l.shmat({}, 0, 0) == -1)",
        segment.0
    )) else {
        return;
    };
    let attack = Attack::new().by("shared memory", condition);
    for scene in Scene::confined() {
        attack.fails_in(&scene);
    }
    attack.gets_through_as_root(|_| ());
}

#[test]
fn what_is_shown_may_go_away_and_more_may_be_shown() {
    for scene in Scene::confined() {
        scene.base.write("shown/file", "shown\n");
        // A folder that a root of one's own does not have.
        let settings = "sandbox.readable = [\"shown\", \"/boot\"]\n";
        scene.base.write("deaddrop.toml", settings);
        scene.hand_over();
        let results = scene.run(&["cat ../shown/file"], &[]);
        assert!(results.contains("Output: shown\n"), "{}: {results}", scene.name());
    }
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    scene.base.write("shown/file", "shown\n");
    scene.base.write("deaddrop.toml", "sandbox.readable = [\"shown\"]\n");
    let daemon = scene.base.serve(&["watch"]);
    scene.base.write("inbox/a.txt", crate::scene::reply(&["cat ../shown/file"]));
    assert!(scene.base.wait_for_outbox(2).contains("Output: shown\n"));
    scene.base.sh("rm -r shown");
    scene.base.write("inbox/b.txt", crate::scene::reply(&["cat ../shown/file; echo alive"]));
    let outbox = scene.base.wait_for_outbox(3);
    assert!(outbox.contains("alive\n") && outbox.contains("No such file"), "{outbox}");
    daemon.stop();
}
