//! `Terms`: a call that was given out, and what is to be known of it when its answer comes.

use std::cell::Cell;

use super::failures::Callee;
use crate::event::Event;
use crate::event_set::EventSet;
use crate::machine::Machine;
use crate::scope::Woken;
use crate::time::Time;
use crate::token::Token;

/// A call that is to be made of a machine which is then lifted out of its slot, and what is to be
/// known of it when its answer comes.
///
/// Written where whoever asks for calls has it, field by field: what is copied right after it was
/// written is waited for, which costs more than the copy.
pub(in crate::event_loop) struct Terms<M: Machine> {
    pub(in crate::event_loop) callee: Callee,
    pub(super) what: What,
    /// When it began, if it is timed; later by what its sections took that were handed over.
    pub(super) started: Cell<Option<Time>>,
    /// `Again` repeats them.
    pub(super) events: EventSet,
    /// For a wake-up: whether the machine itself was woken.
    pub(super) woken: Option<bool>,
    /// For a wake-up: the parts that were woken.
    pub(super) parts: Vec<u32>,
    /// Spawns so far at this event.
    pub(super) spawns: u32,
    /// What has become of the last of them.
    pub(super) spawn_answer: Option<Event<M::Seed>>,
}

/// What is called.
#[derive(Clone, Copy)]
pub(in crate::event_loop) enum What {
    Ready(EventSet),
    Timeout,
    /// `whole`: the machine itself was woken, not only parts of it.
    Wakeup {
        whole: bool,
    },
    Draining(Time),
    /// What became of its spawn.
    SpawnAnswer,
}

impl What {
    /// What the machine is to be told; what became of its spawn, if that went well.
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
    /// A place for those of a call.
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

    /// A call of this machine begins. Its name, and when it began, are noted as it is lifted.
    #[inline(always)]
    pub(super) fn begin(&mut self, token: Token, what: What) {
        self.callee.token = token;
        self.what = what;
        self.events = if let What::Ready(events) = what { events } else { EventSet::EMPTY };
        self.woken = None;
        self.parts.clear();
        self.spawns = 0;
    }

    /// Others had the loop from then on. `now` is asked where handlers are timed.
    pub(in crate::event_loop) fn was_away_since(&self, then: Time, now: impl FnOnce() -> Time) {
        if let Some(started) = self.started.get() {
            self.started.set(Some(started + (now() - then)));
        }
    }

    /// What the machine is to be told, once.
    #[inline(always)]
    pub(in crate::event_loop) fn take_event(&mut self) -> Event<M::Seed> {
        match self.what {
            What::SpawnAnswer => self.spawn_answer.take().unwrap_or(Event::Spawned),
            what => what.event(),
        }
    }

    #[inline(always)]
    pub(in crate::event_loop) fn woken(&self) -> Woken<'_> {
        Woken { whole: self.woken == Some(true), parts: &self.parts }
    }

    pub(in crate::event_loop) fn is_wakeup(&self) -> bool {
        self.woken.is_some()
    }
}
