//! rotor: in the handler, and on a pool.

use std::collections::VecDeque;

use rotor_core::{
    Config, Future, Infallible, Job, Loop, Machine, OffloadPool, Outcome, Permits, Place, Response,
    RunAtResult, Scope,
};

use crate::work::Work;
use crate::{Contender, Run};

pub(crate) fn contenders(work: Work) -> Vec<Contender> {
    let way = |name, way: Way| -> Contender {
        let set_up = move || -> Run {
            let config = Config::new().offload_pool(OffloadPool::new(work.threads(), 1_024));
            Box::new(move |batches| run(&config, Batches::new(work, batches, way)))
        };
        (name, Box::new(set_up))
    };
    vec![
        way("rotor direct", Way::Here),
        way("rotor permit", Way::Permit),
        way("rotor offload", Way::Pool),
        way("rotor offload, batch", Way::Batch),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In the handler.
    Here,
    /// In the handler, each job with a permit.
    Permit,
    /// On the pool; the machine is woken for each result.
    Pool,
    /// On the pool; the machine is woken when all results are available.
    Batch,
}

/// Runs one batch after another.
struct Batches {
    work: Work,
    way: Way,
    left: usize,
    under_way: VecDeque<Future<u64>>,
    place: Place,
}

impl Batches {
    fn new(work: Work, batches: usize, way: Way) -> Batches {
        let place = Place::Handed(Permits::new(work.threads()));
        Batches { work, way, left: batches, under_way: VecDeque::new(), place }
    }

    fn begin(&mut self, scope: &mut Scope<'_, u64>) {
        let work = self.work;
        let batch = (self.way == Way::Batch).then(|| scope.create_batch());
        for _ in 0..work.jobs() {
            let job = match self.way {
                Way::Here => {
                    **scope += work.run();
                    continue;
                }
                Way::Permit => {
                    let RunAtResult::Now(value) = scope.run_at(&self.place, move || work.run())
                    else {
                        panic!("a permit is free")
                    };
                    **scope += value;
                    continue;
                }
                Way::Pool => scope.offload(move || work.run()).ok(),
                Way::Batch => {
                    let job = scope.job(move |_: &Job<'_>| work.run());
                    batch.as_ref().and_then(|batch| job.of(batch).start().ok())
                }
            };
            self.under_way.push_back(job.expect("there is room"));
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
