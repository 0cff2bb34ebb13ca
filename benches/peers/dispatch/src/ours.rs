//! rotor: in the handler, and on a pool.

use std::collections::VecDeque;

use rotor_core::{
    Config, Future, Infallible, Loop, Machine, OffloadPool, Outcome, Response, Scope,
};

use crate::Contender;
use crate::work::Work;

pub(crate) fn contenders(work: Work) -> Vec<Contender> {
    let pool = OffloadPool::new(work.threads(), 1_024);
    let config = Config::new().offload_pool(pool);
    let here = config.clone();
    vec![
        (
            "rotor direct",
            Box::new(move |batches| run(&here, Batches::new(work, batches, Way::Here))),
        ),
        (
            "rotor offload",
            Box::new(move |batches| run(&config, Batches::new(work, batches, Way::Pool))),
        ),
    ]
}

#[derive(Clone, Copy)]
enum Way {
    Here,
    Pool,
}

/// Runs one batch after another.
struct Batches {
    work: Work,
    way: Way,
    left: usize,
    under_way: VecDeque<Future<u64>>,
}

impl Batches {
    fn new(work: Work, batches: usize, way: Way) -> Batches {
        Batches { work, way, left: batches, under_way: VecDeque::new() }
    }

    fn begin(&mut self, scope: &mut Scope<'_, u64>) {
        let work = self.work;
        for _ in 0..work.jobs() {
            match self.way {
                Way::Here => **scope += work.run(),
                Way::Pool => {
                    let job = scope.offload(move || work.run()).expect("there is room");
                    self.under_way.push_back(job);
                }
            }
        }
    }
}

impl Machine for Batches {
    type Context = u64;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, u64>) -> Response<Self, Infallible> {
        while let Some(first) = self.under_way.pop_front() {
            match first.take() {
                Outcome::Value(value) => **scope += value,
                Outcome::Pending(first) => {
                    self.under_way.push_front(first);
                    return Response::keep(self);
                }
                Outcome::Lost(lost) => return Response::error(lost),
            }
        }
        if self.left == 0 {
            return Response::done();
        }
        self.left -= 1;
        self.begin(scope);
        if self.under_way.is_empty() {
            scope.notifier().wakeup();
        }
        Response::keep(self)
    }
}

fn run(config: &Config, batches: Batches) -> u64 {
    let mut creator = Loop::new(config).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        scope.notifier().wakeup();
        Response::ok(batches)
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(0);
    instance.run().expect("it runs");
    instance.into_context()
}
