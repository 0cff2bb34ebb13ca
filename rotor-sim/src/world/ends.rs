//! Listeners and datagram sockets, as the network knows them.

use std::collections::VecDeque;

use rotor_core::{Interest, Token};

use super::place::Place;
use crate::table::Key;

/// A listener as the network knows it.
pub(crate) struct ListenerEnd {
    pub(crate) host: u32,
    pub(crate) place: Place,
    pub(crate) backlog: VecDeque<Key>,
    pub(crate) backlog_max: usize,
    pub(crate) reuse_port: bool,
    pub(crate) registered: Option<Token>,
    /// The next connection is to be reported: `accept` answered `WouldBlock`, or it was just registered.
    pub(crate) owes: bool,
}

/// A datagram socket as the network knows it.
pub(crate) struct DatagramEnd {
    pub(crate) host: u32,
    pub(crate) place: Place,
    pub(crate) queue: VecDeque<(Box<[u8]>, Place)>,
    pub(crate) registered: Option<(Token, Interest)>,
    pub(crate) owes: bool,
}

/// A datagram that is under way.
pub(crate) struct Datagram {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) hosts: (u32, u32),
}
