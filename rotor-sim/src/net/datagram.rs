//! `SimDatagram`: UDP datagrams, which may be lost, duplicated and reordered, and Unix datagrams,
//! which may not.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;

use rotor_core::backend::BackendHandle;
use rotor_core::net::DatagramSocket;
use rotor_core::{Interest, Scope, Source, Token};

use super::address::{Address, address_in_use, bind_error};
use super::ownership::{check_owner, sim_handle};
use crate::faults::Fault;
use crate::table::Key;
use crate::world::{DatagramEnd, Place, Shared};

/// A simulated datagram socket, at an address (UDP) or at a path (Unix).
///
/// It keeps 256 datagrams that were not received yet. UDP loses further ones; at a path, `send` and
/// `send_to` fail with `WouldBlock`, and an edge follows. A datagram of more than 65,507 bytes, the
/// limit of UDP (RFC 768, RFC 791), is refused with `EMSGSIZE`, one to port 0 with `InvalidInput`.
///
/// Datagrams between paths are never lost, duplicated or reordered, whatever the faults, as unix(7)
/// says. If no socket is bound to the path, sending fails with `NotFound`, or with
/// `ConnectionRefused` if one was bound to it before; if that socket is connected to another peer,
/// with `PermissionDenied`. A socket whose connected peer is gone gets
/// `ConnectionRefused`, and then, as on Linux, has no peer any more (`NotConnected`): a later
/// socket at that path is a different one, to which it has to be connected anew.
pub struct SimDatagram<A: Address> {
    world: Shared,
    key: Key,
    host: u32,
    address: PhantomData<A>,
}

impl<A: Address> SimDatagram<A> {
    fn name() -> String {
        format!("a simulated {} datagram socket", A::DATAGRAM)
    }
}

impl<A: Address> Source for SimDatagram<A> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        check_owner(backend, &self.world, self.host, &Self::name())?;
        self.world.borrow_mut().register_datagram(self.key, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        check_owner(backend, &self.world, self.host, &Self::name())?;
        let mut world = self.world.borrow_mut();
        let registered =
            world.datagrams.get_mut(self.key).and_then(|socket| socket.registered.take());
        let (token, _) = registered.ok_or(io::ErrorKind::NotFound)?;
        world.remember_stale_token(self.host, token);
        Ok(())
    }
}

impl<A: Address> DatagramSocket for SimDatagram<A> {
    type Address = A;

    fn bind<C>(address: &A, scope: &Scope<'_, C>) -> io::Result<SimDatagram<A>> {
        let handle = sim_handle(scope, &Self::name())?;
        let (shared, host) = (handle.world(), handle.host());
        let mut world = shared.borrow_mut();
        let (own, port) = (world.hosts[host as usize].address, world.next_port(host));
        let place = address.bind(host, own, port)?;
        if world.roll_fault_at(Fault::DatagramExhausted, host) {
            return Err(bind_error(address, io::Error::from_raw_os_error(24)));
        }
        if world.datagrams.iter().any(|(_, other)| other.place == place) {
            return Err(address_in_use(address));
        }
        world.remember_path(&place);
        let key = world.datagrams.insert(DatagramEnd {
            host,
            place,
            peer: None,
            peer_key: None,
            is_refused: false,
            queue: VecDeque::new(),
            registered: None,
            is_armed: false,
            full_peers: Vec::new(),
        });
        world.host(host).sockets += 1;
        drop(world);
        Ok(SimDatagram { world: shared.clone(), key, host, address: PhantomData })
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, A)> {
        let mut world = self.world.borrow_mut();
        let (bytes, from) = world.receive(self.key)?;
        // The rest of a datagram is lost, as with recvfrom(2).
        let taken = bytes.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&bytes[..taken]);
        let from = A::from_place(&from).ok_or(io::ErrorKind::InvalidData)?;
        Ok((taken, from))
    }

    fn send_to(&mut self, datagram: &[u8], target: &A) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        let to = target.place(self.host, world.hosts[self.host as usize].address);
        world.send_datagram(self.key, datagram, Some(to))
    }

    fn connect(&mut self, peer: &A) -> io::Result<()> {
        let mut world = self.world.borrow_mut();
        let place = peer.place(self.host, world.hosts[self.host as usize].address);
        place.check_route()?;
        let peer_key = match place {
            Place::Path(..) => Some(world.resolve_peer(self.key, &place)?),
            Place::Inet(_) => None,
        };
        let socket = world.datagrams.get_mut(self.key).ok_or(io::ErrorKind::NotConnected)?;
        (socket.peer, socket.peer_key) = (Some(place), peer_key);
        Ok(())
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.world.borrow_mut().send_datagram(self.key, datagram, None)
    }

    fn local_address(&self) -> io::Result<A> {
        let world = self.world.borrow();
        let socket = world.datagrams.get(self.key).ok_or(io::ErrorKind::NotConnected)?;
        A::from_place(&socket.place).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl<A: Address> Drop for SimDatagram<A> {
    fn drop(&mut self) {
        let mut world = self.world.borrow_mut();
        world.host(self.host).sockets -= 1;
        let Some(socket) = world.datagrams.remove(self.key) else { return };
        if let Some((token, _)) = socket.registered {
            world.remember_stale_token(self.host, token);
        }
        world.notify_room(&socket.place);
    }
}

impl<A: Address> fmt::Debug for SimDatagram<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world.borrow();
        write!(f, "SimDatagram({:?})", world.datagrams.get(self.key).map(|socket| &socket.place))
    }
}
