//! The network's view of listeners and datagram sockets.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rotor_core::{Interest, Token};

use super::place::Place;
use crate::table::Key;

/// The unaccepted connections of a listener and of all its copies.
pub(crate) type Backlog = Rc<RefCell<VecDeque<Key>>>;

/// The network's view of a listener.
pub(crate) struct ListenerEnd {
    pub(crate) host: u32,
    pub(crate) place: Place,
    /// Shared by its copies.
    pub(crate) backlog: Backlog,
    pub(crate) backlog_max: usize,
    /// How many connections other listeners of the host have accepted while the first one here
    /// waited, and the loop had been told of it.
    pub(crate) passed_over: u64,
    /// Connections wait, and the loop has heard of them or has left them there itself.
    pub(crate) is_loop_notified: bool,
    pub(crate) reuse_port: bool,
    pub(crate) registered: Option<Token>,
    /// The next connection is reported: `accept` has failed with `WouldBlock`, or the listener was
    /// just registered.
    pub(crate) is_armed: bool,
}

/// The network's view of a datagram socket.
pub(crate) struct DatagramEnd {
    pub(crate) host: u32,
    pub(crate) place: Place,
    /// The only peer from which it accepts datagrams.
    pub(crate) peer: Option<Place>,
    /// At a path: the peer's socket. A later socket at the same path is a different one.
    pub(crate) peer_key: Option<Key>,
    /// The peer's host has reported that nobody takes the datagrams.
    pub(crate) is_refused: bool,
    pub(crate) queue: VecDeque<(Box<[u8]>, Place)>,
    pub(crate) registered: Option<(Token, Interest)>,
    /// The next arrival is reported, as for a listener.
    pub(crate) is_armed: bool,
    /// The paths whose sockets had no room for a datagram. The socket is told when they have.
    pub(crate) full_peers: Vec<Place>,
}

/// A datagram on its way.
pub(crate) struct Datagram {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) hosts: (u32, u32),
}

/// A packet on its way.
pub(crate) struct Packet {
    pub(super) bytes: Box<[u8]>,
    /// The sending and the receiving host.
    pub(super) hosts: (u32, u32),
}
