//! `Network`: how the simulated network behaves when nothing goes wrong.

use std::ops::Range;
use std::time::Duration;

use crate::random::seeded;

/// The smallest MTU that a network may have (RFC 791), and the longest packet that IP can describe.
const MTU_MIN: usize = 576;
const MTU_MAX: usize = 65_535;

/// The behaviour of the simulated network when nothing goes wrong.
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
    /// Creates a network with the defaults, which are those of a rack.
    pub fn new() -> Network {
        let latency = Duration::from_micros(100)..Duration::from_micros(300);
        Network { latency, bandwidth: None, window: 64 * 1024, draining: 0.0, mtu: 1_500 }
    }

    /// Returns a network that the seed determines: latencies from those of a rack to those between
    /// continents, high and low bandwidth, short and long packets, and short reads that drain all
    /// sockets, none, or half of them.
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

    /// Sets how long bytes travel between two hosts: anything in this range. Default: 100 to 300
    /// µs. Within a host they take a tenth of that.
    pub fn latency(mut self, range: Range<Duration>) -> Network {
        self.latency = range;
        self
    }

    /// Sets how many bytes per second each direction of a connection carries, and how many [a
    /// host](crate::PacketPort) sends in packets. At least 1. Default: unlimited.
    pub fn bandwidth(mut self, bytes_per_second: u64) -> Network {
        // A bandwidth of 0 would be a partition that never heals.
        self.bandwidth = Some(bytes_per_second.max(1));
        self
    }

    /// Sets how many bytes each direction of a connection holds at most that have been written and
    /// not yet read, whether they are on their way or have arrived. At least 1. Default 65,536. A
    /// write that finds no room fails with `WouldBlock`.
    pub fn window(mut self, bytes: usize) -> Network {
        // Without room nothing could ever be written.
        self.window = bytes.max(1);
        self
    }

    /// Sets the share of TCP sockets whose short reads
    /// [drain](rotor_core::net::StreamSocket::short_read_drains) them, between 0 and 1. It is
    /// decided separately for each end of a connection. Default 0.
    ///
    /// A socket that short reads drain behaves like plain TCP on Linux:
    /// [`Fault::ShortRead`](crate::Fault::ShortRead) does not apply to it, new bytes after a short
    /// read cause an edge, and an edge that reports the end or a failure is never left out. Any
    /// other socket gets an edge only after a `WouldBlock` if
    /// [`Fault::UnarmedEdgeLost`](crate::Fault::UnarmedEdgeLost) strikes.
    pub fn draining(mut self, share: f64) -> Network {
        self.draining = share.clamp(0.0, 1.0);
        self
    }

    /// Sets the length of the longest [packet](crate::PacketPort), in bytes, from 576 (RFC 791) to
    /// 65,535. Default 1,500. Longer packets are lost. A stack reads it when its host starts.
    #[doc(alias = "MTU")]
    pub fn mtu(mut self, bytes: usize) -> Network {
        self.mtu = bytes.clamp(MTU_MIN, MTU_MAX);
        self
    }

    /// How long `bytes` occupy the wire.
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
    fn transmission_time_follows_the_bandwidth() {
        let network = Network::new().bandwidth(1_000);
        assert_eq!(network.transmission(500), Duration::from_millis(500));
        assert_eq!(Network::new().transmission(500), Duration::ZERO);
    }

    #[test]
    fn the_mtu_is_clamped_to_the_limits_of_ip() {
        for (asked, got) in [(0, 576), (575, 576), (576, 576), (65_535, 65_535), (65_536, 65_535)] {
            assert_eq!(Network::new().mtu(asked).mtu, got);
        }
    }
}
