//! A Wayland compositor, and no clipboard at all.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{has, holders, reply, sees_holders, without_clipboard};
use crate::support::{ID, Project, Run, wait_until};

/// A compositor without a screen, ended when this is dropped.
struct Compositor {
    child: Child,
    folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Compositor {
    fn start() -> Option<Self> {
        if !has("sway") || !has("wl-copy") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("settings");
        fs::write(&settings, "").unwrap();
        let mut command = Command::new("sway");
        if rustix::process::geteuid().is_root() {
            // It refuses to be root's.
            let nobody = 65534;
            std::os::unix::fs::chown(folder.path(), Some(nobody), Some(nobody)).unwrap();
            command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sway"]);
        }
        without_clipboard(command.arg("-c").arg(settings));
        command.envs([("WLR_BACKENDS", "headless"), ("WLR_RENDERER", "pixman")]);
        command.env("WLR_LIBINPUT_NO_DEVICES", "1").env("XDG_RUNTIME_DIR", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut this = Self { child, folder, socket: PathBuf::new() };
        let mut ended = false;
        wait_until("the compositor", || {
            let entries = fs::read_dir(this.folder.path()).unwrap().map(|e| e.unwrap().path());
            let mut sockets = entries.filter(|path| path.to_string_lossy().contains("/wayland-"));
            if let Some(lock) = sockets.find(|path| path.extension().is_some_and(|e| e == "lock")) {
                this.socket = lock.with_extension("");
            }
            ended = this.child.try_wait().unwrap().is_some();
            ended || this.pastes().is_some()
        });
        if ended {
            eprintln!("SKIPPED: sway does not start here");
        }
        (!ended).then_some(this)
    }

    fn at<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        without_clipboard(command)
            .env("WAYLAND_DISPLAY", &self.socket)
            .env("XDG_RUNTIME_DIR", self.folder.path())
    }

    /// What `wl-paste` gives; None where it does not reach the compositor.
    fn pastes(&self) -> Option<String> {
        let mut command = Command::new("wl-paste");
        let output = self.at(command.arg("--no-newline")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let nothing =
            ["Nothing is copied", "No selection"].iter().any(|words| said.contains(words));
        (output.status.success() || nothing).then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn copies(&self, text: &str) {
        let mut command = Command::new("wl-copy");
        let mut child = self
            .at(&mut command)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        wait_until("wl-copy to have the clipboard", || self.pastes().as_deref() == Some(text));
    }
}

impl Drop for Compositor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn on_wayland_a_session_goes_on_by_copying_and_pasting_alone() {
    let Some(mut compositor) = Compositor::start() else { return };
    let base = Project::with_session();
    let said = Run::of(compositor.at(&mut base.command(&["show", "--copy"])), "").ok().stderr;
    assert!(said.contains("is on the desktop's clipboard, over Wayland."), "{said}");
    assert_eq!(compositor.pastes(), Some(base.outbox(1)));
    compositor.copies(&reply(&base, 1, "a.txt"));
    Run::of(compositor.at(&mut base.command(&["next"])), "").ok();
    assert_eq!(compositor.pastes(), Some(base.outbox(2)));

    let daemon = base.start_as(compositor.at(&mut base.command(&["watch", "--clipboard"])));
    daemon.wait_for("are also taken from the desktop's clipboard, over Wayland.");
    compositor.copies(&reply(&base, 2, "b.txt"));
    base.wait_for_outbox(3);
    wait_until("outbox 3", || compositor.pastes() == Some(base.outbox(3)));
    daemon.stop();
    if sees_holders() {
        let variable = format!("WAYLAND_DISPLAY={}", compositor.socket.display());
        assert_eq!(holders(&variable).len(), 1);
        let _ = compositor.child.kill();
        wait_until("the end of the holder", || holders(&variable).is_empty());
    }
}

#[test]
fn what_is_too_long_is_no_reply_and_no_trouble() {
    let Some(compositor) = Compositor::start() else { return };
    let base = Project::with_session();
    let whole = reply(&base, 1, "x.txt");
    compositor.copies("something");
    let daemon = base.start_as(compositor.at(&mut base.command(&["watch", "--clipboard"])));
    daemon.wait_for("are also taken from the desktop's clipboard, over Wayland.");
    // One byte more than is looked at.
    compositor.copies(&format!("{whole}{}", "x".repeat((8 << 20) + 1 - whole.len())));
    let mut command = base.command(&["apply", "--clipboard"]);
    let run = Run::of(compositor.at(&mut command), "").with_code(1);
    assert!(run.stderr.contains("it contains more than 8388608 bytes"), "{run:?}");
    assert!(base.names("workspace").is_empty());
    // With that byte less it is one.
    compositor.copies(&format!("{whole}{}", "x".repeat((8 << 20) - whole.len())));
    base.wait_for_outbox(2);
    assert!(!daemon.said().contains("no replies come"), "{}", daemon.said());
    daemon.stop();
}

#[test]
fn where_no_way_takes_it_the_path_is_left_and_all_is_told() {
    let base = Project::with_session();
    let mut command = base.command(&["show", "--copy"]);
    without_clipboard(&mut command).env("DISPLAY", ":7654");
    let run = Run::of(&mut command, "").ok();
    assert_eq!(run.stdout, format!("outbox/{ID}_seq0001.txt\n"));
    for told in ["(x11: its display cannot be reached, or does not", "; osc52: this"] {
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    // Of a part it is said how to see it.
    let mut command = base.command(&["show", "--copy", "--part", "2/3"]);
    let run = Run::of(without_clipboard(&mut command), "").ok();
    assert!(
        run.stderr.contains("`deaddrop show 1 --session a1b2c3d4 --part 2/3` prints it"),
        "{run:?}"
    );
    let mut command = base.command(&["show", "--copy", "--json"]);
    let run = Run::of(without_clipboard(&mut command), "").ok();
    let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&told["way"], &told["outbox"]),
        (&"path".into(), &format!("outbox/{ID}_seq0001.txt").into())
    );
    let mut command = base.command(&["apply", "--clipboard"]);
    let run = Run::of(without_clipboard(&mut command), "").with_code(1);
    assert!(run.stderr.contains("`deaddrop apply -` take the reply from standard"), "{run:?}");
}
