//! What the loop itself costs: a wake-up, a spawn, an event, a machine that waits.
//!
//! ```text
//! cargo bench -p rotor-core --bench event_loop              measures, and prints a table
//! cargo bench -p rotor-core --bench event_loop -- --test    runs every row once with little work
//! cargo bench -p rotor-core --bench event_loop -- events    only rows whose names contain this
//! valgrind --tool=callgrind target/release/deps/event_loop-… --bench --wall events    counts instructions
//! ```
//!
//! Rows of one theme differ in one thing, and take turns within each round. Events come from a
//! backend that reports all machines in every wait and whose clock is a counter, so that no row
//! pays for the kernel; the rows about wake-ups and spawns run on the default backend, as a program
//! does.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench has threads of its own")]

mod measure;

use std::alloc::System;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread;
use std::time::{Duration, SystemTime};

use rotor_core::{
    Backend, BackendHandle, Blocking, Config, EventSet, Exit, ExitPolicy, Infallible, Loop,
    LoopInstance, Machine, Mio, MioHandle, Notifier, Response, Scope, Time, Token, Wake,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::measure::{Effort, Figure};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let effort = Effort::from_arguments();
    let wanted =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut rows = wake_ups(effort);
    rows.extend(spawns(effort));
    rows.extend(events(effort));
    rows.retain(|row| row.name.contains(&wanted));
    for _ in 0..effort.rounds() {
        for row in &mut rows {
            let nanos = (row.round)();
            row.figure.push(nanos);
        }
    }
    println!("ns per operation, median of {} rounds (lowest – highest)\n", effort.rounds());
    println!("{:<58}{:>24}{:>10}", "", "ns", "target");
    for row in &rows {
        let target = row.target.map_or(String::new(), |target| format!("≤ {target}"));
        println!("{:<58}{:>24}{target:>10}", row.name, row.figure);
    }
    let median =
        |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.figure.median());
    if let (Some(armed), Some(kept)) = (median(REARMED), median(KEPT)) {
        println!(
            "{:<58}{:>24.1}{:>10}",
            "re-arming by itself: the difference of these",
            armed - kept,
            "≤ 8"
        );
    }
    if wanted.is_empty() {
        bytes(effort);
    }
}

/// One line of the table.
struct Row {
    name: &'static str,
    /// In nanoseconds: from the design's list of what to reach.
    target: Option<u32>,
    /// Measures once; answers nanoseconds per operation.
    round: Box<dyn FnMut() -> f64>,
    figure: Figure,
}

fn row(name: &'static str, target: Option<u32>, round: impl FnMut() -> f64 + 'static) -> Row {
    Row { name, target, round: Box::new(round), figure: Figure::default() }
}

/// Wakes the next one of a ring, until enough wake-ups were counted.
struct Link {
    next: usize,
}

#[derive(Default)]
struct Ring {
    notifiers: Vec<Notifier>,
    left: u64,
}

impl Machine for Link {
    type Context = Ring;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Ring>) -> Response<Self, Infallible> {
        match scope.left {
            0 => scope.stop_loop(),
            _ => {
                scope.left -= 1;
                scope.notifiers[self.next].wakeup();
            }
        }
        Response::keep(self)
    }
}

fn ring(machines: usize) -> LoopInstance<Link> {
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let mut ring = Ring::default();
    for index in 0..machines {
        let made = creator.add_machine_with(|scope| {
            ring.notifiers.push(scope.notifier());
            Response::ok(Link { next: (index + 1) % machines })
        });
        made.expect("there is room");
    }
    creator.instantiate(ring)
}

fn wake_ups(effort: Effort) -> Vec<Row> {
    let wakeups = effort.pick(3_000_000, 1_000);
    let chain = |starts: usize| {
        let mut instance = ring(64);
        move || {
            instance.context_mut().left = wakeups;
            effort.nanos_per(wakeups, || {
                for start in 0..starts {
                    instance.context().notifiers[start * 64 / starts].wakeup();
                }
                instance.run().expect("it can wait");
                // Those that are still under way.
                while instance.next_deadline().is_some() {
                    instance.turn(Some(Duration::ZERO)).expect("it can look");
                }
            })
        }
    };
    let busy = |machines: usize| {
        // A loop for each round: one that spins would disturb the other rows.
        move || Busy::new(machines).round(effort, wakeups)
    };
    vec![
        row("wake-up in the loop to its handler, one after the other", Some(40), chain(1)),
        row("wake-up in the loop to its handler, 32 under way", Some(40), chain(32)),
        row("wake-up from a thread, loop busy, 64 machines: sender", Some(100), busy(64)),
        row("wake-up from a thread, loop busy, one machine: sender", Some(100), busy(1)),
    ]
}

/// A loop on another thread that never sleeps, and the notifiers of its machines.
struct Busy {
    notifiers: Vec<Notifier>,
    /// How often the waker made a system call.
    system_calls: Arc<AtomicU64>,
    stop: rotor_core::LoopHandle,
    thread: Option<thread::JoinHandle<()>>,
}

/// Counts its wake-ups; the first asks to be called again for ever.
struct Hears;

impl Machine for Hears {
    type Context = Arc<AtomicBool>;
    type Seed = Infallible;

    fn ready(
        self,
        _: EventSet,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Infallible> {
        scope.store(true, SeqCst);
        Response::again(self)
    }
}

impl Busy {
    fn new(machines: usize) -> Busy {
        let (sender, made) = std::sync::mpsc::channel();
        let system_calls = Arc::new(AtomicU64::new(0));
        let counted = system_calls.clone();
        let thread = thread::spawn(move || {
            let backend =
                Counted { mio: Mio::new(1_024).expect("there are descriptors"), wakes: counted };
            let config = Config::new().exit(ExitPolicy::OnRequest);
            let mut creator = Loop::with_backend(backend, &config).expect("there are descriptors");
            let mut notifiers = Vec::new();
            for _ in 0..machines {
                let made = creator.add_machine_with(|scope| {
                    notifiers.push(scope.notifier());
                    Response::ok(Hears)
                });
                made.expect("there is room");
            }
            creator.add_machine_with(|_| Response::again(Hears)).expect("there is room");
            let runs = Arc::new(AtomicBool::new(false));
            let mut instance = creator.instantiate(runs.clone());
            sender.send((notifiers, runs, instance.handle())).expect("the bench waits");
            instance.run().expect("it can wait");
        });
        let (notifiers, runs, stop) = made.recv().expect("the thread makes them");
        while !runs.load(SeqCst) {
            thread::yield_now();
        }
        Busy { notifiers, system_calls, stop, thread: Some(thread) }
    }

    fn round(&self, effort: Effort, wakeups: u64) -> f64 {
        let before = self.system_calls.load(SeqCst);
        let nanos = effort.nanos_per(wakeups, || {
            for notifier in self.notifiers.iter().cycle().take(wakeups as usize) {
                notifier.wakeup();
            }
        });
        assert_eq!(
            self.system_calls.load(SeqCst) - before,
            0,
            "system calls of a loop that is awake"
        );
        nanos
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic");
        }
    }
}

/// The default backend, with a count of the system calls of its waker.
struct Counted {
    mio: Mio,
    wakes: Arc<AtomicU64>,
}

struct CountedWaker(Arc<dyn Wake>, Arc<AtomicU64>);

impl Wake for CountedWaker {
    fn wake(&self) -> io::Result<()> {
        self.1.fetch_add(1, Relaxed);
        self.0.wake()
    }
}

impl Backend for Counted {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        self.mio.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(CountedWaker(self.mio.waker()?, self.wakes.clone())))
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.mio.wait(until, ready)
    }
}

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

fn spawns(effort: Effort) -> Vec<Row> {
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

/// A backend that reports every machine in every wait.
#[derive(Clone, Default)]
struct Fed {
    now: Rc<Cell<u64>>,
    tokens: Rc<RefCell<Vec<Token>>>,
}

impl Fed {
    /// How far each wait puts the clock on.
    const TURN_NANOS: u64 = 400_000;
}

struct Nobody;

impl Wake for Nobody {
    fn wake(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Backend for Fed {
    type Handle = Fed;

    fn handle(&self) -> io::Result<Fed> {
        Ok(self.clone())
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        Ok(Arc::new(Nobody))
    }

    fn wait(&mut self, _: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.now.set(self.now.get() + Fed::TURN_NANOS);
        ready.extend(self.tokens.borrow().iter().map(|token| (*token, EventSet::READABLE)));
        Ok(())
    }
}

impl BackendHandle for Fed {
    fn name(&self) -> &str {
        "fed"
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now.get())
    }

    fn wall_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// A machine that counts its events, and puts its deadline off at each, or not.
struct Counts<const SIZE: usize, const REARMS: bool> {
    state: [u64; SIZE],
}

impl<const SIZE: usize, const REARMS: bool> Machine for Counts<SIZE, REARMS> {
    type Context = u64;
    type Seed = ();

    fn create((): (), _: &mut Scope<'_, u64>) -> Response<Self> {
        Response::ok(Counts { state: [0; SIZE] })
    }

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, u64>) -> Response<Self, ()> {
        self.state[0] += 1;
        **scope += self.state[0];
        if REARMS {
            let deadline = scope.now() + Duration::from_secs(10);
            Response::ok(self).deadline(deadline)
        } else {
            Response::keep(self)
        }
    }
}

const KEPT: &str = "events, 400 machines of 64 bytes, deadline kept";
const REARMED: &str = "events, 400 machines of 64 bytes, deadline put off";

fn events(effort: Effort) -> Vec<Row> {
    fn events<const SIZE: usize, const REARMS: bool>(
        effort: Effort,
        turns: u64,
    ) -> impl FnMut() -> f64 {
        let backend = Fed::default();
        let creator =
            Loop::with_backend(backend.clone(), &Config::new()).expect("nothing can fail");
        let mut instance: LoopInstance<Counts<SIZE, REARMS>, Fed> = creator.instantiate(0);
        for _ in 0..400 {
            backend.tokens.borrow_mut().push(instance.spawn(()).expect("there is room"));
        }
        move || {
            effort.nanos_per(turns * 400, || {
                for _ in 0..turns {
                    instance.turn(Some(Duration::ZERO)).expect("it never fails");
                }
            })
        }
    }
    let turns = effort.pick(10_000, 3);
    vec![
        row("events, 400 machines of 64 bytes, run", None, run(effort, turns, &Config::new())),
        row(
            "events, 400 machines of 64 bytes, run and watched",
            None,
            run(effort, turns, &Config::new().blocking(Blocking::new())),
        ),
        row(KEPT, None, events::<8, false>(effort, turns)),
        row(REARMED, None, events::<8, true>(effort, turns)),
        row(
            "events, 400 machines of 8 bytes, deadline kept",
            None,
            events::<1, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 128 bytes, deadline kept",
            None,
            events::<16, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 192 bytes, deadline kept",
            None,
            events::<24, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 256 bytes, deadline kept",
            None,
            events::<32, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 288 bytes, deadline kept",
            None,
            events::<36, false>(effort, turns),
        ),
        row(
            "events, 400 machines of 1,024 bytes, deadline kept",
            None,
            events::<128, false>(effort, turns),
        ),
    ]
}

/// The same by `run`, which a watchdog may watch, until the backend's clock says that there were so
/// many turns.
fn run(effort: Effort, turns: u64, config: &Config) -> impl FnMut() -> f64 + use<> {
    let backend = Fed::default();
    let creator = Loop::with_backend(backend.clone(), config).expect("nothing can fail");
    let mut instance: LoopInstance<Counts<8, false>, Fed> = creator.instantiate(0);
    for _ in 0..400 {
        backend.tokens.borrow_mut().push(instance.spawn(()).expect("there is room"));
    }
    let time = Duration::from_nanos(turns * Fed::TURN_NANOS);
    instance.every(time, |_, scope| scope.stop_loop());
    move || {
        effort.nanos_per(turns * 400, || {
            assert_eq!(instance.run().expect("it never fails"), Exit::Stopped);
        })
    }
}

/// Bytes that the allocator has given out for a machine of 64 bytes that waits for its deadline, by
/// a line through several sizes; and what they are made of.
fn bytes(effort: Effort) {
    let sizes: [usize; 4] =
        effort.pick([10_000, 100_000, 400_000, 1_000_000], [100, 200, 300, 400]);
    let points = sizes.map(|machines| (machines as f64, bytes_of_loop(machines)));
    let mean =
        |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (mean_machines, mean_bytes) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = points.iter().map(|(m, b)| (m - mean_machines) * (b - mean_bytes)).sum();
    let square: f64 = points.iter().map(|(m, _)| (m - mean_machines).powi(2)).sum();
    println!("\nbytes, all bookkeeping included; a line through {sizes:?} machines\n");
    println!(
        "{:<58}{:>24.1}{:>10}",
        "idle machine of 64 bytes with a deadline",
        along / square,
        "≤ 104"
    );
    println!("{:<58}{:>24.0}", "the loop itself", mean_bytes - along / square * mean_machines);
    println!(
        "\n64 the machine + 8 its slot + 8 its wake-ups and generation + 24 its deadline = 104"
    );
}

fn bytes_of_loop(machines: usize) -> f64 {
    let live = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
    };
    let before = live();
    let config = Config::new().machines_max(machines);
    let creator = Loop::<Counts<8, true>>::new(&config).expect("there are descriptors");
    let mut instance = creator.instantiate(0);
    for index in 0..machines {
        let made = instance.add_machine_with(|scope| {
            let deadline = scope.now() + Duration::from_micros(index as u64);
            Response::ok(Counts { state: [0; 8] }).deadline(deadline + Duration::from_secs(10))
        });
        made.expect("there is room");
    }
    live() - before
}
