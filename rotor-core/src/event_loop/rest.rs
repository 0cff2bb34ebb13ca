//! The rest of a loop: everything but the environment and the context, in one value that could be
//! handed to another thread while a handler blocks. What is due waits in queues in here, never in
//! variables of a turn; so a turn that a panic cut short is simply gone on with.

use std::any::type_name;
use std::collections::{BTreeSet, TryReserveError, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::broadcast::Posts;
use super::due::{Drain, DueWork, Every};
use super::handle::Exit;
use super::machines::Machines;
use super::pace::Pace;
use super::room_maker::RoomMaker;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::response::Deadline;
use crate::scope::AnyEnvironment;
use crate::slab::{Gathered, Lifted, Slab};
use crate::stats::Counters;
use crate::sync::mpsc;
use crate::timers::Timers;
use crate::wake_queue::{PartWake, WakeQueue};
use crate::{
    Config, EventSet, FailureCause, Machine, MachineFailure, OnPanic, Panicked, Time, Token,
};

/// What a turn borrows from the loop's other owners.
pub(super) struct Lent<'a, C> {
    pub(super) context: &'a mut C,
    pub(super) environment: &'a AnyEnvironment,
}

/// The machine whose handler runs.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub(super) token: Token,
    pub(super) machine: &'static str,
}

pub(super) struct Rest<M: Machine, B> {
    pub(super) backend: B,
    pub(super) config: Config,
    pub(super) slab: Slab<M>,
    pub(super) timers: Timers,
    pub(super) queue: Arc<WakeQueue>,
    pub(super) counters: Counters,
    pub(super) due: DueWork<M>,
    pub(super) posts: Arc<Posts<M>>,
    pub(super) every: Vec<Every<M>>,
    pub(super) drain: Option<Drain>,
    pub(super) room: RoomMaker,
    pub(super) running: Option<Running>,
    pub(super) ended: Option<Exit>,
    pub(super) pace: Pace,
    /// This turn, as a number from 1 to 255, round and round.
    pub(super) turn: u8,
    /// What the clock said when the turn last read it, as long as nothing that takes time has been
    /// called since.
    pub(super) looked: Option<Time>,
    /// Calls since one of them looked at the clock, up to `CALLS_PER_LOOK`.
    pub(super) unlooked: u8,
}

impl<M: Machine, B> Rest<M, B> {
    /// What a loop begins with. Fails where there is no room for its slots.
    pub(super) fn new(
        backend: B,
        config: Config,
        queue: Arc<WakeQueue>,
        parts: mpsc::Receiver<PartWake>,
        counters: Counters,
        now: Time,
    ) -> Result<Rest<M, B>, TryReserveError> {
        let mut timers = Timers::new(now);
        timers.reserve(config.machines_max)?;
        let due = DueWork {
            ready: Vec::new(),
            ready_done: 0,
            again: VecDeque::new(),
            again_left: 0,
            parked: VecDeque::new(),
            parked_left: 0,
            woken: Vec::new(),
            woken_done: 0,
            wakeups_left: 0,
            parts: BTreeSet::new(),
            parts_arriving: parts,
            timers: VecDeque::new(),
            timeouts_left: 0,
            overdue: VecDeque::new(),
            overdue_left: None,
            verdicts: VecDeque::new(),
            scan_left: config.scan_budget,
        };
        Ok(Rest {
            backend,
            slab: Slab::new(config.machines_max, queue.clone())?,
            timers,
            counters,
            due,
            posts: Arc::new(Posts::new(config.posts_max, queue.clone())),
            every: Vec::new(),
            drain: None,
            room: RoomMaker::default(),
            running: None,
            ended: None,
            pace: Pace::new(),
            turn: 0,
            looked: None,
            unlooked: 0,
            config,
            queue,
        })
    }

    /// All machines, as they are shown to closures between handlers.
    pub(super) fn machines(&mut self) -> Machines<'_, M> {
        Machines {
            slab: &self.slab,
            verdicts: &mut self.due.verdicts,
            budget: &mut self.due.scan_left,
        }
    }
}

/// Keeping the books: a machine that goes on, one that is gone.
impl<M: Machine, B> Rest<M, B> {
    #[inline(always)]
    pub(super) fn keep(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        machine: M,
        deadline: Deadline,
    ) {
        let gathered = self.slab.put(token, machine);
        if is_owed(gathered, &self.queue, self.turn, token) {
            self.enqueue(token);
        }
        self.set_deadline(environment, token, deadline);
    }

    /// As `keep`, for a machine that was called in place.
    #[inline(always)]
    pub(super) fn put_back(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        lifted: Lifted<M>,
        deadline: Deadline,
    ) {
        let gathered = self.slab.put_back(token, lifted);
        if is_owed(gathered, &self.queue, self.turn, token) {
            self.enqueue(token);
        }
        self.set_deadline(environment, token, deadline);
    }

    #[inline(always)]
    pub(super) fn set_deadline(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        deadline: Deadline,
    ) {
        match deadline {
            Deadline::Keep => {}
            Deadline::Never => self.timers.set(token.index(), Time::NEVER),
            Deadline::At(time) => {
                self.timers.set(token.index(), time);
                if time <= environment.now() {
                    self.queue_overdue(token);
                }
            }
        }
    }

    /// Queues a machine whose deadline had passed when it was set, once: it is called behind the
    /// others.
    pub(super) fn queue_overdue(&mut self, token: Token) {
        if let Some(gathered) = self.slab.gathered(token)
            && !gathered.has(Gathered::OVERDUE)
        {
            gathered.add(Gathered::OVERDUE);
            self.due.overdue.push_back(token);
        }
    }

    /// Takes a machine's mark of being queued as overdue; answers whether it still has a deadline
    /// that has passed.
    pub(super) fn take_overdue(&mut self, environment: &AnyEnvironment, token: Token) -> bool {
        self.slab.gathered(token).is_some_and(|gathered| gathered.take(Gathered::OVERDUE))
            && self.is_overdue(environment, token)
    }

    /// Whether a machine has a deadline that has passed.
    pub(super) fn is_overdue(&self, environment: &AnyEnvironment, token: Token) -> bool {
        self.timers.deadline(token.index()).is_some_and(|deadline| deadline <= environment.now())
    }

    pub(super) fn release(&mut self, environment: &AnyEnvironment, token: Token) {
        self.timers.clear(token.index());
        if !self.due.parts.is_empty() {
            self.parts_of(token);
        }
        self.slab.release(token);
        environment.waiters.remove(token);
        if self.drain.is_some() {
            environment.last.remove(token);
        }
        self.note_free_slots(environment);
    }

    /// Notes calls to be made in the next turn.
    pub(super) fn owe(&mut self, token: Token, calls: u8) {
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.add(calls);
            self.enqueue(token);
        }
    }

    /// Queues a machine that something was gathered for, once.
    pub(super) fn enqueue(&mut self, token: Token) {
        if let Some(gathered) = self.slab.gathered(token)
            && !gathered.has(Gathered::QUEUED | Gathered::SPAWNING)
        {
            gathered.add(Gathered::QUEUED);
            self.due.again.push_back(token);
        }
    }

    /// The machine is to be called again next turn, with these events and those that come until
    /// then.
    pub(super) fn again(&mut self, token: Token, events: EventSet) {
        self.pace.look_next();
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.events |= events;
            gathered.add(Gathered::READY);
            self.enqueue(token);
        }
    }

    /// Drops the spawns whose machines are gone.
    pub(super) fn drop_parked(&mut self) {
        self.due.parked.drain(..).for_each(|(_, seed)| drop_guarded(seed, "a seed"));
    }

    /// Ends a machine that is not with a handler, by dropping it.
    pub(super) fn drop_machine(&mut self, environment: &AnyEnvironment, token: Token) {
        let Some(machine) = self.slab.take(token, 0) else { return };
        let name = guard(|| machine.type_name()).unwrap_or_else(|_| type_name::<M>());
        let running = Running { token, machine: name };
        let dropped = guard(|| drop(machine));
        self.release(environment, token);
        match dropped {
            Ok(()) => self.counters.stats.ended += 1,
            Err(panicked) => {
                self.counters.stats.panicked += 1;
                self.report(running, &FailureCause::Panic(&panicked));
            }
        }
    }

    /// Ends the machine whose handler has panicked: it was with the handler, so it is gone.
    pub(super) fn running_panicked(&mut self, environment: &AnyEnvironment, panicked: &Panicked) {
        let Some(running) = self.running.take() else {
            log_guarded!(error, "what a loop was to drop between its handlers {panicked}");
            return;
        };
        self.counters.stats.panicked += 1;
        self.release(environment, running.token);
        self.report(running, &FailureCause::Panic(panicked));
        if self.config.on_panic == OnPanic::StopLoop {
            self.ended = Some(Exit::Panicked { token: running.token });
        }
    }

    /// Logs, once, that a machine ended badly, and shows it to the observer.
    pub(super) fn report(&mut self, running: Running, cause: &FailureCause<'_>) {
        let Running { token, machine } = running;
        let failure = MachineFailure { token, machine, cause: cause.borrow() };
        if let Err(panicked) = guard(|| log::error!("{failure}")) {
            log_guarded!(
                error,
                "machine {token} ({machine}) ended with an error that {panicked}, when it was printed"
            );
        }
        let Some(observer) = &self.config.observer else { return };
        if let Err(panicked) = guard(|| (observer.0)(&failure)) {
            log_guarded!(error, "the observer of failures {panicked}");
        }
    }

    pub(super) fn note_free_slots(&self, environment: &AnyEnvironment) {
        environment.free_slots.store(self.slab.vacant(), Relaxed);
        environment.machines.store(self.slab.len(), Relaxed);
    }
}

impl FailureCause<'_> {
    fn borrow(&self) -> FailureCause<'_> {
        match self {
            FailureCause::Error(error) => FailureCause::Error(error),
            FailureCause::Panic(panicked) => FailureCause::Panic(panicked),
        }
    }
}

/// Whether a machine that is back in its slot is owed a call; notes whether it woke itself in this
/// turn.
#[inline(always)]
fn is_owed(gathered: &mut Gathered, queue: &WakeQueue, turn: u8, token: Token) -> bool {
    if queue.is_woken(token.index()) {
        gathered.self_woken = turn;
    }
    gathered.is_owed()
}

/// Drops one by one what is not ours, so that one that panics costs none of the others.
impl<M: Machine, B> Drop for Rest<M, B> {
    fn drop(&mut self) {
        self.queue.close();
        self.posts.close();
        for index in 0..self.slab.high_water() {
            if let Some((token, _)) = self.slab.at(index)
                && let Some(machine) = self.slab.take(token, 0)
            {
                drop_guarded(machine, "a machine of a loop that is gone");
            }
        }
        self.drop_parked();
        self.every.drain(..).for_each(|every| drop_guarded(every, "a repeated closure"));
    }
}
