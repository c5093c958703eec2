//! Composes the sections of an outbox, and shortens them if there is not enough room.
//!
//! Sections get room in this order: PROTOCOL, Environment and PROMPT, the task and results, requested contents,
//! unasked contents, the listing. A little is reserved for the listing, and a quarter for requested contents.
//!
//! Most outboxes are far below the limit, and an estimate is enough to see that. Otherwise tokens are counted exactly.

use super::budget::{LARGEST_TEXT, Measure, greatest};
use super::contents::{Block, OfferedBlocks};
use super::listing::Listing;
use super::redaction::Redaction;
use super::results::{Limits, Results};
use super::{Environment, Files, RenderedOutbox, Shown, events, sections};
use crate::protocol::{Dialect, FileVersion, operations, tags};
use crate::tokens;

/// How many tokens are reserved for the listing, unless it needs fewer.
const LISTING: usize = 500;
/// By how much the estimates of all sections together may exceed the estimate of the whole.
const ESTIMATES: usize = 100;
/// The whole may have a few more tokens than its sections together. These percentages of the room are reserved for
/// that, one after another, until the outbox fits.
const RESERVES: [usize; 5] = [0, 1, 4, 16, 100];

/// Everything that an outbox is rendered from.
pub(super) struct Layout<'a> {
    pub(super) results: Results<'a>,
    pub(super) offered: OfferedBlocks<'a>,
    pub(super) environment: &'a Environment,
    pub(super) listing: &'a Listing<'a>,
    pub(super) files: &'a Files,
}

/// What is shown of the sections that can be shortened.
struct Fitted<'l, 'a> {
    limits: Limits,
    offered: Vec<&'l Block<'a>>,
    listing: String,
}

impl<'a> Layout<'a> {
    pub(super) fn render(&self, mut redaction: Redaction<'a>) -> RenderedOutbox {
        let limit = self.environment.max_tokens;
        let mut listing = |room| redaction.listing(self.listing.render(room, estimate));
        let frame = self.frame();
        let whole = listing(usize::MAX);
        let offered = self.offered.within(usize::MAX, str::len);
        let all = Fitted { limits: Limits::NONE, offered, listing: whole.clone() };
        let fits = estimate(&self.compose(&frame, &all)) + ESTIMATES <= limit;
        let measure: Measure = if fits { estimate } else { tokens::count };
        let room = limit.saturating_sub(frame.iter().map(|text| measure(text)).sum());
        let (mut fitted, mut text, mut counted) = (all, String::new(), usize::MAX);
        for reserve in RESERVES {
            let room = room.saturating_sub(limit / 100 * reserve);
            fitted = self.fit(room, measure, &whole, &mut listing);
            text = self.compose(&frame, &fitted);
            counted = measure(&text);
            if counted <= limit {
                break;
            }
        }
        // Report what `tokens::about` says of the text, unless that is known to be too low.
        let about = tokens::about(&text, limit);
        let tokens = if counted > limit { counted } else { about };
        let dialect = self.results.session.dialect;
        let excerpts = fitted.limits.keeps_excerpts(dialect);
        let (mut search_lines, mut withheld_from) = (Vec::new(), Vec::new());
        if excerpts && dialect == Dialect::Tags {
            search_lines = redaction.lines_seen();
            withheld_from.clone_from(&redaction.withheld_from);
        }
        let (shown, withheld, events) = (self.shown(&fitted), redaction.messages(), None);
        RenderedOutbox {
            text,
            tokens,
            shown,
            excerpts,
            search_lines,
            withheld_from,
            withheld,
            events,
        }
    }

    /// The parts that are never shortened: what precedes the listing, and PROMPT.
    fn frame(&self) -> [String; 2] {
        let session = self.results.session;
        let protocol = match session.dialect {
            Dialect::Tags => tags::PROMPT,
            Dialect::Operations => operations::PROMPT,
        };
        let environment = sections::environment(session, self.environment);
        let prompt = sections::prompt(&self.results, self.files);
        [
            format!(
                "\n=== PROTOCOL ===\n{protocol}\n=== CONTEXT ===\n{environment}\n## Workspace Files\n"
            ),
            format!("\n=== PROMPT ===\n{prompt}"),
        ]
    }

    /// Shortens the sections so that they have at most `room` tokens, each counted by itself. `all` is the whole
    /// listing, and `listing` shortens it. Its tokens are only estimated then.
    fn fit(
        &self,
        room: usize,
        measure: Measure,
        all: &str,
        listing: &mut dyn FnMut(usize) -> String,
    ) -> Fitted<'_, 'a> {
        let Self { results, offered, .. } = self;
        let mut limits = Limits::NONE;
        let size = |limits: &Limits| {
            measure(&sections::header(results.session, limits.each))
                + measure(&results.render(limits))
        };
        let contents = |limit| results.requested.render(limit);
        let (mut taken, requested) = (size(&limits), measure(&contents(limits.file)));
        let whole = measure(all);
        let kept = |left: usize| whole.min(LISTING).min(left / 10);
        let is_over = taken + requested + whole > room;
        let share = room.saturating_sub(kept(room) + requested.min(room / 4));
        if is_over && taken > share {
            // All items are shortened evenly, and if that is not enough, results are left out.
            let fits = |limits: &Limits| size(limits) <= share;
            let each = greatest(LARGEST_TEXT, |each| fits(&Limits { each, ..limits }));
            limits.each = each.unwrap_or_default();
            if each.is_none() {
                let most = results.outcomes.len();
                let results = greatest(most, |results| fits(&Limits { results, ..limits }));
                limits.results = results.unwrap_or_default();
            }
            taken = size(&limits);
        }
        let share = room.saturating_sub(kept(room) + taken);
        if is_over && requested > share {
            let file = greatest(LARGEST_TEXT, |limit| measure(&contents(limit)) <= share);
            limits.file = file.unwrap_or_default();
            // The results say how much of each file is shown.
            taken = size(&limits);
        }
        let left = room.saturating_sub(taken + measure(&contents(limits.file)));
        let offered = offered.within(left.saturating_sub(kept(left)), measure);
        let left = left.saturating_sub(measure(&self.offered.render(&offered)));
        let listing = if whole > left { listing(left) } else { all.to_owned() };
        Fitted { limits, offered, listing }
    }

    fn compose(&self, [before, after]: &[String; 2], fitted: &Fitted<'_, 'a>) -> String {
        let Fitted { limits, offered, listing } = fitted;
        let header = sections::header(self.results.session, limits.each);
        let (offered, results) = (self.offered.render(offered), self.results.render(limits));
        let requested = self.results.requested.render(limits.file);
        [&*header, before, listing, &offered, &results, &requested, after].concat()
    }

    /// The files that the model sees.
    fn shown(&self, fitted: &Fitted<'_, 'a>) -> Vec<Shown> {
        let Limits { each, file, .. } = fitted.limits;
        let offered = fitted.offered.iter();
        let mut shown: Vec<Shown> = offered.filter_map(|block| block.shown(usize::MAX)).collect();
        let requested = self.results.requested.blocks.iter();
        for mut part in requested.filter_map(|block| block.shown(file)) {
            // The version of a part is known from the whole file.
            let whole = || self.files.wholes.iter().find(|whole| whole.path == part.path);
            let version = || whole().map(|whole| FileVersion::whole(&whole.bytes));
            part.version = part.version.or_else(version);
            shown.push(part);
        }
        let session = self.results.session;
        if session.dialect == Dialect::Operations {
            let read = session.last_results.iter();
            shown.extend(read.filter_map(|outcome| events::shown(outcome, each)));
        }
        shown
    }
}

/// An upper bound of the tokens of a text.
fn estimate(text: &str) -> usize {
    tokens::estimate(text).most
}
