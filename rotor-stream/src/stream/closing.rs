//! After a protocol is done: its last bytes, the end of our side, the wait for the peer's.

use rotor_core::net::StreamSocket;
use rotor_core::{Scope, Time};

use super::open::{Open, Passed};
use super::phase::{Outcome, Phase};
use super::wire::{Discarded, Pass, ReadSide, Wire, WriteResult};
use crate::output::End;
use crate::{CutOff, Fatal, Protocol, RateWatch};

/// What follows from a pass over the protocol.
pub(super) fn after<P: Protocol, S: StreamSocket>(
    mut open: Open<P>,
    passed: Passed,
    wire: &mut Wire<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    match passed {
        Passed::Waits if wire.rest() => Outcome::On(Phase::Open(open)),
        Passed::Waits => {
            open.fatal(Fatal::NoRoom, scope);
            Outcome::End
        }
        Passed::Spent => Outcome::Again(Phase::Open(open)),
        Passed::Done => {
            wire.input.clear();
            wire.hasten(scope.now());
            flush_and_close(wire, scope)
        }
        Passed::Error(error) => Outcome::Error(error),
        Passed::Gone => Outcome::End,
    }
}

/// Writes what the protocol left; then ends our side.
pub(super) fn flush_and_close<P: Protocol, S: StreamSocket>(
    wire: &mut Wire<S>,
    scope: &Scope<'_, P::Context>,
) -> Outcome<P> {
    if wire.output.end() == End::Open {
        wire.output.set_end(End::Wanted);
    }
    let mut pass = Pass::new(&wire.config);
    loop {
        match wire.write(&mut pass, || scope.now()) {
            WriteResult::Progress => {}
            WriteResult::Nothing => break,
            WriteResult::Failed(error) => {
                log::debug!("machine {} could not write its last bytes: {error}", scope.token());
                return Outcome::End;
            }
        }
    }
    if wire.output.end() == End::Told {
        wire.taking = RateWatch::NONE;
        return linger(wire, scope.now() + wire.config.linger_timeout, wire.config.linger_bytes);
    }
    // A peer that is still busy sending must not have to be read before it reads. How long it may
    // go on is bounded by the time for flushing, not by bytes.
    if let Err(error) = wire.discard(&mut pass, &mut { u64::MAX }) {
        log::debug!("machine {} lost its last bytes: {error}", scope.token());
        return Outcome::End;
    }
    match pass.is_spent() {
        true => Outcome::Again(Phase::Flushing),
        false if wire.rest() => Outcome::On(Phase::Flushing),
        false => cut_off(CutOff::NoRoom, wire),
    }
}

/// Throws away what the peer still sends, until it ends its side, has sent too much, or the time is
/// over.
pub(super) fn linger<P: Protocol, S: StreamSocket>(
    wire: &mut Wire<S>,
    until: Time,
    mut left: u64,
) -> Outcome<P> {
    let mut pass = Pass::new(&wire.config);
    match wire.discard(&mut pass, &mut left) {
        Ok(Discarded::TooMuch) => cut_off(CutOff::StillSending, wire),
        Ok(Discarded::Ended) | Err(_) => Outcome::End,
        Ok(Discarded::All) if pass.is_spent() => Outcome::Again(Phase::Lingering { until, left }),
        Ok(Discarded::All) => {
            wire.rest();
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
    wire: &mut Wire<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    let Phase::Open(mut open) = phase else { return Outcome::On(phase) };
    let unread = wire.input.len();
    wire.look_again();
    wire.read_ahead(&mut Pass::new(&wire.config));
    if wire.input.len() != unread || wire.read_side == ReadSide::Ended || wire.broken.is_some() {
        let passed = open.pass(wire, scope);
        return after(open, passed, wire, scope);
    }
    open.fatal(Fatal::MadeRoom, scope);
    wire.input.clear();
    let _lingers = flush_and_close::<P, S>(wire, scope);
    Outcome::End
}

/// Drops the connection, and tells who counts that.
#[cold]
pub(super) fn cut_off<P: Protocol, S>(cut_off: CutOff, wire: &Wire<S>) -> Outcome<P> {
    wire.config.cut_off.tell(cut_off);
    Outcome::End
}
