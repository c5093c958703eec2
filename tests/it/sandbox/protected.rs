//! What a command may not write although it lies in the workspace, as the runner is told.

use std::path::PathBuf;

use deaddrop::protocol::Ending;
use deaddrop::runner::{CommandSpec, Runner};
use deaddrop::settings::{Sandbox, SandboxMode};

use crate::scene::{Asked, Scene, Way};
use crate::support::program;

const KEPT: [&str; 3] = [".git", "sub/.envrc", ".vscode"];

/// The exit codes of commands that may not write what is kept, or of the same that may.
fn run(scene: &Scene, mode: SandboxMode, kept: bool, commands: &[&str]) -> Vec<Ending> {
    let workspace = scene.base.at("workspace").canonicalize().unwrap();
    let runner = Runner::new(
        program().to_owned(),
        workspace.clone(),
        Sandbox { mode, ..Sandbox::default() },
    );
    let protected: Vec<PathBuf> =
        KEPT.iter().filter(|_| kept).map(|name| workspace.join(name)).collect();
    let own = scene.base.at("own");
    let run = |command: &&str| {
        let spec =
            CommandSpec { protected: &protected, ..CommandSpec::new(command, &workspace, &own) };
        runner.run(&spec, &|| false).ending
    };
    commands.iter().map(run).collect()
}

#[test]
fn what_is_kept_cannot_be_written_moved_or_removed() {
    let attacks = [
        "echo x > .git/hooks/pre-commit",
        "mkdir -p .git/hooks/new",
        "sed -i s/a/b/ .git/config",
        "chmod 777 .git/hooks",
        "mv .git away",
        "rm -rf .vscode; ! [ -e .vscode/settings.json ]",
        "echo x >> sub/.envrc",
        "ln -sf /tmp sub/.envrc",
        "mv sub/.envrc x",
    ];
    for (asked, mode) in [(Asked::Auto, SandboxMode::Auto), (Asked::Bwrap, SandboxMode::Bwrap)] {
        for kept in [true, false] {
            let Some(scene) = Scene::with(Way::AsItIs, asked) else { continue };
            scene.base.sh("cd workspace; mkdir -p .git/hooks sub .vscode; echo a > .git/config; echo a > sub/.envrc; echo a > .vscode/settings.json");
            let endings = run(&scene, mode, kept, &attacks);
            for (ending, attack) in endings.iter().zip(attacks) {
                assert_eq!(*ending != Ending::Exited(0), kept, "{asked:?}: {attack}: {ending:?}");
            }
            if kept {
                assert_eq!(scene.base.read("workspace/.git/config"), "a\n");
                assert_eq!(scene.base.names("workspace/.git/hooks"), [""; 0]);
                let read =
                    run(&scene, mode, kept, &["grep a .git/config sub/.envrc", "echo b > sub/new"]);
                assert_eq!(read, [Ending::Exited(0), Ending::Exited(0)]);
            }
        }
    }
}
