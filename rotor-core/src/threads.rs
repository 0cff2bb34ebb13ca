//! Several loops on several threads: started together, stopped together.
//!
//! Each loop is made by its own thread, so neither machines nor contexts need be `Send`. The loops
//! share only what the `make` closure gives them; a connection lives and ends on one of them.
//!
//! If one loop failed and the others ran on, the process would serve with fewer loops than
//! intended, and nobody would notice. Therefore [`join`](LoopGroup::join) stops the other loops
//! when one fails, so that the process can be restarted as a whole. A program that has a better
//! reaction calls [`wait_for_one`](LoopGroup::wait_for_one), which returns each loop as it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::backend::Backend;
use crate::causes::with_causes;
use crate::drain::Drain;
use crate::event_loop::{Exit, LoopHandle, LoopInstance};
use crate::guard::Panicked;
use crate::machine::Machine;
use crate::response::BoxError;

/// A group of running loops, each on a thread of its own.
///
/// Dropping the group stops the loops and does not wait for them.
#[doc(alias = "thread-per-core")]
#[doc(alias = "shared-nothing")]
#[doc(alias = "worker")]
#[must_use = "dropping the group stops its loops"]
pub struct LoopGroup {
    handles: Vec<LoopHandle>,
    /// `None` for a thread whose end was reported.
    threads: Vec<Option<JoinHandle<io::Result<Exit>>>>,
    /// The numbers of the threads that are ending.
    ended: mpsc::Receiver<usize>,
}

/// How a loop of a group has ended.
#[doc(alias = "Ended")]
#[derive(Debug)]
#[non_exhaustive]
pub struct LoopOutcome {
    /// The number of the loop, counted from 0.
    pub index: usize,
    /// The result of [`run`](LoopInstance::run). If the thread panicked (in the loop itself or in
    /// what belongs to it, never in a handler), this is an error that contains a [`Panicked`].
    pub exit: io::Result<Exit>,
}

impl LoopOutcome {
    /// Returns whether the loop failed: by an error, by a panic of its thread, or by a panic of a
    /// machine under [`OnPanic::StopLoop`](crate::OnPanic::StopLoop).
    pub fn is_failure(&self) -> bool {
        is_failure(&self.exit)
    }
}

fn is_failure(exit: &io::Result<Exit>) -> bool {
    matches!(exit, Err(_) | Ok(Exit::Panicked { .. }))
}

/// Reports that a thread is ending, however it ends.
struct EndGuard {
    index: usize,
    ended: mpsc::Sender<usize>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        // Fails if the group was dropped; then nobody waits for it.
        let _ = self.ended.send(self.index);
    }
}

/// A handle that stops or drains all loops of a group, from any thread.
#[derive(Clone, Debug)]
pub struct GroupHandle {
    handles: Vec<LoopHandle>,
}

/// The error of a loop of a group that could not be made. The other loops are gone.
#[derive(Debug)]
pub struct StartError {
    /// The number of the loop, counted from 0.
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
    /// Starts one loop for each of `parts`, on a thread of its own, where `make` creates it from
    /// the part and its number (from 0). Returns when all loops are made.
    ///
    /// No loop runs before all of them are made. So if one cannot be made, the others have accepted
    /// nothing that would be lost. `make` must not wait for something that another loop of the
    /// group does only when it runs.
    ///
    /// A part is whatever each loop needs for itself: usually the listener that
    /// [`TcpListeners`](crate::net::TcpListeners) opened for it.
    ///
    /// # Errors
    ///
    /// Fails if one of the loops could not be made: `make` returned an error or panicked, or the
    /// system has no thread left. The other loops have been dropped and have not run.
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
        // Before any thread is started: if the iterator panics, no loop is made.
        let parts: Vec<P> = parts.into_iter().collect();
        let (sender, created) = mpsc::channel();
        let (ending, ended) = mpsc::channel();
        let mut group = LoopGroup { handles: Vec::new(), threads: Vec::new(), ended };
        let mut begins = Vec::new();
        let mut failed = None;
        for (index, part) in parts.into_iter().enumerate() {
            let (make, sender) = (make.clone(), sender.clone());
            let ending = EndGuard { index, ended: ending.clone() };
            let (begin, may_begin) = mpsc::channel::<()>();
            begins.push(begin);
            let run = move || {
                // Dropped last: by then, the loop and everything in it are gone.
                let _ending = ending;
                let mut instance = match make(part, index) {
                    Ok(instance) => instance,
                    Err(error) => {
                        let _ = sender.send((index, Err(error)));
                        return Ok(Exit::Stopped);
                    }
                };
                let _ = sender.send((index, Ok(instance.handle())));
                // `start` waits until all senders are dropped.
                drop((make, sender));
                match may_begin.recv() {
                    Ok(()) => instance.run(),
                    // Another loop was not made.
                    Err(_) => Ok(Exit::Stopped),
                }
            };
            match Builder::new().name(format!("loop-{index}")).spawn(run) {
                Ok(thread) => group.threads.push(Some(thread)),
                Err(error) => {
                    // The remaining ones are not started, because they would be dropped at once.
                    failed = Some(StartError { index, cause: error.into() });
                    break;
                }
            }
        }
        // Otherwise the loop below would wait for this sender.
        drop(sender);
        // Waits for all threads, so that no loop runs before all are made. A thread that panics sends
        // nothing.
        let mut pending: BTreeSet<usize> = (0..group.threads.len()).collect();
        for (index, created) in created {
            pending.remove(&index);
            match created {
                Ok(handle) => group.handles.push(handle),
                Err(cause) if failed.is_none() => failed = Some(StartError { index, cause }),
                Err(error) => {
                    log::error!("loop {index} was not made either: {}", with_causes(&*error));
                }
            }
        }
        if let (None, Some(&index)) = (&failed, pending.first()) {
            failed = Some(StartError { index, cause: "the thread that makes it panicked".into() });
        }
        match failed {
            None => {
                // Fails for no thread: each of them waits for this.
                begins.into_iter().for_each(|begin| _ = begin.send(()));
                Ok(group)
            }
            Some(error) => {
                // Dropping the senders drops the loops that were made. Their threads are waited for,
                // so that their sockets are closed when the caller learns of the error: the caller
                // may open the same address again.
                drop(begins);
                for thread in group.threads.drain(..).flatten() {
                    // If it panicked, that was reported then.
                    let _ended = thread.join();
                }
                Err(error)
            }
        }
    }

    /// Returns the number of loops.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Returns whether the group has no loops.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Returns a handle that stops or drains all loops.
    pub fn handle(&self) -> GroupHandle {
        GroupHandle { handles: self.handles.clone() }
    }

    /// Waits until all loops have ended. Returns the result of each, in order; loops that
    /// [`wait_for_one`](LoopGroup::wait_for_one) has returned are left out.
    ///
    /// If a loop fails ([`LoopOutcome::is_failure`]), this is logged, and the others are stopped at
    /// once and their machines dropped: a process that ends can be restarted as a whole, while one
    /// that went on with fewer loops would only be slower, for no visible reason.
    ///
    /// If a thread ended by a panic (of `make` or of the loop itself, never of a handler), this
    /// method panics with the same payload when the other loops have ended.
    ///
    /// A loop that is stuck in a handler is waited for, whatever the time limit of a drain;
    /// [`handing_over`](LoopInstance::handing_over) and [`taking_over`](LoopInstance::taking_over)
    /// prevent that.
    pub fn join(mut self) -> Vec<io::Result<Exit>> {
        let mut exits = BTreeMap::new();
        let mut panic = None;
        while let Some((index, ended)) = self.next_ended() {
            match &ended {
                Ok(exit) if !is_failure(exit) => self.log_early_end(index, exit),
                Ok(Err(error)) => {
                    let error = with_causes(error);
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

    /// Waits until one more loop has ended, and returns which and how. Returns `None` when all
    /// loops have been returned.
    ///
    /// The other loops run on, however this one ended. The program decides what to do: it may drain
    /// them, or go on with fewer loops.
    ///
    /// ```
    /// # use rotor_core::threads::LoopGroup;
    /// # use std::time::Duration;
    /// fn supervise(mut group: LoopGroup) {
    ///     while let Some(ended) = group.wait_for_one() {
    ///         if ended.is_failure() {
    ///             eprintln!("loop {} failed: {:?}", ended.index, ended.exit);
    ///             // Let the machines of the other loops finish.
    ///             group.handle().drain(Duration::from_secs(30));
    ///         }
    ///     }
    /// }
    /// ```
    #[doc(alias = "supervisor")]
    pub fn wait_for_one(&mut self) -> Option<LoopOutcome> {
        let (index, ended) = self.next_ended()?;
        // An error instead of a panic: the caller has the other loops to look after.
        let exit =
            ended.unwrap_or_else(|payload| Err(io::Error::other(Panicked::from_payload(payload))));
        Some(LoopOutcome { index, exit })
    }

    /// Logs that a loop has ended without being told to, while others go on: the process has fewer
    /// loops from now on.
    fn log_early_end(&self, index: usize, exit: &io::Result<Exit>) {
        let others_go_on = self.threads.iter().any(Option::is_some) && !self.handle().is_ending();
        if let (Ok(exit), true) = (exit, others_go_on) {
            log::info!("loop {index} has ended ({exit:?}), and other loops of its group go on");
        }
    }

    fn next_ended(&mut self) -> Option<(usize, std::thread::Result<io::Result<Exit>>)> {
        while self.threads.iter().any(Option::is_some) {
            // Every thread sends this, even if it panics, because its `EndGuard` is dropped.
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
        // Not joined: a drop that waits for handlers would block the thread that drops.
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
    /// Returns whether one of the loops was told to end; see [`LoopHandle::is_ending`].
    #[doc(alias = "readiness")]
    pub fn is_ending(&self) -> bool {
        self.handles.iter().any(LoopHandle::is_ending)
    }

    pub(crate) fn has_successor(&self) -> bool {
        self.handles.iter().any(LoopHandle::has_successor)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl GroupHandle {
    pub(crate) fn set_has_successor(&self) {
        self.handles.iter().for_each(LoopHandle::set_has_successor);
    }

    /// Makes one value for each loop.
    pub(crate) fn for_each_loop<T>(&self, make: impl Fn() -> io::Result<T>) -> io::Result<Vec<T>> {
        self.handles.iter().map(|_| make()).collect()
    }

    /// Keeps one of the values for each loop, until that loop drains or is dropped.
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
