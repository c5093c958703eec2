//! Tests that every `--help` has examples, and that these and the commands in the documentation parse.

use clap::Command;
use clap::error::ErrorKind;

use super::arguments::Cli;

/// All commands by full name, as in `deaddrop config set`.
fn commands() -> Vec<(String, Command)> {
    fn walk(name: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        found.push((name.to_owned(), command.clone()));
        for inner in command.get_subcommands() {
            walk(&format!("{name} {}", inner.get_name()), inner, found);
        }
    }
    let mut found = Vec::new();
    walk("deaddrop", &Cli::all(), &mut found);
    found
}

/// The lines of the examples section, without the explanations. Explanations are indented more.
fn examples(command: &Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let Some((_, section)) =
        format!("\n{help}").split_once("\nExamples:\n").map(|(a, b)| (a.to_owned(), b.to_owned()))
    else {
        return Vec::new();
    };
    let lines = section.lines().take_while(|line| !line.is_empty());
    let is_example = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    lines.filter(is_example).map(|line| line.trim().to_owned()).collect()
}

/// Splits a shell line into commands and their words. Handles quotes, `|`, `&&`, `;`, `<` and `>`; the examples use
/// nothing else.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut redirects): (Option<String>, Option<char>, bool) =
        (None, None, false);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '|' | '&' | ';' | '<' | '>') => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut redirects)
                {
                    commands.last_mut().unwrap().push(word);
                }
                match c {
                    '|' | '&' | ';' => commands.push(Vec::new()),
                    '<' | '>' => redirects = true,
                    _ => {}
                }
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    assert_eq!(quote, None, "a quote is left open: {line}");
    commands.retain(|words| !words.is_empty());
    commands
}

#[test]
fn every_help_has_examples() {
    for (name, command) in commands() {
        let examples = examples(&command);
        let words: Vec<&str> = name.split(' ').skip(1).collect();
        let shows = |line: &String| {
            split(line).iter().any(|call| {
                let mut rest = call.iter();
                call[0] == "deaddrop" && words.iter().all(|word| rest.any(|other| other == word))
            })
        };
        assert!(examples.iter().any(shows), "`{name} --help` has no example of it: {examples:?}");
        assert!(command.get_after_help().is_none_or(|_| command.get_after_long_help().is_none()));
    }
}

#[test]
fn every_example_is_understood() {
    let mut tried = 0;
    for (name, command) in commands() {
        for line in examples(&command) {
            for words in split(&line).iter().filter(|words| words[0] == "deaddrop") {
                tried += 1;
                if let Err(e) = Cli::read(Cli::all(), words) {
                    panic!("`{name} --help` says `{line}`, and that is not understood: {e}");
                }
            }
        }
    }
    assert!(tried > 60, "only {tried} examples were tried");
}

#[test]
fn what_the_newcomers_page_types_is_understood() {
    let page = include_str!("../../docs/start.md");
    let typed = page.lines().filter_map(|line| line.strip_prefix("$ "));
    let typed = typed.map(|line| line.split(" # ").next().unwrap_or_default());
    let spans = page.lines().filter(|line| !line.starts_with("$ "));
    let spans = spans.flat_map(|line| line.split('`').skip(1).step_by(2));
    let calls: Vec<_> = typed
        .chain(spans)
        .flat_map(split)
        .filter(|words| words[0] == "deaddrop" && words.len() > 1)
        .collect();
    assert!(calls.len() > 15, "{calls:?}");
    for words in calls {
        if let Err(e) = Cli::read(Cli::all(), &words) {
            panic!("docs/start.md has {words:?}, and that is not understood: {e}");
        }
    }
}

/// The sources and documentation files. They name commands.
fn texts() -> Vec<(String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["src", "docs", "README.md", "ARCHITECTURE.md", "protocol-prompt"];
    let files = places.iter().flat_map(|place| walkdir::WalkDir::new(root.join(place)));
    let files = files.flatten().filter(|entry| {
        let name = entry.path().file_name().unwrap_or_default().to_string_lossy();
        name != "tests.rs"
            && name != "examples.rs"
            && [".rs", ".md", ".toml"].iter().any(|end| name.ends_with(end))
    });
    files
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path()).ok()?;
            Some((entry.path().display().to_string(), text))
        })
        .collect()
}

#[test]
fn every_command_that_is_named_is_understood() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for (file, text) in texts() {
        for span in text.split("`deaddrop ").skip(1) {
            let span = span.split('`').next().unwrap_or_default();
            let is_call = span.starts_with(|c: char| c.is_ascii_lowercase());
            let is_cut = span.contains("\", \"") || span.contains(['[', '|', '…', '\n']);
            if !is_call || is_cut || span.starts_with("help ") {
                continue;
            }
            tried += 1;
            // Placeholders stand for flags or values.
            let span = span.replace("{of}", "").replace("{flag}", "--force").replace("\\\"", "\"");
            let call = split(&format!("deaddrop {span}")).swap_remove(0);
            let error = Cli::read(Cli::all(), call).err().map(|e| e.kind());
            if matches!(error, Some(ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument)) {
                wrong.push(format!("{file}: `deaddrop {span}`: {error:?}"));
            }
        }
    }
    assert!(tried > 200, "only {tried} were tried");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn lines_are_split_as_a_shell_does() {
    let words = |line: &str| split(line);
    assert_eq!(
        words("a 'b c' \"d\" > e | f && g ''"),
        [vec!["a", "b c", "d"], vec!["f"], vec!["g", ""]]
    );
    assert!(Cli::read(Cli::all(), ["deaddrop", "config", "sett"]).is_err());
}

#[test]
fn the_command_line_is_sound() {
    Cli::all().debug_assert();
}
