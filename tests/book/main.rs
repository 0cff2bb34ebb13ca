//! The documents: that nothing is left out.

mod documents;
mod examples;
