//! `SimListener`: accepts simulated connections.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;

use rotor_core::backend::BackendHandle;
use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Interest, Scope, Source, Token};

use super::address::{Address, address_in_use, sealed};
use super::ownership::{check_owner, sim_handle};
use super::stream::SimStream;
use crate::table::Key;
use crate::world::{Backlog, ListenerEnd, Place, Shared};

/// A simulated listener, on an address (TCP) or on a path (Unix).
pub struct SimListener<A: Address> {
    world: Shared,
    key: Key,
    host: u32,
    address: PhantomData<A>,
}

impl SimListener<SocketAddr> {
    /// Returns a copy of the listener that is open at an address, on any host. It stands for a
    /// listener that a process receives from its predecessor (`rotor_core::hand_over`), or from a
    /// third process that keeps it for both.
    ///
    /// All copies accept from one queue. When the last copy is dropped, the connections that still
    /// wait are reset. A connection that this copy accepts belongs to the copy's host from then on.
    ///
    /// # Errors
    ///
    /// `NotFound` if no listener is open there; `Unsupported` on a loop of another backend.
    pub fn copy_of<C>(
        address: &SocketAddr,
        scope: &Scope<'_, C>,
    ) -> io::Result<SimListener<SocketAddr>> {
        let handle = sim_handle(scope, &Self::name())?;
        let (shared, host) = (handle.world(), handle.host());
        let mut world = shared.borrow_mut();
        let place = Place::Inet(*address);
        let is_at = |(_, other): &(Key, &ListenerEnd)| other.place == place;
        let (_, open) = world.listeners.iter().find(is_at).ok_or(io::ErrorKind::NotFound)?;
        let copy = ListenerEnd {
            host,
            place,
            backlog: open.backlog.clone(),
            backlog_max: open.backlog_max,
            passed_over: 0,
            is_loop_notified: false,
            reuse_port: open.reuse_port,
            registered: None,
            is_armed: false,
        };
        let key = world.listeners.insert(copy);
        world.host(host).sockets += 1;
        drop(world);
        Ok(SimListener { world: shared.clone(), key, host, address: PhantomData })
    }
}

impl<A: Address> SimListener<A> {
    fn name() -> String {
        format!("a simulated {} listener", A::STREAM)
    }
}

impl<A: Address> Source for SimListener<A> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        _: Interest,
    ) -> io::Result<()> {
        check_owner(backend, &self.world, self.host, &Self::name())?;
        self.world.borrow_mut().register_listener(self.key, token)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        check_owner(backend, &self.world, self.host, &Self::name())?;
        let mut world = self.world.borrow_mut();
        let registered =
            world.listeners.get_mut(self.key).and_then(|listener| listener.registered.take());
        let token = registered.ok_or(io::ErrorKind::NotFound)?;
        world.remember_stale_token(self.host, token);
        Ok(())
    }
}

impl<A: Address> Listener for SimListener<A> {
    type Address = A;
    type Socket = SimStream<A>;

    fn bind<C>(
        address: &A,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<SimListener<A>> {
        let handle = sim_handle(scope, &Self::name())?;
        let (shared, host) = (handle.world(), handle.host());
        let mut world = shared.borrow_mut();
        let (own, port) = (world.hosts[host as usize].address, world.next_port(host));
        let place = address.bind(host, own, port)?;
        let is_taken = |(_, other): (Key, &ListenerEnd)| {
            other.place == place && !(other.reuse_port && options.is_reuse_port())
        };
        if world.listeners.iter().any(is_taken) {
            return Err(address_in_use(address));
        }
        world.remember_path(&place);
        let key = world.listeners.insert(ListenerEnd {
            host,
            place,
            backlog: Backlog::default(),
            // Linux keeps a queue of one even if the backlog is 0.
            backlog_max: options.backlog_len().max(1) as usize,
            passed_over: 0,
            is_loop_notified: false,
            reuse_port: options.is_reuse_port(),
            registered: None,
            is_armed: false,
        });
        world.host(host).sockets += 1;
        drop(world);
        Ok(SimListener { world: shared.clone(), key, host, address: PhantomData })
    }

    fn accept(&mut self) -> io::Result<(SimStream<A>, Option<SocketAddr>)> {
        // The borrow has to end before the socket is made, since that borrows as well.
        let (link, peer) = {
            let mut world = self.world.borrow_mut();
            let link = world.accept(self.key)?;
            let peer = world.links.get(link).map(|link| link.ends[0].place.clone());
            (link, peer)
        };
        let peer = peer.and_then(|place| <SocketAddr as sealed::Address>::from_place(&place));
        Ok((SimStream::new(&self.world, link, 1, self.host), peer))
    }

    fn has_waiting(&self) -> bool {
        self.world
            .borrow()
            .listeners
            .get(self.key)
            .is_some_and(|listener| !listener.backlog.borrow().is_empty())
    }

    fn local_address(&self) -> Option<SocketAddr> {
        let world = self.world.borrow();
        <SocketAddr as sealed::Address>::from_place(&world.listeners.get(self.key)?.place)
    }
}

impl<A: Address> Drop for SimListener<A> {
    fn drop(&mut self) {
        let mut world = self.world.borrow_mut();
        world.host(self.host).sockets -= 1;
        let Some(listener) = world.listeners.remove(self.key) else { return };
        if let Some(token) = listener.registered {
            world.remember_stale_token(self.host, token);
        }
        world.reset_backlog(self.host, listener.backlog);
    }
}

impl<A: Address> fmt::Debug for SimListener<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world.borrow();
        let place = world.listeners.get(self.key).map(|listener| &listener.place);
        write!(f, "SimListener({place:?})")
    }
}
