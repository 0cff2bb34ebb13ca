//! `ScriptedListener`: a listener in memory whose connections and errors come from a test.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{BackendHandle, EventSet, Interest, Scope, Source, Token};

use super::memory::{MemoryHandle, Readiness, World};
use super::peer::Peer;
use super::socket::{ScriptedSocket, pair};

/// A listener in memory, whose connections come from a [`Door`].
pub struct ScriptedListener {
    world: World,
    state: Rc<RefCell<State>>,
}

/// The other side of a scripted listener, by which a test connects to it.
#[derive(Clone)]
pub struct Door {
    world: World,
    state: Rc<RefCell<State>>,
}

#[derive(Default)]
struct State {
    registered: Option<(Token, Interest)>,
    waiting: VecDeque<QueuedAccept>,
    accepts: usize,
    polls: usize,
    is_dropped: bool,
}

impl Readiness for RefCell<State> {
    fn registered(&self) -> Option<(Token, Interest)> {
        self.borrow().registered
    }

    fn events(&self) -> EventSet {
        if self.borrow().waiting.is_empty() { EventSet::EMPTY } else { EventSet::READABLE }
    }
}

enum QueuedAccept {
    Connection(ScriptedSocket, Option<SocketAddr>),
    Error(io::Error),
}

/// Makes a listener and its door.
pub fn listener(world: &World) -> (ScriptedListener, Door) {
    let state = Rc::new(RefCell::new(State::default()));
    (
        ScriptedListener { world: world.clone(), state: state.clone() },
        Door { world: world.clone(), state },
    )
}

impl Door {
    /// Connects: the socket waits to be accepted, with an edge.
    pub fn connect(&self) -> Peer {
        self.connect_with_address(None)
    }

    /// Connects from an address, which the socket reports as that of its peer.
    pub fn connect_from(&self, address: SocketAddr) -> Peer {
        self.connect_with_address(Some(address))
    }

    fn connect_with_address(&self, address: Option<SocketAddr>) -> Peer {
        let (socket, peer) = pair(&self.world);
        peer.end.with(|state| state.address = address);
        self.queue_accept(QueuedAccept::Connection(socket, address));
        peer
    }

    /// Makes an `accept` fail, in order with the connections.
    pub fn fail(&self, error: io::Error) {
        self.queue_accept(QueuedAccept::Error(error));
    }

    /// Takes the next connection as another listener of the same queue would, when several loops
    /// share one. Returns whether there was one.
    pub fn accept_elsewhere(&self) -> bool {
        self.state.borrow_mut().waiting.pop_front().is_some()
    }

    fn queue_accept(&self, entry: QueuedAccept) {
        self.state.borrow_mut().waiting.push_back(entry);
        self.world.report(self.state.clone(), EventSet::READABLE);
    }

    /// Returns how many connections and errors wait to be accepted.
    pub fn waiting(&self) -> usize {
        self.state.borrow().waiting.len()
    }

    /// Returns how often `accept` was called.
    pub fn accepts(&self) -> usize {
        self.state.borrow().accepts
    }

    /// Returns how often `has_waiting` was called.
    pub fn polls(&self) -> usize {
        self.state.borrow().polls
    }

    /// Returns whether the listener was dropped, so that the address is closed.
    pub fn is_closed(&self) -> bool {
        self.state.borrow().is_dropped
    }
}

impl Source for ScriptedListener {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        MemoryHandle::check(backend, &self.world)?;
        self.state.borrow_mut().registered = Some((token, interest));
        // Registering reports the current state (epoll(7)).
        if !self.state.borrow().waiting.is_empty() {
            self.world.report(self.state.clone(), EventSet::READABLE);
        }
        Ok(())
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        MemoryHandle::check(backend, &self.world)?;
        self.state.borrow_mut().registered = None;
        Ok(())
    }
}

impl Listener for ScriptedListener {
    type Address = SocketAddr;
    type Socket = ScriptedSocket;

    /// Makes a listener that nobody can reach; [`listener`] makes one with a door.
    fn bind<C>(
        _: &SocketAddr,
        _: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<ScriptedListener> {
        let world = scope.backend().expect::<MemoryHandle>("a scripted listener")?.world();
        Ok(listener(world).0)
    }

    fn accept(&mut self) -> io::Result<(ScriptedSocket, Option<SocketAddr>)> {
        let mut state = self.state.borrow_mut();
        state.accepts += 1;
        match state.waiting.pop_front() {
            Some(QueuedAccept::Connection(socket, address)) => Ok((socket, address)),
            Some(QueuedAccept::Error(error)) => Err(error),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn has_waiting(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.polls += 1;
        !state.waiting.is_empty()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }
}

impl Drop for ScriptedListener {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.is_dropped = true;
        state.registered = None;
    }
}

impl fmt::Debug for ScriptedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedListener")
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({} waiting)", self.waiting())
    }
}
