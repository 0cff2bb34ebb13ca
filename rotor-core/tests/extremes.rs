//! The settings of threads at their extremes: each loop does its work and ends.
#![forbid(unsafe_code)]

use std::time::Duration;

use rotor_core::{
    Blocking, Config, EventSet, Exit, Future, Infallible, Loop, Machine, OffloadPool, Outcome,
    PoolError, Response, Scope, WhenFull,
};

const TIMES: [Duration; 3] = [Duration::ZERO, Duration::from_nanos(1), Duration::MAX];
const NUMBERS: [usize; 3] = [0, 1, usize::MAX];

/// Runs a section in each of three turns, and then ends.
struct Sections(u32);

impl Machine for Sections {
    type Context = u32;
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, u32>) -> Response<Self, Infallible> {
        Response::keep(self)
    }

    fn wakeup(self, scope: &mut Scope<'_, u32>) -> Response<Self, Infallible> {
        let ran = scope.blocking(|| 1);
        **scope += ran;
        if self.0 == 1 {
            return Response::done();
        }
        scope.wake_self();
        Response::keep(Sections(self.0 - 1))
    }
}

#[test]
fn a_loop_runs_its_sections_with_any_field_of_blocking_at_its_extremes() {
    let mut all = Vec::new();
    for time in TIMES {
        let new = Blocking::new;
        all.extend([
            new().patience(time),
            new().patience_behind(time),
            new().patience_declared(time),
            new().keep_idle(time),
        ]);
        let every = new().patience(time).patience_behind(time);
        all.push(every.patience_declared(time).keep_idle(time));
    }
    all.extend(NUMBERS.map(|threads| Blocking::new().threads_max(threads)));
    for blocking in all {
        for hands_over in [false, true] {
            let config = Config::new().blocking(blocking.clone());
            let creator = Loop::<Sections>::new(&config).expect("a loop can be made");
            let mut instance = creator.instantiate(0);
            if hands_over {
                instance = instance.handing_over();
            }
            let made = instance.add_machine_with(|scope| {
                scope.wake_self();
                Response::ok(Sections(3))
            });
            made.expect("there is room");
            assert_eq!(instance.run().expect("it runs"), Exit::Empty, "{blocking:?}");
            assert_eq!(*instance.context(), 3, "{blocking:?}");
        }
    }
}

/// Offloads work, and ends when it is done.
struct Offloads(Future<u32>);

impl Machine for Offloads {
    type Context = u32;
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, u32>) -> Response<Self, Infallible> {
        Response::keep(self)
    }

    fn wakeup(self, scope: &mut Scope<'_, u32>) -> Response<Self, Infallible> {
        match self.0.take() {
            Outcome::Pending(future) => return Response::keep(Offloads(future)),
            Outcome::Value(value) => **scope += value,
            Outcome::Lost(_) => {}
        }
        Response::done()
    }
}

/// Whether work was done on a pool; not if the pool refuses it.
fn offload(pool: OffloadPool) -> bool {
    let config = Config::new().offload_pool(pool);
    let creator = Loop::<Offloads>::new(&config).expect("a loop can be made");
    let mut instance = creator.instantiate(0);
    let mut is_taken = true;
    let _has_ended = instance.add_machine_with(|scope| match scope.offload(|| 1) {
        Ok(future) => Response::ok(Offloads(future)),
        Err(_) => {
            is_taken = false;
            Response::done()
        }
    });
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    assert_eq!(*instance.context() == 1, is_taken);
    is_taken
}

#[test]
fn a_pool_does_its_work_or_refuses_it_with_any_field_at_its_extremes() {
    let here = || OffloadPool::builder().when_full(WhenFull::RunOldestHere);
    for jobs in NUMBERS {
        assert!(offload(here().jobs_max(jobs).build().expect("no thread yet")), "{jobs}");
        let refuses = OffloadPool::builder().jobs_max(jobs).build().expect("no thread yet");
        assert_eq!(offload(refuses), jobs > 0, "{jobs}");
        assert!(offload(OffloadPool::new(jobs, jobs)), "{jobs}");
    }
    for time in TIMES {
        for threads in [0, 1] {
            let pool = OffloadPool::builder().keep_idle(time).threads_min(threads).build();
            assert!(offload(pool.expect("a thread")), "{time:?}");
        }
    }
    assert!(offload(here().threads_max(usize::MAX).build().expect("no thread yet")));
    for bytes in [0, 1, 1 << 20] {
        let pool = OffloadPool::builder().stack_bytes(bytes).threads_min(1).build();
        assert!(offload(pool.expect("the least stack")), "{bytes}");
    }
    for bytes in [usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        let pool = OffloadPool::builder().stack_bytes(bytes);
        let refused = pool.threads_min(1).build();
        assert!(matches!(refused, Err(PoolError::Thread(_))), "{bytes}: {refused:?}");
        assert!(!offload(
            OffloadPool::builder().stack_bytes(bytes).build().expect("no thread yet")
        ));
    }
}
