//! The turn: sends what was written, and passes what has arrived to the sockets.

use std::io;
use std::mem;

use rotor_core::Time;

use super::Driver;
use super::socket::Ready;
use crate::key::Id;
use crate::ring::Wait;

/// After a call with at least this many completions, the kernel may have left others.
const FULL_BATCH_MIN: usize = 16;

impl Driver {
    /// Waits: ends the previous turn, and begins the next one.
    pub(crate) fn wait(&mut self, until: Option<Time>, ready: &mut Ready) -> io::Result<()> {
        self.end_turn();
        let wait = self.choose_wait(until);
        self.watch_unread(wait);
        self.ring.enter(wait)?;
        if !self.late_events.is_empty() || !self.unreported.is_empty() {
            self.report_pending_events(ready);
        }
        let is_full = self.take_completions(ready)?;
        self.has_more = self.ring.has_completions() || is_full;
        let has_overflowed = self.ring.has_overflowed();
        self.ring.stats().completions_overflowed += u64::from(has_overflowed);
        self.expire_lingering();
        Ok(())
    }

    /// Reports what arrived during the previous turn, and what sockets hold already.
    #[cold]
    fn report_pending_events(&mut self, ready: &mut Ready) {
        ready.append(&mut self.late_events);
        for id in mem::take(&mut self.unreported) {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.notify(socket.unreported_events(), ready);
            }
        }
    }

    /// Submits, during a turn, what waits for its end. What completes by that is passed to the
    /// sockets at once; otherwise a read would miss data that the kernel has already delivered. The
    /// machines are told when the turn ends.
    pub(crate) fn flush_submissions(&mut self) {
        let mut late_events = Ready::new();
        let flushed = self
            .ring
            .enter(Wait::RunTaskWork)
            .and_then(|()| self.take_completions(&mut late_events));
        if let Err(error) = flushed {
            // The next wait fails with the same error, and ends the loop.
            log::debug!("a ring does not take what it is handed: {error}");
        }
        self.late_events.append(&mut late_events);
    }

    /// Takes what has completed. The kernel does only a limited amount of work in one call and
    /// leaves the rest for the next (`IO_LOCAL_TW_DEFAULT_MAX`, 20 items). If there may be a rest,
    /// it is called again, so that a poll takes everything, and a turn has many events. Returns
    /// whether it has taken as many as it may.
    fn take_completions(&mut self, ready: &mut Ready) -> io::Result<bool> {
        let mut left = self.config.events_max;
        loop {
            let before = left;
            while left > 0 && self.take_completion(ready) {
                left -= 1;
            }
            if before - left < FULL_BATCH_MIN || left == 0 {
                return Ok(left == 0);
            }
            self.ring.enter(Wait::RunTaskWork)?;
        }
    }

    /// Handles the next completion. Returns whether there was one.
    #[inline]
    fn take_completion(&mut self, ready: &mut Ready) -> bool {
        let Some(completion) = self.ring.next_completion() else { return false };
        if let Some(completion) = completion {
            self.handle_completion(completion, ready);
        }
        true
    }

    /// Takes, during a turn, the completions that the wait or a flush has left. The machines are told
    /// when the turn ends.
    #[inline]
    pub(super) fn take_rest(&mut self) {
        if self.ring.has_completions() {
            self.take_completed();
        }
    }

    #[cold]
    fn take_completed(&mut self) {
        let mut late_events = Ready::new();
        while self.take_completion(&mut late_events) {}
        // The queue may have had no room for all. As often as it can have been filled by now: what
        // arrives meanwhile is for the next wait.
        let mut left = self.full_queues();
        while left > 0 && self.ring.has_overflowed() && self.ring.enter(Wait::Poll).is_ok() {
            left -= 1;
            while self.take_completion(&mut late_events) {}
        }
        self.late_events.append(&mut late_events);
    }

    pub(super) fn choose_wait(&mut self, until: Option<Time>) -> Wait {
        while let Some((_, id)) = self.lingering.front()
            && self.sockets.get(*id).is_none()
        {
            self.lingering.pop_front();
        }
        let is_known = !self.unreported.is_empty() || !self.late_events.is_empty();
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
        let mut delivered = mem::take(&mut self.delivered);
        for id in delivered.drain(..) {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            socket.is_listed = false;
            if let Some(buffers) = socket.take_idle_buffers() {
                self.spare.recycle_buffers(buffers);
                continue;
            }
            let Some(buffers) = &mut socket.buffers else { continue };
            if buffers.inbox.is_empty() {
                continue;
            }
            let copied = buffers.inbox.copy_out(&mut self.ring);
            self.ring.stats().bytes_copied += copied as u64;
            if buffers.inbox.len() >= self.config.unread_bytes_max {
                self.hold_back(id);
            }
        }
        self.delivered = delivered;
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
            let is_being_read = wait == Wait::Poll && socket.enters_at_input == enters;
            if is_being_read {
                // Counts for this turn only: the next one may make no call either.
                socket.enters_at_input = enters.wrapping_sub(1);
            } else {
                self.watch_end(*id);
            }
            is_being_read
        });
        self.unread = unread;
    }

    fn hold_back(&mut self, id: Id) {
        if self.stop_input(id) {
            self.ring.stats().held_back += 1;
        }
    }
}
