//! The parser, and how long it may take.

use std::ops::ControlFlow;
use std::time::Duration;

use tree_sitter::{ParseOptions, Parser, Tree};

/// How long all parsing of a line may take: the grammar has texts that it needs seconds for.
const LIMIT: Duration = Duration::from_millis(50);

/// The most here-documents: the scanner keeps all that are open in a buffer of a fixed size.
const DOCUMENTS: usize = 16;

/// What is left of the time for one line and all that stands within it.
pub(super) struct Budget {
    begun: Duration,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { begun: now() }
    }

    fn is_spent(&self) -> bool {
        now().saturating_sub(self.begun) > LIMIT
    }

    /// Parses a text, unless that takes too long. Places in the tree are those of the text, names
    /// need not be.
    pub(super) fn parse(&mut self, text: &str) -> Option<Tree> {
        if self.is_spent() || text.matches("<<").count() > DOCUMENTS {
            return None;
        }
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
        // The grammar's scanner reads beyond its tables at characters that are not ASCII, and crashes.
        // To the shell they are letters, all the more as it knows no other blanks.
        let ascii = |b: u8| if b.is_ascii() { b } else { b'z' };
        let bytes: Vec<u8> = text.bytes().map(ascii).collect();
        let mut progress = |_: &_| {
            if self.is_spent() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        parser.parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(options),
        )
    }
}

/// The time that this thread has had of the processor: what else the machine does must not change
/// a decision.
#[cfg(unix)]
pub(in crate::policy) fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(unix))]
pub(in crate::policy) fn now() -> Duration {
    static BEGUN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    BEGUN.elapsed()
}
