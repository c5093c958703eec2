//! A settings file read, whoever put it there: a regular file of some size, and nothing that gives no
//! end or waits for somebody.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::text::{size, visible_line};

/// So many bytes may a settings file have.
const LIMIT: u64 = 1 << 20;

/// The text of a settings file; None where there is none.
///
/// # Errors
/// It is no regular file or a larger one, a link that leads nowhere, is not UTF-8, or cannot be read.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    let fail = |e| Error::io("read", path, e);
    // To open a device can be to do something with it.
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return nothing(path),
        found => is_regular(path, found.map_err(fail)?.is_file())?,
    }
    let file = open(path).map_err(fail)?;
    // What stands there now need not be what was looked at before.
    is_regular(path, file.metadata().map_err(fail)?.is_file())?;
    let mut bytes = Vec::new();
    // Files of the kernel's do not say how long they are.
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(fail)?;
    fits(path, bytes.len())?;
    String::from_utf8(bytes).map(Some).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let problem = "it is not UTF-8, as settings are; save it as UTF-8";
        Error::config(format!("{}:{line}", path.display()), problem)
    })
}

/// Settings that somebody meant to be there are not none.
fn nothing(path: &Path) -> Result<Option<String>> {
    let Ok(to) = fs::read_link(path) else { return Ok(None) };
    let problem = format!(
        "it is a link to {}, where nothing is; put the settings there, or remove the link",
        to.display()
    );
    Err(Error::config(path.display().to_string(), problem))
}

/// Refuses a text of so many bytes that would not be read.
///
/// # Errors
/// It is too long.
pub(super) fn fits(path: &Path, bytes: usize) -> Result<()> {
    if bytes as u64 <= LIMIT {
        return Ok(());
    }
    let problem = format!(
        "it is larger than {}, which no settings are; look at it, and shorten it or move it away",
        size(LIMIT)
    );
    Err(Error::config(path.display().to_string(), problem))
}

fn is_regular(path: &Path, is_regular: bool) -> Result<()> {
    if is_regular {
        return Ok(());
    }
    let leads = match path.canonicalize() {
        Ok(real) if path.is_symlink() => format!("leads to {}, which is", real.display()),
        _ => "is".to_owned(),
    };
    let problem =
        format!("it {leads} no regular file, so no settings are read from it; move it away");
    Err(Error::config(path.display().to_string(), problem))
}

/// Opening a FIFO for reading would wait for a writer.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    options.open(path)
}

/// A settings file that cannot be read, as its reader says it at a place in it.
pub(super) fn unreadable(path: &Path, text: &str, at: usize, message: &str) -> Error {
    let at = text.floor_char_boundary(at);
    let n = text[..at].matches('\n').count();
    let line = text.lines().nth(n).unwrap_or_default().trim();
    let problem = match line.strip_suffix('=') {
        Some(name) => format!(
            "{} has no value; write one behind the =, or remove the line",
            visible_line(name.trim())
        ),
        None => format!("{message}; correct that line, or remove it"),
    };
    Error::config(format!("{}:{}", path.display(), n + 1), problem)
}
