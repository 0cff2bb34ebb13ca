//! `KernelDevice`: devices of the Linux kernel, opened by other crates, and read and written here.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rotor_core::Time;
use rotor_core::backend::Clock;
use rustix::io::Errno;
use rustix::net::netdevice;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use smoltcp::phy;

use super::{Device, ETHERNET_HEADER, Medium};

/// A device of the Linux kernel: TUN, TAP, or the packet socket of an interface.
///
/// To open one, a process needs Linux 5.6 and the capability `CAP_NET_ADMIN` (TUN and TAP, unless
/// the device is persistent and belongs to the user) or `CAP_NET_RAW` (packet sockets). It also
/// needs the system call `pidfd_getfd`, which a container may refuse unless it grants
/// `CAP_SYS_PTRACE`: Docker's seccomp filter does.
pub struct KernelDevice {
    name: String,
    fd: OwnedFd,
    medium: Medium,
    mtu: usize,
    has_virtio_header: bool,
    /// For packet sockets.
    interface: Option<Interface>,
}

/// The interface to which a packet socket is bound.
struct Interface {
    index: u32,
    clock: Clock,
    /// When to check whether the interface still exists, if it is down.
    check_at: Option<Time>,
}

/// How often to check whether an interface that is down still exists.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The longest name of an interface, in bytes (`IFNAMSIZ` without the final zero).
const NAME_BYTES_MAX: usize = 15;

impl KernelDevice {
    /// Opens the TUN device of this name, and creates it if there is none: the loop gets the IP
    /// packets that the kernel routes there. Its addresses, routes and MTU are set as for any
    /// interface (`ip address add 10.1.0.1/24 dev NAME`), and the interface must be up.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the name is empty or longer than 15 bytes. Otherwise the system's error:
    /// no permission, the name is in use, no `/dev/net/tun`.
    #[cfg(feature = "tun")]
    pub fn tun(name: &str) -> io::Result<KernelDevice> {
        check_name(name)?;
        let opened = phy::TunTapInterface::new(name, phy::Medium::Ip)?;
        KernelDevice::from_opened(&opened, name)
    }

    /// Opens the TAP device of this name, and creates it if there is none: like
    /// [`tun`](KernelDevice::tun), but with Ethernet frames.
    ///
    /// # Errors
    ///
    /// As for [`tun`](KernelDevice::tun).
    #[cfg(feature = "tun")]
    pub fn tap(name: &str) -> io::Result<KernelDevice> {
        check_name(name)?;
        let opened = phy::TunTapInterface::new(name, phy::Medium::Ethernet)?;
        KernelDevice::from_opened(&opened, name)
    }

    /// Opens a packet socket on the Ethernet interface of this name (`AF_PACKET`; packet(7)).
    ///
    /// The kernel continues to see the interface's frames, so the stack's addresses must not be the
    /// kernel's. Frames from the same machine (a veth pair) have no checksums yet, and those that the
    /// interface has merged (generic receive offload) have none any more. For the latter, switch
    /// that off (`ethtool -K NAME gro off`); or set
    /// [`StackConfig::verify_checksums`](crate::StackConfig::verify_checksums) to false to accept
    /// both.
    ///
    /// Most interfaces pass on only frames for their own hardware address. So either give that
    /// address to the stack
    /// ([`StackConfig::hardware_address`](crate::StackConfig::hardware_address); `ip link show`
    /// prints it), or let the interface pass on all frames (`ip link set NAME promisc on`). IPv6
    /// neighbour solicitations go to a multicast group that the kernel has not joined: `ip link set
    /// NAME allmulticast on`. A veth pair passes on all frames anyway.
    ///
    /// An interface that goes down is counted ([`went_down`](crate::StackStats::went_down)) and
    /// logged. Packets come again when it is up, and connections continue if their timeouts allow.
    /// If the interface is deleted, the loop ends, at most a second later if it was down before.
    ///
    /// # Errors
    ///
    /// As for [`tun`](KernelDevice::tun); `ENODEV` if there is no such interface.
    #[cfg(feature = "packet-socket")]
    pub fn packet_socket(interface: &str) -> io::Result<KernelDevice> {
        check_name(interface)?;
        let opened = phy::RawSocket::new(interface, phy::Medium::Ethernet)?;
        let mut device = KernelDevice::from_opened(&opened, interface)?;
        let index = netdevice::name_to_index(&device.fd, interface)?;
        device.interface = Some(Interface { index, clock: Clock::new(), check_at: None });
        Ok(device)
    }

    /// Opens the TUN device of this name, like [`tun`](KernelDevice::tun), and leaves checksums and
    /// segmentation to the kernel (`IFF_VNET_HDR`). A large body costs a fraction of the CPU time,
    /// because it travels in packets of up to 64 KiB, whatever the MTU.
    ///
    /// A persistent device (`ip tuntap add`) keeps sending large packets, so it can no longer be
    /// opened with [`tun`](KernelDevice::tun). From Linux 6.2 on, the kernel sends datagrams in
    /// large packets as well.
    ///
    /// # Errors
    ///
    /// As for [`tun`](KernelDevice::tun).
    #[cfg(feature = "tun-offload")]
    pub fn tun_offloading(name: &str) -> io::Result<KernelDevice> {
        check_name(name)?;
        let builder = tun_rs::DeviceBuilder::new().name(name).offload(true);
        let opened = builder.inherit_enable_state().build_sync()?;
        opened.set_nonblocking(true)?;
        // `opened` only lends its descriptor, so this duplicates it.
        let fd = opened.as_fd().try_clone_to_owned()?;
        let mtu = opened.mtu()?.into();
        let (medium, name) = (Medium::Ip, name.into());
        Ok(KernelDevice { name, fd, medium, mtu, has_virtio_header: true, interface: None })
    }

    /// Takes over a device that smoltcp has opened. smoltcp's own reads and writes panic when the
    /// device is gone or down, and allocate for each packet. Its descriptor has no owner to borrow
    /// from, so the kernel duplicates it by number, which needs no unsafe code.
    fn from_opened<D: phy::Device + AsRawFd>(opened: &D, name: &str) -> io::Result<KernelDevice> {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let fd = pidfd_getfd(own, opened.as_raw_fd(), PidfdGetfdFlags::empty())?;
        let capabilities = opened.capabilities();
        let (medium, around) = match capabilities.medium {
            phy::Medium::Ethernet => (Medium::Ethernet, ETHERNET_HEADER),
            phy::Medium::Ip => (Medium::Ip, 0),
        };
        let mtu = capabilities.max_transmission_unit.saturating_sub(around);
        let (name, has_virtio_header) = (name.into(), false);
        Ok(KernelDevice { name, fd, medium, mtu, has_virtio_header, interface: None })
    }
}

impl Interface {
    /// Handles the result of a read. The kernel reports once that an interface is down, with the
    /// same error for one that is being deleted. It does not report that the interface is up again,
    /// nor that it is deleted if it was down (packet(7), `ENETDOWN`). So this checks whether it
    /// still exists.
    ///
    /// # Errors
    ///
    /// `ENODEV`: the interface is gone.
    fn check_exists(&mut self, socket: &OwnedFd, read: Result<usize, Errno>) -> io::Result<()> {
        match read {
            Ok(_) => self.check_at = None,
            Err(Errno::NETDOWN) => self.check_at = Some(Time::ZERO),
            Err(_) => {}
        }
        let Some(at) = self.check_at else { return Ok(()) };
        let now = self.clock.now();
        if at <= now {
            if let Err(gone @ Errno::NODEV) = netdevice::index_to_name(socket, self.index) {
                return Err(gone.into());
            }
            self.check_at = Some(now + CHECK_INTERVAL);
        }
        Ok(())
    }
}

/// Checks the name of an interface, since smoltcp does not check its length.
fn check_name(name: &str) -> io::Result<()> {
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0') {
        return Ok(());
    }
    let message = format!("{name:?} is not the name of an interface: 1 to {NAME_BYTES_MAX} bytes");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

impl Device for KernelDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn medium(&self) -> Medium {
        self.medium
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn has_virtio_header(&self) -> bool {
        self.has_virtio_header
    }

    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        let read = rustix::io::read(&self.fd, packet);
        if let Some(interface) = &mut self.interface {
            interface.check_exists(&self.fd, read)?;
        }
        Ok(read?)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        match rustix::io::write(&self.fd, packet) {
            // The queue of the interface is full, not that of the socket.
            Err(Errno::NOBUFS) => Err(io::ErrorKind::WouldBlock.into()),
            result => Ok(result.map(drop)?),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    /// Not an arrival: when to check whether the interface still exists.
    fn next_arrival(&self) -> Option<Time> {
        self.interface.as_ref()?.check_at
    }
}

impl fmt::Debug for KernelDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelDevice({}, {:?} of {} bytes)", self.name, self.medium, self.mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_names_are_limited_as_in_the_kernel() {
        for (name, is_one) in [
            ("", false),
            ("a", true),
            ("sixteen-bytes-15", false),
            ("fifteen-bytes15", true),
            ("a\0", false),
        ] {
            assert_eq!(check_name(name).is_ok(), is_one, "{name:?}");
        }
    }
}
