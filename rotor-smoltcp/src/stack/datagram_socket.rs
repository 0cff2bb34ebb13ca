//! `Datagrams`: what the stack knows of a socket of datagrams, and what its machine is to be told.

use std::io;
use std::net::SocketAddr;

use rotor_core::{EventSet, Time, Token};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::IpListenEndpoint;

use crate::config::StackConfig;

/// How many bytes a datagram has on average that a socket keeps.
const DATAGRAM_BYTES: usize = 2 * 1024;

/// What the stack knows of a socket of datagrams.
pub(super) struct Datagrams {
    pub(super) set: SocketSet<'static>,
    handle: SocketHandle,
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    token: Option<Token>,
    /// How many datagrams wait to be sent.
    pub(super) unsent: u64,
    /// Since when nobody has said where the target of the first one is.
    pub(super) stuck_since: Option<Time>,
    pub(super) has_arrived: bool,
    pub(super) wants_room: bool,
    pub(super) is_dirty: bool,
    pub(super) is_changed: bool,
}

impl Datagrams {
    pub(super) fn new(local: SocketAddr, config: &StackConfig) -> io::Result<Datagrams> {
        let count = config.datagrams_max;
        let buffer = || {
            let metadata = vec![PacketMetadata::EMPTY; count];
            // A single one of the longest kind fits, too.
            PacketBuffer::new(metadata, vec![0; (count * DATAGRAM_BYTES).max(65_536)])
        };
        let mut socket = Socket::new(buffer(), buffer());
        let bound = socket.bind(endpoint(local));
        bound.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        Ok(Datagrams {
            set,
            handle,
            local,
            peer: None,
            token: None,
            unsent: 0,
            stuck_since: None,
            has_arrived: false,
            wants_room: false,
            is_dirty: false,
            is_changed: false,
        })
    }

    pub(super) fn socket(&mut self) -> &mut Socket<'static> {
        self.set.get_mut(self.handle)
    }

    /// Throws away what waits to be sent, and returns how many datagrams that were. smoltcp empties
    /// both of its buffers at once, or none.
    pub(super) fn give_up_sending(&mut self) -> u64 {
        let local = self.local;
        self.socket().close();
        if let Err(error) = self.socket().bind(endpoint(local)) {
            log::warn!("{local} is not bound any more: {error}");
        }
        self.stuck_since = None;
        std::mem::take(&mut self.unsent)
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

    pub(super) fn news(&mut self) -> Option<(Token, EventSet)> {
        let token = self.token?;
        let mut events = EventSet::EMPTY;
        if std::mem::take(&mut self.has_arrived) {
            events |= EventSet::READABLE;
        }
        if self.wants_room && self.socket().can_send() {
            self.wants_room = false;
            events |= EventSet::WRITABLE;
        }
        if events.is_empty() { None } else { Some((token, events)) }
    }
}

fn endpoint(local: SocketAddr) -> IpListenEndpoint {
    let ip = Some(local.ip()).filter(|ip| !ip.is_unspecified()).map(Into::into);
    IpListenEndpoint { addr: ip, port: local.port() }
}
