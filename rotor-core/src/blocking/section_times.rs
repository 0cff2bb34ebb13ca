//! `SectionTimes`: how long blocking sections took, by type of machine. This tells whether the next
//! section is worth a thread.

use std::ptr;
use std::time::Duration;

/// The moving averages for all types that have had a section.
#[derive(Default)]
pub(crate) struct SectionTimes(Vec<(&'static str, Duration)>);

/// The weight of the latest section in the average is one over this.
const WEIGHT: u32 = 8;

impl SectionTimes {
    /// Returns whether the sections of this type took less than `patience` on average. Returns
    /// `false` for a type that has had none.
    pub(crate) fn are_short(&self, machine: &'static str, patience: Duration) -> bool {
        let known = self.0.iter().find(|(known, _)| is_same(known, machine));
        known.is_some_and(|(_, average)| *average < patience)
    }

    /// Records how long a section of this type took.
    pub(crate) fn record(&mut self, machine: &'static str, took: Duration) {
        if let Some((_, average)) = self.0.iter_mut().find(|(known, _)| is_same(known, machine)) {
            *average = (*average * (WEIGHT - 1) + took) / WEIGHT;
        } else if self.0.len() < TYPES_MAX {
            // A program has few types of machines. If names are made up at run time, those beyond
            // the limit are not remembered.
            self.0.push((machine, took));
        }
    }
}

const TYPES_MAX: usize = 1_024;

fn is_same(known: &'static str, machine: &'static str) -> bool {
    ptr::eq(known, machine) || known == machine
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_micros(50);

    #[test]
    fn a_type_is_short_while_its_average_is_below_the_patience() {
        let mut times = SectionTimes::default();
        assert!(!times.are_short("a", PATIENCE));
        times.record("a", Duration::from_micros(1));
        assert!(times.are_short("a", PATIENCE) && !times.are_short("b", PATIENCE));
        times.record("a", Duration::from_millis(1));
        assert!(!times.are_short("a", PATIENCE));
        for _ in 0..20 {
            times.record("a", Duration::from_micros(1));
        }
        assert!(times.are_short("a", PATIENCE));
        assert!(!times.are_short("a", Duration::ZERO));
    }

    #[test]
    fn the_number_of_known_types_is_limited() {
        let mut times = SectionTimes::default();
        for number in 0..TYPES_MAX + 1 {
            times.record(format!("type {number}").leak(), Duration::ZERO);
        }
        assert!(times.are_short("type 1023", PATIENCE) && !times.are_short("type 1024", PATIENCE));
    }
}
