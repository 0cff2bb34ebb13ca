//! Request and reply between machines: a `Service` asks, the `Calls` of its server answer.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::future::{self, Cancellations, Future, Lost, OnCancel, Outcome, Port, Waiter};
use crate::mailbox::{self, Mailbox, ReceiveError, SendError, Sender};
use crate::scope::Scope;
use crate::sync::thread;

/// What others ask a machine through: requests of type `Q`, each of which gets one answer of type
/// `R`, or the news that there will be none.
///
/// Made with its [`Calls`] by [`Scope::create_service`]. Clones ask the same machine; put one into
/// the context, and every machine of the loop can ask; send one to another thread, and the machines
/// of its loop can. A request costs one allocation, whatever it asks.
///
/// ```text
///   asker                    Service<Q, R>                 server
///     │── ask(request) ─────────────────────▶ wakeup: Calls::receive() ─▶ Call<Q, R>
///     │   = Future<R>                                        │
///     │◀───────────── wakeup: Future::take() ◀── answer(reply)│   or dropped: `Lost`
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

/// The requests that were made of a machine, in the order in which they came.
///
/// Each wakes the machine. Dropped, with the machine as a rule, it tells all who wait that there
/// will be no answer.
#[doc(alias = "actor")]
#[doc(alias = "mailbox")]
pub struct Calls<Q, R> {
    mailbox: Mailbox<Call<Q, R>>,
    cancellations: Arc<Cancellations>,
}

/// One request, to be answered once. Dropped without an answer, it tells the one who asked so
/// ([`Lost`]).
#[must_use = "dropping a call tells the one who asked that there will be no answer"]
pub struct Call<Q, R> {
    request: Q,
    port: Port<R>,
}

/// The answer that a plain thread waits for; dropping it cancels the request.
#[doc(alias = "blocking_recv")]
#[doc(alias = "Reply")]
#[must_use = "dropping a reply cancels what was asked"]
pub struct BlockingReply<R> {
    future: Future<R>,
    /// The thread that asked is the one that is woken: it cannot be handed to another.
    same_thread: PhantomData<*const ()>,
}

impl<C> Scope<'_, C> {
    /// Makes what others ask this machine through, and the requests that come of it, of which at
    /// most `bound` wait (at least 1).
    ///
    /// The service is given away, to the context or to other threads, the calls are kept; each
    /// request wakes this machine, and so does each that is cancelled.
    pub fn create_service<Q, R>(&self, bound: usize) -> (Service<Q, R>, Calls<Q, R>) {
        let server = self.notifier();
        let cancellations = Arc::new(Cancellations::new(server.clone()));
        let (sender, mailbox) = mailbox::mailbox(bound, server);
        (Service { sender, cancellations: cancellations.clone() }, Calls { mailbox, cancellations })
    }
}

impl<Q, R> Service<Q, R> {
    /// Asks, and wakes the machine of `scope` when the answer is there: then [`Future::take`] gives
    /// it, or tells why there will be none. Dropping the future cancels.
    ///
    /// # Errors
    ///
    /// [`Full`](SendError::Full) when as many requests wait as there is room for;
    /// [`Closed`](SendError::Closed) when the server is gone. The request comes back in both, and
    /// nobody is woken.
    pub fn ask<C>(&self, request: Q, scope: &Scope<'_, C>) -> Result<Future<R>, SendError<Q>> {
        self.send(request, Waiter::Machine(scope.notifier()))
    }

    /// Asks from a thread that runs no loop; [`BlockingReply::wait`] then waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`ask`](Service::ask).
    pub fn ask_from_thread(&self, request: Q) -> Result<BlockingReply<R>, SendError<Q>> {
        let future = self.send(request, Waiter::Thread(thread::current()))?;
        Ok(BlockingReply { future, same_thread: PhantomData })
    }

    fn send(&self, request: Q, waiter: Waiter) -> Result<Future<R>, SendError<Q>> {
        let (port, future) = future::pair(waiter, OnCancel::Server(self.cancellations.clone()));
        let Err(error) = self.sender.send(Call { request, port }) else { return Ok(future) };
        let is_full = matches!(error, SendError::Full(_));
        // The asker gets back what it gave; the port was made here.
        let Call { request, port } = error.into_message();
        // Nobody is to hear of the end of a request that was never made.
        port.abandon(future);
        Err(if is_full { SendError::Full(request) } else { SendError::Closed(request) })
    }

    /// Returns whether the server, or its [`Calls`], is gone: nothing that is asked will be
    /// answered.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl<Q, R> Calls<Q, R> {
    /// Takes the oldest request, if there is one; it may have been cancelled.
    ///
    /// Take a bounded number in one event and, if there may be more, wake yourself:
    /// [`Scope::notifier`].
    pub fn receive(&mut self) -> Option<Call<Q, R>> {
        self.mailbox.receive()
    }

    /// Takes the oldest request; when there is none, says whether one may still come.
    ///
    /// # Errors
    ///
    /// [`Empty`](ReceiveError::Empty) when there is none now, [`Closed`](ReceiveError::Closed) when
    /// every service is gone, which wakes the machine as well.
    pub fn try_receive(&mut self) -> Result<Call<Q, R>, ReceiveError> {
        self.mailbox.try_receive()
    }

    /// Returns whether a request was cancelled since this was last asked, taken by now or not: only
    /// then is it worth looking through those that wait with the server ([`Call::is_cancelled`]).
    pub fn take_cancelled(&mut self) -> bool {
        self.cancellations.take()
    }

    /// Returns how many requests wait, with those that were cancelled.
    pub fn len(&self) -> usize {
        self.mailbox.len()
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.mailbox.is_empty()
    }
}

impl<Q, R> Call<Q, R> {
    /// Returns what was asked.
    pub fn request(&self) -> &Q {
        &self.request
    }

    /// Returns what was asked, to be changed or taken from.
    pub fn request_mut(&mut self) -> &mut Q {
        &mut self.request
    }

    /// Takes apart the request and where its answer goes: for a server that hands them to other
    /// machines. Such a machine says [`Port::on_cancel`], to be woken in the server's place when
    /// the request is cancelled.
    pub fn into_parts(self) -> (Q, Port<R>) {
        (self.request, self.port)
    }

    /// Answers, and wakes the one who asked.
    ///
    /// # Errors
    ///
    /// The answer back, when nobody waits any more.
    pub fn answer(self, reply: R) -> Result<(), R> {
        self.port.set(reply)
    }

    /// Returns whether nobody waits for the answer any more: the future was dropped, or its machine
    /// is gone. The second is not told; it shows when somebody looks.
    pub fn is_cancelled(&self) -> bool {
        self.port.is_cancelled()
    }
}

impl<R> BlockingReply<R> {
    /// Waits for the answer, for as long as it takes; the server is the one to bound that.
    ///
    /// On the thread of the server's own loop it would wait for ever.
    ///
    /// # Errors
    ///
    /// Why there will be no answer: the server dropped the request, ended or panicked.
    #[doc(alias = "blocking_recv")]
    #[doc(alias = "block_on")]
    pub fn wait(self) -> Result<R, Lost> {
        self.future.wait()
    }

    /// Waits for the answer, for so long at most. Returns itself when the time is over: wait again, or drop it,
    /// which cancels the request.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use rotor_core::{BlockingReply, Lost};
    /// fn in_time(reply: BlockingReply<u64>) -> Result<Option<u64>, Lost> {
    ///     match reply.wait_timeout(Duration::from_secs(1)) {
    ///         Ok(answer) => answer.map(Some),
    ///         Err(_late) => Ok(None), // dropped here: nobody waits for it
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Itself, when there is no answer yet. The inner error is that of [`wait`](BlockingReply::wait).
    #[doc(alias = "recv_timeout")]
    pub fn wait_timeout(self, time: Duration) -> Result<Result<R, Lost>, BlockingReply<R>> {
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
