//! The cost of running an empty job on another thread and getting its result: rotor's
//! `scope.offload` compared with tokio's `spawn_blocking` on its current-thread runtime, both with
//! four threads, in turns.
//!
//! ```text
//! cargo run --release -p offload            1 and 64 jobs under way at a time
//! cargo run --release -p offload -- 20000   that many jobs in each round (default 100,000)
//! ```
//!
//! Figures are the medians of nine rounds, in microseconds per job: wall-clock time, and CPU time
//! of the process.

use std::fs;
use std::time::{Duration, Instant};

use rotor_core::{
    Config, Future, Infallible, Loop, Machine, OffloadPool, Outcome, Response, Scope,
};

const THREADS: usize = 4;
const ROUNDS: usize = 9;

/// Offloads jobs, one after another.
struct Offloads {
    under_way: Option<Future<u32>>,
    left: usize,
}

impl Machine for Offloads {
    type Context = u64;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, u64>) -> Response<Self, Infallible> {
        match self.under_way.map(Future::take) {
            Some(Outcome::Pending(future)) => {
                return Response::keep(Offloads { under_way: Some(future), left: self.left });
            }
            Some(Outcome::Value(value)) => **scope += u64::from(value),
            Some(Outcome::Lost(lost)) => return Response::error(lost),
            None => {}
        }
        if self.left == 0 {
            return Response::done();
        }
        match scope.offload(|| 1) {
            Ok(future) => Response::ok(Offloads { under_way: Some(future), left: self.left - 1 }),
            Err(full) => Response::error(full.to_string()),
        }
    }
}

fn rotor(pool: &OffloadPool, jobs: usize, at_a_time: usize) -> u64 {
    let config = Config::new().offload_pool(pool.clone());
    let mut creator = Loop::new(&config).expect("a loop");
    for _ in 0..at_a_time {
        let added = creator.add_machine_with(|scope| {
            scope.notifier().wakeup();
            Response::ok(Offloads { under_way: None, left: jobs / at_a_time })
        });
        added.expect("there is room");
    }
    let mut instance = creator.instantiate(0);
    instance.run().expect("it runs");
    instance.into_context()
}

fn tokio(runtime: &tokio::runtime::Runtime, jobs: usize, at_a_time: usize) -> u64 {
    runtime.block_on(async {
        let local = tokio::task::LocalSet::new();
        let share = jobs / at_a_time;
        let tasks: Vec<_> = (0..at_a_time)
            .map(|_| {
                local.spawn_local(async move {
                    let mut sum = 0;
                    for _ in 0..share {
                        sum +=
                            tokio::task::spawn_blocking(|| 1u64).await.expect("it does not panic");
                    }
                    sum
                })
            })
            .collect();
        local
            .run_until(async {
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.expect("it does not panic");
                }
                sum
            })
            .await
    })
}

/// Returns user and system time of the process so far, in units of 10 ms.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn main() {
    let jobs: usize = std::env::args().nth(1).and_then(|jobs| jobs.parse().ok()).unwrap_or(100_000);
    let pool = OffloadPool::new(THREADS, 1_024);
    // With its I/O driver, as programs with sockets have it: rotor's loop waits for sockets too.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .build()
        .expect("a runtime");
    println!("µs a job, median of {ROUNDS} rounds (lowest – highest)\n");
    println!("{:<14}{:<8}{:>24}{:>24}", "jobs at a time", "", "clock", "CPU time");
    for at_a_time in [1, 64] {
        let jobs = jobs / at_a_time * at_a_time;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(measure(jobs, || rotor(&pool, jobs, at_a_time)));
            theirs.push(measure(jobs, || tokio(&runtime, jobs, at_a_time)));
        }
        let (ours, theirs) = (Figures::of(ours), Figures::of(theirs));
        println!("{at_a_time:<14}{:<8}{:>24}{:>24}", "rotor", ours.clock(), ours.cpu());
        println!("{:<14}{:<8}{:>24}{:>24}", "", "tokio", theirs.clock(), theirs.cpu());
        let ratio = |a: &[f64], b: &[f64]| a[ROUNDS / 2] / b[ROUNDS / 2];
        let (clock, cpu) = (ratio(&ours.clock, &theirs.clock), ratio(&ours.cpu, &theirs.cpu));
        println!("{:<14}{:<8}{clock:>24.2}{cpu:>24.2}\n", "", "ratio");
    }
}

fn measure(jobs: usize, run: impl FnOnce() -> u64) -> (f64, f64) {
    let (begun, cpu) = (Instant::now(), cpu_time());
    assert_eq!(run(), jobs as u64);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / jobs as f64;
    (each(begun.elapsed()), each(cpu_time() - cpu))
}

struct Figures {
    clock: Vec<f64>,
    cpu: Vec<f64>,
}

impl Figures {
    fn of(rounds: Vec<(f64, f64)>) -> Figures {
        let (mut clock, mut cpu): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
        clock.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        Figures { clock, cpu }
    }

    fn clock(&self) -> String {
        text(&self.clock)
    }

    fn cpu(&self) -> String {
        text(&self.cpu)
    }
}

fn text(sorted: &[f64]) -> String {
    format!("{:.2} ({:.2} – {:.2})", sorted[ROUNDS / 2], sorted[0], sorted[ROUNDS - 1])
}
