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

/// The tools that a coding agent needs.
pub const TOOLS: [&str; 19] = [
    "python3", "pip", "pytest", "node", "npm", "bun", "deno", "cargo", "rustc", "go", "java",
    "dotnet", "ruby", "php", "perl", "gcc", "make", "cmake", "git",
];
/// The tools whose versions are those of modules of `python3`.
const PYTHON_TOOLS: [&str; 2] = ["pip", "pytest"];

/// A shell script that prints the versions of tools. [`described`] parses its output.
pub const SCRIPT: &str = include_str!("data/tools.sh");

/// The shell that runs commands, with its option.
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

/// The shell. If `/bin/sh` is a link, the target's name follows: `/bin/sh -c (dash)`.
pub fn shell() -> String {
    let real = fs::canonicalize("/bin/sh").ok();
    match real.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some(name) if name != "sh" => format!("{SHELL} ({name})"),
        _ => SHELL.to_owned(),
    }
}

/// Describes these tools with the versions that the script printed, for example `pip 24.1`.
pub fn described<'t>(tools: impl Iterator<Item = &'t str>, output: &str) -> Vec<String> {
    let said = |tool: &str| {
        let of_tool = |line| str::strip_prefix(line, tool)?.strip_prefix(' ');
        output.lines().find_map(of_tool)
    };
    let python = said("python3");
    let described = |tool: &str| {
        let module = python.filter(|_| PYTHON_TOOLS.contains(&tool));
        let said = match module {
            Some(python) => python.split_once(&format!(" {tool} ")).map(|(_, rest)| rest),
            None => said(tool),
        };
        match said.and_then(version_in) {
            Some(version) => format!("{tool} {version}"),
            // The tool exists, but `python3 -m`, which often starts it, does not find it.
            None if module.is_some() && said.is_none() => {
                format!("{tool} (of another Python, with other packages than python3)")
            }
            None => tool.to_owned(),
        }
    };
    tools.map(described).collect()
}

/// The first program with this name for which `seen` is true, in a list of folders such as `PATH`.
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
        for (name, text) in [
            ("python3", "echo '3.9.1 (main) [GCC 12.2]'; echo pip 24.1"),
            ("node", "exit 1"),
            ("deno", "echo 7.1; exit 1"),
            ("bun", "yes 1.2.3"),
            ("go", "echo none"),
            ("cargo", "echo 'cargo * 1.90.0 (x)'"),
        ] {
            program(folder.path(), name, &format!("#!/bin/sh\n{text}\n"));
        }
        // A program counts as found even if it cannot be started.
        program(folder.path(), "dotnet", "#!/nowhere\n");
        fs::write(folder.path().join("ruby"), "no program").unwrap();
        let is_found = |tool| find(tool, folder.path().as_os_str(), &|_| true).is_some();
        assert!(is_found("dotnet") && !is_found("ruby"));
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let mut shell = Command::new("/bin/sh");
        let output = shell.args(["-c", SCRIPT]).env("PATH", path).output().unwrap();
        let output = String::from_utf8_lossy(&output.stdout);
        let all = described(TOOLS.into_iter(), &output);
        let apart = "pytest (of another Python, with other packages than python3)";
        for wanted in [
            "python3 3.9.1",
            "pip 24.1",
            apart,
            "node",
            "npm",
            "deno",
            "bun 1.2.3",
            "go",
            "cargo 1.90.0",
            "dotnet",
        ] {
            assert!(all.iter().any(|tool| tool == wanted), "{wanted}: {all:?}");
        }
        assert_eq!(described(["pip", "x"].into_iter(), "python 3\npip"), ["pip", "x"]);
        // This version of Python cannot report its modules.
        let all =
            described(["python3", "pip", "pytest"].into_iter(), "python3 3.6.8 pip ? pytest ?");
        assert_eq!(all, ["python3 3.6.8", "pip", "pytest"]);
    }
}
