//! Machines that are made, and end.

use rotor_core::{Config, EventSet, Loop, Machine, Response, Scope};

use crate::measure::Effort;
use crate::{Row, row};

/// Spawns as long as there is something left; what it spawns ends at its first event.
enum Brood<const SIZE: usize> {
    Parent,
    Child { _state: [u64; SIZE] },
}

impl<const SIZE: usize> Machine for Brood<SIZE> {
    type Context = u64;
    type Seed = ();

    fn create((): (), _: &mut Scope<'_, u64>) -> Response<Self> {
        Response::again(Brood::Child { _state: [0; SIZE] })
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, u64>) -> Response<Self, ()> {
        match self {
            Brood::Parent => self.spawned(scope),
            Brood::Child { .. } => Response::done(),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, u64>) -> Response<Self, ()> {
        self.spawned(scope)
    }

    fn spawned(self, scope: &mut Scope<'_, u64>) -> Response<Self, ()> {
        if **scope == 0 {
            scope.stop_loop();
            return Response::keep(self);
        }
        **scope -= 1;
        Response::spawn(self, ())
    }
}

pub(crate) fn spawns(effort: Effort) -> Vec<Row> {
    fn brood<const SIZE: usize>(effort: Effort, spawns: u64) -> impl FnMut() -> f64 {
        let mut parent = None;
        let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
        let made = creator.add_machine_with(|scope| {
            parent = Some(scope.notifier());
            Response::ok(Brood::<SIZE>::Parent)
        });
        made.expect("there is room");
        let (parent, mut instance) = (parent.expect("the closure ran"), creator.instantiate(0));
        move || {
            *instance.context_mut() = spawns;
            effort.nanos_per(spawns, || {
                parent.wakeup();
                instance.run().expect("it can wait");
            })
        }
    }
    let count = effort.pick(1_000_000, 500);
    vec![
        row(
            "spawn and end of a machine of 16 bytes, no socket",
            Some(80),
            brood::<1>(effort, count),
        ),
        row(
            "spawn and end of a machine of 72 bytes, no socket",
            Some(80),
            brood::<8>(effort, count),
        ),
        row("spawn and end of a machine of 296 bytes, no socket", None, brood::<36>(effort, count)),
    ]
}
