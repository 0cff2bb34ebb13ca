//! `choose`: chooses the loop of a program in one place.

use std::env;
use std::error::Error;
use std::fmt;
use std::io;

use rotor_core::net::{Inet, IpNet};
use rotor_core::{Backend, EVENTS_LIMIT, Mio};

use crate::backend::Uring;
use crate::config::UringConfig;
use crate::family::UringInet;

/// The environment variable that [`Choice::from_env`] reads.
pub const BACKEND_VARIABLE: &str = "ROTOR_BACKEND";

/// The loop that a program should run on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Choice {
    /// mio, which works everywhere.
    #[default]
    Mio,
    /// io_uring if the system allows it, otherwise mio.
    Uring,
}

/// A program that runs on any loop.
pub trait OnAnyLoop {
    /// The result of the program.
    type Output;

    /// Makes a loop with the backend, with sockets of the family `N`, and runs it.
    fn run<N: IpNet, B: Backend>(self, backend: B) -> Self::Output;
}

/// `ROTOR_BACKEND` has an unknown value: a mistake in the environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownBackend(String);

impl Choice {
    /// Reads the variable `ROTOR_BACKEND`: `mio` (also if it is not set), or `uring`.
    ///
    /// # Errors
    ///
    /// [`UnknownBackend`] for anything else.
    pub fn from_env() -> Result<Choice, UnknownBackend> {
        let name = env::var_os(BACKEND_VARIABLE).unwrap_or_default();
        Choice::from_name(&name.to_string_lossy())
    }

    fn from_name(name: &str) -> Result<Choice, UnknownBackend> {
        match name {
            "" | "mio" => Ok(Choice::Mio),
            "uring" | "io_uring" => Ok(Choice::Uring),
            other => Err(UnknownBackend(other.into())),
        }
    }
}

/// Opens the chosen backend on this thread, and runs the program on it.
///
/// If the system refuses io_uring, the program runs on mio, and a warning is logged once. A loop on
/// mio uses [`events_max`](UringConfig::events_max) and [`offload_pool`](UringConfig::offload_pool)
/// of `config`.
///
/// # Errors
///
/// No descriptor is left for mio's queue.
pub fn choose<P: OnAnyLoop>(
    choice: Choice,
    config: &UringConfig,
    program: P,
) -> io::Result<P::Output> {
    if choice == Choice::Uring {
        match Uring::open(config) {
            Ok(uring) => return Ok(program.run::<UringInet, _>(uring)),
            Err(refused) => refused.warn(),
        }
    }
    let mut mio = Mio::new(config.events_max.min(EVENTS_LIMIT))?;
    if let Some(pool) = config.pool.clone() {
        mio = mio.offload_pool(pool);
    }
    Ok(program.run::<Inet, _>(mio))
}

impl fmt::Display for UnknownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BACKEND_VARIABLE} is {:?}; it may be \"mio\" or \"uring\"", self.0)
    }
}

impl Error for UnknownBackend {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_chosen_by_its_name() {
        for (name, choice) in [
            ("", Choice::Mio),
            ("mio", Choice::Mio),
            ("uring", Choice::Uring),
            ("io_uring", Choice::Uring),
        ] {
            assert_eq!(Choice::from_name(name), Ok(choice));
        }
        let error = Choice::from_name("epoll").expect_err("it is none of ours");
        assert!(error.to_string().contains("\"epoll\""), "{error}");
    }
}
