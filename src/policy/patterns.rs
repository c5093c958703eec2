//! Whether a command is one that a pattern of a policy means. A pattern is the beginning of a
//! command: `npm publish`, or `rm -rf /`.

use super::reading::{Simple, Word, name, plain, standard};

/// Whether a command is what a pattern means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It depends on what the shell puts in.
    Perhaps,
    Yes,
}

/// Programs whose operands are files, so that their order says nothing.
const OF_FILES: [&str; 10] =
    ["rm", "rmdir", "mv", "cp", "ln", "chmod", "chown", "chgrp", "shred", "truncate"];

/// The long names of flags, for programs that have both; the shortest beginning that is meant.
const LONG: [(&str, char, &str, usize); 8] = [
    ("rm", 'r', "--recursive", 3),
    ("rm", 'f', "--force", 3),
    ("cp", 'r', "--recursive", 5),
    ("cp", 'f', "--force", 4),
    ("mv", 'f', "--force", 3),
    ("chmod", 'R', "--recursive", 5),
    ("chown", 'R', "--recursive", 5),
    ("chgrp", 'R', "--recursive", 5),
];

/// A command's own name, and its words sorted.
struct Sorted<'a> {
    program: &'a str,
    letters: Vec<char>,
    long: Vec<&'a str>,
    /// Each with whether a flag stands before it, whose value it may be.
    operands: Vec<(&'a Word, bool)>,
    /// Whether a word may be a flag that the line does not tell.
    open: bool,
}

impl<'a> Sorted<'a> {
    fn of(words: &'a [Word]) -> Option<Self> {
        let (program, rest) = words.split_first()?;
        let program = name(program.text());
        let mut sorted = Self {
            program,
            letters: Vec::new(),
            long: Vec::new(),
            operands: Vec::new(),
            open: false,
        };
        let (mut flags, mut behind_flag) = (true, false);
        for word in rest {
            let text = word.text();
            if flags && text == "--" && !word.is_open() {
                flags = false;
            } else if flags && text.starts_with("--") {
                sorted.long.push(text.split('=').next().unwrap_or(text));
                behind_flag = true;
                sorted.open |= word.is_open();
            } else if flags && text.starts_with('-') && (text.len() > 1 || word.is_open()) {
                sorted.letters.extend(text.chars().skip(1));
                behind_flag = true;
                sorted.open |= word.is_open();
            } else {
                sorted.open |= flags && word.is_open() && text.is_empty();
                sorted.operands.push((word, behind_flag));
                behind_flag = false;
            }
        }
        if matches!(program, "rm" | "cp") {
            for letter in &mut sorted.letters {
                *letter = if *letter == 'R' { 'r' } else { *letter };
            }
        }
        for (of, letter, long, least) in LONG {
            let is_meant = |word: &&str| word.len() >= least && long.starts_with(*word);
            if of.eq_ignore_ascii_case(program) && sorted.long.iter().any(is_meant) {
                sorted.letters.push(letter);
            }
        }
        Some(sorted)
    }

    fn is_of_files(&self) -> bool {
        OF_FILES.iter().any(|name| name.eq_ignore_ascii_case(self.program))
    }
}

/// Whether a pattern of a list of blocked commands, or of those that are asked about, means this.
pub(super) fn means(pattern: &str, simple: &Simple) -> Match {
    let pattern = plain(pattern);
    let (Some(wanted), Some(given)) = (Sorted::of(&pattern), Sorted::of(&simple.words)) else {
        return Match::No;
    };
    if simple.words[0].literal().is_none() {
        return Match::No;
    }
    if !wanted.program.eq_ignore_ascii_case(given.program) {
        return Match::No;
    }
    let mut found = Match::Yes;
    let letters = wanted.letters.iter().all(|letter| given.letters.contains(letter));
    let long = wanted.long.iter().all(|name| {
        given.long.contains(name)
            || LONG.iter().any(|(of, letter, long, _)| {
                of == &given.program && long == name && given.letters.contains(letter)
            })
    });
    if !(letters && long) {
        if !given.open {
            return Match::No;
        }
        found = Match::Perhaps;
    }
    let operands = &wanted.operands;
    let fits = if given.is_of_files() {
        operands.iter().map(|(wanted, _)| in_any(wanted, &given)).min().unwrap_or(Match::Yes)
    } else {
        let behind_flag: Vec<bool> = given.operands.iter().map(|(_, behind)| *behind).collect();
        in_order(operands.len(), &behind_flag, |wanted, at| {
            is_operand(operands[wanted].0, given.operands[at].0)
        })
    };
    found.min(fits)
}

/// Whether one of the operands is the file that is meant.
fn in_any(wanted: &Word, given: &Sorted<'_>) -> Match {
    let root = wanted.text() == "/" && given.long.contains(&"--no-preserve-root");
    if root {
        return Match::Yes;
    }
    given.operands.iter().map(|(word, _)| is_file(wanted, word)).max().unwrap_or(Match::No)
}

fn is_file(wanted: &Word, given: &Word) -> Match {
    let (Some(wanted_at), Some(given_at)) = (place(wanted), place(given)) else {
        return Match::Perhaps;
    };
    // All that is in a folder is the folder.
    let all = |part: &&str| given.is_glob() && part.chars().all(|c| "*?.[]!^".contains(c));
    let rest = given_at.strip_prefix(wanted_at.as_slice());
    let is_same = rest.is_some_and(|rest| rest.iter().all(|part| all(&part.as_str())));
    match (is_same, given.is_open()) {
        (_, true) => Match::Perhaps,
        (true, false) => Match::Yes,
        (false, false) => Match::No,
    }
}

/// Where a path leads, without looking: its parts, the first of which says from where.
fn place(word: &Word) -> Option<Vec<String>> {
    if word.is_open() {
        return None;
    }
    let text = word.text();
    let mut parts: Vec<String> = Vec::new();
    let (from, rest) = match text.strip_prefix('/') {
        Some(rest) => ("/", rest),
        None if word.is_home() => ("~", text.strip_prefix('~').unwrap_or(text)),
        None => (".", text),
    };
    if word.is_home() && !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| last != "..") => drop(parts.pop()),
            // What is above the root is the root.
            ".." if from == "/" => {}
            part => parts.push(part.to_owned()),
        }
    }
    parts.insert(0, from.to_owned());
    Some(parts)
}

/// Whether the operands begin with those that are wanted; what stands behind a flag may be its
/// value. `behind_flag` has the operands that are given, `same` compares one that is wanted with one
/// that is given, and is asked once for each pair at most.
fn in_order(
    wanted: usize,
    behind_flag: &[bool],
    mut same: impl FnMut(usize, usize) -> Match,
) -> Match {
    // How well those before `at` can be what is wanted so far, the last of it just before `at`.
    let mut fits = vec![Match::No; behind_flag.len() + 1];
    fits[0] = Match::Yes;
    for wanted in 0..wanted {
        let mut next = vec![Match::No; fits.len()];
        let mut best = Match::No;
        for (given, is_behind_flag) in behind_flag.iter().enumerate() {
            best = best.max(fits[given]);
            if best > Match::No {
                next[given + 1] = best.min(same(wanted, given));
            }
            if !is_behind_flag {
                best = Match::No;
            }
        }
        fits = next;
    }
    fits.into_iter().max().unwrap_or(Match::No)
}

/// Whether an operand is the one that is wanted.
fn is_operand(wanted: &Word, given: &Word) -> Match {
    if given.is_open() {
        Match::Perhaps
    } else if given.text() == wanted.text() || same_place(wanted, given) {
        Match::Yes
    } else {
        Match::No
    }
}

fn same_place(one: &Word, other: &Word) -> bool {
    one.literal().is_some_and(|text| text.contains('/')) && place(one) == place(other)
}

/// Whether a pattern of a list of allowed commands lets this one run: it begins as the pattern does,
/// and its program is the system's.
pub(super) fn allows(pattern: &str, simple: &Simple) -> bool {
    let pattern = plain(pattern);
    let Some((program, rest)) = pattern.split_first() else { return false };
    let Some(given) = simple.words[0].literal() else { return false };
    let same = given == program.text() || standard(given) == Some(program.text());
    let begins = simple.words.get(1..=rest.len()).is_some_and(|words| {
        words.iter().zip(rest).all(|(word, wanted)| word.literal() == Some(wanted.text()))
    });
    same && begins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `in_order` is to say, in as many steps as it takes.
    fn by_trying(wanted: &[u8], given: &[(u8, bool)]) -> Match {
        let Some((first, rest)) = wanted.split_first() else { return Match::Yes };
        let mut best = Match::No;
        for (at, (given_one, behind_flag)) in given.iter().enumerate() {
            let same = same(*first, *given_one);
            best = best.max(same.min(by_trying(rest, &given[at + 1..])));
            if !behind_flag {
                break;
            }
        }
        best
    }

    /// 0 is what the line does not tell.
    fn same(wanted: u8, given: u8) -> Match {
        match given {
            0 => Match::Perhaps,
            given if given == wanted => Match::Yes,
            _ => Match::No,
        }
    }

    /// All lists of up to `length` of these.
    fn lists<T: Clone>(of: &[T], length: usize) -> Vec<Vec<T>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..length {
            for at in std::mem::replace(&mut from, all.len())..all.len() {
                for item in of {
                    let longer = [all[at].as_slice(), std::slice::from_ref(item)].concat();
                    all.push(longer);
                }
            }
        }
        all
    }

    #[test]
    fn operands_are_found_as_by_trying_all_places() {
        let operands = [(0, false), (0, true), (1, false), (1, true), (2, true)];
        for given in lists(&operands, 5) {
            let behind_flag: Vec<bool> = given.iter().map(|(_, behind)| *behind).collect();
            for wanted in lists(&[1, 2], 3) {
                let found =
                    in_order(wanted.len(), &behind_flag, |one, at| same(wanted[one], given[at].0));
                assert_eq!(found, by_trying(&wanted, &given), "{wanted:?} {given:?}");
            }
        }
    }

    #[test]
    fn each_operand_is_compared_once_with_each_that_is_wanted() {
        for last in [Match::No, Match::Perhaps] {
            let mut steps = 0;
            let found = in_order(6, &[true; 600], |wanted, _| {
                steps += 1;
                if wanted == 5 { last } else { Match::Perhaps }
            });
            assert_eq!(found, last);
            assert!(steps <= 6 * 600, "{steps}");
        }
        // Without flags there is one place for each.
        let mut steps = 0;
        in_order(3, &[false; 600], |_, _| {
            steps += 1;
            Match::Yes
        });
        assert_eq!(steps, 3);
    }
}
