//! `Terms`: a call that was given out, and what is needed when its response comes.

use std::cell::Cell;

use super::failures::Callee;
use crate::event::Event;
use crate::event_set::EventSet;
use crate::machine::Machine;
use crate::scope::WakeTarget;
use crate::time::Time;
use crate::token::Token;

/// A call to be made of a machine that is then lifted out of its slot, and what is needed when its
/// response comes.
///
/// It is written in its final place, field by field. Copying a value right after writing it stalls
/// until the writes are complete, which costs more than the copy itself.
pub(in crate::event_loop) struct Terms<M: Machine> {
    pub(in crate::event_loop) callee: Callee,
    pub(super) what: What,
    /// When the call began, if it is timed; plus the time of its sections that were handed over.
    pub(super) started: Cell<Option<Time>>,
    /// The events that `Again` repeats.
    pub(super) events: EventSet,
    /// For a wake-up: whether the machine itself was woken.
    pub(super) woken: Option<bool>,
    /// For a wake-up: the parts that were woken.
    pub(super) parts: Vec<u32>,
    /// The number of spawns so far in this event.
    pub(super) spawns: u32,
    /// The result of the last spawn.
    pub(super) spawn_answer: Option<Event<M::Seed>>,
}

/// The kind of a call.
#[derive(Clone, Copy)]
pub(in crate::event_loop) enum What {
    Ready(EventSet),
    Timeout,
    /// `whole`: the machine itself was woken, not only parts of it.
    Wakeup {
        whole: bool,
    },
    Draining(Time),
    /// The result of the machine's spawn.
    SpawnAnswer,
}

impl What {
    /// Returns the event for the machine. For the result of a spawn, that is the successful one.
    #[inline(always)]
    pub(super) fn event<S>(self) -> Event<S> {
        match self {
            What::Ready(events) => Event::Ready(events),
            What::Timeout => Event::Timeout,
            What::Wakeup { .. } => Event::Wakeup,
            What::Draining(until) => Event::Draining(until),
            What::SpawnAnswer => Event::Spawned,
        }
    }
}

impl<M: Machine> Terms<M> {
    /// Creates the place for the terms of later calls.
    pub(in crate::event_loop) fn nothing() -> Terms<M> {
        Terms {
            callee: Callee { token: Token::new(0, 0), type_name: "" },
            what: What::SpawnAnswer,
            started: Cell::new(None),
            events: EventSet::EMPTY,
            woken: None,
            parts: Vec::new(),
            spawns: 0,
            spawn_answer: None,
        }
    }

    /// Begins a call of this machine. Its name and the time are noted when it is lifted.
    #[inline(always)]
    pub(super) fn begin(&mut self, token: Token, what: What) {
        self.callee.token = token;
        self.what = what;
        self.events = if let What::Ready(events) = what { events } else { EventSet::EMPTY };
        self.woken = None;
        self.parts.clear();
        self.spawns = 0;
    }

    /// Notes that other handlers had the loop since `then`. `now` is called only if handlers are
    /// timed.
    pub(in crate::event_loop) fn was_away_since(&self, then: Time, now: impl FnOnce() -> Time) {
        if let Some(started) = self.started.get() {
            self.started.set(Some(started + (now() - then)));
        }
    }

    /// Returns the event for the machine. Call it once.
    #[inline(always)]
    pub(in crate::event_loop) fn take_event(&mut self) -> Event<M::Seed> {
        match self.what {
            What::SpawnAnswer => self.spawn_answer.take().unwrap_or(Event::Spawned),
            what => what.event(),
        }
    }

    #[inline(always)]
    pub(in crate::event_loop) fn woken(&self) -> WakeTarget<'_> {
        WakeTarget { whole: self.woken == Some(true), parts: &self.parts }
    }

    pub(in crate::event_loop) fn is_wakeup(&self) -> bool {
        self.woken.is_some()
    }
}
