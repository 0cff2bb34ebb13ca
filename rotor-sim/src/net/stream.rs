//! `SimStream`: one end of a simulated connection.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::FileExt;

use rotor_core::backend::BackendHandle;
use rotor_core::net::StreamSocket;
use rotor_core::{Interest, Scope, Source, Token};

use super::address::{Address, sealed};
use super::ownership::{check_owner, sim_handle};
use crate::table::Key;
use crate::world::{End, Link, Place, Shared};

/// A simulated byte stream, to an address (TCP) or to a path (Unix).
///
/// Whether a short read drains a TCP stream is decided by the [network](crate::Network::draining),
/// separately for each socket; a short read never drains a Unix stream. If a socket is dropped with
/// unread bytes, its connection is reset, as kernels do.
pub struct SimStream<A: Address> {
    world: Shared,
    link: Key,
    side: u8,
    host: u32,
    address: PhantomData<A>,
}

impl<A: Address> SimStream<A> {
    /// Creates the socket for one end of a connection of the table.
    pub(super) fn new(world: &Shared, link: Key, side: u8, host: u32) -> SimStream<A> {
        world.borrow_mut().host(host).sockets += 1;
        SimStream { world: world.clone(), link, side, host, address: PhantomData }
    }

    /// Returns the place of the peer, if it is connected to one.
    fn peer_place(&self) -> Option<Place> {
        let world = self.world.borrow();
        let [own, peer] = [self.side, 1 - self.side].map(usize::from);
        let ends = &world.links.get(self.link)?.ends;
        let is_connected = ends[own].is_connected && !ends[own].has_forgotten_peer();
        is_connected.then(|| ends[peer].place.clone())
    }

    fn name() -> String {
        format!("a simulated {} stream", A::STREAM)
    }
}

impl<A: Address> Read for SimStream<A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.world.borrow_mut().read(self.link, self.side, buffer)
    }
}

impl<A: Address> Write for SimStream<A> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.world.borrow_mut().write(self.link, self.side, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<A: Address> Source for SimStream<A> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        check_owner(backend, &self.world, self.host, &Self::name())?;
        self.world.borrow_mut().register_end(self.link, self.side, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        check_owner(backend, &self.world, self.host, &Self::name())?;
        self.world.borrow_mut().deregister_end(self.link, self.side)
    }
}

impl<A: Address> StreamSocket for SimStream<A> {
    type Target = A;

    fn connect<C>(target: &A, scope: &Scope<'_, C>) -> io::Result<SimStream<A>> {
        let handle = sim_handle(scope, &Self::name())?;
        let (world, host) = (handle.world(), handle.host());
        // The borrow has to end before the socket is made, since that borrows as well.
        let link = {
            let mut world = world.borrow_mut();
            let (own, port) = (world.hosts[host as usize].address, world.next_port(host));
            let (from, place) = (A::unnamed(host, own, port), target.place(host, own));
            let peer_host = world.host_at(&place);
            let serial = world.next_serial();
            let ends =
                [End::new(host, from, true), End::new(peer_host.unwrap_or(u32::MAX), place, false)];
            let link = world.links.insert(Link::new(serial, ends));
            let started = world.begin_connect(link);
            // No socket will exist that would remove the connection.
            if started.is_err() {
                world.links.remove(link);
            }
            started.map(|()| link)?
        };
        Ok(SimStream::new(world, link, 0, host))
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.world.borrow_mut().shutdown_end(self.link, self.side, how)
    }

    /// As kernels do, for TCP only.
    fn reset(&mut self) -> io::Result<()> {
        self.world.borrow_mut().reset_at_close(self.link, self.side)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        <SocketAddr as sealed::Address>::from_place(&self.peer_place()?)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        let world = self.world.borrow();
        let own = &world.links.get(self.link)?.ends[usize::from(self.side)];
        <SocketAddr as sealed::Address>::from_place(&own.place)
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.world.borrow_mut().take_error(self.link, self.side))
    }

    fn is_connected(&self) -> bool {
        self.peer_place().is_some()
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn short_read_drains(&self) -> bool {
        let world = self.world.borrow();
        world.links.get(self.link).is_some_and(|link| link.ends[usize::from(self.side)].drains)
    }

    /// As the kernel does: takes as much as there is room for, in one call.
    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        // If there is no room, the write reports that.
        let wanted = self.world.borrow().room_at(self.link, self.side).max(1).min(count);
        let mut bytes = vec![0; wanted];
        let read = file.read_at(&mut bytes, offset)?;
        if read == 0 { Ok(0) } else { self.write(&bytes[..read]) }
    }
}

impl<A: Address> Drop for SimStream<A> {
    fn drop(&mut self) {
        let mut world = self.world.borrow_mut();
        world.close_end(self.link, self.side);
        world.host(self.host).sockets -= 1;
    }
}

impl<A: Address> fmt::Debug for SimStream<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world.borrow();
        let serial = world.links.get(self.link).map(|link| link.serial);
        write!(f, "SimStream(connection {serial:?}, side {})", self.side)
    }
}
