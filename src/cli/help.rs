//! The help of every command, in rows of the terminal's width. In the sources its paragraphs are broken
//! where a line of source ends, which no terminal breaks well again.

use clap::{Arg, Command, CommandFactory};

use super::arguments::Cli;
use super::flow::flowed;
use super::rows;

/// Wider rows are hard to read; where nobody says how wide they are to be, they are as wide.
const WIDEST: usize = 100;

/// The settings whose folders `init` puts elsewhere, and what it says of them.
const OF_INIT: [(&str, &str); 4] = [
    ("workspace_dir", "What replies may touch [this folder]"),
    ("inbox_dir", "Where replies are dropped [.deaddrop/inbox]"),
    ("outbox_dir", "Where outboxes are written [.deaddrop/outbox]"),
    ("sessions_dir", "Where sessions are kept [.deaddrop/sessions]"),
];
/// Said where settings are left out.
const MORE: &str = "`--help` lists the settings that can be given as flags, too.";

/// All commands, for somebody at a terminal; `is_brief`: without the settings, which all of them take.
pub(super) fn at_terminal(is_brief: bool) -> Command {
    let width = rows::said_width().unwrap_or(WIDEST).min(WIDEST);
    // What goes on with an example stands further in than the next one. All else clap breaks well.
    let is_item = |line: &str| line.starts_with("  ") && !line.starts_with("   ");
    let in_rows = |line: &str| if is_item(line) { flowed(line, width) } else { line.to_owned() };
    with_help(all(is_brief), is_brief, &in_rows).term_width(width)
}

/// All commands, for what makes rows by itself.
pub(super) fn in_paragraphs() -> Command {
    with_help(all(false), false, &str::to_owned)
}

fn all(is_brief: bool) -> Command {
    let command = Cli::command();
    let command = command.mut_args(|arg| {
        let is_setting = arg.get_help_heading().is_some_and(|title| title.starts_with("Settings"));
        if is_brief && is_setting { arg.hide(true) } else { arg }
    });
    // What stands in a command already is not taken from above.
    let own = OF_INIT.iter().filter_map(|(id, help)| {
        let found = command.get_arguments().find(|arg| arg.get_id() == id)?;
        Some(found.clone().help(*help))
    });
    let own: Vec<Arg> = own.collect();
    command.mut_subcommand("init", |init| init.args(own))
}

fn with_help(mut command: Command, is_brief: bool, lay_out: &impl Fn(&str) -> String) -> Command {
    let help = command.get_after_help().map(ToString::to_string);
    let lines = paragraphs(&help.unwrap_or_default());
    let mut lines: Vec<String> = lines.iter().map(|line| lay_out(line)).collect();
    if is_brief {
        lines.extend((!lines.is_empty()).then(String::new));
        lines.push(MORE.to_owned());
    }
    if !lines.is_empty() {
        command = command.after_help(lines.join("\n"));
    }
    command.mut_subcommands(|inner| with_help(inner, is_brief, lay_out))
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
