//! Machines that are spawned during a drain are notified of it once, in whichever slots they are.

use std::time::Duration;

use rotor_core::{Config, Exit, Loop, Machine, Response, Scope, Time};

/// Spawns its children when it is notified; then ends, or stays.
struct DrainSpawner {
    spawns: u32,
    ends: bool,
}

#[derive(Default)]
struct Counts {
    notified: u32,
    children: u32,
}

impl Machine for DrainSpawner {
    type Context = Counts;
    type Seed = ();

    fn create((): (), scope: &mut Scope<'_, Counts>) -> Response<Self> {
        scope.children += 1;
        Response::ok(DrainSpawner { spawns: 0, ends: false })
    }
    fn spawned(self, scope: &mut Scope<'_, Counts>) -> Response<Self, ()> {
        self.proceed(scope)
    }
    fn draining(self, _: Time, scope: &mut Scope<'_, Counts>) -> Response<Self, ()> {
        scope.notified += 1;
        self.proceed(scope)
    }
}

impl DrainSpawner {
    fn proceed(self, _: &Scope<'_, Counts>) -> Response<Self, ()> {
        match self {
            DrainSpawner { spawns: 0, ends: true } => Response::done(),
            DrainSpawner { spawns: 0, .. } => Response::keep(self),
            DrainSpawner { spawns, ends } => {
                Response::spawn(DrainSpawner { spawns: spawns - 1, ends }, ())
            }
        }
    }
}

/// The first machine ends when notified, so its slot is reused; the second spawns; then there is
/// one more.
fn run_drain(scan_budget: usize) -> (u32, u32) {
    let mut creator = Loop::new(&Config::new().scan_budget(scan_budget)).expect("a loop");
    for spawns in [0, 3, 0] {
        let added =
            creator.add_machine_with(|_| Response::ok(DrainSpawner { spawns, ends: spawns == 0 }));
        added.expect("there is room");
    }
    let mut instance = creator.instantiate(Counts::default());
    instance.handle().drain(Duration::from_millis(20));
    assert_eq!(instance.run().expect("it runs"), Exit::Drained { dropped: 4 });
    (instance.context().children, instance.context().notified)
}

#[test]
fn each_machine_is_notified_of_a_drain_once_wherever_its_slot_is() {
    for scan_budget in [1, 2, 3, 100] {
        assert_eq!(run_drain(scan_budget), (3, 6), "a scan budget of {scan_budget}");
    }
}
