//! Requests to a loop from outside reach it, even while it falls asleep, and nothing is kept after
//! it has ended.
mod waiting;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use loom::thread;
use rotor_core::{Exit, LoopInstance, PostError};

use waiting::{WaitUntil, WakeOnlyBackend, model, small_loop};

/// A loop whose machine waits forever, unless it is notified of a drain.
fn idle_loop() -> LoopInstance<WaitUntil, WakeOnlyBackend> {
    let mut creator = small_loop(1);
    creator.add_machine_with(|_| WaitUntil::new(|_| false)).unwrap();
    creator.instantiate(())
}

#[test]
fn a_stopped_loop_ends() {
    model(3, || {
        let mut instance = idle_loop();
        let handle = instance.handle();
        let other = thread::spawn(move || handle.stop());
        assert_eq!(instance.run().unwrap(), Exit::Stopped);
        other.join().unwrap();
    });
}

#[test]
fn a_loop_drained_by_two_threads_ends() {
    model(2, || {
        let mut instance = idle_loop();
        let threads = [1, 2].map(|seconds| {
            let handle = instance.handle();
            thread::spawn(move || handle.drain(Duration::from_secs(seconds)))
        });
        assert_eq!(instance.run().unwrap(), Exit::Drained { dropped: 0 });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// The service manager is not told that the service ends if another process goes on with it.
#[test]
fn a_thread_that_sees_a_drain_after_a_hand_over_sees_the_successor() {
    model(3, || {
        let instance = idle_loop();
        let (handle, seen) = (instance.handle(), instance.handle());
        let other = thread::spawn(move || handle.drain_after_hand_over(Duration::from_secs(1)));
        assert!(!seen.is_ending() || seen.is_followed());
        other.join().unwrap();
    });
}

#[test]
fn closures_posted_by_two_threads_are_run() {
    model(2, || {
        let mut instance = idle_loop();
        let runs = Arc::new(AtomicUsize::new(0));
        let threads = [0, 1].map(|_| {
            let (broadcast, runs) = (instance.broadcast(), runs.clone());
            thread::spawn(move || {
                let posted = broadcast.post(move |_, scope| {
                    if runs.fetch_add(1, Relaxed) == 1 {
                        scope.stop_loop();
                    }
                });
                assert!(posted.is_ok());
            })
        });
        assert_eq!(instance.run().unwrap(), Exit::Stopped);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// The closure is run, returned, or dropped with the loop: once the loop is gone nothing keeps it.
#[test]
fn a_closure_posted_while_the_loop_ends_is_not_leaked() {
    model(3, || {
        let instance = idle_loop();
        let broadcast = instance.broadcast();
        let posted = Arc::new(());
        let other = thread::spawn({
            let posted = posted.clone();
            move || {
                let result = broadcast.post(move |_, _| drop(posted));
                assert!(matches!(result, Ok(()) | Err(PostError::Closed(_))));
                drop(result);
                // Kept until the count is checked.
                broadcast
            }
        });
        drop(instance);
        let _broadcast = other.join().unwrap();
        assert_eq!(Arc::strong_count(&posted), 1);
    });
}
