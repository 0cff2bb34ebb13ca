//! `SmoltcpTcpStream`: TCP connections.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rotor_core::net::{ReadBuf, StreamSocket};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};

use crate::stack::SocketKind;
use crate::stack_socket::StackSocket;

/// A TCP connection of a stack in user space.
///
/// [`StackConfig`](crate::StackConfig) sets the size of its buffers, from its first packet on:
/// `set_send_buffer`, `set_receive_buffer` and `set_unsent_max` do nothing.
pub struct SmoltcpTcpStream(StackSocket);

const WHAT: &str = "a TCP socket of smoltcp";

impl SmoltcpTcpStream {
    /// Creates the stream that a listener of the same stack has accepted.
    pub(crate) fn from_socket(socket: StackSocket) -> SmoltcpTcpStream {
        SmoltcpTcpStream(socket)
    }
}

impl Read for SmoltcpTcpStream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        let mut buf = ReadBuf::new(buffer, &mut count);
        self.0.stack().read(self.0.id(), &mut buf)?;
        Ok(count)
    }
}

impl Write for SmoltcpTcpStream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.stack().write(self.0.id(), &[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.stack().write(self.0.id(), slices)
    }

    /// Does nothing: what was written will be sent, as if a kernel had it.
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for SmoltcpTcpStream {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.0.register(backend, token, interest, WHAT)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.0.deregister(backend, WHAT)
    }
}

impl StreamSocket for SmoltcpTcpStream {
    type Target = SocketAddr;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<SmoltcpTcpStream> {
        StackSocket::new(SocketKind::Stream, WHAT, scope, |stack| stack.connect(*target))
            .map(SmoltcpTcpStream)
    }

    const READS_UNSEEN: bool = true;

    #[inline]
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        self.0.stack().read(self.0.id(), buf)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.0.stack().shutdown(self.0.id(), how)
    }

    fn reset(&mut self) -> io::Result<()> {
        self.0.stack().reset(self.0.id())
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        let stack = self.0.stack();
        if stack.is_connected(self.0.id()) { Some(stack.addresses(self.0.id())?.1) } else { None }
    }

    fn local_address(&self) -> Option<SocketAddr> {
        Some(self.0.stack().addresses(self.0.id())?.0)
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.0.stack().take_error(self.0.id()))
    }

    fn is_connected(&self) -> bool {
        self.0.stack().is_connected(self.0.id())
    }

    fn holds_input(&self) -> bool {
        false
    }

    /// A read takes all bytes that have arrived, if they fit; later ones cause an event.
    #[inline]
    fn short_read_drains(&self) -> bool {
        true
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.0.stack().set_nodelay(self.0.id(), yes)
    }

    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        self.0.stack().set_keepalive(self.0.id(), idle)
    }
}

impl fmt::Debug for SmoltcpTcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmoltcpTcpStream({:?})", self.0)
    }
}
