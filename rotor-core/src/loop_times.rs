//! `LoopTimes`: what a loop does with its time: how long its turns take, how late its deadlines
//! fire, and which handlers take how long. Written by the loop alone, and read from any thread.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::handler_times::{HandlerCells, HandlerTimes};
use crate::histogram::Histogram;
use crate::shared_histogram::SharedHistogram;
use crate::time::Time;

/// What a loop has done with its time since it was made:
/// [`StatsHandle::times`](crate::StatsHandle::times).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LoopTimes {
    /// Time within turns, without their waits, of all turns that have ended.
    #[doc(alias = "ELU")]
    pub busy: Duration,
    /// Time between turns, up to the last turn that has ended: the loop waited for events or, if it
    /// is [embedded](crate::LoopInstance::turn), for its caller.
    pub waited: Duration,
    /// When the current turn began; `None` between turns. If it began long ago, the loop is held up
    /// by a handler.
    pub in_turn_since: Option<Time>,
    /// When the last turn ended.
    pub last_turn_ended: Time,
    /// How long turns took, without their waits. If a handler that was away finishes between two
    /// turns, that work counts as a turn.
    #[doc(alias = "event loop delay")]
    pub turns: Histogram,
    /// How late deadlines were when they fired. Up to one [`TICK`](crate::TICK) is the resolution
    /// of the clock. Deadlines that had passed when they were set are not counted.
    #[doc(alias = "loop lag")]
    pub lag: Histogram,
    /// How long handlers took, by type of machine: in all turns with
    /// [`Config::time_handlers`](crate::Config::time_handlers), otherwise in a sample
    /// ([`Config::sample_handlers`](crate::Config::sample_handlers)).
    pub handlers: Vec<HandlerTimes>,
}

impl LoopTimes {
    /// Returns the share of its time in which the loop was busy since `earlier` was read, a number
    /// from 0 to 1: at 0.99, for example, the loop could serve about one hundredth more. Returns
    /// `None` if no turn has ended since then.
    #[doc(alias = "utilization")]
    pub fn utilisation(&self, earlier: &LoopTimes) -> Option<f64> {
        let busy = self.busy.saturating_sub(earlier.busy).as_secs_f64();
        let all = busy + self.waited.saturating_sub(earlier.waited).as_secs_f64();
        (all > 0.0).then(|| busy / all)
    }
}

/// The times of one loop. Only the loop writes them, except for the longest turn, which a reader
/// can take.
#[derive(Default)]
pub(crate) struct TimeCells {
    turn_started: AtomicU64,
    /// Before the first turn, when the loop was made.
    turn_ended: AtomicU64,
    /// The time between turns. It has a cell of its own: a reader that subtracted the time within
    /// turns from the age of the loop could come between the two stores, and see it decrease.
    waited: AtomicU64,
    turns: SharedHistogram,
    lag: SharedHistogram,
    /// The longest turn since a reader last took it.
    longest: AtomicU64,
    /// The longest turn that any reader took.
    longest_taken: AtomicU64,
    pub(crate) handlers: HandlerCells,
}

impl TimeCells {
    pub(crate) fn set_created(&self, now: Time) {
        self.turn_ended.store(now.as_nanos(), Relaxed);
    }

    /// Records that a turn has waited and begins now.
    #[inline]
    pub(crate) fn record_turn_start(&self, now: Time) {
        self.turn_started.store(now.as_nanos(), Relaxed);
    }

    /// Records that a turn is over. Everything is in nanoseconds, because making a `Duration` costs
    /// a division.
    #[inline]
    pub(crate) fn record_turn_end(&self, turn_started: Time, end: Time) {
        let took = end.as_nanos().saturating_sub(turn_started.as_nanos());
        self.turns.note_single_writer(took);
        let waited = turn_started.as_nanos().saturating_sub(self.turn_ended.load(Relaxed));
        self.waited.store(self.waited.load(Relaxed).wrapping_add(waited), Relaxed);
        self.turn_ended.store(end.as_nanos(), Relaxed);
        // A reader may take the value in between. Then the value that it took is reported twice, or
        // a shorter one is lost for the next period.
        if took > self.longest.load(Relaxed) {
            self.longest.store(took, Relaxed);
        }
    }

    /// Records that a deadline fires.
    pub(crate) fn record_lag(&self, deadline: Time, now: Time) {
        self.lag.note_single_writer(now.as_nanos().saturating_sub(deadline.as_nanos()));
    }

    /// Records how long a handler took, in a turn whose handlers are timed.
    pub(crate) fn record_handler(&self, machine: &'static str, time: Duration) {
        self.handlers.record(machine, time);
    }

    /// Returns the longest turn since the loop was made.
    pub(crate) fn longest(&self) -> Duration {
        let taken = self.longest_taken.load(Relaxed);
        Duration::from_nanos(taken.max(self.longest.load(Relaxed)))
    }

    /// Returns the longest turn since the last call of this method.
    pub(crate) fn take_longest(&self) -> Duration {
        // Recorded first, so that a concurrent `longest` finds the value in one place or the other.
        self.longest_taken.fetch_max(self.longest.load(Relaxed), Relaxed);
        let taken = self.longest.swap(0, Relaxed);
        self.longest_taken.fetch_max(taken, Relaxed);
        Duration::from_nanos(taken)
    }

    pub(crate) fn read(&self) -> LoopTimes {
        let turn_ended = self.turn_ended.load(Relaxed);
        let turn_started = self.turn_started.load(Relaxed);
        let turns = self.turns.read();
        LoopTimes {
            busy: turns.sum(),
            waited: Duration::from_nanos(self.waited.load(Relaxed)),
            in_turn_since: (turn_started > turn_ended).then_some(Time::from_nanos(turn_started)),
            last_turn_ended: Time::from_nanos(turn_ended),
            turns,
            lag: self.lag.read(),
            handlers: self.handlers.read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn time_outside_turns_counts_as_waited() {
        let cells = TimeCells::default();
        cells.set_created(at(100));
        let before = cells.read();
        assert_eq!((before.busy, before.waited), (Duration::ZERO, Duration::ZERO));
        assert_eq!(before.utilisation(&before), None);
        cells.record_turn_start(at(130));
        assert_eq!(cells.read().in_turn_since, Some(at(130)));
        cells.record_turn_end(at(130), at(140));
        let after = cells.read();
        assert_eq!((after.busy.as_millis(), after.waited.as_millis()), (10, 30));
        assert_eq!((after.in_turn_since, after.last_turn_ended), (None, at(140)));
        assert_eq!(after.utilisation(&before), Some(0.25));
        assert_eq!(after.turns.count(), 1);
    }

    #[test]
    fn waited_time_does_not_decrease_while_the_end_of_a_turn_is_recorded() {
        let cells = TimeCells::default();
        cells.record_turn_start(at(10));
        cells.record_turn_end(at(10), at(11));
        let before = cells.read();
        cells.record_turn_start(at(12));
        // The first of the stores that end a turn of 20 ms. A reader may come between them.
        cells.turns.note_single_writer(20_000_000);
        let after = cells.read();
        assert_eq!((before.waited.as_millis(), after.waited.as_millis()), (10, 10));
    }

    #[test]
    fn take_longest_resets_but_longest_keeps_the_maximum() {
        let cells = TimeCells::default();
        cells.record_turn_end(at(0), at(7));
        cells.record_turn_end(at(10), at(13));
        assert_eq!(cells.longest(), Duration::from_millis(7));
        assert_eq!(cells.take_longest(), Duration::from_millis(7));
        cells.record_turn_end(at(20), at(22));
        assert_eq!(cells.longest(), Duration::from_millis(7));
        assert_eq!(cells.take_longest(), Duration::from_millis(2));
        assert_eq!(cells.take_longest(), Duration::ZERO);
    }

    #[test]
    fn the_lag_is_the_delay_of_a_fired_deadline() {
        let cells = TimeCells::default();
        cells.record_lag(at(5), at(8));
        cells.record_lag(at(5), at(5));
        let lag = cells.read().lag;
        assert_eq!((lag.count(), lag.sum()), (2, Duration::from_millis(3)));
    }
}
