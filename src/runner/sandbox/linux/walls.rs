//! What a process gives up for good before it becomes the command: its user, its capabilities, and
//! by Landlock and seccomp what it could still reach.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use libc::c_ulong;
use rustix::fs::{Dir, FileType, Gid, Mode, OFlags, Uid, openat};
use rustix::thread::{
    CapabilitySet, CapabilitySets, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::super::identified_path::{self, cannot_show};
use super::super::report::{Mechanism, MechanismSet};
use super::super::request::{Backend, Mount, MountKind, SandboxRequest};
use super::places::{HANDLE, is_link};
use super::{StepResult, cannot, filter, limits};

/// The highest number of a capability that the kernel's interface has room for.
const LAST_CAPABILITY: c_ulong = 63;
/// The newest of Landlock that is asked for; older kernels give what they have.
const NEWEST: ABI = ABI::V6;
/// Written by programs that do no harm with it.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The same where they are the command's own: else they are the terminals that the person types in.
const OWN_DEVICES: [&str; 4] = ["/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"];

/// Gives up what the request says. Afterwards only an exec is left to do.
pub(super) fn raise(request: &SandboxRequest) -> StepResult<MechanismSet> {
    let mut facts = MechanismSet::default();
    if let Some((user, group)) = request.user {
        become_user(user, group).map_err(cannot("become the workspace's owner"))?;
    }
    drop_capabilities().map_err(cannot("give up capabilities"))?;
    rustix::thread::set_no_new_privs(true).map_err(cannot("refuse new rights"))?;
    limits::set(request.limits)?;
    let scoped = confine_files(request)?;
    facts.add_if(Mechanism::Landlock, scoped.is_some());
    facts.add_if(Mechanism::LandlockScope, scoped == Some(true));
    if filter::AVAILABLE {
        filter::apply(request.backend, request.network)?;
    }
    Ok(facts)
}

/// Changes to another user for good.
pub(super) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // Single-threaded: what holds for the thread holds for the process.
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_groups(&[group])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
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
fn confine_files(request: &SandboxRequest) -> StepResult<Option<bool>> {
    let mut rules = LandlockRules::new(request).map_err(failed)?;
    let partial = request.backend == Backend::Partial;
    if partial {
        rules.allow_path("/proc".as_ref(), false)?;
    } else {
        // With a root of its own a command may read all of that.
        rules.allow_path("/".as_ref(), false)?;
        rules.allow_path("/proc".as_ref(), true)?;
        OWN_DEVICES.iter().try_for_each(|path| rules.allow_path(path.as_ref(), true))?;
    }
    DEVICES.iter().try_for_each(|path| rules.allow_path(path.as_ref(), true))?;
    for Mount { at, kind } in &request.mounts {
        match kind {
            MountKind::Read(from) | MountKind::Overlay(from) if partial => {
                if let Some(found) = from.open(false).map_err(|e| cannot_show(at, e))? {
                    rules.allow_around(found.into(), &from.path)?;
                }
            }
            MountKind::Write(from) if partial => {
                if let Some(found) = from.open(true).map_err(|e| cannot_show(at, e))? {
                    rules.allow(found, true)?;
                }
            }
            // What was not to be shown is not there.
            MountKind::Write(_) | MountKind::Overlay(_) => {
                if let Ok((found, _)) = identified_path::open(at) {
                    rules.allow(found, true)?;
                }
            }
            _ => {}
        }
    }
    let status = rules.made.restrict_self().map_err(failed)?;
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => None,
        RulesetStatus::FullyEnforced => Some(true),
        RulesetStatus::PartiallyEnforced => Some(has_scopes(&status.landlock)),
    })
}

fn failed(e: impl Display) -> String {
    format!("cannot set up Landlock: {e}")
}

fn has_scopes(status: &LandlockStatus) -> bool {
    matches!(status, LandlockStatus::Available { effective_abi, .. } if *effective_abi >= ABI::V6)
}

/// Landlock's rules in the making.
struct LandlockRules<'a> {
    made: RulesetCreated,
    covered: Vec<&'a Path>,
}

impl<'a> LandlockRules<'a> {
    fn new(request: &'a SandboxRequest) -> Result<Self, RulesetError> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?;
        if request.backend == Backend::Partial && !request.network {
            rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let covered = request.mounts.iter().filter(|mount| mount.kind == MountKind::Cover);
        Ok(Self { made: rules.create()?, covered: covered.map(|mount| &*mount.at).collect() })
    }

    /// A place of the system's; what is not there needs no rule.
    fn allow_path(&mut self, path: &Path, write: bool) -> StepResult<()> {
        PathFd::new(path).map_or(Ok(()), |found| self.allow(found, write))
    }

    fn allow(&mut self, found: impl AsFd, write: bool) -> StepResult<()> {
        let access = if write { AccessFs::from_all(NEWEST) } else { AccessFs::from_read(NEWEST) };
        (&mut self.made).add_rule(PathBeneath::new(found, access)).map_err(failed)?;
        Ok(())
    }

    /// Allows reading all that is in `path`, in as few rules as leave out what is covered: Landlock
    /// knows no exceptions. What a link there leads to has rules of its own, or none.
    fn allow_around(&mut self, found: OwnedFd, path: &Path) -> StepResult<()> {
        if self.covered.contains(&path) {
            return Ok(());
        }
        if !self.covered.iter().any(|cover| cover.starts_with(path)) {
            return self.allow(found, false);
        }
        let listed = openat(&found, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        for entry in listed.and_then(Dir::new).into_iter().flatten().flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." || entry.file_type() == FileType::Symlink {
                continue;
            }
            if let Ok(below) = openat(&found, name, HANDLE, Mode::empty())
                && !is_link(&below).unwrap_or(true)
            {
                self.allow_around(below, &path.join(name))?;
            }
        }
        Ok(())
    }
}
