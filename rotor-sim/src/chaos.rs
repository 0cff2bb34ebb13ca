//! What happens by itself, and what a test makes happen: partitions, crashes, pauses, jumps of the
//! clock; and healing.

use std::time::Duration;

use rotor_core::backend::Begun;

use crate::failure::Failure;
use crate::faults::{BY_ITSELF, Fault, Faults};
use crate::host::Host;
use crate::sim::Sim;
use crate::trace::What;
use crate::world::{Due, VirtualJob};

/// How a host goes down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// Its process ends: the system closes its sockets, and refuses new connections.
    Process,
    /// Its power fails: nobody hears of it, and nothing reaches it until it starts again.
    Power,
}

impl Sim {
    /// Cuts two hosts off from each other until they are [joined](Sim::join) or the network
    /// [heals](Sim::heal); chaos does not end it. What is under way between connected sockets waits;
    /// datagrams are lost.
    pub fn partition<A, B>(&mut self, a: Host<A>, b: Host<B>) {
        self.world.borrow_mut().partition(a.index, b.index, true);
    }

    /// Ends the partition between two hosts.
    pub fn join<A, B>(&mut self, a: Host<A>, b: Host<B>) {
        self.world.borrow_mut().heal_pair(a.index, b.index, true);
    }

    /// Takes a host down. Its machines and sockets are gone; [`restart`](Sim::restart) or
    /// [`heal`](Sim::heal) starts it again. Chaos does not, also where it had taken the host down
    /// before.
    pub fn crash<M>(&mut self, host: Host<M>, how: Crash) {
        if self.hosts[host.index as usize].instance.is_some() {
            return self.take_down(host.index, how);
        }
        let mut world = self.world.borrow_mut();
        let state = world.host(host.index);
        state.is_up = how == Crash::Process;
        // What chaos has planned is for the crash before.
        state.incarnation += 1;
    }

    /// Starts a host that is down; nothing, if it is not.
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

    /// Has a host stand still for some time: its loop takes no turn.
    pub fn pause<M>(&mut self, host: Host<M>, time: Duration) {
        self.stand_still(host.index, time);
    }

    /// Moves the clock forward without anything happening in between, as after a night of a
    /// suspended machine.
    pub fn jump(&mut self, time: Duration) {
        self.world.borrow_mut().now += time;
    }

    /// Has chaos leave a host alone: it neither crashes nor stands still by itself.
    pub fn protect<M>(&mut self, host: Host<M>) {
        self.hosts[host.index as usize].is_protected = true;
    }

    /// Ends all faults for good: no more of them happen, partitions and pauses end, hosts that are
    /// down start.
    ///
    /// What has happened already is not undone: a connection that was reset stays so, an attempt
    /// that nobody answers times out in its own time.
    pub fn heal(&mut self) {
        self.has_chaos = false;
        {
            let mut world = self.world.borrow_mut();
            world.record(u32::MAX, What::Healed);
            // First: no edge that healing reports may be lost or late.
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
                // Not here: it runs a user's code, whose error is a failure of the step.
                world.schedule(now, Due::Start(index, incarnation));
            }
        }
    }

    /// Does what the world left to the simulation, because it runs a user's code.
    pub(crate) fn happen(&mut self, due: Due) -> Result<(), Failure> {
        match due {
            Due::Start(index, incarnation) => {
                // The test may have started it meanwhile, or taken it down once more.
                let is_same = self.world.borrow().hosts[index as usize].incarnation == incarnation;
                if is_same && self.hosts[index as usize].instance.is_none() {
                    return self.start(index);
                }
            }
            Due::Job(key) => {
                let taken = self.world.borrow_mut().jobs.remove(key);
                // A crash takes the jobs of its host with it.
                if let Some((host, job)) = taken {
                    self.run_job(host, job);
                }
            }
            Due::Chaos => {
                self.is_chaos_due = false;
                // It may have healed meanwhile; then this was the last.
                if self.has_chaos {
                    self.chaos();
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
            world.record(host, What::JobRan(number));
        }
        // A panic has told the future; there is nobody else to be told.
        let VirtualJob { job, queued_for } = job;
        let run = || job.run(&Begun::after(queued_for));
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    }

    fn chaos(&mut self) {
        let count = self.hosts.len() as u32;
        if count == 0 {
            return;
        }
        for fault in BY_ITSELF {
            let (happens, host, other) = {
                let mut world = self.world.borrow_mut();
                (world.may_strike(fault), world.random.u32(0..count), world.random.u32(0..count))
            };
            if happens {
                self.strike(fault, host, other);
            }
        }
    }

    fn strike(&mut self, fault: Fault, host: u32, other: u32) {
        let random_duration = |sim: &Sim, seconds| {
            sim.world.borrow_mut().random_duration(Duration::from_secs(seconds))
        };
        // Chosen all the same: the dice of a run do not depend on who is protected.
        let is_protected = self.hosts[host as usize].is_protected;
        match fault {
            Fault::Partition if host != other => {
                let time = random_duration(self, 5);
                let mut world = self.world.borrow_mut();
                let until = world.now + time;
                // Two that are cut off already notice nothing.
                if !world.is_partitioned(host, other) {
                    world.struck(fault);
                }
                world.partition(host, other, false);
                world.schedule(until, Due::Heal(host, other));
            }
            Fault::Crash if !is_protected && self.hosts[host as usize].instance.is_some() => {
                let how = if random_duration(self, 1).subsec_nanos() % 2 == 0 {
                    Crash::Process
                } else {
                    Crash::Power
                };
                self.world.borrow_mut().struck(fault);
                self.take_down(host, how);
                let time = random_duration(self, 5);
                let mut world = self.world.borrow_mut();
                let at = world.now + time;
                let incarnation = world.host(host).incarnation;
                world.schedule(at, Due::Start(host, incarnation));
            }
            Fault::ClockJump => {
                let time = random_duration(self, 60);
                // The time is everybody's: it belongs to no host.
                self.note_fault(u32::MAX, fault);
                self.jump(time);
            }
            Fault::WallStep => {
                let mut world = self.world.borrow_mut();
                let hour = 3_600_000_000_000;
                let step = world.random.i64(-hour..=hour);
                world.struck(fault);
                world.record(host, What::Fault(fault));
                world.host(host).wall_step += step;
            }
            Fault::SlowHost if !is_protected => {
                let time = random_duration(self, 2);
                self.note_fault(host, fault);
                self.stand_still(host, time);
            }
            Fault::SpuriousEdge => self.world.borrow_mut().disturb(host),
            Fault::Reset => self.world.borrow_mut().cut_any(),
            _ => {}
        }
    }

    fn note_fault(&mut self, host: u32, fault: Fault) {
        let mut world = self.world.borrow_mut();
        world.struck(fault);
        world.record(host, What::Fault(fault));
    }

    fn stand_still(&mut self, host: u32, time: Duration) {
        let mut world = self.world.borrow_mut();
        let until = world.now + time;
        let state = world.host(host);
        state.paused_until = state.paused_until.max(until);
    }

    fn take_down(&mut self, host: u32, how: Crash) {
        let Some(instance) = self.hosts[host as usize].instance.take() else { return };
        {
            let mut world = self.world.borrow_mut();
            world.record(host, What::Crashed);
            // Before the sockets are dropped: it says whether their peers hear of that.
            world.host(host).is_silent = how == Crash::Power;
        }
        // Machines and sockets are dropped here, and their code reaches the world: it is not
        // borrowed.
        drop(instance);
        // Jobs capture what a user put into them: they are dropped after the borrow, too.
        let jobs = self.world.borrow_mut().take_jobs(host);
        drop(jobs);
        let mut world = self.world.borrow_mut();
        let state = world.host(host);
        state.is_silent = false;
        // The system outlives its process, and refuses who connects.
        state.is_up = how == Crash::Process;
        state.incarnation += 1;
        // Tokens of the loop that is gone name other machines in the next one.
        state.ready.clear();
        // Its stack is gone with its process: what is on its way to it meets nobody.
        (state.port, state.stack_wants) = (None, None);
        state.paused_until = rotor_core::Time::ZERO;
        self.hosts[host as usize].wanted = None;
        self.hosts[host as usize].exit = None;
    }
}
