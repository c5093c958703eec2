//! Programs that start others: what they start is what counts.

use super::grammar::Budget;
use super::options::{self, Given, Valued};
use super::{MOST, Reading, Simple, Word, literal, shells, variables};

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

/// How many wrappers may stand before a command: each repeats all that is behind it.
const CHAIN: usize = 16;

/// A program whose arguments, behind its own, are another command.
struct Wrapper {
    valued: Valued,
    /// How many words of its own stand behind the options.
    own: usize,
    /// Whether it changes nothing that a list of allowed programs would care about.
    transparent: bool,
}

/// How `name` starts another, if it does.
fn wrapper(name: &str) -> Option<Wrapper> {
    let of = |short, long, own, transparent| {
        Some(Wrapper { valued: Valued { short, long }, own, transparent })
    };
    match name {
        "command" | "builtin" | "nohup" | "setsid" | "busybox" | "toybox" => of("", &[], 0, true),
        "exec" => of("a", &[], 0, true),
        "env" => of("uCS", &["unset", "chdir", "split-string"], 0, true),
        "time" => of("fo", &["format", "output"], 0, true),
        "nice" => of("n", &["adjustment"], 0, true),
        "ionice" => of("cnpPu", &["class", "classdata", "pid", "pgid", "uid"], 0, true),
        "stdbuf" => of("ioe", &["input", "output", "error"], 0, true),
        "timeout" => of("ks", &["kill-after", "signal"], 1, true),
        "xargs" => of(
            "adEILnPs",
            &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
            0,
            true,
        ),
        "sudo" => of(
            "ughpCrtDRTU",
            &["user", "group", "host", "prompt", "close-from", "role", "type", "chdir", "chroot"],
            0,
            false,
        ),
        "doas" => of("uC", &[], 0, false),
        "flock" => of("wE", &["timeout", "wait", "conflict-exit-code"], 1, false),
        "chroot" | "taskset" | "chrt" => of("", &[], 1, false),
        "watch" => of("n", &["interval"], 0, false),
        "strace" | "ltrace" => of("aeEIoOpPsSuUX", &["trace", "output", "attach"], 0, false),
        "unshare" | "fakeroot" | "caffeinate" | "chronic" | "unbuffer" | "script" => {
            of("", &[], 0, false)
        }
        _ => None,
    }
}

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
    matches!(
        word,
        "!" | "{"
            | "}"
            | "if"
            | "then"
            | "elif"
            | "else"
            | "fi"
            | "while"
            | "until"
            | "for"
            | "select"
            | "in"
            | "do"
            | "done"
            | "case"
            | "esac"
            | "function"
    )
}

/// Adds a command and those that it starts.
pub(super) fn add(words: Vec<Word>, into: &mut Reading, budget: &mut Budget, depth: u8) {
    if depth == 0 {
        return into.cannot("commands within commands go too deep");
    }
    let mut words = words;
    let mut by_program = None;
    for _ in 0..CHAIN {
        variables::in_front(&mut words, by_program.take(), into);
        let Some(program) = words.first() else { return };
        if into.commands.len() >= MOST {
            return into.cannot("it holds too many commands");
        }
        let simple = Simple { words: words.clone(), wrapper: false };
        let Some(text) = program.literal().map(str::to_owned) else {
            into.cannot(format!("which command '{}' is", program.shown()));
            return into.commands.push(simple);
        };
        if is_reserved(program.shown()) {
            // The grammar takes it for a program where the shell does not.
            into.cannot(format!("what '{text}' begins"));
            into.commands.push(Simple { wrapper: true, ..simple });
            words.remove(0);
            continue;
        }
        let arguments = &words[1..];
        let is_bare = !text.contains('/');
        if is_bare && builtin(&text, arguments, into, budget, depth) {
            return into.commands.push(Simple { wrapper: true, ..simple });
        }
        let named = name(&text);
        if shells::is_shell(named) {
            match shells::call(arguments) {
                shells::Call::File => into.commands.push(simple),
                shells::Call::Unknown => shells::unknown(simple, into),
                shells::Call::Text(inner) => {
                    let wrapper = standard(&text).is_some();
                    into.commands.push(Simple { wrapper, ..simple });
                    super::within(&inner, into, budget, depth - 1);
                }
            }
            return;
        }
        if named == "find" {
            into.commands.push(simple);
            return find(arguments, into, budget, depth);
        }
        let Some(kind) = wrapper(named) else { return into.commands.push(simple) };
        let Some((given, at)) = options::split(arguments, kind.valued) else {
            into.cannot(format!("what {named} starts"));
            return into.commands.push(simple);
        };
        let rest = arguments.get(at + kind.own..).unwrap_or_default();
        // `env -` is `env -i`.
        let is_dash = named == "env" && rest.first().is_some_and(|word| word.text() == "-");
        let rest = rest[usize::from(is_dash)..].to_vec();
        let tells = named == "command" && given.iter().any(|o| matches!(&*o.name, "v" | "V"));
        let wrapper = kind.transparent && standard(&text).is_some();
        let rest = match named {
            _ if tells => Vec::new(),
            "env" => match split_string(&given, &rest) {
                Some(line) => {
                    into.commands.push(Simple { wrapper, ..simple });
                    if line.contains(['$', '\\', '#', ';', '|', '&', '<', '>', '(', '`']) {
                        into.cannot("what env -S makes of its text");
                    }
                    return super::within(&line, into, budget, depth - 1);
                }
                None => rest,
            },
            "xargs" => {
                let slot = given.iter().find(|option| option.name == "process-slot-var");
                variables::named(slot.and_then(|slot| slot.value.as_ref()), named, into);
                fed(&given, rest)
            }
            "flock" | "script" if given.iter().any(|o| o.name == "c") || is_option_c(&rest) => {
                into.cannot(format!("what {named} -c starts"));
                rest
            }
            _ => rest,
        };
        if rest.is_empty() {
            let wrapper = tells || named == "exec";
            return into.commands.push(Simple { wrapper, ..simple });
        }
        by_program = ["env", "sudo"].into_iter().find(|setter| *setter == named);
        into.commands.push(Simple { wrapper, ..simple });
        words = rest;
    }
    into.cannot("commands within commands go too deep");
}

fn is_option_c(rest: &[Word]) -> bool {
    rest.first().is_some_and(|word| word.text() == "-c")
}

/// Whether `name` is a builtin whose arguments are code, or lead to some. Looks into them.
fn builtin(
    name: &str,
    arguments: &[Word],
    into: &mut Reading,
    budget: &mut Budget,
    depth: u8,
) -> bool {
    let has = |option: &str| arguments.iter().any(|word| word.text().starts_with(option));
    match name {
        "eval" | "trap" => {
            let text: Vec<&str> = arguments.iter().map(Word::text).collect();
            let text = if name == "eval" {
                text.join(" ")
            } else {
                text.first().copied().unwrap_or_default().to_owned()
            };
            into.cannot(format!("{name} runs a text"));
            super::within(&text, into, budget, depth - 1);
        }
        "source" | "." => into.cannot(format!("{name} runs a file")),
        "alias" | "unalias" | "enable" | "fc" | "coproc" | "hash" | "complete" | "bind" => {
            into.cannot(format!("{name} changes what the line means"));
            if name == "coproc" {
                add(arguments.to_vec(), into, budget, depth - 1);
            }
        }
        "mapfile" | "readarray" if has("-C") => into.cannot(format!("{name} -C runs a text")),
        _ => {
            variables::builtin(name, arguments, into);
            return false;
        }
    }
    true
}

/// The line that `env -S` makes of its text and the words behind it.
fn split_string(given: &[Given], rest: &[Word]) -> Option<String> {
    let text = given.iter().find(|option| matches!(&*option.name, "S" | "split-string"))?;
    let text = text.value.as_ref().map_or("$unknown", |word| word.literal().unwrap_or("$unknown"));
    let rest =
        rest.iter().map(|word| word.literal().map_or("$unknown".to_owned(), literal::quoted));
    Some([text.to_owned()].into_iter().chain(rest).collect::<Vec<_>>().join(" "))
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
fn find(arguments: &[Word], into: &mut Reading, budget: &mut Budget, depth: u8) {
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
        add(inner.collect(), into, budget, depth - 1);
        at += end;
    }
}
