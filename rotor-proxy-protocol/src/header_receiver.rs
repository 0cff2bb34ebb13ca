//! `HeaderReceiver`: a connection that waits for its header.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::net::{ReadAhead, StreamSocket};

use crate::config::Untrusted;
use crate::counters::HandshakeGuard;
use crate::error::ProxyError;
use crate::established::Established;
use crate::header::{Endpoints, ProxyHeader};
use crate::shared::Shared;

/// How many bytes are read at a time: enough for nearly any header, often with some bytes after it.
const READ_BYTES: usize = 512;

pub(crate) struct HeaderReceiver {
    shared: Arc<Shared>,
    /// The address of the connection itself.
    from: Option<SocketAddr>,
    /// The part of the header that has arrived.
    bytes: Vec<u8>,
    guard: HandshakeGuard,
}

impl HeaderReceiver {
    pub(crate) fn new(shared: Arc<Shared>, from: Option<SocketAddr>) -> Box<HeaderReceiver> {
        let guard = HandshakeGuard::begin(shared.counters.clone());
        Box::new(HeaderReceiver { shared, from, bytes: Vec::new(), guard })
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Counts the connection as one that was lost.
    pub(crate) fn abandon(&mut self) {
        self.guard.end(|counters| &counters.abandoned);
    }

    /// Continues to read until the header is complete, and returns the open connection.
    /// `WouldBlock` and `Interrupted` leave everything as it is; any other error is final, and is
    /// counted.
    pub(crate) fn advance<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<Established> {
        let result = self.read(inner);
        match &result {
            Err(error) if is_retryable(error) => {}
            Err(error) => match ProxyError::of(error) {
                Some(error) => self.guard.end(|counters| error.counter(counters)),
                None => self.guard.end(|counters| &counters.abandoned),
            },
            Ok(established) => {
                let endpoints = established.header.as_ref().map(|header| header.endpoints);
                self.guard.end(|counters| match endpoints {
                    None => &counters.direct,
                    Some(Endpoints::Local) => &counters.local,
                    Some(Endpoints::Unknown) => &counters.unknown,
                    Some(Endpoints::Proxied { .. }) => &counters.proxied,
                });
            }
        }
        result
    }

    fn read<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<Established> {
        let config = &self.shared.config;
        let from = self.from.map(|address| address.ip());
        if !config.trusts(from) {
            return match config.untrusted {
                Untrusted::Refuse => Err(ProxyError::Untrusted(from).into()),
                Untrusted::Direct => self.establish(None, 0),
            };
        }
        loop {
            match ProxyHeader::parse(&self.bytes, config.header_bytes_max)? {
                Some((header, _)) if !config.accepts_version(header.version()) => {
                    return Err(ProxyError::UnwantedVersion.into());
                }
                Some((header, len)) => return self.establish(Some(header), len),
                None => {}
            }
            let mut room = [0; READ_BYTES];
            match inner.read(&mut room)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => self.bytes.extend_from_slice(&room[..read]),
            }
        }
    }

    /// Opens the connection. `len` is the number of bytes that belonged to the header.
    fn establish(&mut self, header: Option<ProxyHeader>, len: usize) -> io::Result<Established> {
        // A header without a source belongs to a connection of the balancer, or to a client of whom
        // nothing is known. As one peer, all of these together would have the limit of one.
        let peer = match &header {
            Some(header) => header.source(),
            None => self.from,
        };
        let peer = peer.map(|address| address.ip());
        let place = match (&self.shared.config.per_peer, peer) {
            (Some(connections), Some(peer)) => {
                Some(connections.enter(peer).ok_or(ProxyError::TooManyOfPeer(peer))?)
            }
            _ => None,
        };
        let ahead = self.bytes.split_off(len);
        self.bytes = Vec::new();
        Ok(Established::new(header, ReadAhead::new(ahead), place))
    }
}

/// Returns whether a later attempt may succeed.
pub(crate) fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
