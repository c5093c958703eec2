//! toolchains
