//! A chain of nested folders takes time in proportion to its length, whatever stands in each: nothing looks at
//! each place from the root down.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::support::{ID, Project, program};

/// So many levels, and so many times as many.
const LEVELS: u32 = 400;
const TIMES: u32 = 4;
/// So many times as long they may take: in quadratic time it would be 16.
const MOST: f64 = 8.0;
/// A measurement that is too high is made again, up to so many times in all.
const RUNS: usize = 3;

/// Makes a chain of so many folders, with a file of this text in each.
fn chain(root: &Path, levels: u32, file: Option<(&str, &str)>) -> io::Result<()> {
    let mut folder = Dir::open_ambient_dir(root, ambient_authority())?;
    for _ in 0..levels {
        folder.create_dir("d")?;
        folder = folder.open_dir("d")?;
        if let Some((name, text)) = file {
            folder.write(name, text)?;
        }
    }
    Ok(())
}

/// How long the processor worked to carry out the reply in this file, in seconds.
fn worked_in(base: &Project, reply: &str) -> f64 {
    let inner = base.command(&["apply", "--session", ID, reply]);
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\" >&2 || exit 1; times", "sh"]).arg(program());
    command.args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(inner.get_current_dir().unwrap_or(base.path()));
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let told = String::from_utf8(done.stdout).unwrap();
    // The shell's own, and then that of what it started: `0m0.100s 0m0.050s`.
    let of = |time: &str| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    told.lines().nth(1).unwrap().split_whitespace().map(of).sum()
}

/// The same of this reply on such a chain, in seconds.
fn worked(reply: &str, levels: u32, file: Option<(&str, &str)>) -> f64 {
    let base = Project::with_session();
    chain(&base.at("workspace"), levels, file).unwrap();
    let path = base.write("r.txt", reply);
    let worked = worked_in(&base, path.to_str().unwrap());
    // A path of this length is more than some that remove folders can take.
    fs::rename(base.at("workspace/d"), base.at("gone")).unwrap();
    assert!(Command::new("rm").arg("-rf").arg(base.at("gone")).status().unwrap().success());
    worked
}

fn is_in_proportion(reply: &str, file: Option<(&str, &str)>) {
    let mut told = Vec::new();
    for _ in 0..RUNS {
        let (few, many) = (worked(reply, LEVELS, file), worked(reply, LEVELS * TIMES, file));
        if many <= few * MOST {
            return;
        }
        told.push(format!("{few:.2} s and {many:.2} s"));
    }
    panic!("{LEVELS} levels and {TIMES} times as many took {}", told.join(", "));
}

const COMMAND: &str = "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n";
const FILE: &str = "[CREATE_FILE path=\"new\"]\nx\n[/CREATE_FILE]\n";

#[test]
fn nested_folders() {
    is_in_proportion(COMMAND, None);
    is_in_proportion(FILE, None);
}

#[test]
fn nested_folders_with_a_file_in_each() {
    is_in_proportion(COMMAND, Some(("f", "x")));
    is_in_proportion(FILE, Some(("f", "x")));
}

#[test]
fn nested_folders_with_rules_in_each() {
    let rules = Some((".gitignore", "*.o\n/foo\n!keep.o\nbuild/\n"));
    is_in_proportion(COMMAND, rules);
    is_in_proportion(FILE, rules);
}

#[test]
fn folders_that_a_command_nests_and_a_later_one_removes() {
    let make = |levels: u32| {
        format!(
            "[RUN_COMMAND]\ni=0; while [ $i -lt {levels} ]; do mkdir d; cd d; echo x > f; i=$((i+1)); done\n[/RUN_COMMAND]\n"
        )
    };
    let mut told = Vec::new();
    for _ in 0..RUNS {
        let of = |levels: u32| {
            let base = Project::with_session();
            let path = base.write("r.txt", make(levels));
            let path = path.to_str().unwrap();
            worked_in(&base, path) + {
                let path = base.write("r2.txt", "[RUN_COMMAND]\nrm -r d\n[/RUN_COMMAND]\n");
                worked_in(&base, path.to_str().unwrap())
            }
        };
        let (few, many) = (of(LEVELS), of(LEVELS * TIMES));
        if many <= few * MOST {
            return;
        }
        told.push(format!("{few:.2} s and {many:.2} s"));
    }
    panic!("{LEVELS} levels and {TIMES} times as many took {}", told.join(", "));
}
