//! Sequences of samples, one tick apart, and the finding at each.

use super::*;
use crate::blocking::thread_probe::CpuTimes;

const PATIENCE: Duration = Duration::from_millis(40);

/// What the thread did in a tick of 10 ms.
#[derive(Clone, Copy)]
enum Activity {
    /// It ran for this many ms, and waited for a CPU during the rest.
    Ran(u64),
    /// It was blocked in the kernel.
    Waited,
    /// The same, after waiting for a CPU for this many ms.
    QueuedThenWaited(u64),
    Unknown,
}

/// A watched loop that the test controls by hand.
struct FakeLoop {
    detector: StallDetector,
    now: Time,
    reading: Reading,
    ran: u64,
    queued: u64,
    changes: u64,
    acquired_at: Time,
    calls_before: u64,
    observed: u32,
}

impl FakeLoop {
    fn new() -> FakeLoop {
        let reading = Reading { polls: 2, token: None, call: 0 }.next_call();
        let detector = StallDetector::new(PATIENCE);
        FakeLoop {
            detector,
            now: Time::ZERO,
            reading,
            ran: 0,
            queued: 0,
            changes: 0,
            acquired_at: Time::ZERO,
            calls_before: reading.call_number(),
            observed: 0,
        }
    }

    /// Makes so many calls, and returns how long the last one may have waited after a tick, in ms.
    fn possible_wait(&mut self, calls: u32, activity: Activity) -> u128 {
        (0..calls).for_each(|_| self.call());
        self.tick(activity);
        self.detector.possible_wait().as_millis()
    }

    fn poll(&mut self) {
        self.reading.polls += 2;
    }

    fn call(&mut self) {
        self.reading = self.reading.next_call();
    }

    fn tick(&mut self, activity: Activity) -> Finding {
        self.now += PATIENCE / TICKS;
        let wait = Some(202);
        match activity {
            Activity::Ran(ms) => (self.ran, self.queued) = (self.ran + ms, self.queued + 10 - ms),
            Activity::QueuedThenWaited(ms) => self.queued += ms,
            Activity::Waited | Activity::Unknown => {}
        }
        let millis = Duration::from_millis;
        let times = CpuTimes { ran: millis(self.ran), queued: millis(self.queued) };
        let sample = match activity {
            Activity::Ran(_) => ThreadSample::Runnable(times),
            Activity::Waited | Activity::QueuedThenWaited(_) => {
                ThreadSample::Waiting { times, syscall: wait }
            }
            Activity::Unknown => ThreadSample::Unknown,
        };
        let (observed, changes) = (&mut self.observed, self.changes);
        let (acquired_at, calls_before) = (self.acquired_at, self.calls_before);
        self.detector.sample(self.now, self.reading, || {
            *observed += 1;
            ThreadObservation { changes, acquired_at, calls_before, sample }
        })
    }

    /// The loop moves to another thread, which has run for this many ms since it started.
    fn move_to_thread(&mut self, ran: u64) {
        (self.changes, self.ran) = (self.changes + 1, ran);
        (self.acquired_at, self.calls_before) = (self.now, self.reading.call_number());
    }

    fn ended(&mut self) -> Vec<EndedStall> {
        self.detector.take_ended().collect()
    }

    /// The findings of this many ticks, each with its number, counted from 1.
    fn ticks(&mut self, count: u32, activity: Activity) -> Vec<(u32, Finding)> {
        let found = (1..=count).map(|tick| (tick, self.tick(activity)));
        found.filter(|(_, finding)| *finding != Finding::Nothing).collect()
    }
}

fn first_report(millis: u64, calls: u64, thread: ThreadState) -> Finding {
    Finding::Stuck { time: Duration::from_millis(millis), calls, thread, is_repeated: false }
}

fn repeated_report(millis: u64, calls: u64, thread: ThreadState) -> Finding {
    Finding::Stuck { time: Duration::from_millis(millis), calls, thread, is_repeated: true }
}

const WAITING: ThreadState = ThreadState::Waiting { syscall: Some(202) };

#[test]
fn a_waiting_handler_is_reported_at_1_10_and_100_times_the_patience() {
    let mut fake = FakeLoop::new();
    let found = fake.ticks(1_000, Activity::Waited);
    let expected = [(6, first_report(50, 1, WAITING)), (42, repeated_report(410, 1, WAITING))];
    assert_eq!(found[..2], expected);
    let (tick, last) = found[2];
    assert!((402..=440).contains(&tick), "{found:?}");
    assert_eq!(last, repeated_report(u64::from(tick - 1) * 10, 1, WAITING));
    assert_eq!(found.len(), 3);
}

#[test]
fn a_watchdog_that_was_late_still_makes_each_report() {
    let mut fake = FakeLoop::new();
    assert_eq!(fake.ticks(2, Activity::Waited), []);
    fake.now += PATIENCE * 100;
    let found = fake.ticks(1_000, Activity::Waited);
    let expected = [first_report(4_020, 1, WAITING), repeated_report(4_030, 1, WAITING)];
    assert_eq!([found[0].1, found[1].1], expected);
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn the_possible_wait_of_a_first_call_starts_when_the_thread_got_the_loop() {
    let mut fake = FakeLoop::new();
    fake.ticks(2, Activity::Waited);
    fake.move_to_thread(0);
    let mut possible_wait = |calls: u32, activity| fake.possible_wait(calls, activity);
    assert_eq!(possible_wait(0, Activity::Waited), 0, "it is the call of the thread before");
    assert_eq!(possible_wait(1, Activity::Waited), 20);
    assert_eq!(possible_wait(1, Activity::Ran(10)), 0, "it computes");
    assert_eq!(possible_wait(2, Activity::Waited), 40);
    assert_eq!(possible_wait(1, Activity::Waited), 0, "it has made many");
}

#[test]
fn a_possible_wait_is_at_most_twice_as_long_as_the_call_was_seen() {
    let mut fake = FakeLoop::new();
    fake.possible_wait(1_000, Activity::Waited);
    assert_eq!(fake.possible_wait(1, Activity::Waited), 0, "it may have begun just now");
    assert_eq!(fake.possible_wait(0, Activity::Waited), 20, "or just after the tick before that");
    assert_eq!(fake.possible_wait(0, Activity::Waited), 30);
    assert_eq!(fake.possible_wait(0, Activity::Ran(10)), 0, "it computes");
    assert_eq!(fake.possible_wait(0, Activity::Waited), 50);
    fake.possible_wait(1, Activity::Ran(0));
    fake.possible_wait(0, Activity::Ran(0));
    assert_eq!(fake.possible_wait(0, Activity::QueuedThenWaited(9)), 2, "it had no CPU before");
    fake.now += PATIENCE * 100;
    assert_eq!(fake.possible_wait(1, Activity::Waited), 0, "the watchdog was late");
    assert_eq!(fake.possible_wait(0, Activity::Waited), 20);
    fake.poll();
    assert_eq!(fake.possible_wait(1, Activity::Waited), 0);
    assert_eq!(fake.possible_wait(0, Activity::Waited), 20);
}

#[test]
fn a_thread_is_rarely_sampled_between_reports_and_never_after_the_last() {
    let mut fake = FakeLoop::new();
    fake.ticks(1_000, Activity::Waited);
    let observed = fake.observed;
    assert!(observed < 100, "{observed}");
    fake.ticks(1_000, Activity::Waited);
    assert_eq!(fake.observed, observed);
}

#[test]
fn a_report_says_that_the_thread_computes_or_that_its_state_is_unknown() {
    for (activity, state) in
        [(Activity::Ran(10), ThreadState::Running), (Activity::Unknown, ThreadState::Unknown)]
    {
        assert_eq!(FakeLoop::new().ticks(10, activity), [(6, first_report(50, 1, state))]);
    }
}

#[test]
fn a_thread_without_cpu_is_counted_as_starved_once_and_not_reported() {
    for activity in [Activity::Ran(0), Activity::QueuedThenWaited(10)] {
        let mut fake = FakeLoop::new();
        assert_eq!(fake.ticks(1_000, activity), [(6, Finding::Starved)]);
        fake.poll();
        assert_eq!(fake.ticks(6, activity), [(6, Finding::Starved)], "and once more after a poll");
    }
}

#[test]
fn a_preempted_handler_is_reported_once_it_has_computed_for_the_patience() {
    let mut fake = FakeLoop::new();
    // 2.5 ms per tick would be a fraction: 10 ms in every fourth tick.
    let found: Vec<_> = (1..=24)
        .map(|tick| (tick, fake.tick(Activity::Ran(if tick % 4 == 0 { 10 } else { 0 }))))
        .filter(|(_, finding)| *finding != Finding::Nothing)
        .collect();
    assert_eq!(found, [(6, Finding::Starved), (16, first_report(150, 1, ThreadState::Preempted))]);
}

#[test]
fn less_than_the_patience_is_not_reported_and_a_poll_resets_the_time() {
    let mut fake = FakeLoop::new();
    for _ in 0..10 {
        assert_eq!(fake.ticks(5, Activity::Waited), []);
        fake.poll();
    }
    assert_eq!(fake.ticks(6, Activity::Waited).len(), 1);
}

#[test]
fn handlers_that_are_slow_together_are_reported_once_with_their_number() {
    let mut fake = FakeLoop::new();
    let mut found = Vec::new();
    for tick in 1..=20 {
        found.push((tick, fake.tick(Activity::Waited)));
        fake.call();
    }
    found.retain(|(_, finding)| *finding != Finding::Nothing);
    assert_eq!(found, [(6, first_report(50, 6, WAITING))]);
}

#[test]
fn the_number_of_calls_wraps_around() {
    let mut fake = FakeLoop::new();
    fake.reading.call = u64::MAX;
    let mut found = Vec::new();
    for _ in 1..=6 {
        found.push(fake.tick(Activity::Waited));
        fake.call();
    }
    assert_eq!(found.pop(), Some(first_report(50, 6, WAITING)));
}

#[test]
fn each_stuck_handler_is_reported_even_without_a_poll_between_them() {
    let mut fake = FakeLoop::new();
    assert_eq!(fake.ticks(6, Activity::Waited), [(6, first_report(50, 1, WAITING))]);
    fake.call();
    assert_eq!(fake.ticks(6, Activity::Waited), [(5, first_report(40, 1, WAITING))]);
}

#[test]
fn sleeping_and_polling_loops_are_not_sampled() {
    let mut fake = FakeLoop::new();
    fake.reading.polls |= 1;
    assert_eq!(fake.ticks(1_000, Activity::Waited), []);
    for _ in 0..100 {
        fake.poll();
        assert_eq!(fake.tick(Activity::Ran(10)), Finding::Nothing);
    }
    assert_eq!(fake.observed, 0);
}

#[test]
fn the_lag_is_the_time_since_the_poll_and_zero_during_sleep() {
    let mut fake = FakeLoop::new();
    fake.ticks(4, Activity::Ran(0));
    assert_eq!(fake.detector.lag(fake.now), Duration::from_millis(30));
    fake.poll();
    fake.tick(Activity::Ran(0));
    assert_eq!(fake.detector.lag(fake.now), Duration::ZERO);
    fake.reading.polls |= 1;
    fake.ticks(4, Activity::Waited);
    assert_eq!(fake.detector.lag(fake.now), Duration::ZERO);
}

#[test]
fn the_times_of_two_threads_are_not_compared() {
    for ran in [50_000, 0] {
        let mut fake = FakeLoop::new();
        fake.ran = 10_000;
        for _ in 0..20 {
            assert_eq!(fake.ticks(3, Activity::Ran(10)), [], "{ran}");
            fake.poll();
            assert_eq!(fake.ticks(3, Activity::Ran(10)), [], "{ran}");
            fake.call();
            fake.move_to_thread(ran);
            assert_eq!(fake.tick(Activity::Ran(10)), Finding::Nothing, "{ran}");
            fake.poll();
        }
    }
}

#[test]
fn the_time_of_the_previous_thread_counts_until_the_next_poll() {
    let mut fake = FakeLoop::new();
    assert_eq!(fake.ticks(4, Activity::Ran(10)), []);
    fake.call();
    fake.move_to_thread(0);
    // 20 ms of the first thread were observed, then 20 ms of the second, with one tick in between.
    assert_eq!(fake.ticks(4, Activity::Ran(10)), [(3, first_report(60, 2, ThreadState::Running))]);
}

#[test]
fn only_the_end_of_a_reported_stall_is_reported_and_only_once() {
    let mut fake = FakeLoop::new();
    fake.poll();
    assert!(fake.ticks(3, Activity::Ran(10)).is_empty());
    fake.poll();
    fake.tick(Activity::Ran(10));
    assert_eq!(fake.ended(), [], "it was not reported");
    assert_eq!(fake.ticks(8, Activity::Ran(10)).len(), 1);
    assert_eq!(fake.ended(), [], "it goes on");
    let reading = fake.reading;
    fake.poll();
    fake.call();
    fake.tick(Activity::Ran(10));
    assert_eq!(fake.ended(), [EndedStall { reading, time: Duration::from_millis(90), calls: 1 }]);
    fake.poll();
    fake.tick(Activity::Ran(10));
    assert_eq!(fake.ended(), []);
}

#[test]
fn repeated_reports_belong_to_one_stall_that_ends_once() {
    let mut fake = FakeLoop::new();
    let found = fake.ticks(1_000, Activity::Waited);
    let again = found
        .iter()
        .map(|(_, finding)| matches!(finding, Finding::Stuck { is_repeated: true, .. }));
    assert_eq!(again.collect::<Vec<_>>(), [false, true, true]);
    fake.poll();
    fake.tick(Activity::Waited);
    assert_eq!(fake.ended().len(), 1);
}

#[test]
fn a_stall_ends_when_another_handler_is_called_without_a_poll() {
    let mut fake = FakeLoop::new();
    assert_eq!(fake.ticks(6, Activity::Waited), [(6, first_report(50, 1, WAITING))]);
    let first = fake.reading;
    fake.call();
    assert_eq!(fake.tick(Activity::Waited), Finding::Nothing);
    assert_eq!(
        fake.ended(),
        [EndedStall { reading: first, time: Duration::from_millis(60), calls: 1 }]
    );
    assert_eq!(
        fake.ticks(5, Activity::Waited),
        [(4, first_report(40, 1, WAITING))],
        "one of its own"
    );
    assert_eq!(fake.ended(), []);
    fake.poll();
    fake.tick(Activity::Waited);
    assert_eq!(fake.ended().len(), 1);
}

#[test]
fn a_stall_of_the_loop_is_reported_beside_the_stall_of_one_handler() {
    let mut fake = FakeLoop::new();
    assert_eq!(fake.ticks(6, Activity::Waited), [(6, first_report(50, 1, WAITING))]);
    // Short calls follow, without a poll: at 10 times the patience the stall is the loop's.
    let mut found = Vec::new();
    for _ in 0..60 {
        fake.call();
        found.push(fake.tick(Activity::Waited));
        fake.ended();
    }
    found.retain(|finding| *finding != Finding::Nothing);
    let [Finding::Stuck { calls, is_repeated: false, .. }] = found[..] else { panic!("{found:?}") };
    assert!(calls > 30, "{calls}");
    // After them a call gets stuck: the poll ends both stalls.
    fake.call();
    assert_eq!(fake.ticks(7, Activity::Waited), [(5, first_report(40, 1, WAITING))]);
    fake.poll();
    fake.tick(Activity::Waited);
    let ended: Vec<u64> = fake.ended().iter().map(|ended| ended.calls).collect();
    assert_eq!(ended, [1, calls]);
}
