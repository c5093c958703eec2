//! Processes: a command reaches its own alone, may look into those, and leaves none behind.

use std::process::{Child, Stdio};
use std::time::Instant;

use super::{Attack, python};
use crate::scene::{Asked, Scene, Walls, Way, marked, marker};
use crate::support::PATIENCE;

/// A process of the same user beside deaddrop, which ends with the test.
pub(super) struct Victim(pub(super) Child);

impl Victim {
    pub(super) fn of(scene: &Scene) -> Self {
        let mut command = scene.command("sleep".as_ref(), &["1000"]);
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_signal_reaches_others() {
    let attack = |pid: u32| {
        Attack::new()
            .by("a process beside", format!("kill -0 {pid}"))
            .by("deaddrop", "d=$(cut -d' ' -f4 /proc/$PPID/stat); [ $d -gt 1 ] && kill -0 $d")
            .by("all", "for p in /proc/[0-9]*; do c=$(tr '\\0' ' ' < $p/cmdline); case $c in *sleep\\ 1000*|*apply\\ --again*) kill -0 ${p#/proc/} && exit; esac; done; false")
    };
    for scene in Scene::confined() {
        let victim = Victim::of(&scene);
        attack(victim.0.id()).fails_in(&scene);
    }
    let Some(open) = Scene::with(Way::NoPrivileges, Asked::Off) else { return };
    let victim = Victim::of(&open);
    attack(victim.0.id()).gets_through(&open);
}

#[test]
fn other_processes_cannot_be_traced_or_read() {
    let traced = |pid: u32| {
        let call = |script: String| {
            python(&format!("import ctypes,sys,os; l = ctypes.CDLL(None); {script}"))
        };
        // Seized, a process goes on.
        Some(
            Attack::new()
                .by("ptrace", call(format!("sys.exit(l.ptrace(0x4206, {pid}, 0, 0) != 0)"))?)
                .by("memory", call(format!("open(\"/proc/{pid}/mem\", \"rb\")"))?)
                .by("environment", call(format!("sys.exit(not open(\"/proc/{pid}/environ\").read())"))?)
                .by("files", call(format!("os.readlink(\"/proc/{pid}/fd/0\")"))?)
                .by("a file", call(format!("p = l.syscall(434, {pid}, 0); sys.exit(p < 0 or l.syscall(438, p, 0, 0) < 0)"))?)
                .by("memory at once", call(format!("sys.exit(l.process_vm_readv({pid}, 0, 0, 0, 0, 0) != 0 or not os.path.exists(\"/proc/{pid}/mem\") or not os.access(\"/proc/{pid}/cwd/.\", 1))"))?),
        )
    };
    for scene in Scene::confined() {
        let victim = Victim::of(&scene);
        let Some(attack) = traced(victim.0.id()) else { return };
        attack.fails_in(&scene);
    }
    let Some(open) = Scene::with(Way::NoNamespaces, Asked::Off) else { return };
    if std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|s| s.trim() != "0")
    {
        eprintln!("SKIPPED (in part): Yama lets nobody trace here anyway");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(open) = Scene::with(Way::AsItIs, Asked::Off).map(|as_root| (as_root, open)) else {
        return;
    };
    // In the pid namespace of a command that nothing confines, its own child is such a process.
    let attack =
        traced(0).unwrap().tries.into_iter().fold(Attack::new(), |attack, (name, tried)| {
            let tried =
                tried.replace("/proc/0/", "/proc/$v/").replace("\"/proc/$v/", "\"/proc/'$v'/");
            let tried =
                tried.replace("0x4206, 0,", "0x4206, '$v',").replace("434, 0, 0", "434, '$v', 0");
            let tried = tried.replace("readv(0,", "readv('$v',");
            attack.by(name, format!("sleep 1000 & v=$!; {tried}"))
        });
    attack.gets_through(&open.0);
}

#[test]
fn debuggers_work_on_a_commands_own_processes() {
    for tool in ["strace", "gdb"] {
        let Some(path) = ["/usr/bin", "/bin"]
            .map(|at| format!("{at}/{tool}"))
            .into_iter()
            .find(|at| std::path::Path::new(at).exists())
        else {
            eprintln!("SKIPPED: there is no {tool}");
            continue;
        };
        for scene in Scene::full() {
            let (command, said) = match tool {
                "strace" => (
                    format!(
                        "{path} -f -e trace=execve sh -c 'true; /bin/true' 2>&1 | grep -c 'execve.*= 0'"
                    ),
                    "Output: 2\n",
                ),
                _ => (
                    format!("{path} -q -batch -ex run -ex 'p 40+2' /bin/true 2>&1 | tail -n 1"),
                    "$1 = 42",
                ),
            };
            let results = scene.run(&[&command], &[]);
            assert!(results.contains(said), "{}: {results}", scene.name());
        }
    }
}

/// Takes every file of the processes above the command, and writes a report to it.
const TAKE: &str = "
import ctypes,os
l = ctypes.CDLL(None)
for pid in sorted({1, os.getppid(), int(open(\"/proc/%d/stat\" % os.getppid()).read().split()[3]) or 1}):
    p = l.syscall(434, pid, 0)
    for n in range(64):
        f = l.syscall(438, p, n, 0)
        if f >= 0 and n != 1 and n != 2:
            print(\"taken\", pid, n, os.readlink(\"/proc/self/fd/%d\" % f))
            try: os.write(f, b\"facts=0;error=forged\\n\")
            except OSError: pass
";

#[test]
fn a_report_cannot_be_forged_through_the_files_of_others() {
    let Some(take) = python(TAKE) else { return };
    for scene in Scene::confined() {
        let results = scene.run(&[&format!("{take}; exit 5")], &[]);
        assert!(results.contains("(exit code 5)"), "{}: {results}", scene.name());
        assert!(!results.contains("socket:"), "{}: {results}", scene.name());
    }
}

/// Trees that do not want to end, each with the mark N.
const TREES: [&str; 20] = [
    "(setsid sh -c 'sleep N & exec sleep N' &)",
    "sleep N & sh -c 'sleep N & exit 0'; exit 0",
    "(trap '' TERM HUP INT QUIT; setsid sleep N; sleep N) &",
    "setsid sh -c 'while :; do setsid sleep N & sleep 0.01; done' & sleep 0.1",
    "nohup setsid sh -c '(exec >/dev/null 2>&1; sleep N) &' &",
    "setsid sh -c 'setsid sh -c \"setsid sleep N &\" &' & sleep 0.05",
    "sh -c 'trap \"\" TERM; kill -STOP $$; sleep N' & sleep 0.02",
    "i=0; while [ $i -lt 30 ]; do (setsid sleep N &); i=$((i+1)); done",
    "echo 'sleep 0.005; setsid sh ./chain N & exit' > chain; setsid sh ./chain N & sleep 0.1",
    "echo 'setsid sh ./c1 N & setsid sh ./c1 N & sleep N' > c0; echo 'sleep 0.01; setsid sh ./c1 N' > c1; sh ./c0 N & sleep 0.1",
    "(exec 0<&- 1>&- 2>&-; setsid sleep N &)",
    "(cd /; setsid sleep N >/dev/null 2>&1 &)",
    "mkfifo f; (setsid sh -c 'cat f; sleep N' &); (setsid sh -c 'sleep N > f' &)",
    "kill -9 $$ & (setsid sleep N &) & setsid sleep N & wait",
    "(setsid sleep N &); kill -TERM -$$; kill -9 -1; sleep N",
    "(setsid nice -n 19 sleep N &); (setsid timeout 999 sleep N &)",
    "ulimit -t 1; (setsid sh -c 'ulimit -c 0; sleep N' &); exec true",
    "(setsid env -i /bin/sleep N &); (setsid sh -c 'exec -a x sleep N || exec sleep N' &)",
    "(setsid sh -c 'trap \"setsid sleep N &\" EXIT; sleep 0.05' &); (setsid sh -c 'trap \"sleep N\" TERM; sleep N & wait' &)",
    "sleep N | sleep N & (setsid sh -c 'sleep N | sleep N | sleep N' &); true",
];

#[test]
fn of_20_hostile_trees_none_outlives_its_command() {
    for scene in Scene::confined() {
        let n = marker();
        let trees = TREES.map(|tree| tree.replace('N', &n));
        let begun = Instant::now();
        let results =
            scene.run(&trees.each_ref().map(String::as_str), &["--command-timeout-seconds", "2"]);
        assert_eq!(
            results.matches(" RUN_COMMAND: Ran '").count(),
            20,
            "{}: {results}",
            scene.name()
        );
        assert!(begun.elapsed() < 2 * PATIENCE, "{}: {:?}", scene.name(), begun.elapsed());
        assert_eq!(marked(&n), [""; 0], "{}", scene.name());
        for left in ["chain", "c0", "f"] {
            let _ = std::fs::remove_file(scene.base.at("workspace").join(left));
        }
    }
}

#[test]
fn the_machines_processes_are_not_to_be_seen_where_there_is_a_namespace() {
    for scene in Scene::all_with(|walls| walls.are_full() || walls == Walls::OpenNamespace) {
        let results = scene.run(&["ls -d /proc/[0-9]* | wc -l"], &[]);
        let count = results.rsplit("Output: ").next().unwrap().trim().parse::<u32>();
        assert!(count.as_ref().is_ok_and(|count| *count < 8), "{}: {results}", scene.name());
    }
}
