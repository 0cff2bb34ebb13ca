//! A second backend: its clock stands still and nothing is ready until the test says so.
//!
//! A wait with nothing ready advances the clock to the wait's deadline immediately. A wait without
//! a deadline is an error, "asleep", since nothing could ever happen.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use rotor_core::backend::{JobStart, OffloadJob};
use rotor_core::{
    Backend, BackendHandle, Config, EarlyScope, EventSet, Interest, Loop, LoopInstance, Machine,
    Response, Source, Time, Token, Wake,
};

use crate::loops::TestMachine;

/// The environment of a loop, as controlled by the test; the loop's sockets use it too.
#[derive(Clone, Default)]
pub(crate) struct Manual {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    now: LockedCell<u64>,
    /// How far each reading advances the clock, in nanoseconds.
    step: LockedCell<u64>,
    readings: LockedCell<u64>,
    /// How many more readings of the clock panic.
    broken_readings: LockedCell<u32>,
    ready: LockedCell<Vec<(Token, EventSet)>>,
    duplicates_jobs: LockedCell<bool>,
    /// Jobs that were accepted and have not run.
    jobs: LockedCell<Vec<OffloadJob>>,
    /// The maximum number of events that one wait reports, if that is limited.
    events_max: LockedCell<Option<usize>>,
    /// How many full waits report everything, as far as the backend knows.
    full_waits: LockedCell<usize>,
    /// Until when peers have not acknowledged everything.
    unsent_until: LockedCell<Option<Time>>,
    waits: LockedCell<Vec<Option<Time>>>,
    registered: LockedCell<Vec<(Token, Interest)>>,
    reversed: LockedCell<bool>,
    /// The byte that fills all random bytes given to loops; `None` is an error.
    entropy: LockedCell<Option<u8>>,
    entropy_requests: LockedCell<usize>,
    wakes: Arc<AtomicUsize>,
    /// The next wait panics, and so does each one after it.
    is_broken: LockedCell<bool>,
    /// Number of waits since then.
    broken_waits: LockedCell<u32>,
}

/// State that the test and the loop's thread both change.
#[derive(Default)]
struct LockedCell<T>(Mutex<T>);

impl<T> LockedCell<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("nobody panics with it")
    }

    fn get(&self) -> T
    where
        T: Copy,
    {
        *self.lock()
    }

    fn set(&self, value: T) {
        *self.lock() = value;
    }

    fn take(&self) -> T
    where
        T: Default,
    {
        std::mem::take(&mut self.lock())
    }
}

impl Manual {
    pub(crate) fn new() -> Manual {
        let manual = Manual::default();
        manual.state.now.set(1_000_000_000);
        manual.set_entropy(Some(1));
        manual
    }

    /// A loop on this backend, with the machine that `make` returns.
    pub(crate) fn start<M: TestMachine>(
        &self,
        config: &Config,
        context: M::Context,
        make: impl FnOnce(&mut EarlyScope<'_>) -> Response<M>,
    ) -> LoopInstance<M, Manual> {
        let mut creator = self.creator(config);
        creator.add_machine_with(make).expect("room for one");
        creator.instantiate(context)
    }

    pub(crate) fn creator<M: Machine>(&self, config: &Config) -> Loop<M, Manual> {
        Loop::with_backend(self.clone(), config).expect("nothing can fail")
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.state.now.get())
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.state.now.set((self.now() + time).as_nanos());
    }

    /// From now on each reading of the clock advances it by this much.
    pub(crate) fn advance_at_each_reading(&self, step: Duration) {
        self.state.step.set(step.as_nanos() as u64);
    }

    /// Makes the next reading of the clock panic, but none after it.
    pub(crate) fn break_clock(&self) {
        self.state.broken_readings.set(1);
    }

    /// From now on each reading of the clock panics. After 100 panics it works again, since a loop
    /// that reads it again and again would never end.
    pub(crate) fn break_clock_permanently(&self) {
        self.state.broken_readings.set(100);
    }

    pub(crate) fn readings(&self) -> u64 {
        self.state.readings.get()
    }

    /// Reports an event in the next wait.
    pub(crate) fn feed(&self, token: Token, events: EventSet) {
        self.state.ready.lock().push((token, events));
    }

    /// From now on jobs are accepted, and each is made twice.
    pub(crate) fn duplicate_jobs(&self) {
        self.state.duplicates_jobs.set(true);
    }

    /// Runs the jobs that were accepted.
    pub(crate) fn run_jobs(&self) {
        for job in self.state.jobs.take() {
            job.run(&JobStart::after(Duration::ZERO));
        }
    }

    /// From now on a wait reports at most `most` events, the first ones.
    pub(crate) fn limit_events(&self, most: usize) {
        self.state.events_max.set(Some(most));
    }

    /// From now on the backend says that it takes this many full waits to report everything.
    pub(crate) fn set_full_waits(&self, waits: usize) {
        self.state.full_waits.set(waits);
    }

    /// Has the backend send for this long what dropped sockets have written.
    pub(crate) fn send_for(&self, time: Duration) {
        self.state.unsent_until.set(Some(self.now() + time));
    }

    /// Fires the deadlines of one tick in reverse order.
    pub(crate) fn reverse_ticks(&self) {
        self.state.reversed.set(true);
    }

    /// The deadlines of all waits since the last call of this function.
    pub(crate) fn take_waits(&self) -> Vec<Option<Time>> {
        self.state.waits.take()
    }

    pub(crate) fn registered(&self) -> Vec<(Token, Interest)> {
        self.state.registered.lock().clone()
    }

    /// Fills the random bytes of loops made from now on with this byte, or makes them an error.
    pub(crate) fn set_entropy(&self, byte: Option<u8>) {
        self.state.entropy.set(byte);
    }

    /// How often a loop has asked for random bytes.
    pub(crate) fn entropy_requests(&self) -> usize {
        self.state.entropy_requests.get()
    }

    /// From now on each wait panics.
    pub(crate) fn break_waits(&self) {
        self.state.is_broken.set(true);
    }

    /// How often the waker was used.
    pub(crate) fn wakes(&self) -> usize {
        self.state.wakes.load(SeqCst)
    }
}

impl Backend for Manual {
    type Handle = Manual;

    fn handle(&self) -> io::Result<Manual> {
        Ok(self.clone())
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(Waker(self.state.wakes.clone())))
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        if self.state.is_broken.get() {
            self.state.broken_waits.set(self.state.broken_waits.get() + 1);
            // Otherwise a loop that waits again and again would never end.
            if self.state.broken_waits.get() > 100 {
                return Err(io::Error::other("still broken"));
            }
            panic!("a broken backend");
        }
        self.state.waits.lock().push(until);
        let sent_at = self.state.unsent_until.get().filter(|at| *at > Manual::now(self));
        let until = until.into_iter().chain(sent_at).min();
        let mut fed = self.state.ready.lock();
        match until {
            Some(until) if fed.is_empty() => self.state.now.set(self.now().max(until).as_nanos()),
            None if fed.is_empty() => return Err(io::Error::other("asleep")),
            _ => {}
        }
        let most = self.state.events_max.get().unwrap_or(usize::MAX).min(fed.len());
        ready.extend(fed.drain(..most));
        Ok(())
    }

    fn coarse_now(&self) -> Time {
        Manual::now(self)
    }

    fn may_have_more(&self) -> bool {
        !self.state.ready.lock().is_empty()
    }

    fn full_waits(&self) -> usize {
        self.state.full_waits.get()
    }

    fn has_unsent(&self) -> bool {
        self.state.unsent_until.get().is_some_and(|at| at > Manual::now(self))
    }

    fn order(&mut self, same_tick: &mut [Token]) {
        if self.state.reversed.get() {
            same_tick.reverse();
        }
    }
}

impl BackendHandle for Manual {
    fn name(&self) -> &str {
        "manual"
    }

    fn now(&self) -> Time {
        let state = &self.state;
        let broken = state.broken_readings.get();
        if broken > 0 {
            state.broken_readings.set(broken - 1);
            panic!("a broken clock");
        }
        state.readings.set(state.readings.get() + 1);
        state.now.set(state.now.get() + state.step.get());
        Manual::now(self)
    }

    /// Makes each job twice, which no backend may do, and keeps the first; or refuses.
    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        if !self.state.duplicates_jobs.get() {
            return false;
        }
        let job = make();
        drop(make());
        self.state.jobs.lock().push(job);
        true
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + (Manual::now(self) - Time::ZERO)
    }

    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.state.entropy_requests.set(self.state.entropy_requests.get() + 1);
        bytes.fill(self.state.entropy.get().ok_or(io::ErrorKind::PermissionDenied)?);
        Ok(())
    }
}

struct Waker(Arc<AtomicUsize>);

impl Wake for Waker {
    fn wake(&self) -> io::Result<()> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }
}

/// A socket of this backend; it only records its registration.
#[derive(Debug)]
pub(crate) struct Socket;

impl Source for Socket {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let manual: &Manual = backend.expect("a manual socket")?;
        manual.state.registered.lock().push((token, interest));
        Ok(())
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        backend.expect::<Manual>("a manual socket")?.state.registered.lock().pop();
        Ok(())
    }
}

/// Runs turns, without waiting, until there is nothing left to do immediately. Checks the loop's
/// invariants after each turn.
pub(crate) fn settle<M: Machine>(instance: &mut LoopInstance<M, Manual>) {
    for _ in 0..10_000 {
        let ended = instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        instance.check_invariants().expect("the books agree");
        if ended.is_some() || instance.next_deadline().is_none_or(|next| next > instance.now()) {
            return;
        }
    }
    panic!("there is always something to do");
}
