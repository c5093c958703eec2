//! Whether the times of files tell that one is as it was. Most file systems note when anything of a file was
//! changed, and nobody can set that. Some have no such time and give that of the last writing for it, which
//! anybody can set back; and what is behind a network or another program, only its other side knows. There
//! files are read again at every scan.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use cap_std::fs::Dir;

use crate::workspace::folder_cache::FolderCache;
use crate::workspace::names::{split, unescaped};
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::detailed::WalkEntry;

/// What is known of file systems, by device, within one scan: a device can be another file system later.
#[derive(Debug, Default)]
pub(super) struct TrustedTimes(BTreeMap<u64, bool>);

impl TrustedTimes {
    /// Whether the times of what was met tell that it is as it was.
    pub(super) fn tell(&mut self, met: &WalkEntry, folders: &mut FolderCache) -> bool {
        if met.kind != Some(EntryKind::File) {
            return true;
        }
        if let Some(known) = self.0.get(&met.facts.device) {
            return *known;
        }
        let (folder, name) = split(&met.path);
        // Of what cannot be looked at nothing is known.
        let folder = folders.folder(folder).ok();
        let Some(tell) = folder.and_then(|folder| tell_of(folder, &unescaped(name))) else {
            return false;
        };
        self.0.insert(met.facts.device, tell);
        tell
    }
}

/// The same of what stands in a folder under a name; None where it cannot be looked at.
#[cfg(target_os = "linux")]
fn tell_of(folder: &Dir, name: &OsStr) -> Option<bool> {
    use rustix::fs::{Mode, OFlags, fstatfs, openat};
    #[cfg(test)]
    if tests::ARE_UNTOLD.get() {
        return Some(false);
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = fstatfs(openat(folder, name, flags, Mode::empty()).ok()?).ok()?;
    Some(tell_by(u64::try_from(found.f_type).unwrap_or_default()))
}

#[cfg(not(target_os = "linux"))]
fn tell_of(_: &Dir, _: &OsStr) -> Option<bool> {
    Some(true)
}

/// Whether times tell it on a file system of this sort, as `statfs` gives it.
#[cfg(target_os = "linux")]
fn tell_by(sort: u64) -> bool {
    // FAT, exFAT, HFS and HFS+; FUSE (and virtiofs); 9p; SMB as smbfs, cifs and smb3; shares of VirtualBox.
    // NFS has that time from its server.
    const UNTOLD: [u64; 10] = [
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
    !UNTOLD.contains(&(sort & 0xffff_ffff))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::cell::Cell;

    use super::super::scan::YOUNG;
    use super::super::tests::scene;
    use super::*;
    use crate::workspace::walk::detailed::now;

    thread_local! {
        /// Whether files stand, for this thread, where times tell nothing.
        pub(super) static ARE_UNTOLD: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn the_sort_of_a_file_system_decides() {
        // ext4, xfs, btrfs, tmpfs, overlayfs, nfs.
        for sort in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x6969] {
            assert!(tell_by(sort), "{sort:x}");
        }
        // As they come where the number is signed and has 32 bits.
        for sort in [0x4d44, 0x2011_bab0, 0x6573_5546, 0x0102_1997, 0xffff_ffff_ff53_4d42] {
            assert!(!tell_by(sort), "{sort:x}");
        }
        let root = Dir::open_ambient_dir("/", cap_std::ambient_authority()).unwrap();
        assert_eq!(tell_of(&root, OsStr::new("no such file")), None);
    }

    #[test]
    fn where_times_tell_nothing_files_are_read_again() {
        let scenes = [false, true].map(|untold| (untold, scene()));
        for (_, scene) in &scenes {
            scene.sh("echo one > a; touch -d '1 hour ago' a");
        }
        // Young files are looked at once more.
        let changed = now();
        while now() <= changed + YOUNG {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for (untold, mut scene) in scenes {
            ARE_UNTOLD.set(untold);
            scene.turn("true");
            // Were it read, what it holds would be kept again.
            std::fs::remove_dir_all(scene.dir.path().join("checkpoints/blobs")).unwrap();
            assert_eq!(scene.turn("true"), []);
            let is_kept = scene.store.blobs.has(&crate::blobs::BlobId::of(b"one\n"), 4);
            assert_eq!(is_kept, untold);
        }
        ARE_UNTOLD.set(false);
    }
}
