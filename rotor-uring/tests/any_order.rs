//! Operations on a few connections in any order: the bytes read are the bytes written, no edge is
//! lost, and nothing is left behind. The order comes from a seed, which a failure names.
//! `ROTOR_URING_SEEDS` sets the number of seeds (8 by default, each with three configurations).
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rig::{Rig, connect};
use rotor_core::EventSet;
use rotor_core::net::StreamSocket;
use rotor_uring::{UringConfig, UringTcpListener, UringTcpStream};

/// The maximum number of concurrent connections.
const CONNECTIONS_MAX: usize = 6;
const STEPS: usize = 300;
/// The maximum number of bytes of a read or write: more than one operation hands over.
const BYTES_MAX: usize = 40_000;

/// One direction of a connection. The byte at each position is computed, so no data is stored.
#[derive(Default)]
struct Direction {
    salt: u64,
    written: u64,
    read: u64,
    /// The writer can write no more.
    is_shut: bool,
    /// The reader has reached the end. Earlier bytes may still be in flight when the writer can
    /// write no more, so the two are separate.
    has_ended: bool,
}

impl Direction {
    fn byte(&self, at: u64) -> u8 {
        (at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.salt) >> 56) as u8
    }

    /// Writes up to `count` bytes. Returns `false` if that would block. A failure ends the
    /// direction.
    fn write(&mut self, socket: &mut impl Write, count: usize) -> bool {
        let bytes: Vec<u8> = (0..count as u64).map(|at| self.byte(self.written + at)).collect();
        match socket.write(&bytes) {
            Ok(taken) => self.written += taken as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.is_shut = true,
        }
        true
    }

    /// Reads up to `count` bytes. Returns whether there may be more.
    fn read(&mut self, socket: &mut impl Read, count: usize) -> bool {
        let mut bytes = vec![0; count];
        match socket.read(&mut bytes) {
            Ok(0) if count > 0 => self.has_ended = true,
            Ok(got) => {
                for byte in &bytes[..got] {
                    assert_eq!(*byte, self.byte(self.read), "at {} of {}", self.read, self.written);
                    self.read += 1;
                }
                assert!(self.read <= self.written, "more came than was written");
                return true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.has_ended = true,
        }
        false
    }
}

struct Connection {
    server: UringTcpStream,
    client: TcpStream,
    is_registered: bool,
    /// The directions to the server and from it.
    to: Direction,
    from: Direction,
}

struct World {
    rig: Rig,
    random: fastrand::Rng,
    listener: UringTcpListener,
    address: SocketAddr,
    connections: Vec<Connection>,
    /// Clients whose servers were dropped, to be read to their end.
    unfinished: Vec<(TcpStream, Direction)>,
}

impl World {
    fn open(rig: Rig, seed: u64) -> World {
        let (mut rig, random) = (rig, fastrand::Rng::with_seed(seed));
        let (listener, address) = rig.listen();
        World { rig, random, listener, address, connections: Vec::new(), unfinished: Vec::new() }
    }

    fn step(&mut self) {
        let what = self.random.u32(0..100);
        if self.connections.is_empty() || what < 6 {
            return self.add_connection();
        }
        if what < 40 {
            return self.rig.turns(1);
        }
        let index = self.random.usize(0..self.connections.len());
        let count = self.random.usize(0..BYTES_MAX) >> self.random.u32(0..12);
        let one = &mut self.connections[index];
        match what {
            40..50 => drop(one.to.write(&mut one.client, count)),
            50..62 => drop(one.from.write(&mut one.server, count)),
            62..74 => drop(one.to.read(&mut one.server, count)),
            74..84 => drop(one.from.read(&mut one.client, count)),
            84..89 if one.is_registered => {
                self.rig.with(|scope| scope.deregister(&mut one.server)).expect("it is registered");
                one.is_registered = false;
            }
            84..89 => {
                self.rig.register(&mut one.server);
                one.is_registered = true;
            }
            // Ends of one direction; failures are reported elsewhere.
            89 => drop(one.client.shutdown(Shutdown::Write)),
            90 => drop(one.server.shutdown(Shutdown::Write)),
            // A system call in the middle of a turn.
            91..94 => drop(self.rig.listen()),
            94..97 => {
                let one = self.connections.swap_remove(index);
                self.unfinished.push((one.client, one.from));
            }
            97 => drop(self.connections.swap_remove(index)),
            _ => drop(one.server.take_error()),
        }
    }

    fn add_connection(&mut self) {
        if self.connections.len() == CONNECTIONS_MAX {
            return;
        }
        let client = connect(self.address);
        let server = self.rig.accept(&mut self.listener);
        if self.random.bool() {
            server.set_send_buffer(4_096).expect("it can be");
        }
        let mut direction = || Direction { salt: self.random.u64(..), ..Direction::default() };
        let (to, from) = (direction(), direction());
        self.connections.push(Connection { server, client, is_registered: false, to, from });
    }

    /// For each connection in turn: a machine that waits for events is notified of arriving bytes,
    /// and of room to write.
    fn check_events(&mut self) {
        for one in &mut self.connections {
            if !one.is_registered {
                self.rig.register(&mut one.server);
                one.is_registered = true;
            }
            // Like a machine that has read until nothing was left.
            while one.to.read(&mut one.server, BYTES_MAX) {}
            self.rig.take_events();
            let is_tried = !one.to.has_ended && one.to.write(&mut one.client, 10);
            if is_tried && !one.to.is_shut {
                await_event(&mut self.rig, EventSet::READABLE);
            }
            while one.from.write(&mut one.server, BYTES_MAX) && !one.from.is_shut {}
            if one.from.is_shut {
                continue;
            }
            self.rig.take_events();
            let mut is_told = false;
            self.rig.until(|rig| {
                one.from.read(&mut one.client, BYTES_MAX);
                is_told |=
                    rig.take_events().iter().any(|events| events.contains(EventSet::WRITABLE));
                is_told
            });
        }
    }

    /// All written bytes arrive, then the end; no connection is left.
    fn finish(mut self, base: usize) {
        for mut one in self.connections.drain(..) {
            let _over = one.client.shutdown(Shutdown::Write);
            self.rig.until(|_| {
                one.from.read(&mut one.client, BYTES_MAX);
                one.to.read(&mut one.server, BYTES_MAX);
                one.to.has_ended
            });
            assert_eq!(one.to.read, one.to.written, "to the server");
            let _over = one.server.shutdown(Shutdown::Write);
            let (mut client, mut from) = (one.client, one.from);
            self.rig.until(|_| {
                while from.read(&mut client, BYTES_MAX) {}
                from.read == from.written
            });
        }
        for (mut client, mut from) in self.unfinished.drain(..) {
            from.has_ended = false;
            self.rig.until(|_| {
                while from.read(&mut client, BYTES_MAX) {}
                from.has_ended
            });
        }
        drop(self.listener);
        self.rig.until(|rig| rig.stats().sockets == base);
        assert_eq!(self.rig.stats().stale, 0, "{:?}", self.rig.stats());
    }
}

fn await_event(rig: &mut Rig, wanted: EventSet) {
    rig.until(|rig| rig.take_events().iter().any(|events| events.contains(wanted)));
}

#[test]
fn random_operations_lose_no_byte_no_event_and_no_socket() {
    let seeds = std::env::var("ROTOR_URING_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = UringConfig::new().linger(Duration::from_secs(60));
    let small =
        long.clone().buffers(2, 2_048).unread_bytes_max(4_096).submissions(8).completions(16);
    let tiny = long.clone().buffers(1, 256).submissions(1).completions(2).events_max(1);
    for seed in 0..seeds.unwrap_or(8) {
        for (name, config) in [("default", &long), ("small", &small), ("tiny", &tiny)] {
            let Some(rig) = Rig::open(config) else { return };
            let base = rig.stats().sockets;
            let mut world = World::open(rig, seed);
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                (0..STEPS).for_each(|_| world.step());
                world.check_events();
                world.finish(base);
            }));
            if let Err(panic) = tried {
                eprintln!("seed {seed}, {name}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}
