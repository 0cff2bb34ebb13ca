//! A service whose requests are answered by a test instead of a machine.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rotor_core::{Calls, EventSet, Infallible, Machine, Response, Scope, Service};

use super::driver::TestLoop;

/// The [`Calls`] of a service without a machine: the test receives and answers them.
///
/// Dropping it is like the end of that machine: callers that wait are told that there will be no
/// answer, and further requests are refused.
pub struct ScriptedCalls<Q, R> {
    calls: Calls<Q, R>,
    /// The machine that the service wakes, which does nothing, in a loop of its own. A service
    /// lives as long as its machine.
    _home: TestLoop<ServiceMachine>,
}

/// Makes a service for the machine or handler under test, and the calls to it. At most `bound`
/// requests wait.
///
/// After an answer, give the caller's loop a turn: [`Driver::settle`](super::Driver::settle),
/// [`TestLoop::settle`].
///
/// # Panics
///
/// If the loop of the service cannot be made, which does not happen in memory.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// use rotor::{Future, Machine, Outcome, Response, Scope, Service, Infallible};
/// use rotor::stream::testing::{TestLoop, service};
///
/// /// Asks for the double of a number, and notes it.
/// struct Asker(Future<u32>);
///
/// impl Machine for Asker {
///     type Context = Option<u32>;
///     type Seed = Infallible;
///     fn wakeup(self, scope: &mut Scope<'_, Option<u32>>) -> Response<Self, Infallible> {
///         match self.0.take() {
///             Outcome::Pending(future) => return Response::keep(Asker(future)),
///             Outcome::Value(double) => **scope = Some(double),
///             Outcome::Lost(_) => {}
///         }
///         Response::done()
///     }
/// }
///
/// let (doubler, mut calls): (Service<u32, u32>, _) = service(8);
/// let mut test = TestLoop::<Asker>::new(None);
/// test.add(|scope| Response::ok(Asker(doubler.ask(4, scope).expect("there is room"))));
///
/// let call = calls.receive().expect("it asks");
/// assert_eq!(*call.request(), 4);
/// call.answer(8).expect("it waits");
/// test.settle();
/// assert_eq!(*test.context(), Some(8));
///
/// drop(calls);
/// assert!(doubler.is_closed());
/// ```
pub fn service<Q, R>(bound: usize) -> (Service<Q, R>, ScriptedCalls<Q, R>) {
    let mut home = TestLoop::<ServiceMachine>::new(());
    let mut made = None;
    home.add(|scope| {
        made = Some(scope.create_service(bound));
        Response::ok(ServiceMachine)
    });
    let (service, calls) = made.expect("the machine was made");
    (service, ScriptedCalls { calls, _home: home })
}

impl<Q, R> Deref for ScriptedCalls<Q, R> {
    type Target = Calls<Q, R>;

    fn deref(&self) -> &Calls<Q, R> {
        &self.calls
    }
}

impl<Q, R> DerefMut for ScriptedCalls<Q, R> {
    fn deref_mut(&mut self) -> &mut Calls<Q, R> {
        &mut self.calls
    }
}

impl<Q, R> fmt::Debug for ScriptedCalls<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedCalls")
    }
}

/// The machine of the service.
struct ServiceMachine;

impl Machine for ServiceMachine {
    type Context = ();
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::ok(self)
    }
}
