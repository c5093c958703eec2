//! Variables that a line sets: some decide which program a name stands for.

use std::ops::Range;

use super::options::{self, Valued};
use super::{Reading, Word};

/// Whether a variable decides which program a name stands for, or what programs run beside.
fn misleads(variable: &str) -> bool {
    matches!(
        variable,
        "PATH"
            | "IFS"
            | "ENV"
            | "BASH_ENV"
            | "BASH_CMDS"
            | "BASH_ALIASES"
            | "SHELLOPTS"
            | "BASHOPTS"
            | "PS4"
            | "PROMPT_COMMAND"
            | "NODE_OPTIONS"
            | "BUN_OPTIONS"
    ) || ["LD_", "DYLD_", "BASH_FUNC_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// Notes a variable after which the rest of the line may mean something else. What stands behind
/// `=` or `[` is no part of its name.
pub(super) fn set(variable: &str, into: &mut Reading) {
    let variable = variable.split(['=', '[']).next().unwrap_or_default();
    if misleads(variable) {
        let variable = crate::text::visible_line(variable);
        into.cannot(format!("{variable} is set, which changes what the line means"));
    }
}

/// The same of a word that is the shell's own syntax, without quotes.
pub(super) fn set_by_syntax(text: &str, into: &mut Reading) {
    set(&text.replace("\\\n", ""), into);
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(is_of_name)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The variable that a word sets, if it is an assignment of the shell.
fn assigned(word: &Word) -> Option<&str> {
    let (variable, _) = word.shown().split_once('=')?;
    let variable = variable.strip_suffix('+').unwrap_or(variable);
    is_variable(variable).then_some(variable)
}

/// Takes the assignments in front of a command away: those of the shell, or, where a program such as
/// `env` reads them, all words that hold a `=`.
pub(super) fn in_front(words: &mut Vec<Word>, by_program: Option<&str>, into: &mut Reading) {
    let count = words
        .iter()
        .take_while(|word| match by_program {
            Some(_) => word.text().contains('='),
            None => assigned(word).is_some(),
        })
        .count();
    for word in words.drain(..count) {
        match by_program {
            Some(program) => named(Some(&word), program, into),
            None => set(assigned(&word).unwrap_or_default(), into),
        }
    }
}

/// Notes the variable that a word names, with or without a value, to `by`.
pub(super) fn named(word: Option<&Word>, by: &str, into: &mut Reading) {
    let Some(word) = word else { return };
    let name = |text: &str| -> String {
        let name = text.split('=').next().unwrap_or_default();
        name.strip_suffix('+').unwrap_or(name).to_owned()
    };
    let variable = name(word.text());
    let shown = name(word.shown().trim_start_matches('"'));
    let is_told = variable == shown && is_variable(&variable);
    if (word.is_open() || word.is_glob()) && !is_told {
        into.cannot(format!("which variable {by} sets"));
    }
    set(&variable, into);
    if variable.contains('[') {
        arithmetic(&variable, into);
    }
}

/// Notes the variables that a builtin of the shell sets.
pub(super) fn builtin(name: &str, arguments: &[Word], into: &mut Reading) {
    match name {
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            for word in arguments {
                let is_option = word.literal().is_some_and(|text| text.starts_with(['-', '+']));
                if !is_option {
                    named(Some(word), name, into);
                } else if name != "export" && word.text().contains(['n', 'i']) {
                    // A name for another variable, or a value that is looked at for assignments.
                    into.cannot(format!("{name} {} changes what is set later", word.text()));
                }
            }
        }
        "unset" => operands(name, "", arguments, ALL, into),
        "read" => operands(name, "adinNptu", arguments, ALL, into),
        "mapfile" | "readarray" => operands(name, "dnOsuCc", arguments, ALL, into),
        "getopts" => operands(name, "", arguments, 1..2, into),
        "printf" => operands(name, "v", arguments, 0..0, into),
        "wait" => {
            // Behind its options are processes, which nobody knows beforehand.
            let told = arguments.iter().position(Word::is_open).unwrap_or(arguments.len());
            operands(name, "p", &arguments[..told], 0..0, into);
        }
        "set" => match options::split(arguments, Valued { short: "o", long: &[] }) {
            Some((given, _)) => {
                let is_keyword =
                    |value: &Word| value.literal().is_none_or(|value| value == "keyword");
                let makes_all_assignments = given.iter().any(|option| {
                    option.name == "k"
                        || (option.name == "o" && option.value.as_ref().is_some_and(is_keyword))
                });
                if makes_all_assignments {
                    into.cannot("set -k makes words assignments");
                }
            }
            None => into.cannot("which options are set"),
        },
        "let" => arguments.iter().for_each(|word| arithmetic(word.text(), into)),
        "[[" | "[" | "test" => {
            let reckons = |word: &Word| {
                matches!(word.text(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v")
            };
            if arguments.iter().any(reckons) {
                arguments.iter().for_each(|word| arithmetic(word.text(), into));
            }
        }
        _ => {}
    }
}

const ALL: Range<usize> = 0..usize::MAX;

/// Notes the variables that options name, and `those` among the operands.
fn operands(
    name: &str,
    valued: &'static str,
    words: &[Word],
    those: Range<usize>,
    into: &mut Reading,
) {
    let Some((given, at)) = options::split(words, Valued { short: valued, long: &[] }) else {
        return into.cannot(format!("which variable {name} sets"));
    };
    for option in given {
        let is_name =
            matches!((name, &*option.name), ("read", "a") | ("printf", "v") | ("wait", "p"));
        named(option.value.as_ref().filter(|_| is_name), name, into);
    }
    for word in words[at..].iter().take(those.end).skip(those.start) {
        named(Some(word), name, into);
    }
}

/// Notes the variables that `${…}` sets. `own` is its text without the substitutions in it.
pub(super) fn expansion(own: &str, into: &mut Reading) {
    let body = own.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(own);
    let (name, rest) = body.split_at(body.bytes().take_while(|b| is_of_name(*b)).count());
    // A name of one sign, such as `@`.
    let rest = if name.is_empty() { rest.trim_start_matches(['@', '*', '#', '!']) } else { rest };
    let (subscript, operator) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((subscript, rest)) => (subscript, rest.trim_start_matches(']')),
        None => ("", rest),
    };
    arithmetic(subscript, into);
    if body.starts_with('!') && body.contains('=') {
        into.cannot(format!("which variable '{own}' sets"));
    } else if operator.starts_with('=') || operator.starts_with(":=") {
        set(name, into);
    } else if let Some(part) =
        operator.strip_prefix(':').filter(|o| !o.starts_with(['-', '+', '?']))
    {
        arithmetic(part, into);
    }
}

/// Notes the variables that an arithmetic text may set.
pub(super) fn arithmetic(text: &str, into: &mut Reading) {
    if ["=", "++", "--"].iter().any(|sign| text.contains(sign)) {
        for name in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            set(name, into);
        }
    }
}
