//! `CallCounter`: a machine that records each call. It is used directly, inside a layer, and called
//! in place.

use std::time::Duration;

use rotor_core::{
    Description, Event, EventSet, Idle, InPlace, Machine, Response, Room, Scope, SpawnError, Time,
};

use super::SECOND;

#[derive(Default)]
pub(crate) struct Log(pub(crate) Vec<String>);

pub(crate) trait CallRecorder {
    fn record(&mut self, what: String);
}

impl CallRecorder for Log {
    fn record(&mut self, what: String) {
        self.0.push(what);
    }
}

/// A machine that records each call, and whose responses all differ; `TAG` makes several types of
/// it.
pub(crate) struct CallCounter<const TAG: u32> {
    pub(super) calls: u32,
}

/// What `create` returns; the seed selects it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Make {
    Machine,
    Nothing,
}

impl<const TAG: u32> CallCounter<TAG> {
    /// One second earlier with each call: a later deadline would only be stored, and take effect
    /// when the timer is next checked.
    fn next_deadline(&self, now: Time) -> Time {
        now + SECOND * (50 - self.calls)
    }

    fn record(mut self, what: &str, scope: &mut Scope<'_, Log>) -> Self {
        self.calls += 1;
        let call = format!("{what} {}", self.calls);
        scope.record(call);
        self
    }
}

impl<const TAG: u32> Machine for CallCounter<TAG> {
    type Context = Log;
    type Seed = Make;

    fn create(seed: Make, scope: &mut Scope<'_, Log>) -> Response<Self> {
        scope.record(format!("create {seed:?}"));
        match seed {
            Make::Machine => {
                Response::ok(CallCounter { calls: 0 }).deadline(scope.now() + 50 * SECOND)
            }
            Make::Nothing => Response::done(),
        }
    }

    fn ready(self, events: EventSet, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        let machine = self.record(&format!("ready {events:?}"), scope);
        if events.contains(EventSet::ERROR) {
            Response::error("it has failed")
        } else if events.contains(EventSet::READABLE) {
            Response::spawn(machine, Make::Machine)
        } else if events.contains(EventSet::WRITABLE) {
            Response::spawn(machine, Make::Nothing)
        } else {
            Response::keep(machine)
        }
    }

    fn spawned(self, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        let machine = self.record("spawned", scope);
        let deadline = machine.next_deadline(scope.now());
        Response::ok(machine).deadline(deadline)
    }

    fn spawn_error(
        self,
        error: SpawnError<Make>,
        scope: &mut Scope<'_, Log>,
    ) -> Response<Self, Make> {
        let what = format!("spawn_error {:?} {:?}", error.cause, error.seed);
        let machine = self.record(&what, scope);
        let deadline = machine.next_deadline(scope.now());
        Response::ok(machine).deadline(deadline)
    }

    fn timeout(self, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        scope.ask_for_room(Room::new().idle_min(Duration::ZERO));
        let machine = self.record("timeout", scope);
        let deadline = machine.next_deadline(scope.now());
        Response::ok(machine).deadline(deadline)
    }

    fn wakeup(self, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        let machine = self.record("wakeup", scope);
        let deadline = machine.next_deadline(scope.now());
        Response::again(machine).deadline(deadline)
    }

    fn draining(self, until: Time, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        let what = format!("draining {:?}", until - scope.now());
        let machine = self.record(&what, scope);
        let deadline = machine.next_deadline(scope.now());
        Response::ok(machine).deadline(deadline)
    }

    fn idle(&self) -> Option<Idle> {
        Some(Idle::since(Time::from_nanos(self.calls.into())))
    }

    fn make_room(self, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        let machine = self.record("make_room", scope);
        let deadline = machine.next_deadline(scope.now());
        Response::ok(machine).deadline(deadline)
    }

    fn describe(&self, to: &mut Description) {
        to.set_state("counting calls");
        to.add_messages(self.calls.into());
    }

    fn type_name(&self) -> &'static str {
        "counting"
    }
}

/// A layer around the same machine, which implements only `handle`.
pub(crate) struct Layer(CallCounter<4>);

impl Machine for Layer {
    type Context = Log;
    type Seed = Make;

    fn create(seed: Make, scope: &mut Scope<'_, Log>) -> Response<Self> {
        CallCounter::create(seed, scope).wrap(Layer)
    }

    fn handle(self, event: Event<Make>, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        self.0.handle(event, scope).map(Layer, |seed| seed)
    }

    fn idle(&self) -> Option<Idle> {
        self.0.idle()
    }

    fn describe(&self, to: &mut Description) {
        self.0.describe(to);
    }

    fn type_name(&self) -> &'static str {
        self.0.type_name()
    }
}

/// The same machine, called in place except for wake-ups and the results of a spawn.
pub(crate) struct InPlaceCounter(Option<CallCounter<4>>);

impl Machine for InPlaceCounter {
    type Context = Log;
    type Seed = Make;

    fn create(seed: Make, scope: &mut Scope<'_, Log>) -> Response<Self> {
        CallCounter::create(seed, scope).wrap(|counting| InPlaceCounter(Some(counting)))
    }

    fn handle(self, event: Event<Make>, scope: &mut Scope<'_, Log>) -> Response<Self, Make> {
        let Some(counting) = self.0 else { return Response::done() };
        counting.handle(event, scope).map(|counting| InPlaceCounter(Some(counting)), |seed| seed)
    }

    fn handle_in_place(&mut self, event: Event<Make>, scope: &mut Scope<'_, Log>) -> InPlace<Make> {
        match event {
            Event::Wakeup => scope.record("not in place".into()),
            // The result of a spawn directly follows the response. The loop does not offer it in
            // place, but a box does.
            Event::Spawned | Event::SpawnError(_) => {}
            _ => return self.call(event, scope),
        }
        InPlace::Declined(event)
    }

    fn idle(&self) -> Option<Idle> {
        self.0.as_ref()?.idle()
    }

    fn describe(&self, to: &mut Description) {
        if let Some(counting) = &self.0 {
            counting.describe(to);
        }
    }

    fn type_name(&self) -> &'static str {
        "counting"
    }
}

impl InPlaceCounter {
    fn call(&mut self, event: Event<Make>, scope: &mut Scope<'_, Log>) -> InPlace<Make> {
        scope.record("in place".into());
        let Some(counting) = self.0.take() else { return InPlace::Handled(Response::done()) };
        InPlace::Handled(
            counting.handle(event, scope).map(|counting| self.0 = Some(counting), |seed| seed),
        )
    }
}
