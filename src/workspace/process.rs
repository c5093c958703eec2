//! Recognises the `/proc` folders of this process, in case the workspace contains `/proc`. They expose its memory,
//! environment and open files. Each thread has such a folder, too. It is not listed, but can be opened by its ID.

use std::os::fd::AsFd;

/// Whether a folder is the `/proc` folder of this process or of one of its threads. `name` is the folder's name.
#[cfg(target_os = "linux")]
pub(super) fn is_own(folder: impl AsFd, name: &str) -> bool {
    use std::fs::File;
    use std::io::Read;

    use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, openat};

    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    // On other file systems, `status` can contain anything.
    let is_proc = fstatfs(&folder).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC);
    if !is_proc {
        return false;
    }
    let mut status = String::new();
    // Reading fails if the thread has ended.
    let file = openat(&folder, "status", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let read = file.map(|file| File::from(file).take(1 << 16).read_to_string(&mut status));
    let id = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    matches!(read, Ok(Ok(_)))
        && id.and_then(|id| id.trim().parse().ok()) == Some(std::process::id())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_own(_: impl AsFd, _: &str) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    use super::*;

    #[test]
    fn folders_of_this_process_and_its_threads_are_known() {
        let open = |path: &str| Dir::open_ambient_dir(path, ambient_authority()).unwrap();
        let own = std::process::id().to_string();
        assert!(is_own(open(&format!("/proc/{own}")), &own));
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        assert!(is_own(open(&format!("/proc/{thread}")), &thread) && thread != own);
        assert!(!is_own(open("/proc/1"), "1"));
        assert!(!is_own(open("/proc/sys"), "sys"));
        // On other file systems, a number is an ordinary name.
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("status"), format!("Tgid:\t{own}\n")).unwrap();
        assert!(!is_own(open(folder.path().to_str().unwrap()), &own));
    }
}
