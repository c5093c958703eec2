//! The person's selection among the steps of a reply, made after they saw a preview of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Engine;
use crate::admission::{self, Refusal};
use crate::error;
use crate::executor::{Executor, OpaquePreview, PreviewExecutor};
use crate::protocol::{Digest, ParsedReply, Step};
use crate::session::Session;
use crate::settings::Config;
use crate::turn;
use crate::workspace::Workspace;

/// The person's selection among the steps of a reply. It is valid only for the reply and the files that the preview
/// showed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selection {
    /// Identifies that reply and those files (see [`state_of`]); None for any.
    pub state: Option<String>,
    /// The steps to leave out, counted from 1, each with the reason, which may be empty.
    pub left_out: BTreeMap<usize, String>,
}

/// Identifies a reply, its session, and the present state of the files that its `steps` would change.
pub fn state_of(
    config: &Config,
    workspace: &Workspace,
    session: &Session,
    reply: &str,
    steps: &[Step],
) -> error::Result<Digest> {
    let (preview, unseen) =
        (PreviewExecutor::new(workspace), OpaquePreview::new(&config.protected_names));
    let executor: &dyn Executor = if config.guest.is_some() { &unseen } else { &preview };
    turn::state_of(session, &admission::identity(reply), steps, executor)
}

/// Marks these steps as left out, by number counted from 1, each with its reason.
///
/// # Errors
/// There is no such step.
pub fn leave_out(steps: &mut [Step], left_out: &BTreeMap<usize, String>) -> Result<(), Refusal> {
    let count = steps.len();
    for (n, why) in left_out {
        let Some(step) = n.checked_sub(1).and_then(|n| steps.get_mut(n)) else {
            let why =
                format!("there is no step {n} to leave out: `deaddrop check --json` lists {count}");
            return Err(Refusal { code: "no-such-step", why, flag: None });
        };
        step.left_out = Some(why.as_str().into());
    }
    Ok(())
}

impl Engine {
    /// Checks the person's selection among the steps of a reply to `session`.
    pub fn check_selection(
        &self,
        reply: &mut ParsedReply,
        session: &Session,
        selection: &Selection,
    ) -> error::Result<Result<(), Refusal>> {
        let mut steps = self.steps_of(reply, session);
        if let Some(state) = &selection.state
            && state
                != state_of(&self.config, &self.workspace, session, reply.text(), &steps)?.as_str()
        {
            let (code, why) = ("changed-since-check", CHANGED.to_owned());
            return Ok(Err(Refusal { code, why, flag: None }));
        }
        Ok(leave_out(&mut steps, &selection.left_out))
    }

    /// The steps of a reply to `session`.
    pub(super) fn steps_of(&self, reply: &mut ParsedReply, session: &Session) -> Vec<Step> {
        let workspace = self.guest.is_none().then(|| self.workspace.path());
        reply.read_in(session.dialect, workspace).steps
    }
}

const CHANGED: &str = "the reply or a file that it changes has changed since the preview, and nothing was executed: look at the preview again";
