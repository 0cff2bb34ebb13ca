//! Machines whose handlers are closures, in a loop that is taken from those that are stuck.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::{
    Backend, Blocking, Config, Exit, Loop, LoopInstance, Mio, Notifier, Response, Scope,
    SharedContext, Stats,
};

#[path = "../actor/mod.rs"]
mod actors;

pub(crate) use actors::*;

/// The context: what the machines did, in order.
#[derive(Clone, Default)]
pub(crate) struct Log {
    entries: Arc<Mutex<Vec<String>>>,
}

impl SharedContext for Log {}

impl Log {
    pub(crate) fn record(&self, what: impl Into<String>) {
        self.entries.lock().expect("nobody panics with it").push(what.into());
    }

    pub(crate) fn entries(&self) -> Vec<String> {
        self.entries.lock().expect("nobody panics with it").clone()
    }
}

/// A handler may take one millisecond. The tests make no assumption about how long it takes until
/// the loop is taken over.
pub(crate) fn blocking() -> Blocking {
    Blocking::new().patience(Duration::from_millis(1)).patience_declared(Duration::ZERO)
}

pub(crate) fn config() -> Config {
    Config::new().blocking(blocking())
}

/// A loop under construction.
pub(crate) struct Rig<B: Backend = Mio> {
    creator: Loop<Actor, B>,
}

impl Rig {
    pub(crate) fn new(config: &Config) -> Rig {
        Rig { creator: Loop::new(config).expect("descriptors are left") }
    }
}

impl<B: Backend<Handle: Send + Sync> + Send + 'static> Rig<B> {
    pub(crate) fn on(backend: B, config: &Config) -> Rig<B> {
        Rig { creator: Loop::with_backend(backend, config).expect("descriptors are left") }
    }

    /// Adds a machine that is woken at the start. Machines are called in the order in which they
    /// are added.
    pub(crate) fn add(
        &mut self,
        handler: impl FnMut(Call, &mut Scope<'_, Log>) -> Reply + Send + 'static,
    ) -> Notifier {
        let mut notifier = None;
        let made = self.creator.add_machine_with(|scope| {
            scope.wake_self();
            notifier = Some(scope.notifier());
            Response::ok(actor(handler))
        });
        made.expect("there is room");
        notifier.expect("it was made")
    }

    pub(crate) fn instance(self) -> LoopInstance<Actor, B> {
        self.instance_with(Log::default())
    }

    pub(crate) fn instance_with(self, log: Log) -> LoopInstance<Actor, B> {
        self.creator.instantiate(log).taking_over()
    }

    pub(crate) fn run(self) -> (Exit, Vec<String>, Stats) {
        let mut instance = self.instance();
        let exit = instance.run().expect("it waits");
        let stats = instance.stats().read();
        instance.check_invariants().expect("the books agree");
        (exit, instance.into_context().entries(), stats)
    }

    pub(crate) fn start(self) -> Running<B> {
        Running::start(self.instance())
    }
}

/// Makes a handler stuck until it is released; reports when the wait begins.
pub(crate) struct Trap {
    began: Sender<()>,
    end: Receiver<()>,
}

/// Releases the handler.
pub(crate) struct Key {
    pub(crate) begins: Receiver<()>,
    pub(crate) end: Sender<()>,
}

pub(crate) fn trap() -> (Trap, Key) {
    let ((began, begins), (end, ended)) = (mpsc::channel(), mpsc::channel());
    (Trap { began, end: ended }, Key { begins, end })
}

impl Trap {
    /// Returns once it is released, or nobody is left to release it.
    pub(crate) fn block(&self) {
        let _ = self.began.send(());
        let _ = self.end.recv();
    }

    /// Returns whether it is released in that time.
    pub(crate) fn block_for(&self, time: Duration) -> bool {
        let _ = self.began.send(());
        self.end.recv_timeout(time).is_ok()
    }
}
