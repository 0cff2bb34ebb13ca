//! Running a closure between the handlers of a loop, from any thread.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::dispatch::{Dispatch, Refs};
use super::machines::{Machines, Verdicts};
use crate::backend::Backend;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::scope::GlobalScope;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::SeqCst;
use crate::wake_queue::WakeQueue;

/// What is posted.
type Post<M> =
    Box<dyn FnOnce(Machines<'_, M>, &mut GlobalScope<'_, <M as Machine>::Context>) + Send>;

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
        self.posts.push(f)
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
}

impl<M: Machine> Posts<M> {
    pub(super) fn new(bound: usize, wakes: Arc<WakeQueue>) -> Posts<M> {
        let waiting = Mutex::new(Waiting { posts: Vec::new(), closed: false });
        Posts { waiting, any: AtomicBool::new(false), bound, wakes }
    }

    fn push<F>(&self, f: F) -> Result<(), PostError<F>>
    where
        F: FnOnce(Machines<'_, M>, &mut GlobalScope<'_, M::Context>) + Send + 'static,
    {
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.closed {
                return Err(PostError::Closed(f));
            }
            if waiting.posts.len() >= self.bound {
                return Err(PostError::Full(f));
            }
            waiting.posts.push(Box::new(f));
        }
        // Behind the closure, and before the wake-up: a loop that is about to sleep finds it or is
        // woken.
        self.any.store(true, SeqCst);
        self.wakes.wake_loop();
        Ok(())
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
        // The one work of a turn that is held in a variable: each has a guard of its own, so that
        // none is lost with another's panic.
        for post in self.take() {
            dispatch.clock().before_call(refs.backend, refs.environment);
            if let Some(pulse) = dispatch.pulse() {
                pulse.runs("a posted closure");
            }
            let mut scope = GlobalScope::new(refs.context, refs.environment);
            let machines = verdicts.machines(dispatch.slots());
            if let Err(panicked) = guard(|| post(machines, &mut scope)) {
                log_guarded!(error, "a posted closure {panicked}");
            }
        }
    }

    fn take(&self) -> Vec<Post<M>> {
        // Taken before the closures: one that comes in between has this set again.
        if !self.any.swap(false, SeqCst) {
            return Vec::new();
        }
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner).posts)
    }

    /// Notes that the loop is gone; what waits is dropped.
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
