//! A guest that is a plain bouvet-agent, with the six methods of its specification and no more: the
//! lesser mode.
//!
//! Text files only; a write is no rename, so it may be done in part; nothing is confined there but by
//! the guest itself, and nothing can be undone. There are no keys: what was asked for and not answered
//! is not asked for again. Of a file, what stands there tells whether it was written; of a command
//! nobody knows. A command cannot be ended from here: who wants to stop waits for it, as long as it
//! was given at most.
//!
//! The agent does not tell links from files. Where they lead is the guest's business: a path is judged
//! as it was asked for, and protected names are known by that alone.

mod about;
mod command;
mod files;
#[cfg(test)]
mod tests;
mod walk;

use std::time::Instant;

use super::{GRACE, Guest, PATIENCE, Terms, sane};
use crate::error::Result;
use crate::place::here::left_by;
use crate::place::{Left, Place, WriteAhead, fault_of, told};
use crate::policy::Opens;
use crate::protocol::jsonrpc::{Exec, ExecResult, READ_LIMIT, RpcError};
use crate::protocol::{
    Detail, Digest, Effect, Failure, MoveLook, Operation, Part, Reading, RelPath, ShellCommand,
    Warning,
};
use crate::text::shell_word;
use crate::workspace::protected::Protected;
use crate::workspace::repository::repository_around;
use crate::workspace::{self, Contents, Look};

pub(super) use about::about;
pub(super) use files::read;
pub(super) use walk::walk;

/// A guest of six methods as a place.
pub(super) struct InPlain<'a> {
    guest: &'a Guest,
    terms: Terms<'a>,
    protected: Protected,
    noticed: Vec<Warning>,
}

impl Guest {
    /// What a path is called in a plain guest; an empty one is the root itself.
    fn place_in(&self, path: &str) -> String {
        match (self.settings.root.as_deref(), path) {
            (None, "") => ".".to_owned(),
            (None, path) => path.to_owned(),
            (Some(root), "") => root.to_owned(),
            (Some(root), path) => format!("{}/{path}", root.trim_end_matches('/')),
        }
    }

    /// The same as a word of a shell, which takes it for no option.
    fn word_of(&self, path: &str) -> String {
        let place = self.place_in(path);
        shell_word(&if place.starts_with('/') { place } else { format!("./{place}") })
    }

    /// Runs a small script that is no command of a reply's; `again`: it may be run twice.
    fn script(&self, cmd: String, again: bool) -> Result<Result<ExecResult, RpcError>> {
        let asked = Exec { cmd };
        if again {
            self.exchange("exec", &asked, PATIENCE)
        } else {
            self.once("exec", &asked, PATIENCE)
        }
    }
}

/// What cannot be had of a guest that has no method for it; a command does it there.
fn beyond(what: &str, command: &str) -> Detail {
    let told = format!(
        "this guest is a plain agent, which cannot {what} by itself: use RUN_COMMAND with `{command}`"
    );
    Failure::execution(told).into()
}

/// What the agent says against it, as the end of a sentence.
fn answer(fault: &RpcError) -> String {
    format!("; the guest's agent says: {}", sane::line(&fault.message))
}

impl<'a> InPlain<'a> {
    pub(super) fn new(guest: &'a Guest, terms: Terms<'a>) -> Self {
        let protected = Protected::new(terms.protected);
        Self { guest, terms, protected, noticed: Vec::new() }
    }

    /// Whether what is written there lies in a folder that git takes for a repository, or would then.
    fn completes_repository(&self, path: &RelPath) -> Result<bool> {
        if self.protected.name_of(".git").is_none() {
            return Ok(false);
        }
        let names: Vec<&str> = path.components().collect();
        let mut listed = Vec::new();
        for n in 0..names.len() {
            match files::list(self.guest, &names[..n].join("/"))? {
                Ok(entries) => listed.push(entries),
                Err(_) => break,
            }
        }
        let stands = |n: usize, name: &str| {
            let mut entries = listed.get(n).into_iter().flatten();
            entries.any(|entry| {
                entry.name.eq_ignore_ascii_case(name) && (name != "HEAD" || !entry.is_dir)
            })
        };
        Ok(repository_around(&names, stands).is_some())
    }

    fn run(
        &mut self,
        run: &ShellCommand,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        if let Some(fault) = fault_of(run).or_else(|| command::fault_of_names(run)) {
            return Ok(Failure::execution(fault).into());
        }
        if let Some(folder) = &run.cwd
            && let Err(failure) = files::folder(self.guest, folder)?
        {
            return Ok(failure.into());
        }
        let given = (self.terms.timeout)(run.wanted_timeout());
        let folder = run.cwd.as_ref().map_or("", RelPath::as_str);
        let cmd = command::script(run, &self.guest.word_of(folder), given);
        // What cannot be asked for is not begun: it would be told as interrupted.
        self.guest.meet()?;
        before(WriteAhead::Effect(&Effect::Command))?;
        let patience = (given + 2 * GRACE).max(command::LEAST);
        let begun = Instant::now();
        let ran = self.guest.once::<ExecResult>("exec", &Exec { cmd }, patience)?;
        Ok(match ran {
            Ok(ran) => {
                let limit = self.terms.output_limit;
                let (execution, noticed) =
                    command::execution(run, ran, begun.elapsed(), given, limit);
                self.noticed = noticed;
                Detail::Ran(execution)
            }
            Err(fault) => Failure::execution(format!("It was not run{}", answer(&fault))).into(),
        })
    }
}

impl Place for InPlain<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Opens,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        let path = match operation {
            Operation::Run(run) => return self.run(run, before),
            Operation::Message { .. }
            | Operation::Done { .. }
            | Operation::Read { reading: Reading::Later(_), .. } => return Ok(told(operation)),
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let limit = self.terms.read_limit.min(READ_LIMIT);
                let read = read(self.guest, path, limit.saturating_add(1))?;
                let room = &mut self.terms.read_room;
                let given =
                    read.and_then(files::exact).and_then(|f| f.whole(*encoding, limit, room));
                return Ok(given.unwrap_or_else(Detail::Failed));
            }
            Operation::List { path } => {
                let (detail, noticed) = walk::listed(self.guest, path.as_ref())?;
                self.noticed = noticed;
                return Ok(detail);
            }
            Operation::Search { pattern, path } => {
                let place = path.as_ref().map_or(".", RelPath::as_str);
                let command =
                    format!("grep -rnE -e {} -- {}", shell_word(pattern), shell_word(place));
                return Ok(beyond("search files", &command));
            }
            Operation::Move { path, to } => {
                let [path, to] = [path, to].map(|path| shell_word(path.as_str()));
                return Ok(beyond("move files", &format!("mv -nT -- {path} {to}")));
            }
            Operation::Create { path, .. }
            | Operation::Edit { path, .. }
            | Operation::Delete { path } => path,
        };
        if !opens.protected
            && let Err(failure) = self.protected.refuse(path, path)
        {
            return Ok(failure.into());
        }
        Ok(match files::plan(self.guest, operation, path)? {
            Ok(plan) => {
                self.guest.meet()?;
                before(WriteAhead::Effect(&Effect::File(Box::new(plan.effect.clone()))))?;
                plan.execute(self.guest)?
            }
            Err(failure) => failure.into(),
        })
    }

    fn noticed(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.noticed)
    }

    fn walk(&self) -> Result<workspace::walk::Walk> {
        walk(self.guest)
    }

    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        self.guest.read_part(path, part)
    }

    fn look(&self, operation: &Operation) -> Result<Option<Look>> {
        let Some(path) = operation.path() else { return Ok(None) };
        let size = files::entry(self.guest, path)?.filter(|found| !found.is_dir);
        let (mut protected, mut moved) = (self.protected.name_in(path).is_some(), None);
        if let Operation::Move { to, .. } = operation {
            protected |= self.protected.name_in(to).is_some();
            protected = protected || self.completes_repository(to)?;
            moved = Some(Box::new(MoveLook { to: Some(to.clone()), files: Vec::new() }));
        }
        if !matches!(
            operation,
            Operation::Read { .. } | Operation::List { .. } | Operation::Search { .. }
        ) {
            protected = protected || self.completes_repository(path)?;
        }
        let size = size.map(|found| found.size);
        Ok(Some(Look { real: Some(path.clone()), size, protected, moved }))
    }

    fn place_of(&self, operation: &Operation) -> Result<Option<RelPath>> {
        Ok(match operation {
            Operation::Run(run) => run.cwd.clone(),
            _ => operation.path().cloned(),
        })
    }

    fn standing(&self, operation: &Operation) -> Result<Option<Digest>> {
        match operation {
            Operation::Create { path, .. }
            | Operation::Edit { path, .. }
            | Operation::Delete { path }
            | Operation::Move { path, .. } => Ok(files::stands(self.guest, path)?.digest()),
            _ => Ok(None),
        }
    }

    fn left(&mut self, effect: &Effect, _: &Operation) -> Result<Left> {
        Ok(match effect {
            Effect::File(effect) => {
                left_by(effect, Ok(files::stands(self.guest, &effect.path)?.digest()))
            }
            // What was asked of a deaddrop that has become a plain agent nobody can tell.
            Effect::Command | Effect::Move(_) | Effect::Guest { .. } => Left::Lost,
        })
    }

    fn interrupted(&self) -> bool {
        self.guest.is_interrupted()
    }
}
