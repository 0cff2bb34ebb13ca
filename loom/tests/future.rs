//! One value from another thread to a machine: it arrives or is returned, and a machine that waits
//! is notified if it will not arrive.
mod waiting;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use loom::thread;
use rotor_core::{FutureError, Outcome, Port};

use waiting::{WaitUntil, model, small_loop};

/// Runs a loop whose machine waits for the outcome of a future; another thread has the port.
fn outcome_with_thread(other: impl FnOnce(Port<u32>) + Send + 'static) -> Result<u32, FutureError> {
    let mut creator = small_loop(1);
    let outcome = Rc::new(Cell::new(None));
    let mut thread = None;
    let add = creator.add_machine_with(|scope| {
        let (port, future) = scope.create_future();
        thread = Some(thread::spawn(|| other(port)));
        let (outcome, mut future) = (outcome.clone(), Some(future));
        WaitUntil::new(move |_| match future.take().unwrap().take() {
            Outcome::Pending(pending) => {
                future = Some(pending);
                false
            }
            Outcome::Value(value) => outcome.replace(Some(Ok(value))).is_none(),
            Outcome::Lost(lost) => outcome.replace(Some(Err(lost))).is_none(),
        })
    });
    add.unwrap();
    creator.instantiate(()).run().unwrap();
    thread.unwrap().join().unwrap();
    outcome.take().unwrap()
}

#[test]
fn a_value_set_by_another_thread_is_received() {
    model(3, || assert_eq!(outcome_with_thread(|port| port.set(7).unwrap()), Ok(7)));
}

#[test]
fn a_port_dropped_by_another_thread_is_reported() {
    model(3, || assert_eq!(outcome_with_thread(drop), Err(FutureError::Dropped)));
}

/// Either the port's owner gets the value back, or the future has it and drops it: it is never left
/// between the two.
#[test]
fn a_value_set_while_the_future_is_dropped_is_not_leaked() {
    model(3, || {
        let mut creator = small_loop(1);
        let mut ends = None;
        let add = creator.add_machine_with(|scope| {
            ends = Some(scope.create_future());
            WaitUntil::new(|_| false)
        });
        add.unwrap();
        let (port, future) = ends.unwrap();
        let value = Arc::new(());
        let other = thread::spawn({
            let value = value.clone();
            || drop(port.set(value))
        });
        drop(future);
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// The future outlives its machine: a value that was reported as delivered can be taken.
#[test]
fn a_value_set_while_the_machine_ends_is_taken_or_returned() {
    model(3, || {
        let mut creator = small_loop(1);
        let mut ends = None;
        let add = creator.add_machine_with(|scope| {
            ends = Some(scope.create_future());
            WaitUntil::new(|_| false)
        });
        add.unwrap();
        let (port, future) = ends.unwrap();
        let other = thread::spawn(|| port.set(7).is_ok());
        drop(creator);
        let is_set = other.join().unwrap();
        match future.take() {
            Outcome::Value(_) => assert!(is_set),
            Outcome::Lost(lost) => assert_eq!((is_set, lost), (false, FutureError::Dropped)),
            Outcome::Pending(_) => panic!("nobody will set it any more"),
        }
    });
}

/// The port was passed to a machine that registers for the cancellation while the future is
/// dropped.
#[test]
fn a_cancellation_reaches_the_machine_that_got_the_port() {
    model(3, || {
        let mut creator = small_loop(1);
        let mut other = None;
        let add = creator.add_machine_with(|scope| {
            let (port, future) = scope.create_future::<u32>();
            other = Some(thread::spawn(move || drop(future)));
            port.on_cancel(scope.notifier());
            scope.notifier().wakeup();
            WaitUntil::new(move |_| port.is_cancelled())
        });
        add.unwrap();
        creator.instantiate(()).run().unwrap();
        other.unwrap().join().unwrap();
    });
}

struct UnparkWaker(thread::Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<UnparkWaker>) {
        self.0.unpark();
    }
}

#[test]
fn async_code_that_waits_for_the_future_is_woken() {
    model(3, || {
        let mut creator = small_loop(1);
        let mut ends = None;
        let add = creator.add_machine_with(|scope| {
            ends = Some(scope.create_future::<u32>());
            WaitUntil::new(|_| false)
        });
        add.unwrap();
        let (port, future) = ends.unwrap();
        let setter = thread::spawn(move || port.set(7).unwrap());
        let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
        while future.poll_ready(&mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
        assert!(matches!(future.take(), Outcome::Value(7)));
        setter.join().unwrap();
    });
}
