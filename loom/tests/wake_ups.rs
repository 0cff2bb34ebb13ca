//! Threads wake machines, and parts of machines, of a loop that sleeps whenever it can.
mod waiting;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use rotor_core::{Config, ExitPolicy, Loop, Notifier, Scope};

use waiting::{WaitUntil, WakeOnlyBackend, loop_on, model, small_loop};

/// A flag for each thread, set before its wake-up.
type Written = [AtomicUsize; 2];

/// A thread that sets its flag and then wakes the machine.
fn spawn_writer(
    place: usize,
    written: &Arc<Written>,
    notifier: Notifier,
) -> thread::JoinHandle<()> {
    let written = written.clone();
    thread::spawn(move || {
        written[place].store(1, Relaxed);
        notifier.wakeup();
    })
}

fn all_written(written: &Written, places: &[usize]) -> bool {
    places.iter().all(|place| written[*place].load(Relaxed) == 1)
}

/// Each reader waits for the flags of its threads, and these threads wake it.
fn check_wakeups(readers: &[&'static [usize]]) {
    let written: Arc<Written> = Arc::default();
    let mut creator = small_loop(2);
    let mut threads = Vec::new();
    for &places in readers {
        let add = creator.add_machine_with(|scope| {
            threads.extend(
                places.iter().map(|place| spawn_writer(*place, &written, scope.notifier())),
            );
            let written = written.clone();
            WaitUntil::new(move |_| all_written(&written, places))
        });
        add.unwrap();
    }
    creator.instantiate(()).run().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn writes_of_two_threads_before_a_wakeup_are_visible_to_the_machine() {
    model(2, || check_wakeups(&[&[0, 1]]));
}

#[test]
fn two_machines_woken_by_two_threads_are_both_called() {
    model(2, || check_wakeups(&[&[0], &[1]]));
}

#[test]
fn writes_of_two_threads_before_a_wakeup_are_visible_to_the_part() {
    model(2, || {
        let written: Arc<Written> = Arc::default();
        let mut creator = small_loop(1);
        let mut threads = Vec::new();
        let add = creator.add_machine_with(|scope| {
            let notifier = scope.part(7).notifier();
            threads.extend([0, 1].map(|place| spawn_writer(place, &written, notifier.clone())));
            let written = written.clone();
            WaitUntil::new(move |scope| {
                scope.woken_parts().eq([7]) && all_written(&written, &[0, 1])
            })
        });
        add.unwrap();
        let mut instance = creator.instantiate(());
        instance.run().unwrap();
        // The loop lives as long as the threads: sending to loom's channel fails once its receiver
        // is gone.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// As an embedding program does: turns that only poll, and waits for the loop's descriptor between
/// them.
#[test]
fn a_wakeup_between_turns_reaches_the_descriptor_of_an_embedded_loop() {
    model(2, || {
        let written: Arc<Written> = Arc::default();
        let backend = WakeOnlyBackend::default();
        let event = backend.event.clone();
        let mut creator = loop_on(backend, 1);
        let mut thread = None;
        let add = creator.add_machine_with(|scope| {
            thread = Some(spawn_writer(0, &written, scope.notifier()));
            let written = written.clone();
            WaitUntil::new(move |_| all_written(&written, &[0]))
        });
        add.unwrap();
        let mut instance = creator.instantiate(());
        while instance.turn(Some(Duration::ZERO)).unwrap().is_none() {
            if instance.next_deadline().is_none() {
                event.wait();
            }
        }
        thread.unwrap().join().unwrap();
    });
}

/// The loop's only slot is free again, and the next machine in it gets only its own wake-up.
#[test]
fn a_slot_is_reused_after_its_machine_ended_during_a_wakeup() {
    model(3, || {
        let config = Config::new().machines_max(1).exit(ExitPolicy::Never);
        let mut instance =
            Loop::with_backend(WakeOnlyBackend::default(), &config).unwrap().instantiate(());
        let mut late = None;
        let add = instance.add_machine_with(|scope: &mut Scope<'_, ()>| {
            scope.notifier().wakeup();
            let notifier = scope.notifier();
            late = Some(thread::spawn(move || {
                notifier.wakeup();
                notifier.wakeup();
            }));
            WaitUntil::new(|_| true)
        });
        add.unwrap();
        instance.turn(None).unwrap();
        assert!(instance.machines().is_empty());
        late.unwrap().join().unwrap();
        // Removes what was added to the list in the meantime.
        instance.turn(Some(Duration::ZERO)).unwrap();
        let calls = Rc::new(Cell::new(0));
        let add = instance.add_machine_with(|scope: &mut Scope<'_, ()>| {
            scope.notifier().wakeup();
            let calls = calls.clone();
            WaitUntil::new(move |_| {
                calls.set(calls.get() + 1);
                false
            })
        });
        add.expect("the slot is free");
        for _ in 0..2 {
            instance.turn(Some(Duration::ZERO)).unwrap();
        }
        assert_eq!(calls.get(), 1);
    });
}
