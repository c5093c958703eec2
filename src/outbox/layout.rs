//! Composes the sections of an outbox, and shortens them if there is not enough room.
//!
//! Sections get room in this order: PROTOCOL, Environment and PROMPT, the task and results, requested contents,
//! unasked contents, the listing. A little is reserved for the listing, and a fifth for requested contents.
//!
//! Most outboxes are far below the limit, and an estimate is enough to see that. Otherwise tokens are counted exactly.

use super::budget::{LARGEST_TEXT, greatest};
use super::contents::{Block, RequestedBlocks, offered_within, render_offered};
use super::listing::Listing;
use super::redaction::Redaction;
use super::results::{Limits, Results, describe_changes};
use super::{Environment, Files, Shown, events, sections};
use crate::context::newest;
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Dialect, FileVersion, RelPath};
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

/// The sections in full, except for the listing.
struct Layout<'a> {
    /// What precedes the listing.
    before: String,
    files: &'a Files,
    /// Those that the first outbox may show unasked.
    offered: Vec<Block<'a>>,
    results: Results<'a>,
    /// PROMPT, with its marker.
    prompt: String,
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
    let mut text = |contents| redaction.text(contents);
    let requested = RequestedBlocks::new(session, &files.requested, &mut text);
    let offered = files.offered.files.iter();
    let offered = offered.map(|file| Block::new(session, file, &text(file))).collect();
    redaction.note_words(session);
    let mut outcomes = redaction.results(session);
    let mut events = None;
    if session.dialect == Dialect::Operations {
        events = Some(events::of_results(session, &outcomes));
        for outcome in &mut outcomes {
            *outcome = outcome.within(environment.output_limit);
        }
    }
    let changes = describe_changes(session, &mut |name| redaction.name(name));
    let results = Results { session, outcomes, changes, requested };
    let before = sections::before_listing(session, environment);
    let prompt = sections::prompt(&results, files);
    let layout = Layout { before, files, offered, results, prompt };

    let picture = Picture::of(walk, &newest(session));
    let listing = Listing::of(session, &picture);
    let mut listing = |room| redaction.listing(listing.render(room, estimate));
    let offered = layout.offered.iter().collect();
    let whole = Fitted { limits: Limits::NONE, offered, listing: listing(usize::MAX) };
    let limit = environment.max_tokens;
    let is_short = estimate(&layout.compose(&whole)) <= limit;
    let fitted = if is_short { whole } else { layout.fit(limit, &whole.listing, &mut listing) };
    let text = layout.compose(&fitted);
    // Report what `tokens::about` says of the text, unless that is known to be too low.
    let counted = if is_short { 0 } else { tokens::count(&text) };
    let tokens = if counted > limit { counted } else { tokens::about(&text, limit) };
    let excerpts = fitted.limits.keeps_excerpts(session.dialect);
    let (mut search_lines, mut withheld_from) = (Vec::new(), Vec::new());
    if excerpts && session.dialect == Dialect::Tags {
        search_lines = redaction.lines_seen();
        withheld_from.clone_from(&redaction.withheld_from);
    }
    let (shown, withheld) = (layout.shown(&fitted), redaction.messages());
    RenderedOutbox { text, tokens, shown, excerpts, search_lines, withheld_from, withheld, events }
}

impl<'a> Layout<'a> {
    /// Shortens the sections so that all have at most `limit` tokens. `all` is the whole listing, and `listing`
    /// shortens it.
    fn fit(
        &self,
        limit: usize,
        all: &str,
        listing: &mut dyn FnMut(usize) -> String,
    ) -> Fitted<'_, 'a> {
        let size = |fitted: &Fitted<'_, 'a>| tokens::count(&self.compose(fitted));
        let with = |limits| Fitted { limits, offered: Vec::new(), listing: String::new() };
        let for_listing = tokens::count(all).min(LISTING).min(limit / 20);
        let requested = tokens::count(&self.results.requested.render(usize::MAX));
        let reserved = for_listing + requested.min(limit / 5);
        let fits = |limits, reserved| size(&with(limits)) + reserved <= limit;

        let mut limits = Limits { file: 0, ..Limits::NONE };
        if !fits(limits, reserved) {
            // All items are shortened evenly, and if that is not enough, results are left out.
            let each = greatest(LARGEST_TEXT, |each| fits(Limits { each, ..limits }, reserved));
            limits.each = each.unwrap_or_default();
            if each.is_none() {
                let most = self.results.outcomes.len();
                let results = |results| fits(Limits { results, ..limits }, reserved);
                limits.results = greatest(most, results).unwrap_or_default();
            }
        }
        let file = |file| fits(Limits { file, ..limits }, for_listing);
        limits.file = if file(usize::MAX) {
            usize::MAX
        } else {
            greatest(LARGEST_TEXT, file).unwrap_or_default()
        };

        let mut fitted = with(limits);
        let room = limit.saturating_sub(size(&fitted) + for_listing);
        let included = self.files.offered.included;
        fitted.offered = offered_within(&self.offered, included, room, tokens::count);
        // The tokens of the listing are only estimated, so it may turn out to be too long.
        let mut room = limit.saturating_sub(size(&fitted));
        loop {
            fitted.listing = listing(room);
            if room == 0 || size(&fitted) <= limit {
                return fitted;
            }
            room /= 2;
        }
    }

    fn compose(&self, fitted: &Fitted<'_, 'a>) -> String {
        let Fitted { limits, offered, listing } = fitted;
        let Self { before, prompt, results, .. } = self;
        let header = sections::header(results.session, limits.each);
        let offered = render_offered(offered, self.files.offered.listed);
        let requested = results.requested.render(limits.file);
        let results = results.render(limits);
        [&*header, before, listing, &offered, &results, &requested, prompt].concat()
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
