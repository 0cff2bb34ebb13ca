//! What datagram sockets do: register, send, receive; and what becomes of a datagram on its way.

use std::io;
use std::time::Duration;

use rotor_core::{EventSet, Interest, Token};

use super::ends::Datagram;
use super::interest::filter;
use super::place::Place;
use super::{Due, World};
use crate::Fault;
use crate::table::Key;
use crate::trace::What;

/// The most bytes of a datagram.
const DATAGRAM_MAX: usize = 65_507;
/// How many datagrams a socket keeps until they are received; what comes beyond is lost.
const QUEUE_MAX: usize = 256;

impl World {
    pub(crate) fn register_datagram(&mut self, key: Key, token: Token, interest: Interest) -> io::Result<()> {
        let Some(socket) = self.datagrams.get(key) else { return Err(io::ErrorKind::NotFound.into()) };
        let (host, has_some) = (socket.host, !socket.queue.is_empty());
        if socket.registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.hits(Fault::RegisterFails, host) {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.token_is_used(host, token);
        if let Some(socket) = self.datagrams.get_mut(key) {
            socket.registered = Some((token, interest));
            socket.owes = true;
        }
        let readable = if has_some { EventSet::READABLE } else { EventSet::EMPTY };
        let events = filter(interest, readable | EventSet::WRITABLE);
        if !events.is_empty() {
            self.push_edge(host, token, events);
        }
        Ok(())
    }

    pub(crate) fn send_datagram(&mut self, key: Key, bytes: &[u8], to: Place) -> io::Result<usize> {
        let Some(socket) = self.datagrams.get(key) else { return Err(io::ErrorKind::NotConnected.into()) };
        let (from, host) = (socket.place.clone(), socket.host);
        if bytes.len() > DATAGRAM_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if socket.registered.is_some() && self.hits(Fault::WouldBlock, host) {
            self.datagram_edge_later(key, EventSet::WRITABLE);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.progress += 1;
        self.record(host, What::DatagramSent(bytes.len()));
        let Some(target) = self.host_at(&to) else { return Ok(bytes.len()) };
        if self.hits(Fault::DatagramLost, host) {
            return Ok(bytes.len());
        }
        let copies = if self.hits(Fault::DatagramTwice, host) { 2 } else { 1 };
        for _ in 0..copies {
            let mut after = self.latency(host, target) + self.network.transmission(bytes.len());
            if self.hits(Fault::DatagramLate, host) {
                after += self.random_duration(Duration::from_millis(200));
            }
            let (from, to) = (from.clone(), to.clone());
            let datagram = Datagram { bytes: bytes.into(), from, to, hosts: (host, target) };
            self.schedule(self.local(host) + after, Due::Datagram(Box::new(datagram)));
        }
        Ok(bytes.len())
    }

    pub(crate) fn datagram_arrives(&mut self, datagram: Datagram) {
        let Datagram { bytes, from, to, hosts } = datagram;
        if self.is_blocked(hosts.0, hosts.1) {
            return;
        }
        let Some((key, socket)) = self.datagrams.iter().find(|(_, socket)| socket.place == to) else {
            return;
        };
        let (is_owed, registered, host) = (socket.owes, socket.registered, socket.host);
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        if socket.queue.len() >= QUEUE_MAX {
            return;
        }
        socket.queue.push_back((bytes, from));
        self.progress += 1;
        let Some((token, interest)) = registered else { return };
        let events = filter(interest, EventSet::READABLE);
        if events.is_empty() || !is_owed && self.roll(Fault::OwedEdgesOnly) {
            return;
        }
        if let Some(socket) = self.datagrams.get_mut(key) {
            socket.owes = false;
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
        let Some(socket) = self.datagrams.get(key) else { return Err(io::ErrorKind::NotConnected.into()) };
        let (host, is_registered, is_empty) =
            (socket.host, socket.registered.is_some(), socket.queue.is_empty());
        if !is_empty && self.hits(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let pretends = !is_empty && is_registered && self.hits(Fault::WouldBlock, host);
        if pretends {
            self.datagram_edge_later(key, EventSet::READABLE);
        }
        let Some(socket) = self.datagrams.get_mut(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if pretends || is_empty {
            socket.owes = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some((bytes, from)) = socket.queue.pop_front() else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        self.progress += 1;
        self.record(host, What::DatagramReceived(bytes.len()));
        Ok((bytes, from))
    }
}
