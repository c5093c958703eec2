//! Where operations happen: in the workspace here, or only in the mind ([`Preview`]).

mod here;
mod preview;

use crate::error::Result;
use crate::protocol::{Detail, Failure, Operation, RelPath};
use crate::workspace::Contents;
use crate::workspace::walk::Walk;

pub use here::Here;
pub use preview::{Preview, Rewritten};

/// Something that can carry out operations.
pub trait Place {
    /// Carries out one operation that touches files or runs a command.
    fn perform(&mut self, operation: &Operation) -> Detail;
    /// Lists the files.
    fn walk(&self) -> Result<Walk>;
    /// Reads a file, at most its first `limit` bytes.
    fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure>;
    /// Whether the person wants to stop.
    fn interrupted(&self) -> bool {
        false
    }
}
