//! The events that a source wants.

use rotor_core::{EventSet, Interest};

/// Returns the events of an edge that a source wants. Errors and hang-ups are always among them.
pub(super) fn wanted_events(interest: Interest, events: EventSet) -> EventSet {
    let mut heard = EventSet::EMPTY;
    let wanted = [
        (EventSet::READABLE, interest.is_readable()),
        (EventSet::WRITABLE, interest.is_writable()),
        (EventSet::READ_CLOSED, true),
        (EventSet::WRITE_CLOSED, true),
        (EventSet::ERROR, true),
    ];
    for (event, _) in
        wanted.into_iter().filter(|(event, wanted)| *wanted && events.contains(*event))
    {
        heard |= event;
    }
    heard
}
