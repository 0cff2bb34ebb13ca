//! One stream: a request as it is sent, its response as it comes.

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Buf, Output, Transport};

use crate::client::config::ClientConfig;
use crate::client::exchange::Exchange;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::flow::Wait;
use crate::h2::{ErrorCode, Intake, ReceiveWindow, SendWindow, StreamState, WindowWatch};
use crate::tunnel::Tunnel;

/// A stream. What goes on in it is an exchange as on HTTP/1.1, on an input and an output of its
/// own.
pub(super) struct Child<K: Client> {
    /// Its number among the parts of the machine: streams get theirs only when they begin.
    pub(super) key: u32,
    /// The stream, once its head is sent.
    pub(super) stream: Option<u32>,
    pub(super) state: StreamState,
    /// Absent once the handler is done.
    pub(super) exchange: Option<Box<Exchange<K>>>,
    /// What the stream goes on in, once the server has agreed.
    pub(super) tunnel: Option<Box<Tunnel<K::Upgrade>>>,
    /// It was asked to go on in another protocol, and the server has not said no: our side stays
    /// open.
    pub(super) asks_protocol: bool,
    /// Octets of the body that have come and were not taken.
    pub(super) input: Buf,
    /// The request, as text as far as it is fields: they are encoded when they are sent.
    pub(super) output: Output,
    /// It is in the schedule.
    pub(super) is_scheduled: bool,
    pub(super) intake: Intake,
    pub(super) outbound: SendWindow,
    /// What the exchange waits for.
    pub(super) wait: Wait,
    /// Until when it waits; `NEVER` for none.
    pub(super) until: Time,
    /// How fast the server takes the request, while its windows hold that up.
    pub(super) taking: WindowWatch,
    /// Why the stream is reset, where it is cut.
    pub(super) code: ErrorCode,
}

impl<K: Client> Child<K> {
    pub(super) fn new(
        key: u32,
        exchange: Box<Exchange<K>>,
        outbound: SendWindow,
        config: &ClientConfig,
    ) -> Box<Child<K>> {
        Box::new(Child {
            key,
            stream: None,
            state: StreamState::Open,
            exchange: Some(exchange),
            tunnel: None,
            asks_protocol: false,
            input: Buf::new(),
            output: Output::new(),
            is_scheduled: false,
            intake: Intake::new(config.http2_ref().stream_window, None),
            outbound,
            wait: Wait::AS_BEFORE,
            until: Time::NEVER,
            taking: WindowWatch::NONE,
            code: ErrorCode::Cancel,
        })
    }

    /// Calls the exchange, if it is there, in the scope's part of this stream.
    pub(super) fn step<R>(
        &mut self,
        scope: &mut Scope<'_, K::Context>,
        config: &ClientConfig,
        step: impl FnOnce(&mut Exchange<K>, &mut Io<'_, '_, '_, K::Context>) -> R,
    ) -> Option<R> {
        let exchange = self.exchange.as_mut()?;
        let mut transport = Transport::detached(&mut self.input, &mut self.output);
        let mut part = scope.part(self.key);
        let mut io = Io { transport: &mut transport, scope: &mut part, config };
        Some(step(exchange, &mut io))
    }

    /// Whether what is sent is written to its end.
    pub(super) fn is_complete(&mut self) -> bool {
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.has_ended_output();
        }
        !self.asks_protocol
            && self.exchange.as_ref().is_some_and(|exchange| exchange.request().is_done())
    }

    /// Whether both messages are there, and nothing is to come but END_STREAM, in a frame of its own.
    pub(super) fn lacks_only_its_end(&self) -> bool {
        self.state == StreamState::HalfClosedLocal
            && self.intake.is_whole()
            && self.exchange.as_ref().is_some_and(|exchange| !exchange.is_expected())
    }

    /// Whether nobody goes on with it, and it waits for its end.
    pub(super) fn is_left(&self) -> bool {
        self.exchange.is_none() && self.tunnel.is_none()
    }

    /// Whether the head of the request is written.
    pub(super) fn is_head_done(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.request().is_head_done())
    }

    /// Whether it asks for another protocol, if the server allows that: a GET alone, as in
    /// HTTP/1.1.
    pub(super) fn offers_upgrade(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| {
            let request = exchange.request();
            request.offers_upgrade() && request.is_done() && request.is_idempotent()
        })
    }

    /// Octets of trailer fields, behind the body, in the output.
    pub(super) fn trailers_len(&self) -> usize {
        self.exchange.as_ref().map_or(0, |exchange| exchange.request().trailers_len())
    }

    /// Octets of body that wait, behind the head.
    pub(super) fn body_left(&mut self) -> usize {
        if self.stream.is_none() {
            return 0;
        }
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.output().len();
        }
        self.output.len().saturating_sub(self.trailers_len())
    }

    /// Where what follows the head waits, and the window in which it is sent.
    pub(super) fn body_and_window(&mut self) -> (&mut Output, &mut SendWindow) {
        let body = match &mut self.tunnel {
            Some(tunnel) => tunnel.output(),
            None => &mut self.output,
        };
        (body, &mut self.outbound)
    }

    /// Octets of the input that still count against the windows.
    pub(super) fn untaken(&mut self) -> usize {
        match &mut self.tunnel {
            Some(tunnel) => tunnel.untaken(),
            None => self.input.len(),
        }
    }

    /// Gives back to the windows what was taken of the input.
    pub(super) fn release(&mut self, connection: &mut ReceiveWindow) {
        let is_wanted = self.exchange.as_ref().is_some_and(|exchange| exchange.is_receiving());
        let untaken = self.untaken();
        self.intake.release(untaken, is_wanted, connection);
    }

    /// The exchange waits.
    pub(super) fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
        match wait.deadline() {
            Deadline::Keep => {}
            Deadline::Never => self.until = Time::NEVER,
            Deadline::At(time) => self.until = time,
        }
    }

    /// Whether the exchange is to be told that there is room again.
    pub(super) fn is_flushed(&self) -> bool {
        self.exchange.is_some()
            && self.wait.flush_left().is_some_and(|left| self.output.len() <= left)
    }

    /// The first moment at which it is late, in one way or another.
    pub(super) fn deadline(&self) -> Time {
        self.until.min(self.taking.until())
    }
}
