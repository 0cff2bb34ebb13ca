//! `Watched`: a machine whose handlers are checked before and after each call.

use std::net::SocketAddr;
use std::panic::resume_unwind;

use rotor_core::net::Accepted;
use rotor_core::{
    Answer, Deadline, Description, Event, Idle, InPlace, Machine, Response, Scope, Time, Token,
};

use crate::backend::SimHandle;
use crate::faults::Fault;
use crate::property;
use crate::trace::TraceEvent;
use crate::work::Work;
use crate::world::Shared;

/// A wrapper around a machine that checks what the loop does with it, shows its handlers in the
/// trace, and may panic in one of them ([`Fault::HandlerPanics`]).
///
/// It checks [`NO_DEADLINE_EARLY`](property::NO_DEADLINE_EARLY),
/// [`NO_MACHINE_LOST`](property::NO_MACHINE_LOST) (if all machines of the loop are watched),
/// [`SPAWN_IS_ANSWERED`](property::SPAWN_IS_ANSWERED) and [`DRAINED_ONCE`](property::DRAINED_ONCE).
/// The connections of a listener can be watched without the listener: `Accept<Watched<Stream<P,
/// S>>, L>`.
///
/// It has the inner machine's context, seed and name. On other backends it only forwards, so a
/// program can use the same type of machine everywhere.
#[derive(Debug)]
pub struct Watched<M> {
    machine: M,
    ticket: Ticket,
}

impl<M: Machine> Watched<M> {
    /// Watches the machine in the response of `make`. Use it for machines that are added to a loop,
    /// not spawned.
    pub fn make<C>(
        scope: &mut Scope<'_, C>,
        make: impl FnOnce(&mut Scope<'_, C>) -> Response<M>,
    ) -> Response<Watched<M>> {
        let ticket = Ticket::new(scope);
        let response = make(scope);
        ticket.wrap_created(response, scope.token())
    }

    /// Returns the watched machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }
}

impl<M: Machine> Machine for Watched<M> {
    type Context = M::Context;
    type Seed = M::Seed;

    fn create(seed: M::Seed, scope: &mut Scope<'_, M::Context>) -> Response<Self> {
        let ticket = Ticket::new(scope);
        let response = M::create(seed, scope);
        ticket.wrap_created(response, scope.token())
    }

    fn handle(
        self,
        event: Event<M::Seed>,
        scope: &mut Scope<'_, M::Context>,
    ) -> Response<Self, M::Seed> {
        let Watched { machine, mut ticket } = self;
        let handler = event.name();
        ticket.check_event(&event, scope);
        let response = machine.handle(event, scope);
        ticket.check_response(handler, &response, scope.token());
        response.map(|machine| Watched { machine, ticket }, |seed| seed)
    }

    fn handle_in_place(
        &mut self,
        event: Event<M::Seed>,
        scope: &mut Scope<'_, M::Context>,
    ) -> InPlace<M::Seed> {
        let handler = event.name();
        self.ticket.check_event(&event, scope);
        let outcome = self.machine.handle_in_place(event, scope);
        match &outcome {
            InPlace::Handled(response) => {
                self.ticket.check_response(handler, response, scope.token())
            }
            InPlace::Declined(_) => self.ticket.is_event_checked = true,
        }
        outcome
    }

    fn idle(&self) -> Option<Idle> {
        self.machine.idle()
    }

    fn describe(&self, to: &mut Description) {
        self.machine.describe(to);
    }

    fn type_name(&self) -> &'static str {
        self.machine.type_name()
    }
}

/// For `Accept<Watched<Stream<P, S>>, L>` instead of `Watched<Accept<..>>`: an injected panic costs
/// a connection, and never the listener, which is not watched then.
impl<S, M: Accepted<S>> Accepted<S> for Watched<M> {
    type Shared = M::Shared;

    fn accepted(
        socket: S,
        peer: Option<SocketAddr>,
        shared: M::Shared,
        scope: &mut Scope<'_, M::Context>,
    ) -> Response<Self> {
        let ticket = Ticket::new(scope);
        let response = M::accepted(socket, peer, shared, scope);
        ticket.wrap_created(response, scope.token())
    }
}

/// The entry of one machine in its host's ledger, for as long as the machine lives.
struct Ticket {
    /// `None` on other backends.
    world: Option<Shared>,
    host: u32,
    number: u32,
    awaits_spawn: bool,
    is_drained: bool,
    /// `check_event` has already run for this event: the machine declined to be called in place.
    is_event_checked: bool,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket({})", self.number)
    }
}

impl Ticket {
    fn new<C>(scope: &Scope<'_, C>) -> Ticket {
        let (world, host) = match scope.backend().expect::<SimHandle>("a watched machine") {
            Ok(handle) => (Some(handle.world().clone()), handle.host()),
            Err(_) => (None, 0),
        };
        let number = world.as_ref().map_or(0, |world| {
            let mut world = world.borrow_mut();
            world.progress += 1;
            world.host(host).ledger.enter()
        });
        Ticket {
            world,
            host,
            number,
            awaits_spawn: false,
            is_drained: false,
            is_event_checked: false,
        }
    }

    fn wrap_created<M>(mut self, response: Response<M>, token: Token) -> Response<Watched<M>> {
        self.check_response("create", &response, token);
        // The loop counts in the same way: a machine that ends in `create` was never spawned.
        if let Some(world) = self.world.as_ref().filter(|_| response.is_alive()) {
            world.borrow_mut().host(self.host).ledger.created += 1;
        }
        response.wrap(|machine| Watched { machine, ticket: self })
    }

    fn check_event<S, C>(&mut self, event: &Event<S>, scope: &Scope<'_, C>) {
        // The machine declined to be called in place, and is called by value now. One event rolls
        // its fault once.
        if std::mem::take(&mut self.is_event_checked) {
            return;
        }
        let Some(world) = &self.world else { return };
        let mut world = world.borrow_mut();
        let ledger = &mut world.host(self.host).ledger;
        let (now, token) = (scope.now(), scope.token());
        let deadline = ledger.deadlines[self.number as usize];
        let may_expire = ledger.may_expire;
        if matches!(event, Event::Timeout) {
            // A deadline fires once.
            ledger.deadlines[self.number as usize] = Time::NEVER;
            if !may_expire && now < deadline {
                let message = format!(
                    "machine {token} has the deadline {deadline:?}; its timeout came at {now:?}"
                );
                world.fail(property::NO_DEADLINE_EARLY, message);
            }
        }
        if matches!(event, Event::Draining(_)) {
            // A layer may report drains that are not the loop's, as often as it likes.
            let is_draining = scope.draining_until().is_some();
            // A machine that waits for the others is told again when none are left.
            if scope.is_last_in_drain() {
                self.is_drained = false;
            }
            if self.is_drained && is_draining {
                world.fail(property::DRAINED_ONCE, format!("machine {token} was told twice"));
            }
            self.is_drained = is_draining;
        }
        let is_answer = matches!(event, Event::Spawned | Event::SpawnError(_));
        if self.awaits_spawn != is_answer {
            let message = format!(
                "machine {token}: `{}`, awaiting a spawn: {}",
                event.name(),
                self.awaits_spawn
            );
            world.fail(property::SPAWN_IS_ANSWERED, message);
        }
        // Work that was done since the last call, by a machine that was dropped for example, counts
        // for no call.
        world.host(self.host).account.call = Work::default();
        if world.roll_fault_at(Fault::HandlerPanics, self.host) {
            world.host(self.host).ledger.injected_panics += 1;
            // Unwinding drops the machine, and its sockets borrow the world.
            drop(world);
            // `resume_unwind` does not call the panic hook, which would print the panic.
            resume_unwind(Box::new("a panic that the simulation made"));
        }
    }

    fn check_response<M, N>(
        &mut self,
        handler: &'static str,
        response: &Response<M, N>,
        token: Token,
    ) {
        let (answer, deadline) = response.parts();
        self.awaits_spawn = matches!(answer, Answer::Spawn(..));
        let Some(world) = &self.world else { return };
        let mut world = world.borrow_mut();
        let name = match answer {
            Answer::Continue(_) => "continue",
            Answer::Again(_) => "again",
            Answer::Spawn(..) => "spawn",
            Answer::Done => "done",
            Answer::Error(_) => "error",
        };
        world.record(self.host, TraceEvent::Handler(handler, token, name));
        if let Some(first_excess) = world.host(self.host).account.end_call() {
            world.fail(
                property::WORK_IS_BOUNDED,
                format!("in one `{handler}` of machine {token}: {first_excess}"),
            );
        }
        let ends = matches!(answer, Answer::Done | Answer::Error(_));
        let stored = &mut world.host(self.host).ledger.deadlines[self.number as usize];
        match deadline {
            // If the machine ends, its deadline does not matter.
            _ if ends => *stored = Time::NEVER,
            Deadline::Keep => {}
            Deadline::Never => *stored = Time::NEVER,
            Deadline::At(time) => *stored = time,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(world) = &self.world {
            let mut world = world.borrow_mut();
            world.progress += 1;
            world.host(self.host).ledger.leave(self.number);
        }
    }
}
