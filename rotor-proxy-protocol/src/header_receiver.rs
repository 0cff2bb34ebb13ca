//! `Awaits`: a connection that waits for its header.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::net::StreamSocket;

use crate::config::Untrusted;
use crate::counters::UnderWay;
use crate::error::ProxyError;
use crate::header::{ProxyHeader, Said};
use crate::opened::Opened;
use crate::shared::Shared;

/// How many bytes are read at a time: enough for nearly any header, often with some bytes after it.
const READ_BYTES: usize = 512;

pub(crate) struct Awaits {
    shared: Arc<Shared>,
    /// The address of the connection itself.
    from: Option<SocketAddr>,
    /// The part of the header that has arrived.
    bytes: Vec<u8>,
    under_way: UnderWay,
}

impl Awaits {
    pub(crate) fn new(shared: Arc<Shared>, from: Option<SocketAddr>) -> Box<Awaits> {
        let under_way = UnderWay::begin(shared.counters.clone());
        Box::new(Awaits { shared, from, bytes: Vec::new(), under_way })
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Counts the connection as one that was lost.
    pub(crate) fn abandon(&mut self) {
        self.under_way.end(|counters| &counters.abandoned);
    }

    /// Continues to read until the header is complete, and returns the open connection.
    /// `WouldBlock` and `Interrupted` leave everything as it is; any other error is final, and is
    /// counted.
    pub(crate) fn go_on<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<Opened> {
        let result = self.read(inner);
        match &result {
            Err(error) if is_for_later(error) => {}
            Err(error) => match ProxyError::of(error) {
                Some(error) => self.under_way.end(|counters| error.counter(counters)),
                None => self.under_way.end(|counters| &counters.abandoned),
            },
            Ok(opened) => {
                let said = opened.header.as_ref().map(|header| header.said);
                self.under_way.end(|counters| match said {
                    None => &counters.direct,
                    Some(Said::Local) => &counters.local,
                    Some(Said::Unknown) => &counters.unknown,
                    Some(Said::Proxied { .. }) => &counters.proxied,
                });
            }
        }
        result
    }

    fn read<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<Opened> {
        let config = &self.shared.config;
        let from = self.from.map(|address| address.ip());
        if !config.trusts(from) {
            return match config.untrusted {
                Untrusted::Refuse => Err(ProxyError::Untrusted(from).into()),
                Untrusted::Direct => self.opened(None, 0),
            };
        }
        loop {
            match ProxyHeader::parse(&self.bytes, config.header_bytes_max)? {
                Some((header, _)) if !config.wants(header.version()) => {
                    return Err(ProxyError::UnwantedVersion.into());
                }
                Some((header, len)) => return self.opened(Some(header), len),
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
    fn opened(&mut self, header: Option<ProxyHeader>, len: usize) -> io::Result<Opened> {
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
        Ok(Opened::new(header, ahead, place))
    }
}

/// Returns whether a later attempt may succeed.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
