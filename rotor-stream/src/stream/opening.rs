//! What happens before a protocol is at work: connecting, the handshake, its first call.

use std::io;

use rotor_core::net::StreamSocket;
use rotor_core::{Scope, Time};

use super::buffered_io::BufferedIo;
use super::closing::{flush_and_close, next_phase};
use super::flow::Flow;
use super::open::OpenProtocol;
use super::phase::Phase;
use crate::error::{Fatal, is_connection_lost};
use crate::intent::Intent;
use crate::protocol::Protocol;

/// Handles a connected socket: does the handshake, then calls the protocol for the first time.
pub(super) fn start_handshake<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    io.on_connected();
    let until = scope.now() + io.status.config.handshake_timeout;
    handshake(seed, until, io, scope)
}

pub(super) fn handshake<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    until: Time,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    if io.is_handshake_blocked() {
        return wait_for_handshake(seed, until, io, scope);
    }
    match run_handshake(io, scope) {
        Ok(()) => {
            // The last bytes of the handshake may have arrived together with the first ones of the
            // protocol.
            io.on_handshake_ended();
            let intent = P::create(seed, &mut io.transport(), scope);
            let mut open = OpenProtocol::new();
            let mut flow = open.begin(intent, io, scope);
            // A protocol that has ended in its first call need not be told.
            if io.drain_pending() && matches!(flow, Flow::Wait(()) | Flow::Again(())) {
                // A layer may have reported a drain that is not the loop's.
                let until = scope.draining_until().unwrap_or(scope.now());
                flow = open.call(|p, io, scope| notify_drain(p, until, io, scope), io, scope);
            }
            next_phase(open, flow, io, scope)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            wait_for_handshake(seed, until, io, scope)
        }
        Err(error) => {
            // Whether the peer is gone, so that it cannot be told the reason.
            let is_over =
                is_connection_lost(&error) || error.kind() == io::ErrorKind::UnexpectedEof;
            not_connected::<P>(seed, Fatal::Handshake(error), scope);
            if is_over { Flow::Fail(None) } else { report_handshake_failure(io, scope) }
        }
    }
}

fn wait_for_handshake<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    until: Time,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    if io.account_memory() {
        return Flow::Wait(Phase::Handshaking { seed, until });
    }
    not_connected::<P>(seed, Fatal::NoRoom, scope);
    Flow::Fail(None)
}

/// Handles a handshake that took too long. A peer that has not really begun it is told nothing and
/// does not keep its slot: it has sent no byte whose reset could overtake an answer.
#[cold]
pub(super) fn abandon_handshake<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    scope: &Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    if io.socket.cancel_handshake() {
        report_handshake_failure(io, scope)
    } else {
        Flow::Fail(None)
    }
}

/// Makes a wrapping socket tell its peer why the handshake has failed, and closes the connection in
/// such a way that this message arrives.
#[cold]
fn report_handshake_failure<P: Protocol, S: StreamSocket>(
    io: &mut BufferedIo<S>,
    scope: &Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    io.require_by(scope.now());
    flush_and_close(io, scope)
}

/// Tells the protocol of a drain, after reading all that has arrived: a protocol that waits for a
/// message ends if there is none.
#[cold]
pub(super) fn notify_drain<P: Protocol, S: StreamSocket>(
    protocol: P,
    until: Time,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Intent<P> {
    // There may have been no edge for this input yet: the drain may begin between two edges.
    io.assume_readable();
    io.read_ahead_now();
    protocol.draining(until, &mut io.transport(), scope)
}

/// Continues the handshake until it has ended or waits. It is called again after a signal, because
/// no edge follows.
fn run_handshake<S: StreamSocket, C>(
    io: &mut BufferedIo<S>,
    scope: &Scope<'_, C>,
) -> io::Result<()> {
    loop {
        match io.socket.handshake(scope) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && io.handshake_needs_retry() => {}
            other => return other,
        }
    }
}

/// Checks whether the socket has connected.
#[cold]
pub(super) fn check_connected<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    until: Time,
    io: &mut BufferedIo<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Flow<Phase<P>> {
    match io.socket.has_connected() {
        Ok(true) => start_handshake(seed, io, scope),
        // A spurious event.
        Ok(false) => Flow::Wait(Phase::Connecting { seed, until }),
        Err(error) => {
            not_connected::<P>(seed, Fatal::Connect(error), scope);
            Flow::Fail(None)
        }
    }
}

/// Tells the protocol that there will be no connection.
pub(crate) fn not_connected<P: Protocol>(
    seed: P::Seed,
    error: Fatal,
    scope: &mut Scope<'_, P::Context>,
) {
    scope.note_in_trace(format_args!("{error:?}"));
    P::not_connected(seed, error, scope);
}
