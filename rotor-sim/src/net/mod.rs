//! The simulated network: byte streams, listeners and datagrams between the hosts of a simulation.
//!
//! | | addresses | paths |
//! |--|--|--|
//! | byte streams | [`SimTcpStream`] | [`SimUnixStream`] |
//! | what makes them | [`SimTcpListener`] | [`SimUnixListener`] |
//! | datagrams | [`SimUdpSocket`] | [`SimUnixDatagram`] |
//! | the family | [`SimNet`] | [`SimUnix`] |
//!
//! Each host has one address, [`Sim::address`](crate::Sim::address); what is bound to or connected to the unspecified or
//! the loopback address means the host itself. Paths name sockets of the same host only.

mod datagram;
mod link;
mod listener;
mod operations;
mod stream;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rotor_core::backend::BackendHandle;
use rotor_core::net::Net;
use rotor_core::{EventSet, Interest, Scope};

pub use datagram::SimDatagram;
pub(crate) use datagram::{Datagram, DatagramEnd};
pub(crate) use link::Link;
pub(crate) use listener::ListenerEnd;
pub use listener::SimListener;
pub use stream::SimStream;

use crate::SimHandle;
use crate::world::Shared;

/// A simulated TCP stream.
pub type SimTcpStream = SimStream<SocketAddr>;
/// A simulated Unix stream.
pub type SimUnixStream = SimStream<PathBuf>;
/// A simulated TCP listener.
pub type SimTcpListener = SimListener<SocketAddr>;
/// A simulated Unix listener.
pub type SimUnixListener = SimListener<PathBuf>;
/// A simulated UDP socket.
pub type SimUdpSocket = SimDatagram<SocketAddr>;
/// A simulated Unix datagram socket.
pub type SimUnixDatagram = SimDatagram<PathBuf>;

/// The simulated TCP and UDP sockets, as a family.
#[derive(Clone, Copy, Debug)]
pub struct SimNet;

/// The simulated Unix sockets, as a family.
#[derive(Clone, Copy, Debug)]
pub struct SimUnix;

impl Net for SimNet {
    type Stream = SimTcpStream;
    type Listener = SimTcpListener;
    type Datagram = SimUdpSocket;
}

impl Net for SimUnix {
    type Stream = SimUnixStream;
    type Listener = SimUnixListener;
    type Datagram = SimUnixDatagram;
}

/// Where a socket is, among all hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An address.
    Inet(SocketAddr),
    /// A path of a host.
    Path(u32, PathBuf),
}

/// What names a simulated socket: a [`SocketAddr`] or a [`PathBuf`]. Sealed: there are no others.
pub trait Address: Clone + Sized + 'static + sealed::Address {}

impl Address for SocketAddr {}
impl Address for PathBuf {}

mod sealed {
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
        if !is_own(self.ip()) && self.ip() != own {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        Ok(Place::Inet(SocketAddr::new(own, if self.port() == 0 { port } else { self.port() })))
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

    fn unnamed(host: u32, _: IpAddr, _: u16) -> Place {
        Place::Path(host, PathBuf::new())
    }

    fn of(place: &Place) -> Option<PathBuf> {
        if let Place::Path(_, path) = place { Some(path.clone()) } else { None }
    }
}

/// The simulation that a scope's loop is part of, and its host.
fn simulation<'a, C>(scope: &'a Scope<'_, C>, what: &str) -> io::Result<&'a SimHandle> {
    scope.backend().expect(what)
}

/// Refuses a loop of another backend, of another simulation, or of another host.
fn check(backend: &dyn BackendHandle, world: &Shared, host: u32, what: &str) -> io::Result<()> {
    let handle: &SimHandle = backend.expect(what)?;
    if !handle.is_of(world) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("{what} is of another simulation")));
    }
    if handle.host() != host {
        let world = world.borrow();
        let message = format!(
            "{what} of host {} cannot be used on the loop of host {}",
            world.hosts[host as usize].name,
            world.hosts[handle.host() as usize].name
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    Ok(())
}

/// What of an edge a source is to hear: errors and hang-ups always.
fn filter(interest: Interest, events: EventSet) -> EventSet {
    let mut heard = EventSet::EMPTY;
    let wanted = [
        (EventSet::READABLE, interest.is_readable()),
        (EventSet::WRITABLE, interest.is_writable()),
        (EventSet::READ_CLOSED, true),
        (EventSet::WRITE_CLOSED, true),
        (EventSet::ERROR, true),
    ];
    for (event, _) in wanted.into_iter().filter(|(event, wanted)| *wanted && events.contains(*event)) {
        heard |= event;
    }
    heard
}
