//! A service whose questions a test answers, in the place of a machine.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rotor_core::{Calls, EventSet, Infallible, Machine, Response, Scope, Service};

use super::driver::TestLoop;

/// The [`Calls`] of a service that has no machine behind it: the test takes them and answers them.
///
/// Dropped, it is as if that machine had ended: those who wait hear that there will be no answer,
/// and further questions come back.
pub struct ScriptedCalls<Q, R> {
    calls: Calls<Q, R>,
    /// A service lives as long as the machine that it wakes, which is one that does nothing, in
    /// this loop.
    _home: TestLoop<Home>,
}

/// A service for the machine or handler under test, and the questions that it asks; at most `bound`
/// of them wait.
///
/// After an answer, give the loop of the one who asked a turn:
/// [`Driver::settle`](super::Driver::settle), [`TestLoop::settle`].
///
/// # Panics
///
/// When the loop behind it cannot be made, which does not happen in memory.
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
    let mut home = TestLoop::<Home>::new(());
    let mut made = None;
    home.add(|scope| {
        made = Some(scope.create_service(bound));
        Response::ok(Home)
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

/// The machine that is asked, for all that the service knows.
struct Home;

impl Machine for Home {
    type Context = ();
    type Seed = Infallible;

    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
        Response::ok(self)
    }
}
