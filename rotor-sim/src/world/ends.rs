//! Listeners and datagram sockets, as the network knows them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rotor_core::{Interest, Token};

use super::place::Place;
use crate::table::Key;

/// The connections that nobody has accepted, of a listener and all of its copies.
pub(crate) type Backlog = Rc<RefCell<VecDeque<Key>>>;

/// A listener as the network knows it.
pub(crate) struct ListenerEnd {
    pub(crate) host: u32,
    pub(crate) place: Place,
    /// That of its copies, too.
    pub(crate) backlog: Backlog,
    pub(crate) backlog_max: usize,
    /// How many connections other listeners of its host have accepted while the first of these has
    /// waited, and the loop was told of it.
    pub(crate) passed_over: u64,
    /// Connections wait, and its loop has heard of them or has left them itself.
    pub(crate) is_told: bool,
    pub(crate) reuse_port: bool,
    pub(crate) registered: Option<Token>,
    /// The next connection is reported: `accept` answered `WouldBlock`, or it was just
    /// registered.
    pub(crate) is_armed: bool,
}

/// A datagram socket as the network knows it.
pub(crate) struct DatagramEnd {
    pub(crate) host: u32,
    pub(crate) place: Place,
    /// The only one that it takes datagrams of.
    pub(crate) peer: Option<Place>,
    /// Of a path: that peer itself. A later one at its path is another.
    pub(crate) peer_key: Option<Key>,
    /// The peer's host has said that nobody takes what was sent.
    pub(crate) is_refused: bool,
    pub(crate) queue: VecDeque<(Box<[u8]>, Place)>,
    pub(crate) registered: Option<(Token, Interest)>,
    /// What arrives next is reported, as at a listener.
    pub(crate) is_armed: bool,
    /// The paths whose sockets had no room for what was to be sent: some is reported, of each.
    pub(crate) waits_for: Vec<Place>,
}

/// A datagram that is under way.
pub(crate) struct Datagram {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) hosts: (u32, u32),
}

/// A packet on its way.
pub(crate) struct Packet {
    pub(super) bytes: Box<[u8]>,
    /// From which host, and to which.
    pub(super) hosts: (u32, u32),
}
