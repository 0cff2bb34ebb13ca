//! Streams that have switched to another protocol.

use rotor_core::Scope;

use super::Streams;
use super::child::Child;
use crate::h2::{ErrorCode, StreamState};
use crate::server::config::ServerConfig;
use crate::server::counters::Counters;
use crate::server::handler::{Server, UpgradeSeed};
use crate::server::io::Io;
use crate::tunnel::{Event, Tunnel};

impl<S: Server> Child<S> {
    /// Ends the protocol at once, if there is one.
    pub(super) fn lose_tunnel(&mut self, scope: &mut Scope<'_, S::Context>) {
        if let Some(tunnel) = self.tunnel.take() {
            tunnel.lost(&mut scope.part(self.id));
        }
    }

    /// Ends the protocol, which is over or could not begin: its stream is to be reset with this
    /// code.
    fn end_tunnel(&mut self, code: ErrorCode, config: &ServerConfig) {
        (self.tunnel, self.code) = (None, code);
        if code == ErrorCode::InternalError {
            Counters::add(&config.counters_ref().panics);
        }
    }
}

impl<S: Server> Streams<S> {
    /// Starts the protocol after a response that has switched, with the input that has arrived for
    /// it.
    pub(super) fn start_tunnel(
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
        match Tunnel::start(seed, input, is_secure, &within, self.is_draining, &mut part) {
            Ok(tunnel) => child.tunnel = Some(tunnel),
            Err(code) => child.end_tunnel(code, io.config),
        }
        let event = match child.state.is_receiving() {
            true => Event::Pass,
            false => Event::InputEnded { is_truncated: false },
        };
        self.notify_tunnel(at, event, io);
    }

    /// Passes an event to the protocol of a stream, if there is one, and updates the child. The
    /// child may be gone afterwards.
    pub(super) fn run_tunnel(
        &mut self,
        at: usize,
        event: Event,
        io: &mut Io<'_, '_, '_, S::Context>,
    ) {
        self.notify_tunnel(at, event, io);
        self.update_child(at, io);
    }

    fn notify_tunnel(&mut self, at: usize, event: Event, io: &mut Io<'_, '_, '_, S::Context>) {
        let child = &mut self.children[at];
        let Some(tunnel) = &mut child.tunnel else { return };
        tunnel.set_input_held(io.transport.is_input_held());
        match tunnel.notify(event, &mut io.scope.part(child.id)) {
            // The peer has everything: from here on its time limit is that after a response.
            Ok(()) if tunnel.is_done() && child.state == StreamState::HalfClosedLocal => {}
            Ok(()) => child.until = tunnel.wake_time(io.scope.now()),
            Err(code) => child.end_tunnel(code, io.config),
        }
    }
}
