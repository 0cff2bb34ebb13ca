//! Listeners: connections that are half-open, wait, or are accepted.

use std::io;
use std::net::SocketAddr;

use rotor_core::{EventSet, Token};
use smoltcp::iface::Interface;

use super::connection::{Connection, Phase};
use super::flow::Flow;
use super::listener_socket::{ListenerSocket, free_port};
use super::{Stack, normalize, not_connected};
use crate::slots::{Id, Slots};

fn is_half_open(connections: &Slots<Box<Connection>>, id: Id) -> bool {
    connections.get(id).is_some_and(|one| matches!(one.phase, Phase::HalfOpen(_)))
}

/// The backlog of a listener or the stack is full, or there are no random bytes.
pub(super) struct NoRoom;

impl Stack {
    /// Listens on an address.
    pub(crate) fn listen(&mut self, address: SocketAddr, backlog: usize) -> io::Result<Id> {
        let mut address = normalize(address);
        self.check_local(address)?;
        if address.port() == 0 {
            let Stack { random, bound_listeners, .. } = self;
            let with = |port| SocketAddr::new(address.ip(), port);
            let port = free_port(random, |port| bound_listeners.is_taken(with(port)))?;
            address.set_port(port);
        } else if self.bound_listeners.is_taken(address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = backlog.clamp(1, self.config.backlog_max);
        let id = self.listeners.insert(ListenerSocket::new(address, backlog));
        self.bound_listeners.insert(address, id);
        Ok(id)
    }

    pub(super) fn register_listener(&mut self, id: Id, token: Token) -> io::Result<()> {
        let listener = self.listeners.get_mut(id).ok_or_else(not_connected)?;
        if listener.token.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        listener.token = Some(token);
        let has_waiting = !listener.queue.is_empty();
        if has_waiting {
            self.mark_listener_changed(id);
        }
        Ok(())
    }

    /// Begins a connection to an address of the stack. Returns `None` if there is no listener.
    /// Otherwise, returns the connection and the interface that handles the packet.
    pub(super) fn start_half_open(
        &mut self,
        flow: Flow,
    ) -> Result<Option<(Id, Box<Interface>)>, NoRoom> {
        let Some(listener) = self.bound_listeners.find(flow.local) else { return Ok(None) };
        if self.listeners.get(listener).is_none() {
            return Ok(None);
        }
        if !self.evict_attempt(listener) || !self.has_room() {
            return Err(NoRoom);
        }
        let first_interface = self.first_packet_interface().map_err(|_no_random_bytes| NoRoom)?;
        let mut connection =
            Connection::new(flow, Phase::HalfOpen(listener), self.socket_pool.acquire());
        if connection.socket().listen(flow.local).is_err() {
            return Ok(None);
        }
        self.stats.half_open += 1;
        connection.give_up_at = Some(self.now() + self.config.half_open_timeout);
        let id = self.insert_connection(connection);
        self.add_attempt(listener, id);
        Ok(Some((id, first_interface)))
    }

    fn add_attempt(&mut self, listener: Id, id: Id) {
        let Some(listener_socket) = self.listeners.get_mut(listener) else { return };
        listener_socket.half_open += 1;
        listener_socket.attempts.push_back(id);
        // Completed and abandoned attempts stay in the list. So it is kept at about twice the
        // number of half-open ones.
        if listener_socket.attempts.len() > 2 * (listener_socket.half_open + 8) {
            let connections = &self.connections;
            listener_socket.attempts.retain(|id| is_half_open(connections, *id));
        }
    }

    /// Returns whether a listener can take one more connection. If its backlog is full, the oldest
    /// half-open connection is forgotten to make room (RFC 4987 §3.4): a flood that is never
    /// completed then shortens the time for other handshakes, but does not stop the listener.
    fn evict_attempt(&mut self, listener: Id) -> bool {
        while let Some(listener_socket) = self.listeners.get_mut(listener)
            && !listener_socket.has_room()
        {
            let Some(oldest) = listener_socket.attempts.pop_front() else { return false };
            if is_half_open(&self.connections, oldest) {
                self.stats.half_open_overflowed += 1;
                // Its peer is not told. If it sends another segment, that gets a reset.
                self.remove_connection(oldest);
            }
        }
        true
    }

    /// Called when a half-open connection ends, or is no longer half-open.
    pub(super) fn count_half_open_end(&mut self, listener: Id) {
        self.stats.half_open -= 1;
        if let Some(listener_socket) = self.listeners.get_mut(listener) {
            listener_socket.half_open -= 1;
        }
    }

    /// Called when a half-open connection has completed its handshake.
    pub(super) fn queue_for_accept(&mut self, listener: Id, id: Id) {
        self.stats.accepted += 1;
        self.count_half_open_end(listener);
        if let Some(listener_socket) = self.listeners.get_mut(listener) {
            listener_socket.queue.push_back(id);
            self.mark_listener_changed(listener);
        }
    }

    fn mark_listener_changed(&mut self, id: Id) {
        let Some(listener) = self.listeners.get_mut(id) else { return };
        if !std::mem::replace(&mut listener.is_changed, true) {
            self.changed_listeners.push(id);
        }
    }

    pub(super) fn collect_listener_events(&mut self, ready: &mut Vec<(Token, EventSet)>) {
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
        let listener_socket = self.listeners.get_mut(listener).ok_or_else(not_connected)?;
        while let Some(id) = listener_socket.queue.pop_front() {
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
        self.listeners
            .get(listener)
            .is_some_and(|listener_socket| !listener_socket.queue.is_empty())
    }

    pub(crate) fn listener_address(&self, listener: Id) -> Option<SocketAddr> {
        self.listeners.get(listener).map(|listener_socket| listener_socket.address)
    }

    /// Frees the address, and resets the connections that were not accepted.
    pub(super) fn drop_listener(&mut self, id: Id) {
        let Some(listener_socket) = self.listeners.get(id) else { return };
        self.bound_listeners.remove(listener_socket.address);
        let of_listener =
            |phase| matches!(phase, Phase::HalfOpen(of) | Phase::Waiting(of) if of == id);
        let unaccepted = self.connections.iter().filter(|(_, one)| of_listener(one.phase));
        for id in unaccepted.map(|(id, _)| id).collect::<Vec<_>>() {
            self.abort_unaccepted(id);
        }
        self.listeners.remove(id);
    }

    fn abort_unaccepted(&mut self, id: Id) {
        let until = self.now() + self.config.linger;
        let Some(connection) = self.connections.get_mut(id) else { return };
        let phase = connection.phase;
        connection.socket().abort();
        connection.detach();
        // Without the hardware address of the peer, the reset cannot be sent.
        connection.give_up_at = Some(until);
        self.mark_dirty(id);
        if let Phase::HalfOpen(listener) = phase {
            self.count_half_open_end(listener);
        }
        self.add_lingering(id);
    }
}
