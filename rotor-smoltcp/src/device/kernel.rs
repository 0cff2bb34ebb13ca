//! `KernelDevice`: devices of the Linux kernel, opened by others and read and written here.

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
/// Opening one needs the capability `CAP_NET_ADMIN` (TUN and TAP, unless the device is persistent
/// and the user's) or `CAP_NET_RAW` (packet sockets), and Linux 5.6. A container may refuse
/// `pidfd_getfd`, which it needs as well, unless it grants `CAP_SYS_PTRACE`: Docker's filter of system
/// calls does.
pub struct KernelDevice {
    name: String,
    fd: OwnedFd,
    medium: Medium,
    mtu: usize,
    has_virtio_header: bool,
    /// Of a packet socket.
    interface: Option<Interface>,
}

/// The interface that a packet socket is bound to.
struct Interface {
    index: u32,
    clock: Clock,
    /// When to look whether it is there still, since it is down.
    look_at: Option<Time>,
}

/// How often an interface that is down is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The longest name of an interface, in bytes (`IFNAMSIZ`, less the zero behind it).
const NAME_BYTES_MAX: usize = 15;

impl KernelDevice {
    /// Opens the TUN device of this name, and makes it if there is none: IP packets that the
    /// kernel routes there come to the loop. Its addresses, routes and MTU are set as those of any
    /// interface (`ip address add 10.1.0.1/24 dev NAME`), and it has to be up.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where the name is empty or longer than 15 bytes; else what the system says:
    /// no permission, the name is in use, no `/dev/net/tun`.
    #[cfg(feature = "tun")]
    pub fn tun(name: &str) -> io::Result<KernelDevice> {
        check(name)?;
        let opened = phy::TunTapInterface::new(name, phy::Medium::Ip)?;
        KernelDevice::of(&opened, name)
    }

    /// Opens the TAP device of this name, and makes it if there is none: as
    /// [`tun`](KernelDevice::tun), with Ethernet frames.
    ///
    /// # Errors
    ///
    /// As for [`tun`](KernelDevice::tun).
    #[cfg(feature = "tun")]
    pub fn tap(name: &str) -> io::Result<KernelDevice> {
        check(name)?;
        let opened = phy::TunTapInterface::new(name, phy::Medium::Ethernet)?;
        KernelDevice::of(&opened, name)
    }

    /// Opens a packet socket on the Ethernet interface of this name (`AF_PACKET`; packet(7)).
    ///
    /// The kernel goes on to see what comes there, so the stack must have addresses that the kernel
    /// has not. Frames of the same machine (a veth pair) have no checksums yet:
    /// [`StackConfig::verify_checksums`](crate::StackConfig::verify_checksums) takes them.
    ///
    /// Most interfaces pass on what is for their own address, so the stack takes that
    /// ([`StackConfig::hardware_address`](crate::StackConfig::hardware_address), by `ip link show`), or
    /// the card passes on all (`ip link set NAME promisc on`). Who looks for a neighbour of IPv6 asks a
    /// group, which the kernel is not in: `ip link set NAME allmulticast on`. A veth pair passes on all
    /// as it is.
    ///
    /// An interface that is taken down is counted
    /// ([`went_down`](crate::StackStats::went_down)) and logged; packets come again once it is up,
    /// and connections go on if their times allow. One that is deleted ends the loop, at most a
    /// second later where it was down before.
    ///
    /// # Errors
    ///
    /// As for [`tun`](KernelDevice::tun); `ENODEV` where there is no such interface.
    #[cfg(feature = "packet-socket")]
    pub fn packet_socket(interface: &str) -> io::Result<KernelDevice> {
        check(interface)?;
        let opened = phy::RawSocket::new(interface, phy::Medium::Ethernet)?;
        let mut device = KernelDevice::of(&opened, interface)?;
        let index = netdevice::name_to_index(&device.fd, interface)?;
        device.interface = Some(Interface { index, clock: Clock::new(), look_at: None });
        Ok(device)
    }

    /// Opens the TUN device of this name, as [`tun`](KernelDevice::tun), and leaves the sums and
    /// the cutting of segments to the kernel (`IFF_VNET_HDR`): a large body costs a fraction,
    /// since it goes in packets of up to 64 KiB, whatever the MTU.
    ///
    /// A device that outlives those who open it (`ip tuntap add`) keeps sending large packets, so
    /// [`tun`](KernelDevice::tun) is not for it any more. Linux 6.2 sends datagrams uncut as well.
    ///
    /// # Errors
    ///
    /// As for [`tun`](KernelDevice::tun).
    #[cfg(feature = "tun-offload")]
    pub fn tun_offloading(name: &str) -> io::Result<KernelDevice> {
        check(name)?;
        let builder = tun_rs::DeviceBuilder::new().name(name).offload(true);
        let opened = builder.inherit_enable_state().build_sync()?;
        opened.set_nonblocking(true)?;
        // It lends its descriptor, of which this is a second one.
        let fd = opened.as_fd().try_clone_to_owned()?;
        let mtu = opened.mtu()?.into();
        let (medium, name) = (Medium::Ip, name.into());
        Ok(KernelDevice { name, fd, medium, mtu, has_virtio_header: true, interface: None })
    }

    /// Takes over what smoltcp has opened. Its own reads and writes panic when the device is gone,
    /// or down, and allocate for each packet; and it lends no descriptor that has an owner. The
    /// kernel makes a second one of the number, which needs no unsafe code.
    fn of<D: phy::Device + AsRawFd>(opened: &D, name: &str) -> io::Result<KernelDevice> {
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
    /// Notes what a read has said. The kernel says that an interface is down once, in the same words
    /// for one that is being deleted; it does not say that it is up again, nor that it is deleted when
    /// it was down (packet(7), `ENETDOWN`). So it is looked for.
    ///
    /// # Errors
    ///
    /// `ENODEV`: it is gone.
    fn note(&mut self, socket: &OwnedFd, read: Result<usize, Errno>) -> io::Result<()> {
        match read {
            Ok(_) => self.look_at = None,
            Err(Errno::NETDOWN) => self.look_at = Some(Time::ZERO),
            Err(_) => {}
        }
        let Some(at) = self.look_at else { return Ok(()) };
        let now = self.clock.now();
        if at <= now {
            if let Err(gone @ Errno::NODEV) = netdevice::index_to_name(socket, self.index) {
                return Err(gone.into());
            }
            self.look_at = Some(now + LOOK_AGAIN);
        }
        Ok(())
    }
}

/// smoltcp does not look at how long a name is.
fn check(name: &str) -> io::Result<()> {
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
            interface.note(&self.fd, read)?;
        }
        Ok(read?)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.fd, packet)?;
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    /// Not a packet: whether the interface is there is to be looked at then.
    fn next_arrival(&self) -> Option<Time> {
        self.interface.as_ref()?.look_at
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
    fn a_name_is_as_long_as_the_kernel_takes() {
        for (name, is_one) in [
            ("", false),
            ("a", true),
            ("sixteen-bytes-15", false),
            ("fifteen-bytes15", true),
            ("a\0", false),
        ] {
            assert_eq!(check(name).is_ok(), is_one, "{name:?}");
        }
    }
}
