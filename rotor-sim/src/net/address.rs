//! The addresses of simulated sockets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rotor_core::net::ListenError;

use crate::world::Place;

/// The error for an address that is already in use.
pub(super) fn address_in_use<A: Address>(address: &A) -> io::Error {
    bind_error(address, io::ErrorKind::AddrInUse.into())
}

/// The error for an address to which no socket can be bound. It names the address, as the errors of
/// the kernel's sockets do.
pub(super) fn bind_error<A: Address>(address: &A, cause: io::Error) -> io::Error {
    ListenError::on(&address.text())(cause)
}

/// The address of a simulated socket: a [`SocketAddr`] or a [`PathBuf`]. Sealed: there are no
/// others.
pub trait Address: Clone + Sized + 'static + sealed::Address {}

impl Address for SocketAddr {}
impl Address for PathBuf {}

pub(super) mod sealed {
    use super::{IpAddr, Place, io};

    pub trait Address: Sized {
        /// What error messages call streams of this kind.
        const STREAM: &'static str;
        /// What error messages call datagram sockets of this kind.
        const DATAGRAM: &'static str;
        /// Returns the place that this address means on a host, whose own address is `own`.
        fn place(&self, host: u32, own: IpAddr) -> Place;
        /// Returns the place to bind to on this host. `port` is used if the address has port 0.
        fn bind(&self, host: u32, own: IpAddr, port: u16) -> io::Result<Place>;
        /// Returns the text of the address for error messages.
        fn text(&self) -> String;
        /// Returns a place for a socket that was not given an address.
        fn unnamed(host: u32, own: IpAddr, port: u16) -> Place;
        /// Returns the address of a place.
        fn from_place(place: &Place) -> Option<Self>;
    }
}

impl sealed::Address for SocketAddr {
    const STREAM: &'static str = "TCP";
    const DATAGRAM: &'static str = "UDP";

    fn place(&self, _: u32, own: IpAddr) -> Place {
        let ip = self.ip().to_canonical();
        Place::Inet(SocketAddr::new(if is_local(ip) { own } else { ip }, self.port()))
    }

    fn bind(&self, _: u32, own: IpAddr, port: u16) -> io::Result<Place> {
        // `EADDRNOTAVAIL`: bind(2) accepts only addresses of its own host.
        let ip = self.ip().to_canonical();
        if !is_local(ip) && ip != own {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        Ok(Place::Inet(SocketAddr::new(own, if self.port() == 0 { port } else { self.port() })))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn unnamed(_: u32, own: IpAddr, port: u16) -> Place {
        Place::Inet(SocketAddr::new(own, port))
    }

    fn from_place(place: &Place) -> Option<SocketAddr> {
        if let Place::Inet(address) = place { Some(*address) } else { None }
    }
}

fn is_local(address: IpAddr) -> bool {
    address.is_unspecified() || address.is_loopback()
}

impl sealed::Address for PathBuf {
    const STREAM: &'static str = "Unix";
    const DATAGRAM: &'static str = "Unix";

    fn place(&self, host: u32, _: IpAddr) -> Place {
        Place::Path(host, self.clone())
    }

    fn bind(&self, host: u32, _: IpAddr, _: u16) -> io::Result<Place> {
        Ok(Place::Path(host, self.clone()))
    }

    fn text(&self) -> String {
        self.display().to_string()
    }

    fn unnamed(host: u32, _: IpAddr, _: u16) -> Place {
        Place::Path(host, PathBuf::new())
    }

    fn from_place(place: &Place) -> Option<PathBuf> {
        if let Place::Path(_, path) = place { Some(path.clone()) } else { None }
    }
}
