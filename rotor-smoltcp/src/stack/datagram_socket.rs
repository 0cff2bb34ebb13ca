//! `DatagramSocket`: a datagram socket of the stack, and the events for its machine.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rotor_core::{EventSet, Token};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::IpListenEndpoint;

use super::datagram_queue::DatagramQueue;
use crate::config::StackConfig;
use crate::device::Medium;

/// The average size of the datagrams that a socket keeps, in bytes.
const DATAGRAM_BYTES: usize = 2 * 1024;

/// A datagram socket of the stack.
pub(super) struct DatagramSocket {
    pub(super) set: SocketSet<'static>,
    handle: SocketHandle,
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    token: Option<Token>,
    /// On Ethernet, the datagrams that wait to be sent. Otherwise smoltcp's socket has them, and
    /// sends them.
    pub(super) queue: DatagramQueue,
    medium: Medium,
    datagrams_max: usize,
    pub(super) has_arrived: bool,
    /// The target of a datagram that found no room.
    pub(super) wants_room: Option<IpAddr>,
    pub(super) is_dirty: bool,
    pub(super) is_changed: bool,
    /// It is in `unresolved_datagrams`, waiting for the hardware address of a target.
    pub(super) is_unresolved: bool,
}

impl DatagramSocket {
    pub(super) fn new(
        local: SocketAddr,
        medium: Medium,
        config: &StackConfig,
    ) -> io::Result<DatagramSocket> {
        let count = config.datagrams_max;
        let buffer = |count: usize| {
            let metadata = vec![PacketMetadata::EMPTY; count];
            // A single datagram of the largest size fits, too.
            let bytes = if count == 0 { 0 } else { (count * DATAGRAM_BYTES).max(65_536) };
            PacketBuffer::new(metadata, vec![0; bytes])
        };
        let of_its_own = if medium == Medium::Ethernet { 0 } else { count };
        let mut socket = Socket::new(buffer(count), buffer(of_its_own));
        let bound = socket.bind(endpoint(local));
        bound.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        Ok(DatagramSocket {
            set,
            handle,
            local,
            peer: None,
            token: None,
            queue: DatagramQueue::default(),
            medium,
            datagrams_max: count,
            has_arrived: false,
            wants_room: None,
            is_dirty: false,
            is_changed: false,
            is_unresolved: false,
        })
    }

    pub(super) fn socket(&mut self) -> &mut Socket<'static> {
        self.set.get_mut(self.handle)
    }

    pub(super) fn register(&mut self, token: Token) -> io::Result<()> {
        if self.token.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.token = Some(token);
        self.has_arrived = self.socket().can_recv();
        Ok(())
    }

    pub(super) fn deregister(&mut self) -> io::Result<()> {
        self.token.take().map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn has_room_for(&mut self, ip: IpAddr) -> bool {
        match self.medium {
            Medium::Ethernet => {
                self.queue.len() < self.datagrams_max || self.queue.can_evict_for(ip)
            }
            Medium::Ip => self.socket().can_send(),
        }
    }

    pub(super) fn take_events(&mut self) -> Option<(Token, EventSet)> {
        let token = self.token?;
        let mut events = EventSet::EMPTY;
        if std::mem::take(&mut self.has_arrived) {
            events |= EventSet::READABLE;
        }
        if let Some(ip) = self.wants_room
            && self.has_room_for(ip)
        {
            self.wants_room = None;
            events |= EventSet::WRITABLE;
        }
        if events.is_empty() { None } else { Some((token, events)) }
    }
}

/// Sends the datagrams of all sockets on Ethernet, one by one. A socket of smoltcp keeps its
/// datagrams in order, so one whose target does not answer would hold up the others.
pub(super) struct Sender {
    pub(super) set: SocketSet<'static>,
    handle: SocketHandle,
}

impl Sender {
    pub(super) fn new(medium: Medium) -> Sender {
        let (count, bytes) = if medium == Medium::Ethernet { (1, 65_536) } else { (0, 0) };
        let buffer =
            |count, bytes| PacketBuffer::new(vec![PacketMetadata::EMPTY; count], vec![0; bytes]);
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(Socket::new(buffer(0, 0), buffer(count, bytes)));
        Sender { set, handle }
    }

    /// Loads the datagram to be sent next. One that was loaded before and not sent is gone. Returns
    /// whether it could be loaded.
    pub(super) fn load(&mut self, local: SocketAddr, target: SocketAddr, datagram: &[u8]) -> bool {
        // Adding the socket again makes the set forget the neighbour for which it waited.
        let smoltcp::socket::Socket::Udp(mut socket) = self.set.remove(self.handle) else {
            return false;
        };
        socket.close();
        let is_bound = socket.bind(endpoint(local)).is_ok();
        let is_loaded = is_bound && socket.send_slice(datagram, target).is_ok();
        self.handle = self.set.add(socket);
        is_loaded
    }
}

fn endpoint(local: SocketAddr) -> IpListenEndpoint {
    let ip = Some(local.ip()).filter(|ip| !ip.is_unspecified()).map(Into::into);
    IpListenEndpoint { addr: ip, port: local.port() }
}
