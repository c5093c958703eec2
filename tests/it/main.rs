//! The program as a person uses it: the real binary on real files.

mod basics;
mod support;
