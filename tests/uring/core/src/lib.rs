//! The core as the suites see it that run on io_uring: the default loop has that backend, and the
//! kernel's sockets are those of it. All other names are the core's own.
#![forbid(unsafe_code)]

use std::marker::PhantomData;

pub use rotor_core::*;
use rotor_uring::{Uring, UringConfig};

/// The core's `net`, with the sockets of io_uring.
pub mod net {
    pub use rotor_core::net::*;
    pub use rotor_uring::{
        UringInet as Inet, UringTcpListener as TcpListener, UringTcpStream as TcpStream,
        UringUdpSocket as UdpSocket, UringUnix as Unix, UringUnixDatagram as UnixDatagram,
        UringUnixListener as UnixListener, UringUnixStream as UnixStream,
    };
}

/// A running loop, on io_uring where nothing else is said.
pub type LoopInstance<M, B = Uring> = rotor_core::LoopInstance<M, B>;

/// What makes a loop on io_uring.
#[derive(Debug)]
pub struct Loop<M, B = Uring>(PhantomData<(M, B)>);

impl<M: Machine> Loop<M> {
    /// Makes a loop with a ring of the default size, and the pool of the configuration.
    ///
    /// Where the system refuses, the test ends well: it says so, and shows nothing.
    #[expect(
        clippy::new_ret_no_self,
        reason = "the suites call the core's `Loop::new` by this name"
    )]
    pub fn new(config: &Config) -> std::io::Result<rotor_core::Loop<M, Uring>> {
        match Uring::open(&UringConfig::new().offload_pool(OffloadPool::default())) {
            Ok(uring) => Ok(rotor_core::Loop::with_backend(uring, config)?),
            Err(refused) => {
                eprintln!("skipped: {refused}");
                std::process::exit(0);
            }
        }
    }
}

impl<M: Machine, B: Backend> Loop<M, B> {
    /// Makes a loop on another backend.
    pub fn with_backend(backend: B, config: &Config) -> std::io::Result<rotor_core::Loop<M, B>> {
        rotor_core::Loop::with_backend(backend, config)
    }
}
