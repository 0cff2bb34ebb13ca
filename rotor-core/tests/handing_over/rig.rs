//! Machines whose handlers are closures, in a loop that is handed over.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use rotor_core::{
    Backend, Blocking, Config, Exit, Loop, LoopInstance, Mio, Notifier, Response, Scope, Stats,
};

#[path = "../actor/mod.rs"]
mod actors;

pub(crate) use actors::*;

/// The context: what the machines did, in order.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) entries: Vec<String>,
    /// Whether a handler runs outside of a section.
    pub(crate) is_busy: Arc<AtomicBool>,
}

/// Hands over immediately, however long earlier sections took.
pub(crate) fn config() -> Config {
    Config::new().blocking(Blocking::new().patience_declared(Duration::ZERO))
}

/// A loop under construction, whose machines are all woken at the start.
pub(crate) struct Rig<B: Backend = Mio> {
    pub(crate) creator: Loop<Actor, B>,
    notifiers: Vec<Notifier>,
}

impl Rig {
    pub(crate) fn new(config: &Config) -> Rig {
        let creator = Loop::new(config).expect("descriptors are left");
        Rig { creator, notifiers: Vec::new() }
    }
}

impl<B: Backend<Handle: Send + Sync> + Send + 'static> Rig<B> {
    pub(crate) fn on(backend: B, config: &Config) -> Rig<B> {
        let creator = Loop::with_backend(backend, config).expect("descriptors are left");
        Rig { creator, notifiers: Vec::new() }
    }

    /// Adds a machine that is woken at the start.
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
        self.notifiers.extend(notifier.clone());
        notifier.expect("it was made")
    }

    pub(crate) fn instance(self) -> LoopInstance<Actor, B> {
        self.creator.instantiate(Log::default()).handing_over()
    }

    pub(crate) fn run(self) -> (Exit, Vec<String>, Stats) {
        let mut instance = self.instance();
        let exit = instance.run().expect("it waits");
        let stats = instance.stats().read();
        instance.check_invariants().expect("the books agree");
        (exit, instance.into_context().entries, stats)
    }
}

/// A section that reports that it has begun, and lasts until `end` is sent or dropped.
pub(crate) fn section(began: &Sender<()>, end: &Receiver<()>) {
    let _ = began.send(());
    let _ = end.recv();
}

pub(crate) fn gate() -> (Sender<()>, Receiver<()>) {
    mpsc::channel()
}

pub(crate) fn start<B>(rig: Rig<B>) -> Running<B>
where
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    Running::start(rig.instance())
}

/// A test that waits this long has failed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(100);
