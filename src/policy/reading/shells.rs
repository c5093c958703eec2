//! Shells that are given their text: `sh -c '…'`.

use super::Word;
use super::options;

/// What is to be done with a call of a shell.
pub(super) enum Call {
    /// It runs this text.
    Text(String),
    /// It runs a file, and is a program like any other.
    File,
    /// What it runs is not on the line.
    Unknown,
}

/// Whether a program of that name is a shell.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "rbash" | "fish")
}

/// What a shell with these arguments runs.
pub(super) fn call(arguments: &[Word]) -> Call {
    // `+x` is an option as well; none of them takes a text.
    let arguments: Vec<Word> = arguments
        .iter()
        .map(|word| match word.literal() {
            Some(text) if text.starts_with('+') && text.len() > 1 => {
                Word::known(&text.replacen('+', "-", 1).replace('c', "x"))
            }
            _ => word.clone(),
        })
        .collect();
    let long = ["rcfile", "init-file", "command", "init-command"];
    let Some((given, at)) = options::split(&arguments, "oO", &long.map(str::to_owned)) else {
        return Call::Unknown;
    };
    let has = |names: &[&str]| given.iter().any(|option| names.contains(&option.name.as_str()));
    if has(&long) || has(&["s"]) {
        return Call::Unknown;
    }
    let first = arguments.get(at);
    match (has(&["c"]), first.map(Word::literal)) {
        (true, Some(Some(text))) => Call::Text(text.to_owned()),
        // A file that is what the shell is fed with.
        (true, _)
        | (false, None | Some(Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"))) => {
            Call::Unknown
        }
        (false, Some(_)) => Call::File,
    }
}
