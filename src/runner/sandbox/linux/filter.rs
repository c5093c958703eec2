//! Uses seccomp to block the system calls that could break the sandbox and that no build or test needs.
//!
//! The filters contain rules that block calls; all other calls are allowed. Calls that programs probe for fail as they
//! would on a kernel without them.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::super::request::Backend;
use super::{StepResult, cannot};

const TARGET: TargetArch = if cfg!(target_arch = "aarch64") {
    TargetArch::aarch64
} else if cfg!(target_arch = "riscv64") {
    TargetArch::riscv64
} else {
    TargetArch::x86_64
};

/// Whether filters are supported on this machine's architecture.
pub(super) const AVAILABLE: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"));

/// Calls that are blocked regardless of their arguments.
const REFUSED: &[i64] = &[
    // The mount family: the command must not change its view.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // open_tree_attr, which is newer than the table of numbers.
    467,
    libc::SYS_setns,
    // Large parts of the kernel that often have vulnerabilities.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    // Keys of the user, which no namespace separates.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Opening files by handle instead of by name.
    libc::SYS_open_by_handle_at,
    // The machine itself, and the kernel's messages.
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];
/// Access to other processes. A pid namespace contains only the command's own processes, so there they are allowed.
const OTHER_PROCESSES: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_migrate_pages,
    // Queues and shared memory, which no namespace separates in the partial tier.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// The argument that selects the type of an ID, and its value for a process.
type OfKind = Option<(u8, u64)>;
/// Calls that change a process, with the index of the argument that is its ID. A command may only use 0, itself.
const OF_A_PROCESS: &[(i64, u8, OfKind)] = &[
    (libc::SYS_prlimit64, 0, None),
    (libc::SYS_sched_setscheduler, 0, None),
    (libc::SYS_sched_setparam, 0, None),
    (libc::SYS_sched_setattr, 0, None),
    (libc::SYS_sched_setaffinity, 0, None),
    (libc::SYS_move_pages, 0, None),
    (libc::SYS_setpriority, 1, Some((0, 0))),
    (libc::SYS_ioprio_set, 1, Some((0, 1))),
];
/// Calls that set the mode of a file, with the index of the mode argument and, if the mode applies only to new files,
/// the index of the flags argument.
const WITH_MODE: &[(i64, u8, Option<u8>)] = &[
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    // fchmodat2, which is newer than the table of numbers.
    (452, 2, None),
    (libc::SYS_mkdirat, 2, None),
    (libc::SYS_mknodat, 2, None),
    (libc::SYS_openat, 3, Some(2)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1, None),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2, Some(1)),
];
/// Set-user-ID and set-group-ID: outside the sandbox, other users would run such a file with the person's rights.
const SET_IDS: [u64; 2] = [0o4000, 0o2000];
/// The flags of an open call that creates a file.
const CREATING: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
/// All flags of `clone` and `unshare` that create a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Only for `unshare`, because in `clone` this bit is part of the signal number.
const NEW_TIME: i32 = 0x80;
/// The ioctls that insert text into a terminal as if somebody had typed it.
const TYPING: [u64; 2] = [0x5412, 0x541C];

/// Installs the filters for this process and all its descendants.
pub(super) fn apply(backend: Backend, network: bool) -> StepResult<()> {
    let fail = |e: seccompiler::Error| format!("cannot filter system calls: {e}");
    let families = families(backend, network);
    for (rules, errno) in [
        (refused(backend).map_err(cannot("make a filter of system calls"))?, libc::EPERM),
        // Filters cannot check these arguments, which are in memory. Programs fall back to `clone` and `openat`.
        (
            BTreeMap::from([(libc::SYS_clone3, Vec::new()), (libc::SYS_openat2, Vec::new())]),
            libc::ENOSYS,
        ),
        (families.map_err(cannot("make a filter of sockets"))?, libc::EAFNOSUPPORT),
    ] {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, TARGET)
            .map_err(cannot("make a filter"))?;
        let program: BpfProgram = filter.try_into().map_err(cannot("make a filter"))?;
        apply_filter(&program).map_err(fail)?;
    }
    if cfg!(target_arch = "x86_64") {
        apply_filter(&other_numbers()).map_err(fail)?;
    }
    Ok(())
}

type FilterRules = BTreeMap<i64, Vec<SeccompRule>>;
type FilterResult<T> = Result<T, seccompiler::BackendError>;

fn refused(backend: Backend) -> FilterResult<FilterRules> {
    let mut rules: FilterRules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if backend == Backend::Partial {
        rules.extend(OTHER_PROCESSES.iter().map(|call| (*call, Vec::new())));
        for (call, name, kind) in OF_A_PROCESS {
            let mut other = vec![rule(&[(*name, SeccompCmpOp::Ne, 0)])?];
            if let Some((kind, one)) = kind {
                other.push(rule(&[(*kind, SeccompCmpOp::Ne, *one)])?);
            }
            rules.insert(*call, other);
        }
    }
    let flag = |flag: &i32| -> FilterResult<SeccompRule> {
        let flag = u64::from(flag.unsigned_abs());
        rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    };
    rules.insert(libc::SYS_clone, NAMESPACES.iter().map(flag).collect::<FilterResult<_>>()?);
    let all = NAMESPACES.iter().chain([&NEW_TIME]);
    rules.insert(libc::SYS_unshare, all.map(flag).collect::<FilterResult<_>>()?);
    let typing = TYPING.iter().map(|number| rule(&[(1, SeccompCmpOp::Eq, *number)]));
    rules.insert(libc::SYS_ioctl, typing.collect::<FilterResult<_>>()?);
    for (call, mode, flags) in WITH_MODE {
        rules.insert(*call, set_ids(*mode, *flags)?);
    }
    Ok(rules)
}

/// Rules that block a mode with one of these bits. With `flags`, only calls that create a file are blocked.
fn set_ids(mode: u8, flags: Option<u8>) -> FilterResult<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for bit in SET_IDS {
        let has_bit = (mode, SeccompCmpOp::MaskedEq(bit), bit);
        let Some(flags) = flags else {
            rules.push(rule(&[has_bit])?);
            continue;
        };
        for flag in CREATING.map(|flag| u64::from(flag.unsigned_abs())) {
            let creates = (flags, SeccompCmpOp::MaskedEq(flag), flag);
            rules.push(rule(&[creates, has_bit.clone()])?);
        }
    }
    Ok(rules)
}

/// Rules that block all socket families but the allowed ones. VSOCK, for example, reaches a virtual machine's host.
fn families(backend: Backend, network: bool) -> FilterResult<FilterRules> {
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed: Vec<i32> = match (backend, network) {
        // In this tier, no namespace separates the host and the command.
        (Backend::Partial, false) => Vec::new(),
        (Backend::Partial, true) => internet.to_vec(),
        _ => internet.into_iter().chain([libc::AF_UNIX]).collect(),
    };
    let others = |allowed: &[i32]| -> FilterResult<Vec<SeccompRule>> {
        let family = |family: &i32| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()));
        let conditions: Vec<_> = allowed.iter().map(family).collect();
        // A call with an empty list of rules is blocked regardless of its arguments.
        if conditions.is_empty() { Ok(Vec::new()) } else { Ok(vec![rule(&conditions)?]) }
    };
    Ok(BTreeMap::from([
        (libc::SYS_socket, others(&allowed)?),
        // A pair of sockets does not reach any other process.
        (libc::SYS_socketpair, others(&[libc::AF_UNIX])?),
    ]))
}

/// A rule on arguments, compared in the 32 bits that the kernel uses.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> FilterResult<SeccompRule> {
    let conditions = conditions.iter().map(|(argument, compare, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compare.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<FilterResult<_>>()?)
}

/// Blocks the x32 calls, which are the same calls under other numbers, as if the kernel did not have them.
fn other_numbers() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
    let say = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        say(LOAD_NUMBER, 0, 0, 0),
        say(JUMP_IF_AT_LEAST, 0, 1, 0x4000_0000),
        say(RETURN, 0, 0, REFUSE),
        say(RETURN, 0, 0, ALLOW),
    ]
}
