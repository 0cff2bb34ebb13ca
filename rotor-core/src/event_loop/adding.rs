//! Machines that other threads add to a loop while it runs.

use std::convert::Infallible;
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use super::dispatch::Dispatch;
use crate::config::Config;
use crate::machine::Machine;
use crate::response::Response;
use crate::scope::{AnyEnvironment, Scope, Woken};
use crate::spawn_error::{SpawnCause, SpawnError};
use crate::token::Token;

/// A machine that a loop was asked to make: what comes of it. Dropping it changes nothing.
#[must_use = "it says whether the machine was made"]
pub struct Adding<F> {
    told: Receiver<Result<Token, AddError<F>>>,
}

/// Why a machine was not made. What was to make it comes back where it was not called.
#[non_exhaustive]
pub enum AddError<F> {
    /// The loop is gone.
    Closed(F),
    /// The loop drains: what began now would be told to end at once. Another one may take it.
    Draining(F),
    /// No slot is free, or those that are free are promised to others.
    NoSlot(F),
    /// It was called, and gave no machine: it answered `done` or an error, or panicked.
    NotMade(SpawnError<Infallible>),
}

impl<F> Adding<F> {
    /// Waits until the loop has made the machine, or has not.
    ///
    /// It blocks, so it is not for a handler, and least of all for one of the same loop, which
    /// would wait for itself.
    ///
    /// # Errors
    ///
    /// Why there is no machine, with what was to make it where that was not called.
    pub fn wait(self) -> Result<Token, AddError<F>> {
        self.told.recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Says what has come of it, if anything has by now; itself where nothing has.
    ///
    /// # Errors
    ///
    /// The inner one is that of [`wait`](Adding::wait).
    pub fn try_wait(self) -> Result<Result<Token, AddError<F>>, Adding<F>> {
        match self.told.try_recv() {
            Ok(told) => Ok(told),
            Err(TryRecvError::Empty) => Err(self),
            Err(TryRecvError::Disconnected) => Ok(Err(lost())),
        }
    }
}

impl<F> AddError<F> {
    /// What was to make the machine, where it was not called.
    pub fn into_closure(self) -> Option<F> {
        match self {
            AddError::Closed(make) | AddError::Draining(make) | AddError::NoSlot(make) => {
                Some(make)
            }
            AddError::NotMade(_) => None,
        }
    }
}

/// What is said where nobody is left who could: an order always says something before it goes.
fn lost<F>() -> AddError<F> {
    AddError::NotMade(SpawnError { cause: SpawnCause::Ended, seed: None })
}

/// A machine that is to be made, as the loop keeps it.
pub(super) struct Order<F> {
    /// Taken when it is called.
    make: Option<F>,
    tell: Sender<Result<Token, AddError<F>>>,
}

impl<F> Order<F> {
    pub(super) fn new(make: F) -> (Order<F>, Adding<F>) {
        let (tell, told) = channel();
        (Order { make: Some(make), tell }, Adding { told })
    }

    /// What was to make the machine, of an order that the loop did not take.
    pub(super) fn into_closure(mut self) -> F {
        self.make.take().expect("it was not called")
    }

    /// Makes the machine, between the handlers of a turn.
    pub(super) fn fill<M: Machine>(
        mut self,
        context: &mut M::Context,
        environment: &AnyEnvironment,
        config: &Config,
        dispatch: &mut Dispatch<M>,
    ) where
        F: FnOnce(&mut Scope<'_, M::Context>) -> Response<M>,
    {
        if environment.draining().is_some() {
            if let Some(make) = self.make.take() {
                self.tell(Err(AddError::Draining(make)));
            }
            return;
        }
        let make = &mut self.make;
        let made = dispatch.make(environment, config, |token| {
            let mut scope = Scope::new(context, environment, token, Woken::default());
            match make.take() {
                Some(make) => make(&mut scope),
                // Never: this is called once.
                None => Response::done(),
            }
        });
        let told = match (made, self.make.take()) {
            (Ok(token), _) => Ok(token),
            // It was not called, for which there is this reason alone.
            (Err(_), Some(make)) => Err(AddError::NoSlot(make)),
            (Err(error), None) => Err(AddError::NotMade(error)),
        };
        self.tell(told);
    }

    fn tell(&self, told: Result<Token, AddError<F>>) {
        // Nobody need wait for it.
        let _is_awaited = self.tell.send(told);
    }
}

/// The loop is gone, or never came to it.
impl<F> Drop for Order<F> {
    fn drop(&mut self) {
        if let Some(make) = self.make.take() {
            self.tell(Err(AddError::Closed(make)));
        }
    }
}

impl<F> fmt::Debug for Adding<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adding")
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
