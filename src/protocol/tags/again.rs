//! The line `[REPLY …]` that stands again behind commands: a reply in several code blocks, each with that line
//! above it, or several replies in one text.

use std::collections::HashMap;

use super::address::is_of_thoughts;
use super::attributes::brief;
use super::marks::Mark;
use super::reader::Reader;
use crate::protocol::{Asks, Kind, Mistake, Operation, RelPath, Step, Warning, WarningSort};

/// Where it stands.
pub(super) struct Again {
    /// How many steps there were before it.
    steps: usize,
    /// Where its line begins.
    line: usize,
}

/// What a step is about, as far as another reply to the same message would be about it, too.
#[derive(PartialEq, Eq, Hash)]
enum About<'a> {
    /// A file or a folder that changes.
    Change(&'a RelPath),
    /// What is looked at, run or said.
    Other(Kind, &'a str),
}

impl Reader<'_> {
    /// Takes that line, the same as before the first command. Whether there are several replies is known
    /// at the end.
    pub(super) fn said_again(&mut self, mark: &Mark, number: usize) {
        self.again.push(Again { steps: self.blocks.steps.len(), line: mark.line });
        let told = format!(
            "line {number} `{}` was ignored: it stands before the first command already",
            brief(self.line_at(mark.line))
        );
        self.note(Warning::new(WarningSort::ReplyLineLate, told));
    }

    /// Refuses the whole text where what follows that line may be another reply: where a command stands
    /// before it and behind, one of them cannot be read, or a summary stands before.
    pub(super) fn refuse_several(&mut self) {
        let Some(second) = self.second_reply() else { return };
        let Some(before) = self.first_command() else { return };
        let (number, shown) = (self.number(second), brief(self.line_at(second)));
        let (first, tag) =
            (self.blocks.steps[before].line, brief(self.line_at(self.origins[before])));
        let told = format!(
            "Nothing was carried out: line {number} `{shown}` stands a second time, behind a command (`{tag}` on line {first}), so these are two replies, perhaps. Send one, with the [REPLY …] line once, before all commands"
        );
        let answers = self.blocks.answers.take();
        self.refuse_all(Step::refused(number, Mistake::ReplyLineLate, told), second);
        // Where it is for another message, it is held all the same.
        self.blocks.answers = answers;
    }

    /// Where the line stands that may begin another reply.
    fn second_reply(&self) -> Option<usize> {
        let steps = &self.blocks.steps;
        // The last line of those without a step between them.
        let behind = |n: usize| self.again[..].partition_point(|again| again.steps <= n);
        let last = behind(steps.len().checked_sub(1)?);
        if last == 0 {
            return None;
        }
        let mut seen: HashMap<About<'_>, usize> = HashMap::new();
        let line = |part: usize| self.again.get(part.max(1) - 1).map(|again| again.line);
        for (n, step) in steps.iter().enumerate() {
            let part = behind(n);
            let operation = match &step.asks {
                Asks::Operation(operation) => operation,
                Asks::Invalid(_) if is_of_thoughts(step) => continue,
                Asks::Invalid(_) => return line(part),
            };
            if operation.kind() == Kind::Done && part < last {
                return line(part + 1);
            }
            for about in about(operation) {
                if *seen.entry(about).or_insert(part) != part {
                    return line(part);
                }
            }
        }
        None
    }
}

fn about(operation: &Operation) -> impl Iterator<Item = About<'_>> {
    let kind = operation.kind();
    let path = operation.path();
    let other = |text| [Some(About::Other(kind, text)), None];
    let found = match operation {
        Operation::Create { .. } | Operation::Edit { .. } | Operation::Delete { .. } => {
            [path.map(About::Change), None]
        }
        Operation::Move { path, to } => [Some(About::Change(path)), Some(About::Change(to))],
        Operation::Read { .. } | Operation::List { .. } => {
            other(path.map_or("", |path| path.as_str()))
        }
        Operation::Search { pattern, .. } => other(pattern),
        Operation::Run(run) => other(&run.command),
        Operation::Message { text } | Operation::Done { summary: text, .. } => other(text),
    };
    found.into_iter().flatten()
}
