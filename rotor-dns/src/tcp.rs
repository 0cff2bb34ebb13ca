//! `Tcp`: a connection for one query and its answer (RFC 7766).

use std::io;
use std::net::SocketAddr;

use rotor_core::net::StreamSocket;
use rotor_core::{Interest, Scope};

use crate::frame::{Frame, with_length_prefix};

/// How many bytes are read at a time.
const CHUNK: usize = 4096;

pub(crate) struct Tcp<S> {
    socket: S,
    is_connected: bool,
    query: Vec<u8>,
    written: usize,
    answer: Frame,
}

impl<S: StreamSocket<Target = SocketAddr>> Tcp<S> {
    pub(crate) fn connect<C>(
        server: SocketAddr,
        query: &[u8],
        scope: &Scope<'_, C>,
    ) -> io::Result<Tcp<S>> {
        let mut socket = S::connect(&server, scope)?;
        scope.register(&mut socket, Interest::Both)?;
        Ok(Tcp {
            socket,
            is_connected: false,
            query: with_length_prefix(query),
            written: 0,
            answer: Frame::default(),
        })
    }

    /// Writes and reads as far as the socket allows, and returns the answer once it is complete.
    /// Reads at most the 64 KiB of one message.
    ///
    /// # Errors
    ///
    /// The connection failed, or ended before the answer was complete.
    pub(crate) fn poll(&mut self) -> io::Result<Option<Vec<u8>>> {
        // The first event says that connecting has ended, but not how.
        if !self.is_connected {
            if !self.socket.has_connected()? {
                return Ok(None);
            }
            self.is_connected = true;
        }
        while let Some(left) = self.query.get(self.written..).filter(|left| !left.is_empty()) {
            match self.socket.write(left) {
                // A socket that takes nothing and gives no reason would be tried forever.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Read all the same: that shows whether the server has closed the connection.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.read()
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.socket.read(&mut chunk) {
                // The message is not complete, and a part of it is no answer.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) if self.answer.add(&chunk[..count]) => {
                    return Ok(Some(self.answer.message().to_vec()));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whose fault an error of a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Culprit {
    /// The server refused the connection or ended it.
    Server,
    /// Nobody answered.
    Silence,
    /// This system could not make the connection, or there is no way to the server.
    System,
}

/// Returns whose fault an error is. How far a connection got before does not matter: that there is
/// no way to the server may be known at once, or only after a while (ARP, ICMP).
pub(crate) fn culprit(error: &io::Error) -> Culprit {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::WriteZero
        | io::ErrorKind::UnexpectedEof => Culprit::Server,
        io::ErrorKind::TimedOut => Culprit::Silence,
        _ => Culprit::System,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_of_the_connection_is_the_servers_fault() {
        for (kind, expected) in [
            (io::ErrorKind::ConnectionRefused, Culprit::Server),
            (io::ErrorKind::ConnectionReset, Culprit::Server),
            (io::ErrorKind::BrokenPipe, Culprit::Server),
            (io::ErrorKind::UnexpectedEof, Culprit::Server),
            (io::ErrorKind::TimedOut, Culprit::Silence),
            (io::ErrorKind::HostUnreachable, Culprit::System),
            (io::ErrorKind::NetworkUnreachable, Culprit::System),
            (io::ErrorKind::NetworkDown, Culprit::System),
            (io::ErrorKind::AddrNotAvailable, Culprit::System),
            (io::ErrorKind::PermissionDenied, Culprit::System),
            (io::ErrorKind::Other, Culprit::System),
        ] {
            assert_eq!(culprit(&kind.into()), expected, "{kind:?}");
        }
    }
}
