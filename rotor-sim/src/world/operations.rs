//! The operations of the sockets of a connection: register, read, write, shut down, close; with
//! their faults.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use rotor_core::{EventSet, Interest, Token};

use super::link::{ArmedDirections, FAILED, Link, SegmentContent, other_side};
use super::place::Place;
use super::{SimEvent, World};
use crate::faults::Fault;
use crate::table::Key;
use crate::trace::{Operation, TraceEvent};

impl World {
    pub(crate) fn register_end(
        &mut self,
        link: Key,
        side: u8,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let Some(found) = self.links.get(link) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let host = found.ends[usize::from(side)].host;
        if found.ends[usize::from(side)].registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.roll_fault_at(Fault::RegisterFails, host) {
            // `ENOSPC`: the user has no more watches left (epoll_ctl(2)).
            return Err(io::Error::from_raw_os_error(28));
        }
        self.remember_registered_token(host, token);
        let Some(found) = self.links.get_mut(link) else { return Ok(()) };
        let peer = &found.ends[usize::from(other_side(side))];
        let (peer_room, is_peer_open) = (peer.input.has_room(), peer.is_open);
        let end = &mut found.ends[usize::from(side)];
        end.registered = Some((token, interest));
        // Registering reports the present state (epoll(7)), and arms both directions.
        end.armed = ArmedDirections { read: true, write: true };
        let mut events = EventSet::EMPTY;
        if end.is_dead || end.is_connected && peer_room {
            events |= EventSet::WRITABLE;
        }
        events |= end.input_events();
        if end.is_dead || end.has_hung_up(is_peer_open) {
            // Whatever the interest (epoll_ctl(2), `EPOLLERR` and `EPOLLHUP`).
            events |= EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        }
        if end.error.is_some() {
            events |= FAILED;
        }
        if !events.is_empty() {
            self.edge(link, side, events);
        }
        Ok(())
    }

    pub(crate) fn deregister_end(&mut self, link: Key, side: u8) -> io::Result<()> {
        let end = self.links.get_mut(link).map(|link| &mut link.ends[usize::from(side)]);
        let Some((host, (token, _))) = end.and_then(|end| Some((end.host, end.registered.take()?)))
        else {
            return Err(io::ErrorKind::NotFound.into());
        };
        self.remember_stale_token(host, token);
        Ok(())
    }

    /// Rolls the faults that strike before an operation looks at its connection.
    fn roll_entry_faults(&mut self, link: Key, host: u32) -> io::Result<()> {
        if self.roll_fault_at(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.roll_uncounted(Fault::Reset)
            && self.links.get(link).is_some_and(Link::is_established)
        {
            self.count_fault(Fault::Reset);
            self.record(host, TraceEvent::Fault(Fault::Reset));
            self.reset_connection(link);
        }
        Ok(())
    }

    fn would_block(&mut self, link: Key, side: u8, operation: Operation) -> io::Error {
        if let Some(found) = self.links.get_mut(link) {
            let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
            match operation {
                Operation::Read => end.armed.read = true,
                Operation::Write => end.armed.write = true,
            }
            let host = end.host;
            self.record(host, TraceEvent::Blocked(serial, side, operation));
        }
        io::ErrorKind::WouldBlock.into()
    }

    /// Fails with `WouldBlock` though the operation could proceed. The edge that the contract
    /// promises follows.
    fn pretend_to_block(&mut self, link: Key, side: u8, operation: Operation) -> io::Error {
        let registered = self.links.get(link).and_then(|link| {
            let end = &link.ends[usize::from(side)];
            Some((end.host, end.registered?.0))
        });
        if let Some((host, token)) = registered {
            let events =
                if operation == Operation::Read { EventSet::READABLE } else { EventSet::WRITABLE };
            self.push_edge_later(host, token, events, Duration::from_millis(2));
        }
        self.would_block(link, side, operation)
    }

    /// Returns `most`, or less if the fault strikes: in half of the cases 1.
    fn shorten(&mut self, fault: Fault, most: usize) -> usize {
        if most < 2 || !self.roll(fault) {
            most
        } else if self.random.bool() {
            1
        } else {
            self.random.usize(1..most)
        }
    }

    pub(crate) fn read(&mut self, link: Key, side: u8, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(found) = self.links.get(link) else { return Ok(0) };
        let host = found.ends[usize::from(side)].host;
        self.roll_entry_faults(link, host)?;
        let Some(found) = self.links.get_mut(link) else { return Ok(0) };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        // On Linux, what had arrived can still be read after shutdown(2).
        if buffer.is_empty() || end.input_shut && end.input.arrived == 0 {
            return Ok(0);
        }
        // Bytes and the end come before the error, as on Linux: a reset that discards them is a
        // fault of its own. Between Unix sockets, the error comes before the end.
        if end.input.arrived == 0 {
            let hides_error = end.input.ended && matches!(end.place, Place::Inet(_));
            let error = if hides_error { None } else { end.error.take() };
            return match error {
                Some(error) => Err(error.into()),
                None if end.is_dead || end.input.ended => {
                    self.record(host, TraceEvent::ReadEnd(serial, side));
                    self.progress += 1;
                    Ok(0)
                }
                None => Err(self.would_block(link, side, Operation::Read)),
            };
        }
        let most = end.input.arrived.min(buffer.len());
        let (registered, is_dead, drains) = (end.registered.is_some(), end.is_dead, end.drains);
        // An unregistered socket would never get the edge that this promises, and a kernel does not
        // pretend for a dead socket.
        if registered && !is_dead && self.roll(Fault::WouldBlock) {
            return Err(self.pretend_to_block(link, side, Operation::Read));
        }
        // If short reads drain the socket, a shortened one would be taken for all there is.
        let taken = if drains { most } else { self.shorten(Fault::ShortRead, most) };
        let Some(found) = self.links.get_mut(link) else { return Ok(0) };
        let end = &mut found.ends[usize::from(side)];
        end.input.take(&mut buffer[..taken]);
        // A short read stands for the `WouldBlock` that its reader does not wait for.
        end.armed.read |= drains && taken < buffer.len();
        self.progress += 1;
        self.host(host).account.add_read(taken);
        self.record(host, TraceEvent::Read(serial, side, taken));
        self.schedule_room_report(link, side);
        Ok(taken)
    }

    /// Schedules the report to the peer that there is room again.
    fn schedule_room_report(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get_mut(link) else { return };
        let peer = &found.ends[usize::from(other_side(side))];
        let (to, is_armed) = (peer.host, peer.armed.write && peer.registered.is_some());
        let end = &mut found.ends[usize::from(side)];
        // Either the peer does not wait for room, or a report is already on its way and will cover
        // all the room at its arrival.
        if !is_armed || end.input.room_is_due {
            return;
        }
        end.input.room_is_due = true;
        let (host, is_slow) = (end.host, end.input.is_slow);
        let mut after = self.latency(host, to);
        if is_slow {
            after += self.random_duration(Duration::from_millis(100));
        }
        self.schedule(self.local_time(host) + after, SimEvent::Room(link, other_side(side)));
    }

    /// Returns how many bytes fit into the peer's window.
    pub(crate) fn room_at(&self, link: Key, side: u8) -> usize {
        self.links.get(link).map_or(0, |link| link.ends[usize::from(other_side(side))].input.room())
    }

    pub(crate) fn write(&mut self, link: Key, side: u8, bytes: &[u8]) -> io::Result<usize> {
        let Some(found) = self.links.get(link) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let host = found.ends[usize::from(side)].host;
        self.roll_entry_faults(link, host)?;
        let Some(found) = self.links.get_mut(link) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let is_peer_open = found.ends[usize::from(other_side(side))].is_open;
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        // There is no network between two Unix sockets: a writer knows at once that its peer is gone.
        let is_local = matches!(end.place, Place::Path(..));
        if end.is_dead || end.output_shut || is_local && !is_peer_open {
            // Between Unix sockets, the error is kept for whoever reads.
            let error = if is_local { None } else { end.error.take() };
            return Err(error.unwrap_or(io::ErrorKind::BrokenPipe).into());
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let (is_connected, is_registered) = (end.is_connected, end.registered.is_some());
        let room = found.ends[usize::from(other_side(side))].input.room();
        // A write waits for the connection as it does for room: `EAGAIN` on Linux.
        if !is_connected || room == 0 {
            return Err(self.would_block(link, side, Operation::Write));
        }
        if is_registered && self.roll(Fault::WouldBlock) {
            return Err(self.pretend_to_block(link, side, Operation::Write));
        }
        let taken = self.shorten(Fault::ShortWrite, room.min(bytes.len()));
        let Some(found) = self.links.get_mut(link) else { return Ok(0) };
        found.ends[usize::from(other_side(side))].input.bytes.extend(&bytes[..taken]);
        self.progress += 1;
        self.host(host).account.add_written(taken);
        self.record(host, TraceEvent::Written(serial, side, taken));
        self.send_segment(link, side, SegmentContent::Bytes(taken));
        Ok(taken)
    }

    pub(crate) fn shutdown_end(&mut self, link: Key, side: u8, how: Shutdown) -> io::Result<()> {
        let Some(found) = self.links.get_mut(link) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        if !end.is_connected || end.has_forgotten_peer() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if end.is_dead {
            return Ok(());
        }
        let host = end.host;
        if how != Shutdown::Write {
            end.input_shut = true;
        }
        if how != Shutdown::Read && !end.output_shut {
            end.output_shut = true;
            let has_ended = end.input.ended;
            self.record(host, TraceEvent::Shutdown(serial, side));
            self.send_segment(link, side, SegmentContent::End);
            // Now both directions have ended: a hang-up (`EPOLLHUP`, epoll_ctl(2)).
            if has_ended {
                self.edge(link, side, EventSet::READ_CLOSED | EventSet::WRITE_CLOSED);
            }
        }
        Ok(())
    }

    /// Makes the close of an end a reset. Unix sockets have none.
    pub(crate) fn reset_at_close(&mut self, link: Key, side: u8) -> io::Result<()> {
        let Some(found) = self.links.get_mut(link) else { return Ok(()) };
        let end = &mut found.ends[usize::from(side)];
        if matches!(end.place, Place::Path(..)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        end.resets_on_close = true;
        Ok(())
    }

    pub(crate) fn take_error(&mut self, link: Key, side: u8) -> Option<io::Error> {
        self.links.get_mut(link)?.ends[usize::from(side)].error.take().map(io::Error::from)
    }

    /// The socket at an end is dropped.
    pub(crate) fn close_end(&mut self, link: Key, side: u8) {
        let _ = self.deregister_end(link, side);
        let Some(found) = self.links.get_mut(link) else { return };
        let knows_end = found.ends[usize::from(other_side(side))].input.ended;
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        let host = end.host;
        end.is_open = false;
        // Unread bytes are lost, and the peer has to know (RFC 1122 §4.2.2.13).
        let leaves_unread =
            end.input.arrived > 0 || !end.input.segments.is_empty() && end.input_shut;
        let is_reset = end.resets_on_close || leaves_unread;
        // An abandoned connection attempt sends nothing yet: its response meets a reset
        // (`deliver_connected`).
        let (is_dead, was_shut) = (end.is_dead || !end.is_connected, end.output_shut);
        let is_local = matches!(end.place, Place::Path(..));
        let lost = if is_dead { 0 } else { end.input.must_be_read };
        end.output_shut = true;
        self.record(host, TraceEvent::Closed(serial, side));
        if lost > 0 {
            self.check_nothing_lost(host, || {
                format!("{lost} bytes of connection {serial} were never read")
            });
        }
        if !is_dead && !self.hosts[host as usize].is_silent {
            if is_reset {
                // As on Linux, which discards what it has not sent, and does not send anything
                // again that the network loses. Between Unix sockets there is no network.
                if !is_local {
                    self.drop_under_way(link, side);
                }
                self.send_segment(link, side, SegmentContent::Reset);
            } else if !was_shut {
                self.send_segment(link, side, SegmentContent::End);
            } else if is_local && knows_end {
                // That nobody reads any more is new. If the end is still on its way, both come
                // together.
                self.edge(link, other_side(side), EventSet::READ_CLOSED | EventSet::WRITE_CLOSED);
            }
        }
        self.remove_if_closed(link);
    }
}
