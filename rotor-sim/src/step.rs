//! Stepping: what happens next, and when the time advances.
//!
//! ```text
//!   ┌▶ what is due in the network ─▶ a turn for each loop that can run, in any order ─┐
//!   └────────── move the time to the next thing ◀── none can run ◀───────────────────┘
//! ```

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rotor_core::{Exit, TICK, Time};

use crate::failure::Failure;
use crate::faults::Fault;
use crate::host::Host;
use crate::property;
use crate::sim::Sim;
use crate::trace::TraceEvent;
use crate::work::Work;
use crate::world::SimEvent;

/// How many turns of a loop pass between two checks of its invariants.
const TURNS_BETWEEN_CHECKS: u64 = 64;

/// A failure to answer mentions the idle time at the end if it was at least this long.
const IDLE_TIME_REPORTED_MIN: Duration = Duration::from_secs(1);

impl Sim {
    /// Runs the simulation for `time`.
    ///
    /// # Errors
    ///
    /// The failure of the first property that does not hold.
    pub fn run_for(&mut self, time: Duration) -> Result<(), Failure> {
        let end = self.now() + time;
        while self.advance(end)? {}
        let mut world = self.world.borrow_mut();
        // Also if nothing was left to happen.
        world.now = world.now.max(end);
        Ok(())
    }

    /// Runs until `condition` holds, for at most `within`. The condition is checked after each
    /// round of turns.
    ///
    /// # Errors
    ///
    /// The failure of the first property that does not hold; [`ANSWERED`](property::ANSWERED) if
    /// the condition does not hold in time.
    pub fn run_until(
        &mut self,
        within: Duration,
        mut condition: impl FnMut(&mut Sim) -> bool,
    ) -> Result<(), Failure> {
        let end = self.now() + within;
        while !condition(self) {
            if !self.advance(end)? {
                return Err(self.timeout_failure(within, end));
            }
        }
        Ok(())
    }

    /// The message says whether the system was busy to the end or stood still, since that is the
    /// first thing to find out.
    fn timeout_failure(&mut self, within: Duration, end: Time) -> Failure {
        let idle = end - self.now();
        let mut message = format!("what was waited for did not come within {within:?}");
        if idle >= IDLE_TIME_REPORTED_MIN {
            message += &format!(", in the last {idle:.3?} of which nothing happens");
        }
        self.failure(property::ANSWERED, message)
    }

    /// Ends all faults ([`heal`](Sim::heal)) and runs until `condition` holds, for at most
    /// `within`: whatever has gone wrong before, everything must recover now.
    ///
    /// # Errors
    ///
    /// As for [`run_until`](Sim::run_until).
    pub fn eventually(
        &mut self,
        within: Duration,
        condition: impl FnMut(&mut Sim) -> bool,
    ) -> Result<(), Failure> {
        self.heal();
        self.run_until(within, condition)
    }

    /// Drains the loop of a host, and checks that no machine and no socket is left. Meanwhile the
    /// host is [protected](Sim::protect).
    ///
    /// # Errors
    ///
    /// The failure of the first property that does not hold, such as
    /// [`EMPTY_AFTER_DRAIN`](property::EMPTY_AFTER_DRAIN).
    pub fn drain<M>(&mut self, host: Host<M>, time: Duration) -> Result<Exit, Failure> {
        let index = host.index as usize;
        let was_protected = std::mem::replace(&mut self.hosts[index].is_protected, true);
        let was_up = |sim: &mut Sim| sim.hosts[index].instance.is_some();
        self.run_until(Duration::from_secs(10), was_up)?;
        if let Some(instance) = &self.hosts[index].instance {
            instance.handle().drain(time);
        }
        let more = Duration::from_secs(120);
        self.run_until(time.saturating_add(more), |sim| sim.hosts[index].exit.is_some())?;
        self.hosts[index].is_protected = was_protected;
        let machines =
            self.hosts[index].instance.as_mut().map_or(0, |instance| instance.machines());
        let sockets = self.open_sockets(host);
        let watched = self.world.borrow().hosts[index].ledger.alive;
        if machines + sockets + watched > 0 {
            let in_context = if machines + watched == 0 { " (in the context?)" } else { "" };
            let message = format!(
                "{machines} machines in the slab, {watched} watched ones, {sockets} sockets{in_context}"
            );
            return Err(self.failure(property::EMPTY_AFTER_DRAIN, message));
        }
        let exit = self.hosts[index].exit.clone();
        exit.ok_or_else(|| self.failure(property::HOST_WORKS, "the drain did not end".into()))
    }

    /// [Drains](Sim::drain) the loop of a host, and checks that the drain discards nothing that had
    /// reached the host when it began. Until the time is over, each connection that waits is
    /// accepted, and each byte that had arrived in a connection from a client is read. What the
    /// host does with them is for the scenario to check, at its clients.
    ///
    /// A connection that a fault has cut may lose its bytes. After an injected panic of a handler,
    /// or a source that could not be registered, any connection may.
    ///
    /// # Errors
    ///
    /// As for [`drain`](Sim::drain), and
    /// [`NOTHING_ARRIVED_IS_LOST`](property::NOTHING_ARRIVED_IS_LOST).
    pub fn drain_losing_nothing<M>(
        &mut self,
        host: Host<M>,
        time: Duration,
    ) -> Result<Exit, Failure> {
        let until = self.now() + time;
        self.world.borrow_mut().begin_drain_check(host.index, until);
        let drained = self.drain(host, time);
        self.world.borrow_mut().host(host.index).draining = None;
        drained
    }

    /// Returns how many bytes the network has delivered from host `from` to host `to`, in the
    /// connections that `from` has made and not closed. The bytes were read there, or wait to be
    /// accepted or read.
    pub fn delivered<A, B>(&self, from: Host<A>, to: Host<B>) -> u64 {
        self.world.borrow().delivered(from.index, to.index)
    }

    /// Checks the invariants of all loops.
    ///
    /// # Errors
    ///
    /// The failure of [`BOOKS_AGREE`](property::BOOKS_AGREE), for the first contradiction.
    pub fn check(&mut self) -> Result<(), Failure> {
        (0..self.hosts.len()).try_for_each(|index| self.check_invariants_of(index))
    }

    /// Lets everything happen that is possible now, or advances the time. Returns false if nothing
    /// is left to happen before `end`.
    fn advance(&mut self, end: Time) -> Result<bool, Failure> {
        let mut moved = false;
        while let Some(due) = self.pop_due_event() {
            moved = true;
            self.count_step()?;
            let left = self.world.borrow_mut().handle_event(due);
            if let Some(due) = left {
                self.handle_event(due)?;
            }
            self.check_violation()?;
        }
        self.find_runnable();
        if !self.round.is_empty() {
            let mut round = std::mem::take(&mut self.round);
            // Computers that share a network run in no particular order.
            self.world.borrow_mut().random.shuffle(&mut round);
            let turned = round.iter().try_for_each(|index| self.turn(*index));
            // Put back before an error is returned: the next round uses its memory.
            self.round = round;
            turned?;
            return Ok(true);
        }
        // A condition is checked before the time advances.
        if moved {
            return Ok(true);
        }
        self.check_sleeping_loops()?;
        let Some(next) = self.next_time().filter(|next| *next <= end) else { return Ok(false) };
        let mut world = self.world.borrow_mut();
        world.now = world.now.max(next);
        Ok(true)
    }

    fn pop_due_event(&mut self) -> Option<SimEvent> {
        self.world.borrow_mut().pop_due_event()
    }

    fn count_step(&mut self) -> Result<(), Failure> {
        let step = {
            let mut world = self.world.borrow_mut();
            world.step += 1;
            world.step
        };
        if step > self.steps_max {
            let message = format!("{} steps were not enough", self.steps_max);
            return Err(self.failure(property::STEPS_BOUNDED, message));
        }
        if self.stop_at.is_some_and(|stop_at| step > stop_at) {
            return Err(self.failure(property::STOPPED, format!("before step {step}")));
        }
        Ok(())
    }

    /// Fills the round with the hosts that can have a turn now.
    fn find_runnable(&mut self) {
        self.round.clear();
        let world = self.world.borrow();
        for (index, running) in self.hosts.iter().enumerate() {
            let state = &world.hosts[index];
            let may_run = running.instance.is_some() && running.exit.is_none();
            // A loop whose handlers took their time has its next turn only when the others have
            // reached that time.
            if may_run && state.paused_until.max(state.ahead) <= world.now {
                let has_cause = !state.ready.is_empty()
                    || running.next_turn.is_some_and(|wanted| wanted <= world.now)
                    || state.waker.woken.load(SeqCst)
                    || state.stack_due().is_some_and(|due| due <= world.now);
                if has_cause {
                    self.round.push(index as u32);
                }
            }
        }
    }

    /// Returns when something will happen next, if no loop can run now.
    fn next_time(&self) -> Option<Time> {
        let world = self.world.borrow();
        let mut next = world.next_event_time();
        for (running, state) in self.hosts.iter().zip(&world.hosts) {
            if running.instance.is_none() || running.exit.is_some() {
                continue;
            }
            let is_woken = !state.ready.is_empty() || state.waker.woken.load(SeqCst);
            let stack = state.stack_due().map(|due| due.max(world.now));
            let wanted = if is_woken { Some(world.now) } else { earlier(running.next_turn, stack) };
            let at = wanted.map(|wanted| wanted.max(state.paused_until).max(state.ahead));
            next = earlier(next, at);
        }
        next
    }

    /// Gives a loop a turn.
    fn turn(&mut self, index: u32) -> Result<(), Failure> {
        self.count_step()?;
        let max_wait = {
            let mut world = self.world.borrow_mut();
            world.record(index, TraceEvent::Turn);
            world.host(index).clock_readings = 0;
            if world.roll_fault_at(Fault::SlowTurn, index) {
                world.host(index).turn_cost = world.random_duration(Duration::from_millis(30));
            }
            // No wait blocks here. A loop must work the same whatever limit its embedder sets.
            match world.random.u32(0..3) {
                0 => Some(Duration::ZERO),
                1 => Some(Duration::from_millis(1)),
                _ => None,
            }
        };
        let running = &mut self.hosts[index as usize];
        let Some(instance) = running.instance.as_mut() else { return Ok(()) };
        // Work that was done from outside belongs to no turn.
        self.world.borrow_mut().host(index).account.turn = Work::default();
        let turned = instance.turn(max_wait);
        running.next_turn = instance.next_deadline();
        running.turns += 1;
        let turns = running.turns;
        match turned {
            Ok(None) => {}
            Ok(exit) => {
                running.exit = exit;
                self.world.borrow_mut().record(index, TraceEvent::Exited);
            }
            Err(error) => {
                return Err(
                    self.failure(property::HOST_WORKS, format!("it could not wait: {error}"))
                );
            }
        }
        self.check_violation()?;
        self.check_work(index as usize)?;
        self.check_machines(index as usize)?;
        self.check_progress(index as usize)?;
        if turns.is_multiple_of(TURNS_BETWEEN_CHECKS) {
            self.check_invariants_of(index as usize)?;
        }
        self.check_user_properties()
    }

    fn check_violation(&mut self) -> Result<(), Failure> {
        let Some(violation) = self.world.borrow_mut().violation.take() else { return Ok(()) };
        Err(self.failure(&violation.property, violation.message))
    }

    /// Checks whether the turn that has ended did more than it may.
    fn check_work(&mut self, index: usize) -> Result<(), Failure> {
        if self.world.borrow().hosts[index].account.bounds.is_none() {
            return Ok(());
        }
        let running = &mut self.hosts[index];
        let stats = running.instance.as_ref().map(|instance| instance.stats()).unwrap_or_default();
        let before = std::mem::replace(&mut running.counts_before, (stats.timeouts, stats.wakeups));
        let (timeouts, wakeups) = (stats.timeouts - before.0, stats.wakeups - before.1);
        let mut world = self.world.borrow_mut();
        let state = world.host(index as u32);
        let Some(first_excess) = state.account.end_turn(timeouts, wakeups) else { return Ok(()) };
        let message = format!("in one turn of {}: {first_excess}", state.name);
        drop(world);
        Err(self.failure(property::WORK_IS_BOUNDED, message))
    }

    fn check_machines(&mut self, index: usize) -> Result<(), Failure> {
        let instance = &mut self.hosts[index].instance;
        let (in_slab, stats) = instance
            .as_mut()
            .map_or_else(Default::default, |instance| (instance.machines(), instance.stats()));
        let (made, watched, watched_made, has_panicked) = {
            let ledger = &self.world.borrow().hosts[index].ledger;
            let has_panicked = stats.panicked > ledger.injected_panics && !ledger.may_panic;
            (stats.spawned, ledger.alive, ledger.created, has_panicked)
        };
        if has_panicked {
            let name = self.world.borrow().hosts[index].name.clone();
            let message = format!("a handler of {name} has panicked; the trace has its message");
            return Err(self.failure(property::NO_PANIC, message));
        }
        // If other machines of the slab are not watched, a missing one does not show.
        let all_are_watched = watched_made == made;
        if watched > in_slab || all_are_watched && watched < in_slab {
            let message =
                format!("{in_slab} machines are in the slab, and {watched} watched ones are alive");
            return Err(self.failure(property::NO_MACHINE_LOST, message));
        }
        Ok(())
    }

    /// Counts the turns that a loop takes without progress while the time stands still.
    fn check_progress(&mut self, index: usize) -> Result<(), Failure> {
        let (now, progress) = {
            let world = self.world.borrow();
            (world.now, world.progress)
        };
        let running = &mut self.hosts[index];
        if running.idle.since != Some(now) || running.idle.progress != progress {
            running.idle.since = Some(now);
            running.idle.progress = progress;
            running.idle.turns = 0;
            return Ok(());
        }
        running.idle.turns += 1;
        if running.idle.turns < self.busy_turns_max {
            return Ok(());
        }
        // Machines that come and go are progress, too. They are counted only here, since nearly
        // every turn has other progress.
        let stats = running.instance.as_ref().map(|instance| instance.stats()).unwrap_or_default();
        let machines = (stats.spawned, stats.ended + stats.failed + stats.panicked);
        if machines != running.idle.machines {
            running.idle.machines = machines;
            running.idle.turns = 0;
            return Ok(());
        }
        let name = self.world.borrow().hosts[index].name.clone();
        let message =
            format!("{name} took {} turns at {now:?} and got nowhere", self.busy_turns_max);
        Err(self.failure(property::NO_BUSY_LOOP, message))
    }

    fn check_invariants_of(&mut self, index: usize) -> Result<(), Failure> {
        let checked = self.hosts[index]
            .instance
            .as_ref()
            .map_or(Ok(()), |instance| instance.check_invariants());
        checked.map_err(|message| {
            let name = self.world.borrow().hosts[index].name.clone();
            self.failure(property::BOOKS_AGREE, format!("{name}: {message}"))
        })
    }

    fn check_user_properties(&mut self) -> Result<(), Failure> {
        if self.properties.is_empty() {
            return Ok(());
        }
        // Each property gets the simulation, which holds the properties.
        let mut properties = std::mem::take(&mut self.properties);
        let mut failed = None;
        for (name, property) in &mut properties {
            if let Err(message) = property(self) {
                failed = Some((name.clone(), message));
                break;
            }
        }
        self.properties.append(&mut properties);
        failed.map_or(Ok(()), |(name, message)| Err(self.failure(&name, message)))
    }

    /// Called if no loop can run: each loop with something to do must have said so, or have been
    /// woken.
    fn check_sleeping_loops(&mut self) -> Result<(), Failure> {
        for index in 0..self.hosts.len() {
            let running = &self.hosts[index];
            let (Some(instance), None) = (&running.instance, &running.exit) else { continue };
            let wants = instance.next_deadline();
            let (now, is_held, earliest) = {
                let world = self.world.borrow();
                let state = &world.hosts[index];
                (
                    world.now,
                    state.paused_until.max(state.ahead) > world.now,
                    state.ledger.earliest_deadline(),
                )
            };
            // The host cannot do anything now.
            if is_held {
                continue;
            }
            if wants.is_some_and(|wants| wants <= now) {
                let name = self.world.borrow().hosts[index].name.clone();
                let message = format!("{name} has something to do, sleeps, and was not woken");
                return Err(self.failure(property::NO_WAKEUP_LOST, message));
            }
            if let Some(deadline) = earliest
                // Timers fire by ticks, so a loop may sleep until the end of the last tick.
                && wants.unwrap_or(Time::NEVER) > deadline + TICK
            {
                let message = format!(
                    "a machine has the deadline {deadline:?}, its loop sleeps until {wants:?}"
                );
                return Err(self.failure(property::NO_DEADLINE_LATE, message));
            }
        }
        Ok(())
    }
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    [a, b].into_iter().flatten().min()
}
