//! Files and folders: `read_file`, `write_file` and `list_dir`.

use super::Served;
use super::named::{Named, failed, named, named_file, with_path};
use crate::error::Error;
use crate::executor::Executor;
use crate::policy::Grant;
use crate::protocol::jsonrpc::{
    Entries, FileContent, FileEntry, READ_LIMIT, RpcError, WriteFile, Written,
};
use crate::protocol::operations::Encoding;
use crate::protocol::{Detail, Existing, Operation, Reading, RelPath};
use crate::text::{byte_count, visible_line};
use crate::workspace::Contents;

impl Served {
    /// All of a text file.
    pub(super) fn read_file(&self, sent: &str) -> Result<FileContent, RpcError> {
        let workspace = &self.serving.workspace;
        let path = named_file(workspace.path(), sent)?;
        self.is_there().map_err(|reason| with_path(sent, &reason))?;
        self.may_read(sent, &path)?;
        let policy = self.serving.policy.as_ref();
        let most = policy.and_then(|policy| policy.files.max_bytes);
        let limit = most.unwrap_or(READ_LIMIT).min(READ_LIMIT);
        // One byte more tells of those that claim no size, as those of /proc do.
        let read = workspace.read(&path, limit + 1).map_err(|failure| failed(sent, &failure))?;
        let Contents { bytes, size, .. } = read;
        let shown = visible_line(sent);
        if size > limit {
            // So much of it was read; of some nobody knows the size.
            let least = if size == limit + 1 { "at least " } else { "" };
            return Err(RpcError::internal(format!(
                "'{shown}' is too long: {least}{size} bytes, and files up to {} are read; take parts of it by a command",
                byte_count(limit)
            )));
        }
        String::from_utf8(bytes).map(|content| FileContent { content }).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            RpcError::internal(format!(
                "'{shown}' is not UTF-8 text ({}, the first that is none at {at}); read it by a command, such as base64",
                byte_count(size)
            ))
        })
    }

    /// Makes or replaces a file, and folders on the way to it.
    pub(super) fn write_file(&self, file: WriteFile) -> Result<Written, RpcError> {
        let WriteFile { path: sent, content } = file;
        let path = named_file(self.serving.workspace.path(), &sent)?;
        self.is_there().map_err(|reason| with_path(&sent, &reason))?;
        let content = content.into();
        let operation = Operation::Create { path, content, existing: Existing::Replace };
        let mut executor = self.executor(&|| false);
        self.permits(&operation, &executor).map_err(|reason| with_path(&sent, &reason))?;
        // Where commands may write them, it would keep nobody from anything.
        let permit = !self.guarded;
        // To look for repositories, all of the root may have to be walked.
        let is_protected = || -> Result<bool, Error> {
            Ok(!permit && executor.look(&operation)?.is_some_and(|look| look.protected))
        };
        if is_protected().map_err(|e| with_path(&sent, &e.to_string()))? {
            return Err(RpcError::internal(format!(
                "Path is protected: '{}' is only written by hand, since others act on such files: those of the names in the setting protected_names, and what git obeys elsewhere",
                visible_line(&sent)
            )));
        }
        let opens = Grant { protected: permit, ..Grant::default() };
        match executor.perform(&operation, opens, &mut |_| Ok(())) {
            Ok(Detail::Failed(failure)) => Err(failed(&sent, &failure)),
            Ok(_) => Ok(Written { success: true }),
            Err(e) => Err(with_path(&sent, &e.to_string())),
        }
    }

    /// What is in a folder. Names that are no UTF-8 are shown with U+FFFD for what is none.
    pub(super) fn list_dir(&self, sent: &str) -> Result<Entries, RpcError> {
        let workspace = &self.serving.workspace;
        let path = match named(workspace.path(), sent)? {
            Named::Root => None,
            Named::Below(path) => Some(path),
        };
        self.is_there().map_err(|reason| with_path(sent, &reason))?;
        if let Some(path) = &path {
            self.may_read(sent, path)?;
        }
        let listed = workspace.list(path.as_ref()).map_err(|failure| failed(sent, &failure))?;
        let entry = |entry: crate::workspace::Entry| FileEntry {
            name: entry.name.to_string_lossy().into_owned(),
            is_dir: entry.is_dir,
            size: entry.size,
        };
        Ok(Entries { entries: listed.into_iter().map(entry).collect() })
    }

    fn may_read(&self, sent: &str, path: &RelPath) -> Result<(), RpcError> {
        if self.serving.policy.is_none() {
            return Ok(());
        }
        let reading = Reading::Now(Encoding::Utf8);
        let operation = Operation::Read { path: path.clone(), reading };
        let permitted = self.permits(&operation, &self.executor(&|| false));
        permitted.map_err(|reason| with_path(sent, &reason))
    }
}
