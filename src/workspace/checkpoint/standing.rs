//! Whether something stands somewhere, asked of what was recorded.

use super::merge::is_same;
use super::{Change, Store, What};
use crate::error::Result;
use crate::workspace::Workspace;

impl Store {
    /// Whether that is what stands at a path: contents, permissions, links; of what is not kept whether it
    /// is the same file, unchanged.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn stands(
        &mut self,
        workspace: &Workspace,
        path: &str,
        what: Option<&What>,
    ) -> Result<bool> {
        let now = self.look_for(workspace, path, false, [what, None])?;
        Ok(is_same(now.as_ref(), what))
    }

    /// The files and links of these changes where something else stands than the change left there, by
    /// their paths for people. Of what cannot be read nothing is known. With `again` a disk that fails is
    /// passed over: otherwise nothing could go on where one is damaged.
    ///
    /// # Errors
    /// One of them cannot be looked at.
    pub fn others(
        &mut self,
        workspace: &Workspace,
        changes: &[Change],
        again: bool,
    ) -> Result<Vec<String>> {
        let is_file = |what: &Option<What>| !matches!(what, None | Some(What::Folder { .. }));
        let mut others = Vec::new();
        for change in changes {
            let counts = is_file(&change.before) || is_file(&change.after);
            if !counts {
                continue;
            }
            let after = change.after.as_ref();
            match self.look_for(workspace, &change.path, false, [after, None]) {
                Ok(Some(now)) if now.is_unreadable() => {}
                Ok(now) if is_same(now.as_ref(), after) => {}
                Ok(_) => others.push(change.shown()),
                Err(_) if again => {}
                Err(e) => return Err(e),
            }
        }
        Ok(others)
    }
}
