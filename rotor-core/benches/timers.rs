//! What it costs to re-arm a deadline: the wheel beside a heap and an ordered set, in one run.
//!
//! ```text
//! cargo bench -p rotor-core --bench timers              measures, and prints a table
//! cargo bench -p rotor-core --bench timers -- --test    runs every row once with little work
//! ```
//!
//! Rows are *patterns*, columns are *queues*. To compare another queue, implement [`Queue`] and add
//! it in [`queues`]; to measure another load, add a [`Pattern`] in [`patterns`]. Queues take turns
//! within each round, so that a machine that slows down slows all of them; each figure is the
//! median of the rounds, with its spread. The queue `store` keeps no order and never expires: it is
//! what the pattern itself costs.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use crate::measure::{Effort, Figure};
use crate::time::Time;
use crate::timers::{Due, Timers};

mod measure;
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the module of the crate; a bench uses a part of it"
)]
#[path = "../src/time.rs"]
mod time;
#[allow(dead_code, unused_imports, reason = "the module of the crate; a bench uses a part of it")]
#[path = "../src/timers/mod.rs"]
mod timers;

fn main() {
    let effort = Effort::from_arguments();
    let rounds = effort.rounds();
    println!("ns per operation, median of {rounds} rounds (lowest – highest)\n");
    println!(
        "{:<34}{:>8}{:>24}{:>24}{:>24}{:>24}",
        "pattern", "expired", "store", "wheel", "heap", "ordered set"
    );
    for pattern in patterns(effort) {
        let mut runs: Vec<Run> = queues(pattern.slots)
            .into_iter()
            .map(|queue| Run::new(effort, &pattern, queue))
            .collect();
        for _ in 0..rounds {
            for run in &mut runs {
                run.round(effort, &pattern);
            }
        }
        let expired = runs.last().map_or(0.0, Run::expired_share);
        print!("{:<34}{:>7.1}%", pattern.name, 100.0 * expired);
        for run in &runs {
            print!("{:>24}", run.figure);
        }
        println!();
    }
}

/// A load: which slots get new deadlines, when, and how far away.
struct Pattern {
    name: &'static str,
    slots: u32,
    /// Operations in a round.
    events: u32,
    /// Loop time from one event to the next.
    step: Duration,
    /// Events that one turn of the loop handles before it looks at the timers.
    events_per_turn: u32,
    delay: Delay,
}

/// How far away deadlines are set.
enum Delay {
    /// No deadline is set at all; an operation is a turn of the loop.
    Idle,
    /// The same time from now each time: a time-out that is put off.
    Fixed(Duration),
    /// Anything up to this, so that many new deadlines are earlier than the old ones.
    UpTo(Duration),
}

const TIMEOUT: Duration = Duration::from_secs(10);

fn patterns(effort: Effort) -> Vec<Pattern> {
    let events = |events| effort.pick(events, 2_000);
    let slots = |slots| effort.pick(slots, 100);
    vec![
        Pattern {
            name: "request: 400, none expires",
            slots: slots(400),
            events: events(4_000_000),
            step: Duration::from_micros(10),
            events_per_turn: 16,
            delay: Delay::Fixed(TIMEOUT),
        },
        Pattern {
            name: "request, one event a turn",
            slots: slots(400),
            events: events(4_000_000),
            step: Duration::from_micros(10),
            events_per_turn: 1,
            delay: Delay::Fixed(TIMEOUT),
        },
        Pattern {
            name: "turn, 400 armed, none due",
            slots: slots(400),
            events: events(4_000_000),
            step: Duration::ZERO,
            events_per_turn: 1,
            delay: Delay::Idle,
        },
        Pattern {
            name: "random: 10,000",
            slots: slots(10_000),
            events: events(1_000_000),
            step: one_in_six(slots(10_000)),
            events_per_turn: 16,
            delay: Delay::Fixed(TIMEOUT),
        },
        Pattern {
            name: "random: 1,000,000",
            slots: slots(1_000_000),
            events: events(2_000_000),
            step: one_in_six(slots(1_000_000)),
            events_per_turn: 16,
            delay: Delay::Fixed(TIMEOUT),
        },
        Pattern {
            name: "random, mixed delays: 10,000",
            slots: slots(10_000),
            events: events(1_000_000),
            step: one_in_six(slots(10_000)),
            events_per_turn: 16,
            delay: Delay::UpTo(2 * TIMEOUT),
        },
        Pattern {
            name: "random, mixed delays: 1,000,000",
            slots: slots(1_000_000),
            events: events(2_000_000),
            step: one_in_six(slots(1_000_000)),
            events_per_turn: 16,
            delay: Delay::UpTo(2 * TIMEOUT),
        },
    ]
}

/// The step between events on random slots at which one deadline in six is reached.
///
/// The events of one slot are a Poisson process, so a fixed time-out is reached with the
/// probability `exp(-timeout / (step * slots))`.
fn one_in_six(slots: u32) -> Duration {
    TIMEOUT.div_f64(6_f64.ln() * f64::from(slots))
}

/// What is compared.
trait Queue {
    fn set(&mut self, index: u32, deadline: Time);

    /// When the loop would have to wake.
    fn next_wake(&self) -> Option<Time>;

    /// Appends what is due and disarms it.
    fn expire(&mut self, now: Time, due: &mut VecDeque<Due>);
}

/// All queues, without deadlines.
fn queues(slots: u32) -> Vec<Box<dyn Queue>> {
    let slots = slots as usize;
    let mut timers = Timers::new(Time::ZERO);
    timers.reserve(slots).expect("room for all slots");
    vec![
        Box::new(Store(vec![Time::NEVER; slots])),
        Box::new(timers),
        Box::new(Heap { heap: BinaryHeap::new(), slots: vec![(Time::NEVER, Time::NEVER); slots] }),
        Box::new(OrderedSet { set: BTreeSet::new(), deadlines: vec![Time::NEVER; slots] }),
    ]
}

/// One queue under one pattern.
struct Run {
    queue: Box<dyn Queue>,
    due: VecDeque<Due>,
    rng: fastrand::Rng,
    now: Time,
    operations: u64,
    expired: u64,
    /// Nanoseconds per operation.
    figure: Figure,
}

impl Run {
    /// Arms every slot, and runs a round that is not counted.
    fn new(effort: Effort, pattern: &Pattern, queue: Box<dyn Queue>) -> Run {
        let rng = fastrand::Rng::with_seed(1);
        let due = VecDeque::new();
        let mut run = Run {
            queue,
            due,
            rng,
            now: Time::ZERO,
            operations: 0,
            expired: 0,
            figure: Figure::default(),
        };
        for index in 0..pattern.slots {
            let deadline = Time::ZERO + TIMEOUT + TIMEOUT.mul_f64(run.rng.f64());
            run.queue.set(index, deadline);
        }
        run.round(effort, pattern);
        run.figure = Figure::default();
        (run.operations, run.expired) = (0, 0);
        run
    }

    fn round(&mut self, effort: Effort, pattern: &Pattern) {
        let before = self.operations;
        let nanos = effort.nanos_per(1, || match pattern.delay {
            Delay::Idle => {
                for _ in 0..pattern.events {
                    self.turn(|_, now| now);
                }
                self.operations += u64::from(pattern.events);
            }
            Delay::Fixed(delay) => self.events(pattern, |_, now| now + delay),
            Delay::UpTo(longest) => {
                let longest = longest.as_nanos() as u64;
                self.events(pattern, |rng, now| now + Duration::from_nanos(rng.u64(..longest)));
            }
        });
        self.figure.push(nanos / (self.operations - before) as f64);
    }

    fn events(&mut self, pattern: &Pattern, deadline: impl Fn(&mut fastrand::Rng, Time) -> Time) {
        for _ in 0..pattern.events / pattern.events_per_turn {
            for _ in 0..pattern.events_per_turn {
                self.now += pattern.step;
                let index = self.rng.u32(..pattern.slots);
                let deadline = deadline(&mut self.rng, self.now);
                self.queue.set(index, deadline);
            }
            self.operations += u64::from(pattern.events_per_turn);
            self.turn(&deadline);
        }
    }

    /// What a loop does about timers in a turn; the machines whose deadlines have come set new
    /// ones.
    fn turn(&mut self, deadline: impl Fn(&mut fastrand::Rng, Time) -> Time) {
        self.queue.expire(self.now, &mut self.due);
        while let Some(Due { index, .. }) = self.due.pop_front() {
            let deadline = deadline(&mut self.rng, self.now);
            self.queue.set(index, deadline);
            self.operations += 1;
            self.expired += 1;
        }
        std::hint::black_box(self.queue.next_wake());
    }

    fn expired_share(&self) -> f64 {
        self.expired as f64 / self.operations as f64
    }
}

impl Queue for Timers {
    fn set(&mut self, index: u32, deadline: Time) {
        self.set(index, deadline);
    }

    fn next_wake(&self) -> Option<Time> {
        self.next_wake()
    }

    fn expire(&mut self, now: Time, due: &mut VecDeque<Due>) {
        let first = due.len();
        self.expire(now, due);
        for due in due.range(first..) {
            self.take_expired(due.index);
        }
    }
}

/// Only the deadlines: the least that any queue must do.
struct Store(Vec<Time>);

impl Queue for Store {
    fn set(&mut self, index: u32, deadline: Time) {
        self.0[index as usize] = deadline;
    }

    fn next_wake(&self) -> Option<Time> {
        None
    }

    fn expire(&mut self, _: Time, _: &mut VecDeque<Due>) {}
}

/// A binary heap with late correction: a later deadline is stored, an earlier one leaves a dead
/// entry behind.
struct Heap {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// The deadline, and the time at which the live entry is queued.
    slots: Vec<(Time, Time)>,
}

impl Queue for Heap {
    fn set(&mut self, index: u32, deadline: Time) {
        let (stored, queued) = &mut self.slots[index as usize];
        *stored = deadline;
        if deadline < *queued {
            *queued = deadline;
            self.heap.push(Reverse((deadline, index)));
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((queued, _))| *queued)
    }

    fn expire(&mut self, now: Time, due: &mut VecDeque<Due>) {
        while let Some(Reverse((top, index))) = self.heap.peek().copied()
            && top <= now
        {
            self.heap.pop();
            let (deadline, queued) = &mut self.slots[index as usize];
            if *queued != top {
                continue;
            }
            if *deadline <= now {
                due.push_back(Due { tick: *deadline, index });
                (*deadline, *queued) = (Time::NEVER, Time::NEVER);
            } else {
                *queued = *deadline;
                self.heap.push(Reverse((*deadline, index)));
            }
        }
    }
}

/// A B-tree that is always right: every change removes and inserts.
struct OrderedSet {
    set: BTreeSet<(Time, u32)>,
    deadlines: Vec<Time>,
}

impl Queue for OrderedSet {
    fn set(&mut self, index: u32, deadline: Time) {
        let old = std::mem::replace(&mut self.deadlines[index as usize], deadline);
        if old != Time::NEVER {
            self.set.remove(&(old, index));
        }
        self.set.insert((deadline, index));
    }

    fn next_wake(&self) -> Option<Time> {
        self.set.first().map(|(deadline, _)| *deadline)
    }

    fn expire(&mut self, now: Time, due: &mut VecDeque<Due>) {
        while let Some((deadline, index)) = self.set.first().copied()
            && deadline <= now
        {
            self.set.pop_first();
            self.deadlines[index as usize] = Time::NEVER;
            due.push_back(Due { tick: deadline, index });
        }
    }
}
