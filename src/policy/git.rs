//! Detects whether a shell command makes git write to its own repository.
//!
//! This is a courtesy, not a security boundary: if the repository is read-only, deaddrop can ask before git fails with
//! "Read-only file system". Only the text is examined, so aliases, scripts and variables are not detected. A subcommand
//! counts as writing unless `data/git.toml` lists it as reading.

use std::sync::LazyLock;

use serde::Deserialize;

use super::reading::{self, LONGEST, Simple, Word};

/// The subcommands and options that only read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GitTable {
    valued: Vec<String>,
    shows: Vec<String>,
    reads: Vec<String>,
    form: Vec<ReadingForm>,
}

/// The forms in which a subcommand only reads. The fields are documented in the table.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReadingForm {
    name: String,
    never: Vec<String>,
    words: Vec<String>,
    key: bool,
    asks: Vec<String>,
    options: Vec<String>,
    valued: Vec<String>,
}

static GIT: LazyLock<GitTable> =
    LazyLock::new(|| toml::from_str(include_str!("data/git.toml")).expect("a table in order"));

/// Returns the subcommand if a command makes git write to a repository.
pub(super) fn writes(simple: &Simple) -> Option<&str> {
    let (program, arguments) = simple.words.split_first()?;
    let arguments: Vec<&str> = arguments.iter().map(|word| &*word.text).collect();
    if reading::name(&program.text) == "git" { writing_subcommand(&arguments) } else { None }
}

/// Whether git may write in a line that is only partly readable, judged by its words without quotes.
pub(super) fn may_write(command: &str) -> bool {
    let text = command.replace("\\\n", "").replace(['\'', '"', '\\'], "");
    if text.len() > LONGEST {
        return text.contains("git");
    }
    text.split(|c| ";&|()<>`\n".contains(c)).any(|command| {
        let words = command.split(|c: char| c.is_whitespace() || "{}$=".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let mut calls = words.split(|word| reading::name(word) == "git").skip(1);
        calls.any(|arguments| arguments.is_empty() || writing_subcommand(arguments).is_some())
    })
}

/// The folder in which a command line creates a repository with `git init`, relative to the working directory. None if
/// it creates none, or if the folder does not follow from the text.
///
/// # Examples
/// ```
/// use deaddrop::policy::git::inits;
/// assert_eq!(inits("mkdir x && git init -q x"), Some("x".to_owned()));
/// assert_eq!(inits("cd /tmp && git init x"), None);
/// ```
pub fn inits(command: &str) -> Option<String> {
    // Git's variables can specify another folder.
    if command.contains("GIT_") {
        return None;
    }
    // The list ends before an unreadable part. A command that may change the folder ends the search.
    let is_known = |simple: &&Simple| {
        let moves = ["cd", "pushd", "popd", "env", "git-init", "source", "."];
        let program = &simple.words[0];
        program.literal().is_some_and(|text| !moves.contains(&reading::name(text)))
    };
    reading::read(command).commands.iter().take_while(is_known).find_map(|simple| {
        let words = simple.words.iter().filter(|word| !["-q", "--quiet"].contains(&&*word.text));
        let words = words.map(Word::literal).collect::<Option<Vec<&str>>>()?;
        let [git, "init", rest @ ..] = words.as_slice() else { return None };
        let place = match rest {
            [] | ["-b" | "--initial-branch", _] => ".",
            [place] | ["-b" | "--initial-branch", _, place] => place,
            _ => return None,
        };
        // With other options, the folder may be different, or there is no work tree.
        let is_plain = reading::name(git) == "git" && !place.starts_with(['-', '/', '~']);
        is_plain.then(|| place.to_owned())
    })
}

/// The subcommand that writes to a repository, given git's arguments.
fn writing_subcommand<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let mut rest = arguments.iter();
    let subcommand = loop {
        match *rest.next()? {
            option if has(&GIT.shows, option) => return None,
            option if has(&GIT.valued, option) => drop(rest.next()),
            "--" => break *rest.next()?,
            option if option.len() > 1 && option.starts_with('-') => {}
            subcommand => break subcommand,
        }
    };
    let arguments = rest.as_slice();
    let reads = arguments.contains(&"--help")
        || has(&GIT.reads, subcommand)
        || GIT.form.iter().any(|form| form.name == subcommand && form.reads(arguments));
    (!reads).then_some(subcommand)
}

fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == word)
}

impl ReadingForm {
    fn reads(&self, arguments: &[&str]) -> bool {
        if !self.never.is_empty() {
            return !arguments.iter().any(|argument| has(&self.never, argument));
        }
        let mut words: Vec<&str> = Vec::new();
        let mut asks = false;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let option = argument.split('=').next().unwrap_or(argument);
            let is_free =
                || self.options.is_empty() && words.first().is_some_and(|it| has(&self.words, it));
            // `-n5` is the same as `-n 5`.
            let numbered = option.trim_end_matches(|c: char| c.is_ascii_digit());
            if !argument.starts_with('-') {
                words.push(*argument);
            } else if has(&self.asks, option) {
                asks = true;
            } else if has(&self.valued, option) {
                if option == *argument {
                    rest.next();
                }
            } else if !has(&self.options, option) && numbered != "-n" && !is_free() {
                return false;
            }
        }
        let is_key = self.key && words.len() == 1 && words[0].contains('.');
        asks || is_key || has(&self.words, words.first().copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::policy::{Ask, Verdict, command};
    use crate::settings::Policy;

    /// The question about git. The policy asks about nothing else.
    fn asked(line: &str) -> Option<String> {
        match command(&Policy::preset("workspace").unwrap(), line, true) {
            Verdict::Ask(Ask { reason, opens, .. }) if opens.repository => Some(reason),
            _ => None,
        }
    }

    #[track_caller]
    fn writes(command: &str, subcommand: &str) {
        let reason = asked(command).unwrap_or_default();
        let named = reason.starts_with(&format!("'git {subcommand}' "));
        assert!(
            named || reason.starts_with("a part of it that cannot be read"),
            "{command}: {reason}"
        );
    }

    #[test]
    fn what_writes_is_found_wherever_it_stands() {
        for command in [
            "git commit -m x",
            "git -C sub --no-pager -c user.name=x commit",
            "git --git-dir=.git --work-tree . commit",
            "git --git-dir .git commit",
            "/usr/bin/git commit",
            "make&&git commit",
            "true || git commit",
            "git status; git commit",
            "git log | git commit",
            "sleep 1 & git commit",
            "true\ngit commit",
            "(cd x && git commit)",
            "x=$(git commit)",
            "echo \"`git commit`\"",
            "GIT_DIR=x A+=1 git commit",
            "env -u X A=b git commit",
            "sudo -u me git commit",
            "command git commit",
            "time -p git commit",
            "nice -n 5 git commit",
            "nice git commit",
            "timeout -k 1 10 git commit",
            "exec git commit",
            "if true; then git commit; fi",
            "! git commit",
            "{ git commit; }",
            "g\"i\"t 'commit'",
            "git \\\n  commit",
            "git >/dev/null 2>&1 commit",
            "sh -c 'git commit'",
            "bash -ec \"true && git commit\"",
            "eval git commit",
        ] {
            writes(command, "commit");
        }
    }

    #[test]
    fn what_is_not_known_to_read_writes() {
        for subcommand in [
            "add",
            "am",
            "checkout",
            "cherry-pick",
            "clean",
            "clone",
            "fetch",
            "gc",
            "init",
            "merge",
            "mv",
            "pull",
            "push",
            "rebase",
            "reset",
            "restore",
            "revert",
            "rm",
            "switch",
            "update-index",
            "update-ref",
            "st",
            "stash",
        ] {
            writes(&format!("git {subcommand}"), subcommand);
        }
        for (command, subcommand) in [
            ("git branch new", "branch"),
            ("git branch -d old", "branch"),
            ("git branch -m a b", "branch"),
            ("git branch --sort=x new", "branch"),
            ("git branch --edit-description", "branch"),
            ("git tag v1", "tag"),
            ("git tag -d v1", "tag"),
            ("git tag -a v1 -m x", "tag"),
            ("git remote add x y", "remote"),
            ("git remote -v update", "remote"),
            ("git stash pop", "stash"),
            ("git config user.name x", "config"),
            ("git config --global user.name x", "config"),
            ("git config --unset user.name", "config"),
            ("git config set user.name x", "config"),
            ("git config -e", "config"),
            ("git worktree add x", "worktree"),
            ("git notes add -m x", "notes"),
            ("git reflog expire", "reflog"),
            ("git submodule update --init", "submodule"),
            ("git submodule foreach 'git status'", "submodule"),
            ("git bisect start", "bisect"),
            ("git fsck --lost-found", "fsck"),
            ("git apply --index x", "apply"),
        ] {
            writes(command, subcommand);
        }
    }

    #[test]
    fn what_only_reads_is_let_through() {
        for command in [
            "git",
            "git --version",
            "git -C x --help",
            "git status && git diff HEAD~1 | less",
            "git --no-pager log -p --all",
            "git show HEAD:x > y",
            "git commit --help",
            "git branch",
            "git branch -a -vv",
            "git branch --list 'a*'",
            "git branch --show-current",
            "git branch --contains HEAD",
            "git branch --sort -committerdate --format=x",
            "git tag",
            "git tag -l 'v*' -n3",
            "git tag --points-at HEAD",
            "git remote -v",
            "git remote get-url origin",
            "git stash list",
            "git config --get user.name",
            "git config user.name",
            "git config -l --show-origin",
            "git config get user.name",
            "git config --file .gitmodules --get-regexp path",
            "git worktree list",
            "git notes show",
            "git reflog -5",
            "git submodule status --recursive",
            "git bisect log",
            "git fsck --full",
            "git apply --check x.patch",
        ] {
            assert_eq!(asked(command), None, "{command}");
        }
    }

    #[test]
    fn where_a_repository_is_made_is_told_only_where_it_is_certain() {
        for (command, place) in [
            ("git init", "."),
            ("git init -q .", "."),
            ("make; git init -b main && git add -A", "."),
            ("mkdir deep/er; git init deep/er -q", "deep/er"),
            ("sh -c 'git init'", "."),
            ("git init && cd x", "."),
            ("git init; case x in x) ls ;; esac", "."),
        ] {
            assert_eq!(inits(command).as_deref(), Some(place), "{command}");
        }
        for command in [
            "git status",
            "echo git init",
            "git init --bare",
            "git init --initial-branch=x deep/er",
            "git init --separate-git-dir=/tmp/x",
            "git -C sub init",
            "git init /tmp/x",
            "git init ~/x",
            "git init \"$X\"",
            "cd /tmp && git init",
            "GIT_DIR=x git init",
            "sh -c 'cd /tmp; git init'",
            "$X; git init",
            "case x in x) cd a ;; esac; git init",
            "git clone a b",
        ] {
            assert_eq!(inits(command), None, "{command}");
        }
    }

    #[test]
    fn in_a_line_that_is_not_read_bare_words_tell_whether_git_writes() {
        for (command, asks) in [
            ("f() { git status; }; git diff", false),
            ("case $x in .git|.gitignore|github) ls ;; esac", false),
            ("f() { git commit; }; f", true),
            ("case x in x) 'g'it -C sub push ;; esac", true),
            ("f() { $x; }; x=git; f commit", true),
            ("f() { git \"$@\"; }; f commit", true),
            ("f() { ls; }; git branch \"$x\"", true),
            ("echo $(ls | `git diff`; git \\\n  commit)", true),
        ] {
            assert_eq!(asked(command).is_some(), asks, "{command}");
        }
    }

    #[test]
    fn words_about_git_are_no_git() {
        for command in [
            "echo git commit",
            "echo 'x; git commit'",
            "grep -r 'git commit' .",
            "cat <<'E' > README.md\ngit commit\nE",
            "# git commit",
            "mygit commit",
            "git-commit",
            "gitk commit",
            "ls git commit",
            "printf \"%s\" \"git push\"",
            "git=1",
            "make git commit",
        ] {
            assert_eq!(asked(command), None, "{command}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_judged(
            parts in prop::collection::vec(
                select(&["git", " ", "commit", "-c", "sh", "$(", ")", "`", "'", "\"", "\\", "<<E",
                    "\n", ";", "&", "|", "env", "A=b", "-", "--", "#", "é", "timeout", "eval"][..]),
                0..30,
            ),
            noise in ".{0,20}",
        ) {
            let _ = asked(&(parts.concat() + &noise));
        }

        #[test]
        fn separators_and_readers_around_it_hide_nothing(
            before in select(&["", "true; ", "git status && ", "(", "! ", "x=1 ", "echo 'a b' | "][..]),
            after in select(&["", "; true", " && git log", " > x", " | cat", " # x"][..]),
        ) {
            let line = format!("{before}git push{after}");
            prop_assert!(asked(&line).is_some(), "{}", line);
        }
    }
}
