//! `HandlerTimes`: how long handlers take, by the type of their machines.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::histogram::Histogram;
use crate::shared_histogram::SharedHistogram;

/// How long the handlers of one type of machine took, as far as they were timed:
/// [`LoopTimes::handlers`](crate::LoopTimes::handlers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HandlerTimes {
    /// The type: [`Machine::type_name`](crate::Machine::type_name). Types beyond the first
    /// [`HandlerTimes::TYPES_MAX`] of a loop are counted together as `"others"`.
    pub machine: &'static str,
    /// The duration of each call.
    pub times: Histogram,
}

impl HandlerTimes {
    /// How many types a loop distinguishes: 31.
    pub const TYPES_MAX: usize = 31;
}

/// The times of one loop. Only the loop writes them.
pub(crate) struct HandlerCells {
    types: Box<[TypeCells]>,
    /// The index of the type that was recorded last.
    last: AtomicUsize,
}

#[derive(Default)]
struct TypeCells {
    machine: OnceLock<&'static str>,
    times: SharedHistogram,
}

impl Default for HandlerCells {
    fn default() -> HandlerCells {
        let types = (0..=HandlerTimes::TYPES_MAX).map(|_| TypeCells::default()).collect();
        HandlerCells { types, last: AtomicUsize::new(0) }
    }
}

impl HandlerCells {
    pub(crate) fn record(&self, machine: &'static str, time: Duration) {
        let last = self.last.load(Relaxed);
        let is_last = self.types[last].machine.get().is_some_and(|known| ptr::eq(*known, machine));
        let index = if is_last { last } else { self.index_of(machine) };
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.types[index].times.note_single_writer(nanos);
    }

    /// Returns the index of a name, which is added if it is not found.
    #[cold]
    fn index_of(&self, machine: &'static str) -> usize {
        let (others, own) = self.types.split_last().expect("there is one more than `TYPES_MAX`");
        let found = own.iter().position(|one| *one.machine.get_or_init(|| machine) == machine);
        let index = found.unwrap_or_else(|| {
            others.machine.get_or_init(|| "others");
            own.len()
        });
        self.last.store(index, Relaxed);
        index
    }

    pub(crate) fn read(&self) -> Vec<HandlerTimes> {
        let named = self.types.iter().filter_map(|one| Some((*one.machine.get()?, &one.times)));
        named.map(|(machine, times)| HandlerTimes { machine, times: times.read() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_beyond_the_limit_are_counted_as_others() {
        let cells = HandlerCells::default();
        for number in 0..HandlerTimes::TYPES_MAX + 2 {
            let name = format!("type {number}").leak();
            cells.record(name, Duration::from_micros(1));
            cells.record(name, Duration::from_micros(2));
        }
        let read = cells.read();
        assert_eq!(read.len(), HandlerTimes::TYPES_MAX + 1);
        let entry = |at: usize| (read[at].machine, read[at].times.count(), read[at].times.sum());
        assert_eq!(entry(30), ("type 30", 2, Duration::from_micros(3)));
        assert_eq!(entry(31), ("others", 4, Duration::from_micros(6)));
    }

    #[test]
    fn equal_names_at_two_addresses_are_one_type() {
        let cells = HandlerCells::default();
        for name in ["a".to_owned().leak(), "b", "a".to_owned().leak()] {
            cells.record(name, Duration::ZERO);
        }
        let counts: Vec<_> = cells.read().iter().map(|one| one.times.count()).collect();
        assert_eq!(counts, [2, 1]);
    }
}
