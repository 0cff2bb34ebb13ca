//! The turn: sends what was written, and passes what has arrived to the sockets.

use std::io;
use std::mem;

use rotor_core::{EventSet, Time};

use super::Driver;
use super::socket::Ready;
use crate::key::Id;
use crate::ring::Wait;

/// After a call with at least this many completions, the kernel may have left others.
const REST_FROM: usize = 16;

impl Driver {
    /// Waits: ends the previous turn, and begins the next one.
    pub(crate) fn wait(&mut self, until: Option<Time>, ready: &mut Ready) -> io::Result<()> {
        self.end_turn();
        let wait = self.wait_for(until);
        self.watch_unread(wait);
        self.ring.enter(wait)?;
        if !self.late.is_empty() || !self.holding.is_empty() {
            self.tell_what_is_known(ready);
        }
        self.take_completions(ready)?;
        self.has_more = self.ring.has_completions();
        self.end_lingering();
        Ok(())
    }

    /// Reports what arrived during the previous turn, and what sockets hold already.
    #[cold]
    fn tell_what_is_known(&mut self, ready: &mut Ready) {
        ready.append(&mut self.late);
        for id in mem::take(&mut self.holding) {
            self.tell(id, EventSet::READABLE, ready);
        }
    }

    /// Submits, during a turn, what waits for its end. What completes by that is passed to the
    /// sockets at once; otherwise a read would miss data that the kernel has already delivered. The
    /// machines are told when the turn ends.
    pub(super) fn settle(&mut self) {
        let mut late = Ready::new();
        let settled = self.ring.enter(Wait::Again).and_then(|()| self.take_completions(&mut late));
        if let Err(error) = settled {
            // The next wait fails with the same error, and ends the loop.
            log::debug!("a ring does not take what it is handed: {error}");
        }
        self.late.append(&mut late);
    }

    /// Takes what has completed. The kernel does only a limited amount of work in one call and
    /// leaves the rest for the next (`IO_LOCAL_TW_DEFAULT_MAX`, 20 items). If there may be a rest,
    /// it is called again, so that a poll takes everything, and a turn has many events.
    fn take_completions(&mut self, ready: &mut Ready) -> io::Result<()> {
        let mut left = self.config.events_max;
        loop {
            let before = left;
            while left > 0
                && let Some(completion) = self.ring.take()
            {
                left -= 1;
                if let Some(completion) = completion {
                    self.complete(completion, ready);
                }
            }
            if before - left < REST_FROM || left == 0 {
                return Ok(());
            }
            self.ring.enter(Wait::Again)?;
        }
    }

    pub(super) fn wait_for(&mut self, until: Option<Time>) -> Wait {
        while let Some((_, id)) = self.lingering.front()
            && self.sockets.get(*id).is_none()
        {
            self.lingering.pop_front();
        }
        let is_known = !self.holding.is_empty() || !self.late.is_empty();
        let is_poll = until == Some(Time::ZERO) || self.has_more || is_known;
        let until = match (until, self.lingering.front()) {
            _ if is_poll => return Wait::Poll,
            (Some(until), Some((end, _))) => until.min(*end),
            (None, Some((end, _))) => *end,
            (Some(until), None) => until,
            (None, None) => return Wait::Forever,
        };
        // Zero if the time has passed: subtraction of times saturates.
        let time = until - self.clock.now();
        if time.is_zero() { Wait::Poll } else { Wait::AtMost(time) }
    }

    /// Submits what was written. Copies delivered data that was not read, so that its buffers are
    /// free for the next data, and holds back streams with too much of it.
    pub(super) fn end_turn(&mut self) {
        let mut written = mem::take(&mut self.written);
        for id in written.drain(..) {
            self.send_next(id);
        }
        self.written = written;
        // Most of them were dropped by their machines by now, and need no poll.
        let mut ended = mem::take(&mut self.ended);
        for id in ended.drain(..) {
            self.watch_end(id);
        }
        self.ended = ended;
        let mut given = mem::take(&mut self.given);
        for id in given.drain(..) {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            socket.is_noted = false;
            if let Some(work) = socket.rest() {
                self.spare.give_work(work);
                continue;
            }
            let Some(work) = &mut socket.work else { continue };
            if work.inbox.is_empty() {
                continue;
            }
            let copied = work.inbox.keep(&mut self.ring);
            self.ring.stats().bytes_copied += copied as u64;
            if work.inbox.len() >= self.config.unread_bytes_max {
                self.hold_back(id);
            }
        }
        self.given = given;
    }

    /// Polls for the end of streams that their machines leave unread, since machines on other loops
    /// are told at once. A stream that was read in this turn may still be read in the next one, if
    /// that comes at once, so it gets no poll yet: a stream that is read as fast as its data
    /// arrives costs nothing.
    fn watch_unread(&mut self, wait: Wait) {
        if self.unread.is_empty() {
            return;
        }
        let enters = self.ring.stats().enters as u32;
        let mut unread = mem::take(&mut self.unread);
        unread.retain(|id| {
            let socket = self.sockets.get_mut(*id).filter(|socket| socket.is_left_unread());
            let Some(socket) = socket else { return false };
            let goes_on = wait == Wait::Poll && socket.given_in == enters;
            if goes_on {
                // Counts for this turn only: the next one may make no call either.
                socket.given_in = enters.wrapping_sub(1);
            } else {
                self.watch_end(*id);
            }
            goes_on
        });
        self.unread = unread;
    }

    fn hold_back(&mut self, id: Id) {
        if self.take_back(id) {
            self.ring.stats().held_back += 1;
        }
    }
}
