//! What the `main` of every server example does: it says where it listens, serves until it is told to end, and drains.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::signals::drain_on_termination;
use rotor::{BoxError, Exit, LoopInstance, Machine};

use crate::program::print;

/// How long the machines may take to finish after SIGINT or SIGTERM.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Prints where the server listens and runs its loop until it is told to end, by SIGINT or SIGTERM.
pub(crate) fn serve<M: Machine>(instance: &mut LoopInstance<M>, lines: &[String]) -> Result<(), BoxError> {
    drain_on_termination(instance.handle(), DRAIN_TIME_MAX)?;
    print(lines)?;
    match instance.run()? {
        Exit::Drained { .. } | Exit::Stopped => Ok(()),
        other => Err(format!("the loop ended by itself: {other:?}").into()),
    }
}

/// Makes the error of a listener that was not opened one that names the address.
#[allow(dead_code, reason = "`everything` is set up where this module is not")]
pub(crate) fn cannot_listen(address: SocketAddr) -> impl FnOnce(io::Error) -> CannotListen {
    move |cause| CannotListen { address, cause }
}

/// An address was not opened.
#[derive(Debug)]
#[allow(dead_code, reason = "as `cannot_listen`")]
pub(crate) struct CannotListen {
    address: SocketAddr,
    cause: io::Error,
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}", self.address)
    }
}

impl Error for CannotListen {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
