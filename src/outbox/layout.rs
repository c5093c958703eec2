//! Composes the sections of an outbox, and shortens them if there is not enough room.
//!
//! Sections get room in this order: PROTOCOL, Environment and PROMPT, the task and results, requested contents,
//! unasked contents, the listing. A little is reserved for the listing, and a fifth for requested contents.

use super::budget::{STEPS, fits, greatest};
use super::contents::{Block, RequestedBlocks, offered_within, render_offered};
use super::listing::{Listing, NOT_LISTED};
use super::redaction::Redaction;
use super::results::{self, Limits, describe_changes};
use super::{Environment, Files, Shown, events, sections};
use crate::context::{named_by_person, newest};
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Dialect, Outcome, RelPath};
use crate::session::Session;
use crate::tokens::{self, Estimate};
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
    files: &'a Files,
    /// What is never shortened: the sections before the listing, and the beginning of PROMPT.
    fixed: [String; 2],
    pub(super) outcomes: Vec<Outcome>,
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
    let fixed = [sections::before_listing(session, environment), sections::prompt(session)];
    let material = Material { session, files, fixed, outcomes, changes, requested, offered };

    let mut near = newest(session);
    let picture = Picture::of(walk, &near);
    near.extend(named_by_person(session, &picture));
    let listing = Listing::new(&picture, session.dialect, &near);
    let measure = |text: &str| tokens::estimate(text).likely;
    let mut listing =
        |room| redaction.redactor.listing(&listing.render(room, measure)).into_owned();
    let (limits, offered) = (Limits::NONE, material.offered.iter().collect());
    let whole = Fitted { limits, offered, listing: listing(usize::MAX) };
    let limit = environment.max_tokens;
    // Of most outboxes an estimate shows that they are far below the limit, without the vocabulary.
    let is_short = tokens::estimate(&material.compose(&whole)).most <= limit;
    let fitted = if is_short { whole } else { material.fit(limit, &mut listing) };
    let text = material.compose(&fitted);
    let counted = if is_short { 0 } else { tokens::count(&text) };
    // The same number as that of `tokens::about`, unless that is known to be too low.
    let Estimate { likely, most } = tokens::estimate(&text);
    let tokens = if counted.max(most) > limit { counted } else { likely };
    let (is_tags, Limits { each, results, .. }) = (session.dialect == Dialect::Tags, fitted.limits);
    let excerpts = results == usize::MAX && (!is_tags || each == usize::MAX);
    let in_results = (excerpts && is_tags).then(|| redaction.shown_of_results());
    let (search_lines, withheld_from) = in_results.unwrap_or_default();
    let (shown, withheld) = (material.shown(&fitted), redaction.redactor.told());
    RenderedOutbox { text, tokens, shown, excerpts, search_lines, withheld_from, withheld, events }
}

impl<'a> Material<'a> {
    /// Shortens the sections so that all have at most `limit` tokens. `listing` renders a listing within some room.
    fn fit(&self, limit: usize, listing: &mut dyn FnMut(usize) -> String) -> Fitted<'_, 'a> {
        let fixed: usize = self.fixed.iter().map(|text| tokens::count(text)).sum();
        // The whole may have a few more tokens than its sections together.
        let room = limit.saturating_sub(fixed + limit / 1000 + 16);
        let left =
            |limits: &Limits| room.saturating_sub(tokens::count(&self.within(limits).concat()));
        let fit = |limits: Limits, reserved| {
            fits(&self.within(&limits).concat(), room.saturating_sub(reserved))
        };
        let for_listing = tokens::estimate(&listing(usize::MAX)).most.min(LISTING).min(limit / 20);
        let requested = tokens::estimate(&self.requested.render(&Limits::NONE)).likely;
        let reserved = for_listing + requested.min(limit / 5);

        let mut limits = Limits { file: 0, ..Limits::NONE };
        // All items are shortened evenly, and if that is not enough, results are left out.
        let each = greatest(usize::MAX, STEPS, |each| fit(Limits { each, ..limits }, reserved));
        limits.each = each.unwrap_or_default();
        if each.is_none() {
            let results = |results| fit(Limits { results, ..limits }, reserved);
            limits.results = greatest(self.outcomes.len(), STEPS, results).unwrap_or_default();
        }
        let file = |file| fit(Limits { file, ..limits }, for_listing);
        limits.file = greatest(usize::MAX, STEPS, file).unwrap_or_default();
        let spare = left(&limits).saturating_sub(for_listing);
        if limits.file < usize::MAX && spare > room / 8 {
            // What files with very long lines cannot use goes to the first file that can.
            limits.larger = self.requested.blocks.iter().enumerate().find_map(|(n, block)| {
                let shown = block.render(limits.file);
                let room = tokens::count(&shown) + spare;
                let larger = greatest(usize::MAX, STEPS, |limit| fits(&block.render(limit), room))?;
                (block.render(larger).len() > shown.len()).then_some((n, larger))
            });
        }

        let (left, included) = (left(&limits), self.files.offered.included);
        let offered = offered_within(&self.offered, included, left.saturating_sub(for_listing));
        let left = left.saturating_sub(tokens::count(&render_offered(&offered, usize::MAX)));
        // A listing is made by an estimate, and may be longer without secrets.
        let rooms = std::iter::successors(Some(left), |room| Some(room - room.div_ceil(8)));
        let with = |listing| Fitted { limits, offered: offered.clone(), listing };
        let fit = |all: &Fitted<'_, 'a>| fits(&self.compose(all), limit);
        let fitted = rooms.map(listing).map(with).find(|all| all.listing == NOT_LISTED || fit(all));
        fitted.unwrap_or_else(|| with(NOT_LISTED.to_owned()))
    }

    /// The sections that can be shortened, but for files and listings.
    fn within(&self, limits: &Limits) -> [String; 4] {
        [
            sections::header(self.session, limits.each),
            results::render(self, limits),
            self.requested.render(limits),
            sections::prompt_end(self, limits.each),
        ]
    }

    fn compose(&self, fitted: &Fitted<'_, 'a>) -> String {
        let Fitted { limits, offered, listing } = fitted;
        let offered = render_offered(offered, self.files.offered.listed);
        let ([before_listing, prompt], offered) = (&self.fixed, &offered);
        let [header, results, requested, end] = &self.within(limits);
        [header, before_listing, listing, offered, results, requested, prompt, end]
            .map(String::as_str)
            .concat()
    }

    /// The files that the model sees.
    fn shown(&self, fitted: &Fitted<'_, 'a>) -> Vec<Shown> {
        let (limits, wholes) = (&fitted.limits, &self.files.wholes);
        let offered = fitted.offered.iter().filter_map(|block| block.shown(usize::MAX, wholes));
        let requested = self.requested.blocks.iter().enumerate();
        let requested = requested.filter_map(|(n, block)| block.shown(limits.of_block(n), wholes));
        // Sessions of tags read nothing while their replies are carried out.
        let read = self.session.last_results.iter();
        let read = read.filter_map(|outcome| events::shown(outcome, limits.each));
        offered.chain(requested).chain(read).collect()
    }
}
