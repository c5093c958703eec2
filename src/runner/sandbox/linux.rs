//! The helper on Linux. Three processes where a pid namespace is to be had: the helper, which
//! deaddrop waits for; the namespace's init, whose end ends all in it; and the shell. Else two: the
//! helper adopts every process that loses its parent, and ends them one by one.
//!
//! Hard code, since it lives between fork and exec: nothing here may wait for a lock, and every
//! exit is `_exit`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_ulong, pid_t};

/// Where the report's pipe is moved to; closed on exec.
const REPORT: c_int = 3;
const SHELL: &CStr = c"/bin/sh";

/// The process whose death begins the end of the tree: init, or the shell.
static FIRST: AtomicI32 = AtomicI32::new(0);

pub(super) fn helper(parent: u32, command: &OsStr, hidden: &[OsString]) -> ! {
    let Ok(command) = CString::new(command.as_bytes()) else {
        fail(0, "the command holds a NUL byte");
    };
    let hidden: Vec<CString> =
        hidden.iter().filter_map(|path| CString::new(path.as_bytes()).ok()).collect();
    // SAFETY: plain system calls on integers and constant strings.
    unsafe {
        // deaddrop's end is the command's end, also when it is killed.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as c_ulong);
        if u32::try_from(libc::getppid()) != Ok(parent) {
            libc::_exit(1);
        }
        // The report moves first: else /dev/null would be opened as the descriptor it moves to.
        if libc::dup3(0, REPORT, libc::O_CLOEXEC) < 0 {
            fail(0, "cannot set up the report's pipe");
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if null < 0 || libc::dup2(null, 0) < 0 {
            fail(REPORT, "cannot set up the command's files");
        }
        // Nothing that deaddrop has open reaches the command.
        libc::syscall(libc::SYS_close_range, REPORT + 1, c_int::MAX, 0);
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    if enter_namespaces() { with_init(&command, &hidden) } else { as_subreaper(&command) }
}

/// As the user that we are, or else in a user namespace that maps us to ourselves.
fn enter_namespaces() -> bool {
    const WANTED: c_int = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    // SAFETY: single-threaded, so entering namespaces affects this process alone.
    unsafe {
        if libc::unshare(WANTED) == 0 {
            return true;
        }
        let (user, group) = (libc::geteuid(), libc::getegid());
        if libc::unshare(libc::CLONE_NEWUSER | WANTED) != 0 {
            return false;
        }
        // Without the maps the command would be nobody, and its files somebody else's.
        let maps = fs::write("/proc/self/setgroups", "deny")
            .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
            .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
        if maps.is_err() {
            fail(REPORT, "cannot map the user into a namespace");
        }
        true
    }
}

fn with_init(command: &CStr, hidden: &[CString]) -> ! {
    let mut alive = [0; 2];
    // SAFETY: system calls on our own descriptors and memory; the child of fork goes on in `init`.
    unsafe {
        if libc::pipe2(alive.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            fail(REPORT, "cannot make a pipe");
        }
        let init = fork_first();
        if init == 0 {
            libc::close(alive[1]);
            run_init(command, hidden, alive[0]);
        }
        forget_output();
        wait_for(init);
        libc::_exit(0)
    }
}

/// Process 1 of the namespace: reaps whatever ends, and ends with the shell.
fn run_init(command: &CStr, hidden: &[CString], helper_alive: c_int) -> ! {
    // SAFETY: system calls on integers and constant strings.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        // The helper may have died before that: then its end of the pipe is gone.
        let mut poll = libc::pollfd { fd: helper_alive, events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut poll, 1, 0) != 0 {
            libc::_exit(1);
        }
        libc::setsid();
        // A /proc that shows the namespace, if the mount stays our own. Where it is refused
        // (some containers) the old one remains, which shows only more.
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), private, ptr::null()) == 0 {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, ptr::null());
            if hidden.iter().all(|path| hide(path)) {
                report("hidden=yes");
            }
        }
        let shell = libc::fork();
        if shell == 0 {
            exec_shell(command);
        }
        let ending = wait_for(shell);
        report(&format!("contained=pidns\n{ending}"));
        libc::_exit(0)
    }
}

/// Covers a file or folder in this mount namespace; one that is not there needs no cover.
fn hide(path: &CStr) -> bool {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    // SAFETY: system calls on strings that outlive them and a zeroed buffer of the right type.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut found) != 0 {
            return std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT);
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

fn as_subreaper(command: &CStr) -> ! {
    // SAFETY: as in `with_init`.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong);
        let shell = fork_first();
        if shell == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
            libc::setsid();
            exec_shell(command);
        }
        forget_output();
        let ending = wait_for(shell);
        // Each round ends our children; theirs are ours in the next.
        while let Ok(children) = fs::read_to_string("/proc/thread-self/children") {
            for child in children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
                libc::kill(child, libc::SIGKILL);
            }
            if libc::waitpid(-1, ptr::null_mut(), 0) < 0 {
                break;
            }
        }
        report(&format!("contained=subreaper\n{ending}"));
        libc::_exit(0)
    }
}

/// Forks the process that a request to end will kill.
fn fork_first() -> pid_t {
    // SAFETY: the handler only loads an atomic and calls kill, which is async-signal-safe; the
    // signal is blocked while there is a child that the handler does not know.
    unsafe {
        let mut term: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut term);
        libc::sigaddset(&raw mut term, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const term, ptr::null_mut());
        let child = libc::fork();
        if child < 0 {
            fail(REPORT, "cannot start a process");
        }
        if child > 0 {
            FIRST.store(child, Ordering::Relaxed);
            let handler: extern "C" fn(c_int) = end_first;
            libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        }
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const term, ptr::null_mut());
        child
    }
}

extern "C" fn end_first(_: c_int) {
    // SAFETY: async-signal-safe; the child is not reaped before this process ends or reports.
    unsafe {
        libc::kill(FIRST.load(Ordering::Relaxed), libc::SIGKILL);
    }
}

/// The output belongs to the command alone: its pipe must close when the last of it is gone.
fn forget_output() {
    // SAFETY: closing our own descriptors; nothing here writes to them.
    unsafe {
        libc::close(1);
        libc::close(2);
    }
}

fn exec_shell(command: &CStr) -> ! {
    let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), command.as_ptr(), ptr::null()];
    // SAFETY: a null-terminated array of valid strings; on success this does not return.
    unsafe {
        libc::execv(SHELL.as_ptr(), arguments.as_ptr());
    }
    let why = std::io::Error::last_os_error();
    fail(REPORT, &format!("cannot run /bin/sh: {why}"))
}

/// Reaps until `child` has ended, and tells how.
fn wait_for(child: pid_t) -> String {
    let mut status = 0;
    loop {
        // SAFETY: `status` is ours.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended == child {
            break;
        }
        if ended < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return "error=the command was lost".to_owned();
        }
    }
    if libc::WIFSIGNALED(status) {
        format!("signal={}", libc::WTERMSIG(status))
    } else {
        format!("exit={}", libc::WEXITSTATUS(status))
    }
}

fn report(text: &str) {
    write(REPORT, &format!("{text}\n"));
}

fn fail(pipe: c_int, why: &str) -> ! {
    write(pipe, &format!("error={why}\n"));
    // SAFETY: ends this process.
    unsafe { libc::_exit(127) }
}

fn write(pipe: c_int, text: &str) {
    // SAFETY: the text is valid for its length. It is shorter than a pipe's buffer, so it is
    // written whole; a reader that is gone does not matter.
    unsafe {
        libc::write(pipe, text.as_ptr().cast(), text.len());
    }
}

/// Asks a helper to end its tree; its own end says that it is done.
pub(in crate::runner) fn ask_to_end(helper: u32) {
    if let Ok(pid) = pid_t::try_from(helper) {
        // SAFETY: the helper is our child and has not been waited for, so the number is still its.
        unsafe {
            libc::kill(pid, libc::SIGTERM);
        }
    }
}
