//! Decides whether a file system's times prove that a file is unchanged. Most file systems record when an inode changed
//! (ctime), and nobody can set that time. Some report the modification time instead, which anybody can set. Network and
//! user-space file systems may report anything. Files on untrusted systems are read in every scan.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use cap_std::fs::Dir;

use crate::workspace::folder_cache::FolderCache;
use crate::workspace::names::{split, unescaped};
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::detailed::WalkEntry;

/// Whether times can be trusted, by device. Only valid within one scan: a device number can be reused.
#[derive(Debug, Default)]
pub(super) struct TrustedTimes(BTreeMap<u64, bool>);

impl TrustedTimes {
    /// Whether the times of this entry can be trusted.
    pub(super) fn are_trusted(&mut self, met: &WalkEntry, folders: &mut FolderCache) -> bool {
        if met.kind != Some(EntryKind::File) {
            return true;
        }
        if let Some(known) = self.0.get(&met.facts.device) {
            return *known;
        }
        let (folder, name) = split(&met.path);
        // An entry that cannot be read is not trusted.
        let folder = folders.folder(folder).ok();
        let Some(trusted) = folder.and_then(|folder| are_trusted_at(folder, &unescaped(name)))
        else {
            return false;
        };
        self.0.insert(met.facts.device, trusted);
        trusted
    }
}

/// Whether the times of the entry with this name can be trusted. None if the entry cannot be opened.
#[cfg(target_os = "linux")]
fn are_trusted_at(folder: &Dir, name: &OsStr) -> Option<bool> {
    use rustix::fs::{Mode, OFlags, fstatfs, openat};
    #[cfg(test)]
    if tests::ARE_UNTRUSTED.get() {
        return Some(false);
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = fstatfs(openat(folder, name, flags, Mode::empty()).ok()?).ok()?;
    Some(are_trusted_on(u64::try_from(found.f_type).unwrap_or_default()))
}

#[cfg(not(target_os = "linux"))]
fn are_trusted_at(_: &Dir, _: &OsStr) -> Option<bool> {
    Some(true)
}

/// Whether times can be trusted on a file system of this type, as reported by `statfs`.
#[cfg(target_os = "linux")]
fn are_trusted_on(kind: u64) -> bool {
    // FAT, exFAT, HFS and HFS+; FUSE (and virtiofs); 9p; SMB as smbfs, cifs and smb3; shares of VirtualBox.
    // NFS is trusted, because it gets the ctime from its server.
    const UNTRUSTED: [u64; 10] = [
        0x4d44,
        0x2011_bab0,
        0x4244,
        0x482b,
        0x6573_5546,
        0x0102_1997,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x786f_4256,
    ];
    !UNTRUSTED.contains(&(kind & 0xffff_ffff))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::Cell;

    use super::super::scan::{READS, YOUNG};
    use super::super::tests::scene;
    use super::*;
    use crate::workspace::walk::detailed::now;

    thread_local! {
        /// Whether this thread trusts the times of no file system.
        pub(super) static ARE_UNTRUSTED: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn the_sort_of_a_file_system_decides() {
        // ext4, xfs, btrfs, tmpfs, overlayfs, nfs.
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x6969] {
            assert!(are_trusted_on(kind), "{kind:x}");
        }
        // The last value is how a signed 32-bit number arrives.
        for kind in [0x4d44, 0x2011_bab0, 0x6573_5546, 0x0102_1997, 0xffff_ffff_ff53_4d42] {
            assert!(!are_trusted_on(kind), "{kind:x}");
        }
        let root = Dir::open_ambient_dir("/", cap_std::ambient_authority()).unwrap();
        assert_eq!(are_trusted_at(&root, OsStr::new("no such file")), None);
    }

    #[test]
    fn where_times_tell_nothing_files_are_read_again() {
        let scenes = [false, true].map(|untrusted| (untrusted, scene()));
        for (_, scene) in &scenes {
            scene.sh("echo one > a; touch -d '1 hour ago' a");
        }
        // Young files are read once more.
        let changed = now();
        while now() <= changed + YOUNG {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for (untrusted, mut scene) in scenes {
            ARE_UNTRUSTED.set(untrusted);
            scene.turn("true");
            scene.store = scene.new_store(100_000);
            let reads = READS.get();
            assert_eq!(scene.turn("true"), []);
            assert_eq!(READS.get() > reads, untrusted);
        }
        ARE_UNTRUSTED.set(false);
    }
}
