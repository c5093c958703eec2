//! What a command changes: the workspace, its own folders, and nothing else; no contents, no
//! metadata, nothing of the kernel's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::{Attack, furnish, python};
use crate::scene::{Asked, NOBODY, Scene, Way};

/// What can be told of everything outside of the workspace but deaddrop's own.
fn outside(scene: &Scene, metadata: bool) -> BTreeMap<PathBuf, String> {
    let roots = ["outside", "home", "workspace-evil"].map(|name| scene.base.at(name));
    let entries = roots.iter().flat_map(walkdir::WalkDir::new);
    let entries = entries.map(|entry| {
        let path = entry.unwrap().into_path();
        let found = fs::symlink_metadata(&path).unwrap();
        let mut what = format!("{:?} {:?}", found.file_type(), fs::read(&path).ok());
        if metadata {
            what += &format!(" {:o} {} {}", found.mode(), found.uid(), found.mtime());
            what += &format!(" {} {}", found.mtime_nsec(), found.nlink());
        }
        (path, what)
    });
    entries.collect()
}

fn on_contents(scene: &Scene) -> Attack {
    let out = scene.base.at("outside");
    let out = out.display();
    Attack::new()
        .by("a new file", format!("echo x > {out}/new"))
        .by("a new folder", format!("mkdir {out}/folder"))
        .by("a new link", format!("ln -s x {out}/link"))
        .by("more in a file", format!("echo x >> {out}/secret"))
        .by("through a link", format!("ln -sfn {out} l; echo x > l/through"))
        .by("through /proc", format!("echo x > /proc/self/root/{out}/proc"))
        .by("a hard link", format!("ln {out}/secret {out}/hard"))
        .by("a FIFO", format!("mkfifo {out}/fifo"))
        .by("another name", format!("mv {out}/secret {out}/renamed"))
        .by("less in a file", format!("truncate -s 0 {out}/renamed"))
        .by("no file", format!("rm {out}/renamed"))
        .by("among the tools", "echo x > ../home/.local/bin/tool".to_owned())
        .by("a new tool", "echo x > ../home/.local/bin/new".to_owned())
        .by("no folder", "rm -r ../workspace-evil".to_owned())
}

#[test]
fn nothing_outside_of_the_workspace_can_be_written() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        let before = outside(&scene, true);
        on_contents(&scene).fails_in(&scene);
        scene.run(&["echo x > ../home/.bashrc; mkdir ../home/new; echo x > ~/.profile"], &[]);
        assert_eq!(outside(&scene, true), before, "{}", scene.name());
    }
    let Some(mut open) = Scene::with(Way::OrdinaryUser, Asked::Off) else { return };
    furnish(&mut open);
    on_contents(&open).gets_through(&open);
}

/// Whom a file can be given to by whom the scene's commands run as, if nothing confines them.
fn owner(scene: &Scene) -> u32 {
    let user = rustix::process::geteuid();
    match scene.way {
        Way::AsItIs if user.is_root() => 1,
        Way::AsItIs => user.as_raw(),
        _ => NOBODY,
    }
}

#[test]
fn metadata_outside_cannot_be_changed_where_that_is_promised() {
    let attack = |scene: &Scene| {
        let secret = scene.base.at("outside/secret");
        let secret = secret.display();
        Attack::new()
            .by("chmod", format!("chmod 777 {secret}"))
            .by("chmod of a folder", "chmod 777 ../outside")
            .by("utime", format!("touch -d 2001-01-01 {secret}"))
            .by("utime of a folder", "[ -e ../outside ] && touch -c -d 2001-01-01 ../outside")
            .by(
                "chown",
                // To another user as root, to the own one as an ordinary one.
                format!("chown {} {secret}", owner(scene)),
            )
    };
    for mut scene in Scene::full() {
        furnish(&mut scene);
        let before = outside(&scene, true);
        attack(&scene).fails_in(&scene);
        assert_eq!(outside(&scene, true), before, "{}", scene.name());
    }
    for way in [Way::OrdinaryUser, Way::AsItIs] {
        let Some(mut open) = Scene::with(way, Asked::Off) else { continue };
        furnish(&mut open);
        attack(&open).gets_through(&open);
    }
}

#[test]
fn the_system_and_the_kernels_settings_cannot_be_written() {
    // Opened to be written, or written as it is: root without a sandbox does no harm with it.
    let mut attack = Attack::new();
    for file in [
        "/etc/passwd",
        "/etc/hosts",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/overcommit_memory",
    ] {
        attack = attack.by(file, format!(": >> {file}"));
    }
    attack = attack
        .by("a pattern", "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern")
        .by("a number", "cat /proc/sys/kernel/pid_max > /proc/sys/kernel/pid_max")
        .by("a program", ": >> /usr/bin/ldd");
    for scene in Scene::full() {
        attack.fails_in(&scene);
        let keys = Attack::new().by("keys", ": >> /proc/sysrq-trigger");
        keys.by("interrupts", ": >> /proc/irq/default_smp_affinity").fails_in(&scene);
        let places =
            ["/", "/etc", "/usr", "/usr/bin", "/opt", "/dev", "/proc", "/sys", "/var", "/run"];
        let made = places.iter().fold(Attack::new(), |attack, at| {
            attack.by(*at, format!("touch {at}/deaddrop-attack || mkdir {at}/deaddrop-attack"))
        });
        made.fails_in(&scene);
    }
    attack.gets_through_as_root(|_| {});
}

#[test]
fn devices_can_neither_be_made_nor_opened() {
    let plant = |scene: &mut Scene| {
        scene.base.sh("mknod workspace/planted c 1 5 && chmod 666 workspace/planted");
    };
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can make a device");
        return;
    }
    let attack = Attack::new()
        .by("a disk", "rm -f disk; mknod disk b 254 0")
        .by("memory", "rm -f memory; mknod memory c 1 1")
        .by("one that is there", "[ $(head -c 1 planted | wc -c) = 1 ]");
    for mut scene in Scene::full() {
        plant(&mut scene);
        attack.fails_in(&scene);
        let results = scene.run(&["echo x > /dev/null; head -c 3 /dev/zero | wc -c"], &[]);
        assert!(results.contains("Output: 3"), "{}: {results}", scene.name());
    }
    attack.gets_through_as_root(plant);
}

#[test]
fn a_program_that_gives_rights_gives_none() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can make such a program");
        return;
    }
    let plant = |scene: &Scene| {
        scene.base.sh("cp /usr/bin/id workspace/rights; chmod 4755 workspace/rights");
    };
    for scene in Scene::confined().filter(|scene| scene.way == Way::OrdinaryUser) {
        plant(&scene);
        let results = scene.run(&["./rights -u"], &[]);
        assert!(results.contains(&format!("Output: {NOBODY}\n")), "{}: {results}", scene.name());
    }
    let Some(scene) = Scene::new(Way::OrdinaryUser) else { return };
    plant(&scene);
    let open = scene.command(&scene.base.at("workspace/rights"), &["-u"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&open.stdout), "0\n", "it gives none anyway");
}

#[test]
fn attributes_outside_cannot_be_set() {
    let Some(set) = python("import os,sys; os.setxattr(sys.argv[1], b\"user.x\", b\"1\")") else {
        return;
    };
    let attack = |scene: &Scene| {
        Attack::new()
            .by("attribute", format!("{set} {}", scene.base.at("outside/secret").display()))
    };
    for mut scene in Scene::full() {
        furnish(&mut scene);
        attack(&scene).fails_in(&scene);
    }
}
