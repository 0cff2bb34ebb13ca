//! Machines without sockets, one for each thing that a loop does: spawning, waking, mailboxes,
//! deadlines, work for other threads. Each counts in the context what it does, so a test can
//! compare the counts.

use std::collections::VecDeque;
use std::time::Duration;

use rotor_core::{
    EventSet, Future, FutureError, Machine, Mailbox, Notifier, Outcome, Response, Scope, SendError,
    Sender, SpawnCause, SpawnError, Time,
};
use rotor_sim::Busy;

/// Counts of what the machines of a loop have done.
#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) spawned: u64,
    pub(crate) not_spawned: u64,
    pub(crate) children_ended: u64,
    pub(crate) hops: u64,
    pub(crate) received: Vec<(u32, u32)>,
    pub(crate) fired: u64,
    pub(crate) fired_out_of_order: Option<(Time, Time)>,
    last_fired: Option<(Time, Time)>,
    pub(crate) jobs: Jobs,
    pub(crate) drained: u64,
    /// Calls that were not meant for the machine that got them: a child has no source, and wakes
    /// itself only when it ends.
    pub(crate) strays: u64,
    /// The child that ended last.
    ended: Option<Notifier>,
    pub(crate) posted: u64,
}

/// The outcomes of jobs.
#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jobs {
    pub(crate) offered: u64,
    pub(crate) refused: u64,
    pub(crate) done: u64,
    pub(crate) panicked: u64,
    pub(crate) dropped: u64,
}

pub(crate) enum Actor {
    /// Spawns this many children, in bursts.
    Parent {
        left: u32,
    },
    /// Ends at its deadline.
    Child,
    /// Wakes the next one until no hops are left.
    Ring {
        next: Option<Notifier>,
        hops_left: u64,
    },
    /// Sends numbers in order, and keeps those that do not fit.
    Producer {
        number: u32,
        next: u32,
        until: u32,
        sender: Sender<(u32, u32)>,
        kept: VecDeque<(u32, u32)>,
    },
    Consumer {
        mailbox: Mailbox<(u32, u32)>,
    },
    /// Sets a new deadline whenever the old one fires.
    Ticker {
        left: u32,
        deadline: Time,
    },
    /// Offloads jobs one after another; some panic.
    Worker {
        left: u32,
        job: Option<Future<u32>>,
        busy: Busy,
    },
}

impl Actor {
    pub(crate) fn ticker<C>(left: u32, scope: &Scope<'_, C>) -> Response<Actor> {
        let deadline = some_time(scope);
        Response::ok(Actor::Ticker { left, deadline }).deadline(deadline)
    }

    pub(crate) fn worker<C>(left: u32, scope: &Scope<'_, C>) -> Response<Actor> {
        Response::ok(Actor::Worker { left, job: None, busy: Busy::new(scope) })
            .deadline(scope.now())
    }

    fn spawn_more(self) -> Response<Actor, ()> {
        match self {
            Actor::Parent { left: 0 } => Response::done(),
            Actor::Parent { left } => Response::spawn(Actor::Parent { left: left - 1 }, ()),
            other => Response::keep(other),
        }
    }

    fn work(
        left: u32,
        job: Option<Future<u32>>,
        busy: Busy,
        scope: &mut Scope<'_, Tally>,
    ) -> Response<Actor, ()> {
        match job.map(Future::take) {
            Some(Outcome::Pending(job)) => {
                return Response::keep(Actor::Worker { left, job: Some(job), busy });
            }
            Some(Outcome::Value(_)) => scope.jobs.done += 1,
            Some(Outcome::Lost(FutureError::Dropped)) => scope.jobs.dropped += 1,
            Some(Outcome::Lost(FutureError::Panicked)) => scope.jobs.panicked += 1,
            Some(Outcome::Lost(lost)) => return Response::error(lost),
            None => {}
        }
        if left == 0 {
            return Response::done();
        }
        let panics = scope.random_u64().is_multiple_of(5);
        let job = move || {
            if panics { std::panic::resume_unwind(Box::new("a bug in a job")) } else { left }
        };
        match scope.offload(job) {
            Ok(job) => {
                scope.jobs.offered += 1;
                Response::ok(Actor::Worker { left: left - 1, job: Some(job), busy })
            }
            Err(_) => {
                scope.jobs.refused += 1;
                let again = scope.now() + Duration::from_millis(3);
                Response::ok(Actor::Worker { left, job: None, busy }).deadline(again)
            }
        }
    }
}

fn some_time<C>(scope: &Scope<'_, C>) -> Time {
    scope.now() + Duration::from_micros(scope.random_u64() % 200_000)
}

impl Machine for Actor {
    type Context = Tally;
    type Seed = ();

    fn create((): (), scope: &mut Scope<'_, Tally>) -> Response<Self> {
        if scope.random_u64().is_multiple_of(16) {
            return Response::done();
        }
        scope.spawned += 1;
        // Wakes the child that ended last, which may have had this slot.
        scope.ended.as_ref().map(Notifier::wakeup);
        let deadline = some_time(scope);
        Response::ok(Actor::Child).deadline(deadline)
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, Tally>) -> Response<Self, ()> {
        scope.strays += 1;
        Response::keep(self)
    }

    fn spawned(self, scope: &mut Scope<'_, Tally>) -> Response<Self, ()> {
        // Sometimes all together, sometimes one after another, sometimes together with a deadline.
        let deadline = some_time(scope);
        match scope.random_u64() % 8 {
            0 => Response::ok(self).deadline(deadline),
            1 => self.spawn_more().deadline(scope.now() + Duration::from_millis(1)),
            _ => self.spawn_more(),
        }
    }

    fn spawn_error(
        self,
        error: SpawnError<()>,
        scope: &mut Scope<'_, Tally>,
    ) -> Response<Self, ()> {
        scope.not_spawned += 1;
        if !matches!(error.cause, SpawnCause::SlabFull) {
            return self.spawn_more();
        }
        if error.seed.is_none() {
            scope.strays += 1;
        }
        scope.wake_on_free_slot();
        Response::ok(self)
    }

    fn timeout(self, scope: &mut Scope<'_, Tally>) -> Response<Self, ()> {
        match self {
            Actor::Parent { .. } => self.spawn_more(),
            Actor::Child => {
                scope.children_ended += 1;
                // Its slot is free again only after the machine has been taken out of the wake
                // list.
                let notifier = scope.notifier();
                notifier.wakeup();
                scope.ended = Some(notifier);
                Response::done()
            }
            Actor::Producer { .. } => self.wakeup(scope),
            Actor::Worker { left, job, busy } => Actor::work(left, job, busy, scope),
            Actor::Ticker { left, deadline } => {
                scope.record_fired(deadline);
                if left == 0 {
                    Response::done()
                } else {
                    Actor::ticker(left - 1, scope).wrap(|actor| actor)
                }
            }
            other => Response::keep(other),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, Tally>) -> Response<Self, ()> {
        match self {
            Actor::Parent { .. } => self.spawn_more(),
            Actor::Ring { hops_left: 0, .. } => Response::done(),
            Actor::Ring { next, hops_left } => {
                scope.hops += 1;
                next.as_ref().map(Notifier::wakeup);
                Response::ok(Actor::Ring { next, hops_left: hops_left - 1 })
            }
            Actor::Producer { number, mut next, until, sender, mut kept } => {
                while kept.len() < 3 && next < until {
                    kept.push_back((number, next));
                    next += 1;
                }
                while let Some(message) = kept.pop_front() {
                    match sender.send(message) {
                        Ok(()) => {}
                        Err(SendError::Full(message)) => {
                            kept.push_front(message);
                            break;
                        }
                        Err(SendError::Closed(_)) => return Response::done(),
                    }
                }
                if kept.is_empty() && next == until {
                    return Response::done();
                }
                let deadline = scope.now() + Duration::from_millis(5);
                Response::ok(Actor::Producer { number, next, until, sender, kept })
                    .deadline(deadline)
            }
            Actor::Consumer { mut mailbox } => {
                for _ in 0..4 {
                    match mailbox.try_receive() {
                        Ok(message) => scope.received.push(message),
                        Err(rotor_core::ReceiveError::Empty) => {
                            return Response::ok(Actor::Consumer { mailbox });
                        }
                        Err(rotor_core::ReceiveError::Closed) => return Response::done(),
                    }
                }
                scope.notifier().wakeup();
                Response::ok(Actor::Consumer { mailbox })
            }
            Actor::Worker { left, job, busy } => Actor::work(left, job, busy, scope),
            Actor::Child => {
                scope.strays += 1;
                Response::keep(self)
            }
            other => Response::keep(other),
        }
    }

    fn draining(self, until: Time, scope: &mut Scope<'_, Tally>) -> Response<Self, ()> {
        scope.drained += 1;
        let deadline = until.min(some_time(scope));
        match self {
            Actor::Child => Response::ok(self).deadline(deadline),
            Actor::Parent { .. } => Response::spawn(Actor::Parent { left: 0 }, ()),
            _ => Response::done(),
        }
    }
}

impl Tally {
    /// Deadlines that fire in the same turn come in tick order, unless they had already passed when
    /// they were set.
    fn record_fired(&mut self, deadline: Time) {
        self.fired += 1;
        let tick = Time::from_nanos(deadline.as_nanos().div_ceil(1_000_000) * 1_000_000);
        if let Some((last, _)) = self.last_fired
            && tick < last
            && self.fired_out_of_order.is_none()
        {
            self.fired_out_of_order = Some((last, tick));
        }
        self.last_fired = Some((tick, deadline));
    }
}
