//! `IssuedCall`: a call that was issued, and what is needed when its response comes.

use std::cell::Cell;

use super::callee::Callee;
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
pub(in crate::event_loop) struct IssuedCall<M: Machine> {
    pub(in crate::event_loop) callee: Callee,
    pub(super) kind: CallKind,
    /// When the call began, if it is timed; plus the time of its sections that were handed over.
    pub(super) started: Cell<Option<Time>>,
    /// The events that `Again` repeats.
    pub(super) events: EventSet,
    /// For a wake-up: whether the machine itself was woken.
    pub(super) woken: Option<bool>,
    /// For a wake-up: the parts that were woken.
    pub(super) parts: Vec<u32>,
    /// For a wake-up: the last slot that was granted before it.
    pub(super) last_grant: u64,
    /// The number of spawns so far in this event.
    pub(super) spawns: u32,
    /// The result of the last spawn.
    pub(super) spawn_result: Option<Event<M::Seed>>,
}

/// The kind of a call.
#[derive(Clone, Copy)]
pub(in crate::event_loop) enum CallKind {
    Ready(EventSet),
    Timeout,
    /// `whole`: the machine itself was woken, not only parts of it.
    Wakeup {
        whole: bool,
    },
    Draining(Time),
    /// Never issued: `make_room` is called at the end of a turn.
    MakeRoom,
    /// The result of the machine's spawn.
    SpawnResult,
}

impl CallKind {
    /// Returns the event for the machine. For the result of a spawn, that is the successful one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn event<S>(self) -> Event<S> {
        match self {
            CallKind::Ready(events) => Event::Ready(events),
            CallKind::Timeout => Event::Timeout,
            CallKind::Wakeup { .. } => Event::Wakeup,
            CallKind::Draining(until) => Event::Draining(until),
            CallKind::MakeRoom => Event::MakeRoom,
            CallKind::SpawnResult => Event::Spawned,
        }
    }

    /// Returns the events that `Again` repeats.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn ready_events(self) -> EventSet {
        if let CallKind::Ready(events) = self { events } else { EventSet::EMPTY }
    }
}

impl<M: Machine> IssuedCall<M> {
    /// Creates the place for later calls.
    pub(in crate::event_loop) fn empty() -> IssuedCall<M> {
        IssuedCall {
            callee: Callee { token: Token::new(0, 0), type_name: "" },
            kind: CallKind::SpawnResult,
            started: Cell::new(None),
            events: EventSet::EMPTY,
            woken: None,
            parts: Vec::new(),
            last_grant: 0,
            spawns: 0,
            spawn_result: None,
        }
    }

    /// Begins a call of this machine. Its name and the time are noted when it is lifted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin(&mut self, token: Token, kind: CallKind) {
        self.callee.token = token;
        self.kind = kind;
        self.events = kind.ready_events();
        self.woken = None;
        self.parts.clear();
        self.spawns = 0;
    }

    /// Notes that other handlers had the loop since `then`. `now` is called only if handlers are
    /// timed.
    pub(in crate::event_loop) fn exclude_time_since(&self, then: Time, now: impl FnOnce() -> Time) {
        if let Some(started) = self.started.get() {
            self.started.set(Some(started + (now() - then)));
        }
    }

    /// Returns the event for the machine. Call it once.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn take_event(&mut self) -> Event<M::Seed> {
        match self.kind {
            CallKind::SpawnResult => self.spawn_result.take().unwrap_or(Event::Spawned),
            kind => kind.event(),
        }
    }

    /// Returns what was woken; nothing if the call reports the result of a spawn, even of one that
    /// was the response to a wake-up.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn wake_target(&self) -> WakeTarget<'_> {
        match self.kind {
            CallKind::Wakeup { whole } => WakeTarget { whole, parts: &self.parts },
            _ => WakeTarget::default(),
        }
    }

    pub(in crate::event_loop) fn is_wakeup(&self) -> bool {
        self.woken.is_some()
    }
}
