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
        // A wake-up that was meant for something else is not a call of the handler. The inner wait
        // is not called either: its value may be set meanwhile by another thread, and it would then
        // reply without `around`. That value causes a wake-up of its own.
        if !self.inner.is_ready() {
            return Next::pending(self);
        }
        let AroundReply { inner, mut around } = *self;
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rotor_stream::testing::Driver;

    use super::*;
    use crate::no_upgrade::NoUpgrade;
    use crate::semantics::status::Status;
    use crate::server::config::ServerConfig;
    use crate::server::connection::{Connection, HttpSeed};
    use crate::server::head::Head;
    use crate::server::request_event::RequestEvent;

    /// A wait whose value is set by another thread between the check for it and the next call. It
    /// counts the checks; the first one is made when the wait begins.
    struct ValueAfterCheck(Cell<u32>);

    impl PendingReply<Page> for ValueAfterCheck {
        fn limit(&self) -> Time {
            Time::NEVER
        }

        fn is_ready(&self) -> bool {
            self.0.replace(self.0.get() + 1) >= 2
        }

        fn wakeup(
            self: Box<Self>,
            response: &mut Response<'_>,
            _: &mut Scope<'_, ()>,
        ) -> Next<Page> {
            match self.0.get() >= 2 {
                true => response.reply(Status::OK, "text/plain", b"page").into(),
                false => Next::pending(self),
            }
        }

        fn timeout(self: Box<Self>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Page> {
            Next::fail(Status::SERVICE_UNAVAILABLE)
        }
    }

    struct Page;

    impl Server for Page {
        type Context = ();
        type Seed = ();
        type Upgrade = NoUpgrade<()>;

        fn headers_received(
            (): (),
            _: &Head<'_>,
            _: &mut Response<'_>,
            _: &mut Scope<'_, ()>,
        ) -> Next<Page> {
            Next::pending(Box::new(ValueAfterCheck(Cell::new(0))))
        }
    }

    /// Adds a field to what is written in a call.
    struct Marker;

    impl Around<Page> for Marker {
        type Outer = Marked;

        fn call(
            &mut self,
            response: &mut Response<'_>,
            scope: &mut Scope<'_, ()>,
            call: impl FnOnce(&mut Response<'_>, &mut Scope<'_, ()>) -> Next<Page>,
        ) -> Next<Page> {
            response.with_fields(&[("X-Around", b"yes")], |response| call(response, scope))
        }

        fn outer(self, page: Page) -> Marked {
            Marked(page)
        }
    }

    struct Marked(Page);

    impl Server for Marked {
        type Context = ();
        type Seed = ();
        type Upgrade = NoUpgrade<()>;

        fn headers_received(
            (): (),
            head: &Head<'_>,
            response: &mut Response<'_>,
            scope: &mut Scope<'_, ()>,
        ) -> Next<Marked> {
            Page::headers_received((), head, response, scope).around(Marker)
        }

        fn handle(
            self,
            event: RequestEvent<'_>,
            response: &mut Response<'_>,
            scope: &mut Scope<'_, ()>,
        ) -> Next<Marked> {
            self.0.handle(event, response, scope).around(Marker)
        }
    }

    #[test]
    fn a_value_set_during_the_check_for_it_is_answered_inside_the_around() {
        let seed = HttpSeed::new((), ServerConfig::new());
        let mut driver = Driver::<Connection<Marked>>::new(seed, ());
        driver.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        driver.wakeup();
        driver.settle();
        let answer = String::from_utf8(driver.take_received()).expect("text");
        assert!(answer.contains("\r\nX-Around: yes\r\n") && answer.ends_with("page"), "{answer}");
    }
}
