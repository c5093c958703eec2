//! Reports of a helper to its parent: one line of JSON each.

use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LIMIT;
use crate::text::visible_line;

/// The longest report, in bytes. JSON uses up to six bytes for a byte of text.
const LONGEST: u64 = 6 * LIMIT as u64 + 100;

/// The text of the clipboard, if any.
pub(super) type HelperReport = Result<Option<String>, HelperError>;

/// Why a backend failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub(super) enum HelperError {
    #[error("it contains more than {LIMIT} bytes")]
    TooLong,
    #[error("its content is not UTF-8 text")]
    NotUtf8,
    #[error("no answer within {} seconds", .0.as_secs())]
    NoAnswer(Duration),
    #[error("{0}")]
    Other(String),
}

impl HelperError {
    /// Whether other backends would also fail, because they access the same text of the same program.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::TooLong | Self::NotUtf8 | Self::NoAnswer(_) => true,
            Self::Other(_) => false,
        }
    }
}

impl From<io::Error> for HelperError {
    fn from(e: io::Error) -> Self {
        Self::Other(e.to_string())
    }
}

/// Sends a report to the parent of this helper.
#[expect(clippy::disallowed_methods, reason = "a pipe to the parent of this helper")]
pub(super) fn send(report: &HelperReport) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&encode(report)?)?;
    out.flush()
}

fn encode(report: &HelperReport) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    Ok(line)
}

/// The reports of a helper. A thread reads them, and ends with the helper.
pub(super) struct Reports(Receiver<HelperReport>);

impl Reports {
    pub(super) fn of(output: PipeReader) -> io::Result<Self> {
        let (sender, reports) = mpsc::channel();
        let mut output = BufReader::new(output);
        let read = move || while decode(&mut output).is_some_and(|it| sender.send(it).is_ok()) {};
        thread::Builder::new().name("reports".into()).spawn(read)?;
        Ok(Self(reports))
    }

    /// Waits for the next report; None after `wait`.
    pub(super) fn next(&self, wait: Duration) -> Option<HelperReport> {
        match self.0.recv_timeout(wait) {
            Ok(report) => Some(report),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(HelperError::Other(
                "its helper ended; its display may be gone".to_owned(),
            ))),
        }
    }
}

/// The next report; None at the end.
fn decode(output: &mut impl BufRead) -> Option<HelperReport> {
    let mut line = Vec::new();
    let length = output.take(LONGEST).read_until(b'\n', &mut line).ok()?;
    if length as u64 == LONGEST {
        return Some(Err(HelperError::TooLong));
    }
    line.ends_with(b"\n").then(|| match serde_json::from_slice(&line) {
        Ok(Err(HelperError::Other(why))) => {
            Err(HelperError::Other(visible_line(&why).into_owned()))
        }
        Ok(report) => report,
        Err(_) => Err(HelperError::Other("its helper sent an invalid report".to_owned())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_mins(1);

    #[test]
    fn reports_arrive_whole_however_they_are_cut() {
        let all = [
            Ok(None),
            Ok(Some("Zeile ☂\n".to_owned())),
            Err(HelperError::TooLong),
            Err(HelperError::NotUtf8),
            Err(HelperError::Other("no seat".to_owned())),
        ];
        let bytes: Vec<u8> = all.iter().flat_map(|report| encode(report).unwrap()).collect();
        let (output, mut input) = io::pipe().unwrap();
        let reports = Reports::of(output).unwrap();
        for byte in bytes {
            input.write_all(&[byte]).unwrap();
        }
        for report in all {
            assert_eq!(reports.next(WAIT), Some(report));
        }
        assert_eq!(reports.next(Duration::ZERO), None);
        drop(input);
        assert!(matches!(reports.next(WAIT), Some(Err(HelperError::Other(_)))));
    }

    #[test]
    fn what_is_no_report_is_a_failure() {
        let read = |bytes: Vec<u8>| {
            let (output, mut input) = io::pipe().unwrap();
            thread::spawn(move || drop(input.write_all(&bytes)));
            Reports::of(output).unwrap().next(WAIT).unwrap().unwrap_err()
        };
        assert_eq!(read(vec![b'x'; 6 * LIMIT + 101]), HelperError::TooLong);
        let unknown = HelperError::Other("its helper sent an invalid report".to_owned());
        for bytes in [&b"x\n"[..], b"{\"Ok\":\"\xff\"}\n", b"{\"Err\":\"Unknown\"}\n"] {
            assert_eq!(read(bytes.to_vec()), unknown);
        }
        let hidden = encode(&Err(HelperError::Other("\x1b[2J".to_owned()))).unwrap();
        assert_eq!(read(hidden).to_string(), "␛[2J");
    }
}
