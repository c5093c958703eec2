//! System calls that commands do not get: each is made for real, with arguments that would only
//! let the kernel say what is wrong with them.

use super::{Attack, python};
use crate::scene::{Asked, Scene, Way, printed};

/// Ends well where the kernel was asked; badly where the call is refused or not there.
const CALL: &str = "import ctypes,sys; l = ctypes.CDLL(None, use_errno=True); r = l.syscall(*[ctypes.c_long(int(a)) for a in sys.argv[1:]]); sys.exit(r == -1 and ctypes.get_errno() in (1, 38))";

/// The calls, by name: number and arguments. What is not marked is harmless without a sandbox.
fn calls() -> Vec<(&'static str, i64, &'static str)> {
    vec![
        ("mount", libc::SYS_mount, "0 1 0 0 0"),
        ("umount", libc::SYS_umount2, "1 0"),
        ("pivot_root", libc::SYS_pivot_root, "1 1"),
        ("chroot", libc::SYS_chroot, "1"),
        ("open_tree", libc::SYS_open_tree, "-1 1 0"),
        ("move_mount", libc::SYS_move_mount, "-1 1 -1 1 0"),
        ("fsopen", libc::SYS_fsopen, "1 0"),
        ("fsconfig", libc::SYS_fsconfig, "-1 0 0 0 0"),
        ("fsmount", libc::SYS_fsmount, "-1 0 0"),
        ("fspick", libc::SYS_fspick, "-1 1 0"),
        ("mount_setattr", libc::SYS_mount_setattr, "-1 1 0 0 0"),
        ("setns", libc::SYS_setns, "-1 0"),
        ("unshare a user namespace", libc::SYS_unshare, "268435456"),
        ("unshare mounts", libc::SYS_unshare, "131072"),
        ("unshare processes", libc::SYS_unshare, "536870912"),
        ("unshare time", libc::SYS_unshare, "128"),
        ("clone a user namespace", libc::SYS_clone, "268435968 0 0 0 0"),
        ("clone3", libc::SYS_clone3, "0 0"),
        ("io_uring_setup", libc::SYS_io_uring_setup, "1 0"),
        ("io_uring_enter", libc::SYS_io_uring_enter, "-1 0 0 0 0 0"),
        ("io_uring_register", libc::SYS_io_uring_register, "-1 0 0 0"),
        ("bpf", libc::SYS_bpf, "0 0 0"),
        ("userfaultfd", libc::SYS_userfaultfd, "0"),
        ("perf_event_open", libc::SYS_perf_event_open, "0 0 -1 -1 0"),
        ("keyctl", libc::SYS_keyctl, "0 -3 0"),
        ("add_key", libc::SYS_add_key, "0 0 0 0 0"),
        ("request_key", libc::SYS_request_key, "0 0 0 0"),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1 0 0"),
        ("syslog", libc::SYS_syslog, "3 0 0"),
        ("acct", libc::SYS_acct, "1"),
        ("quotactl", libc::SYS_quotactl, "0 0 0 0"),
        ("swapon", libc::SYS_swapon, "1 0"),
        ("swapoff", libc::SYS_swapoff, "1"),
        ("reboot", libc::SYS_reboot, "0 0 0 0"),
        ("init_module", libc::SYS_init_module, "0 0 0"),
        ("delete_module", libc::SYS_delete_module, "1 0"),
        ("settimeofday", libc::SYS_settimeofday, "1 0"),
        ("clock_settime", libc::SYS_clock_settime, "0 1"),
    ]
}

fn attack(call: &str) -> Attack {
    calls().into_iter().fold(Attack::new(), |attack, (name, number, arguments)| {
        attack.by(name, format!("{call} {number} {arguments}"))
    })
}

#[test]
fn what_no_build_needs_is_refused() {
    let Some(call) = python(CALL) else { return };
    let Some(open) = Scene::with(Way::AsItIs, Asked::Off) else { return };
    if rustix::process::geteuid().is_root() {
        // What this kernel does not have is no attack.
        let results = open.run(
            &calls()
                .iter()
                .map(|(_, number, arguments)| format!("{call} {number} {arguments}"))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            &[],
        );
        let lines =
            results.lines().filter(|line| line.starts_with("[OK]") || line.starts_with("[FAILED]"));
        let missing: Vec<&str> = (calls().iter().zip(lines))
            .filter(|(_, line)| line.starts_with("[FAILED]"))
            .map(|((name, ..), _)| *name)
            .collect();
        assert!(missing.len() < 12, "{missing:?}");
        if !missing.is_empty() {
            eprintln!("SKIPPED (in part): not on this kernel: {missing:?}");
        }
    }
    for scene in Scene::confined() {
        attack(&call).fails_in(&scene);
    }
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    let Some(typing) = python(
        "import os,pty,fcntl,sys; m, s = pty.openpty(); os.fork() and sys.exit(os.wait()[1] >> 8); os.setsid(); fcntl.ioctl(s, 0x540E, 0)\ntry: fcntl.ioctl(s, 0x5412, b\"x\")\nexcept OSError as e: sys.exit(e.errno == 1)",
    ) else {
        return;
    };
    let attack = Attack::new().by("TIOCSTI", typing);
    for scene in Scene::full() {
        attack.fails_in(&scene);
        let results = scene.run(&["tty; ls /proc/self/fd; true < /dev/tty || echo none"], &[]);
        assert!(printed(&results, "not a tty") && printed(&results, "none"), "{results}");
    }
    attack.gets_through_as_root(|_| {});
}

#[test]
fn no_other_numbers_lead_to_the_same_calls() {
    if cfg!(not(target_arch = "x86_64")) {
        eprintln!("SKIPPED: other processors have one table of calls");
        return;
    }
    let Some(call) = python(CALL) else { return };
    // unshare by the numbers of x32.
    let attack = Attack::new().by("x32", format!("{call} {} 268435456", 0x4000_0000 + 272));
    for scene in Scene::confined() {
        attack.fails_in(&scene);
    }
}

#[test]
fn no_capability_is_left_or_can_be_got() {
    for scene in Scene::confined() {
        let results = scene.run(&["grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"], &[]);
        for held in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert!(results.contains(&format!("{held}:\t0000000000000000")), "{results}");
        }
        assert!(results.contains("NoNewPrivs:\t1") && results.contains("Seccomp:\t2"), "{results}");
    }
}
