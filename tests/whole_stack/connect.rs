//! A listener whose connections begin with a request for a tunnel (CONNECT), as if a proxy stood
//! before it.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};

use rotor::Scope;
use rotor::net::{ListenOptions, Listener, StreamSocket};

pub(crate) struct ConnectListener<L>(pub(crate) L);

/// A connection that answers the request in its handshake.
pub(crate) struct ConnectStream<S> {
    inner: S,
    /// What has come of the request.
    request: Vec<u8>,
    /// What is unsent of the response.
    response: &'static [u8],
}

const RESPONSE: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

impl<S: StreamSocket> Read for ConnectStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl<S: StreamSocket> Write for ConnectStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.inner.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<S: StreamSocket> rotor::Source for ConnectStream<S> {
    rotor::rotor_forward_source!(inner);
}

impl<S: StreamSocket> StreamSocket for ConnectStream<S> {
    type Target = S::Target;

    fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        let inner = S::connect(target, scope)?;
        Ok(ConnectStream { inner, request: Vec::new(), response: RESPONSE })
    }

    rotor::rotor_forward_socket!(inner);

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        self.inner.handshake(scope)?;
        while !self.request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match self.inner.read(&mut byte) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => self.request.push(byte[0]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while !self.response.is_empty() {
            match self.inner.write(self.response) {
                Ok(count) => self.response = &self.response[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn handshake_has_drained(&self) -> bool {
        false
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.inner.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.inner.peer_address()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.inner.local_address()
    }
}

impl<L: Listener> rotor::Source for ConnectListener<L> {
    rotor::rotor_forward_source!(0);
}

impl<L: Listener> Listener for ConnectListener<L> {
    type Address = L::Address;
    type Socket = ConnectStream<L::Socket>;

    fn bind<C>(
        address: &L::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self> {
        L::bind(address, options, scope).map(ConnectListener)
    }

    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)> {
        let (inner, from) = self.0.accept()?;
        Ok((ConnectStream { inner, request: Vec::new(), response: RESPONSE }, from))
    }

    fn has_waiting(&self) -> bool {
        self.0.has_waiting()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_address()
    }
}
