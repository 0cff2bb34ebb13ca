//! Edges: from a change to what a loop's wait returns.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::{EventSet, Token};

use super::{SimEvent, World};
use crate::faults::Fault;
use crate::trace::TraceEvent;

impl World {
    /// Remembers a token that spurious edges may name.
    pub(crate) fn remember_registered_token(&mut self, host: u32, token: Token) {
        self.host(host).recent.push(token);
    }

    /// Remembers a token whose machine may be gone when a stale edge names it.
    pub(crate) fn remember_stale_token(&mut self, host: u32, token: Token) {
        self.host(host).stale.push(token);
    }

    /// Reports an edge to a host's loop, possibly late.
    pub(crate) fn push_edge(&mut self, host: u32, token: Token, events: EventSet) {
        if self.roll_fault_at(Fault::LateEdge, host) {
            self.push_edge_later(host, token, events, Duration::from_millis(20));
        } else {
            self.deliver_edge(host, token, events);
        }
    }

    pub(crate) fn push_edge_later(
        &mut self,
        host: u32,
        token: Token,
        events: EventSet,
        at_most: Duration,
    ) {
        let at = self.local_time(host) + self.random_duration(at_most);
        // A late edge is dropped with its loop: in the next loop, the token names another machine.
        let incarnation = self.hosts[host as usize].incarnation;
        self.schedule(at, SimEvent::Edge(host, incarnation, token, events));
    }

    pub(super) fn deliver_edge(&mut self, host: u32, token: Token, events: EventSet) {
        self.record(host, TraceEvent::Edge(token, events));
        let is_split = self.roll_uncounted(Fault::SplitEdge);
        if self.roll(Fault::Gather) {
            let until = self.now + self.random_duration(Duration::from_millis(2));
            let state = self.host(host);
            state.paused_until = state.paused_until.max(until);
        }
        let ready = &mut self.hosts[host as usize].ready;
        // Only the last few edges are searched: merging is allowed, not promised.
        let same = ready.iter_mut().rev().take(8).find(|(other, _)| *other == token);
        match same {
            Some((_, before)) if !is_split => *before |= events,
            Some(_) => {
                ready.push((token, events));
                self.count_fault(Fault::SplitEdge);
            }
            None => ready.push((token, events)),
        }
    }

    /// Collects what a loop's wait returns.
    pub(crate) fn take_ready(&mut self, host: u32, ready: &mut Vec<(Token, EventSet)>) {
        // First, so that a later wake-up counts for the next wait.
        self.hosts[host as usize].waker.woken.store(false, SeqCst);
        if !self.hosts[host as usize].ready.is_empty() {
            // The edges stay, and cause the next wait.
            if self.roll_fault_at(Fault::WaitInterrupted, host) {
                return;
            }
            let mut pending = std::mem::take(&mut self.hosts[host as usize].ready);
            if pending.len() > 1 && self.roll(Fault::Reorder) {
                self.random.shuffle(&mut pending);
            }
            let taken = if pending.len() > 1 && self.roll(Fault::Withhold) {
                self.random.usize(1..pending.len())
            } else {
                pending.len()
            };
            ready.extend(pending.drain(..taken));
            self.hosts[host as usize].ready = pending;
        }
        self.inject_edges(host, ready);
        // Includes spurious edges: a loop that polls a listener for one of them finds the
        // connections that wait.
        if self.hosts[host as usize].passed_over_max.is_some() {
            ready.iter().for_each(|(token, _)| self.mark_listeners_notified(host, *token));
        }
    }

    fn inject_edges(&mut self, host: u32, ready: &mut Vec<(Token, EventSet)>) {
        if self.roll_uncounted(Fault::SpuriousEdge)
            && let Some(token) = self.hosts[host as usize].recent.pick(&mut self.random)
        {
            self.count_fault(Fault::SpuriousEdge);
            self.record(host, TraceEvent::Fault(Fault::SpuriousEdge));
            ready.push((token, self.random_events()));
        }
        if self.roll_uncounted(Fault::StaleEdge)
            && let Some(token) = self.hosts[host as usize].stale.pick(&mut self.random)
        {
            self.count_fault(Fault::StaleEdge);
            self.record(host, TraceEvent::Fault(Fault::StaleEdge));
            let at = self.random.usize(..=ready.len());
            ready.insert(at, (token, self.random_events()));
        }
    }

    /// Sends a spurious edge to a host that sleeps.
    pub(crate) fn send_spurious_edge(&mut self, host: u32) {
        if let Some(token) = self.hosts[host as usize].recent.pick(&mut self.random) {
            self.count_fault(Fault::SpuriousEdge);
            self.record(host, TraceEvent::Fault(Fault::SpuriousEdge));
            let events = self.random_events();
            self.deliver_edge(host, token, events);
        }
    }

    /// Any two events: the edge may concern a socket that the machine had before, and that has
    /// failed.
    fn random_events(&mut self) -> EventSet {
        const ANY: [EventSet; 7] = [
            EventSet::READABLE,
            EventSet::WRITABLE,
            EventSet::READ_CLOSED,
            EventSet::WRITE_CLOSED,
            EventSet::ERROR,
            EventSet::URGENT,
            EventSet::EMPTY,
        ];
        ANY[self.random.usize(..ANY.len())] | ANY[self.random.usize(..ANY.len())]
    }
}
