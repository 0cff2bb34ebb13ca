//! `Around`: code that runs around every call of a handler.

use rotor_core::{Scope, Time};

use super::handler::{Next, PendingReply, Server};
use super::response::Response;

/// Code that runs around every call of a handler `S`: a span, a clock, a counter.
///
/// It also runs around the calls that are made in the handler's place while something [waits
/// there](Next::wait).
///
/// A server that wraps another one makes the calls of the inner handler through
/// [`call`](Around::call), and passes the returned `Next` to [`Next::around`], which keeps this
/// value together with the handler. If a wrapper does nothing around calls, [`Next::wrap`] is
/// enough.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::BodyError;
/// use rotor::http::server::{Around, Head, Next, RequestEvent, Response, Scope, Server};
///
/// /// Counts the calls of one request.
/// struct Counted<S>(S, u32);
///
/// struct Calls(u32);
///
/// impl<S: Server + 'static> Around<S> for Calls {
///     type Outer = Counted<S>;
///
///     fn call(
///         &mut self,
///         response: &mut Response<'_>,
///         scope: &mut Scope<'_, S::Context>,
///         call: impl FnOnce(&mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
///     ) -> Next<S> {
///         self.0 += 1;
///         call(response, scope)
///     }
///
///     fn outer(self, handler: S) -> Counted<S> {
///         Counted(handler, self.0)
///     }
/// }
///
/// impl<S: Server + 'static> Server for Counted<S> {
///     type Context = S::Context;
///     type Seed = S::Seed;
///     type Upgrade = S::Upgrade;
///
///     fn headers_received(
///         seed: S::Seed,
///         head: &Head<'_>,
///         response: &mut Response<'_>,
///         scope: &mut Scope<'_, S::Context>,
///     ) -> Next<Self> {
///         let mut calls = Calls(0);
///         let next = calls.call(response, scope, |response, scope| {
///             S::headers_received(seed, head, response, scope)
///         });
///         next.around(calls)
///     }
///
///     // Every event after the head.
///     fn handle(
///         self,
///         event: RequestEvent<'_>,
///         response: &mut Response<'_>,
///         scope: &mut Scope<'_, S::Context>,
///     ) -> Next<Self> {
///         let Counted(handler, calls) = self;
///         let mut calls = Calls(calls);
///         let next = calls.call(response, scope, |response, scope| {
///             handler.handle(event, response, scope)
///         });
///         next.around(calls)
///     }
///
///     // Forward what is not an event: also `describe`, `emit_error_page`, `supports`, `HEARS_END`.
///     fn bad_request(self, error: BodyError, scope: &mut Scope<'_, S::Context>) {
///         self.0.bad_request(error, scope);
///     }
/// }
/// ```
#[doc(alias = "middleware")]
#[doc(alias = "layer")]
pub trait Around<S: Server>: Send + Sized + 'static {
    /// The server that wraps the inner one.
    type Outer: Server<Context = S::Context, Upgrade = S::Upgrade>;

    /// Makes one call of the handler. The implementation must call `call`, which returns the
    /// handler's `Next`, and may do something before and after.
    fn call(
        &mut self,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
        call: impl FnOnce(&mut Response<'_>, &mut Scope<'_, S::Context>) -> Next<S>,
    ) -> Next<S>;

    /// Makes the outer handler from the inner one, when the request goes on.
    fn outer(self, handler: S) -> Self::Outer;
}

/// Waits in the place of a handler that has an `Around`.
struct AroundReply<S: Server, A> {
    inner: Box<dyn PendingReply<S>>,
    around: A,
}

impl<S: Server + 'static> Next<S> {
    /// Converts this to a `Next` of the outer handler, which `around` makes. If something waits in
    /// the place of the inner handler, it is called through `around`. When the request has ended,
    /// `around` is dropped.
    pub fn around<A: Around<S>>(self, around: A) -> Next<A::Outer> {
        self.map_with(
            around,
            |around, state| around.outer(state),
            |_, seed| seed,
            |around, inner| Box::new(AroundReply { inner, around }),
        )
    }
}

impl<S: Server + 'static, A: Around<S>> PendingReply<A::Outer> for AroundReply<S, A> {
    fn limit(&self) -> Time {
        self.inner.limit()
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn wakeup(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<A::Outer> {
        let AroundReply { inner, mut around } = *self;
        // A wake-up that was meant for something else is not a call of the handler.
        if !inner.is_ready() {
            return inner.wakeup(response, scope).around(around);
        }
        let next = around.call(response, scope, |response, scope| inner.wakeup(response, scope));
        next.around(around)
    }

    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<A::Outer> {
        let AroundReply { inner, mut around } = *self;
        let next = around.call(response, scope, |response, scope| inner.timeout(response, scope));
        next.around(around)
    }
}
