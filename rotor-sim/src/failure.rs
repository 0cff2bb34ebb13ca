//! `Failure`: a property that did not hold, and what helps to find out why.

use std::error::Error;
use std::fmt;

use rotor_core::Time;

/// A run ended before its scenario did: a property did not hold, or a limit was reached.
///
/// Printed, it takes about a page: the property, the seed and the step, what was running, and the
/// end of the trace.
#[derive(Clone, Debug)]
pub struct Failure {
    pub(crate) property: String,
    pub(crate) message: String,
    pub(crate) seed: u64,
    pub(crate) step: u64,
    pub(crate) time: Time,
    pub(crate) running: String,
    pub(crate) trace: String,
}

impl Failure {
    /// Returns the name of the property that did not hold; see [`property`](crate::property).
    pub fn property(&self) -> &str {
        &self.property
    }

    /// Returns what was observed.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the step in which the failure was observed. [`Sim::until`](crate::Sim::until) with
    /// one less stops before it.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the end of the trace, one record per line.
    pub fn trace(&self) -> &str {
        &self.trace
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.property, self.message)?;
        writeln!(f, "seed {}, step {}, at {:?}", self.seed, self.step, self.time)?;
        writeln!(f, "running:\n{}", self.running)?;
        write!(f, "trace, up to here:\n{}", self.trace)
    }
}

impl Error for Failure {}
