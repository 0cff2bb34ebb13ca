//! `Reply`: that a handler has written a whole response.

use crate::semantics::error::MessageError;

/// That a handler has answered, whole: what [`Response::reply`](super::Response::reply) returns.
///
/// A function that serves ([`ServerFn`](super::ServerFn)) returns it as it is; the methods of a
/// [`Server`](super::Server) turn it into their [`Next`](super::Next):
/// `response.reply(..).into()`. What a handler writes in steps becomes one too: `written.into()`,
/// with the `Result` of those steps.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Reply {}

/// A response that the handler wrote in steps. However that went: the connection sees what is
/// missing, and makes it a 500.
impl From<Result<(), MessageError>> for Reply {
    #[inline]
    fn from(written: Result<(), MessageError>) -> Reply {
        if let Err(misuse) = written {
            log::debug!("a reply was not written as it was asked for: {misuse}");
        }
        Reply {}
    }
}
