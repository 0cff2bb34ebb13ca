//! Writing the output, what a wrapping socket holds, and the end of our side; and how long the peer
//! may take for it.

use std::io;
use std::net::Shutdown;

use rotor_core::Time;
use rotor_core::net::StreamSocket;

use super::{BufferedIo, WriteFailure};
use crate::error::Fatal;
use crate::least_rate::RateWatch;
use crate::output::EndState;
use crate::status::Flags;
use crate::stream::pass::Pass;

/// How many times a protocol that holds its input is told of room for its output after writing has
/// failed, so that it can finish what it is writing before it takes its input. A producer without
/// end would go on as fast as the CPU allows.
const FLUSHES_MAX: u32 = 1024;

/// The result of writing.
pub(in crate::stream) enum WriteResult {
    /// Something was written, and nothing is left.
    Emptied,
    /// Something was written, or something can be read now.
    Progress,
    Nothing,
    Failed(io::Error),
}

impl<S: StreamSocket> BufferedIo<S> {
    /// Notes that no more output can be written, although there may be input.
    #[cold]
    pub(in crate::stream) fn record_write_failure(&mut self, error: Fatal) {
        self.write_failure = Some(Box::new(WriteFailure { error, flushes_left: FLUSHES_MAX }));
        self.mark_hang_up();
    }

    /// Returns why no more output can be written, which is then forgotten.
    #[inline]
    pub(in crate::stream) fn take_write_failure(&mut self) -> Option<Fatal> {
        self.write_failure.take().map(|failure| failure.error)
    }

    /// Writes the output, as far as the socket takes it; makes a wrapping socket write what it
    /// holds; and ends our side if that is requested and everything is written.
    #[inline(always)]
    pub(in crate::stream) fn write(
        &mut self,
        pass: &mut Pass,
        now: impl Fn() -> Time,
    ) -> WriteResult {
        let unsent = self.unsent_len();
        let mut progress = false;
        // Until the socket reports that it is full: only then is an edge sure to follow.
        while self.status.writable && !self.output.is_empty() && pass.write_left > 0 {
            if self.socket.wants_read() {
                progress |= self.mark_readable_during_write();
            }
            match self.output.write_to(&mut self.socket, pass.write_left) {
                Ok(count) => {
                    pass.write_left = pass.write_left.saturating_sub(count);
                    progress = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.status.writable = false
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.output.log_file_failure(&error, now());
                    return WriteResult::Failed(error);
                }
            }
        }
        // Even if nothing was written: a wrapping socket may have bytes of its own for its peer (an
        // alert, a new key).
        match self.flush() {
            Ok(flushed) => progress |= flushed,
            Err(error) => return WriteResult::Failed(error),
        }
        // Not before the last byte has left a wrapping socket, too, or the end would overtake it.
        if self.output.end_state() == EndState::Requested && !self.has_output() {
            match self.shutdown() {
                Ok(()) => {}
                Err(error) => return WriteResult::Failed(error),
            }
        }
        self.watch_write_rate(|io| unsent.saturating_sub(io.unsent_len()), now);
        match progress {
            false => WriteResult::Nothing,
            true if self.has_output() => WriteResult::Progress,
            true => WriteResult::Emptied,
        }
    }

    /// Notes that a wrapping socket, which reads in order to write, may read more than it needs for
    /// that; no event reports what it holds then. Returns whether something may be there.
    #[cold]
    fn mark_readable_during_write(&mut self) -> bool {
        self.assume_readable();
        self.status.readable
    }

    /// Writes the last bytes of this side, if one write is enough, so that what a wrapping socket
    /// sends at its end may go with them. [`write`](BufferedIo::write) handles the rest.
    pub(in crate::stream) fn write_last(
        &mut self,
        pass: &mut Pass,
        now: impl Fn() -> Time,
    ) -> io::Result<()> {
        if !self.status.writable || self.output.end_state() != EndState::Requested {
            return Ok(());
        }
        let unsent = self.unsent_len();
        match self.output.write_last_to(&mut self.socket, pass.write_left) {
            None => return Ok(()),
            Some(Ok(count)) => pass.write_left = pass.write_left.saturating_sub(count),
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.status.writable = false
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Err(error)) => return Err(error),
        }
        self.watch_write_rate(|io| unsent.saturating_sub(io.unsent_len()), now);
        Ok(())
    }

    /// Returns whether something must still be written, here or in a wrapping socket.
    #[inline]
    pub(in crate::stream) fn has_output(&self) -> bool {
        self.status.flags.has(Flags::HOLDS_OUTPUT) || !self.output.is_empty()
    }

    /// Returns how many bytes wait to be written, here and in a wrapping socket.
    #[inline]
    fn unsent_len(&self) -> usize {
        self.output.len() + self.socket.unsent_len()
    }

    /// Makes a wrapping socket write what it holds. Returns whether that changed anything.
    #[inline]
    fn flush(&mut self) -> io::Result<bool> {
        let held = self.status.flags.has(Flags::HOLDS_OUTPUT);
        loop {
            match self.socket.flush() {
                Ok(()) => self.status.flags.set(Flags::HOLDS_OUTPUT, self.socket.wants_write()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.status.flags.set(Flags::HOLDS_OUTPUT, true);
                    self.status.writable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            break;
        }
        // The socket may have had to write before it could read; no edge reports that it can read
        // now. Its bytes may have been written before the output just now, not only in this flush.
        let may_read =
            self.status.flags.has(Flags::READ_WAITS_FOR_WRITE) && !self.socket.wants_write();
        if may_read {
            self.status.flags.set(Flags::READ_WAITS_FOR_WRITE, false);
            self.status.readable = !self.status.read_side.has_ended();
        }
        Ok(may_read || held && !self.status.flags.has(Flags::HOLDS_OUTPUT))
    }

    /// Tells the peer that our side has ended.
    #[cold]
    fn shutdown(&mut self) -> io::Result<()> {
        loop {
            match self.socket.shutdown(Shutdown::Write) {
                Ok(()) => self.output.set_end_state(EndState::ShutDown),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.status.flags.set(Flags::HOLDS_OUTPUT, true);
                    self.status.writable = false;
                }
                // At once: if nothing is left to be written, neither an edge nor a deadline would
                // follow.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The peer is gone; reading will report how.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    self.output.set_end_state(EndState::ShutDown)
                }
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }

    /// Watches waiting output. `taken` returns how much of it has left since the last call.
    #[inline]
    pub(in crate::stream) fn watch_write_rate(
        &mut self,
        taken: impl FnOnce(&Self) -> usize,
        now: impl Fn() -> Time,
    ) {
        if !self.has_output() {
            self.write_rate = RateWatch::NONE;
            return;
        }
        let rate = self.status.config.flush_rate(self.output.end_state() == EndState::Open);
        // Begins only now: output that a socket takes at once is not watched.
        if self.write_rate == RateWatch::NONE {
            self.write_rate = RateWatch::new(rate, now());
        } else {
            let taken = taken(self) as u64;
            self.write_rate.pass(taken, rate, now());
        }
    }

    /// Notes that the protocol is done. If output has been waiting for the peer, its next step must
    /// now be taken within [`close_timeout`](crate::StreamConfig::close_timeout), unless it is due
    /// sooner.
    pub(in crate::stream) fn require_by(&mut self, now: Time) {
        self.write_rate.require_by(now + self.status.config.close_timeout);
    }
}
