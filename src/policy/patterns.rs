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

/// The long names of flags of these programs; the shortest beginning that is meant.
const LONG: [(&[&str], char, &str, usize); 5] = [
    (&["rm"], 'r', "--recursive", 3),
    (&["rm", "mv"], 'f', "--force", 3),
    (&["cp"], 'r', "--recursive", 5),
    (&["cp"], 'f', "--force", 4),
    (&["chmod", "chown", "chgrp"], 'R', "--recursive", 5),
];

/// A command's own name, and its words sorted.
struct Sorted<'a> {
    program: String,
    letters: Vec<char>,
    long: Vec<&'a str>,
    operands: Vec<&'a Word>,
    /// Whether a flag is before each of the operands, whose value it may be.
    behind_flag: Vec<bool>,
    /// Whether a word may be a flag that the line does not tell.
    open: bool,
}

impl<'a> Sorted<'a> {
    fn of(words: &'a [Word]) -> Option<Self> {
        let (program, rest) = words.split_first()?;
        let program = name(&program.text).to_ascii_lowercase();
        let (mut letters, mut long) = (Vec::new(), Vec::new());
        let (mut operands, mut behind_flag) = (Vec::new(), Vec::new());
        let (mut open, mut has_flags, mut is_behind) = (false, true, false);
        for word in rest {
            let text = &*word.text;
            if has_flags && text == "--" && !word.open {
                has_flags = false;
                continue;
            }
            let is_flag = has_flags && text.starts_with('-') && (text.len() > 1 || word.open);
            open |= has_flags && word.open && (is_flag || text.is_empty());
            if !is_flag {
                operands.push(word);
                behind_flag.push(is_behind);
            } else if text.starts_with("--") {
                let flag = text.split('=').next().unwrap_or(text);
                let is_meant = |(of, _, long, least): &&(&[&str], char, &str, usize)| {
                    of.contains(&&*program) && flag.len() >= *least && long.starts_with(flag)
                };
                match LONG.iter().find(is_meant) {
                    Some((_, letter, ..)) => letters.push(*letter),
                    None => long.push(flag),
                }
            } else {
                letters.extend(text.chars().skip(1));
            }
            is_behind = is_flag;
        }
        if matches!(&*program, "rm" | "cp") {
            letters.iter_mut().filter(|letter| **letter == 'R').for_each(|letter| *letter = 'r');
        }
        Some(Self { program, letters, long, operands, behind_flag, open })
    }
}

/// Whether a pattern of a list of blocked commands, or of those that are asked about, means this.
pub(super) fn means(pattern: &str, simple: &Simple) -> Match {
    let pattern = plain(pattern);
    let (Some(wanted), Some(given)) = (Sorted::of(&pattern), Sorted::of(&simple.words)) else {
        return Match::No;
    };
    if simple.words[0].literal().is_none() || wanted.program != given.program {
        return Match::No;
    }
    let has_flags = wanted.letters.iter().all(|letter| given.letters.contains(letter))
        && wanted.long.iter().all(|name| given.long.contains(name));
    let flags = match (has_flags, given.open) {
        (true, _) => Match::Yes,
        (false, true) => Match::Perhaps,
        (false, false) => return Match::No,
    };
    let operands = &wanted.operands;
    let fits = if OF_FILES.contains(&&*given.program) {
        operands.iter().map(|wanted| in_any(wanted, &given)).min().unwrap_or(Match::Yes)
    } else {
        in_order(operands.len(), &given.behind_flag, |wanted, at| {
            is_operand(operands[wanted], given.operands[at])
        })
    };
    flags.min(fits)
}

/// Whether one of the operands is the file that is meant.
fn in_any(wanted: &Word, given: &Sorted<'_>) -> Match {
    if wanted.text == "/" && given.long.contains(&"--no-preserve-root") {
        return Match::Yes;
    }
    given.operands.iter().map(|word| is_file(wanted, word)).max().unwrap_or(Match::No)
}

fn is_file(wanted: &Word, given: &Word) -> Match {
    let (Some(wanted_at), Some(given_at)) = (place(wanted), place(given)) else {
        return Match::Perhaps;
    };
    // All that is in a folder is the folder.
    let is_all = |part: &String| given.glob && part.chars().all(|c| "*?.[]!^".contains(c));
    let rest = given_at.strip_prefix(wanted_at.as_slice());
    if rest.is_some_and(|rest| rest.iter().all(is_all)) { Match::Yes } else { Match::No }
}

/// Where a path leads, without looking: its parts, the first of which says from where.
fn place(word: &Word) -> Option<Vec<String>> {
    let text = &*word.text;
    let (from, rest) = match text.strip_prefix('/') {
        _ if word.open => return None,
        Some(rest) => ("/", rest),
        None if word.home => ("~", text.strip_prefix('~').unwrap_or(text)),
        None => (".", text),
    };
    if word.home && !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let mut parts: Vec<String> = vec![from.to_owned()];
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.len() > 1 && parts.last().is_some_and(|last| last != "..") => {
                parts.pop();
            }
            // What is above the root is the root.
            ".." if from == "/" => {}
            part => parts.push(part.to_owned()),
        }
    }
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
    let is_path = || wanted.literal().is_some_and(|text| text.contains('/'));
    if given.open {
        Match::Perhaps
    } else if given.text == wanted.text || (is_path() && place(wanted) == place(given)) {
        Match::Yes
    } else {
        Match::No
    }
}

/// Whether a pattern of a list of allowed commands lets this one run: it begins as the pattern does,
/// and its program is the system's.
pub(super) fn allows(pattern: &str, simple: &Simple) -> bool {
    let pattern = plain(pattern);
    let Some((program, rest)) = pattern.split_first() else { return false };
    let Some(given) = simple.words[0].literal() else { return false };
    let is_same = given == program.text || standard(given) == Some(&program.text);
    let begins = simple.words.get(1..=rest.len()).is_some_and(|words| {
        words.iter().zip(rest).all(|(word, wanted)| word.literal() == Some(&wanted.text))
    });
    is_same && begins
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
