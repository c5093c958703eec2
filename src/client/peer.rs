//! Who is at the other end of the wire: a program, or a socket.

use std::time::Instant;

use super::process::Process;

/// The other end, ended with this.
pub(super) enum Peer {
    /// A program that was started for it.
    Program(Process),
    /// Somebody who listened.
    #[cfg(unix)]
    Socket(std::os::unix::net::UnixStream),
}

impl Peer {
    /// That it ended and how, if it is seen to have by then, and what it wrote on standard error.
    pub(super) fn told(&mut self, until: Instant) -> (Option<String>, String) {
        match self {
            Self::Program(process) => (process.ended(until), process.said(until)),
            #[cfg(unix)]
            Self::Socket(_) => (None, String::new()),
        }
    }

    /// Has nothing more to do with it; a program has until then to end by itself.
    pub(super) fn close(&mut self, until: Instant) {
        match self {
            Self::Program(process) => process.close(until),
            #[cfg(unix)]
            Self::Socket(_) => {
                let _ = until;
                self.hang_up();
            }
        }
    }

    /// Wakes threads that read from a socket or write to it. A program keeps its pipes.
    pub(super) fn hang_up(&self) {
        #[cfg(unix)]
        if let Self::Socket(stream) = self {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
