//! The help of every command, in rows of the terminal's width. In the sources its paragraphs are broken
//! where a line of source ends, which no terminal breaks well again.

use clap::Command;

use super::arguments::Cli;
use super::flow::flowed;
use super::rows;

/// Wider rows are hard to read; where nobody says how wide they are to be, they are as wide.
const WIDEST: usize = 100;

/// All commands, for somebody at a terminal.
pub(super) fn at_terminal() -> Command {
    let width = rows::said_width().unwrap_or(WIDEST).min(WIDEST);
    // What goes on with an example stands further in than the next one. All else clap breaks well.
    let is_item = |line: &str| line.starts_with("  ") && !line.starts_with("   ");
    let in_rows = |line: &str| if is_item(line) { flowed(line, width) } else { line.to_owned() };
    with_help(Cli::all(), &in_rows).term_width(width)
}

/// All commands, for what makes rows by itself.
pub(super) fn in_paragraphs() -> Command {
    with_help(Cli::all(), &str::to_owned)
}

fn with_help(mut command: Command, lay_out: &impl Fn(&str) -> String) -> Command {
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        let lines: Vec<String> = paragraphs(&help).iter().map(|line| lay_out(line)).collect();
        command = command.after_help(lines.join("\n"));
    }
    command.mut_subcommands(|inner| with_help(inner, lay_out))
}

/// The lines of a text, each paragraph in one. What is indented is a line by itself, and so is what it
/// stands below.
fn paragraphs(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    for line in text.lines() {
        match lines.last_mut().filter(|last| is_prose(last) && is_prose(line)) {
            Some(last) => {
                last.push(' ');
                last.push_str(line);
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_one_line_and_an_example_its_own() {
        let text =
            "One that\ngoes on.\n\nAnother.\n\nExamples:\n  a b\n      what it is\n  c\nMore.";
        let lines = [
            "One that goes on.",
            "",
            "Another.",
            "",
            "Examples:",
            "  a b",
            "      what it is",
            "  c",
        ];
        assert_eq!(paragraphs(text), [&lines[..], &["More."]].concat());
    }
}
