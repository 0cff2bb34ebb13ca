//! `Sim`: hosts, the network between them, and virtual time, which advances only when no loop can
//! run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use rotor_core::{BoxError, Exit, LoopInstance, Machine, Stats, Time, Token};

use crate::backend::SimBackend;
use crate::failure::Failure;
use crate::faults::{Fault, Faults};
use crate::host::{AnyLoop, Boot, Host, Idle, ScheduledHost};
use crate::network::Network;
use crate::property;
use crate::strikes::Strikes;
use crate::trace::TraceEvent;
use crate::transcript::TranscriptHandle;
use crate::work::{Work, WorkBounds};
use crate::world::{Shared, SimEvent, World};

/// A property that the test has added.
pub(crate) type PropertyCheck = Box<dyn FnMut(&mut Sim) -> Result<(), String>>;

/// A simulation: hosts, a network and virtual time. It is made from a seed and run by the test; the
/// same seed gives the same run.
///
/// ```
/// # use rotor_core as rotor;
/// use std::time::Duration;
///
/// use rotor::{Machine, Response, Scope, Infallible};
/// use rotor_sim::{Failure, Sim};
///
/// /// Counts the minutes in its context.
/// struct Minutes;
///
/// impl Machine for Minutes {
///     type Context = u32;
///     type Seed = Infallible;
///     fn timeout(self, scope: &mut Scope<'_, u32>) -> Response<Self, Infallible> {
///         **scope += 1;
///         Response::ok(self).deadline(scope.now() + Duration::from_secs(60))
///     }
/// }
///
/// # fn main() -> Result<(), Failure> {
/// let mut sim = Sim::new(1);
/// let clock = sim.host("clock", |boot| {
///     let mut creator = boot.new_loop()?;
///     creator.add_machine_with(|scope| {
///         Response::ok(Minutes).deadline(scope.now() + Duration::from_secs(60))
///     })?;
///     Ok(creator.instantiate(0))
/// })?;
/// sim.run_for(Duration::from_secs(3600 + 1))?;
/// assert_eq!(sim.with(clock, |instance| *instance.context()), Some(60));
/// # Ok(())
/// # }
/// ```
pub struct Sim {
    pub(crate) world: Shared,
    pub(crate) hosts: Vec<ScheduledHost>,
    pub(crate) seed: u64,
    pub(crate) properties: Vec<(String, PropertyCheck)>,
    pub(crate) steps_max: u64,
    pub(crate) stop_at: Option<u64>,
    pub(crate) busy_turns_max: u32,
    /// Whether faults that happen by themselves are on.
    pub(crate) has_chaos: bool,
    pub(crate) is_chaos_scheduled: bool,
    /// The hosts that have a turn in this round.
    pub(crate) round: Vec<u32>,
    /// What [`play`](Sim::play) has begun, and on which host.
    pub(crate) scripts: Vec<(u32, TranscriptHandle)>,
}

impl Sim {
    /// Creates a simulation without hosts, in which no faults happen.
    pub fn new(seed: u64) -> Sim {
        Sim {
            world: Rc::new(RefCell::new(World::new(seed))),
            hosts: Vec::new(),
            seed,
            properties: Vec::new(),
            steps_max: 10_000_000,
            stop_at: None,
            busy_turns_max: 1_000,
            has_chaos: false,
            is_chaos_scheduled: false,
            round: Vec::new(),
            scripts: Vec::new(),
        }
    }

    /// Creates a simulation with the [`Faults::swarm`] and the [`Network::swarm`] of its seed.
    pub fn swarm(seed: u64) -> Sim {
        let mut sim = Sim::new(seed);
        sim.set_network(Network::swarm(seed));
        sim.set_faults(Faults::swarm(seed));
        sim
    }

    /// Sets the faults that can happen from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.has_chaos = faults.has_chaos();
        self.world.borrow_mut().faults = faults;
        // One chain of events is enough: each event looks up the rates of that moment.
        if self.has_chaos && !self.is_chaos_scheduled {
            self.schedule_chaos();
        }
    }

    /// Returns the faults that can happen now.
    pub fn faults(&self) -> Faults {
        self.world.borrow().faults.clone()
    }

    /// Returns how often a fault has happened so far. A scenario whose faults never happen tests
    /// nothing.
    pub fn fault_count(&self, fault: Fault) -> u64 {
        self.world.borrow().strikes.of(fault)
    }

    /// Returns how often each fault has happened so far, and how often while clients were busy.
    pub fn strikes(&self) -> Strikes {
        self.world.borrow().strikes.clone()
    }

    /// Sets how the network behaves from now on.
    ///
    /// Existing connections keep their [window](Network::window) and whether a short read
    /// [drains](Network::draining) them. TCP/IP stacks keep the [MTU](Network::mtu) with which they
    /// started; the network loses packets that are longer than its new one.
    pub fn set_network(&mut self, network: Network) {
        self.world.borrow_mut().network = network;
    }

    /// Adds a host and starts it.
    ///
    /// `start` makes the loop of the host, now and whenever the host starts again after a crash. No
    /// faults happen while it runs.
    ///
    /// # Errors
    ///
    /// A failure of [`HOST_WORKS`](property::HOST_WORKS) with the error of `start` in its message.
    pub fn host<M, F>(&mut self, name: &str, mut start: F) -> Result<Host<M>, Failure>
    where
        M: Machine + 'static,
        M::Context: 'static,
        F: FnMut(&Boot) -> Result<LoopInstance<M, SimBackend>, BoxError> + 'static,
    {
        let index = self.world.borrow_mut().add_host(name);
        self.hosts.push(ScheduledHost {
            instance: None,
            start: Box::new(move |boot| Ok(Box::new(start(boot)?) as Box<dyn AnyLoop>)),
            starts: 0,
            next_turn: None,
            exit: None,
            is_protected: false,
            turns: 0,
            counts_before: (0, 0),
            idle: Idle::default(),
        });
        self.start(index)?;
        Ok(Host::new(index))
    }

    /// Starts a host, for the first time or again. No faults happen meanwhile.
    pub(crate) fn start(&mut self, index: u32) -> Result<(), Failure> {
        let host = &mut self.hosts[index as usize];
        let boot = Boot::new(&self.world, index, host.starts);
        host.starts += 1;
        // An error while a host starts fails the run, so a fault must not be able to cause one.
        let faults = {
            let mut world = self.world.borrow_mut();
            let state = world.host(index);
            state.is_up = true;
            (state.ledger.created, state.ledger.injected_panics) = (0, 0);
            world.record(index, TraceEvent::Started);
            std::mem::replace(&mut world.faults, Faults::none())
        };
        let started = (host.start)(&boot);
        self.world.borrow_mut().faults = faults;
        // Segments that waited for a host without power arrive now.
        self.world.borrow_mut().resume_stalled();
        match started {
            Ok(instance) => {
                // As when a process calls `run`: only a loop that sleeps can be woken.
                host.next_turn = Some(Time::ZERO);
                host.instance = Some(instance);
                host.exit = None;
                host.idle = Idle::default();
                host.counts_before = (0, 0);
                Ok(())
            }
            Err(error) => {
                Err(self.failure(property::HOST_WORKS, format!("it could not start: {error}")))
            }
        }
    }

    /// Calls `f` with the loop of a host, between turns: to look at its context, to add machines,
    /// to post to it. Returns `None` while the host is down.
    pub fn with<M, R>(
        &mut self,
        host: Host<M>,
        f: impl FnOnce(&mut LoopInstance<M, SimBackend>) -> R,
    ) -> Option<R>
    where
        M: Machine + 'static,
        M::Context: 'static,
    {
        let running = &mut self.hosts[host.index as usize];
        let instance = running.instance.as_mut()?;
        let value = f(instance.as_any().downcast_mut::<LoopInstance<M, SimBackend>>()?);
        // Changes from outside wake nothing: like any embedder of a loop, ask for its next deadline
        // again.
        let now = self.world.borrow().now;
        if running.next_turn.is_none_or(|wanted| wanted > now) {
            running.next_turn = instance.next_deadline();
        }
        Some(value)
    }

    /// Calls `f` with each machine of a host and returns the results; empty while the host is down.
    pub fn machines<M, R>(&mut self, host: Host<M>, mut f: impl FnMut(Token, &M) -> R) -> Vec<R>
    where
        M: Machine + 'static,
        M::Context: 'static,
    {
        let all = |instance: &mut LoopInstance<M, SimBackend>| {
            instance.machines().iter().map(|(token, machine)| f(token, machine)).collect()
        };
        self.with(host, all).unwrap_or_default()
    }

    /// Returns the statistics of a host's loop, or `None` while the host is down.
    pub fn stats<M>(&self, host: Host<M>) -> Option<Stats> {
        self.hosts[host.index as usize].instance.as_ref().map(|instance| instance.stats())
    }

    /// Returns why the loop of a host has ended, if it has. The host is still up, and its sockets are
    /// open: [`crash`](Sim::crash) ends its process, as a program does after `run`.
    pub fn exit<M>(&self, host: Host<M>) -> Option<Exit> {
        self.hosts[host.index as usize].exit.clone()
    }

    /// Returns how many simulated sockets of a host are open.
    pub fn open_sockets<M>(&self, host: Host<M>) -> usize {
        self.world.borrow().hosts[host.index as usize].sockets
    }

    /// Returns the address of a host.
    pub fn address<M>(&self, host: Host<M>) -> IpAddr {
        self.world.borrow().hosts[host.index as usize].address
    }

    /// Adds a property: `f` is called after each turn of a loop, and an error of it is a failure of
    /// the property called `name`.
    pub fn always(&mut self, name: &str, f: impl FnMut(&mut Sim) -> Result<(), String> + 'static) {
        self.properties.push((name.to_string(), Box::new(f)));
    }

    /// Sets limits for the work of a host: it is a failure
    /// ([`WORK_IS_BOUNDED`](property::WORK_IS_BOUNDED)) if the host does more in one turn, or one
    /// of its [`Watched`](crate::Watched) machines does more in one call.
    pub fn bound_work<M>(&mut self, host: Host<M>, bounds: WorkBounds) {
        let counted = self.stats(host).map_or((0, 0), |stats| (stats.timeouts, stats.wakeups));
        self.hosts[host.index as usize].counts_before = counted;
        self.world.borrow_mut().host(host.index).account.bounds = Some(bounds);
    }

    /// Returns the most work, of each kind, that a host has done in one turn since its work was
    /// [bounded](Sim::bound_work). Bounds that no turn comes near prove nothing.
    pub fn most_of_turns<M>(&self, host: Host<M>) -> Work {
        self.world.borrow().hosts[host.index as usize].account.most_of_turns
    }

    /// Returns the most work that a [`Watched`](crate::Watched) machine of a host has done in one
    /// call, counted as for [`most_of_turns`](Sim::most_of_turns).
    pub fn most_of_calls<M>(&self, host: Host<M>) -> Work {
        self.world.borrow().hosts[host.index as usize].account.most_of_calls
    }

    /// Limits how often a waiting connection of a host may be passed over. It is a failure
    /// ([`WAITING_IS_BOUNDED`](property::WAITING_IS_BOUNDED)) if the listeners of a host accept
    /// more than `accepts` connections while the same connection waits at another listener of that
    /// host: if there are too few slots, the connection that has waited longest should get the next
    /// one.
    ///
    /// A connection counts as waiting from when the loop has heard of it. Before that, if the edge
    /// is [late](crate::Fault::LateEdge), the host cannot know that the connection has come.
    ///
    /// This does not suit listeners with limits or pauses of their own, whose connections wait for
    /// another reason.
    pub fn bound_waiting<M>(&mut self, host: Host<M>, accepts: u64) {
        self.world.borrow_mut().host(host.index).passed_over_max = Some(accepts);
    }

    /// Returns the largest number of connections that were accepted while another one waited, since
    /// that was [bounded](Sim::bound_waiting).
    pub fn most_passed_over<M>(&self, host: Host<M>) -> u64 {
        self.world.borrow().hosts[host.index as usize].passed_over_most
    }

    /// Declares that scans of a host may expire machines
    /// ([`Verdict::Expire`](rotor_core::Verdict::Expire)). Their time-outs do not count as failures
    /// of [`NO_DEADLINE_EARLY`](property::NO_DEADLINE_EARLY).
    pub fn allow_expire<M>(&mut self, host: Host<M>) {
        self.world.borrow_mut().host(host.index).ledger.may_expire = true;
    }

    /// Declares that handlers of a host may panic: such a panic is no failure of
    /// [`NO_PANIC`](property::NO_PANIC).
    pub fn allow_panics<M>(&mut self, host: Host<M>) {
        self.world.borrow_mut().host(host.index).ledger.may_panic = true;
    }

    /// Sets the largest number of steps of this run: turns of loops and events of the network.
    /// Default 10,000,000. A run that takes more steps fails and reports what was still running.
    pub fn set_steps_max(&mut self, steps: u64) {
        self.steps_max = steps;
    }

    /// Sets how many turns a loop may take without progress while the virtual time stands still, at
    /// least 1. Default 1,000.
    pub fn set_busy_turns_max(&mut self, turns: u32) {
        self.busy_turns_max = turns.max(1);
    }

    /// Stops the run after this step, with a [`Failure`] of the property
    /// [`STOPPED`](property::STOPPED). To look into a failure, stop one step before it.
    pub fn until(&mut self, step: u64) {
        self.stop_at = Some(step);
    }

    /// Keeps the whole trace instead of its last 60 records. A failure prints it, and
    /// [`trace`](Sim::trace) returns it.
    pub fn keep_trace(&mut self) {
        self.world.borrow_mut().trace.keep_all();
    }

    /// Returns the trace, one record per line: all of it after [`keep_trace`](Sim::keep_trace),
    /// otherwise the last 60 records.
    pub fn trace(&self) -> String {
        let world = self.world.borrow();
        world.trace.text(|host| world.hosts[host as usize].name.clone())
    }

    /// Writes a line into the trace.
    pub fn note(&mut self, text: impl Into<String>) {
        let mut world = self.world.borrow_mut();
        let number = world.trace.add_note(text.into());
        world.record(u32::MAX, TraceEvent::Note(number));
    }

    /// Returns a hash of everything that has happened. It is equal in two runs that were the same.
    pub fn hash(&self) -> u64 {
        self.world.borrow().trace.hash()
    }

    /// Returns a random number that the seed determines, for scenarios that should differ from run
    /// to run.
    pub fn random_u64(&mut self) -> u64 {
        self.world.borrow_mut().random.u64(..)
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Time {
        self.world.borrow().now
    }

    /// Returns the number of steps so far: turns of loops and events of the network.
    pub fn step(&self) -> u64 {
        self.world.borrow().step
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Describes the present state, one host per line.
    pub fn running(&mut self) -> String {
        let mut text = String::new();
        for (index, running) in self.hosts.iter_mut().enumerate() {
            let world = self.world.borrow();
            let state = &world.hosts[index];
            text.push_str(&format!("  {} ({}): ", state.name, state.address));
            match (&mut running.instance, &running.exit) {
                (None, _) => text.push_str("down"),
                (_, Some(exit)) => text.push_str(&format!("ended, {exit:?}")),
                (Some(instance), None) => {
                    let (sockets, ready) = (state.sockets, state.ready.len());
                    // `census` calls users' code, which may need the world.
                    drop(world);
                    let census: BTreeMap<String, usize> = instance
                        .census()
                        .into_iter()
                        .map(|(name, count)| (short_type_name(name), count))
                        .collect();
                    text.push_str(&format!(
                        "{} machines {census:?}, {sockets} sockets, {ready} edges, wants a turn {}",
                        instance.machines(),
                        running
                            .next_turn
                            .map_or("when woken".into(), |time| format!("at {time:?}"))
                    ));
                }
            }
            text.push('\n');
        }
        let world = self.world.borrow();
        text.push_str(&format!(
            "  network: {} connections, {} jobs, {} partitions",
            world.links.len(),
            world.jobs.len(),
            world.partitions.len()
        ));
        for (index, transcript) in &self.scripts {
            if let Some(Err(why)) = transcript.read().outcome {
                let name = &world.hosts[*index as usize].name;
                text.push_str(&format!("\n  a script of {name} ended early: {why}"));
            }
        }
        text
    }

    pub(crate) fn failure(&mut self, property: &str, message: String) -> Failure {
        Failure {
            property: property.to_string(),
            message,
            seed: self.seed,
            step: self.step(),
            time: self.now(),
            running: self.running(),
            trace: self.trace(),
        }
    }

    pub(crate) fn schedule_chaos(&mut self) {
        self.is_chaos_scheduled = true;
        let mut world = self.world.borrow_mut();
        // 100 ms on average: the rates of faults that happen by themselves refer to this period.
        let at = world.now + world.random_duration(Duration::from_millis(200));
        world.schedule(at, SimEvent::Chaos);
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sim(seed {}, {} hosts, step {}, {:?})",
            self.seed,
            self.hosts.len(),
            self.step(),
            self.now()
        )
    }
}

/// Returns the name of a type without the paths of its modules.
fn short_type_name(name: &str) -> String {
    let mut text = String::new();
    for part in name.split_inclusive("::") {
        text.push_str(part);
        if part.ends_with("::") {
            let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
            text.truncate(text.trim_end_matches(is_path).len());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_lose_their_module_paths() {
        assert_eq!(
            short_type_name("a::b::Stream<c::Line, d::e::Tcp<(u8, f::G)>>"),
            "Stream<Line, Tcp<(u8, G)>>"
        );
        assert_eq!(short_type_name("Plain"), "Plain");
    }
}
