//! `MachineFailure`: which machine has failed, and why.

use std::fmt;

use crate::causes::with_causes;
use crate::guard::Panicked;
use crate::response::BoxError;
use crate::token::Token;

/// The failure of a machine, as the observer of a loop gets it
/// ([`Config::observer`](crate::Config::observer)).
#[doc(alias = "supervisor")]
#[derive(Debug)]
#[non_exhaustive]
#[doc(alias = "Failure")]
pub struct MachineFailure<'a> {
    /// The machine, which is gone.
    pub token: Token,
    /// The name of the machine; see [`Machine::type_name`](crate::Machine::type_name).
    pub machine: &'static str,
    /// Why the machine ended.
    pub cause: FailureCause<'a>,
}

/// Why a machine failed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FailureCause<'a> {
    /// The machine returned this error.
    Error(&'a BoxError),
    /// A handler of the machine panicked.
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
