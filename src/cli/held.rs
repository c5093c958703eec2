//! Replies that are held back, as `status` tells of them.

use super::Context;
use crate::inbox;
use crate::text::{shell_word, visible_line};

/// So many of them are named.
const NAMED: usize = 5;

/// A line on the replies that are held, of whatever session; None where there are none.
pub(super) fn line(context: &Context) -> Option<String> {
    let names = inbox::held(&context.config.inbox);
    let folder = context.config.inbox.join(inbox::HELD);
    let file = shell_word(&context.display(&folder.join(names.first()?)));
    let mut shown: Vec<_> = names.iter().take(NAMED).map(|name| visible_line(name)).collect();
    if names.len() > NAMED {
        shown.push("…".into());
    }
    let replies = match names.len() {
        1 => "1 reply".to_owned(),
        n => format!("{n} replies"),
    };
    Some(format!(
        "Held:     {replies} in {}/: {}; a note beside each says why, and `deaddrop apply --force {}` carries it out all the same",
        context.display(&folder),
        shown.join(", "),
        visible_line(&file)
    ))
}
