//! Builds the root file system that a command sees. It starts as an empty file system, contains only what the request
//! lists, and replaces the old root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, chmodat, fstat, mkdirat, open, openat, openat2,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{fchdir, pivot_root};

use super::super::identified_path::cannot_show;
use super::super::request::{IdentifiedPath, Mount, MountKind, SandboxRequest};
use super::mounts::{self, READ_ONLY, SAFE};
use super::places::{self, FOLDER, HANDLE, is_link, names};
use super::{StepResult, cannot};

/// The folder that contains the sources of covers, `/dev/shm` and the discarded writes of overlays. It is removed once
/// the root is built.
const SCRATCH: &str = ".scratch";
/// The devices of the host that a command sees.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];
/// The parts of `/proc` that the owner of a file can write without any capability.
pub(super) const KERNEL_SETTINGS: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// The parts of `/proc` that reveal information about the whole machine.
pub(super) const KERNEL_SECRETS: [&str; 14] = [
    "kcore",
    "keys",
    "key-users",
    "latency_stats",
    "timer_list",
    "sched_debug",
    "scsi",
    "acpi",
    "vmallocinfo",
    "slabinfo",
    "pagetypeinfo",
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
];

/// A root that is being built.
struct RootBuilder<'a> {
    root: OwnedFd,
    request: &'a SandboxRequest,
    /// The session's own folders, at the paths that the command sees. Obstacles in them may be removed.
    private: Vec<&'a Path>,
    /// The person's folders that commands may write. Nothing in them may be removed.
    written: Vec<&'a Path>,
    overlays: usize,
    user_namespace: bool,
}

/// Builds the root of this request and enters it. Call this in a new mount namespace, as process 1 of a pid namespace.
pub(super) fn enter(request: &SandboxRequest, user_namespace: bool) -> StepResult<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(cannot("make the mounts private"))?;
    let mut builder = RootBuilder::new(request, user_namespace)?;
    for mount in &request.mounts {
        builder.mount(mount).map_err(|e| cannot_show(&mount.at, e))?;
    }
    builder.proc().map_err(cannot("mount /proc"))?;
    builder.dev().map_err(cannot("make /dev"))?;
    builder.finish().map_err(cannot("enter the root built for the command"))
}

impl<'a> RootBuilder<'a> {
    fn new(request: &'a SandboxRequest, user_namespace: bool) -> StepResult<Self> {
        let (mut private, mut written) = (Vec::new(), Vec::new());
        for mount in &request.mounts {
            if let MountKind::Write(from) = &mount.kind {
                let list = if from.path == mount.at { &mut written } else { &mut private };
                list.push(mount.at.as_path());
            }
        }
        let builder = Self {
            root: tmpfs("0755", "16m").map_err(cannot("make a root"))?,
            request,
            private,
            written,
            overlays: 0,
            user_namespace,
        };
        builder.begin().map_err(cannot("begin a root"))?;
        Ok(builder)
    }

    fn begin(&self) -> io::Result<()> {
        mounts::put(&self.root, open("/", HANDLE | OFlags::DIRECTORY, Mode::empty())?)?;
        fchdir(&self.root)?;
        let scratch = tmpfs("0755", "25%")?;
        mkdirat(&self.root, SCRATCH, FOLDER)?;
        mounts::put(&scratch, self.open_existing(Path::new(SCRATCH))?)?;
        mkdirat(&scratch, "folder", Mode::from_bits_retain(0o555))?;
        mkdirat(&scratch, "shared", FOLDER)?;
        // The umask applies to mkdir, but not to chmod.
        chmodat(&scratch, "shared", Mode::from_bits_retain(0o1777), AtFlags::empty())?;
        drop(openat(
            &scratch,
            "file",
            OFlags::CREATE | OFlags::CLOEXEC,
            Mode::from_bits_retain(0o444),
        )?);
        Ok(())
    }

    fn mount(&mut self, mount: &Mount) -> io::Result<()> {
        let at = &mount.at;
        match &mount.kind {
            MountKind::Read(from) => self.bind(from, at, READ_ONLY),
            MountKind::Write(from) => self.bind(from, at, SAFE),
            MountKind::Overlay(from) => self.overlay(from, at),
            MountKind::Link(to) => {
                let (Some(above), Some(name)) = (at.parent(), at.file_name()) else {
                    return Err(Errno::INVAL.into());
                };
                Ok(symlinkat(to, self.mount_point(above, true)?, name)?)
            }
            MountKind::Cover => self.cover(at),
            MountKind::Show => self.show(at),
            MountKind::Pin => self.bind_onto_itself(at, SAFE),
            MountKind::Keep => self.bind_onto_itself(at, READ_ONLY),
        }
    }

    fn bind(&self, from: &IdentifiedPath, to: &Path, flags: MountAttrFlags) -> io::Result<()> {
        let Some(found) = from.open(flags == SAFE)? else { return Ok(()) };
        mounts::put(mounts::tree_at(found, flags)?, self.mount_point(to, from.is_folder)?)
    }

    /// Mounts the entry at a path onto itself, if it exists.
    fn bind_onto_itself(&self, at: &Path, flags: MountAttrFlags) -> io::Result<()> {
        match self.open_existing(at) {
            Ok(there) if !is_link(&there)? => mounts::put(mounts::tree_at(&there, flags)?, &there),
            Err(e) if e != Errno::NOENT && e != Errno::NOTDIR && e != Errno::LOOP => Err(e.into()),
            _ => Ok(()),
        }
    }

    fn show(&self, at: &Path) -> io::Result<()> {
        match self.open_existing(at) {
            Ok(there)
                if FileType::from_raw_mode(fstat(&there)?.st_mode) == FileType::RegularFile =>
            {
                mounts::put(mounts::tree_at(&there, READ_ONLY)?, &there)
            }
            _ => self.cover(at),
        }
    }

    fn cover(&self, at: &Path) -> io::Result<()> {
        let there = match self.open_existing(at) {
            Ok(there) => there,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let empty = match FileType::from_raw_mode(fstat(&there)?.st_mode) {
            FileType::Directory => "folder",
            // This also covers a link. Its target is covered under the target's own path.
            _ => "file",
        };
        let empty = self.open_existing(&Path::new(SCRATCH).join(empty))?;
        mounts::put(mounts::tree_at(empty, READ_ONLY)?, there)
    }

    fn overlay(&mut self, from: &IdentifiedPath, at: &Path) -> io::Result<()> {
        let Some(found) = from.open(false)? else { return Ok(()) };
        let scratch = self.open_existing(Path::new(SCRATCH))?;
        self.overlays += 1;
        let option = |name: &str| -> io::Result<OsString> {
            let name = format!("{name}{}", self.overlays);
            mkdirat(&scratch, &name, FOLDER)?;
            places::give(&scratch, &name, self.request.user)?;
            Ok(format!("/proc/self/fd/{}/{name}", scratch.as_raw_fd()).into())
        };
        let (upper, work) = (option("upper")?, option("work")?);
        let lower = OsString::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
        let mut options: Vec<(&str, &OsStr)> =
            vec![("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
        if self.user_namespace {
            options.push(("userxattr", OsStr::new("")));
        }
        let overlay = mounts::new("overlay", &options, SAFE)?;
        mounts::put(overlay, self.mount_point(at, true)?)
    }

    fn proc(&self) -> io::Result<()> {
        let flags = SAFE | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let proc = mounts::new("proc", &[], flags)?;
        mounts::put(proc, self.mount_point(Path::new("/proc"), true)?)?;
        if self.request.limits.processes > 0 && super::limits::pid_max_is_ours() {
            let file = openat(
                self.open_existing(Path::new("proc/sys/kernel"))?,
                "pid_max",
                OFlags::WRONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            rustix::io::write(&file, self.request.limits.processes.to_string().as_bytes())?;
        }
        for name in KERNEL_SETTINGS {
            self.bind_onto_itself(&Path::new("proc").join(name), READ_ONLY)?;
        }
        KERNEL_SECRETS.iter().try_for_each(|name| self.cover(&Path::new("proc").join(name)))
    }

    fn dev(&self) -> io::Result<()> {
        let dev = self.mount_point(Path::new("/dev"), true)?;
        for name in DEVICES {
            let host = Path::new("/dev").join(name);
            // This is a device, so NODEV must not be set.
            let flags = MountAttrFlags::MOUNT_ATTR_NOSUID;
            mounts::put(mounts::tree(&host, flags)?, self.mount_point(&host, false)?)?;
        }
        for (to, name) in DEVICE_LINKS {
            symlinkat(to, &dev, name)?;
        }
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID;
        let options = [("ptmxmode", OsStr::new("0666")), ("mode", OsStr::new("0620"))];
        let terminals = mounts::new("devpts", &options, flags)?;
        mounts::put(terminals, self.mount_point(Path::new("/dev/pts"), true)?)?;
        let shared = self.open_existing(&Path::new(SCRATCH).join("shared"))?;
        mounts::put(mounts::tree_at(shared, SAFE)?, self.mount_point(Path::new("/dev/shm"), true)?)
    }

    /// Removes the old root, and makes the top folder of the new root read-only.
    fn finish(self) -> io::Result<()> {
        unmount(SCRATCH, UnmountFlags::DETACH)?;
        unlinkat(&self.root, SCRATCH, AtFlags::REMOVEDIR)?;
        mounts::restrict(&self.root, READ_ONLY, false)?;
        // This mounts the old root on top of the new one, so that it can be unmounted.
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        Ok(())
    }

    /// Opens the entry at a path, without following links.
    fn open_existing(&self, at: &Path) -> Result<OwnedFd, Errno> {
        const BELOW: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
        let below = at.strip_prefix("/").unwrap_or(at);
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        openat2(&self.root, below, HANDLE, Mode::empty(), BELOW)
    }

    /// Opens a file or folder to mount on, and creates it if missing.
    fn mount_point(&self, at: &Path, folder: bool) -> io::Result<OwnedFd> {
        // In a folder that only commands use, an earlier command may have put something else at this path.
        let is_within = |tops: &[&Path], path: &Path| {
            tops.iter().any(|top| path != *top && path.starts_with(top))
        };
        let is_private =
            |path: &Path| is_within(&self.private, path) && !is_within(&self.written, path);
        if !is_private(at)
            && let Ok(found) = self.open_existing(at)
        {
            let kind = FileType::from_raw_mode(fstat(&found)?.st_mode);
            if (kind == FileType::Directory) == folder && kind != FileType::Symlink {
                return Ok(found);
            }
        }
        let mut here = self.root.try_clone()?;
        let mut path = PathBuf::from("/");
        let mut left = names(at).peekable();
        while let Some(name) = left.next() {
            path.push(name);
            let folder = folder || left.peek().is_some();
            here = places::open_or_create(
                here.as_fd(),
                name,
                folder,
                is_private(&path),
                self.request.user,
            )?;
        }
        Ok(here)
    }
}

fn tmpfs(mode: &str, size: &str) -> io::Result<OwnedFd> {
    mounts::new("tmpfs", &[("mode", OsStr::new(mode)), ("size", OsStr::new(size))], SAFE)
}
