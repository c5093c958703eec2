//! Gives allowed lines to real shells. No program may start that is not on the list.
//! `POLICY_LINES=1000000 cargo test --release --lib policy::tests::shells` tries more lines.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::policy::{Verdict, command};
use crate::settings::Policy;

/// The pieces of the lines. `evil` must never run.
const PIECES: &[&str] = &[
    "evil",
    "evil",
    "evil",
    " evil ",
    "echo ",
    "echo a",
    "cat ",
    "a",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "\n",
    "\n",
    " ",
    " ",
    ";",
    "; ",
    "&",
    "|",
    " && ",
    " || ",
    "(",
    ")",
    "$(",
    "`",
    "`",
    "${x:-",
    "}",
    "<<E",
    "<<E\n",
    "\nE\n",
    "E",
    "<<'E'\n",
    "<<-E\n",
    "<<\\E\n",
    "\t",
    "#",
    " #",
    "$'",
    "$\"",
    "{ ",
    "; }",
    "if ",
    "; then ",
    "; fi",
    ">",
    "2>&1",
    "&>",
    "<<<",
    "$((",
    "))",
    "((",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "case a in a) ",
    ";; esac",
    "env ",
    "sh -c ",
    "xargs ",
    "! ",
    "=",
    "x=",
    "*",
    ",",
    "-",
    "é",
    "\u{a0}",
    "\r",
    "\\\n",
    "\\\n",
    "$",
    "$x",
    "${#x}",
    "$#",
    "<(",
    "command ",
    "time ",
    "for i in a; do ",
    "; done",
    "b() { ",
    "\\'",
    "\\\"",
    "\\`",
    "|&",
    ";;",
    "@(",
    "!(",
    "[",
    "]",
];

/// The next number of a reproducible pseudorandom sequence.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).unwrap()
}

/// Another process writes the script, so that no thread of this process has it open when it runs.
fn script(path: &Path, text: &str) {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", "printf %s \"$2\" > \"$1\"; chmod 755 \"$1\"", "sh"]).arg(path).arg(text);
    assert!(shell.status().unwrap().success());
}

#[test]
fn what_is_allowed_starts_nothing_else() {
    let scene = tempfile::tempdir().unwrap();
    let (bin, work, mark) =
        (scene.path().join("bin"), scene.path().join("work"), scene.path().join("mark"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&work).unwrap();
    script(&bin.join("evil"), &format!("#!/bin/sh\n: > '{}'\n", mark.display()));
    for name in ["env", "cat", "sh", "xargs"] {
        let from = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
        if let Some(from) = from.iter().find(|from| from.exists()) {
            std::os::unix::fs::symlink(from, bin.join(name)).unwrap();
        }
    }
    let shells: Vec<&str> =
        ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists()).collect();
    for shell in &shells {
        let ran = Command::new(shell).args(["-c", "evil"]).env_clear().env("PATH", &bin).status();
        assert!(ran.unwrap().success() && fs::remove_file(&mark).is_ok(), "{shell} tells");
    }
    let standard = Policy::preset("standard").unwrap();
    let lines: usize =
        std::env::var("POLICY_LINES").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let seed = std::env::var("POLICY_SEED").ok().and_then(|n| n.parse().ok());
    let mut state: u64 = seed.unwrap_or(0x9e37_79b9_7f4a_7c15);
    let (mut tried, mut wrong) = (0, Vec::new());
    for _ in 0..lines {
        let length = 2 + next(&mut state) % 12;
        let line: String = (0..length).map(|_| PIECES[next(&mut state) % PIECES.len()]).collect();
        let line = format!("echo {line}");
        if !line.replace("\\\n", "").contains("evil")
            || command(&standard, &line, false) != Verdict::Allow
        {
            continue;
        }
        tried += 1;
        for shell in &shells {
            let mut child = Command::new(shell);
            child.args(["-c", &line]).env_clear().env("PATH", &bin).current_dir(&work);
            child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            child.status().unwrap();
            if fs::remove_file(&mark).is_ok() {
                wrong.push(format!("{shell}: {line:?}"));
            }
        }
    }
    assert!(tried >= lines / 200, "only {tried} lines of {lines} were allowed");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}
