//! A machine that keeps a socket for a test; the test itself reads and writes between turns.

use rotor_core::{EventSet, Infallible, Machine, Response, Scope};

/// Records its edges in the context.
pub(crate) struct Holder<T> {
    _held: T,
}

impl<T> Holder<T> {
    pub(crate) fn new(held: T) -> Holder<T> {
        Holder { _held: held }
    }
}

impl<T> Machine for Holder<T> {
    type Context = Vec<EventSet>;
    type Seed = Infallible;

    fn ready(
        self,
        events: EventSet,
        scope: &mut Scope<'_, Vec<EventSet>>,
    ) -> Response<Self, Infallible> {
        scope.push(events);
        Response::keep(self)
    }
}
