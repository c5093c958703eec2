//! What a person gives to be read: a file, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::pasting;
use crate::error::{Error, Result};
use crate::inbox;
use crate::terminal::{Stream, Styled};
use crate::text::visible_line;

/// How a person ends what they type.
const END: &str = "Ctrl-D on a line of its own ends it.";

/// What was read.
pub(super) struct Input {
    /// What to call it.
    pub(super) name: String,
    /// Its text, or why it is none.
    pub(super) text: Result<String, String>,
}

impl Input {
    /// Reads a file, or standard input where there is none or it is `-`; `doing` is for the error:
    /// "read the reply from".
    pub(super) fn read(file: Option<&Path>, doing: &'static str) -> Result<Self> {
        let file = file.filter(|path| *path != Path::new("-"));
        let (path, name) = match file {
            Some(path) => (path, visible_line(&path.to_string_lossy()).into_owned()),
            None => (Path::new("standard input"), "standard input".to_owned()),
        };
        let mut bytes = Vec::new();
        let limit = inbox::SIZE_LIMIT + 1;
        match file {
            Some(path) => {
                File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
            }
            None => {
                if pasting::is_possible() {
                    let announced = format!("Waiting to {doing} the keyboard.\n{END}");
                    let _ = Stream::Err.line(&Styled::from(announced.as_str()));
                }
                io::stdin().take(limit).read_to_end(&mut bytes)
            }
        }
        .map_err(|e| Error::io(doing, path, e))?;
        let text = if bytes.len() as u64 > inbox::SIZE_LIMIT {
            // How long it is in all is not known: the rest is not read.
            Err(format!("it is longer than {} bytes; no more is read", inbox::SIZE_LIMIT))
        } else {
            inbox::decode(bytes)
        };
        Ok(Self { name, text })
    }
}

/// Arguments that another deaddrop hands over in the first line of standard input; the rest of it is the command's.
#[cfg(feature = "serve")]
pub(super) fn arguments() -> Vec<std::ffi::OsString> {
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
    let arguments: Vec<String> = serde_json::from_str(&line).unwrap_or_default();
    arguments.into_iter().map(Into::into).collect()
}
