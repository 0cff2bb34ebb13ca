//! Permits and locks shared by a loop and threads: nobody waits for a free one, and no two have the
//! same one.
mod waiting;

use std::sync::Arc;

use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use rotor_core::{Future, Lock, Outcome, Permits};

use waiting::{WaitUntil, WakeOnlyBackend, loop_on, model};

/// A machine asks while a thread has the only permit and releases it: the machine gets the permit,
/// and sees everything that the thread wrote before.
#[test]
fn a_permit_released_by_a_thread_reaches_the_waiting_machine() {
    model(3, || {
        let (permits, written) = (Permits::new(1), Arc::new(AtomicUsize::new(0)));
        let mut held = permits.try_take().unwrap();
        held.note_used();
        let note = written.clone();
        let gives = thread::spawn(move || {
            note.store(7, Relaxed);
            drop(held);
        });
        let mut creator = loop_on(WakeOnlyBackend::default(), 1);
        let add = creator.add_machine_with(|scope| {
            let mut future = Some(permits.ask(scope));
            WaitUntil::new(move |_| match future.take().unwrap().take() {
                Outcome::Pending(pending) => {
                    future = Some(pending);
                    false
                }
                Outcome::Value(mut permit) => permit.run(|| written.load(Relaxed) == 7),
                Outcome::Lost(_) => false,
            })
        });
        add.unwrap();
        creator.instantiate(()).run().unwrap();
        gives.join().unwrap();
        assert_eq!((permits.available(), permits.waiting()), (1, 0));
    });
}

/// Two threads take and release permits while a third one changes their number: none is lost or
/// created.
#[test]
fn no_permit_is_lost_or_created_while_their_number_changes() {
    model(2, || {
        let (permits, inside) = (Permits::new(1), Arc::new(AtomicUsize::new(0)));
        let takes = {
            let (permits, inside) = (permits.clone(), inside.clone());
            thread::spawn(move || {
                if let Some(mut permit) = permits.try_take() {
                    permit.note_used();
                    assert!(inside.fetch_add(1, Relaxed) < 2);
                    inside.fetch_sub(1, Relaxed);
                }
            })
        };
        if let Some(mut permit) = permits.try_take() {
            permit.note_used();
            assert!(inside.fetch_add(1, Relaxed) < 2);
            inside.fetch_sub(1, Relaxed);
        }
        permits.set(2);
        takes.join().unwrap();
        assert_eq!(permits.available(), 2);
    });
}

/// The machine drops its future while the thread hands the permit over: the permit is not lost.
#[test]
fn a_permit_for_a_dropped_future_is_free_again() {
    model(3, || {
        let permits = Permits::new(1);
        let held = permits.try_take().unwrap();
        let mut creator = loop_on(WakeOnlyBackend::default(), 1);
        let mut future = None;
        let add = creator.add_machine_with(|scope| {
            future = Some(permits.ask(scope));
            WaitUntil::new(|_| true)
        });
        add.unwrap();
        let gives = thread::spawn(move || drop(held));
        drop(future);
        gives.join().unwrap();
        assert_eq!((permits.available(), permits.waiting()), (1, 0));
    });
}

/// While one thread gives a permit to the first waiter, the other one returns its own, and leaves
/// the second waiter to the first thread.
#[test]
fn permits_returned_at_the_same_time_reach_all_waiters() {
    model(2, || {
        let permits = Permits::new(2);
        let held = [permits.try_take().unwrap(), permits.try_take().unwrap()];
        let mut creator = loop_on(WakeOnlyBackend::default(), 1);
        let add = creator.add_machine_with(|scope| {
            let futures = [permits.ask(scope), permits.ask(scope)];
            WaitUntil::new(move |_| futures.iter().all(Future::is_ready))
        });
        add.unwrap();
        let give = held.map(|permit| thread::spawn(move || drop(permit)));
        creator.instantiate(()).run().unwrap();
        give.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((permits.available(), permits.waiting()), (2, 0));
    });
}

#[test]
fn a_locked_value_has_one_holder_and_reaches_the_waiting_machine() {
    model(2, || {
        let lock = Lock::new(0);
        let adds = {
            let lock = lock.clone();
            thread::spawn(move || {
                if let Some(mut held) = lock.try_take() {
                    *held += 1;
                }
            })
        };
        let mut creator = loop_on(WakeOnlyBackend::default(), 1);
        let add = creator.add_machine_with(|scope| {
            let mut future = Some(lock.ask(scope));
            WaitUntil::new(move |_| match future.take().unwrap().take() {
                Outcome::Pending(pending) => {
                    future = Some(pending);
                    false
                }
                Outcome::Value(mut held) => {
                    *held += 10;
                    true
                }
                Outcome::Lost(_) => false,
            })
        });
        add.unwrap();
        creator.instantiate(()).run().unwrap();
        adds.join().unwrap();
        let value = *lock.try_take().unwrap();
        assert!(value == 10 || value == 11);
    });
}
