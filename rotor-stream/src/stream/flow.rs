//! `Flow`: what a step of a stream has come to, in the same four words for all of them.

use rotor_core::BoxError;

/// What a step has come to: a pass over the protocol (`Flow<()>`), or what follows from it for the
/// stream (`Flow<Phase>`, with the phase that it is in from now on).
pub(super) enum Flow<T> {
    /// Nothing more can be done before an event or a deadline.
    Wait(T),
    /// Its share of the event is spent, and there is more to do: once the others had their turn.
    Again(T),
    /// It has ended well: the protocol, whose last bytes are still to be flushed; or the stream.
    Done,
    /// It is over at once: with what the loop is to log; with nothing where it was told already, to
    /// the protocol or to who counts.
    Fail(Option<BoxError>),
}
