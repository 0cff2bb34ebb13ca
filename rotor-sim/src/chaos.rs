//! Faults that happen by themselves, faults that a test causes (partitions, crashes, pauses, jumps
//! of the clock), and how they end.

use std::time::Duration;

use rotor_core::backend::JobStart;

use crate::failure::Failure;
use crate::faults::{Fault, Faults, SPONTANEOUS};
use crate::host::Host;
use crate::sim::Sim;
use crate::trace::TraceEvent;
use crate::world::{SimEvent, VirtualJob};

/// How a host goes down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// Its process ends: the operating system closes its sockets and refuses new connections.
    Process,
    /// Its power fails: its peers are not told, and nothing reaches it until it starts again.
    Power,
}

impl Sim {
    /// Cuts two hosts off from each other until they are [joined](Sim::join) or the network
    /// [heals](Sim::heal); it does not end by itself. Segments of connections wait meanwhile;
    /// datagrams and packets are lost.
    pub fn partition<A, B>(&mut self, a: Host<A>, b: Host<B>) {
        self.world.borrow_mut().partition(a.index, b.index, true);
    }

    /// Ends the partition between two hosts.
    pub fn join<A, B>(&mut self, a: Host<A>, b: Host<B>) {
        self.world.borrow_mut().heal_pair(a.index, b.index, true);
    }

    /// Takes a host down. Its machines and sockets are gone. [`restart`](Sim::restart) or
    /// [`heal`](Sim::heal) starts it again; it does not start by itself, even if a fault had taken
    /// it down before.
    pub fn crash<M>(&mut self, host: Host<M>, how: Crash) {
        if self.hosts[host.index as usize].instance.is_some() {
            return self.take_down(host.index, how);
        }
        let mut world = self.world.borrow_mut();
        let state = world.host(host.index);
        state.is_up = how == Crash::Process;
        // A start that is already planned belongs to the crash before.
        state.incarnation += 1;
    }

    /// Starts a host if it is down.
    ///
    /// # Errors
    ///
    /// As for [`Sim::host`].
    pub fn restart<M>(&mut self, host: Host<M>) -> Result<(), Failure> {
        if self.hosts[host.index as usize].instance.is_some() {
            Ok(())
        } else {
            self.start(host.index)
        }
    }

    /// Pauses a host for some time: its loop has no turn.
    pub fn pause<M>(&mut self, host: Host<M>, time: Duration) {
        self.pause_host(host.index, time);
    }

    /// Moves the clock forward while nothing happens, as after the process was stopped.
    pub fn jump(&mut self, time: Duration) {
        self.world.borrow_mut().now += time;
    }

    /// Protects a host from faults that happen by themselves: it crashes or pauses only if the test
    /// causes it.
    pub fn protect<M>(&mut self, host: Host<M>) {
        self.hosts[host.index as usize].is_protected = true;
    }

    /// Ends all faults for good: no more of them happen, partitions and pauses end, and hosts that
    /// are down start.
    ///
    /// Past faults are not undone: a connection that was reset stays reset, and a connection
    /// attempt without a response still has to time out.
    pub fn heal(&mut self) {
        self.has_chaos = false;
        {
            let mut world = self.world.borrow_mut();
            world.record(u32::MAX, TraceEvent::Healed);
            // First, so that edges that healing causes are neither lost nor late.
            world.faults = Faults::none();
            world.partitions.clear();
            for state in &mut world.hosts {
                state.paused_until = rotor_core::Time::ZERO;
            }
            world.widen_windows();
            world.resume_stalled();
        }
        for index in 0..self.hosts.len() as u32 {
            if self.hosts[index as usize].instance.is_none() {
                let mut world = self.world.borrow_mut();
                let now = world.now;
                let incarnation = world.host(index).incarnation;
                // Not started here: it runs a user's code, whose error has to be a failure of the
                // step.
                world.schedule(now, SimEvent::Start(index, incarnation));
            }
        }
    }

    /// Handles an event that the world leaves to the simulation, because it runs a user's code.
    pub(crate) fn handle_event(&mut self, event: SimEvent) -> Result<(), Failure> {
        match event {
            SimEvent::Start(index, incarnation) => {
                // The test may have started the host meanwhile, or taken it down once more.
                let is_same = self.world.borrow().hosts[index as usize].incarnation == incarnation;
                if is_same && self.hosts[index as usize].instance.is_none() {
                    return self.start(index);
                }
            }
            SimEvent::Job(key) => {
                let taken = self.world.borrow_mut().jobs.remove(key);
                // A crash removes the jobs of its host.
                if let Some((host, job)) = taken {
                    self.run_job(host, job);
                }
            }
            SimEvent::Chaos => {
                self.is_chaos_scheduled = false;
                // If the network has healed meanwhile, this event is the last one.
                if self.has_chaos {
                    self.inject_chaos();
                    self.schedule_chaos();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn run_job(&mut self, host: u32, job: VirtualJob) {
        {
            let mut world = self.world.borrow_mut();
            world.progress += 1;
            let number = world.step as u32;
            world.record(host, TraceEvent::JobRan(number));
        }
        // The job's future already reports the panic.
        let VirtualJob { job, queued_for } = job;
        let run = || job.run(&JobStart::after(queued_for));
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    }

    fn inject_chaos(&mut self) {
        let count = self.hosts.len() as u32;
        if count == 0 {
            return;
        }
        for fault in SPONTANEOUS {
            let (happens, host, other) = {
                let mut world = self.world.borrow_mut();
                (
                    world.roll_uncounted(fault),
                    world.random.u32(0..count),
                    world.random.u32(0..count),
                )
            };
            if happens {
                self.inject_fault(fault, host, other);
            }
        }
    }

    fn inject_fault(&mut self, fault: Fault, host: u32, other: u32) {
        let random_duration = |sim: &Sim, seconds| {
            sim.world.borrow_mut().random_duration(Duration::from_secs(seconds))
        };
        // Checked after the choice, so that the random numbers of a run do not depend on which
        // hosts are protected.
        let is_protected = self.hosts[host as usize].is_protected;
        match fault {
            Fault::Partition if host != other => {
                let time = random_duration(self, 5);
                let mut world = self.world.borrow_mut();
                let until = world.now + time;
                // Hosts that are already cut off from each other do not notice.
                if !world.is_partitioned(host, other) {
                    world.count_fault(fault);
                }
                world.partition(host, other, false);
                world.schedule(until, SimEvent::Heal(host, other));
            }
            Fault::Crash if !is_protected && self.hosts[host as usize].instance.is_some() => {
                let how = if random_duration(self, 1).subsec_nanos() % 2 == 0 {
                    Crash::Process
                } else {
                    Crash::Power
                };
                self.world.borrow_mut().count_fault(fault);
                self.take_down(host, how);
                let time = random_duration(self, 5);
                let mut world = self.world.borrow_mut();
                let at = world.now + time;
                let incarnation = world.host(host).incarnation;
                world.schedule(at, SimEvent::Start(host, incarnation));
            }
            Fault::ClockJump => {
                let time = random_duration(self, 60);
                // The virtual time is shared by all hosts.
                self.record_fault(u32::MAX, fault);
                self.jump(time);
            }
            Fault::WallStep => {
                let mut world = self.world.borrow_mut();
                let hour = 3_600_000_000_000;
                let step = world.random.i64(-hour..=hour);
                world.count_fault(fault);
                world.record(host, TraceEvent::Fault(fault));
                world.host(host).wall_step += step;
            }
            Fault::SlowHost if !is_protected => {
                let time = random_duration(self, 2);
                self.record_fault(host, fault);
                self.pause_host(host, time);
            }
            Fault::SpuriousEdge => self.world.borrow_mut().send_spurious_edge(host),
            Fault::Reset => self.world.borrow_mut().reset_any_connection(),
            _ => {}
        }
    }

    fn record_fault(&mut self, host: u32, fault: Fault) {
        let mut world = self.world.borrow_mut();
        world.count_fault(fault);
        world.record(host, TraceEvent::Fault(fault));
    }

    fn pause_host(&mut self, host: u32, time: Duration) {
        let mut world = self.world.borrow_mut();
        let until = world.now + time;
        let state = world.host(host);
        state.paused_until = state.paused_until.max(until);
    }

    fn take_down(&mut self, host: u32, how: Crash) {
        let Some(instance) = self.hosts[host as usize].instance.take() else { return };
        {
            let mut world = self.world.borrow_mut();
            world.record(host, TraceEvent::Crashed);
            // Set before the sockets are dropped: it decides whether their peers hear of the crash.
            world.host(host).is_silent = how == Crash::Power;
        }
        // Dropping machines and sockets runs code that borrows the world, so the world is not
        // borrowed here.
        drop(instance);
        // Dropping jobs drops users' values, so the world is not borrowed here either.
        let jobs = self.world.borrow_mut().take_jobs(host);
        drop(jobs);
        let mut world = self.world.borrow_mut();
        let state = world.host(host);
        state.is_silent = false;
        // The operating system outlives the process and refuses new connections.
        state.is_up = how == Crash::Process;
        state.incarnation += 1;
        // In the next loop, the same tokens name other machines.
        state.ready.clear();
        // The stack ends with its process: packets on their way to it are lost.
        (state.port, state.stack_deadline) = (None, None);
        state.paused_until = rotor_core::Time::ZERO;
        self.hosts[host as usize].next_turn = None;
        self.hosts[host as usize].exit = None;
    }
}
