//! A folder of tools that print their versions at once. The first outbox of a session and each guest ask all tools for
//! their versions, and some take half a second, which would be most of the time of the tests. For all other arguments,
//! these tools run the real ones.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Puts it before the tools of the machine, as `activate` does.
pub(crate) fn activate(command: &mut Command) {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let folder = MADE.get_or_init(|| make(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools")));
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder.join("bin")].into_iter().chain(env::split_paths(&path)));
    command.env("VIRTUAL_ENV", folder).env("PATH", path.expect("they were joined before"));
}

/// The tools that the program asks for their versions, by its script, and with which option.
fn known_tools() -> impl Iterator<Item = (&'static str, &'static str)> {
    let asks = |line: &'static str| line.strip_prefix("ask ")?.strip_suffix(" &")?.split_once(' ');
    include_str!("../../../src/data/tools.sh").lines().filter_map(asks)
}

/// Makes it in this folder; another run of the tests may do the same there.
fn make(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    // `git` says it at once.
    for (name, flag) in known_tools().filter(|(name, _)| *name != "git") {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        let mut real = folders.map(|folder| folder.join(name)).filter(|tool| tool.is_file());
        let Some(real) = real.find(|tool| !tool.starts_with(folder)) else { continue };
        let (flag, said) = match name {
            // It also says the versions of modules.
            "python3" => ("-c import sys; print(sys.version)'*'", "1.2.3 pip 1.2.3 pytest 1.2.3"),
            _ => (flag, "1.2.3"),
        };
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in\n'{flag}') echo '{name} {said}' ;;\n*) exec '{}' \"$@\" ;;\nesac\n",
            real.display()
        );
        // A program that was written by this process might be held open by what another thread starts.
        let write = "printf %s \"$1\" > $2.$$ && chmod 755 $2.$$ && mv $2.$$ $2";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-ec", write, "sh", &script, name]).current_dir(&bin);
        assert!(shell.status().unwrap().success(), "{name}");
    }
    folder.to_owned()
}
