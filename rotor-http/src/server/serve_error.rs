//! `ServeError`: why a program could not serve.

use std::error::Error;
use std::fmt;

use rotor_core::{BoxError, with_causes};

/// The reason why a program could not serve, or stopped serving; see
/// [`Serve::run`](super::Serve::run).
///
/// `Debug` shows the message with its causes, because `main` prints the error that it returns with
/// `Debug`.
pub struct ServeError {
    pub(super) address: String,
    pub(super) cause: BoxError,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot serve at {:?}", self.address)
    }
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", with_causes(self))
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}
