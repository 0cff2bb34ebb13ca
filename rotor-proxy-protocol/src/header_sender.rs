//! `Sends`: a header that is being sent.

use std::io;

use rotor_core::net::StreamSocket;

use crate::header::ProxyHeader;

pub(crate) struct Sends {
    bytes: Vec<u8>,
    sent: usize,
}

impl Sends {
    pub(crate) fn new(header: &ProxyHeader) -> Box<Sends> {
        Box::new(Sends { bytes: header.to_bytes(), sent: 0 })
    }

    /// Returns how many bytes the socket has not accepted yet.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Sends the rest of the header.
    pub(crate) fn go_on<S: StreamSocket>(&mut self, inner: &mut S) -> io::Result<()> {
        while self.left() > 0 {
            match inner.write(&self.bytes[self.sent..])? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => self.sent += sent,
            }
        }
        // An inner wrapper may hold the bytes.
        inner.flush()
    }
}
