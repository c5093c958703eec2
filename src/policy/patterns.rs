//! Matches commands against the patterns of a policy. A pattern is the beginning of a command, such as `npm publish` or
//! `rm -rf /`.

use super::reading::{Simple, Word, name, pattern_words, standard};

/// Whether a command matches a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It depends on what the shell inserts.
    Perhaps,
    Yes,
}

/// Programs whose operands are files. The order of their operands does not matter.
const FILE_PROGRAMS: [&str; 10] =
    ["rm", "rmdir", "mv", "cp", "ln", "chmod", "chown", "chgrp", "shred", "truncate"];

/// Long flags of programs: the short flag, the long name, and the length of the shortest unambiguous prefix.
const LONG: [(&[&str], char, &str, usize); 5] = [
    (&["rm"], 'r', "--recursive", 3),
    (&["rm", "mv"], 'f', "--force", 3),
    (&["cp"], 'r', "--recursive", 5),
    (&["cp"], 'f', "--force", 4),
    (&["chmod", "chown", "chgrp"], 'R', "--recursive", 5),
];

/// The words of a command by kind.
struct SplitCommand<'a> {
    program: String,
    letters: Vec<char>,
    long: Vec<&'a str>,
    operands: Vec<&'a Word>,
    /// For each operand, whether it follows a flag. It may be the flag's value.
    behind_flag: Vec<bool>,
    /// Whether a word may expand to an unknown flag.
    open: bool,
}

impl<'a> SplitCommand<'a> {
    fn split(words: &'a [Word]) -> Option<Self> {
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
                let abbreviates = |(programs, _, long, least): &&(&[&str], char, &str, usize)| {
                    programs.contains(&&*program) && flag.len() >= *least && long.starts_with(flag)
                };
                match LONG.iter().find(abbreviates) {
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

/// Matches a command against a pattern from the list of blocked commands, or of commands that need approval.
pub(super) fn match_pattern(pattern: &str, simple: &Simple) -> Match {
    let pattern = pattern_words(pattern);
    let (Some(wanted), Some(given)) =
        (SplitCommand::split(&pattern), SplitCommand::split(&simple.words))
    else {
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
    let operands_match = if FILE_PROGRAMS.contains(&&*given.program) {
        operands.iter().map(|wanted| match_any_operand(wanted, &given)).min().unwrap_or(Match::Yes)
    } else {
        match_in_order(operands.len(), &given.behind_flag, |wanted, at| {
            match_operand(operands[wanted], given.operands[at])
        })
    };
    flags.min(operands_match)
}

/// Whether an operand is the wanted file.
fn match_any_operand(wanted: &Word, given: &SplitCommand<'_>) -> Match {
    if wanted.text == "/" && given.long.contains(&"--no-preserve-root") {
        return Match::Yes;
    }
    given.operands.iter().map(|word| match_file(wanted, word)).max().unwrap_or(Match::No)
}

fn match_file(wanted: &Word, given: &Word) -> Match {
    let (Some(wanted_at), Some(given_at)) = (normalized_path(wanted), normalized_path(given))
    else {
        return Match::Perhaps;
    };
    // A wildcard for everything in a folder counts as the folder itself.
    let is_all = |part: &String| given.glob && part.chars().all(|c| "*?.[]!^".contains(c));
    let rest = given_at.strip_prefix(wanted_at.as_slice());
    if rest.is_some_and(|rest| rest.iter().all(is_all)) { Match::Yes } else { Match::No }
}

/// Normalizes a path without accessing the disk. The first component is `/`, `~` or `.`.
fn normalized_path(word: &Word) -> Option<Vec<String>> {
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
            // The parent of the root is the root.
            ".." if from == "/" => {}
            part => parts.push(part.to_owned()),
        }
    }
    Some(parts)
}

/// Whether the operands begin with the `wanted` ones. An operand after a flag may be the flag's value, so it can be
/// skipped. `behind_flag` has an entry for each given operand. `same` compares a wanted and a given operand, and is
/// called at most once for each pair.
fn match_in_order(
    wanted: usize,
    behind_flag: &[bool],
    mut same: impl FnMut(usize, usize) -> Match,
) -> Match {
    // `fits[n]` is how well the given operands so far match the first `n` wanted ones.
    let mut fits = vec![Match::No; wanted + 1];
    fits[0] = Match::Yes;
    let mut best = fits[wanted];
    for (given, is_behind_flag) in behind_flag.iter().enumerate() {
        for n in (0..=wanted).rev() {
            let skipped = if *is_behind_flag { fits[n] } else { Match::No };
            let is_possible = n > 0 && fits[n - 1] > Match::No;
            let matched = if is_possible { fits[n - 1].min(same(n - 1, given)) } else { Match::No };
            fits[n] = matched.max(skipped);
        }
        best = best.max(fits[wanted]);
    }
    best
}

/// Compares an operand with the wanted one.
fn match_operand(wanted: &Word, given: &Word) -> Match {
    let is_path = || wanted.literal().is_some_and(|text| text.contains('/'));
    if given.open {
        Match::Perhaps
    } else if given.text == wanted.text
        || (is_path() && normalized_path(wanted) == normalized_path(given))
    {
        Match::Yes
    } else {
        Match::No
    }
}

/// Whether a pattern from the list of allowed commands allows this command. The command must begin with the pattern,
/// and its program must be the system's.
pub(super) fn allows(pattern: &str, simple: &Simple) -> bool {
    let pattern = pattern_words(pattern);
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

    /// The expected result of `match_in_order`, computed by trying all combinations.
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

    /// 0 stands for a word that the line does not determine.
    fn same(wanted: u8, given: u8) -> Match {
        match given {
            0 => Match::Perhaps,
            given if given == wanted => Match::Yes,
            _ => Match::No,
        }
    }

    /// All lists of up to `length` of these items.
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
                let found = match_in_order(wanted.len(), &behind_flag, |one, at| {
                    same(wanted[one], given[at].0)
                });
                assert_eq!(found, by_trying(&wanted, &given), "{wanted:?} {given:?}");
            }
        }
    }

    #[test]
    fn each_operand_is_compared_once_with_each_that_is_wanted() {
        for last in [Match::No, Match::Perhaps] {
            let mut steps = 0;
            let found = match_in_order(6, &[true; 600], |wanted, _| {
                steps += 1;
                if wanted == 5 { last } else { Match::Perhaps }
            });
            assert_eq!(found, last);
            assert!(steps <= 6 * 600, "{steps}");
        }
        // Without flags, each wanted operand has only one possible place.
        let mut steps = 0;
        match_in_order(3, &[false; 600], |_, _| {
            steps += 1;
            Match::Yes
        });
        assert_eq!(steps, 3);
    }
}
