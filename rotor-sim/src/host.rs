//! `Host`: a simulated computer, with an address and a loop of its own.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::{
    Backend, BoxError, Config, Exit, ExitPolicy, Loop, LoopHandle, LoopInstance, Machine, Stats,
    Time,
};

use crate::backend::SimBackend;
use crate::faults::Fault;
use crate::packet_port::PacketPort;
use crate::world::Shared;

/// The handle of a host of a simulation. `M` is the machine type of its loop.
pub struct Host<M> {
    pub(crate) index: u32,
    machine: PhantomData<fn() -> M>,
}

impl<M> Host<M> {
    pub(crate) fn new(index: u32) -> Host<M> {
        Host { index, machine: PhantomData }
    }
}

impl<M> Clone for Host<M> {
    fn clone(&self) -> Host<M> {
        *self
    }
}

impl<M> Copy for Host<M> {}

impl<M> fmt::Debug for Host<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({})", self.index)
    }
}

/// What a host needs to make its loop when it starts, for the first time or after a crash.
pub struct Boot {
    pub(crate) world: Shared,
    pub(crate) host: u32,
    pub(crate) starts: u32,
    pub(crate) config: Config,
}

impl Boot {
    /// Creates a loop on the simulated backend, with the [`config`](Boot::config) of this start.
    ///
    /// # Errors
    ///
    /// None today.
    pub fn new_loop<M: Machine>(&self) -> io::Result<Loop<M, SimBackend>> {
        Loop::with_backend(self.backend(), &self.config)
    }

    /// Returns the backend, for a loop with a configuration of its own.
    pub fn backend(&self) -> SimBackend {
        SimBackend::new(&self.world, self.host)
    }

    /// Returns the backend around another one, which has sockets of its own on the same loop, such
    /// as a [TCP/IP stack](Boot::packet_port) of the host.
    ///
    /// Each wait of the loop first calls the wait of the inner backend, which must not block. The
    /// loop then gets its edges with all the faults of readiness.
    ///
    /// `wants` returns when the inner backend next has something to do if no packet comes. It is
    /// called whenever no loop can run, and the host gets a turn by that time. The loop takes its
    /// time, entropy, jobs and wake-ups from the simulation.
    ///
    /// # Errors
    ///
    /// The inner backend could not make its handle.
    pub fn backend_around<B: Backend + 'static>(
        &self,
        inner: B,
        wants: impl Fn() -> Option<Time> + 'static,
    ) -> io::Result<SimBackend> {
        let backend = SimBackend::with_inner(&self.world, self.host, inner)?;
        self.world.borrow_mut().host(self.host).stack_deadline = Some(Rc::new(wants));
        Ok(backend)
    }

    /// Connects a TCP/IP stack of the host to a network that carries packets, beside the one that
    /// carries the bytes of [`net`](crate::net). `rotor_smoltcp::Smoltcp::in_simulation` takes such
    /// a port, and any other stack can use it. There is at most one port for each start: a second
    /// one replaces the first.
    pub fn packet_port(&self) -> PacketPort {
        self.world.borrow_mut().make_port(self.host)
    }

    /// Returns the configuration of this start: the defaults with a seed of this simulation, 1,024
    /// slots, and [`ExitPolicy::OnRequest`], so that machines can be added to the host later.
    /// [`Fault::SmallSlab`] reduces the slots.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the address of the host.
    pub fn address(&self) -> IpAddr {
        self.world.borrow().hosts[self.host as usize].address
    }

    /// Returns a random number that the seed determines, a different one at each start. Use it for
    /// what should differ between hosts.
    pub fn random_u64(&self) -> u64 {
        self.world.borrow_mut().random.u64(..)
    }

    /// Returns how often the host has started before.
    pub fn starts_before(&self) -> u32 {
        self.starts
    }

    pub(crate) fn new(world: &Shared, host: u32, starts: u32) -> Boot {
        let (seed, slots) = {
            let mut world = world.borrow_mut();
            let slots = if world.roll_fault_at(Fault::SmallSlab, host) {
                world.random.usize(4..=16)
            } else {
                1_024
            };
            (world.random.u64(..), slots)
        };
        let config = Config::new().seed(seed).machines_max(slots).exit(ExitPolicy::OnRequest);
        Boot { world: world.clone(), host, starts, config }
    }
}

impl fmt::Debug for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Boot(host {}, start {})", self.host, self.starts)
    }
}

/// A loop with any type of machine.
pub(crate) trait AnyLoop {
    fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Option<Exit>>;
    fn next_deadline(&self) -> Option<Time>;
    fn machines(&mut self) -> usize;
    /// Counts the machines by their type names.
    fn census(&mut self) -> BTreeMap<&'static str, usize>;
    fn stats(&self) -> Stats;
    fn handle(&self) -> LoopHandle;
    fn check_invariants(&self) -> Result<(), String>;
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<M: Machine + 'static> AnyLoop for LoopInstance<M, SimBackend>
where
    M::Context: 'static,
{
    fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Option<Exit>> {
        LoopInstance::turn(self, max_wait)
    }

    fn next_deadline(&self) -> Option<Time> {
        LoopInstance::next_deadline(self)
    }

    fn machines(&mut self) -> usize {
        LoopInstance::machines(self).len()
    }

    fn census(&mut self) -> BTreeMap<&'static str, usize> {
        let mut census = BTreeMap::new();
        for (_, machine) in LoopInstance::machines(self).iter() {
            *census.entry(machine.type_name()).or_default() += 1;
        }
        census
    }

    fn stats(&self) -> Stats {
        LoopInstance::stats(self).read()
    }

    fn handle(&self) -> LoopHandle {
        LoopInstance::handle(self)
    }

    fn check_invariants(&self) -> Result<(), String> {
        LoopInstance::check_invariants(self)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Makes the loop of a host, at each of its starts.
pub(crate) type LoopFactory = Box<dyn FnMut(&Boot) -> Result<Box<dyn AnyLoop>, BoxError>>;

/// A host as the scheduler sees it.
pub(crate) struct ScheduledHost {
    /// `None` while the host is down.
    pub(crate) instance: Option<Box<dyn AnyLoop>>,
    pub(crate) start: LoopFactory,
    pub(crate) starts: u32,
    /// When the loop wants its next turn, as it said at the end of the last one.
    pub(crate) next_turn: Option<Time>,
    pub(crate) exit: Option<Exit>,
    /// Faults that happen by themselves spare this host.
    pub(crate) is_protected: bool,
    pub(crate) turns: u64,
    /// The time-outs and wake-ups that were counted before this turn.
    pub(crate) counts_before: (u64, u64),
    pub(crate) idle: Idle,
}

/// How long a host has had turns without progress.
#[derive(Default)]
pub(crate) struct Idle {
    pub(crate) turns: u32,
    pub(crate) progress: u64,
    pub(crate) since: Option<Time>,
    pub(crate) machines: (u64, u64),
}
