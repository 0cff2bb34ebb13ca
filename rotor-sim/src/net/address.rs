//! What names a simulated socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::world::Place;

/// The error of an address that somebody else has, which it names, as the kernel's sockets do.
pub(super) fn taken<A: Address>(address: &A) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, format!("cannot listen on {}", address.text()))
}

/// What names a simulated socket: a [`SocketAddr`] or a [`PathBuf`]. Sealed: there are no others.
pub trait Address: Clone + Sized + 'static + sealed::Address {}

impl Address for SocketAddr {}
impl Address for PathBuf {}

pub(super) mod sealed {
    use super::{IpAddr, Place, io};

    pub trait Address: Sized {
        /// What streams of this kind are called in errors.
        const STREAM: &'static str;
        /// What datagram sockets of this kind are called in errors.
        const DATAGRAM: &'static str;
        /// Where this address is for a host, whose own is `own`.
        fn place(&self, host: u32, own: IpAddr) -> Place;
        /// The address to be bound to: of this host, with `port` in the place of none.
        fn bind(&self, host: u32, own: IpAddr, port: u16) -> io::Result<Place>;
        /// As it is written in errors.
        fn text(&self) -> String;
        /// An address of this kind for a socket that was not given one.
        fn unnamed(host: u32, own: IpAddr, port: u16) -> Place;
        /// The address of a place.
        fn of(place: &Place) -> Option<Self>;
    }
}

impl sealed::Address for SocketAddr {
    const STREAM: &'static str = "TCP";
    const DATAGRAM: &'static str = "UDP";

    fn place(&self, _: u32, own: IpAddr) -> Place {
        let mut address = *self;
        if is_own(address.ip()) {
            address.set_ip(own);
        }
        Place::Inet(address)
    }

    fn bind(&self, _: u32, own: IpAddr, port: u16) -> io::Result<Place> {
        // `EADDRNOTAVAIL`: bind(2) knows the addresses of its own host only.
        if !is_own(self.ip()) && self.ip() != own {
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

    fn of(place: &Place) -> Option<SocketAddr> {
        if let Place::Inet(address) = place { Some(*address) } else { None }
    }
}

fn is_own(address: IpAddr) -> bool {
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

    fn of(place: &Place) -> Option<PathBuf> {
        if let Place::Path(_, path) = place { Some(path.clone()) } else { None }
    }
}
