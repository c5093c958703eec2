//! Composes the sections of an outbox, and shortens them if there is not enough room.
//!
//! Sections get room in this order: PROTOCOL, Environment and PROMPT, the task and results, requested contents,
//! unasked contents, the listing. A little is reserved for the listing, and a fifth for requested contents.
//!
//! Most outboxes are far below the limit, and an estimate is enough to see that. Otherwise tokens are counted exactly.

use super::budget::{Measure, STEPS, greatest};
use super::contents::{Block, RequestedBlocks, offered_within, render_offered};
use super::listing::Listing;
use super::redaction::Redaction;
use super::results::{self, Limits, describe_changes};
use super::{Environment, Files, Shown, events, sections};
use crate::context::{near, newest};
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Dialect, Outcome, RelPath};
use crate::session::Session;
use crate::tokens;
use crate::workspace::picture::Picture;
use crate::workspace::walk::Walk;

/// How many tokens are reserved for the listing, unless it needs fewer.
const LISTING: usize = 500;

/// An outbox, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedOutbox {
    /// Its text.
    pub text: String,
    /// The number of its tokens: exact if that may exceed the limit, otherwise an estimate. It can only exceed the
    /// limit if what is never shortened does, such as the task and the person's words.
    pub tokens: usize,
    /// The files that the model sees.
    pub shown: Vec<Shown>,
    /// Whether it shows all results with their excerpts of files.
    pub excerpts: bool,
    /// If so, the unchanged lines of files in results.
    pub search_lines: Vec<Shown>,
    /// Files whose excerpts in results were redacted.
    pub withheld_from: Vec<RelPath>,
    /// Sentences for the person about the secrets that were found.
    pub withheld: Vec<String>,
    /// In a session of operations, its [`screened_events`](super::screened_events).
    pub events: Option<EventsMessage>,
}

/// What an outbox is rendered from. Results and contents are without secrets.
pub(super) struct Material<'a> {
    pub(super) session: &'a Session,
    environment: &'a Environment,
    files: &'a Files,
    /// The newest results.
    pub(super) outcomes: Vec<Outcome>,
    /// See [`describe_changes`].
    pub(super) changes: String,
    pub(super) requested: RequestedBlocks<'a>,
    /// The files that the first outbox may show unasked.
    offered: Vec<Block<'a>>,
}

/// What is shown of the sections that can be shortened.
struct Fitted<'l, 'a> {
    limits: Limits,
    offered: Vec<&'l Block<'a>>,
    listing: String,
}

/// Renders a session's newest outbox.
pub fn render(
    session: &Session,
    environment: &Environment,
    walk: &Walk,
    files: &Files,
) -> RenderedOutbox {
    let mut redaction = Redaction::new(files, &environment.secrets);
    let requested = RequestedBlocks::new(session, files, &mut redaction);
    let offered = files.offered.files.iter();
    let offered = offered.map(|file| Block::new(session, file, &mut redaction)).collect();
    redaction.note_words(session);
    let mut outcomes = redaction.results(session, files);
    let mut events = None;
    if session.dialect == Dialect::Operations {
        events = Some(events::of_results(session, &outcomes));
        for outcome in &mut outcomes {
            *outcome = outcome.within(environment.output_limit);
        }
    }
    let changes = describe_changes(session, &mut redaction);
    let material = Material { session, environment, files, outcomes, changes, requested, offered };

    // An upper bound, found without the vocabulary.
    let estimate: Measure = |text| tokens::estimate(text).most;
    let picture = Picture::of(walk, &newest(session));
    let listing = Listing::new(&picture, session.dialect, &near(session, &picture));
    let mut listing = |room, measure: Measure| redaction.listing(listing.render(room, measure));
    let offered = material.offered.iter().collect();
    let whole = Fitted { limits: Limits::NONE, offered, listing: listing(usize::MAX, estimate) };
    let limit = environment.max_tokens;
    let is_short = estimate(&material.compose(&whole)) <= limit;
    let fitted = if is_short { whole } else { material.fit(limit, &whole.listing, &mut listing) };
    let text = material.compose(&fitted);
    // Report what `tokens::about` says of the text, unless that is known to be too low.
    let counted = if is_short { 0 } else { tokens::count(&text) };
    let tokens = if counted > limit { counted } else { tokens::about(&text, limit) };
    let (is_tags, Limits { each, results, .. }) = (session.dialect == Dialect::Tags, fitted.limits);
    let excerpts = results == usize::MAX && (!is_tags || each == usize::MAX);
    let in_results = (excerpts && is_tags).then(|| redaction.shown_of_results());
    let (search_lines, withheld_from) = in_results.unwrap_or_default();
    let (shown, withheld) = (material.shown(&fitted), redaction.redactor.told());
    RenderedOutbox { text, tokens, shown, excerpts, search_lines, withheld_from, withheld, events }
}

impl<'a> Material<'a> {
    /// Shortens the sections so that all have at most `limit` tokens. `all` is the whole listing, and `listing`
    /// shortens it.
    fn fit(
        &self,
        limit: usize,
        all: &str,
        listing: &mut dyn FnMut(usize, Measure) -> String,
    ) -> Fitted<'_, 'a> {
        let size = |fitted: &Fitted<'_, 'a>| tokens::count(&self.compose(fitted));
        let with = |limits| Fitted { limits, offered: Vec::new(), listing: String::new() };
        let for_listing = tokens::count(all).min(LISTING).min(limit / 20);
        let requested = tokens::count(&self.requested.render(usize::MAX));
        let reserved = for_listing + requested.min(limit / 5);
        let fits = |limits, reserved| size(&with(limits)) + reserved <= limit;

        let mut limits = Limits { file: 0, ..Limits::NONE };
        // All items are shortened evenly, and if that is not enough, results are left out.
        let each = greatest(usize::MAX, STEPS, |each| fits(Limits { each, ..limits }, reserved));
        limits.each = each.unwrap_or_default();
        if each.is_none() {
            let results = |results| fits(Limits { results, ..limits }, reserved);
            limits.results = greatest(self.outcomes.len(), STEPS, results).unwrap_or_default();
        }
        let file = |file| fits(Limits { file, ..limits }, for_listing);
        limits.file = greatest(usize::MAX, STEPS, file).unwrap_or_default();

        let mut fitted = with(limits);
        let room = limit.saturating_sub(size(&fitted) + for_listing);
        let included = self.files.offered.included;
        fitted.offered = offered_within(&self.offered, included, room, tokens::count);
        // The whole may have a few more tokens than its sections together.
        let mut room = limit.saturating_sub(size(&fitted));
        loop {
            fitted.listing = listing(room, tokens::count);
            if room == 0 || size(&fitted) <= limit {
                return fitted;
            }
            room = room * 15 / 16;
        }
    }

    fn compose(&self, fitted: &Fitted<'_, 'a>) -> String {
        let Fitted { limits, offered, listing } = fitted;
        [
            sections::header(self.session, limits.each).as_str(),
            &sections::before_listing(self.session, self.environment),
            listing,
            &render_offered(offered, self.files.offered.listed),
            &results::render(self, limits),
            &self.requested.render(limits.file),
            &sections::prompt(self),
        ]
        .concat()
    }

    /// The files that the model sees.
    fn shown(&self, fitted: &Fitted<'_, 'a>) -> Vec<Shown> {
        let Limits { each, file, .. } = fitted.limits;
        let wholes = &self.files.wholes;
        let offered = fitted.offered.iter().filter_map(|block| block.shown(usize::MAX, wholes));
        let requested = self.requested.blocks.iter().filter_map(|block| block.shown(file, wholes));
        // Sessions of tags read nothing while their replies are carried out.
        let read = self.session.last_results.iter();
        let read = read.filter_map(|outcome| events::shown(outcome, each));
        offered.chain(requested).chain(read).collect()
    }
}
