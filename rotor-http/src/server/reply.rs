//! `Reply`: the proof that a handler has written a whole response.

use crate::semantics::error::MessageError;

/// The result of writing a whole response, as [`Response::reply`](super::Response::reply) returns
/// it.
///
/// A function that serves ([`ServerFn`](super::ServerFn)) returns it directly. A method of a
/// [`Server`](super::Server) converts it to a [`Next`](super::Next): `response.reply(..).into()`.
/// The `Result` of a response that was written in steps can be converted, too: `written.into()`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Reply {}

/// Converts the result of a response that the handler wrote in steps. An error is a bug of the
/// handler, which may have passed on what a peer sent, and is logged at error level. The connection sees that the response is incomplete: it
/// sends 500, or cuts the response off if a part of it has been sent.
impl From<Result<(), MessageError>> for Reply {
    #[inline]
    fn from(written: Result<(), MessageError>) -> Reply {
        if let Err(misuse) = written {
            log::error!("a reply was not written as it was asked for: {misuse}");
        }
        Reply {}
    }
}
