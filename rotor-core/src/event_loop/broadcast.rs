//! Running a closure between the handlers of a loop, or making a machine, from any thread; and what
//! is to be done for owners that have ended.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::adding::{Adding, Order};
use super::dispatch::{Dispatch, Refs};
use super::machines::{Machines, Verdicts};
use crate::at_end::{End, EndQueue};
use crate::backend::Backend;
use crate::config::Config;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::response::Response;
use crate::scope::{AnyEnvironment, GlobalScope, Scope};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use crate::wake_queue::WakeQueue;

/// What is posted.
enum Post<M: Machine> {
    Closure(Closure<M>),
    Machine(Making<M>),
}

type Closure<M> =
    Box<dyn FnOnce(Machines<'_, M>, &mut GlobalScope<'_, <M as Machine>::Context>) + Send>;

/// Makes a machine, and tells whoever asked.
type Making<M> = Box<
    dyn FnOnce(&mut <M as Machine>::Context, &AnyEnvironment, &Config, &mut Dispatch<M>) + Send,
>;

/// Runs closures on a loop, between handlers, when every machine is in its slot. `Send` even where
/// the machines are not.
pub struct Broadcast<M: Machine> {
    posts: Arc<Posts<M>>,
}

/// Why a closure was not posted, with the closure.
pub enum PostError<F> {
    /// As many wait already as `Config::posts_max` allows. Post less, or later.
    Full(F),
    /// The loop is gone.
    Closed(F),
}

impl<M: Machine> Broadcast<M> {
    pub(super) fn new(posts: Arc<Posts<M>>) -> Broadcast<M> {
        Broadcast { posts }
    }

    /// Has `f` run at the end of the turn that the loop is in, or of the next one.
    ///
    /// It must not block. If it panics, that is logged and nothing else is lost. A loop that runs
    /// out of machines runs what was posted before it ends, so a closure that posts itself anew
    /// each time keeps it from that end; one that is stopped or drained drops it.
    ///
    /// # Errors
    ///
    /// The closure back, when too many wait already or the loop is gone.
    pub fn post<F>(&self, f: F) -> Result<(), PostError<F>>
    where
        F: FnOnce(Machines<'_, M>, &mut GlobalScope<'_, M::Context>) + Send + 'static,
    {
        self.posts.push(f, |f| Post::Closure(Box::new(f)), |f| f)
    }

    /// Has the loop make a machine at the end of the turn that it is in, or of the next one: a
    /// listener on another address, say. The closure gets the scope of the new machine; it is what
    /// is sent to the loop, so the machine itself need not be `Send`.
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
    /// What comes of it is told to the [`Adding`], if that is wanted. A machine that is added is
    /// one like any other: a loop that would have ended for want of machines goes on.
    ///
    /// # Errors
    ///
    /// The closure back, when too many wait already or the loop is gone. Later, by the `Adding`:
    /// when it drains or is gone by then, when no slot is free, or the closure gives no machine.
    #[doc(alias = "spawn")]
    pub fn add_machine_with<F>(&self, make: F) -> Result<Adding<F>, PostError<F>>
    where
        F: FnOnce(&mut Scope<'_, M::Context>) -> Response<M> + Send + 'static,
    {
        let (order, adding) = Order::new(make);
        let to_post = |order: Order<F>| {
            Post::Machine(Box::new(move |context, environment, config, dispatch| {
                order.fill(context, environment, config, dispatch);
            }))
        };
        self.posts.push(order, to_post, Order::into_closure)?;
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
    /// The closure that was not posted.
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

/// The closures that wait.
pub(super) struct Posts<M: Machine> {
    waiting: Mutex<Waiting<M>>,
    any: AtomicBool,
    bound: usize,
    wakes: Arc<WakeQueue>,
}

struct Waiting<M: Machine> {
    posts: Vec<Post<M>>,
    closed: bool,
    /// As many at most as there were values of `AtEnd`, so without a bound of their own.
    ends: Vec<End<M::Context>>,
    ends_closed: bool,
}

impl<M: Machine> Default for Waiting<M> {
    fn default() -> Waiting<M> {
        Waiting { posts: Vec::new(), closed: false, ends: Vec::new(), ends_closed: false }
    }
}

impl<M: Machine> Posts<M> {
    pub(super) fn new(bound: usize, wakes: Arc<WakeQueue>) -> Posts<M> {
        let waiting = Mutex::new(Waiting::default());
        Posts { waiting, any: AtomicBool::new(false), bound, wakes }
    }

    /// Has `to_post` make of a thing what is posted, or `back` what its owner gets back.
    fn push<T, F>(
        &self,
        thing: T,
        to_post: impl FnOnce(T) -> Post<M>,
        back: impl FnOnce(T) -> F,
    ) -> Result<(), PostError<F>> {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.closed {
                return Err(PostError::Closed(back(thing)));
            }
            if waiting.posts.len() >= self.bound {
                return Err(PostError::Full(back(thing)));
            }
            waiting.posts.push(to_post(thing));
        }
        self.note();
        Ok(())
    }

    /// Behind the closure, and before the wake-up: a loop that is about to sleep finds it or is
    /// woken.
    fn note(&self) {
        self.any.store(true, SeqCst);
        self.wakes.wake_loop();
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(SeqCst)
    }

    /// Runs what was posted.
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
        // The one work of a turn that is held in variables: each has a guard of its own, so that
        // none is lost with another's panic.
        let (posts, ends) = self.take();
        for end in ends {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(pulse) = dispatch.pulse() {
                pulse.runs("the function of an `AtEnd`");
            }
            run_end(end, refs.context);
        }
        for post in posts {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(pulse) = dispatch.pulse() {
                pulse.runs("a posted closure");
            }
            let ran = match post {
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
            if let Err(panicked) = ran {
                log_guarded!(error, "a posted closure {panicked}");
            }
        }
    }

    fn take(&self) -> (Vec<Post<M>>, Vec<End<M::Context>>) {
        // Taken before the closures: one that comes in between has this set again.
        if !self.any.swap(false, SeqCst) {
            return (Vec::new(), Vec::new());
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut waiting.posts), std::mem::take(&mut waiting.ends))
    }

    /// Does for owners that have ended what is to be done, after the last turn: what that drops may
    /// own such a value itself.
    pub(super) fn run_ends(&self, context: &mut M::Context) {
        loop {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let ends = std::mem::take(&mut waiting.ends);
            drop(waiting);
            if ends.is_empty() {
                return;
            }
            ends.into_iter().for_each(|end| run_end(end, context));
        }
    }

    /// Notes that the context is gone as well: from now on a value is dropped with its owner.
    pub(super) fn close_ends(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).ends_closed = true;
    }

    /// Notes that the loop is gone; what was posted is dropped.
    pub(super) fn close(&self) {
        let dropped = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.closed = true;
            std::mem::take(&mut waiting.posts)
        };
        // Without the lock: what a closure owns may post as it is dropped.
        dropped.into_iter().for_each(|post| drop_guarded(post, "a posted closure"));
    }
}

impl<M: Machine> EndQueue<M::Context> for Posts<M> {
    fn push_end(&self, end: End<M::Context>) -> Result<(), End<M::Context>> {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.ends_closed {
                return Err(end);
            }
            waiting.ends.push(end);
        }
        self.note();
        Ok(())
    }
}

fn run_end<C>(end: End<C>, context: &mut C) {
    if let Err(panicked) = guard(|| end(context)) {
        log_guarded!(error, "the function of an `AtEnd` {panicked}");
    }
}
