//! `BufferedIo`: a socket, its two buffers, and what is known about the socket. `reading` and
//! `writing` use them.

pub(super) mod reading;
pub(super) mod writing;

use std::io;
use std::sync::Arc;

use rotor_core::EventSet;
use rotor_core::net::StreamSocket;

use super::pass::Pass;
use crate::buf::Buf;
use crate::error::Fatal;
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
    /// Watches how fast waiting output is taken.
    pub(super) write_rate: RateWatch,
    /// That no more output can be written; input that the peer sent before is still delivered.
    pub(super) write_failure: Option<Box<WriteFailure>>,
}

/// Why no more output can be written, and what may still follow.
pub(super) struct WriteFailure {
    /// What the protocol is told. It need not be an error of writing: a read may find the reset.
    pub(super) error: Fatal,
    /// How many more times a protocol that holds its input is told of room for its output.
    pub(super) flushes_left: u32,
}

impl<S> BufferedIo<S> {
    /// Notes whether the loop drains while there is no protocol yet.
    pub(super) fn set_drain_pending(&mut self, yes: bool) {
        self.status.flags.set(Flags::DRAIN_PENDING, yes);
    }

    pub(super) fn drain_pending(&self) -> bool {
        self.status.flags.has(Flags::DRAIN_PENDING)
    }
}

impl<S: StreamSocket> BufferedIo<S> {
    /// Wraps a socket that is about to be registered; its first event shows what can be done with
    /// it.
    pub(super) fn new(socket: S, config: Arc<StreamConfig>) -> BufferedIo<S> {
        BufferedIo {
            socket,
            input: Buf::new(),
            output: Output::new(),
            status: Status::new(config),
            write_rate: RateWatch::NONE,
            write_failure: None,
        }
    }

    /// Sets the options of a connected socket, and notes that it can be written to. If the system
    /// refuses an option, the connection is kept anyway.
    pub(super) fn on_connected(&mut self) {
        // There may be no edge for the room of a new connection.
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
        self.set_buffer_options();
    }

    fn set_buffer_options(&self) {
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

    /// Notes that the handshake has ended: a wrapping socket may have read beyond it, which no
    /// event reports.
    pub(super) fn on_handshake_ended(&mut self) {
        let is_drained = self.is_open() && self.socket.handshake_has_drained();
        self.status.readable &= !is_drained;
        self.status.readable |= self.socket.holds_input();
    }

    /// Returns whether calling the handshake would achieve nothing: there was no event since it
    /// emptied the socket, or none at all.
    pub(super) fn is_handshake_blocked(&self) -> bool {
        !self.status.readable && self.socket.handshake_has_drained()
    }

    /// Notes that the handshake waits. Returns whether it must be called once more first, because
    /// it stopped after a short read, and an end or an urgent byte follows those bytes.
    pub(super) fn handshake_needs_retry(&mut self) -> bool {
        if !self.socket.handshake_has_drained() {
            return false;
        }
        self.status.readable &= !self.is_open();
        !self.is_open()
    }

    /// Returns whether no event has reported an end of the peer's side, or an urgent byte.
    fn is_open(&self) -> bool {
        self.status.read_side == ReadSide::Open
    }

    #[inline]
    pub(super) fn transport(&mut self) -> Transport<'_> {
        Transport::new(&mut self.input, &mut self.output, &self.socket, &mut self.status, None)
    }

    /// The same for a call within a pass, whose budget the call may use up.
    #[inline]
    pub(super) fn transport_in_pass<'a>(&'a mut self, pass: &'a mut Pass) -> Transport<'a> {
        let calls = Some(&mut pass.calls_left);
        Transport::new(&mut self.input, &mut self.output, &self.socket, &mut self.status, calls)
    }

    /// Notes what an event reports.
    #[inline]
    pub(super) fn record_events(&mut self, events: EventSet) {
        if events.is_readable() {
            self.status.readable = !self.status.read_side.has_ended();
            // A wrapping socket may have had to read before it could write.
            self.status.writable |= self.socket.wants_read();
        }
        self.status.writable |= events.is_writable();
        // A read stops before an urgent byte, as it does at an end, so a short read proves nothing
        // then.
        if events.is_closing() || events.contains(EventSet::URGENT) {
            if events.contains(EventSet::ERROR) {
                self.status.flags.set(Flags::ERROR_REPORTED, true);
            }
            self.mark_hang_up();
        }
    }

    /// Returns an error that an event reported, and that no read or write will return because
    /// neither is wanted.
    #[cold]
    pub(super) fn take_reported_error(&mut self) -> Option<io::Error> {
        if !self.has_reported_error() {
            return None;
        }
        // Reading the error clears it (`SO_ERROR`, socket(7)), so it can be read only once.
        self.status.flags.set(Flags::ERROR_REPORTED, false);
        self.socket.take_error().ok().flatten()
    }

    pub(super) fn has_reported_error(&self) -> bool {
        self.status.flags.has(Flags::ERROR_REPORTED)
    }

    /// Returns whether the protocol may be given input: not while its output is above the mark.
    #[inline]
    pub(super) fn can_deliver_input(&mut self) -> bool {
        let is_below = self.output.len() <= self.status.config.output_high_water;
        // The usual case.
        is_below && !self.status.flags.has(Flags::IS_GATED) || self.update_gate()
    }

    /// Returns whether the protocol gets no input before more of the output is taken.
    pub(super) fn is_gated(&self) -> bool {
        self.status.flags.has(Flags::IS_GATED)
            || self.output.len() > self.status.config.output_high_water
    }

    /// Decides the same if the output is above the mark, or was. Input is delivered again at half
    /// of the mark, so that not every few bytes that are written cause one more answer.
    #[cold]
    fn update_gate(&mut self) -> bool {
        let mark = self.status.config.output_high_water;
        let limit = if self.status.flags.has(Flags::IS_GATED) { mark / 2 } else { mark };
        let is_gated = self.output.len() > limit;
        self.status.flags.set(Flags::IS_GATED, is_gated);
        !is_gated
    }

    /// Returns how many bytes of memory the buffers and a wrapping socket hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.input.capacity() + self.output.held_bytes() + self.socket.held_bytes()
    }

    /// Returns whether nothing can be read although the protocol may be given input, which only an
    /// event can change.
    #[inline]
    pub(super) fn is_input_idle(&self) -> bool {
        !self.status.readable
            && !self.status.flags.has(Flags::IS_GATED)
            && self.status.read_side == ReadSide::Open
    }

    /// Gives back memory that an idle stream does not need, and counts the rest. Returns whether
    /// there is room for that; there always is if it is less than before.
    #[inline]
    pub(super) fn account_memory(&mut self) -> bool {
        // The usual case: a buffer without bytes holds no memory.
        let is_empty = self.input.is_empty() && self.output.is_empty();
        if is_empty && self.status.holds_nothing() && self.socket.held_bytes() == 0 {
            return true;
        }
        self.account_waiting_buffers()
    }

    fn account_waiting_buffers(&mut self) -> bool {
        self.input.shrink();
        let of_socket = self.socket.held_bytes();
        self.status.set_held(self.input.capacity() + self.output.held_bytes() + of_socket)
    }

    /// Makes the connection end by a reset when it is dropped, which happens next.
    #[cold]
    pub(super) fn reset(&mut self) {
        if let Err(error) = self.socket.reset() {
            log::debug!("the connection ends without a reset: {error}");
        }
    }

    /// The same if the protocol's output was not all taken, or part of it was lost: the peer would
    /// assume that it was complete. After a failed write nothing waits any more, but the connection
    /// may still exist, for example if a file has become shorter.
    #[cold]
    pub(super) fn reset_if_unsent(&mut self) {
        if self.has_output() || self.output.is_incomplete() || self.write_failure.is_some() {
            self.reset();
        }
    }
}
