//! Programs that start other programs, and builtins that change the meaning of a line (`data/programs.toml`).

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::{
    MAX_COMMANDS, ParsedLine, ReadError, Simple, TOO_DEEP, Word, is_name, mentions, read_into,
};

/// The longest chain of programs that start each other. Each link repeats the words after it.
const MAX_CHAIN: usize = 16;

/// Names of standard input.
const STDIN_NAMES: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    misleading: Vec<String>,
    folders: Vec<String>,
    program: Vec<StarterProgram>,
}

/// A row of the table. The fields are documented there.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StarterProgram {
    names: Vec<String>,
    kind: ProgramKind,
    builtin: bool,
    unreadable: Option<String>,
    stops: bool,
    names_any: bool,
    options: String,
    short: String,
    long: Vec<String>,
    own: usize,
    code: Vec<String>,
    only_reports: Vec<String>,
    assigns: bool,
    transparent: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProgramKind {
    #[default]
    Starts,
    Sets,
    Shell,
    Xargs,
    Find,
}

static TABLE: LazyLock<ProgramTable> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/programs.toml")).expect("a table in order")
});

/// The name of a program without its folder.
pub(in crate::policy) fn name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// The name of a program if it is the system's: written without a folder, or with a folder of the system.
pub(in crate::policy) fn standard(program: &str) -> Option<&str> {
    match program.rsplit_once('/') {
        None => Some(program),
        Some((folder, name)) => TABLE.folders.iter().any(|it| it == folder).then_some(name),
    }
}

/// Whether a variable with this name changes the meaning of a line.
pub(super) fn misleads(name: &str) -> bool {
    TABLE.misleading.iter().any(|it| name == it || (it.ends_with('_') && name.starts_with(it)))
}

/// Whether the program's name is unambiguous: only usual characters, quoted completely or not at all.
fn is_certain(program: &Word) -> bool {
    let shown = &*program.shown;
    let unquoted = |quote: &char| shown.strip_prefix(*quote)?.strip_suffix(*quote);
    let bare = ['\'', '"'].iter().find_map(unquoted).unwrap_or(shown);
    let usual = if program.open { "_-./+~$" } else { "_-./+~" };
    let is_usual = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || usual.contains(c);
    matches!(shown, "[" | "[[" | ":")
        || (bare.chars().all(is_usual) && !program.glob && !shown.starts_with('-'))
}

/// Reads the words after `for`: a variable and its values. They are not a command.
pub(super) fn add_loop(words: &[Word], into: &mut ParsedLine) -> Result<(), ReadError> {
    match words {
        [variable, between, ..] if is_name(&variable.shown) && between.shown == "in" => {
            into.note_variable(&variable.text);
            Ok(())
        }
        _ => Err("how a loop begins".into()),
    }
}

/// Removes the assignments before a command. A program such as `env` treats every word with a `=` as an assignment.
fn take_assignments(words: &mut Vec<Word>, by_program: bool, into: &mut ParsedLine) {
    let sets = |word: &&Word| match word.shown.split_once('=') {
        _ if by_program => word.text.contains('='),
        Some((name, _)) => is_name(name.strip_suffix('+').unwrap_or(name)),
        None => false,
    };
    let count = words.iter().take_while(sets).count();
    for word in words.drain(..count) {
        into.note_variable(word.text.split('=').next().unwrap_or_default());
        if by_program && !names_one(&word) {
            into.note_unreadable("which variable is set");
        }
    }
}

/// Adds a command and the commands that it starts.
pub(super) fn add(mut words: Vec<Word>, into: &mut ParsedLine, depth: u8) -> Result<(), ReadError> {
    let mut by_program = false;
    for _ in 0..MAX_CHAIN {
        take_assignments(&mut words, by_program, into);
        let Some(first) = words.first() else { return Ok(()) };
        let which = || format!("which command '{}' is", first.shown);
        if into.commands.len() >= MAX_COMMANDS {
            return Err("it contains too many commands".into());
        }
        if !is_certain(first) {
            return Err(which().into());
        }
        into.commands.push(Simple { words: words.clone(), wrapper: false });
        let Some(text) = first.literal() else {
            into.note_unreadable(which());
            return Ok(());
        };
        let is_meant = |it: &&StarterProgram| {
            it.names.iter().any(|it| it == name(text)) && !(it.builtin && text.contains('/'))
        };
        let Some(program) = TABLE.program.iter().find(is_meant) else { return Ok(()) };
        by_program = program.assigns;
        words = started(program, text, &words[1..], into, depth)?;
    }
    Err(TOO_DEEP.into())
}

/// The words of the command that the program `text`, the last in the list, starts. Empty if it starts nothing, or if
/// everything that it starts is already in the list.
fn started(
    program: &StarterProgram,
    text: &str,
    arguments: &[Word],
    into: &mut ParsedLine,
    depth: u8,
) -> Result<Vec<Word>, ReadError> {
    let place = into.commands.len() - 1;
    let nothing = Vec::new();
    if let Some(unreadable) = &program.unreadable {
        let why = format!("{text} {unreadable}");
        into.commands[place].wrapper = true;
        if program.stops {
            return Err(why.into());
        }
        into.note_unreadable(why);
        return Ok(nothing);
    }
    match program.kind {
        ProgramKind::Sets => {
            note_variables(program, text, arguments, into);
            return Ok(nothing);
        }
        ProgramKind::Find => return find(arguments, into, depth).map(|()| nothing),
        ProgramKind::Starts | ProgramKind::Shell | ProgramKind::Xargs => {}
    }
    let is_shell = program.kind == ProgramKind::Shell;
    let Some((given, at)) = options(arguments, program) else {
        into.commands[place].wrapper = is_shell;
        into.note_unreadable(format!("what {text} starts"));
        return Ok(nothing);
    };
    let mut rest = arguments.get(at + program.own..).unwrap_or_default();
    let has = |names: &[String]| given.iter().any(|(name, _)| names.contains(name));
    let (is_code, only_reports) = (has(&program.code), has(&program.only_reports));
    let is_transparent = program.transparent && standard(text).is_some();
    if is_shell {
        let runs_text = given.iter().any(|(name, _)| name == "c");
        match rest.first().map(Word::literal) {
            Some(Some(option)) if option.starts_with('+') => {
                return Err(format!("what {text} makes of its options").into());
            }
            Some(Some(inner)) if runs_text && !is_code => {
                into.commands[place].wrapper = is_transparent;
                read_into(inner, into, depth)?;
            }
            // A script file that is not standard input.
            Some(file)
                if !runs_text && !is_code && !file.is_some_and(|it| STDIN_NAMES.contains(&it)) => {}
            _ => {
                into.commands[place].wrapper = true;
                into.note_unreadable(format!("{text} runs code that is not on the line"));
            }
        }
        return Ok(nothing);
    }
    if is_code {
        return Err(format!("what {text} makes of its text").into());
    }
    // `env -` is the same as `env -i`.
    if program.assigns && rest.first().is_some_and(|word| word.text == "-") {
        rest = &rest[1..];
    }
    let words = match program.kind {
        ProgramKind::Xargs => xargs_command(&given, rest),
        _ if only_reports => nothing,
        _ => rest.to_vec(),
    };
    into.commands[place].wrapper = only_reports || (is_transparent && !words.is_empty());
    Ok(words)
}

/// Records the variables that a builtin sets.
fn note_variables(program: &StarterProgram, text: &str, arguments: &[Word], into: &mut ParsedLine) {
    let is_any = |word: &Word| {
        let is_option = word.text.starts_with(['-', '+']);
        let has_letter = is_option && word.text.contains(|c| program.options.contains(c));
        has_letter || (word.open && (is_option || word.text.is_empty()))
    };
    let mut options = arguments.iter().take_while(|word| word.literal() != Some("--"));
    let sets_any = !program.options.is_empty() && options.any(is_any);
    if sets_any || (program.names_any && !arguments.iter().all(names_one)) {
        into.note_unreadable(format!("which variable {text} sets"));
    }
    if let Some(word) = arguments.iter().find(|word| mentions(&word.text)) {
        into.note_unreadable(format!(
            "{text} may set {}, which changes what the line means",
            word.shown
        ));
    }
}

/// An option of a builtin, or a word that names one variable and contains its whole name.
static ONE_VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    let name = "[A-Za-z_][A-Za-z0-9_]*";
    Regex::new(&format!("(?s)^(?:[-+][A-Za-z0-9+=-]+|{name}|\"?{name}=.*)$")).expect("a pattern")
});

fn names_one(word: &Word) -> bool {
    ONE_VARIABLE.is_match(&word.shown)
}

/// An option: its letter or name, and its value, if any.
type ParsedOption = (String, Option<String>);

/// Parses the options at the start of `words` like `getopt`, and returns them with the index of the rest. None if it is
/// unclear whether a word from a substitution is an option.
fn options(words: &[Word], program: &StarterProgram) -> Option<(Vec<ParsedOption>, usize)> {
    let mut given: Vec<ParsedOption> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = &*word.text;
        if word.open && (text.is_empty() || text.starts_with('-')) {
            return None;
        }
        if text == "-" || !text.starts_with('-') {
            break;
        }
        at += 1;
        if text == "--" {
            break;
        }
        let (mut takes, mut value) = (false, None);
        if let Some(option) = text.strip_prefix("--") {
            let (name, attached) =
                option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
            let full = program.long.iter().find(|full| full.starts_with(name));
            (takes, value) = (full.is_some() && attached.is_none(), attached);
            given.push((full.map_or(name, String::as_str).to_owned(), None));
        } else {
            for (n, letter) in text.char_indices().skip(1) {
                given.push((letter.to_string(), None));
                if program.short.contains(letter) {
                    let rest = &text[n + letter.len_utf8()..];
                    (takes, value) = (rest.is_empty(), Some(rest));
                    break;
                }
            }
        }
        let value = if takes { words.get(at).map(|word| &*word.text) } else { value };
        at += usize::from(takes);
        if let Some(last) = given.last_mut() {
            last.1 = value.map(str::to_owned);
        }
    }
    Some((given, at.min(words.len())))
}

/// The command that `xargs` starts: the words on the line, and the words that it reads.
fn xargs_command(given: &[ParsedOption], words: &[Word]) -> Vec<Word> {
    let mut words = words.to_vec();
    if words.is_empty() {
        words.push(Word::literal_of("echo"));
    }
    match given.iter().find(|(name, _)| matches!(&**name, "I" | "i" | "replace")) {
        Some((_, value)) => {
            let mark = value.as_deref().unwrap_or("{}");
            words.iter_mut().for_each(|word| word.open |= word.text.contains(mark));
        }
        None => words.push(unknown_word()),
    }
    words
}

/// A word whose content is unknown.
fn unknown_word() -> Word {
    Word { shown: "…".to_owned(), open: true, ..Word::default() }
}

/// Adds the commands that `find` starts, and its deletions.
fn find(arguments: &[Word], into: &mut ParsedLine, depth: u8) -> Result<(), ReadError> {
    let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
    let is_split =
        |word: &&Word| word.open && !word.shown.starts_with('"') && !word.text.contains("{}");
    if let Some(word) = arguments.iter().find(is_split) {
        into.note_unreadable(format!("what '{}' means to find", word.shown));
    }
    if arguments.iter().any(|word| word.text == "-delete") {
        let is_plain = |word: &&Word| {
            matches!(&*word.text, "-delete" | "-depth" | "-xdev" | "-H" | "-L" | "-P")
        };
        let places = arguments.iter().filter(|word| !is_plain(word));
        let is_all = places.clone().all(|word| !word.text.starts_with(['-', '(', '!']));
        let mut words =
            vec![Word::literal_of("rm"), Word::literal_of(if is_all { "-rf" } else { "-r" })];
        if is_all {
            words.extend(places.cloned());
        } else {
            words.push(unknown_word());
        }
        into.commands.push(Simple { words, wrapper: true });
    }
    let mut rest = arguments;
    let starts = |word: &Word| matches!(&*word.text, "-exec" | "-execdir" | "-ok" | "-okdir");
    while let Some(at) = rest.iter().position(starts) {
        rest = &rest[at + 1..];
        let ends = |at: &usize| {
            rest[*at].text == ";" || (rest[*at].text == "+" && *at > 0 && rest[at - 1].text == "{}")
        };
        let (inner, others) = rest.split_at((0..rest.len()).find(ends).unwrap_or(rest.len()));
        let mut words = inner.to_vec();
        words.iter_mut().for_each(|word| word.open |= word.text.contains("{}"));
        add(words, into, depth)?;
        rest = others;
    }
    Ok(())
}
