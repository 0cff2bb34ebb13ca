//! Machines that other threads add to a loop while it runs.

use std::convert::Infallible;
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use super::dispatch::Dispatch;
use crate::config::Config;
use crate::machine::Machine;
use crate::response::Response;
use crate::scope::{AnyEnvironment, Scope, WakeTarget};
use crate::spawn_error::{SpawnCause, SpawnError};
use crate::token::Token;

/// The pending result of adding a machine to a loop from another thread. Dropping it does not
/// cancel the addition.
#[doc(alias = "Adding")]
#[must_use = "it says whether the machine was made"]
pub struct PendingAdd<F> {
    result: Receiver<Result<Token, AddError<F>>>,
}

/// Why a machine was not made. If the closure was not called, the error returns it.
#[non_exhaustive]
pub enum AddError<F> {
    /// The loop is gone.
    Closed(F),
    /// The loop is draining, so a new machine would be told to end at once. Another loop may take
    /// it.
    Draining(F),
    /// No slot is free, or the free slots are promised to other machines.
    NoSlot(F),
    /// The closure was called but gave no machine: it panicked, or returned `done` or an error.
    NotMade(SpawnError<Infallible>),
}

impl<F> PendingAdd<F> {
    /// Blocks until the loop has made the machine, or has failed to. If `run` has returned, this
    /// waits until the loop is run again or dropped.
    ///
    /// Do not call this in a handler, and never in a handler of the same loop, which would wait for
    /// itself forever.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no machine, with the closure if it was not called.
    pub fn wait(self) -> Result<Token, AddError<F>> {
        self.result.recv().unwrap_or_else(|_| Err(lost_request_error()))
    }

    /// Returns the result if there is one by now, and `self` otherwise. It does not block.
    ///
    /// # Errors
    ///
    /// The outer error is `self`. The inner one is that of [`wait`](PendingAdd::wait).
    pub fn try_wait(self) -> Result<Result<Token, AddError<F>>, PendingAdd<F>> {
        match self.result.try_recv() {
            Ok(result) => Ok(result),
            Err(TryRecvError::Empty) => Err(self),
            Err(TryRecvError::Disconnected) => Ok(Err(lost_request_error())),
        }
    }
}

impl<F> AddError<F> {
    /// Returns the closure that was to make the machine, if it was not called.
    pub fn into_closure(self) -> Option<F> {
        match self {
            AddError::Closed(make) | AddError::Draining(make) | AddError::NoSlot(make) => {
                Some(make)
            }
            AddError::NotMade(_) => None,
        }
    }
}

/// Returns the error for an order that is gone without a result, which never happens: an order
/// always reports a result before it is dropped.
fn lost_request_error<F>() -> AddError<F> {
    AddError::NotMade(SpawnError { cause: SpawnCause::Ended, seed: None })
}

/// A request to make a machine, as the loop keeps it.
pub(super) struct AddRequest<F> {
    /// Taken when it is called.
    make: Option<F>,
    result_sender: Sender<Result<Token, AddError<F>>>,
}

impl<F> AddRequest<F> {
    pub(super) fn new(make: F) -> (AddRequest<F>, PendingAdd<F>) {
        let (result_sender, result) = channel();
        (AddRequest { make: Some(make), result_sender }, PendingAdd { result })
    }

    /// Returns the closure of an order that the loop did not accept.
    pub(super) fn into_closure(mut self) -> F {
        self.make.take().expect("it was not called")
    }

    /// Makes the machine, between the handlers of a turn.
    pub(super) fn execute<M: Machine>(
        mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        config: &Config,
        dispatch: &mut Dispatch<M>,
    ) where
        F: FnOnce(&mut Scope<'_, M::Context>) -> Response<M>,
    {
        let Some(make) = self.make.take() else { return };
        if environment.drain_until().is_some() {
            return self.send_result(Err(AddError::Draining(make)));
        }
        let created = dispatch.create_with(environment, config, None, make, |token, make| {
            make(&mut Scope::new(context, environment, token, WakeTarget::default()))
        });
        self.send_result(created.map_err(|SpawnError { cause, seed }| match seed {
            Some(make) => AddError::NoSlot(make),
            None => AddError::NotMade(SpawnError { cause, seed: None }),
        }));
    }

    fn send_result(&self, result: Result<Token, AddError<F>>) {
        // An error means that nobody waits for the result.
        let _is_awaited = self.result_sender.send(result);
    }
}

/// The order was not carried out: the loop is gone, or ended first.
impl<F> Drop for AddRequest<F> {
    fn drop(&mut self) {
        if let Some(make) = self.make.take() {
            self.send_result(Err(AddError::Closed(make)));
        }
    }
}

impl<F> fmt::Debug for PendingAdd<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingAdd")
    }
}

impl<F> fmt::Debug for AddError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddError::Closed(_) => f.write_str("Closed(..)"),
            AddError::Draining(_) => f.write_str("Draining(..)"),
            AddError::NoSlot(_) => f.write_str("NoSlot(..)"),
            AddError::NotMade(error) => f.debug_tuple("NotMade").field(error).finish(),
        }
    }
}

impl<F> fmt::Display for AddError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddError::Closed(_) => "the loop is gone",
            AddError::Draining(_) => "the loop drains",
            AddError::NoSlot(_) => "no slot of the loop is free (Config::machines_max)",
            AddError::NotMade(_) => "the machine was not made",
        })
    }
}

impl<F> std::error::Error for AddError<F> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AddError::NotMade(error) => Some(error),
            _ => None,
        }
    }
}
