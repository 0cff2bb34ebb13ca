//! After a protocol is done: its last bytes, the end of our side, the wait for the peer's.

use rotor_core::net::StreamSocket;
use rotor_core::{Scope, Time};

use super::buffered_io::{BufferedIo, Discarded, Pass, ReadSide, WriteResult};
use super::open::{Open, Passed};
use super::phase::{Outcome, Phase};
use crate::output::End;
use crate::{AbortReason, Fatal, Protocol, RateWatch};

/// What follows from a pass over the protocol.
pub(super) fn after<P: Protocol, S: StreamSocket>(
    mut open: Open<P>,
    passed: Passed,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    match passed {
        Passed::Waits if io.rest() => Outcome::On(Phase::Open(open)),
        Passed::Waits => {
            open.fatal(Fatal::NoRoom, scope);
            Outcome::End
        }
        Passed::Spent => Outcome::Again(Phase::Open(open)),
        Passed::Done => {
            io.input.clear();
            io.hasten(scope.now());
            flush_and_close(io, scope)
        }
        Passed::Error(error) => Outcome::Error(error),
        Passed::Gone => Outcome::End,
    }
}

/// Writes what the protocol left; then ends our side.
pub(super) fn flush_and_close<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    scope: &Scope<'_, P::Context>,
) -> Outcome<P> {
    if io.output.end() == End::Open {
        io.output.set_end(End::Wanted);
    }
    let mut pass = Pass::new(&io.config);
    loop {
        match io.write(&mut pass, || scope.now()) {
            WriteResult::Progress => {}
            WriteResult::Nothing => break,
            WriteResult::Failed(error) => {
                log::debug!("machine {} could not write its last bytes: {error}", scope.token());
                return Outcome::End;
            }
        }
    }
    if io.output.end() == End::Told {
        io.taking = RateWatch::NONE;
        return linger(io, scope.now() + io.config.linger_timeout, io.config.linger_bytes);
    }
    // A peer that is still busy sending must not have to be read before it reads. How long it may
    // go on is bounded by the time for flushing, not by bytes.
    if let Err(error) = io.discard(&mut pass, &mut { u64::MAX }) {
        log::debug!("machine {} lost its last bytes: {error}", scope.token());
        return Outcome::End;
    }
    match pass.is_spent() {
        true => Outcome::Again(Phase::Flushing),
        false if io.rest() => Outcome::On(Phase::Flushing),
        false => abort(AbortReason::NoRoom, io),
    }
}

/// Throws away what the peer still sends, until it ends its side, has sent too much, or the time is
/// over.
pub(super) fn linger<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    until: Time,
    mut left: u64,
) -> Outcome<P> {
    let mut pass = Pass::new(&io.config);
    match io.discard(&mut pass, &mut left) {
        Ok(Discarded::TooMuch) => abort(AbortReason::StillSending, io),
        Ok(Discarded::Ended) | Err(_) => Outcome::End,
        Ok(Discarded::All) if pass.is_spent() => Outcome::Again(Phase::Lingering { until, left }),
        Ok(Discarded::All) => {
            io.rest();
            Outcome::On(Phase::Lingering { until, left })
        }
    }
}

/// Ends an idle connection at once, to make room for others; unless its peer has just said
/// something.
///
/// RFC 9112 §9.5: a server may close an idle connection at any time, and a client has to expect it.
/// The socket is empty when it is closed, so the peer sees an end and no reset; only what it sends
/// later meets one, since nobody lingers for it.
#[cold]
pub(super) fn make_room<P: Protocol, S: StreamSocket>(
    phase: Phase<P>,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    let Phase::Open(mut open) = phase else { return Outcome::On(phase) };
    let unread = io.input.len();
    io.look_again();
    io.read_ahead(&mut Pass::new(&io.config));
    if io.input.len() != unread || io.read_side == ReadSide::Ended || io.broken.is_some() {
        let passed = open.pass(io, scope);
        return after(open, passed, io, scope);
    }
    open.fatal(Fatal::MadeRoom, scope);
    io.input.clear();
    let _lingers = flush_and_close::<P, S>(io, scope);
    Outcome::End
}

/// Drops the connection, and tells who counts that.
#[cold]
pub(super) fn abort<P: Protocol, S>(reason: AbortReason, io: &BufferedIo<S>) -> Outcome<P> {
    io.config.on_abort.tell(reason);
    Outcome::End
}
