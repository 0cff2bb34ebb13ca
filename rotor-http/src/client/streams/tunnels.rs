//! Streams that were upgraded to another protocol.

use rotor_core::Scope;

use super::Streams;
use super::child::Child;
use crate::client::counters::Counters;
use crate::client::exchange::UpgradeSeed;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::h2::ErrorCode;
use crate::tunnel::{Event, Tunnel};

impl<K: Client> Child<K> {
    /// Ends the protocol at once, if there is one.
    pub(super) fn lose_tunnel(&mut self, scope: &mut Scope<'_, K::Context>) {
        if let Some(tunnel) = self.tunnel.take() {
            tunnel.lost(&mut scope.part(self.key));
        }
    }

    /// Returns whether the protocol is done, and all of its output was sent.
    fn has_sent_all(&self) -> bool {
        !self.state.is_sending() && self.tunnel.as_ref().is_some_and(|tunnel| tunnel.is_done())
    }
}

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Begins the protocol, with the data that has arrived for it, after both the server and the
    /// handler have agreed.
    pub(super) fn begin_tunnel(
        &mut self,
        at: usize,
        seed: UpgradeSeed<K>,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &mut self.children[at];
        child.exchange = None;
        let input = std::mem::take(&mut child.input);
        let (is_secure, within) = (io.transport.is_secure(), io.config.upgraded_stream_config());
        let mut part = io.scope.part(child.key);
        match Tunnel::start(seed, input, is_secure, &within, self.is_draining, &mut part) {
            Ok(tunnel) => child.tunnel = Some(tunnel),
            Err(code) => return self.end_tunnel(at, code, io),
        }
        let event = match child.state.is_receiving() {
            true => Event::Pass,
            false => Event::InputEnded { is_truncated: false },
        };
        self.run_tunnel(at, event, io);
    }

    /// Passes an event to the protocol of a stream, if there is one, and applies the results. The
    /// child may be gone afterwards.
    pub(super) fn run_tunnel(
        &mut self,
        at: usize,
        event: Event,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        let child = &mut self.children[at];
        let has_ended = !child.state.is_sending();
        let Some(tunnel) = &mut child.tunnel else { return };
        tunnel.set_input_held(io.transport.is_input_held());
        match tunnel.notify(event, &mut io.scope.part(child.key)) {
            Ok(()) if tunnel.is_done() && has_ended => {
                if !child.state.is_receiving() || self.is_read_closed {
                    return self.remove_child(at, io);
                }
                // What the server still sends is read and dropped for this time.
                child.until = child.until.min(io.scope.now() + io.config.limits.shutdown_timeout);
            }
            Ok(()) => child.until = tunnel.wake_time(io.scope.now()),
            Err(code) => {
                child.tunnel = None;
                return self.end_tunnel(at, code, io);
            }
        }
        self.update_child(at, io);
    }

    /// Ends a stream that was reset, or whose connection is lost. The child stays while its protocol
    /// holds back what had arrived before.
    pub(super) fn reset_tunnel(&mut self, at: usize, io: &mut Io<'_, '_, '_, K::Context>) {
        self.close_stream(at, io);
        self.run_tunnel(at, Event::Reset, io);
    }

    /// Handles a deadline: one of the protocol, or the end of the wait for the server.
    pub(super) fn tunnel_deadline_passed(
        &mut self,
        at: usize,
        io: &mut Io<'_, '_, '_, K::Context>,
    ) {
        match self.children[at].has_sent_all() {
            true => self.remove_child(at, io),
            false => self.run_tunnel(at, Event::Due, io),
        }
    }

    /// Tells all protocols of a drain, if they are still to be told.
    pub(super) fn drain_tunnels(&mut self, io: &mut Io<'_, '_, '_, K::Context>) {
        let Some(drain) = self.tunnel_drain.take() else { return };
        for at in (0..self.children.len()).rev() {
            if self.children[at].tunnel.is_some() {
                self.run_tunnel(at, Event::Draining(drain.until), io);
            }
        }
    }

    fn end_tunnel(&mut self, at: usize, code: ErrorCode, io: &mut Io<'_, '_, '_, K::Context>) {
        if code == ErrorCode::InternalError {
            Counters::add(&io.config.counters_ref().panics);
        }
        self.children[at].code = code;
        self.remove_child(at, io);
    }
}
