//! rotor: in handlers of separate machines, in a loop that is handed over in sections, or taken
//! over without them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rotor_core::{
    Blocking, Config, Future, Infallible, Loop, Machine, Notifier, Outcome, Permit, Permits,
    Response, Scope, SharedContext,
};

use crate::work::Work;
use crate::{Contender, Run};

pub(crate) fn contenders(work: Work) -> Vec<Contender> {
    let way = |name, way: Way| -> Contender {
        let set_up = move || -> Run {
            let config = Config::new().blocking(Blocking::new().threads_max(work.threads()));
            Box::new(move |batches| run(&config, work, batches, way))
        };
        (name, Box::new(set_up))
    };
    vec![way("rotor handed over", Way::HandedOver), way("rotor taken over", Way::TakenOver)]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In a section, with a permit.
    HandedOver,
    /// Without a declaration that it blocks.
    TakenOver,
}

/// The data that the members of a batch share. A clone is another handle to it.
#[derive(Clone)]
struct Shared(Arc<Batch>);

impl SharedContext for Shared {}

struct Batch {
    jobs: usize,
    /// The number of batches that are not done.
    left: AtomicUsize,
    /// The number of jobs of the batch that are not done.
    under_way: AtomicUsize,
    sum: AtomicU64,
    permits: Permits,
    members: Mutex<Vec<Notifier>>,
}

impl Batch {
    /// Notes that a job is done. Returns whether it was the very last one.
    fn note_done(&self, value: u64) -> bool {
        self.sum.fetch_add(value, Ordering::Relaxed);
        if self.under_way.fetch_sub(1, Ordering::AcqRel) > 1 {
            return false;
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            return true;
        }
        self.under_way.store(self.jobs, Ordering::Release);
        for member in &*self.members.lock().unwrap_or_else(PoisonError::into_inner) {
            member.wakeup();
        }
        false
    }
}

/// Does one job of each batch.
struct Member {
    work: Work,
    way: Way,
    asked: Option<Future<Permit>>,
}

impl Machine for Member {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        let work = self.work;
        let value = if self.way == Way::TakenOver {
            work.run()
        } else {
            let taken = match self.asked.take() {
                None => scope.0.permits.try_take(),
                Some(asked) => match asked.take() {
                    Outcome::Value(permit) => Some(permit),
                    Outcome::Pending(asked) => {
                        self.asked = Some(asked);
                        return Response::keep(self);
                    }
                    Outcome::Lost(lost) => return Response::error(lost),
                },
            };
            let Some(mut permit) = taken else {
                // The machine is woken once it has a permit, even if it gets one at once.
                self.asked = Some(scope.0.permits.ask(scope));
                return Response::keep(self);
            };
            scope.blocking(move || permit.run(|| work.run()))
        };
        if scope.0.note_done(value) {
            scope.stop_loop();
        }
        Response::keep(self)
    }
}

fn run(config: &Config, work: Work, batches: usize, way: Way) -> u64 {
    let batch = Arc::new(Batch {
        jobs: work.jobs(),
        left: AtomicUsize::new(batches),
        under_way: AtomicUsize::new(work.jobs()),
        sum: AtomicU64::new(0),
        permits: Permits::new(work.threads()),
        members: Mutex::default(),
    });
    let mut creator = Loop::new(config).expect("a loop");
    for _ in 0..work.jobs() {
        let added = creator.add_machine_with(|scope| {
            let members = &batch.members;
            members.lock().unwrap_or_else(PoisonError::into_inner).push(scope.notifier());
            scope.wake_self();
            Response::ok(Member { work, way, asked: None })
        });
        added.expect("there is room");
    }
    let instance = creator.instantiate(Shared(batch.clone()));
    let mut instance = match way {
        Way::HandedOver => instance.handing_over(),
        Way::TakenOver => instance.taking_over(),
    };
    instance.run().expect("it runs");
    batch.sum.load(Ordering::Relaxed)
}
