//! Calling machines: each call takes the machine out of its slot, hands it to its handler and
//! applies the answer.

use std::any::type_name;

use log::Level;

use super::rest::{Lent, Rest, Running};
use crate::backend::Backend;
use crate::guard::{drop_guarded, log_guarded};
use crate::response::{Answer, Deadline};
use crate::scope::{AnyEnvironment, Woken};
use crate::slab::{Gathered, Lifted};
use crate::{Event, EventSet, FailureCause, InPlace, Machine, Response, Scope, Time, Token};

/// Calls that are not of events, of which one looks at the clock. An event was worth a system call
/// or two; a wake-up within the loop takes 30 ns, and a look 8.
const CALLS_PER_LOOK: u8 = 8;

impl<M: Machine, B: Backend> Rest<M, B> {
    /// What the answer to `spawn` waits for holds back every other call.
    pub(super) const HELD: u8 = Gathered::SPAWNING;

    pub(super) fn ready(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        token: Token,
        events: EventSet,
    ) {
        // A machine that asked to be called again is called behind the others, once, with all that
        // came meanwhile.
        let lifted = self.slab.lift(token, Self::HELD | Gathered::READY);
        if lifted.is_none() {
            return self.ready_later(token, events);
        }
        self.counters.stats.events += 1;
        self.note_time_passed(lent.environment);
        self.call(lent, token, lifted, Event::Ready(events), Woken::default());
    }

    /// Keeps the events for a machine that cannot be called now.
    #[cold]
    fn ready_later(&mut self, token: Token, events: EventSet) {
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.events |= events;
        }
        self.call_later(token, Gathered::READY);
    }

    /// Keeps a call for a machine that cannot be called now, if it is still there.
    #[cold]
    fn call_later(&mut self, token: Token, calls: u8) {
        if self.queue.is_alive(token) {
            self.owe(token, calls);
        } else {
            self.counters.stats.stale += 1;
        }
    }

    pub(super) fn timeout(&mut self, lent: &mut Lent<'_, M::Context>, token: Token) {
        let lifted = self.slab.lift(token, Self::HELD);
        if lifted.is_none() {
            return self.expire(lent.environment, token);
        }
        self.timers.clear(token.index());
        self.counters.stats.timeouts += 1;
        self.note_time_at_times(lent.environment);
        self.call(lent, token, lifted, Event::Timeout, Woken::default());
    }

    /// Has `timeout` called as soon as that can be, as if the deadline were now.
    pub(super) fn expire(&mut self, environment: &AnyEnvironment, token: Token) {
        if self.queue.is_alive(token) {
            self.set_deadline(environment, token, Deadline::At(environment.now()));
        }
    }

    pub(super) fn draining(&mut self, lent: &mut Lent<'_, M::Context>, token: Token) {
        let until = lent.environment.draining().unwrap_or_else(|| lent.environment.now());
        let lifted = self.slab.lift(token, Self::HELD);
        if lifted.is_none() {
            return self.call_later(token, Gathered::DRAINING);
        }
        self.note_time_at_times(lent.environment);
        self.call(lent, token, lifted, Event::Draining(until), Woken::default());
    }

    /// The same for a machine that may be owed another look at its source: that comes first, since
    /// it may find what had arrived before the drain.
    pub(super) fn draining_after_ready(&mut self, lent: &mut Lent<'_, M::Context>, token: Token) {
        if self.slab.gathered(token).is_some_and(|gathered| gathered.has(Gathered::READY)) {
            return self.call_later(token, Gathered::DRAINING);
        }
        self.draining(lent, token);
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
        let calls =
            if whole { Gathered::WAKEUP | Gathered::WAKEUP_WHOLE } else { Gathered::WAKEUP };
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
    /// A thread that wakes a part puts it into the channel first and the machine into the list
    /// after that. If the part was taken in between, the machine is in the list for nothing.
    pub(super) fn wakeup(&mut self, lent: &mut Lent<'_, M::Context>, token: Token, calls: u8) {
        if calls & Gathered::WAKEUP_WHOLE == 0 && !self.has_parts(token) {
            return;
        }
        let lifted = self.slab.lift(token, Self::HELD);
        if lifted.is_none() {
            return self.call_later(token, calls);
        }
        self.counters.stats.wakeups += 1;
        let parts = self.parts_of(token);
        let whole = calls & Gathered::WAKEUP_WHOLE != 0;
        self.note_time_at_times(lent.environment);
        self.call(lent, token, lifted, Event::Wakeup, Woken { whole, parts: &parts });
        lent.environment.waiters.were_called(token, whole, &parts);
    }

    /// Makes the calls that were gathered for a machine. What its handlers add meanwhile is left
    /// for the next turn.
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
        if owed.has(Gathered::READY) {
            self.ready(lent, token, owed.events);
        }
        if owed.has(Gathered::DRAINING) {
            self.draining(lent, token);
        }
        if owed.has(Gathered::WAKEUP) {
            self.wakeup(lent, token, owed.only(Gathered::WAKEUP | Gathered::WAKEUP_WHOLE));
        }
    }

    /// Hands an event to a machine that was lifted out of its slot, and applies its answer.
    ///
    /// A machine that can is called in place: out of its slot, as in every call, and copied nowhere
    /// else.
    #[inline(always)]
    pub(super) fn call(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        token: Token,
        mut lifted: Lifted<M>,
        event: Event<M::Seed>,
        woken: Woken<'_>,
    ) {
        let events = if let Event::Ready(events) = event { events } else { EventSet::EMPTY };
        let mut in_hand = lifted.in_hand();
        let Some(machine) = in_hand.machine() else { return in_hand.let_go() };
        let (running, started) = self.begin_call(lent, token, machine);
        trace(running, &event);
        let scope = &mut Scope::new(lent.context, lent.environment, token, woken);
        let response = machine.handle_in_place(event, scope);
        in_hand.let_go();
        if let InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) = response {
            self.note_time(lent, running, started);
            self.put_back(lent.environment, token, lifted, deadline);
            self.running = None;
            return;
        }
        let Some(machine) = lifted.into_machine() else { return };
        let response = match response {
            InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
            InPlace::Declined(event) => machine.handle(event, scope),
        };
        self.end_call(lent, running, started, events, response);
    }

    /// Notes whose handler is to run, and when it began if that is wanted.
    #[inline(always)]
    fn begin_call(
        &mut self,
        lent: &Lent<'_, M::Context>,
        token: Token,
        machine: &M,
    ) -> (Running, Option<Time>) {
        // The name is asked of the machine, which may panic: then it has the name of its type.
        self.running = Some(Running { token, machine: type_name::<M>() });
        let running = Running { token, machine: machine.type_name() };
        self.running = Some(running);
        (running, self.config.time_handlers.then(|| lent.environment.handle.now()))
    }

    /// Before something of the user's is called: reads the clock if it is seen, by a look that
    /// costs little, that what was called before took long. Otherwise what is asked for in 100 ms,
    /// late in a turn of 300 ms, would be due at once.
    #[inline]
    pub(super) fn note_time_passed(&mut self, environment: &AnyEnvironment) {
        if self.looked.take().is_some() {
            self.unlooked = 0;
        } else if self.backend.coarse_now() > environment.now() {
            environment.refresh_now();
        }
    }

    /// The same before calls that cost so little that each look would show: for the first of some.
    #[inline]
    pub(super) fn note_time_at_times(&mut self, environment: &AnyEnvironment) {
        if self.looked.is_some() || self.unlooked == 0 {
            self.note_time_passed(environment);
        }
        self.unlooked = (self.unlooked + 1) % CALLS_PER_LOOK;
    }

    #[inline(always)]
    fn note_time(&mut self, lent: &Lent<'_, M::Context>, running: Running, started: Option<Time>) {
        if let Some(started) = started {
            let took = lent.environment.handle.now() - started;
            self.counters.handler_took(took, running.machine);
        }
    }

    #[inline(always)]
    fn end_call(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        running: Running,
        started: Option<Time>,
        events: EventSet,
        response: Response<M, M::Seed>,
    ) {
        self.note_time(lent, running, started);
        self.apply(lent, running, events, response);
        self.running = None;
    }

    /// Applies an answer: the machine goes back into its slot, or is gone.
    ///
    /// What nearly all answers say is inlined, so that the machine is copied as few times as may be
    /// on its way.
    #[inline(always)]
    pub(super) fn apply(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        running: Running,
        events: EventSet,
        response: Response<M, M::Seed>,
    ) {
        if let Answer::Continue(machine) = response.answer {
            self.keep(lent.environment, running.token, machine, response.deadline);
        } else {
            self.apply_rarer(lent, running, events, response.into_parts());
        }
    }

    #[inline(never)]
    fn apply_rarer(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        running: Running,
        events: EventSet,
        mut answer: (Answer<M, M::Seed>, Deadline),
    ) {
        let token = running.token;
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
    pub(super) fn spawn_for(
        &mut self,
        lent: &mut Lent<'_, M::Context>,
        parent: Running,
        machine: M,
        seed: M::Seed,
    ) -> Response<M, M::Seed> {
        self.note_time_at_times(lent.environment);
        let made = self.create(lent, Some(parent.token), seed);
        self.running = Some(parent);
        let event = made.map_or_else(Event::SpawnError, |_| Event::Spawned);
        trace(parent, &event);
        machine.handle(
            event,
            &mut Scope::new(lent.context, lent.environment, parent.token, Woken::default()),
        )
    }

    /// Leaves a spawn for the next turn; until then nothing reaches the machine that wants it.
    pub(super) fn park(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        machine: M,
        seed: M::Seed,
    ) {
        self.keep(environment, token, machine, Deadline::Keep);
        if let Some(gathered) = self.slab.gathered(token) {
            gathered.add(Gathered::SPAWNING);
        }
        self.due.parked.push_back((token, seed));
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
        if let Some(machine) = self.slab.take(token, Self::HELD) {
            let (running, started) = self.begin_call(lent, token, &machine);
            self.end_call(lent, running, started, EventSet::EMPTY, Response::spawn(machine, seed));
        }
    }
}

/// One line for each event, where it is wanted: `log`'s static levels leave nothing of this in a
/// program that never wants it.
#[inline(always)]
fn trace<S>(running: Running, event: &Event<S>) {
    if Level::Trace <= log::STATIC_MAX_LEVEL && Level::Trace <= log::max_level() {
        write_trace(running, event);
    }
}

#[cold]
fn write_trace<S>(Running { token, machine }: Running, event: &Event<S>) {
    log_guarded!(trace, "machine {token} ({machine}): {event:?}");
}
