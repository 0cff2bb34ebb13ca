//! Loops on stacks. The test holds the sockets; machines only provide their tokens. All loops run
//! in virtual time, so a test is the same in each run and never sleeps.
#![allow(dead_code, reason = "each suite uses a part of it")]

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rotor_core::net::{ListenOptions, Listener, StreamSocket};
use rotor_core::{Config, ExitPolicy, Interest, Loop, LoopInstance, Scope};
use rotor_smoltcp::{
    Device, ManualClock, MemoryConfig, MemoryDevice, Smoltcp, SmoltcpHandle, SmoltcpTcpListener,
    SmoltcpTcpStream, StackConfig, StackStats,
};

#[path = "../../../tests/loops/held.rs"]
mod held;

pub(crate) use held::*;

/// A host: a loop on a stack.
pub(crate) struct Host {
    pub(crate) instance: LoopInstance<Note, Smoltcp>,
    pub(crate) handle: SmoltcpHandle,
}

/// Two hosts, connected by a cable, and their clock.
pub(crate) struct Rig {
    pub(crate) clock: ManualClock,
    pub(crate) server: Host,
    pub(crate) client: Host,
}

pub(crate) const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
pub(crate) const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

pub(crate) fn six(last: u16) -> IpAddr {
    IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last])
}

/// The configuration of the host whose addresses end in `last`.
pub(crate) fn config(last: u8) -> StackConfig {
    StackConfig::new()
        .address(IpAddr::from([10, 0, 0, last]), 24)
        .address(six(last.into()), 64)
        .hardware_address([2, 0, 0, 0, 0, last])
        .seed(last.into())
}

impl Host {
    pub(crate) fn open(device: impl Device, config: &StackConfig, clock: &ManualClock) -> Host {
        let backend = Smoltcp::in_virtual_time(device, config, clock).expect("it is in order");
        let limits = Config::new().machines_max(100_000).exit(ExitPolicy::OnRequest);
        let creator = Loop::<Note, _>::with_backend(backend, &limits).expect("there is memory");
        let mut instance = creator.instantiate(Told::new());
        let handle = within(&mut instance, |scope| {
            SmoltcpHandle::of(scope, "a test").expect("it is of this backend").clone()
        });
        Host { instance, handle }
    }

    /// Calls `ask` with the scope of a new machine.
    pub(crate) fn with<T>(&mut self, ask: impl FnOnce(&mut Scope<'_, Told>) -> T) -> T {
        within(&mut self.instance, ask)
    }

    pub(crate) fn turn(&mut self) {
        self.instance.turn(None).expect("the loop goes on");
    }

    pub(crate) fn stats(&self) -> StackStats {
        self.handle.stats()
    }

    pub(crate) fn take_events(&mut self) -> Told {
        std::mem::take(self.instance.context_mut())
    }

    pub(crate) fn listen_on(&mut self, address: SocketAddr, backlog: u32) -> SmoltcpTcpListener {
        self.with(|scope| {
            let options = ListenOptions::new().backlog(backlog);
            let mut listener = SmoltcpTcpListener::bind(&address, &options, scope).expect("free");
            scope.register(&mut listener, Interest::Readable).expect("of this backend");
            listener
        })
    }

    pub(crate) fn connect(&mut self, target: SocketAddr) -> SmoltcpTcpStream {
        self.with(|scope| {
            let mut socket = SmoltcpTcpStream::connect(&target, scope).expect("it begins");
            scope.register(&mut socket, Interest::Both).expect("of this backend");
            socket
        })
    }

    pub(crate) fn register(&mut self, socket: &mut SmoltcpTcpStream) {
        self.with(|scope| scope.register(socket, Interest::Both)).expect("of this backend");
    }
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::on(MemoryConfig::new())
    }

    pub(crate) fn on(cable: MemoryConfig) -> Rig {
        Rig::with(cable, config(1), config(2))
    }

    pub(crate) fn with(cable: MemoryConfig, server: StackConfig, client: StackConfig) -> Rig {
        let clock = ManualClock::new();
        let (left, right) = MemoryDevice::pair(&cable.clock(&clock)).expect("descriptors are left");
        let server = Host::open(left, &server, &clock);
        let client = Host::open(right, &client, &clock);
        Rig { clock, server, client }
    }

    /// Takes a turn of each host and advances the time. Returns whether anything can still happen.
    pub(crate) fn turn(&mut self) -> bool {
        self.server.turn();
        self.client.turn();
        self.clock.step()
    }

    /// Takes turns until the condition holds.
    pub(crate) fn until(&mut self, mut is_so: impl FnMut(&mut Rig) -> bool) {
        for _ in 0..1_000_000 {
            if is_so(self) {
                return;
            }
            assert!(self.turn() || is_so(self), "nothing happens any more: {self:?}");
        }
        panic!("it does not come to that: {self:?}");
    }

    /// Takes turns until that much time has passed.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            self.server.turn();
            self.client.turn();
            if !self.clock.step_until(end) {
                // Nothing is left to happen before `end`, so only the time advances.
                self.clock.advance(end - self.clock.now());
            }
        }
    }

    /// Accepts the next connection and registers it.
    pub(crate) fn accept(&mut self, listener: &mut SmoltcpTcpListener) -> SmoltcpTcpStream {
        let mut accepted = None;
        self.until(|_| {
            accepted = not_yet(listener.accept());
            accepted.is_some()
        });
        let mut socket = accepted.expect("as asked").0;
        self.server.register(&mut socket);
        socket
    }

    /// A connection: its end at the server, its end at the client.
    pub(crate) fn pair(&mut self) -> (SmoltcpTcpStream, SmoltcpTcpStream) {
        let mut listener = self.server.listen_on((SERVER, 80).into(), 8);
        self.pair_by(&mut listener, (SERVER, 80).into())
    }

    pub(crate) fn pair_by(
        &mut self,
        listener: &mut SmoltcpTcpListener,
        target: SocketAddr,
    ) -> (SmoltcpTcpStream, SmoltcpTcpStream) {
        let mut client = self.client.connect(target);
        let server = self.accept(listener);
        self.until(|_| client.has_connected().expect("it is taken"));
        (server, client)
    }

    /// Reads `count` bytes, or up to the end.
    pub(crate) fn read(&mut self, socket: &mut impl Read, count: Option<usize>) -> Vec<u8> {
        let mut got = Vec::new();
        self.until(|_| read_on(socket, count, &mut got));
        got
    }
}

impl std::fmt::Debug for Rig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (server, client) = (self.server.stats(), self.client.stats());
        write!(f, "at {:?}, server {server:?}, client {client:?}", self.clock.now())
    }
}
