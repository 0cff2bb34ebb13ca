//! Rows of samples, a tick apart, and what is said at each.

use super::*;
use crate::blocking::thread_probe::CpuTimes;

const PATIENCE: Duration = Duration::from_millis(40);

/// What the thread did in a tick of 10 ms.
#[derive(Clone, Copy)]
enum Did {
    /// It had the CPU, for so many ms, and waited for it in the others.
    Ran(u64),
    /// It waited in the kernel.
    Waited,
    /// The same, after so many ms in which it waited for a CPU.
    QueuedThenWaited(u64),
    Unknown,
}

/// A loop that is watched, by hand.
struct Bench {
    patience: Patience,
    now: Time,
    reading: Reading,
    ran: u64,
    queued: u64,
    changes: u64,
    came: Time,
    calls_before: u64,
    asked: u32,
}

impl Bench {
    fn new() -> Bench {
        let reading = Reading { looks: 2, token: None, call: 0 }.next_call();
        let patience = Patience::new(PATIENCE);
        Bench {
            patience,
            now: Time::ZERO,
            reading,
            ran: 0,
            queued: 0,
            changes: 0,
            came: Time::ZERO,
            calls_before: reading.calls(),
            asked: 0,
        }
    }

    fn polls(&mut self) {
        self.reading.looks += 2;
    }

    fn calls(&mut self) {
        self.reading = self.reading.next_call();
    }

    fn tick(&mut self, did: Did) -> Finding {
        self.now += PATIENCE / TICKS;
        let wait = Some(202);
        match did {
            Did::Ran(ms) => (self.ran, self.queued) = (self.ran + ms, self.queued + 10 - ms),
            Did::QueuedThenWaited(ms) => self.queued += ms,
            Did::Waited | Did::Unknown => {}
        }
        let millis = Duration::from_millis;
        let times = CpuTimes { ran: millis(self.ran), queued: millis(self.queued) };
        let sample = match did {
            Did::Ran(_) => ThreadSample::Runnable(times),
            Did::Waited | Did::QueuedThenWaited(_) => {
                ThreadSample::Waiting { times, syscall: wait }
            }
            Did::Unknown => ThreadSample::Unknown,
        };
        let (asked, changes) = (&mut self.asked, self.changes);
        let (came, calls_before) = (self.came, self.calls_before);
        self.patience.sample(self.now, self.reading, || {
            *asked += 1;
            Asked { changes, came, calls_before, sample }
        })
    }

    /// The loop comes to another thread, which has had the CPU for so many ms since it began.
    fn comes_to(&mut self, ran: u64) {
        (self.changes, self.ran) = (self.changes + 1, ran);
        (self.came, self.calls_before) = (self.now, self.reading.calls());
    }

    fn over(&mut self) -> Vec<Over> {
        self.patience.take_over().collect()
    }

    /// The findings of so many ticks, each with its number from 1.
    fn ticks(&mut self, count: u32, did: Did) -> Vec<(u32, Finding)> {
        let found = (1..=count).map(|tick| (tick, self.tick(did)));
        found.filter(|(_, finding)| *finding != Finding::Nothing).collect()
    }
}

fn stuck(millis: u64, calls: u64, thread: ThreadState) -> Finding {
    Finding::Stuck { time: Duration::from_millis(millis), calls, thread, is_again: false }
}

fn still(millis: u64, calls: u64, thread: ThreadState) -> Finding {
    Finding::Stuck { time: Duration::from_millis(millis), calls, thread, is_again: true }
}

const WAITING: ThreadState = ThreadState::Waiting { syscall: Some(202) };

#[test]
fn a_handler_that_waits_is_reported_at_one_ten_and_a_hundred_times_the_patience() {
    let mut bench = Bench::new();
    let found = bench.ticks(1_000, Did::Waited);
    let expected = [(6, stuck(50, 1, WAITING)), (42, still(410, 1, WAITING))];
    assert_eq!(found[..2], expected);
    let (tick, last) = found[2];
    assert!((402..=440).contains(&tick), "{found:?}");
    assert_eq!(last, still(u64::from(tick - 1) * 10, 1, WAITING));
    assert_eq!(found.len(), 3);
}

#[test]
fn a_call_that_waits_has_done_so_since_its_thread_came_at_the_most() {
    let mut bench = Bench::new();
    bench.ticks(2, Did::Waited);
    bench.comes_to(0);
    let mut unseen = |calls: u32, did| {
        (0..calls).for_each(|_| bench.calls());
        bench.tick(did);
        bench.patience.unseen_time().as_millis()
    };
    assert_eq!(unseen(0, Did::Waited), 0, "it is the call of the thread before");
    assert_eq!(unseen(1, Did::Waited), 20);
    assert_eq!(unseen(1, Did::Ran(10)), 0, "it computes");
    assert_eq!(unseen(2, Did::Waited), 40);
    assert_eq!(unseen(1, Did::Waited), 0, "it has made many");
}

#[test]
fn its_thread_is_asked_seldom_between_the_reports_and_not_after_the_last() {
    let mut bench = Bench::new();
    bench.ticks(1_000, Did::Waited);
    let asked = bench.asked;
    assert!(asked < 100, "{asked}");
    bench.ticks(1_000, Did::Waited);
    assert_eq!(bench.asked, asked);
}

#[test]
fn one_that_computes_is_reported_as_that_and_one_of_which_nothing_is_known_as_that() {
    for (did, state) in [(Did::Ran(10), ThreadState::Running), (Did::Unknown, ThreadState::Unknown)]
    {
        assert_eq!(Bench::new().ticks(10, did), [(6, stuck(50, 1, state))]);
    }
}

#[test]
fn one_that_got_no_cpu_is_counted_once_and_not_reported() {
    for did in [Did::Ran(0), Did::QueuedThenWaited(10)] {
        let mut bench = Bench::new();
        assert_eq!(bench.ticks(1_000, did), [(6, Finding::Starved)]);
        bench.polls();
        assert_eq!(bench.ticks(6, did), [(6, Finding::Starved)], "and once more after a poll");
    }
}

#[test]
fn one_that_got_a_quarter_of_a_cpu_is_reported_when_it_has_computed_for_the_patience() {
    let mut bench = Bench::new();
    // 2.5 ms a tick would be fractions: 10 ms in every fourth.
    let found: Vec<_> = (1..=24)
        .map(|tick| (tick, bench.tick(Did::Ran(if tick % 4 == 0 { 10 } else { 0 }))))
        .filter(|(_, finding)| *finding != Finding::Nothing)
        .collect();
    assert_eq!(found, [(6, Finding::Starved), (16, stuck(150, 1, ThreadState::Preempted))]);
}

#[test]
fn just_less_than_the_patience_is_nothing_and_a_poll_begins_anew() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        assert_eq!(bench.ticks(5, Did::Waited), []);
        bench.polls();
    }
    assert_eq!(bench.ticks(6, Did::Waited).len(), 1);
}

#[test]
fn many_handlers_that_take_long_together_are_reported_once_with_their_number() {
    let mut bench = Bench::new();
    let mut found = Vec::new();
    for tick in 1..=20 {
        found.push((tick, bench.tick(Did::Waited)));
        bench.calls();
    }
    found.retain(|(_, finding)| *finding != Finding::Nothing);
    assert_eq!(found, [(6, stuck(50, 6, WAITING))]);
}

#[test]
fn the_number_of_calls_goes_round() {
    let mut bench = Bench::new();
    bench.reading.call = u64::MAX;
    let mut found = Vec::new();
    for _ in 1..=6 {
        found.push(bench.tick(Did::Waited));
        bench.calls();
    }
    assert_eq!(found.pop(), Some(stuck(50, 6, WAITING)));
}

#[test]
fn each_handler_that_is_stuck_is_reported_also_where_the_loop_does_not_poll_between_them() {
    let mut bench = Bench::new();
    assert_eq!(bench.ticks(6, Did::Waited), [(6, stuck(50, 1, WAITING))]);
    bench.calls();
    assert_eq!(bench.ticks(6, Did::Waited), [(5, stuck(40, 1, WAITING))]);
}

#[test]
fn a_loop_that_sleeps_is_not_asked_about_and_one_that_is_awake_and_polls_is_not_either() {
    let mut bench = Bench::new();
    bench.reading.looks |= 1;
    assert_eq!(bench.ticks(1_000, Did::Waited), []);
    for _ in 0..100 {
        bench.polls();
        assert_eq!(bench.tick(Did::Ran(10)), Finding::Nothing);
    }
    assert_eq!(bench.asked, 0);
}

#[test]
fn the_lag_is_the_time_since_the_poll_and_none_while_the_loop_sleeps() {
    let mut bench = Bench::new();
    bench.ticks(4, Did::Ran(0));
    assert_eq!(bench.patience.lag(bench.now), Duration::from_millis(30));
    bench.polls();
    bench.tick(Did::Ran(0));
    assert_eq!(bench.patience.lag(bench.now), Duration::ZERO);
    bench.reading.looks |= 1;
    bench.ticks(4, Did::Waited);
    assert_eq!(bench.patience.lag(bench.now), Duration::ZERO);
}

#[test]
fn the_times_of_two_threads_are_not_compared() {
    for ran in [50_000, 0] {
        let mut bench = Bench::new();
        bench.ran = 10_000;
        for _ in 0..20 {
            assert_eq!(bench.ticks(3, Did::Ran(10)), [], "{ran}");
            bench.polls();
            assert_eq!(bench.ticks(3, Did::Ran(10)), [], "{ran}");
            bench.calls();
            bench.comes_to(ran);
            assert_eq!(bench.tick(Did::Ran(10)), Finding::Nothing, "{ran}");
            bench.polls();
        }
    }
}

#[test]
fn the_first_thread_s_time_counts_on_where_another_goes_on_without_a_poll() {
    let mut bench = Bench::new();
    assert_eq!(bench.ticks(4, Did::Ran(10)), []);
    bench.calls();
    bench.comes_to(0);
    // 20 ms of the first thread's were seen, then 20 of the second's, and one tick between.
    assert_eq!(bench.ticks(4, Did::Ran(10)), [(3, stuck(60, 2, ThreadState::Running))]);
}

#[test]
fn the_end_of_what_was_reported_is_told_once_and_no_other() {
    let mut bench = Bench::new();
    bench.polls();
    assert!(bench.ticks(3, Did::Ran(10)).is_empty());
    bench.polls();
    bench.tick(Did::Ran(10));
    assert_eq!(bench.over(), [], "it was not reported");
    assert_eq!(bench.ticks(8, Did::Ran(10)).len(), 1);
    assert_eq!(bench.over(), [], "it goes on");
    let reading = bench.reading;
    bench.polls();
    bench.calls();
    bench.tick(Did::Ran(10));
    assert_eq!(bench.over(), [Over { reading, time: Duration::from_millis(90), calls: 1 }]);
    bench.polls();
    bench.tick(Did::Ran(10));
    assert_eq!(bench.over(), []);
}

#[test]
fn what_is_reported_again_has_one_beginning_and_one_end() {
    let mut bench = Bench::new();
    let found = bench.ticks(1_000, Did::Waited);
    let again =
        found.iter().map(|(_, finding)| matches!(finding, Finding::Stuck { is_again: true, .. }));
    assert_eq!(again.collect::<Vec<_>>(), [false, true, true]);
    bench.polls();
    bench.tick(Did::Waited);
    assert_eq!(bench.over().len(), 1);
}

#[test]
fn a_handler_s_stall_is_over_when_another_is_called_before_a_poll() {
    let mut bench = Bench::new();
    assert_eq!(bench.ticks(6, Did::Waited), [(6, stuck(50, 1, WAITING))]);
    let first = bench.reading;
    bench.calls();
    assert_eq!(bench.tick(Did::Waited), Finding::Nothing);
    assert_eq!(bench.over(), [Over { reading: first, time: Duration::from_millis(60), calls: 1 }]);
    assert_eq!(bench.ticks(5, Did::Waited), [(4, stuck(40, 1, WAITING))], "one of its own");
    assert_eq!(bench.over(), []);
    bench.polls();
    bench.tick(Did::Waited);
    assert_eq!(bench.over().len(), 1);
}

#[test]
fn what_many_take_together_is_a_stall_of_the_loop_beside_that_of_one_of_them() {
    let mut bench = Bench::new();
    assert_eq!(bench.ticks(6, Did::Waited), [(6, stuck(50, 1, WAITING))]);
    // Short ones follow, without a poll: at 10 times the patience it is the loop's.
    let mut found = Vec::new();
    for _ in 0..60 {
        bench.calls();
        found.push(bench.tick(Did::Waited));
        bench.over();
    }
    found.retain(|finding| *finding != Finding::Nothing);
    let [Finding::Stuck { calls, is_again: false, .. }] = found[..] else { panic!("{found:?}") };
    assert!(calls > 30, "{calls}");
    // And one that is stuck at the end of them: both are over with the poll.
    bench.calls();
    assert_eq!(bench.ticks(7, Did::Waited), [(5, stuck(40, 1, WAITING))]);
    bench.polls();
    bench.tick(Did::Waited);
    let over: Vec<u64> = bench.over().iter().map(|over| over.calls).collect();
    assert_eq!(over, [1, calls]);
}
