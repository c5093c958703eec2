//! Policies from text.
