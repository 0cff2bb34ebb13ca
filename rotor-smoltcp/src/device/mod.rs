//! `Device`: where packets come from and go to.

#[cfg(all(any(feature = "tun", feature = "packet-socket"), target_os = "linux"))]
mod kernel;
mod memory;

#[cfg(all(any(feature = "tun", feature = "packet-socket"), target_os = "linux"))]
pub use kernel::KernelDevice;
pub use memory::{MemoryConfig, MemoryDevice, MemoryStats};

use std::io;
use std::os::fd::BorrowedFd;

use rotor_core::Time;

/// The format of a device's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Medium {
    /// IP packets without a link-layer header: TUN and other tunnels.
    Ip,
    /// Ethernet frames without their check sequence: TAP, packet sockets.
    Ethernet,
}

/// The length of an Ethernet header, in bytes.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// The length of a virtio header, in bytes.
pub(crate) const VIRTIO_HEADER: usize = 10;

/// A source and sink of packets: a network card, as a stack sees it.
///
/// The devices of this crate are [`MemoryDevice`] and, with the features `tun` and `packet-socket`,
/// `KernelDevice`. Implement the trait for others: a library for AF_XDP or for a card that is
/// driven from user space, or a tunnel of your own.
pub trait Device: Send + 'static {
    /// Returns the name of the device in errors, such as `tun0`.
    fn name(&self) -> &str;

    /// Returns the format of the packets.
    fn medium(&self) -> Medium;

    /// Returns the length of the longest IP packet that the device sends, in bytes, without the
    /// link-layer header. A value above 65,535 counts as 65,535. Called when a stack is opened.
    fn mtu(&self) -> usize;

    /// Returns whether each packet, in both directions, begins with a virtio header
    /// (`virtio_net_hdr` without the number of buffers: 10 bytes in native byte order; VIRTIO 1.2
    /// §5.1.6). Default: no. Called when a stack is opened.
    ///
    /// Such a device computes the checksums of TCP and UDP, and splits TCP packets of up to 64 KiB
    /// into segments of the size in the header, for IPv4 and IPv6. Packets that it receives may be
    /// as long, including those of UDP, and need no checksum if their header says so.
    fn has_virtio_header(&self) -> bool {
        false
    }

    /// Takes the next packet that has arrived, and returns its length in bytes. A packet of length
    /// 0 counts like any other, and is refused.
    ///
    /// # Errors
    ///
    /// * `WouldBlock`: no packet is there.
    /// * `Interrupted`: the stack calls again.
    /// * [`NetworkDown`](io::ErrorKind::NetworkDown), once each time that the network goes down: no
    ///   packets come for now, which is counted and logged.
    /// * Any other error means that the device has failed, and ends the loop.
    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize>;

    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// The packet was not sent.
    ///
    /// * `WouldBlock`: the device has no room now. The stack keeps the packet, and up to 4 MiB of
    ///   further ones, and offers them again in its next turn, at most 1 ms later. A packet that
    ///   was refused for 50 ms is lost, and counted as [`unsent`](crate::StackStats::unsent).
    /// * Any other error is only counted, since any network may lose packets. If the device has
    ///   failed altogether, the next [`receive`](Device::receive) should report it.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Returns the descriptor that becomes readable when a packet arrives. With `None`, the loop
    /// sees packets only when it wakes for another reason.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Returns when a packet that is already known will have arrived, or when the stack should call
    /// [`receive`](Device::receive) without one. Default: never, since the descriptor reports
    /// arrivals.
    fn next_arrival(&self) -> Option<Time> {
        None
    }
}
