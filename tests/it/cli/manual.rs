//! The manual and the help as a reader of them finds them.

use crate::support::{Project, Run};

/// The help of a command, and of all those in it, each with its words, at a terminal of so many columns.
fn help(base: &Project, words: &[&str], width: usize, found: &mut Vec<(String, String)>) {
    let columns = width.to_string();
    let arguments: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
    let told = Run::of(base.command(&arguments).env("COLUMNS", columns), "").ok().stdout;
    let inner = told.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let inner = inner.split_once("\n\n").map_or(inner, |(inner, _)| inner);
    // What goes on with a line stands further in.
    let names = inner.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| !name.is_empty()) {
        help(base, &[words, &[name]].concat(), width, found);
    }
    found.push((words.join(" "), told.clone()));
}

#[test]
fn no_row_of_a_help_ends_before_it_is_full() {
    let base = Project::new();
    for width in [80, 50] {
        let mut all = Vec::new();
        help(&base, &[], width, &mut all);
        assert!(all.len() > 40, "{all:?}");
        let mut rows = 0;
        for (command, told) in all {
            let lines: Vec<&str> = told.lines().collect();
            for pair in lines.windows(2) {
                let indent = |line: &str| line.len() - line.trim_start().len();
                let (first, next) = (pair[0], pair[1]);
                let wide = first.chars().count();
                // What has no place to break at.
                let is_whole = first.starts_with("Usage: ") || !first.trim().contains(' ');
                assert!(wide <= width || is_whole, "{command}, {width}: {first}");
                // Prose, and what is said of an option; each example is a line of its own.
                let is_prose = matches!(indent(first), 0 | 10) && indent(next) == indent(first);
                let Some(word) = next.split_whitespace().next().filter(|_| is_prose) else {
                    continue;
                };
                // Nothing is there yet, or a list of values begins.
                if first.trim().is_empty() || next.trim_start().starts_with("- ") {
                    continue;
                }
                rows += 1;
                let room = wide + 1 + word.chars().count();
                assert!(room > width, "{command}, {width}: {first:?} and then {next:?}");
            }
        }
        assert!(rows > 40, "only {rows} rows go on at {width}");
    }
}

#[test]
fn commands_take_only_the_settings_that_they_read() {
    let base = Project::with_session();
    for (words, taken) in [
        (&["new"][..], &["workspace-dir", "max-tokens", "sandbox", "policy", "review"][..]),
        (
            &["init"],
            &["workspace-dir", "max-tokens", "sandbox", "policy", "review", "part-characters"],
        ),
        (&["apply"], &["workspace-dir", "max-tokens", "sandbox", "review"]),
        (&["approve"], &["workspace-dir", "max-tokens", "sandbox"]),
        (&["say"], &["workspace-dir", "max-tokens", "sandbox"]),
        (&["show"], &["workspace-dir", "part-characters"]),
        (&["status"], &["workspace-dir", "sandbox"]),
        (&["ops", "run"], &["workspace-dir", "sandbox", "policy"]),
        (&["policy", "list"], &["workspace-dir", "policy"]),
        (&["log"], &["workspace-dir"]),
        (&["close"], &["workspace-dir"]),
        (&["config", "show"], &[]),
        (&["ops", "validate"], &[]),
        (&["demo"], &[]),
        (&[], &[]),
    ] {
        let help = base.run(&[words, &["--help"]].concat()).ok().stdout;
        for flag in
            ["workspace-dir", "max-tokens", "sandbox", "policy", "review", "part-characters"]
        {
            let flag_of = format!("--{flag}");
            assert_eq!(
                help.contains(&format!("{flag_of} <")),
                taken.contains(&flag),
                "{words:?}: {help}"
            );
            if !taken.contains(&flag) {
                let run = base.run(&[words, &[&flag_of, "9000"]].concat()).with_code(2);
                let told = format!("unexpected argument '{flag_of}'");
                assert!(run.stderr.contains(&told), "{run:?}");
            }
        }
    }
}

#[test]
fn help_is_asked_for_as_with_git_and_cargo() {
    let base = Project::new();
    for words in [&[][..], &["say"], &["config", "set"], &["init"]] {
        let whole = base.run(&[words, &["--help"]].concat()).ok().stdout;
        assert_eq!(base.run(&[&["help"], words].concat()).ok().stdout, whole);
    }
    let run = base.run(&["help", "sya"]).with_code(2);
    assert!(run.stderr.contains("unrecognized subcommand 'sya'"), "{run:?}");
    // It is said of nothing but the help.
    base.run(&["say", "-h", "--max-tokens", "5000"]).ok();
    base.run(&["new", "--no-watch", "--max-tokens", "5000", "--", "-h"]).ok();
}

#[test]
fn the_help_of_init_says_what_init_does() {
    let base = Project::new();
    let help = base.run(&["init", "--help"]).ok().stdout;
    for told in
        ["change [this folder]", "replies [.deaddrop/inbox]", "journal [.deaddrop/sessions]"]
    {
        assert!(help.contains(told), "{told}: {help}");
    }
    assert!(base.run(&["new", "--help"]).ok().stdout.contains("[workspace]"));
    let settings = |arguments: &[&str], folder: &str| {
        base.run(arguments).ok();
        base.read(&format!("{folder}/deaddrop.toml"))
    };
    let before = settings(&["init", "--workspace-dir", "w", "a"], "a");
    assert!(before.contains("\nworkspace_dir = \"w\"\n"), "{before}");
    assert_eq!(settings(&["init", "b", "--workspace-dir", "w"], "b"), before);
    assert!(settings(&["init", "c"], "c").contains("\nworkspace_dir = \".\"\n"));
}
