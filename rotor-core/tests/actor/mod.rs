//! Machines whose handlers are closures, for test suites of loops that change threads. The context
//! of each loop is the suite's own `Log`.

mod reporting_backend;

use std::thread::{self, JoinHandle};

use rotor_core::{
    Backend, Exit, LoopHandle, LoopInstance, Machine, Mio, Response, Scope, SpawnError,
    StatsHandle, Time,
};

use super::Log;
pub(crate) use reporting_backend::{BackendReport, ReportingBackend};

/// The closure's response.
pub(crate) type Reply = Response<(), Seed>;

type Handler = Box<dyn FnMut(Call, &mut Scope<'_, Log>) -> Reply + Send>;
type Make = Box<dyn FnOnce(&mut Scope<'_, Log>) -> Response<Actor> + Send>;

/// A closure that makes an actor.
pub(crate) struct Seed(pub(crate) Make);

/// Why an actor's handler is called.
#[derive(Debug, PartialEq)]
pub(crate) enum Call {
    Wakeup,
    Timeout,
    Draining,
    Spawned,
    SpawnError,
}

/// A machine whose handlers are one closure.
pub(crate) struct Actor(Handler);

pub(crate) fn actor(
    handler: impl FnMut(Call, &mut Scope<'_, Log>) -> Reply + Send + 'static,
) -> Actor {
    Actor(Box::new(handler))
}

impl Actor {
    fn call(mut self, call: Call, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        (self.0)(call, scope).map(|()| self, |seed| seed)
    }
}

impl Machine for Actor {
    type Context = Log;
    type Seed = Seed;

    fn create(seed: Seed, scope: &mut Scope<'_, Log>) -> Response<Self> {
        (seed.0)(scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Wakeup, scope)
    }

    fn timeout(self, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Timeout, scope)
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Draining, scope)
    }

    fn spawned(self, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::Spawned, scope)
    }

    fn spawn_error(self, _: SpawnError<Seed>, scope: &mut Scope<'_, Log>) -> Response<Self, Seed> {
        self.call(Call::SpawnError, scope)
    }

    fn type_name(&self) -> &'static str {
        "actor"
    }
}

/// A loop that runs in a thread of its own.
pub(crate) struct Running<B: Backend = Mio> {
    pub(crate) thread: JoinHandle<(LoopInstance<Actor, B>, Exit)>,
    pub(crate) handle: LoopHandle,
    pub(crate) stats: StatsHandle,
}

impl<B: Backend<Handle: Send + Sync> + Send + 'static> Running<B> {
    pub(crate) fn start(mut instance: LoopInstance<Actor, B>) -> Running<B> {
        let (handle, stats) = (instance.handle(), instance.stats());
        let thread = thread::spawn(move || {
            let exit = instance.run().expect("it waits");
            (instance, exit)
        });
        Running { thread, handle, stats }
    }
}
