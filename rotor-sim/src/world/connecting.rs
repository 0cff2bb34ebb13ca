//! Establishing connections.

use std::io;
use std::time::Duration;

use rotor_core::EventSet;

use super::link::{FAILED, Link, Pipe, SegmentContent};
use super::place::Place;
use super::{SimEvent, World};
use crate::faults::Fault;
use crate::table::Key;
use crate::trace::TraceEvent;

/// How often a connection attempt is sent: again after 1, 2, 4, … seconds, for 127 s in all, as on
/// Linux.
const SYN_TRIES: u32 = 7;
const SYN_TIMEOUT: Duration = Duration::from_secs(127);

impl World {
    /// Begins to connect: over the network, or, to a path, at once.
    pub(crate) fn begin_connect(&mut self, link: Key) -> io::Result<()> {
        let Some(found) = self.links.get(link) else { return Ok(()) };
        let (host, place) = (found.ends[0].host, found.ends[1].place.clone());
        if self.roll_fault_at(Fault::ConnectExhausted, host) {
            return Err(io::Error::from_raw_os_error(24));
        }
        place.check_route()?;
        if matches!(place, Place::Inet(_)) {
            self.connect(link);
            return Ok(());
        }
        let Some(listener) = self.listener_at(&place) else {
            // There is no network between two sockets of one host: connect(2) fails at once.
            return Err(self.error_of_path(&place).into());
        };
        if self.roll_fault_at(Fault::ConnectRefused, host) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if !self.has_backlog_room(listener) {
            // `EAGAIN`: a non-blocking Unix socket does not wait for room in the queue
            // (connect(2)).
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.establish(link, listener);
        self.deliver_connected(link);
        Ok(())
    }

    /// Makes the pipes of a connection that is being established.
    fn open_pipes(&mut self, link: Key) {
        let place = self.links.get(link).map(|link| &link.ends[1].place);
        let is_inet = matches!(place, Some(Place::Inet(_)));
        for side in 0..2 {
            let Some(host) = self.links.get(link).map(|link| link.ends[side].host) else { return };
            // For as long as the connection lasts, like a slow peer.
            let is_slow = self.roll_fault_at(Fault::SlowReader, host);
            let window = if is_slow {
                self.random.usize(1..=self.network.window.min(64))
            } else {
                self.network.window
            };
            let drains = is_inet && self.random.f64() < self.network.draining;
            let Some(link) = self.links.get_mut(link) else { return };
            link.ends[side].drains = drains;
            // The accepting end is connected first; the connecting end hears of it one latency
            // later.
            link.ends[side].is_connected = side == 1;
            link.ends[side].input = Pipe::new(window, is_slow);
        }
    }

    pub(crate) fn connect(&mut self, link: Key) {
        let Some(Link { serial, ends, .. }) = self.links.get(link) else { return };
        let (serial, from, to) = (*serial, ends[0].host, ends[1].host);
        self.record(from, TraceEvent::Connect(serial));
        let at = self.local_time(from) + self.latency(from, to);
        if let Some(link) = self.links.get_mut(link) {
            link.attempt_ends = at + SYN_TIMEOUT;
        }
        if self.roll_fault_at(Fault::ConnectHang, from) {
            self.schedule(at + SYN_TIMEOUT, SimEvent::ConnectFailed(link, io::ErrorKind::TimedOut));
        } else if self.roll_fault_at(Fault::ConnectRefused, from) {
            self.schedule(at, SimEvent::ConnectFailed(link, io::ErrorKind::ConnectionRefused));
        } else {
            self.schedule(at, SimEvent::Syn(link, 0));
        }
    }

    /// A connection attempt reaches its target.
    pub(crate) fn deliver_syn(&mut self, link: Key, tries: u32) {
        let Some(found) = self.links.get(link) else { return };
        let (from, to) = (found.ends[0].host, found.ends[1].host);
        let place = found.ends[1].place.clone();
        // An address without a host is silent, like a host without power.
        let is_blocked = to == u32::MAX || self.is_blocked(from, to);
        let listener = if is_blocked { None } else { self.listener_at(&place) };
        let has_room = listener.is_some_and(|listener| self.has_backlog_room(listener));
        // A full queue drops the request, which is then repeated (listen(2)). A refusal would be a
        // response.
        if is_blocked || (listener.is_some() && !has_room) {
            let event = if tries + 1 < SYN_TRIES {
                SimEvent::Syn(link, tries + 1)
            } else {
                SimEvent::ConnectFailed(link, io::ErrorKind::TimedOut)
            };
            return self.schedule(self.now + Duration::from_secs(1 << tries), event);
        }
        let back = self.now + self.latency(to, from);
        match listener {
            None => {
                self.schedule(back, SimEvent::ConnectFailed(link, io::ErrorKind::ConnectionRefused))
            }
            Some(listener) => {
                self.establish(link, listener);
                // By then the listener may have accepted the connection, and its machine may have
                // sent bytes.
                self.schedule(back, SimEvent::Connected(link));
            }
        }
    }

    /// Queues a connection at a listener.
    pub(crate) fn establish(&mut self, link: Key, listener: Key) {
        self.progress += 1;
        self.open_pipes(link);
        if let Some(link) = self.links.get_mut(link) {
            link.ends[1].is_open = true;
        }
        self.queue_connection(listener, link);
    }

    /// Tells the connecting end that it is connected.
    pub(crate) fn deliver_connected(&mut self, link: Key) {
        let Some(found) = self.links.get(link) else { return };
        let (from, to, serial) = (found.ends[0].host, found.ends[1].host, found.serial);
        let (end, attempt_ends) = (&found.ends[0], found.attempt_ends);
        let is_awaited = end.is_open && !end.is_dead;
        if self.is_blocked(from, to) {
            if is_awaited && self.now >= attempt_ends {
                // The response was repeated in vain. The peer learns that if it hears of this end
                // again.
                self.send_segment(link, 0, SegmentContent::Reset);
                return self.fail_connect(link, io::ErrorKind::TimedOut);
            }
            // The response is repeated until it arrives, like the request.
            let mut again = self.now + Duration::from_secs(1);
            if is_awaited {
                again = again.min(attempt_ends);
            }
            return self.schedule(again, SimEvent::Connected(link));
        }
        let end = &found.ends[0];
        // Reset meanwhile, which the socket was told.
        if end.is_dead {
            return;
        }
        if !end.is_open {
            // Nobody waits for this response any more, so the system that it reaches answers with a
            // reset (RFC 9293 §3.10.7.1). A host without power sends nothing.
            if !self.hosts[from as usize].is_silent {
                self.send_segment(link, 0, SegmentContent::Reset);
            }
            return;
        }
        if let Some(found) = self.links.get_mut(link) {
            found.ends[0].is_connected = true;
            self.progress += 1;
            self.record(from, TraceEvent::Connected(serial));
            self.edge(link, 0, EventSet::WRITABLE);
            // Bytes may have come before the response.
            self.resume_end(link, 0);
        }
    }

    pub(crate) fn fail_connect(&mut self, link: Key, why: io::ErrorKind) {
        let Some(found) = self.links.get_mut(link) else { return };
        let (serial, host) = (found.serial, found.ends[0].host);
        found.ends[0].error = Some(why);
        found.ends[0].is_dead = true;
        self.progress += 1;
        let why = if why == io::ErrorKind::TimedOut { "nobody answers" } else { "refused" };
        self.record(host, TraceEvent::ConnectFailed(serial, why));
        self.edge(
            link,
            0,
            EventSet::WRITABLE | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | FAILED,
        );
    }
}
