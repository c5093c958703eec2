//! What is known of a turn that deaddrop was stopped in: which steps are done, and which may not be
//! done again.

use std::collections::BTreeMap;

use crate::protocol::{
    Asks, Detail, Effect, Ending, Execution, Failure, FileEffect, Operation, Outcome, Output, Step,
};
use crate::session::record::Unfinished;
use crate::workspace::Workspace;

/// The outcomes of the steps that need not, or must not, be tried again, by step.
///
/// A step with a result is done. A command that was begun and has none may have run in part: it is
/// never run again. Of a file the disk tells: it is as it was to become (done), as it was before
/// (to be done), or neither (somebody else's hand; told, and left alone).
pub fn known(turn: &Unfinished, workspace: &Workspace) -> BTreeMap<usize, Outcome> {
    let mut known = turn.begin.known();
    known.extend(turn.results.clone());
    for (n, effect) in &turn.intents {
        let Some(step) = turn.begin.steps().get(*n) else { continue };
        if known.contains_key(n) {
            continue;
        }
        let detail = match effect {
            Effect::Command | Effect::Guest { .. } => Some(lost(step)),
            Effect::File(effect) => file(effect, workspace),
        };
        if let Some(detail) = detail {
            known.insert(*n, Outcome::of(step, detail));
        }
    }
    known
}

/// What can be said of a file that was about to change; None if that is still to be done.
fn file(effect: &FileEffect, workspace: &Workspace) -> Option<Detail> {
    let found = workspace.remove_temporary(effect).and_then(|()| workspace.digest(&effect.path));
    match found {
        Err(failure) => Some(failure.into()),
        Ok(found) if found == effect.after => Some(effect.detail.clone()),
        Ok(found) if found == effect.before => None,
        Ok(_) => Some(
            Failure::execution(format!(
                "deaddrop was stopped meanwhile, and '{}' is now neither what it was before nor what it was to become: READ_FILE it before you go on",
                effect.path
            ))
            .into(),
        ),
    }
}

fn lost(step: &Step) -> Detail {
    let command = match &step.asks {
        Asks::Operation(Operation::Run(run)) => run.command.clone(),
        _ => String::new(),
    };
    Detail::Ran(Execution {
        command,
        ending: Ending::Lost,
        output: Output::default(),
        duration: std::time::Duration::ZERO,
    })
}
