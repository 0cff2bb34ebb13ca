//! `StackConfig`: addresses, routes, buffers and limits of a stack.

use std::net::IpAddr;
use std::time::Duration;

use rotor_core::OffloadPool;

/// How many addresses a stack may have.
pub(crate) const ADDRESSES_MAX: usize = 8;

/// How many routes a stack may have.
pub(crate) const ROUTES_MAX: usize = 16;

/// Which congestion control the connections of a stack have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Congestion {
    /// CUBIC (RFC 9438), as most systems have.
    #[default]
    Cubic,
    /// None but the peer's window: for networks that lose nothing, such as a device in memory.
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
    /// Returns the defaults: no address.
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

    /// Adds an address of the stack, and how many bits of it name its network. At most 8; they are
    /// the stack's own, not those that the kernel has on the same device.
    pub fn address(mut self, address: IpAddr, prefix: u8) -> StackConfig {
        self.addresses.push((address, prefix));
        self
    }

    /// Adds a route: what goes to that network goes by that router. At most 16; they matter on
    /// Ethernet only, since a device of IP packets has one other end. `0.0.0.0` or `::` with 0 bits
    /// is the default route.
    #[doc(alias = "gateway")]
    pub fn route(mut self, network: IpAddr, prefix: u8, router: IpAddr) -> StackConfig {
        self.routes.push((network, prefix, router));
        self
    }

    /// Sets the address of the card, for devices of Ethernet frames. Default `02:00:00:00:00:01`,
    /// which is one that nobody has been given; two stacks on one network need two.
    #[doc(alias = "MAC")]
    pub fn hardware_address(mut self, address: [u8; 6]) -> StackConfig {
        self.hardware_address = address;
        self
    }

    /// Sets how many bytes a connection may hold that came and were not read: the largest window
    /// that its peer is offered. Default 64 KiB; 2 KiB to 16 MiB.
    ///
    /// Each connection has its buffers from its first packet to its last, also while
    /// [nobody holds it any more](StackConfig::lingering_max); memory that nobody has written to yet
    /// is not resident. The crate's page says what one takes that waits.
    #[doc(alias = "SO_RCVBUF")]
    pub fn receive_buffer_bytes(mut self, bytes: usize) -> StackConfig {
        self.receive_buffer_bytes = bytes.clamp(BUFFER_MIN, BUFFER_MAX);
        self
    }

    /// Sets how many bytes a connection may hold that its peer has not acknowledged. Default 72
    /// KiB: a body of 64 KiB and its head leave together, and no rest of them waits for the peer. 2
    /// KiB to 16 MiB.
    #[doc(alias = "SO_SNDBUF")]
    pub fn send_buffer_bytes(mut self, bytes: usize) -> StackConfig {
        self.send_buffer_bytes = bytes.clamp(BUFFER_MIN, BUFFER_MAX);
        self
    }

    /// Sets how many datagrams a socket keeps in each direction, of 2 KiB each on average. Default
    /// 64; at least 1. What comes to a full socket is lost. On Ethernet, where one waits for up to 3 s
    /// for a target that does not say where it is, the oldest of these makes room for one to another
    /// target.
    pub fn datagrams_max(mut self, datagrams: usize) -> StackConfig {
        self.datagrams_max = datagrams.clamp(1, 65_536);
        self
    }

    /// Sets the congestion control. Default: [`Congestion::Cubic`].
    pub fn congestion(mut self, control: Congestion) -> StackConfig {
        self.congestion = control;
        self
    }

    /// Sets how many connections a listener keeps at most that wait to be accepted or are half
    /// open, whatever [`ListenOptions`](rotor_core::net::ListenOptions) ask for. Default 1,024; at
    /// least 1. Each has its buffers, so this bounds what a flood of attempts takes.
    ///
    /// When it is full, the oldest half-open connection is forgotten to make room for the next (RFC
    /// 4987, section 3.4), and [counted](crate::StackStats::half_open_overflowed). Under a SYN flood a
    /// peer is therefore accepted if it completes its handshake before the flood has filled the
    /// backlog: within 10 ms at 100,000 attempts a second. If none is half open, because all wait to be
    /// accepted, the attempt is thrown away and [counted](crate::StackStats::backlog_overflowed), and
    /// its peer tries again.
    #[doc(alias = "SYN flood")]
    #[doc(alias = "somaxconn")]
    pub fn backlog_max(mut self, connections: usize) -> StackConfig {
        self.backlog_max = connections.max(1);
        self
    }

    /// Sets how long a peer may take to complete a handshake that it began. Default 10 s.
    pub fn half_open_timeout(mut self, time: Duration) -> StackConfig {
        self.half_open_timeout = time;
        self
    }

    /// Sets how long an attempt to connect waits for an answer. Default 60 s.
    pub fn connect_timeout(mut self, time: Duration) -> StackConfig {
        self.connect_timeout = time;
        self
    }

    /// Sets how long a peer may leave what was sent to it, or a probe, without an answer before
    /// the connection is given up. Default 5 minutes (RFC 9293, section 3.8.3); `Duration::MAX`: for ever.
    #[doc(alias = "TCP_USER_TIMEOUT")]
    pub fn user_timeout(mut self, time: Duration) -> StackConfig {
        self.user_timeout = time;
        self
    }

    /// Sets how long a connection that was dropped goes on sending what it had taken, and waits for
    /// the peer's end. Default 30 s. Then it is reset, and counted.
    #[doc(alias = "SO_LINGER")]
    pub fn linger(mut self, time: Duration) -> StackConfig {
        self.linger = time;
        self
    }

    /// Sets how many connections that were dropped go on so at a time, with their buffers: nobody holds
    /// them, so no limit of a server counts them. Default 16,384, a quarter of all that there may be; at
    /// least 1. Where there are more, the one that was dropped first is reset, and counted.
    #[doc(alias = "tcp_max_orphans")]
    pub fn lingering_max(mut self, connections: usize) -> StackConfig {
        self.lingering_max = connections.max(1);
        self
    }

    /// Sets how many connections that both sides have ended are remembered, to answer late segments:
    /// for 10 s each, in some 300 bytes, without their buffers. Default 16,384; 0: none. Beyond, the
    /// oldest is forgotten, and counted. So is the oldest to a target when one more is to be connected
    /// there and all 16,384 ports for that are taken. They do not count as
    /// [connections](StackConfig::connections_max).
    #[doc(alias = "TIME-WAIT")]
    pub fn time_wait_max(mut self, connections: usize) -> StackConfig {
        self.time_wait_max = connections;
        self
    }

    /// Sets how many connections there are at most, of all listeners and by all machines. Default
    /// 65,536; at least 1. What comes then is thrown away as by a full backlog; connecting fails
    /// with `OutOfMemory`.
    pub fn connections_max(mut self, connections: usize) -> StackConfig {
        self.connections_max = connections.max(1);
        self
    }

    /// Sets how many packets are taken in a turn. Default 256; at least 1. The others wait in the
    /// device.
    pub fn packets_max(mut self, packets: usize) -> StackConfig {
        self.packets_max = packets.max(1);
        self
    }

    /// Sets how many packets a second that are for nobody have an answer: a reset (TCP), or that there
    /// is no such port, protocol, or option of IPv6 (ICMP; RFC 1812, section 4.3.2.8, and RFC 4443, section
    /// 2.4 (f), want a bound). As many may leave at once. Default 1,000, as Linux has it for ICMP; 0: none. What is
    /// beyond has no answer and is
    /// [counted](crate::StackStats::rejections_withheld): who connects to a closed port then waits for
    /// its time to be over.
    ///
    /// It holds in the mean: who counts the answers learns nothing of those to others. Resets of
    /// connections that have been made, pings, and questions for addresses are not bounded by it.
    #[doc(alias = "icmp_ratelimit")]
    #[doc(alias = "icmplim")]
    pub fn rejections_per_second(mut self, rejections: u32) -> StackConfig {
        self.rejections_per_second = rejections;
        self
    }

    /// Sets whether a packet that comes with a wrong checksum is thrown away. Default: yes. No is
    /// for packet sockets that see what the same machine sends, which has none yet.
    pub fn verify_checksums(mut self, yes: bool) -> StackConfig {
        self.verify_checksums = yes;
        self
    }

    /// Sets what chance is drawn from: sequence numbers, ports, and the loop's random bytes. By
    /// default it is the system's; with a seed everybody can guess them, so that is for tests.
    pub fn seed(mut self, seed: u64) -> StackConfig {
        self.seed = Some(seed);
        self
    }

    /// Sets where work goes that machines offload. Default: nowhere, it is refused.
    pub fn offload_pool(mut self, pool: OffloadPool) -> StackConfig {
        self.pool = Some(pool);
        self
    }
}

/// The smallest buffer of a connection, in bytes: it holds a segment of the usual size.
const BUFFER_MIN: usize = 2 * 1024;

/// The largest, in bytes. TCP's windows go to 1 GiB.
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
    fn buffers_are_kept_within_what_the_stack_can_do() {
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
