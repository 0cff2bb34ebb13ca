//! What travels between the ends of a connection: bytes, the end of a stream, a reset, the news of
//! room.

use std::io;
use std::time::Duration;

use rotor_core::EventSet;

use super::interest::filter;
use super::link::{Carries, FAILED, Segment, other};
use super::{Due, World};
use crate::faults::Fault;
use crate::table::Key;
use crate::trace::What;

impl World {
    pub(super) fn send(&mut self, link: Key, from: u8, carries: Carries) {
        let Some(found) = self.links.get(link) else { return };
        let (sender, receiver) =
            (found.ends[usize::from(from)].host, found.ends[usize::from(other(from))].host);
        let transmission = match carries {
            Carries::Bytes(bytes) => self.network.transmission(bytes),
            Carries::End | Carries::Reset => Duration::ZERO,
        };
        let latency = self.latency(sender, receiver);
        let now = self.local(sender);
        let Some(found) = self.links.get_mut(link) else { return };
        let end = &mut found.ends[usize::from(from)];
        let departed = now.max(end.busy_until) + transmission;
        end.busy_until = departed;
        let pipe = &mut found.ends[usize::from(other(from))].input;
        // A stream keeps its order, however lucky a later segment is.
        let at = (departed + latency).max(pipe.last_arrival);
        pipe.last_arrival = at;
        pipe.segments.push_back(Segment { at, carries });
        self.schedule(at, Due::Arrive(link, other(from)));
    }

    /// What was under way reaches an end, as far as it is time.
    pub(crate) fn arrive(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get(link) else { return };
        let (host, peer) =
            (found.ends[usize::from(side)].host, found.ends[usize::from(other(side))].host);
        let (is_blocked, now) = (self.is_blocked(host, peer), self.now);
        let Some(found) = self.links.get_mut(link) else { return };
        let end = &mut found.ends[usize::from(side)];
        // Who connects hears that it is connected first: bytes of a peer whose answer has not come
        // belong to no connection yet (RFC 9293 §3.10.7.3).
        let is_early = side == 0 && !end.is_connected && !end.is_dead && end.is_open;
        if is_blocked || is_early {
            // Not looked at again before the hosts can reach each other, `resume_stalled`, or the
            // answer has come, `connected`.
            end.input.stalled = true;
            return;
        }
        if end.is_dead {
            // Its attempt to connect was over before the answer came.
            return end.input.segments.clear();
        }
        let (mut events, mut was_reset, mut meets_nobody) = (EventSet::EMPTY, false, false);
        while let Some(segment) = end.input.segments.front()
            && segment.at <= now
        {
            match segment.carries {
                Carries::Bytes(bytes) => {
                    events |= EventSet::READABLE;
                    end.input.arrived += bytes;
                    end.input.delivered += bytes as u64;
                    // Bytes for a socket that is closed are answered with a reset (RFC 1122
                    // §4.2.2.13).
                    meets_nobody |= !end.is_open;
                }
                Carries::End => {
                    events |= EventSet::READABLE | EventSet::READ_CLOSED;
                    end.input.ended = true;
                }
                Carries::Reset => was_reset = true,
            }
            end.input.segments.pop_front();
        }
        self.progress += 1;
        // Its edge tells of what came with it as well.
        if was_reset {
            self.reset_end(link, side);
        } else if meets_nobody {
            self.send(link, side, Carries::Reset);
        } else if !events.is_empty() {
            self.edge(link, side, events);
        }
    }

    /// A reset reaches an end.
    fn reset_end(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get(link) else { return };
        if found.ends[usize::from(side)].is_dead {
            return;
        }
        let drops_input =
            found.ends[usize::from(side)].input.arrived > 0 && self.roll(Fault::ResetDropsInput);
        let Some(found) = self.links.get_mut(link) else { return };
        let (serial, end) = (found.serial, &mut found.ends[usize::from(side)]);
        let host = end.host;
        end.is_dead = true;
        end.error = Some(io::ErrorKind::ConnectionReset);
        if drops_input {
            end.input.bytes.clear();
            end.input.arrived = 0;
        }
        end.input.segments.clear();
        self.record(host, What::Reset(serial, side));
        let all = EventSet::READABLE
            | EventSet::WRITABLE
            | EventSet::READ_CLOSED
            | EventSet::WRITE_CLOSED;
        self.edge(link, side, all | FAILED);
        self.free_if_closed(link);
    }

    /// Resets a connection in the middle: both ends hear of it.
    pub(crate) fn cut(&mut self, link: Key) {
        self.reset_end(link, 0);
        self.reset_end(link, 1);
    }

    /// The writer hears that its peer has made room.
    pub(crate) fn room(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get(link) else { return };
        let is_blocked = self.is_blocked(found.ends[0].host, found.ends[1].host);
        let Some(found) = self.links.get_mut(link) else { return };
        let pipe = &mut found.ends[usize::from(other(side))].input;
        pipe.room_is_stalled = is_blocked;
        if is_blocked {
            return;
        }
        pipe.room_is_due = false;
        self.edge(link, side, EventSet::WRITABLE);
    }

    /// Partitions have healed, or a host has its power back: what waited goes on.
    pub(crate) fn resume_stalled(&mut self) {
        let stalled: Vec<(Key, u8)> = self
            .links
            .iter()
            .flat_map(|(key, link)| [(key, 0u8), (key, 1)].map(|(key, side)| (key, side, link)))
            .filter(|(_, side, link)| {
                let pipe = &link.ends[usize::from(*side)].input;
                pipe.stalled || pipe.room_is_stalled
            })
            .map(|(key, side, _)| (key, side))
            .collect();
        for (link, side) in stalled {
            let Some(found) = self.links.get_mut(link) else { continue };
            let pipe = &mut found.ends[usize::from(side)].input;
            let (bytes, room) =
                (std::mem::take(&mut pipe.stalled), std::mem::take(&mut pipe.room_is_stalled));
            // Each when its timer next repeats it; where the way is still blocked it stalls again.
            for (is_stalled, due) in
                [(bytes, Due::Arrive(link, side)), (room, Due::Room(link, other(side)))]
            {
                if is_stalled {
                    let at = self.now + self.random_duration(Duration::from_millis(200));
                    self.schedule(at, due);
                }
            }
        }
    }

    /// Lets an end have at once what waited for it.
    pub(super) fn resume(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get_mut(link) else { return };
        if std::mem::take(&mut found.ends[usize::from(side)].input.stalled) {
            self.arrive(link, side);
        }
    }

    /// No receiver is slow any more, and writers that wait hear of the room.
    pub(crate) fn widen_windows(&mut self) {
        let window = self.network.window;
        let slow: Vec<(Key, u8)> = self
            .links
            .iter()
            .flat_map(|(key, link)| [(key, 0u8, link), (key, 1, link)])
            .filter(|(_, side, link)| link.ends[usize::from(*side)].input.is_slow)
            .map(|(key, side, _)| (key, side))
            .collect();
        for (link, side) in slow {
            let Some(found) = self.links.get_mut(link) else { continue };
            let pipe = &mut found.ends[usize::from(side)].input;
            pipe.is_slow = false;
            pipe.window = window;
            self.edge(link, other(side), EventSet::WRITABLE);
        }
    }

    /// Forgets a connection that no socket has any more.
    pub(super) fn free_if_closed(&mut self, link: Key) {
        if self.links.get(link).is_some_and(|link| !link.ends[0].is_open && !link.ends[1].is_open) {
            self.links.remove(link);
        }
    }

    /// Reports a change to the socket at an end, if it is registered and the contract or the dice
    /// ask for it.
    pub(super) fn edge(&mut self, link: Key, side: u8, events: EventSet) {
        let Some(found) = self.links.get(link) else { return };
        let end = &found.ends[usize::from(side)];
        let Some((token, interest)) = end.registered else { return };
        let (events, host) = (filter(interest, events), end.host);
        let is_armed = end.armed.read && events.is_readable()
            || end.armed.write && events.is_writable()
            // Whoever took a short read for an emptied socket hears of the end by nothing else.
            || end.drains && events.is_closing();
        if events.is_empty() || !is_armed && self.roll(Fault::UnarmedEdgeLost) {
            return;
        }
        if let Some(found) = self.links.get_mut(link) {
            let armed = &mut found.ends[usize::from(side)].armed;
            armed.read &= !events.is_readable();
            armed.write &= !events.is_writable();
        }
        self.push_edge(host, token, events);
    }
}
