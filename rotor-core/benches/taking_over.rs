//! What it costs that a loop can be taken from its handlers, and what it brings.
//!
//! ```text
//! cargo bench -p rotor-core --bench taking_over              all rows
//! cargo bench -p rotor-core --bench taking_over -- --test    each once, with little work
//! ```
//!
//! `cost` is in CPU time of the process, by turns; `burst` 100 handlers that each block for 20 ms
//! and do not say so, beside a machine with a deadline each millisecond; `many` 20 machines that
//! each block for 2 ms, 200 times.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench has a clock of its own")]

use std::env;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, LoopInstance, Machine, Response, Scope,
    SharedContext, Stats, Time,
};

#[derive(Clone, Default)]
struct Shared(Arc<Figures>);

#[derive(Default)]
struct Figures {
    /// Machines that still block.
    blocking: AtomicU32,
    calls: AtomicU64,
    /// How late the heartbeat was at most, in nanoseconds.
    late: AtomicU64,
}

impl SharedContext for Shared {}

enum Task {
    /// Wakes itself so many times.
    Spins { left: u32, _state: [u64; 4] },
    /// Blocks so many times, for so long, and does not say so.
    Blocks { left: u32, time: Duration },
    /// Notes how late it is called, while others block.
    Beats { last: Option<Time> },
}

const BEAT: Duration = Duration::from_millis(1);

impl Machine for Task {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        match self {
            Task::Spins { left: 0, .. } => Response::done(),
            Task::Spins { left, _state } => {
                scope.wake_self();
                Response::ok(Task::Spins { left: left - 1, _state })
            }
            Task::Blocks { left, time } => {
                thread::sleep(time);
                scope.0.calls.fetch_add(1, Relaxed);
                if left == 1 {
                    scope.0.blocking.fetch_sub(1, Relaxed);
                    return Response::done();
                }
                scope.wake_self();
                Response::ok(Task::Blocks { left: left - 1, time })
            }
            Task::Beats { .. } => Response::ok(self).deadline(scope.now() + BEAT),
        }
    }

    fn timeout(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        let Task::Beats { last } = self else { return Response::ok(self) };
        let now = scope.now();
        if let Some(last) = last {
            let late = (now - last).saturating_sub(BEAT);
            scope.0.late.fetch_max(late.as_nanos() as u64, Relaxed);
        }
        if scope.0.blocking.load(Relaxed) == 0 {
            return Response::done();
        }
        Response::ok(Task::Beats { last: Some(now) }).deadline(now + BEAT)
    }
}

fn instance(config: &Config, tasks: Vec<Task>) -> LoopInstance<Task> {
    let mut creator = Loop::new(config).expect("descriptors are left");
    let shared = Shared::default();
    for task in tasks {
        shared.0.blocking.fetch_add(u32::from(matches!(task, Task::Blocks { .. })), Relaxed);
        let made = creator.add_machine_with(|scope| {
            scope.wake_self();
            Response::ok(task)
        });
        made.expect("there is room");
    }
    creator.instantiate(shared)
}

fn run(mut instance: LoopInstance<Task>) -> (Shared, Stats) {
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    let stats = instance.stats().read();
    (instance.into_context(), stats)
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

fn cost(rounds: usize, events: u32) {
    let tasks = || (0..16).map(|_| Task::Spins { left: events / 16, _state: [0; 4] }).collect();
    let watched = || Config::new().blocking(Blocking::new());
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        for (way, times) in times.iter_mut().enumerate() {
            let instance = match way {
                0 => instance(&Config::new(), tasks()),
                1 => instance(&watched(), tasks()),
                2 => instance(&watched(), tasks()).handing_over(),
                _ => instance(&watched(), tasks()).taking_over(),
            };
            let before = cpu_time();
            run(instance);
            times.push((cpu_time() - before).as_nanos() as f64 / f64::from(events));
        }
    }
    let names = ["off", "watched", "handing over", "taking over"];
    for (name, times) in names.iter().zip(&mut times) {
        times.sort_unstable_by(f64::total_cmp);
        println!("cost, {name:14} {:7.1} ns of CPU an event", times[times.len() / 2]);
    }
}

/// So many machines that block so many times each, beside one that is to be called each
/// millisecond.
fn blocked(name: &str, rounds: usize, machines: u32, left: u32, time: Duration) {
    let config = Config::new().blocking(Blocking::new().threads_max(128));
    let (mut times, mut lates, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut tasks: Vec<_> = (0..machines).map(|_| Task::Blocks { left, time }).collect();
        tasks.push(Task::Beats { last: None });
        let instance = instance(&config, tasks).taking_over();
        let begun = Instant::now();
        let (shared, stats) = run(instance);
        times.push(begun.elapsed());
        assert_eq!(shared.0.calls.load(Relaxed), u64::from(machines * left));
        assert_eq!((stats.panicked, stats.late_answers), (0, stats.taken_over));
        lates.push(Duration::from_nanos(shared.0.late.load(Relaxed)));
        taken.push(stats.taken_over);
    }
    println!(
        "{name:24} all done in {:?} (best {:?}), heartbeat late by {:?}, taken {} times",
        median(&mut times),
        times[0],
        median(&mut lates),
        median(&mut taken)
    );
}

fn main() {
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_test = words.iter().any(|word| word == "--test");
    let wants = |row: &str| is_test || words.is_empty() || words[0] == row;
    let rounds = if is_test { 1 } else { 9 };
    if wants("cost") {
        cost(rounds, if is_test { 1_600 } else { 2_000_000 });
    }
    if wants("burst") {
        let machines = if is_test { 10 } else { 100 };
        blocked("burst, 100 x 20 ms", rounds, machines, 1, Duration::from_millis(20));
    }
    if wants("many") {
        let left = if is_test { 5 } else { 200 };
        blocked("many, 20 x 200 x 2 ms", rounds.min(3), 20, left, Duration::from_millis(2));
    }
}
