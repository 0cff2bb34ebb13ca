//! `HeaderSender`: a header that is being sent.

use std::io;

use rotor_core::net::StreamSocket;

use crate::header::ProxyHeader;

pub(crate) struct HeaderSender {
    bytes: Vec<u8>,
    sent: usize,
}

impl HeaderSender {
    pub(crate) fn new(header: &ProxyHeader) -> Box<HeaderSender> {
        Box::new(HeaderSender { bytes: header.to_bytes(), sent: 0 })
    }

    /// Returns how many bytes the socket has not accepted yet.
    pub(crate) fn unsent_len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Sends the rest of the header.
    pub(crate) fn advance<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        while self.unsent_len() > 0 {
            match inner.write(&self.bytes[self.sent..])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.sent += sent,
            }
        }
        // An inner wrapper may hold the bytes.
        inner.flush()
    }
}
