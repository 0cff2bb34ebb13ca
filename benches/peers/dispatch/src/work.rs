//! The work of a job.

use std::cell::Cell;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Noop,
    Expensive,
    Sleep,
}

impl Work {
    pub(crate) const ALL: [Work; 3] = [Work::Noop, Work::Expensive, Work::Sleep];

    pub(crate) fn named(name: &str) -> Option<Work> {
        Work::ALL.into_iter().find(|work| work.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Noop => "noop",
            Work::Expensive => "expensive",
            Work::Sleep => "sleep",
        }
    }

    pub(crate) fn jobs(self) -> usize {
        if self == Work::Sleep { 200 } else { 100 }
    }

    pub(crate) fn threads(self) -> usize {
        if self == Work::Sleep { 40 } else { 4 }
    }

    /// Returns a number of batches that takes some tenths of a second.
    pub(crate) fn batches(self) -> usize {
        match self {
            Work::Noop => 2_000,
            Work::Expensive => 400,
            Work::Sleep => 100,
        }
    }

    /// Does the work of one job, and returns 1.
    pub(crate) fn run(self) -> u64 {
        match self {
            Work::Noop => 1,
            Work::Expensive => sort(),
            Work::Sleep => {
                std::thread::sleep(sleep_time());
                1
            }
        }
    }
}

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0x2545_F491_4F6C_DD1D) };
}

/// Returns the next number of a xorshift generator.
fn random() -> u64 {
    RANDOM.with(|state| {
        let mut number = state.get();
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        state.set(number);
        number
    })
}

fn sort() -> u64 {
    let mut numbers: Vec<u64> = (0..300).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, (random() % (last as u64 + 1)) as usize);
    }
    numbers.sort_unstable();
    std::hint::black_box(&numbers)[1]
}

fn sleep_time() -> Duration {
    let even = (random() >> 11) as f64 / (1u64 << 53) as f64;
    let exponential = -12.0 * (1.0 - even).ln();
    Duration::from_nanos(((1.0 + exponential).min(49.0) * 1_000.0) as u64)
}
