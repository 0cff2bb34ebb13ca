//! Slots: a loop that cannot allocate them is not made. Machines wait for a free slot in FIFO
//! order, one waiter per slot; a waiter that does not use its slot passes it on.

use std::io::ErrorKind;
use std::time::Duration;

use rotor_core::{
    Config, EventSet, Exit, ExitPolicy, Infallible, Loop, LoopInstance, Machine, Notifier,
    Response, Scope, Token,
};

use crate::actor::{Actor, Call, Seed, actor, idle};
use crate::manual::{Manual, settle};

type Log = Vec<&'static str>;
type Instance = LoopInstance<Actor<Log>, Manual>;

fn config(machines: usize) -> Config {
    Config::new().exit(ExitPolicy::OnRequest).machines_max(machines)
}

/// A listener with connections in its backlog: it accepts while there is a free slot, otherwise it
/// waits for one.
fn listener(instance: &mut Instance, name: &'static str, mut backlog: u32) -> Token {
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| match call {
            Call::SpawnError(error) => panic!("a connection has no place: {error}"),
            _ if backlog == 0 => Response::keep(()),
            _ if scope.has_free_slot() => {
                backlog -= 1;
                scope.push(name);
                Response::spawn((), connection(name))
            }
            _ => {
                scope.wake_on_free_slot();
                scope.wake_on_free_slot();
                Response::keep(())
            }
        }))
    });
    made.expect("there is room")
}

/// The seed of a connection: it ends on an event.
fn connection(name: &'static str) -> Seed<Log> {
    Seed::new(name, |_| {
        Response::ok(actor(|call, _| match call {
            Call::Ready(_) => Response::done(),
            _ => Response::keep(()),
        }))
    })
}

/// A machine that holds a slot until it is woken.
fn holder(instance: &mut Instance) -> Notifier {
    let mut notifier = None;
    let made = instance.add_machine_with(|scope| {
        notifier = Some(scope.notifier());
        Response::ok(idle())
    });
    made.expect("there is room");
    notifier.expect("the closure ran")
}

fn start(manual: &Manual, config: &Config) -> Instance {
    manual.creator(config).instantiate(Log::new())
}

#[test]
fn two_listeners_on_a_full_slab_both_resume_when_slots_are_freed() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(6));
    let holders: Vec<Notifier> = (0..4).map(|_| holder(&mut instance)).collect();
    for name in ["a", "b"] {
        let token = listener(&mut instance, name, 2);
        manual.feed(token, EventSet::READABLE);
    }
    settle(&mut instance);
    assert_eq!(*instance.context(), Log::new());
    assert_eq!(instance.next_deadline(), None, "nothing spins");
    for (holder, so_far) in holders.iter().zip([1, 2, 3, 4]) {
        holder.wakeup();
        settle(&mut instance);
        assert_eq!(instance.context().len(), so_far, "one connection for each free slot");
    }
    assert_eq!(*instance.context(), ["a", "b", "a", "b"], "in turn");
    assert_eq!(instance.machines().len(), 6);
}

#[test]
fn a_free_slot_is_reserved_for_the_longest_waiting_machine() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(3));
    let holder = holder(&mut instance);
    let [busy, quiet] = ["busy", "quiet"].map(|name| listener(&mut instance, name, 1_000));
    manual.feed(quiet, EventSet::READABLE);
    settle(&mut instance);
    holder.wakeup();
    for round in 1..100 {
        // The busy listener gets events, and asks, both before and after the slot is free; with it
        // in the queue the two take turns.
        for _ in 0..3 {
            manual.feed(busy, EventSet::READABLE);
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
            instance.check_invariants().expect("the books agree");
        }
        settle(&mut instance);
        assert_eq!(instance.context().len(), round, "a connection for each free slot");
        assert_eq!(instance.context()[round - 1], if round % 2 == 1 { "quiet" } else { "busy" });
        manual.feed(newest(&mut instance), EventSet::READ_CLOSED);
    }
}

#[test]
fn a_slot_reserved_for_a_waiter_is_refused_to_others() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(3));
    let holder = holder(&mut instance);
    let rude = instance.add_machine_with(|_| {
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| match call {
            // It spawns without checking for a free slot.
            Call::Ready(_) => Response::spawn((), Seed::idle("rude")),
            Call::SpawnError(_) => {
                scope.push("refused");
                Response::keep(())
            }
            _ => Response::keep(()),
        }))
    });
    let rude = rude.expect("there is room");
    let waiting = listener(&mut instance, "a", 1);
    manual.feed(waiting, EventSet::READABLE);
    settle(&mut instance);
    holder.wakeup();
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(instance.machines().len(), 2, "there is a slot");
    assert!(instance.spawn(Seed::idle("from outside")).is_err());
    assert!(instance.add_machine_with(|_| Response::ok(idle())).is_err());
    manual.feed(rude, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["refused", "a"]);
}

#[test]
fn a_slot_granted_to_a_machine_that_ends_passes_to_the_next_waiter() {
    for panics in [false, true] {
        let manual = Manual::new();
        let mut instance = start(&manual, &config(4));
        let holder = holder(&mut instance);
        let made = instance.add_machine_with(|_| {
            Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| match call {
                Call::Ready(EventSet::READ_CLOSED) if panics => {
                    panic!("a bug of the first in line")
                }
                Call::Ready(EventSet::READ_CLOSED) => Response::done(),
                Call::Ready(_) => {
                    scope.wake_on_free_slot();
                    Response::keep(())
                }
                _ => panic!("it was to end first"),
            }))
        });
        let first = made.expect("there is room");
        let [second, third] = ["b", "c"].map(|name| listener(&mut instance, name, 1));
        for token in [first, second, third] {
            manual.feed(token, EventSet::READABLE);
            settle(&mut instance);
        }
        holder.wakeup();
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        manual.feed(first, EventSet::READ_CLOSED);
        settle(&mut instance);
        assert_eq!(*instance.context(), ["b", "c"], "the slot that it was to have, and its own");
    }
}

/// The machine that was made last.
fn newest(instance: &mut Instance) -> Token {
    let tokens = instance.machines().iter().map(|(token, _)| token);
    tokens.max_by_key(|token| token.into_usize() >> 24).expect("there are some")
}

#[test]
fn a_waiter_that_does_not_use_the_slot_passes_it_on() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(3));
    let holder = holder(&mut instance);
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            if matches!(call, Call::Ready(_)) {
                scope.wake_on_free_slot();
            } else {
                scope.push("declined");
            }
            Response::keep(())
        }))
    });
    manual.feed(made.expect("there is room"), EventSet::READABLE);
    let token = listener(&mut instance, "a", 1);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    holder.wakeup();
    settle(&mut instance);
    assert_eq!(*instance.context(), ["declined", "a"]);
}

/// Asks for a slot when an event comes, and again at each of its first `asks` wake-ups.
fn waiter(instance: &mut Instance, mut asks: u32) -> Token {
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
            if matches!(call, Call::Ready(_)) {
                scope.wake_on_free_slot();
            } else {
                scope.push("declined");
                if asks > 0 {
                    asks -= 1;
                    scope.wake_on_free_slot();
                }
            }
            Response::keep(())
        }))
    });
    made.expect("there is room")
}

#[test]
fn asking_again_before_the_wakeup_for_a_granted_slot_changes_nothing() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(2));
    let holder = holder(&mut instance);
    let token = waiter(&mut instance, 0);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    holder.wakeup();
    // The slot is granted at the end of this turn; its wake-up comes after the event of the next
    // turn.
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert!(instance.context().is_empty());
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["declined"]);
}

#[test]
fn asking_again_in_the_wakeup_for_a_granted_slot_queues_the_machine() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(2));
    let holder = holder(&mut instance);
    let token = waiter(&mut instance, 2);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    holder.wakeup();
    settle(&mut instance);
    assert_eq!(*instance.context(), ["declined"; 3]);
}

#[test]
fn an_ended_waiter_does_not_use_up_a_slot() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(3));
    let holder = holder(&mut instance);
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| match call {
            Call::Ready(events) if events.is_readable() => {
                scope.wake_on_free_slot();
                Response::keep(())
            }
            _ => Response::done(),
        }))
    });
    let gone = made.expect("there is room");
    manual.feed(gone, EventSet::READABLE);
    let token = listener(&mut instance, "a", 3);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    manual.feed(gone, EventSet::WRITABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["a"], "its own slot");
    holder.wakeup();
    settle(&mut instance);
    assert_eq!(*instance.context(), ["a", "a"]);
}

#[test]
fn waiters_are_served_first_come_first_served_over_many_rounds() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(5));
    let mut last = holder(&mut instance);
    let names = ["a", "b", "c", "d"];
    for name in names {
        let token = listener(&mut instance, name, 5);
        manual.feed(token, EventSet::READABLE);
    }
    settle(&mut instance);
    for _ in 0..12 {
        last.wakeup();
        settle(&mut instance);
        // The connection that took the slot frees it. It is the newest machine.
        let newest = newest(&mut instance);
        let _ = instance.machines().scan(rotor_core::Cursor::START, |token, _| {
            if token == newest { rotor_core::Verdict::End } else { rotor_core::Verdict::Keep }
        });
        settle(&mut instance);
        last = last.clone();
    }
    let served = instance.context().clone();
    for name in names {
        let count = served.iter().filter(|served| **served == name).count();
        assert!((2..=5).contains(&count), "{name} got {count} of {}", served.len());
    }
    assert_eq!(served[..8], ["a", "b", "c", "d", "a", "b", "c", "d"]);
}

#[test]
fn asking_while_a_slot_is_free_wakes_at_once_even_before_the_first_turn() {
    let manual = Manual::new();
    let mut woken = 0;
    let mut instance = manual.start(&config(4), Log::new(), |scope| {
        scope.wake_on_free_slot();
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
            assert!(matches!(call, Call::Wakeup(_)));
            woken += 1;
            scope.push("woken");
            if woken == 3 {
                scope.stop_loop();
            } else {
                scope.wake_on_free_slot();
            }
            Response::keep(())
        }))
    });
    assert!(instance.next_deadline().is_some(), "an embedding loop must not sleep");
    instance.run().expect("it never sleeps without a reason");
    assert_eq!(*instance.context(), ["woken"; 3]);
}

#[test]
fn a_part_that_waits_for_a_slot_is_named_when_it_is_woken() {
    let manual = Manual::new();
    let mut instance = manual.start(&config(2), Vec::<u32>::new(), |scope| {
        scope.part(5).wake_on_free_slot();
        Response::ok(actor(|call, scope: &mut Scope<'_, Vec<u32>>| {
            if let Call::Wakeup(parts) = call {
                scope.extend(parts);
            }
            Response::keep(())
        }))
    });
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    settle(&mut instance);
    assert_eq!(*instance.context(), [5]);
}

#[test]
fn a_slot_is_free_only_after_the_last_wakeup_of_its_machine_is_done() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(2));
    let mut kept = None;
    let made = instance.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        Response::ok(actor(|_, _: &mut Scope<'_, Log>| Response::done()))
    });
    let token = made.expect("there is room");
    let waiting = listener(&mut instance, "a", 1);
    manual.feed(waiting, EventSet::READABLE);
    settle(&mut instance);
    kept.expect("the closure ran").wakeup();
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["a"]);
}

/// Tries to add a machine that is woken while it is made, and is not made.
fn fail_to_add(instance: &mut Instance) {
    let made = instance.add_machine_with(|scope| {
        scope.notifier().wakeup();
        Response::error("changed its mind")
    });
    assert_eq!(made.expect_err("as told").to_string(), "the machine could not be made");
}

#[test]
fn a_slot_with_a_stale_wakeup_is_free_between_turns() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(2));
    let mut kept = None;
    let made = instance.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            scope.push(call.name());
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let kept = kept.expect("the closure ran");
    settle(&mut instance);
    fail_to_add(&mut instance);
    fail_to_add(&mut instance);
    // The wake-up of a machine that exists stays, in its place.
    kept.wakeup();
    fail_to_add(&mut instance);
    let second = holder(&mut instance);
    assert_eq!(instance.check_invariants(), Ok(()));
    settle(&mut instance);
    assert_eq!(*instance.context(), ["wakeup"]);
    assert!(second.is_alive());
    assert_eq!(instance.stats().read().alive, 2);
}

#[test]
fn a_loop_that_has_ended_has_all_of_its_slots() {
    let manual = Manual::new();
    let mut instance = start(&manual, &Config::new().machines_max(2));
    for _ in 0..3 {
        for _ in 0..2 {
            let made = instance.add_machine_with(|scope| {
                // Deadlines come after the wake-ups of a turn.
                Response::ok(actor(|_, scope: &mut Scope<'_, Log>| {
                    scope.notifier().wakeup();
                    Response::done()
                }))
                .deadline(scope.now())
            });
            made.expect("the loop has no machine");
        }
        assert_eq!(instance.run().expect("it can wait"), Exit::Empty);
    }
}

#[test]
fn a_wakeup_after_a_stale_one_was_removed_wakes_the_backend() {
    let manual = Manual::new();
    let mut instance = start(&manual, &config(2));
    let kept = holder(&mut instance);
    settle(&mut instance);
    fail_to_add(&mut instance);
    fail_to_add(&mut instance);
    assert_eq!(instance.next_deadline(), Some(instance.now()), "the last one is in the list");
    let woken = manual.wakes();
    holder(&mut instance);
    assert_eq!(instance.next_deadline(), None);
    kept.wakeup();
    assert_eq!(manual.wakes(), woken + 1);
}

/// A machine so large that no address space can hold many.
struct HugeMachine {
    _state: [u8; 1 << 30],
}

impl Machine for HugeMachine {
    type Context = ();
    type Seed = Infallible;
    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::done()
    }
}

#[test]
fn a_loop_without_memory_for_its_slots_names_the_setting_to_lower() {
    let error =
        Loop::<HugeMachine>::new(&Config::new().machines_max(1_000_000)).expect_err("a PiB");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let message = "no memory for 1000000 machines of 1073741824 bytes each: a smaller `Config::machines_max` needs less";
    assert_eq!(error.to_string(), message);
}
