//! `serve`: what it answers over HTTP.

mod client;
mod rest;
