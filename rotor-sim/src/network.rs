//! `Network`: how the simulated network behaves when nothing goes wrong.

use std::ops::Range;
use std::time::Duration;

use crate::random::seeded;

/// The shortest and the longest packet that a network must carry, and that IP can say the length
/// of.
const MTU_MIN: usize = 576;
const MTU_MAX: usize = 65_535;

/// How the simulated network behaves when nothing goes wrong.
#[derive(Clone, Debug)]
#[must_use]
pub struct Network {
    pub(crate) latency: Range<Duration>,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) window: usize,
    pub(crate) draining: f64,
    pub(crate) mtu: usize,
}

impl Network {
    /// The defaults: those of a rack.
    pub fn new() -> Network {
        let latency = Duration::from_micros(100)..Duration::from_micros(300);
        Network { latency, bandwidth: None, window: 64 * 1024, draining: 0.0, mtu: 1_500 }
    }

    /// Another network for each seed: from a rack to the other side of the world, wide and narrow,
    /// with sockets whose short reads drain, without them, and with both kinds, with
    /// short packets and long ones.
    pub fn swarm(seed: u64) -> Network {
        let mut random = seeded(seed, "network");
        let least = Duration::from_micros(10 << random.u32(0..14));
        let network = Network::new().latency(least..least * random.u32(1..5));
        let network = network.window(1 << random.u32(6..17));
        let network = network.draining([0.0, 0.5, 1.0][random.usize(..3)]);
        let network =
            if random.bool() { network.bandwidth(100_000 << random.u32(0..10)) } else { network };
        network.mtu([576, 1_280, 1_500, 1_500, 9_000, 65_535][random.usize(..6)])
    }

    /// How long bytes are under way between two hosts: anything in this range. Default: 100 to 300
    /// µs. Within a host it is a tenth of that.
    pub fn latency(mut self, range: Range<Duration>) -> Network {
        self.latency = range;
        self
    }

    /// How many bytes a second each direction of a connection carries, and how many [a
    /// host](crate::PacketPort) sends in packets. Default: any number.
    pub fn bandwidth(mut self, bytes_per_second: u64) -> Network {
        // None at all would be a partition that nothing heals.
        self.bandwidth = Some(bytes_per_second.max(1));
        self
    }

    /// How many bytes each direction of a connection holds that were written and not read yet,
    /// under way or arrived: at most, at least 1. Default 65,536. A write that finds no room
    /// answers `WouldBlock`.
    pub fn window(mut self, bytes: usize) -> Network {
        // Without room nothing is ever written.
        self.window = bytes.max(1);
        self
    }

    /// The share of TCP sockets whose short reads
    /// [drain](rotor_core::net::StreamSocket::short_read_drains) them, between 0 and 1: each end of
    /// a connection is of one kind or the other. Default 0.
    ///
    /// A socket of that kind is as plain TCP on Linux:
    /// [`Fault::ShortRead`](crate::Fault::ShortRead) leaves it alone, an edge follows what a short
    /// read has left empty, and one that tells of an end or a failure is never left out. One of the
    /// other kind gets no edge but after a `WouldBlock`, if
    /// [`Fault::UnarmedEdgeLost`](crate::Fault::UnarmedEdgeLost) says so.
    pub fn draining(mut self, share: f64) -> Network {
        self.draining = share.clamp(0.0, 1.0);
        self
    }

    /// How long a [packet](crate::PacketPort) may be, in bytes; what is longer is lost. Default
    /// 1,500; 576 (RFC 791) to 65,535. Asked by a stack when its host starts.
    #[doc(alias = "MTU")]
    pub fn mtu(mut self, bytes: usize) -> Network {
        self.mtu = bytes.clamp(MTU_MIN, MTU_MAX);
        self
    }

    /// How long `bytes` keep the wire busy.
    pub(crate) fn transmission(&self, bytes: usize) -> Duration {
        match self.bandwidth {
            None => Duration::ZERO,
            Some(bandwidth) => {
                Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / bandwidth)
            }
        }
    }
}

impl Default for Network {
    fn default() -> Network {
        Network::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time_on_a_narrow_wire() {
        let network = Network::new().bandwidth(1_000);
        assert_eq!(network.transmission(500), Duration::from_millis(500));
        assert_eq!(Network::new().transmission(500), Duration::ZERO);
    }

    #[test]
    fn packets_are_as_long_as_ip_has_them() {
        for (asked, got) in [(0, 576), (575, 576), (576, 576), (65_535, 65_535), (65_536, 65_535)] {
            assert_eq!(Network::new().mtu(asked).mtu, got);
        }
    }
}
