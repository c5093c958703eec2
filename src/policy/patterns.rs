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
            if flags && text == "--" {
                flags = false;
            } else if flags && text.starts_with("--") {
                sorted.long.push(text.split('=').next().unwrap_or(text));
                behind_flag = true;
                sorted.open |= word.is_open();
            } else if flags && text.starts_with('-') && text.len() > 1 {
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
    let operands: Vec<&Word> = wanted.operands.iter().map(|(word, _)| *word).collect();
    let fits = if given.is_of_files() {
        operands.iter().map(|wanted| in_any(wanted, &given)).min().unwrap_or(Match::Yes)
    } else {
        in_order(&operands, &given.operands)
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
/// value.
fn in_order(wanted: &[&Word], given: &[(&Word, bool)]) -> Match {
    let Some((first, wanted)) = wanted.split_first() else { return Match::Yes };
    let mut best = Match::No;
    for (at, (word, behind_flag)) in given.iter().enumerate() {
        let same = if word.is_open() {
            Match::Perhaps
        } else if word.text() == first.text() || same_place(first, word) {
            Match::Yes
        } else {
            Match::No
        };
        if same > Match::No {
            best = best.max(same.min(in_order(wanted, &given[at + 1..])));
        }
        if !behind_flag || best == Match::Yes {
            break;
        }
    }
    best
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
