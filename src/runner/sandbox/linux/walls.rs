//! What a process gives up for good before it becomes the command: its user, its capabilities, and
//! by Landlock and seccomp what it could still reach.
#![allow(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus,
    Scope,
};
use libc::{c_ulong, gid_t, uid_t};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::super::order::{Means, Mount, Order};
use super::super::report::{Facts, Mechanism};
use super::{Step, filter, limits, while_};

/// The highest number of a capability that the kernel's interface has room for.
const LAST_CAPABILITY: c_ulong = 63;
/// The newest of Landlock that is asked for; older kernels give what they have.
const NEWEST: ABI = ABI::V6;
/// Written by programs that do no harm with it.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The same where they are the command's own: else they are the terminals that the person types in.
const OWN_DEVICES: [&str; 4] = ["/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"];

/// Gives up what the order says. Afterwards only an exec is left to do.
pub(super) fn raise(order: &Order) -> Step<Facts> {
    let mut facts = Facts::default();
    if let Some((user, group)) = order.user {
        become_user(user, group).map_err(while_("become the workspace's owner"))?;
    }
    drop_capabilities().map_err(while_("give up capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(while_("refuse new rights"))?;
    limits::set(order.limits)?;
    let scoped = confine_files(order).map_err(|e| format!("cannot set up Landlock: {e}"))?;
    facts.add_if(Mechanism::Landlock, scoped.is_some());
    facts.add_if(Mechanism::LandlockScope, scoped == Some(true));
    if filter::AVAILABLE {
        filter::apply(order.means, order.network)?;
    }
    Ok(facts)
}

/// Changes to another user for good.
pub(super) fn become_user(user: uid_t, group: gid_t) -> io::Result<()> {
    // SAFETY: system calls on integers and an array of one; single-threaded.
    unsafe {
        if libc::setgroups(1, &raw const group) != 0
            || libc::setresgid(group, group, group) != 0
            || libc::setresuid(user, user, user) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Gives up all capabilities, also those that an exec by root would give.
fn drop_capabilities() -> io::Result<()> {
    // SAFETY: a system call on integers.
    unsafe {
        // Ends beyond the last that this kernel has, and is refused to who is not privileged: then
        // no_new_privs keeps an exec from giving any.
        let mut capabilities = 0..=LAST_CAPABILITY;
        let _ =
            capabilities.find(|number| libc::prctl(libc::PR_CAPBSET_DROP, *number, 0, 0, 0) != 0);
    }
    rustix::thread::clear_ambient_capability_set()?;
    forget_capabilities()
}

/// Gives up the capabilities of a process that starts no other program.
pub(super) fn forget_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Files that may be read and those that may be written; all others are out of reach. Tells whether
/// signals and abstract sockets are confined too, or None where this kernel has no Landlock.
fn confine_files(order: &Order) -> Result<Option<bool>, landlock::RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if order.means == Means::Partial && !order.network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut rules = rules.create()?;
    let (read, write) = reach(order);
    for path in read {
        rules = allow(rules, &path, AccessFs::from_read(NEWEST))?;
    }
    for path in write {
        rules = allow(rules, &path, AccessFs::from_all(NEWEST))?;
    }
    let status = rules.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => None,
        RulesetStatus::FullyEnforced => Some(true),
        RulesetStatus::PartiallyEnforced => Some(has_scopes(&status.landlock)),
    })
}

fn has_scopes(status: &LandlockStatus) -> bool {
    matches!(status, LandlockStatus::Available { effective_abi, .. } if *effective_abi >= ABI::V6)
}

/// What is not there needs no rule.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    match PathFd::new(path) {
        Ok(handle) => rules.add_rule(PathBeneath::new(handle, access)),
        Err(_) => Ok(rules),
    }
}

/// The places to read and those to write. With a root of its own a command may read all of that.
fn reach(order: &Order) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut read, mut write) = (Vec::new(), DEVICES.map(PathBuf::from).to_vec());
    let partial = order.means == Means::Partial;
    if partial {
        read.push("/proc".into());
    } else {
        read.push("/".into());
        write.push("/proc".into());
        write.extend(OWN_DEVICES.map(PathBuf::from));
    }
    let covered: Vec<&Path> = order
        .mounts
        .iter()
        .filter_map(|mount| match mount {
            Mount::Cover { at } => Some(at.as_path()),
            _ => None,
        })
        .collect();
    for mount in &order.mounts {
        match mount {
            Mount::Read { from, .. } if partial => around(from, &covered, &mut read),
            Mount::Write { from, .. } if partial => write.push(from.clone()),
            Mount::Overlay { at } if partial => around(at, &covered, &mut read),
            Mount::Write { to: at, .. } | Mount::Overlay { at } => write.push(at.clone()),
            _ => {}
        }
    }
    (read, write)
}

/// All that is in `path`, in as few places as leave out what is covered: Landlock knows no
/// exceptions.
fn around(path: &Path, covered: &[&Path], places: &mut Vec<PathBuf>) {
    if covered.contains(&path) {
        return;
    }
    if !covered.iter().any(|cover| cover.starts_with(path)) {
        places.push(path.to_owned());
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        around(&entry.path(), covered, places);
    }
}
