//! The turn: what was written goes out, what came is handed to the sockets.

use std::io;
use std::mem;

use rotor_core::{EventSet, Time};

use super::Driver;
use super::socket::Ready;
use crate::key::Id;
use crate::ring::Wait;

/// From how many completions of a call on the kernel may have left a rest.
const REST_FROM: usize = 16;

impl Driver {
    /// A wait: ends the turn before, and begins the next one.
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

    /// Tells of what came in the midst of the turn before, and of what sockets hold already.
    #[cold]
    fn tell_what_is_known(&mut self, ready: &mut Ready) {
        ready.append(&mut self.late);
        for id in mem::take(&mut self.holding) {
            self.tell(id, EventSet::READABLE, ready);
        }
    }

    /// Hands over, in the midst of a turn, what waits for its end. What completes by that is handed
    /// to the sockets at once, or a read would miss what the kernel has given already; their machines
    /// are told when the turn ends.
    pub(super) fn settle(&mut self) {
        let mut late = Ready::new();
        let settled = self.ring.enter(Wait::Again).and_then(|()| self.take_completions(&mut late));
        if let Err(error) = settled {
            // The next wait says so again, and ends the loop.
            log::debug!("a ring does not take what it is handed: {error}");
        }
        self.late.append(&mut late);
    }

    /// Takes what has completed. The kernel does so much for us in one call and leaves the rest for
    /// the next (`IO_LOCAL_TW_DEFAULT_MAX`, 20 pieces of work): where there may be a rest it is
    /// called again, so that a poll takes all there is, and a turn has many events.
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
        // Zero where it has passed: subtraction of times stops there.
        let time = until - self.clock.now();
        if time.is_zero() { Wait::Poll } else { Wait::AtMost(time) }
    }

    /// What was written goes to the kernel. What was given and not read is copied, so that its
    /// buffers are free for what comes next; who has too much of it is given no more.
    pub(super) fn end_turn(&mut self) {
        let mut written = mem::take(&mut self.written);
        for id in written.drain(..) {
            self.send_next(id);
        }
        self.written = written;
        // Those that their machines have dropped by now, as most do, need no watch.
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

    /// Has the kernel tell when streams are gone that their machines leave unread: on other loops they
    /// hear of that at once. One that was read in this turn may be in the midst of it, and goes on with
    /// the next one, if that comes at once: while a stream is read as fast as it comes, it costs nothing.
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
                // Of this turn; the next one may make no call either.
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
