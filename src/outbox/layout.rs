//! The parts of an outbox put together, and as much of each as there is room for.
//!
//! In the order of need: PROTOCOL, Environment and PROMPT, the task, results, then contents that were
//! asked for, then contents that were not, and the listing has the rest. No part takes all that others
//! need: a little is kept for the listing, and a quarter for contents that were asked for, whatever
//! commands wrote.
//!
//! Most outboxes are far from the limit, as an estimate shows. Only if it could be exceeded, tokens are
//! counted: of the whole parts, once, and of what is put together, last. If that is too much, it is put
//! together anew from the same whole parts.

use std::cell::RefCell;
use std::rc::Rc;

use super::contents::{OfferedBlocks, RequestedBlocks};
use super::redaction::{Redaction, withheld_from};
use super::results::{Limits, Results};
use super::{Environment, Files, Rendered, Shown, events, listing, sections};
use crate::protocol::{self, Dialect, operations, tags};
use crate::session::Session;
use crate::tokens;
use crate::workspace::picture::Picture;

/// How many tokens the markers and headings of all sections take, and HEADER beside its task.
const HEADINGS: usize = 85;
/// How many tokens are kept for the listing, unless it needs fewer.
const LISTING: usize = 500;
/// How many bytes of a listing a token is at most.
const LISTING_BYTES: usize = 6;
/// How often the parts are put together anew if they were too much.
const TRIES: usize = 6;

/// All that an outbox is rendered from.
pub(super) struct Values<'a> {
    /// The session as it is.
    pub(super) given: &'a Session,
    /// The same as it can be shown.
    pub(super) session: &'a Session,
    pub(super) environment: &'a Environment,
    pub(super) picture: &'a Picture<'a>,
    /// The paths near which the work is.
    pub(super) near: &'a [&'a str],
    pub(super) files: &'a Files,
    pub(super) redaction: &'a RefCell<Redaction<'a>>,
}

/// The parts of an outbox. Texts are shared with the whole parts that they come from.
#[derive(Clone)]
struct Parts<'a> {
    header: Rc<str>,
    listing: Rc<str>,
    offered: Option<OfferedBlocks<'a>>,
    results: Rc<str>,
    requested: RequestedBlocks<'a>,
    /// How much results show.
    limits: Limits,
}

/// How many tokens the whole parts take, and what is always there.
struct Sizes {
    always: usize,
    listing: usize,
    results: usize,
    /// Of each block that was requested.
    requested: Vec<usize>,
}

impl<'a> Values<'a> {
    /// The outbox with these contents of files.
    pub(super) fn render(
        &self,
        offered: Option<OfferedBlocks<'a>>,
        requested: RequestedBlocks<'a>,
    ) -> Rendered {
        let limit = self.environment.max_tokens;
        let estimate = |text: &str| tokens::estimate(text).most;
        let whole = self.whole(offered, requested);
        let frame = self.frame();
        let rest = estimate(&Self::compose(&frame, &whole, false));
        let mut parts = whole.clone();
        // What is shown unasked must not need what is asked for later.
        let fits = rest <= limit
            && parts.offered.as_mut().is_none_or(|offered| {
                let listing = estimate(&parts.listing);
                let room = limit - rest + listing - listing.min(LISTING);
                offered.fit(room, estimate) && rest + estimate(&offered.render()) <= limit
            });
        if !fits {
            return self.fitted(&frame, &whole);
        }
        let text = Self::compose(&frame, &parts, true);
        let tokens = tokens::estimate(&text).likely;
        self.rendered(&parts, text, tokens)
    }

    /// What is always there, whole: before the listing, and PROMPT.
    fn frame(&self) -> [String; 2] {
        let protocol = match self.session.dialect {
            Dialect::Tags => tags::PROMPT,
            Dialect::Operations => operations::PROMPT,
        };
        let environment = sections::environment(self.session, self.environment);
        let prompt = sections::prompt(self.session, &self.files.requested);
        [
            format!(
                "\n=== PROTOCOL ===\n{protocol}\n=== CONTEXT ===\n{environment}\n## Workspace Files\n"
            ),
            format!("\n=== PROMPT ===\n{prompt}"),
        ]
    }

    /// All parts as they are if there is room for them.
    fn whole(
        &self,
        offered: Option<OfferedBlocks<'a>>,
        requested: RequestedBlocks<'a>,
    ) -> Parts<'a> {
        let Values { session, environment, .. } = *self;
        let output = match session.dialect {
            Dialect::Tags => usize::MAX,
            Dialect::Operations => environment.output_limit,
        };
        let limits = Limits { output, ..Limits::NONE };
        let results = Results { session, requested: &requested }.render(&limits).into();
        let listing = self.listing(environment.max_tokens.saturating_mul(LISTING_BYTES)).into();
        let header = sections::header(session, None).into();
        Parts { header, listing, offered, results, requested, limits }
    }

    fn listing(&self, bytes: usize) -> String {
        let text = listing::render(self.picture, self.session.dialect, self.near, bytes);
        self.redaction.borrow_mut().listing(text)
    }

    /// As much of the listing as takes `room` tokens.
    fn shortened_listing(&self, room: usize) -> String {
        let mut bytes = room.saturating_mul(LISTING_BYTES);
        for _ in 0..TRIES {
            let listing = self.listing(bytes);
            let tokens = tokens::count(&listing);
            if tokens <= room {
                return listing;
            }
            bytes = bytes.min(listing.len()) * room / tokens * 9 / 10;
        }
        self.listing(0)
    }

    fn compose([before, after]: &[String; 2], parts: &Parts<'_>, all: bool) -> String {
        let offered = parts.offered.as_ref().filter(|_| all).map(OfferedBlocks::render);
        let (offered, requested) = (offered.unwrap_or_default(), parts.requested.render());
        let Parts { header, listing, results, .. } = parts;
        [header, before.as_str(), listing, &offered, results, &requested, after].concat()
    }

    /// The outbox with as much of each part as there is room for.
    fn fitted(&self, frame: &[String; 2], whole: &Parts<'a>) -> Rendered {
        let limit = self.environment.max_tokens;
        let frame_tokens: usize = frame.iter().map(|text| tokens::count(text)).sum();
        let sizes = Sizes {
            always: frame_tokens + HEADINGS,
            listing: tokens::count(&whole.listing),
            results: tokens::count(&whole.results),
            requested: whole.requested.tokens(),
        };
        let (mut room, mut tries_left) = (limit, TRIES);
        loop {
            let parts = self.fit(whole, &sizes, room);
            let text = Self::compose(frame, &parts, true);
            let tokens = tokens::count(&text);
            tries_left -= 1;
            if tokens <= limit || tries_left == 0 || room == 0 {
                // As `tokens::about` tells it of the text alone, so that all tell the same.
                let tokens = if tokens > limit { tokens } else { tokens::about(&text, limit) };
                return self.rendered(&parts, text, tokens);
            }
            // What belongs together counts otherwise than its pieces do, though little.
            let more = (tokens - limit) * 2 + limit / 200;
            room = if tries_left == 1 { 0 } else { room.saturating_sub(more) };
        }
    }

    /// The parts within `room` tokens, as far as they can be counted one by one.
    fn fit(&self, whole: &Parts<'a>, sizes: &Sizes, room: usize) -> Parts<'a> {
        let mut parts = whole.clone();
        let session = self.session;
        let mut left = room.saturating_sub(sizes.always);

        // The first outbox has the task twice, and all of it in PROMPT.
        let of_task = if session.sequence == 1 { left / 16 } else { left / 2 };
        parts.header = sections::header(session, Some(of_task)).into();
        left = left.saturating_sub(tokens::count(&parts.header));

        let kept = sizes.listing.min(LISTING).min(left / 10);
        let wanted = sizes.requested.iter().sum::<usize>().min(left / 4);
        let of_results = left.saturating_sub(kept + wanted);
        let results = Results { session, requested: &whole.requested };
        let mut taken = sizes.results;
        if taken > of_results {
            parts.limits = results.within(whole.limits, of_results);
            taken = tokens::count(&results.render(&parts.limits));
        }
        parts.requested.cut(&sizes.requested, left.saturating_sub(taken + kept));
        let results = Results { session, requested: &parts.requested };
        parts.results = results.render(&parts.limits).into();
        left = left.saturating_sub(tokens::count(&parts.requested.render()));
        left = left.saturating_sub(tokens::count(&parts.results));
        if let Some(offered) = &mut parts.offered {
            offered.fit(left.saturating_sub(kept), tokens::count);
            left = left.saturating_sub(tokens::count(&offered.render()));
        }
        if sizes.listing > left {
            parts.listing = self.shortened_listing(left).into();
        }
        parts
    }

    fn rendered(&self, parts: &Parts<'_>, text: String, tokens: usize) -> Rendered {
        let redaction = self.redaction.borrow();
        let dialect = self.session.dialect;
        let excerpts = parts.limits.keeps_excerpts(dialect);
        let (search_lines, withheld_from) = if excerpts && dialect == Dialect::Tags {
            (redaction.lines_shown(self.session), withheld_from(self.given, self.session))
        } else {
            (Vec::new(), Vec::new())
        };
        let (shown, withheld) = (self.shown(parts), redaction.messages());
        let events = None;
        Rendered { text, tokens, shown, excerpts, search_lines, withheld_from, withheld, events }
    }

    /// The files that the model sees.
    fn shown(&self, parts: &Parts<'_>) -> Vec<Shown> {
        let mut shown: Vec<Shown> = parts.offered.iter().flat_map(OfferedBlocks::shown).collect();
        for mut part in parts.requested.shown() {
            // Of a part the whole file tells which version it is of.
            let whole = || self.files.wholes.iter().find(|whole| whole.path == part.path);
            let version = || whole().map(|whole| protocol::Seen::whole(&whole.bytes));
            part.seen = part.seen.or_else(version);
            shown.push(part);
        }
        if self.session.dialect == Dialect::Operations {
            let read = self.given.last_results.iter();
            shown
                .extend(read.filter_map(|outcome| events::shown(outcome, parts.limits.contents())));
        }
        shown
    }
}
