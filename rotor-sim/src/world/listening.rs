//! The operations of listeners: register, queue connections, accept; with their faults.

use std::io;
use std::rc::Rc;

use rotor_core::{EventSet, Token};

use super::World;
use super::ends::{Backlog, ListenerEnd};
use super::place::Place;
use crate::faults::Fault;
use crate::property;
use crate::table::Key;
use crate::trace::TraceEvent;

impl World {
    /// Returns the host that a place is on.
    pub(crate) fn host_at(&self, place: &Place) -> Option<u32> {
        match place {
            Place::Path(host, _) => Some(*host),
            Place::Inet(address) => self
                .hosts
                .iter()
                .position(|host| host.address == address.ip())
                .map(|index| index as u32),
        }
    }

    /// Returns a listener at a place; if there are several, a random one.
    pub(crate) fn listener_at(&mut self, place: &Place) -> Option<Key> {
        let on_place = |(_, listener): &(Key, &ListenerEnd)| listener.place == *place;
        let count = self.listeners.iter().filter(on_place).count();
        // `SO_REUSEPORT` chooses by a hash of the connection (socket(7)): to the listeners that
        // looks random.
        let chosen = if count > 1 { self.random.usize(..count) } else { 0 };
        self.listeners.iter().filter(on_place).nth(chosen).map(|(key, _)| key)
    }

    pub(crate) fn has_backlog_room(&self, listener: Key) -> bool {
        self.listeners
            .get(listener)
            .is_some_and(|listener| listener.backlog.borrow().len() < listener.backlog_max)
    }

    pub(crate) fn queue_connection(&mut self, listener: Key, link: Key) {
        let Some(listener) = self.listeners.get(listener) else { return };
        let backlog = listener.backlog.clone();
        backlog.borrow_mut().push_back(link);
        // Each copy is told: the first to accept gets the connection.
        let is_copy = |(key, listener): (Key, &ListenerEnd)| {
            Rc::ptr_eq(&listener.backlog, &backlog).then_some(key)
        };
        let copies: Vec<Key> = self.listeners.iter().filter_map(is_copy).collect();
        copies.into_iter().for_each(|copy| self.listener_edge(copy));
    }

    pub(crate) fn listener_edge(&mut self, key: Key) {
        let Some(listener) = self.listeners.get(key) else { return };
        let Some(token) = listener.registered else { return };
        let (host, is_armed) = (listener.host, listener.is_armed);
        if !is_armed && self.roll(Fault::UnarmedEdgeLost) {
            return;
        }
        if let Some(listener) = self.listeners.get_mut(key) {
            listener.is_armed = false;
        }
        self.push_edge(host, token, EventSet::READABLE);
    }

    pub(crate) fn register_listener(&mut self, key: Key, token: Token) -> io::Result<()> {
        let Some(listener) = self.listeners.get(key) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let host = listener.host;
        if listener.registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.roll_fault_at(Fault::RegisterFails, host) {
            // `ENOSPC`, as for a stream.
            return Err(io::Error::from_raw_os_error(28));
        }
        self.remember_registered_token(host, token);
        let Some(listener) = self.listeners.get_mut(key) else { return Ok(()) };
        listener.registered = Some(token);
        listener.is_armed = true;
        if !listener.backlog.borrow().is_empty() {
            self.listener_edge(key);
        }
        Ok(())
    }

    pub(crate) fn accept(&mut self, key: Key) -> io::Result<Key> {
        let Some(listener) = self.listeners.get_mut(key) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let host = listener.host;
        let first = listener.backlog.borrow().front().copied();
        // Whatever this call returns, a kernel reports the first arrival in an empty queue.
        if first.is_none() {
            listener.is_armed = true;
            listener.is_loop_notified = false;
        }
        // Before the queue: on Linux, accept4(2) first takes a descriptor.
        if self.roll_fault_at(Fault::AcceptExhausted, host) {
            return Err(io::Error::from_raw_os_error(24));
        }
        let Some(link) = first else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        if self.roll_fault_at(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if let Some(listener) = self.listeners.get_mut(key) {
            listener.backlog.borrow_mut().pop_front();
            listener.passed_over = 0;
            listener.is_loop_notified = !listener.backlog.borrow().is_empty();
        }
        // The connection belonged to the host of its address until a listener, maybe a copy on
        // another host, has accepted it.
        if let Some(link) = self.links.get_mut(link) {
            link.ends[1].host = host;
        }
        if let Some(most) = self.hosts[host as usize].passed_over_max {
            self.count_passed_over(host, key, most);
        }
        self.progress += 1;
        if self.roll_fault_at(Fault::AcceptAborted, host) {
            self.reset_queued(link);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let serial = self.links.get(link).map_or(0, |link| link.serial);
        self.record(host, TraceEvent::Accepted(serial));
        self.host(host).account.add_accept();
        Ok(link)
    }

    /// The loop of a host hears of the listeners of a token. From now on, their queued connections
    /// wait for the loop, and no longer for a late edge.
    pub(super) fn mark_listeners_notified(&mut self, host: u32, token: Token) {
        for listener in self.listeners.values_mut() {
            if listener.host == host && listener.registered == Some(token) {
                listener.is_loop_notified = !listener.backlog.borrow().is_empty();
            }
        }
    }

    /// Counts for each other listener of the host that connections wait there, of which the loop
    /// was told, while this one has accepted another.
    fn count_passed_over(&mut self, host: u32, accepted: Key, most: u64) {
        let waits = |(key, listener): (Key, &ListenerEnd)| {
            (key != accepted && listener.host == host && listener.is_loop_notified).then_some(key)
        };
        let waiting: Vec<Key> = self.listeners.iter().filter_map(waits).collect();
        for key in waiting {
            let Some(listener) = self.listeners.get_mut(key) else { continue };
            listener.passed_over += 1;
            let (times, place) = (listener.passed_over, format!("{:?}", listener.place));
            let state = self.host(host);
            state.passed_over_most = state.passed_over_most.max(times);
            if times > most {
                let message =
                    format!("{times} connections were accepted while the first at {place} waited");
                self.fail(property::WAITING_IS_BOUNDED, message);
            }
        }
    }

    /// Resets the queued connections of a dropped listener, unless a copy has them.
    pub(crate) fn reset_backlog(&mut self, host: u32, backlog: Backlog) {
        let Some(backlog) = Rc::into_inner(backlog) else { return };
        let backlog = backlog.into_inner();
        if !backlog.is_empty() {
            self.check_nothing_lost(host, || {
                format!("{} connections were never accepted", backlog.len())
            });
        }
        for link in backlog {
            // Like any close with unread bytes: the reset takes its time, and a host without power
            // sends none.
            if let Some(found) = self.links.get_mut(link) {
                found.ends[1].resets_on_close = true;
            }
            self.close_end(link, 1);
        }
    }

    /// Ends a connection that was not accepted.
    pub(crate) fn reset_queued(&mut self, link: Key) {
        // Cutting tells the client, and closing gives back the end for which no socket was made.
        self.reset_connection(link);
        self.close_end(link, 1);
    }
}
