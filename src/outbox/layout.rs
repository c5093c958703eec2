//! Composes the sections of an outbox, and shortens them if there is not enough room.
//!
//! Sections get room in this order: PROTOCOL, Environment and PROMPT, the task, results, requested contents, unasked
//! contents, the listing. A little is reserved for the listing, and a quarter for requested contents.
//!
//! Most outboxes are far below the limit, and an estimate is enough to see that. Otherwise tokens are counted exactly.

use std::rc::Rc;

use super::budget::{Measure, greatest_limit};
use super::contents::{Block, OfferedBlocks, RequestedBlocks};
use super::listing::Listing;
use super::redaction::Redaction;
use super::results::{self, Limits};
use super::{Environment, Files, Rendered, Shown, events, sections};
use crate::protocol::{self, Dialect, operations, tags};
use crate::session::Session;
use crate::tokens;

/// How many tokens are reserved for the listing, unless it needs fewer.
const LISTING: usize = 500;
/// By how much the estimates of all sections together may exceed the estimate of the whole.
const ESTIMATES: usize = 100;
/// The whole may have a few more tokens than its sections together. These percentages of the room are reserved for
/// that, one after another, until the outbox fits.
const RESERVES: [usize; 4] = [0, 1, 4, 16];

/// Everything that an outbox is rendered from.
pub(super) struct Layout<'a> {
    /// The session with its secrets.
    pub(super) given: &'a Session,
    /// The session as it may be shown.
    pub(super) session: &'a Session,
    pub(super) environment: &'a Environment,
    pub(super) listing: &'a Listing<'a>,
    pub(super) files: &'a Files,
    pub(super) redaction: Redaction<'a>,
}

/// The sections that can be shortened.
#[derive(Clone)]
struct Sections<'a> {
    header: Rc<str>,
    listing: Rc<str>,
    offered: Option<OfferedBlocks<'a>>,
    results: Rc<str>,
    requested: RequestedBlocks<'a>,
    limits: Limits,
}

impl<'a> Layout<'a> {
    /// Renders the outbox with these contents of files.
    pub(super) fn render(
        mut self,
        offered: Option<OfferedBlocks<'a>>,
        requested: RequestedBlocks<'a>,
    ) -> Rendered {
        let limit = self.environment.max_tokens;
        let frame = self.frame();
        let whole = self.whole(offered, requested);
        let fits = estimate(&compose(&frame, &whole)) + ESTIMATES <= limit;
        let measure: Measure = if fits { estimate } else { tokens::count };
        let mut reserves = RESERVES.into_iter();
        let (sections, text, counted) = loop {
            let reserve = reserves.next();
            let room = limit / 100 * (100 - reserve.unwrap_or(100));
            let sections = self.fit(&frame, &whole, room, measure);
            let text = compose(&frame, &sections);
            let counted = measure(&text);
            if counted <= limit || reserve.is_none() {
                break (sections, text, counted);
            }
        };
        // Report what `tokens::about` says of the text, unless that is known to be too low.
        let about = tokens::about(&text, limit);
        let tokens = if counted > limit { counted } else { about };
        let Self { session, redaction, .. } = &self;
        let excerpts = sections.limits.keeps_excerpts(session.dialect);
        let (search_lines, withheld_from) = if excerpts && session.dialect == Dialect::Tags {
            (redaction.lines_seen(), redaction.withheld_from.clone())
        } else {
            (Vec::new(), Vec::new())
        };
        let (shown, withheld, events) = (self.shown(&sections), redaction.messages(), None);
        Rendered { text, tokens, shown, excerpts, search_lines, withheld_from, withheld, events }
    }

    /// The parts that are never shortened: what precedes the listing, and PROMPT.
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

    /// All sections in full.
    fn whole(
        &mut self,
        offered: Option<OfferedBlocks<'a>>,
        requested: RequestedBlocks<'a>,
    ) -> Sections<'a> {
        let limits = Limits::NONE;
        let results = results::render(self.session, &requested, &limits).into();
        let header = sections::header(self.session, usize::MAX).into();
        let listing = self.listing(usize::MAX);
        Sections { header, listing, offered, results, requested, limits }
    }

    /// The listing within `room` tokens. They are only estimated, as it is shortened anyway.
    fn listing(&mut self, room: usize) -> Rc<str> {
        self.redaction.listing(self.listing.render(room, estimate)).into()
    }

    /// Shortens the sections so that they have at most `room` tokens, each counted by itself.
    fn fit(
        &mut self,
        frame: &[String; 2],
        whole: &Sections<'a>,
        room: usize,
        measure: Measure,
    ) -> Sections<'a> {
        let mut fitted = whole.clone();
        let Self { session, .. } = *self;
        let [header, listing, results] =
            [&whole.header, &whole.listing, &whole.results].map(|text| measure(text));
        let requested = measure(&whole.requested.render());
        let mut left = room.saturating_sub(frame.iter().map(|text| measure(text)).sum());
        let kept = |left: usize| listing.min(LISTING).min(left / 10);
        if header + listing + results + requested <= left {
            left -= header + results + requested;
        } else {
            // PROMPT of the first outbox contains the whole task.
            let share = if session.sequence == 1 { left / 16 } else { left / 2 };
            if header > share {
                let text = |limit| sections::header(session, limit);
                let limit = greatest_limit(share, measure, text).unwrap_or_default();
                fitted.header = text(limit).into();
            }
            left = left.saturating_sub(measure(&fitted.header));

            let (room, kept) = (left, kept(left));
            let share = room.saturating_sub(kept + requested.min(room / 4));
            let text = |requested: &_, limits: &_| results::render(session, requested, limits);
            if results > share {
                fitted.limits = results::limits_within(session, &whole.requested, share, measure);
                fitted.results = text(&whole.requested, &fitted.limits).into();
            }
            let share = room.saturating_sub(kept + measure(&fitted.results));
            if requested > share {
                fitted.requested.fit(share, measure);
                // The results say how much of each file is shown.
                fitted.results = text(&fitted.requested, &fitted.limits).into();
            }
            let taken = measure(&fitted.results) + measure(&fitted.requested.render());
            left = room.saturating_sub(taken);
        }
        if let Some(offered) = &mut fitted.offered {
            offered.fit(left.saturating_sub(kept(left)), measure);
            left = left.saturating_sub(measure(&offered.render()));
        }
        if listing > left {
            fitted.listing = self.listing(left);
        }
        fitted
    }

    /// The files that the model sees.
    fn shown(&self, sections: &Sections<'_>) -> Vec<Shown> {
        let offered = sections.offered.iter().flat_map(|offered| &offered.blocks);
        let mut shown: Vec<Shown> = offered.filter_map(Block::shown).collect();
        for mut part in sections.requested.blocks.iter().filter_map(Block::shown) {
            // The version of a part is known from the whole file.
            let whole = || self.files.wholes.iter().find(|whole| whole.path == part.path);
            let version = || whole().map(|whole| protocol::FileVersion::whole(&whole.bytes));
            part.seen = part.seen.or_else(version);
            shown.push(part);
        }
        if self.session.dialect == Dialect::Operations {
            let limit = sections.limits.each;
            let read = self.given.last_results.iter();
            shown.extend(read.filter_map(|outcome| events::shown(outcome, limit)));
        }
        shown
    }
}

/// An upper bound of the tokens of a text.
fn estimate(text: &str) -> usize {
    tokens::estimate(text).most
}

fn compose([before, after]: &[String; 2], sections: &Sections<'_>) -> String {
    let Sections { header, listing, offered, results, requested, .. } = sections;
    let offered = offered.as_ref().map(OfferedBlocks::render).unwrap_or_default();
    [header, before.as_str(), listing, &offered, results, &requested.render(), after].concat()
}
