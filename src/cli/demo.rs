//! demo
use std::process::ExitCode;

use clap::Args;

use super::talk::Talk;
use crate::error::Result;

#[derive(Debug, Args)]
pub(super) struct Demo {}

pub(super) fn demo(_arguments: &Demo, _talk: &Talk, _json: bool) -> Result<ExitCode> {
    todo!()
}
