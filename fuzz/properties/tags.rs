//! What holds of any text that is read as a reply in tags.

pub(crate) mod print;

use deaddrop::protocol::{
    Dialect, Mistake, Operation, ParsedReply, Reply, Step, StepContent, WarningKind, read, tags,
};

/// Panics where something of it does not hold.
pub(crate) fn hold(text: &str) {
    let reply = tags::parse(text);
    in_order(text, &reply);
    can_be_stored(&reply);
    is_printed(&reply);
    for dialect in [Dialect::Tags, Dialect::Operations] {
        in_order(text, &read(text, dialect));
    }
    ParsedReply::new(text.to_owned()).ends_early();
}

/// There is always a step; they stand in order, each on a line of its own, and what is told of it is one line.
fn in_order(text: &str, reply: &Reply) {
    let steps = &reply.steps;
    assert!(!steps.is_empty());
    let in_tags = reply.dialect != Some(Dialect::Operations);
    // A tag may stand behind the end of thoughts on its line.
    let may_share = |step: &Step| match &step.asks {
        StepContent::Invalid(invalid) => !in_tags || invalid.mistake == Mistake::ThoughtsUnopened,
        StepContent::Operation(_) => !in_tags,
    };
    assert!(steps.is_sorted_by(|a, b| a.line < b.line || may_share(a) && a.line == b.line));
    assert!(steps[0].line > 0);
    assert!(steps[steps.len() - 1].line <= text.matches(['\n', '\r']).count() + 1);
    for step in steps {
        let reason = match &step.asks {
            StepContent::Invalid(invalid) if in_tags => Some(&invalid.reason),
            _ => None,
        };
        let told = step.warnings.iter().map(|warning| &warning.text).chain(reason);
        told.for_each(|told| assert!(!told.contains('\n'), "{told:?}"));
    }
    // What ends a reply is its last step.
    let ends = steps.iter().position(|step| step.ends);
    assert!(ends.is_none_or(|n| n + 1 == steps.len()), "{steps:?}");
}

fn can_be_stored(reply: &Reply) {
    let json = serde_json::to_string(&reply.steps).unwrap();
    let loaded: Vec<Step> = serde_json::from_str(&json).unwrap();
    assert_eq!(loaded, reply.steps);
}

fn operations(reply: Reply) -> Vec<Operation> {
    let asked = reply.steps.into_iter().filter_map(|step| match step.asks {
        StepContent::Operation(operation) => Some(operation),
        StepContent::Invalid(_) => None,
    });
    asked.collect()
}

/// What is printed is read as what was printed. Only where something was taken off a body, what is
/// left may be such that something would be taken off again.
fn is_printed(reply: &Reply) {
    let changed = |step: &Step| {
        let changes = [WarningKind::FenceTakenOff, WarningKind::NumbersTakenOff];
        step.warnings.iter().any(|warning| changes.contains(&warning.kind))
    };
    let mut kept = reply.clone();
    kept.steps.retain(|step| !changed(step));
    let first: Vec<Operation> = operations(kept);
    let printed = print::print(&first);
    let again = operations(tags::parse(&printed));
    assert_eq!(again, first, "{printed}");
}
