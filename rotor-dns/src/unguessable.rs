//! What a forger of answers has to guess: the id of a query, the case of its letters (0x20), and
//! the port from which it is sent; and the report of those who guessed wrong.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rotor_core::net::DatagramSocket;
use rotor_core::{Interest, LogLimit, Scope, Time};

use crate::message::QueryMessage;
use crate::record::Question;

/// The first port that needs no privilege, and the number of ports from there on.
const PORT_FIRST: u16 = 1024;
const PORT_COUNT: u64 = 65_536 - PORT_FIRST as u64;
/// How many random ports are tried before the system chooses one.
const PORT_TRIES: u32 = 8;

/// Limits how often forgeries are logged: whoever can send them can do so for each question.
static FORGERIES: LogLimit = LogLimit::new();

/// Logs that so many datagrams did not match a question, for which TCP is now used.
pub(crate) fn report_forgeries(count: u32, server: SocketAddr, now: Time) {
    if let Some(others) = FORGERIES.try_pass(now) {
        log::warn!(
            "{count} datagrams that do not match the question to {server} arrived: using TCP (as \
             for {others} more questions before)"
        );
    }
}

/// Encodes a query. All that a forger has to guess, except for the port, comes from secure random
/// numbers.
pub(crate) fn query_message<C>(
    question: &Question,
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
    QueryMessage::new(question, id, case, edns)
}

/// Opens a socket on a random port and connects it to the server; also returns whether that was
/// possible. If it was, the system discards what others send, and reports at once if nothing
/// listens at the server's port.
pub(crate) fn bind_random_port<D: DatagramSocket<Address = SocketAddr>, C>(
    server: SocketAddr,
    scope: &Scope<'_, C>,
) -> io::Result<(D, bool)> {
    // Of the server's family, because a socket of the other family cannot reach it.
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut bound = Err(io::ErrorKind::AddrInUse.into());
    // Random, and not the system's next one, which a forger would know (RFC 5452 §9.2).
    for attempt in 0..=PORT_TRIES {
        let random = PORT_FIRST + (u64::from_be_bytes(scope.secure_random()) % PORT_COUNT) as u16;
        // In the end, the system's choice: a port that can be guessed is better than no answer at
        // all.
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
        // In this case `datagrams` checks the sender.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => false,
        Err(error) => return Err(error),
    };
    scope.register(&mut socket, Interest::Both)?;
    Ok((socket, is_connected))
}
