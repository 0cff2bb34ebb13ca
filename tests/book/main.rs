//! Checks the documents: limits and statuses match the code, links lead to existing targets, and
//! nothing is left out.
//!
//! Their programs are compiled and run by `cargo test --workspace --doc`; see `src/guide.rs`.

mod documents;
mod examples;
mod examples_import_rotor;
mod front_pages;
mod gateway;
mod glossary;
mod limits;
mod links;
mod packages;
mod threats;
#[path = "../structure/tokens.rs"]
mod tokens;
