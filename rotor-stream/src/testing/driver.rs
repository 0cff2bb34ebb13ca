//! `Driver`: one machine, or one protocol, in a loop in memory, fed and read by a test.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rotor_core::{
    Config, Drain, FailureCause, Loop, LoopInstance, Machine, Notifier, Response, Scope,
    SpawnCause, SpawnError, Time, Token,
};

use super::memory::{Memory, World};
use super::peer::Peer;
use super::socket::{Scripted, pair};
use crate::protocol::Protocol;
use crate::stream::Stream;

/// If a loop does not come to rest within this many turns, it is considered endless.
const TURNS_MAX: usize = 100_000;

/// A loop in memory with its [`World`]: the real loop and the real machines, with a clock that is
/// moved by hand.
pub struct TestLoop<M: Machine> {
    instance: LoopInstance<M, Memory>,
    world: World,
    failures: Arc<Mutex<Vec<String>>>,
}

/// One protocol on a scripted socket, in a loop of its own.
///
/// Each method that changes something gives the loop turns until it comes to rest. To prepare
/// several things *before* the next turn, use the methods of the [`Peer`], the other end, to which
/// the driver derefs.
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// # use rotor::Scope;
/// # use rotor::stream::{Exception, Intent, Matched, Protocol, Transport};
/// # use std::io::Write;
/// use rotor::stream::testing::Driver;
/// use std::time::Duration;
///
/// # struct Upper;
/// # impl Protocol for Upper {
/// #     type Context = ();
/// #     type Seed = ();
/// #     fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, ()>) -> Intent<Self> {
/// #         Intent::of(Upper).delimiter(b"\n", 80).deadline(scope.now() + Duration::from_secs(9))
/// #     }
/// #     fn bytes_read(
/// #         self, line: Matched, transport: &mut Transport<'_>, _: &mut Scope<'_, ()>,
/// #     ) -> Intent<Self> {
/// #         let upper = transport.input[..line.len()].to_ascii_uppercase();
/// #         line.consume(transport.input);
/// #         transport.output.write_all(&upper).unwrap();
/// #         Intent::of(self).keep().keep_deadline()
/// #     }
/// # }
/// // `Upper` answers each line in capitals, and gives its peer nine seconds.
/// let mut driver = Driver::<Upper>::new((), ());
/// driver.send(b"hello\nwor");
/// assert_eq!(driver.take_received(), b"HELLO\n");
/// driver.advance(Duration::from_secs(9));
/// assert!(driver.is_dropped());
/// assert_eq!(driver.failures().len(), 1);
/// ```
pub struct Driver<P: Protocol, const SHORT_READ_DRAINS: bool = false> {
    test: TestLoop<Stream<P, Scripted<SHORT_READ_DRAINS>>>,
    peer: Peer,
    notifier: Option<Notifier>,
}

impl<M: Machine> TestLoop<M> {
    /// Makes an empty loop in a world of its own, with room for 1,000 machines.
    ///
    /// # Panics
    ///
    /// If the loop cannot be made, which does not happen in memory.
    pub fn new(context: M::Context) -> TestLoop<M>
    where
        M: 'static,
    {
        TestLoop::with_config(context, Config::new().machines_max(1_000))
    }

    /// Makes an empty loop in a world of its own. Two settings of the configuration are replaced:
    /// its observer, and its exit policy, so that `run` never returns by itself. If it sets no seed
    /// for random numbers, a fixed one is used.
    ///
    /// # Panics
    ///
    /// Like [`new`](TestLoop::new).
    pub fn with_config(context: M::Context, config: Config) -> TestLoop<M>
    where
        M: 'static,
    {
        let world = World::new();
        let failures = Arc::new(Mutex::new(Vec::new()));
        let sink = failures.clone();
        let config =
            // Not after its last machine: a test inspects the loop after that, too.
            config.exit(rotor_core::ExitPolicy::OnRequest).observer(move |failure| {
                sink.lock().unwrap_or_else(PoisonError::into_inner).push(failure.cause.to_string());
            });
        let creator =
            Loop::with_backend(Memory::new(&world), &config).expect("a loop in memory can be made");
        TestLoop { instance: creator.instantiate(context), world, failures }
    }

    /// Adds a machine and lets the loop come to rest.
    ///
    /// # Panics
    ///
    /// If the machine is not made.
    pub fn add(&mut self, make: impl FnOnce(&mut Scope<'_, M::Context>) -> Response<M>) -> Token {
        let token = self.instance.add_machine_with(make).expect("the machine is made");
        self.settle();
        token
    }

    /// Returns the world of the loop.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns the loop, for operations that are not offered here.
    pub fn instance(&mut self) -> &mut LoopInstance<M, Memory> {
        &mut self.instance
    }

    /// Gives the loop one turn. Returns whether anything was due.
    ///
    /// # Panics
    ///
    /// If the loop fails, which does not happen in memory.
    pub fn turn(&mut self) -> bool {
        let is_due = self.world.has_events()
            || self.instance.next_deadline().is_some_and(|next| next <= self.world.now());
        self.instance.turn(Some(Duration::ZERO)).expect("a loop in memory does not fail");
        is_due
    }

    /// Gives the loop turns until nothing is due at the current time.
    ///
    /// # Panics
    ///
    /// If it does not come to rest, because a machine never stops working.
    pub fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.turn() {
                return;
            }
        }
        panic!("the loop does not come to rest after {TURNS_MAX} turns");
    }

    /// Lets time pass; each deadline on the way fires at its time.
    ///
    /// # Panics
    ///
    /// Like [`settle`](TestLoop::settle).
    pub fn advance(&mut self, time: Duration) {
        let target = self.world.now() + time;
        self.settle();
        for _ in 0..TURNS_MAX {
            match self.instance.next_deadline() {
                Some(next) if next <= target => self.world.set_now(next),
                _ => {
                    self.world.set_now(target);
                    return self.settle();
                }
            }
            self.settle();
        }
        panic!("deadlines follow each other without end before {target:?}");
    }

    /// Lets time pass until the next deadline has fired, if there is one, and returns that time.
    ///
    /// # Panics
    ///
    /// Like [`settle`](TestLoop::settle).
    pub fn advance_to_deadline(&mut self) -> Option<Time> {
        let timeouts = self.instance.stats().read().timeouts;
        self.settle();
        loop {
            let stats = self.instance.stats().read();
            if stats.timeouts > timeouts {
                return Some(self.world.now());
            }
            // The calls of `every` have times as well, and would go on forever.
            if stats.armed == 0 {
                return None;
            }
            self.world.set_now(self.instance.next_deadline()?);
            self.settle();
        }
    }

    /// Tells the machines to finish within `time`, as at the end of a program.
    ///
    /// # Panics
    ///
    /// Like [`settle`](TestLoop::settle).
    pub fn drain(&mut self, time: Duration) {
        self.drain_with(Drain::new(time));
    }

    /// Tells the machines to finish, in the phases of `drain`, and [settles](TestLoop::settle).
    ///
    /// # Panics
    ///
    /// Like [`settle`](TestLoop::settle).
    pub fn drain_with(&mut self, drain: Drain) {
        self.instance.handle().drain_with(drain);
        self.settle();
    }

    /// Returns the errors that ended machines, oldest first, as the loop has logged them.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record_failure(&self, failure: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }

    /// Returns the number of machines.
    pub fn machines(&mut self) -> usize {
        self.instance.machines().len()
    }

    /// Returns the context.
    pub fn context(&self) -> &M::Context {
        self.instance.context()
    }

    /// Returns the context for changes.
    pub fn context_mut(&mut self) -> &mut M::Context {
        self.instance.context_mut()
    }
}

impl<P: Protocol, const D: bool> Driver<P, D> {
    /// Makes the protocol on a connected socket. `create` has been called when this returns.
    ///
    /// # Panics
    ///
    /// Like [`TestLoop::new`].
    pub fn new(seed: P::Seed, context: P::Context) -> Driver<P, D>
    where
        P: 'static,
    {
        Driver::with(seed, context, |_| {})
    }

    /// Makes the protocol on a connected socket, after `before` has prepared the peer: it may send
    /// or end, or limit what it takes.
    ///
    /// # Panics
    ///
    /// Like [`TestLoop::new`].
    pub fn with(seed: P::Seed, context: P::Context, before: impl FnOnce(&Peer)) -> Driver<P, D>
    where
        P: 'static,
    {
        let mut test = TestLoop::new(context);
        let (socket, peer) = pair::<D>(test.world());
        before(&peer);
        let mut notifier = None;
        let made = test.instance.add_machine_with(|scope: &mut Scope<'_, P::Context>| {
            notifier = Some(scope.notifier());
            Stream::connected(socket, seed, scope)
        });
        // A protocol may end in `create`; then there is no machine.
        if let Err(SpawnError { cause: SpawnCause::Failed(error), .. }) = made {
            test.record_failure(FailureCause::Error(&error).to_string());
        }
        test.settle();
        Driver { test, peer, notifier }
    }

    /// Returns the other end of the stream.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the loop.
    pub fn test(&mut self) -> &mut TestLoop<Stream<P, Scripted<D>>> {
        &mut self.test
    }

    /// Sends bytes from the peer, in one piece.
    pub fn send(&mut self, bytes: &[u8]) {
        self.peer.send(bytes);
        self.test.settle();
    }

    /// Ends the peer's side.
    pub fn end(&mut self) {
        self.peer.end();
        self.test.settle();
    }

    /// Resets the connection from the peer.
    pub fn reset(&mut self) {
        self.peer.reset();
        self.test.settle();
    }

    /// Lets the peer take more bytes, after [`Peer::limit_room`].
    pub fn make_room(&mut self, bytes: usize) {
        self.peer.make_room(bytes);
        self.test.settle();
    }

    /// Lets time pass; see [`TestLoop::advance`].
    pub fn advance(&mut self, time: Duration) {
        self.test.advance(time);
    }

    /// Lets time pass until the next deadline; see [`TestLoop::advance_to_deadline`].
    pub fn advance_to_deadline(&mut self) -> Option<Time> {
        self.test.advance_to_deadline()
    }

    /// Wakes the machine.
    pub fn wakeup(&mut self) {
        if let Some(notifier) = &self.notifier {
            notifier.wakeup();
        }
        self.test.settle();
    }

    /// Gives the loop turns until nothing is due.
    pub fn settle(&mut self) {
        self.test.settle();
    }

    /// Tells the protocol to finish; see [`TestLoop::drain`].
    pub fn drain(&mut self, time: Duration) {
        self.test.drain(time);
    }

    /// Tells the protocol to finish, in phases; see [`TestLoop::drain_with`].
    pub fn drain_with(&mut self, drain: Drain) {
        self.test.drain_with(drain);
    }

    /// Returns the errors that ended the stream, if any.
    pub fn failures(&self) -> Vec<String> {
        self.test.failures()
    }

    /// Returns whether the machine still exists. It does while it lingers after its last byte;
    /// [`Peer::is_ended`] returns whether it has ended its side.
    pub fn is_alive(&mut self) -> bool {
        self.test.machines() > 0
    }

    /// Returns the time on the clock.
    pub fn now(&self) -> Time {
        self.test.world.now()
    }

    /// Returns the context.
    pub fn context(&self) -> &P::Context {
        self.test.context()
    }

    /// Returns the context for changes.
    pub fn context_mut(&mut self) -> &mut P::Context {
        self.test.context_mut()
    }
}

impl<P: Protocol, const D: bool> Deref for Driver<P, D> {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl<M: Machine> fmt::Debug for TestLoop<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestLoop").field("world", &self.world).finish_non_exhaustive()
    }
}

impl<P: Protocol, const D: bool> fmt::Debug for Driver<P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("peer", &self.peer).finish_non_exhaustive()
    }
}
