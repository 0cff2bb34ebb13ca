//! Permits, locks, barriers and bells: one FIFO queue, which a machine leaves when it ends.

mod senders;

use std::thread;
use std::time::Duration;

use rotor_core::{
    Barrier, BarrierReached, Bell, Config, EventSet, ExitPolicy, Future, FutureError, Job, Lock,
    LockGuard, LoopInstance, Outcome, Permit, Permits, Response, Scope, Token,
};

use crate::actor::{Actor, Call, actor};
use crate::manual::{Manual, settle};

/// The machines that were woken, in order.
#[derive(Default)]
struct World {
    woken: Vec<Token>,
}

struct TestLoop {
    manual: Manual,
    instance: LoopInstance<Actor<World>, Manual>,
}

impl TestLoop {
    fn new() -> TestLoop {
        let manual = Manual::new();
        let config = Config::new().exit(ExitPolicy::OnRequest);
        let instance = manual.creator(&config).instantiate(World::default());
        TestLoop { manual, instance }
    }

    /// Makes a machine that asks for something; an event ends it.
    fn ask<V>(&mut self, ask: impl FnOnce(&Scope<'_, World>) -> V) -> (Token, V) {
        let mut asked = None;
        let made = self.instance.add_machine_with(|scope| {
            asked = Some(ask(scope));
            Response::ok(actor(|call, scope: &mut Scope<'_, World>| match call {
                Call::Ready(_) => Response::done(),
                _ => {
                    let token = scope.token();
                    scope.woken.push(token);
                    Response::keep(())
                }
            }))
        });
        (made.expect("there is room"), asked.expect("the closure ran"))
    }

    fn end(&mut self, token: Token) {
        self.manual.feed(token, EventSet::READABLE);
        settle(&mut self.instance);
    }

    fn woken(&mut self) -> Vec<Token> {
        settle(&mut self.instance);
        std::mem::take(&mut self.instance.context_mut().woken)
    }
}

fn value<V>(future: Future<V>) -> V {
    match future.take() {
        Outcome::Value(value) => value,
        Outcome::Pending(_) => panic!("it is not there"),
        Outcome::Lost(lost) => panic!("{lost}"),
    }
}

fn lost<V>(future: Future<V>) -> FutureError {
    match future.take() {
        Outcome::Lost(lost) => lost,
        _ => panic!("it is not lost"),
    }
}

#[test]
fn permits_are_granted_in_the_order_of_the_requests() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    let (first, held) = test_loop.ask(|scope| permits.ask(scope));
    assert_eq!(test_loop.woken(), [first], "it is there at once");
    let mut held = value(held);
    held.note_used();
    let (second, waits) = test_loop.ask(|scope| permits.ask(scope));
    let (third, waits_longer) = test_loop.ask(|scope| permits.ask(scope));
    assert_eq!((permits.available(), permits.waiting()), (0, 2));
    assert!(test_loop.woken().is_empty() && permits.try_take().is_none());
    drop(held);
    assert_eq!(test_loop.woken(), [second]);
    assert!(permits.try_take().is_none(), "nobody gets ahead of those who wait");
    drop(value(waits));
    assert_eq!(test_loop.woken(), [third]);
    drop(value(waits_longer));
    assert_eq!((permits.available(), permits.waiting()), (1, 0));
    assert!(permits.try_take().is_some());
    assert_eq!(format!("{permits:?}"), "Permits(1 free, 0 wait)");
}

#[test]
fn dropping_a_future_leaves_the_queue_and_passes_its_permit_on() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    let held = permits.try_take().expect("it is free");
    let (_, leaves) = test_loop.ask(|scope| permits.ask(scope));
    let (given, has_it) = test_loop.ask(|scope| permits.ask(scope));
    let (last, waits) = test_loop.ask(|scope| permits.ask(scope));
    drop(leaves);
    assert_eq!((permits.waiting(), permits.stats().left), (2, 1));
    drop(held);
    assert_eq!(test_loop.woken(), [given]);
    drop(has_it);
    assert_eq!(test_loop.woken(), [last], "it came to a machine that did not take it");
    let mut permit = value(waits);
    assert_eq!(permit.run(|| 7), 7);
    drop(permit);
    let stats = permits.stats();
    assert_eq!((stats.available, stats.waited, stats.waiting_most), (1, 3, 3));
    assert_eq!(stats.unused, 2, "two came back without having been used");
}

#[test]
fn a_permit_skips_machines_that_have_ended() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    let held = permits.try_take().expect("it is free");
    let gone: Vec<_> = (0..10_000).map(|_| test_loop.ask(|scope| permits.ask(scope))).collect();
    let (last, waits) = test_loop.ask(|scope| permits.ask(scope));
    for (token, _) in &gone {
        test_loop.manual.feed(*token, EventSet::READABLE);
    }
    settle(&mut test_loop.instance);
    drop(held);
    assert_eq!(test_loop.woken(), [last]);
    assert!(value::<Permit>(waits).run(|| true));
    assert_eq!((permits.available(), permits.stats().left), (1, 10_000));
}

#[test]
fn the_number_of_permits_may_change_while_some_are_held() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(0));
    assert!(permits.try_take().is_none());
    let asked: Vec<_> = (0..3).map(|_| test_loop.ask(|scope| permits.ask(scope)).1).collect();
    permits.set(2);
    let ready: Vec<bool> = asked.iter().map(Future::is_ready).collect();
    assert_eq!(ready, [true, true, false]);
    permits.set(1);
    let mut asked = asked.into_iter();
    drop(asked.next().map(value));
    assert!(!asked.as_slice()[1].is_ready(), "one too many was out");
    drop(asked.next().map(value));
    let last = value(asked.next().expect("there are three"));
    permits.set(0);
    permits.set(3);
    assert_eq!(permits.available(), 2);
    drop(last);
    assert_eq!(permits.available(), 3);
    permits.set(1);
    assert_eq!((permits.available(), permits.waiting()), (1, 0));
}

#[test]
fn closed_permits_are_not_granted_and_held_ones_stay_valid() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    let mut held = permits.try_take().expect("it is free");
    let (waiting, waits) = test_loop.ask(|scope| permits.ask(scope));
    permits.close();
    assert_eq!(test_loop.woken(), [waiting]);
    assert_eq!(lost(waits), FutureError::Cancelled);
    let (late, refused) = test_loop.ask(|scope| permits.ask(scope));
    assert_eq!((lost(refused), test_loop.woken()), (FutureError::Cancelled, vec![late]));
    held.note_used();
    drop(held);
    assert!(permits.try_take().is_none());
    permits.set(7);
    permits.close();
    assert!(permits.try_take().is_none());
}

#[test]
fn a_permit_skips_requests_whose_time_limit_has_passed() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    let held = permits.try_take().expect("it is free");
    let second = Duration::from_secs(1);
    let (late, too_late) = test_loop.ask(|scope| permits.ask_until(scope.now() + second, scope));
    test_loop.manual.advance(second * 2);
    let (in_time, waits) = test_loop.ask(|scope| permits.ask_until(scope.now() + second, scope));
    drop(held);
    assert_eq!(test_loop.woken(), [late, in_time]);
    assert_eq!(lost(too_late), FutureError::Late);
    drop(value(waits));
    assert_eq!((permits.available(), permits.waiting()), (1, 0));
}

#[test]
fn a_time_limit_in_the_past_is_late_even_if_a_permit_is_free() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    test_loop.manual.advance(Duration::from_secs(1));
    let (now, at_once) = test_loop.ask(|scope| permits.ask_until(scope.now(), scope));
    drop(value(at_once));
    let (passed, too_late) = test_loop.ask(|scope| {
        let before = scope.now() - Duration::from_nanos(1);
        permits.ask_until(before, scope)
    });
    assert_eq!(test_loop.woken(), [now, passed]);
    assert_eq!(lost(too_late), FutureError::Late);
    let stats = permits.stats();
    assert_eq!((stats.available, stats.waited, stats.left), (1, 0, 0));
}

#[test]
fn waiters_of_a_dropped_loop_leave_the_queue_for_permits() {
    let (mut test_loop, permits) = (TestLoop::new(), Permits::new(1));
    let held = permits.try_take().expect("it is free");
    let (_, within) = test_loop.ask(|scope| permits.ask(scope));
    let mut other = TestLoop::new();
    let (waiting, waits) = other.ask(|scope| permits.ask(scope));
    drop((test_loop, within));
    assert_eq!(permits.waiting(), 1);
    drop(held);
    assert_eq!(other.woken(), [waiting]);
    drop(value(waits));
    assert_eq!(permits.available(), 1);
}

#[test]
fn a_job_made_twice_by_the_backend_runs_once() {
    let mut test_loop = TestLoop::new();
    test_loop.manual.duplicate_jobs();
    let (gives, given) = test_loop.ask(|scope| scope.offload(|| 7).expect("it is taken"));
    assert!(test_loop.woken().is_empty() && !given.is_ready());
    test_loop.manual.run_jobs();
    assert_eq!((test_loop.woken(), value(given)), (vec![gives], 7));
}

#[test]
fn a_job_is_late_once_its_start_deadline_is_reached() {
    let mut test_loop = TestLoop::new();
    test_loop.manual.duplicate_jobs();
    for (left, is_late) in [(Duration::ZERO, true), (Duration::from_nanos(1), false)] {
        let (_, given) = test_loop.ask(|scope| {
            let job = scope.job(|_: &Job<'_>| 7).begin_before(scope.now() + left);
            job.start().expect("it is taken")
        });
        test_loop.manual.run_jobs();
        assert_eq!(matches!(given.take(), Outcome::Lost(FutureError::Late)), is_late, "{left:?}");
    }
}

#[test]
fn a_lock_is_held_by_one_machine_at_a_time_in_order() {
    let (mut test_loop, lock) = (TestLoop::new(), Lock::new(String::new()));
    let (first, held) = test_loop.ask(|scope| lock.ask(scope));
    assert_eq!(test_loop.woken(), [first]);
    let mut held: LockGuard<String> = value(held);
    let (second, waits) = test_loop.ask(|scope| lock.clone().ask(scope));
    let (_, leaves) = test_loop.ask(|scope| lock.ask(scope));
    let (ended, dead) = test_loop.ask(|scope| lock.ask(scope));
    let (last, waits_longer) = test_loop.ask(|scope| lock.ask(scope));
    held.push('a');
    assert!(lock.try_take().is_none());
    assert_eq!(format!("{lock:?} {held:?}"), "Lock(held: true, 4 wait) LockGuard(Some(\"a\"))");
    drop(leaves);
    test_loop.end(ended);
    drop(held);
    assert_eq!(test_loop.woken(), [second]);
    let mut held = value(waits);
    held.push('b');
    assert!(!held.was_panicked());
    drop(held);
    assert_eq!(test_loop.woken(), [last]);
    assert_eq!(*value(waits_longer), "ab");
    assert!(dead.is_ready() && lock.waiting() == 0);
    assert_eq!(lock.try_take().as_deref().map(String::as_str), Some("ab"));
}

#[test]
fn a_panicking_holder_releases_the_value_and_is_reported_once() {
    let (mut test_loop, lock) = (TestLoop::new(), Lock::new(1));
    let panics = |lock: &Lock<i32>| {
        let mut held = lock.try_take().expect("nobody holds it");
        let panicked = thread::spawn(move || {
            *held += 1;
            panic!("half way");
        });
        panicked.join().expect_err("it panicked");
    };
    panics(&lock);
    let told = lock.try_take().expect("it is back");
    assert_eq!((*told, told.was_panicked()), (2, true));
    drop(told);
    assert!(!lock.try_take().expect("it is back").was_panicked(), "it is said once");
    panics(&lock);
    let (_, asked) = test_loop.ask(|scope| lock.ask(scope));
    assert!(value(asked).was_panicked());
    let held = lock.try_take().expect("it is back");
    let (_, waits) = test_loop.ask(|scope| lock.ask(scope));
    let panicked = thread::spawn(move || {
        let _held = held;
        panic!("while somebody waits");
    });
    panicked.join().expect_err("it panicked");
    assert!(value(waits).was_panicked());
}

#[test]
fn an_unreported_panic_is_reported_to_the_next_holder() {
    let (mut test_loop, lock) = (TestLoop::new(), Lock::new(1));
    let held = lock.try_take().expect("nobody holds it");
    let panicked = thread::spawn(move || {
        let _held = held;
        panic!("half way");
    });
    panicked.join().expect_err("it panicked");
    let (_, asked) = test_loop.ask(|scope| lock.ask(scope));
    drop(asked);
    let looks = lock.try_take().expect("it is back");
    assert_eq!(*looks, 1);
    drop(looks);
    let asks = lock.try_take().expect("it is back");
    assert!(asks.was_panicked(), "two had it, and neither asked nor changed anything");
    drop(asks);
    assert!(!lock.try_take().expect("it is back").was_panicked());
}

#[test]
fn a_barrier_releases_all_at_the_last_arrival_and_starts_over() {
    let (mut test_loop, barrier) = (TestLoop::new(), Barrier::new(3));
    for _ in 0..2 {
        let (_, leaves) = test_loop.ask(|scope| barrier.arrive(scope));
        let (first, waits) = test_loop.ask(|scope| barrier.arrive(scope));
        drop(leaves);
        let (second, waits_too) = test_loop.ask(|scope| barrier.arrive(scope));
        assert_eq!((barrier.waiting(), test_loop.woken()), (2, vec![]));
        let (last, is_there) = test_loop.ask(|scope| barrier.arrive(scope));
        let mut woken = test_loop.woken();
        woken.sort();
        let mut all = [first, second, last];
        all.sort();
        assert_eq!(woken, all);
        let is_last =
            [waits, waits_too, is_there].map(|future| value::<BarrierReached>(future).is_last);
        assert_eq!(is_last, [false, false, true]);
    }
    for machines in [0, 1] {
        let (_, alone) = test_loop.ask(|scope| Barrier::new(machines).arrive(scope));
        assert!(value(alone).is_last);
    }
    assert_eq!(format!("{barrier:?}"), "Barrier(0 of 3)");
}

#[test]
fn a_bell_wakes_the_longest_listener_or_all_of_them() {
    let (mut test_loop, bell) = (TestLoop::new(), Bell::new());
    assert!(!bell.ring_one() && bell.ring_all() == 0, "nobody listens");
    let (first, listening) = test_loop.ask(|scope| bell.listen(scope));
    assert!(!listening.is_ready(), "what was rung before is lost");
    let (_, leaves) = test_loop.ask(|scope| bell.listen(scope));
    let (ended, dead) = test_loop.ask(|scope| bell.listen(scope));
    let rest: Vec<_> = (0..2).map(|_| test_loop.ask(|scope| bell.listen(scope))).collect();
    assert!(bell.ring_one());
    assert_eq!(test_loop.woken(), [first]);
    value(listening);
    drop(leaves);
    test_loop.end(ended);
    assert!(bell.ring_one(), "one has left, one has ended: it is the next one's");
    assert_eq!(test_loop.woken(), [rest[0].0]);
    assert_eq!((bell.listening(), bell.ring_all()), (1, 1));
    assert_eq!(test_loop.woken(), [rest[1].0]);
    assert!(dead.is_ready());
    assert_eq!(format!("{bell:?}"), "Bell(0 listen)");
}

#[test]
fn unlimited_permits_may_be_given_a_limit() {
    let permits = Permits::new(usize::MAX);
    permits.set(10);
    assert_eq!(permits.available(), 10);
    permits.set(usize::MAX);
    let held = permits.try_take().expect("there is no limit");
    permits.set(1);
    assert_eq!(permits.available(), 0);
    drop(held);
    assert_eq!(permits.available(), 1);
}

#[test]
fn a_waiter_is_woken_when_its_bell_barrier_or_permits_are_dropped() {
    let mut test_loop = TestLoop::new();
    let bell = Bell::new();
    let (listens, listening) = test_loop.ask(|scope| bell.listen(scope));
    drop(bell);
    assert_eq!((test_loop.woken(), lost(listening)), (vec![listens], FutureError::Dropped));
    let barrier = Barrier::new(2);
    let (arrives, there) = test_loop.ask(|scope| barrier.arrive(scope));
    drop(barrier);
    assert_eq!((test_loop.woken(), lost(there)), (vec![arrives], FutureError::Dropped));
    let permits = Permits::new(0);
    let (asks, given) = test_loop.ask(|scope| permits.ask(scope));
    drop(permits);
    assert_eq!((test_loop.woken(), lost(given)), (vec![asks], FutureError::Dropped));
}

#[test]
fn an_untaken_ring_of_one_passes_on_and_one_of_all_does_not() {
    let (mut test_loop, bell) = (TestLoop::new(), Bell::new());
    let (first, listening) = test_loop.ask(|scope| bell.listen(scope));
    let (second, also_listening) = test_loop.ask(|scope| bell.listen(scope));
    let (third, takes) = test_loop.ask(|scope| bell.listen(scope));
    assert!(bell.ring_one());
    assert_eq!(test_loop.woken(), [first]);
    drop(listening);
    assert_eq!(test_loop.woken(), [second], "the first one did not look");
    drop(also_listening);
    assert_eq!(test_loop.woken(), [third]);
    value(takes);
    let (_, listening) = test_loop.ask(|scope| bell.listen(scope));
    assert_eq!(bell.ring_all(), 1);
    test_loop.woken();
    let (_, later) = test_loop.ask(|scope| bell.listen(scope));
    drop(listening);
    assert!(test_loop.woken().is_empty() && !later.is_ready(), "all who were to hear it have");
}
