//! `BodyLost`: why the rest of a request's body is lost.

use std::fmt;

use rotor_http::BodyError;

/// Why the rest of a request's body will not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BodyLost {
    /// The peer violated the protocol, a limit was reached, or the peer is gone.
    Broken(BodyError),
    /// The request has ended: its response is complete, took too long, or panicked.
    Finished,
}

impl fmt::Display for BodyLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyLost::Broken(error) => write!(f, "the body of the request is lost: {error}"),
            BodyLost::Finished => f.write_str("the request was over before its body had come"),
        }
    }
}

impl std::error::Error for BodyLost {}
