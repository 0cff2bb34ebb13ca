//! The turn of a stack: sends what was written, and passes what has arrived to the sockets.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rotor_core::{EventSet, Time, Token};
use smoltcp::iface::PollResult;
use smoltcp::socket::tcp::State;

use super::connection::{Connection, Phase};
use super::flow::{Control, Destination, Segment};
use super::{Stack, flow, outlet, to_instant};
use crate::device::Medium;
use crate::device_gone::device_gone;
use crate::slots::Id;

/// How many packets one connection sends before the others have their turn. 64 is a little more
/// than a window of 64 KiB needs.
const BURST_MAX: usize = 64;

/// How soon a connection is looked at again that wants to send at once and cannot.
const SEND_RETRY: Duration = Duration::from_millis(1);

/// What has changed the state of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Packet,
    Timer,
}

impl Stack {
    /// Begins a wait: sends what was written in the previous turn, and takes what has arrived.
    /// Returns whether the loop may sleep, and how long.
    pub(crate) fn begin_wait(&mut self, until: Option<Time>) -> io::Result<Wait> {
        self.send_all();
        let taken = self.receive_packets()?;
        self.has_more = taken == self.config.packets_max;
        let has_work = taken > 0
            || !self.dirty.is_empty()
            || !self.dirty_datagrams.is_empty()
            || !self.changed.is_empty()
            || !self.changed_datagrams.is_empty()
            || !self.changed_listeners.is_empty();
        if has_work || until == Some(Time::ZERO) {
            return Ok(Wait::Poll);
        }
        match self.next_deadline(until) {
            None => Ok(Wait::Forever),
            // Zero if the time has passed: subtraction of times saturates.
            Some(next) => match next - self.now() {
                Duration::ZERO => Ok(Wait::Poll),
                time => Ok(Wait::AtMost(time)),
            },
        }
    }

    /// Ends a wait: takes what has arrived meanwhile, does what is due, and collects the events of
    /// the machines.
    pub(crate) fn end_wait(
        &mut self,
        until: Option<Time>,
        slept: bool,
        ready: &mut Vec<(Token, EventSet)>,
    ) -> io::Result<()> {
        if slept {
            let taken = self.receive_packets()?;
            self.has_more = taken == self.config.packets_max;
        }
        self.run_timers();
        let before = ready.len();
        self.collect_events(ready);
        if let Some(alarm) = &self.alarm {
            let has_work =
                self.has_more || !self.dirty.is_empty() || !self.dirty_datagrams.is_empty();
            if has_work || ready.len() > before {
                alarm.ring();
            } else {
                alarm.set(self.next_deadline(until));
            }
        }
        Ok(())
    }

    /// Returns when there is something to do if nothing arrives before.
    pub(super) fn next_deadline(&self, until: Option<Time>) -> Option<Time> {
        let due = self.due.first().map(|(at, _)| *at);
        let ended = self.time_wait.next_expiry();
        let retry = self.wire.outlet.has_waiting().then(|| self.now() + outlet::RETRY);
        [until, due, ended, self.retry_resolution_at, self.wire.next_arrival(), retry]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes the packets that have arrived, and returns their number.
    fn receive_packets(&mut self) -> io::Result<usize> {
        let mut memory = self.wire.take_buffer();
        let mut taken = 0;
        let result = loop {
            if taken == self.config.packets_max {
                break Ok(taken);
            }
            match self.wire.receive(&mut memory) {
                Ok(None) => break Ok(taken),
                Ok(Some(len)) => {
                    taken += 1;
                    let packet = &memory[..len.min(memory.len())];
                    if self.wire.has_header() {
                        self.handle_arrival(packet);
                    } else {
                        self.handle_packet(packet);
                    }
                }
                Err(cause) => break Err(device_gone(self.wire.name(), cause)),
            }
        };
        self.wire.return_buffer(memory);
        // Once for all packets: many may wait, and a flood of forged replies must not cause as many
        // retries.
        if std::mem::take(&mut self.may_resolve) {
            self.resolve();
        }
        self.stats.received += taken as u64;
        result
    }

    pub(super) fn handle_packet(&mut self, packet: &[u8]) {
        match flow::classify(self.wire.medium, packet) {
            Destination::Tcp(segment) => match segment.control {
                Control::Reset => self.handle_reset(&segment, packet),
                _ => self.handle_segment(&segment, packet),
            },
            Destination::Udp { flow } => self.handle_datagram(flow, packet),
            Destination::Neighbour => {
                self.answer(packet);
                self.may_resolve = true;
            }
            Destination::Unreachable(unreachable) => self.handle_unreachable(&unreachable),
            Destination::Other => self.answer(packet),
            Destination::Refused => self.stats.refused += 1,
        }
    }

    /// Lets the interface answer by itself: ARP, pings, and packets that no socket wants.
    pub(super) fn answer(&mut self, packet: &[u8]) {
        let now = self.now();
        let mut port = self.wire.with_packet(packet).with_limit(&mut self.rejections, now);
        self.iface.poll_ingress_single(to_instant(now), &mut port, &mut self.no_sockets);
    }

    pub(super) fn handle_segment(&mut self, segment: &Segment, packet: &[u8]) {
        let (flow, is_first) = (segment.flow, segment.control == Control::First);
        let mut known = self.flows.get(&flow).copied();
        if is_first
            && let Some(id) = known
            && self.connections.get(id).is_some_and(|one| one.gives_way(segment.number))
        {
            // No more packets are for the old connection, even if its machine has not heard of its
            // end yet, or not read the last bytes.
            known = None;
        }
        if known.is_none()
            && self.time_wait.contains(&flow)
            && !self.handle_late_segment(flow, packet)
        {
            return;
        }
        let mut first_interface = None;
        let id = match known {
            Some(id) if is_first && self.is_synchronized(id) => return self.challenge(id, packet),
            Some(id) if !self.fits_window(id, segment, packet) => return,
            Some(id) => id,
            // Segments to a broadcast or multicast address are not answered (RFC 9293 §3.9.2.3),
            // and smoltcp would reject them. Segments to another host are not for this one.
            None if !self.has_address(flow.local.ip()) => return,
            None if !is_first => return self.answer(packet),
            None => match self.start_half_open(flow) {
                Ok(Some((id, iface))) => {
                    first_interface = Some(iface);
                    id
                }
                Ok(None) => return self.answer(packet),
                // As if it had been lost on its way: the peer tries again.
                Err(_) => return self.stats.backlog_overflowed += 1,
            },
        };
        let now = self.now();
        let Some(connection) = self.connections.get_mut(id) else { return };
        let before = connection.state();
        // Any packet shows that the peer is there.
        connection.record_answer();
        let is_half_open = matches!(connection.phase, Phase::HalfOpen(_));
        let Connection { set, sequence, .. } = &mut **connection;
        let mut port = self.wire.with_packet(packet).with_sequence(sequence);
        if is_half_open {
            // The peer has not shown yet that it is there: the address may be forged.
            port = port.with_limit(&mut self.rejections, now);
        }
        let iface = first_interface.as_deref_mut().unwrap_or(&mut self.iface);
        iface.poll_ingress_single(to_instant(now), &mut port, set);
        connection.sequence.record_window(segment);
        connection.record_first_number(segment.number, before);
        connection.record_duplicate_ack(before);
        self.update_phase(id, before, Cause::Packet);
        self.mark_dirty(id);
    }

    /// Sends what was written, because no turn follows: the backend or the stack is dropped, maybe
    /// during a panic. A second panic, in the device, would abort the process.
    pub(crate) fn send_last(&mut self) {
        if std::thread::panicking() {
            let _one_is_enough = catch_unwind(AssertUnwindSafe(|| self.send_all()));
        } else {
            self.send_all();
        }
    }

    /// Sends what was written.
    pub(crate) fn send_all(&mut self) {
        self.wire.send_waiting();
        let mut dirty = std::mem::take(&mut self.dirty);
        for id in dirty.drain(..) {
            self.send(id);
        }
        // Connections that have more to send are in the new list.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
        self.send_datagrams();
    }

    /// Sends what a connection has to send, and notes when it has to be looked at again.
    pub(super) fn send(&mut self, id: Id) {
        let time = self.now();
        let now = to_instant(time);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_dirty = false;
        if connection.holds_last_bytes() {
            // It sends nothing more. The end of TIME-WAIT is noticed after the last read.
            return self.set_due(id, None);
        }
        let before = connection.state();
        let is_resetting = connection.record_reset();
        if is_resetting && self.flows.get(&connection.flow) != Some(&id) {
            // A new connection has its ports; the peer would take the reset for one of that.
            return match connection.phase {
                Phase::Detached => self.remove_connection(id),
                _ => self.mark_changed(id),
            };
        }
        connection.sequence.is_resetting = is_resetting;
        let mut bursts = 0;
        // Once the last bytes are acknowledged, a further call may find that TIME-WAIT is over.
        while bursts < BURST_MAX && !connection.holds_last_bytes() {
            let Connection { set, sequence, .. } = &mut **connection;
            let mut port = self.wire.burst().with_sequence(sequence);
            if self.iface.poll_egress(now, &mut port, set) != PollResult::SocketStateChanged {
                break;
            }
            bursts += 1;
        }
        connection.sequence.is_resetting = false;
        self.wire.flush();
        let held_up = self.wire.take_held_up().then_some(connection.flow.remote.ip());
        // The address of a half-open connection may be forged.
        let is_doubtful = matches!(connection.phase, Phase::HalfOpen(_));
        let is_ethernet = self.wire.medium == Medium::Ethernet;
        if bursts == 0 && is_ethernet && connection.has_unsent() && !connection.is_unresolved {
            connection.is_unresolved = true;
            self.unresolved.push(id);
        }
        let next = self.iface.poll_at(now, &connection.set);
        let next = if connection.probe_window(next) { Some(now) } else { next };
        let next = next.map(|next| {
            let micros = u64::try_from(next.total_micros()).unwrap_or(0);
            Time::from_nanos(micros.saturating_mul(1_000))
        });
        let is_at_once = next.is_some_and(|next| next <= time);
        let next = if is_at_once { Some(time + SEND_RETRY) } else { next };
        connection.update_answer_deadline(time, self.config.user_timeout);
        let next = [next, connection.give_up_at, connection.answer_deadline];
        let next = next.into_iter().flatten().min();
        self.set_due(id, next);
        self.update_phase(id, before, Cause::Timer);
        if let Some(target) = held_up {
            self.request_address(target, is_doubtful);
        }
        if bursts == BURST_MAX && is_at_once {
            self.mark_dirty(id);
        }
        // Ended connections stay in the list until a packet arrives that may tell a hardware
        // address. So the list is kept at about twice the number of connections.
        if self.unresolved.len() > 2 * (self.connections.len() + 8) {
            let connections = &self.connections;
            self.unresolved.retain(|id| connections.get(*id).is_some());
        }
    }

    /// Tries again what waits for a hardware address, because a packet has arrived that may have
    /// told it.
    fn resolve(&mut self) {
        for id in std::mem::take(&mut self.unresolved) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.is_unresolved = false;
            self.mark_dirty(id);
        }
        self.resolve_datagrams();
    }

    pub(super) fn set_due(&mut self, id: Id, at: Option<Time>) {
        // The end of time counts as none; otherwise virtual time would advance to it.
        let at = at.filter(|at| *at != Time::NEVER);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let before = std::mem::replace(&mut connection.due, at);
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, id));
        }
        if let Some(at) = at {
            self.due.insert((at, id));
        }
    }

    /// Does what is due: retransmits, probes, gives up.
    fn run_timers(&mut self) {
        let now = self.now();
        self.time_wait.expire(now);
        if self.retry_resolution_at.is_some_and(|at| at <= now) {
            self.retry_resolution_at = None;
            self.resolve_datagrams();
        }
        while let Some((at, id)) = self.due.first().copied()
            && at <= now
        {
            self.set_due(id, None);
            let Some(connection) = self.connections.get(id) else { continue };
            if connection.give_up_at.is_some_and(|at| at <= now) {
                self.give_up(id);
            } else if connection.answer_deadline.is_some_and(|at| at <= now) {
                self.time_out(id);
            } else {
                self.send(id);
            }
        }
    }

    /// Ends a connection that has taken too long, by its phase.
    fn give_up(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.give_up_at = None;
        match connection.phase {
            Phase::HalfOpen(_) => {
                self.stats.half_open_given_up += 1;
                self.remove_connection(id);
            }
            Phase::Detached => {
                if connection.state() != State::TimeWait {
                    self.stats.lingered_too_long += 1;
                }
                connection.socket().abort();
                self.send(id);
                self.remove_connection(id);
            }
            Phase::Waiting(_) | Phase::Connecting | Phase::Open => {}
        }
    }

    /// Aborts a connection whose peer does not answer.
    fn time_out(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.answer_deadline = None;
        connection.fail(io::ErrorKind::TimedOut);
        connection.socket().abort();
        self.stats.timed_out += 1;
        self.send(id);
        self.mark_changed(id);
    }

    /// Updates the phase and the statistics after a connection's state may have changed.
    fn update_phase(&mut self, id: Id, before: State, cause: Cause) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let state = connection.state();
        // In these states, closing is the regular end.
        let is_in_order = matches!(before, State::LastAck | State::TimeWait | State::Closed);
        let has_broken = state == State::Closed && !is_in_order;
        match connection.phase {
            Phase::HalfOpen(_) if matches!(state, State::Listen | State::Closed) => {
                self.stats.half_open_given_up += u64::from(before == State::SynReceived);
                return self.remove_connection(id);
            }
            Phase::HalfOpen(listener) if state != State::SynReceived => {
                connection.phase = Phase::Waiting(listener);
                connection.give_up_at = None;
                self.queue_for_accept(listener, id);
            }
            Phase::Connecting if has_broken => {
                let kind = match cause {
                    Cause::Packet => io::ErrorKind::ConnectionRefused,
                    Cause::Timer => io::ErrorKind::TimedOut,
                };
                connection.phase = Phase::Open;
                connection.fail(kind);
                self.stats.timed_out += u64::from(cause == Cause::Timer);
            }
            Phase::Connecting if !matches!(state, State::SynSent | State::SynReceived) => {
                connection.phase = Phase::Open;
                connection.socket().set_timeout(None);
            }
            Phase::Detached => return self.update_detached(id),
            _ if has_broken && cause == Cause::Packet => {
                connection.fail(match before {
                    // The peer has ended its side, so only writes are in vain, as on Linux.
                    State::CloseWait => io::ErrorKind::BrokenPipe,
                    _ => io::ErrorKind::ConnectionReset,
                });
                self.stats.reset += 1;
            }
            _ if has_broken => {
                connection.fail(io::ErrorKind::TimedOut);
                self.stats.timed_out += 1;
            }
            _ => {}
        }
        self.mark_changed(id);
    }

    /// Forgets a connection.
    pub(super) fn remove_connection(&mut self, id: Id) {
        self.set_due(id, None);
        let Some(connection) = self.connections.remove(id) else { return };
        // A new connection may have replaced it under the same flow.
        if self.flows.get(&connection.flow) == Some(&id) {
            self.flows.remove(&connection.flow);
        }
        self.stats.lingering -= usize::from(connection.is_lingering);
        if let Phase::HalfOpen(listener) = connection.phase {
            self.count_half_open_end(listener);
        }
        if let Some(socket) = connection.into_socket() {
            self.socket_pool.release(socket);
        }
    }

    /// Collects the events of the machines.
    fn collect_events(&mut self, ready: &mut Vec<(Token, EventSet)>) {
        let mut changed = std::mem::take(&mut self.changed);
        for id in changed.drain(..) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.is_changed = false;
            ready.extend(connection.take_events());
        }
        self.changed = changed;
        self.collect_datagram_events(ready);
        self.collect_listener_events(ready);
    }
}

/// How long a loop may sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    Poll,
    AtMost(Duration),
    Forever,
}
