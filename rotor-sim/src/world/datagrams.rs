//! The operations of datagram sockets: register, send, receive; and what becomes of a datagram on
//! its way.

use std::io;
use std::time::Duration;

use rotor_core::{EventSet, Interest, Token};

use super::ends::{Datagram, DatagramEnd};
use super::interest::wanted_events;
use super::place::Place;
use super::{SimEvent, World};
use crate::faults::Fault;
use crate::table::Key;
use crate::trace::TraceEvent;

/// The longest datagram, in bytes.
const DATAGRAM_MAX: usize = 65_507;
/// The number of the error for a longer one, which systems number differently (errno(3)).
const EMSGSIZE: i32 = if cfg!(any(target_os = "linux", target_os = "android")) { 90 } else { 40 };
/// How many unreceived datagrams a socket keeps. UDP loses further ones.
const QUEUE_MAX: usize = 256;

impl World {
    pub(crate) fn register_datagram(
        &mut self,
        key: Key,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let Some(socket) = self.datagrams.get(key) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (host, has_some, is_refused) =
            (socket.host, !socket.queue.is_empty(), socket.is_refused);
        if socket.registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.roll_fault_at(Fault::RegisterFails, host) {
            // `ENOSPC`, as for a stream.
            return Err(io::Error::from_raw_os_error(28));
        }
        self.remember_registered_token(host, token);
        if let Some(socket) = self.datagrams.get_mut(key) {
            socket.registered = Some((token, interest));
            socket.is_armed = true;
        }
        // Registering reports the present state, a refusal included (epoll(7)).
        let mut present = EventSet::WRITABLE;
        if has_some || is_refused {
            present |= EventSet::READABLE;
        }
        if is_refused {
            present |= EventSet::ERROR;
        }
        let events = wanted_events(interest, present);
        if !events.is_empty() {
            self.push_edge(host, token, events);
        }
        Ok(())
    }

    /// Sends a datagram to a place, or to the peer to which the socket is connected.
    pub(crate) fn send_datagram(
        &mut self,
        key: Key,
        bytes: &[u8],
        target: Option<Place>,
    ) -> io::Result<usize> {
        let Some(socket) = self.datagrams.get(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let is_to_peer = target.is_none();
        let to = target.or_else(|| socket.peer.clone()).ok_or(io::ErrorKind::NotConnected)?;
        let (from, host, is_registered) =
            (socket.place.clone(), socket.host, socket.registered.is_some());
        // No socket has port 0, and `EINVAL` says so.
        if matches!(&to, Place::Inet(address) if address.port() == 0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if bytes.len() > DATAGRAM_MAX {
            return Err(io::Error::from_raw_os_error(EMSGSIZE));
        }
        // The next operation, whichever it is, reports a pending error (udp(7)).
        self.take_refusal(key)?;
        to.check_route()?;
        if self.roll_fault_at(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if is_registered && self.roll_fault_at(Fault::WouldBlock, host) {
            self.datagram_edge_later(key, EventSet::WRITABLE);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if matches!(to, Place::Path(..)) {
            return self.deliver_locally(key, bytes, to, is_to_peer);
        }
        self.progress += 1;
        self.record(host, TraceEvent::DatagramSent(bytes.len()));
        // The sender hears of no loss, and an address without a host sends no refusal.
        let Some(target) = self.host_at(&to) else { return Ok(bytes.len()) };
        if self.roll_fault_at(Fault::DatagramLost, host) {
            return Ok(bytes.len());
        }
        let copies = if self.roll_fault_at(Fault::DatagramTwice, host) { 2 } else { 1 };
        for _ in 0..copies {
            let mut after = self.latency(host, target) + self.network.transmission(bytes.len());
            if self.roll_fault_at(Fault::DatagramLate, host) {
                after += self.random_duration(Duration::from_millis(200));
            }
            let (from, to) = (from.clone(), to.clone());
            let datagram = Datagram { bytes: bytes.into(), from, to, hosts: (host, target) };
            self.schedule(self.local_time(host) + after, SimEvent::Datagram(Box::new(datagram)));
        }
        Ok(bytes.len())
    }

    /// Gives a datagram to the socket at a path. There is no network between two sockets of one
    /// host: either it arrives at once and in order, or the sender gets an error (unix(7)).
    fn deliver_locally(
        &mut self,
        key: Key,
        bytes: &[u8],
        to: Place,
        is_to_peer: bool,
    ) -> io::Result<usize> {
        let Some(socket) = self.datagrams.get(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (host, from) = (socket.host, socket.place.clone());
        let target = if is_to_peer { socket.peer_key } else { self.datagram_at(&to) };
        let Some(found) = target.and_then(|target| self.datagrams.get_mut(target)) else {
            let Some(socket) = self.datagrams.get_mut(key).filter(|_| is_to_peer) else {
                return Err(self.error_of_path(&to).into());
            };
            // `ECONNREFUSED`. From now on the socket has no peer, as on Linux.
            (socket.peer, socket.peer_key) = (None, None);
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        if found.peer_key.is_some_and(|peer| peer != key) {
            // `EPERM`: that socket accepts only datagrams of its own peer.
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if found.queue.len() >= QUEUE_MAX {
            if let Some(socket) = self.datagrams.get_mut(key)
                && !socket.full_peers.contains(&to)
            {
                socket.full_peers.push(to);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
        found.queue.push_back((bytes.into(), from));
        self.progress += 1;
        self.record(host, TraceEvent::DatagramSent(bytes.len()));
        if let Some(target) = target {
            self.datagram_edge(target, EventSet::READABLE);
        }
        Ok(bytes.len())
    }

    /// Returns the socket at a path, to which another socket is to be connected.
    pub(crate) fn resolve_peer(&self, key: Key, place: &Place) -> io::Result<Key> {
        let target = self.datagram_at(place).ok_or_else(|| self.error_of_path(place))?;
        let peer = self.datagrams.get(target).and_then(|target| target.peer_key);
        match peer {
            // `EPERM`: that socket accepts nothing that this one sends.
            Some(peer) if peer != key => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(target),
        }
    }

    /// Returns the datagram socket that is bound to a place.
    fn datagram_at(&self, place: &Place) -> Option<Key> {
        self.datagrams.iter().find(|(_, socket)| socket.place == *place).map(|(key, _)| key)
    }

    /// Tells the sockets that found no room at a place to try again: the socket there has room, or
    /// is gone.
    pub(crate) fn notify_room(&mut self, place: &Place) {
        let waits =
            |(key, socket): (Key, &DatagramEnd)| socket.full_peers.contains(place).then_some(key);
        let waiting: Vec<Key> = self.datagrams.iter().filter_map(waits).collect();
        for key in waiting {
            let Some(socket) = self.datagrams.get_mut(key) else { continue };
            socket.full_peers.retain(|full| full != place);
            // Registering a socket reports room by itself.
            let Some((token, interest)) = socket.registered else { continue };
            let (host, events) = (socket.host, wanted_events(interest, EventSet::WRITABLE));
            if !events.is_empty() {
                self.push_edge(host, token, events);
            }
        }
    }

    pub(crate) fn deliver_datagram(&mut self, datagram: Datagram) {
        let Datagram { bytes, from, to, hosts } = datagram;
        if self.is_blocked(hosts.0, hosts.1) {
            return;
        }
        let takes = |socket: &DatagramEnd| {
            socket.place == to && socket.peer.as_ref().is_none_or(|peer| *peer == from)
        };
        let Some(key) = self.datagrams.iter().find(|(_, socket)| takes(socket)).map(|(key, _)| key)
        else {
            return self.schedule_refusal(Datagram { bytes, from, to, hosts });
        };
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        if socket.queue.len() >= QUEUE_MAX {
            return;
        }
        socket.queue.push_back((bytes, from));
        self.progress += 1;
        self.datagram_edge(key, EventSet::READABLE);
    }

    /// Handles a datagram that no socket takes. Its sender hears of it if it is connected to that
    /// peer; otherwise it is not told, as on Linux.
    fn schedule_refusal(&mut self, datagram: Datagram) {
        let (from, to) = datagram.hosts;
        // The message that reports this (ICMP) can be lost like a datagram.
        if self.sender_of(&datagram).is_some() && !self.roll_fault_at(Fault::DatagramLost, to) {
            let at = self.local_time(to) + self.latency(to, from);
            self.schedule(at, SimEvent::DatagramRefused(Box::new(datagram)));
        }
    }

    pub(crate) fn deliver_refusal(&mut self, datagram: &Datagram) {
        let (from, to) = datagram.hosts;
        if self.is_blocked(from, to) {
            return;
        }
        let Some(key) = self.sender_of(datagram) else { return };
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        socket.is_refused = true;
        self.progress += 1;
        self.record(from, TraceEvent::DatagramRefused);
        self.datagram_edge(key, EventSet::READABLE | EventSet::ERROR);
    }

    fn sender_of(&self, datagram: &Datagram) -> Option<Key> {
        let is_sender = |socket: &DatagramEnd| {
            socket.place == datagram.from && socket.peer.as_ref() == Some(&datagram.to)
        };
        self.datagrams.iter().find(|(_, socket)| is_sender(socket)).map(|(key, _)| key)
    }

    /// Reports a refusal.
    ///
    /// # Errors
    ///
    /// `ConnectionRefused`, once, after the peer's host has refused a datagram.
    fn take_refusal(&mut self, key: Key) -> io::Result<()> {
        let socket = self.datagrams.get_mut(key);
        let is_refused = socket.is_some_and(|socket| std::mem::take(&mut socket.is_refused));
        if is_refused { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(()) }
    }

    fn datagram_edge(&mut self, key: Key, events: EventSet) {
        let Some(socket) = self.datagrams.get(key) else { return };
        let (is_armed, host) = (socket.is_armed, socket.host);
        let Some((token, interest)) = socket.registered else { return };
        let events = wanted_events(interest, events);
        if events.is_empty() || !is_armed && self.roll(Fault::UnarmedEdgeLost) {
            return;
        }
        if let Some(socket) = self.datagrams.get_mut(key) {
            socket.is_armed = false;
        }
        self.push_edge(host, token, events);
    }

    fn datagram_edge_later(&mut self, key: Key, events: EventSet) {
        let Some(socket) = self.datagrams.get(key) else { return };
        if let (host, Some((token, _))) = (socket.host, socket.registered) {
            self.push_edge_later(host, token, events, Duration::from_millis(2));
        }
    }

    pub(crate) fn receive(&mut self, key: Key) -> io::Result<(Box<[u8]>, Place)> {
        self.take_refusal(key)?;
        let Some(socket) = self.datagrams.get(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (host, is_registered, is_empty) =
            (socket.host, socket.registered.is_some(), socket.queue.is_empty());
        if !is_empty && self.roll_fault_at(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let pretends = !is_empty && is_registered && self.roll_fault_at(Fault::WouldBlock, host);
        if pretends {
            self.datagram_edge_later(key, EventSet::READABLE);
        }
        let Some(socket) = self.datagrams.get_mut(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if pretends || is_empty {
            socket.is_armed = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some((bytes, from)) = socket.queue.pop_front() else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let place = socket.place.clone();
        self.progress += 1;
        self.record(host, TraceEvent::DatagramReceived(bytes.len()));
        self.notify_room(&place);
        Ok((bytes, from))
    }
}
