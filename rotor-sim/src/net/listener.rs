//! `SimListener`: what takes simulated connections.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;

use rotor_core::backend::BackendHandle;
use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{EventSet, Interest, Scope, Source, Token};

use super::{Address, Place, SimStream, check, sealed, simulation};
use crate::Fault;
use crate::table::Key;
use crate::trace::What;
use crate::world::{Shared, World};

/// A simulated listener, on an address (TCP) or on a path (Unix).
pub struct SimListener<A: Address> {
    world: Shared,
    key: Key,
    host: u32,
    address: PhantomData<A>,
}

/// A listener as the network knows it.
pub(crate) struct ListenerEnd {
    host: u32,
    place: Place,
    backlog: VecDeque<Key>,
    backlog_max: usize,
    reuse_port: bool,
    registered: Option<Token>,
    /// The next connection is to be reported: `accept` answered `WouldBlock`, or it was just registered.
    owes: bool,
}

impl<A: Address> SimListener<A> {
    fn name() -> String {
        format!("a simulated {} listener", A::STREAM)
    }
}

impl<A: Address> Source for SimListener<A> {
    fn register(&mut self, backend: &dyn BackendHandle, token: Token, _: Interest) -> io::Result<()> {
        check(backend, &self.world, self.host, &Self::name())?;
        self.world.borrow_mut().register_listener(self.key, token)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        check(backend, &self.world, self.host, &Self::name())?;
        let mut world = self.world.borrow_mut();
        let registered = world.listeners.get_mut(self.key).and_then(|listener| listener.registered.take());
        let token = registered.ok_or(io::ErrorKind::NotFound)?;
        world.token_is_unused(self.host, token);
        Ok(())
    }
}

impl<A: Address> Listener for SimListener<A> {
    type Address = A;
    type Socket = SimStream<A>;

    fn bind<C>(address: &A, options: &ListenOptions, scope: &Scope<'_, C>) -> io::Result<SimListener<A>> {
        let handle = simulation(scope, &Self::name())?;
        let (shared, host) = (handle.world(), handle.host());
        let mut world = shared.borrow_mut();
        let (own, port) = (world.hosts[host as usize].address, world.next_port(host));
        let place = address.bind(host, own, port)?;
        let is_taken = |(_, other): (Key, &ListenerEnd)| {
            other.place == place && !(other.reuse_port && options.is_reuse_port())
        };
        if world.listeners.iter().any(is_taken) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let key = world.listeners.insert(ListenerEnd {
            host,
            place,
            backlog: VecDeque::new(),
            backlog_max: options.backlog_len().max(1) as usize,
            reuse_port: options.is_reuse_port(),
            registered: None,
            owes: false,
        });
        world.host(host).sockets += 1;
        drop(world);
        Ok(SimListener { world: shared.clone(), key, host, address: PhantomData })
    }

    fn accept(&mut self) -> io::Result<(SimStream<A>, Option<SocketAddr>)> {
        let (link, peer) = {
            let mut world = self.world.borrow_mut();
            let link = world.accept(self.key)?;
            let peer = world.links.get(link).map(|link| link.ends[0].place.clone());
            (link, peer)
        };
        let peer = peer.and_then(|place| <SocketAddr as sealed::Address>::of(&place));
        Ok((SimStream::new(&self.world, link, 1, self.host), peer))
    }

    fn local_address(&self) -> Option<SocketAddr> {
        let world = self.world.borrow();
        <SocketAddr as sealed::Address>::of(&world.listeners.get(self.key)?.place)
    }
}

impl<A: Address> Drop for SimListener<A> {
    fn drop(&mut self) {
        let mut world = self.world.borrow_mut();
        world.host(self.host).sockets -= 1;
        let Some(listener) = world.listeners.remove(self.key) else { return };
        if let Some(token) = listener.registered {
            world.token_is_unused(self.host, token);
        }
        for link in listener.backlog {
            world.refuse_queued(link);
        }
    }
}

impl<A: Address> fmt::Debug for SimListener<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world.borrow();
        let place = world.listeners.get(self.key).map(|listener| &listener.place);
        write!(f, "SimListener({place:?})")
    }
}

impl World {
    /// The host that a place is on.
    pub(crate) fn host_at(&self, place: &Place) -> Option<u32> {
        match place {
            Place::Path(host, _) => Some(*host),
            Place::Inet(address) => {
                self.hosts.iter().position(|host| host.address == address.ip()).map(|index| index as u32)
            }
        }
    }

    /// A listener on a place; if there are several, any of them.
    pub(crate) fn listener_at(&mut self, place: &Place) -> Option<Key> {
        let on_place = |(_, listener): &(Key, &ListenerEnd)| listener.place == *place;
        let count = self.listeners.iter().filter(on_place).count();
        let chosen = if count > 1 { self.random.usize(..count) } else { 0 };
        self.listeners.iter().filter(on_place).nth(chosen).map(|(key, _)| key)
    }

    pub(crate) fn has_backlog_room(&self, listener: Key) -> bool {
        self.listeners.get(listener).is_some_and(|listener| listener.backlog.len() < listener.backlog_max)
    }

    /// Begins to connect: over the network, or, to a path, at once.
    pub(crate) fn begin_connect(&mut self, link: Key) -> io::Result<()> {
        let Some(found) = self.links.get(link) else { return Ok(()) };
        let place = found.ends[1].place.clone();
        if matches!(place, Place::Inet(_)) {
            self.connect(link);
            return Ok(());
        }
        let Some(listener) = self.listener_at(&place) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let host = self.links.get(link).map_or(0, |link| link.ends[0].host);
        if self.hits(Fault::ConnectRefused, host) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if !self.has_backlog_room(listener) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.establish(link, listener);
        self.connected(link);
        Ok(())
    }

    pub(crate) fn queue_connection(&mut self, listener: Key, link: Key) {
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.backlog.push_back(link);
        }
        self.listener_edge(listener);
    }

    fn listener_edge(&mut self, key: Key) {
        let Some(listener) = self.listeners.get(key) else { return };
        let Some(token) = listener.registered else { return };
        let (host, is_owed) = (listener.host, listener.owes);
        if !is_owed && self.roll(Fault::OwedEdgesOnly) {
            return;
        }
        if let Some(listener) = self.listeners.get_mut(key) {
            listener.owes = false;
        }
        self.push_edge(host, token, EventSet::READABLE);
    }

    fn register_listener(&mut self, key: Key, token: Token) -> io::Result<()> {
        let Some(listener) = self.listeners.get(key) else { return Err(io::ErrorKind::NotFound.into()) };
        let host = listener.host;
        if listener.registered.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if self.hits(Fault::RegisterFails, host) {
            return Err(io::Error::from_raw_os_error(28));
        }
        self.token_is_used(host, token);
        let Some(listener) = self.listeners.get_mut(key) else { return Ok(()) };
        listener.registered = Some(token);
        listener.owes = true;
        if !listener.backlog.is_empty() {
            self.listener_edge(key);
        }
        Ok(())
    }

    fn accept(&mut self, key: Key) -> io::Result<Key> {
        let Some(listener) = self.listeners.get_mut(key) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let host = listener.host;
        let Some(&link) = listener.backlog.front() else {
            listener.owes = true;
            return Err(io::ErrorKind::WouldBlock.into());
        };
        if self.hits(Fault::Interrupted, host) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.hits(Fault::AcceptExhausted, host) {
            return Err(io::Error::from_raw_os_error(24));
        }
        if let Some(listener) = self.listeners.get_mut(key) {
            listener.backlog.pop_front();
        }
        self.progress += 1;
        if self.hits(Fault::AcceptAborted, host) {
            self.refuse_queued(link);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let serial = self.links.get(link).map_or(0, |link| link.serial);
        self.record(host, What::Accepted(serial));
        Ok(link)
    }

    /// Ends a connection that nobody has accepted.
    fn refuse_queued(&mut self, link: Key) {
        self.cut(link);
        self.close_end(link, 1);
    }
}
