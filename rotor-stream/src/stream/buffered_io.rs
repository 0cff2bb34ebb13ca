//! `BufferedIo`: a socket and its two buffers, and what is known about the socket. How they are used
//! is in `reading` and `writing`.

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
use crate::transport::Transport;

pub(super) struct BufferedIo<S> {
    pub(super) socket: S,
    pub(super) input: Buf,
    pub(super) output: Output,
    pub(super) config: Arc<StreamConfig>,
    /// How fast the output that waits is taken.
    pub(super) taking: RateWatch,
    /// What both buffers held when the stream last waited, in units of 64 bytes: what is counted in
    /// the total. Here and not in a buffer, which a protocol may exchange for another one; and in
    /// four bytes, which find room beside a socket's descriptor.
    held_units: u32,
    /// There may be something to read for which no further edge will come.
    readable: bool,
    /// There may be room to write for which no further edge will come.
    writable: bool,
    flags: Flags,
    pub(super) read_side: ReadSide,
    /// Why writing has failed: what the peer sent before that is still handed out.
    pub(super) broken: Option<io::Error>,
}

/// What else is known, a bit for each: so that all of it and the count of what is held take the
/// eight bytes that they have.
#[derive(Clone, Copy)]
struct Flags(u8);

impl Flags {
    /// The last read got as much as it had room for.
    const WAS_FILLED: Flags = Flags(1);
    /// A wrapping socket holds bytes that it could not write yet.
    const HOLDS_OUTPUT: Flags = Flags(2);
    /// The output has passed its high-water mark and is not yet down to half of it.
    const IS_GATED: Flags = Flags(4);
    /// An event told of an error that nobody has asked for yet.
    const ERROR_TOLD: Flags = Flags(8);
    /// The loop drains, which there was no protocol to tell of.
    const DRAIN_PENDING: Flags = Flags(16);

    const NONE: Flags = Flags(0);

    /// Whether any of these is set.
    #[inline(always)]
    fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    #[inline(always)]
    fn set(&mut self, flag: Flags, yes: bool) {
        // Few change in an event: a look is cheaper than working the bit out.
        if self.has(flag) != yes {
            self.0 ^= flag.0;
        }
    }
}

/// What is known of the peer's side: from bad to worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum ReadSide {
    Open,
    /// The peer has hung up, or is about to: an event told of an end, an error or an urgent byte,
    /// which follows the bytes that are still to be read. From now on a short read says nothing.
    HangUpSeen,
    /// The end was read; nothing more will be.
    Ended,
    /// So it was, and a wrapping socket says that something before it is missing.
    Truncated,
}

impl ReadSide {
    #[inline]
    pub(super) fn has_ended(self) -> bool {
        self >= ReadSide::Ended
    }
}

/// What buffers hold is counted in units of so many bytes: the least that an input takes.
const UNIT_BYTES: usize = 64;

fn units_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

impl<S> BufferedIo<S> {
    /// The loop drains, and there is no protocol yet to tell of it.
    pub(super) fn set_drain_pending(&mut self, yes: bool) {
        self.flags.set(Flags::DRAIN_PENDING, yes);
    }

    pub(super) fn drain_pending(&self) -> bool {
        self.flags.has(Flags::DRAIN_PENDING)
    }

    /// Holds so much of the total from now on, if there is one and it has room.
    #[cold]
    fn hold(&mut self, units: u32) -> bool {
        let Some(total) = &self.config.held else { return true };
        let bytes = |units| units as usize * UNIT_BYTES;
        let has_room = total.change(bytes(self.held_units), bytes(units)).is_ok();
        if has_room {
            self.held_units = units;
        }
        has_room
    }
}

/// However the stream ends, what it held is given back.
impl<S> Drop for BufferedIo<S> {
    #[inline]
    fn drop(&mut self) {
        if self.held_units > 0 {
            self.hold(0);
        }
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
            config,
            taking: RateWatch::NONE,
            held_units: 0,
            readable: false,
            writable: false,
            flags: Flags::NONE,
            read_side: ReadSide::Open,
            broken: None,
        }
    }

    /// Sets the options of a connected socket, and notes that it can be written to. An option that
    /// the system refuses is no reason to refuse the peer.
    pub(super) fn connected(&mut self) {
        // No edge need come for the room that a new connection has.
        self.writable = true;
        if self.config.nodelay
            && let Err(error) = self.socket.set_nodelay(true)
        {
            log::debug!("TCP_NODELAY cannot be set: {error}");
        }
        if self.config.keepalive.is_some()
            && let Err(error) = self.socket.set_keepalive(self.config.keepalive)
        {
            log::debug!("SO_KEEPALIVE cannot be set: {error}");
        }
        self.set_buffers();
    }

    fn set_buffers(&self) {
        let (socket, config) = (&self.socket, &self.config);
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
        self.readable |= self.socket.holds_input();
    }

    #[inline]
    pub(super) fn transport(&mut self) -> Transport<'_> {
        // While the protocol waits for no input, nobody else looks whether the output has come
        // down.
        let is_held = self.flags.has(Flags::IS_GATED)
            && self.output.len() > self.config.output_high_water / 2;
        Transport::new(&mut self.input, &mut self.output, &self.socket, is_held)
    }

    /// Notes what an event says.
    #[inline]
    pub(super) fn note(&mut self, events: EventSet) {
        if events.is_readable() {
            self.readable = !self.read_side.has_ended();
            // A wrapping socket may have had to read before it could write.
            self.writable |= self.socket.wants_read();
        }
        self.writable |= events.is_writable();
        // An urgent byte ends a read before it, as an end would: a short read proves nothing there.
        if events.is_closing() || events.contains(EventSet::URGENT) {
            if events.contains(EventSet::ERROR) {
                self.flags.set(Flags::ERROR_TOLD, true);
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
        self.flags.set(Flags::ERROR_TOLD, false);
        self.socket.take_error().ok().flatten()
    }

    pub(super) fn is_error_told(&self) -> bool {
        self.flags.has(Flags::ERROR_TOLD)
    }

    /// Whether the protocol may be given input: not while its output is above the mark.
    #[inline]
    pub(super) fn takes_input(&mut self) -> bool {
        let mark = self.config.output_high_water;
        let limit = if self.flags.has(Flags::IS_GATED) { mark / 2 } else { mark };
        let is_gated = self.output.len() > limit;
        self.flags.set(Flags::IS_GATED, is_gated);
        !is_gated
    }

    /// Whether nothing waits to be written, nothing can be read, and the protocol may be given
    /// input: it takes an event to change that.
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        !self.readable
            && !self.flags.has(Flags::IS_GATED)
            && !self.has_output()
            && self.read_side == ReadSide::Open
    }

    /// Gives back what an idle stream does not need, and counts what it keeps. Returns whether
    /// there is room for that; less than before always has.
    #[inline]
    pub(super) fn settle(&mut self) -> bool {
        // Nearly always: a buffer without bytes holds no memory.
        if self.input.is_empty() && self.output.is_empty() && self.held_units == 0 {
            return true;
        }
        self.hold_what_waits()
    }

    fn hold_what_waits(&mut self) -> bool {
        self.input.shrink();
        let units = units_of(self.input.capacity() + self.output.held_bytes());
        units == self.held_units || self.hold(units)
    }
}
