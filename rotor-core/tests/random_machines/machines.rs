//! The machines: each does one thing after the other, at random.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor_core::{
    BarrierReached, Call, Calls, Future, FutureError, Idle, Job, LockGuard, Machine, Mailbox,
    Outcome, Permit, Reserved, Response, ReturnOnDrop, Room, Scope, SendError, SpawnError, Time,
};

use crate::possessions::{InLoop, Locked, Using, abort};
use crate::{Counted, Random, Shared, lock};

type Answer = Response<AnyMachine, Seed>;

pub(crate) enum AnyMachine {
    Actor(Box<Actor>),
    /// Lets those go on that wait for something that may never come by itself.
    Ticker(Option<Future<BarrierReached>>),
}

/// What a machine is made of.
pub(crate) struct Seed {
    random: Random,
    steps: u32,
    counted: Counted,
}

impl Seed {
    pub(crate) fn new(shared: &Shared, random: u64, steps: u32) -> Seed {
        Seed { random: Random(random), steps, counted: shared.world.count() }
    }

    /// Makes the seed of a machine that another one spawns.
    fn of_child(shared: &Shared, random: &mut Random, steps: u32) -> Seed {
        let counted = shared.world.count_for_machine(random);
        Seed { counted, ..Seed::new(shared, random.next(), steps) }
    }
}

pub(crate) struct Actor {
    random: Random,
    steps: u32,
    state: State,
    mailbox: Mailbox<Counted>,
    calls: Calls<Counted, Counted>,
    /// Requests that are answered later, or dropped.
    held_calls: Vec<Call<Counted, Counted>>,
    since: Time,
    _end: ReturnOnDrop<Counted, Shared>,
    _counted: Counted,
    _in_loop: InLoop,
}

enum State {
    /// Does the next thing when it is called.
    Ready,
    AsksPermit(Future<Permit>),
    HasPermit(Using, Permit),
    AsksLock(Future<LockGuard<u64>>),
    HasLock(Locked, LockGuard<u64>),
    Listens(Future<()>),
    Arrives(Future<BarrierReached>),
    AwaitsJobs(Vec<Future<Counted>>),
    AwaitsRoom(Future<Reserved<Counted>>),
    AwaitsSlot,
}

impl AnyMachine {
    pub(crate) fn ticker() -> AnyMachine {
        AnyMachine::Ticker(None)
    }
}

impl Machine for AnyMachine {
    type Context = Shared;
    type Seed = Seed;

    fn create(seed: Seed, scope: &mut Scope<'_, Shared>) -> Response<Self> {
        let Seed { mut random, steps, counted } = seed;
        scope.machines.fetch_add(1, SeqCst);
        let in_loop = InLoop(scope.machines.clone());
        if random.once_in(20) {
            panic!("in `create`");
        }
        let (sender, mailbox) = scope.create_mailbox(random.within(1..4));
        lock(&scope.world.senders).push(sender);
        scope.to_return.fetch_add(1, SeqCst);
        let (service, calls) = scope.create_service(random.within(1..4));
        lock(&scope.world.services).push(service);
        let end = scope.at_end(
            scope.world.count_for_machine(&mut random),
            |shared: &mut Shared, counted| {
                shared.to_return.fetch_sub(1, SeqCst);
                drop(counted);
            },
        );
        lock(&scope.world.notifiers).push(scope.notifier());
        let since = scope.now();
        let how = random.below(3);
        let actor = Actor {
            random,
            steps,
            state: State::Ready,
            mailbox,
            calls,
            held_calls: Vec::new(),
            since,
            _end: end,
            _counted: counted,
            _in_loop: in_loop,
        };
        let machine = AnyMachine::Actor(Box::new(actor));
        match how {
            0 => {
                scope.wake_self();
                Response::ok(machine)
            }
            1 => Response::again(machine),
            _ => Response::ok(machine).deadline(scope.now()),
        }
    }

    fn ready(self, _: rotor_core::EventSet, scope: &mut Scope<'_, Shared>) -> Answer {
        self.act(scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Answer {
        self.act(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, Shared>) -> Answer {
        self.act(scope)
    }

    fn spawned(self, scope: &mut Scope<'_, Shared>) -> Answer {
        self.act(scope)
    }

    fn spawn_error(self, error: SpawnError<Seed>, scope: &mut Scope<'_, Shared>) -> Answer {
        drop(error);
        self.act(scope)
    }

    fn draining(mut self, _: Time, scope: &mut Scope<'_, Shared>) -> Answer {
        match &mut self {
            AnyMachine::Actor(actor) => match actor.random.below(3) {
                0 => Response::done(),
                1 if scope.wait_for_others() => Response::keep(self),
                _ => Response::keep(self),
            },
            AnyMachine::Ticker(_) => Response::keep(self),
        }
    }

    fn idle(&self) -> Option<Idle> {
        match self {
            AnyMachine::Actor(actor) => Some(Idle::since(actor.since)),
            AnyMachine::Ticker(_) => None,
        }
    }

    fn make_room(mut self, _: &mut Scope<'_, Shared>) -> Answer {
        match &mut self {
            AnyMachine::Actor(actor) => match actor.random.below(10) {
                0 => panic!("in `make_room`"),
                1..5 => Response::done(),
                _ => Response::keep(self),
            },
            AnyMachine::Ticker(_) => Response::keep(self),
        }
    }
}

impl AnyMachine {
    fn act(self, scope: &mut Scope<'_, Shared>) -> Answer {
        match self {
            AnyMachine::Actor(actor) => actor.act(scope),
            AnyMachine::Ticker(arrival) => tick(arrival, scope),
        }
    }
}

fn tick(arrival: Option<Future<BarrierReached>>, scope: &mut Scope<'_, Shared>) -> Answer {
    if scope.machines.load(SeqCst) == 0 {
        return Response::done();
    }
    let arrival = match arrival.map(Future::take) {
        Some(Outcome::Pending(arrival)) => Some(arrival),
        _ if scope.world.barrier.waiting() > 0 => Some(scope.world.barrier.arrive(scope)),
        _ => None,
    };
    Response::keep(AnyMachine::Ticker(arrival)).deadline(scope.now() + Duration::from_millis(1))
}

impl Actor {
    fn keep(self: Box<Self>) -> Answer {
        Response::keep(AnyMachine::Actor(self))
    }

    /// Is called again, in one of the ways in which a machine can see to that.
    fn go_on(mut self: Box<Self>, scope: &mut Scope<'_, Shared>) -> Answer {
        match self.random.below(5) {
            0 => {
                scope.wake_self();
                self.keep()
            }
            1 => {
                scope.notifier().wakeup();
                self.keep()
            }
            2 => Response::again(AnyMachine::Actor(self)),
            3 => {
                scope.part(3).notifier().wakeup();
                self.keep()
            }
            _ => {
                let time = Duration::from_micros(self.random.below(3_000));
                self.keep().deadline(scope.now() + time)
            }
        }
    }

    fn act(mut self: Box<Self>, scope: &mut Scope<'_, Shared>) -> Answer {
        self.since = scope.now();
        while self.mailbox.receive().is_some() {}
        self.serve(scope);
        let state = std::mem::replace(&mut self.state, State::Ready);
        let world = scope.world.clone();
        match state {
            State::Ready => return self.do_next(scope),
            State::AsksPermit(future) => match future.take() {
                Outcome::Pending(future) => self.state = State::AsksPermit(future),
                Outcome::Value(mut permit) => {
                    permit.note_used();
                    self.state = State::HasPermit(Using::new(&world), permit);
                    return self.go_on(scope);
                }
                Outcome::Lost(lost) => abort(&lost.to_string()),
            },
            State::HasPermit(using, permit) => {
                drop((using, permit));
                return self.do_next(scope);
            }
            State::AsksLock(future) => match future.take() {
                Outcome::Pending(future) => self.state = State::AsksLock(future),
                Outcome::Value(mut held) => {
                    *held += 1;
                    self.state = State::HasLock(Locked::new(&world), held);
                    return self.go_on(scope);
                }
                Outcome::Lost(lost) => abort(&lost.to_string()),
            },
            State::HasLock(locked, held) => {
                drop((locked, held));
                return self.do_next(scope);
            }
            State::Listens(future) => match future.take() {
                Outcome::Pending(future) => self.state = State::Listens(future),
                _ => return self.do_next(scope),
            },
            State::Arrives(future) => match future.take() {
                Outcome::Pending(future) => self.state = State::Arrives(future),
                _ => return self.do_next(scope),
            },
            State::AwaitsJobs(futures) => {
                let pending = futures.into_iter().filter_map(|future| match future.take() {
                    Outcome::Pending(future) => Some(future),
                    Outcome::Value(_)
                    | Outcome::Lost(
                        FutureError::Panicked | FutureError::Late | FutureError::Dropped,
                    ) => None,
                    Outcome::Lost(lost) => abort(&lost.to_string()),
                });
                let pending: Vec<_> = pending.collect();
                if pending.is_empty() {
                    return self.do_next(scope);
                }
                self.state = State::AwaitsJobs(pending);
            }
            State::AwaitsRoom(future) => match future.take() {
                Outcome::Pending(future) => self.state = State::AwaitsRoom(future),
                Outcome::Value(room) => {
                    drop(room.send(world.count_for_machine(&mut self.random)));
                    return self.do_next(scope);
                }
                Outcome::Lost(_) => return self.do_next(scope),
            },
            State::AwaitsSlot => return self.do_next(scope),
        }
        self.keep()
    }

    /// Answers requests; those that are held are answered at the next call.
    fn serve(&mut self, scope: &mut Scope<'_, Shared>) {
        for call in std::mem::take(&mut self.held_calls) {
            let _unwanted = call.answer(scope.world.count_for_machine(&mut self.random));
        }
        while let Some(call) = self.calls.receive() {
            match self.random.below(3) {
                0 => drop(call),
                1 => _ = call.answer(scope.world.count_for_machine(&mut self.random)),
                _ => {
                    self.held_calls.push(call);
                    scope.wake_self();
                }
            }
        }
        let _is_known = self.calls.take_cancelled();
    }

    fn do_next(mut self: Box<Self>, scope: &mut Scope<'_, Shared>) -> Answer {
        if self.steps == 0 {
            return Response::done();
        }
        self.steps -= 1;
        let world = scope.world.clone();
        match self.random.below(20) {
            0 => self.state = State::AsksPermit(world.permits.ask(scope)),
            1 => self.state = State::AsksLock(world.lock.ask(scope)),
            2 => self.state = State::Listens(world.bell.listen(scope)),
            3 => self.state = State::Arrives(world.barrier.arrive(scope)),
            4 | 5 => return self.start_jobs(scope),
            6 | 7 => return self.send(scope),
            8 | 9 => {
                let steps = self.steps / 2;
                self.steps -= steps;
                let seed = Seed::of_child(scope, &mut self.random, steps);
                return Response::spawn(AnyMachine::Actor(self), seed);
            }
            10 => {
                let yields = self.random.below(30);
                scope.blocking(|| (0..yields).for_each(|_| thread::yield_now()));
                return self.go_on(scope);
            }
            11 => {
                let (sender, receiver) = mpsc::channel();
                lock(&world.blocked).push(sender);
                let wait = || _ = receiver.recv();
                if self.random.once_in(2) {
                    scope.blocking(wait)
                } else {
                    wait()
                }
                return self.go_on(scope);
            }
            12 if self.random.once_in(3) => {
                let value = scope.blocking(|| {
                    assert!(!self.random.once_in(2), "in a section");
                    1
                });
                assert_eq!(value, 0, "in a handler");
            }
            13 if self.random.once_in(3) => return Response::error("as planned"),
            14 => {
                scope.ask_for_room(Room::new().idle_min(Duration::ZERO));
                scope.wake_on_free_slot();
                self.state = State::AwaitsSlot;
                return self.keep().deadline(scope.now() + Duration::from_millis(3));
            }
            15 => {
                let (port, future) = scope.create_future();
                lock(&world.ports).push(port);
                self.state = State::AwaitsJobs(vec![future]);
            }
            16 => {
                let broadcast = lock(&scope.broadcast).clone();
                if let Some(broadcast) = broadcast {
                    let counted = world.count_for_machine(&mut self.random);
                    let panics = self.random.once_in(4);
                    let _full = broadcast.post(move |_, scope| {
                        scope.world.bell.ring_one();
                        drop(counted);
                        assert!(!panics, "in a posted closure");
                    });
                }
                return self.go_on(scope);
            }
            18 => {
                let services = lock(&world.services);
                if !services.is_empty() {
                    let service = &services[self.random.within(0..services.len())];
                    let answer = service.ask(world.count_for_machine(&mut self.random), scope);
                    self.state = State::AwaitsJobs(answer.into_iter().collect());
                }
                if !matches!(&self.state, State::AwaitsJobs(asked) if !asked.is_empty()) {
                    drop(services);
                    return self.go_on(scope);
                }
            }
            17 if self.random.once_in(10) => {
                scope.stop_loop();
                return self.go_on(scope);
            }
            _ => return self.go_on(scope),
        }
        // Some change their mind.
        if self.random.once_in(8) {
            self.state = State::Ready;
            return self.go_on(scope);
        }
        self.keep()
    }

    fn start_jobs(mut self: Box<Self>, scope: &mut Scope<'_, Shared>) -> Answer {
        let world = scope.world.clone();
        let batch = self.random.once_in(3).then(|| scope.create_batch());
        let mut futures = Vec::new();
        for _ in 0..self.random.within(1..4) {
            let (counted, fate) =
                (world.count_for_machine(&mut self.random), self.random.below(10));
            let work = move |job: &Job<'_>| {
                (0..fate).take_while(|_| !job.is_cancelled()).for_each(|_| thread::yield_now());
                assert_ne!(fate, 0, "in a job");
                counted
            };
            let mut job = scope.job(work);
            if self.random.once_in(3) {
                job = job.permits(&world.permits);
            }
            if self.random.once_in(4) {
                job = job.urgent();
            }
            if self.random.once_in(6) {
                job = job.begin_before(scope.now() + Duration::from_micros(self.random.below(500)));
            }
            if let Some(batch) = &batch {
                job = job.of(batch);
            }
            futures.extend(job.start().ok());
        }
        drop(batch);
        if futures.is_empty() || self.random.once_in(8) {
            return self.go_on(scope);
        }
        self.state = State::AwaitsJobs(futures);
        self.keep()
    }

    fn send(mut self: Box<Self>, scope: &mut Scope<'_, Shared>) -> Answer {
        let world = scope.world.clone();
        let sender = {
            let mut senders = lock(&world.senders);
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                None
            } else {
                let index = self.random.within(0..senders.len());
                Some(senders[index].clone())
            }
        };
        if let Some(sender) = sender {
            let sent = sender.send(world.count_for_machine(&mut self.random));
            let is_full = matches!(sent, Err(SendError::Full(_)));
            drop(sent);
            if is_full {
                self.state = State::AwaitsRoom(sender.wake_on_room(scope));
                return self.keep();
            }
        }
        self.go_on(scope)
    }
}
