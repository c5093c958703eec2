//! A guest that is a plain bouvet-agent: the lesser mode.

use super::{Guest, Terms};
use crate::error::{Error, Result};
use crate::place::{Coming, Left, Place};
use crate::policy::Opens;
use crate::protocol::rpc::About;
use crate::protocol::{Detail, Digest, Effect, Failure, Operation, RelPath};
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, Look};

fn unbuilt(guest: &Guest) -> Error {
    Error::guest(&guest.label(), "plain agents are not spoken to yet")
}

pub(super) fn about(guest: &Guest) -> Result<About> {
    Err(unbuilt(guest))
}

pub(super) fn walk(guest: &Guest) -> Result<Walk> {
    Err(unbuilt(guest))
}

pub(super) fn read(guest: &Guest, _: &RelPath, _: u64) -> Result<Result<Contents, Failure>> {
    Err(unbuilt(guest))
}

/// A guest of six methods as a place.
pub(super) struct InPlain<'a> {
    guest: &'a Guest,
    terms: Terms<'a>,
}

impl<'a> InPlain<'a> {
    pub(super) fn new(guest: &'a Guest, terms: Terms<'a>) -> Self {
        Self { guest, terms }
    }
}

impl Place for InPlain<'_> {
    fn perform(
        &mut self,
        _: &Operation,
        _: Opens,
        _: &mut dyn FnMut(Coming<'_>) -> Result<()>,
    ) -> Result<Detail> {
        Err(unbuilt(self.guest))
    }

    fn walk(&self) -> Result<Walk> {
        walk(self.guest)
    }

    fn read(&self, path: &RelPath) -> Result<Result<Contents, Failure>> {
        self.guest.read_text(path)
    }

    fn look(&self, _: &Operation) -> Result<Option<Look>> {
        Err(unbuilt(self.guest))
    }

    fn place_of(&self, _: &Operation) -> Result<Option<RelPath>> {
        Err(unbuilt(self.guest))
    }

    fn standing(&self, _: &Operation) -> Result<Option<Digest>> {
        Err(unbuilt(self.guest))
    }

    fn left(&mut self, _: &Effect, _: &Operation) -> Result<Left> {
        Err(unbuilt(self.guest))
    }

    fn interrupted(&self) -> bool {
        (self.terms.interrupted)()
    }
}
