//! What commands find under the names that the person gave it, not only where it really is; and
//! repositories that lie elsewhere.

use std::path::Path;

use super::{Attack, SECRET, furnish};
use crate::scene::{NOBODY, Scene, Way, reply, results};

/// Looks for a tool on PATH, and whether what a toolchain's variable names can be used.
const LOOK: &str = "tool; cat \"$CARGO_HOME/config.toml\"; cat \"$CARGO_HOME/registry/cached\"; \
     ls -d \"$HOME\" > /dev/null && echo home; cat \"$CARGO_HOME\"/credentials* ~/.cargo/credentials* \
     $ROOT/hlink/.cargo/credentials* $ROOT/hlink/diary; echo end";
const FOUND: &str = "  Output: a tool\n  # A token has no place here.\n  cached\n  home\n";

#[test]
fn tools_are_found_behind_links_that_lead_to_home_or_out_of_it() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        // A toolchain on another disk, and two links on the way to it.
        scene.base.sh("mkdir disk; mv home/.cargo disk/cargo; ln -s ../disk/cargo home/.cargo; ln -s home hlink; mv home/.local disk/local; ln -s ../disk/local home/.local");
        scene.base.write("deaddrop.toml", "sandbox.env = [\"ROOT\"]\n");
        scene.hand_over();
        let home = scene.base.at("hlink");
        let path = format!("{}/.local/bin:/usr/bin:/bin", home.display());
        scene.environment.retain(|(name, _)| *name != "HOME" && *name != "CARGO_HOME");
        scene.environment.push(("CARGO_HOME", home.join(".cargo")));
        scene.environment.push(("HOME", home));
        scene.environment.push(("PATH", path.into()));
        scene.environment.push(("ROOT", scene.base.path().into()));
        // Twice: the second finds what the first left in its HOME.
        let found = scene.run(&[LOOK, LOOK], &[]);
        assert_eq!(found.matches(FOUND).count(), 2, "{}: {found}", scene.name());
        assert!(!found.contains(SECRET), "{}: {found}", scene.name());
    }
}

#[test]
fn tools_are_found_behind_links_in_folders_that_are_not_the_persons() {
    for way in [Way::AsItIs, Way::OrdinaryUser] {
        let Some(mut scene) = Scene::new(way) else { continue };
        furnish(&mut scene);
        scene.base.write("deaddrop.toml", "sandbox.env = [\"ROOT\"]\n");
        scene.hand_over();
        scene.agree();
        // In a mount namespace of its own, this machine's folders stay as they are.
        let become_user = match way {
            Way::OrdinaryUser => {
                format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups")
            }
            _ => String::new(),
        };
        let script = format!(
            "base=$PWD; mount -t tmpfs none /mnt && ln -s \"$base/home\" /mnt/hlink && ln -s hlink /mnt/second || exit 77; \
             HOME=/mnt/second CARGO_HOME=/mnt/second/.cargo PATH=/mnt/second/.local/bin:/usr/bin:/bin ROOT=/mnt exec {become_user} \"$@\""
        );
        for sandbox in ["auto", "bwrap", "partial"] {
            let file = scene.base.write("reply.txt", reply(&[LOOK, LOOK]));
            let output = std::process::Command::new("unshare")
                .args(["-m", "sh", "-c", &script, "sh"])
                .arg(&scene.program)
                .args(["apply", "--again", "--sandbox", sandbox])
                .arg(file)
                .current_dir(scene.base.path())
                .env("XDG_CONFIG_HOME", scene.base.at(".no-config"))
                .env("XDG_STATE_HOME", scene.base.state())
                .output()
                .unwrap();
            if output.status.code() == Some(77) || output.status.code() == Some(1) {
                eprintln!("SKIPPED: only root can mount: {output:?}");
                return;
            }
            assert!(output.status.success(), "{sandbox}: {output:?}");
            let outbox = scene.base.read(String::from_utf8(output.stdout).unwrap().trim());
            let found = results(&outbox);
            assert_eq!(found.matches(FOUND).count(), 2, "{way:?}, {sandbox}: {found}");
            assert!(!found.contains(SECRET), "{way:?}, {sandbox}: {found}");
        }
    }
}

/// Makes a repository in `main` whose worktree is the workspace, and another one beside it.
fn worktree(scene: &Scene) {
    scene.base.sh(
        "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e; \
         rm -rf workspace; chown $(id -u) .; \
         for r in main other; do git init -q $r; echo a > $r/a; git -C $r add a; git -C $r commit -qm first-$r; done; \
         git -C main worktree add -q ../workspace; echo b >> workspace/a",
    );
    scene.hand_over();
}

#[test]
fn git_reads_the_repository_of_a_worktree_and_cannot_write_it() {
    if !Path::new("/usr/bin/git").exists() && !Path::new("/usr/local/bin/git").exists() {
        eprintln!("SKIPPED: there is no git");
        return;
    }
    for scene in Scene::confined() {
        worktree(&scene);
        let found = scene.run(&["git log --oneline; git diff --stat; git status --short"], &[]);
        assert!(
            found.contains("first-main") && found.contains("1 insertion"),
            "{}: {found}",
            scene.name()
        );
        let base = scene.base.path().display();
        Attack::new()
            .by("hooks", format!("echo x > {base}/main/.git/hooks/pre-commit"))
            .by("settings", format!("echo x >> {base}/main/.git/config"))
            .by("its own HEAD", format!("echo x > {base}/main/.git/worktrees/workspace/HEAD"))
            .by("files beside it", format!("cat {base}/main/a"))
            .fails_in(&scene);
        // A file that names a repository does not open it.
        scene.base.write("workspace/.git", format!("gitdir: {base}/other/.git\n"));
        scene.hand_over();
        Attack::new().by("another", format!("cat {base}/other/.git/HEAD")).fails_in(&scene);
    }
}

#[test]
fn a_workspace_in_the_other_folder_for_temporary_files_is_seen() {
    for scene in Scene::confined() {
        let workspace = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = workspace.path().display();
        std::fs::write(workspace.path().join("file"), "here\n").unwrap();
        if scene.way == Way::OrdinaryUser {
            std::os::unix::fs::chown(workspace.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        scene.base.write("deaddrop.toml", format!("workspace_dir = \"{path}\"\n"));
        scene.hand_over();
        let found = scene.run(&["cat file && echo new > new"], &[]);
        assert!(found.contains("Output: here\n"), "{}: {found}", scene.name());
        assert!(workspace.path().join("new").exists(), "{}: {found}", scene.name());
    }
}
