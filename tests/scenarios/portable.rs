//! What a run of the program wrote, with placeholders for what is different in each.

use regex::Regex;

use crate::support;

const TAGS: &str = include_str!("../../protocol-prompt/tags.md");
const OPERATIONS: &str = include_str!("../../protocol-prompt/operations.md");

/// An outbox with placeholders, its protocol section and its blocks checked.
pub(crate) fn outbox(outbox: &str) -> Result<String, String> {
    let outbox =
        &*Regex::new(r#" key="[0-9a-f]{8}"\]\n$"#).unwrap().replace(outbox, " key=\"{{KEY}}\"]\n");
    let outbox = &*Regex::new("; [a-z0-9]+: not installed").unwrap().replace_all(outbox, "");
    let taught = [("{{PROTOCOL}}", TAGS), ("{{OPERATIONS}}", OPERATIONS)];
    let parted = taught.into_iter().find_map(|(placeholder, text)| {
        let section = format!("\n\n=== PROTOCOL ===\n{text}\n=== CONTEXT ===\n## Environment\n");
        outbox.split_once(&section).map(|(head, context)| (head, placeholder, context))
    });
    let (head, placeholder, context) = parted.ok_or("PROTOCOL is no file of protocol-prompt/")?;
    let of_operations = placeholder == "{{OPERATIONS}}";
    let (context, told) = if of_operations { with_events(context)? } else { (context, "") };
    let mut out =
        format!("{head}\n\n=== PROTOCOL ===\n{placeholder}\n\n=== CONTEXT ===\n## Environment\n");
    // The word of the block that is open, and the line that closes it.
    let mut block: Option<(Option<&str>, String)> = None;
    let mut contents = false;
    let machine = ["System", "Shell", "Tools", "Sandbox", "Network", "Protected"];
    for (n, line) in context.split_inclusive('\n').enumerate() {
        let bare = line.strip_suffix('\n').ok_or("the last line has no newline")?;
        if let Some(name) = machine.get(n) {
            let told = line.strip_prefix(&format!("  {name}: "));
            if told.is_none_or(|value| value.trim().is_empty()) {
                return Err(format!("{line:?} does not tell the {name}"));
            }
            out.push_str(&format!("  {name}: {{{{{}}}}}\n", name.to_uppercase()));
            continue;
        }
        contents |= block.is_none() && bare == "## Requested File Contents";
        match &block {
            Some((word, end)) if bare == end => {
                out.push_str(&without_word(line, *word));
                block = None;
            }
            Some((Some(word), _)) if line.contains(word) => {
                return Err(format!("the boundary {word} stands in the content"));
            }
            Some((None, _))
                if bare.trim().starts_with("--- ") || bare.trim().starts_with("=== ") =>
            {
                return Err(format!("{bare:?} stands in a block without a boundary"));
            }
            None if contents && bare.starts_with("--- ") => {
                let mark = bare
                    .strip_prefix("--- ")
                    .and_then(|rest| rest.strip_suffix(" ---"))
                    .ok_or_else(|| format!("{bare:?} opens no block"))?;
                let word = mark
                    .rsplit_once(" (boundary ")
                    .and_then(|(_, rest)| rest.strip_suffix(')'))
                    .filter(|word| word.len() >= 6 && word.bytes().all(|b| b.is_ascii_hexdigit()));
                out.push_str(&without_word(line, word));
                block = Some((word, format!("--- end {mark} ---")));
            }
            _ => out.push_str(line),
        }
    }
    match block {
        Some((_, end)) => Err(format!("a block is not closed by {end:?}")),
        None if of_operations => Ok(out + &portable_events(told)),
        None => Ok(out),
    }
}

/// Parts an outbox of operations before its events, which are looked at.
fn with_events(context: &str) -> Result<(&str, &str), String> {
    let heading = "\n## Events\n";
    let (before, after) = context.split_once(heading).ok_or("there are no events")?;
    let (told, _) = after.split_once("\n\n=== PROMPT ===\n").ok_or("there is no prompt")?;
    support::check_events(told)?;
    Ok(context.split_at(before.len() + heading.len()))
}

/// The events beside an outbox, with placeholders.
pub(crate) fn events(text: &str) -> Result<String, String> {
    support::check_events(text)?;
    Ok(portable_events(text))
}

fn portable_events(text: &str) -> String {
    // Within a text a quotation mark has a backslash before it.
    let duration = Regex::new(r#","durationMs":\d+"#).unwrap();
    made_up(&duration.replace_all(text, ",\"durationMs\":{{MS}}"))
}

/// Without the digits of ids that were made up for operations.
pub(crate) fn made_up(text: &str) -> String {
    Regex::new(r"\bop-[0-9a-f]{8}\b").unwrap().replace_all(text, "{{OP}}").into_owned()
}

/// Without the numbers of tokens, which what an outbox tells of the machine is part of.
pub(crate) fn weighed(text: &str) -> String {
    Regex::new("≈ [0-9,]+ tokens").unwrap().replace_all(text, "≈ {{N}} tokens").into_owned()
}

fn without_word(line: &str, word: Option<&str>) -> String {
    match word {
        Some(word) => line.replace(&format!("(boundary {word})"), "(boundary {{WORD}})"),
        None => line.to_owned(),
    }
}

/// A session's file without its secret and without what the machine has.
pub(crate) fn session(session: &str) -> String {
    let mut out = String::new();
    let mut in_tools = false;
    for line in session.split_inclusive('\n') {
        if line.starts_with("  \"secret\": \"") {
            out.push_str("  \"secret\": \"{{SECRET}}\"\n");
        } else if line.starts_with("  \"tokens\": ") {
            out.push_str("  \"tokens\": {{N}},\n");
        } else if line.starts_with("  \"tools\": [") {
            out.push_str("  \"tools\": {{TOOLS}}\n");
            in_tools = !line.trim_end().trim_end_matches(',').ends_with(']');
        } else if in_tools {
            in_tools = !line.starts_with("  ]");
        } else if is_digest(line.trim()) {
            // Of permissions too, and so of the umask.
            out.push_str("      {{RECORD}}\n");
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Whether a line is the digest of a record alone.
fn is_digest(line: &str) -> bool {
    let digits = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}
