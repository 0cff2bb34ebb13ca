//! `OneByOne`: a socket that returns one byte per read and per event.

use std::any::{Any, TypeId};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::rc::Rc;

use rotor_core::backend::{BackendHandle, Source};
use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{Interest, Scope, Token};

use super::backend::{Bytes, Handle};

/// How much is read from the inner socket at a time.
const AHEAD_BYTES: usize = 64 * 1024;

/// A socket that wraps another, on a loop [byte by byte](super::backend::ByteByByte). It reads
/// ahead, so a byte costs no system call. It then behaves as if the peer sent each byte separately
/// and waited until it was taken: it returns one byte, then `WouldBlock` until the event of the
/// next byte.
pub(crate) struct OneByOne<S> {
    inner: S,
    /// Its registration.
    place: Option<(Rc<Bytes>, Token)>,
    /// The poll in whose events it last returned a byte.
    gave: u64,
    ahead: Vec<u8>,
    given: usize,
}

/// A listener whose connections deliver input byte by byte.
pub(crate) struct OneByOneListener<L>(L);

impl<S> OneByOne<S> {
    fn around(inner: S) -> OneByOne<S> {
        OneByOne { inner, place: None, gave: u64::MAX, ahead: Vec::new(), given: 0 }
    }
}

impl<S: Read> OneByOne<S> {
    /// The next byte, or `None` at EOF.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        if self.given == self.ahead.len() {
            self.given = 0;
            self.ahead.resize(AHEAD_BYTES, 0);
            let read = self.inner.read(&mut self.ahead);
            self.ahead.truncate(read.as_ref().map_or(0, |count| *count));
            read?;
        }
        let byte = self.ahead.get(self.given).copied();
        self.given += usize::from(byte.is_some());
        Ok(byte)
    }
}

impl<S: Read> Read for OneByOne<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // A read into an empty buffer checks whether the inner socket is connected.
        let Some(first) = buffer.first_mut() else { return self.inner.read(buffer) };
        let Some((bytes, _)) = &self.place else { return Err(ErrorKind::NotConnected.into()) };
        if self.gave == bytes.wait() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let Some(byte) = self.next_byte()? else { return Ok(0) };
        if let Some((bytes, machine)) = &self.place {
            self.gave = bytes.wait();
            bytes.take(*machine);
        }
        *first = byte;
        Ok(1)
    }
}

impl<S: Write> Write for OneByOne<S> {
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

impl<S: Source> Source for OneByOne<S> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let handle = backend.expect::<Handle>("a socket that gives its bytes one by one")?;
        self.inner.register(backend, token, interest)?;
        self.place = Some((handle.bytes(), token));
        Ok(())
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.inner.deregister(backend)?;
        self.place = None;
        Ok(())
    }
}

impl<S: StreamSocket> StreamSocket for OneByOne<S> {
    type Target = S::Target;

    fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        Ok(OneByOne::around(S::connect(target, scope)?))
    }

    rotor_core::rotor_forward_socket!(inner);

    fn may_agree_on(target: &S::Target, protocol: &[u8]) -> bool {
        S::may_agree_on(target, protocol)
    }

    fn without(target: S::Target, protocol: &[u8]) -> Option<S::Target> {
        S::without(target, protocol)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.inner.shutdown(how)
    }

    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_last(bytes)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.inner.peer_address()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.inner.local_address()
    }

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        self.inner.handshake(scope)
    }

    fn handshake_has_drained(&self) -> bool {
        self.inner.handshake_has_drained()
    }

    fn cancel_handshake(&mut self) -> bool {
        self.inner.cancel_handshake()
    }

    fn negotiated(&self) -> Option<&[u8]> {
        self.inner.negotiated()
    }

    fn session(&self) -> Option<&dyn Any> {
        self.inner.session()
    }

    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        self.inner.session_of(wanted)
    }

    fn is_secure(&self) -> bool {
        self.inner.is_secure()
    }

    fn holds_input(&self) -> bool {
        self.inner.holds_input()
    }

    /// An event follows each byte: it was requested when the byte was returned.
    fn short_read_drains(&self) -> bool {
        true
    }

    fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    fn wants_write(&self) -> bool {
        self.inner.wants_write()
    }

    fn awaits_rest(&self) -> bool {
        self.inner.awaits_rest()
    }

    fn unsent_len(&self) -> usize {
        self.inner.unsent_len()
    }

    /// The bytes read ahead stand for what the kernel would hold, so they do not count.
    fn held_bytes(&self) -> usize {
        self.inner.held_bytes()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        self.inner.send_file(file, offset, count)
    }
}

impl<L: Source> Source for OneByOneListener<L> {
    rotor_core::rotor_forward_source!(0);
}

impl<L: Listener> Listener for OneByOneListener<L> {
    type Address = L::Address;
    type Socket = OneByOne<L::Socket>;

    fn bind<C>(
        address: &L::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self> {
        Ok(OneByOneListener(L::bind(address, options, scope)?))
    }

    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)> {
        let (socket, from) = self.0.accept()?;
        Ok((OneByOne::around(socket), from))
    }

    fn has_waiting(&self) -> bool {
        self.0.has_waiting()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_address()
    }
}
