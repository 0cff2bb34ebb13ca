//! Reading into the input, or to discard the bytes.

use std::io;

use rotor_core::net::StreamSocket;

use super::BufferedIo;
use crate::buf::BLOCK_BYTES;
use crate::error::{Exception, Fatal, is_connection_lost};
use crate::status::{Flags, ReadSide};
use crate::stream::pass::Pass;

/// The minimum room for a read, in bytes: the rest of a block may be too small to be worth a system
/// call.
const READ_BYTES_MIN: usize = 4 * 1024;

/// The room for a read, in bytes, if the previous read filled a block and all of it was consumed:
/// four blocks, so that a long body, or long messages, take few system calls.
const READ_BYTES_LARGE: usize = 4 * BLOCK_BYTES;

/// The result of a read.
pub(in crate::stream) enum ReadResult {
    Data,
    /// Nothing can be read for now.
    Nothing,
    /// The end of the stream, in an orderly way or [not](ReadSide::Truncated).
    Ended,
    /// The connection is gone.
    Lost(io::Error),
    /// Reading has failed; the connection still exists.
    Failed(io::Error),
}

/// The result of discarding input.
pub(in crate::stream) enum DiscardResult {
    /// There is no more for now, or the budget is used up.
    All,
    /// The peer has ended its side.
    Ended,
    /// There is more than may be discarded.
    TooMuch,
}

impl<S: StreamSocket> BufferedIo<S> {
    /// Reads once.
    #[inline]
    pub(in crate::stream) fn read(&mut self, pass: &mut Pass) -> ReadResult {
        // A side that has ended is not readable any more.
        if self.status.readable {
            self.read_now(pass)
        } else if self.status.read_side.has_ended() {
            ReadResult::Ended
        } else {
            ReadResult::Nothing
        }
    }

    /// Reads once, whether or not an event has reported anything, unless the socket was found empty
    /// in this event.
    pub(in crate::stream) fn poll_read(&mut self, pass: &mut Pass) -> ReadResult {
        let was_emptied = !self.status.readable && pass.read_cost > 0;
        if !self.status.read_side.has_ended() && !was_emptied {
            self.status.readable = true;
        }
        self.read(pass)
    }

    fn read_now(&mut self, pass: &mut Pass) -> ReadResult {
        while self.status.readable {
            // The socket may have had to read before it could write; no edge reports that it can
            // write now.
            let waited_to_read = !self.status.writable && self.socket.wants_read();
            let room = self.read_room();
            let result = self.input.read_from_socket(&mut self.socket, room);
            if waited_to_read && !self.socket.wants_read() {
                self.status.writable = true;
            }
            match result {
                Ok(filled) if filled.count == 0 => {
                    self.end_reading(ReadSide::Ended);
                    return ReadResult::Ended;
                }
                Ok(filled) => {
                    // A socket that returned less than was requested is empty (epoll(7)), so the
                    // next read, which would only confirm that, is saved. Not after a hang-up,
                    // because the end must still be read.
                    let is_short = filled.count < filled.asked;
                    if is_short
                        && self.status.read_side == ReadSide::Open
                        && self.socket.short_read_drains()
                    {
                        self.status.readable = false;
                    }
                    pass.count_read(filled.count, self.socket.read_cost());
                    // This is also set if the rest followed at once: after one message of a block
                    // and a header, the next such messages are each read in one call.
                    let was_filled = !is_short || self.input.len() >= BLOCK_BYTES;
                    self.status.flags.set(Flags::LAST_READ_WAS_FULL, was_filled);
                    return ReadResult::Data;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.status.readable = false;
                    let waits_for_write = self.socket.wants_write();
                    self.status.flags.set(Flags::READ_WAITS_FOR_WRITE, waits_for_write);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.end_reading(ReadSide::Truncated);
                    return ReadResult::Ended;
                }
                Err(error) => {
                    // A caller that does not report the error must not find an orderly end later.
                    self.end_reading(ReadSide::Truncated);
                    return if is_connection_lost(&error) {
                        ReadResult::Lost(error)
                    } else {
                        ReadResult::Failed(error)
                    };
                }
            }
        }
        ReadResult::Nothing
    }

    /// Returns whether there may be something to read.
    #[inline]
    pub(in crate::stream) fn may_be_readable(&self) -> bool {
        self.status.readable
    }

    /// Makes the next read call the socket, whether or not an event has reported anything.
    pub(in crate::stream) fn assume_readable(&mut self) {
        self.status.readable = !self.status.read_side.has_ended();
    }

    /// Reads everything that has arrived, whatever the protocol waits for, up to the maximum of
    /// unread bytes.
    #[cold]
    pub(in crate::stream) fn read_ahead(&mut self, pass: &mut Pass) {
        while self.input.len() < self.status.config.input_max {
            match self.read(pass) {
                ReadResult::Data => {}
                // The next read will find the end again.
                ReadResult::Nothing | ReadResult::Ended => return,
                // It is reported after the earlier input has been delivered.
                ReadResult::Lost(error) => {
                    return self.record_write_failure(Fatal::Reset(error));
                }
                ReadResult::Failed(error) => {
                    return log::debug!("a connection cannot be read from: {error}");
                }
            }
        }
    }

    /// Does the same if a wrapping socket must read before it can write the rest of the output: what
    /// it waits for may come behind input that the protocol does not want yet. Returns whether
    /// writing can go on.
    #[inline]
    pub(in crate::stream) fn read_to_write(&mut self, pass: &mut Pass) -> bool {
        if !self.socket.wants_read() || self.status.writable || !self.has_output() {
            return false;
        }
        self.read_ahead(pass);
        self.status.writable || self.write_failure.is_some()
    }

    /// Reads ahead without an event.
    #[cold]
    pub(in crate::stream) fn read_ahead_now(&mut self) {
        let mut pass = Pass::new(&self.status.config);
        self.read_ahead(&mut pass);
        pass.count_bytes(&self.status.config);
    }

    /// Returns the minimum room for a read. It is larger than usual if much arrives and is consumed
    /// at once, but not while something is unread: otherwise a peer that sends a head without end
    /// would be lent more memory than it may hold.
    #[inline]
    fn read_room(&self) -> usize {
        if self.status.flags.has(Flags::LAST_READ_WAS_FULL) && self.input.is_empty() {
            READ_BYTES_LARGE
        } else {
            READ_BYTES_MIN
        }
    }

    /// Returns the exception for a protocol that waits for input once the end was read.
    pub(in crate::stream) fn end_exception(&self) -> Exception {
        if self.status.read_side == ReadSide::Truncated {
            Exception::Truncated
        } else {
            Exception::EndOfStream
        }
    }

    pub(in crate::stream) fn end_reading(&mut self, read_side: ReadSide) {
        self.status.read_side = read_side;
        self.status.readable = false;
    }

    /// Notes that from now on a short read does not mean that the socket is empty, and that reading
    /// must go on.
    #[cold]
    pub(super) fn mark_hang_up(&mut self) {
        if !self.status.read_side.has_ended() {
            self.status.read_side = ReadSide::HangUpSeen;
            self.status.readable = true;
        }
    }

    /// Reads and discards at most `left` bytes.
    pub(in crate::stream) fn discard(
        &mut self,
        pass: &mut Pass,
        left: &mut u64,
    ) -> Result<DiscardResult, io::Error> {
        loop {
            self.input.clear();
            // The minimum room is enough for bytes that are discarded.
            self.status.flags.set(Flags::LAST_READ_WAS_FULL, false);
            // A peer that sends without end gets no larger share of the loop than others.
            if pass.is_spent(&self.status) {
                return Ok(DiscardResult::All);
            }
            match self.read(pass) {
                ReadResult::Data => match left.checked_sub(self.input.len() as u64) {
                    Some(fewer) => *left = fewer,
                    None => return Ok(DiscardResult::TooMuch),
                },
                ReadResult::Nothing => return Ok(DiscardResult::All),
                ReadResult::Ended => return Ok(DiscardResult::Ended),
                ReadResult::Lost(error) | ReadResult::Failed(error) => return Err(error),
            }
        }
    }
}
