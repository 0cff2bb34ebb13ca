//! Machines on one loop.

use std::io::{ErrorKind, Read, Write};

use mio::unix::pipe::{Receiver, Sender};
use rotor_core::foreign::MioSource;
use rotor_core::{
    Config, EventSet, Infallible, Interest, Loop, LoopInstance, Machine, Notifier, Response, Scope,
};

use super::{Brigade, bare};

/// The data that the members share.
#[derive(Default)]
pub(crate) struct Ring {
    left: u64,
    /// The notifier that starts the passing.
    first: Option<Notifier>,
}

impl Ring {
    pub(crate) fn start_with(&mut self, first: Option<Notifier>) {
        self.first = first;
    }

    /// Sets the number of hops, once the loop runs.
    pub(crate) fn begin(&mut self, hops: u64) {
        self.left = hops;
        self.first.as_ref().map(Notifier::wakeup);
    }

    /// Checks that all hops were made.
    pub(crate) fn check(&self) {
        assert_eq!(self.left, 0);
    }

    /// Counts a hop, and returns whether there are more.
    pub(crate) fn goes_on(scope: &mut Scope<'_, Ring>) -> bool {
        scope.left -= 1;
        if scope.left == 0 {
            scope.stop_loop();
        }
        scope.left > 0
    }
}

/// Reads a byte and writes it to the next member's pipe.
pub(crate) struct Piped {
    input: MioSource<Receiver>,
    output: Sender,
}

impl Machine for Piped {
    type Context = Ring;
    type Seed = (Receiver, Sender);

    fn create(seed: Self::Seed, scope: &mut Scope<'_, Ring>) -> Response<Self> {
        Piped::new(seed, scope)
    }

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Ring>) -> Response<Self, Self::Seed> {
        // Read with one call: a short read has emptied the pipe.
        let mut bytes = [0; 8];
        match self.input.inner_mut().read(&mut bytes) {
            Ok(_) if Ring::goes_on(scope) => self.pass_on(),
            Ok(_) => Response::ok(self),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Response::ok(self),
            Err(error) => Response::error(error),
        }
    }

    fn wakeup(self, _: &mut Scope<'_, Ring>) -> Response<Self, Self::Seed> {
        self.pass_on()
    }
}

impl Piped {
    fn new<C>((input, output): (Receiver, Sender), scope: &Scope<'_, C>) -> Response<Piped> {
        Response::attempt(|| {
            let mut input = MioSource::from_mio(input);
            scope.register(&mut input, Interest::Readable)?;
            Ok(Response::ok(Piped { input, output }))
        })
    }

    fn pass_on(mut self) -> Response<Self, (Receiver, Sender)> {
        match self.output.write_all(&[1]) {
            Ok(()) => Response::ok(self),
            Err(error) => Response::error(error),
        }
    }
}

/// Wakes the next member.
pub(crate) struct Notified {
    next: Option<Notifier>,
}

impl Machine for Notified {
    type Context = Ring;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Ring>) -> Response<Self, Infallible> {
        if Ring::goes_on(scope) {
            // The member that was made first is the last one of the ring.
            let next = self.next.as_ref().or(scope.first.as_ref());
            next.map(Notifier::wakeup);
        }
        Response::ok(self)
    }
}

/// A loop with a brigade. A wake-up starts it.
pub(crate) struct OnLoop<M: Machine<Context = Ring>> {
    instance: LoopInstance<M>,
}

pub(crate) fn pipes(members: usize) -> OnLoop<Piped> {
    let mut creator = Loop::new(&config(members)).expect("a loop");
    let mut first = None;
    for seed in bare::ring(members) {
        let added = creator.add_machine_with(|scope| {
            first.get_or_insert_with(|| scope.notifier());
            Piped::new(seed, scope)
        });
        added.expect("there is room");
    }
    OnLoop { instance: creator.instantiate(Ring { left: 0, first }) }
}

pub(crate) fn notifiers(members: usize) -> OnLoop<Notified> {
    let mut creator = Loop::new(&config(members)).expect("a loop");
    let mut last = None;
    for _ in 0..members {
        let added = creator.add_machine_with(|scope| {
            let next = last.replace(scope.notifier());
            Response::ok(Notified { next })
        });
        added.expect("there is room");
    }
    OnLoop { instance: creator.instantiate(Ring { left: 0, first: last }) }
}

fn config(members: usize) -> Config {
    Config::new().machines_max(members)
}

impl<M: Machine<Context = Ring>> Brigade for OnLoop<M> {
    fn hops(&mut self, hops: u64) {
        self.instance.context_mut().begin(hops);
        self.instance.run().expect("it runs");
        self.instance.context().check();
    }
}
