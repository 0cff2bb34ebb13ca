//! Replies at a later time: a handler that waits for one thing and then responds.

use std::marker::PhantomData;
use std::time::Duration;

use rotor_core::{Future, FutureError, Outcome, Scope, Time};

use super::handler::{Next, PendingReply, Server};
use super::response::Response;
use crate::semantics::status::Status;

/// Waits for a value.
struct FutureReply<T, R, N> {
    future: Future<T>,
    limit: Time,
    reply: R,
    next: PhantomData<fn() -> N>,
}

impl<S, T, R, N> PendingReply<S> for FutureReply<T, R, N>
where
    S: Server,
    T: Send + 'static,
    R: FnOnce(Result<T, FutureError>, &mut Response<'_>, &mut Scope<'_, S::Context>) -> N
        + Send
        + 'static,
    N: Into<Next<S>> + 'static,
{
    fn limit(&self) -> Time {
        self.limit
    }

    fn is_ready(&self) -> bool {
        self.future.is_ready()
    }

    fn wakeup(
        mut self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S> {
        let result = match self.future.take() {
            Outcome::Pending(future) => {
                self.future = future;
                return Next::pending(self);
            }
            Outcome::Value(value) => Ok(value),
            Outcome::Lost(lost) => Err(lost),
        };
        (self.reply)(result, response, scope).into()
    }

    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S> {
        // The value may have come in the same turn; then it is not too late.
        if self.future.is_ready() {
            return self.wakeup(response, scope);
        }
        Next::fail(Status::SERVICE_UNAVAILABLE)
    }
}

/// Waits for a time.
struct TimedReply<R, N> {
    time: Time,
    reply: R,
    next: PhantomData<fn() -> N>,
}

impl<S, R, N> PendingReply<S> for TimedReply<R, N>
where
    S: Server,
    R: FnOnce(&mut Response<'_>, &mut Scope<'_, S::Context>) -> N + Send + 'static,
    N: Into<Next<S>> + 'static,
{
    fn limit(&self) -> Time {
        self.time
    }

    fn wakeup(self: Box<Self>, _: &mut Response<'_>, _: &mut Scope<'_, S::Context>) -> Next<S> {
        Next::pending(self)
    }

    fn timeout(
        self: Box<Self>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, S::Context>,
    ) -> Next<S> {
        (self.reply)(response, scope).into()
    }
}

impl<S: Server> Next<S> {
    /// Waits for a value from another machine or thread, and then replies. `reply` is called with
    /// the value, or with the reason why it will not come. It returns a [`Reply`](super::Reply), or
    /// a `Next` as a handler does.
    ///
    /// The future must be one that this handler has made: by [`Scope::create_future`], an
    /// [`offload`](Scope::offload), or a call of a [`Service`](rotor_core::Service). Until the
    /// value comes, no method of the handler is called, and the body of the request stays in the
    /// socket, as after [`hold`](Next::hold). If the body or the peer's side ends in the meantime,
    /// the handler with which `reply` goes on is told afterwards. That handler has the full
    /// [`handler_timeout`](crate::Limits::handler_timeout) again, or the deadline that was set
    /// before the wait.
    ///
    /// If the value has not come by `limit`, the peer gets 503 (or the page that
    /// [`emit_error_page`](Server::emit_error_page) writes for it), and the connection closes. A
    /// value that comes later is dropped. So is a value whose peer has gone.
    ///
    /// If `reply` uses the context, write `Next::<Self>::wait`: nothing else tells the compiler the
    /// type of its scope.
    ///
    /// ```
    /// # use rotor_core::{Future, Scope};
    /// # use rotor_http::Status;
    /// # use rotor_http::server::{Next, Server};
    /// # use std::time::Duration;
    /// fn forecast<S: Server>(asked: Future<String>, scope: &Scope<'_, S::Context>) -> Next<S> {
    ///     Next::wait(asked, scope.now() + Duration::from_secs(2), |weather, response, _| match weather {
    ///         Ok(weather) => response.reply(Status::OK, "text/plain", weather.as_bytes()),
    ///         Err(_lost) => response.reply(Status::BAD_GATEWAY, "text/plain", b"nobody knows\n"),
    ///     })
    /// }
    /// ```
    pub fn wait<T, R, N>(future: Future<T>, limit: Time, reply: R) -> Next<S>
    where
        T: Send + 'static,
        R: FnOnce(Result<T, FutureError>, &mut Response<'_>, &mut Scope<'_, S::Context>) -> N
            + Send
            + 'static,
        N: Into<Next<S>> + 'static,
    {
        Next::pending(Box::new(FutureReply { future, limit, reply, next: PhantomData }))
    }

    /// Does `work` on another thread, and then replies with the result.
    ///
    /// This uses [`Scope::offload`]; for another pool, pass the future of a [`job`](Scope::job) to
    /// [`wait`](Next::wait). The peer gets 503 if the work takes longer than `limit`, or if the
    /// pool has no room; it gets 500 if the work panicked. In all three cases the connection
    /// closes. Work that has not begun when the limit is reached is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Next, NoUpgrade, Response, Scope, Server};
    /// use std::time::Duration;
    ///
    /// struct Sum;
    ///
    /// impl Server for Sum {
    ///     type Context = ();
    ///     type Seed = ();
    ///     type Upgrade = NoUpgrade<()>;
    ///
    ///     fn headers_received(
    ///         _: (),
    ///         _: &Head<'_>,
    ///         _: &mut Response<'_>,
    ///         scope: &mut Scope<'_, ()>,
    ///     ) -> Next<Self> {
    ///         let work = || (0..10_000_000_u64).sum::<u64>();
    ///         Next::offload(scope, Duration::from_secs(5), work, |sum, response, _| {
    ///             response.reply(Status::OK, "text/plain", sum.to_string().as_bytes())
    ///         })
    ///     }
    /// }
    /// ```
    #[doc(alias = "spawn_blocking")]
    // `C` is a parameter so that `scope` says it to the compiler before it comes to `reply`.
    pub fn offload<C, T, W, R, N>(
        scope: &Scope<'_, C>,
        limit: Duration,
        work: W,
        reply: R,
    ) -> Next<S>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
        R: FnOnce(T, &mut Response<'_>, &mut Scope<'_, C>) -> N + Send + 'static,
        N: Into<Next<S>> + 'static,
        S: Server<Context = C> + 'static,
    {
        let Ok(future) = scope.offload(work) else {
            return Next::fail(Status::SERVICE_UNAVAILABLE);
        };
        Next::wait(future, scope.now() + limit, |done, response, scope| match done {
            Ok(value) => reply(value, response, scope).into(),
            Err(FutureError::Dropped) => Next::fail(Status::SERVICE_UNAVAILABLE),
            Err(lost) => {
                log::error!("the work of {} was lost: {lost}", std::any::type_name::<S>());
                Next::fail(Status::INTERNAL_SERVER_ERROR)
            }
        })
    }

    /// Replies at `time`, by the loop's clock, and does nothing before. This pause uses a deadline,
    /// and no thread. If `reply` uses the context, write `Next::<Self>::after`, as for
    /// [`wait`](Next::wait).
    ///
    /// ```
    /// # use rotor_core::Scope;
    /// # use rotor_http::Status;
    /// # use rotor_http::server::{Next, Server};
    /// # use std::time::Duration;
    /// fn wrong_password<S: Server>(scope: &Scope<'_, S::Context>) -> Next<S> {
    ///     Next::after(scope.now() + Duration::from_secs(1), |response, _| {
    ///         response.reply(Status::UNAUTHORIZED, "text/plain", b"try again\n")
    ///     })
    /// }
    /// ```
    #[doc(alias = "sleep")]
    #[doc(alias = "delay")]
    pub fn after<R, N>(time: Time, reply: R) -> Next<S>
    where
        R: FnOnce(&mut Response<'_>, &mut Scope<'_, S::Context>) -> N + Send + 'static,
        N: Into<Next<S>> + 'static,
    {
        Next::pending(Box::new(TimedReply { time, reply, next: PhantomData }))
    }
}
