//! `ScriptedSocket`: a byte stream in memory that behaves as a test requires.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};

use rotor_core::net::StreamSocket;
use rotor_core::{BackendHandle, EventSet, Interest, Scope, Source, Token};

use super::end::{Connection, SharedEnd};
use super::memory::{MemoryHandle, Target, World};
use super::peer::Peer;

/// A byte stream in memory whose other end, a [`Peer`], is controlled by a test.
///
/// It is strictly edge-triggered: each change is reported once, so a machine that does not read or
/// write until `WouldBlock` gets stuck, and the test shows it. With `SHORT_READ_DRAINS`, a machine
/// may treat a short read as the sign of an empty socket, as for kernel sockets.
pub struct Scripted<const SHORT_READ_DRAINS: bool> {
    end: SharedEnd,
}

/// The usual scripted socket, which must be read until `WouldBlock`.
pub type ScriptedSocket = Scripted<false>;

/// Makes a connected pair: the socket for the machine, the peer for the test.
pub fn pair<const SHORT_READ_DRAINS: bool>(world: &World) -> (Scripted<SHORT_READ_DRAINS>, Peer) {
    let end = SharedEnd::new(world, Connection::Connected, None);
    (Scripted { end: end.clone() }, Peer { end })
}

impl<const D: bool> Read for Scripted<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(f) = self.end.with(|state| state.before_read.take()) {
            f(&self.end);
        }
        self.end.with(|state| state.read(buffer))
    }
}

impl<const D: bool> Write for Scripted<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.with(|state| state.write(std::iter::once(bytes)))
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.end.with(|state| state.write(slices.iter().map(|slice| &slice[..])))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end.with(|state| state.operations.flushes += 1);
        Ok(())
    }
}

impl<const D: bool> Source for Scripted<D> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        MemoryHandle::check(backend, &self.end.world)?;
        self.end.with(|state| {
            if state.registered.is_some() {
                return Err(io::Error::new(
                    ErrorKind::AlreadyExists,
                    "a scripted socket is registered already",
                ));
            }
            state.registered = Some((token, interest));
            state.operations.registrations += 1;
            Ok(())
        })?;
        let (is_connecting, target) = self.end.with(|state| {
            let target = state.address.map(|address| self.end.world.target_at(&address));
            (state.connection == Connection::Connecting, target)
        });
        // A kernel reports the result of connecting only after registration.
        if is_connecting {
            self.end.decide(target.unwrap_or(Target::Hangs));
        }
        self.end.report_all(EventSet::EMPTY);
        Ok(())
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        MemoryHandle::check(backend, &self.end.world)?;
        self.end.with(|state| state.registered = None);
        Ok(())
    }
}

impl<const D: bool> StreamSocket for Scripted<D> {
    type Target = SocketAddr;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<Self> {
        let world = scope.backend().expect::<MemoryHandle>("a scripted socket")?.world();
        if let Target::FailsAtOnce(kind) = world.target_at(target) {
            return Err(kind.into());
        }
        Ok(Scripted { end: SharedEnd::new(world, Connection::Connecting, Some(*target)) })
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.end.with(|state| {
            state.operations.shutdowns += 1;
            if state.write_error.is_some() {
                return Err(ErrorKind::NotConnected.into());
            }
            state.write_ended |= how != Shutdown::Read;
            Ok(())
        })
    }

    /// Counts the call. The peer sees the end when the socket is dropped.
    fn reset(&mut self) -> io::Result<()> {
        self.end.with(|state| state.operations.resets += 1);
        Ok(())
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.end.with(|state| state.address)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.end.with(|state| state.error.take()).map(io::Error::from))
    }

    fn is_connected(&self) -> bool {
        self.end.with(|state| state.connection == Connection::Connected)
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn short_read_drains(&self) -> bool {
        D
    }
}

impl<const D: bool> Drop for Scripted<D> {
    fn drop(&mut self) {
        self.end.with(|state| {
            state.is_dropped = true;
            state.registered = None;
        });
    }
}

impl<const D: bool> fmt::Debug for Scripted<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}
