//! Writes operations as a reply in tags: the inverse of the reader.

use deaddrop::protocol::{
    Change, Operation, Part, Reading, RelPath, Replacement, ShellCommand, StepContent, tags,
};

/// A reply that asks for `operations`, in canonical form. Reading it gives the same operations, as long as no body
/// contains what the reader removes: a fence around all of it, or line numbers. Edits by first occurrence, for
/// which this dialect has no words, are left out.
pub(crate) fn print<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> String {
    let operations: Vec<_> = operations.into_iter().map(|one| (one, body(one))).collect();
    let bodies = || operations.iter().filter_map(|(_, body)| body.as_deref());
    // A word that a body contains would leave a closing tag over there.
    let mut words = (1..=u32::MAX).map(|n| format!("EOF{n}"));
    let word = words.find(|word| !bodies().any(|body| body.contains(word.as_str())));
    let end = format!(" end=\"{}\"", word.unwrap_or_default());
    let mut out = String::new();
    for (operation, body) in &operations {
        if matches!(operation, Operation::Edit { change: Change::First(_), .. }) {
            continue;
        }
        let (name, attributes) = (tags::name(operation.kind()), attributes(operation));
        out.push_str(&match body {
            None => format!("[{name}{attributes}]\n"),
            // Where the body may contain a tag of this name, the word closes it.
            Some(body) if may_name(body, name) => {
                format!("[{name}{attributes}{end}]\n{body}[/{name}{end}]\n")
            }
            Some(body) => format!("[{name}{attributes}]\n{body}[/{name}]\n"),
        });
    }
    out
}

/// Whether a body may contain a tag of that name, however it is written, or the end of reasoning behind one.
fn may_name(body: &str, name: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase()).collect()
    };
    body.contains(['[', '<', '&']) && letters(body).contains(&letters(name))
        || body.contains(|c: char| !c.is_ascii() && !c.is_alphanumeric())
        || body.contains(|c| matches!(c, '\u{ff21}'..='\u{ff5a}'))
}

/// The attributes in an operation's opening tag, each after a blank.
fn attributes(operation: &Operation) -> String {
    let line = |line: Option<usize>| line.map(|line| line.to_string());
    let given = match operation {
        Operation::Edit { path, change: Change::Lines { start, end, .. } } => vec![
            ("path", Some(place(path))),
            ("start_line", line(Some(*start))),
            ("end_line", line(Some(*end))),
        ],
        Operation::Create { path, .. }
        | Operation::Edit { path, .. }
        | Operation::Delete { path }
        | Operation::Read { path, reading: Reading::Now(_) } => vec![("path", Some(place(path)))],
        Operation::Read { path, reading: Reading::Later(Part { start, end, numbered }) } => vec![
            ("path", Some(place(path))),
            ("start_line", line(*start)),
            ("end_line", line(*end)),
            ("numbered", numbered.then(|| "true".to_owned())),
        ],
        Operation::Read { path, reading: Reading::Definition(name) } => {
            vec![("path", Some(place(path))), ("symbol", Some(name.clone()))]
        }
        Operation::List { path } => vec![("path", path.as_ref().map(place))],
        Operation::Search { pattern, path } => {
            vec![("pattern", Some(pattern.clone())), ("path", path.as_ref().map(place))]
        }
        Operation::Move { path, to } => vec![("path", Some(place(path))), ("to", Some(place(to)))],
        Operation::Done { if_ok, .. } => vec![("if", if_ok.then(|| "ok".to_owned()))],
        Operation::Run(_) | Operation::Message { .. } => Vec::new(),
    };
    let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
    given.map(|(key, value)| format!(" {key}={}", quoted(&value))).collect()
}

/// A path, behind `./` where it would not be read as it is.
fn place(path: &RelPath) -> String {
    let plain = path.as_str();
    let reply = tags::parse(&format!("[READ_FILE path={}]\n", quoted(plain)));
    let is_read = |asks: &StepContent| matches!(asks, StepContent::Operation(Operation::Read { path: read, .. }) if read == path);
    let is_plain = is_read(&reply.steps[0].asks) && reply.steps[0].warnings.is_empty();
    if is_plain { plain.to_owned() } else { format!("./{plain}") }
}

/// A value in quotes. A double quote would end it, and entities are decoded wherever they are.
fn quoted(value: &str) -> String {
    let is_plain = !value.contains([';', '\'', '‘', '’', '‚', '‛', '′']);
    match value.contains('"') {
        true if is_plain => format!("'{value}'"),
        false if !value.contains(';') => format!("\"{value}\""),
        _ => format!("\"{}\"", value.replace('&', "&amp;").replace('"', "&quot;")),
    }
}

/// What is between the tags of an operation, if it has a body.
fn body(operation: &Operation) -> Option<String> {
    match operation {
        Operation::Create { content, .. } => Some(content.to_text().into_owned()),
        Operation::Edit { change: Change::Lines { with, .. }, .. } => Some(with.clone()),
        Operation::Edit { change: Change::Once(pairs) | Change::First(pairs), .. } => {
            Some(pairs.iter().map(pair).collect())
        }
        Operation::Run(ShellCommand { command: text, .. })
        | Operation::Message { text }
        | Operation::Done { summary: text, .. } => Some(format!("{text}\n")),
        Operation::Delete { .. }
        | Operation::Read { .. }
        | Operation::List { .. }
        | Operation::Search { .. }
        | Operation::Move { .. } => None,
    }
}

/// A pair of texts between its markers, which have more signs than any line of them begins with.
fn pair(Replacement { old, new }: &Replacement) -> String {
    let signs = |line: &str| {
        let line = line.trim_start_matches(|c: char| !"<=>".contains(c));
        line.chars().take_while(|c| "<=>".contains(*c)).count()
    };
    let most = old.lines().chain(new.lines()).map(signs).max().unwrap_or(0);
    let [begin, divider, end] = ["<", "=", ">"].map(|sign| sign.repeat((most + 1).clamp(7, 40)));
    format!("{begin} SEARCH\n{old}{divider}\n{new}{end} REPLACE\n")
}
