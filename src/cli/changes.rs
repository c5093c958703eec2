//! What would become of files, as a person reads it.

use std::borrow::Cow;

use similar::TextDiff;

use super::talk::Talk;
use crate::place::{Rewritten, Standing};
use crate::text::visible;

/// What becomes of a file.
pub(super) fn change(file: &Rewritten) -> &'static str {
    match (&file.before, &file.after) {
        (None, _) => "created",
        (_, None) => "deleted",
        _ => "changed",
    }
}

/// What a reply would change in a file, as a unified diff.
pub(super) fn diff(file: &Rewritten) -> String {
    let name = |side: &str, standing: &Option<Standing>| match standing {
        Some(_) => format!("{side}/{}", file.path),
        None => "/dev/null".to_owned(),
    };
    let (old, new) = (name("a", &file.before), name("b", &file.after));
    let (Some(before), Some(after)) = (text(file.before.as_ref()), text(file.after.as_ref()))
    else {
        return format!("--- {old}\n+++ {new}\n(too large to show)\n");
    };
    TextDiff::from_lines(&before, &after).unified_diff().header(&old, &new).to_string()
}

/// What stands somewhere as a text; None where it is too large to be one.
fn text(standing: Option<&Standing>) -> Option<Cow<'_, str>> {
    match standing {
        None => Some(Cow::Borrowed("")),
        Some(Standing::File(bytes)) => Some(String::from_utf8_lossy(bytes)),
        Some(Standing::Link(target)) => Some(Cow::Owned(format!("(a link to {target})\n"))),
        Some(Standing::Large) => None,
    }
}

/// A diff in the colours of `talk`, with everything in it visible.
pub(super) fn coloured(talk: &Talk, diff: &str) -> String {
    let line = |line: &str| match line.as_bytes().first() {
        Some(b'+') => talk.green(line),
        Some(b'-') => talk.red(line),
        _ => line.to_owned(),
    };
    visible(diff).trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}
