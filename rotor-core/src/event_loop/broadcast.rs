//! Closures that run between the handlers of a loop, and machines that are added to it, from any
//! thread. Also the functions of `ReturnOnDrop` values whose owners have ended.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::adding::{AddRequest, PendingAdd};
use super::dispatch::{Dispatch, Refs};
use super::machines::{Machines, Verdicts};
use crate::backend::Backend;
use crate::config::Config;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::response::Response;
use crate::return_on_drop::{EndFunction, EndQueue};
use crate::scope::{AnyEnvironment, GlobalScope, Scope};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use crate::wake_queue::WakeQueue;

/// A request in the queue.
enum Post<M: Machine> {
    Closure(Closure<M>),
    Machine(CreateMachine<M>),
}

type Closure<M> =
    Box<dyn FnOnce(Machines<'_, M>, &mut GlobalScope<'_, <M as Machine>::Context>) + Send>;

/// Makes a machine, and reports the result.
type CreateMachine<M> = Box<
    dyn FnOnce(&mut <M as Machine>::Context, &AnyEnvironment, &Config, &mut Dispatch<M>) + Send,
>;

/// A handle that runs closures on a loop, between handlers, when every machine is in its slot. It
/// is `Send` even if the machines are not.
pub struct Broadcast<M: Machine> {
    posts: Arc<PostQueue<M>>,
}

/// Why a closure was not posted. The error returns the closure.
pub enum PostError<F> {
    /// `Config::posts_max` requests are waiting already. Post fewer, or post later.
    Full(F),
    /// The loop was dropped.
    Closed(F),
}

impl<M: Machine> Broadcast<M> {
    pub(super) fn new(posts: Arc<PostQueue<M>>) -> Broadcast<M> {
        Broadcast { posts }
    }

    /// Runs `f` on the loop, at the end of its current turn or of the next one.
    ///
    /// `f` must not block. If it panics, the panic is logged and nothing else is lost. A loop that
    /// has no machines left runs the posted closures before it ends, so a closure that posts itself
    /// again each time keeps the loop running. If the loop was stopped or has drained, `f` waits
    /// until it is run again, and is dropped with it.
    ///
    /// # Errors
    ///
    /// Returns the closure if too many requests are waiting already or the loop is gone.
    pub fn post<F>(&self, f: F) -> Result<(), PostError<F>>
    where
        F: FnOnce(Machines<'_, M>, &mut GlobalScope<'_, M::Context>) + Send + 'static,
    {
        self.posts.push(f, |f| Post::Closure(Box::new(f)), |f| f)
    }

    /// Adds a machine to the loop, at the end of its current turn or of the next one: for example a
    /// listener on another address. The closure is called with the scope of the new machine. Only
    /// the closure is sent to the loop's thread, so the machine itself need not be `Send`.
    ///
    /// ```
    /// # use rotor_core::{Broadcast, Infallible, Machine, Response};
    /// # struct Worker(String);
    /// # impl Machine for Worker { type Context = (); type Seed = Infallible; }
    /// fn add(loop_of_workers: &Broadcast<Worker>, name: String) -> Result<(), Box<dyn std::error::Error>> {
    ///     let adding = loop_of_workers.add_machine_with(|_| Response::ok(Worker(name)))?;
    ///     adding.wait()?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// The [`PendingAdd`] gets the result; it can be ignored. A loop that would have ended because
    /// it has no machines left goes on with the new one.
    ///
    /// # Errors
    ///
    /// Returns the closure if too many requests are waiting already or the loop is gone. The
    /// `PendingAdd` reports later failures: the loop was draining or gone by then, no slot was
    /// free, or the closure gave no machine.
    #[doc(alias = "spawn")]
    pub fn add_machine_with<F>(&self, make: F) -> Result<PendingAdd<F>, PostError<F>>
    where
        F: FnOnce(&mut Scope<'_, M::Context>) -> Response<M> + Send + 'static,
    {
        let (request, adding) = AddRequest::new(make);
        let into_post = |request: AddRequest<F>| {
            Post::Machine(Box::new(move |context, environment, config, dispatch| {
                request.execute(context, environment, config, dispatch);
            }))
        };
        self.posts.push(request, into_post, AddRequest::into_closure)?;
        Ok(adding)
    }
}

impl<M: Machine> Clone for Broadcast<M> {
    fn clone(&self) -> Broadcast<M> {
        Broadcast { posts: self.posts.clone() }
    }
}

impl<M: Machine> fmt::Debug for Broadcast<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Broadcast")
    }
}

impl<F> PostError<F> {
    /// Returns the closure that was not posted.
    pub fn into_closure(self) -> F {
        match self {
            PostError::Full(f) | PostError::Closed(f) => f,
        }
    }
}

impl<F> fmt::Debug for PostError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PostError::Full(_) => "Full(..)",
            PostError::Closed(_) => "Closed(..)",
        })
    }
}

impl<F> fmt::Display for PostError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PostError::Full(_) => "too many closures wait for the loop (Config::posts_max)",
            PostError::Closed(_) => "the loop is gone",
        })
    }
}

impl<F> std::error::Error for PostError<F> {}

/// The requests that wait.
pub(super) struct PostQueue<M: Machine> {
    queued: Mutex<QueuedPosts<M>>,
    has_posts: AtomicBool,
    capacity: usize,
    wakes: Arc<WakeQueue>,
}

struct QueuedPosts<M: Machine> {
    posts: Vec<Post<M>>,
    closed: bool,
    /// At most as many as there were `ReturnOnDrop` values, so no limit is needed.
    ends: Vec<EndFunction<M::Context>>,
    ends_closed: bool,
}

impl<M: Machine> Default for QueuedPosts<M> {
    fn default() -> QueuedPosts<M> {
        QueuedPosts { posts: Vec::new(), closed: false, ends: Vec::new(), ends_closed: false }
    }
}

impl<M: Machine> PostQueue<M> {
    pub(super) fn new(capacity: usize, wakes: Arc<WakeQueue>) -> PostQueue<M> {
        let queued = Mutex::new(QueuedPosts::default());
        PostQueue { queued, has_posts: AtomicBool::new(false), capacity, wakes }
    }

    /// Turns `value` into a post and queues it, or turns it into what its owner gets back.
    fn push<T, F>(
        &self,
        value: T,
        into_post: impl FnOnce(T) -> Post<M>,
        into_rejected: impl FnOnce(T) -> F,
    ) -> Result<(), PostError<F>> {
        {
            let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
            if queued.closed {
                return Err(PostError::Closed(into_rejected(value)));
            }
            if queued.posts.len() >= self.capacity {
                return Err(PostError::Full(into_rejected(value)));
            }
            queued.posts.push(into_post(value));
        }
        self.notify_loop();
        Ok(())
    }

    /// Tells the loop that there is a post. Called after the push: a loop that is about to sleep
    /// either sees the flag or is woken.
    fn notify_loop(&self) {
        self.has_posts.store(true, SeqCst);
        self.wakes.wake_loop();
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_posts.load(SeqCst)
    }

    /// Runs everything that was posted.
    #[inline]
    pub(super) fn run<B: Backend>(
        &self,
        refs: &mut Refs<'_, M, B>,
        dispatch: &mut Dispatch<M>,
        verdicts: &mut Verdicts,
    ) {
        if self.is_empty() {
            return;
        }
        // Held in local variables, unlike other work of a turn. Each closure has its own guard, so a
        // panic of one does not lose the others.
        let (posts, ends) = self.take_all();
        for end in ends {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(heartbeat) = dispatch.monitor_mut().heartbeat() {
                heartbeat.record_closure("the function of a `ReturnOnDrop`");
            }
            run_end(end, refs.context);
        }
        for post in posts {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(heartbeat) = dispatch.monitor_mut().heartbeat() {
                heartbeat.record_closure("a posted closure");
            }
            let result = match post {
                Post::Closure(f) => {
                    let mut scope = GlobalScope::new(refs.context, refs.environment);
                    let machines = verdicts.machines(dispatch.slots());
                    guard(|| f(machines, &mut scope))
                }
                Post::Machine(make) => {
                    let Refs { context, environment, config, .. } = refs;
                    guard(|| make(context, environment, config, dispatch))
                }
            };
            if let Err(panicked) = result {
                log_guarded!(error, "a posted closure {panicked}");
            }
        }
    }

    fn take_all(&self) -> (Vec<Post<M>>, Vec<EndFunction<M::Context>>) {
        // Clear the flag before the closures are taken: a post in between sets it again.
        if !self.has_posts.swap(false, SeqCst) {
            return (Vec::new(), Vec::new());
        }
        let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut queued.posts), std::mem::take(&mut queued.ends))
    }

    /// Runs the functions of `ReturnOnDrop` values after the last turn, until there are none: what
    /// they drop may own such a value itself.
    pub(super) fn run_end_functions(&self, context: &mut M::Context) {
        loop {
            let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
            let ends = std::mem::take(&mut queued.ends);
            drop(queued);
            if ends.is_empty() {
                return;
            }
            ends.into_iter().for_each(|end| run_end(end, context));
        }
    }

    /// Notes that the context is gone as well. From now on such a value is dropped with its owner.
    pub(super) fn close_end_functions(&self) {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).ends_closed = true;
    }

    /// Notes that the loop is gone, and drops what was posted.
    pub(super) fn close(&self) {
        let dropped = {
            let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
            queued.closed = true;
            std::mem::take(&mut queued.posts)
        };
        // Without the lock: dropping a closure may drop something that posts.
        dropped.into_iter().for_each(|post| drop_guarded(post, "a posted closure"));
    }
}

impl<M: Machine> EndQueue<M::Context> for PostQueue<M> {
    fn push(&self, end: EndFunction<M::Context>) -> Result<(), EndFunction<M::Context>> {
        {
            let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
            if queued.ends_closed {
                return Err(end);
            }
            queued.ends.push(end);
        }
        self.notify_loop();
        Ok(())
    }
}

fn run_end<C>(end: EndFunction<C>, context: &mut C) {
    if let Err(panicked) = guard(|| end(context)) {
        log_guarded!(error, "the function of a `ReturnOnDrop` {panicked}");
    }
}
