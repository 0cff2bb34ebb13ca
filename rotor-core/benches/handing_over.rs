//! What it costs that a loop can be handed over, and what it brings.
//!
//! ```text
//! cargo bench -p rotor-core --bench handing_over                    all rows
//! cargo bench -p rotor-core --bench handing_over -- --test          each once, with little work
//! cargo bench -p rotor-core --bench handing_over -- storm 1000000   so many hand-overs, none of them lost
//! ```
//!
//! `cost` is in CPU time of the process, by turns; `latency` from the beginning of a section until
//! another machine's handler runs; `burst` 100 handlers that each block for 20 ms, beside a machine
//! with a deadline each millisecond.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench has a clock of its own")]

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, LoopInstance, Machine, Response, Scope, Stats, Time,
};

#[derive(Default)]
struct Shared {
    /// When the section began whose hand-over is measured.
    begun: Option<Instant>,
    latencies: Vec<Duration>,
    sections: u64,
    blocking: u32,
    last_beat: Option<Time>,
    late: Duration,
}

/// What a machine does when it is woken.
enum Task {
    /// Wakes itself so many times.
    Spins { left: u32, _state: [u64; 4] },
    /// Blocks so many times, for so long.
    Blocks { left: u32, time: Duration },
    /// Notes how late it is called, while others block.
    Beats,
    /// Is woken by the section, and measures how long that was ago.
    Measures,
}

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
                scope.begun = Some(Instant::now());
                scope.blocking(|| {
                    if time.is_zero() { thread::yield_now() } else { thread::sleep(time) }
                });
                scope.sections += 1;
                if left == 1 {
                    scope.blocking -= 1;
                    return Response::done();
                }
                scope.wake_self();
                Response::ok(Task::Blocks { left: left - 1, time })
            }
            Task::Measures => {
                if let Some(begun) = scope.begun.take() {
                    scope.latencies.push(begun.elapsed());
                }
                if scope.blocking == 0 {
                    return Response::done();
                }
                scope.wake_self();
                Response::ok(self)
            }
            Task::Beats => Response::ok(self).deadline(scope.now() + BEAT),
        }
    }

    fn timeout(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        let now = scope.now();
        if let Some(last) = scope.last_beat.replace(now) {
            scope.late = scope.late.max((now - last).saturating_sub(BEAT));
        }
        if scope.blocking == 0 {
            return Response::done();
        }
        Response::ok(self).deadline(now + BEAT)
    }
}

const BEAT: Duration = Duration::from_millis(1);

fn instance(config: &Config, tasks: Vec<Task>) -> LoopInstance<Task> {
    let mut creator = Loop::new(config).expect("descriptors are left");
    let mut blocking = 0;
    for task in tasks {
        blocking += u32::from(matches!(task, Task::Blocks { .. }));
        let made = creator.add_machine_with(|scope| {
            scope.wake_self();
            Response::ok(task)
        });
        made.expect("there is room");
    }
    creator.instantiate(Shared { blocking, ..Shared::default() })
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
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (way, times) in times.iter_mut().enumerate() {
            let instance = match way {
                0 => instance(&Config::new(), tasks()),
                1 => instance(&watched(), tasks()),
                _ => instance(&watched(), tasks()).handing_over(),
            };
            let before = cpu_time();
            run(instance);
            times.push((cpu_time() - before).as_nanos() as f64 / f64::from(events));
        }
    }
    for (name, times) in ["off", "watched", "handing over"].iter().zip(&mut times) {
        times.sort_unstable_by(f64::total_cmp);
        println!("cost, {name:14} {:7.1} ns of CPU an event", times[times.len() / 2]);
    }
}

fn latency(sections: u32) {
    let config = Config::new().blocking(Blocking::new().patience_declared(Duration::ZERO));
    let time = Duration::from_micros(200);
    let tasks = vec![Task::Blocks { left: sections, time }, Task::Measures];
    let (mut shared, stats) = run(instance(&config, tasks).handing_over());
    let p50 = median(&mut shared.latencies);
    let p90 = shared.latencies[shared.latencies.len() * 9 / 10];
    println!("latency, hand-over      p50 {p50:?}, p90 {p90:?} of {}", stats.handed_over);
}

fn burst(rounds: usize) {
    let config = Config::new().blocking(Blocking::new().threads_max(128));
    let (mut times, mut lates) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let time = Duration::from_millis(20);
        let mut tasks: Vec<_> = (0..100).map(|_| Task::Blocks { left: 1, time }).collect();
        tasks.push(Task::Beats);
        let instance = instance(&config, tasks).handing_over();
        let begun = Instant::now();
        let (shared, stats) = run(instance);
        assert_eq!((shared.sections, stats.panicked), (100, 0));
        times.push(begun.elapsed());
        lates.push(shared.late);
    }
    println!(
        "burst, 100 x 20 ms      all done in {:?} (best {:?}), heartbeat late by {:?} (best {:?})",
        median(&mut times),
        times[0],
        median(&mut lates),
        lates[0]
    );
}

fn storm(sections: u32) {
    const MACHINES: u32 = 8;
    let config = Config::new().blocking(Blocking::new().patience_declared(Duration::ZERO));
    let left = sections / MACHINES;
    let tasks = (0..MACHINES).map(|_| Task::Blocks { left, time: Duration::ZERO }).collect();
    let begun = Instant::now();
    let (shared, stats) = run(instance(&config, tasks).handing_over());
    let all = u64::from(left * MACHINES);
    assert_eq!((shared.sections, stats.ended, stats.panicked), (all, u64::from(MACHINES), 0));
    assert_eq!(stats.handed_over + stats.handed_quick + stats.no_thread, all);
    let each = begun.elapsed() / sections.max(1);
    println!(
        "storm, {all} sections      none lost; {} handed over, {} without a thread; {each:?} each",
        stats.handed_over, stats.no_thread
    );
}

fn main() {
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_test = words.iter().any(|word| word == "--test");
    let wants = |row: &str| is_test || words.is_empty() || words[0] == row;
    let count = |least: u32, usual: u32| {
        let asked = words.get(1).and_then(|count| count.parse().ok());
        if is_test { least } else { asked.unwrap_or(usual) }
    };
    if wants("cost") {
        cost(if is_test { 1 } else { 9 }, count(1_600, 2_000_000));
    }
    if wants("latency") {
        latency(count(20, 5_000));
    }
    if wants("burst") {
        burst(if is_test { 1 } else { 9 });
    }
    if wants("storm") {
        storm(count(800, 100_000));
    }
}
