//! What a guest's memory of steps is known by: a random name that lies among the records. Who loses
//! these, as a container does that is made anew, loses it with them, and the host sees that a key which
//! is not known here may have been begun all the same.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::atomic;
use crate::error::{Error, Result};

/// Its file. No record is called so.
const NAME: &str = "id";

/// The name of the memory in this folder, which `make` makes where it is missing. The name is made, and
/// on disk, when it is first asked for.
///
/// # Errors
/// It cannot be read or made.
pub(super) fn identity(folder: &Path, make: impl FnOnce() -> Result<()>) -> Result<String> {
    let path = folder.join(NAME);
    let name = match read_or_make(&path, folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            make()?;
            read_or_make(&path, folder)
        }
        name => name,
    };
    name.map_err(|e| Error::io("read", &path, e))
}

fn read_or_make(path: &Path, folder: &Path) -> io::Result<String> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = atomic::open_own(&mut options, path)?;
    // Whoever has it makes it in no time.
    file.lock()?;
    let mut name = String::new();
    file.read_to_string(&mut name)?;
    if uuid::Uuid::try_parse(&name).is_ok() {
        return Ok(name);
    }
    // One that is torn was told to nobody.
    let name = uuid::Uuid::new_v4().simple().to_string();
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    atomic::sync_folder(folder).map_err(io::Error::other)?;
    Ok(name)
}
