//! A command that nothing confines: with its user's rights, but ended whole, and where a mount
//! namespace is to be had without a sight of deaddrop's own files, or a hand on its settings.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use super::super::order::{Mount, Order};
use super::super::report::{Facts, Mechanism};

/// Covers deaddrop's files in this mount namespace, as the first process of its pid namespace.
/// What of it is refused (in some containers) remains as it was, and is not told to hold.
pub(super) fn hide(order: &Order) -> Facts {
    let mut facts = Facts::default();
    facts.add(Mechanism::PidNamespace);
    // SAFETY: system calls on constant strings.
    let private = unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), private, ptr::null()) == 0
    };
    if private {
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        // A /proc that shows the namespace. Where it is refused the old one shows only more.
        // SAFETY: as above.
        unsafe {
            libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, ptr::null());
        }
        let covered = order.mounts.iter().all(|mount| match mount {
            Mount::Cover { at } => {
                CString::new(at.as_os_str().as_bytes()).is_ok_and(|path| cover(&path))
            }
            Mount::Show { at } => {
                CString::new(at.as_os_str().as_bytes()).is_ok_and(|path| show(&path))
            }
            _ => true,
        });
        facts.add_if(Mechanism::Hidden, covered);
    }
    facts
}

/// Keeps a file from being written or replaced; what is no regular file is covered.
fn show(path: &CStr) -> bool {
    let again =
        libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: system calls on strings that outlive them and a zeroed buffer of the right type.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        if libc::lstat(path.as_ptr(), &raw mut found) != 0
            || found.st_mode & libc::S_IFMT != libc::S_IFREG
        {
            return cover(path);
        }
        let (path, null) = (path.as_ptr(), ptr::null());
        libc::mount(path, path, null, libc::MS_BIND, null.cast()) == 0
            && libc::mount(null, path, null, again, null.cast()) == 0
    }
}

/// Covers a file or folder; one that is not there needs no cover.
fn cover(path: &CStr) -> bool {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    // SAFETY: system calls on strings that outlive them and a zeroed buffer of the right type.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut found) != 0 {
            return super::errno() == libc::ENOENT;
        }
        let done = if found.st_mode & libc::S_IFMT == libc::S_IFDIR {
            let kind = c"tmpfs".as_ptr();
            libc::mount(kind, path.as_ptr(), kind, flags, ptr::null())
        } else {
            let null = c"/dev/null".as_ptr();
            libc::mount(null, path.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null())
        };
        done == 0
    }
}
