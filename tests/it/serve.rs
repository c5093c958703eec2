//! `serve`: the page, its server, and what others may ask of it.

mod browser;
mod client;
mod http;
mod rest;
