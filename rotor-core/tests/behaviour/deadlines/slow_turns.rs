//! Deadlines in slow turns: which call comes first, how many deadlines fire, and the loop's time
//! afterwards.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::{
    Backend, Config, EventSet, ExitPolicy, Loop, LoopInstance, Response, Scope, Time, Token, Wake,
};

use super::{Log, MS, add, empty, is_due, turn};
use crate::actor::{Actor, Call, Seed, actor, idle};
use crate::manual::{Manual, settle};

#[test]
fn the_clock_is_read_again_before_deadlines_after_slow_handlers() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let slow = manual.clone();
    let token = add(&mut instance, "slow", move |_, _| {
        slow.advance(5 * MS);
        Response::ok(())
    });
    let other = add(&mut instance, "a", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + 4 * MS),
        _ => Response::ok(()),
    });
    manual.feed(other, EventSet::READABLE);
    manual.feed(token, EventSet::READABLE);
    assert_eq!(turn(&mut instance), [("a", 1), ("slow", 1), ("a", 2)]);
}

/// A handler takes 5 ms. After the first 2 ms, input arrives for a machine with a deadline of 4 ms.
#[test]
fn timely_input_during_a_slow_handler_is_delivered_before_the_deadline() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let waiting = add(&mut instance, "waiting", |call, now| match call {
        Call::Ready(events) if events.is_writable() => Response::ok(()).deadline(now + 4 * MS),
        Call::Ready(_) => Response::ok(()),
        call => panic!("{}: its input was there", call.name()),
    });
    let silent = add(&mut instance, "silent", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + 4 * MS),
        _ => Response::ok(()),
    });
    let outside = manual.clone();
    let slow = add(&mut instance, "slow", move |_, _| {
        outside.advance(2 * MS);
        outside.feed(waiting, EventSet::READABLE);
        outside.advance(3 * MS);
        Response::ok(())
    });
    manual.feed(waiting, EventSet::WRITABLE);
    manual.feed(silent, EventSet::WRITABLE);
    manual.feed(slow, EventSet::READABLE);
    manual.take_waits();
    let calls = turn(&mut instance);
    assert_eq!(calls, [("waiting", 1), ("silent", 1), ("slow", 1), ("waiting", 2), ("silent", 2)]);
    assert_eq!(manual.take_waits().len(), 2, "one look more, before the deadlines");
    assert!(!is_due(&instance));
    assert_eq!(instance.stats().read().timeouts, 1);
    instance.check_invariants().expect("the books agree");
}

/// The backend reports an event, and then the thread waits 5 ms for a CPU before it can read the
/// clock. After the first 2 ms, input arrives for a machine with a deadline of 4 ms.
#[test]
fn input_between_a_poll_and_the_clock_reading_precedes_the_deadline() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let waiting = add(&mut instance, "waiting", |call, now| match call {
        Call::Ready(events) if events.is_writable() => Response::ok(()).deadline(now + 4 * MS),
        Call::Ready(_) => Response::ok(()),
        call => panic!("{}: its input was there", call.name()),
    });
    let outside = manual.clone();
    // An event that is fed in a handler was not yet there for this turn's poll to report.
    let other = add(&mut instance, "other", move |_, _| {
        outside.advance_at_each_reading(Duration::ZERO);
        outside.feed(waiting, EventSet::READABLE);
        Response::keep(())
    });
    manual.feed(waiting, EventSet::WRITABLE);
    assert_eq!(turn(&mut instance), [("waiting", 1)]);
    manual.feed(other, EventSet::READABLE);
    manual.advance_at_each_reading(5 * MS);
    assert_eq!(turn(&mut instance), [("other", 1), ("waiting", 2)]);
    assert_eq!(instance.stats().read().timeouts, 0);
    // If only the deadline ended the wait, there is no input to poll for again.
    let timed = add(&mut instance, "timed", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + 4 * MS),
        _ => Response::ok(()),
    });
    manual.feed(timed, EventSet::READABLE);
    turn(&mut instance);
    manual.advance(4 * MS);
    manual.take_waits();
    assert_eq!(turn(&mut instance), [("timed", 2)]);
    assert_eq!(manual.take_waits().len(), 1);
}

/// A backend whose thread waits 5 ms for a CPU after the next poll. After the first 2 ms, input
/// arrives for this machine.
struct PreemptedBackend {
    manual: Manual,
    waiting: Arc<Mutex<Option<Token>>>,
}

impl Backend for PreemptedBackend {
    type Handle = Manual;

    fn handle(&self) -> io::Result<Manual> {
        self.manual.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.manual.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.manual.wait(until, ready)?;
        if let Some(token) = self.waiting.lock().expect("nobody panics with it").take() {
            self.manual.advance(2 * MS);
            self.manual.feed(token, EventSet::READABLE);
            self.manual.advance(3 * MS);
        }
        Ok(())
    }
}

#[test]
fn input_after_a_poll_that_a_request_ended_precedes_the_deadline() {
    let (manual, waiting) = (Manual::new(), Arc::<Mutex<Option<Token>>>::default());
    let backend = PreemptedBackend { manual: manual.clone(), waiting: waiting.clone() };
    let mut creator = Loop::with_backend(backend, &Config::new()).expect("nothing can fail");
    let made = creator.add_machine_with(|_| {
        Response::ok(actor(|call, scope: &mut Scope<'_, Vec<&'static str>>| {
            scope.push(call.name());
            match call {
                Call::Ready(events) if events.is_writable() => {
                    Response::ok(()).deadline(scope.now() + 4 * MS)
                }
                _ => Response::ok(()),
            }
        }))
    });
    let token = made.expect("there is room");
    let mut instance = creator.instantiate(Vec::new());
    manual.feed(token, EventSet::WRITABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    *waiting.lock().expect("nobody panics with it") = Some(token);
    instance.broadcast().post(|_, _| {}).expect("there is room");
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), ["ready", "ready"]);
}

/// The wait ends at the deadline of the first machine, and then the thread waits 5 ms for a CPU
/// before it can read the clock.
#[test]
fn input_after_a_wait_that_a_deadline_ended_precedes_a_later_deadline() {
    let (manual, waiting) = (Manual::new(), Arc::<Mutex<Option<Token>>>::default());
    let backend = PreemptedBackend { manual: manual.clone(), waiting: waiting.clone() };
    let mut creator = Loop::with_backend(backend, &Config::new()).expect("nothing can fail");
    let mut add = |name, time| {
        let made = creator.add_machine_with(|scope| {
            let deadline = scope.now() + time;
            let machine = actor(move |call, scope: &mut Scope<'_, Log>| {
                scope.push((name, if matches!(call, Call::Ready(_)) { 1 } else { 2 }));
                Response::ok(())
            });
            Response::ok(machine).deadline(deadline)
        });
        made.expect("there is room")
    };
    add("first", 4 * MS);
    let second = add("second", 7 * MS);
    let mut instance = creator.instantiate(Log::new());
    *waiting.lock().expect("nobody panics with it") = Some(second);
    instance.turn(None).expect("waiting never fails");
    assert_eq!(*instance.context(), [("second", 1), ("first", 2)]);
}

/// A machine keeps the loop busy, so that it only polls. After the poll the thread waits 5 ms for a
/// CPU before it can read the clock.
#[test]
fn input_after_a_poll_of_a_busy_loop_precedes_the_deadline() {
    let (manual, waiting) = (Manual::new(), Arc::<Mutex<Option<Token>>>::default());
    let backend = PreemptedBackend { manual: manual.clone(), waiting: waiting.clone() };
    let mut creator = Loop::with_backend(backend, &Config::new()).expect("nothing can fail");
    let made = creator.add_machine_with(|scope| {
        let deadline = scope.now() + 4 * MS;
        let machine = actor(|call, scope: &mut Scope<'_, Log>| {
            scope.push((call.name(), 0));
            scope.stop_loop();
            Response::ok(())
        });
        Response::ok(machine).deadline(deadline)
    });
    let token = made.expect("there is room");
    let (place, mut left) = (waiting.clone(), 3);
    let made = creator.add_machine_with(|scope| {
        scope.wake_self();
        Response::ok(actor(move |_, scope: &mut Scope<'_, Log>| {
            left -= 1;
            if left == 0 {
                *place.lock().expect("nobody panics with it") = Some(token);
            }
            scope.wake_self();
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(Log::new());
    instance.run().expect("polling never fails");
    assert_eq!(*instance.context(), [("ready", 0)]);
}

/// The poll before the deadlines takes as many events as any other poll, and no more.
#[test]
fn deadlines_passed_in_a_slow_turn_wait_for_all_earlier_input() {
    let manual = Manual::new();
    manual.limit_events(3);
    let config = Config::new().exit(ExitPolicy::OnRequest).events_max(3);
    let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
    let tokens = ["a", "b", "c", "d", "e"].map(|name| {
        add(&mut instance, name, |call, now| match call {
            Call::Ready(events) if events.is_writable() => Response::ok(()).deadline(now + 4 * MS),
            Call::Ready(_) => Response::ok(()),
            call => panic!("{}: its input was there", call.name()),
        })
    });
    tokens.iter().for_each(|token| manual.feed(*token, EventSet::WRITABLE));
    settle(&mut instance);
    let outside = manual.clone();
    let slow = add(&mut instance, "slow", move |_, _| {
        tokens.iter().for_each(|token| outside.feed(*token, EventSet::READABLE));
        outside.advance(5 * MS);
        Response::ok(())
    });
    manual.feed(slow, EventSet::READABLE);
    assert_eq!(turn(&mut instance), [("slow", 1), ("a", 2), ("b", 2), ("c", 2)]);
    assert_eq!(turn(&mut instance), [("d", 2), ("e", 2)]);
    settle(&mut instance);
    assert_eq!(instance.stats().read().timeouts, 0);
}

#[test]
fn deadlines_that_pass_together_fire_within_the_budget_of_each_turn() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).timeouts_per_turn(10);
    let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
    for _ in 0..25 {
        let token = add(&mut instance, "late", |call, now| match call {
            Call::Ready(_) => Response::ok(()).deadline(now + 10 * MS),
            _ => Response::ok(()),
        });
        manual.feed(token, EventSet::READABLE);
    }
    let other = add(&mut instance, "other", |_, _| Response::keep(()));
    turn(&mut instance);
    manual.advance(10 * MS);
    for fired in [10, 10, 5] {
        manual.feed(other, EventSet::READABLE);
        assert!(is_due(&instance) || manual.now() > instance.now());
        let calls = turn(&mut instance);
        assert_eq!(calls[0].0, "other", "the backend comes first");
        assert_eq!(calls.len(), 1 + fired);
        instance.check_invariants().expect("the books agree");
    }
    assert!(!is_due(&instance));
}

#[test]
fn a_running_loop_polls_its_backend_between_two_budgets_of_deadlines() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).timeouts_per_turn(1);
    let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
    let watched = add(&mut instance, "input", |_, _| Response::keep(()));
    for _ in 0..2 {
        let outside = manual.clone();
        let made = instance.add_machine_with(|scope| {
            let deadline = scope.now() + MS;
            Response::ok(actor(move |_, scope: &mut Scope<'_, Log>| {
                if scope.is_empty() {
                    outside.feed(watched, EventSet::READABLE);
                } else {
                    scope.stop_loop();
                }
                scope.push(("deadline", 0));
                Response::ok(())
            }))
            .deadline(deadline)
        });
        made.expect("there is room");
    }
    instance.run().expect("there are deadlines");
    assert_eq!(*instance.context(), [("deadline", 0), ("input", 1), ("deadline", 0)]);
}

#[test]
fn past_deadlines_of_many_machines_respect_the_budget_of_each_turn() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).timeouts_per_turn(4);
    let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
    for name in ["a", "b", "c", "d", "e", "f"] {
        let token = add(&mut instance, name, |_, now| Response::ok(()).deadline(now - MS));
        manual.feed(token, EventSet::READABLE);
    }
    let names = |log: Log| log.into_iter().map(|(name, _)| name).collect::<String>();
    assert_eq!(names(turn(&mut instance)), "abcdefabcd");
    for calls in ["efab", "cdef", "abcd"] {
        assert_eq!(names(turn(&mut instance)), calls);
        instance.check_invariants().expect("the books agree");
    }
}

/// Machines whose input came in time must not time out because the loop was late.
#[test]
fn deadlines_after_a_stall_wait_for_earlier_input() {
    let manual = Manual::new();
    manual.limit_events(2);
    let config = Config::new().exit(ExitPolicy::OnRequest).events_max(2);
    let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
    let tokens = ["a", "b", "c", "d", "e"].map(|name| {
        add(&mut instance, name, |call, now| match call {
            Call::Ready(events) if events.is_writable() => Response::ok(()).deadline(now + 10 * MS),
            Call::Ready(_) => Response::ok(()),
            call => panic!("{}: its input was there", call.name()),
        })
    });
    let silent = add(&mut instance, "silent", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + 10 * MS),
        _ => Response::ok(()),
    });
    tokens.iter().chain([&silent]).for_each(|token| manual.feed(*token, EventSet::WRITABLE));
    settle(&mut instance);
    manual.advance(1_000 * MS);
    tokens.iter().for_each(|token| manual.feed(*token, EventSet::READABLE));
    instance.context_mut().clear();
    settle(&mut instance);
    assert_eq!(
        *instance.context(),
        [("a", 2), ("b", 2), ("c", 2), ("d", 2), ("e", 2), ("silent", 2)]
    );
}

/// A source may have more than one event in the backend.
#[test]
fn a_deadline_waits_for_as_many_full_polls_as_the_backend_needs() {
    for (full_waits, expected) in [(3, "timeout"), (4, "ready")] {
        let manual = Manual::new();
        manual.limit_events(2);
        manual.set_full_waits(full_waits);
        let config = Config::new().exit(ExitPolicy::OnRequest).events_max(2);
        let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
        let busy = add(&mut instance, "busy", |_, _| Response::keep(()));
        let made = instance.add_machine_with(|scope| {
            let deadline = scope.now() + MS;
            let note = |call: Call<Log>, scope: &mut Scope<'_, Log>| {
                scope.push((call.name(), 0));
                Response::ok(())
            };
            Response::ok(actor(note)).deadline(deadline)
        });
        let waiting = made.expect("there is room");
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        manual.advance(MS);
        (0..6).for_each(|_| manual.feed(busy, EventSet::READABLE));
        manual.feed(waiting, EventSet::READABLE);
        // In the last poll, there is more than one wait takes.
        (0..2).for_each(|_| manual.feed(busy, EventSet::READABLE));
        settle(&mut instance);
        let first = instance.context().iter().find(|(name, _)| *name != "busy");
        assert_eq!(first.map(|(name, _)| *name), Some(expected), "{full_waits}");
    }
}

#[test]
fn deadlines_fire_even_if_the_backend_always_has_more_events() {
    const SOURCES: usize = 9;
    let manual = Manual::new();
    manual.limit_events(2);
    let config = Config::new().exit(ExitPolicy::OnRequest).events_max(2);
    let mut instance = manual.creator::<Actor<Log>>(&config).instantiate(Log::new());
    let busy: Vec<Token> =
        (0..SOURCES).map(|_| add(&mut instance, "busy", |_, _| Response::keep(()))).collect();
    let patient = add(&mut instance, "patient", |_, now| Response::ok(()).deadline(now + MS));
    manual.feed(patient, EventSet::READABLE);
    for _ in 0..10 {
        busy.iter().for_each(|token| manual.feed(*token, EventSet::READABLE));
    }
    turn(&mut instance);
    for _ in 0..3 {
        manual.advance(MS);
        let calls: Log = (0..5).flat_map(|_| turn(&mut instance)).collect();
        let fired = calls.iter().filter(|(name, _)| *name == "patient").count();
        assert_eq!(fired, 1, "five looks at two show ten machines");
    }
}

#[test]
fn a_deadline_set_after_a_slow_handler_counts_from_the_current_time() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let slow = manual.clone();
    let stalled = add(&mut instance, "slow", move |_, _| {
        slow.advance(300 * MS);
        Response::ok(())
    });
    let prompt = add(&mut instance, "prompt", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + 100 * MS),
        _ => Response::ok(()),
    });
    let began = manual.now();
    manual.feed(stalled, EventSet::READABLE);
    manual.feed(prompt, EventSet::READABLE);
    assert_eq!(turn(&mut instance), [("slow", 1), ("prompt", 1)]);
    assert_eq!(instance.next_deadline(), Some(began + 400 * MS));
    manual.advance(99 * MS);
    assert_eq!(turn(&mut instance), []);
    manual.advance(MS);
    assert_eq!(turn(&mut instance), [("prompt", 2)]);
}

#[test]
fn spawned_machines_and_posted_closures_see_the_time_after_slow_handlers() {
    let manual = Manual::new();
    let began = manual.now();
    let slow = manual.clone();
    let mut instance =
        manual.start(&Config::new().exit(ExitPolicy::OnRequest), Vec::<Time>::new(), |_| {
            Response::again(actor(move |call, _: &mut Scope<'_, Vec<Time>>| match call {
                Call::Ready(_) => {
                    slow.advance(20 * MS);
                    let slow = slow.clone();
                    Response::spawn(
                        (),
                        Seed::new("child", move |scope: &mut Scope<'_, Vec<Time>>| {
                            let now = scope.now();
                            scope.push(now);
                            slow.advance(30 * MS);
                            Response::ok(idle())
                        }),
                    )
                }
                _ => Response::keep(()),
            }))
        });
    let posted = instance.broadcast().post(|_, scope| {
        let now = scope.now();
        scope.push(now);
    });
    posted.expect("there is room");
    turn_once(&mut instance);
    assert_eq!(*instance.context(), [began + 20 * MS, began + 50 * MS]);
}

fn turn_once(instance: &mut LoopInstance<Actor<Vec<Time>>, Manual>) {
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
}

/// On the system clock, whose coarse reading may be some milliseconds behind.
#[test]
fn loop_time_is_current_after_a_slow_handler() {
    let mut creator = rotor_core::Loop::new(&Config::new()).expect("there are descriptors");
    for is_slow in [true, false] {
        let made = creator.add_machine_with(|_| {
            Response::again(actor(move |_, scope: &mut Scope<'_, Vec<Time>>| {
                let now = scope.now();
                scope.push(now);
                let began = std::time::Instant::now();
                while is_slow && began.elapsed() < 60 * MS {
                    std::hint::spin_loop();
                }
                Response::done()
            }))
        });
        made.expect("there is room");
    }
    let mut instance = creator.instantiate(Vec::new());
    instance.run().expect("it never waits");
    let times = instance.context();
    assert!(times[1] - times[0] >= 30 * MS, "{times:?}");
}
