//! Files of a plain agent: what stands somewhere, and how it is changed.

use super::super::{Guest, PATIENCE, sane};
use super::answer;
use crate::error::Result;
use crate::protocol::jsonrpc::{
    Entries, ExecResult, FileContent, FileEntry, ListDir, ReadFile, RpcError, WriteFile, Written,
};
use crate::protocol::{Detail, Digest, Existing, Failure, FileEffect, Operation, RelPath};
use crate::workspace::{
    Contents, already_exists, changed, editable, is_folder, not_found, nothing_left_out,
};

/// What stands at a path.
pub(super) enum Stands {
    /// Nothing that the agent tells of.
    Nothing,
    Folder,
    Text(String),
    /// A file of that size which the agent does not give: for this reason.
    Unread(u64, String),
}

impl Stands {
    /// As [`FileEffect`] has it.
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Self::Nothing => None,
            Self::Folder => Some(Digest::of_link(b"no file")),
            Self::Text(text) => Some(Digest::of(text.as_bytes())),
            Self::Unread(size, _) => Some(Digest::of_link(format!("unread {size}").as_bytes())),
        }
    }
}

/// What is in a folder, as far as it can have such a name; an empty one is the root.
pub(super) fn list(guest: &Guest, folder: &str) -> Result<Result<Vec<FileEntry>, RpcError>> {
    let path = guest.place_in(folder);
    let listed = guest.exchange::<Entries>("list_dir", &ListDir { path }, PATIENCE)?;
    Ok(listed.map(|Entries { mut entries }| {
        entries.retain(|entry| is_name(&entry.name));
        for entry in &mut entries {
            entry.size = sane::size(entry.size);
        }
        entries
    }))
}

/// Whether a text can be the name of something in a folder.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && text.len() <= 255 && !text.contains(['/', '\0'])
}

/// What the folder of a path tells of it.
pub(super) fn entry(guest: &Guest, path: &RelPath) -> Result<Option<FileEntry>> {
    let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
    let entries = list(guest, folder)?.unwrap_or_default();
    Ok(entries.into_iter().find(|entry| entry.name == path.name()))
}

/// Whether a folder can be listed, as one that commands are to begin in.
pub(super) fn folder(guest: &Guest, path: &RelPath) -> Result<Result<(), Failure>> {
    Ok(match list(guest, path.as_str())? {
        Ok(_) => Ok(()),
        Err(fault) => Err(Failure::execution(format!(
            "No folder '{path}' in the workspace: make it first, or name one that exists{}",
            answer(&fault)
        ))),
    })
}

/// All of a file.
pub(super) fn content(guest: &Guest, path: &str) -> Result<Result<String, RpcError>> {
    let asked = ReadFile { path: guest.place_in(path) };
    let read = guest.exchange::<FileContent>("read_file", &asked, PATIENCE)?;
    Ok(read.map(|FileContent { content }| content))
}

pub(super) fn stands(guest: &Guest, path: &RelPath) -> Result<Stands> {
    let entry = entry(guest, path)?;
    if entry.as_ref().is_some_and(|entry| entry.is_dir) {
        return Ok(Stands::Folder);
    }
    // Asked for also where nothing is listed: names may be spelled otherwise there.
    Ok(match (content(guest, path.as_str())?, entry) {
        (Ok(text), _) => Stands::Text(text),
        (Err(_), None) => Stands::Nothing,
        (Err(fault), Some(entry)) => Stands::Unread(entry.size, answer(&fault)),
    })
}

/// Reads a file, at most its first `limit` bytes.
pub(in super::super) fn read(
    guest: &Guest,
    path: &RelPath,
    limit: u64,
) -> Result<Result<Contents, Failure>> {
    let fault = match content(guest, path.as_str())? {
        Ok(text) => {
            let mut bytes = text.into_bytes();
            let size = bytes.len() as u64;
            bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            return Ok(Ok(Contents { path: path.clone(), bytes, size, lines: None }));
        }
        Err(fault) => answer(&fault),
    };
    Ok(Err(match entry(guest, path)? {
        None => with_answer(not_found(path), &fault),
        Some(entry) if entry.is_dir => is_folder(path),
        Some(_) => unread(path, &fault),
    }))
}

fn unread(path: &RelPath, answer: &str) -> Failure {
    Failure::execution(format!("Cannot read '{path}': this guest gives text files only{answer}"))
}

fn with_answer(failure: Failure, answer: &str) -> Failure {
    Failure { reason: failure.reason + answer, ..failure }
}

/// The same, unless it may be something else than what stands there.
pub(super) fn exact(contents: Contents) -> Result<Contents, Failure> {
    if is_exact(&contents.bytes) { Ok(contents) } else { Err(inexact(&contents.path)) }
}

/// Some agents give bytes that are no text as U+FFFD, which cannot be told from one that stands there.
fn is_exact(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, "\u{fffd}".as_bytes()).is_none()
}

fn inexact(path: &RelPath) -> Failure {
    Failure::execution(format!(
        "'{path}' holds U+FFFD as this guest gives it, so it may be no text, and this guest has text files only: use a command instead"
    ))
}

/// A change of one file, ready to be made.
pub(super) struct Plan {
    /// The new content; None where the file goes.
    content: Option<String>,
    pub(super) effect: FileEffect,
}

/// Plans to create, edit or delete the file at `path`.
pub(super) fn plan(
    guest: &Guest,
    operation: &Operation,
    path: &RelPath,
) -> Result<Result<Plan, Failure>> {
    let stands = match (stands(guest, path)?, operation) {
        (Stands::Nothing, Operation::Edit { .. } | Operation::Delete { .. }) => {
            return Ok(Err(not_found(path)));
        }
        (
            found @ (Stands::Folder | Stands::Text(_) | Stands::Unread(..)),
            Operation::Create { existing: Existing::Fail, .. },
        ) => {
            return Ok(Err(already_exists(path, matches!(found, Stands::Folder))));
        }
        (Stands::Folder, _) => return Ok(Err(is_folder(path))),
        (stands, _) => stands,
    };
    if let (Operation::Create { content, existing, .. }, Stands::Text(old)) = (operation, &stands)
        && existing.must_compare_with(content.as_bytes())
        && let Err(failure) = nothing_left_out(path, content.as_bytes(), old.as_bytes())
    {
        return Ok(Err(failure));
    }
    let before = stands.digest();
    let planned = match (operation, &stands) {
        (Operation::Create { content, .. }, _) => text(path, content.as_bytes()).map(|content| {
            let bytes = content.len() as u64;
            let replaced = before.is_some();
            (Some(content), Detail::Created { path: path.clone(), bytes, replaced })
        }),
        (Operation::Edit { change, .. }, Stands::Text(old)) => exactly(path, old)
            .and_then(|()| editable(path, old.len() as u64))
            .and_then(|()| changed(path, old.as_bytes(), change))
            .and_then(|(bytes, detail)| Ok((Some(text(path, &bytes)?), detail))),
        (Operation::Edit { .. }, Stands::Unread(_, answer)) => Err(unread(path, answer)),
        _ => Ok((None, Detail::Deleted { path: path.clone() })),
    };
    Ok(planned.map(|(content, detail)| {
        let after = content.as_ref().map(|content| Digest::of(content.as_bytes()));
        let effect = FileEffect { path: path.clone(), temporary: None, before, after, detail };
        Plan { content, effect }
    }))
}

fn exactly(path: &RelPath, old: &str) -> Result<(), Failure> {
    if is_exact(old.as_bytes()) { Ok(()) } else { Err(inexact(path)) }
}

fn text(path: &RelPath, bytes: &[u8]) -> Result<String, Failure> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        Failure::execution(format!(
            "'{path}' cannot be written: what it is to hold is no UTF-8 text, and this guest takes text files only; have a command make it, of base64 for instance"
        ))
    })
}

impl Plan {
    /// Does it.
    pub(super) fn execute(self, guest: &Guest) -> Result<Detail> {
        let Self { content, effect } = self;
        let path = &effect.path;
        let (doing, failed) = match content {
            Some(content) => ("write", write(guest, path, content)?),
            None => ("delete", remove(guest, path)?),
        };
        let Err(answer) = failed else { return Ok(effect.detail) };
        let told = format!("Cannot {doing} '{path}'{answer}");
        let found = stands(guest, path)?.digest();
        if found == effect.before {
            return Ok(Failure::execution(told).into());
        }
        Ok(if found == effect.after {
            effect.detail
        } else {
            Failure::execution(format!(
                "{told}; and it is not what it was before: READ_FILE it before you go on"
            ))
            .into()
        })
    }
}

/// Writes a file, and makes its folders where the agent does not. Gives what the agent says against it.
fn write(guest: &Guest, path: &RelPath, content: String) -> Result<Result<(), String>> {
    let asked = WriteFile { path: guest.place_in(path.as_str()), content };
    let first = put(guest, &asked)?;
    let Some((folder, _)) = path.as_str().rsplit_once('/').filter(|_| first.is_err()) else {
        return Ok(first);
    };
    if list(guest, folder)?.is_ok() {
        return Ok(first);
    }
    let made = guest.script(format!("mkdir -p {} </dev/null", guest.word_of(folder)), false)?;
    match done(made) {
        Ok(()) => put(guest, &asked),
        Err(answer) => Ok(Err(answer)),
    }
}

fn put(guest: &Guest, asked: &WriteFile) -> Result<Result<(), String>> {
    Ok(match guest.once::<Written>("write_file", asked, PATIENCE)? {
        Ok(Written { success: true }) => Ok(()),
        Ok(Written { success: false }) => Err("; the guest's agent says that it failed".to_owned()),
        Err(fault) => Err(answer(&fault)),
    })
}

fn remove(guest: &Guest, path: &RelPath) -> Result<Result<(), String>> {
    let removed =
        guest.script(format!("rm -f {} </dev/null", guest.word_of(path.as_str())), false)?;
    Ok(done(removed))
}

/// Whether a script succeeded, or what was said.
fn done(ran: Result<ExecResult, RpcError>) -> Result<(), String> {
    match ran {
        Ok(ran) if ran.exit_code == 0 => Ok(()),
        Ok(ran) => {
            let said = sane::line(ran.stderr.trim());
            Err(format!("; exit code {}: {said}", ran.exit_code))
        }
        Err(fault) => Err(answer(&fault)),
    }
}
