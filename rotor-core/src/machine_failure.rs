//! `MachineFailure`: which machine ended badly, and by what.

use std::fmt;

use crate::causes::with_causes;
use crate::guard::Panicked;
use crate::response::BoxError;
use crate::token::Token;

/// A machine that ended badly, as the observer sees it.
#[doc(alias = "supervisor")]
#[derive(Debug)]
#[non_exhaustive]
#[doc(alias = "Failure")]
pub struct MachineFailure<'a> {
    /// The machine, which is gone.
    pub token: Token,
    /// What the machine is called; see [`Machine::type_name`](crate::Machine::type_name).
    pub machine: &'static str,
    /// What ended it.
    pub cause: FailureCause<'a>,
}

/// What ended a machine badly.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FailureCause<'a> {
    /// It returned this error.
    Error(&'a BoxError),
    /// A handler of it panicked.
    Panic(&'a Panicked),
}

impl fmt::Display for FailureCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureCause::Error(error) => with_causes(&***error).fmt(f),
            FailureCause::Panic(panicked) => panicked.fmt(f),
        }
    }
}

impl fmt::Display for MachineFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {} ({}) ended: {}", self.token, self.machine, self.cause)
    }
}
