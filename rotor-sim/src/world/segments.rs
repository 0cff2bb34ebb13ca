//! What travels between the ends of a connection: bytes, the end of a stream, a reset, the report
//! that there is room.

use std::io::ErrorKind;
use std::time::Duration;

use rotor_core::EventSet;

use super::interest::wanted_events;
use super::link::{FAILED, Link, Segment, SegmentContent, other_side};
use super::place::Place;
use super::{SimEvent, World};
use crate::faults::Fault;
use crate::table::Key;
use crate::trace::TraceEvent;

impl World {
    pub(super) fn send_segment(&mut self, link: Key, from: u8, content: SegmentContent) {
        let Some(found) = self.links.get(link) else { return };
        let (sender, receiver) =
            (found.ends[usize::from(from)].host, found.ends[usize::from(other_side(from))].host);
        let transmission = match content {
            SegmentContent::Bytes(bytes) => self.network.transmission(bytes),
            SegmentContent::End | SegmentContent::Reset => Duration::ZERO,
        };
        let latency = self.latency(sender, receiver);
        let now = self.local_time(sender);
        let Some(found) = self.links.get_mut(link) else { return };
        let end = &mut found.ends[usize::from(from)];
        let departed = now.max(end.busy_until) + transmission;
        end.busy_until = departed;
        let pipe = &mut found.ends[usize::from(other_side(from))].input;
        // A stream keeps its order, even if a later segment has a shorter latency.
        let at = (departed + latency).max(pipe.last_arrival);
        pipe.last_arrival = at;
        pipe.segments.push_back(Segment { at, content });
        self.schedule(at, SimEvent::Arrive(link, other_side(from)));
    }

    /// Delivers the segments to an end whose time has come.
    pub(crate) fn deliver_segments(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get(link) else { return };
        let (host, peer) =
            (found.ends[usize::from(side)].host, found.ends[usize::from(other_side(side))].host);
        let is_peer_open = found.ends[usize::from(other_side(side))].is_open;
        let (is_blocked, now) = (self.is_blocked(host, peer), self.now);
        let Some(found) = self.links.get_mut(link) else { return };
        let end = &mut found.ends[usize::from(side)];
        // The connecting end must hear first that it is connected: until then, bytes of the peer
        // belong to no connection (RFC 9293 §3.10.7.3).
        let is_early = side == 0 && !end.is_connected && !end.is_dead && end.is_open;
        if is_blocked || is_early {
            // `resume_stalled` tries again when the hosts can reach each other, and
            // `deliver_connected` when the response has come.
            end.input.stalled = true;
            return;
        }
        if end.is_dead {
            // The connection attempt was over before the response came.
            return end.input.segments.clear();
        }
        let (mut events, mut was_reset, mut has_no_receiver) = (EventSet::EMPTY, false, false);
        while let Some(segment) = end.input.segments.front()
            && segment.at <= now
        {
            match segment.content {
                SegmentContent::Bytes(bytes) => {
                    events |= EventSet::READABLE;
                    end.input.arrived += bytes;
                    end.input.delivered += bytes as u64;
                    // Bytes for a closed socket are answered with a reset (RFC 1122 §4.2.2.13).
                    has_no_receiver |= !end.is_open;
                }
                SegmentContent::End => {
                    events |= EventSet::READABLE | EventSet::READ_CLOSED;
                    end.input.ended = true;
                    if end.has_hung_up(is_peer_open) {
                        events |= EventSet::WRITE_CLOSED;
                    }
                }
                SegmentContent::Reset => was_reset = true,
            }
            end.input.segments.pop_front();
        }
        self.progress += 1;
        // The edge of a reset also reports what came with it.
        if was_reset {
            self.reset_end(link, side, ErrorKind::ConnectionReset);
        } else if has_no_receiver {
            self.send_segment(link, side, SegmentContent::Reset);
        } else if !events.is_empty() {
            self.edge(link, side, events);
        }
    }

    /// Delivers a reset to an end, or another loss of its connection.
    fn reset_end(&mut self, link: Key, side: u8, why: ErrorKind) {
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
        // `EPIPE` behind the end of the input, as on Linux: only writes are in vain.
        let is_behind_end = end.input.ended && !end.output_shut && !drops_input;
        let breaks_pipe = is_behind_end && matches!(end.place, Place::Inet(_));
        end.error = Some(match why {
            ErrorKind::ConnectionReset if breaks_pipe => ErrorKind::BrokenPipe,
            other => other,
        });
        if drops_input {
            end.input.bytes.clear();
            end.input.arrived = 0;
            // Without them, the end would make what was read before look complete.
            end.input.ended = false;
        }
        end.input.segments.clear();
        self.record(host, TraceEvent::Reset(serial, side));
        let all = EventSet::READABLE
            | EventSet::WRITABLE
            | EventSet::READ_CLOSED
            | EventSet::WRITE_CLOSED;
        self.edge(link, side, all | FAILED);
        self.remove_if_closed(link);
    }

    /// Resets a connection in the middle: both ends hear of it, each in its own way.
    pub(crate) fn reset_connection(&mut self, link: Key) {
        for side in 0..2 {
            let may_time_out = |link: &Link| {
                !link.ends[side].is_dead && matches!(link.ends[side].place, Place::Inet(_))
            };
            let may_time_out = self.links.get(link).is_some_and(may_time_out);
            let times_out = may_time_out && self.roll(Fault::LossTimesOut);
            let why = if times_out { ErrorKind::TimedOut } else { ErrorKind::ConnectionReset };
            self.reset_end(link, side as u8, why);
        }
    }

    /// Drops what an end has sent and what has not arrived, from a random segment on: the reset
    /// that follows overtakes it.
    pub(super) fn drop_under_way(&mut self, link: Key, from: u8) {
        let Some(found) = self.links.get(link) else { return };
        let segments = found.ends[usize::from(other_side(from))].input.segments.len();
        if segments == 0 || !self.roll(Fault::ResetOvertakes) {
            return;
        }
        let kept = self.random.usize(..segments);
        let Some(found) = self.links.get_mut(link) else { return };
        let pipe = &mut found.ends[usize::from(other_side(from))].input;
        for segment in pipe.segments.drain(kept..) {
            if let SegmentContent::Bytes(bytes) = segment.content {
                pipe.bytes.truncate(pipe.bytes.len() - bytes);
            }
        }
    }

    /// Tells the writer that its peer has room.
    pub(crate) fn deliver_room_report(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get(link) else { return };
        let is_blocked = self.is_blocked(found.ends[0].host, found.ends[1].host);
        let Some(found) = self.links.get_mut(link) else { return };
        let pipe = &mut found.ends[usize::from(other_side(side))].input;
        pipe.room_is_stalled = is_blocked;
        if is_blocked {
            return;
        }
        pipe.room_is_due = false;
        self.edge(link, side, EventSet::WRITABLE);
    }

    /// Delivers what has stalled, after a partition has healed or a host has its power back.
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
            // Each goes on when its timer next retransmits. If the path is still blocked, it stalls
            // again.
            for (is_stalled, event) in [
                (bytes, SimEvent::Arrive(link, side)),
                (room, SimEvent::Room(link, other_side(side))),
            ] {
                if is_stalled {
                    let at = self.now + self.random_duration(Duration::from_millis(200));
                    self.schedule(at, event);
                }
            }
        }
    }

    /// Delivers at once what has waited for an end.
    pub(super) fn resume_end(&mut self, link: Key, side: u8) {
        let Some(found) = self.links.get_mut(link) else { return };
        if std::mem::take(&mut found.ends[usize::from(side)].input.stalled) {
            self.deliver_segments(link, side);
        }
    }

    /// Makes all slow receivers fast, and tells waiting writers of the room.
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
            self.edge(link, other_side(side), EventSet::WRITABLE);
        }
    }

    /// Removes a connection that no socket uses any more.
    pub(super) fn remove_if_closed(&mut self, link: Key) {
        if self.links.get(link).is_some_and(|link| !link.ends[0].is_open && !link.ends[1].is_open) {
            self.links.remove(link);
        }
    }

    /// Reports a change to the socket at an end, if it is registered, and if the contract or the
    /// random numbers demand it.
    pub(super) fn edge(&mut self, link: Key, side: u8, events: EventSet) {
        let Some(found) = self.links.get(link) else { return };
        let end = &found.ends[usize::from(side)];
        let Some((token, interest)) = end.registered else { return };
        let (events, host) = (wanted_events(interest, events), end.host);
        let is_armed = end.armed.read && events.is_readable()
            || end.armed.write && events.is_writable()
            // A reader that stops after a short read hears of the end only by this edge.
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
