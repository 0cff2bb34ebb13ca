//! The loop's reports of its own time, and of its machines to code that scans them.

use std::ops::ControlFlow;
use std::time::Duration;

use rotor_core::{Config, Cursor, EventSet, ExitPolicy, Response, Scope, Time, Token, Verdict};

use crate::actor::{Actor, actor, idle};
use crate::manual::{Manual, settle};

const MS: Duration = Duration::from_millis(1);

/// A machine whose handlers take `time`.
fn slow(manual: &Manual, time: Duration) -> Response<Actor<()>> {
    let manual = manual.clone();
    Response::ok(actor(move |_, _: &mut Scope<'_, ()>| {
        manual.advance(time);
        Response::keep(())
    }))
}

#[test]
fn a_loop_is_busy_in_its_turns_and_waits_between_them() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
    let token = instance.add_machine_with(|_| slow(&manual, 7 * MS)).expect("there is room");
    let stats = instance.stats();
    let before = stats.times();
    for _ in 0..3 {
        manual.advance(14 * MS);
        manual.feed(token, EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    let times = stats.times();
    assert_eq!((times.busy, times.waited), (21 * MS, 42 * MS));
    assert_eq!((times.turns.count(), times.in_turn_since), (3, None));
    let share = times.utilisation(&before).expect("turns have ended");
    assert!((share - 1.0 / 3.0).abs() < 1e-9, "{share}");
    assert_eq!((stats.take_longest().turn, stats.take_longest().turn), (7 * MS, Duration::ZERO));
    assert_eq!(stats.read().longest_turn, 7 * MS, "of all time it stays");
}

#[test]
fn lag_measures_how_late_a_deadline_fires() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
    let made = instance.add_machine_with(|scope| {
        let until = scope.now() + 10 * MS;
        Response::ok(actor(|_, _: &mut Scope<'_, ()>| Response::keep(()))).deadline(until)
    });
    made.expect("there is room");
    let stats = instance.stats();
    settle(&mut instance);
    assert_eq!((stats.read().armed, stats.times().lag.count()), (1, 0));
    manual.advance(13 * MS);
    settle(&mut instance);
    let lag = stats.times().lag;
    assert_eq!((lag.count(), lag.sum()), (1, 3 * MS));
    assert_eq!(stats.read().armed, 0);
}

#[test]
fn handlers_of_sampled_turns_are_timed_by_machine_type() {
    for (one_of, timed) in [(0, 0), (1, 8), (4, 2), (64, 0)] {
        let manual = Manual::new();
        let config = Config::new().exit(ExitPolicy::OnRequest).sample_handlers(one_of);
        let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
        let token = instance.add_machine_with(|_| slow(&manual, 2 * MS)).expect("there is room");
        for _ in 0..8 {
            manual.feed(token, EventSet::READABLE);
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        }
        let handlers = instance.stats().times().handlers;
        let seen = handlers
            .first()
            .map_or((0, Duration::ZERO), |handler| (handler.times.count(), handler.times.sum()));
        assert_eq!(seen, (timed, timed as u32 * 2 * MS), "one of {one_of}");
        assert!(instance.stats().read().longest_handler.is_none(), "that is of all handlers");
        let lately = instance.stats().take_longest().handler.map(|handler| handler.time);
        assert_eq!(lately, (timed > 0).then_some(2 * MS), "one of {one_of}");
    }
}

#[test]
fn details_are_available_only_for_a_live_machine() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).keep_ages(true);
    let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
    manual.advance(Duration::from_secs(3));
    let until = manual.now() + Duration::from_secs(60);
    let made = instance.add_machine_with(|_| Response::ok(idle()).deadline(until));
    let token = made.expect("there is room");
    let details = instance.machines().details(token).expect("it is alive");
    let second = |time: Time| time.as_nanos() / 1_000_000_000;
    assert_eq!((details.deadline, details.is_due, details.is_busy), (Some(until), false, false));
    assert_eq!(details.made.map(second), Some(second(manual.now())));
    assert!(instance.machines().decide(token, Verdict::End));
    settle(&mut instance);
    assert!(instance.machines().details(token).is_none());
    assert!(!instance.machines().decide(token, Verdict::End), "it is gone");
}

#[test]
fn creation_times_are_unknown_unless_recorded() {
    let manual = Manual::new();
    let mut instance = manual.start(&Config::new(), (), |_| Response::ok(idle()));
    let mut seen = Vec::new();
    let next = instance.machines().scan_some(Cursor::START, 10, |machines, token, _| {
        seen.push(machines.details(token).map(|details| details.made));
        ControlFlow::Continue(())
    });
    assert_eq!((next, seen), (None, vec![Some(None)]));
}

#[test]
fn a_partial_scan_ends_at_a_break_or_when_the_budget_is_spent() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).scan_budget(5);
    let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
    for _ in 0..8 {
        instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    }
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    let mut met: Vec<Token> = Vec::new();
    let mut meet = |token, most: usize| {
        met.push(token);
        if met.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut machines = instance.machines();
    let next = machines.scan_some(Cursor::START, 2, |_, token, _| meet(token, 9));
    // A scan that stops early uses up only as much budget as it has seen machines.
    let next = machines.scan_some(next.expect("there are more"), 3, |_, token, _| meet(token, 3));
    let next = machines.scan_some(next.expect("there are more"), 3, |_, token, _| meet(token, 9));
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    let rest = next.expect("the budget of the turn is spent");
    let next = instance.machines().scan_some(rest, 2, |_, token, _| meet(token, 9));
    let rest = next.expect("five and two are seen");
    // Nothing follows the last machine, whether the scan stopped there or not.
    let next = instance.machines().scan_some(rest, 3, |_, token, _| meet(token, 8));
    assert_eq!((next, met.len()), (None, 8));
    met.dedup();
    assert_eq!(met.len(), 8, "each once");
}

#[test]
fn a_partial_scan_past_the_last_machine_spends_no_budget() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).scan_budget(5);
    let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
    for _ in 0..2 {
        instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    }
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    let mut machines = instance.machines();
    let mut met = 0;
    for _ in 0..2 {
        let next = machines.scan_some(Cursor::START, 100, |_, _, _| {
            met += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(next, None);
    }
    assert_eq!(met, 4, "of five");
}

#[test]
fn the_token_of_a_future_machine_names_none() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
    let ended = instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    assert!(instance.machines().decide(ended, Verdict::End));
    settle(&mut instance);
    let next = instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    assert!(instance.machines().decide(next, Verdict::End));
    settle(&mut instance);
    // The generations of one slot are evenly spaced, so this is the slot's next token.
    let to_come = Token::from_usize(2 * next.into_usize() - ended.into_usize());
    for verdict in [Verdict::Expire, Verdict::Wake, Verdict::Drain, Verdict::End] {
        assert!(!instance.machines().decide(to_come, verdict), "{verdict:?}");
    }
    settle(&mut instance);
    assert_eq!(instance.next_deadline(), None);
    instance.check_invariants().expect("the books agree");
    let made = instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    assert_eq!(made, to_come);
}
