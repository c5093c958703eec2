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

/// Says on its first output which of the modules that it is given can be run, as `python3 -m` runs them,
/// and keeps to itself what they say.
const ASK_MODULES: &str = r#"
import os, runpy, sys
told, names = os.fdopen(os.dup(1), "w"), sys.argv[1:]
silence = os.open(os.devnull, os.O_WRONLY)
os.dup2(silence, 1)
os.dup2(silence, 2)
for name in names:
    sys.argv = [name, "--version"]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        works = True
    except SystemExit as end:
        works = not end.code
    except BaseException:
        works = False
    if works:
        print(name, file=told, flush=True)
"#;

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
    let found = TOOLS.iter().filter_map(|(name, flag)| {
        let path = find(name, folders, seen)?;
        Some((*name, *flag, path))
    });
    let found: Vec<(&str, &str, PathBuf)> = found.collect();
    let python = found.iter().find(|(name, ..)| *name == "python3").map(|(.., path)| path);
    let modules: Vec<&str> =
        found.iter().map(|(name, ..)| *name).filter(|name| MODULES.contains(name)).collect();
    thread::scope(|scope| {
        let asked = found.iter().map(|(name, flag, path)| {
            (*name, scope.spawn(move || version(path, &[flag], patience)))
        });
        let asked: Vec<_> = asked.collect();
        // One process for all of them, beside the others.
        let work = python.filter(|_| !modules.is_empty()).map(|python| {
            let arguments = [&["-c", ASK_MODULES], modules.as_slice()].concat();
            // One after the other there.
            let patience = patience * u32::try_from(modules.len()).unwrap_or(1);
            scope.spawn(move || said(python, &arguments, patience).unwrap_or_default())
        });
        let work = work.map(|thread| thread.join().unwrap_or_default());
        // Another python's: `python3 -m` does not find it, which is how many are started.
        let is_apart = |name: &str| {
            MODULES.contains(&name)
                && work.as_ref().is_some_and(|work| !work.lines().any(|line| line == name))
        };
        let named = asked.into_iter().map(|(name, thread)| match thread.join().ok().flatten() {
            Some(version) if is_apart(name) => {
                format!("{name} {version} (as {name}; python3 -m {name} does not work)")
            }
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        });
        named.collect()
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
    version_in(&said(path, arguments, patience)?).map(str::to_owned)
}

/// What a program says, on its first output or else on its second; None where it cannot be started, or
/// does not end well and in time.
fn said(path: &Path, arguments: &[&str], patience: Duration) -> Option<String> {
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
    Some(String::from_utf8_lossy(&text[..n]).into_owned())
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

    fn program(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_tool_on_the_path_is_named_also_without_its_version() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("python3", "echo Python 3.9.1"),
            ("pip", "sleep 60"),
            ("pytest", "exit 1"),
            ("node", "echo none"),
        ] {
            program(folder.path(), name, &format!("#!/bin/sh\n{text}\n"));
        }
        // What cannot be started is there all the same.
        program(folder.path(), "make", "#!/nowhere\n");
        fs::write(folder.path().join("git"), "no program").unwrap();
        let seen = |path: &Path| !path.ends_with("node");
        let patience = Duration::from_secs(2);
        let tools = tools_in(folder.path().as_os_str(), &seen, patience);
        assert!(["python3 3.9.1", "python3"].contains(&&*tools[0]), "{tools:?}");
        assert_eq!(tools[1..], ["pip", "pytest", "make"]);
    }

    #[test]
    fn modules_are_asked_for_in_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let python = format!(
            "#!/bin/sh\necho x >> '{}'\n[ \"$1\" = -c ] || {{ echo Python 3.9.1; exit; }}\nshift 2\n[ \"$*\" = 'pip pytest' ] && echo pip\nexit 0\n",
            log.display()
        );
        program(folder.path(), "python3", &python);
        program(folder.path(), "pip", "#!/bin/sh\necho pip 24.1\n");
        program(folder.path(), "pytest", "#!/bin/sh\necho pytest 8.2\n");
        let patience = Duration::from_mins(1);
        let tools = tools_in(folder.path().as_os_str(), &|_| true, patience);
        let alone = "pytest 8.2 (as pytest; python3 -m pytest does not work)";
        assert_eq!(tools, ["python3 3.9.1", "pip 24.1", alone]);
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_python_says_which_modules_it_can_run() {
        let folders = env::var_os("PATH").unwrap_or_default();
        let Some(python) = find("python3", &folders, &|_| true) else {
            eprintln!("SKIPPED: python3 is missing here");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("good.py", "print('good 1.0')\n"),
            ("ends.py", "import sys\nassert sys.argv[1:] == ['--version']\nsys.exit(0)\n"),
            ("fails.py", "import sys\nsys.exit(1)\n"),
            ("raises.py", "raise KeyError('x')\n"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let script = format!("import sys; sys.path.insert(0, {:?})\n{ASK_MODULES}", folder.path());
        let names = ["good", "no_such_module", "fails", "raises", "ends"];
        let arguments = [&["-c", script.as_str()], names.as_slice()].concat();
        let told = said(&python, &arguments, Duration::from_mins(1)).unwrap();
        assert_eq!(told.lines().collect::<Vec<_>>(), ["good", "ends"]);
    }
}
