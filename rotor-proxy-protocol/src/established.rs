//! `Established`: the header of an open connection, and the bytes that were read beyond it.

use rotor_core::net::ReadAhead;
use rotor_stream::PeerPlace;

use crate::header::ProxyHeader;

pub(crate) struct Established {
    /// `None` if no header was awaited, or one was sent.
    pub(crate) header: Option<ProxyHeader>,
    /// The bytes that were read with the header.
    pub(crate) read_ahead: ReadAhead,
    /// The connection counts for its peer as long as this lives.
    _place: Option<PeerPlace>,
}

impl Established {
    pub(crate) fn new(
        header: Option<ProxyHeader>,
        read_ahead: ReadAhead,
        place: Option<PeerPlace>,
    ) -> Established {
        Established { header, read_ahead, _place: place }
    }

    /// Returns whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.header.is_none() && self.read_ahead.is_empty() && self._place.is_none()
    }
}
