//! `BufferedIo`: a socket and its two buffers, and what is known about the socket. How they are
//! used is in `reading` and `writing`.

pub(super) mod reading;
pub(super) mod writing;

use std::io;
use std::sync::Arc;

use rotor_core::EventSet;
use rotor_core::net::StreamSocket;

use crate::buf::Buf;
use crate::least_rate::RateWatch;
use crate::limits::StreamConfig;
use crate::output::Output;
use crate::status::{Flags, ReadSide, Status};
use crate::transport::Transport;

pub(super) struct BufferedIo<S> {
    pub(super) socket: S,
    pub(super) input: Buf,
    pub(super) output: Output,
    pub(super) status: Status,
    /// How fast the output that waits is taken.
    pub(super) taking: RateWatch,
    /// Why writing has failed: what the peer sent before that is still handed out.
    pub(super) broken: Option<io::Error>,
}

impl<S> BufferedIo<S> {
    /// The loop drains, and there is no protocol yet to tell of it.
    pub(super) fn set_drain_pending(&mut self, yes: bool) {
        self.status.flags.set(Flags::DRAIN_PENDING, yes);
    }

    pub(super) fn drain_pending(&self) -> bool {
        self.status.flags.has(Flags::DRAIN_PENDING)
    }
}

impl<S: StreamSocket> BufferedIo<S> {
    /// Around a socket that is about to be registered: the first event tells what can be done with
    /// it.
    pub(super) fn new(socket: S, config: Arc<StreamConfig>) -> BufferedIo<S> {
        BufferedIo {
            socket,
            input: Buf::new(),
            output: Output::new(),
            status: Status::new(config),
            taking: RateWatch::NONE,
            broken: None,
        }
    }

    /// Sets the options of a connected socket, and notes that it can be written to. An option that
    /// the system refuses is no reason to refuse the peer.
    pub(super) fn connected(&mut self) {
        // No edge need come for the room that a new connection has.
        self.status.writable = true;
        if self.status.config.nodelay
            && let Err(error) = self.socket.set_nodelay(true)
        {
            log::debug!("TCP_NODELAY cannot be set: {error}");
        }
        if self.status.config.keepalive.is_some()
            && let Err(error) = self.socket.set_keepalive(self.status.config.keepalive)
        {
            log::debug!("SO_KEEPALIVE cannot be set: {error}");
        }
        self.set_buffers();
    }

    fn set_buffers(&self) {
        let (socket, config) = (&self.socket, &self.status.config);
        let options = [
            ("SO_SNDBUF", config.send_buffer.map(|bytes| socket.set_send_buffer(bytes))),
            ("SO_RCVBUF", config.receive_buffer.map(|bytes| socket.set_receive_buffer(bytes))),
            ("TCP_NOTSENT_LOWAT", config.unsent_max.map(|bytes| socket.set_unsent_max(bytes))),
        ];
        for (name, result) in options {
            if let Some(Err(error)) = result {
                log::debug!("{name} cannot be set: {error}");
            }
        }
    }

    /// The handshake has ended: a wrapping socket may have read beyond it, of which no event tells.
    pub(super) fn handshake_ended(&mut self) {
        self.status.readable |= self.socket.holds_input();
    }

    #[inline]
    pub(super) fn transport(&mut self) -> Transport<'_> {
        Transport::new(&mut self.input, &mut self.output, &self.socket, &mut self.status)
    }

    /// Notes what an event says.
    #[inline]
    pub(super) fn note(&mut self, events: EventSet) {
        if events.is_readable() {
            self.status.readable = !self.status.read_side.has_ended();
            // A wrapping socket may have had to read before it could write.
            self.status.writable |= self.socket.wants_read();
        }
        self.status.writable |= events.is_writable();
        // An urgent byte ends a read before it, as an end would: a short read proves nothing there.
        if events.is_closing() || events.contains(EventSet::URGENT) {
            if events.contains(EventSet::ERROR) {
                self.status.flags.set(Flags::ERROR_TOLD, true);
            }
            self.note_hang_up();
        }
    }

    /// The error that an event told of and that no read or write will fetch, since neither is
    /// wanted.
    #[cold]
    pub(super) fn take_told_error(&mut self) -> Option<io::Error> {
        if !self.is_error_told() {
            return None;
        }
        // Asking clears it (`SO_ERROR`, socket(7)): there is no second time.
        self.status.flags.set(Flags::ERROR_TOLD, false);
        self.socket.take_error().ok().flatten()
    }

    pub(super) fn is_error_told(&self) -> bool {
        self.status.flags.has(Flags::ERROR_TOLD)
    }

    /// Whether the protocol may be given input: not while its output is above the mark.
    #[inline]
    pub(super) fn takes_input(&mut self) -> bool {
        let is_below = self.output.len() <= self.status.config.output_high_water;
        // Nearly always.
        is_below && !self.status.flags.has(Flags::IS_GATED) || self.takes_input_again()
    }

    /// Whether it takes none in before more of the output is taken.
    pub(super) fn is_gated(&self) -> bool {
        self.status.flags.has(Flags::IS_GATED)
            || self.output.len() > self.status.config.output_high_water
    }

    /// The same where the output is above the mark, or was: half of the mark is where input is
    /// welcome again, so that each few bytes that leave do not bring an answer more.
    #[cold]
    fn takes_input_again(&mut self) -> bool {
        let mark = self.status.config.output_high_water;
        let limit = if self.status.flags.has(Flags::IS_GATED) { mark / 2 } else { mark };
        let is_gated = self.output.len() > limit;
        self.status.flags.set(Flags::IS_GATED, is_gated);
        !is_gated
    }

    /// Bytes of memory in the buffers, and in a wrapping socket.
    pub(super) fn held_bytes(&self) -> usize {
        self.input.capacity() + self.output.held_bytes() + self.socket.held_bytes()
    }

    /// Whether nothing can be read, and the protocol may be given input: it
    /// takes an event to change that.
    #[inline]
    pub(super) fn is_input_at_rest(&self) -> bool {
        !self.status.readable
            && !self.status.flags.has(Flags::IS_GATED)
            && self.status.read_side == ReadSide::Open
    }

    /// Gives back what an idle stream does not need, and counts what it keeps. Returns whether
    /// there is room for that; less than before always has.
    #[inline]
    pub(super) fn settle(&mut self) -> bool {
        // Nearly always: a buffer without bytes holds no memory.
        let is_empty = self.input.is_empty() && self.output.is_empty();
        if is_empty && self.status.holds_nothing() && self.socket.held_bytes() == 0 {
            return true;
        }
        self.hold_what_waits()
    }

    fn hold_what_waits(&mut self) -> bool {
        self.input.shrink();
        let of_socket = self.socket.held_bytes();
        self.status.hold(self.input.capacity() + self.output.held_bytes() + of_socket)
    }
}
