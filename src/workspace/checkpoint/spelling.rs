//! Names where the file system does not tell `a` from `A`: what is looked for under the one is found under the
//! other. Here only what a folder lists counts as a name, so that a file which was renamed from `a` to `A` is
//! gone from `a`, and comes back to it by a rename.

use std::ffi::{OsStr, OsString};
use std::io;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::clocks::tell_in;
use super::look::split;
use super::restore::{Fault, Hand};
use super::{Change, What};
use crate::workspace::Workspace;
use crate::workspace::names::{escaped_os, unescaped};

/// How a folder lists what a name reaches there.
pub(super) enum Listed {
    /// By that name; or nothing stands there, or the folder cannot be listed.
    So,
    /// By another.
    As(OsString),
    /// Not at all: the system remembers what was there.
    Not,
}

impl Listed {
    pub(super) fn of(folder: &Dir, name: &OsStr) -> Self {
        let is_there = |name: &OsStr| folder.symlink_metadata(name).is_ok();
        let text = name.to_string_lossy();
        let (lower, upper) = (text.to_lowercase(), text.to_uppercase());
        let other = if lower == *text { &upper } else { &lower };
        if *other == *text {
            return Self::So;
        }
        // Where another case reaches nothing, there is nothing to look for; but where files are told by other
        // programs, the system may remember each spelling by itself.
        if !is_there(other.as_ref()) && tell_in(folder) == Some(true) || !is_there(name) {
            return Self::So;
        }
        let Ok(entries) = folder.entries() else { return Self::So };
        let mut names: Vec<OsString> = Vec::new();
        for entry in entries.flatten() {
            let listed = entry.file_name();
            if listed == name {
                return Self::So;
            }
            names.push(listed);
        }
        let is_it = |listed: &OsString| listed.to_string_lossy().to_lowercase() == lower;
        names.into_iter().find(is_it).map_or(Self::Not, Self::As)
    }
}

impl Workspace {
    /// The path that folders list for what this one reaches: the same but where a file system does not tell
    /// cases apart. None where they list nothing for it.
    pub(super) fn spelling(&self, path: &str) -> Option<String> {
        let mut spelling: Vec<String> = Vec::new();
        let mut folder = self.root.try_clone().ok();
        let mut names = path.split('/').peekable();
        while let Some(text) = names.next() {
            let name = unescaped(text);
            let listed = folder.as_ref().map_or(Listed::So, |folder| Listed::of(folder, &name));
            if names.peek().is_some() {
                folder = folder.and_then(|folder| folder.open_dir_nofollow(&name).ok());
            }
            spelling.push(match listed {
                Listed::So => text.to_owned(),
                Listed::As(listed) => escaped_os(&listed),
                Listed::Not => return None,
            });
        }
        Some(spelling.join("/"))
    }

    /// Whether folders list what stands there by this very path.
    pub(super) fn lists(&self, path: &str) -> bool {
        self.spelling(path).as_deref() == Some(path)
    }
}

impl<'a> Hand<'a> {
    /// The change that has what stands there go, in whatever spelling: a folder on the way may have been renamed.
    fn takes_away(&self, path: &str) -> Option<&'a Change> {
        let changes = &self.plan.changes;
        let going = self.going.get_or_init(|| {
            let going = changes.iter().enumerate().filter(|(_, change)| change.after.is_none());
            // The first of each counts.
            going.rev().map(|(n, change)| (change.path.to_lowercase(), n)).collect()
        });
        going.get(&path.to_lowercase()).map(|n| &changes[*n])
    }

    /// What is to go, where it is by now: a folder on the way may have been renamed with what it holds.
    pub(super) fn carried(&self, change: &Change) -> Option<Change> {
        let path = self.workspace.spelling(&change.path)?;
        let ((to, name), (from, same)) = (split(&path), split(&change.path));
        let is_planned = || self.plan.change(&path).is_some();
        (to != from && name == same && !is_planned()).then(|| Change { path, ..change.clone() })
    }

    /// Makes way for what is to stand there where another spelling of the name stands in it, which is to go
    /// itself. A folder is renamed, with all that it holds. Tells whether the way is free.
    pub(super) fn respell(&mut self, n: usize, change: &Change) -> Result<bool, Fault> {
        let folder = self.folder(change)?;
        let (above, name) = split(&change.path);
        let name = unescaped(name);
        let temporary = self.plan.temporary(n);
        let is_folder = matches!(change.after, Some(What::Folder { .. }));
        // A stop came between the two renames.
        if is_folder && folder.symlink_metadata(&temporary).is_ok_and(|found| found.is_dir()) {
            folder.rename(&temporary, &folder, &name)?;
            return Ok(true);
        }
        let Listed::As(listed) = Listed::of(&folder, &name) else { return Ok(true) };
        let other = match above {
            "" => escaped_os(&listed),
            above => format!("{above}/{}", escaped_os(&listed)),
        };
        let Some(goes) = self.takes_away(&other) else { return Ok(false) };
        let now = self.store.look_at(self.workspace, &other, false).map_err(Fault::Store)?;
        match (&now, &goes.before) {
            (Some(What::Folder { .. }), Some(What::Folder { .. })) if is_folder => {
                folder.rename(&listed, &folder, &temporary)?;
                let renamed = folder.rename(&temporary, &folder, &name);
                // As it was, if that can be.
                let undo = |_: &io::Error| drop(folder.rename(&temporary, &folder, &listed));
                renamed.inspect_err(undo)?;
            }
            // What it held is kept, and what is to stand there is on disk.
            (Some(What::File { .. } | What::Link { .. }), before)
                if now == *before && !is_folder =>
            {
                folder.remove_file(&listed)?;
            }
            _ => return Ok(false),
        }
        self.touched(change);
        Ok(true)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use super::super::tests::{Scene, scene_in};
    use super::super::{Change, Recorder, reversed};

    /// A file system that does not tell cases apart.
    struct Mounted {
        dir: tempfile::TempDir,
        device: String,
    }

    fn run(program: &str, arguments: &[&Path]) -> Option<String> {
        let out = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    impl Mounted {
        fn new() -> Option<Self> {
            let dir = tempfile::tempdir().unwrap();
            let (image, at) = (dir.path().join("image"), dir.path().join("at"));
            std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
            std::fs::create_dir(&at).unwrap();
            run("mkfs.exfat", &[&image])?;
            let device = run("losetup", &["-f".as_ref(), "--show".as_ref(), &image])?;
            let mounted = Self { dir, device };
            run("mount.exfat-fuse", &[mounted.device.as_ref(), &at])?;
            Some(mounted)
        }

        fn at(&self) -> PathBuf {
            self.dir.path().join("at")
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            run("umount", &[&self.at()]);
            run("losetup", &["-d".as_ref(), self.device.as_ref()]);
        }
    }

    /// A workspace there with some files; None where none can be made.
    fn there() -> Option<(Mounted, Scene)> {
        let Some(mounted) = Mounted::new() else {
            eprintln!(
                "SKIPPED: no file system without cases can be mounted here (root, exfat-fuse)"
            );
            return None;
        };
        let scene = scene_in(&mounted.at());
        scene.sh("echo a > a; mkdir -p d/e; echo x > d/e/x; echo '*.log' > .gitignore; echo b > b");
        Some((mounted, scene))
    }

    #[test]
    fn what_was_renamed_in_case_alone_is_renamed_back() {
        for script in [
            "mv a A",
            "mv a A; echo more >> A",
            "mv a t; mv t A; echo other > b",
            "mv d t; mv t D",
            "mv d t; mv t D; mv D/e t; mv t D/E; mv D/E/x D/E/X; echo n > D/n",
            "mv d t; mv t D; mkdir D/new; mv D/e/x D/new/X; mv A B; mv b c",
        ] {
            let Some((_mounted, mut scene)) = there() else { return };
            let before = scene.all();
            let changes = scene.turn(script);
            assert_ne!(before, scene.all(), "{script}");
            for _ in 0..2 {
                scene.goes_back_and_forth(&changes, &before);
            }
        }
    }

    #[test]
    fn what_hangs_on_another_spelling_is_not_lost() {
        let Some((_mounted, mut scene)) = there() else { return };
        // What is not kept goes with its folder, or keeps it as it is.
        scene.sh("echo l > d/e/x.log");
        let changes = scene.turn("mv d t; mv t D");
        let left = scene.make(reversed(changes));
        let all = scene.all();
        let held: Vec<&String> = all.keys().filter(|path| path.ends_with("/x.log")).collect();
        assert_eq!(held.len(), 1, "{left:?}: {all:?}");
        assert!(all.keys().any(|path| path.to_lowercase() == "d/e/x"), "{left:?}: {all:?}");
        // Somebody's own file by another spelling is left.
        let changes = scene.turn("rm a");
        scene.sh("echo mine > A");
        let plan = scene.plan(reversed(changes), false);
        let done = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap();
        let [plan, done] = [plan.left, done.left].map(|left| format!("{left:?}"));
        assert_eq!(scene.all()["A"].1, b"mine\n", "{plan} {done}");
        assert!(done.contains("changed meanwhile"), "{plan} {done}");
    }

    #[test]
    fn an_operation_by_another_spelling_is_recorded_where_it_is_listed() {
        let Some((_mounted, mut scene)) = there() else { return };
        let before = scene.all();
        let path = crate::protocol::RelPath::parse("A").unwrap();
        let existing = crate::protocol::Existing::Replace;
        let Scene { workspace, store, .. } = &mut scene;
        let plan = workspace.plan_create(&path, b"new", existing, false).unwrap();
        let mut recorder = Recorder::new(store);
        recorder.before_file(workspace, plan.effect()).unwrap();
        plan.execute().unwrap();
        let changes: Vec<Change> = recorder.finish(workspace).changes.unwrap();
        scene.goes_back_and_forth(&changes, &before);
    }
}
