//! Requests and replies between machines, and from plain threads.

use std::thread;
use std::time::Duration;

use rotor_core::{
    Calls, Config, Cursor, EventSet, ExitPolicy, Future, FutureError, LoopInstance, Outcome, Port,
    ReceiveError, Response, Scope, SendError, Service, Token, Verdict,
};

use crate::actor::{Actor, Call as Called, actor, idle};
use crate::manual::{Manual, settle};

type TestCall = rotor_core::Call<u32, String>;

/// The server's calls, and what the asking machine keeps.
#[derive(Default)]
struct World {
    calls: Option<Calls<u32, String>>,
    held: Vec<TestCall>,
    served: u32,
    cancelled: Vec<bool>,
    futures: Vec<Future<String>>,
    observed: Vec<String>,
}

type Instance = LoopInstance<Actor<World>, Manual>;

struct Pair {
    instance: Instance,
    service: Service<u32, String>,
    server: Token,
}

fn config() -> Config {
    Config::new().exit(ExitPolicy::OnRequest)
}

/// A server that holds the requests it gets; an event ends it.
fn pair(manual: &Manual, bound: usize) -> Pair {
    let (mut kept, mut server) = (None, None);
    let mut instance = manual.start(&config(), World::default(), |scope| {
        kept = Some(scope.create_service(bound));
        server = Some(scope.token());
        Response::ok(actor(serve))
    });
    let (service, calls) = kept.expect("the closure ran");
    instance.context_mut().calls = Some(calls);
    Pair { instance, service, server: server.expect("the closure ran") }
}

fn serve(
    called: Called<World>,
    scope: &mut Scope<'_, World>,
) -> Response<(), crate::actor::Seed<World>> {
    let Called::Wakeup(_) = called else {
        scope.calls = None;
        return Response::done();
    };
    scope.served += 1;
    let Some(mut calls) = scope.calls.take() else { return Response::keep(()) };
    while let Some(call) = calls.receive() {
        scope.held.push(call);
    }
    let cancelled = calls.take_cancelled();
    scope.cancelled.push(cancelled);
    scope.calls = Some(calls);
    Response::keep(())
}

fn record_answers(
    called: Called<World>,
    scope: &mut Scope<'_, World>,
) -> Response<(), crate::actor::Seed<World>> {
    let Called::Wakeup(_) = called else { return Response::done() };
    for future in std::mem::take(&mut scope.futures) {
        let observed = match future.take() {
            Outcome::Pending(future) => {
                scope.futures.push(future);
                continue;
            }
            Outcome::Value(value) => value,
            Outcome::Lost(lost) => format!("{lost:?}"),
        };
        scope.observed.push(observed);
    }
    Response::keep(())
}

impl Pair {
    /// Adds a machine that asks, and records the answer.
    fn ask(&mut self, request: u32) -> Result<(), SendError<u32>> {
        let service = self.service.clone();
        let mut answer = None;
        let made = self.instance.add_machine_with(|scope| {
            answer = Some(service.ask(request, scope));
            Response::ok(actor(record_answers))
        });
        made.expect("there is room");
        let future = answer.expect("the closure ran")?;
        self.instance.context_mut().futures.push(future);
        Ok(())
    }

    fn world(&mut self) -> &mut World {
        self.instance.context_mut()
    }
}

#[test]
fn an_answer_wakes_the_asking_machine_with_its_value() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    pair.ask(7).expect("there is room");
    settle(&mut pair.instance);
    let call = pair.world().held.pop().expect("it was received");
    assert_eq!(*call.request(), 7);
    assert!(!call.is_cancelled());
    assert!(pair.world().observed.is_empty());
    call.answer("seven".into()).expect("somebody waits");
    settle(&mut pair.instance);
    assert_eq!(pair.world().observed, ["seven"]);
    assert_eq!(pair.world().cancelled, [false], "an answer taken is no cancellation");
}

#[test]
fn requests_arrive_in_order_with_one_wakeup() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 3);
    for request in 0..3 {
        pair.ask(request).expect("there is room");
    }
    let calls = pair.world().calls.as_ref().expect("it is there");
    assert_eq!((calls.len(), calls.is_empty()), (3, false));
    settle(&mut pair.instance);
    assert!(pair.world().calls.as_ref().is_some_and(|calls| calls.is_empty()));
    let requests: Vec<u32> = pair.world().held.iter().map(|call| *call.request()).collect();
    assert_eq!(requests, [0, 1, 2]);
    assert_eq!(pair.world().served, 1);
}

#[test]
fn a_full_queue_returns_the_request_and_wakes_nobody() {
    for bound in [0, 1, 2] {
        let manual = Manual::new();
        let mut pair = pair(&manual, bound);
        let room = bound.max(1) as u32;
        for request in 0..room {
            pair.ask(request).expect("there is room");
        }
        assert_eq!(pair.ask(99), Err(SendError::Full(99)), "bound {bound}");
        settle(&mut pair.instance);
        assert_eq!(pair.world().cancelled, [false], "a refused request was not cancelled");
        assert_eq!(pair.world().held.len(), room as usize);
        assert_eq!(pair.ask(5), Ok(()), "there is room again");
    }
}

#[test]
fn a_refused_request_does_not_wake_the_server() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 1);
    pair.world().calls = None;
    assert_eq!(pair.ask(5), Err(SendError::Closed(5)), "nobody receives");
    settle(&mut pair.instance);
    assert_eq!(pair.world().served, 0);
    assert!(pair.world().observed.is_empty());
}

#[test]
fn dropping_the_future_cancels_the_request_and_wakes_the_server() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    pair.ask(1).expect("there is room");
    pair.ask(2).expect("there is room");
    settle(&mut pair.instance);
    drop(pair.world().futures.remove(0));
    settle(&mut pair.instance);
    assert_eq!(pair.world().cancelled, [false, true]);
    let cancelled: Vec<bool> = pair.world().held.iter().map(TestCall::is_cancelled).collect();
    assert_eq!(cancelled, [true, false]);
    let call = pair.world().held.remove(0);
    assert_eq!(call.answer("late".into()), Err("late".into()));
    settle(&mut pair.instance);
    assert!(pair.world().observed.is_empty());
}

#[test]
fn a_request_cancelled_in_the_queue_is_received_as_cancelled() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    pair.ask(1).expect("there is room");
    pair.world().futures.clear();
    settle(&mut pair.instance);
    assert!(pair.world().held[0].is_cancelled());
    assert_eq!(pair.world().cancelled, [true]);
}

#[test]
fn a_dropped_call_is_reported_as_lost() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    pair.ask(1).expect("there is room");
    settle(&mut pair.instance);
    pair.world().held.clear();
    settle(&mut pair.instance);
    assert_eq!(pair.world().observed, ["Dropped"]);
}

#[test]
fn queued_requests_are_lost_when_the_server_ends() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    pair.ask(1).expect("there is room");
    manual.feed(pair.server, EventSet::READABLE);
    settle(&mut pair.instance);
    assert_eq!(pair.world().observed, ["Dropped"], "it was still in the queue");
    assert!(pair.service.is_closed());
    assert_eq!(pair.ask(2), Err(SendError::Closed(2)));
}

#[test]
fn a_panic_of_the_server_is_reported_to_all_waiting_callers() {
    let manual = Manual::new();
    let mut kept = None;
    let mut instance = manual.start(&config(), World::default(), |scope| {
        let (service, calls) = scope.create_service::<u32, String>(4);
        kept = Some(service);
        let mut calls = Some(calls);
        Response::ok(actor(move |_, _: &mut Scope<'_, World>| {
            let _held = calls.take();
            panic!("the server");
        }))
    });
    let service = kept.expect("the closure ran");
    let mut futures = Vec::new();
    let made = instance.add_machine_with(|scope| {
        futures =
            (0..2).map(|request| service.ask(request, scope).expect("there is room")).collect();
        Response::ok(actor(record_answers))
    });
    made.expect("there is room");
    instance.context_mut().futures = futures;
    settle(&mut instance);
    assert_eq!(instance.context().observed, ["Panicked", "Panicked"]);
}

#[test]
fn a_call_is_cancelled_once_the_asking_machine_has_ended() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    let service = pair.service.clone();
    let mut kept: Option<Future<String>> = None;
    let made = pair.instance.add_machine_with(|scope| {
        kept = service.ask(3, scope).ok();
        Response::ok(idle())
    });
    let gone = made.expect("there is room");
    settle(&mut pair.instance);
    assert!(!pair.world().held[0].is_cancelled());
    // The future outlives its machine, and nobody would take its value.
    let _ = pair
        .instance
        .machines()
        .scan(Cursor::START, |token, _| if token == gone { Verdict::End } else { Verdict::Keep });
    settle(&mut pair.instance);
    let call = pair.world().held.pop().expect("it is held");
    assert!(call.is_cancelled());
    assert_eq!(call.answer("nobody".into()), Err("nobody".into()));
    drop(kept);
}

#[test]
fn a_passed_on_port_notifies_its_new_holder_of_a_cancellation() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    pair.ask(1).expect("there is room");
    settle(&mut pair.instance);
    let call = pair.world().held.pop().expect("it was received");
    let (request, port): (u32, Port<String>) = call.into_parts();
    assert_eq!(request, 1);
    let made = pair.instance.add_machine_with(|scope| {
        port.on_cancel(scope.notifier());
        Response::ok(actor(|called, scope: &mut Scope<'_, World>| {
            scope.observed.push(format!("worker: {}", called.name()));
            Response::keep(())
        }))
    });
    made.expect("there is room");
    pair.world().futures.clear();
    settle(&mut pair.instance);
    assert_eq!(pair.world().observed, ["worker: wakeup"]);
    assert_eq!(pair.world().cancelled, [false], "the server does not hear of it any more");
    assert!(port.is_cancelled());
}

#[test]
fn dropping_the_last_service_wakes_the_server_and_closes_its_calls() {
    let manual = Manual::new();
    let Pair { mut instance, service, .. } = pair(&manual, 4);
    let other = service.clone();
    drop(service);
    settle(&mut instance);
    assert_eq!(instance.context().served, 0, "one is left");
    drop(other);
    settle(&mut instance);
    assert_eq!(instance.context().served, 1);
    let calls = instance.context_mut().calls.as_mut().expect("the server has them");
    assert!(matches!(calls.try_receive(), Err(ReceiveError::Closed)));
}

#[test]
fn plain_threads_can_ask_and_wait_for_replies() {
    const THREADS: u32 = 4;
    const EACH: u32 = 1_000;
    let mut creator = rotor_core::Loop::new(&Config::new()).expect("there are descriptors");
    let mut kept = None;
    let made = creator.add_machine_with(|scope| {
        let (service, mut calls) = scope.create_service::<u32, u32>(8);
        kept = Some(service);
        Response::ok(actor(move |_, _: &mut Scope<'_, ()>| {
            loop {
                match calls.try_receive() {
                    Ok(call) => {
                        let double = *call.request() * 2;
                        let _gone = call.answer(double);
                    }
                    Err(ReceiveError::Empty) => return Response::keep(()),
                    Err(ReceiveError::Closed) => return Response::done(),
                }
            }
        }))
    });
    made.expect("there is room");
    let service = kept.expect("the closure ran");
    let mut instance = creator.instantiate(());
    thread::scope(|threads| {
        for thread in 0..THREADS {
            let service = service.clone();
            threads.spawn(move || {
                for request in 0..EACH {
                    let request = thread * EACH + request;
                    let reply = loop {
                        match service.ask_from_thread(request) {
                            Ok(reply) => break reply,
                            Err(error) => assert_eq!(error, SendError::Full(request)),
                        }
                        thread::yield_now();
                    };
                    assert_eq!(reply.wait(), Ok(request * 2));
                }
            });
        }
        drop(service);
        instance.run().expect("the backend can wait");
    });
}

#[test]
fn a_waiting_plain_thread_learns_that_no_answer_will_come() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    let reply = pair.service.ask_from_thread(1).expect("there is room");
    let cancelled = pair.service.ask_from_thread(2).expect("there is room");
    assert!(!reply.is_ready());
    drop(cancelled);
    settle(&mut pair.instance);
    assert_eq!(
        pair.world().held.iter().map(TestCall::is_cancelled).collect::<Vec<_>>(),
        [false, true]
    );
    pair.world().held.clear();
    assert!(reply.is_ready());
    assert_eq!(reply.wait(), Err(FutureError::Dropped));
    let waiting = pair.service.ask_from_thread(3).expect("there is room");
    drop(pair);
    assert_eq!(waiting.wait(), Err(FutureError::Dropped), "its loop is gone");
}

#[test]
fn a_plain_thread_can_wait_with_a_timeout_again_or_give_up() {
    let manual = Manual::new();
    let mut pair = pair(&manual, 4);
    let [first, second, third] =
        [1, 2, 3].map(|number| pair.service.ask_from_thread(number).expect("there is room"));
    settle(&mut pair.instance);
    let first = first.wait_timeout(Duration::ZERO).expect_err("it has no answer yet");
    let first = first.wait_timeout(Duration::from_millis(1)).expect_err("nor has it now");
    drop(second.wait_timeout(Duration::ZERO).expect_err("it has none either"));
    let held = std::mem::take(&mut pair.world().held);
    assert_eq!(held.iter().map(TestCall::is_cancelled).collect::<Vec<_>>(), [false, true, false]);
    let mut held = held.into_iter();
    let answer = held.next().expect("three were asked").answer("first".to_string());
    answer.expect("somebody waits");
    // A value that is already there is returned even with a zero timeout. A very long timeout works
    // too.
    assert_eq!(first.wait_timeout(Duration::ZERO).map_err(drop), Ok(Ok("first".to_string())));
    let call = held.next_back().expect("three were asked");
    thread::scope(|threads| {
        threads.spawn(move || call.answer("third".to_string()).expect("somebody waits"));
        assert_eq!(third.wait_timeout(Duration::MAX).map_err(drop), Ok(Ok("third".to_string())));
    });
    let lost = pair.service.ask_from_thread(4).expect("there is room");
    drop(pair);
    assert_eq!(
        lost.wait_timeout(Duration::from_secs(60)).map_err(drop),
        Ok(Err(FutureError::Dropped))
    );
}
