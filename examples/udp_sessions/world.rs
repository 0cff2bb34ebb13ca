//! The data that all machines of the loop share: the socket, on which each of them sends, and the
//! peers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::DatagramSocket;
use rotor::{Notifier, Time};

use super::wire::{self, Command};

/// How many datagrams a second a peer may send; further ones are dropped.
pub(crate) const DATAGRAMS_PER_SECOND: usize = 20;
/// How many strangers a second are answered, all of them together, because their addresses may be
/// forged.
pub(crate) const STRANGERS_PER_SECOND: usize = 100;

/// The context.
pub(crate) struct World<D> {
    /// `None` after the end of the endpoint, which is the machine that gets its events.
    pub(crate) socket: Option<D>,
    pub(crate) peers: BTreeMap<SocketAddr, Peer>,
    pub(crate) counters: Counters,
    sessions_max: usize,
    last_id: u64,
    strangers: Rate<STRANGERS_PER_SECOND>,
}

/// What others may know about a peer. Only its session removes it.
pub(crate) struct Peer {
    pub(crate) id: u64,
    pub(crate) position: (i32, i32),
    /// When its last datagram arrived.
    pub(crate) heard: Time,
    /// The number of the last message to it, which its ACK contains.
    pub(crate) number: u32,
    pub(crate) is_acknowledged: bool,
    /// Whether it has sent back a number that was sent to its address, so that the address is
    /// genuine.
    pub(crate) is_proven: bool,
    pub(crate) has_left: bool,
    /// Wakes its session.
    session: Notifier,
    rate: Rate<DATAGRAMS_PER_SECOND>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counters {
    pub(crate) received: u64,
    /// Datagrams that were too many, or from strangers without HELLO.
    pub(crate) ignored: u64,
    pub(crate) refused: u64,
    pub(crate) unsent: u64,
    pub(crate) sent_again: u64,
    pub(crate) idle: u64,
    pub(crate) panics: u64,
    pub(crate) socket_errors: u64,
}

impl<D: DatagramSocket<Address = SocketAddr>> World<D> {
    pub(crate) fn new(socket: D, sessions_max: usize) -> World<D> {
        World {
            socket: Some(socket),
            peers: BTreeMap::new(),
            counters: Counters::default(),
            sessions_max,
            last_id: 0,
            strangers: Rate::new(),
        }
    }

    /// Sends a datagram. After any error it is lost, as datagrams may be; important ones are sent
    /// again.
    pub(crate) fn send(&mut self, text: &str, to: SocketAddr) {
        let Some(socket) = &mut self.socket else { return };
        let sent = socket.send_to(text.as_bytes(), &to);
        self.counters.unsent += u64::from(sent.is_err());
    }

    /// Processes a datagram. Returns whether its sender should get a session.
    pub(crate) fn datagram(&mut self, datagram: &[u8], from: SocketAddr, now: Time) -> bool {
        self.counters.received += 1;
        let command = wire::parse(datagram);
        // The entry of a session that has panicked is still here.
        let mut known = self.peers.get_mut(&from).filter(|peer| peer.session.is_alive());
        let is_heard = match &mut known {
            Some(peer) => peer.rate.allow(now),
            // The number of answers to strangers is limited for all of them together, because with
            // forged addresses they cannot be distinguished.
            None => command == Some(Command::Hello) && self.strangers.allow(now),
        };
        match known {
            _ if !is_heard => self.counters.ignored += 1,
            None => return true,
            Some(peer) => {
                if let Some(answer) = peer.handle_command(command, now) {
                    self.send(&answer, from);
                }
            }
        }
        false
    }

    pub(crate) fn has_room(&self) -> bool {
        self.peers.len() < self.sessions_max
    }

    pub(crate) fn refuse(&mut self, stranger: SocketAddr) {
        self.counters.refused += 1;
        self.send("FULL", stranger);
    }

    /// Adds a peer. Only its session calls this. The number should be hard to guess.
    pub(crate) fn welcome(
        &mut self,
        address: SocketAddr,
        number: u32,
        session: Notifier,
        now: Time,
    ) {
        self.last_id += 1;
        let peer = Peer {
            id: self.last_id,
            position: (0, 0),
            heard: now,
            number,
            is_acknowledged: false,
            is_proven: false,
            has_left: false,
            session,
            rate: Rate::new(),
        };
        self.peers.insert(address, peer);
        self.send(&wire::welcome(number), address);
    }

    pub(crate) fn forget(&mut self, address: SocketAddr) {
        self.peers.remove(&address);
    }

    /// Removes peers whose session has panicked: a panic ends the machine, but its entry stays
    /// here.
    pub(crate) fn remove_panicked(&mut self) {
        self.peers.retain(|_, peer| peer.session.is_alive());
    }

    /// Returns the state for the peer at that address: its own position first, then as many of the
    /// following peers as there is room for.
    pub(crate) fn state(&self, address: SocketAddr, number: u32) -> String {
        let peers = self.peers.range(address..).chain(self.peers.range(..address));
        let there = peers.filter(|(_, peer)| peer.is_proven);
        wire::state(number, there.map(|(_, peer)| (peer.id, peer.position)))
    }
}

impl Peer {
    /// Returns the answer, if there is one. What the session must do is stored here, and the
    /// session is woken.
    fn handle_command(&mut self, command: Option<Command>, now: Time) -> Option<String> {
        self.heard = now;
        match command {
            // Its WELCOME was lost.
            Some(Command::Hello) if !self.is_proven => return Some(wire::welcome(self.number)),
            Some(Command::Ack(number)) if number == self.number => {
                self.is_acknowledged = true;
                self.session.wakeup();
            }
            Some(Command::Bye) => {
                self.has_left = true;
                self.session.wakeup();
                return Some("BYE".into());
            }
            // The next STATE shows it, so the session need not be woken.
            Some(Command::Move(x, y)) if self.is_proven => self.position = (x, y),
            None if self.is_proven => return Some("ERROR".into()),
            _ => {}
        }
        None
    }
}

/// Allows at most `N` in any second.
pub(crate) struct Rate<const N: usize> {
    /// The times of the last `N`, as a ring.
    times: [Option<Time>; N],
    oldest: usize,
}

impl<const N: usize> Rate<N> {
    fn new() -> Rate<N> {
        Rate { times: [None; N], oldest: 0 }
    }

    fn allow(&mut self, now: Time) -> bool {
        if self.times[self.oldest].is_some_and(|oldest| now < oldest + Duration::from_secs(1)) {
            return false;
        }
        self.times[self.oldest] = Some(now);
        self.oldest = (self.oldest + 1) % N;
        true
    }
}
