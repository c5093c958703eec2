//! What a command sees: nothing of the person's and nothing of the machine's but what it was given.

use super::{Attack, SECRET, SECRETS, furnish};
use crate::scene::{Asked, Scene, Way};

/// Reads each of these files below the project.
fn reading(scene: &Scene, files: &[&str]) -> Attack {
    let base = scene.base.path().display();
    files.iter().fold(Attack::new(), |attack, file| {
        attack.by(*file, format!("grep '{SECRET}' {base}/{file}"))
    })
}

/// Settings with the secret in them.
const SETTINGS: [&str; 3] =
    ["home/.cargo/config", "home/.cabal/config", "home/.local/pipx/venvs/tool/pipx_metadata.json"];

/// All that is the person's alone.
fn of_the_person() -> Vec<&'static str> {
    SECRETS.into_iter().chain(SETTINGS).collect()
}

#[test]
fn of_the_persons_files_only_toolchains_are_seen() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        reading(&scene, &of_the_person()).fails_in(&scene);
        let home = scene.base.at("home");
        let home = home.display();
        let results = scene
            .run(&[&format!("{home}/.local/bin/tool; cat {home}/.cargo/registry/cached {home}/.cargo/config.toml")], &[]);
        assert!(
            results.contains("  Output: a tool\n  cached\n  # A token"),
            "{}: {results}",
            scene.name()
        );
    }
    let Some(mut open) = Scene::with(Way::OrdinaryUser, Asked::Off) else { return };
    furnish(&mut open);
    reading(&open, &of_the_person()).gets_through(&open);
}

#[test]
fn no_way_around_leads_to_them() {
    let attack = || {
        Attack::new()
            .by("a relative path", format!("grep '{SECRET}' ../outside/secret"))
            .by("a link", format!("ln -sf ../outside/secret l; grep '{SECRET}' l"))
            .by("a link to a folder", format!("ln -sfn ../outside f; grep '{SECRET}' f/secret"))
            .by("a hard link", format!("ln ../outside/secret h && grep '{SECRET}' h"))
            .by(
                "the root of itself",
                format!("grep '{SECRET}' /proc/self/root/$PWD/../outside/secret"),
            )
            .by("the folder of itself", format!("grep '{SECRET}' /proc/self/cwd/../outside/secret"))
            .by("a look around", format!("grep -r '{SECRET}' .."))
    };
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        attack().fails_in(&scene);
    }
    attack().gets_through_as_root(furnish);
}

#[test]
fn other_processes_lead_nowhere() {
    for mut scene in Scene::confined() {
        furnish(&mut scene);
        let base = scene.base.path().display();
        Attack::new()
            .by("roots", format!("grep '{SECRET}' /proc/[0-9]*/root/{base}/outside/secret"))
            .by("folders", format!("grep '{SECRET}' /proc/[0-9]*/cwd/outside/secret"))
            .by("open files", format!("for f in /proc/[0-9]*/fd/*; do [ -f $f ] && grep '{SECRET}' $f && exit; done; false"))
            .by("environments", "tr '\\0' '\\n' < /proc/1/environ | grep .")
            .by("deaddrop's environment", "cat /proc/[0-9]*/environ | grep -a hunter2")
            .by("memory", "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || : < $p/mem && exit 0; done 2>/dev/null; exit 1")
            .fails_in(&scene);
        let results = scene.run(&["tr '\\0' ' ' < /proc/1/cmdline"], &[]);
        assert!(results.contains("RUN_COMMAND: Ran 'tr "), "{}: {results}", scene.name());
        assert!(!results.contains("a1b2c3d4"), "{}: {results}", scene.name());
    }
}

#[test]
fn of_the_machine_only_programs_and_settings_are_seen() {
    let attack = Attack::new()
        .by("passwords", "head -c 1 /etc/shadow | grep .")
        .by("group passwords", "head -c 1 /etc/gshadow | grep .");
    for scene in Scene::confined() {
        attack.fails_in(&scene);
        let results = scene.run(&["grep -c root: /etc/passwd; ls -d /usr/bin/env /bin/sh"], &[]);
        assert!(results.contains("Output: 1\n  /bin/sh\n  /usr/bin/env"), "{results}");
    }
    attack.gets_through_as_root(|_| {});
    for scene in Scene::full() {
        Attack::new()
            .by("logs", "ls -d /var/log")
            .by("the boot folder", "ls -d /boot")
            .by("other homes", "ls /home/*/* /root/../srv")
            .by("mounts", "ls -d /mnt /media")
            .by("what runs", "ls /run/* | grep -v deaddrop | grep . && ls /run/lock")
            .by("the kernel's files", "ls -d /sys/kernel /sys/fs /sys/class")
            .by("disks", "ls /dev | grep -E '^(sd|vd|nvme|loop|dm-|mapper|mem$|kmsg$|kvm$|fuse$)'")
            .by("memory of the machine", "head -c 1 /proc/kcore | grep .")
            .by("keys", "grep . /proc/keys")
            .fails_in(&scene);
    }
}

#[test]
fn what_a_file_keeps_secret_in_etc_is_not_seen() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    // In a mount namespace of its own, this machine's /etc stays as it is.
    let script = "mkdir -p e u w && mount -t tmpfs none w && mkdir w/u w/w \
        && mount -t overlay -o lowerdir=/etc,upperdir=w/u,workdir=w/w none /etc || exit 77; \
        mkdir -p /etc/tool; for f in pip.conf npmrc tool/netrc; do echo secret1 > /etc/$f; done; \
        mkdir -m 700 /etc/closed; echo secret2 > /etc/closed/key; \
        (umask 077; echo secret3 > /etc/private); echo open4 > /etc/public; exec \"$@\"";
    let command = "cat /etc/pip.conf /etc/npmrc /etc/tool/netrc /etc/closed/key /etc/private /etc/public; true";
    for sandbox in ["auto", "bwrap", "partial"] {
        let file = scene.base.write("reply.txt", crate::scene::reply(&[command]));
        let output = scene
            .command("unshare".as_ref(), &["-m", "sh", "-c", script, "sh"])
            .arg(&scene.program)
            .args(["apply", "--again", "--sandbox", sandbox])
            .arg(file)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) || told.starts_with("unshare: ") {
            eprintln!("SKIPPED: only root can change /etc for himself: {output:?}");
            return;
        }
        let outbox = scene.base.read(String::from_utf8(output.stdout).unwrap().trim());
        assert!(outbox.contains("open4"), "{sandbox}: {outbox}");
        let shown = ["secret1", "secret2", "secret3"].iter().any(|secret| outbox.contains(secret));
        assert!(!shown, "{sandbox}: {outbox}");
    }
}

#[test]
fn a_file_hidden_by_its_mode_is_hidden_from_root_too() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can give files away");
        return;
    }
    // As root, commands run as the owner of the workspace.
    for sandbox in [Asked::Auto, Asked::Bwrap] {
        let Some(scene) = Scene::with(Way::AsItIs, sandbox) else { continue };
        scene.base.sh(
            "chmod 755 .; chown 60123:60123 workspace; echo mine > workspace/root; chmod 600 workspace/root",
        );
        let results = scene.run(
            &["id -u; id -g; touch new; stat -c %u new ~ /tmp; cat root; touch ~/x /tmp/x && echo own"],
            &[],
        );
        let expected = "  Output: 60123\n  60123\n  60123\n  60123\n  60123\n  cat: root: Permission denied\n  own";
        assert!(results.contains(expected), "{}: {results}", scene.name());
    }
}
