//! `SimDatagram`: datagrams between the hosts of a simulation, which may be lost, doubled and overtaken.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use rotor_core::backend::BackendHandle;
use rotor_core::net::DatagramSocket;
use rotor_core::{EventSet, Interest, Scope, Source, Token};

use super::{Address, Place, check, filter, simulation};
use crate::Fault;
use crate::table::Key;
use crate::trace::What;
use crate::world::{Due, Shared, World};

/// The most bytes of a datagram.
const DATAGRAM_MAX: usize = 65_507;
/// How many datagrams a socket keeps until they are received; what comes beyond is lost.
const QUEUE_MAX: usize = 256;

/// A simulated datagram socket, at an address (UDP) or at a path (Unix).
pub struct SimDatagram<A: Address> {
    world: Shared,
    key: Key,
    host: u32,
    address: PhantomData<A>,
}

/// A datagram socket as the network knows it.
pub(crate) struct DatagramEnd {
    host: u32,
    place: Place,
    queue: VecDeque<(Box<[u8]>, Place)>,
    registered: Option<(Token, Interest)>,
    owes: bool,
}

/// A datagram that is under way.
pub(crate) struct Datagram {
    bytes: Box<[u8]>,
    from: Place,
    to: Place,
    hosts: (u32, u32),
}

impl<A: Address> SimDatagram<A> {
    fn name() -> String {
        format!("a simulated {} datagram socket", A::DATAGRAM)
    }
}

impl<A: Address> Source for SimDatagram<A> {
    fn register(&mut self, backend: &dyn BackendHandle, token: Token, interest: Interest) -> io::Result<()> {
        check(backend, &self.world, self.host, &Self::name())?;
        self.world.borrow_mut().register_datagram(self.key, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        check(backend, &self.world, self.host, &Self::name())?;
        let mut world = self.world.borrow_mut();
        let registered = world.datagrams.get_mut(self.key).and_then(|socket| socket.registered.take());
        let (token, _) = registered.ok_or(io::ErrorKind::NotFound)?;
        world.token_is_unused(self.host, token);
        Ok(())
    }
}

impl<A: Address> DatagramSocket for SimDatagram<A> {
    type Address = A;

    fn bind<C>(address: &A, scope: &Scope<'_, C>) -> io::Result<SimDatagram<A>> {
        let handle = simulation(scope, &Self::name())?;
        let (shared, host) = (handle.world(), handle.host());
        let mut world = shared.borrow_mut();
        let (own, port) = (world.hosts[host as usize].address, world.next_port(host));
        let place = address.bind(host, own, port)?;
        if world.datagrams.iter().any(|(_, other)| other.place == place) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let queue = VecDeque::new();
        let key = world.datagrams.insert(DatagramEnd { host, place, queue, registered: None, owes: false });
        world.host(host).sockets += 1;
        drop(world);
        Ok(SimDatagram { world: shared.clone(), key, host, address: PhantomData })
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, A)> {
        let mut world = self.world.borrow_mut();
        let (bytes, from) = world.receive(self.key)?;
        let taken = bytes.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&bytes[..taken]);
        let from = A::of(&from).ok_or(io::ErrorKind::InvalidData)?;
        Ok((taken, from))
    }

    fn send_to(&mut self, datagram: &[u8], target: &A) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        let to = target.place(self.host, world.hosts[self.host as usize].address);
        world.send_datagram(self.key, datagram, to)
    }

    fn local_address(&self) -> io::Result<A> {
        let world = self.world.borrow();
        let socket = world.datagrams.get(self.key).ok_or(io::ErrorKind::NotConnected)?;
        A::of(&socket.place).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl<A: Address> Drop for SimDatagram<A> {
    fn drop(&mut self) {
        let mut world = self.world.borrow_mut();
        world.host(self.host).sockets -= 1;
        let socket = world.datagrams.remove(self.key);
        if let Some((token, _)) = socket.and_then(|socket| socket.registered) {
            world.token_is_unused(self.host, token);
        }
    }
}

impl<A: Address> fmt::Debug for SimDatagram<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world.borrow();
        write!(f, "SimDatagram({:?})", world.datagrams.get(self.key).map(|socket| &socket.place))
    }
}

impl World {
    fn register_datagram(&mut self, key: Key, token: Token, interest: Interest) -> io::Result<()> {
        let Some(socket) = self.datagrams.get(key) else { return Err(io::ErrorKind::NotFound.into()) };
        let (host, has_some) = (socket.host, !socket.queue.is_empty());
        if socket.registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.hits(Fault::RegisterFails, host) {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.token_is_used(host, token);
        if let Some(socket) = self.datagrams.get_mut(key) {
            socket.registered = Some((token, interest));
            socket.owes = true;
        }
        let readable = if has_some { EventSet::READABLE } else { EventSet::EMPTY };
        let events = filter(interest, readable | EventSet::WRITABLE);
        if !events.is_empty() {
            self.push_edge(host, token, events);
        }
        Ok(())
    }

    fn send_datagram(&mut self, key: Key, bytes: &[u8], to: Place) -> io::Result<usize> {
        let Some(socket) = self.datagrams.get(key) else { return Err(io::ErrorKind::NotConnected.into()) };
        let (from, host) = (socket.place.clone(), socket.host);
        if bytes.len() > DATAGRAM_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if socket.registered.is_some() && self.hits(Fault::WouldBlock, host) {
            self.datagram_edge_later(key, EventSet::WRITABLE);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.progress += 1;
        self.record(host, What::DatagramSent(bytes.len()));
        let Some(target) = self.host_at(&to) else { return Ok(bytes.len()) };
        if self.hits(Fault::DatagramLost, host) {
            return Ok(bytes.len());
        }
        let copies = if self.hits(Fault::DatagramTwice, host) { 2 } else { 1 };
        for _ in 0..copies {
            let mut after = self.latency(host, target) + self.network.transmission(bytes.len());
            if self.hits(Fault::DatagramLate, host) {
                after += self.random_duration(Duration::from_millis(200));
            }
            let (from, to) = (from.clone(), to.clone());
            let datagram = Datagram { bytes: bytes.into(), from, to, hosts: (host, target) };
            self.schedule(self.local(host) + after, Due::Datagram(Box::new(datagram)));
        }
        Ok(bytes.len())
    }

    pub(crate) fn datagram_arrives(&mut self, datagram: Datagram) {
        let Datagram { bytes, from, to, hosts } = datagram;
        if self.is_blocked(hosts.0, hosts.1) {
            return;
        }
        let Some((key, socket)) = self.datagrams.iter().find(|(_, socket)| socket.place == to) else {
            return;
        };
        let (is_owed, registered, host) = (socket.owes, socket.registered, socket.host);
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        if socket.queue.len() >= QUEUE_MAX {
            return;
        }
        socket.queue.push_back((bytes, from));
        self.progress += 1;
        let Some((token, interest)) = registered else { return };
        let events = filter(interest, EventSet::READABLE);
        if events.is_empty() || !is_owed && self.roll(Fault::OwedEdgesOnly) {
            return;
        }
        if let Some(socket) = self.datagrams.get_mut(key) {
            socket.owes = false;
        }
        self.push_edge(host, token, events);
    }

    fn datagram_edge_later(&mut self, key: Key, events: EventSet) {
        let Some(socket) = self.datagrams.get(key) else { return };
        if let (host, Some((token, _))) = (socket.host, socket.registered) {
            self.push_edge_later(host, token, events, Duration::from_millis(2));
        }
    }

    fn receive(&mut self, key: Key) -> io::Result<(Box<[u8]>, Place)> {
        let Some(socket) = self.datagrams.get(key) else { return Err(io::ErrorKind::NotConnected.into()) };
        let (host, is_registered, is_empty) =
            (socket.host, socket.registered.is_some(), socket.queue.is_empty());
        if !is_empty && self.hits(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let pretends = !is_empty && is_registered && self.hits(Fault::WouldBlock, host);
        if pretends {
            self.datagram_edge_later(key, EventSet::READABLE);
        }
        let Some(socket) = self.datagrams.get_mut(key) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if pretends || is_empty {
            socket.owes = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Some((bytes, from)) = socket.queue.pop_front() else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        self.progress += 1;
        self.record(host, What::DatagramReceived(bytes.len()));
        Ok((bytes, from))
    }
}
