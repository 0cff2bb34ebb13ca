//! Code that runs between handlers: posted closures, repeated closures, and scans with their
//! verdicts.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::{
    Config, Cursor, EventSet, Exit, ExitPolicy, LoopInstance, MachineView, PostError, Response,
    Scope, TICK, Token, Verdict,
};

use crate::actor::{Actor, Call, Seed, actor};
use crate::manual::{Manual, settle};

type Log = Vec<String>;
type Instance = LoopInstance<Actor<Log>, Manual>;

const MS: Duration = Duration::from_millis(1);

fn empty(manual: &Manual, config: Config) -> Instance {
    manual.creator(&config.exit(ExitPolicy::OnRequest)).instantiate(Log::new())
}

fn add_recording_machine(instance: &mut Instance, name: &'static str) -> Token {
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
            scope.push(format!("{name} {}", call.name()));
            Response::keep(())
        }))
    });
    made.expect("there is room")
}

#[test]
fn a_posted_closure_sees_every_machine_and_the_context() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let tokens =
        [add_recording_machine(&mut instance, "a"), add_recording_machine(&mut instance, "b")];
    let post = move |machines: rotor_core::Machines<'_, Actor<Log>>,
                     scope: &mut rotor_core::GlobalScope<'_, Log>| {
        let seen: Vec<Token> = machines.iter().map(|(token, _)| token).collect();
        assert_eq!((seen, machines.len(), machines.is_empty()), (tokens.to_vec(), 2, false));
        assert!(machines.get(tokens[1]).is_some());
        let now = scope.now();
        scope.push(format!("{:?}", now));
        assert_ne!(scope.random_u64(), scope.random_u64());
        assert_ne!(scope.secure_random::<16>(), scope.secure_random());
        assert_eq!(scope.draining_until(), None);
    };
    instance.broadcast().post(post).expect("there is room");
    assert!(instance.next_deadline().is_some(), "it is due");
    settle(&mut instance);
    assert_eq!(*instance.context(), [format!("{:?}", manual.now())]);
}

#[test]
fn a_posted_closure_runs_after_the_last_machine_has_ended() {
    let manual = Manual::new();
    let mut instance = manual.creator::<Actor<Log>>(&Config::new()).instantiate(Log::new());
    let broadcast = instance.broadcast();
    let post = move |_: rotor_core::Machines<'_, Actor<Log>>,
                     scope: &mut rotor_core::GlobalScope<'_, Log>| {
        scope.push("first".into());
        let next = |_: rotor_core::Machines<'_, Actor<Log>>,
                    scope: &mut rotor_core::GlobalScope<'_, Log>| {
            scope.push("second".into());
        };
        broadcast.post(next).expect("there is room");
    };
    instance.broadcast().post(post).expect("there is room");
    assert_eq!(instance.run().expect("it never waits"), Exit::Empty);
    assert_eq!(*instance.context(), ["first", "second"]);
}

#[test]
fn posted_closures_are_bounded_and_returned_when_not_accepted() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new().posts_max(2));
    let broadcast = instance.broadcast();
    for name in ["one", "two"] {
        broadcast.post(move |_, scope| scope.push(name.into())).expect("there is room");
    }
    let error =
        broadcast.post(|_, scope| scope.push("three".into())).expect_err("two is the limit");
    assert!(error.to_string().contains("posts_max"));
    assert!(matches!(error, PostError::Full(_)), "{error:?}");
    settle(&mut instance);
    broadcast.post(error.into_closure()).map_err(drop).expect("there is room again");
    settle(&mut instance);
    assert_eq!(*instance.context(), ["one", "two", "three"]);
    drop(instance);
    let error = broadcast.clone().post(|_, _| {}).expect_err("the loop is gone");
    assert!(matches!(error, PostError::Closed(_)));
}

#[test]
fn a_closure_that_posts_itself_runs_once_a_turn() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    fn again(broadcast: rotor_core::Broadcast<Actor<Log>>) {
        let next = broadcast.clone();
        let post = move |_: rotor_core::Machines<'_, _>,
                         scope: &mut rotor_core::GlobalScope<'_, Log>| {
            scope.push("ran".into());
            again(next);
        };
        broadcast.post(post).expect("there is room");
    }
    again(instance.broadcast());
    for turn in 1..10 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(instance.context().len(), turn);
    }
}

#[test]
fn every_runs_its_closure_after_each_period_and_skips_missed_ones() {
    let manual = Manual::new();
    let started = manual.now();
    let mut instance = empty(&manual, Config::new());
    add_recording_machine(&mut instance, "a");
    instance.every(10 * MS, |machines, scope| {
        assert_eq!(machines.len(), 1);
        let now = scope.now();
        scope.push(format!("{now:?}"));
    });
    assert_eq!(instance.next_deadline(), Some(started + 10 * MS));
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), Log::new());
    for _ in 0..3 {
        instance.turn(None).expect("there is a time to wait for");
    }
    assert_eq!(manual.now() - started, 30 * MS);
    manual.advance(95 * MS);
    settle(&mut instance);
    assert_eq!(instance.context().len(), 4, "one call for all that was missed");
    assert_eq!(instance.next_deadline(), Some(manual.now() + 10 * MS));
}

#[test]
fn a_loop_without_machines_ends_despite_a_repeated_closure() {
    let manual = Manual::new();
    let mut instance = manual.start(&Config::new(), Log::new(), |scope| {
        Response::ok(actor(|_, _| Response::done())).deadline(scope.now() + 25 * MS)
    });
    instance.every(10 * MS, |_, scope| scope.push("tick".into()));
    assert_eq!(instance.run().expect("it can wait"), rotor_core::Exit::Empty);
    assert_eq!(instance.context().len(), 2);
}

/// Scans from `cursor` with the same verdict for all machines; returns the tokens seen and the
/// cursor to continue from.
fn scan(instance: &mut Instance, cursor: Cursor, verdict: Verdict) -> (Vec<Token>, Option<Cursor>) {
    let mut seen = Vec::new();
    let next = instance.machines().scan(cursor, |token, machine| {
        assert!(matches!(machine, MachineView::Waiting(_)));
        seen.push(token);
        verdict
    });
    (seen, next)
}

#[test]
fn each_verdict_is_applied_in_the_next_turn() {
    let cases = [
        (Verdict::Keep, &[][..], 1),
        (Verdict::Wake, &["a wakeup"], 1),
        (Verdict::Expire, &["a timeout"], 1),
        (Verdict::Drain, &["a draining"], 1),
        (Verdict::End, &[], 0),
    ];
    for (verdict, expected_calls, left) in cases {
        let manual = Manual::new();
        let mut instance = empty(&manual, Config::new());
        add_recording_machine(&mut instance, "a");
        settle(&mut instance);
        let (seen, next) = scan(&mut instance, Cursor::START, verdict);
        assert_eq!((seen.len(), next), (1, None));
        assert_eq!(*instance.context(), Log::new(), "not at once");
        settle(&mut instance);
        assert_eq!(*instance.context(), expected_calls, "{verdict:?}");
        assert_eq!(instance.machines().len(), left, "{verdict:?}");
        settle(&mut instance);
        assert_eq!(instance.context().len(), expected_calls.len(), "once");
        assert_eq!(instance.next_deadline(), None, "{verdict:?}");
    }
}

#[test]
fn a_verdict_given_in_a_repeated_closure_is_applied() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    add_recording_machine(&mut instance, "a");
    instance.every(MS, |mut machines, _| {
        let _ = machines.scan(Cursor::START, |_, _| Verdict::Wake);
    });
    manual.advance(MS);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["a wakeup"]);
}

#[test]
fn a_verdict_for_a_machine_that_has_ended_is_discarded() {
    for verdict in [Verdict::Wake, Verdict::Expire, Verdict::Drain, Verdict::End] {
        let manual = Manual::new();
        let mut instance = empty(&manual, Config::new().machines_max(1));
        let made = instance.add_machine_with(|_| {
            Response::ok(actor(|_, _: &mut Scope<'_, Log>| Response::done()))
        });
        scan(&mut instance, Cursor::START, verdict);
        manual.feed(made.expect("there is room"), EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        settle(&mut instance);
        add_recording_machine(&mut instance, "next in the slot");
        settle(&mut instance);
        assert_eq!(*instance.context(), Log::new(), "{verdict:?}");
        assert_eq!(instance.machines().len(), 1);
    }
}

#[test]
fn scans_share_the_budget_of_a_turn_and_resume_at_their_cursor() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new().scan_budget(4));
    let tokens: Vec<Token> = (0..10).map(|_| add_recording_machine(&mut instance, "a")).collect();
    let mut seen = Vec::new();
    let mut cursor = Some(Cursor::START);
    let mut turns = 0;
    while let Some(from) = cursor {
        let (some, next) = scan(&mut instance, from, Verdict::Keep);
        assert!(some.len() <= 4);
        let (none, stuck) = scan(&mut instance, next.unwrap_or(Cursor::START), Verdict::Keep);
        assert!(next.is_none() || none.is_empty() && stuck == next, "the budget is spent");
        seen.extend(some);
        cursor = next;
        turns += 1;
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!((seen, turns), (tokens, 3));
}

#[test]
fn repeated_closures_take_turns_with_the_budget_of_scans() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new().scan_budget(4));
    for _ in 0..12 {
        add_recording_machine(&mut instance, "a");
    }
    for name in ["a", "b", "c"] {
        let mut cursor = Cursor::START;
        instance.every(MS, move |mut machines, scope| {
            let mut seen = 0;
            let next = machines.scan(cursor, |_, _| {
                seen += 1;
                Verdict::Keep
            });
            cursor = next.unwrap_or(Cursor::START);
            scope.push(format!("{name} {seen}"));
        });
    }
    let mut seen = Log::new();
    for _ in 0..4 {
        manual.advance(MS);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        seen.extend(instance.context_mut().drain(..).filter(|call| !call.ends_with(" 0")));
    }
    assert_eq!(seen, ["a 4", "b 4", "c 4", "a 4"]);
}

#[test]
fn repeated_closures_with_other_periods_take_turns_with_the_budget_of_scans() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new().scan_budget(1));
    add_recording_machine(&mut instance, "a");
    for (name, period) in [("often", 1), ("first", 10), ("second", 10), ("between", 5)] {
        instance.every(period * MS, move |mut machines, scope| {
            machines.scan(Cursor::START, |_, _| {
                scope.push(name.into());
                Verdict::Keep
            });
        });
    }
    for _ in 0..40 {
        manual.advance(MS);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    let mut seen = std::mem::take(instance.context_mut());
    assert_eq!(seen.len(), 40);
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["between", "first", "often", "second"]);
}

#[test]
fn a_verdict_on_a_machine_with_a_pending_spawn_is_applied_afterwards() {
    for (verdict, expected_calls) in [
        (Verdict::End, &["ready"][..]),
        (Verdict::Drain, &["ready", "spawned", "spawned", "draining"]),
    ] {
        let manual = Manual::new();
        let mut instance = empty(&manual, Config::new().spawns_per_event(1));
        let mut left = 2;
        let made = instance.add_machine_with(|_| {
            Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
                scope.push(call.name().into());
                match call {
                    Call::Ready(_) | Call::Spawned if left > 0 => {
                        left -= 1;
                        Response::spawn((), Seed::idle("child"))
                    }
                    _ => Response::keep(()),
                }
            }))
        });
        let token = made.expect("there is room");
        manual.feed(token, EventSet::READABLE);
        // The second spawn waits for the next turn; the verdict is applied between the two spawns.
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        let _ = instance
            .machines()
            .scan(Cursor::START, |met, _| if met == token { verdict } else { Verdict::Keep });
        settle(&mut instance);
        let calls_before_the_end =
            instance.context().iter().take(expected_calls.len()).collect::<Vec<_>>();
        assert_eq!(calls_before_the_end, expected_calls, "{verdict:?}");
        let ended = instance.machines().get(token).is_none();
        assert_eq!(ended, verdict == Verdict::End);
    }
}

#[test]
fn a_closure_posted_by_a_handler_runs_in_the_same_turn() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let broadcast = instance.broadcast();
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |_, scope: &mut Scope<'_, Log>| {
            broadcast.post(|_, scope| scope.push("posted".into())).expect("there is room");
            scope.push("handler".into());
            Response::keep(())
        }))
    });
    manual.feed(made.expect("there is room"), EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), ["handler", "posted"]);
}

#[test]
fn a_zero_period_is_rounded_up_to_one_tick() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new().exit(ExitPolicy::OnRequest));
    instance.every(Duration::ZERO, |_, scope| scope.push("every".into()));
    let began = instance.now();
    for tick in 1..=3 {
        assert_eq!(instance.next_deadline(), Some(began + tick * TICK));
        instance.turn(None).expect("there is a time to wait for");
        assert_eq!(instance.context().len(), tick as usize);
    }
}

#[test]
fn a_closure_with_an_endless_period_is_kept_and_the_loop_waits_for_events_only() {
    let manual = Manual::new();
    let mut instance = empty(&manual, Config::new());
    let is_kept = Arc::new(());
    let held = is_kept.clone();
    instance.every(Duration::MAX, move |_, scope| scope.push(format!("{held:?}")));
    assert_eq!(instance.next_deadline(), None);
    instance.every(MS, |_, scope| scope.push("tick".into()));
    for _ in 0..3 {
        instance.turn(None).expect("there is a time to wait for");
    }
    assert_eq!(*instance.context(), ["tick"; 3]);
    assert_eq!(Arc::strong_count(&is_kept), 2, "dropped before the loop");
    drop(instance);
    assert_eq!(Arc::strong_count(&is_kept), 1);
}
