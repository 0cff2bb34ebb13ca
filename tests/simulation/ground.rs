//! The network below the hosts: either the simulation's own sockets, which carry bytes, or a stack
//! per host, on a network that carries packets.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use rotor::net::{IpNet, Net};
use rotor::{Loop, Machine};
use rotor_sim::net::SimNet;
use rotor_sim::{Boot, SimBackend};
use rotor_smoltcp::{Congestion, Smoltcp, SmoltcpInet, StackConfig};

/// The kind of network below the hosts of a scenario.
pub(crate) trait Ground: 'static {
    type Net: IpNet + 'static;

    fn backend(boot: &Boot) -> io::Result<SimBackend>;

    /// The address at which the servers of this seed are reached, on a host with this one.
    fn server_address(own: IpAddr, _seed: u64) -> IpAddr {
        own
    }

    fn new_loop<M: Machine>(boot: &Boot) -> io::Result<Loop<M, SimBackend>> {
        Loop::with_backend(Self::backend(boot)?, &boot.config())
    }
}

pub(crate) type StreamOf<G> = <<G as Ground>::Net as Net>::Stream;
pub(crate) type ListenerOf<G> = <<G as Ground>::Net as Net>::Listener;

/// The simulation's own sockets.
pub(crate) struct Bytes;

impl Ground for Bytes {
    type Net = SimNet;

    fn backend(boot: &Boot) -> io::Result<SimBackend> {
        Ok(boot.backend())
    }
}

/// smoltcp. Windows and limits differ from host to host and from seed to seed.
pub(crate) struct Packets;

impl Packets {
    /// Whether the servers of this seed are reached by IPv6.
    pub(crate) fn uses_ipv6(seed: u64) -> bool {
        seed.is_multiple_of(2)
    }
}

impl Ground for Packets {
    type Net = SmoltcpInet;

    fn backend(boot: &Boot) -> io::Result<SimBackend> {
        let chance = boot.random_u64();
        let any_of = |shift: u32, sizes: [usize; 4]| sizes[(chance >> shift & 3) as usize];
        let control = if chance & 1 == 0 { Congestion::Cubic } else { Congestion::Off };
        let config = StackConfig::new()
            .receive_buffer_bytes(any_of(1, [2_048, 5_000, 16_384, 65_536]))
            .send_buffer_bytes(any_of(3, [2_048, 5_000, 16_384, 65_536]))
            .packets_max(any_of(5, [1, 4, 64, 256]))
            .congestion(control);
        Smoltcp::in_simulation(boot, &config)
    }

    /// The address of [`rotor_sim::PacketPort::addresses`] that has the family of the seed.
    fn server_address(own: IpAddr, seed: u64) -> IpAddr {
        match own {
            IpAddr::V4(own) if Packets::uses_ipv6(seed) => {
                let [a, b, c, d] = own.octets().map(u16::from);
                Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, a << 8 | b, c << 8 | d).into()
            }
            own => own,
        }
    }
}
