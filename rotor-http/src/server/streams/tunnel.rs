//! A stream that goes on in another protocol (RFC 8441), or as a tunnel (RFC 9113 §8.5): what was
//! a connection's upgrade in HTTP/1.1, on the two buffers of a stream.
//!
//! ```text
//!   200 is written ─▶ Waits ◀──▶ Again ─▶ Done ─▶ all sent, then END_STREAM ─▶ (none)
//!                       │                            the peer still sends: dropped, as behind a response
//!                       └─ RST_STREAM, failed, panicked, late: RST_STREAM(CANCEL | INTERNAL_ERROR)
//! ```

use std::io::ErrorKind;

use rotor_core::{BoxError, Scope, with_causes};
use rotor_stream::{Fatal, Layered, Output, Protocol, Ran};

use super::Streams;
use super::child::Child;
use crate::h2::{ErrorCode, StreamState};
use crate::no_upgrade::NoUpgrade;
use crate::server::handler::{Server, UpgradeSeed};
use crate::server::io::{Io, note_panic};

/// Another protocol on a stream.
pub(super) struct Tunnel<S: Server> {
    layered: Layered<S::Upgrade>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It waits for something to happen.
    Waits,
    /// There is more to do once others had their turn.
    Again,
    /// What is left is to be sent.
    Done,
}

/// Whether a server has another protocol to go on in: [`NoUpgrade`] is made from what cannot be, and
/// where there is no such value there is none to keep in an `Option` either.
pub(super) const fn has_protocols<S: Server>() -> bool {
    size_of::<Option<UpgradeSeed<S>>>() > 0
}

const _: () = assert!(
    size_of::<Option<<NoUpgrade<()> as Protocol>::Seed>>() == 0,
    "servers without an upgrade would offer one"
);

impl<S: Server> Tunnel<S> {
    pub(super) fn layered(&self) -> &Layered<S::Upgrade> {
        &self.layered
    }

    /// What waits to be sent, behind the head.
    pub(super) fn output(&mut self) -> &mut Output {
        self.layered.output()
    }

    /// More has come.
    pub(super) fn extend(&mut self, data: &[u8]) {
        // Nobody would read it.
        if !self.is_done() {
            self.layered.input().extend(data);
        }
    }

    /// The protocol has nothing more to say or to hear.
    pub(super) fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    /// Nothing will follow what waits to be sent.
    pub(super) fn has_ended_output(&mut self) -> bool {
        self.is_done() || self.layered.output().is_ended()
    }

    /// Octets that have come and are to stay counted against the windows: none, where the protocol
    /// waits for more, however much that is.
    pub(super) fn untaken(&mut self) -> usize {
        if self.layered.wants_input() { 0 } else { self.layered.input().len() }
    }
}

impl<S: Server> Child<S> {
    /// Tells the protocol that its stream is over, if it is told of one.
    pub(super) fn lose_tunnel(&mut self, scope: &mut Scope<'_, S::Context>, kind: ErrorKind) {
        let Some(tunnel) = self.tunnel.take() else { return };
        let mut part = scope.part(self.id);
        let lost = part.guard(|scope| tunnel.layered.lost(Fatal::Reset(kind.into()), scope));
        if let Err(panicked) = lost {
            log::error!("the protocol behind {} {panicked}", std::any::type_name::<S>());
        }
    }
}

impl<S: Server> Streams<S> {
    /// The response has switched, and what was in the way of the protocol has ended.
    pub(super) fn switch(
        &mut self,
        at: usize,
        seed: UpgradeSeed<S>,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        let child = &mut self.children[at];
        child.end_exchange();
        let input = std::mem::take(&mut child.input);
        let (is_secure, within) = (io.transport.is_secure(), io.config.stream());
        let mut part = io.scope.part(child.id);
        match part.guard(|scope| Layered::begin(seed, input, is_secure, &within, scope)) {
            Ok((layered, ran)) => {
                child.tunnel = Some(Box::new(Tunnel { layered, progress: Progress::Waits }));
                self.follow_tunnel(at, ran, io);
            }
            Err(panicked) => {
                note_panic::<S>(&panicked, io.config);
                child.code = ErrorCode::InternalError;
            }
        }
        if !self.children[at].state.is_receiving() {
            self.call_tunnel(at, io, |layered, scope| layered.input_ended(false, scope));
        }
    }

    /// Calls the protocol of a stream, if it is there, and puts in order what that led to. The child
    /// may be gone afterwards.
    pub(super) fn run_tunnel(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, S::Context>,
        call: impl FnOnce(&mut Layered<S::Upgrade>, &mut Scope<'_, S::Context>) -> Ran,
    ) {
        self.call_tunnel(at, io, call);
        self.settle(at, io);
    }

    /// A deadline of it has passed, or its turn has come again.
    pub(super) fn tunnel_is_due(&mut self, at: usize, io: &mut Io<'_, '_, '_, S::Context>) {
        let is_again =
            self.children[at].tunnel.as_ref().is_some_and(|own| own.progress == Progress::Again);
        match is_again {
            true => self.run_tunnel(at, io, Layered::pass),
            false => self.run_tunnel(at, io, Layered::timeout),
        }
    }

    fn call_tunnel(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, S::Context>,
        call: impl FnOnce(&mut Layered<S::Upgrade>, &mut Scope<'_, S::Context>) -> Ran,
    ) {
        let child = &mut self.children[at];
        let Some(tunnel) = &mut child.tunnel else { return };
        let mut part = io.scope.part(child.id);
        match part.guard(|scope| call(&mut tunnel.layered, scope)) {
            Ok(ran) => self.follow_tunnel(at, ran, io),
            Err(panicked) => {
                note_panic::<S>(&panicked, io.config);
                (child.tunnel, child.code) = (None, ErrorCode::InternalError);
            }
        }
    }

    fn follow_tunnel(&mut self, at: usize, ran: Ran, io: &mut Io<'_, '_, '_, S::Context>) {
        let child = &mut self.children[at];
        let Some(tunnel) = &mut child.tunnel else { return };
        tunnel.progress = match ran {
            Ran::Waits => Progress::Waits,
            Ran::Again => Progress::Again,
            Ran::Done => Progress::Done,
            Ran::Failed(error) => {
                note_failure(error, io.scope);
                // RFC 8441 §5: what would reset a connection of TCP.
                (child.tunnel, child.code) = (None, ErrorCode::Cancel);
                return;
            }
        };
        child.until = match tunnel.progress {
            Progress::Again => io.scope.now(),
            // The peer has all of it: from here on it is timed as behind a response.
            Progress::Done if child.state == StreamState::HalfClosedLocal => child.until,
            _ => tunnel.layered.deadline(),
        };
    }
}

fn note_failure<C>(error: Option<BoxError>, scope: &Scope<'_, C>) {
    if let Some(error) = error {
        let error = with_causes(&*error);
        log::error!("machine {}: a protocol on a stream has failed: {error}", scope.token());
    }
}
