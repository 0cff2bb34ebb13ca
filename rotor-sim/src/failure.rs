//! `Failure`: a property that did not hold, with what is needed to see why.

use std::error::Error;
use std::fmt;

use rotor_core::Time;

/// A run ended before its scenario did: a property did not hold, or a bound was reached.
///
/// Printed, it is a page: the property, the seed and the step, what was running, and the end of the
/// trace.
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
    /// The property that did not hold, by its name; see [`property`](crate::property).
    pub fn property(&self) -> &str {
        &self.property
    }

    /// What was seen.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The step in which it was seen: [`Sim::until`](crate::Sim::until) with one less stops before
    /// it.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The end of the trace, one record in a line.
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
