//! The documents: that their limits are those of the code, and nothing is left out.

mod documents;
mod examples;
mod limits;
