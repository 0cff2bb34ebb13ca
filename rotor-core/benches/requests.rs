//! What a request from one machine to another and its answer cost, in one loop and between two.
//!
//! ```text
//! cargo bench -p rotor-core --bench requests                measures, and prints a table
//! cargo bench -p rotor-core --bench requests -- --test      runs every row once with little work
//! cargo bench -p rotor-core --bench requests -- loops       only rows whose names contain this
//! ```
//!
//! Apart from the bench of the loop, because that one counts what is allocated, which costs as much
//! as allocating does: a request is one allocation.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench has threads of its own")]

mod measure;

use std::collections::VecDeque;
use std::thread;

use rotor_core::{
    Calls, Config, EventSet, Future, Infallible, Loop, LoopInstance, Machine, Notifier, Outcome,
    Response, Scope, Service,
};

use crate::measure::{Effort, Figure};

fn main() {
    let effort = Effort::from_arguments();
    let wanted =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut rows = round_trips(effort);
    rows.retain(|row| row.name.contains(&wanted));
    for _ in 0..effort.rounds() {
        for row in &mut rows {
            let nanos = (row.round)();
            row.figure.push(nanos);
        }
    }
    println!("ns per request and reply, median of {} rounds (lowest – highest)\n", effort.rounds());
    for row in &rows {
        let target = row.target.map_or(String::new(), |target| format!("≤ {target}"));
        println!("{:<48}{:>30}{target:>10}", row.name, row.figure);
    }
}

/// One line of the table.
struct Row {
    name: &'static str,
    /// In nanoseconds: from the list of what to reach.
    target: Option<u32>,
    /// Measures once; answers nanoseconds per operation.
    round: Box<dyn FnMut() -> f64>,
    figure: Figure,
}

fn row(name: &'static str, target: Option<u32>, round: impl FnMut() -> f64 + 'static) -> Row {
    Row { name, target, round: Box::new(round), figure: Figure::default() }
}

/// Answers requests, or makes them, one or so many at a time.
enum Talks {
    Server(Calls<u64, u64>),
    Asker(Option<Future<u64>>),
    /// Behind an allocation, so that the rows of one at a time do not move it about.
    AskerOfMany(Box<Many>),
    /// Keeps its loop awake.
    Spins,
}

/// Requests under way, oldest first.
#[derive(Default)]
struct Many {
    futures: VecDeque<Future<u64>>,
}

/// What a loop of askers shares.
struct Asks {
    service: Option<Service<u64, u64>>,
    left: u64,
    at_once: usize,
}

impl Machine for Talks {
    type Context = Asks;
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, Asks>) -> Response<Self, Infallible> {
        Response::again(self)
    }

    fn wakeup(self, scope: &mut Scope<'_, Asks>) -> Response<Self, Infallible> {
        match self {
            Talks::Server(mut calls) => {
                while let Some(call) = calls.receive() {
                    let request = *call.request();
                    call.answer(request + 1).expect("somebody waits");
                }
                Response::keep(Talks::Server(calls))
            }
            Talks::Asker(future) => {
                match future.map(Future::take) {
                    Some(Outcome::Value(_)) => scope.left -= 1,
                    None => {}
                    Some(other) => panic!("{other:?}"),
                }
                if scope.left == 0 {
                    scope.stop_loop();
                    return Response::keep(Talks::Asker(None));
                }
                let service = scope.service.as_ref().expect("it is set before the run");
                let future = service.ask(1, scope).expect("there is room");
                Response::keep(Talks::Asker(Some(future)))
            }
            Talks::AskerOfMany(mut many) => {
                ask(&mut many.futures, scope);
                Response::keep(Talks::AskerOfMany(many))
            }
            Talks::Spins => Response::keep(self),
        }
    }
}

/// Takes the answers that are there, and asks again for each.
fn ask(futures: &mut VecDeque<Future<u64>>, scope: &mut Scope<'_, Asks>) {
    for _ in 0..futures.len() {
        match futures.pop_front().expect("counted").take() {
            Outcome::Pending(future) => futures.push_back(future),
            Outcome::Value(_) => scope.left -= 1,
            Outcome::Lost(lost) => panic!("{lost}"),
        }
    }
    while futures.len() < scope.at_once && scope.left > futures.len() as u64 {
        let service = scope.service.as_ref().expect("it is set before the run");
        futures.push_back(service.ask(1, scope).expect("there is room"));
    }
    if scope.left == 0 {
        scope.stop_loop();
    }
}

/// A loop with an asker, and the asker's notifier; with a server of its own, or one elsewhere.
fn asker(at_once: usize, elsewhere: Option<Service<u64, u64>>) -> (LoopInstance<Talks>, Notifier) {
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let mut service = elsewhere;
    if service.is_some() {
        creator.add_machine_with(|_| Response::again(Talks::Spins)).expect("there is room");
    } else {
        let made = creator.add_machine_with(|scope| {
            let (made, calls) = scope.create_service(64);
            service = Some(made);
            Response::ok(Talks::Server(calls))
        });
        made.expect("there is room");
    }
    let mut notifier = None;
    let made = creator.add_machine_with(|scope| {
        notifier = Some(scope.notifier());
        Response::ok(match at_once {
            1 => Talks::Asker(None),
            _ => Talks::AskerOfMany(Box::default()),
        })
    });
    made.expect("there is room");
    let instance = creator.instantiate(Asks { service, left: 0, at_once });
    (instance, notifier.expect("the closure ran"))
}

fn round_trips(effort: Effort) -> Vec<Row> {
    let trips = effort.pick(500_000, 500);
    let round = move |instance: &mut LoopInstance<Talks>, notifier: &Notifier| {
        instance.context_mut().left = trips;
        effort.nanos_per(trips, || {
            notifier.wakeup();
            instance.run().expect("it can wait");
        })
    };
    let within = |at_once: usize| {
        let (mut instance, notifier) = asker(at_once, None);
        move || round(&mut instance, &notifier)
    };
    let between = |at_once: usize| {
        move || {
            // Two loops for each round: they spin, and would disturb the other rows.
            let (sender, made) = std::sync::mpsc::channel();
            let thread = thread::spawn(move || {
                let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
                creator.add_machine_with(|_| Response::again(Talks::Spins)).expect("there is room");
                let mut service = None;
                let made = creator.add_machine_with(|scope| {
                    let (made, calls) = scope.create_service(64);
                    service = Some(made);
                    Response::ok(Talks::Server(calls))
                });
                made.expect("there is room");
                let mut instance = creator.instantiate(Asks { service: None, left: 0, at_once });
                sender
                    .send((service.expect("the closure ran"), instance.handle()))
                    .expect("the bench waits");
                instance.run().expect("it can wait");
            });
            let (service, stop) = made.recv().expect("the thread makes it");
            let (mut instance, notifier) = asker(at_once, Some(service));
            let nanos = round(&mut instance, &notifier);
            stop.stop();
            thread.join().expect("it does not panic");
            nanos
        }
    };
    vec![
        row("in one loop, one after the other", Some(120), within(1)),
        row("in one loop, 32 under way", Some(120), within(32)),
        row("between two busy loops, one at a time", None, between(1)),
        row("between two busy loops, 32 under way", None, between(32)),
    ]
}
