//! Permits, locks and barriers: uncontended, and with ten users that take turns.

use std::sync::Arc;
use std::time::Instant;

use rotor_core::{
    Barrier, BarrierReached, Config, Future, Infallible, Lock, LockGuard, Loop, Machine, Outcome,
    Permit, Permits, Response, Scope,
};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::yield_now;

use crate::{ROUNDS, sorted};

/// The number of users, and how many turns each has.
const WHO: usize = 10;
const TIMES: usize = 10_000;
const FREE: usize = 1_000_000;

type Row = (&'static str, usize, fn());

const ROWS: [Row; 14] = [
    ("permit, free: rotor try_take", FREE, permit_free),
    ("permit, free: tokio try_acquire_owned", FREE, permit_free_tokio),
    ("permit, free: tokio acquire_owned", FREE, permit_free_awaited),
    ("permit, in line: rotor", WHO * TIMES, permit_in_line),
    ("permit, in line: tokio ct", WHO * TIMES, permit_in_line_tokio),
    ("lock, free: rotor", FREE, lock_free),
    ("lock, free: tokio lock_owned", FREE, lock_free_tokio),
    ("lock, free: tokio lock", FREE, lock_free_borrowed),
    ("lock, free: async-std lock_arc", FREE, lock_free_async_std),
    ("lock, in line: rotor", WHO * TIMES, lock_in_line),
    ("lock, in line: tokio ct", WHO * TIMES, lock_in_line_tokio),
    ("lock, in line: async-std, on tokio ct", WHO * TIMES, lock_in_line_async_std),
    ("barrier: rotor", WHO * TIMES, barrier),
    ("barrier: tokio ct", WHO * TIMES, barrier_tokio),
];

pub(crate) fn compare() {
    println!(
        "permits and locks: alone, and {WHO} in line, each holds what it has over one yield\n\
         a barrier for {WHO}, each yields once behind it\n"
    );
    println!("{:<42}{:>28}", "", "ns each");
    let mut figures: Vec<Vec<f64>> = ROWS.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, times, run), figures) in ROWS.iter().zip(&mut figures) {
            let begun = Instant::now();
            run();
            figures.push(begun.elapsed().as_secs_f64() * 1e9 / *times as f64);
        }
    }
    for ((name, ..), figures) in ROWS.iter().zip(figures) {
        let all = sorted(figures.into_iter());
        let text = format!("{:.1} ({:.1} – {:.1})", all[ROUNDS / 2], all[0], all[ROUNDS - 1]);
        println!("{name:<42}{text:>28}");
    }
}

fn permit_free() {
    let permits = Permits::new(4);
    for _ in 0..FREE {
        let mut permit = std::hint::black_box(&permits).try_take().expect("one is free");
        permit.note_used();
    }
}

fn lock_free() {
    let lock = Lock::new(0u64);
    for _ in 0..FREE {
        *std::hint::black_box(&lock).try_take().expect("nobody holds it") += 1;
    }
}

fn permit_free_tokio() {
    let permits = Arc::new(Semaphore::new(4));
    for _ in 0..FREE {
        let permits = std::hint::black_box(&permits).clone();
        drop(permits.try_acquire_owned().expect("one is free"));
    }
}

fn current() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn permit_free_awaited() {
    let permits = Arc::new(Semaphore::new(4));
    current().block_on(async {
        for _ in 0..FREE {
            let permits = std::hint::black_box(&permits).clone();
            drop(permits.acquire_owned().await.expect("it is never closed"));
        }
    });
}

fn lock_free_tokio() {
    let lock = Arc::new(Mutex::new(0u64));
    current().block_on(async {
        for _ in 0..FREE {
            *std::hint::black_box(&lock).clone().lock_owned().await += 1;
        }
    });
}

fn lock_free_borrowed() {
    let lock = Mutex::new(0u64);
    current().block_on(async {
        for _ in 0..FREE {
            *std::hint::black_box(&lock).lock().await += 1;
        }
    });
}

/// async-std's lock is that of the crate async-lock.
fn lock_free_async_std() {
    let lock = Arc::new(async_lock::Mutex::new(0u64));
    current().block_on(async {
        for _ in 0..FREE {
            *std::hint::black_box(&lock).lock_arc().await += 1;
        }
    });
}

/// Spawns the users, and waits for all of them.
fn tokio_turns<F: std::future::Future<Output = ()> + 'static>(task: impl Fn() -> F) {
    let local = tokio::task::LocalSet::new();
    let tasks: Vec<_> = (0..WHO).map(|_| local.spawn_local(task())).collect();
    current().block_on(local.run_until(async {
        for task in tasks {
            task.await.expect("it does not panic");
        }
    }));
}

fn permit_in_line_tokio() {
    let permits = Arc::new(Semaphore::new(1));
    tokio_turns(|| {
        let permits = permits.clone();
        async move {
            for _ in 0..TIMES {
                let _permit = permits.acquire().await.expect("it is never closed");
                yield_now().await;
            }
        }
    });
}

fn lock_in_line_tokio() {
    let lock = Arc::new(Mutex::new(0u64));
    tokio_turns(|| {
        let lock = lock.clone();
        async move {
            for _ in 0..TIMES {
                let mut held = lock.lock().await;
                yield_now().await;
                *held += 1;
            }
        }
    });
}

fn lock_in_line_async_std() {
    let lock = Arc::new(async_lock::Mutex::new(0u64));
    tokio_turns(|| {
        let lock = lock.clone();
        async move {
            for _ in 0..TIMES {
                let mut held = lock.lock().await;
                yield_now().await;
                *held += 1;
            }
        }
    });
}

fn barrier_tokio() {
    let barrier = Arc::new(tokio::sync::Barrier::new(WHO));
    tokio_turns(|| {
        let barrier = barrier.clone();
        async move {
            for _ in 0..TIMES {
                barrier.wait().await;
                yield_now().await;
            }
        }
    });
}

/// Something for which users wait.
trait Line: Clone + 'static {
    type Held;

    fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<Self::Held>;
    fn end(held: Self::Held);
}

impl Line for Permits {
    type Held = Permit;

    fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<Permit> {
        Permits::ask(self, scope)
    }

    fn end(mut permit: Permit) {
        permit.note_used();
    }
}

impl Line for Lock<u64> {
    type Held = LockGuard<u64>;

    fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<LockGuard<u64>> {
        Lock::ask(self, scope)
    }

    fn end(mut held: LockGuard<u64>) {
        *held += 1;
    }
}

impl Line for Barrier {
    type Held = BarrierReached;

    fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<BarrierReached> {
        self.arrive(scope)
    }

    fn end(_: BarrierReached) {}
}

/// Waits for its turn, holds what it gets until its next call, and starts again.
enum Turns<L: Line> {
    Waits(Future<L::Held>, usize),
    Holds(L::Held, usize),
}

impl<L: Line> Machine for Turns<L> {
    type Context = L;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, L>) -> Response<Self, Infallible> {
        match self {
            Turns::Waits(future, left) => match future.take() {
                Outcome::Value(held) => {
                    scope.notifier().wakeup();
                    Response::keep(Turns::Holds(held, left))
                }
                Outcome::Pending(future) => Response::keep(Turns::Waits(future, left)),
                Outcome::Lost(lost) => Response::error(lost),
            },
            Turns::Holds(held, left) => {
                L::end(held);
                match left {
                    0 => Response::done(),
                    left => Response::keep(Turns::Waits((**scope).ask(scope), left - 1)),
                }
            }
        }
    }
}

fn turns<L: Line>(line: L) {
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    for _ in 0..WHO {
        let made = creator
            .add_machine_with(|scope| Response::ok(Turns::<L>::Waits(line.ask(scope), TIMES - 1)));
        made.expect("there is room");
    }
    creator.instantiate(line).run().expect("it runs");
}

fn permit_in_line() {
    turns(Permits::new(1));
}

fn lock_in_line() {
    turns(Lock::new(0));
}

fn barrier() {
    turns(Barrier::new(WHO));
}
