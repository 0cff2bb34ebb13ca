//! The operations of datagram sockets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::{EventSet, Token};
use rustix::io::Errno;
use smoltcp::iface::PollResult;
use smoltcp::socket::udp::SendError;

use super::datagram_socket::DatagramSocket;
use super::flow::Flow;
use super::listener_socket::free_port;
use super::{Stack, normalize, not_connected, to_instant};
use crate::device::Medium;
use crate::slots::Id;

/// How soon the hardware address of a datagram's target is asked for again. For connections,
/// smoltcp does that.
const RESOLUTION_RETRY: Duration = Duration::from_secs(1);

/// The headers around a datagram, in bytes: UDP's, and that of each version of IP.
const HEADERS_V4: usize = 8 + 20;
const HEADERS_V6: usize = 8 + 40;

impl Stack {
    pub(crate) fn bind_datagrams(&mut self, address: SocketAddr) -> io::Result<Id> {
        let mut address = normalize(address);
        self.check_local(address)?;
        if address.port() == 0 {
            let Stack { random, bound_datagrams, .. } = self;
            let with = |port| SocketAddr::new(address.ip(), port);
            let port = free_port(random, |port| bound_datagrams.is_taken(with(port)))?;
            address.set_port(port);
        } else if self.bound_datagrams.is_taken(address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let socket = DatagramSocket::new(address, self.wire.medium, &self.config)?;
        let id = self.datagrams.insert(Box::new(socket));
        self.bound_datagrams.insert(address, id);
        Ok(id)
    }

    pub(crate) fn datagram_address(&self, id: Id) -> io::Result<SocketAddr> {
        Ok(self.datagrams.get(id).ok_or_else(not_connected)?.local)
    }

    /// Connects a socket to a peer: datagrams from others are dropped from now on.
    pub(crate) fn connect_datagrams(&mut self, id: Id, peer: SocketAddr) -> io::Result<()> {
        self.check_target(id, peer)?;
        self.datagrams.get_mut(id).ok_or_else(not_connected)?.peer = Some(normalize(peer));
        Ok(())
    }

    pub(super) fn handle_datagram(&mut self, flow: Flow, packet: &[u8]) {
        let now = self.now();
        let Some(id) = self.bound_datagrams.find(flow.local) else { return self.answer(packet) };
        let Some(socket) = self.datagrams.get_mut(id) else { return };
        if socket.peer.is_some_and(|peer| peer != flow.remote) {
            // As if the port were closed: otherwise anybody could find out which port is connected
            // to a server.
            return self.answer(packet);
        }
        // An unknown option of IPv6 is answered here, too (RFC 8200 §4.2).
        let mut port = self.wire.with_packet(packet).with_limit(&mut self.rejections, now);
        self.iface.poll_ingress_single(to_instant(now), &mut port, &mut socket.set);
        // If the datagram was refused after all, the machine finds nothing to read.
        socket.has_arrived = true;
        self.mark_datagram_changed(id);
    }

    pub(super) fn mark_datagram_changed(&mut self, id: Id) {
        let Some(socket) = self.datagrams.get_mut(id) else { return };
        if !std::mem::replace(&mut socket.is_changed, true) {
            self.changed_datagrams.push(id);
        }
    }

    /// Takes the oldest datagram. Bytes that do not fit into `buffer` are lost.
    pub(crate) fn receive_from(
        &mut self,
        id: Id,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr)> {
        let socket = self.datagrams.get_mut(id).ok_or_else(not_connected)?;
        let received = socket.socket().recv();
        let (datagram, from) = received.map_err(|_| io::ErrorKind::WouldBlock)?;
        let len = datagram.len().min(buffer.len());
        buffer[..len].copy_from_slice(&datagram[..len]);
        Ok((len, SocketAddr::new(from.endpoint.addr.into(), from.endpoint.port)))
    }

    /// Checks that the socket can send to a target.
    fn check_target(&self, id: Id, target: SocketAddr) -> io::Result<()> {
        let socket = self.datagrams.get(id).ok_or_else(not_connected)?;
        let is_of_family = target.ip().is_ipv4() == socket.local.ip().is_ipv4();
        // smoltcp could not send to a target without port or address, so it would hold up those
        // behind it. A query that was sent there would never get a response.
        if !is_of_family || target.port() == 0 || target.ip().is_unspecified() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.source_for(target.ip()).map(drop)
    }

    /// Sends a datagram to a target, or to the peer to which the socket is connected.
    pub(crate) fn send_to(
        &mut self,
        id: Id,
        datagram: &[u8],
        target: Option<SocketAddr>,
    ) -> io::Result<usize> {
        let socket = self.datagrams.get(id).ok_or_else(not_connected)?;
        let target = target.or(socket.peer).ok_or(io::ErrorKind::NotConnected)?;
        self.check_target(id, target)?;
        let headers = if target.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        if datagram.len() + headers > self.wire.mtu() {
            return Err(Errno::MSGSIZE.into());
        }
        // On Ethernet, the hardware address of the target may be unknown.
        let is_asked_for = self.wire.medium == Medium::Ethernet;
        let most = self.config.datagrams_max;
        let Some(socket) = self.datagrams.get_mut(id) else { return Err(not_connected()) };
        let taken = if is_asked_for {
            let is_full = socket.queue.len() >= most;
            if is_full && !socket.queue.evict_for(target.ip()) {
                Err(SendError::BufferFull)
            } else {
                // The datagram that was dropped to make room is lost.
                self.wire.outlet.unsent += u64::from(is_full);
                socket.queue.push(normalize(target), datagram);
                Ok(())
            }
        } else {
            socket.socket().send_slice(datagram, normalize(target))
        };
        match taken {
            Ok(()) => {}
            Err(SendError::BufferFull) => {
                socket.wants_room = Some(target.ip());
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(SendError::Unaddressable) => return Err(io::ErrorKind::InvalidInput.into()),
        }
        if !std::mem::replace(&mut socket.is_dirty, true) {
            self.dirty_datagrams.push(id);
            self.ring_alarm();
        }
        Ok(datagram.len())
    }

    /// Sends the datagrams of the turn.
    pub(super) fn send_datagrams(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty_datagrams);
        for id in dirty.drain(..) {
            self.send_datagrams_of(id);
        }
        self.dirty_datagrams = dirty;
    }

    fn send_datagrams_of(&mut self, id: Id) {
        let time = self.now();
        let now = to_instant(time);
        let Stack { datagrams, iface, wire, sender, .. } = self;
        let Some(socket) = datagrams.get_mut(id) else { return };
        socket.is_dirty = false;
        // At most as many as a socket keeps.
        while iface.poll_egress(now, &mut wire.port(), &mut socket.set)
            == PollResult::SocketStateChanged
        {}
        let (local, mut held_up) = (socket.local, Vec::new());
        let lost = socket.queue.send(time, |target, datagram| {
            let is_sent = sender.load(local, target, datagram)
                && iface.poll_egress(now, &mut wire.port(), &mut sender.set)
                    == PollResult::SocketStateChanged;
            if wire.take_held_up() {
                held_up.push(target.ip());
            }
            is_sent
        });
        wire.outlet.unsent += lost;
        let wants_room = socket.wants_room.is_some();
        // Who answers anybody answers forged addresses, too.
        let is_doubtful = socket.peer.is_none();
        if socket.queue.len() > 0 && !std::mem::replace(&mut socket.is_unresolved, true) {
            self.unresolved_datagrams.push(id);
            // Now, since the loop may sleep next.
            self.retry_resolution_at.get_or_insert(time + RESOLUTION_RETRY);
        }
        if wants_room {
            self.mark_datagram_changed(id);
        }
        for target in held_up {
            self.request_address(target, is_doubtful);
        }
    }

    /// Tries again the datagrams that wait for a hardware address, since it may be known now.
    pub(super) fn resolve_datagrams(&mut self) {
        for id in std::mem::take(&mut self.unresolved_datagrams) {
            let Some(socket) = self.datagrams.get_mut(id) else { continue };
            socket.is_unresolved = false;
            self.send_datagrams_of(id);
        }
    }

    pub(super) fn collect_datagram_events(&mut self, ready: &mut Vec<(Token, EventSet)>) {
        let mut changed = std::mem::take(&mut self.changed_datagrams);
        for id in changed.drain(..) {
            let Some(socket) = self.datagrams.get_mut(id) else { continue };
            socket.is_changed = false;
            ready.extend(socket.take_events());
        }
        self.changed_datagrams = changed;
    }

    /// Sends what the socket has not sent yet, and frees its address. Datagrams that wait for a
    /// hardware address are not sent, and counted.
    pub(super) fn drop_datagrams(&mut self, id: Id) {
        self.send_datagrams_of(id);
        if let Some(socket) = self.datagrams.remove(id) {
            self.bound_datagrams.remove(socket.local);
            self.wire.outlet.unsent += socket.queue.len() as u64;
        }
    }
}
