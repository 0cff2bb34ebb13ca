//! What the `main` of every server example does: it says where it listens, serves until it is told
//! to end, and drains.

use std::time::Duration;

use rotor::signals::drain_on_termination;
use rotor::{BoxError, Exit, LoopInstance, Machine};

use crate::program::print;

/// How long the machines may take to finish after SIGINT or SIGTERM.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Prints where the server listens and runs its loop until it is told to end, by SIGINT or SIGTERM.
pub fn serve<M: Machine>(instance: &mut LoopInstance<M>, lines: &[String]) -> Result<(), BoxError> {
    drain_on_termination(instance.handle(), DRAIN_TIME_MAX)?;
    print(lines)?;
    match instance.run()? {
        Exit::Drained { .. } | Exit::Stopped => Ok(()),
        other => Err(format!("the loop ended by itself: {other:?}").into()),
    }
}
