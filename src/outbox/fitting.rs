//! The parts of an outbox put together, and as much of each as there is room for.
//!
//! In the order of need: PROTOCOL, Environment and PROMPT, the task, results, then contents that were
//! asked for, then contents that were not, and the listing has the rest. A part that others need more
//! never takes all: a little is kept for the listing, and a quarter for contents that were asked for,
//! whatever commands wrote.
//!
//! Most outboxes are far from the limit, which an estimate says. Only where it could be exceeded is
//! anything counted, and what is put together then is counted as a whole, last. Where that is too
//! much, it is put together anew from the same whole parts: these are made once, and counted once.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use super::contents::{Blocks, Seen};
use super::events;
use super::header::{facts, frame_tokens, header};
use super::offered::Offer;
use super::results::{Limits, Results};
use super::screening::Texts;
use super::{Environment, Files, Rendered, Shown, listing, lone, prompt};
use crate::protocol::operations::{self, Encoding};
use crate::protocol::{self, Detail, Dialect, tags};
use crate::secrets::Screen;
use crate::session::Session;
use crate::tokens;
use crate::workspace::picture::Picture;

/// So many tokens the markers and headings of all sections take.
const HEADINGS: usize = 60;
/// So many tokens are kept for the listing, or all that it needs.
const LISTING: usize = 500;
/// So many bytes of a listing a token is at most.
const LISTING_BYTES: usize = 6;
/// As often the parts are put together anew where they were too much.
const TRIES: usize = 6;

/// All that an outbox is rendered from.
pub(super) struct Values<'a> {
    /// The session as it is.
    pub(super) given: &'a Session,
    /// The same as it can be shown.
    pub(super) session: &'a Session,
    pub(super) environment: &'a Environment,
    pub(super) picture: &'a Picture<'a>,
    /// The paths near to which the work is.
    pub(super) near: &'a [&'a str],
    pub(super) files: &'a Files,
    /// What is shown of files.
    pub(super) texts: &'a Texts,
    /// What names in a listing are screened with.
    pub(super) screen: &'a RefCell<Screen>,
}

/// The parts of an outbox, as they stand in it. Texts are shared with the whole parts they come from.
#[derive(Clone)]
struct Parts<'a> {
    header: String,
    listing: Rc<str>,
    offered: Option<Offer<'a>>,
    results: Rc<str>,
    requested: Blocks<'a>,
    /// So many characters of what was read stand in the events.
    read: usize,
    /// Whether results stand there with the lines of files that belong to them.
    excerpts: bool,
}

/// How many tokens the whole parts are, and what is always there.
struct Sizes {
    always: usize,
    listing: usize,
    results: usize,
    /// Of each block that was requested.
    requested: Vec<usize>,
}

impl<'a> Values<'a> {
    pub(super) fn render(&self) -> Rendered {
        let limit = self.environment.max_tokens;
        let frame = self.frame();
        let mut parts = self.whole();
        let rest = tokens::estimate(&self.compose(&frame, &parts, false)).most;
        if rest <= limit {
            // What is shown unasked must not need what is asked for later.
            if let Some(offer) = &mut parts.offered {
                let listing = tokens::estimate(&parts.listing).most.min(LISTING);
                let room = limit - rest + tokens::estimate(&parts.listing).most;
                let all = tokens::estimate(&offer.render()).most;
                offer.within(room - listing, |text| tokens::estimate(text).most);
                let chosen = tokens::estimate(&offer.render()).most;
                if chosen < all || rest + chosen > limit {
                    return self.fitted(&frame, &parts);
                }
            }
            let text = self.compose(&frame, &parts, true);
            let tokens = tokens::estimate(&text).likely;
            return self.rendered(&parts, text, tokens);
        }
        self.fitted(&frame, &parts)
    }

    /// What is always there, whole: before the listing, and PROMPT.
    fn frame(&self) -> [String; 2] {
        let mut before = "\n=== PROTOCOL ===\n".to_owned();
        before.push_str(match self.session.dialect {
            Dialect::Tags => tags::PROMPT,
            Dialect::Operations => operations::PROMPT,
        });
        before.push_str("\n=== CONTEXT ===\n");
        facts(self.session, self.environment, &mut before);
        before.push_str("\n## Workspace Files\n");
        let mut after = "\n=== PROMPT ===\n".to_owned();
        prompt::prompt(self.session, &self.files.requested, &mut after);
        [before, after]
    }

    /// All parts as they are where there is room for them.
    fn whole(&self) -> Parts<'a> {
        let Values { session, environment, files, .. } = *self;
        let mut whole = String::new();
        header(session, None, &mut whole);
        let results = match session.dialect {
            Dialect::Tags => self.results(&[]).render(&Limits::default()),
            Dialect::Operations => {
                events::render(session, &events::Limits::of(environment.output_limit))
            }
        };
        Parts {
            header: whole,
            listing: self.listing(environment.max_tokens.saturating_mul(LISTING_BYTES)).into(),
            offered: files.offered.as_ref().map(|offered| Offer::of(session, offered, self.texts)),
            results: results.into(),
            requested: Blocks::of(session, &files.requested, self.texts),
            read: usize::MAX,
            excerpts: true,
        }
    }

    fn listing(&self, room: usize) -> String {
        let mut out = String::new();
        listing::render(self.picture, self.session.dialect, self.near, room, &mut out);
        match self.screen.borrow_mut().listing(&out) {
            Cow::Owned(shown) => shown,
            Cow::Borrowed(_) => out,
        }
    }

    fn results<'s>(&'s self, seen: &'s [Seen]) -> Results<'s> {
        Results { session: self.session, requested: &self.files.requested, seen }
    }

    fn compose(&self, [before, after]: &[String; 2], parts: &Parts<'_>, all: bool) -> String {
        let offered = parts.offered.as_ref().filter(|_| all).map(Offer::render);
        let requested = match self.session.dialect {
            Dialect::Tags => parts.requested.render(),
            Dialect::Operations => String::new(),
        };
        [
            parts.header.as_str(),
            before,
            &parts.listing,
            &offered.unwrap_or_default(),
            &parts.results,
            &requested,
            after,
        ]
        .concat()
    }

    /// The outbox with as much of each part as there is room for.
    fn fitted(&self, frame: &[String; 2], whole: &Parts<'a>) -> Rendered {
        let limit = self.environment.max_tokens;
        let requested = match self.session.dialect {
            Dialect::Tags => whole.requested.tokens(),
            Dialect::Operations => Vec::new(),
        };
        let sizes = Sizes {
            always: frame.iter().map(|text| tokens::count(text)).sum::<usize>() + frame_tokens(),
            listing: tokens::count(&whole.listing),
            results: tokens::count(&whole.results),
            requested,
        };
        let mut room = limit;
        for tries_left in (0..TRIES).rev() {
            let parts = self.fit(whole, &sizes, room);
            let text = self.compose(frame, &parts, true);
            let tokens = tokens::count(&text);
            if tokens <= limit || tries_left == 0 || room == 0 {
                // As `tokens::about` tells it of the text alone, so that all tell the same.
                let tokens = if tokens > limit { tokens } else { tokens::about(&text, limit) };
                return self.rendered(&parts, text, tokens);
            }
            // What belongs together counts otherwise than its pieces do, though little.
            let more = (tokens - limit) * 2 + limit / 200;
            room = if tries_left == 1 { 0 } else { room.saturating_sub(more) };
        }
        unreachable!("the last try returns")
    }

    /// The parts within `room` tokens, as far as they can be counted one by one.
    fn fit(&self, whole: &Parts<'a>, sizes: &Sizes, room: usize) -> Parts<'a> {
        let mut parts = whole.clone();
        let Values { session, environment, .. } = *self;
        let mut left = room.saturating_sub(sizes.always + HEADINGS);

        // The first outbox has the task twice, and all of it in PROMPT.
        let of_task = if session.sequence == 1 { left / 16 } else { left / 2 };
        parts.header.clear();
        header(session, Some(of_task), &mut parts.header);
        left = left.saturating_sub(tokens::count(&parts.header));

        let kept = sizes.listing.min(LISTING).min(left / 10);
        let wanted = sizes.requested.iter().sum::<usize>().min(left / 4);
        let of_results = left.saturating_sub(kept + wanted);
        let fits = sizes.results <= of_results;
        match session.dialect {
            Dialect::Tags => {
                let (limits, taken) = if fits {
                    (Limits::default(), sizes.results)
                } else {
                    let limits = self.results(&[]).within(of_results);
                    let taken = tokens::count(&self.results(&[]).render(&limits));
                    (limits, taken)
                };
                parts.requested.cut(&sizes.requested, left.saturating_sub(taken + kept));
                let seen = parts.requested.seen();
                parts.excerpts = limits.keeps_excerpts();
                parts.results = self.results(&seen).render(&limits).into();
                left = left.saturating_sub(tokens::count(&parts.requested.render()));
            }
            Dialect::Operations if !fits => {
                let limits = events::within(session, environment.output_limit, of_results);
                parts.read = limits.contents();
                parts.excerpts = limits.keeps_events();
                parts.results = events::render(session, &limits).into();
            }
            Dialect::Operations => {}
        }
        left = left.saturating_sub(tokens::count(&parts.results));
        if let Some(offer) = &mut parts.offered {
            offer.within(left.saturating_sub(kept), tokens::count);
            left = left.saturating_sub(tokens::count(&offer.render()));
        }
        if sizes.listing > left {
            parts.listing = self.shortened_listing(left).into();
        }
        parts
    }

    /// As much of the listing as is `room` tokens.
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

    fn rendered(&self, parts: &Parts<'_>, text: String, tokens: usize) -> Rendered {
        let withheld = self.screen.borrow().told();
        let (shown, excerpts) = (self.shown(parts), parts.excerpts);
        let (lone, withheld_from) = match (excerpts, self.session.dialect) {
            (true, Dialect::Tags) => {
                let withheld_from = lone::withheld_from(self.given, self.session);
                (lone::shown(self.session, &self.files.wholes), withheld_from)
            }
            _ => Default::default(),
        };
        let events = None;
        Rendered { text, tokens, shown, excerpts, lone, withheld_from, withheld, events }
    }

    /// The files that the model sees.
    fn shown(&self, parts: &Parts<'_>) -> Vec<Shown> {
        let mut shown: Vec<Shown> = parts.offered.iter().flat_map(Offer::shown).collect();
        match self.session.dialect {
            Dialect::Tags => shown.extend(parts.requested.shown().map(|part| self.of_whole(part))),
            Dialect::Operations => {
                for outcome in &self.given.last_results {
                    let Detail::Read { path, content, encoding, .. } = &outcome.detail else {
                        continue;
                    };
                    let bytes = encoding.decode(content).ok();
                    let seen = bytes.map(|bytes| protocol::Seen::whole(&bytes));
                    let cut = content.char_indices().nth(parts.read).map(|(cut, _)| cut);
                    let lines = cut.map_or(0, |cut| content[..cut].matches('\n').count());
                    let lines = (lines > 0 && *encoding == Encoding::Utf8).then_some((1, lines));
                    shown.push(Shown { path: path.clone(), whole: cut.is_none(), lines, seen });
                }
            }
        }
        shown
    }

    /// What is known of the whole file of which a part is shown.
    fn of_whole(&self, shown: Shown) -> Shown {
        let whole = || self.files.wholes.iter().find(|whole| whole.path == shown.path);
        let read = || whole().map(|whole| protocol::Seen::whole(&whole.bytes));
        let seen = shown.seen.clone().or_else(read);
        Shown { seen, ..shown }
    }
}
