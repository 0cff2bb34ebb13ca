//! `Flow`: the result of a step of a stream. All steps have the same five kinds of results.

use rotor_core::BoxError;

/// The result of a step: of a pass over the protocol (`Flow<()>`), or of what follows for the
/// stream (`Flow<Phase>`, with its next phase).
pub(super) enum Flow<T> {
    /// Nothing more can be done before an event or a deadline.
    Wait(T),
    /// The budget of the event is used up, and there is more to do after the other machines have
    /// had their turn.
    Again(T),
    /// Ended normally: the protocol, whose last bytes must still be flushed; or the stream.
    Done,
    /// Ended at once; the connection is reset, so that the peer sees that it did not end in an
    /// orderly way.
    Reset,
    /// Ended at once, with an error that the loop should log; or without one if the protocol, or
    /// the abort hook, was told already.
    Fail(Option<BoxError>),
}
