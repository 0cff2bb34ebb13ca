//! What async code uses: a notifier as a waker, and a port that reports when nobody waits any more.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use rotor_core::{
    Config, ExitPolicy, Future, FutureError, LoopInstance, Outcome, Port, Response, Scope,
};

use crate::actor::{Actor, Call, actor};
use crate::manual::{Manual, settle};

/// A loop with one machine that counts its wake-ups and ends on an event; returned with its waker.
fn loop_with_waker(manual: &Manual) -> (LoopInstance<Actor<u32>, Manual>, Waker) {
    let mut waker = None;
    let config = Config::new().exit(ExitPolicy::OnRequest).machines_max(1);
    let instance = manual.start(&config, 0, |scope| {
        waker = Some(scope.notifier().into_waker());
        Response::ok(counter())
    });
    (instance, waker.expect("the closure ran"))
}

fn counter() -> Actor<u32> {
    actor(|call, scope: &mut Scope<'_, u32>| match call {
        Call::Wakeup(_) => {
            **scope += 1;
            if **scope < 3 { Response::keep(()) } else { Response::done() }
        }
        _ => Response::done(),
    })
}

#[test]
fn a_waker_and_its_clones_wake_the_machine_from_any_thread() {
    let manual = Manual::new();
    let (mut instance, waker) = loop_with_waker(&manual);
    let clone = waker.clone();
    assert!(clone.will_wake(&waker), "async code compares them");
    thread::scope(|threads| {
        threads.spawn(move || clone.wake());
    });
    settle(&mut instance);
    waker.wake_by_ref();
    waker.wake_by_ref();
    settle(&mut instance);
    assert_eq!(*instance.context(), 2);
}

#[test]
fn a_waker_that_outlives_its_machine_wakes_nobody() {
    let manual = Manual::new();
    let (mut instance, waker) = loop_with_waker(&manual);
    for _ in 0..3 {
        waker.wake_by_ref();
        settle(&mut instance);
    }
    assert_eq!((*instance.context(), instance.stats().read().alive), (3, 0));
    // There is one slot, so the next machine reuses it.
    *instance.context_mut() = 0;
    let added = instance.add_machine_with(|_| Response::ok(counter()));
    added.expect("there is room");
    waker.wake_by_ref();
    settle(&mut instance);
    assert_eq!(*instance.context(), 0);
    drop(instance);
    waker.wake();
}

#[derive(Default)]
struct WakeCounter(AtomicU32);

impl Wake for WakeCounter {
    fn wake(self: Arc<WakeCounter>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_port_wakes_its_last_poller_once_when_it_is_cancelled() {
    let manual = Manual::new();
    let (mut port, mut future) = (None, None);
    let mut instance = manual.start(&Config::new(), 0, |scope| {
        let (given, kept): (Port<u8>, _) = scope.create_future();
        (port, future) = (Some(given), Some(kept));
        Response::ok(counter())
    });
    let port = port.expect("the closure ran");
    let (first, last) = (Arc::new(WakeCounter::default()), Arc::new(WakeCounter::default()));
    for counted in [&first, &last, &last] {
        let waker = Waker::from(counted.clone());
        assert_eq!(port.poll_cancelled(&mut Context::from_waker(&waker)), Poll::Pending);
    }
    drop(future);
    assert_eq!((first.0.load(Relaxed), last.0.load(Relaxed)), (0, 1), "the last one that asked");
    let waker = Waker::from(last.clone());
    assert_eq!(port.poll_cancelled(&mut Context::from_waker(&waker)), Poll::Ready(()));
    settle(&mut instance);
    assert_eq!(*instance.context(), 0, "the machine dropped it itself");
}

#[test]
fn a_future_wakes_both_its_last_poller_and_its_machine() {
    for is_set in [true, false] {
        let manual = Manual::new();
        let mut ends = None;
        let mut instance = manual.start(&Config::new(), 0, |scope| {
            ends = Some((scope.create_future(), scope.notifier()));
            Response::ok(counter())
        });
        let ((port, future), own): ((Port<u8>, _), _) = ends.expect("the closure ran");
        assert!(future.wakes(&own));
        let (first, last) = (Arc::new(WakeCounter::default()), Arc::new(WakeCounter::default()));
        for counted in [&first, &last, &last] {
            let waker = Waker::from(counted.clone());
            assert_eq!(future.poll_ready(&mut Context::from_waker(&waker)), Poll::Pending);
        }
        match is_set {
            true => port.set(7).expect("it is waited for"),
            false => drop(port),
        }
        assert_eq!(
            (first.0.load(Relaxed), last.0.load(Relaxed)),
            (0, 1),
            "the last one that asked"
        );
        assert_eq!(future.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
        assert!(matches!(
            (future.take(), is_set),
            (Outcome::Value(7), true) | (Outcome::Lost(FutureError::Dropped), false)
        ));
        settle(&mut instance);
        assert_eq!(*instance.context(), 1, "the machine hears of it as ever");
    }
}

/// The waker of a finished task; it owns the future.
struct FutureOwner(#[expect(dead_code, reason = "it is dropped")] Future<u8>);

impl Wake for FutureOwner {
    fn wake(self: Arc<FutureOwner>) {}
}

#[test]
fn a_replaced_waker_may_own_the_future() {
    let manual = Manual::new();
    let mut ends = None;
    let _instance = manual.start(&Config::new(), 0, |scope| {
        ends = Some(scope.create_future());
        Response::ok(counter())
    });
    let (port, future): (Port<u8>, _) = ends.expect("the closure ran");
    let (result_sender, result_receiver) = mpsc::channel();
    thread::spawn(move || {
        let last = Waker::from(Arc::new(FutureOwner(future)));
        let first = port.poll_cancelled(&mut Context::from_waker(&last));
        drop(last);
        let second = port.poll_cancelled(&mut Context::from_waker(Waker::noop()));
        let _ = result_sender.send((first, second, port.is_cancelled()));
    });
    let result = result_receiver.recv_timeout(Duration::from_secs(60));
    assert_eq!(result, Ok((Poll::Pending, Poll::Ready(()), true)));
}

#[test]
fn a_port_of_an_ended_machine_is_cancelled() {
    let manual = Manual::new();
    let (mut port, mut future) = (None, None);
    let mut instance = manual.start(&Config::new(), 2, |scope| {
        let (given, kept): (Port<u8>, _) = scope.create_future();
        (port, future) = (Some(given), Some(kept));
        scope.notifier().wakeup();
        Response::ok(counter())
    });
    settle(&mut instance);
    let port = port.expect("the closure ran");
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(port.poll_cancelled(&mut context), Poll::Ready(()), "its future lives on");
    drop(future);
}
