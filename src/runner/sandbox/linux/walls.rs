//! What a process gives up for good before it becomes the command: its user, its capabilities and, through Landlock and
//! seccomp, access to files and system calls.
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

/// The highest capability number that the kernel's interface can represent.
const LAST_CAPABILITY: c_ulong = 63;
/// The newest Landlock version that is requested. Older kernels provide less.
const NEWEST: ABI = ABI::V6;
/// Devices that can be written without harm.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Devices that may be written if they belong to the command. Otherwise they include the person's terminals.
const OWN_DEVICES: [&str; 4] = ["/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"];

/// Gives up everything that the request requires. After this, the process only calls exec.
pub(super) fn drop_rights(request: &SandboxRequest) -> StepResult<MechanismSet> {
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

/// Switches to another user for good.
pub(super) fn become_user(user: u32, group: u32) -> io::Result<()> {
    // The changes apply to one thread only, and the process has only one.
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_groups(&[group])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

/// Gives up all capabilities, and also those that an exec as root would add.
fn drop_capabilities() -> io::Result<()> {
    // SAFETY: a system call on integers.
    unsafe {
        // This stops after the last capability of this kernel. It fails without privileges, but then no_new_privs
        // prevents an exec from granting capabilities.
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

/// Restricts which files may be read and which may be written. Returns whether signals and abstract sockets are
/// restricted, too, or None if the kernel has no Landlock.
fn confine_files(request: &SandboxRequest) -> StepResult<Option<bool>> {
    let mut rules = LandlockRules::new(request).map_err(failed)?;
    let partial = request.backend == Backend::Partial;
    if partial {
        rules.allow_path("/proc".as_ref(), false)?;
    } else {
        // A command with its own root may read everything in it.
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
            // A place that could not be shown does not exist, and needs no rule.
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

/// Builds the Landlock rules.
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

    /// Allows access to a path, if it exists.
    fn allow_path(&mut self, path: &Path, write: bool) -> StepResult<()> {
        PathFd::new(path).map_or(Ok(()), |found| self.allow(found, write))
    }

    fn allow(&mut self, found: impl AsFd, write: bool) -> StepResult<()> {
        let access = if write { AccessFs::from_all(NEWEST) } else { AccessFs::from_read(NEWEST) };
        (&mut self.made).add_rule(PathBeneath::new(found, access)).map_err(failed)?;
        Ok(())
    }

    /// Allows reading everything in `path` except covered places. Landlock has no exceptions, so this uses as few rules
    /// as possible. The target of a link in `path` has its own rules, or none.
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
