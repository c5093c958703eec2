//! What this machine is, for the Environment section of an outbox: its system, its shell, and the
//! versions of the tools that a coding agent asks for.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use regex::Regex;
use sysinfo::System;
use wait_timeout::ChildExt;

/// The tools that are asked for, and how.
pub const TOOLS: [(&str, &str); 19] = [
    ("python3", "--version"),
    ("pip", "--version"),
    ("pytest", "--version"),
    ("node", "--version"),
    ("npm", "--version"),
    ("bun", "--version"),
    ("deno", "--version"),
    ("cargo", "--version"),
    ("rustc", "--version"),
    ("go", "version"),
    ("java", "-version"),
    ("dotnet", "--version"),
    ("ruby", "--version"),
    ("php", "--version"),
    ("perl", "-v"),
    ("gcc", "--version"),
    ("make", "--version"),
    ("cmake", "--version"),
    ("git", "--version"),
];

/// Those that may be a module of `python3`, or belong to another one.
const MODULES: [&str; 2] = ["pip", "pytest"];

/// How long one tool may take to say its version; a slow one is named without it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The shell that commands are given to, and how.
pub const SHELL: &str = if cfg!(windows) { "cmd.exe /c" } else { "/bin/sh -c" };

/// The operating system in a few words: `Debian GNU/Linux 12, Linux 6.1.0, x86_64`.
pub fn system() -> String {
    let name = System::name().ok();
    let named = name.map(|name| match System::os_version() {
        Ok(version) => format!("{name} {version}"),
        Err(_) => name,
    });
    let kernel = System::kernel_version().ok();
    let kernel = kernel.map(|version| format!("{} {version}", title(env::consts::OS)));
    let parts = [named, kernel, Some(env::consts::ARCH.to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The shell's name where `/bin/sh` is another one: `/bin/sh -c (dash)`.
pub fn shell() -> String {
    let real = fs::canonicalize("/bin/sh").ok();
    match real.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some(name) if name != "sh" => format!("{SHELL} ({name})"),
        _ => SHELL.to_owned(),
    }
}

/// The tools found on PATH that are `seen` by commands, with their versions, asked side by side.
/// One that does not say its version, or not in time, is named all the same.
pub fn tools(seen: &dyn Fn(&Path) -> bool) -> Vec<String> {
    tools_in(&env::var_os("PATH").unwrap_or_default(), seen, PATIENCE)
}

fn tools_in(folders: &OsStr, seen: &dyn Fn(&Path) -> bool, patience: Duration) -> Vec<String> {
    thread::scope(|scope| {
        let asked: Vec<_> = TOOLS
            .iter()
            .filter_map(|(name, flag)| Some((name, flag, find(name, folders, seen)?)))
            .map(|(name, flag, path)| {
                let python = find("python3", folders, seen).filter(|_| MODULES.contains(name));
                let asked = scope.spawn(move || {
                    let version = version(&path, &[flag], patience)?;
                    // Another python's: `python3 -m` does not find it, which is how many are started.
                    let apart = python.is_some_and(|python| {
                        self::version(&python, &["-m", name, flag], patience).is_none()
                    });
                    let alone = format!(" (as {name}; python3 -m {name} does not work)");
                    Some(version + if apart { &alone } else { "" })
                });
                (name, asked)
            })
            .collect();
        let named =
            |(name, thread): (&&str, thread::ScopedJoinHandle<'_, Option<String>>)| match thread
                .join()
                .ok()
                .flatten()
            {
                Some(version) => format!("{name} {version}"),
                None => (*name).to_owned(),
            };
        asked.into_iter().map(named).collect()
    })
}

/// The first program of that name in these folders, as `PATH` lists them, that is `seen`.
pub(crate) fn find(name: &str, folders: &OsStr, seen: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let file = if cfg!(windows) { format!("{name}.exe") } else { name.to_owned() };
    env::split_paths(folders)
        // A relative entry would run what lies in the current folder.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&file))
        .find(|path| is_program(path) && seen(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn version(path: &Path, arguments: &[&str], patience: Duration) -> Option<String> {
    let mut child = Command::new(path)
        .args(arguments)
        // Not in the workspace: some tools look for settings where they are started.
        .current_dir(env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let (mut out, mut err) = (child.stdout.take()?, child.stderr.take()?);
    let ended = child.wait_timeout(patience).ok()?;
    if !ended.is_some_and(|status| status.success()) {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    // Both fit a pipe's buffer: nothing that says a version says more.
    let mut text = [0; 4096];
    let n = out.read(&mut text).ok().filter(|n| *n > 0).or_else(|| err.read(&mut text).ok())?;
    let text = String::from_utf8_lossy(&text[..n]).into_owned();
    version_in(&text).map(str::to_owned)
}

/// The version in what a tool says of itself.
pub fn version_in(said: &str) -> Option<&str> {
    static VERSION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\d+(\.\d+)+").expect("a constant pattern"));
    VERSION.find(said).map(|found| found.as_str())
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_tool_on_the_path_is_named_also_without_its_version() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("python3", "echo Python 3.9.1"),
            ("pip", "sleep 60"),
            ("pytest", "exit 1"),
            ("node", "echo none"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // What cannot be started is there all the same.
        let broken = folder.path().join("make");
        fs::write(&broken, "#!/nowhere\n").unwrap();
        fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("git"), "no program").unwrap();
        let seen = |path: &Path| !path.ends_with("node");
        let patience = Duration::from_secs(2);
        let tools = tools_in(folder.path().as_os_str(), &seen, patience);
        assert!(["python3 3.9.1", "python3"].contains(&&*tools[0]), "{tools:?}");
        assert_eq!(tools[1..], ["pip", "pytest", "make"]);
    }
}
