//! What a guest says, as far as it can be believed: of the sort that was asked for, no longer than it
//! may be, and without characters that would mislead a reader.

use crate::protocol::rpc::About;
use crate::protocol::{
    Detail, Ending, Failure, FailureKind, Operation, Output, Warning, WarningSort,
};
use crate::text::visible_line;

/// No line of a guest's is longer, in characters.
const LINE: usize = 2_000;
/// No more warnings of one step are told.
const WARNINGS: usize = 100;
/// No more tools and names are told.
const ITEMS: usize = 100;

/// A line as it can be shown.
pub(super) fn line(text: &str) -> String {
    let shown: String = text.chars().take(LINE).collect();
    visible_line(&shown).into_owned()
}

/// A size of which as many as one answer can hold can be summed up.
pub(super) fn size(size: u64) -> u64 {
    size.min(1 << 40)
}

pub(super) fn about(about: About) -> About {
    let lines = |lines: Vec<String>| lines.iter().take(ITEMS).map(|text| line(text)).collect();
    About {
        program: line(&about.program),
        system: line(&about.system),
        shell: line(&about.shell),
        sandbox: line(&about.sandbox),
        network: line(&about.network),
        protected: lines(about.protected),
        tools: lines(about.tools),
        root: line(&about.root),
        ..about
    }
}

pub(super) fn failure(failure: Failure) -> Failure {
    Failure {
        reason: line(&failure.reason),
        suggestion: failure.suggestion.map(|text| line(&text)),
        ..failure
    }
}

pub(super) fn warnings(warnings: Vec<Warning>) -> Vec<Warning> {
    // That it does not count is for this side to say.
    let told = |warning: &Warning| warning.sort != WarningSort::Done;
    let warnings = warnings.into_iter().filter(told).take(WARNINGS);
    warnings.map(|warning| Warning::new(warning.sort, line(&warning.text))).collect()
}

/// What an operation came to, if that is something that it can come to.
pub(super) fn detail(detail: Detail, operation: &Operation, output_limit: usize) -> Detail {
    match (operation, detail) {
        (_, Detail::Failed(failed)) => self::failure(failed).into(),
        (Operation::Create { .. }, detail @ Detail::Created { .. })
        | (Operation::Edit { .. }, detail @ (Detail::Edited { .. } | Detail::Replaced { .. }))
        | (Operation::Delete { .. }, detail @ Detail::Deleted { .. }) => detail,
        (Operation::Run(run), Detail::Ran(mut execution)) => {
            execution.command.clone_from(&run.command);
            if let Output::Together(_) = execution.output {
                execution.output = execution.output.within(output_limit);
            }
            match &mut execution.ending {
                Ending::Stopped(why) | Ending::NotStarted(why) => *why = line(why),
                _ => {}
            }
            Detail::Ran(execution)
        }
        _ => Failure::new(
            FailureKind::System,
            "the guest says that it came to something which it cannot come to: look at what it did",
        )
        .into(),
    }
}
