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

/// What packets are like on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Medium {
    /// IP packets, with nothing around them: TUN, and other tunnels.
    Ip,
    /// Ethernet frames without their checksum: TAP, packet sockets.
    Ethernet,
}

/// The length of an Ethernet frame's header, in bytes.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// The length of a virtio header, in bytes.
pub(crate) const VIRTIO_HEADER: usize = 10;

/// Where packets come from and go to: a network card, as a stack sees it.
///
/// Those of this crate are [`MemoryDevice`] and, with the features `tun` and `packet-socket`,
/// `KernelDevice`. Implement it for another: a library for AF_XDP or for a card that is driven from
/// user space, a tunnel of one's own.
pub trait Device: Send + 'static {
    /// Returns what it is called in errors: `tun0`.
    fn name(&self) -> &str;

    /// Returns what its packets are like.
    fn medium(&self) -> Medium;

    /// Returns how long an IP packet may be that it sends, in bytes, without what the medium puts
    /// around it; what is above 65,535 is taken as that. Asked when a stack is opened.
    fn mtu(&self) -> usize;

    /// Whether each packet has a virtio header in front, in both directions (`virtio_net_hdr`
    /// without the number of buffers: 10 bytes in the order of this machine; VIRTIO 1.2, section
    /// 5.1.6). By default not. Asked when a stack is opened.
    ///
    /// Such a device makes the sums of TCP and UDP, and cuts packets of TCP of up to 64 KiB into
    /// segments of the size that the header says, for either version of IP. What comes may be as
    /// long, of datagrams too, and need not have a sum where the header says so.
    fn has_virtio_header(&self) -> bool {
        false
    }

    /// Takes the next packet that has come, and returns its length in bytes. One of none counts as any
    /// other, and is refused.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none; `Interrupted`: it is asked again;
    /// [`NetworkDown`](io::ErrorKind::NetworkDown), once each time: none will come for now, which is
    /// counted and logged. Any other says that the device is of no use any more, and ends the loop.
    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize>;

    /// Sends a packet.
    ///
    /// # Errors
    ///
    /// It was not sent, which is counted and no more: a network may lose any. Who has lost more
    /// than that says so by the next [`receive`](Device::receive).
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Returns the descriptor that becomes readable when a packet comes; `None` where there is
    /// none: then the loop sees packets when it wakes for another reason.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Returns when a packet will have come that is known of already, or when the device is to be asked
    /// without one. By default never: the descriptor tells.
    fn next_arrival(&self) -> Option<Time> {
        None
    }
}
