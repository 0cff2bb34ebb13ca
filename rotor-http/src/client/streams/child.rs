//! `Child`: one stream, with its request as it is sent, and its response as it is received.

use rotor_core::{Deadline, Scope, Time};
use rotor_stream::{Buf, Output, Transport};

use super::held_heads::{HeldHeads, ReceivedHead};
use crate::client::config::ClientConfig;
use crate::client::exchange::Exchange;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::flow::Wait;
use crate::h2::{ErrorCode, Intake, ReceiveWindow, SendWindow, StreamState, Turn, WindowWatch};
use crate::semantics::trailers::Trailers;
use crate::tunnel::Tunnel;

/// A stream. It has an exchange like those of HTTP/1.1, with an input and an output of its own.
pub(super) struct Child<K: Client> {
    /// Its number among the parts of the machine. The stream gets its number only when it begins.
    pub(super) key: u32,
    /// The number of the stream, once its head is sent.
    pub(super) stream: Option<u32>,
    pub(super) state: StreamState,
    /// Absent once the handler is done.
    pub(super) exchange: Option<Box<Exchange<K>>>,
    /// The protocol to which the stream was upgraded, once the server has agreed.
    pub(super) tunnel: Option<Box<Tunnel<K::Upgrade>>>,
    /// Whether the request asked for another protocol, and the server has not refused. If so, our
    /// side of the stream stays open.
    pub(super) is_extended_connect: bool,
    /// Heads that the handler holds off.
    pub(super) held_heads: Option<Box<HeldHeads>>,
    /// Bytes of the body that were received but not taken by the handler.
    pub(super) input: Buf,
    /// The request. Its fields are text, which is encoded when it is sent.
    pub(super) output: Output,
    /// Whether it is in the schedule.
    pub(super) is_scheduled: bool,
    pub(super) turn: Turn,
    pub(super) intake: Intake,
    pub(super) outbound: SendWindow,
    /// Whether output was dropped because the server does not want it, and the handler may wait
    /// until it is sent.
    pub(super) has_discarded: bool,
    /// What the exchange waits for.
    pub(super) wait: Wait,
    /// Until when the exchange waits; `NEVER` for no deadline.
    pub(super) until: Time,
    /// How fast the server takes the request while its windows limit that.
    pub(super) send_watch: WindowWatch,
    /// The error code if the stream is reset.
    pub(super) code: ErrorCode,
    /// Whether its reset was counted when it began.
    pub(super) is_reset_counted: bool,
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
            is_extended_connect: false,
            held_heads: None,
            input: Buf::new(),
            output: Output::new(),
            is_scheduled: false,
            turn: Turn::default(),
            intake: Intake::new(config.http2_ref().stream_window, None),
            outbound,
            has_discarded: false,
            wait: Wait::UNCHANGED,
            until: Time::NEVER,
            send_watch: WindowWatch::NONE,
            code: ErrorCode::Cancel,
            is_reset_counted: false,
        })
    }

    /// Calls the exchange, if it is there, in the part of the scope for this stream.
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

    /// Returns whether everything that is to be sent has been written.
    pub(super) fn is_complete(&mut self) -> bool {
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.has_ended_output();
        }
        !self.is_extended_connect
            && self.exchange.as_ref().is_some_and(|exchange| exchange.request().is_done())
    }

    /// Returns whether request and response are complete, and only END_STREAM is missing, in a
    /// frame of its own.
    pub(super) fn lacks_only_end_stream(&self) -> bool {
        self.state == StreamState::HalfClosedLocal
            && self.intake.is_complete()
            && self.exchange.as_ref().is_some_and(|exchange| !exchange.awaits_head())
    }

    /// Returns whether the exchange is over, and the stream only waits for its end.
    pub(super) fn is_handler_done(&self) -> bool {
        self.exchange.is_none() && self.tunnel.is_none()
    }

    /// Returns whether its response has arrived completely, and its handler has not got all of it,
    /// or goes on although nothing is missing of request and response.
    pub(super) fn outlives_connection(&self) -> bool {
        !self.state.is_receiving()
            && self.exchange.as_ref().is_some_and(|exchange| {
                self.held_heads.is_some() || exchange.outlives_connection(!self.output.is_empty())
            })
    }

    /// Returns whether the head of the request is written.
    pub(super) fn is_head_done(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.request().is_head_done())
    }

    /// Returns whether the request asks for another protocol, if the server allows that. This must
    /// be a GET without a body, as in HTTP/1.1.
    pub(super) fn offers_upgrade(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| {
            let request = exchange.request();
            request.offers_upgrade() && request.is_done() && request.is_idempotent()
        })
    }

    /// Returns how many bytes of trailer fields follow the body in the output.
    pub(super) fn trailers_len(&self) -> usize {
        self.exchange.as_ref().map_or(0, |exchange| exchange.request().trailers_len())
    }

    /// Returns how many bytes of the body wait behind the head.
    pub(super) fn unsent_body_len(&mut self) -> usize {
        if self.stream.is_none() {
            return 0;
        }
        if let Some(tunnel) = &mut self.tunnel {
            return tunnel.output().len();
        }
        self.output.len().saturating_sub(self.trailers_len())
    }

    /// Returns how many bytes of memory it holds.
    pub(super) fn held_bytes(&self) -> usize {
        let heads = self.held_heads.as_ref().map_or(0, |held| held.held_bytes());
        self.input.capacity() + self.output.held_bytes() + heads
    }

    /// Returns whether the final head of the response is still to arrive.
    pub(super) fn awaits_head(&self) -> bool {
        match &self.held_heads {
            Some(held) => held.awaits_final(),
            None => self.exchange.as_ref().is_some_and(|exchange| exchange.awaits_head()),
        }
    }

    /// Returns whether a head that arrives now must wait.
    pub(super) fn holds_head(&self) -> bool {
        self.held_heads.is_some()
            || self.exchange.as_ref().is_some_and(|exchange| exchange.holds_head())
    }

    /// Keeps a head for which its handler is not ready. Returns how many interim heads the response
    /// has had so far.
    pub(super) fn hold_head(&mut self, head: ReceivedHead) -> u32 {
        let delivered = self.exchange.as_ref().map_or(0, |exchange| exchange.interim_count());
        let held = self.held_heads.get_or_insert_default();
        held.push(head);
        delivered + held.interim_count()
    }

    /// Records that the response has ended. Returns the trailers if the exchange can be told.
    pub(super) fn end_behind_held_heads(&mut self, trailers: Trailers) -> Option<Trailers> {
        let Some(held) = &mut self.held_heads else { return Some(trailers) };
        held.set_end(trailers);
        None
    }

    /// Returns the next head that waits, once the handler goes on.
    pub(super) fn next_held_head(&mut self) -> Option<ReceivedHead> {
        let held = self.held_heads.as_mut()?;
        if self.exchange.as_ref().is_none_or(|exchange| exchange.holds_head()) {
            return None;
        }
        let head = held.pop();
        if held.is_empty() {
            self.held_heads = None;
        }
        head
    }

    /// Returns where the data after the head waits, and the window in which it is sent.
    pub(super) fn body_and_window(&mut self) -> (&mut Output, &mut SendWindow) {
        let body = match &mut self.tunnel {
            Some(tunnel) => tunnel.output(),
            None => &mut self.output,
        };
        (body, &mut self.outbound)
    }

    /// Returns how many bytes of the input still count against the windows.
    pub(super) fn unconsumed_len(&mut self) -> usize {
        match &mut self.tunnel {
            Some(tunnel) => tunnel.unreleased_bytes(),
            None => self.input.len(),
        }
    }

    /// Returns the taken part of the input to the windows.
    pub(super) fn release(&mut self, connection: &mut ReceiveWindow) {
        let is_wanted = self.exchange.as_ref().is_some_and(|exchange| exchange.is_receiving());
        let unconsumed_len = self.unconsumed_len();
        self.intake.release(unconsumed_len, is_wanted, connection);
    }

    /// Records what the exchange waits for.
    pub(super) fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
        match wait.deadline() {
            Deadline::Keep => {}
            Deadline::Never => self.until = Time::NEVER,
            Deadline::At(time) => self.until = time,
        }
    }

    /// Returns whether the exchange must be told that there is room again.
    pub(super) fn needs_flush_call(&self) -> bool {
        self.exchange.is_some()
            && self.wait.flush_left().is_some_and(|left| self.output.len() <= left)
    }

    /// Drops the output, because the server does not want the rest of the request. For a handler
    /// that has more to write, this is as if the output had been sent: it is told after the other
    /// streams, and may still finish with its response.
    pub(super) fn discard_output(&mut self, now: Time) {
        let has_more = self.exchange.as_ref().is_some_and(|exchange| !exchange.request().is_done());
        self.has_discarded |= has_more && !self.output.is_empty();
        self.output.truncate(0);
        if self.has_discarded {
            self.until = now;
        }
    }

    /// Returns the earliest of its deadlines.
    pub(super) fn deadline(&self) -> Time {
        self.until.min(self.send_watch.until())
    }
}
