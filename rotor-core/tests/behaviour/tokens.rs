//! A call meant for a machine that is gone never reaches a later machine in the same slot.

use std::time::Duration;

use rotor_core::{Config, EventSet, LoopInstance, Notifier, Response, Token};

use crate::actor::{Actor, Call, actor};
use crate::manual::{Manual, settle};

type Log = Vec<&'static str>;
type Instance = LoopInstance<Actor<Log>, Manual>;

/// A loop with a single slot; the machine in it ends at its first event or wake-up.
fn loop_with_one_machine(manual: &Manual) -> (Instance, Token, Notifier) {
    let mut kept = None;
    let config = Config::new().machines_max(1).exit(rotor_core::ExitPolicy::OnRequest);
    let instance = manual.start(&config, Log::new(), |scope| {
        kept = Some((scope.token(), scope.notifier()));
        Response::ok(actor(|_, _: &mut rotor_core::Scope<'_, Log>| Response::done()))
            .deadline(scope.now() + Duration::from_secs(1))
    });
    let (token, notifier) = kept.expect("the closure ran");
    (instance, token, notifier)
}

/// Puts a machine that records its calls into the slot.
fn add_recorder(instance: &mut Instance) -> Token {
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(|call: Call<Log>, scope| {
            scope.push(call.name());
            Response::keep(())
        }))
    });
    made.expect("the slot is free again")
}

fn slot(token: Token) -> usize {
    token.into_usize() & 0xff_ffff
}

#[test]
fn an_event_for_an_ended_machine_does_not_reach_the_next_in_its_slot() {
    let manual = Manual::new();
    let (mut instance, old, _) = loop_with_one_machine(&manual);
    manual.feed(old, EventSet::READABLE);
    settle(&mut instance);
    let new = add_recorder(&mut instance);
    assert_eq!(slot(old), slot(new));
    assert_ne!(old, new);
    manual.feed(old, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), Log::new());
    assert_eq!(instance.stats().read().stale, 1);
    manual.feed(new, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["ready"], "its own event does reach it");
}

#[test]
fn an_event_polled_with_the_one_that_ended_its_machine_is_dropped() {
    let manual = Manual::new();
    let (mut instance, old, _) = loop_with_one_machine(&manual);
    manual.feed(old, EventSet::READABLE);
    manual.feed(old, EventSet::WRITABLE);
    settle(&mut instance);
    assert_eq!((instance.stats().read().ended, instance.stats().read().stale), (1, 1));
}

#[test]
fn a_wakeup_for_an_ended_machine_does_not_reach_the_next_in_its_slot() {
    let manual = Manual::new();
    let (mut instance, old, notifier) = loop_with_one_machine(&manual);
    assert!(notifier.is_alive());
    manual.feed(old, EventSet::READABLE);
    settle(&mut instance);
    add_recorder(&mut instance);
    assert!(!notifier.wakeup() && !notifier.is_alive());
    settle(&mut instance);
    assert_eq!(*instance.context(), Log::new());
}

#[test]
fn a_pending_wakeup_of_an_ended_machine_does_not_reach_the_next() {
    let manual = Manual::new();
    let (mut instance, old, notifier) = loop_with_one_machine(&manual);
    assert!(notifier.wakeup());
    manual.feed(old, EventSet::READABLE);
    settle(&mut instance);
    let stats = instance.stats().read();
    assert_eq!((stats.ended, stats.wakeups, stats.stale), (1, 0, 1));
    add_recorder(&mut instance);
    settle(&mut instance);
    assert_eq!(*instance.context(), Log::new());
}

#[test]
fn a_deadline_of_an_ended_machine_does_not_reach_the_next_in_its_slot() {
    let manual = Manual::new();
    let (mut instance, old, _) = loop_with_one_machine(&manual);
    manual.feed(old, EventSet::READABLE);
    settle(&mut instance);
    add_recorder(&mut instance);
    assert_eq!(instance.next_deadline(), None);
    manual.advance(Duration::from_secs(5));
    settle(&mut instance);
    assert_eq!(*instance.context(), Log::new());
    assert_eq!(instance.stats().read().timeouts, 0);
}

#[test]
fn a_deadline_due_with_the_event_that_ends_its_machine_does_not_fire() {
    let manual = Manual::new();
    let (mut instance, old, _) = loop_with_one_machine(&manual);
    manual.advance(Duration::from_secs(5));
    manual.feed(old, EventSet::READABLE);
    settle(&mut instance);
    let stats = instance.stats().read();
    assert_eq!((stats.ended, stats.timeouts), (1, 0));
}

#[test]
fn an_invalid_token_names_no_machine() {
    let manual = Manual::new();
    let (mut instance, ..) = loop_with_one_machine(&manual);
    for number in [usize::MAX, usize::MAX >> 1, 0xff_ffff, 5, 1 << 24] {
        manual.feed(Token::from_usize(number), EventSet::READABLE);
        assert!(instance.machines().get(Token::from_usize(number)).is_none());
    }
    settle(&mut instance);
    let stats = instance.stats().read();
    assert_eq!((stats.stale, stats.events, stats.alive), (5, 0, 1));
}

#[test]
fn a_token_is_never_reused_however_often_its_slot_is() {
    let manual = Manual::new();
    let (mut instance, old, _) = loop_with_one_machine(&manual);
    let mut before = old;
    for _ in 0..1_000 {
        manual.feed(before, EventSet::READABLE);
        settle(&mut instance);
        let made = instance.add_machine_with(|_| {
            Response::ok(actor(|_, _: &mut rotor_core::Scope<'_, Log>| Response::done()))
        });
        let token = made.expect("the slot is free again");
        assert!(token > before, "generations only grow");
        before = token;
    }
}
