//! The rest of a loop: everything but the environment and the context, in one value that could be handed to another
//! thread while a handler blocks. What is due waits in queues in here, never in variables of a turn; so a turn that a
//! panic cut short is simply gone on with.

use std::any::type_name;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::{Arc, mpsc};

use super::broadcast::Posts;
use super::handle::Exit;
use super::machines::{Machines, Verdict};
use super::turn::{Drain, Every};
use crate::backend::BackendHandle;
use crate::environment::Environment;
use crate::guard::{drop_guarded, guard};
use crate::response::{Answer, Deadline};
use crate::scope::{AnyEnvironment, Woken};
use crate::slab::{Gathered, Slab, Taken};
use crate::stats::Counters;
use crate::timers::{Due, Timers};
use crate::wake_queue::{PartWake, WakeQueue};
use crate::{
    Config, EventSet, Failure, FailureCause, Machine, OnPanic, Panicked, Response, Scope, SpawnCause,
    SpawnError, Time, Token, Void,
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
    pub(super) running: Option<Running>,
    pub(super) ended: Option<Exit>,
    /// This turn, as a number from 1 to 255, round and round.
    pub(super) turn: u8,
}

/// What waits to be done, in the order in which a turn does it.
pub(super) struct DueWork<M: Machine> {
    /// What the backend reported; the first `ready_done` are done.
    pub(super) ready: Vec<(Token, EventSet)>,
    pub(super) ready_done: usize,
    /// Machines that something was gathered for; the first `again_left` are of earlier turns.
    pub(super) again: VecDeque<Token>,
    pub(super) again_left: usize,
    /// Spawns beyond the budget of their event; the first `parked_left` are of earlier turns.
    pub(super) parked: VecDeque<(Token, M::Seed)>,
    pub(super) parked_left: usize,
    /// Slots taken from the wake queue; the first `woken_done` are done.
    pub(super) woken: Vec<u32>,
    pub(super) woken_done: usize,
    pub(super) wakeups_left: u32,
    /// Parts that were woken, of machines that are still to hear of it.
    parts: BTreeSet<(Token, u32)>,
    parts_arriving: mpsc::Receiver<PartWake>,
    /// Deadlines that fired.
    pub(super) timers: VecDeque<Due>,
    /// Machines that answered with a deadline that had passed, each once; the first `overdue_left` are to be called in
    /// this turn, once it is known how many they are.
    pub(super) overdue: VecDeque<Token>,
    pub(super) overdue_left: Option<usize>,
    pub(super) verdicts: VecDeque<(Token, Verdict)>,
    /// How many slots scans may still look at in this turn.
    pub(super) scan_left: usize,
}

impl<M: Machine, B> Rest<M, B> {
    pub(super) fn new(
        backend: B,
        config: Config,
        queue: Arc<WakeQueue>,
        parts: mpsc::Receiver<PartWake>,
        counters: Counters,
        now: Time,
    ) -> Rest<M, B> {
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
            overdue: VecDeque::new(),
            overdue_left: None,
            verdicts: VecDeque::new(),
            scan_left: config.scan_budget,
        };
        Rest {
            backend,
            slab: Slab::new(config.machines_max, queue.clone()),
            timers: Timers::with_capacity(now, config.machines_max),
            counters,
            due,
            posts: Arc::new(Posts::new(config.posts_max, queue.clone())),
            every: Vec::new(),
            drain: None,
            running: None,
            ended: None,
            turn: 0,
            config,
            queue,
        }
    }
}

/// Calling machines. Each call takes the machine out of its slot, hands it to its handler and applies the answer.
impl<M: Machine, B> Rest<M, B> {
    /// What the answer to `spawn` waits for holds back every other call.
    const HELD: u8 = Gathered::SPAWNING;

    pub(super) fn ready(&mut self, lent: &mut Lent<'_, M::Context>, token: Token, events: EventSet) {
        // A machine that asked to be called again is called behind the others, once, with all that came meanwhile.
        match self.slab.take(token, Self::HELD | Gathered::READY) {
            Taken::Machine(machine) => {
                self.counters.stats.events += 1;
                self.call(lent, token, machine, events, Woken::default(), |m, scope| m.ready(events, scope));
            }
            Taken::Held(gathered) => {
                gathered.events |= events;
                gathered.add(Gathered::READY);
                self.enqueue(token);
            }
            Taken::Gone => self.counters.stats.stale += 1,
        }
    }

    pub(super) fn timeout(&mut self, lent: &mut Lent<'_, M::Context>, token: Token) {
        match self.slab.take(token, Self::HELD) {
            Taken::Machine(machine) => {
                self.timers.clear(token.index());
                self.counters.stats.timeouts += 1;
                self.call(lent, token, machine, EventSet::EMPTY, Woken::default(), |m, scope| {
                    m.timeout(scope)
                });
            }
            Taken::Held(_) => self.expire(lent.environment, token),
            Taken::Gone => self.counters.stats.stale += 1,
        }
    }

    /// Has `timeout` called as soon as that can be, as if the deadline were now.
    pub(super) fn expire(&mut self, environment: &AnyEnvironment, token: Token) {
        if self.queue.is_alive(token) {
            self.set_deadline(environment, token, Deadline::At(environment.now()));
        }
    }

    pub(super) fn draining(&mut self, lent: &mut Lent<'_, M::Context>, token: Token) {
        let until = lent.environment.draining().unwrap_or_else(|| lent.environment.now());
        match self.slab.take(token, Self::HELD) {
            Taken::Machine(machine) => {
                let none = Woken::default();
                self.call(lent, token, machine, EventSet::EMPTY, none, |m, scope| m.draining(until, scope));
            }
            Taken::Held(gathered) => {
                gathered.add(Gathered::DRAINING);
                self.enqueue(token);
            }
            Taken::Gone => {}
        }
    }

    /// Wakes the machine of a slot that came from the wake queue.
    pub(super) fn wake_slot(&mut self, lent: &mut Lent<'_, M::Context>, index: u32) {
        let whole = self.queue.take(index).whole;
        self.take_parts();
        if self.slab.collect(index) {
            self.note_free_slots(lent.environment);
            self.counters.stats.stale += 1;
            return;
        }
        let Some((token, _)) = self.slab.at(index) else { return };
        let calls = if whole { Gathered::WAKEUP | Gathered::WAKEUP_WHOLE } else { Gathered::WAKEUP };
        let turn = self.turn;
        if let Some(gathered) = self.slab.gathered(token)
            && (gathered.self_woken == turn || gathered.has(Gathered::WAKEUP))
        {
            // It woke itself in this turn: its wake-up is the next one's.
            gathered.add(calls);
            self.enqueue(token);
            return;
        }
        self.wakeup(lent, token, calls);
    }

    /// `calls` is `WAKEUP`, with `WAKEUP_WHOLE` if the machine itself was woken.
    ///
    /// A thread that wakes a part puts it into the channel first and the machine into the list after that. If the part was
    /// taken in between, the machine is in the list for nothing.
    pub(super) fn wakeup(&mut self, lent: &mut Lent<'_, M::Context>, token: Token, calls: u8) {
        if calls & Gathered::WAKEUP_WHOLE == 0 && !self.has_parts(token) {
            return;
        }
        match self.slab.take(token, Self::HELD) {
            Taken::Machine(machine) => {
                self.counters.stats.wakeups += 1;
                let parts = self.parts_of(token);
                let woken = Woken { whole: calls & Gathered::WAKEUP_WHOLE != 0, parts: &parts };
                self.call(lent, token, machine, EventSet::EMPTY, woken, |m, scope| m.wakeup(scope));
            }
            Taken::Held(gathered) => {
                gathered.add(calls);
                self.enqueue(token);
            }
            Taken::Gone => self.counters.stats.stale += 1,
        }
    }

    /// Makes the calls that were gathered for a machine. What its handlers add meanwhile is left for the next turn.
    pub(super) fn resume(&mut self, lent: &mut Lent<'_, M::Context>, token: Token) {
        let Some(gathered) = self.slab.gathered(token) else {
            self.counters.stats.stale += 1;
            return;
        };
        gathered.take(Gathered::QUEUED);
        if gathered.has(Gathered::SPAWNING) {
            // It is queued again once its spawn has been answered.
            return;
        }
        let owed = gathered.take_all();
        if owed.has(Gathered::END) {
            self.drop_machine(lent.environment, token);
            return;
        }
        if owed.has(Gathered::DRAINING) {
            self.draining(lent, token);
        }
        if owed.has(Gathered::READY) {
            self.ready(lent, token, owed.events);
        }
        if owed.has(Gathered::WAKEUP) {
            self.wakeup(lent, token, owed.only(Gathered::WAKEUP | Gathered::WAKEUP_WHOLE));
        }
    }

    /// Notes a call to be made in the next turn.
    pub(super) fn owe(&mut self, token: Token, call: u8) {
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.add(call);
            self.enqueue(token);
        }
    }

    /// Queues a machine that something was gathered for, once.
    fn enqueue(&mut self, token: Token) {
        if let Some(gathered) = self.slab.gathered(token)
            && !gathered.has(Gathered::QUEUED | Gathered::SPAWNING)
        {
            gathered.add(Gathered::QUEUED);
            self.due.again.push_back(token);
        }
    }

    #[inline]
    fn call(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        token: Token,
        machine: M,
        events: EventSet,
        woken: Woken<'_>,
        handler: impl FnOnce(M, &mut Scope<'_, M::Context>) -> Response<M, M::Seed>,
    ) {
        // The name is asked of the machine, which may panic: then it has the name of its type.
        self.running = Some(Running { token, machine: type_name::<M>() });
        let running = Running { token, machine: machine.type_name() };
        self.running = Some(running);
        let started = self.config.time_handlers.then(|| lent.environment.handle.now());
        let response = handler(machine, &mut Scope::new(lent.context, lent.environment, token, woken));
        if let Some(started) = started {
            let took = lent.environment.handle.now() - started;
            self.counters.handler_took(took, running.machine);
        }
        self.apply(lent, running, events, response);
        self.running = None;
    }

    /// Applies an answer: the machine goes back into its slot, or is gone.
    fn apply(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        running: Running,
        events: EventSet,
        response: Response<M, M::Seed>,
    ) {
        let token = running.token;
        let mut answer = response.into_parts();
        let mut spawns = 0;
        loop {
            let (machine, seed) = match answer {
                (Answer::Continue(machine), deadline) => {
                    return self.keep(lent.environment, token, machine, deadline);
                }
                (Answer::Again(machine), deadline) => {
                    self.keep(lent.environment, token, machine, deadline);
                    return self.again(token, events);
                }
                (Answer::Spawn(machine, seed), deadline) => {
                    self.set_deadline(lent.environment, token, deadline);
                    (machine, seed)
                }
                (Answer::Done, _) => {
                    self.counters.stats.ended += 1;
                    return self.release(lent.environment, token);
                }
                (Answer::Error(error), _) => {
                    self.counters.stats.failed += 1;
                    self.release(lent.environment, token);
                    self.report(running, &FailureCause::Error(&error));
                    return drop_guarded(error, "an error");
                }
            };
            if spawns == self.config.spawns_per_event {
                return self.park(lent.environment, token, machine, seed);
            }
            spawns += 1;
            answer = self.spawn_for(lent, running, machine, seed).into_parts();
        }
    }

    /// Makes a machine for another one and tells it.
    fn spawn_for(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        parent: Running,
        machine: M,
        seed: M::Seed,
    ) -> Response<M, M::Seed> {
        let made = self.create(lent, seed);
        self.running = Some(parent);
        let mut scope = Scope::new(lent.context, lent.environment, parent.token, Woken::default());
        match made {
            Ok(_) => machine.spawned(&mut scope),
            Err(error) => machine.spawn_error(error, &mut scope),
        }
    }

    /// Leaves a spawn for the next turn; until then nothing reaches the machine that wants it.
    fn park(&mut self, environment: &AnyEnvironment, token: Token, machine: M, seed: M::Seed) {
        self.keep(environment, token, machine, Deadline::Keep);
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.add(Gathered::SPAWNING);
        }
        self.due.parked.push_back((token, seed));
    }

    /// Drops the spawns whose machines are gone.
    pub(super) fn drop_parked(&mut self) {
        self.due.parked.drain(..).for_each(|(_, seed)| drop_guarded(seed, "a seed"));
    }

    /// Goes on with a spawn of an earlier turn.
    pub(super) fn unpark(&mut self, lent: &mut Lent<'_, M::Context>, token: Token, seed: M::Seed) {
        let Some(gathered) = self.slab.gathered(token) else { return };
        gathered.take(Gathered::SPAWNING);
        if gathered.has(Gathered::END) {
            return self.drop_machine(lent.environment, token);
        }
        if gathered.is_owed() {
            self.enqueue(token);
        }
        if let Taken::Machine(machine) = self.slab.take(token, Self::HELD) {
            let none = Woken::default();
            self.call(lent, token, machine, EventSet::EMPTY, none, |m, _| Response::spawn(m, seed));
        }
    }

    /// The machine is to be called again next turn, with these events and those that come until then.
    fn again(&mut self, token: Token, events: EventSet) {
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.events |= events;
            gathered.add(Gathered::READY);
            self.enqueue(token);
        }
    }

    fn keep(&mut self, environment: &AnyEnvironment, token: Token, machine: M, deadline: Deadline) {
        let gathered = self.slab.put(token, machine);
        if self.queue.is_woken(token.index()) {
            gathered.self_woken = self.turn;
        }
        if gathered.is_owed() {
            self.enqueue(token);
        }
        self.set_deadline(environment, token, deadline);
    }

    fn set_deadline(&mut self, environment: &AnyEnvironment, token: Token, deadline: Deadline) {
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

    /// Queues a machine whose deadline had passed when it was set, once: it is called behind the others.
    fn queue_overdue(&mut self, token: Token) {
        if let Some(gathered) = self.slab.gathered(token)
            && !gathered.has(Gathered::OVERDUE)
        {
            gathered.add(Gathered::OVERDUE);
            self.due.overdue.push_back(token);
        }
    }

    /// Takes a machine's mark of being queued as overdue; answers whether it still has a deadline that has passed.
    pub(super) fn take_overdue(&mut self, environment: &AnyEnvironment, token: Token) -> bool {
        self.slab.gathered(token).is_some_and(|gathered| gathered.take(Gathered::OVERDUE))
            && self.is_overdue(environment, token)
    }

    /// Whether a machine has a deadline that has passed.
    fn is_overdue(&self, environment: &AnyEnvironment, token: Token) -> bool {
        self.timers.deadline(token.index()).is_some_and(|deadline| deadline <= environment.now())
    }

    fn release(&mut self, environment: &AnyEnvironment, token: Token) {
        self.timers.clear(token.index());
        if !self.due.parts.is_empty() {
            self.parts_of(token);
        }
        self.slab.release(token);
        self.note_free_slots(environment);
    }

    /// Ends a machine that is not with a handler, by dropping it.
    pub(super) fn drop_machine(&mut self, environment: &AnyEnvironment, token: Token) {
        let Taken::Machine(machine) = self.slab.take(token, 0) else { return };
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
            log::error!("what a loop was to drop between its handlers {panicked}");
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
    fn report(&mut self, running: Running, cause: &FailureCause<'_>) {
        let Running { token, machine } = running;
        if let Err(panicked) = guard(|| log::error!("machine {token} ({machine}) ended: {cause}")) {
            log::error!(
                "machine {token} ({machine}) ended with an error that {panicked}, when it was printed"
            );
        }
        let Some(observer) = &self.config.observer else { return };
        let failure = Failure { token, machine, cause: cause.borrow() };
        if let Err(panicked) = guard(|| (observer.0)(&failure)) {
            log::error!("the observer of failures {panicked}");
        }
    }

    fn note_free_slots(&self, environment: &AnyEnvironment) {
        environment.free_slots.store(self.slab.vacant(), Relaxed);
    }
}

/// Making machines.
impl<M: Machine, B> Rest<M, B> {
    /// Makes a machine from a seed.
    pub(super) fn create(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        seed: M::Seed,
    ) -> Result<Token, SpawnError<M::Seed>> {
        let mut seed = Some(seed);
        let environment = lent.environment;
        let made = self.make_any(environment, |token| {
            let seed = seed.take()?;
            Some(M::create(seed, &mut Scope::new(lent.context, environment, token, Woken::default())))
        });
        made.map_err(|cause| SpawnError { cause, seed })
    }

    /// Makes a machine by a closure that is given its token.
    pub(super) fn make<H: BackendHandle>(
        &mut self,
        environment: &Environment<H>,
        make: impl FnOnce(Token) -> Response<M>,
    ) -> Result<Token, SpawnError<Void>> {
        self.make_any(environment, |token| Some(make(token)))
            .map_err(|cause| SpawnError { cause, seed: None })
    }

    fn make_any(
        &mut self,
        environment: &AnyEnvironment,
        make: impl FnOnce(Token) -> Option<Response<M>>,
    ) -> Result<Token, SpawnCause> {
        let Some(token) = self.slab.reserve() else { return Err(SpawnCause::SlabFull) };
        self.note_free_slots(environment);
        let made = guard(|| make(token));
        let (answer, deadline) = match made {
            Ok(response) => response.map_or((Answer::Done, Deadline::Never), Response::into_parts),
            Err(panicked) => return Err(self.create_panicked(environment, token, &panicked)),
        };
        match answer {
            Answer::Continue(machine) => self.keep(environment, token, machine, deadline),
            Answer::Again(machine) => {
                self.keep(environment, token, machine, deadline);
                self.again(token, EventSet::EMPTY);
            }
            Answer::Spawn(_, seed) => match seed {},
            Answer::Done => {
                self.release(environment, token);
                return Err(SpawnCause::Ended);
            }
            Answer::Error(error) => {
                self.release(environment, token);
                return Err(SpawnCause::Failed(error));
            }
        }
        self.counters.stats.spawned += 1;
        // The walk of a drain comes to the slots that it has not passed, in this turn or a later one.
        if self.drain.as_ref().is_some_and(|drain| token.index() < drain.next) {
            self.owe(token, Gathered::DRAINING);
        }
        Ok(token)
    }

    fn create_panicked(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        panicked: &Panicked,
    ) -> SpawnCause {
        self.counters.stats.panicked += 1;
        self.release(environment, token);
        let running = Running { token, machine: type_name::<M>() };
        self.report(running, &FailureCause::Panic(panicked));
        if self.config.on_panic == OnPanic::StopLoop {
            self.ended = Some(Exit::Panicked { token });
        }
        SpawnCause::Panicked(panicked.message().to_string())
    }
}

/// The parts of machines that were woken.
impl<M: Machine, B> Rest<M, B> {
    /// Takes what has arrived. Called after the flag of the woken machine was taken, so that nothing is missed.
    fn take_parts(&mut self) {
        if !self.queue.has_parts() {
            return;
        }
        while let Ok(PartWake { token, part, queued }) = self.due.parts_arriving.try_recv() {
            queued.swap(false, AcqRel);
            if self.queue.is_alive(token) {
                self.due.parts.insert((token, part));
            }
        }
    }

    /// Takes the parts of a machine that were woken, in ascending order.
    fn parts_of(&mut self, token: Token) -> Vec<u32> {
        let mut parts = Vec::new();
        while let Some(&entry) = self.due.parts.range((token, 0)..=(token, u32::MAX)).next() {
            self.due.parts.remove(&entry);
            parts.push(entry.1);
        }
        parts
    }

    fn has_parts(&self, token: Token) -> bool {
        self.due.parts.range((token, 0)..=(token, u32::MAX)).next().is_some()
    }

    pub(super) fn machines(&mut self) -> Machines<'_, M> {
        Machines { slab: &self.slab, verdicts: &mut self.due.verdicts, budget: &mut self.due.scan_left }
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

/// Drops one by one what is not ours, so that one that panics costs none of the others.
impl<M: Machine, B> Drop for Rest<M, B> {
    fn drop(&mut self) {
        self.queue.close();
        self.posts.close();
        for index in 0..self.slab.high_water() {
            if let Some((token, _)) = self.slab.at(index)
                && let Taken::Machine(machine) = self.slab.take(token, 0)
            {
                drop_guarded(machine, "a machine of a loop that is gone");
            }
        }
        self.drop_parked();
        self.every.drain(..).for_each(|every| drop_guarded(every, "a repeated closure"));
    }
}
