//! What `--json` tells while deaddrop serves: an object a line, as it happens. docs/scripting.md names all
//! of them; names stay what they are, and fields are only added.

use std::path::Path;

use serde_json::{Value, json};

use super::output::{outcome_json, turn_json};
use super::summary::Mark;
use super::{Context, question};
use crate::clipboard::Way;
use crate::engine::Turn;
use crate::outbox::OutboxForm;
use crate::protocol::Outcome;
use crate::session::Session;

/// Tells events, where they are wanted.
#[derive(Debug, Default)]
pub(super) struct Events {
    on: bool,
    /// Of which turn operations are told: the name of its session's files, and which of its outboxes
    /// was answered.
    turn: Option<(String, u32)>,
}

impl Events {
    pub(super) fn told(on: bool) -> Self {
        Self { on, turn: None }
    }

    /// A session is served from now on, as it is.
    pub(super) fn session(context: &Context, turn: &Turn) {
        let mut value = turn_json(context, turn);
        value["event"] = "session".into();
        Context::print_json(&value);
    }

    /// A turn begins, or goes on, with the reply of that name.
    pub(super) fn begin(&mut self, session: &Session, reply: &str) {
        self.turn = Some((session.stem(), session.sequence));
        self.tell("begin", json!({ "reply": reply, "goesOn": session.pending.is_some() }));
    }

    /// An operation came to this.
    pub(super) fn operation(&self, outcome: &Outcome) {
        if self.on {
            let mut value = outcome_json(outcome);
            value["mark"] = Mark::of(outcome).word().into();
            self.tell("operation", value);
        }
    }

    /// Something that the person should look at.
    pub(super) fn warning(&self, message: &str) {
        self.tell("warning", json!({ "message": message }));
    }

    /// A session waits for a decision about this.
    pub(super) fn question(&self, context: &Context, session: &Session) {
        if self.on {
            let waiting = question::to_json(context, session);
            self.put("question", json!({ "session": session.stem(), "sequence": session.sequence, "waiting": waiting }));
        }
    }

    /// A turn is at its end, or waits: its next outbox, and all that it came to.
    pub(super) fn end(&mut self, context: &Context, turn: &Turn) {
        self.turn = None;
        self.outbox(context, turn);
        if self.on {
            self.put("end", whole(context, turn));
        }
    }

    /// A turn that deaddrop was stopped in has come to its end at this start: what was known of it then,
    /// and what was left.
    pub(super) fn taken_up(&self, context: &Context, turn: &Turn) {
        self.outbox(context, turn);
        if self.on {
            let mut value = whole(context, turn);
            value["recovered"] = true.into();
            self.put("end", value);
        }
    }

    /// An outbox is on the clipboard, this way, or is not, for these reasons.
    pub(super) fn copied(
        &self,
        context: &Context,
        path: &Path,
        done: Result<(&OutboxForm, Way), &str>,
    ) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let named = stem.split_once("_seq");
        self.put(
            "copied",
            json!({
                "session": named.map(|(id, _)| id),
                "sequence": named.and_then(|(_, sequence)| sequence.parse::<u32>().ok()),
                "outbox": context.display(path),
                "brief": done.ok().map(|(form, _)| form.is_brief),
                "tokens": done.ok().map(|(form, _)| form.tokens),
                "way": done.map_or("path", |(_, way)| way.name()),
                "why": done.err(),
            }),
        );
    }

    /// The newest outbox is written, or the person's words were added to it.
    pub(super) fn outbox(&self, context: &Context, turn: &Turn) {
        if self.on && turn.outbox.is_some() {
            let value = whole(context, turn);
            let keys = ["session", "sequence", "outbox", "tokens", "withheld"];
            let told = keys.map(|key| (key.to_owned(), value[key].clone()));
            self.put("outbox", Value::Object(told.into_iter().collect()));
        }
    }

    /// Tells an event of the turn that is carried out, if one is.
    fn tell(&self, event: &str, mut value: Value) {
        if let Some((session, sequence)) = &self.turn {
            value["session"] = session.as_str().into();
            value["sequence"] = (*sequence).into();
        }
        self.put(event, value);
    }

    fn put(&self, event: &str, mut value: Value) {
        if self.on {
            value["event"] = event.into();
            Context::print_json(&value);
        }
    }
}

/// A turn with all that is told of it.
fn whole(context: &Context, turn: &Turn) -> Value {
    let mut value = turn_json(context, turn);
    value["session"] = turn.session.stem().into();
    value
}
