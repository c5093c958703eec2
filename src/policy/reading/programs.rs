//! Programs that start others: what they start is what counts.

use std::sync::LazyLock;

use serde::Deserialize;

use super::options::{self, Given};
use super::{MOST, Reading, Simple, Word, mentions, shells, within};

/// Where the programs of the system are: by their path they are the same as by their name.
const STANDARD: [&str; 7] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
];

/// How many wrappers may be before a command: each repeats all that is behind it.
const CHAIN: usize = 16;

/// A program whose arguments, behind its own, are another command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapper {
    names: Vec<String>,
    #[serde(default)]
    short: String,
    #[serde(default)]
    long: Vec<String>,
    #[serde(default)]
    own: usize,
    #[serde(default)]
    transparent: bool,
}

static WRAPPERS: LazyLock<Vec<Wrapper>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        program: Vec<Wrapper>,
    }
    let table: Table =
        toml::from_str(include_str!("../data/programs.toml")).expect("a table in order");
    table.program
});

/// The name of a program without its folder, whatever that is.
pub(in crate::policy) fn name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The name of a program that is the system's: without a folder, or in one of the system's.
pub(in crate::policy) fn standard(program: &str) -> Option<&str> {
    match program.rsplit_once('/') {
        None => Some(program),
        Some((folder, name)) => STANDARD.contains(&folder).then_some(name),
    }
}

/// Whether a word is none of a command, but of the shell's grammar.
fn is_reserved(word: &str) -> bool {
    let words = "! { } if then elif else fi while until for select in do done case esac function";
    words.split(' ').any(|reserved| reserved == word)
}

/// Whether a word is an assignment of the shell.
pub(super) fn is_assignment(word: &Word) -> bool {
    let name = word.shown().split_once('=').map(|(name, _)| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(is_name)
}

fn is_name(text: &str) -> bool {
    let is_of_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.bytes().all(is_of_name) && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// Whether a program is written so that nobody can take it for something else: in usual characters, as a whole in
/// quotes or without any.
fn is_certain(program: &Word) -> bool {
    let shown = program.shown();
    let bare =
        ['\'', '"'].iter().find_map(|quote| shown.strip_prefix(*quote)?.strip_suffix(*quote));
    let bare = bare.unwrap_or(shown);
    let is_usual = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "_-./+~$".contains(c);
    matches!(shown, "[" | "[[" | ":")
        || (bare.chars().all(is_usual) && !program.is_glob() && !shown.starts_with('-'))
}

/// Notes a loop over words: what follows the name of its variable are words, and no command.
pub(super) fn add_loop(words: &[Word], into: &mut Reading) {
    let is_loop = words.get(1).is_some_and(|word| is_name(word.shown()))
        && words.get(2).is_none_or(|word| word.shown() == "in");
    if !is_loop {
        into.stops("where a loop begins");
    }
    into.sets(words.get(1).map_or("", Word::text));
}

/// Takes the variables in front of a command away. A program such as `env` takes all words with a `=` for them.
fn take_assignments(words: &mut Vec<Word>, by_program: bool, into: &mut Reading) {
    let sets =
        |word: &&Word| if by_program { word.text().contains('=') } else { is_assignment(word) };
    let count = words.iter().take_while(sets).count();
    for word in words.drain(..count) {
        into.sets(word.text().split('=').next().unwrap_or_default());
        if by_program && !names_one(&word) {
            into.cannot("which variable is set");
        }
    }
}

/// Adds a command and those that it starts.
pub(super) fn add(mut words: Vec<Word>, into: &mut Reading, depth: u8) {
    if depth == 0 {
        return into.stops("commands within commands go too deep");
    }
    let mut by_program = false;
    for _ in 0..CHAIN {
        take_assignments(&mut words, by_program, into);
        let Some(program) = words.first() else { return };
        if into.commands.len() >= MOST {
            return into.stops("it contains too many commands");
        }
        let simple = Simple { words: words.clone(), wrapper: false };
        if !is_certain(program) {
            into.stops(format!("which command '{}' is", program.shown()));
        }
        let Some(text) = program.literal().map(str::to_owned) else {
            into.cannot(format!("which command '{}' is", program.shown()));
            return into.commands.push(simple);
        };
        let arguments = &words[1..];
        if is_reserved(program.shown()) {
            into.stops(format!("what '{text}' begins"));
            words.remove(0);
            continue;
        }
        if !text.contains('/') && builtin(&text, arguments, into) {
            return into.commands.push(Simple { wrapper: true, ..simple });
        }
        let named = name(&text);
        if shells::is_shell(named) {
            match shells::call(arguments) {
                shells::Call::File => into.commands.push(simple),
                shells::Call::Unknown => {
                    into.cannot(format!("{text} runs a text that is not on the line"));
                    into.commands.push(Simple { wrapper: true, ..simple });
                }
                shells::Call::Text(inner) => {
                    let wrapper = standard(&text).is_some();
                    into.commands.push(Simple { wrapper, ..simple });
                    within(&inner, into, depth - 1);
                }
            }
            return;
        }
        if named == "find" {
            into.commands.push(simple);
            return find(arguments, into, depth);
        }
        let Some(kind) = WRAPPERS.iter().find(|it| it.names.iter().any(|name| name == named))
        else {
            return into.commands.push(simple);
        };
        let Some((given, at)) = options::split(arguments, &kind.short, &kind.long) else {
            into.cannot(format!("what {named} starts"));
            return into.commands.push(simple);
        };
        let rest = arguments.get(at + kind.own..).unwrap_or_default();
        // `env -` is `env -i`.
        let is_dash = named == "env" && rest.first().is_some_and(|word| word.text() == "-");
        let rest = rest[usize::from(is_dash)..].to_vec();
        let has = |name: &str| given.iter().any(|option| option.name == name);
        let tells = named == "command" && (has("v") || has("V"));
        let wrapper = kind.transparent && standard(&text).is_some();
        let runs_text = match named {
            "env" => has("S") || has("split-string"),
            "flock" | "script" => has("c") || rest.first().is_some_and(|word| word.text() == "-c"),
            "xargs" => has("process-slot-var"),
            _ => false,
        };
        if runs_text {
            into.stops(format!("what {named} makes of its text"));
        }
        let rest = match named {
            _ if tells => Vec::new(),
            "xargs" => fed(&given, rest),
            _ => rest,
        };
        if rest.is_empty() {
            let wrapper = tells || named == "exec";
            return into.commands.push(Simple { wrapper, ..simple });
        }
        by_program = matches!(named, "env" | "sudo");
        into.commands.push(Simple { wrapper, ..simple });
        words = rest;
    }
    into.stops("commands within commands go too deep");
}

/// Whether `name` is a builtin whose arguments are code, or lead to some. Looks into them.
fn builtin(name: &str, arguments: &[Word], into: &mut Reading) -> bool {
    let options = || arguments.iter().take_while(|word| word.literal() != Some("--"));
    let has_option = |letters: &[char]| {
        options().any(|word| {
            let is_option = word.text().starts_with(['-', '+']) || word.text().is_empty();
            is_option && (word.is_open() || word.text().contains(letters))
        })
    };
    match name {
        "eval" | "trap" | "coproc" => into.stops(format!("{name} runs a text")),
        "source" | "." => into.cannot(format!("{name} runs a file")),
        "alias" | "unalias" | "enable" | "fc" | "hash" | "complete" | "bind" => {
            into.cannot(format!("{name} changes what the line means"));
        }
        // These set the variables that their arguments name.
        "export" | "declare" | "typeset" | "local" | "readonly" | "unset" | "read" | "mapfile"
        | "readarray" | "getopts" | "let" | "printf" | "wait" | "test" | "[" | "[[" | "set" => {
            let is_certain = match name {
                "[" | "[[" if !is_test(name, arguments) => {
                    into.stops(format!("what '{name}' tests"));
                    true
                }
                "test" | "[" | "[[" => true,
                "set" => {
                    !options().any(|word| word.literal().is_none_or(|text| text.contains('k')))
                }
                "printf" => !has_option(&['v']),
                "wait" => !has_option(&['p']),
                "mapfile" | "readarray" if has_option(&['C']) => false,
                "declare" | "typeset" | "local" | "readonly" if has_option(&['n', 'i']) => false,
                _ => arguments.iter().all(names_one),
            };
            if !is_certain {
                into.cannot(format!("which variable {name} sets"));
            }
            let is_code = matches!(name, "printf" | "set" | "wait");
            arguments.iter().filter(|_| !is_code).for_each(|word| into.sets_any(name, word));
            return false;
        }
        _ => return false,
    }
    true
}

/// Whether the arguments of `[` or `[[` are one test, and its closing bracket.
fn is_test(name: &str, arguments: &[Word]) -> bool {
    let Some((last, test)) = arguments.split_last() else { return false };
    let test = if test.first().is_some_and(|word| word.shown() == "!") { &test[1..] } else { test };
    if test
        .iter()
        .any(|word| word.shown().contains('=') && word.shown().contains(|c| c != '=' && c != '!'))
    {
        return false;
    }
    let is_operator = |word: &Word| {
        let letters = word.literal().and_then(|text| text.strip_prefix('-')).unwrap_or_default();
        !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_alphabetic())
    };
    let is_between = |word: &Word| {
        let operators = "= == != -eq -ne -lt -le -gt -ge -nt -ot -ef";
        operators.split(' ').any(|operator| operator == word.shown())
    };
    let is_one = match test {
        [_] => true,
        [operator, _] => is_operator(operator),
        [_, operator, _] => is_between(operator),
        _ => false,
    };
    is_one && last.shown().len() == name.len() && last.shown().bytes().all(|b| b == b']')
}

/// Whether the line alone tells which variable a word names.
fn names_one(word: &Word) -> bool {
    let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
    let shown = name(word.shown().trim_start_matches('"'));
    let is_option = word.literal().is_some_and(|text| {
        let is_usual = |c: char| c.is_ascii_alphanumeric() || "-+=".contains(c);
        text.len() > 1 && text.starts_with(['-', '+']) && text.chars().all(is_usual)
    });
    let is_whole = !(word.is_open() || word.is_glob()) || word.shown().contains('=');
    is_option || (is_whole && shown == name(word.text()) && is_name(&shown))
}

impl Reading {
    fn sets_any(&mut self, by: &str, word: &Word) {
        if mentions(word.text()) {
            self.cannot(format!(
                "{by} may set {}, which changes what the line means",
                word.shown()
            ));
        }
    }
}

/// What `xargs` starts: its words, and those that it reads.
fn fed(given: &[Given], words: Vec<Word>) -> Vec<Word> {
    let words = if words.is_empty() { vec![Word::known("echo")] } else { words };
    let mark = given.iter().find_map(|option| match &*option.name {
        "I" | "i" | "replace" => Some(option.value.as_ref().map_or("{}", Word::text)),
        _ => None,
    });
    match mark {
        Some(mark) => words
            .iter()
            .map(|word| if word.text().contains(mark) { word.opened() } else { word.clone() })
            .collect(),
        None => words.into_iter().chain([Word::unknown("…")]).collect(),
    }
}

/// What `find` starts, and what it removes.
fn find(arguments: &[Word], into: &mut Reading, depth: u8) {
    let is_split = |word: &&Word| word.is_open() && !word.shown().starts_with('"');
    if let Some(word) = arguments.iter().find(is_split).filter(|word| !word.text().contains("{}")) {
        into.cannot(format!("what find is told by '{}'", word.shown()));
    }
    let starts = |word: &&Word| !word.text().starts_with(['-', '(', '!']);
    let behind = arguments.iter().skip_while(|word| matches!(word.text(), "-H" | "-L" | "-P"));
    let places: Vec<Word> = behind.take_while(starts).cloned().collect();
    if arguments.iter().any(|word| word.text() == "-delete") {
        let harmless = |word: &Word| {
            matches!(word.text(), "-delete" | "-depth" | "-xdev" | "-H" | "-L" | "-P")
        };
        let all = arguments.iter().all(|word| harmless(word) || places.contains(word));
        let flags = if all { "-rf" } else { "-r" };
        let mut words = vec![Word::known("rm"), Word::known(flags)];
        words.extend(if all { places } else { vec![Word::unknown("…")] });
        into.commands.push(Simple { words, wrapper: true });
    }
    let mut at = 0;
    while at < arguments.len() {
        at += 1;
        if !matches!(arguments[at - 1].text(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let end = arguments[at..].iter().position(|word| word.text() == ";");
        let plus = arguments[at..]
            .windows(2)
            .position(|pair| pair[0].text() == "{}" && pair[1].text() == "+");
        let end = match (end, plus) {
            (Some(end), Some(plus)) => end.min(plus + 1),
            (Some(end), None) => end,
            (None, Some(plus)) => plus + 1,
            (None, None) => arguments.len() - at,
        };
        let inner = arguments[at..at + end].iter();
        let inner = inner.map(|w| if w.text().contains("{}") { w.opened() } else { w.clone() });
        add(inner.collect(), into, depth - 1);
        at += end;
    }
}
