//! `Flow`: the result of a step of a stream, of the same five kinds for all steps.

use rotor_core::BoxError;

/// The result of a step: a pass over the protocol (`Flow<()>`), or what follows from it for the
/// stream (`Flow<Phase>`, with the phase that it is in from now on).
pub(super) enum Flow<T> {
    /// Nothing more can be done before an event or a deadline.
    Wait(T),
    /// Its share of the event is used up, and there is more to do once the others had their turn.
    Again(T),
    /// It has ended normally: the protocol, whose last bytes must still be flushed; or the stream.
    Done,
    /// It has ended at once, and the peer is to hear that it did not end in order.
    Reset,
    /// It has ended at once, with an error that the loop should log; or without one if the
    /// protocol, or whoever counts, was told already.
    Fail(Option<BoxError>),
}
