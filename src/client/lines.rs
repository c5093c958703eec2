//! Lines received over a connection, which is read without waiting.

use std::fs::File;
use std::io;
use std::mem::replace;

use memchr::{memchr, memrchr};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

/// The minimum room for one read, in bytes.
pub(crate) const CHUNK: usize = 64 << 10;

/// Received bytes: complete lines, and the beginning of the next line.
#[derive(Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// The start of the lines that were not taken yet.
    start: usize,
    /// The end of the last complete line.
    complete: usize,
    /// Whether the input has ended.
    pub(crate) has_ended: bool,
}

impl LineBuffer {
    /// Reads some of the available bytes. Returns the lines that they complete.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn read(&mut self, from: &File) -> io::Result<&[u8]> {
        // Drop the taken bytes once they are half of the buffer, or if only an incomplete line follows.
        if self.start * 2 >= self.bytes.len() || self.start == self.complete {
            self.bytes.drain(..self.start);
            self.bytes.shrink_to(4 * CHUNK.max(self.bytes.len()));
            self.complete -= self.start;
            self.start = 0;
        }
        self.bytes.reserve(CHUNK);
        let (before, start) = (self.complete, self.bytes.len());
        match rustix::io::read(from, spare_capacity(&mut self.bytes)) {
            Ok(0) => self.has_ended = true,
            Ok(_) => {
                if let Some(end) = memrchr(b'\n', &self.bytes[start..]) {
                    self.complete = start + end + 1;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(&self.bytes[before..self.complete])
    }

    /// Takes the next complete line, without its line end.
    pub(crate) fn take_line(&mut self) -> Option<Vec<u8>> {
        self.has_line().then(|| {
            let mut line = self.take(self.first_length() + 1);
            line.pop();
            line
        })
    }

    /// Takes all remaining bytes, which are an incomplete line if no complete one is left.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        self.take(self.length())
    }

    /// Takes the first `length` bytes. A long line is moved out instead of copied, so the buffer releases its memory.
    fn take(&mut self, length: usize) -> Vec<u8> {
        if self.start > 0 || length < self.bytes.len() / 2 {
            let start = self.start;
            self.start += length;
            self.complete = self.complete.max(self.start);
            return self.bytes[start..self.start].to_vec();
        }
        let rest = self.bytes.split_off(length);
        self.complete = self.complete.saturating_sub(length);
        replace(&mut self.bytes, rest)
    }

    /// Drops what was received of the first line, unless the line is complete.
    pub(crate) fn drop_first(&mut self) {
        if !self.has_line() {
            self.bytes.truncate(self.start);
        }
    }

    /// Whether there is a complete line that was not taken yet.
    pub(crate) fn has_line(&self) -> bool {
        self.start < self.complete
    }

    /// The length of the first line that was not taken yet, as far as it was received.
    pub(crate) fn first_length(&self) -> usize {
        let waiting = &self.bytes[self.start..];
        memchr(b'\n', &waiting[..self.complete - self.start]).unwrap_or(waiting.len())
    }

    /// The number of bytes that were not taken yet.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn lines_are_the_same_in_pieces_of_any_size() {
        for (text, lines, rest) in [
            ("", &[][..], ""),
            ("\n", &[""], ""),
            ("a\n\nbc", &["a", ""], "bc"),
            ("abcd\nx\n", &["abcd", "x"], ""),
            ("abcdefghij\nxy", &["abcdefghij"], "xy"),
        ] {
            for size in 1..=9 {
                let (reader, mut writer) = io::pipe().unwrap();
                let reader = File::from(OwnedFd::from(reader));
                let (mut incoming, mut read) = (LineBuffer::default(), Vec::new());
                for piece in text.as_bytes().chunks(size) {
                    writer.write_all(piece).unwrap();
                    incoming.read(&reader).unwrap();
                    while incoming.has_line() {
                        let length = incoming.first_length();
                        let line = incoming.take_line().unwrap();
                        assert_eq!(line.len(), length);
                        read.push(String::from_utf8(line).unwrap());
                    }
                }
                drop(writer);
                incoming.read(&reader).unwrap();
                assert!(incoming.has_ended && incoming.take_line().is_none());
                assert_eq!(incoming.length(), rest.len());
                assert_eq!(incoming.take_rest(), rest.as_bytes());
                assert_eq!(read, lines);
            }
        }
    }
}
