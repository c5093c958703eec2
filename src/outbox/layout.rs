//! Composes the sections of an outbox, and shortens them if necessary.
//!
//! Sections get room in this order: PROTOCOL, Environment and PROMPT; the task and results; requested contents;
//! contents that nobody requested; the outline; the listing. A little room is reserved for the listing, and a fifth of
//! the limit for requested contents.

use super::budget::{STEPS, fits, greatest};
use super::contents::{FileBlock, RequestedBlocks, render_offered, render_outline, within};
use super::listing::{Listing, NOT_LISTED};
use super::redaction::Redaction;
use super::results::{self, Limits, describe_changes};
use super::{Environment, Files, ShownFile, events, sections};
use crate::context::{Choice, named_by_person, newest};
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Dialect, Outcome, RelPath};
use crate::secrets::Redactor;
use crate::session::Session;
use crate::tokens::{self, Estimate};
use crate::workspace::overview::Overview;
use crate::workspace::walk::Walk;

/// The number of tokens reserved for the listing, unless it needs fewer.
const LISTING: usize = 500;
/// In later outboxes, the listing gets `context_tokens` divided by this number.
const LATER_LISTING: usize = 8;

/// The most room for contents and for the outline in the first outbox, in percent.
const CONTENTS: usize = 70;
const OUTLINE: usize = 20;

/// A rendered outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedOutbox {
    /// The text of the outbox.
    pub text: String,
    /// The number of tokens: exact if it may exceed the limit, otherwise an estimate. It exceeds the limit only if the
    /// text that is never shortened does, such as the task and the person's messages.
    pub tokens: usize,
    /// The files that the model sees.
    pub shown: Vec<ShownFile>,
    /// Whether it shows all results, with their excerpts of files.
    pub excerpts: bool,
    /// The unchanged lines of files in results, if `excerpts` is set.
    pub search_lines: Vec<ShownFile>,
    /// Files whose excerpts in results were redacted.
    pub withheld_from: Vec<RelPath>,
    /// Sentences for the person about the secrets that were found.
    pub withheld: Vec<String>,
    /// The [`screened_events`](super::screened_events), in a session of operations.
    pub events: Option<EventsMessage>,
}

/// The input for rendering. Secrets are already removed from results and contents.
pub(super) struct RenderInput<'a> {
    pub(super) session: &'a Session,
    files: &'a Files,
    /// The texts that are never shortened: the sections before the listing, and the beginning of PROMPT.
    fixed: [String; 2],
    pub(super) outcomes: Vec<Outcome>,
    pub(super) changes: String,
    pub(super) requested: RequestedBlocks<'a>,
    /// The files that the person named for the first outbox.
    included: Vec<FileBlock<'a>>,
}

/// The shortened sections.
struct Fitted<'a> {
    limits: Limits,
    /// The indices of the included files.
    included: Vec<usize>,
    offered: Vec<FileBlock<'a>>,
    outline: String,
    listing: String,
}

/// Renders a listing within `room`, without secrets.
fn list(listing: &Listing<'_>, room: usize, redactor: &mut Redactor) -> String {
    redactor.listing(&listing.render(room, |text| tokens::estimate(text).likely)).into_owned()
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
    let included = files.offered.included.iter();
    let included = included.map(|file| FileBlock::new(session, file, &mut redaction)).collect();
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
    let material = RenderInput { session, files, fixed, outcomes, changes, requested, included };

    let mut near = newest(session);
    let overview = Overview::of(walk, &near);
    near.extend(named_by_person(session, &overview));
    let listing = Listing::new(&overview, session.dialect, &near);
    let limit = environment.max_tokens;
    let unrequested = environment.context_tokens.min(limit);
    let is_first = session.sequence == 1;
    // For most outboxes an estimate shows that they are far below the limit, so the vocabulary is not loaded.
    let whole = files.offered.all(unrequested).map(|choices| {
        let offered = material.blocks(&choices, &mut redaction);
        let included = (0..material.included.len()).collect();
        let (limits, outline) = (Limits::NONE, String::new());
        let mut whole = Fitted { limits, included, offered, outline, listing: String::new() };
        // A later outbox is about results and requested files, and its listing stays short.
        let room = if is_first { usize::MAX } else { (unrequested / LATER_LISTING).max(LISTING) };
        whole.listing = list(&listing, room, &mut redaction.redactor);
        whole
    });
    let most = if is_first { unrequested } else { limit };
    let whole = whole.filter(|whole| tokens::estimate(&material.compose(whole)).most <= most);
    let is_short = whole.is_some();
    let fitted = whole.unwrap_or_else(|| {
        let with =
            |shown: &[&str]| Listing::new(&overview, session.dialect, &[&near, shown].concat());
        material.fit([limit, unrequested], &mut redaction, &listing, &with)
    });
    let text = material.compose(&fitted);
    let counted = if is_short { 0 } else { tokens::count(&text) };
    // The same number as `tokens::about` returns, unless that is too low.
    let Estimate { likely, most } = tokens::estimate(&text);
    let tokens = if counted.max(most) > limit { counted } else { likely };
    let (is_tags, Limits { each, results, .. }) = (session.dialect == Dialect::Tags, fitted.limits);
    let excerpts = results == usize::MAX && (!is_tags || each == usize::MAX);
    let in_results = (excerpts && is_tags).then(|| redaction.shown_of_results());
    let (search_lines, withheld_from) = in_results.unwrap_or_default();
    let (shown, withheld) = (material.shown(&fitted), redaction.redactor.summaries());
    RenderedOutbox { text, tokens, shown, excerpts, search_lines, withheld_from, withheld, events }
}

impl<'a> RenderInput<'a> {
    /// Blocks with the chosen files of the first outbox.
    fn blocks(&self, choices: &[Choice], redaction: &mut Redaction<'a>) -> Vec<FileBlock<'a>> {
        let block = |(file, ranges): &Choice| {
            let block = FileBlock::new(self.session, &self.files.offered.ranked[*file], redaction);
            match ranges {
                Some(ranges) => block.excerpt(ranges),
                None => block,
            }
        };
        choices.iter().map(block).collect()
    }

    /// Shortens the sections so that the outbox has at most `limit` tokens. Unrequested contents are cut further, to
    /// about `unrequested` tokens in total. `with` makes a listing in which the shown files also count as near to the work.
    fn fit<'w>(
        &self,
        [limit, unrequested]: [usize; 2],
        redaction: &mut Redaction<'a>,
        listing: &Listing<'w>,
        with: &dyn Fn(&[&str]) -> Listing<'w>,
    ) -> Fitted<'a> {
        let fixed: usize = self.fixed.iter().map(|text| tokens::count(text)).sum();
        // The outbox may have a few more tokens than the sum of its sections.
        let room = limit.saturating_sub(fixed + limit / 1000 + 16);
        let left =
            |limits: &Limits| room.saturating_sub(tokens::count(&self.within(limits).concat()));
        let fit = |limits: Limits, reserved| {
            fits(&self.within(&limits).concat(), room.saturating_sub(reserved))
        };
        let whole = list(listing, usize::MAX, &mut redaction.redactor);
        let for_listing = tokens::estimate(&whole).most.min(LISTING).min(limit / 20);
        let requested = tokens::estimate(&self.requested.render(&Limits::NONE)).likely;
        let reserved = for_listing + requested.min(limit / 5);

        let mut limits = Limits { file: 0, ..Limits::NONE };
        // All items are shortened evenly. If that is not enough, results are left out.
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
            // Files with very long lines cannot use this room. The first file that can use it gets it.
            limits.larger = self.requested.blocks.iter().enumerate().find_map(|(n, block)| {
                let shown = block.render(limits.file);
                let room = tokens::count(&shown) + spare;
                let larger = greatest(usize::MAX, STEPS, |limit| fits(&block.render(limit), room))?;
                (block.render(larger).len() > shown.len()).then_some((n, larger))
            });
        }

        let left = left(&limits);
        let included = within(&self.included, left.saturating_sub(for_listing));
        let blocks: Vec<&FileBlock<'a>> = included.iter().map(|n| &self.included[*n]).collect();
        let left = left.saturating_sub(tokens::count(&render_offered(&blocks, usize::MAX)));
        // Requested contents may exceed the limit for unrequested ones.
        let room = unrequested.saturating_sub(limit - left).max(unrequested / 4).min(left);
        let most = room * CONTENTS / 100;
        // The choice is based on an estimate.
        let mut wanted = std::iter::successors(Some(most), |room| Some(room - room.div_ceil(8)));
        let (choices, offered) = loop {
            let choices = self.files.offered.choose(wanted.next().unwrap_or_default());
            let offered = self.blocks(&choices, redaction);
            let blocks: Vec<&FileBlock<'a>> = offered.iter().collect();
            if offered.is_empty() || fits(&render_offered(&blocks, 0), most + most / 8) {
                break (choices, offered);
            }
        };
        let shown: Vec<&str> = offered.iter().map(|block| block.contents.path.as_str()).collect();
        let with_shown = (!shown.is_empty()).then(|| with(&shown));
        let listing = with_shown.as_ref().unwrap_or(listing);
        let outlined = self.files.offered.outline(&choices);
        let outline = render_outline(outlined, room * OUTLINE / 100, &mut redaction.redactor);
        let not_listed = NOT_LISTED.to_owned();
        let mut fitted = Fitted { limits, included, offered, outline, listing: not_listed };
        let used = tokens::count(&self.compose(&fitted));
        let most = limit - left + room;
        // The listing was chosen by an estimate, and redaction may make it longer.
        let rooms = std::iter::successors(Some(most.saturating_sub(used)), |room| {
            Some(room - room.div_ceil(8))
        });
        for room in rooms {
            fitted.listing = list(listing, room, &mut redaction.redactor);
            if fitted.listing == NOT_LISTED || fits(&self.compose(&fitted), most) {
                break;
            }
        }
        fitted
    }

    /// The sections that can be shortened, except offered files and listings.
    fn within(&self, limits: &Limits) -> [String; 4] {
        [
            sections::header(self.session, limits.each),
            results::render(self, limits),
            self.requested.render(limits),
            sections::prompt_end(self, limits.each),
        ]
    }

    fn compose(&self, fitted: &Fitted<'a>) -> String {
        let Fitted { limits, listing, outline, .. } = fitted;
        let offered: Vec<&FileBlock<'a>> = self.unrequested(fitted).collect();
        let offered = render_offered(&offered, self.files.offered.listed);
        let ([before_listing, prompt], offered) = (&self.fixed, &offered);
        let [header, results, requested, end] = &self.within(limits);
        [header, before_listing, listing, offered, outline, results, requested, prompt, end]
            .map(String::as_str)
            .concat()
    }

    /// The blocks with contents that nobody requested.
    fn unrequested<'f>(
        &'f self,
        fitted: &'f Fitted<'a>,
    ) -> impl Iterator<Item = &'f FileBlock<'a>> {
        fitted.included.iter().map(|n| &self.included[*n]).chain(&fitted.offered)
    }

    /// The files that the model sees.
    fn shown(&self, fitted: &Fitted<'a>) -> Vec<ShownFile> {
        let (limits, wholes) = (&fitted.limits, &self.files.wholes);
        let offered = self.unrequested(fitted).filter_map(|block| block.shown(usize::MAX, wholes));
        let requested = self.requested.blocks.iter().enumerate();
        let requested = requested.filter_map(|(n, block)| block.shown(limits.of_block(n), wholes));
        // In sessions of operations, results contain the files. In sessions of tags, files are read after the reply.
        let read = self.session.last_results.iter();
        let read = read.filter_map(|outcome| events::shown(outcome, limits.each));
        offered.chain(requested).chain(read).collect()
    }
}
