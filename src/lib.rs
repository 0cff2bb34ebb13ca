//! The facade.
#![forbid(unsafe_code)]
