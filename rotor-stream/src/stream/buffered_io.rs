//! `BufferedIo`: a socket and its two buffers, and what is known about the socket: the reading and
//! the writing.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;

use rotor_core::net::StreamSocket;
use rotor_core::{EventSet, Time};

use crate::buf::{BLOCK_BYTES, Buf};
use crate::error::is_gone;
use crate::least_rate::RateWatch;
use crate::limits::StreamConfig;
use crate::output::{End, Output};
use crate::transport::Transport;

/// The least room offered to a read, in bytes: what is left of a block may be too little to be
/// worth a system call.
const READ_BYTES_MIN: usize = 4 * 1024;

/// The room offered to a read where the one before was filled and all of that was consumed, in
/// bytes: four blocks, so that a long body takes few system calls.
const READ_BYTES_LARGE: usize = 4 * BLOCK_BYTES;

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

/// What is known of the peer's side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadSide {
    Open,
    /// The peer has hung up, or is about to: an event told of an end, an error or an urgent byte,
    /// which follows the bytes that are still to be read. From now on a short read says nothing.
    HangUpSeen,
    /// The end was read; nothing more will be.
    Ended,
}

/// How much may still be done in this event.
pub(super) struct Pass {
    read_left: usize,
    write_left: usize,
    calls_left: u32,
}

/// What became of a read.
pub(super) enum ReadResult {
    Some,
    /// Nothing for now.
    Nothing,
    Ended,
    /// The connection is gone.
    Gone(io::Error),
    /// Reading has failed; the connection still stands.
    Failed(io::Error),
}

/// What became of what is thrown away.
pub(super) enum Discarded {
    /// There is no more for now, or it is not its turn.
    All,
    /// The peer has ended its side.
    Ended,
    /// There is more than may be thrown away.
    TooMuch,
}

/// What became of writing.
pub(super) enum WriteResult {
    /// Something was written, or something can now be read.
    Progress,
    Nothing,
    Failed(io::Error),
}

impl Pass {
    pub(super) fn new(config: &StreamConfig) -> Pass {
        Pass {
            read_left: config.read_budget,
            write_left: config.write_budget,
            calls_left: config.calls_budget,
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.read_left == 0 || self.write_left == 0 || self.calls_left == 0
    }

    #[inline]
    pub(super) fn has_read_its_share(&self) -> bool {
        self.read_left == 0
    }

    pub(super) fn count_call(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
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
            self.readable = self.read_side != ReadSide::Ended;
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

    /// Reads once.
    #[inline]
    pub(super) fn read(&mut self, pass: &mut Pass) -> ReadResult {
        // What has ended is not readable any more.
        if self.readable {
            self.read_now(pass)
        } else if self.read_side == ReadSide::Ended {
            ReadResult::Ended
        } else {
            ReadResult::Nothing
        }
    }

    /// Reads once, whether an event has told of something or not; unless the socket was found empty
    /// in this event.
    pub(super) fn poll_read(&mut self, pass: &mut Pass) -> ReadResult {
        let was_emptied = !self.readable && pass.read_left < self.config.read_budget;
        if self.read_side != ReadSide::Ended && !was_emptied {
            self.readable = true;
        }
        self.read(pass)
    }

    fn read_now(&mut self, pass: &mut Pass) -> ReadResult {
        while self.readable {
            // It may have had to read before it could write; no edge tells that it can now.
            let waited_to_read = !self.writable && self.socket.wants_read();
            let room = self.read_room();
            let result = self.input.read_from(&mut self.socket, room);
            if waited_to_read && !self.socket.wants_read() {
                self.writable = true;
            }
            match result {
                Ok(filled) if filled.count == 0 => {
                    self.end_reading();
                    return ReadResult::Ended;
                }
                Ok(filled) => {
                    // A socket that gave less than it could is empty (epoll(7)): the next read,
                    // which would say so, is spared. Not after a hang-up, whose end is still to be
                    // read.
                    let is_short = filled.count < filled.asked;
                    if is_short
                        && self.read_side == ReadSide::Open
                        && self.socket.short_read_drains()
                    {
                        self.readable = false;
                    }
                    pass.read_left = pass.read_left.saturating_sub(filled.count);
                    self.flags.set(Flags::WAS_FILLED, !is_short);
                    return ReadResult::Some;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.end_reading();
                    return if is_gone(&error) {
                        ReadResult::Gone(error)
                    } else {
                        ReadResult::Failed(error)
                    };
                }
            }
        }
        ReadResult::Nothing
    }

    /// Whether there may be something to read.
    #[inline]
    pub(super) fn may_hold_more(&self) -> bool {
        self.readable
    }

    /// The next read asks the socket, whether or not an event has told of something.
    pub(super) fn assume_readable(&mut self) {
        self.readable = self.read_side != ReadSide::Ended;
    }

    /// Reads what has come, whatever the protocol waits for, until it is all there or is as much as
    /// may be unread.
    #[cold]
    pub(super) fn read_ahead(&mut self, pass: &mut Pass) {
        while self.input.len() < self.config.input_max {
            match self.read(pass) {
                ReadResult::Some => {}
                // An end is found again by whoever reads next.
                ReadResult::Nothing | ReadResult::Ended => return,
                // Told once what came before has been handed out.
                ReadResult::Gone(error) => return self.break_off(error),
                ReadResult::Failed(error) => {
                    return log::debug!("a connection cannot be read from: {error}");
                }
            }
        }
    }

    /// How much room a read is offered at least: more than usual where much comes in and goes on at
    /// once. Where something is unread it is not, or whoever sends a head without end would be lent
    /// more than it may hold.
    #[inline]
    fn read_room(&self) -> usize {
        if self.flags.has(Flags::WAS_FILLED) && self.input.is_empty() {
            READ_BYTES_LARGE
        } else {
            READ_BYTES_MIN
        }
    }

    fn end_reading(&mut self) {
        self.read_side = ReadSide::Ended;
        self.readable = false;
    }

    /// Takes no short read for an emptied socket any more, and reads on.
    #[cold]
    fn note_hang_up(&mut self) {
        if self.read_side != ReadSide::Ended {
            self.read_side = ReadSide::HangUpSeen;
            self.readable = true;
        }
    }

    /// Writing has failed: there will be no output any more, but there may be input.
    #[cold]
    pub(super) fn break_off(&mut self, error: io::Error) {
        self.broken = Some(error);
        self.note_hang_up();
    }

    /// Writes what waits, as far as the socket takes it; has a wrapping socket write what it holds;
    /// ends our side when that is wanted and everything is written.
    #[inline(always)]
    pub(super) fn write(&mut self, pass: &mut Pass, now: impl Fn() -> Time) -> WriteResult {
        let had = self.output.len();
        // Until the socket says that it is full: only then an edge is promised.
        while self.writable && !self.output.is_empty() && pass.write_left > 0 {
            match self.output.write_to(&mut self.socket, pass.write_left) {
                Ok(count) => pass.write_left = pass.write_left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return WriteResult::Failed(error),
            }
        }
        let mut progress = had > self.output.len();
        // Even with nothing written: a wrapping socket may owe its peer bytes of its own (an alert,
        // a new key).
        match self.flush() {
            Ok(flushed) => progress |= flushed,
            Err(error) => return WriteResult::Failed(error),
        }
        // Not before the last byte has left a wrapping socket, too: the end would overtake it.
        if self.output.end() == End::Wanted && !self.has_output() {
            match self.shutdown() {
                Ok(()) => {}
                Err(error) => return WriteResult::Failed(error),
            }
        }
        self.watch(had.saturating_sub(self.output.len()), now);
        if progress { WriteResult::Progress } else { WriteResult::Nothing }
    }

    /// Whether something is still to be written: here, or in a wrapping socket.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.flags.has(Flags::HOLDS_OUTPUT) || !self.output.is_empty()
    }

    /// Has a wrapping socket write what it holds; whether that changed something.
    #[inline]
    fn flush(&mut self) -> io::Result<bool> {
        let wanted = self.socket.wants_write();
        let held = self.flags.has(Flags::HOLDS_OUTPUT);
        loop {
            match self.socket.flush() {
                Ok(()) => self.flags.set(Flags::HOLDS_OUTPUT, self.socket.wants_write()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.flags.set(Flags::HOLDS_OUTPUT, true);
                    self.writable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            break;
        }
        // It may have had to write before it could read; no edge tells that it can now.
        let could_not_read = wanted && !self.socket.wants_write();
        if could_not_read && self.read_side != ReadSide::Ended {
            self.readable = true;
        }
        Ok(could_not_read || held && !self.flags.has(Flags::HOLDS_OUTPUT))
    }

    /// Tells the peer that no more will come.
    #[cold]
    fn shutdown(&mut self) -> io::Result<()> {
        loop {
            match self.socket.shutdown(Shutdown::Write) {
                Ok(()) => self.output.set_end(End::Told),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.flags.set(Flags::HOLDS_OUTPUT, true);
                    self.writable = false;
                }
                // At once: with nothing left to be written, neither an edge nor a deadline would
                // come.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The peer has gone; reading tells how.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    self.output.set_end(End::Told)
                }
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Keeps watch over output that waits.
    #[inline]
    fn watch(&mut self, taken: usize, now: impl Fn() -> Time) {
        if !self.has_output() {
            self.taking = RateWatch::NONE;
            return;
        }
        let rate = self.config.flush_rate(self.output.end() == End::Open);
        // Begun only now: what a socket takes at once is watched by nobody.
        if self.taking == RateWatch::NONE {
            self.taking = RateWatch::new(rate, now());
        } else {
            self.taking.pass(taken as u64, rate, now());
        }
    }

    /// The protocol is done: what has waited for the peer already waits no longer than what is left
    /// at the end.
    pub(super) fn hasten(&mut self, now: Time) {
        self.taking.hasten(now + self.config.close_timeout);
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

    /// Reads and throws away, `left` bytes at most.
    pub(super) fn discard(
        &mut self,
        pass: &mut Pass,
        left: &mut u64,
    ) -> Result<Discarded, io::Error> {
        loop {
            self.input.clear();
            // What nobody wants needs no more room than the least.
            self.flags.set(Flags::WAS_FILLED, false);
            // Whoever sends without end has no more of the loop than others.
            if pass.is_spent() {
                return Ok(Discarded::All);
            }
            match self.read(pass) {
                ReadResult::Some => match left.checked_sub(self.input.len() as u64) {
                    Some(fewer) => *left = fewer,
                    None => return Ok(Discarded::TooMuch),
                },
                ReadResult::Nothing => return Ok(Discarded::All),
                ReadResult::Ended => return Ok(Discarded::Ended),
                ReadResult::Gone(error) | ReadResult::Failed(error) => return Err(error),
            }
        }
    }
}
