//! A machine whose handlers are one closure, so that a test states in one place what happens. The
//! closure is `Send` where machines must be, since with `--cfg rotor_handed` the loop changes
//! threads.

use rotor_core::{EventSet, Machine, Response, Scope, SpawnError, Time};

use crate::loops::MaybeSend;

/// The kind of call, with its arguments.
#[derive(Debug)]
pub(crate) enum Call<C> {
    Ready(EventSet),
    Spawned,
    SpawnError(SpawnError<Seed<C>>),
    Timeout,
    /// The parts that were woken.
    Wakeup(Vec<u32>),
    Draining(Time),
}

impl<C> Call<C> {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Call::Ready(_) => "ready",
            Call::Spawned => "spawned",
            Call::SpawnError(_) => "spawn_error",
            Call::Timeout => "timeout",
            Call::Wakeup(_) => "wakeup",
            Call::Draining(_) => "draining",
        }
    }
}

/// The closure's response; `Actor` puts the machine itself back.
pub(crate) type Reply<C> = Response<(), Seed<C>>;

/// A trait object has only one non-auto trait, so this trait combines the ones needed.
trait Handler<C>: FnMut(Call<C>, &mut Scope<'_, C>) -> Reply<C> + MaybeSend {}

impl<C, H> Handler<C> for H where H: FnMut(Call<C>, &mut Scope<'_, C>) -> Reply<C> + MaybeSend {}

pub(crate) struct Actor<C> {
    handler: Box<dyn Handler<C>>,
}

trait Make<C>: FnOnce(&mut Scope<'_, C>) -> Response<Actor<C>> + MaybeSend {}

impl<C, M> Make<C> for M where M: FnOnce(&mut Scope<'_, C>) -> Response<Actor<C>> + MaybeSend {}

/// A name that identifies the seed, and the closure that `create` runs.
pub(crate) struct Seed<C> {
    pub(crate) name: &'static str,
    make: Box<dyn Make<C>>,
}

impl<C> std::fmt::Debug for Seed<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl<C> Seed<C> {
    pub(crate) fn new(
        name: &'static str,
        make: impl FnOnce(&mut Scope<'_, C>) -> Response<Actor<C>> + MaybeSend + 'static,
    ) -> Seed<C> {
        Seed { name, make: Box::new(make) }
    }

    /// The seed of a machine that waits forever.
    pub(crate) fn idle(name: &'static str) -> Seed<C> {
        Seed::new(name, |_| Response::ok(idle()))
    }
}

/// A machine whose handlers are this closure.
pub(crate) fn actor<C>(
    handler: impl FnMut(Call<C>, &mut Scope<'_, C>) -> Reply<C> + MaybeSend + 'static,
) -> Actor<C> {
    Actor { handler: Box::new(handler) }
}

/// A machine that waits forever, and ends when it is woken or drained.
pub(crate) fn idle<C>() -> Actor<C> {
    actor(|call, _| match call {
        Call::Wakeup(_) | Call::Draining(_) => Response::done(),
        _ => Response::keep(()),
    })
}

impl<C> Actor<C> {
    fn call(mut self, call: Call<C>, scope: &mut Scope<'_, C>) -> Response<Self, Seed<C>> {
        (self.handler)(call, scope).map(|()| self, |seed| seed)
    }
}

impl<C> Machine for Actor<C> {
    type Context = C;
    type Seed = Seed<C>;

    fn create(seed: Seed<C>, scope: &mut Scope<'_, C>) -> Response<Self> {
        (seed.make)(scope)
    }

    fn ready(self, events: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Seed<C>> {
        self.call(Call::Ready(events), scope)
    }

    fn spawned(self, scope: &mut Scope<'_, C>) -> Response<Self, Seed<C>> {
        self.call(Call::Spawned, scope)
    }

    fn spawn_error(
        self,
        error: SpawnError<Seed<C>>,
        scope: &mut Scope<'_, C>,
    ) -> Response<Self, Seed<C>> {
        self.call(Call::SpawnError(error), scope)
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Seed<C>> {
        self.call(Call::Timeout, scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, Seed<C>> {
        let parts = scope.woken_parts().collect();
        self.call(Call::Wakeup(parts), scope)
    }

    fn draining(self, until: Time, scope: &mut Scope<'_, C>) -> Response<Self, Seed<C>> {
        self.call(Call::Draining(until), scope)
    }

    fn type_name(&self) -> &'static str {
        "actor"
    }
}
