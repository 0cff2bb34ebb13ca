//! `Event`: what happened to a machine, as its loop reports it.

use std::fmt;

use crate::event_set::EventSet;
use crate::response::{Answer, Response};
use crate::spawn_error::SpawnError;
use crate::time::Time;

/// Something that happened to a machine: the argument of
/// [`Machine::handle`](crate::Machine::handle).
///
/// `S` is the seed of the machines that this machine spawns. [`Machine`](crate::Machine) has a
/// handler for each event, which documents when the event comes.
#[non_exhaustive]
pub enum Event<S> {
    /// For [`ready`](crate::Machine::ready): something happened to a source, or the machine asked
    /// to be called again.
    Ready(EventSet),
    /// For [`timeout`](crate::Machine::timeout): the deadline has been reached.
    Timeout,
    /// For [`wakeup`](crate::Machine::wakeup): the machine was woken.
    Wakeup,
    /// For [`spawned`](crate::Machine::spawned): a machine was made from the seed.
    Spawned,
    /// For [`spawn_error`](crate::Machine::spawn_error): no machine was made from the seed.
    SpawnError(SpawnError<S>),
    /// For [`draining`](crate::Machine::draining): the loop will end, at this time at the latest.
    Draining(Time),
    /// For [`make_room`](crate::Machine::make_room): another machine needs a slot or a descriptor,
    /// and this machine has reported that it is idle.
    MakeRoom,
}

impl<S> Event<S> {
    /// Returns the name of the event's handler, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Ready(_) => "ready",
            Event::Timeout => "timeout",
            Event::Wakeup => "wakeup",
            Event::Spawned => "spawned",
            Event::SpawnError(_) => "spawn_error",
            Event::Draining(_) => "draining",
            Event::MakeRoom => "make_room",
        }
    }

    /// Converts the event for a machine with seeds of another type, such as the inner machine of a
    /// layer. `seed` converts the seed that a `SpawnError` gives back; if it returns `None`, the
    /// seed is dropped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn filter_map<S2>(self, seed: impl FnOnce(S) -> Option<S2>) -> Event<S2> {
        match self {
            Event::Ready(events) => Event::Ready(events),
            Event::Timeout => Event::Timeout,
            Event::Wakeup => Event::Wakeup,
            Event::Spawned => Event::Spawned,
            Event::SpawnError(SpawnError { cause, seed: unused }) => {
                Event::SpawnError(SpawnError { cause, seed: unused.and_then(seed) })
            }
            Event::Draining(until) => Event::Draining(until),
            Event::MakeRoom => Event::MakeRoom,
        }
    }
}

impl<S> fmt::Debug for Event<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Ready(events) => f.debug_tuple("Ready").field(events).finish(),
            Event::Timeout => f.write_str("Timeout"),
            Event::Wakeup => f.write_str("Wakeup"),
            Event::Spawned => f.write_str("Spawned"),
            Event::SpawnError(error) => f.debug_tuple("SpawnError").field(error).finish(),
            Event::Draining(until) => f.debug_tuple("Draining").field(until).finish(),
            Event::MakeRoom => f.write_str("MakeRoom"),
        }
    }
}

/// The result of [`Machine::handle_in_place`](crate::Machine::handle_in_place), which handles an
/// event without moving the machine.
pub enum InPlace<S> {
    /// The event was handled. This is the answer; the machine's next state is in `self`.
    Handled(Response<(), S>),
    /// Nothing was done. Pass the event to [`handle`](crate::Machine::handle).
    Declined(Event<S>),
}

impl<S> InPlace<S> {
    /// Converts the seeds of the result. A layer does this after it has passed the event to its
    /// inner machine.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn map<S2>(self, seed: impl FnOnce(S) -> S2) -> InPlace<S2> {
        // The most frequent answer comes first, so that each layer costs one comparison.
        match self {
            InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) => {
                // `Continue(())` owns nothing; without this the drop code of the other variants is
                // inlined into each layer.
                std::mem::forget(self);
                InPlace::Handled(Response { answer: Answer::Continue(()), deadline })
            }
            InPlace::Handled(response) => InPlace::Handled(map_other_answer(response, seed)),
            // A machine that is called by value always declines. If this is inlined, the compiler
            // knows that and removes everything else.
            InPlace::Declined(event) => {
                InPlace::Declined(event.filter_map(|unused| Some(seed(unused))))
            }
        }
    }
}

/// Converts any answer but `Continue`.
#[cold]
#[inline(never)]
fn map_other_answer<S, S2>(
    response: Response<(), S>,
    seed: impl FnOnce(S) -> S2,
) -> Response<(), S2> {
    response.map(|()| (), seed)
}

impl<S> fmt::Debug for InPlace<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InPlace::Handled(response) => f.debug_tuple("Handled").field(response).finish(),
            InPlace::Declined(event) => f.debug_tuple("Declined").field(event).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn_error::SpawnCause;

    fn spawn_error<S>(seed: Option<S>) -> Event<S> {
        Event::SpawnError(SpawnError { cause: SpawnCause::SlabFull, seed })
    }

    #[test]
    fn an_event_has_the_name_of_its_handler_and_keeps_its_kind_when_mapped() {
        let events = [
            Event::Ready(EventSet::READABLE),
            Event::Timeout,
            Event::Wakeup,
            Event::Spawned,
            spawn_error(None::<u8>),
            Event::Draining(Time::ZERO),
            Event::MakeRoom,
        ];
        let printed = [
            ("ready", "Ready({READABLE})"),
            ("timeout", "Timeout"),
            ("wakeup", "Wakeup"),
            ("spawned", "Spawned"),
            ("spawn_error", "SpawnError(no slot is free (Config::machines_max))"),
            ("draining", "Draining(Time(0.000000000s))"),
            ("make_room", "MakeRoom"),
        ];
        for (event, (name, text)) in events.into_iter().zip(printed) {
            assert_eq!((event.name(), format!("{event:?}")), (name, text.to_string()));
            let mapped = event.filter_map(|seed| Some(u64::from(seed)));
            assert_eq!((mapped.name(), format!("{mapped:?}")), (name, text.to_string()));
        }
    }

    #[test]
    fn a_returned_seed_reaches_only_the_machine_of_its_type() {
        let down = |seed: u8, is_own_type: bool| match spawn_error(Some(seed))
            .filter_map(|seed| is_own_type.then_some(u64::from(seed)))
        {
            Event::SpawnError(SpawnError { cause: SpawnCause::SlabFull, seed }) => seed,
            other => panic!("{other:?}"),
        };
        assert_eq!((down(7, true), down(7, false)), (Some(7), None));
    }
}
