//! `Sim`: hosts, a network between them, and a time that moves only when nothing can run.

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
use crate::host::{AnyLoop, Boot, Host, Idle, Running};
use crate::network::Network;
use crate::property;
use crate::strikes::Strikes;
use crate::trace::What;
use crate::work::{Work, WorkBounds};
use crate::world::{Due, Shared, World};

/// A property of a user's own.
pub(crate) type Always = Box<dyn FnMut(&mut Sim) -> Result<(), String>>;

/// One simulation: made from a seed, run by the test, the same each time.
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
    pub(crate) hosts: Vec<Running>,
    pub(crate) seed: u64,
    pub(crate) properties: Vec<(String, Always)>,
    pub(crate) steps_max: u64,
    pub(crate) stop_at: Option<u64>,
    pub(crate) busy_turns_max: u32,
    /// Faults that happen by themselves are scheduled.
    pub(crate) has_chaos: bool,
    pub(crate) is_chaos_due: bool,
    /// Hosts that are to have a turn in this round.
    pub(crate) round: Vec<u32>,
}

impl Sim {
    /// A simulation without hosts in which nothing goes wrong.
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
            is_chaos_due: false,
            round: Vec::new(),
        }
    }

    /// A simulation with the [`Faults::swarm`] and the [`Network::swarm`] of its seed.
    pub fn swarm(seed: u64) -> Sim {
        let mut sim = Sim::new(seed);
        sim.set_network(Network::swarm(seed));
        sim.set_faults(Faults::swarm(seed));
        sim
    }

    /// What goes wrong from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.has_chaos = faults.has_chaos();
        self.world.borrow_mut().faults = faults;
        // One chain of events is enough: each asks what is on by then.
        if self.has_chaos && !self.is_chaos_due {
            self.schedule_chaos();
        }
    }

    /// What goes wrong now.
    pub fn faults(&self) -> Faults {
        self.world.borrow().faults.clone()
    }

    /// How often a fault has happened so far; a scenario whose faults never happen tests nothing.
    pub fn fault_count(&self, fault: Fault) -> u64 {
        self.world.borrow().strikes.of(fault)
    }

    /// How often each fault has happened so far, and how often while clients were busy.
    pub fn strikes(&self) -> Strikes {
        self.world.borrow().strikes.clone()
    }

    /// How the network behaves from now on. Connections that stand keep their
    /// [window](Network::window), and how their short reads [drain](Network::draining) them; stacks keep
    /// the [MTU](Network::mtu) with which they started, and what is longer than that of the network now is
    /// lost.
    pub fn set_network(&mut self, network: Network) {
        self.world.borrow_mut().network = network;
    }

    /// Adds a host and starts it: `start` makes its loop, now and whenever the host starts again
    /// after a crash. Nothing goes wrong while it does.
    ///
    /// # Errors
    ///
    /// What `start` answered.
    pub fn host<M, F>(&mut self, name: &str, mut start: F) -> Result<Host<M>, Failure>
    where
        M: Machine + 'static,
        M::Context: 'static,
        F: FnMut(&Boot) -> Result<LoopInstance<M, SimBackend>, BoxError> + 'static,
    {
        let index = self.world.borrow_mut().add_host(name);
        self.hosts.push(Running {
            instance: None,
            start: Box::new(move |boot| Ok(Box::new(start(boot)?) as Box<dyn AnyLoop>)),
            starts: 0,
            wanted: None,
            exit: None,
            is_protected: false,
            turns: 0,
            counted: (0, 0),
            idle: Idle::default(),
        });
        self.start(index)?;
        Ok(Host::new(index))
    }

    /// Starts a host, or starts it again. Nothing goes wrong while it does.
    pub(crate) fn start(&mut self, index: u32) -> Result<(), Failure> {
        let host = &mut self.hosts[index as usize];
        let boot = Boot::new(&self.world, index, host.starts);
        host.starts += 1;
        // What fails while a host starts fails the run, so no fault may have a part in it.
        let faults = {
            let mut world = self.world.borrow_mut();
            let state = world.host(index);
            state.is_up = true;
            state.ledger.made = 0;
            world.record(index, What::Started);
            std::mem::replace(&mut world.faults, Faults::none())
        };
        let started = (host.start)(&boot);
        self.world.borrow_mut().faults = faults;
        // What was on its way to a host without power goes on.
        self.world.borrow_mut().resume_stalled();
        match started {
            Ok(instance) => {
                // As a process calls `run`: only a loop that has gone to sleep can be woken.
                host.wanted = Some(Time::ZERO);
                host.instance = Some(instance);
                host.exit = None;
                host.idle = Idle::default();
                host.counted = (0, 0);
                Ok(())
            }
            Err(error) => {
                Err(self.failure(property::HOST_WORKS, format!("it could not start: {error}")))
            }
        }
    }

    /// The loop of a host, between turns: to look at its context, to give it machines, to post to
    /// it. `None` while the host is down.
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
        // What was done from outside needs no waker: whoever embeds a loop asks it again.
        let now = self.world.borrow().now;
        if running.wanted.is_none_or(|wanted| wanted > now) {
            running.wanted = instance.next_deadline();
        }
        Some(value)
    }

    /// What `f` says of each machine of a host; empty while the host is down.
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

    /// The statistics of a host's loop; `None` while the host is down.
    pub fn stats<M>(&self, host: Host<M>) -> Option<Stats> {
        self.hosts[host.index as usize].instance.as_ref().map(|instance| instance.stats())
    }

    /// Why the loop of a host has ended, if it has.
    pub fn exit<M>(&self, host: Host<M>) -> Option<Exit> {
        self.hosts[host.index as usize].exit.clone()
    }

    /// How many simulated sockets of a host are open.
    pub fn open_sockets<M>(&self, host: Host<M>) -> usize {
        self.world.borrow().hosts[host.index as usize].sockets
    }

    /// The address of a host.
    pub fn address<M>(&self, host: Host<M>) -> IpAddr {
        self.world.borrow().hosts[host.index as usize].address
    }

    /// Checks `f` after each turn of a loop; its error is a failure of the property called `name`.
    pub fn always(&mut self, name: &str, f: impl FnMut(&mut Sim) -> Result<(), String> + 'static) {
        self.properties.push((name.to_string(), Box::new(f)));
    }

    /// Has it be a failure ([`WORK_IS_BOUNDED`](property::WORK_IS_BOUNDED)) when a host does more
    /// than this in a turn, or one of its [`Watched`](crate::Watched) machines in a call.
    pub fn bound_work<M>(&mut self, host: Host<M>, bounds: WorkBounds) {
        let counted = self.stats(host).map_or((0, 0), |stats| (stats.timeouts, stats.wakeups));
        self.hosts[host.index as usize].counted = counted;
        self.world.borrow_mut().host(host.index).account.bounds = Some(bounds);
    }

    /// The most that a host has done in a turn so far, of each kind, since its work was
    /// [bounded](Sim::bound_work): bounds that nothing comes near prove nothing.
    pub fn most_of_turns<M>(&self, host: Host<M>) -> Work {
        self.world.borrow().hosts[host.index as usize].account.most_of_turns
    }

    /// The same of the calls of its [`Watched`](crate::Watched) machines.
    pub fn most_of_calls<M>(&self, host: Host<M>) -> Work {
        self.world.borrow().hosts[host.index as usize].account.most_of_calls
    }

    /// Has it be a failure ([`WAITING_IS_BOUNDED`](property::WAITING_IS_BOUNDED)) when more than
    /// `accepts` connections are accepted by listeners of a host while the same connection waits at
    /// another one of its listeners: where there are not slots for all, whoever has waited longest
    /// is to have the next. A connection waits from when the loop has heard of it: before that,
    /// with an edge that is [late](crate::Fault::LateEdge), nobody there can know that it came.
    ///
    /// Not for listeners that have limits or pauses of their own, which have their connections wait
    /// for another reason.
    pub fn bound_waiting<M>(&mut self, host: Host<M>, accepts: u64) {
        self.world.borrow_mut().host(host.index).passed_over_max = Some(accepts);
    }

    /// How many connections were accepted at most while another one waited, since that was
    /// [bounded](Sim::bound_waiting).
    pub fn most_passed_over<M>(&self, host: Host<M>) -> u64 {
        self.world.borrow().hosts[host.index as usize].passed_over_most
    }

    /// Lets scans of a host expire machines ([`Verdict::Expire`](rotor_core::Verdict::Expire)):
    /// their time-outs are not held against [`NO_DEADLINE_EARLY`](property::NO_DEADLINE_EARLY).
    pub fn allow_expire<M>(&mut self, host: Host<M>) {
        self.world.borrow_mut().host(host.index).ledger.may_expire = true;
    }

    /// The most steps of this run: turns of loops and events of the network. Default 10,000,000. A
    /// run that takes more fails, and says what was still running.
    pub fn set_steps_max(&mut self, steps: u64) {
        self.steps_max = steps;
    }

    /// The most turns that a loop may take at one time without getting anywhere. Default 1,000.
    pub fn set_busy_turns_max(&mut self, turns: u32) {
        self.busy_turns_max = turns.max(1);
    }

    /// Stops the run at this step, with a [`Failure`] of the property
    /// [`STOPPED`](property::STOPPED): one step before the step of a failure is the place to look
    /// from.
    pub fn until(&mut self, step: u64) {
        self.stop_at = Some(step);
    }

    /// Keeps the whole trace, to be printed with a failure or read by [`trace`](Sim::trace),
    /// instead of its last lines.
    pub fn keep_trace(&mut self) {
        self.world.borrow_mut().trace.keep_all();
    }

    /// The trace, one record in a line: all of it after [`keep_trace`](Sim::keep_trace), else the
    /// last lines.
    pub fn trace(&self) -> String {
        let world = self.world.borrow();
        world.trace.text(|host| world.hosts[host as usize].name.clone())
    }

    /// Writes a line into the trace.
    pub fn note(&mut self, text: impl Into<String>) {
        let mut world = self.world.borrow_mut();
        let number = world.trace.note(text.into());
        world.record(u32::MAX, What::Note(number));
    }

    /// A number that stands for everything that has happened: equal in two runs that were the same.
    pub fn hash(&self) -> u64 {
        self.world.borrow().trace.hash()
    }

    /// A random number that the seed decides: for what a scenario does differently each time.
    pub fn random_u64(&mut self) -> u64 {
        self.world.borrow_mut().random.u64(..)
    }

    /// The time of the simulation.
    pub fn now(&self) -> Time {
        self.world.borrow().now
    }

    /// How many steps there have been: turns of loops and events of the network.
    pub fn step(&self) -> u64 {
        self.world.borrow().step
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What is there at the moment, one host in a line.
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
                    // The machines are asked for their names: a user's code.
                    drop(world);
                    let census: BTreeMap<String, usize> = instance
                        .census()
                        .into_iter()
                        .map(|(name, count)| (short(name), count))
                        .collect();
                    text.push_str(&format!(
                        "{} machines {census:?}, {sockets} sockets, {ready} edges, wants a turn {}",
                        instance.machines(),
                        running.wanted.map_or("when woken".into(), |time| format!("at {time:?}"))
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
        self.is_chaos_due = true;
        let mut world = self.world.borrow_mut();
        // 100 ms on average: what the rates of faults that happen by themselves refer to.
        let at = world.now + world.random_duration(Duration::from_millis(200));
        world.schedule(at, Due::Chaos);
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

/// The name of a type without the paths of its modules.
fn short(name: &str) -> String {
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
    fn names_lose_their_paths() {
        assert_eq!(
            short("a::b::Stream<c::Line, d::e::Tcp<(u8, f::G)>>"),
            "Stream<Line, Tcp<(u8, G)>>"
        );
        assert_eq!(short("Plain"), "Plain");
    }
}
