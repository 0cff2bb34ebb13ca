//! Requests from one machine to another: others ask through a `Service`, and the server answers its
//! `Calls`.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::future::{self, Cancellations, Future, FutureError, OnCancel, Outcome, Port, Waiter};
use crate::mailbox::{self, Mailbox, ReceiveError, SendError, Sender};
use crate::scope::Scope;
use crate::sync::thread;

/// A handle for sending requests to a machine. Each request, of type `Q`, gets one answer of type
/// `R`, or a notice that there will be none.
///
/// It is made together with its [`Calls`] by [`Scope::create_service`]. Clones send to the same
/// machine. If the context contains a clone, every machine of the loop can send requests; if
/// another thread has one, so can the machines of its loop. A request costs one allocation,
/// whatever its type.
///
/// ```text
///   asker                    Service<Q, R>                 server
///     │── ask(request) ─────────────────────▶ wakeup: Calls::receive() ─▶ Call<Q, R>
///     │   = Future<R>                                        │
///     │◀───────────── wakeup: Future::take() ◀── answer(reply)│   or dropped: `FutureError`
///     └── drop(future) ────────────────────▶ wakeup: Call::is_cancelled()
/// ```
///
/// # Examples
///
/// A machine that adds, and one that asks it:
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Calls, Config, Future, Loop, Machine, Outcome, Response, Scope, Service, Infallible};
///
/// struct Context {
///     adder: Service<(u32, u32), u32>,
///     sum: Option<u32>,
/// }
///
/// enum Either {
///     Adder(Calls<(u32, u32), u32>),
///     Asker(Option<Future<u32>>),
/// }
///
/// impl Machine for Either {
///     type Context = Context;
///     type Seed = Infallible;
///
///     fn timeout(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
///         // A full queue or a server that is gone is an error, and the request comes back in it.
///         let future = scope.adder.ask((2, 3), scope).ok();
///         Response::ok(Either::Asker(future))
///     }
///
///     fn wakeup(self, scope: &mut Scope<'_, Context>) -> Response<Self, Infallible> {
///         match self {
///             Either::Adder(mut calls) => {
///                 while let Some(call) = calls.receive() {
///                     let (a, b) = *call.request();
///                     let _nobody_waits_any_more = call.answer(a + b);
///                 }
///                 Response::keep(Either::Adder(calls))
///             }
///             Either::Asker(Some(future)) => match future.take() {
///                 Outcome::Pending(future) => Response::keep(Either::Asker(Some(future))),
///                 Outcome::Value(sum) => {
///                     scope.sum = Some(sum);
///                     scope.stop_loop();
///                     Response::done()
///                 }
///                 Outcome::Lost(_the_server_is_gone) => Response::done(),
///             },
///             Either::Asker(None) => Response::done(),
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::new(&Config::new())?;
/// let mut adder = None;
/// creator.add_machine_with(|scope| {
///     let (service, calls) = scope.create_service(16);
///     adder = Some(service);
///     Response::ok(Either::Adder(calls))
/// })?;
/// creator.add_machine_with(|scope| Response::ok(Either::Asker(None)).deadline(scope.now()))?;
/// let adder = adder.ok_or("made above")?;
/// let mut instance = creator.instantiate(Context { adder, sum: None });
/// instance.run()?;
/// assert_eq!(instance.context().sum, Some(5));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "actor")]
#[doc(alias = "request-response")]
#[doc(alias = "RPC")]
pub struct Service<Q, R> {
    sender: Sender<Call<Q, R>>,
    cancellations: Arc<Cancellations>,
}

/// The requests to a machine, in the order in which they were sent.
///
/// Each request wakes the machine. If the `Calls` are dropped, usually together with the machine,
/// all machines that wait for an answer learn that there will be none.
#[doc(alias = "actor")]
#[doc(alias = "mailbox")]
pub struct Calls<Q, R> {
    mailbox: Mailbox<Call<Q, R>>,
    cancellations: Arc<Cancellations>,
}

/// One request, to be answered once. If it is dropped without an answer, the machine that sent it
/// learns that ([`FutureError`]).
#[must_use = "dropping a call tells the one who asked that there will be no answer"]
pub struct Call<Q, R> {
    request: Q,
    port: Port<R>,
}

/// The answer for which a plain thread waits. Dropping it cancels the request.
#[doc(alias = "blocking_recv")]
#[doc(alias = "Reply")]
#[must_use = "dropping a reply cancels what was asked"]
pub struct BlockingReply<R> {
    future: Future<R>,
    /// Makes the type `!Send`: the thread that sent the request is the one that is woken.
    same_thread: PhantomData<*const ()>,
}

impl<C> Scope<'_, C> {
    /// Makes a service of this machine, and the queue of its requests, in which at most `bound`
    /// requests wait (at least 1).
    ///
    /// Give the service away, to the context or to other threads, and keep the calls. Each request
    /// wakes this machine, and so does each cancellation.
    pub fn create_service<Q, R>(&self, bound: usize) -> (Service<Q, R>, Calls<Q, R>) {
        let server = self.notifier();
        let cancellations = Arc::new(Cancellations::new(server.clone()));
        let (sender, mailbox) = mailbox::mailbox(bound, server);
        (Service { sender, cancellations: cancellations.clone() }, Calls { mailbox, cancellations })
    }
}

impl<Q, R> Service<Q, R> {
    /// Sends a request. The machine of `scope` is woken when the answer is available; then
    /// [`Future::take`] returns it, or the reason why there will be none. Dropping the future
    /// cancels the request.
    ///
    /// # Errors
    ///
    /// [`Full`](SendError::Full) if the queue is full; [`Closed`](SendError::Closed) if the server
    /// is gone. Both contain the request, and no machine is woken.
    pub fn ask<C>(&self, request: Q, scope: &Scope<'_, C>) -> Result<Future<R>, SendError<Q>> {
        self.send(request, Waiter::Machine(scope.notifier()))
    }

    /// Sends a request from a thread that runs no loop. [`BlockingReply::wait`] then waits for the
    /// answer.
    ///
    /// # Errors
    ///
    /// As for [`ask`](Service::ask).
    pub fn ask_from_thread(&self, request: Q) -> Result<BlockingReply<R>, SendError<Q>> {
        let future = self.send(request, Waiter::Thread(thread::current()))?;
        Ok(BlockingReply { future, same_thread: PhantomData })
    }

    fn send(&self, request: Q, waiter: Waiter) -> Result<Future<R>, SendError<Q>> {
        let (port, future) = future::channel(waiter, OnCancel::Server(self.cancellations.clone()));
        let Err(error) = self.sender.send(Call { request, port }) else { return Ok(future) };
        let is_full = matches!(error, SendError::Full(_));
        // The caller gets its request back; the port was made here.
        let Call { request, port } = error.into_message();
        // The server must not be notified of the end of a request that was never sent.
        port.abandon(future);
        Err(if is_full { SendError::Full(request) } else { SendError::Closed(request) })
    }

    /// Returns whether the server, or its [`Calls`], is gone, so that no request will be answered.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl<Q, R> Calls<Q, R> {
    /// Takes the oldest request, if there is one. It may have been cancelled.
    ///
    /// Take a limited number in one event and, if there may be more, wake this machine again:
    /// [`Scope::wake_self`].
    pub fn receive(&mut self) -> Option<Call<Q, R>> {
        self.mailbox.receive()
    }

    /// Takes the oldest request. If there is none, the error tells whether one may still come.
    ///
    /// # Errors
    ///
    /// [`Empty`](ReceiveError::Empty) if there is none now; [`Closed`](ReceiveError::Closed) if all
    /// services are gone, which wakes the machine as well.
    pub fn try_receive(&mut self) -> Result<Call<Q, R>, ReceiveError> {
        self.mailbox.try_receive()
    }

    /// Returns whether a request was cancelled since the last call of this method, including
    /// requests that were already received. Only then is it worth checking the requests that the
    /// server holds ([`Call::is_cancelled`]).
    pub fn take_cancelled(&mut self) -> bool {
        self.cancellations.take()
    }

    /// Returns how many requests wait, including cancelled ones.
    pub fn len(&self) -> usize {
        self.mailbox.len()
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.mailbox.is_empty()
    }
}

impl<Q, R> Call<Q, R> {
    /// Returns the request.
    pub fn request(&self) -> &Q {
        &self.request
    }

    /// Returns a mutable reference to the request, so that it can be changed or parts of it taken.
    pub fn request_mut(&mut self) -> &mut Q {
        &mut self.request
    }

    /// Splits the call into the request and the port for its answer: for a server that passes
    /// requests on to other machines. Such a machine calls [`Port::on_cancel`], so that it is woken
    /// instead of the server if the request is cancelled.
    pub fn into_parts(self) -> (Q, Port<R>) {
        (self.request, self.port)
    }

    /// Sends the answer, and wakes the machine or thread that waits for it.
    ///
    /// # Errors
    ///
    /// Returns the answer if it is not wanted any more.
    pub fn answer(self, reply: R) -> Result<(), R> {
        let Call { request, port } = self;
        let answered = port.set(reply);
        // While this is done, an answer that is not wanted must not be in the place of the return
        // value already: the compiler does not drop that if the drop of the request panics
        // (rust-lang/rust#47949).
        drop(request);
        answered
    }

    /// Returns whether the answer is not wanted any more: the future was dropped, or its machine is
    /// gone. The end of the machine does not wake the server; only this call shows it.
    pub fn is_cancelled(&self) -> bool {
        self.port.is_cancelled()
    }
}

impl<R> BlockingReply<R> {
    /// Blocks until there is an answer, without a time limit; the server should limit its time.
    ///
    /// On the thread of the server's own loop this would wait forever.
    ///
    /// # Errors
    ///
    /// The reason why there will be no answer: the server dropped the request, ended or panicked.
    #[doc(alias = "blocking_recv")]
    #[doc(alias = "block_on")]
    pub fn wait(self) -> Result<R, FutureError> {
        self.future.wait()
    }

    /// Blocks until there is an answer, but at most for `time`. If the time is over, this returns
    /// the reply itself: wait again, or drop it, which cancels the request.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use rotor_core::{BlockingReply, FutureError};
    /// fn in_time(reply: BlockingReply<u64>) -> Result<Option<u64>, FutureError> {
    ///     match reply.wait_timeout(Duration::from_secs(1)) {
    ///         Ok(answer) => answer.map(Some),
    ///         Err(_late) => Ok(None), // dropped here: nobody waits for it
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The reply itself, if there is no answer yet. The inner error is that of
    /// [`wait`](BlockingReply::wait).
    #[doc(alias = "recv_timeout")]
    pub fn wait_timeout(self, time: Duration) -> Result<Result<R, FutureError>, BlockingReply<R>> {
        match self.future.wait_timeout(time) {
            Outcome::Pending(future) => Err(BlockingReply { future, same_thread: PhantomData }),
            Outcome::Value(value) => Ok(Ok(value)),
            Outcome::Lost(lost) => Ok(Err(lost)),
        }
    }

    /// Returns whether [`wait`](BlockingReply::wait) would return at once.
    pub fn is_ready(&self) -> bool {
        self.future.is_ready()
    }
}

impl<Q, R> Clone for Service<Q, R> {
    fn clone(&self) -> Service<Q, R> {
        Service { sender: self.sender.clone(), cancellations: self.cancellations.clone() }
    }
}

impl<Q, R> fmt::Debug for Service<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service(closed: {})", self.is_closed())
    }
}

impl<Q, R> fmt::Debug for Calls<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

impl<Q: fmt::Debug, R> fmt::Debug for Call<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("request", &self.request)
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

impl<R> fmt::Debug for BlockingReply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockingReply(ready: {})", self.is_ready())
    }
}
