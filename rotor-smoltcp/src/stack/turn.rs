//! The turn of a stack: sends what was written, and passes what has arrived to the sockets.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rotor_core::{EventSet, Time, Token};
use smoltcp::iface::PollResult;
use smoltcp::socket::tcp::State;

use super::connection::{Connection, Phase};
use super::flow::{Flow, Seen};
use super::{Stack, flow, instant};
use crate::device::Medium;
use crate::device_gone::device_gone;
use crate::slots::Id;

/// How many packets one connection sends before the others have their turn. 64 is a little more
/// than a window of 64 KiB needs.
const BURST: usize = 64;

/// How soon a connection is looked at again that wants to send at once and cannot.
const RETRY: Duration = Duration::from_millis(1);

/// How soon the hardware address of a datagram's target is asked for again. For connections,
/// smoltcp does that.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What has changed the state of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Packet,
    Time,
}

impl Stack {
    /// Begins a wait: sends what was written in the previous turn, and takes what has arrived.
    /// Returns whether the loop may sleep, and how long.
    pub(crate) fn begin_wait(&mut self, until: Option<Time>) -> io::Result<Wait> {
        self.send_all();
        let taken = self.take_packets()?;
        self.has_more = taken == self.config.packets_max;
        let has_work = taken > 0
            || !self.dirty.is_empty()
            || !self.dirty_datagrams.is_empty()
            || !self.changed.is_empty()
            || !self.changed_datagrams.is_empty()
            || !self.changed_listeners.is_empty();
        if has_work || until == Some(Time::ZERO) {
            return Ok(Wait::Not);
        }
        match self.next_look(until) {
            None => Ok(Wait::Forever),
            // Zero if the time has passed: subtraction of times saturates.
            Some(next) => match next - self.now() {
                Duration::ZERO => Ok(Wait::Not),
                time => Ok(Wait::AtMost(time)),
            },
        }
    }

    /// Ends a wait: takes what has arrived meanwhile, does what is due, and collects the events of
    /// the machines.
    pub(crate) fn end_wait(
        &mut self,
        until: Option<Time>,
        has_slept: bool,
        ready: &mut Vec<(Token, EventSet)>,
    ) -> io::Result<()> {
        if has_slept {
            let taken = self.take_packets()?;
            self.has_more = taken == self.config.packets_max;
        }
        self.fire();
        let before = ready.len();
        self.tell(ready);
        if let Some(alarm) = &self.alarm {
            let has_work =
                self.has_more || !self.dirty.is_empty() || !self.dirty_datagrams.is_empty();
            if has_work || ready.len() > before {
                alarm.ring();
            } else {
                alarm.set(self.next_look(until));
            }
        }
        Ok(())
    }

    /// Returns when there is something to do if nothing arrives before.
    pub(super) fn next_look(&self, until: Option<Time>) -> Option<Time> {
        let due = self.due.first().map(|(at, _)| *at);
        let ended = self.time_wait.next();
        [until, due, ended, self.ask_again_at, self.wire.next_arrival()].into_iter().flatten().min()
    }

    /// Takes the packets that have arrived, and returns their number.
    fn take_packets(&mut self) -> io::Result<usize> {
        let mut memory = self.wire.lend();
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
                        self.take_arrival(packet);
                    } else {
                        self.take(packet);
                    }
                }
                Err(cause) => break Err(device_gone(self.wire.name(), cause)),
            }
        };
        self.wire.give_back(memory);
        // Once for all packets: many may wait, and a flood of forged replies must not cause as many
        // retries.
        if std::mem::take(&mut self.may_resolve) {
            self.resolve();
        }
        self.stats.received += taken as u64;
        result
    }

    pub(super) fn take(&mut self, packet: &[u8]) {
        match flow::read(self.wire.medium, packet) {
            Seen::Tcp { flow, is_first } => self.take_segment(flow, is_first, packet),
            Seen::Reset { flow, number } => self.take_reset(flow, number, packet),
            Seen::Udp { flow } => self.take_datagram(flow, packet),
            Seen::Other => {
                self.answer(packet);
                self.may_resolve = true;
            }
            Seen::Refused => self.stats.refused += 1,
        }
    }

    /// Lets the interface answer by itself: ARP, pings, and packets that no socket wants.
    pub(super) fn answer(&mut self, packet: &[u8]) {
        let now = self.now();
        let mut port = self.wire.with(packet).within(&mut self.rejections, now);
        self.iface.poll_ingress_single(instant(now), &mut port, &mut self.nobody);
    }

    pub(super) fn take_segment(&mut self, flow: Flow, is_first: bool, packet: &[u8]) {
        let mut known = self.flows.get(&flow).copied();
        if is_first
            && let Some(id) = known
            && self.connections.get(id).is_some_and(|connection| connection.is_over())
        {
            // No more packets are for the old connection, even if its machine has not heard of its
            // end yet.
            known = None;
        }
        if known.is_none() && self.time_wait.has(&flow) && !self.take_late(flow, packet) {
            return;
        }
        let mut birth = None;
        let id = match known {
            Some(id) => id,
            // Segments to a broadcast or multicast address are not answered (RFC 9293 §3.9.2.3),
            // and smoltcp would reject them. Segments to another host are not for this one.
            None if !self.has_address(flow.local.ip()) => return,
            None if !is_first => return self.answer(packet),
            None => match self.begin_half_open(flow) {
                Ok(Some((id, iface))) => {
                    birth = Some(iface);
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
        connection.note_answer();
        let is_half_open = matches!(connection.phase, Phase::HalfOpen(_));
        let Connection { set, sequence, .. } = &mut **connection;
        let mut port = self.wire.with(packet).of(sequence);
        if is_half_open {
            // The peer has not shown yet that it is there: the address may be forged.
            port = port.within(&mut self.rejections, now);
        }
        let iface = birth.as_deref_mut().unwrap_or(&mut self.iface);
        iface.poll_ingress_single(instant(now), &mut port, set);
        connection.note_repetition(before);
        self.settle(id, before, By::Packet);
        self.mark(id);
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
        let now = instant(time);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_dirty = false;
        let before = connection.state();
        connection.note_reset();
        // More has arrived since that was acknowledged.
        let _past = connection.sequence.take_acknowledged();
        let Connection { set, sequence, .. } = &mut **connection;
        let mut port = self.wire.burst().of(sequence);
        let mut bursts = 0;
        while bursts < BURST
            && self.iface.poll_egress(now, &mut port, set) == PollResult::SocketStateChanged
        {
            bursts += 1;
        }
        self.wire.flush();
        connection.note_acknowledged();
        let is_ethernet = self.wire.medium == Medium::Ethernet;
        if bursts == 0 && is_ethernet && connection.has_unsent() && !connection.is_unresolved {
            connection.is_unresolved = true;
            self.unresolved.push(id);
        }
        let next = self.iface.poll_at(now, &connection.set);
        let next = if connection.ask_for_room(next) { Some(now) } else { next };
        let next = next.map(|next| {
            let micros = u64::try_from(next.total_micros()).unwrap_or(0);
            Time::from_nanos(micros.saturating_mul(1_000))
        });
        let is_at_once = next.is_some_and(|next| next <= time);
        let next = if is_at_once { Some(time + RETRY) } else { next };
        connection.note_debt(time, self.config.user_timeout);
        let next = [next, connection.give_up_at, connection.answer_due];
        let next = next.into_iter().flatten().min();
        self.set_due(id, next);
        self.settle(id, before, By::Time);
        if bursts == BURST && is_at_once {
            self.mark(id);
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
            self.mark(id);
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
    fn fire(&mut self) {
        let now = self.now();
        self.time_wait.expire(now);
        if self.ask_again_at.is_some_and(|at| at <= now) {
            self.ask_again_at = None;
            self.resolve_datagrams();
        }
        if self.ask_again_at.is_none() && !self.unresolved_datagrams.is_empty() {
            self.ask_again_at = Some(now + ASK_AGAIN);
        }
        while let Some((at, id)) = self.due.first().copied()
            && at <= now
        {
            self.set_due(id, None);
            let Some(connection) = self.connections.get(id) else { continue };
            if connection.give_up_at.is_some_and(|at| at <= now) {
                self.give_up(id);
            } else if connection.answer_due.is_some_and(|at| at <= now) {
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
                self.forget(id);
            }
            Phase::Left => {
                if connection.state() != State::TimeWait {
                    self.stats.lingered_too_long += 1;
                }
                connection.socket().abort();
                self.send(id);
                self.forget(id);
            }
            Phase::Waiting(_) | Phase::Connecting | Phase::Open => {}
        }
    }

    /// Aborts a connection whose peer does not answer.
    fn time_out(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.answer_due = None;
        connection.fail(io::ErrorKind::TimedOut);
        connection.socket().abort();
        self.stats.timed_out += 1;
        self.send(id);
        self.note_change(id);
    }

    /// Updates the phase and the statistics after a connection's state may have changed.
    fn settle(&mut self, id: Id, before: State, by: By) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let state = connection.state();
        // In these states, closing is the regular end.
        let is_in_order = matches!(before, State::LastAck | State::TimeWait | State::Closed);
        let has_broken = state == State::Closed && !is_in_order;
        match connection.phase {
            Phase::HalfOpen(_) if matches!(state, State::Listen | State::Closed) => {
                self.stats.half_open_given_up += u64::from(before == State::SynReceived);
                return self.forget(id);
            }
            Phase::HalfOpen(listener) if state != State::SynReceived => {
                connection.phase = Phase::Waiting(listener);
                connection.give_up_at = None;
                self.await_accept(listener, id);
            }
            Phase::Connecting if has_broken => {
                let kind = match by {
                    By::Packet => io::ErrorKind::ConnectionRefused,
                    By::Time => io::ErrorKind::TimedOut,
                };
                connection.phase = Phase::Open;
                connection.fail(kind);
                self.stats.timed_out += u64::from(by == By::Time);
            }
            Phase::Connecting if !matches!(state, State::SynSent | State::SynReceived) => {
                connection.phase = Phase::Open;
                connection.socket().set_timeout(None);
            }
            Phase::Left => return self.settle_left(id),
            _ if has_broken && by == By::Packet => {
                connection.fail(io::ErrorKind::ConnectionReset);
                self.stats.reset += 1;
            }
            _ if has_broken => {
                connection.fail(io::ErrorKind::TimedOut);
                self.stats.timed_out += 1;
            }
            _ => {}
        }
        self.note_change(id);
    }

    /// Forgets a connection.
    pub(super) fn forget(&mut self, id: Id) {
        self.set_due(id, None);
        let Some(connection) = self.connections.remove(id) else { return };
        // A new connection may have replaced it under the same flow.
        if self.flows.get(&connection.flow) == Some(&id) {
            self.flows.remove(&connection.flow);
        }
        self.stats.lingering -= usize::from(connection.lingers);
        if let Phase::HalfOpen(listener) = connection.phase {
            self.note_half_open_end(listener);
        }
        if let Some(socket) = connection.into_socket() {
            self.spares.give_back(socket);
        }
    }

    /// Collects the events of the machines.
    fn tell(&mut self, ready: &mut Vec<(Token, EventSet)>) {
        let mut changed = std::mem::take(&mut self.changed);
        for id in changed.drain(..) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.is_changed = false;
            ready.extend(connection.news());
        }
        self.changed = changed;
        self.tell_of_datagrams(ready);
        self.tell_listeners(ready);
    }
}

/// How long a loop may sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    Not,
    AtMost(Duration),
    Forever,
}
