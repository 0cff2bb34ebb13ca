//! `Detached`: the socket of a protocol that runs on the buffers of a layer.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};

use rotor_core::net::StreamSocket;
use rotor_core::{BackendHandle, Infallible, Interest, Scope, Source, Token};

/// A socket that neither reads nor writes: the layer appends to the input, and takes from the
/// output. Once it is reset, it fails as a socket does.
pub(super) struct Detached {
    pub(super) is_secure: bool,
    pub(super) is_reset: bool,
}

impl Detached {
    fn error(&self) -> io::Error {
        let kind = if self.is_reset { ErrorKind::ConnectionReset } else { ErrorKind::WouldBlock };
        kind.into()
    }
}

impl Read for Detached {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.error())
    }
}

impl Write for Detached {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.error())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Detached {
    fn register(&mut self, _: &dyn BackendHandle, _: Token, _: Interest) -> io::Result<()> {
        Ok(())
    }

    fn deregister(&mut self, _: &dyn BackendHandle) -> io::Result<()> {
        Ok(())
    }
}

impl StreamSocket for Detached {
    type Target = Infallible;

    fn connect<C>(target: &Infallible, _: &Scope<'_, C>) -> io::Result<Detached> {
        match *target {}
    }

    /// Does nothing: the layer sees that the output was ended.
    fn shutdown(&mut self, _: Shutdown) -> io::Result<()> {
        Ok(())
    }

    /// Without reading the file.
    fn send_file(&mut self, _: &File, _: u64, _: usize) -> io::Result<usize> {
        Err(self.error())
    }

    /// Does nothing: the layer decides what the peer sees.
    fn reset(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.is_reset.then(|| self.error()))
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn is_secure(&self) -> bool {
        self.is_secure
    }
}
