//! What a forger of answers has to guess: the id of a query, its letters (0x20), and the port that it
//! comes from.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rotor_core::net::DatagramSocket;
use rotor_core::{Interest, Scope};

use crate::message::QueryMessage;
use crate::record::Question;

/// Ports from here on need no privilege; how many of them there are.
const PORT_FIRST: u16 = 1024;
const PORTS: u64 = 65_536 - PORT_FIRST as u64;
/// How many random ports are tried before the system is asked for one.
const PORT_TRIES: u32 = 8;

/// All that a forger has to guess, the port apart, comes from the secure source.
pub(crate) fn query_message<C>(
    asked: &Question,
    mixed_case: bool,
    edns: bool,
    scope: &Scope<'_, C>,
) -> Option<QueryMessage> {
    let id = u16::from_be_bytes(scope.secure_random());
    let (mut bits, mut left) = (0, 0);
    let case = || {
        if left == 0 {
            (bits, left) = (u64::from_be_bytes(scope.secure_random()), u64::BITS);
        }
        left -= 1;
        mixed_case && (bits >> left) & 1 == 1
    };
    QueryMessage::new(asked, id, case, edns)
}

/// A socket on a random port, tied to the server, and whether it could be: the system then throws
/// away what others send, and says at once when nobody takes questions there.
pub(crate) fn bind<D: DatagramSocket<Address = SocketAddr>, C>(
    server: SocketAddr,
    scope: &Scope<'_, C>,
) -> io::Result<(D, bool)> {
    // The server's family, because a socket of the other one cannot reach it.
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut bound = Err(io::ErrorKind::AddrInUse.into());
    // Random, not the system's next one: a forger would know that (RFC 5452 §9.2).
    for attempt in 0..=PORT_TRIES {
        let random = PORT_FIRST + (u64::from_be_bytes(scope.secure_random()) % PORTS) as u16;
        // At last the system's choice: a port that can be guessed is better than no answer at all.
        let port = if attempt < PORT_TRIES { random } else { 0 };
        bound = D::bind(&SocketAddr::new(any, port), scope);
        match &bound {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                ) => {}
            _ => break,
        }
    }
    let mut socket = bound?;
    let is_connected = match socket.connect(&server) {
        Ok(()) => true,
        // `datagrams` then checks who has sent what.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => false,
        Err(error) => return Err(error),
    };
    scope.register(&mut socket, Interest::Both)?;
    Ok((socket, is_connected))
}
