//! Before a protocol is at work: connecting, the handshake, its first call.

use std::io;

use rotor_core::net::StreamSocket;
use rotor_core::{Scope, Time};

use super::closing::after;
use super::open::{Open, Passed};
use super::phase::{Outcome, Phase};
use super::wire::{Pass, Wire};
use crate::{Fatal, Intent, Protocol};

/// The socket is connected: shakes hands, then calls the protocol for the first time.
pub(super) fn begin<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    wire: &mut Wire<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    wire.connected();
    let until = scope.now() + wire.config.handshake_timeout;
    shake(seed, until, wire, scope)
}

pub(super) fn shake<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    until: Time,
    wire: &mut Wire<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    match shake_hands(&mut wire.socket) {
        Ok(()) => {
            wire.shaken();
            let intent = P::create(seed, &mut wire.transport(), scope);
            let mut open = Open::new();
            let mut passed = open.begin(intent, wire, scope);
            if wire.owes_draining() && matches!(passed, Passed::Waits | Passed::Spent) {
                let until = scope.draining_until().unwrap_or(scope.now());
                passed =
                    open.go_on(|p, wire, scope| tell_of_drain(p, until, wire, scope), wire, scope);
            }
            after(open, passed, wire, scope)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Outcome::On(Phase::Shaking { seed, until })
        }
        Err(error) => {
            P::not_connected(seed, Fatal::Handshake(error), scope);
            Outcome::End
        }
    }
}

/// Tells the protocol of a drain, with what has come in its input: one that waits for a message
/// ends if there is nothing.
#[cold]
pub(super) fn tell_of_drain<P: Protocol, S: StreamSocket>(
    protocol: P,
    until: Time,
    wire: &mut Wire<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Intent<P> {
    wire.look_again();
    wire.read_ahead(&mut Pass::new(&wire.config));
    protocol.draining(until, &mut wire.transport(), scope)
}

/// Goes on with the handshake until it has ended or waits: after a signal no edge follows.
fn shake_hands(socket: &mut impl StreamSocket) -> io::Result<()> {
    loop {
        match socket.handshake() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Sees whether the socket is connected by now.
#[cold]
pub(super) fn connecting<P: Protocol, S: StreamSocket>(
    seed: P::Seed,
    until: Time,
    wire: &mut Wire<S>,
    scope: &mut Scope<'_, P::Context>,
) -> Outcome<P> {
    match wire.socket.has_connected() {
        Ok(true) => begin(seed, wire, scope),
        Ok(false) => Outcome::On(Phase::Connecting { seed, until }),
        Err(error) => {
            P::not_connected(seed, Fatal::Connect(error), scope);
            Outcome::End
        }
    }
}
