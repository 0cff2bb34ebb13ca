//! Numeric settings at their limits.

use std::time::Duration;

use rotor_core::{Config, EVENTS_LIMIT, Loop, Mio, Response, Scope};

use crate::actor::{Call, Seed, actor, idle};
use crate::manual::{Manual, settle};

#[test]
fn a_loop_runs_with_any_events_max_including_zero() {
    for events_max in [0, 1, EVENTS_LIMIT, EVENTS_LIMIT + 1, 200_000_000, usize::MAX] {
        let config = Config::new().events_max(events_max);
        let mut creator = Loop::new(&config).expect("there is memory for it");
        creator.add_machine_with(|_| Response::ok(idle())).expect("there is room");
        let mut instance = creator.instantiate(());
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        let backend = Mio::new(events_max).expect("there is memory for it");
        let mut instance =
            Loop::with_backend(backend, &config).expect("there is room").instantiate(());
        instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
}

#[test]
fn every_config_number_may_be_zero_or_the_maximum() {
    let least = Config::new()
        .machines_max(0)
        .events_max(0)
        .spawns_per_event(0)
        .wakeups_per_turn(0)
        .timeouts_per_turn(0)
        .posts_max(0)
        .scan_budget(0);
    let greatest = Config::new()
        .events_max(usize::MAX)
        .spawns_per_event(u32::MAX)
        .wakeups_per_turn(u32::MAX)
        .timeouts_per_turn(u32::MAX)
        .posts_max(usize::MAX)
        .scan_budget(usize::MAX);
    for config in [least, greatest] {
        let manual = Manual::new();
        let mut instance = manual.start(&config, 0, |scope| {
            scope.notifier().wakeup();
            Response::again(actor(|call, scope: &mut Scope<'_, u32>| {
                **scope += 1;
                match call {
                    Call::Ready(_) => {
                        Response::spawn((), Seed::idle("child")).deadline(scope.now())
                    }
                    Call::Timeout if **scope > 3 => Response::done(),
                    Call::Timeout => Response::ok(()).deadline(scope.now()),
                    _ => Response::keep(()),
                }
            }))
        });
        let posted = instance.broadcast().post(|mut machines, scope| {
            **scope += 10;
            machines.scan(rotor_core::Cursor::START, |_, _| rotor_core::Verdict::Wake);
        });
        posted.expect("there is room");
        settle(&mut instance);
        instance.handle().drain(Duration::ZERO);
        settle(&mut instance);
        assert!(*instance.context() > 13, "{config:?}");
        assert_eq!(instance.machines().len(), 0, "{config:?}");
    }
}
