//! `StackConfig`: addresses, routes, buffers and limits of a stack.

use std::net::IpAddr;
use std::time::Duration;

use rotor_core::OffloadPool;

/// How many addresses a stack may have.
pub(crate) const ADDRESSES_MAX: usize = 8;

/// How many routes a stack may have.
pub(crate) const ROUTES_MAX: usize = 16;

/// The congestion control of a stack's connections.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Congestion {
    /// CUBIC (RFC 9438), which most systems use.
    #[default]
    Cubic,
    /// None: only the peer's window limits what is sent. For networks without losses, such as a
    /// device in memory.
    Off,
}

/// Addresses, routes, buffers and limits of a stack.
///
/// Addresses and routes are checked by [`Smoltcp::open`](crate::Smoltcp::open).
#[derive(Clone, Debug)]
#[must_use]
pub struct StackConfig {
    pub(crate) addresses: Vec<(IpAddr, u8)>,
    pub(crate) routes: Vec<(IpAddr, u8, IpAddr)>,
    pub(crate) hardware_address: [u8; 6],
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) send_buffer_bytes: usize,
    pub(crate) datagrams_max: usize,
    pub(crate) congestion: Congestion,
    pub(crate) backlog_max: usize,
    pub(crate) half_open_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) user_timeout: Duration,
    pub(crate) linger: Duration,
    pub(crate) lingering_max: usize,
    pub(crate) time_wait_max: usize,
    pub(crate) connections_max: usize,
    pub(crate) packets_max: usize,
    pub(crate) rejections_per_second: u32,
    pub(crate) verify_checksums: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) pool: Option<OffloadPool>,
}

impl StackConfig {
    /// Returns the defaults, which have no address.
    pub fn new() -> StackConfig {
        StackConfig {
            addresses: Vec::new(),
            routes: Vec::new(),
            hardware_address: [0x02, 0, 0, 0, 0, 0x01],
            receive_buffer_bytes: 64 * 1024,
            send_buffer_bytes: 72 * 1024,
            datagrams_max: 64,
            congestion: Congestion::Cubic,
            backlog_max: 1_024,
            half_open_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(60),
            user_timeout: Duration::from_secs(5 * 60),
            linger: Duration::from_secs(30),
            lingering_max: 16_384,
            time_wait_max: 16_384,
            connections_max: 65_536,
            packets_max: 256,
            rejections_per_second: 1_000,
            verify_checksums: true,
            seed: None,
            pool: None,
        }
    }

    /// Adds an address of the stack, with the length of its network prefix in bits. At most 8. They
    /// must not be addresses that the kernel has on the same device.
    pub fn address(mut self, address: IpAddr, prefix: u8) -> StackConfig {
        self.addresses.push((address, prefix));
        self
    }

    /// Adds a route: packets to that network go to that router. At most 16. Routes matter on
    /// Ethernet only, since a device of IP packets has only one other end. `0.0.0.0` or `::` with a
    /// prefix of 0 bits is the default route. On Ethernet, what is neither in the network of an
    /// [`address`](StackConfig::address) nor in one of a route cannot be reached: connecting and
    /// sending fail with [`NetworkUnreachable`](std::io::ErrorKind::NetworkUnreachable).
    #[doc(alias = "gateway")]
    pub fn route(mut self, network: IpAddr, prefix: u8, router: IpAddr) -> StackConfig {
        self.routes.push((network, prefix, router));
        self
    }

    /// Sets the hardware address, for devices of Ethernet frames. Default `02:00:00:00:00:01`, a
    /// locally administered address. Two stacks on one network need different addresses.
    #[doc(alias = "MAC")]
    pub fn hardware_address(mut self, address: [u8; 6]) -> StackConfig {
        self.hardware_address = address;
        self
    }

    /// Sets how many received bytes a connection may hold that were not read yet: the largest
    /// window that it offers to its peer. Default 64 KiB; 2 KiB to 16 MiB.
    ///
    /// Each connection has its buffers from its first packet to its last, even after [it was
    /// dropped](StackConfig::lingering_max). Memory that was never written to is not resident. The
    /// crate's first page says how much memory an idle connection takes.
    #[doc(alias = "SO_RCVBUF")]
    pub fn receive_buffer_bytes(mut self, bytes: usize) -> StackConfig {
        self.receive_buffer_bytes = bytes.clamp(BUFFER_MIN, BUFFER_MAX);
        self
    }

    /// Sets how many bytes a connection may hold that its peer has not acknowledged. Default 72
    /// KiB, so that a body of 64 KiB and its head leave together, without a rest that waits for the
    /// peer. 2 KiB to 16 MiB.
    #[doc(alias = "SO_SNDBUF")]
    pub fn send_buffer_bytes(mut self, bytes: usize) -> StackConfig {
        self.send_buffer_bytes = bytes.clamp(BUFFER_MIN, BUFFER_MAX);
        self
    }

    /// Sets how many datagrams a socket keeps in each direction, of 2 KiB each on average. Default
    /// 64; 1 to 65,536. A datagram that arrives at a full socket is lost.
    ///
    /// On Ethernet a datagram waits up to 3 s for the hardware address of its target. If the socket
    /// is full, a datagram that waits for that is dropped to make room for one to another target:
    /// the oldest one to the target that has not answered for longest.
    pub fn datagrams_max(mut self, datagrams: usize) -> StackConfig {
        self.datagrams_max = datagrams.clamp(1, 65_536);
        self
    }

    /// Sets the congestion control. Default: [`Congestion::Cubic`].
    pub fn congestion(mut self, control: Congestion) -> StackConfig {
        self.congestion = control;
        self
    }

    /// Sets how many connections a listener keeps at most that wait to be accepted or are
    /// half-open, even if its [`ListenOptions`](rotor_core::net::ListenOptions) ask for more.
    /// Default 1,024; at least 1. Each has its buffers, so this limits the memory that a flood of
    /// attempts takes.
    ///
    /// If the backlog is full, the oldest half-open connection is dropped to make room for the next
    /// (RFC 4987 §3.4), and [counted](crate::StackStats::half_open_overflowed). So in a SYN flood a
    /// peer is accepted if it completes its handshake before the flood has filled the backlog:
    /// within 10 ms at 100,000 attempts per second. If no connection is half-open because all wait
    /// to be accepted, the attempt is dropped and [counted](crate::StackStats::backlog_overflowed),
    /// and its peer tries again.
    #[doc(alias = "SYN flood")]
    #[doc(alias = "somaxconn")]
    pub fn backlog_max(mut self, connections: usize) -> StackConfig {
        self.backlog_max = connections.max(1);
        self
    }

    /// Sets how long a peer may take to complete a handshake that it has begun. Default 10 s.
    pub fn half_open_timeout(mut self, time: Duration) -> StackConfig {
        self.half_open_timeout = time;
        self
    }

    /// Sets how long an attempt to connect waits for a response. Default 60 s. If a router or the
    /// host says that its first packet cannot be delivered (ICMP), the attempt fails at once, as on
    /// Linux.
    pub fn connect_timeout(mut self, time: Duration) -> StackConfig {
        self.connect_timeout = time;
        self
    }

    /// Sets how long a peer may leave data or a probe unacknowledged before the connection is given
    /// up. Default 5 minutes (RFC 9293 §3.8.3). `Duration::MAX`: forever.
    #[doc(alias = "TCP_USER_TIMEOUT")]
    pub fn user_timeout(mut self, time: Duration) -> StackConfig {
        self.user_timeout = time;
        self
    }

    /// Sets how long a dropped connection goes on sending what it has buffered, and waits for the
    /// peer's end. Default 30 s. Then it is reset and counted.
    #[doc(alias = "SO_LINGER")]
    pub fn linger(mut self, time: Duration) -> StackConfig {
        self.linger = time;
        self
    }

    /// Sets how many dropped connections may go on like this at a time. They keep their buffers,
    /// and no limit of a server counts them. Default 16,384, a quarter of [all
    /// connections](StackConfig::connections_max); at least 1. If there are more, the one that was
    /// dropped first is reset and counted.
    #[doc(alias = "tcp_max_orphans")]
    pub fn lingering_max(mut self, connections: usize) -> StackConfig {
        self.lingering_max = connections.max(1);
        self
    }

    /// Sets how many connections that both sides have ended are remembered, to answer late
    /// segments. Each is remembered for 10 s, in some 300 bytes, without its buffers. Default
    /// 16,384; 0: none. If there are more, the oldest is forgotten and counted. The oldest one to a
    /// target is also forgotten, and counted, if a new connection to that target finds 64 random
    /// ports in use, of 16,384. These connections do not count as
    /// [connections](StackConfig::connections_max).
    #[doc(alias = "TIME-WAIT")]
    pub fn time_wait_max(mut self, connections: usize) -> StackConfig {
        self.time_wait_max = connections;
        self
    }

    /// Sets how many connections there are at most, of all listeners and machines together. Default
    /// 65,536; at least 1. Further attempts of peers are dropped, as by a full backlog; connecting
    /// fails with `OutOfMemory`.
    pub fn connections_max(mut self, connections: usize) -> StackConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// Sets how many packets a turn takes from the device. Default 256; at least 1. The others wait
    /// in the device.
    pub fn packets_max(mut self, packets: usize) -> StackConfig {
        self.packets_max = packets.max(1);
        self
    }

    /// Sets how many packets per second are rejected with a response: a TCP reset, or an ICMP error
    /// for an unknown port, protocol or IPv6 option (RFC 1812 §4.3.2.8 and RFC 4443 §2.4 (f) demand
    /// a limit). As many may be rejected at once. Default 1,000, which is Linux's default for ICMP;
    /// 0: none. Further packets get no response and are
    /// [counted](crate::StackStats::rejections_withheld): a peer that connects to a closed port
    /// then waits until its attempt times out.
    ///
    /// The limit holds on average, so that nobody can learn from the number of their own rejections
    /// how many others got. Resets of established connections, ping replies, ARP and neighbour
    /// discovery are not limited.
    #[doc(alias = "icmp_ratelimit")]
    #[doc(alias = "icmplim")]
    pub fn rejections_per_second(mut self, rejections: u32) -> StackConfig {
        self.rejections_per_second = rejections;
        self
    }

    /// Sets whether received packets with a wrong checksum are dropped. Default: yes. Use no for
    /// packet sockets that receive frames of the same machine, which have no checksums yet, or frames
    /// that the interface has merged.
    pub fn verify_checksums(mut self, yes: bool) -> StackConfig {
        self.verify_checksums = yes;
        self
    }

    /// Sets the seed of random numbers: sequence numbers, ports, and the loop's entropy. By default
    /// they come from the system. With a seed anybody can guess them, so use it for tests only.
    pub fn seed(mut self, seed: u64) -> StackConfig {
        self.seed = Some(seed);
        self
    }

    /// Sets the pool for work that machines offload. Default: none, and offloading is refused.
    pub fn offload_pool(mut self, pool: OffloadPool) -> StackConfig {
        self.pool = Some(pool);
        self
    }
}

/// The smallest buffer of a connection, in bytes. It holds a segment of the usual size.
const BUFFER_MIN: usize = 2 * 1024;

/// The largest buffer, in bytes. TCP allows windows of up to 1 GiB.
const BUFFER_MAX: usize = 16 * 1024 * 1024;

impl Default for StackConfig {
    fn default() -> StackConfig {
        StackConfig::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_sizes_are_clamped_to_supported_values() {
        for (asked, got) in [
            (0, 2_048),
            (2_047, 2_048),
            (2_048, 2_048),
            (16 << 20, 16 << 20),
            ((16 << 20) + 1, 16 << 20),
        ] {
            let config = StackConfig::new().receive_buffer_bytes(asked).send_buffer_bytes(asked);
            assert_eq!((config.receive_buffer_bytes, config.send_buffer_bytes), (got, got));
        }
        assert_eq!(StackConfig::new().backlog_max(0).backlog_max, 1);
        assert_eq!(StackConfig::new().packets_max(0).packets_max, 1);
    }
}
