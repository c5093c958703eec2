//! What a helper reports: a line of JSON each time.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use memchr::memchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::LIMIT;
use crate::text::visible_line;

/// No more bytes of a report are read: JSON has six for some characters.
const LONGEST: usize = 6 * LIMIT + 100;

/// A text, if there is one.
pub(super) type Report = Result<Option<String>, Failure>;

/// Why a way failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub(super) enum Failure {
    #[error("it holds more than {LIMIT} bytes")]
    TooLong,
    #[error("what it holds is no text in UTF-8")]
    NotUtf8,
    #[error("no answer within {} seconds", .0.as_secs())]
    NoAnswer(Duration),
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Whether other ways are not tried: they lead to the same text, and to the same program that holds it.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::TooLong | Self::NotUtf8 | Self::NoAnswer(_) => true,
            Self::Other(_) => false,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Self::Other(e.to_string())
    }
}

/// Reports to the parent of this helper.
#[expect(clippy::disallowed_methods, reason = "a pipe to whoever started this helper")]
pub(super) fn send(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(&encode(report)?)?;
    out.flush()
}

fn encode(report: &Report) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the reports of a helper.
pub(super) struct Reports {
    output: PipeReader,
    buffer: Vec<u8>,
}

impl Reports {
    pub(super) fn new(output: PipeReader) -> Self {
        Self { output, buffer: Vec::new() }
    }

    /// Waits for the next report. None if it is not here in time.
    pub(super) fn next(&mut self, wait: Duration) -> Option<Report> {
        let deadline = Instant::now() + wait;
        let mut part = vec![0; 1 << 16];
        loop {
            if let Some(report) = self.decode() {
                return Some(report);
            }
            if !is_readable(&self.output, deadline.saturating_duration_since(Instant::now())) {
                return None;
            }
            match self.output.read(&mut part) {
                Ok(length @ 1..) => self.buffer.extend(&part[..length]),
                Ok(0) | Err(_) => {
                    let why = "its helper ended; its display may be gone";
                    return Some(Err(Failure::Other(why.to_owned())));
                }
            }
        }
    }

    /// Takes a report from the buffer if all of it is there.
    fn decode(&mut self) -> Option<Report> {
        let Some(end) = memchr(b'\n', &self.buffer) else {
            return (self.buffer.len() > LONGEST).then_some(Err(Failure::TooLong));
        };
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        Some(match serde_json::from_slice(&line) {
            Ok(Err(Failure::Other(why))) => Err(Failure::Other(visible_line(&why).into_owned())),
            Ok(report) => report,
            Err(_) => Err(Failure::Other("its helper cannot be understood".to_owned())),
        })
    }
}

/// Waits until something can be read, or the other end is closed.
pub(super) fn is_readable(input: impl AsFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).ok();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut polled, wait.as_ref())) != Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_arrive_whole_however_they_are_cut() {
        let all = [
            Ok(None),
            Ok(Some("Zeile ☂\n".to_owned())),
            Err(Failure::TooLong),
            Err(Failure::NotUtf8),
            Err(Failure::Other("no seat".to_owned())),
        ];
        let bytes: Vec<u8> = all.iter().flat_map(|report| encode(report).unwrap()).collect();
        let (output, mut input) = io::pipe().unwrap();
        let mut reports = Reports::new(output);
        let mut found = Vec::new();
        for byte in bytes {
            input.write_all(&[byte]).unwrap();
            found.extend(reports.next(Duration::ZERO));
        }
        assert_eq!(found, all);
        drop(input);
        assert!(matches!(reports.next(Duration::ZERO), Some(Err(Failure::Other(_)))));
    }

    #[test]
    fn what_is_no_report_is_a_failure() {
        let read = |bytes: Vec<u8>| {
            let (output, mut input) = io::pipe().unwrap();
            let written = std::thread::spawn(move || drop(input.write_all(&bytes)));
            let failure = Reports::new(output).next(Duration::from_mins(1)).unwrap().unwrap_err();
            written.join().unwrap();
            failure
        };
        assert_eq!(read(vec![b'x'; LONGEST + 1]), Failure::TooLong);
        let unknown = Failure::Other("its helper cannot be understood".to_owned());
        for bytes in [&b"x\n"[..], b"{\"Ok\":\"\xff\"}\n", b"{\"Err\":\"Unknown\"}\n"] {
            assert_eq!(read(bytes.to_vec()), unknown);
        }
        let hidden = encode(&Err(Failure::Other("\x1b[2J".to_owned()))).unwrap();
        assert_eq!(read(hidden).to_string(), "␛[2J");
    }
}
