//! Describes this machine for the Environment section of an outbox: its system, its shell, and the versions of the tools
//! that a coding agent needs.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use sysinfo::System;

use crate::text::capitalized;

/// A shell script that prints the version of each tool. [`tools_in`] parses its output.
pub const SCRIPT: &str = include_str!("data/tools.sh");

/// The shell that runs commands, and its option.
pub const SHELL: &str = "/bin/sh -c";

/// The operating system: `Debian GNU/Linux 12, Linux 6.1.0, x86_64`.
pub fn system() -> String {
    let name = System::name().ok();
    let named = name.map(|name| match System::os_version() {
        Ok(version) => format!("{name} {version}"),
        Err(_) => name,
    });
    let kernel = System::kernel_version().ok();
    let kernel = kernel.map(|version| format!("{} {version}", capitalized(env::consts::OS)));
    let parts = [named, kernel, Some(env::consts::ARCH.to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The shell, with its name if `/bin/sh` is a link: `/bin/sh -c (dash)`.
pub fn shell() -> String {
    let real = fs::canonicalize("/bin/sh").ok();
    match real.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some(name) if name != "sh" => format!("{SHELL} ({name})"),
        _ => SHELL.to_owned(),
    }
}

/// The tools in the script, with the command that prints the version of each.
pub fn known_tools() -> impl Iterator<Item = (&'static str, &'static str)> {
    let asks = |line: &'static str| line.strip_prefix("ask ")?.strip_suffix(" &")?.split_once(' ');
    SCRIPT.lines().filter_map(asks)
}

/// Parses the output of the script into tools with versions, such as `pip 24.1`.
pub fn tools_in(output: &str) -> Vec<String> {
    let lines = || output.lines().filter_map(|line| line.split_once(' '));
    let described = |name: &str| {
        let is_it =
            |(is, rest): &(&str, &str)| *is == "tool" && rest.split(' ').next() == Some(name);
        let (_, output) = lines().find(is_it)?;
        let version = version_in(output.strip_prefix(name).unwrap_or_default());
        // It belongs to another Python, so `python3 -m`, which often starts it, does not find it.
        let is_apart = lines().any(|(is, module)| is == "apart" && module == name);
        Some(match version {
            Some(version) if is_apart => {
                format!("{name} {version} (of another Python, with other packages than python3)")
            }
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        })
    };
    known_tools().filter_map(|(name, _)| described(name)).collect()
}

/// The names of the tools in PATH that commands see, according to `seen`. No tool is started.
pub fn tools(seen: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = known_tools().filter(|(name, _)| find(name, &folders, seen).is_some());
    found.map(|(name, _)| name.to_owned()).collect()
}

/// The first program of that name in a list of folders such as `PATH` that is `seen`.
pub(crate) fn find(name: &str, folders: &OsStr, seen: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let is_program =
        |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    env::split_paths(folders)
        // A relative entry would run a program in the current folder.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| path.metadata().is_ok_and(is_program) && seen(path))
}

/// The first version number in the output of a tool.
pub fn version_in(output: &str) -> Option<&str> {
    static VERSION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\d+(\.\d+)+").expect("a constant pattern"));
    VERSION.find(output).map(|found| found.as_str())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn program(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_tool_is_named_also_without_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let modules = "case \"$*\" in '-m pytest --version') exit 1;; *) echo Python 3.9.1;; esac";
        for (name, text) in [
            ("python3", modules),
            ("pip", "echo pip 24.1"),
            ("pytest", "echo pytest 8.2"),
            ("node", "exit 1"),
            ("npm", "echo 7.1; exit 1"),
            ("bun", "yes 1.2.3"),
            ("go", "echo none"),
        ] {
            program(folder.path(), name, &format!("#!/bin/sh\n{text}\n"));
        }
        // What cannot be started is there all the same.
        program(folder.path(), "dotnet", "#!/nowhere\n");
        fs::write(folder.path().join("ruby"), "no program").unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let mut shell = Command::new("/bin/sh");
        let output = shell.args(["-c", SCRIPT]).env("PATH", path).output().unwrap();
        let tools = tools_in(&String::from_utf8_lossy(&output.stdout));
        let alone = "pytest 8.2 (of another Python, with other packages than python3)";
        for wanted in
            ["python3 3.9.1", "pip 24.1", alone, "node", "npm", "bun 1.2.3", "go", "dotnet"]
        {
            assert!(tools.iter().any(|tool| tool == wanted), "{wanted}: {tools:?}");
        }
        assert_eq!(tools_in("tool x 1.2\napart pip\nmore"), [""; 0]);
    }
}
