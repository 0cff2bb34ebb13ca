//! The documents: that their limits and statuses are those of the code, their links lead somewhere,
//! and nothing is left out; and that no files of the sources lead round in a circle.
//!
//! Their programs are compiled and run by `cargo test --workspace --doc`; see `src/guide.rs`.

mod circles;
mod documents;
mod examples;
mod front_pages;
mod gateway;
mod glossary;
mod limits;
mod links;
mod threats;
