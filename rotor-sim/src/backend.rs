//! The backend of a simulated loop: its waits never block, and its clock is the simulation's.

use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rotor_core::backend::{Backend, BackendHandle, OffloadJob};
use rotor_core::{EventSet, Time, Token, Wake};

use crate::faults::Fault;
use crate::trace::TraceEvent;
use crate::world::{Shared, SimEvent, SimWaker, VirtualJob};

/// The backend of a simulated loop. [`Boot::backend`](crate::Boot::backend) makes it.
///
/// A wait never blocks: the simulation gives a loop a turn when there is something to do for it,
/// and advances the time when there is nothing to do for any loop.
pub struct SimBackend {
    handle: SimHandle,
    inner: Option<InnerBackend>,
}

/// The waits of the inner backend, whatever its type.
trait InnerWaits {
    fn wait_inner(
        &mut self,
        until: Option<Time>,
        ready: &mut Vec<(Token, EventSet)>,
    ) -> io::Result<()>;
    fn inner_may_have_more(&self) -> bool;
    fn inner_full_waits(&self) -> usize;
    fn inner_has_unsent(&self) -> bool;
}

impl<B: Backend> InnerWaits for B {
    fn wait_inner(
        &mut self,
        until: Option<Time>,
        ready: &mut Vec<(Token, EventSet)>,
    ) -> io::Result<()> {
        self.wait(until, ready)
    }

    fn inner_may_have_more(&self) -> bool {
        self.may_have_more()
    }

    fn inner_full_waits(&self) -> usize {
        self.full_waits()
    }

    fn inner_has_unsent(&self) -> bool {
        self.has_unsent()
    }
}

/// The backend that this one is around.
struct InnerBackend {
    backend: Box<dyn InnerWaits>,
    /// The edges that the last wait returned.
    ready: Vec<(Token, EventSet)>,
}

/// The handle through which simulated sockets find their simulation and their host.
#[derive(Clone)]
pub struct SimHandle {
    world: Shared,
    host: u32,
    /// The handle of the inner backend, if there is one.
    within: Option<Rc<dyn BackendHandle>>,
}

/// How many jobs the virtual pool holds at most.
const JOBS_MAX: usize = 1_024;

impl SimBackend {
    pub(crate) fn new(world: &Shared, host: u32) -> SimBackend {
        let handle = SimHandle { world: world.clone(), host, within: None };
        SimBackend { handle, inner: None }
    }

    pub(crate) fn with_inner<B: Backend + 'static>(
        world: &Shared,
        host: u32,
        inner: B,
    ) -> io::Result<SimBackend> {
        let within: Rc<dyn BackendHandle> = Rc::new(inner.handle()?);
        let handle = SimHandle { world: world.clone(), host, within: Some(within) };
        let inner = InnerBackend { backend: Box::new(inner), ready: Vec::new() };
        Ok(SimBackend { handle, inner: Some(inner) })
    }
}

impl Backend for SimBackend {
    type Handle = SimHandle;

    fn handle(&self) -> io::Result<SimHandle> {
        Ok(self.handle.clone())
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        // A new one for each loop: a waker that was kept from before a crash wakes nothing.
        let waker: Arc<SimWaker> = Arc::default();
        self.handle.world.borrow_mut().host(self.handle.host).waker = waker.clone();
        Ok(waker)
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        if let Some(inner) = &mut self.inner {
            let (world, host) = (&self.handle.world, self.handle.host);
            world.borrow_mut().before_stack_wait(host);
            // The world is not borrowed while foreign code runs.
            inner.backend.wait_inner(until, &mut inner.ready)?;
            world.borrow_mut().after_stack_wait(host, inner.ready.drain(..));
        }
        self.handle.world.borrow_mut().take_ready(self.handle.host, ready);
        Ok(())
    }

    fn may_have_more(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.backend.inner_may_have_more())
    }

    fn full_waits(&self) -> usize {
        self.inner.as_ref().map_or(1, |inner| inner.backend.inner_full_waits())
    }

    fn has_unsent(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.backend.inner_has_unsent())
    }

    fn order(&mut self, same_tick: &mut [Token]) {
        let mut world = self.handle.world.borrow_mut();
        // Machines may rely on no order here, so there is none.
        world.random.shuffle(same_tick);
        for token in same_tick {
            world.record(self.handle.host, TraceEvent::Ordered(*token));
        }
    }
}

impl SimHandle {
    pub(crate) fn world(&self) -> &Shared {
        &self.world
    }

    pub(crate) fn host(&self) -> u32 {
        self.host
    }

    pub(crate) fn belongs_to(&self, world: &Shared) -> bool {
        Rc::ptr_eq(&self.world, world)
    }
}

impl BackendHandle for SimHandle {
    fn name(&self) -> &str {
        "simulation"
    }

    fn within(&self) -> Option<&dyn BackendHandle> {
        self.within.as_deref()
    }

    fn now(&self) -> Time {
        self.world.borrow_mut().read_clock(self.host)
    }

    /// The first second of 2026, plus the virtual time, plus the steps that the host's clock has
    /// made.
    fn wall_time(&self) -> SystemTime {
        const START: Duration = Duration::from_secs(1_767_225_600);
        let world = self.world.borrow();
        let time = SystemTime::UNIX_EPOCH + START + (world.local_time(self.host) - Time::ZERO);
        let step = world.hosts[self.host as usize].wall_step;
        let size = Duration::from_nanos(step.unsigned_abs());
        if step < 0 { time - size } else { time + size }
    }

    /// Bytes that the simulation's seed determines, different ones for each loop.
    fn entropy(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.world.borrow_mut().entropy.fill(bytes);
        Ok(())
    }

    fn note(&self, machine: Token, what: fmt::Arguments<'_>) {
        // Formatted before the world is borrowed, since it is users' code.
        let text = format!("machine {machine}: {what}");
        let mut world = self.world.borrow_mut();
        let number = world.trace.add_note(text);
        world.record(self.host, TraceEvent::Note(number));
    }

    fn offload(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        {
            let mut world = self.world.borrow_mut();
            if world.jobs.len() >= JOBS_MAX || world.roll_fault_at(Fault::OffloadFull, self.host) {
                return false;
            }
        }
        // The world is not borrowed here: the job captures users' values, and dropping those may
        // close a socket.
        let job = make();
        let mut world = self.world.borrow_mut();
        if world.roll_fault_at(Fault::OffloadLost, self.host) {
            drop(world);
            drop(job);
            return true;
        }
        let is_slow = world.roll_fault_at(Fault::OffloadSlow, self.host);
        let most = if is_slow { Duration::from_secs(10) } else { Duration::from_millis(5) };
        // In the loop's own time, which may be ahead of the simulation's because of slow handlers.
        let time = world.random_duration(most);
        let at = world.local_time(self.host) + time;
        let number = world.next_serial();
        world.record(self.host, TraceEvent::Offloaded(number));
        let key = world.jobs.insert((self.host, VirtualJob { job, queued_for: time / 2 }));
        world.schedule(at, SimEvent::Job(key));
        true
    }
}

impl fmt::Debug for SimBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimBackend(host {})", self.handle.host)
    }
}

impl fmt::Debug for SimHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimHandle(host {})", self.host)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::world::World;

    /// A stack that has more packets than a wait takes.
    struct Busy(SimBackend);

    impl Backend for Busy {
        type Handle = SimHandle;

        fn handle(&self) -> io::Result<SimHandle> {
            self.0.handle()
        }

        fn waker(&self) -> io::Result<Arc<dyn Wake>> {
            self.0.waker()
        }

        fn wait(&mut self, _: Option<Time>, _: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
            Ok(())
        }

        fn may_have_more(&self) -> bool {
            true
        }

        fn full_waits(&self) -> usize {
            7
        }
    }

    #[test]
    fn the_packets_that_an_inner_backend_has_left_are_known_to_the_loop() {
        let world = Rc::new(RefCell::new(World::new(1)));
        let host = world.borrow_mut().add_host("a host");
        let own = SimBackend::new(&world, host);
        assert_eq!((own.may_have_more(), own.full_waits()), (false, 1));
        let around = SimBackend::with_inner(&world, host, Busy(own)).expect("it has a handle");
        assert_eq!((around.may_have_more(), around.full_waits()), (true, 7));
    }
}
