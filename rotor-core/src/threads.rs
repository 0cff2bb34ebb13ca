//! Several loops on several threads: started together, stopped together.
//!
//! Each loop is made by its own thread, so neither machines nor contexts need be `Send`. They share nothing but what
//! their maker gives them; a connection lives and ends on one of them.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::{Backend, BoxError, Exit, LoopHandle, LoopInstance, Machine};

/// Loops that run, each on a thread of its own.
///
/// Dropping the group stops the loops and does not wait for them.
#[must_use = "dropping the group stops its loops"]
pub struct LoopGroup {
    handles: Vec<LoopHandle>,
    threads: Vec<JoinHandle<io::Result<Exit>>>,
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
    /// Runs one loop for each of `parts`, on a thread of its own, made there by `make` from the part and its number
    /// (from 0). Returns once all of them are made.
    ///
    /// A part is whatever a loop gets for itself: the listener that
    /// [`TcpListeners`](crate::net::TcpListeners) opened for it, as a rule.
    ///
    /// # Errors
    ///
    /// A loop that was not made, and why: what `make` answered, that it panicked, or that the system has no thread left.
    /// The others were stopped.
    pub fn start<P, M, B, F>(parts: impl IntoIterator<Item = P>, make: F) -> Result<LoopGroup, StartError>
    where
        P: Send + 'static,
        M: Machine,
        B: Backend,
        F: Fn(P, usize) -> Result<LoopInstance<M, B>, BoxError> + Clone + Send + 'static,
    {
        let (sender, made) = mpsc::channel();
        let mut group = LoopGroup { handles: Vec::new(), threads: Vec::new() };
        let mut failed = None;
        for (index, part) in parts.into_iter().enumerate() {
            let (make, sender) = (make.clone(), sender.clone());
            let run = move || {
                let mut instance = match make(part, index) {
                    Ok(instance) => instance,
                    Err(error) => {
                        let _ = sender.send((index, Err(error)));
                        return Ok(Exit::Stopped);
                    }
                };
                let _ = sender.send((index, Ok(instance.handle())));
                drop((make, sender));
                instance.run()
            };
            match Builder::new().name(format!("loop-{index}")).spawn(run) {
                Ok(thread) => group.threads.push(thread),
                Err(error) => {
                    failed = Some(StartError { index, cause: error.into() });
                    break;
                }
            }
        }
        drop(sender);
        // Every thread is heard, so that every loop that was made can be stopped. One that panics is not heard of.
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

    /// How many loops there are.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// A handle that stops or drains all of them.
    pub fn handle(&self) -> GroupHandle {
        GroupHandle { handles: self.handles.clone() }
    }

    /// Waits until all loops have ended, and says how each did, in order.
    ///
    /// A panic that ended a thread (one of `make` or of the loop itself, never one of a handler) goes on here.
    pub fn join(mut self) -> Vec<io::Result<Exit>> {
        let ended = std::mem::take(&mut self.threads).into_iter().map(JoinHandle::join);
        ended.map(|ended| ended.unwrap_or_else(|payload| resume_unwind(payload))).collect()
    }
}

impl Drop for LoopGroup {
    fn drop(&mut self) {
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
    pub fn drain(&self, time: Duration) {
        self.handles.iter().for_each(|handle| handle.drain(time));
    }
}

impl From<LoopHandle> for GroupHandle {
    fn from(handle: LoopHandle) -> GroupHandle {
        GroupHandle { handles: vec![handle] }
    }
}
