//! What a helper reports. A report is a kind (one byte), a length (`u32`, big endian) and so many bytes:
//!
//! ```text
//! .  nothing, or done    t  a text    l  the text is too long    u  it is not UTF-8
//! !  a failure, in words
//! ```

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::LIMIT;
use crate::text::visible_line;

/// A text, if there is one.
pub(super) type Report = Result<Option<String>, Failure>;

/// Why a way failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    let (kind, body) = match report {
        Ok(None) => (b'.', ""),
        Ok(Some(text)) => (b't', &**text),
        Err(Failure::TooLong) => (b'l', ""),
        Err(Failure::NotUtf8) => (b'u', ""),
        Err(other) => (b'!', &*other.to_string()),
    };
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    Ok([&[kind][..], &length.to_be_bytes(), body.as_bytes()].concat())
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
        let (&[kind, ref length @ ..], rest) = self.buffer.split_first_chunk::<5>()?;
        let length = u32::from_be_bytes(*length) as usize;
        if length > LIMIT {
            return Some(Err(Failure::TooLong));
        }
        let body = String::from_utf8(rest.get(..length)?.to_vec());
        let report = match (kind, body) {
            (b'.', Ok(_)) => Ok(None),
            (b't', Ok(text)) => Ok(Some(text)),
            (b'l', Ok(_)) => Err(Failure::TooLong),
            (b'u', Ok(_)) => Err(Failure::NotUtf8),
            (b'!', Ok(why)) => Err(Failure::Other(visible_line(&why).into_owned())),
            _ => Err(Failure::Other("its helper cannot be understood".to_owned())),
        };
        self.buffer.drain(..5 + length);
        Some(report)
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
        let read = |bytes: &[u8]| {
            let (output, mut input) = io::pipe().unwrap();
            input.write_all(bytes).unwrap();
            Reports::new(output).next(Duration::ZERO).unwrap().unwrap_err()
        };
        assert_eq!(read(b"t\xff\xff\xff\xff"), Failure::TooLong);
        let unknown = Failure::Other("its helper cannot be understood".to_owned());
        assert_eq!(read(b"x\0\0\0\0"), unknown);
        assert_eq!(read(b"t\0\0\0\x01\xff"), unknown);
        assert_eq!(read(b"!\0\0\0\x04\x1b[2J").to_string(), "␛[2J");
    }
}
