//! Values sent to a machine: one through a port, many through a mailbox.

use std::thread;

use rotor_core::{
    Config, EventSet, ExitPolicy, Future, FutureError, LoopInstance, Mailbox, Outcome, Port,
    ReceiveError, Response, Scope, SendError, Sender, Token,
};

use crate::actor::{Actor, Call, actor, idle};
use crate::manual::{Manual, settle};

/// What the machine observed.
#[derive(Default)]
struct World {
    wakeups: u32,
    observed: Vec<String>,
    /// The future, if the machine is to drop it.
    future: Option<Future<u32>>,
    mailbox: Option<Mailbox<u32>>,
}

type Instance = LoopInstance<Actor<World>, Manual>;

fn config() -> Config {
    Config::new().exit(ExitPolicy::OnRequest)
}

/// A machine that waits for a value, and ends on an event.
fn loop_awaiting_value(manual: &Manual) -> (Instance, Port<u32>, Token) {
    let (mut port, mut token) = (None, None);
    let mut kept = None;
    let mut instance = manual.start(&config(), World::default(), |scope| {
        let (given, future) = scope.create_future();
        (port, token, kept) = (Some(given), Some(scope.token()), Some(future));
        Response::ok(actor(|call, scope: &mut Scope<'_, World>| match call {
            Call::Wakeup(_) => {
                scope.wakeups += 1;
                let Some(future) = scope.future.take() else { return Response::keep(()) };
                let observed = match future.take() {
                    Outcome::Pending(future) => {
                        scope.future = Some(future);
                        "pending".to_string()
                    }
                    Outcome::Value(value) => format!("value {value}"),
                    Outcome::Lost(lost) => format!("{lost:?}"),
                };
                scope.observed.push(observed);
                Response::keep(())
            }
            _ => Response::done(),
        }))
    });
    instance.context_mut().future = kept;
    (instance, port.expect("the closure ran"), token.expect("the closure ran"))
}

#[test]
fn a_value_set_by_another_thread_wakes_the_waiting_machine() {
    let manual = Manual::new();
    let (mut instance, port, _) = loop_awaiting_value(&manual);
    assert!(!port.is_cancelled());
    thread::scope(|threads| {
        threads.spawn(move || port.set(7).expect("the machine waits"));
    });
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["value 7"]);
    assert_eq!(instance.context().wakeups, 1);
}

#[test]
fn a_port_dropped_unset_wakes_the_machine_and_reports_it() {
    let manual = Manual::new();
    let (mut instance, port, _) = loop_awaiting_value(&manual);
    drop(port);
    assert!(instance.context().future.as_ref().is_some_and(Future::is_ready));
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["Dropped"]);
    assert_eq!(
        FutureError::Dropped.to_string(),
        "the answering side dropped its port without a value"
    );
}

#[test]
fn a_port_dropped_by_a_panic_wakes_the_machine_and_reports_it() {
    let manual = Manual::new();
    let (mut instance, port, _) = loop_awaiting_value(&manual);
    let panicked = thread::spawn(move || {
        let _port = port;
        panic!("the answering side");
    });
    panicked.join().expect_err("it panicked");
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["Panicked"]);
}

#[test]
fn a_port_held_by_a_panicking_machine_reports_the_panic() {
    let manual = Manual::new();
    let (mut instance, port, _) = loop_awaiting_value(&manual);
    let mut port = Some(port);
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |_, _: &mut Scope<'_, World>| {
            let _held = port.take();
            panic!("the answering machine");
        }))
    });
    manual.feed(made.expect("there is room"), EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["Panicked"]);
}

#[test]
fn a_wakeup_without_a_value_finds_the_future_pending() {
    let manual = Manual::new();
    let (mut instance, port, token) = loop_awaiting_value(&manual);
    let _ = instance.machines().scan(rotor_core::Cursor::START, |_, _| rotor_core::Verdict::Wake);
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["pending"]);
    port.set(1).expect("the machine still waits");
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["pending", "value 1"]);
    assert!(instance.machines().get(token).is_some());
}

#[test]
fn dropping_the_future_cancels_the_port_and_returns_the_value() {
    let manual = Manual::new();
    let (mut instance, port, _) = loop_awaiting_value(&manual);
    instance.context_mut().future = None;
    assert!(port.is_cancelled());
    assert_eq!(port.set(9), Err(9));
    settle(&mut instance);
    assert_eq!(instance.context().wakeups, 0, "nobody waits, so nobody is woken");
}

#[test]
fn dropping_a_cancelled_port_wakes_nobody() {
    let manual = Manual::new();
    let (mut instance, port, _) = loop_awaiting_value(&manual);
    instance.context_mut().future = None;
    drop(port);
    settle(&mut instance);
    assert_eq!(instance.context().wakeups, 0);
}

#[test]
fn a_value_for_an_ended_machine_is_returned() {
    let manual = Manual::new();
    let (mut instance, port, token) = loop_awaiting_value(&manual);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert!(port.is_cancelled());
    assert_eq!(port.set(9), Err(9));
    let (instance, port, _) = loop_awaiting_value(&manual);
    drop(instance);
    assert!(port.is_cancelled());
    assert_eq!(port.set(9), Err(9));
}

#[test]
fn a_future_that_outlives_its_machine_does_not_stay_pending() {
    let manual = Manual::new();
    let (mut instance, port, token) = loop_awaiting_value(&manual);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    let future = instance.context_mut().future.take().expect("it was left behind");
    assert!(!future.is_ready(), "nothing was decided yet");
    assert_eq!(port.set(5), Err(5));
    assert!(future.is_ready());
    assert!(matches!(future.take(), Outcome::Lost(FutureError::Dropped)));
}

#[test]
fn cancelling_wakes_the_notifier_registered_for_it() {
    let manual = Manual::new();
    let mut kept = None;
    let mut instance = manual.start(&config(), World::default(), |scope| {
        kept = Some(scope.notifier());
        Response::ok(actor(|_, scope: &mut Scope<'_, World>| {
            scope.wakeups += 1;
            Response::keep(())
        }))
    });
    let on_cancel = kept.expect("the closure ran");
    let mut futures = Vec::new();
    let made = instance.add_machine_with(|scope| {
        futures =
            (0..2).map(|_| scope.create_cancellable_future::<u32>(on_cancel.clone())).collect();
        Response::ok(idle())
    });
    made.expect("there is room");
    let (port, future) = futures.pop().expect("there are two");
    port.set(1).expect("the future is there");
    drop(future);
    settle(&mut instance);
    assert_eq!(instance.context().wakeups, 0, "a value was there: nothing was cancelled");
    let (port, future) = futures.pop().expect("there are two");
    drop(future);
    settle(&mut instance);
    assert_eq!(instance.context().wakeups, 1);
    assert!(port.is_cancelled());
}

/// A machine with a mailbox; at each wake-up it receives all pending messages.
fn loop_with_mailbox(manual: &Manual, bound: usize) -> (Instance, Sender<u32>, Token) {
    let mut kept = None;
    let mut instance = manual.start(&config(), World::default(), |scope| {
        let (sender, mailbox) = scope.create_mailbox(bound);
        kept = Some((sender, mailbox, scope.token()));
        Response::ok(actor(|call, scope: &mut Scope<'_, World>| match call {
            Call::Wakeup(_) => {
                scope.wakeups += 1;
                let Some(mut mailbox) = scope.mailbox.take() else { return Response::keep(()) };
                loop {
                    match mailbox.try_receive() {
                        Ok(message) => scope.observed.push(message.to_string()),
                        Err(ReceiveError::Empty) => break scope.mailbox = Some(mailbox),
                        Err(ReceiveError::Closed) => break scope.observed.push("closed".into()),
                    }
                }
                Response::keep(())
            }
            _ => Response::done(),
        }))
    });
    let (sender, mailbox, token) = kept.expect("the closure ran");
    instance.context_mut().mailbox = Some(mailbox);
    (instance, sender, token)
}

#[test]
fn a_mailbox_holds_up_to_its_bound_in_order_and_wakes_once() {
    for bound in [0, 1, 2, 3] {
        let manual = Manual::new();
        let (mut instance, sender, _) = loop_with_mailbox(&manual, bound);
        let room = bound.max(1) as u32;
        for message in 0..room {
            assert_eq!(sender.send(message), Ok(()), "bound {bound}");
        }
        let full = sender.clone().send(99);
        assert_eq!(full, Err(SendError::Full(99)), "bound {bound}");
        assert_eq!(full.map_err(SendError::into_message), Err(99));
        settle(&mut instance);
        assert_eq!(sender.send(7), Ok(()), "there is room again");
        settle(&mut instance);
        let mut expected: Vec<String> = (0..room).map(|message| message.to_string()).collect();
        expected.push("7".into());
        assert_eq!(instance.context().observed, expected);
        assert_eq!(instance.context().wakeups, 2);
    }
}

#[test]
fn a_mailbox_reports_how_many_messages_are_queued() {
    let manual = Manual::new();
    let (mut instance, sender, _) = loop_with_mailbox(&manual, 4);
    for message in 0..3 {
        let mailbox = instance.context().mailbox.as_ref().expect("it is there");
        assert_eq!((mailbox.len(), mailbox.is_empty()), (message as usize, message == 0));
        sender.send(message).expect("there is room");
    }
    settle(&mut instance);
    let mailbox = instance.context().mailbox.as_ref().expect("it is there");
    assert_eq!((mailbox.len(), mailbox.is_empty()), (0, true), "they were received");
}

#[test]
fn dropping_the_last_sender_closes_the_mailbox_after_queued_messages() {
    let manual = Manual::new();
    let (mut instance, sender, _) = loop_with_mailbox(&manual, 4);
    let second = sender.clone();
    drop(sender);
    settle(&mut instance);
    assert_eq!(instance.context().wakeups, 0, "one is left");
    thread::scope(|threads| {
        threads.spawn(move || second.send(5).expect("there is room"));
    });
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["5", "closed"]);
}

#[test]
fn sending_to_a_closed_mailbox_returns_the_message() {
    let manual = Manual::new();
    let (mut instance, sender, _) = loop_with_mailbox(&manual, 4);
    assert!(!sender.is_closed());
    instance.context_mut().mailbox = None;
    assert!(sender.is_closed(), "though its machine is there");
    assert_eq!(sender.send(5), Err(SendError::Closed(5)));
    let (mut instance, sender, token) = loop_with_mailbox(&manual, 4);
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert!(sender.is_closed());
    assert_eq!(sender.send(5), Err(SendError::Closed(5)), "its machine is gone");
    let (instance, sender, _) = loop_with_mailbox(&manual, 4);
    drop(instance);
    assert_eq!(sender.send(5), Err(SendError::Closed(5)), "its loop is gone");
}

#[test]
fn ports_and_mailboxes_of_a_part_wake_the_machine_with_its_number() {
    let manual = Manual::new();
    let mut kept = None;
    let mut instance = manual.start(&config(), Vec::<Vec<u32>>::new(), |scope| {
        let (port, future) = scope.part(3).create_future::<u32>();
        let (sender, mailbox) = scope.part(4).create_mailbox::<u32>(1);
        kept = Some((port, sender));
        Response::ok(actor(move |call, scope: &mut Scope<'_, Vec<Vec<u32>>>| {
            let _kept = (&future, &mailbox);
            if let Call::Wakeup(parts) = call {
                scope.push(parts);
            }
            Response::keep(())
        }))
    });
    let (port, sender) = kept.expect("the closure ran");
    sender.send(1).expect("there is room");
    port.set(1).expect("somebody waits");
    settle(&mut instance);
    assert_eq!(*instance.context(), [[3, 4]]);
}

#[test]
fn a_mailbox_loses_no_message_of_several_threads() {
    const THREADS: u32 = 4;
    const EACH: u32 = 10_000;
    let mut creator = rotor_core::Loop::new(&Config::new()).expect("there are descriptors");
    let mut kept = None;
    let made = creator.add_machine_with(|scope| {
        let (sender, mailbox) = scope.create_mailbox(16);
        kept = Some(sender);
        let mut mailbox = mailbox;
        Response::ok(actor(move |call, scope: &mut Scope<'_, Vec<u32>>| {
            if matches!(call, Call::Ready(_)) {
                return Response::keep(());
            }
            loop {
                match mailbox.try_receive() {
                    Ok(message) => scope.push(message),
                    Err(ReceiveError::Empty) => return Response::keep(()),
                    Err(ReceiveError::Closed) => return Response::done(),
                }
            }
        }))
    });
    made.expect("there is room");
    let sender = kept.expect("the closure ran");
    let mut instance = creator.instantiate(Vec::new());
    thread::scope(|threads| {
        for thread in 0..THREADS {
            let sender = sender.clone();
            threads.spawn(move || {
                for message in 0..EACH {
                    let mut message = thread * EACH + message;
                    while let Err(error) = sender.send(message) {
                        message = error.into_message();
                        thread::yield_now();
                    }
                }
            });
        }
        drop(sender);
        instance.run().expect("the backend can wait");
    });
    let mut received = instance.into_context();
    for thread in 0..THREADS {
        let of_thread = received.iter().filter(|message| **message / EACH == thread);
        assert!(of_thread.is_sorted(), "messages of one thread stay in order");
    }
    received.sort_unstable();
    assert_eq!(received, (0..THREADS * EACH).collect::<Vec<_>>());
}
