//! io_uring. The sockets are the kernel's, as with mio; only the `Net` of the machines differs.

use std::io;

use rotor_core::{Config, Loop, LoopInstance, OffloadPool};
use rotor_uring::{Uring, UringConfig, UringInet, UringUnix};

use super::{OnKernel, TestMachine, adopt};

pub(crate) struct OnUring;

impl OnKernel for OnUring {
    type Backend = Uring;
    type Net = UringInet;
    type Unix = UringUnix;

    fn refusal() -> Option<String> {
        Uring::open(&UringConfig::new()).err().map(|refused| refused.to_string())
    }

    fn new_loop<M: TestMachine>(config: &Config) -> io::Result<Loop<M, Uring>> {
        let config_of_ring =
            UringConfig::new().events_max(config.events_len()).offload_pool(OffloadPool::default());
        let uring = Uring::open(&config_of_ring).map_err(io::Error::other)?;
        Loop::with_backend(uring, config)
    }

    fn instantiate<M: TestMachine>(
        creator: Loop<M, Uring>,
        context: M::Context,
    ) -> LoopInstance<M, Uring> {
        creator.instantiate(context)
    }
}

adopt! {
    rotor_uring::UringTcpStream: std::net::TcpStream,
    rotor_uring::UringTcpListener: std::net::TcpListener,
    rotor_uring::UringUdpSocket: std::net::UdpSocket,
    rotor_uring::UringUnixStream: std::os::unix::net::UnixStream,
    rotor_uring::UringUnixListener: std::os::unix::net::UnixListener,
    rotor_uring::UringUnixDatagram: std::os::unix::net::UnixDatagram,
}
