//! Listeners: connections that are half-open, wait, or are accepted.

use std::io;
use std::net::SocketAddr;

use rotor_core::{EventSet, Token};
use smoltcp::iface::Interface;

use super::connection::{Connection, Phase};
use super::flow::Flow;
use super::listening::{Listening, free_port};
use super::{Stack, gone, plain};
use crate::slots::{Id, Slots};

fn is_half_open(connections: &Slots<Box<Connection>>, id: Id) -> bool {
    connections.get(id).is_some_and(|one| matches!(one.phase, Phase::HalfOpen(_)))
}

/// The backlog of a listener or the stack is full, or there are no random bytes.
pub(super) struct NoRoom;

impl Stack {
    /// Listens on an address.
    pub(crate) fn listen(&mut self, address: SocketAddr, backlog: usize) -> io::Result<Id> {
        let mut address = plain(address);
        self.check_local(address)?;
        if address.port() == 0 {
            let Stack { chance, bound_listeners, .. } = self;
            let with = |port| SocketAddr::new(address.ip(), port);
            let port = free_port(chance, |port| bound_listeners.is_taken(with(port)))?;
            address.set_port(port);
        } else if self.bound_listeners.is_taken(address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = backlog.clamp(1, self.config.backlog_max);
        let id = self.listeners.insert(Listening::new(address, backlog));
        self.bound_listeners.insert(address, id);
        Ok(id)
    }

    pub(super) fn register_listener(&mut self, id: Id, token: Token) -> io::Result<()> {
        let listener = self.listeners.get_mut(id).ok_or_else(gone)?;
        if listener.token.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        listener.token = Some(token);
        let has_waiting = !listener.queue.is_empty();
        if has_waiting {
            self.note_listener(id);
        }
        Ok(())
    }

    /// Begins a connection to an address of the stack. Returns `None` if there is no listener.
    /// Otherwise, returns the connection and the interface that handles the packet.
    pub(super) fn begin_half_open(
        &mut self,
        flow: Flow,
    ) -> Result<Option<(Id, Box<Interface>)>, NoRoom> {
        let Some(listener) = self.bound_listeners.find(flow.local) else { return Ok(None) };
        if self.listeners.get(listener).is_none() {
            return Ok(None);
        }
        if !self.make_room_for_attempt(listener) || !self.has_room() {
            return Err(NoRoom);
        }
        let birth = self.birth().map_err(|_no_random_bytes| NoRoom)?;
        let mut connection = Connection::new(flow, Phase::HalfOpen(listener), self.spares.take());
        if connection.socket().listen(flow.local).is_err() {
            return Ok(None);
        }
        self.stats.half_open += 1;
        connection.give_up_at = Some(self.now() + self.config.half_open_timeout);
        let id = self.insert(connection);
        self.note_attempt(listener, id);
        Ok(Some((id, birth)))
    }

    fn note_attempt(&mut self, listener: Id, id: Id) {
        let Some(listening) = self.listeners.get_mut(listener) else { return };
        listening.half_open += 1;
        listening.attempts.push_back(id);
        // Completed and abandoned attempts stay in the list. So it is kept at about twice the
        // number of half-open ones.
        if listening.attempts.len() > 2 * (listening.half_open + 8) {
            let connections = &self.connections;
            listening.attempts.retain(|id| is_half_open(connections, *id));
        }
    }

    /// Returns whether a listener can take one more connection. If its backlog is full, the oldest
    /// half-open connection is forgotten to make room (RFC 4987 §3.4): a flood that is never
    /// completed then shortens the time for other handshakes, but does not stop the listener.
    fn make_room_for_attempt(&mut self, listener: Id) -> bool {
        while let Some(listening) = self.listeners.get_mut(listener)
            && !listening.has_room()
        {
            let Some(oldest) = listening.attempts.pop_front() else { return false };
            if is_half_open(&self.connections, oldest) {
                self.stats.half_open_overflowed += 1;
                // Its peer is not told. If it sends another segment, that gets a reset.
                self.forget(oldest);
            }
        }
        true
    }

    /// Called when a half-open connection ends, or is no longer half-open.
    pub(super) fn note_half_open_end(&mut self, listener: Id) {
        self.stats.half_open -= 1;
        if let Some(listening) = self.listeners.get_mut(listener) {
            listening.half_open -= 1;
        }
    }

    /// Called when a half-open connection has completed its handshake.
    pub(super) fn await_accept(&mut self, listener: Id, id: Id) {
        self.stats.accepted += 1;
        self.note_half_open_end(listener);
        if let Some(listening) = self.listeners.get_mut(listener) {
            listening.queue.push_back(id);
            self.note_listener(listener);
        }
    }

    fn note_listener(&mut self, id: Id) {
        let Some(listener) = self.listeners.get_mut(id) else { return };
        if !std::mem::replace(&mut listener.is_changed, true) {
            self.changed_listeners.push(id);
        }
    }

    pub(super) fn tell_listeners(&mut self, ready: &mut Vec<(Token, EventSet)>) {
        let mut changed = std::mem::take(&mut self.changed_listeners);
        for id in changed.drain(..) {
            let Some(listener) = self.listeners.get_mut(id) else { continue };
            listener.is_changed = false;
            ready.extend(listener.token.map(|token| (token, EventSet::READABLE)));
        }
        self.changed_listeners = changed;
    }

    /// Takes the connection that has waited longest; returns it with the address of its peer.
    pub(crate) fn accept(&mut self, listener: Id) -> io::Result<(Id, SocketAddr)> {
        let listening = self.listeners.get_mut(listener).ok_or_else(gone)?;
        while let Some(id) = listening.queue.pop_front() {
            // A connection that was reset meanwhile is accepted nevertheless; reading it reports
            // the reset.
            if let Some(connection) = self.connections.get_mut(id) {
                connection.phase = Phase::Open;
                return Ok((id, connection.flow.remote));
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(crate) fn has_waiting(&self, listener: Id) -> bool {
        self.listeners.get(listener).is_some_and(|listening| !listening.queue.is_empty())
    }

    pub(crate) fn listener_address(&self, listener: Id) -> Option<SocketAddr> {
        self.listeners.get(listener).map(|listening| listening.address)
    }

    /// Frees the address, and resets the connections that were not accepted.
    pub(super) fn drop_listener(&mut self, id: Id) {
        let Some(listening) = self.listeners.get(id) else { return };
        self.bound_listeners.remove(listening.address);
        let of_listener =
            |phase| matches!(phase, Phase::HalfOpen(of) | Phase::Waiting(of) if of == id);
        let left = self.connections.iter().filter(|(_, one)| of_listener(one.phase));
        for left in left.map(|(left, _)| left).collect::<Vec<_>>() {
            self.abandon(left);
        }
        self.listeners.remove(id);
    }

    fn abandon(&mut self, id: Id) {
        let until = self.now() + self.config.linger;
        let Some(connection) = self.connections.get_mut(id) else { return };
        let phase = connection.phase;
        connection.socket().abort();
        connection.leave();
        // Without the hardware address of the peer, the reset cannot be sent.
        connection.give_up_at = Some(until);
        self.mark(id);
        if let Phase::HalfOpen(listener) = phase {
            self.note_half_open_end(listener);
        }
        self.note_lingering(id);
    }
}
