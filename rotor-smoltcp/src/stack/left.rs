//! Connections that nobody has any more: they send what they had taken, and end.

use smoltcp::socket::tcp::State;

use super::Stack;
use crate::slots::Id;

impl Stack {
    /// Nobody has the connection any more. What it had taken is still sent, for a while; where
    /// something was not read, or it could not be, the peer is told that it was in vain (RFC 9293,
    /// section 3.6: a reset).
    pub(super) fn leave(&mut self, id: Id) {
        let until = self.now() + self.config.linger;
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.leave();
        if connection.socket().recv_queue() > 0 {
            connection.socket().abort();
        } else {
            connection.socket().close();
        }
        connection.give_up_at = Some(until);
        if connection.is_over() {
            self.forget(id);
        } else {
            self.mark(id);
            self.note_lingering(id);
        }
    }

    /// Nobody has it, and it has not ended. Each has its buffers, and no limit of a server counts it, so
    /// there are only so many.
    pub(super) fn note_lingering(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.lingers = true;
        self.stats.lingering += 1;
        self.lingering.push_back(id);
        while self.stats.lingering > self.config.lingering_max && self.reset_oldest() {}
        // Those that have ended are in it still: at most as many as the others, and a few.
        if self.lingering.len() > 2 * (self.stats.lingering + 8) {
            let connections = &self.connections;
            self.lingering.retain(|id| connections.get(*id).is_some_and(|one| one.lingers));
        }
    }

    /// Resets the connection that was dropped first; says whether there was one.
    fn reset_oldest(&mut self) -> bool {
        while let Some(oldest) = self.lingering.pop_front() {
            let Some(connection) = self.connections.get_mut(oldest) else { continue };
            if connection.lingers {
                self.stats.lingering_overflowed += 1;
                connection.socket().abort();
                self.send(oldest);
                self.forget(oldest);
                return true;
            }
        }
        false
    }

    /// Of a connection that nobody has: what comes is answered by a reset, and its end is its end.
    pub(super) fn settle_left(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.is_over() {
            return self.forget(id);
        }
        if connection.socket().recv_queue() > 0 && connection.state() != State::Closed {
            connection.socket().abort();
            return self.mark(id);
        }
        if connection.state() == State::TimeWait
            && !std::mem::replace(&mut connection.is_kept, true)
        {
            connection.give_up_at = None;
            self.stats.lingering -= usize::from(std::mem::take(&mut connection.lingers));
            self.stats.time_wait += 1;
            self.kept.push_back(id);
            // Those whose time was over are in it still: at most as many as the others, and a few.
            if self.kept.len() > 2 * (self.stats.time_wait + 8) {
                let connections = &self.connections;
                self.kept.retain(|id| connections.get(*id).is_some_and(|one| one.is_kept));
            }
            while self.stats.time_wait > self.config.time_wait_max && self.forget_oldest() {}
        }
    }

    /// Forgets the connection that is kept longest; says whether there was one.
    pub(super) fn forget_oldest(&mut self) -> bool {
        while let Some(oldest) = self.kept.pop_front() {
            if self.is_kept(oldest) {
                self.stats.time_wait_overflowed += 1;
                self.forget(oldest);
                return true;
            }
        }
        false
    }

    /// Whether nobody has it, both sides have ended, and it is kept for what may still come.
    pub(super) fn is_kept(&self, id: Id) -> bool {
        self.connections.get(id).is_some_and(|connection| connection.is_kept)
    }
}
