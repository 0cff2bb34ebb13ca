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
