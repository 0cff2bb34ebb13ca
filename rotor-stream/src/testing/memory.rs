//! `Memory`: a backend without a kernel. Its clock is moved by hand, and its edges come from
//! scripted sockets.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rotor_core::backend::{JobStart, OffloadJob};
use rotor_core::{Backend, BackendHandle, EventSet, Interest, Time, Token, Wake};

/// How many offloaded jobs may wait, as in a pool by default.
const JOBS_MAX: usize = 1_024;

/// A world of scripted sockets: a test's handle of the backend.
///
/// Clones belong to the same world. A [`Memory`] made from it is the backend of a loop;
/// [`Driver`](super::Driver) does that for one protocol.
#[derive(Clone)]
pub struct World {
    state: Rc<WorldState>,
}

struct WorldState {
    now: Cell<Time>,
    edges: RefCell<Vec<Edge>>,
    targets: RefCell<BTreeMap<SocketAddr, Target>>,
    has_narrow_edges: Cell<bool>,
    /// The ends of the connections to targets that accept, oldest first. As `Any`, because sockets
    /// depend on their world, which must not depend on them.
    accepted: RefCell<Vec<Box<dyn Any>>>,
    /// The ends of hanging attempts to connect, oldest first.
    hanging: RefCell<Vec<Box<dyn Any>>>,
    /// Offloaded work that has not run yet, oldest first.
    jobs: RefCell<Vec<OffloadJob>>,
    refuses_jobs: Cell<bool>,
}

/// A source of readiness: a scripted socket or listener.
pub(super) trait Readiness {
    /// Returns its token and interest, while it is registered.
    fn registered(&self) -> Option<(Token, Interest)>;
    /// Returns its current state.
    fn events(&self) -> EventSet;
}

/// An edge that waits to be delivered: one for each source, as in a kernel.
struct Edge {
    source: Rc<dyn Readiness>,
    events: EventSet,
    /// Events that are delivered whether they are true or not.
    falsely: EventSet,
}

impl Edge {
    /// Returns the events to be delivered. As in a kernel, they reflect the state at that time: a
    /// source that was dropped reports nothing, and one that was emptied is no longer readable.
    fn deliver(self) -> Option<(Token, EventSet)> {
        let (token, interest) = self.source.registered()?;
        let events = wanted((self.events & self.source.events()) | self.falsely, interest);
        (!events.is_empty()).then_some((token, events))
    }
}

/// Returns the events that a source with this interest gets; errors and hang-ups are always among
/// them.
fn wanted(events: EventSet, interest: Interest) -> EventSet {
    let mut wanted = EventSet::READ_CLOSED | EventSet::WRITE_CLOSED | EventSet::ERROR;
    if interest.is_readable() {
        wanted |= EventSet::READABLE | EventSet::URGENT;
    }
    if interest.is_writable() {
        wanted |= EventSet::WRITABLE;
    }
    events & wanted
}

/// The result of an attempt to connect to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Target {
    /// It succeeds with the next event.
    Accepts,
    /// It fails with the next event, with this error.
    Fails(io::ErrorKind),
    /// It fails at once with this error, as local sockets do.
    FailsAtOnce(io::ErrorKind),
    /// It stays pending until the test [decides](super::Peer::decide) it.
    Hangs,
}

impl World {
    /// Makes a world whose clock is at one second.
    pub fn new() -> World {
        let state = WorldState {
            now: Cell::new(Time::ZERO + Duration::from_secs(1)),
            edges: RefCell::default(),
            targets: RefCell::default(),
            has_narrow_edges: Cell::new(false),
            accepted: RefCell::default(),
            hanging: RefCell::default(),
            jobs: RefCell::default(),
            refuses_jobs: Cell::new(false),
        };
        World { state: Rc::new(state) }
    }

    /// Returns the time on the clock.
    pub fn now(&self) -> Time {
        self.state.now.get()
    }

    /// Moves the clock. Nothing happens until the loop is given turns.
    pub fn advance(&self, time: Duration) {
        self.state.now.set(self.now() + time);
    }

    pub(super) fn set_now(&self, now: Time) {
        self.state.now.set(self.now().max(now));
    }

    /// Sets the result of attempts to connect to `address`. By default they are refused.
    pub fn target(&self, address: SocketAddr, target: Target) {
        self.state.targets.borrow_mut().insert(address, target);
    }

    /// Makes edges report only what has changed, like kqueue, instead of the whole current state,
    /// like epoll.
    pub fn narrow_edges(&self) {
        self.state.has_narrow_edges.set(true);
    }

    /// Sets whether offloaded work is refused, as by a pool without room. By default it is accepted,
    /// and runs on the test's thread, in the order in which it was offloaded, when the loop next
    /// waits; that takes no time on the clock.
    pub fn refuse_jobs(&self, refuses: bool) {
        self.state.refuses_jobs.set(refuses);
    }

    pub(super) fn has_narrow_edges(&self) -> bool {
        self.state.has_narrow_edges.get()
    }

    pub(super) fn target_at(&self, address: &SocketAddr) -> Target {
        let refused = Target::Fails(io::ErrorKind::ConnectionRefused);
        self.state.targets.borrow().get(address).copied().unwrap_or(refused)
    }

    pub(super) fn record_connection(&self, end: impl Any) {
        self.state.accepted.borrow_mut().push(Box::new(end));
    }

    pub(super) fn take_recorded_connections<E: Any>(&self) -> Vec<E> {
        ends(self.state.accepted.take())
    }

    pub(super) fn record_hanging(&self, end: impl Any) {
        self.state.hanging.borrow_mut().push(Box::new(end));
    }

    pub(super) fn take_recorded_hanging<E: Any>(&self) -> Vec<E> {
        ends(self.state.hanging.take())
    }

    /// Reports an edge, merged with a waiting one of the same source.
    pub(super) fn report(&self, source: Rc<dyn Readiness>, events: EventSet) {
        self.report_with(source, events, EventSet::EMPTY);
    }

    /// Reports an edge with events that may not be true.
    pub(super) fn report_falsely(&self, source: Rc<dyn Readiness>, events: EventSet) {
        self.report_with(source, EventSet::EMPTY, events);
    }

    fn report_with(&self, source: Rc<dyn Readiness>, events: EventSet, falsely: EventSet) {
        // An unregistered source reports nothing; registering reports the state at that time.
        if source.registered().is_none() || (events | falsely).is_empty() {
            return;
        }
        let mut edges = self.state.edges.borrow_mut();
        match edges.iter_mut().find(|edge| Rc::ptr_eq(&edge.source, &source)) {
            Some(edge) => {
                edge.events |= events;
                edge.falsely |= falsely;
            }
            None => edges.push(Edge { source, events, falsely }),
        }
    }

    /// Returns whether an edge waits to be delivered, or offloaded work to be done.
    pub fn has_events(&self) -> bool {
        !self.state.edges.borrow().is_empty() || !self.state.jobs.borrow().is_empty()
    }

    fn run_jobs(&self) {
        // Taken out, because the jobs are the user's code, which may close a socket of this world.
        for job in self.state.jobs.take() {
            let run = || job.run(&JobStart::after(Duration::ZERO));
            // The job's future already reports the panic.
            let _ = catch_unwind(AssertUnwindSafe(run));
        }
    }

    fn is_same(&self, other: &World) -> bool {
        Rc::ptr_eq(&self.state, &other.state)
    }
}

/// Converts the noted ends back to their type.
fn ends<E: Any>(recorded: Vec<Box<dyn Any>>) -> Vec<E> {
    recorded.into_iter().filter_map(|end| end.downcast().ok()).map(|end| *end).collect()
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// The backend of a loop in a [`World`]. It never waits.
///
/// Give its loop turns ([`LoopInstance::turn`](rotor_core::LoopInstance::turn)) instead of calling
/// `run`, which would spin while there is nothing to do.
#[derive(Clone, Debug)]
pub struct Memory {
    world: World,
}

impl Memory {
    /// Makes the backend of a loop in this world.
    pub fn new(world: &World) -> Memory {
        Memory { world: world.clone() }
    }
}

/// The handle that scripted sockets get through the scope.
#[derive(Clone, Debug)]
pub struct MemoryHandle {
    world: World,
}

impl MemoryHandle {
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Checks that `backend` belongs to this world.
    pub(super) fn check(backend: &dyn BackendHandle, world: &World) -> io::Result<()> {
        if backend.expect::<MemoryHandle>("a scripted socket")?.world.is_same(world) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a scripted socket cannot be used in another world",
        ))
    }
}

impl BackendHandle for MemoryHandle {
    fn name(&self) -> &str {
        "memory"
    }

    fn now(&self) -> Time {
        self.world.now()
    }

    /// Returns the Unix epoch plus the time on the clock.
    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.world.now().as_nanos())
    }

    /// Returns the same bytes for every loop, so that a test always gets the same random numbers.
    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        bytes.fill(1);
        Ok(())
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        let state = &self.world.state;
        if state.refuses_jobs.get() || state.jobs.borrow().len() >= JOBS_MAX {
            return false;
        }
        let job = make();
        state.jobs.borrow_mut().push(job);
        true
    }
}

struct NoWaker;

impl Wake for NoWaker {
    fn wake(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Backend for Memory {
    type Handle = MemoryHandle;

    fn handle(&self) -> io::Result<MemoryHandle> {
        Ok(MemoryHandle { world: self.world.clone() })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(NoWaker))
    }

    fn wait(&mut self, _: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        if !self.world.has_events() {
            return Ok(());
        }
        self.world.run_jobs();
        // Taken out, because a source that is dropped with its edge may report others.
        let mut edges = self.world.state.edges.take();
        ready.extend(edges.drain(..).filter_map(Edge::deliver));
        let mut place = self.world.state.edges.borrow_mut();
        if place.is_empty() {
            *place = edges;
        }
        Ok(())
    }
}
