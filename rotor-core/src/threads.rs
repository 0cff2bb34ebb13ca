//! Several loops on several threads: started together, stopped together.
//!
//! Each loop is made by its own thread, so neither machines nor contexts need be `Send`. They share
//! nothing but what their maker gives them; a connection lives and ends on one of them.
//!
//! A loop that fails leaves a process that serves with fewer loops than it was given, and nobody
//! would know. So whoever [joins](LoopGroup::join) the group has the others stopped, to be started
//! again as a whole; whoever knows something better to do hears of each loop as it ends
//! ([`wait_for_one`](LoopGroup::wait_for_one)).

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::backend::Backend;
use crate::drain::Drain;
use crate::event_loop::{Exit, LoopHandle, LoopInstance};
use crate::guard::Panicked;
use crate::machine::Machine;
use crate::response::BoxError;

/// Loops that run, each on a thread of its own.
///
/// Dropping the group stops the loops and does not wait for them.
#[doc(alias = "thread-per-core")]
#[doc(alias = "shared-nothing")]
#[doc(alias = "worker")]
#[must_use = "dropping the group stops its loops"]
pub struct LoopGroup {
    handles: Vec<LoopHandle>,
    /// None for those whose end was told.
    threads: Vec<Option<JoinHandle<io::Result<Exit>>>>,
    /// The numbers of those that are ending.
    ended: mpsc::Receiver<usize>,
}

/// How a loop of a group has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// Which one, counted from 0.
    pub index: usize,
    /// What [`run`](LoopInstance::run) returned; an error with a [`Panicked`] inside when the
    /// thread panicked (in the loop itself or in what belongs to it, never in a handler).
    pub exit: io::Result<Exit>,
}

impl Ended {
    /// Returns whether it failed: by an error, by a panic of its thread, or by one of a machine
    /// under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop).
    pub fn is_failure(&self) -> bool {
        is_failure(&self.exit)
    }
}

fn is_failure(exit: &io::Result<Exit>) -> bool {
    matches!(exit, Err(_) | Ok(Exit::Panicked { .. }))
}

/// Says that a thread is ending, however it ends.
struct Ending {
    index: usize,
    ended: mpsc::Sender<usize>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // Nobody listens any more when the group was dropped.
        let _ = self.ended.send(self.index);
    }
}

/// Stops or drains all loops of a group, from any thread.
#[derive(Clone, Debug)]
pub struct GroupHandle {
    handles: Vec<LoopHandle>,
}

/// A loop of a group was not made; the others were stopped.
#[derive(Debug)]
pub struct StartError {
    /// Which one, counted from 0.
    pub index: usize,
    cause: BoxError,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loop {} was not made", self.index)
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl LoopGroup {
    /// Runs one loop for each of `parts`, on a thread of its own, made there by `make` from the
    /// part and its number (from 0). Returns once all of them are made.
    ///
    /// A part is whatever a loop gets for itself: the listener that
    /// [`TcpListeners`](crate::net::TcpListeners) opened for it, as a rule.
    ///
    /// # Errors
    ///
    /// A loop that was not made, and why: what `make` returned, that it panicked, or that the
    /// system has no thread left. The others were stopped.
    pub fn start<P, M, B, F>(
        parts: impl IntoIterator<Item = P>,
        make: F,
    ) -> Result<LoopGroup, StartError>
    where
        P: Send + 'static,
        M: Machine,
        B: Backend,
        F: Fn(P, usize) -> Result<LoopInstance<M, B>, BoxError> + Clone + Send + 'static,
    {
        // Before any runs: if the iterator panics, nobody has a handle yet by which the loops that
        // were begun could be stopped.
        let parts: Vec<P> = parts.into_iter().collect();
        let (sender, made) = mpsc::channel();
        let (ending, ended) = mpsc::channel();
        let mut group = LoopGroup { handles: Vec::new(), threads: Vec::new(), ended };
        let mut failed = None;
        for (index, part) in parts.into_iter().enumerate() {
            let (make, sender) = (make.clone(), sender.clone());
            let ending = Ending { index, ended: ending.clone() };
            let run = move || {
                // Dropped last: the loop and all that it has are gone by then.
                let _ending = ending;
                let mut instance = match make(part, index) {
                    Ok(instance) => instance,
                    Err(error) => {
                        let _ = sender.send((index, Err(error)));
                        return Ok(Exit::Stopped);
                    }
                };
                let _ = sender.send((index, Ok(instance.handle())));
                // Whoever starts the group waits until all senders are gone.
                drop((make, sender));
                instance.run()
            };
            match Builder::new().name(format!("loop-{index}")).spawn(run) {
                Ok(thread) => group.threads.push(Some(thread)),
                Err(error) => {
                    // The others are not begun: they would be stopped at once.
                    failed = Some(StartError { index, cause: error.into() });
                    break;
                }
            }
        }
        // Or the loop below would wait for this one.
        drop(sender);
        // Every thread is heard, so that every loop that was made can be stopped. One that panics
        // is not heard of.
        let mut unheard: BTreeSet<usize> = (0..group.threads.len()).collect();
        for (index, made) in made {
            unheard.remove(&index);
            match made {
                Ok(handle) => group.handles.push(handle),
                Err(cause) if failed.is_none() => failed = Some(StartError { index, cause }),
                Err(error) => log::error!("loop {index} was not made either: {error}"),
            }
        }
        if let (None, Some(&index)) = (&failed, unheard.first()) {
            failed = Some(StartError { index, cause: "the thread that makes it panicked".into() });
        }
        match failed {
            None => Ok(group),
            Some(error) => Err(error), // dropping the group stops the loops that were made
        }
    }

    /// Returns how many loops there are.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Returns a handle that stops or drains all of them.
    pub fn handle(&self) -> GroupHandle {
        GroupHandle { handles: self.handles.clone() }
    }

    /// Waits until all loops have ended, and says how each did, in order; those of which
    /// [`wait_for_one`](LoopGroup::wait_for_one) has told are left out.
    ///
    /// When one of them fails ([`Ended::is_failure`]), that is logged and the others are stopped at
    /// once, their machines dropped: a process that ends can be started again whole, and one that
    /// goes on with the other loops would only be slower, for no reason that anybody sees.
    ///
    /// A panic that ended a thread (one of `make` or of the loop itself, never one of a handler)
    /// goes on here, when the others have ended.
    pub fn join(mut self) -> Vec<io::Result<Exit>> {
        let mut exits = BTreeMap::new();
        let mut panic = None;
        while let Some((index, ended)) = self.next_ended() {
            match &ended {
                Ok(exit) if !is_failure(exit) => {}
                Ok(Err(error)) => {
                    log::error!("loop {index} failed, and the others are stopped: {error}")
                }
                _ => log::error!("loop {index} panicked, and the others are stopped"),
            }
            if ended.as_ref().map_or(true, is_failure) {
                self.handle().stop();
            }
            match ended {
                Ok(exit) => {
                    exits.insert(index, exit);
                }
                Err(payload) => panic = panic.or(Some(payload)),
            }
        }
        if let Some(payload) = panic {
            // Only now: until all have ended, some still serve or drain.
            resume_unwind(payload);
        }
        exits.into_values().collect()
    }

    /// Waits until one more loop has ended, and says which and how; `None` when all have been told
    /// of.
    ///
    /// The others run on, whatever it was: for a program that knows what to do. It may drain them,
    /// or note that there are fewer and go on.
    ///
    /// ```
    /// # use rotor_core::threads::LoopGroup;
    /// # use std::time::Duration;
    /// fn supervise(mut group: LoopGroup) {
    ///     while let Some(ended) = group.wait_for_one() {
    ///         if ended.is_failure() {
    ///             eprintln!("loop {} failed: {:?}", ended.index, ended.exit);
    ///             // Those who are served by the others may finish.
    ///             group.handle().drain(Duration::from_secs(30));
    ///         }
    ///     }
    /// }
    /// ```
    #[doc(alias = "supervisor")]
    pub fn wait_for_one(&mut self) -> Option<Ended> {
        let (index, ended) = self.next_ended()?;
        // An error and no panic: who waits for one at a time has the others to look after.
        let exit =
            ended.unwrap_or_else(|payload| Err(io::Error::other(Panicked::from_payload(payload))));
        Some(Ended { index, exit })
    }

    fn next_ended(&mut self) -> Option<(usize, std::thread::Result<io::Result<Exit>>)> {
        while self.threads.iter().any(Option::is_some) {
            // Comes of each thread, also of one that panics: its `Ending` is dropped.
            let index = self.ended.recv().ok()?;
            if let Some(thread) = self.threads.get_mut(index).and_then(Option::take) {
                return Some((index, thread.join()));
            }
        }
        None
    }
}

impl Drop for LoopGroup {
    fn drop(&mut self) {
        // Not joined: a drop that waits for handlers would block whoever drops.
        self.handle().stop();
    }
}

impl fmt::Debug for LoopGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopGroup({} loops)", self.threads.len())
    }
}

impl GroupHandle {
    /// Stops all loops; see [`LoopHandle::stop`].
    pub fn stop(&self) {
        self.handles.iter().for_each(LoopHandle::stop);
    }

    /// Drains all loops; see [`LoopHandle::drain`].
    #[doc(alias = "graceful shutdown")]
    pub fn drain(&self, time: Duration) {
        self.drain_with(Drain::new(time));
    }

    /// Drains all loops, in phases; see [`LoopHandle::drain_with`].
    #[doc(alias = "graceful shutdown")]
    pub fn drain_with(&self, drain: Drain) {
        self.handles.iter().for_each(|handle| handle.drain_with(drain));
    }
}

impl GroupHandle {
    /// Returns whether one of the loops was asked to end; see [`LoopHandle::is_ending`].
    #[doc(alias = "readiness")]
    pub fn is_ending(&self) -> bool {
        self.handles.iter().any(LoopHandle::is_ending)
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.handles.iter().any(LoopHandle::is_followed)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl GroupHandle {
    pub(crate) fn set_followed(&self) {
        self.handles.iter().for_each(LoopHandle::set_followed);
    }

    /// Makes one thing for each loop.
    pub(crate) fn for_each_loop<T>(&self, make: impl Fn() -> io::Result<T>) -> io::Result<Vec<T>> {
        self.handles.iter().map(|_| make()).collect()
    }

    /// Keeps one of the things by each loop, until that drains or is gone.
    pub(crate) fn keep_until_draining<T: Send + 'static>(&self, things: Vec<T>) {
        for (handle, thing) in self.handles.iter().zip(things) {
            handle.keep_until_draining(thing);
        }
    }
}

impl From<LoopHandle> for GroupHandle {
    fn from(handle: LoopHandle) -> GroupHandle {
        GroupHandle { handles: vec![handle] }
    }
}
