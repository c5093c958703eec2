//! `serve`: the page's server, and what others may ask of it.

mod http;
